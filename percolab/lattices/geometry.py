"""Geometry: the coordinates of sites as integer multiples of a fine step, so sums are exact."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure

# A coordinate has 30 bits, and a cluster may reach this many lattice sizes beyond its lattice.
_BITS, _REACH = 30, 8
#: Binary digits after the point: steps are 2^-16 of the lattice file's unit, if coordinates fit.
FINEST = 16


@dataclass(frozen=True, eq=False)
class Geometry:
    """Coordinates of the sites of a lattice, and its period vectors.

    places:  int32 (axes, num_points), coordinates in steps of ``1 / 2**digits``
    spans:   int64 (axes, axes), from a site to its copy one period on along each lattice axis
    digits:  binary digits of a coordinate after the point

    Each vector of the lattice file is rounded to ``digits`` binary digits once, so that all sites
    of one kind have exactly the same surroundings.
    """

    places: NDArray[np.int32]
    spans: NDArray[np.int64]
    digits: int

    @property
    def unit(self) -> float:
        """The square of a step, in squared units of length of the lattice file."""
        return 4.0**-self.digits

    @cached_property
    def prefixes(self) -> NDArray[np.uint64]:
        """Sums over all sites before each grid point: uint64 (num_points + 1, axes + 2).

        The low and high 32 bits of the squares of places, and the places, are summed modulo 2^64.
        """
        axes, points = self.places.shape
        sums = np.zeros((points + 1, axes + 2), np.uint64)
        for axis in range(axes):
            steps = self.places[axis].astype(np.int64)
            sums[1:, 2 + axis] = steps.view(np.uint64)
            squares = np.square(steps, out=steps).view(np.uint64)
            sums[1:, 1] += squares >> 32
            sums[1:, 0] += squares & 0xFFFFFFFF
        return np.cumsum(sums, axis=0, out=sums)


def make_geometry(structure: Structure, shape: tuple[int, ...]) -> Geometry:
    """Return the places of a lattice of this shape; InputError if it has no coordinates."""
    if not isinstance(structure, Lattice) or not structure.vectors:
        advice = "; [drawing] vectors in its file give it some" * isinstance(structure, Lattice)
        raise InputError(f"measure gyration: {structure.name} has no coordinates{advice}")
    vectors = np.array(structure.vectors)
    extent = np.abs(vectors * np.array(shape)[:, None]).sum(axis=0).max()
    # On small lattices, a path through all sites bounds the reach; on large ones, _REACH does.
    reach = min(_REACH * extent, extent + prod(shape) * np.abs(vectors).max())
    digits = min(FINEST, _BITS - int(np.ceil(np.log2(reach))))
    steps = np.rint(vectors * 2.0**digits).astype(np.int64)
    axes = np.stack(np.unravel_index(np.arange(prod(shape)), shape[::-1])[::-1], axis=1)
    places = axes.astype(np.int64) @ steps
    for point, shift in structure.shifts:
        here = np.all(axes % structure.cell == point, axis=1)
        places[here] += np.rint(np.array(shift) * 2.0**digits).astype(np.int64)
    spans = steps * np.array(shape, np.int64)[:, None]
    return Geometry(np.ascontiguousarray(places.T.astype(np.int32)), spans, digits)
