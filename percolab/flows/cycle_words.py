"""Bridges, red bonds and trails, by random words whose XOR is zero over the bonds of a cut.

Every open bond outside of a spanning forest gets a keyed word of 64 bits.  The word of a forest
bond is the XOR of the words of the bonds whose cycle uses it, found in one pass up the forest.  The
word is 0 if the bond is a *bridge*, without which its cluster falls apart; and it is the word of
the virtual bond between the two terminals if the bond is *red*, that is, if every connection of the
terminals uses it.  The converse fails with probability 2^-64 for each bond.  Bridges and red bonds
do not depend on the choice of the forest.

Source: D. Pritchard and R. Thurimella, ACM Trans. Algorithms 7, 46 (2011).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from percolab.bonds.keys import GOLDEN, mix64, stream_keys
from percolab.flows.net import ROOT, UNSEEN, Net
from percolab.kernels.inner import inner
from percolab.kernels.union_find import find_halving

_UNSEEN, _ROOT = UNSEEN, ROOT
#: A constant that makes the streams of words differ from the streams of samples.
_PURPOSE = 0x6379636C65730001
#: The place of the virtual bond, which no other bond has.
_VIRTUAL = np.uint64(2**64 - 1)


class Forest(NamedTuple):
    """The spanning tree of the nodes that are connected with the first terminal.

    order: uint32 (nodes,), nodes in the order in which they were reached; via: uint32 (nodes,), the
    bond by which each was reached; words: uint64 (nodes,), of these bonds; inside: uint8 (nodes,),
    whether trails between the terminals visit the node
    """

    order: Any
    via: Any
    words: Any
    inside: Any


def make_forest(net: Net) -> Forest:
    """Allocate memory for the forest of one sample at a time."""
    nodes = net.starts.size - 1
    return Forest(
        np.empty(nodes, np.uint32),
        np.empty(nodes, np.uint32),
        np.empty(nodes, np.uint64),
        np.empty(nodes, np.uint8),
    )


def word_key(seed: int, sample: int) -> NDArray[np.uint64]:
    """Return the key of the words of a sample's bonds, uint64 (2,): start and step."""
    return np.array(word_streams(np.uint64(seed), np.uint64(sample)), np.uint64)


@njit(cache=True)
def word_streams(seed, sample):
    """Return the key of the words of a sample's bonds, two uint64: start and step."""
    return stream_keys(mix64(uint64(seed) ^ uint64(_PURPOSE)), uint64(sample))


@inner
def bond_word(key, place):
    """Return the word, uint64, of the bond with this place; key: two uint64."""
    return mix64(uint64(key[0] + uint64(uint64(place) * key[1]) + uint64(GOLDEN)))


@njit(cache=True)
def virtual_word(key):
    """Return the word, uint64, of the virtual bond between the terminals; key: two uint64."""
    return bond_word(key, _VIRTUAL)


@njit(nogil=True, cache=True)
def count_bridges(sites, places, is_open, key, via, words):
    """Return the number of bridges.

    sites: int32 (m, 2), of every bond; places: int64 (m,); is_open: uint8 (m,); key: uint64 (2,).
    via: uint32 (n,), is set to a spanning forest: each bond at one of its two sites, and ROOT at
    the remaining site of every tree; words: uint64 (n,), is set to the words of these bonds.

    Leaves of the forest are cut off one by one, each adding its word to its neighbour's, until no
    bond is left.  Meanwhile ``via`` is the XOR of ROOT and the site's remaining bonds, so that a
    leaf's value gives its only bond.
    """
    via[:] = _ROOT
    words[:] = 0
    parents, degrees = np.empty(via.size, np.uint32), np.zeros(via.size, np.uint32)
    for site in range(via.size):
        parents[site] = site
    _grow_forest(sites, places, is_open, key, parents, via, words, degrees)
    bridges = 0
    for start in range(via.size):
        site = uint32(start)
        while degrees[site] == 1:
            bond = uint32(via[site] ^ _ROOT)
            other = uint32(sites[bond, 0] ^ sites[bond, 1] ^ site)
            bridges += words[site] == uint64(0)
            words[other] ^= words[site]
            via[other] ^= bond
            via[site], degrees[site] = bond, 0
            degrees[other] -= uint32(1)
            site = other
    return bridges


@inner
def _grow_forest(sites, places, is_open, key, parents, via, words, degrees):
    """Join the ends of open bonds one by one; a bond that closes a cycle adds its word to both."""
    for bond in range(is_open.size):
        if is_open[bond] == 0:
            continue
        i, j = sites[bond, 0], sites[bond, 1]
        one, other = find_halving(parents, i), find_halving(parents, j)
        if one == other:
            word = bond_word(key, places[bond])
            words[i] ^= word
            words[j] ^= word
        else:
            parents[max(one, other)] = min(one, other)
            via[i] ^= uint32(bond)
            via[j] ^= uint32(bond)
            degrees[i] += uint32(1)
            degrees[j] += uint32(1)


@njit(nogil=True, cache=True)
def find_trails(net, is_open, key, forest):
    """Return (whether the terminals are connected, red bonds); is_open: uint8 (m,).

    The forest is set to the tree of the nodes connected with the first terminal; ``inside`` is set
    to 1 for those that are on trails between the terminals.
    """
    forest.via[:] = _UNSEEN
    forest.words[:] = 0
    forest.inside[:] = 0
    count = _search(net, is_open, key, forest)
    if forest.via[net.sink] == _UNSEEN:
        return False, 0
    virtual = virtual_word(key)
    forest.words[net.root] ^= virtual
    forest.words[net.sink] ^= virtual
    _add_up(net, forest, count)
    forest.inside[net.root] = 1
    red = 0
    for n in range(1, count):
        node = forest.order[n]
        bond = forest.via[node]
        above = net.pairs[bond, 0] ^ net.pairs[bond, 1] ^ node
        if forest.words[node] != uint64(0):
            forest.inside[node] = forest.inside[above]
        red += forest.words[node] == virtual
    return True, red


@inner
def _search(net, is_open, key, forest):
    """Search all nodes connected with the root, breadth first, and return their number.

    The word of each node becomes the XOR of the words of its bonds outside of the tree.
    """
    order, via, words = forest.order, forest.via, forest.words
    order[0] = net.root
    via[net.root] = _ROOT
    first, count = 0, 1
    while first < count:
        node = order[first]
        own, word = via[node], uint64(0)
        for n in range(net.starts[node], net.starts[node + uint32(1)]):
            bond = net.bonds[n]
            if is_open[bond] == 0 or bond == own:
                continue
            other = net.ends[n]
            if via[other] == _UNSEEN:
                via[other] = bond
                order[count] = other
                count += 1
            else:
                word ^= bond_word(key, net.places[bond])
        words[node] ^= word
        first += 1
    return count


@inner
def _add_up(net, forest, count):
    """Set the word of every node to the XOR of the words in its branch."""
    for n in range(count - 1, -1, -1):
        node = forest.order[n]
        bond = forest.via[node]
        if bond != _ROOT:
            forest.words[net.pairs[bond, 0] ^ net.pairs[bond, 1] ^ node] ^= forest.words[node]
