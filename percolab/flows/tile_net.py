"""The bonds of a large sample tile by tile; a tile is TILE nodes with consecutive numbers.

Nodes are numbered box by box, so that few bonds lead from one tile to another; the last box along
an axis may have numbers without a site.  Sites of a graph keep their order.  An additional tile
has the two terminals, which *own* their sites: a terminal and its sites are one node.
"""

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numba import config
from numpy.typing import NDArray

from percolab.flows.flow import Circuit
from percolab.lattices.extent import Extent

#: Nodes of a tile, and their binary logarithm; the simulator has tiny tiles.
TILE_BITS = 4 if config.ENABLE_CUDASIM else 10
TILE = 1 << TILE_BITS
#: A sample is read by tiles if its number of sites is in this range: their numbers have 31 bits.
LEAST_LARGE, MOST_LARGE = 2**16, 2**29


class TileNet(NamedTuple):
    """The bonds of every tile, with those between tiles in both; the last tile has the terminals.

    starts: uint32 (tiles + 1,), where the bonds of each tile begin
    bonds:  uint64, place << 32 | node at the other end; within a tile, the higher node
    at:     uint16, the number of the bond's node in its tile
    owners: uint32 (tiles * TILE,), the terminal that each node belongs to, or the node itself
    """

    starts: Any
    bonds: Any
    at: Any
    owners: Any


def make_tiles(circuit: Circuit, shape: Sequence[int]) -> TileNet:
    """Return the bonds of a circuit by tiles; shape: as for :func:`number_nodes`."""
    nodes = number_nodes(circuit.num_points, shape)
    root = TILE * count_tiles(nodes.size, shape)
    ends = nodes[circuit.source], nodes[circuit.target]
    owners = np.arange(root + TILE, dtype=np.uint32)
    for n, end in enumerate(ends):
        owners[end] = root + n
    pairs = nodes[circuit.bonds.sites]
    # Leave out bonds within a terminal, whose sites are one node.
    kept = owners[pairs[:, 0]] != owners[pairs[:, 1]]
    pairs, places = np.sort(pairs[kept], axis=1), circuit.bonds.places[kept].astype(np.uint64)
    tiles = pairs >> np.uint32(TILE_BITS)
    between = np.flatnonzero(tiles[:, 0] != tiles[:, 1])
    own = np.concatenate([pairs[:, 0], pairs[between, 1]])
    bonds = np.concatenate([places << 32 | pairs[:, 1], places[between] << 32 | pairs[between, 0]])
    tiles = own >> np.uint32(TILE_BITS)
    # NumPy uses a fast radix sort for 16-bit numbers, and comparisons for longer ones.
    order = np.argsort(tiles.astype(np.min_scalar_type(root // TILE)), kind="stable")
    starts = np.searchsorted(tiles[order], np.arange(root // TILE + 2)).astype(np.uint32)
    at = (own[order] & np.uint32(TILE - 1)).astype(np.uint16)
    return TileNet(starts, bonds[order], at, owners)


def count_tiles(num_points: int, shape: Sequence[int]) -> int:
    """Return the number of tiles for the sites of a grid or a graph."""
    if not shape:
        return -(-num_points // TILE)
    return prod(-(-length // edge) for length, edge in zip(shape, _box_edges(shape), strict=True))


def tile_bytes(extent: Extent, node_bytes: int) -> int:
    """Return the memory of a topology's tiles, with ``node_bytes`` for every node."""
    bonds = extent.num_classes * extent.num_points
    # Bonds with nodes, at both ends if all are between tiles, then the open ones; and owners.
    return 40 * bonds + (4 + node_bytes) * TILE * (1 + count_tiles(extent.num_points, extent.shape))


def number_nodes(num_points: int, shape: Sequence[int]) -> NDArray[np.uint32]:
    """Return the node of every site, uint32 (num_points,).

    shape: grid points along each axis, the first fastest; empty for a graph.
    """
    if not shape:
        return np.arange(num_points, dtype=np.uint32)
    inside, tiles, parts = 1, 1, []
    for length, edge in zip(shape, _box_edges(shape), strict=True):
        x = np.arange(length, dtype=np.uint32)
        parts.append(x // edge * (tiles * TILE) + x % edge * inside)
        inside, tiles = inside * edge, tiles * -(-length // edge)
    nodes = reduce(lambda faster, slower: np.add.outer(slower, faster).ravel(), parts)
    return nodes.astype(np.uint32)


def _box_edges(shape: Sequence[int]) -> list[int]:
    """Return the edges of the boxes: powers of two that are as equal as possible."""
    edges = [1] * len(shape)
    while prod(edges) < TILE:
        thin = [axis for axis, length in enumerate(shape) if edges[axis] < length]
        if not thin:
            break
        edges[min(thin, key=edges.__getitem__)] *= 2
    return edges
