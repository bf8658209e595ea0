"""CUDA: rows of the smallest open lattices: a thread floods the clusters of a sample, by words.

A cluster begins at a site that no other has, and grows along the open bonds: of a word where sites
wait, all that chains join to them are taken, and what the word's other bonds join to these; what
is joined to them beyond waits.  Sites without an open bond are counted by bit operations before.

All arrays are in shared memory, word after word, each of all threads, so that no two threads meet
in a bank.  Words of sites and of bonds are uint32.
"""

from typing import Any, NamedTuple

from numba import config, int32, int64, types, uint32

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.neighbours import has_bit
from percolab.kernels.runs import negative
from percolab.labelers.small_cuda import count_openings, even_bits
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.sums import SUMS32

cuda = load_cuda()

SIMULATED = bool(config.ENABLE_CUDASIM)
#: Threads of a block, a sample each.
SAMPLES = 4 if SIMULATED else 64
#: Words of a sample, at most, and of one that is measured at several p, where clusters of more
#: words grow faster from p to p.
MOST_WORDS, MOST_GRID_WORDS = (6, 3) if SIMULATED else (32, 8)
_empty, _with_cluster, _put = SUMS32.empty, SUMS32.with_cluster, SUMS32.put


if SIMULATED:

    def _turned(word):
        """Return a word whose bits are in the opposite order."""
        return int(f"{int(word):032b}"[::-1], 2)
else:

    @cuda.jit(device=True)
    def _turned(word):
        """Return a word whose bits are in the opposite order."""
        return uint32(cuda.brev(word))


class Flood(NamedTuple):
    """What a thread keeps in shared memory, uint32 each, word n at ``n * SAMPLES``.

    bonds:   (classes * num_words,), those that are open
    left:    (num_words,), the sites that no cluster has
    waiting: (num_words,), those that are the next of a cluster
    """

    bonds: Any
    left: Any
    waiting: Any


def shared_bytes(words: int, classes: int) -> int:
    """Return the shared memory of a block."""
    return 4 * SAMPLES * (classes + 2) * words


@cuda.jit(device=True)
def _at(n):
    return uint32(uint32(n) * uint32(SAMPLES))


@cuda.jit(device=True)
def _shifts(ends, k):
    """Return (words, bits) by which bonds of class k lead back."""
    back = uint32(-int32(ends[k]))
    return uint32(back >> uint32(5)), uint32(back & uint32(31))


@cuda.jit(device=True)
def _load(flood, lattice, opened, base):
    """Read the sites and the open bonds, and have all sites wait that have a bond."""
    adjacency, words = lattice.adjacency, lattice.adjacency.num_words
    for word in range(words):
        sites = lattice.exists[word]
        if lattice.first_site:
            sites = opened[uint32(uint32(base + lattice.first_site) + uint32(word))]
        flood.left[_at(word)], flood.waiting[_at(word)] = uint32(sites), uint32(0)
    for k in range(len(adjacency.ends)):
        back, shift = _shifts(adjacency.ends, k)
        for word in range(words):
            index = uint32(uint32(uint32(k) * words) + uint32(word))
            # A bond to a vacant site joins nothing, as that is never left.
            bonds = uint32(opened[uint32(base + index)] & flood.left[_at(word)])
            flood.bonds[_at(index)] = bonds
            here = uint32(uint32(word) - back)
            _wait(flood, word, bonds, uint32(0))
            _wait(flood, here, uint32(bonds >> shift), uint32(0))
            if shift:
                high = uint32(bonds << uint32(uint32(32) - shift))
                _wait(flood, uint32(here - uint32(1)), high, uint32(0))


@cuda.jit(device=True)
def _set_apart(flood, lattice):
    """Leave out the sites without a bond; return (how many, the words with others, bit by bit).

    Nothing waits afterwards.
    """
    single, among = uint32(0), uint32(0)
    for word in range(lattice.adjacency.num_words):
        joined, left = flood.waiting[_at(word)], flood.left[_at(word)]
        single = uint32(single + uint32(popcount(uint32(left & uint32(~joined)))))
        left = uint32(left & joined)
        flood.left[_at(word)], flood.waiting[_at(word)] = left, uint32(0)
        if left:
            among = uint32(among | uint32(uint32(1) << uint32(word)))
    return single, among


@cuda.jit(device=True)
def _fill(sites, chains):
    """Return all sites of a word that chains join to some; chains: its bonds to the bit before."""
    starts = uint32(uint32(~chains) | uint32(1))
    # Up from the lowest in every run, then down from the highest.
    sites = uint32(sites | negative(sites, starts))
    starts = uint32(_turned(uint32(uint32(starts >> uint32(1)) | uint32(0x80000000))))
    down = uint32(_turned(sites))
    return uint32(_turned(uint32(down | negative(down, starts))))


@cuda.jit(device=True)
def _wait(flood, word, sites, waiting):
    """Have sites of a word wait unless a cluster has them; return the words where any do."""
    if sites:
        sites = uint32(sites & flood.left[_at(word)])
        if sites:
            flood.waiting[_at(word)] = uint32(flood.waiting[_at(word)] | sites)
            waiting = uint32(waiting | uint32(uint32(1) << word))
    return waiting


@cuda.jit(device=True)
def _inside(flood, lattice, word, sites):
    """Return the sites of a word that its bonds, but for the chains, join to some."""
    adjacency, joined = lattice.adjacency, uint32(0)
    for k in range(len(adjacency.ends)):
        if has_bit(lattice.inside, k):
            _, shift = _shifts(adjacency.ends, k)
            index = uint32(uint32(uint32(k) * adjacency.num_words) + word)
            bonds = flood.bonds[_at(index)]
            joined = uint32(joined | uint32(uint32(bonds & sites) >> shift))
            joined = uint32(joined | uint32(bonds & uint32(sites << shift)))
    return joined


@cuda.jit(device=True)
def _spread(flood, lattice, word, sites, waiting):
    """Have all wait that bonds join to sites of a word; return the words where any do."""
    adjacency, words = lattice.adjacency, lattice.adjacency.num_words
    for k in range(len(adjacency.ends)):
        if not has_bit(lattice.beyond, k):
            continue
        back, shift = _shifts(adjacency.ends, k)
        start, other = uint32(uint32(k) * words), uint32(uint32(32) - shift)
        own = uint32(sites & flood.bonds[_at(uint32(start + word))])
        ahead = uint32(word + back)
        if back:
            waiting = _wait(flood, uint32(word - back), uint32(own >> shift), waiting)
            if ahead < words:
                bonds = flood.bonds[_at(uint32(start + ahead))]
                waiting = _wait(flood, ahead, uint32(bonds & uint32(sites << shift)), waiting)
        ahead = uint32(ahead + uint32(1))
        if shift:
            before = uint32(uint32(word - back) - uint32(1))
            waiting = _wait(flood, before, uint32(own << other), waiting)
            if ahead < words:
                bonds = flood.bonds[_at(uint32(start + ahead))]
                waiting = _wait(flood, ahead, uint32(bonds & uint32(sites >> other)), waiting)
    return waiting


@cuda.jit(device=True)
def _touched(lattice, word, sites, flags):
    """Return the flags with those of the end layers that sites of a word are in."""
    place, flag, words = word, uint32(1), lattice.adjacency.num_words
    while place < uint32(lattice.end_masks.size):
        first = uint32(lattice.end_masks[place] & sites)
        last = uint32(lattice.end_masks[uint32(place + words)] & sites)
        if first:
            flags = uint32(flags | flag)
        flag = uint32(flag << uint32(1))
        if last:
            flags = uint32(flags | flag)
        flag, place = uint32(flag << uint32(1)), uint32(place + uint32(uint32(2) * words))
    return flags


@cuda.jit(device=True)
def _flood_all(flood, lattice, among):
    """Flood all clusters; return (sums over them, the flags of end layers that span)."""
    waiting, size, flags, spanned, sums = uint32(0), uint32(0), uint32(0), uint32(0), _empty()
    chain = uint32(uint32(lattice.adjacency.chain) * lattice.adjacency.num_words)
    while True:
        if waiting == uint32(0):
            # A cluster is done: the next one begins.
            sums = _with_cluster(sums, size)
            spanned = uint32(spanned | uint32(flags & uint32(flags >> uint32(1))))
            size, flags = uint32(0), uint32(0)
            if among == uint32(0):
                break
            word = uint32(lowest_one(among))
            waiting = uint32(uint32(1) << word)
            left = flood.left[_at(word)]
            flood.waiting[_at(word)] = uint32(left & uint32(uint32(~left) + uint32(1)))
        word = uint32(lowest_one(waiting))
        waiting = uint32(waiting & uint32(waiting - uint32(1)))
        left = flood.left[_at(word)]
        sites, chains = uint32(flood.waiting[_at(word)] & left), uint32(0)
        if lattice.adjacency.chain >= 0:
            chains = flood.bonds[_at(uint32(chain + word))]
            sites = uint32(_fill(sites, chains) & left)
        more = uint32(0)
        if lattice.inside:
            sites = uint32(sites | uint32(_inside(flood, lattice, word, sites) & left))
            sites = uint32(_fill(sites, chains) & left)
            more = uint32(_inside(flood, lattice, word, sites) & uint32(left & uint32(~sites)))
            if more:
                waiting = uint32(waiting | uint32(uint32(1) << word))
        left = uint32(left & uint32(~sites))
        flood.left[_at(word)], flood.waiting[_at(word)] = left, more
        if left == uint32(0):
            among = uint32(among & uint32(~uint32(uint32(1) << word)))
        size = uint32(size + uint32(popcount(sites)))
        flags = _touched(lattice, word, sites, flags)
        waiting = _spread(flood, lattice, word, sites, waiting)
    return sums, spanned


@cuda.jit(cache=True, max_registers=48)
def flood_rows_kernel(lattice, opened, entries, rows):
    """Write the rows of entries, one a thread, as :func:`small_rows_kernel` does."""
    shared, thread = cuda.shared.array(0, types.uint32), uint32(cuda.threadIdx.x)
    words = lattice.adjacency.num_words
    left = uint32(thread + _at(uint32(uint32(len(lattice.adjacency.ends)) * words)))
    flood = Flood(shared[thread:], shared[left:], shared[uint32(left + _at(words)) :])
    entry = uint32(uint32(cuda.blockIdx.x * cuda.blockDim.x) + thread)
    if entry >= entries:
        return
    base = uint32(entry * lattice.stride)
    _load(flood, lattice, opened, base)
    single, among = _set_apart(flood, lattice)
    sums, spanned = _flood_all(flood, lattice, among)
    for _ in range(single):
        sums = _with_cluster(sums, uint32(1))
    row = int64(entry) * int64(lattice.row_width)
    _put(rows, row, 1, sums)
    rows[row + SPANNING] = int64(even_bits(spanned))
    if lattice.row_width > uint32(ROW_WIDTH):
        total = uint32(0)
        for word in range(words):
            total = uint32(total + count_openings(lattice, opened, entry, uint32(word)))
        rows[row + ROW_WIDTH] = int64(total)
