"""CUDA kernels of Boruvka's algorithm (1926): prefixes of all keys, and rounds over listed bonds.

A batch is one graph that is not connected: site i of entry n is ``n * points + i``, and bond b is
``n * slots + b``, where ``slots`` is 32 * words of an entry; both are uint32.  Bonds are listed as
``prefix << 32 | number``, where the prefix is the first 32 binary digits of the key.  This is their
order (key, number), except that all digits are compared if prefixes are equal.

A round has three kernels.  Every listed bond *offers* itself to the clusters at its ends, each of
which keeps its least bond; a bond that was kept *hooks* the cluster to the one at its other end;
and the bonds that still join two clusters are listed *again*, with their new clusters.

Bonds with a large prefix, the *heavy* ones, wait while rounds process the *light* ones: most heavy
bonds end up within one cluster, and never enter a round.  The tree is the same, since the least
bond of a cluster with a light bond is light, and a cluster without one does not choose.

exists: uint32, words; prefixes: uint32; given: uint64; lists of bonds: :class:`CandidateList`.
``counts``, uint32 (COUNTS,), has the lengths of both lists, the initial length of the first, and
the number of bonds that wait at the end of the second list's memory.
"""

from typing import Any, NamedTuple

from numba import int64, types, uint32, uint64

from percolab.bonds.digits import fill_planes
from percolab.bonds.words import uniform_number
from percolab.kernels.bits import highest_one, lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import find_periodic_number, has_bit, other_end, periodic_word

#: No site, and no bond.
NO_SITE = 0xFFFFFFFF
NO_BOND = 0xFFFFFFFFFFFFFFFF
#: The digits of a prefix that are used: all, unless a test needs many equal prefixes.
KEPT_DIGITS = 0xFFFFFFFF
#: Indices of counts: the bonds of both lists (0, 1), those of the first initially, and heavy ones.
BEGINNING, HEAVY, COUNTS = 2, 3, 4
# A column of planes, one word longer so that the threads of a warp meet different banks.
_COLUMN = 33
_COLUMNS = THREADS * _COLUMN


class RoundKeys(NamedTuple):
    """The data that determine the keys of a batch's bonds."""

    generator: Any  # one of :data:`percolab.bonds.words.GENERATORS`' values
    samples: Any  # uint64 (1 + entries,), the seed and then every entry's sample
    given: Any  # uint64 (slots,), given keys; or (1,) if the keys are the samples' own
    limits: Any  # uint64 (2,), the least and the largest given key
    is_given: Any  # uint32, 1 if keys are given
    slots: Any  # uint32, number of bond numbers per entry


class BoruvkaForest(NamedTuple):
    """The clusters and trees of a batch."""

    # uint32 (entries * points,), another site of the same cluster; roots have themselves. Before
    # tiles are joined: the prefix of the least bond to another tile, or NO_SITE
    parents: Any
    best: Any  # uint64 (entries * points,), at roots the least offered bond, as listed
    tree: Any  # uint32 (entries * words,), the chosen bonds


class CandidateList(NamedTuple):
    """A list of bonds."""

    bonds: Any  # uint64 (room,), prefix << 32 | number
    ends: Any  # uint64 (room,), the clusters at their ends, one << 32 | other


@cuda.jit(cache=True)
def begin_kernel(parents, sites, tree, words, counts, listed, is_tiled):
    """Initialize: no bond is chosen, every site is a cluster, and the first list has some bonds.

    sites, words: of all entries.  listed: length of the list.  is_tiled: parents become NO_SITE.
    """
    for step in range(PER_THREAD):
        n = element(step)
        if n < sites:
            parents[n] = uint32(NO_SITE) if is_tiled != uint32(0) else n
        if n < words:
            tree[n] = uint32(0)
    if element(0) == uint32(0):
        counts[0] = listed
        counts[1] = uint32(0)
        counts[HEAVY] = uint32(0)


@cuda.jit(cache=True)
def limits_kernel(exists, given, limits):
    """Extend the limits to the least and the largest given key of existing bonds."""
    for step in range(PER_THREAD):
        n = element(step)
        if n < uint32(given.size) and has_bit(exists[uint32(n >> uint32(5))], n & uint32(31)):
            key = given[n]
            if key < limits[0]:
                cuda.atomic.min(limits, 0, key)
            if key > limits[1]:
                cuda.atomic.max(limits, 1, key)


@cuda.jit(device=True)
def _count_binary_digits(number):
    """Return the number of binary digits of a uint64, 0 for 0."""
    high = uint32(number >> uint64(32))
    if high != uint32(0):
        return highest_one(high) + 33
    return highest_one(uint32(number)) + 1


@cuda.jit(cache=True)
def given_prefixes_kernel(given, limits, prefixes):
    """Write the prefixes of given keys minus the least key, scaled to the digits of the largest."""
    digits = _count_binary_digits(uint64(limits[1] - limits[0]))
    for step in range(PER_THREAD):
        n = element(step)
        if n < uint32(given.size):
            key = uint64(given[n] - limits[0])
            if digits > 32:
                key = uint64(key >> uint64(digits - 32))
            else:
                key = uint64(key << uint64(32 - digits))
            prefixes[n] = uint32(uint32(key) & uint32(KEPT_DIGITS))


@cuda.jit(cache=True)
def prefixes_kernel(keys, words, words_per_entry, prefixes):
    """Write the prefixes of the bonds of samples: a thread draws the 32 planes of a word.

    Plane k has digit k of 32 numbers, one bit each; a number's prefix is its bit of all planes.  So
    this is a transposition of 32 x 32 bits, by halves, quarters and so on.
    """
    columns = cuda.shared.array(_COLUMNS, types.uint32)
    thread = uint32(cuda.threadIdx.x)
    first = uint32(uint32(cuda.blockIdx.x) * uint32(THREADS))
    word = uint32(first + thread)
    base = uint32(thread * uint32(_COLUMN))
    if word < words:
        entry = uint32(word // words_per_entry)
        own = uint32(word - uint32(entry * words_per_entry))
        sample = keys.samples[uint32(entry + uint32(1))]
        planes = columns[base : base + 32]
        fill_planes(keys.generator, keys.samples[0], sample, own, planes)
        # Row r of the matrix is plane 31 - r, so that the first digit becomes the highest bit.
        width, mask = uint32(16), uint32(0x0000FFFF)
        while width != uint32(0):
            for n in range(16):
                low = uint32(uint32(n) & uint32(width - uint32(1)))
                row = uint32(uint32(uint32(uint32(n) - low) << uint32(1)) + low)
                here = uint32(base + uint32(uint32(31) - row))
                there = uint32(here - width)
                one, other = columns[here], columns[there]
                swap = uint32(uint32(uint32(one >> width) ^ other) & mask)
                columns[here] = uint32(one ^ uint32(swap << width))
                columns[there] = uint32(other ^ swap)
            width = uint32(width >> uint32(1))
            mask = uint32(mask ^ uint32(mask << width))
    cuda.syncthreads()
    n = thread
    for _ in range(32):
        word = uint32(n >> uint32(5))
        if uint32(first + word) < words:
            bit = uint32(n & uint32(31))
            place = uint32(uint32(word * uint32(_COLUMN)) + uint32(uint32(31) - bit))
            prefixes[uint32(uint32(first << uint32(5)) + n)] = uint32(
                columns[place] & uint32(KEPT_DIGITS)
            )
        n = uint32(n + uint32(THREADS))


@cuda.jit(device=True)
def listed_bond(prefixes, number):
    """Return the listed form of a bond, uint64, by its number, uint32."""
    return uint64(uint64(uint64(prefixes[number]) << uint64(32)) | uint64(number))


@cuda.jit(device=True)
def _place_in(shared, counts, target, number):
    """Add ``number`` to counts[target], and return where this thread's bonds begin in the list.

    All threads of a block call it.  shared: uint32 (2,).
    """
    slot = uint32(0)
    if cuda.threadIdx.x == 0:
        shared[0] = uint32(0)
    cuda.syncthreads()
    if number != uint32(0):
        slot = cuda.atomic.add(shared, 0, number)
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        shared[1] = cuda.atomic.add(counts, target, shared[0])
    cuda.syncthreads()
    return uint32(shared[1] + slot)


@cuda.jit(cache=True)
def list_all_kernel(exists, words, prefixes, listed, counts):
    """Append all bonds to the first list: one thread per word."""
    shared = cuda.shared.array(2, types.uint32)
    word = uint32(cuda.grid(1))
    left = uint32(0)
    if word < words:
        left = exists[uint32(word % uint32(exists.size))]
    place = _place_in(shared, counts, 0, uint32(popcount(left)))
    while left != uint32(0):
        number = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
        left = uint32(left & uint32(left - uint32(1)))
        listed.bonds[place] = listed_bond(prefixes, number)
        place = uint32(place + uint32(1))


@cuda.jit(device=True)
def find_ends(own, adjacency):
    """Return (owner, other end) of a bond by its number in an entry, uint32 each."""
    stride = uint32(uint32(adjacency.num_words) << uint32(5))
    k = uint32(own // stride)
    i = uint32(own - uint32(k * stride))
    if adjacency.periodic_bonds.size and has_bit(
        periodic_word(adjacency.periodic_words, uint32(own >> uint32(5))), own & uint32(31)
    ):
        n = find_periodic_number(int64(own), adjacency.periodic_bonds)
        return i, uint32(adjacency.periodic_ends[n])
    return i, other_end(adjacency.ends, k, i)


@cuda.jit(device=True)
def _find_root(parents, i):
    """Return the root of i, and let every second site on the path skip its parent.

    Writes of other threads in the meantime lead to the same root.
    """
    parent = parents[i]
    while parent != i:
        above = parents[parent]
        if above != parent:
            parents[i] = above
        i, parent = parent, above
    return i


@cuda.jit(device=True)
def _append(shared, counts, target, forest, bond, i, j, listed):
    """Append a bond between roots i and j to a list unless i is j; all threads of a block call it.

    The offers of both roots are cleared for the next round; all threads write the same value.
    """
    place = _place_in(shared, counts, target, uint32(i != j))
    if i != j:
        listed.bonds[place] = bond
        listed.ends[place] = uint64(uint64(uint64(i) << uint64(32)) | uint64(j))
        if forest.best[i] != uint64(NO_BOND):
            forest.best[i] = uint64(NO_BOND)
        if forest.best[j] != uint64(NO_BOND):
            forest.best[j] = uint64(NO_BOND)


@cuda.jit(device=True)
def _find_roots(forest, adjacency, slots, bond):
    """Return the roots of the clusters at both ends of a listed bond."""
    number = uint32(bond & uint64(0xFFFFFFFF))
    entry = uint32(number // slots)
    i, j = find_ends(uint32(number - uint32(entry * slots)), adjacency)
    base = uint32(entry * adjacency.num_points)
    return (
        _find_root(forest.parents, uint32(base + i)),
        _find_root(forest.parents, uint32(base + j)),
    )


@cuda.jit(cache=True)
def first_ends_kernel(forest, adjacency, slots, bonds, counts, light, listed):
    """List the light bonds of the first list, with their clusters, in the second list.

    light: the largest prefix of light bonds, uint32.  Heavy bonds go to the end of the second
    list's memory.  The length that the first list should have had is stored.
    """
    shared = cuda.shared.array(2, types.uint32)
    count = min(counts[0], uint32(bonds.size))
    if cuda.grid(1) == 0:
        counts[BEGINNING] = counts[0]
    last = uint32(uint32(bonds.size) - uint32(1))
    begin = uint32(uint32(cuda.blockIdx.x) * uint32(THREADS))
    while begin < count:
        n = uint32(begin + uint32(cuda.threadIdx.x))
        bond, i, j, is_heavy = uint64(0), uint32(0), uint32(0), False
        if n < count:
            bond = bonds[n]
            is_heavy = uint32(bond >> uint64(32)) > light
            if not is_heavy:
                i, j = _find_roots(forest, adjacency, slots, bond)
        _append(shared, counts, 1, forest, bond, i, j, listed)
        place = _place_in(shared, counts, HEAVY, uint32(is_heavy))
        if is_heavy:
            listed.bonds[uint32(last - place)] = bond
        begin = uint32(begin + uint32(uint32(cuda.gridDim.x) * uint32(THREADS)))


@cuda.jit(cache=True)
def heavy_ends_kernel(forest, adjacency, slots, bonds, counts, listed):
    """Append the heavy bonds between two clusters, with these clusters, to the first list.

    bonds: of the second list, where heavy bonds wait at the end.
    """
    shared = cuda.shared.array(2, types.uint32)
    count, last = counts[HEAVY], uint32(uint32(bonds.size) - uint32(1))
    begin = uint32(uint32(cuda.blockIdx.x) * uint32(THREADS))
    while begin < count:
        n = uint32(begin + uint32(cuda.threadIdx.x))
        bond, i, j = uint64(0), uint32(0), uint32(0)
        if n < count:
            bond = bonds[uint32(last - n)]
            i, j = _find_roots(forest, adjacency, slots, bond)
        _append(shared, counts, 0, forest, bond, i, j, listed)
        begin = uint32(begin + uint32(uint32(cuda.gridDim.x) * uint32(THREADS)))


@cuda.jit(cache=True)
def ends_kernel(forest, source, bonds, counts, listed):
    """Copy the bonds between two clusters from list number ``source`` to the other list."""
    shared = cuda.shared.array(2, types.uint32)
    count = counts[source]
    begin = uint32(uint32(cuda.blockIdx.x) * uint32(THREADS))
    while begin < count:
        n = uint32(begin + uint32(cuda.threadIdx.x))
        bond, i, j = uint64(0), uint32(0), uint32(0)
        if n < count:
            bond, ends = bonds.bonds[n], bonds.ends[n]
            i = _find_root(forest.parents, uint32(ends >> uint64(32)))
            j = _find_root(forest.parents, uint32(ends & uint64(0xFFFFFFFF)))
        _append(shared, counts, 1 - source, forest, bond, i, j, listed)
        begin = uint32(begin + uint32(uint32(cuda.gridDim.x) * uint32(THREADS)))


@cuda.jit(device=True)
def _read_key(keys, number):
    """Return the key of a bond of a batch, uint64."""
    if keys.is_given != uint32(0):
        return keys.given[number]
    entry = uint32(number // keys.slots)
    own = uint32(number - uint32(entry * keys.slots))
    sample = keys.samples[uint32(entry + uint32(1))]
    return uniform_number(
        keys.generator, keys.samples[0], sample, uint32(own >> uint32(5)), uint32(own & uint32(31))
    )


@cuda.jit(device=True)
def _comes_before(one, other, keys, are_whole):
    """Return whether a listed bond comes before another, which may be NO_BOND.

    are_whole: whether prefixes contain all digits of the keys.
    """
    if are_whole or uint64(uint64(one ^ other) >> uint64(32)) != uint64(0):
        return one < other
    if other == uint64(NO_BOND):
        return True
    if one == other:
        return False
    first = _read_key(keys, uint32(one & uint64(0xFFFFFFFF)))
    second = _read_key(keys, uint32(other & uint64(0xFFFFFFFF)))
    return first < second or (first == second and one < other)


@cuda.jit(device=True)
def _offer(best, root, bond, keys, are_whole):
    old = best[root]
    while _comes_before(bond, old, keys, are_whole):
        before = cuda.atomic.cas(best, root, old, bond)
        if before == old:
            return
        old = before


@cuda.jit(cache=True)
def offer_kernel(keys, best, source, bonds, counts):
    """Offer every bond of list number ``source`` to the clusters at its ends."""
    n, count = uint32(cuda.grid(1)), counts[source]
    are_whole = keys.is_given != uint32(0) and uint64(
        uint64(keys.limits[1] - keys.limits[0]) >> uint64(32)
    ) == uint64(0)
    are_whole = are_whole and KEPT_DIGITS == NO_SITE
    while n < count:
        bond, ends = bonds.bonds[n], bonds.ends[n]
        _offer(best, uint32(ends >> uint64(32)), bond, keys, are_whole)
        _offer(best, uint32(ends & uint64(0xFFFFFFFF)), bond, keys, are_whole)
        n = uint32(n + uint32(cuda.gridsize(1)))


@cuda.jit(cache=True)
def hook_kernel(forest, source, bonds, counts):
    """Choose the bonds of list number ``source`` that a cluster kept, and hook the cluster by them.

    If two clusters keep the same bond, the larger root is hooked.  The other list is emptied.
    """
    n, count = uint32(cuda.grid(1)), counts[source]
    if n == uint32(0):
        counts[1 - source] = uint32(0)
    while n < count:
        bond, ends = bonds.bonds[n], bonds.ends[n]
        i, j = uint32(ends >> uint64(32)), uint32(ends & uint64(0xFFFFFFFF))
        of_one, of_other = forest.best[i] == bond, forest.best[j] == bond
        if of_one or of_other:
            number = uint32(bond & uint64(0xFFFFFFFF))
            bit = uint32(uint32(1) << uint32(number & uint32(31)))
            cuda.atomic.or_(forest.tree, uint32(number >> uint32(5)), bit)
            if of_one and (i > j or not of_other):
                forest.parents[i] = j
            else:
                forest.parents[j] = i
        n = uint32(n + uint32(cuda.gridsize(1)))
