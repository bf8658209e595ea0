"""CUDA kernels behind the levels at which given values percolate.

values: of sites (num_points,), or of bonds class by class, flat.  Words of sites, or of bonds of
all classes, are uint32, one bit each.

Clusters are found by a union-find of the sites, word by word, since hardly more than a tenth of the
bonds are open when a lattice in three dimensions begins to percolate.  labels: uint32
(num_points,), for every site a site of its cluster that is not above it; for roots the root itself.

A search runs level by level in one launch: paths near the threshold are long, and few sites are at
the same distance.  Blocks of threads wait for each other after every level.  Results do not depend
on the order in which sites are reached (:mod:`percolab.trees.levels_cpu`).
"""

from typing import Any, NamedTuple

from numba import int64, types, uint32, uint64

from percolab.kernels.bits import highest_one, popcount, trailing_zeros
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.launches import PER_THREAD, THREADS, element
from percolab.kernels.neighbours import has_bit, other_bits
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.wrapping import periods_along

#: Number of blocks that process all values, or all words, with a result for each thread.
BLOCKS = 2 if SIMULATED else 1024
_FLAGS = 36 * THREADS
#: Flags of the kinds of values that occur.
FINITE, IS_NAN, PLUS_INFINITY, MINUS_INFINITY = 1, 2, 4, 8
#: A site, or a label, without a number; a target; one that a thread is about to number.
FREE, TARGET, _CLAIMED = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
#: The answer of a search that has found nothing.
NOTHING = 0xFFFFFFFFFFFFFFFF


class Net(NamedTuple):
    """The bonds of a lattice.

    shape:     int64 (axes,), grid points along each
    cell:      int64 (axes,), grid points of a cell
    offsets:   int64 (classes, axes), grid points from owner to other end
    deltas:    int64 (classes,), the same as index differences, inside the array
    reach:     int64 (axes,), grid points that the longest bond spans
    owners_at: uint8 (classes, points of a cell), whether a point owns a bond, first axis fastest
    periodic:  uint8 (axes,)
    chain:     the class whose bonds join i to i - 1, or -1, int64
    num_words: bond words of a class, uint32
    """

    shape: Any
    cell: Any
    offsets: Any
    deltas: Any
    reach: Any
    owners_at: Any
    periodic: Any
    chain: Any
    num_words: Any


class Search(NamedTuple):
    """The arrays of a search for a path.

    opened: uint32 (num_classes * num_words,), the open bonds
    places: uint32 (points,), a reached site's place in the queue; else FREE or TARGET
    queue:  uint32 (points,), the sites in the order in which they were reached
    starts: uint32, where the sites at each distance begin in the queue
    lifts:  int64, by place in the queue, the periods crossed on the way to a site, as a code; an
            array of one element if they are not used
    meets:  uint32 (1,), number of waits for other blocks, summed over all blocks
    added:  uint32 (3,), by level modulo 3, number of sites that the level added to the queue
    found:  uint64 (6,), by level modulo 3, the least target found, or the least bond that closes a
            loop between two levels; then the least bond that closes a loop within the level
    """

    opened: Any
    places: Any
    queue: Any
    starts: Any
    lifts: Any
    meets: Any
    added: Any
    found: Any


# Values


@cuda.jit(device=True)
def _first_value(index, points):
    """Return the index of the value that belongs to the first bit of a word."""
    words = uint32(uint32(points + uint32(31)) >> uint32(5))
    k = uint32(index // words)
    word = uint32(index - uint32(k * words))
    return uint64(uint64(uint64(k) * uint64(points)) + uint64(uint64(word) << uint64(5)))


@cuda.jit(cache=True)
def mark_kernel(values, level, above, points, among, words):
    """Mark which of the sites, or bonds, in ``among`` are open at a level.

    A block of THREADS threads reads the values of THREADS words in order; grid axis 1 counts
    classes.
    """
    flags = cuda.shared.array(_FLAGS, types.uint8)
    thread, k = uint32(cuda.threadIdx.x), uint32(cuda.blockIdx.y)
    first = uint32(uint32(cuda.blockIdx.x) * uint32(THREADS))
    row = uint64(uint64(k) * uint64(points))
    for step in range(32):
        n = uint32(uint32(uint32(step) * uint32(THREADS)) + thread)
        point = uint64(uint64(uint64(first) << uint64(5)) + uint64(n))
        is_open = False
        if point < uint64(points):
            value = values[uint64(row + point)]
            is_open = value >= level if above else value <= level
        flags[_flag_place(n)] = is_open
    cuda.syncthreads()
    word = uint32(first + thread)
    num_words = uint32(uint32(points + uint32(31)) >> uint32(5))
    if word < num_words:
        bits = uint32(0)
        for bit in range(32):
            place = _flag_place(uint32(uint32(thread << uint32(5)) + uint32(bit)))
            bits = uint32(bits | uint32(uint32(flags[place]) << uint32(bit)))
        index = uint32(uint32(k * num_words) + word)
        words[index] = uint32(bits & among[index])


@cuda.jit(device=True)
def _flag_place(n):
    """Return the place of a value's flag in shared memory; 36 bytes a word avoid bank conflicts."""
    return uint32(n + uint32(uint32(n >> uint32(5)) << uint32(2)))


@cuda.jit(cache=True)
def extremes_kernel(values, points, among, lowest, highest, seen):
    """Write the least and the greatest finite value that each thread reads, and its flags.

    lowest, highest: of the values' type, (threads,), if there is any.  seen: uint32 (threads,).
    """
    thread, flags = uint32(cuda.grid(1)), uint32(0)
    low, high = values[0], values[0]
    for index in range(thread, among.size, cuda.gridsize(1)):
        first, left = _first_value(uint32(index), points), among[index]
        while left != uint32(0):
            value = values[uint64(first + uint64(trailing_zeros(left)))]
            left = uint32(left & uint32(left - uint32(1)))
            difference = value - value
            if difference == difference:
                if flags & uint32(FINITE) == uint32(0) or value < low:
                    low = value
                if flags & uint32(FINITE) == uint32(0) or value > high:
                    high = value
                flags = uint32(flags | uint32(FINITE))
            elif value != value:
                flags = uint32(flags | uint32(IS_NAN))
            elif value > 0:
                flags = uint32(flags | uint32(PLUS_INFINITY))
            else:
                flags = uint32(flags | uint32(MINUS_INFINITY))
    lowest[thread], highest[thread], seen[thread] = low, high, flags


@cuda.jit(cache=True)
def take_kernel(values, points, among, places, found, is_there):
    """Write values of sites, or of bonds by their numbers, and whether these exist, uint8."""
    n = uint32(cuda.grid(1))
    if n < places.size:
        place = uint64(places[n])
        index = uint32(place >> uint64(5))
        found[n] = values[uint64(_first_value(index, points) + uint64(place & uint64(31)))]
        is_there[n] = has_bit(among[index], uint32(place & uint64(31)))


@cuda.jit(cache=True)
def count_kernel(words, total):
    """Add the number of ones in all words to a total, uint64 (1,)."""
    count = uint64(0)
    for index in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        count = uint64(count + uint64(popcount(words[index])))
    cuda.atomic.add(total, 0, count)


# Bonds


@cuda.jit(device=True)
def _step(net, k, sign, site):
    """Return (the site that a bond of class k leads to, the periods that it crosses, as a code).

    sign: 1 from its owner, -1 from the other end.
    """
    other, stride, rest, code = int64(0), int64(1), uint32(site), int64(0)
    for axis in range(net.shape.size):
        length = net.shape[axis]
        at = int64(int64(rest % uint32(length)) + int64(sign * net.offsets[k, axis]))
        rest = uint32(rest // uint32(length))
        turns = int64(0)
        while at < int64(0):
            at, turns = int64(at + length), int64(turns - int64(1))
        while at >= length:
            at, turns = int64(at - length), int64(turns + int64(1))
        code = int64(code + int64(turns << int64(PERIOD_BITS * axis)))
        other = int64(other + int64(stride * at))
        stride = int64(stride * length)
    return uint32(other), code


@cuda.jit(device=True)
def _bond_at(net, k, site):
    """Return 1 if a site owns a bond of class k, 2 if it crosses a boundary, 0 without a bond.

    A boundary that is crossed is periodic.
    """
    found, point, points, rest = 1, int64(0), int64(1), uint32(site)
    for axis in range(net.shape.size):
        length, cell = net.shape[axis], net.cell[axis]
        x = int64(rest % uint32(length))
        rest = uint32(rest // uint32(length))
        point = int64(point + int64(points * int64(x % cell)))
        points = int64(points * cell)
        at = int64(x + net.offsets[k, axis])
        if at < int64(0) or at >= length:
            if net.periodic[axis] == 0:
                return 0
            found = 2
    return found if net.owners_at[k, point] else 0


@cuda.jit(cache=True)
def make_bonds_kernel(net, points, exists, crossing):
    """Write which bonds exist, and which of them cross a boundary; one thread per word."""
    index = uint32(cuda.grid(1))
    if index < exists.size:
        k, word = int64(index // net.num_words), uint32(index % net.num_words)
        there, across = uint32(0), uint32(0)
        for bit in range(32):
            site = uint32(uint32(word << uint32(5)) + uint32(bit))
            if site < points:
                found, one = _bond_at(net, k, site), uint32(uint32(1) << uint32(bit))
                if found != 0:
                    there = uint32(there | one)
                if found == 2:
                    across = uint32(across | one)
        exists[index], crossing[index] = there, across


@cuda.jit(cache=True)
def open_between_kernel(net, exists, crossing, nodes, opened):
    """Open the bonds between open sites; one thread per word of bonds.  nodes: words of sites."""
    index = uint32(cuda.grid(1))
    if index < exists.size:
        k, word = int64(index // net.num_words), uint32(index % net.num_words)
        bits = uint32(exists[index] & nodes[word])
        inside = uint32(bits & ~crossing[index])
        left = uint32(bits & ~inside)
        start, count = uint32(0), net.num_words
        others = other_bits(nodes, start, count, net.deltas, k, word, inside)
        bits = uint32(inside & others)
        while left != uint32(0):
            bit = uint32(trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            other, _ = _step(net, k, int64(1), uint32(uint32(word << uint32(5)) + bit))
            if has_bit(nodes[other >> uint32(5)], other & uint32(31)):
                bits = uint32(bits | uint32(uint32(1) << bit))
        opened[index] = bits


@cuda.jit(cache=True)
def fill_kernel(words, word):
    """Fill an array with one word, uint32."""
    for step in range(PER_THREAD):
        index = element(step)
        if index < words.size:
            words[index] = word


@cuda.jit(cache=True)
def count_new_kernel(before, after, part, counts):
    """Count the bonds that open in each part of ``part`` words, uint32."""
    n, count = uint32(cuda.grid(1)), uint32(0)
    if n < counts.size:
        first = uint32(n * part)
        for index in range(first, min(uint32(first + part), uint32(after.size))):
            count = uint32(count + uint32(popcount(uint32(after[index] & ~before[index]))))
        counts[n] = count


@cuda.jit(cache=True)
def list_new_kernel(before, after, part, starts, net, bonds, ends, codes):
    """List the bonds that open by ascending number; those of each part begin at ``starts``.

    bonds, codes: int64 (n,), numbers and periods.  ends: uint32 (2 * n,), owners, then the others.
    """
    n = uint32(cuda.grid(1))
    if n < starts.size:
        place, first = uint32(starts[n]), uint32(n * part)
        for index in range(first, min(uint32(first + part), uint32(after.size))):
            left = uint32(after[index] & ~before[index])
            k, word = int64(index // net.num_words), uint32(index % net.num_words)
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                owner = uint32(uint32(word << uint32(5)) + bit)
                other, codes[place] = _step(net, k, int64(1), owner)
                bonds[place] = int64(int64(int64(index) << int64(5)) + int64(bit))
                ends[place], ends[uint32(place + uint32(bonds.size))] = owner, other
                place = uint32(place + uint32(1))


# Clusters


@cuda.jit(device=True)
def _find(labels, site):
    """Return the root of a site; every site on the path skips its parent, to shorten paths."""
    before, root = site, labels[site]
    if root == site:
        return root
    above = labels[root]
    while above != root:
        labels[before] = above
        before, root = root, above
        above = labels[root]
    return root


@cuda.jit(device=True)
def _unite(labels, i, j):
    """Join the clusters of two sites: the larger root gets the smaller one as its label."""
    i, j = _find(labels, i), _find(labels, j)
    while i != j:
        if i < j:
            i, j = j, i
        old = cuda.atomic.cas(labels, i, i, j)
        if old == i:
            return
        i = _find(labels, old)


@cuda.jit(device=True)
def _inside(net, opened, crossing, k, word):
    """Return which bonds of a word are open and cross no boundary."""
    index = uint32(uint32(uint32(k) * net.num_words) + word)
    return uint32(opened[index] & ~crossing[index])


@cuda.jit(cache=True)
def begin_labels_kernel(net, opened, crossing, labels):
    """Label every site by the first site that open chain bonds connect it with in its word."""
    for step in range(PER_THREAD):
        site = element(step)
        if site < labels.size:
            first = site
            if net.chain >= 0:
                word, bit = uint32(site >> uint32(5)), uint32(site & uint32(31))
                joined = _inside(net, opened, crossing, net.chain, word)
                upto = uint32(uint32(0xFFFFFFFF) >> uint32(uint32(31) - bit))
                starts = uint32(uint32(~joined | uint32(1)) & upto)
                first = uint32(uint32(word << uint32(5)) + uint32(highest_one(starts)))
            labels[site] = first


@cuda.jit(cache=True)
def join_labels_kernel(net, opened, crossing, labels):
    """Join the labels at the ends of open bonds that cross no boundary; one thread per bond word.

    Of chain bonds only those between words remain.  Another bond is skipped if the bond before it
    is open and chain bonds join both pairs of ends: it joins the same clusters.
    """
    index = uint32(cuda.grid(1))
    if index < opened.size:
        k, word = int64(index // net.num_words), uint32(index % net.num_words)
        left = _inside(net, opened, crossing, k, word)
        if k == net.chain:
            left = uint32(left & uint32(1))
        elif net.chain >= 0 and left != uint32(0):
            start, count = uint32(uint32(net.chain) * net.num_words), net.num_words
            joined = _inside(net, opened, crossing, net.chain, word)
            # If neither this bond nor the one before leaves the array, their ends are neighbours.
            joined = uint32(joined & other_bits(opened, start, count, net.deltas, k, word, left))
            left = uint32(left & ~uint32(uint32(left << uint32(1)) & joined))
        while left != uint32(0):
            site = uint32(uint32(word << uint32(5)) + uint32(trailing_zeros(left)))
            left = uint32(left & uint32(left - uint32(1)))
            _unite(labels, site, uint32(int64(site) + net.deltas[k]))


# Nodes


@cuda.jit(cache=True)
def list_ends_kernel(nodes, sites, flags, found, found_flags, count):
    """List the open sites in end layers with their flags, in any order; count: uint32 (1,)."""
    n = uint32(cuda.grid(1))
    if n < sites.size and has_bit(nodes[sites[n] >> uint32(5)], sites[n] & uint32(31)):
        place = cuda.atomic.add(count, 0, uint32(1))
        found[place], found_flags[place] = sites[n], flags[n]


@cuda.jit(cache=True)
def list_open_kernel(opened, bonds, ends, codes, owners, others, found, count):
    """List the open ones of some bonds, with their codes, in any order; count: uint32 (1,).

    bonds, ends, codes: as for :func:`list_new_kernel`.
    """
    n = uint32(cuda.grid(1))
    if n < bonds.size:
        bond = uint64(bonds[n])
        if has_bit(opened[uint32(bond >> uint64(5))], uint32(bond & uint64(31))):
            place = cuda.atomic.add(count, 0, uint32(1))
            owners[place], others[place] = ends[n], ends[uint32(n + uint32(bonds.size))]
            found[place] = codes[n]


@cuda.jit(cache=True)
def free_numbers_kernel(labels, sites, numbers):
    """Clear the numbers of the sites' clusters."""
    n = uint32(cuda.grid(1))
    if n < sites.size:
        numbers[_find(labels, sites[n])] = uint32(FREE)


@cuda.jit(cache=True)
def number_roots_kernel(labels, sites, numbers, count):
    """Number clusters of sites that have no number, starting at ``count``, uint32 (1,)."""
    n = uint32(cuda.grid(1))
    if n < sites.size:
        root = _find(labels, sites[n])
        if cuda.atomic.cas(numbers, root, uint32(FREE), uint32(_CLAIMED)) == uint32(FREE):
            numbers[root] = cuda.atomic.add(count, 0, uint32(1))


@cuda.jit(cache=True)
def read_numbers_kernel(labels, sites, numbers):
    """Replace every site by the number of its cluster."""
    n = uint32(cuda.grid(1))
    if n < sites.size:
        sites[n] = numbers[_find(labels, sites[n])]


@cuda.jit(cache=True)
def flag_kernel(nodes, flags, reach):
    """Set the flags of nodes; a node may be listed several times."""
    n = uint32(cuda.grid(1))
    if n < nodes.size:
        cuda.atomic.or_(reach, nodes[n], flags[n])


# Paths


@cuda.jit(cache=True)
def mark_targets_kernel(nodes, targets, places):
    """Mark the targets that are open."""
    n = uint32(cuda.grid(1))
    if n < targets.size and has_bit(nodes[targets[n] >> uint32(5)], targets[n] & uint32(31)):
        places[targets[n]] = uint32(TARGET)


@cuda.jit(cache=True)
def begin_search_kernel(nodes, sources, search, count):
    """Append the open sources to the queue; count: uint32 (1,)."""
    n = uint32(cuda.grid(1))
    if n < sources.size and has_bit(nodes[sources[n] >> uint32(5)], sources[n] & uint32(31)):
        place = cuda.atomic.add(count, 0, uint32(1))
        search.queue[place] = sources[n]
        search.places[sources[n]] = place
        if search.lifts.size > 1:
            search.lifts[place] = int64(0)


@cuda.jit(device=True)
def _is_inner(net, site):
    """Return whether no bond of a site crosses a boundary."""
    rest = uint32(site)
    for axis in range(net.shape.size):
        length, x = net.shape[axis], int64(rest % uint32(net.shape[axis]))
        rest = uint32(rest // uint32(length))
        if x < net.reach[axis] or x >= int64(length - net.reach[axis]):
            return False
    return True


@cuda.jit(device=True)
def _follow(net, search, site, is_inner, slot):
    """Return (whether a slot is open and leads to another site, that site, periods, the bond).

    Slot 2k of a site is its bond of class k, slot 2k + 1 that of class k which leads to it.
    """
    k, sign = int64(slot >> 1), int64(int64(1) - int64(int64(2) * int64(slot & 1)))
    other, code = uint32(int64(site) + int64(sign * net.deltas[k])), int64(0)
    if not is_inner:
        other, code = _step(net, k, sign, site)
    owner = other if slot & 1 else uint32(site)
    index = uint32(uint32(uint32(k) * net.num_words) + uint32(owner >> uint32(5)))
    is_open = has_bit(search.opened[index], owner & uint32(31)) and other != uint32(site)
    bond = uint64(uint64(uint64(index) << uint64(5)) | uint64(owner & uint32(31)))
    return is_open, other, code, bond


@cuda.jit(device=True)
def _num_slots(net):
    return uint32(uint32(2) * uint32(net.offsets.shape[0]))


@cuda.jit(device=True)
def _wait_for_all(search, turn):
    """Wait until all blocks have arrived ``turn`` times; their writes are visible then."""
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        cuda.atomic.add(search.meets, 0, uint32(1))
        while cuda.atomic.add(search.meets, 0, uint32(0)) < uint32(turn * cuda.gridDim.x):
            pass
        cuda.threadfence()
    cuda.syncthreads()


@cuda.jit(device=True)
def _claim(search, other, reached, count):
    """Add a free site to those that this block has reached, unless another thread claims it."""
    if cuda.atomic.cas(search.places, other, uint32(FREE), uint32(_CLAIMED)) == uint32(FREE):
        reached[cuda.atomic.add(count, 0, uint32(1))] = other


@cuda.jit(device=True)
def _put_in_queue(search, reached, count, level, end):
    """Append the sites that this block has reached to the queue, which ended at ``end``."""
    cuda.syncthreads()
    thread = uint32(cuda.threadIdx.x)
    if thread == uint32(0):
        count[1] = uint32(end + cuda.atomic.add(search.added, level % uint32(3), count[0]))
    cuda.syncthreads()
    n = thread
    while n < count[0]:
        place = uint32(count[1] + n)
        search.queue[place], search.places[reached[n]] = reached[n], place
        n = uint32(n + uint32(cuda.blockDim.x))
    cuda.syncthreads()
    if thread == uint32(0):
        count[0] = uint32(0)
    cuda.syncthreads()


@cuda.jit(device=True)
def _end_of(search, level, end):
    """Return the end of the queue after a level; all blocks have finished this level.

    The counters of two levels later are cleared: no block uses them now.
    """
    if cuda.grid(1) == 0:
        following = uint32(uint32(level + uint32(2)) % uint32(3))
        search.added[following] = uint32(0)
        search.found[following], search.found[following + uint32(3)] = NOTHING, NOTHING
        search.starts[level + uint32(1)] = end
    return uint32(end + search.added[level % uint32(3)])


@cuda.jit(cache=True)
def search_target_kernel(net, search, count, answer):
    """Find the target that is the fewest open bonds from a source; of several the lowest site.

    Blocks wait for each other, so all must fit on the device at once.  Shared memory: a uint32 for
    each thread.  count: uint32 (1,), of sources.  answer: uint64 (2,), the target, or NOTHING, and
    its distance in bonds.
    """
    counts = cuda.shared.array(2, types.uint32)
    reached = cuda.shared.array(0, types.uint32)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    begin, end, level, nearest = uint32(0), count[0], uint32(0), uint64(NOTHING)
    if thread == uint32(0):
        counts[0], search.starts[0] = uint32(0), uint32(0)
    cuda.syncthreads()
    while begin < end and nearest == uint64(NOTHING):
        # One thread for each slot of each site.
        slots, first = uint64(_num_slots(net)), uint64(cuda.blockIdx.x * threads)
        while first < uint64(end - begin) * slots:
            n = uint64(first + uint64(thread))
            place = uint32(begin + uint32(n // slots))
            if place < end:
                site, slot = search.queue[place], uint32(n % slots)
                is_open, other, _, _ = _follow(net, search, site, _is_inner(net, site), slot)
                if is_open:
                    there = search.places[other]
                    if there == uint32(TARGET):
                        cuda.atomic.min(search.found, level % uint32(3), uint64(other))
                    elif there == uint32(FREE):
                        _claim(search, other, reached, counts)
            _put_in_queue(search, reached, counts, level, end)
            first = uint64(first + uint64(cuda.gridDim.x * threads))
        _wait_for_all(search, uint32(level + uint32(1)))
        nearest = search.found[level % uint32(3)]
        begin, end, level = end, _end_of(search, level, end), uint32(level + uint32(1))
    if cuda.grid(1) == 0:
        answer[0], answer[1] = nearest, uint64(level)


@cuda.jit(device=True)
def _lift(net, search, axis, n, begin, place):
    """Find the periods crossed on the way to the n-th site, and loops that close there.

    begin: where its level begins; neighbours before this place are a step nearer.  place: index in
    ``search.found`` of the least bond that closes a loop.
    """
    site, lift, is_known = search.queue[n], int64(0), False
    is_inner = _is_inner(net, site)
    for slot in range(_num_slots(net)):
        is_open, other, code, bond = _follow(net, search, site, is_inner, slot)
        if is_open:
            there = search.places[other]
            if there < begin:
                if not is_known:
                    lift, is_known = int64(search.lifts[there] - code), True
                loop = int64(int64(lift + code) - search.lifts[there])
                if periods_along(loop, axis, PERIOD_BITS) != int64(0):
                    cuda.atomic.min(search.found, place, bond)
    search.lifts[n] = lift


@cuda.jit(cache=True)
def search_loop_kernel(net, search, axis, answer):
    """Find the shortest loop of open bonds through the source that winds around an axis.

    Blocks and shared memory as for :func:`search_target_kernel`.  answer: uint64 (3,), the bond
    between the loop's two halves, of several the one with the lowest number, or NOTHING; the
    distance of its farther site; and whether both sites are equally far.
    """
    counts = cuda.shared.array(2, types.uint32)
    reached = cuda.shared.array(0, types.uint32)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    everybody = uint32(cuda.gridDim.x * threads)
    begin, end, level, both = uint32(0), uint32(1), uint32(0), uint32(0)
    if thread == uint32(0):
        counts[0], search.starts[0] = uint32(0), uint32(0)
    cuda.syncthreads()
    closing = uint64(NOTHING)
    while begin < end and closing == uint64(NOTHING):
        between = level % uint32(3)
        within = uint32(between + uint32(3))
        n = uint32(begin + uint32(cuda.grid(1)))
        while n < end and level > uint32(0):
            _lift(net, search, axis, n, begin, between)
            n = uint32(n + everybody)
        _wait_for_all(search, uint32(uint32(2) * level + uint32(1)))
        closing = search.found[between]
        if closing == uint64(NOTHING):
            slots, first = uint64(_num_slots(net)), uint64(cuda.blockIdx.x * threads)
            while first < uint64(end - begin) * slots:
                m = uint64(first + uint64(thread))
                n = uint32(begin + uint32(m // slots))
                if n < end:
                    site, slot = search.queue[n], uint32(m % slots)
                    is_inner = _is_inner(net, site)
                    is_open, other, code, bond = _follow(net, search, site, is_inner, slot)
                    if is_open:
                        there = search.places[other]
                        if there == uint32(FREE):
                            _claim(search, other, reached, counts)
                        elif there >= begin and there < end:
                            lift = int64(search.lifts[n] + code)
                            loop = int64(lift - search.lifts[there])
                            if periods_along(loop, axis, PERIOD_BITS) != int64(0):
                                cuda.atomic.min(search.found, within, bond)
                _put_in_queue(search, reached, counts, level, end)
                first = uint64(first + uint64(everybody))
            _wait_for_all(search, uint32(uint32(2) * level + uint32(2)))
            closing = search.found[within]
            if closing != uint64(NOTHING):
                both = uint32(1)
            else:
                begin, end = end, _end_of(search, level, end)
                level = uint32(level + uint32(1))
    if cuda.grid(1) == 0:
        answer[0], answer[1], answer[2] = closing, uint64(level), uint64(both)


@cuda.jit(cache=True)
def way_back_kernel(net, search, site, steps, sites, codes):
    """Write the sites from a site, ``steps`` steps away, back to a source, and the periods to each.

    sites: uint32 (steps + 1,).  codes: int64 (steps + 1,).  One block.
    """
    slots = cuda.shared.array(1, types.uint32)
    here = cuda.shared.array(1, types.uint32)
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    total = int64(0)
    if thread == uint32(0):
        here[0], sites[0], codes[0] = site, site, int64(0)
    for n in range(steps):
        if thread == uint32(0):
            slots[0] = uint32(FREE)
        cuda.syncthreads()
        left = uint32(uint32(steps) - uint32(n))
        low, high = search.starts[uint32(left - uint32(1))], search.starts[left]
        slot = thread
        while slot < _num_slots(net):
            is_open, other, _, _ = _follow(net, search, here[0], False, slot)
            if is_open and search.places[other] >= low and search.places[other] < high:
                cuda.atomic.min(slots, 0, slot)
            slot = uint32(slot + threads)
        cuda.syncthreads()
        if thread == uint32(0):
            _, other, code, _ = _follow(net, search, here[0], False, slots[0])
            total = int64(total + code)
            here[0], sites[n + 1], codes[n + 1] = other, other, total
