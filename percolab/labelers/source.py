"""The measurement "source": the number of sites in the clusters of a graph's source, by labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.kernels.memory import Memory
from percolab.labelers.forest import Reading
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph
from percolab.lattices.structure import Structure
from percolab.lattices.topology import UInt64s, unpack_bits
from percolab.measure.measurements import Reader


class SourceClusters(Reader):
    """Reads the number of sites in the clusters of the source, and its square."""

    def __init__(self, structure: Structure, shape: tuple[int, ...]) -> None:
        assert isinstance(structure, Graph)
        inner, source = structure.inner_numbers, structure.bonds.source
        self._source = source if inner is None else inner[source]

    @classmethod
    def check(cls, structure: Structure, boundary: Sequence[str]) -> None:
        if not isinstance(structure, Graph) or not structure.num_sources:
            raise InputError(
                "measure source needs a graph with a source: give --graph and --source"
            )

    @classmethod
    def memory(cls, extent: Extent) -> Memory:
        """Return the memory of labels and of the sizes of clusters."""
        return Memory(host=16 * extent.num_points)

    def read_batch(self, labeler: Any, seed: int, samples: UInt64s) -> list[tuple[int, int]]:
        """Return, for every sample, the number of sites and its square."""
        labels = labeler.join(len(samples), Reading.LABELS).labels()
        occupied = labeler.batch.copy_occupied(len(samples))
        counts = (self._count(own, occupied[n % len(occupied)]) for n, own in enumerate(labels))
        return [(sites, sites**2) for sites in counts]

    def _count(self, labels: NDArray[np.int32], occupied: NDArray[np.uint32]) -> int:
        """Return how many sites are in a cluster with an occupied site of the source."""
        source = self._source[unpack_bits(occupied, labels.size)[self._source]]
        return int(np.isin(labels, labels[source]).sum())

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"source": rows.sum(axis=1)}
