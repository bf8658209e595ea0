"""The measurement "gyration": radii of gyration of clusters, from open bonds and the forest."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.memory import Needs
from percolab.lattices.geometry import Geometry, make_geometry
from percolab.lattices.structure import Structure
from percolab.lattices.topology import UInt64s
from percolab.measure.measurements import Reader
from percolab.measure.radii import sum_gyration


class Gyration(Reader):
    """Radii of gyration of all clusters."""

    def __init__(self, structure: Structure, shape: tuple[int, ...]) -> None:
        self._geometry = make_geometry(structure, shape)

    @classmethod
    def check(cls, structure: Structure, boundary: Sequence[str]) -> None:
        _smallest(structure)

    @classmethod
    def add_needs(cls, structure: Structure, needs: Needs) -> Needs:
        return needs._replace(radii_axes=_smallest(structure).places.shape[0])

    def rows(
        self, coupling: Any, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s
    ) -> NDArray[np.int64]:
        """Return the bins of samples at all thresholds."""
        places = thresholds, self._geometry
        rows: NDArray[np.int64] = coupling.radii_rows(generator, seed, samples, *places)
        return rows

    def block_sums(
        self, coupling: Any, generator: int, seed: int, blocks: Any, thresholds: UInt64s
    ) -> dict[str, NDArray[Any]] | None:
        if not hasattr(coupling, "radii_sums"):
            return None
        places = thresholds, self._geometry
        return {"gyration": coupling.radii_sums(generator, seed, blocks, *places)}

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"gyration": sum_gyration(rows, self._geometry.unit)}


def _smallest(structure: Structure) -> Geometry:
    """Return the geometry of the smallest possible lattice."""
    return make_geometry(structure, (1,) * max(structure.dimension, 1))
