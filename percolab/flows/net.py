"""A net: the bonds of a topology between nodes, with the sites of each terminal joined to one node.

A node is a site, or one of the two terminals: the sites of a terminal are one node, as the sites
of an electrode are at one potential.  A bond between two sites of one terminal is a loop, which
carries no current, and so is a bond from a site to itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint8, uint32, uint64
from numpy.typing import NDArray

from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology

#: Values in place of a bond: for a node that was not reached, and for the root of a search.
UNSEEN, ROOT = np.uint32(2**32 - 1), np.uint32(2**32 - 2)


class BondList(NamedTuple):
    """All bonds of a topology.

    places: int64 (m,), 32 * word + bit in the words of all classes
    sites:  int32 (m, 2), the two sites of each
    """

    places: Any
    sites: Any


class Net(NamedTuple):
    """The bonds of every node, and the nodes of every bond.

    starts: int64 (nodes + 1,), where the bonds of each node begin in the next two lists, which do
            not contain loops
    ends:   uint32, the other node of each bond
    bonds:  uint32, the number of each bond among all bonds
    pairs:  uint32 (m, 2), the nodes of every bond
    places: int64 (m,), as in the list of bonds
    root:   node of the first terminal, uint32; UNSEEN if there are no terminals
    sink:   node of the second terminal
    """

    starts: Any
    ends: Any
    bonds: Any
    pairs: Any
    places: Any
    root: Any
    sink: Any


def list_bonds(topology: Topology) -> BondList:
    """Return the bonds of a topology in its order."""
    k, owner, other = topology.bonds().T
    places = 32 * topology.num_words * k + owner
    return BondList(places, np.column_stack([owner, other]).astype(np.int32))


def make_net(
    bonds: BondList,
    num_points: int,
    source: NDArray[np.int32] | Sequence[int] = (),
    target: NDArray[np.int32] | Sequence[int] = (),
) -> Net:
    """Return the net of bonds between sites, with the sites of each terminal joined to one node.

    source, target: disjoint sets of sites.  Without them every site is a separate node.
    """
    nodes = np.arange(num_points + 2, dtype=np.uint32)
    root, sink = nodes[num_points:] if len(source) else (UNSEEN, UNSEEN)
    nodes[np.asarray(source, np.intp)] = root
    nodes[np.asarray(target, np.intp)] = sink
    pairs = nodes[bonds.sites]
    starts = np.zeros(num_points + 3, np.int64)
    _count_bonds(pairs, starts)
    ends, numbers = np.empty((2, int(starts[-1])), np.uint32)
    _list_ends(pairs, starts[:-1].copy(), ends, numbers)
    return Net(starts, ends, numbers, pairs, bonds.places, root, sink)


def end_layers(topology: Topology) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the terminals of samples: the two end layers of the last open axis."""
    first, last = topology.end_layers[topology.open_axes[-1]]
    return first, last


def net_bytes(extent: Extent) -> int:
    """Return the peak memory for making a net and its list of bonds."""
    bonds = extent.num_classes * extent.num_points
    # Rows of three int64 while bonds are listed; then places, sites, pairs and both lists of ends.
    return 56 * bonds + 12 * extent.num_points


@njit(nogil=True, cache=True)
def _count_bonds(pairs, starts):
    """Write where the bonds of every node begin."""
    for b in range(pairs.shape[0]):
        i, j = pairs[b, 0], pairs[b, 1]
        if i != j:
            starts[i + uint32(1)] += 1
            starts[j + uint32(1)] += 1
    for node in range(1, starts.size):
        starts[node] += starts[node - 1]


@njit(nogil=True, cache=True)
def _list_ends(pairs, following, ends, bonds):
    """Write every node's bonds and their ends; following: the next position for each node."""
    for b in range(pairs.shape[0]):
        i, j = pairs[b, 0], pairs[b, 1]
        if i != j:
            ends[following[i]], bonds[following[i]] = j, b
            ends[following[j]], bonds[following[j]] = i, b
            following[i] += 1
            following[j] += 1


@njit(nogil=True, cache=True)
def unpack_open(words, places, is_open):
    """Write which bonds are open, uint8 (m,), from the bond words of a sample, uint32."""
    for b in range(places.size):
        place = uint64(places[b])
        word = words[place >> uint64(5)]
        is_open[b] = (word >> uint32(place & uint64(31))) & uint32(1)


@njit(nogil=True, cache=True)
def mark_inside(net, is_open, inside, marks):
    """Mark the open bonds that join two different nodes inside, uint8 (m,); return their number.

    inside: uint8 (nodes,), whether a node is on trails, or in a block.
    """
    count = 0
    for b in range(net.pairs.shape[0]):
        i, j = net.pairs[b, 0], net.pairs[b, 1]
        # No branch here, since branches would be unpredictable.
        marks[b] = is_open[b] & inside[i] & inside[j] & uint8(i != j)
        count += marks[b]
    return count


@njit(nogil=True, cache=True)
def count_sites(sites, marks, touched):
    """Return the number of sites on marked bonds.

    sites: int32 (m, 2); marks: uint8 (m,); touched: uint8 (num_points,), is overwritten.
    """
    touched[:] = 0
    for b in range(marks.size):
        if marks[b] != 0:
            touched[sites[b, 0]] = 1
            touched[sites[b, 1]] = 1
    return touched.sum()


@njit(nogil=True, cache=True)
def spread(net, is_open, touched):
    """Mark all sites that open bonds connect with marked sites; touched: uint8 (num_points,)."""
    waiting = np.empty(touched.size, np.uint32)
    count = 0
    for site in range(touched.size):
        if touched[site] != 0:
            waiting[count] = site
            count += 1
    while count > 0:
        count -= 1
        site = waiting[count]
        for n in range(net.starts[site], net.starts[site + uint32(1)]):
            other = net.ends[n]
            if is_open[net.bonds[n]] != 0 and touched[other] == 0:
                touched[other] = 1
                waiting[count] = other
                count += 1
