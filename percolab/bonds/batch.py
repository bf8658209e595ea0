"""A batch: the open bonds of samples of one topology in the memory of one device.

It is filled with the random bonds of a model, or with given bonds; a labeler joins its open bonds.
Batch and model do not depend on the labeler.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import BOND, Model
from percolab.kernels.registry import load
from percolab.lattices.topology import Topology, UInt64s


class Batch(Protocol):
    """The open bonds and occupied sites of up to ``capacity`` entries, each one sample at one p."""

    topology: Topology
    model: Model
    capacity: int

    def fill(self, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s) -> int:
        """Draw the open bonds of entries (sample, threshold), uint64 each; return their number."""

    def load(self, opened: NDArray[np.uint32]) -> int:
        """Take given open bonds, (entries, num_classes * num_words); return their number."""

    def copy_open_words(self, entries: int) -> NDArray[np.uint32]:
        """Return the bond words of the first entries, (entries, num_classes * num_words)."""

    def copy_occupied(self, entries: int) -> NDArray[np.uint32]:
        """Return the occupied sites of the first entries, (entries, num_words), as bits."""

    def copy_vacant(self, entries: int) -> NDArray[np.int64]:
        """Return the numbers of vacant sites of the first entries as drawn last, int64."""


#: The batch class for each kind of device.
_BATCHES = {"cpu": "bonds.batch_cpu:CpuBatch", "cuda": "bonds.batch_cuda:CudaBatch"}


def batch_class(kind: str) -> Any:
    """Return the class of batches on a kind of device, "cpu" or "cuda"."""
    return load(_BATCHES[kind])


def new_batch(kind: str, topology: Topology, model: Model = BOND, *, capacity: int = 1) -> Batch:
    """Return an empty batch on "cpu" or "cuda"; its ``capacity`` may be less, 1 on the CPU."""
    batch: Batch = batch_class(kind)(topology, model, capacity)
    return batch
