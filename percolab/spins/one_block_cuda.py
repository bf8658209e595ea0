"""CUDA: chains of spins on small lattices, with whole sweeps in the shared memory of one block.

A block of threads does many sweeps of a chain in one launch.  A word of sites has one, two or four
threads, its *parts*: they draw the bonds of different classes, and each processes the runs in its
share of the bits.  More parts speed up few chains; for many chains one part is best.

Clusters without the bonds across periodic boundaries are found as in a tile
(:mod:`percolab.labelers.tiled.one_tile`).  Runs are numbered in the order of their sites, so the
root of a tree is its first run.  A cluster becomes a *node* if an open bond leads from it across a
periodic boundary, or if it contains a site of an end layer.  Nodes are numbered in the order of
their first sites, and joined by the bonds across periodic boundaries to a forest with periods
(:mod:`percolab.measure.wrapping_cuda`), so its roots have the first sites of whole clusters.

``info`` has for every node:

    bits 0-12   at a root of the forest: sites of the whole cluster; else, of the node
    bits 13-24  the run that is the node's root in the table
    bits 25-30  at a root: flags of the end layers that it touches (2a: first layer of axis a)
    bit 31      at a root: it contains a chosen site

In the table, bit 18 of a root that is no node says that it contains a chosen site.  After all
measurements, the field of every root is set to the change of its spin.
"""

from typing import Any, NamedTuple

from numba import int32, int64, types, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.words import open_word
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.neighbours import has_bit, periodic_word
from percolab.kernels.runs import fill_segments, low_bits
from percolab.labelers.tiled.all_tiles import run_at
from percolab.labelers.tiled.one_tile import (
    BORDER,
    FIELD,
    LANES,
    PLACE,
    ROOT,
    STRIPS,
    TILE_WORDS,
    entry_field,
    join_first,
    join_listed,
    list_extras,
    list_runs,
    move_sizes,
    run_length,
    split_bonds,
    sync_strip,
    table_root,
    with_parent,
)
from percolab.measure.rows import SPANNING, spanning_bits
from percolab.measure.rows_cuda import add_atomically, add_second, settle_second
from percolab.measure.spins import LARGEST_STATE, OPEN_BONDS, SATISFIED, STATE_SQUARES
from percolab.measure.sums import NUMBERS, SUMS32
from percolab.measure.wrapping import root_in
from percolab.measure.wrapping_cuda import Loops, join_over_periods, note_loop
from percolab.spins.kernels_cuda import COUNTS, MOST_COUNTS, count_states
from percolab.spins.words import (
    below,
    changed,
    chosen_site,
    keyed_number,
    satisfied_word,
    spin_at,
    spin_change,
    write_digits,
)

#: First bits of the parts of a node's ``info``, and the bit of a chosen site.
RUN, ENDS, CHOSEN_NODE = 13, 25, 1 << 31
_SIZE, _RUNS, _ENDS = (1 << RUN) - 1, 0xFFF, 0x3F
_CHOSEN = 1 << 18
_NO_FIELD = 0xFFFFFFFF ^ (0xFFF << FIELD)
#: Number of a block's sums over clusters, and one count of clusters as large as the largest.
MOST_SUMS = NUMBERS + 1
_empty, _with_cluster, _put, _take = SUMS32.empty, SUMS32.with_cluster, SUMS32.put, SUMS32.take
#: First bits of the second end and of the class of a stored bond across a periodic boundary.
OTHER, CLASS = 12, 24
_SITE = 0xFFF


class ChainLattice(NamedTuple):
    """A lattice that one block of threads has in shared memory, for kernels."""

    exists: Any  # uint32 (classes * num_words,), the existing bonds
    occupied: Any  # uint32 (num_words,), the existing sites
    shifts: Any  # int32, for every class except the chain's: difference of the two ends' sites
    rows: Any  # int32, zeros of the same number
    # uint32, for every bond across a periodic boundary: owner, other end << OTHER, class << CLASS
    pairs: Any
    codes: Any  # int32, the periods that these bonds cross
    end_sites: Any  # uint32, sites of end layers
    end_flags: Any  # uint32, bit 2a for the first layer of axis a, 2a + 1 for the last
    points: Any  # number of grid points, uint32
    num_words: Any  # number of words of sites, uint32
    threads: Any  # number of threads in each part, with or without a word: a power of two, uint32
    chain: Any  # the class of the chain bonds, or -1, int32
    listed: Any  # room for bonds in the list of bonds that join trees, uint32
    nodes: Any  # room for nodes, uint32
    scratch: Any  # words of shared memory for bonds and lists, then nodes; uint32
    axes: Any  # number of axes of the lattice, int32
    width: Any  # bits per axis in a code of periods, int32


class ThreadPart(NamedTuple):
    """The part of the work of one thread.

    All are uint32.
    """

    thread: Any  # number of the thread in the block, of ``threads``
    threads: Any
    word: Any  # the thread's word of sites, which may be beyond the last word
    number: Any  # number of the thread's part, of ``parts``
    parts: Any


class Clusters(NamedTuple):
    """The clusters of a sweep in shared memory; all arrays but the forest are uint32."""

    table: Any  # of runs
    starts: Any  # words of the sites at which runs start
    first: Any  # the number of every word's first run
    special: Any  # words of the first sites of nodes
    numbers: Any  # the number of every word's first node
    forest: Any  # of nodes, uint64
    info: Any  # of nodes


def scratch_words(classes: int, listed: int, nodes: int) -> int:
    """Return the value of ``ChainLattice.scratch``; classes: without the chain's."""
    return max(2 * classes * TILE_WORDS + listed, 3 * nodes)


def dynamic_words(num_words: int, scratch: int, beyond: int, planes: int) -> int:
    """Return the number of words of dynamic shared memory; beyond: words of periodic bonds."""
    return 32 * num_words + scratch + beyond + 3 * planes * num_words


#: Bytes of static shared memory.
STATIC_BYTES = 4 * (5 * TILE_WORDS + MOST_COUNTS + MOST_SUMS + STRIPS + 4)


@cuda.jit(device=True)
def _choose_part(threads):
    """Return this thread's part of the work; threads: in each part."""
    thread, all_threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    parts, number = uint32(all_threads // threads), uint32(thread // threads)
    word = uint32(thread & uint32(threads - uint32(1)))
    return ThreadPart(thread, all_threads, word, number, parts)


@cuda.jit(device=True)
def _thread_bits(part):
    """Return the bits of its word that a thread processes, and the bits before them."""
    share = uint32(uint32(32) // part.parts)
    begin = uint32(part.number * share)
    return uint32(low_bits(share) << begin), uint32(uint32(uint32(1) << begin) - uint32(1))


@cuda.jit(device=True)
def _has_job(part, job):
    """Return whether this thread does a job of its word; jobs are distributed to the parts."""
    return uint32(uint32(job) & uint32(part.parts - uint32(1))) == part.number


@cuda.jit(device=True)
def _number_block(counts, count, totals, part):
    """Return (the sum of ``count`` over the words before this one, that over all words).

    Only counts of the first part are used, and only it gets the first sum.  counts: scratch, an
    entry for each word; totals: for each strip.
    """
    word, is_first = part.word, part.number == uint32(0)
    strip, lane = uint32(word // uint32(LANES)), uint32(word % uint32(LANES))
    total, step = count, uint32(1)
    if is_first:
        counts[word] = total
    while step < uint32(LANES):
        sync_strip()
        if is_first and lane >= step:
            total = uint32(total + counts[uint32(word - step)])
        sync_strip()
        if is_first:
            counts[word] = total
        step = uint32(step << uint32(1))
    if is_first and lane == uint32(LANES - 1):
        totals[strip] = total
    cuda.syncthreads()
    before, whole = uint32(total - count), uint32(0)
    for other in range(part.threads // part.parts // uint32(LANES)):
        if uint32(other) < strip:
            before = uint32(before + totals[uint32(other)])
        whole = uint32(whole + totals[uint32(other)])
    return before, whole


@cuda.jit(device=True)
def _draw_bonds(generator, key, block, adjacency, num_planes, planes, links, chained, beyond, part):
    """Write the open bonds of a word inside the lattice, and separately those across boundaries.

    links: is set to the open bonds of all classes but the chain's, chained: of the chain's.
    Returns satisfied bonds + open bonds << 16.  Bonds across periodic boundaries are written if
    drawn, whether satisfied or not, and are not counted.
    """
    seed, number, threshold = key
    word, num_words = part.word, block.num_words
    counted, c = uint32(0), 0
    for k in range(len(adjacency.ends)):
        if _has_job(part, k):
            inside = uint32(0)
            if word < num_words:
                index = uint32(uint32(uint32(k) * num_words) + word)
                here = block.exists[index]
                across = uint32(here & periodic_word(adjacency.periodic_words, index))
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
                chained[word] = inside
            else:
                links[uint32(uint32(2 * c * TILE_WORDS) + word)] = inside
        if k != block.chain:
            c += 1
    return counted


@cuda.jit(device=True)
def _shorten(table, n):
    """Point a run to its root, and add its sites to the root's size.

    Meanwhile the run points to the furthest run reached so far, so other threads that pass through
    it get there in one step: together, threads reach a root d steps away in about log2(d) steps.
    No other thread writes this entry, since sizes are added to roots, which stay roots here.
    """
    entry = table[n]
    if entry < uint32(ROOT):
        root = uint32(entry >> uint32(FIELD))
        above = table[root]
        while above < uint32(ROOT):
            root = uint32(above >> uint32(FIELD))
            above = table[root]
            table[n] = with_parent(entry, root)
        cuda.atomic.add(table, root, uint32(run_length(entry) << uint32(FIELD)))


@cuda.jit(device=True)
def _count_extra_bonds(links, classes, word, bits):
    """Return the number of extra bonds of a word among these bits."""
    total = uint32(0)
    for c in range(classes):
        extras = links[uint32(uint32((2 * c + 1) * TILE_WORDS) + word)]
        total = uint32(total + uint32(popcount(uint32(extras & bits))))
    return total


@cuda.jit(device=True)
def _join_runs(table, starts, first, slots, chained, totals, links, queue, block, part):
    """Find the clusters without periodic bonds as in a tile; return the number of runs."""
    shifts, rows, room = block.shifts, block.rows, block.listed
    word, thread, threads = part.word, part.thread, part.threads
    own, below = _thread_bits(part)
    joined, ours = chained[word], starts[word]
    edges, both = uint32(uint32(~joined) | uint32(1)), uint32(0)
    if part.number == uint32(0):
        extras = split_bonds(starts, edges, joined, shifts, rows, word, links)
        both = uint32(uint32(popcount(ours)) | uint32(extras << uint32(16)))
    before, whole = _number_block(first, both, totals, part)
    runs, listed = uint32(whole & uint32(0xFFFF)), uint32(whole >> uint32(16))
    if part.number == uint32(0):
        first[word], slots[word] = uint32(before & uint32(0xFFFF)), uint32(before >> uint32(16))
    if part.parts != uint32(1):
        cuda.syncthreads()
    n = uint32(first[word] + uint32(popcount(uint32(ours & below))))
    slot = uint32(slots[word] + _count_extra_bonds(links, len(shifts), word, below))
    list_runs(table, uint32(ours & own), edges, uint32(joined & own), n, word)
    cuda.syncthreads()
    join_first(table, starts, first, shifts, rows, word, own, links)
    done = uint32(0)
    while True:
        list_extras(
            table, starts, first, shifts, rows, word, own, links, queue, uint32(0), room,
            uint32(slot - done),
        )  # fmt: skip
        cuda.syncthreads()
        if done == uint32(0):
            n = thread
            while n < runs:
                _shorten(table, n)
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
def _root_at(clusters, site):
    """Return the root, in the table, of a site's cluster."""
    word, bit = uint32(site >> uint32(5)), uint32(site & uint32(31))
    return table_root(clusters.table, run_at(clusters.starts, clusters.first, word, bit))


@cuda.jit(device=True)
def _mark_node(clusters, site):
    """Mark the cluster of a site as a node."""
    root = _root_at(clusters, site)
    entry = uint32(cuda.atomic.or_(clusters.table, root, uint32(BORDER)))
    if uint32(entry & uint32(BORDER)) == uint32(0):
        place = uint32(entry & uint32(PLACE))
        bit = uint32(uint32(1) << uint32(place & uint32(31)))
        cuda.atomic.or_(clusters.special, uint32(place >> uint32(5)), bit)


@cuda.jit(device=True)
def _number_node(entry, clusters):
    """Return the number of the node whose root in the table has this entry."""
    word = uint32(uint32(entry & uint32(PLACE)) >> uint32(5))
    below = uint32(uint32(uint32(1) << uint32(entry & uint32(31))) - uint32(1))
    before = popcount(uint32(clusters.special[word] & below))
    return uint32(clusters.numbers[word] + uint32(before))


@cuda.jit(device=True)
def _pair_ends(pair):
    """Return the two ends of a bond across a periodic boundary."""
    return uint32(pair & uint32(_SITE)), uint32(uint32(pair >> uint32(OTHER)) & uint32(_SITE))


@cuda.jit(device=True)
def _pair_word(pair, num_words):
    """Return the bond word of a bond across a periodic boundary."""
    owner = uint32(uint32(pair & uint32(_SITE)) >> uint32(5))
    return uint32(uint32(uint32(pair >> uint32(CLASS)) * num_words) + owner)


@cuda.jit(device=True)
def _mark_nodes(clusters, block, num_planes, planes, beyond):
    """Mark clusters that become nodes, and close the periodic bonds between different spins.

    Returns the numbers of satisfied and open periodic bonds, in the form of :func:`_draw_bonds`.
    """
    counted, num_words = uint32(0), block.num_words
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < uint32(block.pairs.size):
        pair = block.pairs[n]
        i, j = _pair_ends(pair)
        index, bit = _pair_word(pair, num_words), uint32(i & uint32(31))
        is_open = has_bit(beyond[index], bit)
        one = spin_at(planes, uint32(0), num_planes, num_words, i)
        if one == spin_at(planes, uint32(0), num_planes, num_words, j):
            counted = uint32(counted + uint32(1))
            if is_open:
                counted = uint32(counted + uint32(1 << 16))
                _mark_node(clusters, i)
                _mark_node(clusters, j)
        elif is_open:
            cuda.atomic.and_(beyond, index, uint32(~uint32(uint32(1) << bit)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.end_sites.size):
        _mark_node(clusters, block.end_sites[n])
        n = uint32(n + threads)
    return counted


@cuda.jit(device=True)
def _begin_nodes(clusters, runs):
    """Initialize a node for every marked root."""
    n = uint32(cuda.threadIdx.x)
    while n < runs:
        entry = clusters.table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT | BORDER):
            node = _number_node(entry, clusters)
            clusters.forest[node] = uint64(node)
            size = uint32(entry_field(entry) + run_length(entry))
            clusters.info[node] = uint32(size | uint32(n << uint32(RUN)))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _join_nodes(clusters, loops, block, beyond):
    """Join the nodes at the ends of the open periodic bonds, and record which clusters wrap."""
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.pairs.size):
        pair = block.pairs[n]
        i, j = _pair_ends(pair)
        if has_bit(beyond[_pair_word(pair, block.num_words)], uint32(i & uint32(31))):
            one = _number_node(clusters.table[_root_at(clusters, i)], clusters)
            other = _number_node(clusters.table[_root_at(clusters, j)], clusters)
            note_loop(join_over_periods(clusters.forest, one, other, block.codes[n]), 0, loops)
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _gather_nodes(clusters, nodes, block):
    """Add the sites and end layers of all nodes to the roots of the forest."""
    forest, info = clusters.forest, clusters.info
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < nodes:
        root = root_in(forest, n)
        if root != n:
            cuda.atomic.add(info, root, uint32(info[n] & uint32(_SIZE)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < uint32(block.end_sites.size):
        entry = clusters.table[_root_at(clusters, block.end_sites[n])]
        root = root_in(forest, _number_node(entry, clusters))
        flag = uint32(block.end_flags[n] << uint32(ENDS))
        if uint32(info[root] & flag) == uint32(0):
            cuda.atomic.or_(info, root, flag)
        n = uint32(n + threads)


@cuda.jit(device=True)
def _mark_chosen(draw, rule, clusters, block):
    generator, seed, number = draw
    n = uint32(cuda.threadIdx.x)
    while n < rule.seeds:
        site = chosen_site(generator, seed, number, uint64(n), block.points, block.occupied)
        root = _root_at(clusters, site)
        entry = clusters.table[root]
        if uint32(entry & uint32(BORDER)) != uint32(0):
            node = root_in(clusters.forest, _number_node(entry, clusters))
            cuda.atomic.or_(clusters.info, node, uint32(CHOSEN_NODE))
        else:
            cuda.atomic.or_(clusters.table, root, uint32(_CHOSEN))
        n = uint32(n + uint32(cuda.blockDim.x))


@cuda.jit(device=True)
def _change_at(depends, draw, site, is_chosen, rule, digits, num_words):
    """Return the change of the spin of a cluster with this first site."""
    generator, seed, number = draw
    if not depends and rule.by_word != uint32(0):
        return spin_at(digits, uint32(0), rule.planes, num_words, site)
    if not depends:
        return below(keyed_number(generator, seed, number, site), rule.states)
    return spin_change(generator, seed, number, site, is_chosen, rule)


@cuda.jit(device=True)
def _measure(depends, draw, rule, clusters, runs, nodes, digits, num_words, flags):
    """Return a thread's sums over clusters, and write the changes of their spins to the table."""
    table, forest, info = clusters.table, clusters.forest, clusters.info
    sums = _empty()
    n, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    while n < runs:
        entry = table[n]
        if uint32(entry & uint32(ROOT | BORDER)) == uint32(ROOT):
            sums = _with_cluster(sums, uint32(entry_field(entry) + run_length(entry)))
            chosen = depends and uint32(entry & uint32(_CHOSEN)) != uint32(0)
            place = uint32(entry & uint32(PLACE))
            change = _change_at(depends, draw, place, chosen, rule, digits, num_words)
            table[n] = uint32(uint32(entry & uint32(_NO_FIELD)) | uint32(change << uint32(FIELD)))
        n = uint32(n + threads)
    n = uint32(cuda.threadIdx.x)
    while n < nodes:
        root = root_in(forest, n)
        node = info[root]
        if root == n:
            sums = _with_cluster(sums, uint32(node & uint32(_SIZE)))
            ends = uint32(uint32(node >> uint32(ENDS)) & uint32(_ENDS))
            if ends != uint32(0):
                cuda.atomic.or_(flags, 0, uint32(spanning_bits(ends)))
        # Another thread may write the field of this entry meanwhile; its place does not change.
        first = table[uint32(uint32(node >> uint32(RUN)) & uint32(_RUNS))]
        chosen = depends and uint32(node & uint32(CHOSEN_NODE)) != uint32(0)
        place = uint32(first & uint32(PLACE))
        change = _change_at(depends, draw, place, chosen, rule, digits, num_words)
        run = uint32(uint32(info[n] >> uint32(RUN)) & uint32(_RUNS))
        entry = table[run]
        table[run] = uint32(uint32(entry & uint32(_NO_FIELD)) | uint32(change << uint32(FIELD)))
        n = uint32(n + threads)
    return sums


@cuda.jit(device=True)
def _new_spin(depends, rule, num_planes, num_words, planes, word, bit, change):
    """Return the new spin of the run that starts at a bit of a word, given that of its cluster."""
    if not depends:
        return change
    site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(bit)))
    return changed(spin_at(planes, uint32(0), num_planes, num_words, site), change, rule)


@cuda.jit(device=True)
def _chosen_bits(one, bit, two, other, plane):
    """Return ``bit`` if spin ``one`` has a 1 in this plane, and ``other`` if ``two`` has."""
    own = bit if has_bit(one, plane) else uint32(0)
    return uint32(own | other) if has_bit(two, plane) else own


@cuda.jit(device=True)
def _mark_spins(depends, rule, num_planes, clusters, num_words, planes, marks, part):
    """Mark the starts of this thread's runs in the planes of their new spins."""
    word, table = part.word, clusters.table
    if word >= num_words:
        return
    ours, marked = clusters.starts[word], uint32(0)
    own, below = _thread_bits(part)
    left = uint32(ours & own)
    run = uint32(clusters.first[word] + uint32(popcount(uint32(ours & below))))
    while left != uint32(0):
        # Process two runs at a time, so their parents are read together; an odd last one twice.
        bit = uint32(left & uint32(~left + uint32(1)))
        left = uint32(left ^ bit)
        other, next_run = bit, run
        if left != uint32(0):
            other, next_run = uint32(left & uint32(~left + uint32(1))), uint32(run + uint32(1))
        one, two = table[run], table[next_run]
        while one < uint32(ROOT) or two < uint32(ROOT):
            if one < uint32(ROOT):
                one = table[uint32(one >> uint32(FIELD))]
            if two < uint32(ROOT):
                two = table[uint32(two >> uint32(FIELD))]
        one, two = entry_field(one), entry_field(two)
        one = _new_spin(depends, rule, num_planes, num_words, planes, word, bit, one)
        two = _new_spin(depends, rule, num_planes, num_words, planes, word, other, two)
        marked = uint32(marked | _chosen_bits(one, bit, two, other, 0))
        for plane in range(1, num_planes):
            bits = _chosen_bits(one, bit, two, other, plane)
            if bits != uint32(0):
                cuda.atomic.or_(marks, uint32(uint32(uint32(plane) * num_words) + word), bits)
        left = uint32(left & ~other)
        run = uint32(next_run + uint32(1))
    cuda.atomic.or_(marks, word, marked)


@cuda.jit(device=True)
def _paint_word(num_planes, starts, block, planes, marks, part):
    """Give the sites of a word their new spins, equal to those at run starts; clear the marks."""
    word, num_words = part.word, block.num_words
    if word < num_words and part.number == uint32(0):
        # A site without a run ends the run before it.
        there = block.occupied[word]
        edges = uint32(starts[word] | uint32(~there))
        for plane in range(num_planes):
            place = uint32(uint32(uint32(plane) * num_words) + word)
            planes[place] = uint32(fill_segments(marks[place], edges) & there)
            marks[place] = uint32(0)


@cuda.jit(device=True)
def _keep(place, totals, counts, states, flags, first_loop, kept):
    """Store the measurements, and clear the counts for the next sweep; one thread."""
    settle_second(totals)
    _put(kept[place], 0, 1, _take(totals, 0, 1))
    kept[place, SPANNING] = flags[0]
    for n in range(MOST_SUMS):
        totals[n] = uint32(0)
    most, total = uint32(0), uint32(0)
    for state in range(COUNTS, COUNTS + states):
        sites = counts[state]
        most = max(most, sites)
        total = uint32(total + uint32(sites * sites))
        counts[state] = uint32(0)
    kept[place, SATISFIED] = uint32(counts[0] & uint32(0xFFFF))
    kept[place, OPEN_BONDS] = uint32(counts[0] >> uint32(16))
    kept[place, LARGEST_STATE], kept[place, STATE_SQUARES] = most, total
    counts[0], flags[0], first_loop[0] = uint32(0), uint32(0), int32(0)


@cuda.jit(device=True)
def _sweep_chain(depends, generator, chains, clock, count, rule, block, adjacency, memory, kept):
    """Do sweeps of the chain of this block."""
    starts = cuda.shared.array(TILE_WORDS, types.uint32)
    first = cuda.shared.array(TILE_WORDS, types.uint32)
    special = cuda.shared.array(TILE_WORDS, types.uint32)
    numbers = cuda.shared.array(TILE_WORDS, types.uint32)
    chained = cuda.shared.array(TILE_WORDS, types.uint32)
    strips = cuda.shared.array(STRIPS, types.uint32)
    totals = cuda.shared.array(MOST_SUMS, types.uint32)
    counts = cuda.shared.array(MOST_COUNTS, types.uint32)
    flags = cuda.shared.array(1, types.uint32)
    first_loop = cuda.shared.array(1, types.int32)
    table = cuda.shared.array(0, types.uint32)
    part = _choose_part(block.threads)
    entry, word, thread, threads = uint32(cuda.blockIdx.x), part.word, part.thread, part.threads
    num_words, num_planes, classes = block.num_words, int32(rule.planes), len(adjacency.ends)
    plane_words = uint32(uint32(num_planes) * num_words)
    # Dynamic shared memory: the table of runs; links and queue, later the forest of nodes; words of
    # periodic bonds; planes of spins, digits and marks.
    scratch = table[uint32(num_words << uint32(5)) :]
    forest = cuda.shared.array(0, types.uint64)[uint32(num_words << uint32(4)) :]
    queue = scratch[2 * len(block.shifts) * TILE_WORDS :]
    info = scratch[uint32(block.nodes << uint32(1)) :]
    beyond = scratch[block.scratch :]
    planes = beyond[block.exists.size if block.pairs.size != 0 else 0 :]
    digits = planes[plane_words:]
    marks = digits[plane_words:]
    loops = Loops(first_loop, flags, block.axes, block.width)
    clusters = Clusters(table, starts, first, special, numbers, forest, info)
    # Load the spins; nothing is counted yet.
    base = uint32(entry * plane_words)
    for n in range(thread, plane_words, threads):
        planes[n], marks[n] = memory[uint32(base + uint32(n))], uint32(0)
    for n in range(thread, MOST_COUNTS, threads):
        counts[n] = uint32(0)
    if thread == uint32(0):
        for k in range(MOST_SUMS):
            totals[k] = uint32(0)
        flags[0], first_loop[0] = uint32(0), int32(0)
    sweep = clock[entry]
    by_word = not depends and rule.by_word != uint32(0)
    cuda.syncthreads()
    for slot in range(count):
        # 1. Draw the open bonds, find where runs start, draw digits of new spins, and count states.
        sweep = uint64(sweep + uint64(1))
        key = seed_at(chains.bonds[entry], sweep), chains.number[entry], chains.threshold[entry]
        counted = _draw_bonds(
            generator, key, block, adjacency, num_planes, planes, scratch, chained, beyond, part
        )
        there = block.occupied[word] if word < num_words else uint32(0)
        if _has_job(part, max(block.chain, int32(0))):
            if block.chain < int32(0):
                chained[word] = uint32(0)
            starts[word] = uint32(uint32(uint32(~chained[word]) | uint32(1)) & there)
        if by_word and _has_job(part, classes) and word < num_words:
            seed, where = seed_at(chains.spins[entry], sweep), (word, num_words)
            number, none = chains.number[entry], uint32(0)
            write_digits(generator, seed, number, word, num_planes, digits, where, none)
        if _has_job(part, classes + 1):
            special[word] = uint32(0)
            if word < num_words:
                count_states(
                    planes, uint32(0), num_planes, num_words, word, there, rule.states, counts
                )
        cuda.syncthreads()
        # 2. Join the runs of sites to the clusters inside the lattice.
        runs = _join_runs(
            table, starts, first, numbers, chained, strips, scratch, queue, block, part
        )
        nodes = uint32(0)
        # 3. Make clusters that touch a periodic boundary or an end layer nodes, and join these.
        if block.nodes != uint32(0):
            more = _mark_nodes(clusters, block, num_planes, planes, beyond)
            counted = uint32(counted + more)
            cuda.syncthreads()
            before, nodes = _number_block(numbers, uint32(popcount(special[word])), strips, part)
            if part.number == uint32(0):
                numbers[word] = before
            cuda.syncthreads()
            _begin_nodes(clusters, runs)
            cuda.syncthreads()
            _join_nodes(clusters, loops, block, beyond)
            cuda.syncthreads()
            _gather_nodes(clusters, nodes, block)
        # 4. Choose the new spins of clusters, and measure the clusters.
        cuda.atomic.add(counts, 0, counted)
        if depends:
            draw = generator, seed_at(chains.sites[entry], sweep), chains.number[entry]
            _mark_chosen(draw, rule, clusters, block)
        cuda.syncthreads()
        seed, number = uint64(0), uint64(0)
        if not by_word:
            seed, number = seed_at(chains.spins[entry], sweep), chains.number[entry]
        draw = generator, seed, number
        sums = _measure(depends, draw, rule, clusters, runs, nodes, digits, num_words, flags)
        add_atomically(totals, sums)
        cuda.syncthreads()
        add_second(totals, sums)
        # 5. Write the new spins, and keep the numbers of the sweep.
        _mark_spins(depends, rule, num_planes, clusters, num_words, planes, marks, part)
        cuda.syncthreads()
        _paint_word(num_planes, starts, block, planes, marks, part)
        if thread == uint32(threads - uint32(1)):
            place = int64(entry) * int64(count) + int64(slot)
            _keep(place, totals, counts, rule.states, flags, first_loop, kept)
        cuda.syncthreads()
    # Store the spins.
    for n in range(thread, plane_words, threads):
        memory[uint32(base + uint32(n))] = planes[n]
    if thread == uint32(0):
        clock[entry] = sweep


@cuda.jit(cache=True)
def sweep_kernel(generator, chains, clock, count, rule, block, adjacency, planes, kept):
    """Do ``count[0]`` sweeps of every chain, each giving new spins to all clusters.

    One block per chain, with 1, 2 or 4 times ``block.threads`` threads, which is at least
    ``block.num_words`` and LANES.  count: int64 (1,).  kept: uint32 (at least chains * sweeps,
    SPIN_ROW_WIDTH), the results of every sweep, chain by chain.  Dynamic shared memory:
    dynamic_words.
    """
    sweeps = int32(count[0])
    _sweep_chain(False, generator, chains, clock, sweeps, rule, block, adjacency, planes, kept)


@cuda.jit(cache=True)
def sweep_chosen_kernel(generator, chains, clock, count, rule, block, adjacency, planes, kept):
    """Do sweeps that give new spins to the clusters of chosen sites; arguments as above."""
    sweeps = int32(count[0])
    _sweep_chain(True, generator, chains, clock, sweeps, rule, block, adjacency, planes, kept)
