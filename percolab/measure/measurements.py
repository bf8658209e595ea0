"""The registry of measurements: readings of samples, besides rows, by words of ``--measure``.

A measurement is a line here and a file with its *reader*.  Its columns are declared with all others
(:data:`percolab.measure.columns.EXTRA_COLUMNS`), under its word.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.lattices.extent import Extent
from percolab.lattices.structure import Structure
from percolab.lattices.topology import UInt64s
from percolab.measure.columns import EXTRA_COLUMNS, Column

#: The parts of a sample that a reader may need: its open bonds, its forest, its labels.
READS = ("bonds", "forest", "labels")


class Reader(ABC):
    """Reads a quantity from samples of one task; it is made from the structure and the shape.

    with_terminals: whether its constructor and ``check`` also get the terminals of a study of a
    lattice.
    """

    with_terminals: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, structure: Structure, shape: tuple[int, ...]) -> None: ...

    @classmethod
    @abstractmethod
    def check(cls, structure: Structure, boundary: Sequence[str]) -> None:
        """Raise InputError if the measurement has no meaning for this structure and boundary."""

    @classmethod
    def add_needs(cls, structure: Structure, needs: Needs) -> Needs:
        """Return the requirements on a labeler's memory, including those of this measurement."""
        return needs

    @classmethod
    def memory(cls, extent: Extent) -> Memory:
        """Return the memory of the reader itself; device memory is only used on CUDA."""
        return Memory()

    def rows(
        self, coupling: Any, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s
    ) -> NDArray[np.int64]:
        """Return the readings of a Coupling's samples at all thresholds, int64 (n, m, numbers)."""
        labeler = coupling.labeler
        capacity = labeler.batch.capacity
        by_threshold = []
        for threshold in thresholds:
            parts = []
            for first in range(0, len(samples), capacity):
                part = samples[first : first + capacity]
                labeler.batch.fill(generator, seed, part, np.full_like(part, threshold))
                parts.append(np.asarray(self.read_batch(labeler, seed, part), np.int64))
            by_threshold.append(np.concatenate(parts))
        return np.stack(by_threshold, axis=1)

    def read_batch(self, labeler: Any, seed: int, samples: UInt64s) -> Any:
        """Return the readings of the samples in a labeler's batch, (samples, numbers)."""
        raise NotImplementedError

    def block_sums(
        self, coupling: Any, generator: int, seed: int, blocks: Any, thresholds: UInt64s
    ) -> dict[str, NDArray[Any]] | None:
        """Return the sums of blocks, like :meth:`sums`, if the coupling computes them; else None.

        blocks: :class:`percolab.coupled.SampleBlocks`.  After None, they are made from rows.
        """
        return None

    @abstractmethod
    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums of rows, (blocks, samples, m, numbers), by dataset: (blocks, m, ...)."""


@dataclass(frozen=True)
class Measurement:
    """A measurement by its word: which of READS it needs, and the place of its Reader."""

    name: str
    reads: frozenset[str]
    reader: str

    def __post_init__(self) -> None:
        if not self.reads or not self.reads <= set(READS):
            raise TypeError(f"measurement {self.name} reads {set(self.reads)}, not of {READS}")
        if not self.columns:
            raise TypeError(f"measurement {self.name} has no columns")

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in EXTRA_COLUMNS if column.measure == self.name)

    @property
    def reader_class(self) -> type[Reader]:
        reader: type[Reader] = load(self.reader)
        return reader


MEASUREMENTS = {
    each.name: each
    for each in (
        Measurement("gyration", frozenset({"bonds", "forest"}), "measure.gyration:Gyration"),
        Measurement("connected", frozenset({"bonds"}), "flows.readers:Connected"),
        Measurement("bridges", frozenset({"bonds"}), "flows.readers:Bridges"),
        Measurement("backbone", frozenset({"bonds"}), "flows.readers:Backbone"),
        Measurement("path", frozenset({"bonds"}), "flows.readers:Path"),
        Measurement("bridge_free", frozenset({"bonds"}), "flows.readers:BridgeFree"),
        Measurement("path_lengths", frozenset({"bonds"}), "flows.readers:PathLengths"),
        Measurement("source", frozenset({"labels"}), "labelers.source:SourceClusters"),
        Measurement("conductance", frozenset({"bonds"}), "flows.readers:Conductance"),
        Measurement("currents", frozenset({"bonds"}), "flows.readers:Currents"),
    )
}


def list_measurements(measure: Collection[str]) -> list[Measurement]:
    """Return the measurements among the words of ``measure``, in the order of the registry."""
    return [each for name, each in MEASUREMENTS.items() if name in measure]
