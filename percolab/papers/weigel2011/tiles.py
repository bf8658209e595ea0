"""Square tiles of a lattice of two dimensions, and what works on them."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import config, int32, uint32

from percolab.kernels.inner import inner
from percolab.kernels.neighbours import has_bit
from percolab.labelers.four_step import bond_word
from percolab.lattices.topology import Topology

#: Sites along the edge of a tile: the optimum of self-labeling and sewing in the paper.  The
#: simulator runs a Python thread per thread; small tiles also make more borders there.
EDGE = 4 if config.ENABLE_CUDASIM else 16


class WeigelTiles(NamedTuple):
    """A lattice of ``width`` times ``height`` grid points in tiles, as kernels take it.

    edge:        grid points along the edge of a tile; the last tile of an axis may have fewer
    right, down: over how many grid points a bond leads along both axes, a tuple by class

    All numbers are int32.
    """

    width: Any
    height: Any
    edge: Any
    right: Any
    down: Any


def tiles_of(topology: Topology, edge: int) -> WeigelTiles:
    """Return the tiles of a topology; ValueError if a bond is longer than a tile's edge."""
    reach = max(abs(step) for offset in topology.offsets for step in offset)
    if edge < reach:
        raise ValueError(f"bonds over {reach} grid points do not fit tiles of edge {edge}")
    width, height = topology.shape
    right, down = (tuple(np.int32(offset[axis]) for offset in topology.offsets) for axis in (0, 1))
    return WeigelTiles(np.int32(width), np.int32(height), np.int32(edge), right, down)


def num_tiles(shape, edge):
    """Return how many tiles of an edge cover a lattice of a shape (width, height)."""
    return -(-shape[0] // edge) * -(-shape[1] // edge)


def why_not(offsets):
    """Return why bonds with these offsets, () for a graph, cannot be served, or ""."""
    if not offsets or len(offsets[0]) != 2:
        return "needs a lattice of two dimensions"
    if max(abs(step) for offset in offsets for step in offset) > EDGE:
        return "has tiles smaller than the bonds are long"
    return ""


class TileStep:
    """A local labeling or a consolidation of the entries of a batch.

    labels: uint32 (capacity * num_points,), those of entry n from n * num_points on; each points
            to a smaller site of its cluster, or to its own site
    """

    #: Whether ``run`` only launches, without waiting for what it found.
    is_capturable: ClassVar[bool] = True

    def __init__(self, batch, labels, tiles):
        self.batch, self.labels, self.tiles = batch, labels, tiles

    @staticmethod
    def memory(extent, edge, entries):
        """Return the bytes of the device that it takes in addition to the labels."""
        return 0

    @property
    def num_tiles(self):
        """Tiles of an entry."""
        return num_tiles(self.batch.topology.shape, int(self.tiles.edge))

    def run(self, entries):
        """Do it for the first entries of the batch."""
        raise NotImplementedError


@inner
def tile_bounds(number, edge, tiles):
    """Return (left, top, right, bottom) of a tile of any edge, right and bottom exclusive."""
    across = int32(int32(tiles.width + edge - int32(1)) // edge)
    left, top = int32(int32(number % across) * edge), int32(int32(number // across) * edge)
    right, bottom = int32(left + edge), int32(top + edge)
    return left, top, min(right, tiles.width), min(bottom, tiles.height)


@inner
def is_in(x, y, bounds):
    """Return whether a grid point lies within (left, top, right, bottom)."""
    return x >= bounds[0] and y >= bounds[1] and x < bounds[2] and y < bounds[3]


@inner
def site_at(x, y, tiles):
    """Return the site at a grid point, uint32."""
    return uint32(uint32(y) * uint32(tiles.width) + uint32(x))


@inner
def is_open(opened, base, adjacency, k, i):
    """Return whether bond (k, i) is open and crosses no periodic boundary."""
    return has_bit(bond_word(opened, base, adjacency, k, uint32(i >> uint32(5))), i & uint32(31))
