"""CUDA: chains of spins on small lattices, whole sweeps in the shared memory of one block.

A block of threads has a chain, and every thread a word of its sites: it does many sweeps in one
launch, with barriers where larger lattices need a kernel of their own.  Clusters are found as those
of a tile are (:mod:`percolab.labelers.tiled.one_tile`), without the bonds across seams.  Runs are
numbered in the order of their sites through the whole lattice, so that the root of a tree is its
first run.

A cluster so found becomes a *node* if an open bond leads from it across a seam, or if it holds a
site of an end layer.  Nodes are numbered in the order of their first sites.  A forest of them, with
periods, is joined by the bonds across seams (:mod:`percolab.measure.wrapping_cuda`), so that its
roots have the first sites of whole clusters, too.

``info`` holds of every node:

    bits 0-12   at a root of the forest: the sites of the cluster; else, those of the node
    bits 13-24  the run that is its root in the table
    bits 25-30  at a root: flags of the end layers that it touches (2a: first layer of axis a)
    bit 31      at a root: it holds a chosen site

In the table, bit 18 of a root that is no node says that it holds a chosen site.  When all is
measured, the field of every root gets what happens to its spin.
"""

from typing import Any, NamedTuple

from numba import int32, int64, types, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.words import open_word
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.neighbours import has_bit, seam_word
from percolab.kernels.runs import fill_segments
from percolab.labelers.tiled.all_tiles import run_at, with_finished
from percolab.labelers.tiled.one_tile import (
    BORDER,
    FIELD,
    LANES,
    PLACE,
    ROOT,
    STRIPS,
    TILE_WORDS,
    field_of,
    join_first,
    join_listed,
    length_of,
    list_extras,
    list_runs,
    move_sizes,
    number_words,
    shorten_path,
    split_bonds,
    table_root,
)
from percolab.measure.rows import (
    CLUSTERS,
    ISOLATED,
    LARGEST,
    SECOND_LARGEST,
    SPANNING,
    SUM_SQUARES,
    spanning_bits,
)
from percolab.measure.rows_cuda import PARTIAL_SUMS, put_sums, reduce_block
from percolab.measure.spins import LARGEST_STATE, OPEN_BONDS, SATISFIED, STATE_SQUARES
from percolab.measure.wrapping import root_in
from percolab.measure.wrapping_cuda import Loops, join_over_periods, note_loop
from percolab.spins.kernels_cuda import COUNTS, MOST_COUNTS, count_states
from percolab.spins.words import (
    below,
    change_of,
    changed,
    chosen_site,
    keyed_number,
    satisfied_word,
    spin_at,
    write_digits,
)

cuda = load_cuda()

#: Where the parts of a node's ``info`` begin, and the mark of a chosen site.
RUN, ENDS, CHOSEN_NODE = 13, 25, 1 << 31
_SIZE, _RUNS, _ENDS = (1 << RUN) - 1, 0xFFF, 0x3F
_CHOSEN = 1 << 18
_NO_FIELD = 0xFFFFFFFF ^ (0xFFF << FIELD)
#: Where the second end and the class begin in what is stored of a bond across a seam.
OTHER, CLASS = 12, 24
_SITE = 0xFFF


class Block(NamedTuple):
    """A lattice that one block of threads has in shared memory, for kernels.

    exists:    uint32 (classes * num_words,), the bonds that there are
    occupied:  uint32 (num_words,), the sites that there are
    shifts:    of every class but the chain's, how many sites the other end is away, int32 each
    rows:      as many zeros, int32
    pairs:     uint32, of every bond across a seam: owner, other end << OTHER, class << CLASS
    codes:     int32, over how many periods they lead
    end_sites, end_flags: uint32, sites of end layers, and bit 2a (first layer of axis a) or 2a + 1
    points:    grid points, uint32
    num_words: words of sites, uint32
    chain:     the class of the chain bonds, or -1, int32
    listed:    bonds for which the list of those that join trees has room, uint32
    nodes:     for how many nodes there is room, uint32
    scratch:   words of shared memory for bonds and lists, then nodes, then sums; uint32
    axes:      of the lattice, int32
    width:     bits that an axis has in a code of periods, int32
    """

    exists: Any
    occupied: Any
    shifts: Any
    rows: Any
    pairs: Any
    codes: Any
    end_sites: Any
    end_flags: Any
    points: Any
    num_words: Any
    chain: Any
    listed: Any
    nodes: Any
    scratch: Any
    axes: Any
    width: Any


def scratch_words(classes: int, listed: int, nodes: int, threads: int) -> int:
    """Return the words of ``Block.scratch``; classes: without the chain's."""
    return max(2 * classes * TILE_WORDS + listed, 3 * nodes, PARTIAL_SUMS * threads)


def dynamic_words(num_words: int, scratch: int, beyond: int, planes: int) -> int:
    """Return the words of dynamic shared memory; beyond: words of bonds that cross seams."""
    return 32 * num_words + scratch + beyond + 2 * planes * num_words


#: Bytes of static shared memory.
STATIC_BYTES = 4 * (4 * TILE_WORDS + MOST_COUNTS + STRIPS + 2)


@cuda.jit(device=True)
def _number_block(counts, count, totals):
    """Return (the sum of ``count`` over the threads before this one, that over all).

    counts: scratch, a place for each thread; totals: for each strip.
    """
    word = cuda.threadIdx.x
    strip, lane = word // LANES, word % LANES
    before, whole = number_words(counts, count, strip, lane, word)
    if lane == 0:
        totals[strip] = whole
    cuda.syncthreads()
    total = uint32(0)
    for other in range(cuda.blockDim.x // LANES):
        if other < strip:
            before = uint32(before + totals[other])
        total = uint32(total + totals[other])
    return before, total


@cuda.jit(device=True)
def _draw_bonds(generator, key, block, adjacency, num_planes, planes, links, beyond):
    """Write the open bonds of a word inside the lattice to ``links``, those across seams apart.

    Returns (the open chain bonds, satisfied bonds + open bonds << 16); of the bonds across seams
    all that are drawn are written, but none is counted.
    """
    seed, number, threshold = key
    word, num_words = uint32(cuda.threadIdx.x), block.num_words
    joined, counted, c = uint32(0), uint32(0), 0
    for k in range(len(adjacency.ends)):
        inside = uint32(0)
        if word < num_words:
            index = uint32(uint32(uint32(k) * num_words) + word)
            here = block.exists[index]
            across = uint32(here & seam_word(adjacency.seam, index))
            inner = uint32(here & ~across)
            same = satisfied_word(planes, uint32(0), num_planes, adjacency, k, word, inner)
            alive = uint32(same | across)
            bonds = open_word(generator, seed, number, uint64(index), threshold, alive)
            inside = uint32(bonds & ~across)
            if block.pairs.size != 0:
                beyond[index] = uint32(bonds & across)
            counted = uint32(counted + uint32(popcount(same)))
            counted = uint32(counted + uint32(uint32(popcount(inside)) << uint32(16)))
        if k == block.chain:
            joined = inside
        else:
            links[uint32(uint32(2 * c * TILE_WORDS) + word)] = inside
            c += 1
    return joined, counted


@cuda.jit(device=True)
def _join_runs(table, starts, first, totals, links, queue, block, joined):
    """Find the clusters without bonds across seams, as in a tile; return the number of runs."""
    shifts, rows, room = block.shifts, block.rows, block.listed
    word, threads = cuda.threadIdx.x, uint32(cuda.blockDim.x)
    thread = uint32(word)
    edges = uint32(uint32(~joined) | uint32(1))
    ours = starts[word]
    extras = split_bonds(starts, edges, joined, shifts, rows, word, links)
    both = uint32(uint32(popcount(ours)) | uint32(extras << uint32(16)))
    before, whole = _number_block(first, both, totals)
    runs, listed = uint32(whole & uint32(0xFFFF)), uint32(whole >> uint32(16))
    n, slot = uint32(before & uint32(0xFFFF)), uint32(before >> uint32(16))
    first[word] = n
    list_runs(table, ours, edges, joined, n, word)
    cuda.syncthreads()
    join_first(table, starts, first, shifts, rows, word, links)
    done = uint32(0)
    while True:
        list_extras(
            table, starts, first, shifts, rows, word, links, queue, uint32(0), room,
            uint32(slot - done),
        )  # fmt: skip
        cuda.syncthreads()
        if done == uint32(0):
            n = thread
            while n < runs:
                shorten_path(table, n)
                n = uint32(n + threads)
            cuda.syncthreads()
        end = min(uint32(max(listed, done) - done), room)
        join_listed(table, queue, uint32(0), end, thread, threads)
        cuda.syncthreads()
        move_sizes(table, queue, uint32(0), end, thread, threads)
        cuda.syncthreads()
        done = uint32(done + room)
        if done >= listed:
            break
    return runs


@cuda.jit(device=True)
def _root_at(table, starts, first, site):
    """Return the root, in the table, of a site's cluster."""
    run = run_at(starts, first, uint32(site >> uint32(5)), uint32(site & uint32(31)))
    return table_root(table, run)


@cuda.jit(device=True)
def _mark_node(table, starts, first, special, site):
    """Let the cluster of a site become a node."""
    root = _root_at(table, starts, first, site)
    entry = uint32(cuda.atomic.or_(table, root, uint32(BORDER)))
    if uint32(entry & uint32(BORDER)) == uint32(0):
        place = uint32(entry & uint32(PLACE))
        bit = uint32(uint32(1) << uint32(place & uint32(31)))
        cuda.atomic.or_(special, uint32(place >> uint32(5)), bit)


@cuda.jit(device=True)
def _node_of(entry, special, numbers):
    """Return the number of the node whose root in the table has this entry."""
    word = uint32(uint32(entry & uint32(PLACE)) >> uint32(5))
    below = uint32(uint32(uint32(1) << uint32(entry & uint32(31))) - uint32(1))
    return uint32(numbers[word] + uint32(popcount(uint32(special[word] & below))))


@cuda.jit(device=True)
def _ends_of_pair(pair):
    """Return the two ends of a bond across a seam."""
    return uint32(pair & uint32(_SITE)), uint32(uint32(pair >> uint32(OTHER)) & uint32(_SITE))


@cuda.jit(device=True)
def _word_of_pair(pair, num_words):
    """Return the bond word of a bond across a seam."""
    owner = uint32(uint32(pair & uint32(_SITE)) >> uint32(5))
    return uint32(uint32(uint32(pair >> uint32(CLASS)) * num_words) + owner)


@cuda.jit(device=True)
def _mark_nodes(table, starts, first, special, block, num_planes, planes, beyond):
    """Mark what becomes a node, and close the bonds across seams between different spins.

    Returns the satisfied and the open ones among these bonds, as :func:`_draw_bonds` does.
    """
    counted, num_words = uint32(0), block.num_words
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < uint32(block.pairs.size):
        pair = block.pairs[n]
        i, j = _ends_of_pair(pair)
        index, bit = _word_of_pair(pair, num_words), uint32(i & uint32(31))
        is_open = has_bit(beyond[index], bit)
        one = spin_at(planes, uint32(0), num_planes, num_words, i)
        if one == spin_at(planes, uint32(0), num_planes, num_words, j):
            counted = uint32(counted + uint32(1))
            if is_open:
                counted = uint32(counted + uint32(1 << 16))
                _mark_node(table, starts, first, special, i)
                _mark_node(table, starts, first, special, j)
        elif is_open:
            cuda.atomic.and_(beyond, index, uint32(~uint32(uint32(1) << bit)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.end_sites.size):
        _mark_node(table, starts, first, special, block.end_sites[n])
        n = uint32(n + threads)
    return counted


@cuda.jit(device=True)
def _begin_nodes(table, runs, special, numbers, forest, info):
    """Begin a node for every marked root."""
    n = uint32(cuda.threadIdx.x)
    while n < runs:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT | BORDER):
            node = _node_of(entry, special, numbers)
            forest[node] = uint64(node)
            size = uint32(field_of(entry) + length_of(entry))
            info[node] = uint32(size | uint32(n << uint32(RUN)))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _join_nodes(table, starts, first, special, numbers, forest, loops, block, beyond):
    """Join the nodes at the ends of the open bonds across seams, and note what wraps."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.pairs.size):
        pair = block.pairs[n]
        i, j = _ends_of_pair(pair)
        if has_bit(beyond[_word_of_pair(pair, block.num_words)], uint32(i & uint32(31))):
            one = _node_of(table[_root_at(table, starts, first, i)], special, numbers)
            other = _node_of(table[_root_at(table, starts, first, j)], special, numbers)
            note_loop(join_over_periods(forest, one, other, block.codes[n]), 0, loops)
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _gather_nodes(table, starts, first, special, numbers, nodes, forest, info, block):
    """Give the roots of nodes the sites and the end layers of all their nodes."""
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < nodes:
        root = root_in(forest, n)
        if root != n:
            cuda.atomic.add(info, root, uint32(info[n] & uint32(_SIZE)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.end_sites.size):
        entry = table[_root_at(table, starts, first, block.end_sites[n])]
        root = root_in(forest, _node_of(entry, special, numbers))
        flag = uint32(block.end_flags[n] << uint32(ENDS))
        if uint32(info[root] & flag) == uint32(0):
            cuda.atomic.or_(info, root, flag)
        n = uint32(n + threads)


@cuda.jit(device=True)
def _mark_chosen(generator, seed, number, rule, table, starts, first, special, numbers, forest,
                 info, block):  # fmt: skip
    """Mark the clusters of chosen sites."""
    n = uint32(cuda.threadIdx.x)
    while n < rule.seeds:
        site = chosen_site(generator, seed, number, uint64(n), block.points, block.occupied)
        root = _root_at(table, starts, first, site)
        entry = table[root]
        if uint32(entry & uint32(BORDER)) != uint32(0):
            node = root_in(forest, _node_of(entry, special, numbers))
            cuda.atomic.or_(info, node, uint32(CHOSEN_NODE))
        else:
            cuda.atomic.or_(table, root, uint32(_CHOSEN))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _change_at(depends, generator, seed, number, site, is_chosen, rule, digits, num_words):
    """Return what happens to the spin of a cluster with this first site."""
    if not depends and rule.by_word != uint32(0):
        return spin_at(digits, uint32(0), rule.planes, num_words, site)
    if not depends:
        return below(keyed_number(generator, seed, number, site), rule.states)
    return change_of(generator, seed, number, site, is_chosen, rule)


@cuda.jit(device=True)
def _measure(depends, generator, seed, number, rule, table, runs, nodes, forest, info, digits,
             num_words, flags):  # fmt: skip
    """Return a thread's sums over clusters, and put into the table what happens to their spins."""
    sums = uint32(0), uint32(0), uint32(0), uint32(0), uint32(0)
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < runs:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT):
            sums = with_finished(sums, uint32(field_of(entry) + length_of(entry)))
            chosen = depends and uint32(entry & uint32(_CHOSEN)) != uint32(0)
            change = _change_at(
                depends, generator, seed, number, uint32(entry & uint32(PLACE)), chosen, rule,
                digits, num_words,
            )  # fmt: skip
            table[n] = uint32(uint32(entry & uint32(_NO_FIELD)) | uint32(change << uint32(FIELD)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < nodes:
        root = root_in(forest, n)
        found = info[root]
        if root == n:
            sums = with_finished(sums, uint32(found & uint32(_SIZE)))
            ends = uint32(uint32(found >> uint32(ENDS)) & uint32(_ENDS))
            if ends != uint32(0):
                cuda.atomic.or_(flags, 0, uint32(spanning_bits(ends)))
        first = table[uint32(uint32(found >> uint32(RUN)) & uint32(_RUNS))]
        chosen = depends and uint32(found & uint32(CHOSEN_NODE)) != uint32(0)
        change = _change_at(
            depends, generator, seed, number, uint32(first & uint32(PLACE)), chosen, rule,
            digits, num_words,
        )  # fmt: skip
        run = uint32(uint32(info[n] >> uint32(RUN)) & uint32(_RUNS))
        entry = table[run]
        table[run] = uint32(uint32(entry & uint32(_NO_FIELD)) | uint32(change << uint32(FIELD)))
        n = uint32(n + threads)
    return sums


@cuda.jit(device=True)
def _paint_word(depends, rule, num_planes, table, starts, first, block, planes, marks):
    """Give the sites of this thread's word their new spins."""
    word, num_words = uint32(cuda.threadIdx.x), block.num_words
    if word >= num_words:
        return
    for plane in range(1, num_planes):
        marks[uint32(uint32(uint32(plane) * num_words) + word)] = uint32(0)
    left, run, marked = starts[word], first[word], uint32(0)
    while left != uint32(0):
        rest = uint32(left & uint32(left - uint32(1)))
        spin = field_of(table[table_root(table, run)])
        if depends:
            site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
            spin = changed(spin_at(planes, uint32(0), num_planes, num_words, site), spin, rule)
        if has_bit(spin, 0):
            marked = uint32(marked | uint32(left ^ rest))
        for plane in range(1, num_planes):
            if has_bit(spin, plane):
                place = uint32(uint32(uint32(plane) * num_words) + word)
                marks[place] = uint32(marks[place] | uint32(left ^ rest))
        run = uint32(run + uint32(1))
        left = rest
    # What is no run ends one.
    there = block.occupied[word]
    edges = uint32(starts[word] | uint32(~there))
    planes[word] = uint32(fill_segments(marked, edges) & there)
    for plane in range(1, num_planes):
        place = uint32(uint32(uint32(plane) * num_words) + word)
        planes[place] = uint32(fill_segments(marks[place], edges) & there)


@cuda.jit(device=True)
def _keep(place, columns, counts, states, flags, first_loop, kept):
    """Keep what was measured, and begin the next sweep's counts; one thread."""
    clusters, squares, largest, second, isolated = columns
    kept[place, CLUSTERS], kept[place, LARGEST] = int64(clusters[0]), int64(largest[0])
    kept[place, SECOND_LARGEST] = int64(second[0])
    kept[place, SUM_SQUARES], kept[place, ISOLATED] = int64(squares[0]), int64(isolated[0])
    kept[place, SPANNING] = int64(flags[0])
    most, total = uint32(0), uint32(0)
    for state in range(COUNTS, COUNTS + states):
        sites = counts[state]
        most = max(most, sites)
        total = uint32(total + uint32(sites * sites))
        counts[state] = uint32(0)
    kept[place, SATISFIED] = int64(counts[0] & uint32(0xFFFF))
    kept[place, OPEN_BONDS] = int64(counts[0] >> uint32(16))
    kept[place, LARGEST_STATE], kept[place, STATE_SQUARES] = int64(most), int64(total)
    counts[0], flags[0], first_loop[0] = uint32(0), uint32(0), int32(0)


@cuda.jit(device=True)
def _sweep_chain(depends, generator, chains, clock, count, rule, block, adjacency, memory, kept):
    """Do sweeps of a chain, one block's."""
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    special = cuda.shared.array(TILE_WORDS, types.uint32)
    numbers = cuda.shared.array(TILE_WORDS, types.uint32)
    totals = cuda.shared.array(STRIPS, types.uint32)
    counts = cuda.shared.array(MOST_COUNTS, types.uint32)
    flags = cuda.shared.array(1, types.uint32)
    first_loop = cuda.shared.array(1, types.int32)
    table = cuda.shared.array(0, types.uint32)
    item, word = uint32(cuda.blockIdx.x), cuda.threadIdx.x
    threads, num_words, num_planes = cuda.blockDim.x, block.num_words, int32(rule.planes)
    plane_words = uint32(uint32(num_planes) * num_words)
    scratch = table[uint32(num_words << uint32(5)) :]
    forest = cuda.shared.array(0, types.uint64)[uint32(num_words << uint32(4)) :]
    queue = scratch[2 * len(block.shifts) * TILE_WORDS :]
    info = scratch[uint32(block.nodes << uint32(1)) :]
    beyond = scratch[block.scratch :]
    planes = beyond[block.exists.size if block.pairs.size != 0 else 0 :]
    digits = planes[plane_words:]
    columns = (
        scratch[:threads],
        scratch[threads : 2 * threads],
        scratch[2 * threads : 3 * threads],
        scratch[3 * threads : 4 * threads],
        scratch[4 * threads : 5 * threads],
    )
    loops = Loops(first_loop, flags, block.axes, block.width)
    base = uint32(item * plane_words)
    for n in range(word, int32(plane_words), threads):
        planes[n] = memory[uint32(base + uint32(n))]
    for n in range(word, MOST_COUNTS, threads):
        counts[n] = uint32(0)
    if word == 0:
        flags[0], first_loop[0] = uint32(0), int32(0)
    sweep = clock[item]
    by_word = not depends and rule.by_word != uint32(0)
    cuda.syncthreads()
    for slot in range(count):
        sweep = uint64(sweep + uint64(1))
        key = seed_at(chains.bonds[item], sweep), chains.number[item], chains.threshold[item]
        joined, counted = _draw_bonds(
            generator, key, block, adjacency, num_planes, planes, scratch, beyond
        )
        special[word], there = uint32(0), uint32(0)
        if word < num_words:
            there = block.occupied[word]
            count_states(
                planes, uint32(0), num_planes, num_words, uint32(word), there, rule.states, counts
            )
            if by_word:
                seed, where = seed_at(chains.spins[item], sweep), (word, num_words)
                number, none = chains.number[item], uint32(0)
                write_digits(generator, seed, number, uint32(word), num_planes, digits, where, none)
        starts[word] = uint32(uint32(uint32(~joined) | uint32(1)) & there)
        cuda.syncthreads()
        runs = _join_runs(table, starts, first, totals, scratch, queue, block, joined)
        nodes = uint32(0)
        if block.nodes != uint32(0):
            more = _mark_nodes(table, starts, first, special, block, num_planes, planes, beyond)
            counted = uint32(counted + more)
            cuda.syncthreads()
            before, nodes = _number_block(numbers, uint32(popcount(special[word])), totals)
            numbers[word] = before
            cuda.syncthreads()
            _begin_nodes(table, runs, special, numbers, forest, info)
            cuda.syncthreads()
            _join_nodes(table, starts, first, special, numbers, forest, loops, block, beyond)
            cuda.syncthreads()
            _gather_nodes(table, starts, first, special, numbers, nodes, forest, info, block)
        cuda.atomic.add(counts, 0, counted)
        if depends:
            seed, number = seed_at(chains.sites[item], sweep), chains.number[item]
            _mark_chosen(
                generator, seed, number, rule, table, starts, first, special, numbers,
                forest, info, block,
            )  # fmt: skip
        cuda.syncthreads()
        seed, number = seed_at(chains.spins[item], sweep), chains.number[item]
        sums = _measure(
            depends, generator, seed, number, rule, table, runs, nodes, forest, info, digits,
            num_words, flags,
        )  # fmt: skip
        cuda.syncthreads()
        put_sums(columns, word, sums)
        _paint_word(depends, rule, num_planes, table, starts, first, block, planes, digits)
        reduce_block(columns, word, threads)
        if word == 0:
            place = int64(item) * int64(count) + int64(slot)
            _keep(place, columns, counts, rule.states, flags, first_loop, kept)
        cuda.syncthreads()
    for n in range(word, int32(plane_words), threads):
        memory[uint32(base + uint32(n))] = planes[n]
    if word == 0:
        clock[item] = sweep


@cuda.jit(cache=True)
def sweep_kernel(generator, chains, clock, count, rule, block, adjacency, planes, kept):
    """Do ``count[0]`` sweeps of every chain, each giving new spins to all clusters.

    One block a chain, of a power of two of threads, at least ``block.num_words`` and LANES.
    count: int64 (1,).  kept: int64 (at least chains * sweeps, SPIN_ROW_WIDTH), what is measured of
    every sweep, those of a chain one after the other.  Dynamic shared memory: dynamic_words.
    """
    sweeps = int32(count[0])
    _sweep_chain(False, generator, chains, clock, sweeps, rule, block, adjacency, planes, kept)


@cuda.jit(cache=True)
def sweep_chosen_kernel(generator, chains, clock, count, rule, block, adjacency, planes, kept):
    """Do sweeps that give new spins to the clusters of chosen sites; arguments as above."""
    sweeps = int32(count[0])
    _sweep_chain(True, generator, chains, clock, sweeps, rule, block, adjacency, planes, kept)
