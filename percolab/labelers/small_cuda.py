"""CUDA: rows of small lattices, a warp a *team* of samples that share no site.

A team has up to 32 words of sites, of one sample or of several, or all words of a larger sample.
Its nodes are runs of sites; node ``33 * word + bit`` begins at a bit of a word of the team, one
place more a word, so that the first runs of words lie in different banks of shared memory.  A table
holds one uint32 a node:

    bits 0-12   the parent, a smaller node; a root is its own
    bits 13-31  while runs are joined, the periods from the parent to the node
    bits 13-25  afterwards the sites of the run, and of the runs below it that were added up
    bits 26-31  at a root, the flags of the end layers that the cluster touches

* A run's first bond to a smaller site makes its other end the parent: that takes no atomic.
* Of all bonds that join the same two runs one is left.  They form one dense list; a pass over it
  follows three parents and tries one compare-and-swap for each, and what is not done is packed.
* What crosses periodic seams comes last, with the periods of the nodes met on the way.
* Links within a word are shortened; then sizes are added to the parents word by word, from the
  last on.  No node walks to its root.
"""

from typing import Any, NamedTuple

from numba import config, int32, int64, types, uint32

from percolab.kernels.bits import highest_one, lowest_one, popcount
from percolab.kernels.device import load_cuda
from percolab.kernels.neighbours import inner_word, other_bits
from percolab.kernels.runs import fill_segments, low_bits, mark_segment_starts
from percolab.measure.rows import ROW_WIDTH, SPANNING, spanning_bits
from percolab.measure.sums import NUMBERS, SUMS32
from percolab.measure.wrapping_cuda import Loops, note_loop

cuda = load_cuda()

SIMULATED = bool(config.ENABLE_CUDASIM)
#: Threads of a team, which work in step.  The simulator gets few, which meet more edges.
LANES = 4 if SIMULATED else 32
#: Words of a team of several samples, at most, and those of a larger sample.
SHARED_WORDS, MOST_WORDS = 32, 128
#: Places that a word takes in the table, and bits of a parent.
WORD_NODES, PARENT_BITS = 33, 13
#: Bits for the periods along all axes, and where the flags of end layers begin.
PERIODS, ENDS = 18, 26
#: Pairs that are listed at a time, at least.
_PAIRS = 8 * LANES if SIMULATED else 512
_PARENT = (1 << PARENT_BITS) - 1
_ALL = 0xFFFFFFFF
_empty, _with_cluster, _merged = SUMS32.empty, SUMS32.with_cluster, SUMS32.merged
_put, _take = SUMS32.put, SUMS32.take


class SmallLattice(NamedTuple):
    """A topology of few sites, as :func:`small_rows_kernel` takes it.

    adjacency:  where its bonds lead
    exists:     uint32 (num_words,), the sites that there are
    stride:     words of an item: of its bonds and, where sites are drawn, of its sites, uint32
    first_site: the first word of sites among them, 0 where none are drawn, uint32
    together:   items of a team, uint32
    end_sites, end_flags: uint32 (n,) each, the sites of end layers and their flags
    seam_places: uint32 (n,), the bonds across seams, as numbers 32 * word + bit of an item
    seam_owners, seam_ends: uint32 (n,) each, their sites
    seam_codes: int32 (n,), over how many periods they lead, ``width`` bits an axis
    axes, width: int32
    """

    adjacency: Any
    exists: Any
    stride: Any
    first_site: Any
    together: Any
    end_sites: Any
    end_flags: Any
    seam_places: Any
    seam_owners: Any
    seam_ends: Any
    seam_codes: Any
    axes: Any
    width: Any


class Team(NamedTuple):
    """What a team keeps in shared memory, uint32 each.

    table:    the nodes
    occupied: the occupied sites of its words
    edges:    where runs begin or a vacancy does, of its words
    chained:  1 for a word whose first run the chain joins to the word before
    pairs:    the list of runs to be joined, ``room`` places
    item:     the number of its first item
    words:    its words
    """

    table: Any
    occupied: Any
    edges: Any
    chained: Any
    pairs: Any
    room: Any
    item: Any
    words: Any


def shared_bytes(words: int) -> int:
    """Return the shared memory of a team of so many words."""
    return 4 * ((WORD_NODES + 3) * words + pairs_room(words) + 2 * SHARED_WORDS + LANES)


def pairs_room(words: int) -> int:
    """Return the places of a team's list, where its words are summed later."""
    return max(_PAIRS, NUMBERS * words)


if SIMULATED:

    def _sync():
        cuda.syncthreads()

    def _rank(flag, pairs, room):
        """Return (how many lanes before this one have the flag, how many of all)."""
        lane = cuda.threadIdx.x
        place = int(room) + 2 * SHARED_WORDS
        pairs[place + lane] = flag
        cuda.syncthreads()
        flags = [int(pairs[place + n]) for n in range(LANES)]
        cuda.syncthreads()
        return sum(flags[:lane]), sum(flags)
else:

    @cuda.jit(device=True)
    def _sync():
        cuda.syncwarp()

    @cuda.jit(device=True)
    def _rank(flag, pairs, room):
        """Return (how many lanes before this one have the flag, how many of all)."""
        lanes = uint32(cuda.ballot_sync(uint32(_ALL), flag))
        before = uint32(lanes & uint32(uint32(uint32(1) << uint32(cuda.threadIdx.x)) - uint32(1)))
        return uint32(popcount(before)), uint32(popcount(lanes))


@cuda.jit(device=True)
def _node(team, site):
    """Return the node of an occupied site of the team."""
    word, bit = uint32(site >> uint32(5)), uint32(site & uint32(31))
    starts = uint32(team.edges[word] & low_bits(uint32(bit + uint32(1))))
    return uint32(uint32(word * uint32(WORD_NODES)) + uint32(highest_one(starts)))


@cuda.jit(device=True)
def _parent(team, n):
    return uint32(team.table[n] & uint32(_PARENT))


@cuda.jit(device=True)
def _root(team, n):
    parent = _parent(team, n)
    while parent != n:
        n = parent
        parent = _parent(team, n)
    return n


@cuda.jit(device=True)
def _load_words(team, lattice, opened, items):
    """Find the runs of the team's words, and make every node a root.

    The first run of a word has its parent in the word before if the chain goes on there.
    """
    lane, adjacency = uint32(cuda.threadIdx.x), lattice.adjacency
    num_words = adjacency.num_words
    for t in range(lane, team.words, LANES):
        word, ours = uint32(uint32(t) % num_words), uint32(t)
        item = uint32(team.item + uint32(ours // num_words))
        occupied, joined = uint32(0), uint32(0)
        if item < items:
            base = uint32(item * lattice.stride)
            occupied = uint32(lattice.exists[word])
            if lattice.first_site:
                occupied = uint32(opened[uint32(uint32(base + lattice.first_site) + word)])
            if adjacency.chain >= 0:
                index = uint32(uint32(uint32(adjacency.chain) * num_words) + word)
                joined = inner_word(opened, adjacency.seam, base, index)
        team.occupied[ours], team.edges[ours] = occupied, joined
    _sync()
    if lattice.first_site:
        _close_chain(team)
    for t in range(lane, team.words, LANES):
        ours = uint32(t)
        joined = team.edges[ours]
        # A run ends where the next begins or a vacancy does; bit 0 begins one in any case.
        team.chained[ours] = uint32(joined & uint32(1))
        team.edges[ours] = uint32(uint32(~joined) | uint32(1))
        first = uint32(ours * uint32(WORD_NODES))
        for bit in range(uint32(32)):
            n = uint32(first + uint32(bit))
            team.table[n] = n
    _sync()
    for t in range(lane, team.words, LANES):
        ours = uint32(t)
        if team.chained[ours]:
            before = uint32(uint32(ours << uint32(5)) - uint32(1))
            team.table[uint32(ours * uint32(WORD_NODES))] = _node(team, before)
    _sync()


@cuda.jit(device=True)
def _close_chain(team):
    """Close the chain bonds that have a vacant site."""
    for t in range(uint32(cuda.threadIdx.x), team.words, LANES):
        ours = uint32(t)
        occupied, before = team.occupied[ours], uint32(0)
        if ours:
            before = uint32(team.occupied[uint32(ours - uint32(1))] >> uint32(31))
        both = uint32(occupied & uint32(uint32(occupied << uint32(1)) | before))
        team.edges[ours] = uint32(team.edges[ours] & both)


@cuda.jit(device=True)
def _read_bonds(team, lattice, opened, word, item, k):
    """Return the open bonds of class k of a word of the team, one for each two runs it joins."""
    adjacency, base = lattice.adjacency, uint32(item * lattice.stride)
    place = uint32(word % adjacency.num_words)
    index = uint32(uint32(uint32(k) * adjacency.num_words) + place)
    found = inner_word(opened, adjacency.seam, base, index)
    count, ends = team.words, adjacency.ends
    if lattice.first_site:
        others = other_bits(team.occupied, uint32(0), count, ends, k, word, found)
        found = uint32(found & uint32(team.occupied[word] & others))
    starts = other_bits(team.edges, uint32(0), count, ends, k, word, found)
    return mark_segment_starts(found, uint32(team.edges[word] | starts))


@cuda.jit(device=True)
def _join_runs(team, lattice, opened, items):
    """Join the runs of all words by their bonds that are no chain bonds and cross no seam."""
    adjacency, listed = lattice.adjacency, uint32(0)
    for first in range(uint32(0), team.words, LANES):
        word = uint32(uint32(first) + uint32(cuda.threadIdx.x))
        item = uint32(team.item + uint32(word // adjacency.num_words))
        is_mine = word < team.words and item < items
        # First bonds are links, then the others are listed: what is joined is no root any more.
        for is_extra in range(2):
            edges, covered = uint32(0), uint32(0)
            if is_mine:
                edges = team.edges[word]
                covered = fill_segments(team.chained[word], edges)
            for k in range(len(adjacency.ends)):
                delta, left = int32(adjacency.ends[k]), uint32(0)
                if k != adjacency.chain and is_mine:
                    left = _read_bonds(team, lattice, opened, word, item, k)
                    firsts = mark_segment_starts(uint32(left & uint32(~covered)), edges)
                    covered = uint32(covered | fill_segments(firsts, edges))
                    left = uint32(left & uint32(~firsts))
                    if not is_extra:
                        _link_runs(team, firsts, word, delta)
                if is_extra:
                    listed = _list_pairs(team, left, word, delta, listed)
    _sync()
    _join_listed(team, listed)


@cuda.jit(device=True)
def _link_runs(team, firsts, word, delta):
    """Make the runs at the other ends of first bonds the parents of theirs."""
    while firsts:
        site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(firsts)))
        firsts = uint32(firsts & uint32(firsts - uint32(1)))
        team.table[_node(team, site)] = _node(team, uint32(int32(site) + delta))


@cuda.jit(device=True)
def _list_pairs(team, left, word, delta, listed):
    """List the runs at both ends of the bonds that are left of a word; return how many there are.

    Where the list gets too long, its pairs are joined first.
    """
    while True:
        place, more = _rank(left != uint32(0), team.pairs, team.room)
        if more == uint32(0):
            return listed
        if left != uint32(0):
            site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            i, j = _node(team, site), _node(team, uint32(int32(site) + delta))
            team.pairs[uint32(listed + place)] = uint32(uint32(i << uint32(16)) | j)
        listed = uint32(listed + more)
        if listed > uint32(team.room - uint32(LANES)):
            _sync()
            _join_listed(team, listed)
            listed = uint32(0)


@cuda.jit(device=True)
def _join_listed(team, listed):
    """Join the trees of the listed pairs, the larger root under the smaller."""
    lane = uint32(cuda.threadIdx.x)
    while listed != uint32(0):
        kept = uint32(0)
        for first in range(uint32(0), listed, LANES):
            k, keep, pair = uint32(uint32(first) + lane), False, uint32(0)
            if k < listed:
                pair = team.pairs[k]
                i, j = uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF))
                for _ in range(3):
                    i, j = _parent(team, i), _parent(team, j)
                low, high = min(i, j), max(i, j)
                if low != high:
                    old = uint32(cuda.atomic.cas(team.table, high, high, low))
                    keep = old != high and old != low
                    pair = uint32(uint32(old << uint32(16)) | low)
            place, more = _rank(keep, team.pairs, team.room)
            if keep:
                team.pairs[uint32(kept + place)] = pair
            kept = uint32(kept + more)
        _sync()
        listed = kept


@cuda.jit(device=True)
def _join_seams(team, lattice, opened, items, loops):
    """Join the roots by the open bonds across seams, and note what winds around the lattice."""
    lane, each = uint32(cuda.threadIdx.x), uint32(lattice.seam_places.size)
    listed, every = uint32(0), uint32(each * lattice.together)
    first = uint32(0)
    while first < every:
        n = uint32(first + lane)
        is_open = n < every and _is_open(team, lattice, opened, items, n)
        place, more = _rank(is_open, team.pairs, team.room)
        if is_open:
            team.pairs[uint32(listed + place)] = n
        listed = uint32(listed + more)
        first = uint32(first + uint32(LANES))
        if listed > uint32(team.room - uint32(LANES)) or first >= every:
            _sync()
            while listed != uint32(0):
                listed = _join_listed_seams(team, lattice, listed, loops)


@cuda.jit(device=True)
def _is_open(team, lattice, opened, items, n):
    """Return whether bond n across the seams of a team is open; both its sites are occupied."""
    each = uint32(lattice.seam_places.size)
    k, number = uint32(n % each), uint32(n // each)
    if uint32(team.item + number) >= items:
        return False
    bond = lattice.seam_places[k]
    base = uint32(uint32(team.item + number) * lattice.stride)
    word = uint32(opened[uint32(base + uint32(bond >> uint32(5)))])
    found = uint32(word >> uint32(bond & uint32(31)))
    if lattice.first_site:
        first = uint32(number * lattice.adjacency.num_words)
        for site in (lattice.seam_owners[k], lattice.seam_ends[k]):
            word = team.occupied[uint32(first + uint32(site >> uint32(5)))]
            found = uint32(found & uint32(word >> uint32(site & uint32(31))))
    return uint32(found & uint32(1)) != uint32(0)


@cuda.jit(device=True)
def _periods(entry):
    """Return the periods from the parent to a node, as a code."""
    return int32(int32(uint32(entry)) >> int32(PARENT_BITS))


@cuda.jit(device=True)
def _find_over_periods(team, n, code):
    """Return (the root of a node, the periods from it to the node and ``code`` more)."""
    entry = team.table[n]
    while uint32(entry & uint32(_PARENT)) != n:
        code = int32(code + _periods(entry))
        n = uint32(entry & uint32(_PARENT))
        entry = team.table[n]
    return n, code


@cuda.jit(device=True)
def _join_listed_seams(team, lattice, listed, loops):
    """Try to join the sites of each listed seam bond; return how many are left on the list."""
    lane, each = uint32(cuda.threadIdx.x), uint32(lattice.seam_places.size)
    kept = uint32(0)
    for first in range(uint32(0), listed, LANES):
        m, keep, n = uint32(uint32(first) + lane), False, uint32(0)
        if m < listed:
            n = team.pairs[m]
            k, number = uint32(n % each), uint32(n // each)
            begin = uint32(uint32(number * lattice.adjacency.num_words) << uint32(5))
            i = _node(team, uint32(begin + lattice.seam_owners[k]))
            j = _node(team, uint32(begin + lattice.seam_ends[k]))
            i, to_i = _find_over_periods(team, i, int32(lattice.seam_codes[k]))
            j, to_j = _find_over_periods(team, j, int32(0))
            # As the table keeps them.
            wound = _periods(uint32(uint32(int32(to_i - to_j)) << uint32(PARENT_BITS)))
            if i == j:
                note_loop(wound, number, loops)
            else:
                low, high, code = min(i, j), max(i, j), wound if i < j else int32(-wound)
                entry = uint32(uint32(uint32(code) << uint32(PARENT_BITS)) | low)
                keep = uint32(cuda.atomic.cas(team.table, high, high, entry)) != high
        place, more = _rank(keep, team.pairs, team.room)
        if keep:
            team.pairs[uint32(kept + place)] = n
        kept = uint32(kept + more)
    _sync()
    return kept


@cuda.jit(device=True)
def _add_sizes(team):
    """Add the sites of all runs to the roots."""
    lane = uint32(cuda.threadIdx.x)
    for t in range(lane, team.words, LANES):
        word = uint32(t)
        edges = team.edges[word]
        first, left = uint32(word * uint32(WORD_NODES)), uint32(edges & team.occupied[word])
        # Where the next run, or a vacancy, begins; or the end of the word.
        ends = uint32(uint32(edges >> uint32(1)) | uint32(0x80000000))
        while left:
            bit = uint32(lowest_one(left))
            left = uint32(left & uint32(left - uint32(1)))
            n = uint32(first + bit)
            up = _parent(team, n)
            if up >= first:
                # That run's link was shortened before; a root's parent is itself.
                up = _parent(team, up)
            sites = uint32(uint32(lowest_one(uint32(ends >> bit))) + uint32(1))
            team.table[n] = uint32(up | uint32(sites << uint32(PARENT_BITS)))
    _sync()
    word = team.words
    while word > uint32(0):
        word = uint32(word - uint32(1))
        starts = uint32(team.edges[word] & team.occupied[word])
        for bit in range(lane, uint32(32), LANES):
            if uint32(starts >> uint32(bit)) & uint32(1):
                n = uint32(uint32(word * uint32(WORD_NODES)) + uint32(bit))
                entry = team.table[n]
                up = uint32(entry & uint32(_PARENT))
                if up != n:
                    cuda.atomic.add(team.table, up, uint32(entry & uint32(~uint32(_PARENT))))
        _sync()


@cuda.jit(device=True)
def _flag_ends(team, lattice, flags):
    """Note which clusters touch end layers, and which axes are spanned."""
    each = uint32(lattice.end_sites.size)
    for m in range(uint32(cuda.threadIdx.x), uint32(each * lattice.together), LANES):
        k, number = uint32(uint32(m) % each), uint32(uint32(m) // each)
        begin = uint32(uint32(number * lattice.adjacency.num_words) << uint32(5))
        site = uint32(begin + lattice.end_sites[k])
        word = team.occupied[uint32(site >> uint32(5))]
        if uint32(word >> uint32(site & uint32(31))) & uint32(1):
            root, flag = _root(team, _node(team, site)), lattice.end_flags[k]
            if uint32(uint32(team.table[root] >> uint32(ENDS)) & flag) == uint32(0):
                mark = uint32(flag << uint32(ENDS))
                old = uint32(cuda.atomic.or_(team.table, root, mark))
                bits = spanning_bits(uint32(uint32(old >> uint32(ENDS)) | flag))
                if bits:
                    cuda.atomic.or_(flags, number, uint32(bits))
    _sync()


@cuda.jit(device=True)
def _write_rows(team, lattice, items, flags, rows):
    """Sum over the roots of every item, and write the rows."""
    lane, num_words = uint32(cuda.threadIdx.x), lattice.adjacency.num_words
    for t in range(lane, team.words, LANES):
        word, sums = uint32(t), _empty()
        first = uint32(word * uint32(WORD_NODES))
        left = uint32(team.edges[word] & team.occupied[word])
        while left:
            n = uint32(first + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            entry = team.table[n]
            if uint32(entry & uint32(_PARENT)) == n:
                size = uint32(uint32(entry >> uint32(PARENT_BITS)) & uint32(_PARENT))
                sums = _with_cluster(sums, size)
        _put(team.pairs, word, team.words, sums)
    _sync()
    # A tree: half of an item's words, rounded up, remain at every step.
    size = num_words
    while size > uint32(1):
        half = uint32(uint32(size + uint32(1)) >> uint32(1))
        for t in range(lane, team.words, LANES):
            word = uint32(t)
            if uint32(uint32(word % num_words) + half) < size:
                own, other = _take(team.pairs, word, team.words), uint32(word + half)
                sums = _merged(own, _take(team.pairs, other, team.words))
                _put(team.pairs, word, team.words, sums)
        _sync()
        size = half
    for number in range(lane, lattice.together, LANES):
        item = uint32(team.item + uint32(number))
        if item < items:
            sums = _take(team.pairs, uint32(uint32(number) * num_words), team.words)
            _put(rows, int64(item) * int64(ROW_WIDTH), 1, sums)
            rows[int64(item) * int64(ROW_WIDTH) + SPANNING] = int64(flags[uint32(number)])


@cuda.jit(cache=True)
def small_rows_kernel(lattice, opened, items, rows):
    """Write the rows of items; a block is a team of LANES threads, which takes one after another.

    opened: uint32, ``lattice.stride`` words of every item.  rows: int64 (items * ROW_WIDTH,).
    """
    shared, signed = cuda.shared.array(0, types.uint32), cuda.shared.array(0, types.int32)
    together, lane = lattice.together, uint32(cuda.threadIdx.x)
    words = uint32(together * lattice.adjacency.num_words)
    room = max(uint32(_PAIRS), uint32(uint32(NUMBERS) * words))
    occupied = uint32(uint32(WORD_NODES) * words)
    edges = uint32(occupied + words)
    chained = uint32(edges + words)
    pairs = uint32(chained + words)
    flags = uint32(pairs + room)
    firsts = uint32(flags + uint32(SHARED_WORDS))
    loops = Loops(signed[firsts:], shared[flags:], lattice.axes, lattice.width)
    item = uint32(cuda.blockIdx.x * together)
    while item < items:
        for number in range(lane, together, LANES):
            loops.flags[uint32(number)], loops.first[uint32(number)] = uint32(0), int32(0)
        team = Team(
            shared, shared[occupied:], shared[edges:], shared[chained:], shared[pairs:],
            room, item, words,
        )  # fmt: skip
        _load_words(team, lattice, opened, items)
        _join_runs(team, lattice, opened, items)
        if lattice.seam_places.size:
            _join_seams(team, lattice, opened, items, loops)
        _add_sizes(team)
        if lattice.end_sites.size:
            _flag_ends(team, lattice, loops.flags)
        _write_rows(team, lattice, items, loops.flags, rows)
        _sync()
        item = uint32(item + uint32(cuda.gridDim.x * together))
