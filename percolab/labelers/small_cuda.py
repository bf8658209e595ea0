"""CUDA: rows of small lattices: a *team* of threads finds the clusters of samples in shared memory.

A team has one thread for each of its words of sites, which belong to several samples or to one.
Its nodes are runs of sites; node ``33 * word + bit`` begins at a bit of a word.  The factor is 33
so that the first runs of words lie in different banks.  A table has one uint32 for each node:

    bits 0-12   the parent, a smaller node; a root is its own
    bits 13-31  while runs are joined, the periods from the parent to the node
    bits 13-25  afterwards the sites of the run, and of the runs below it that were added up
    bits 26-31  the flags of the end layers that these runs touch

* A run's first bond to a smaller site makes its other end the parent, without an atomic.
* Of all bonds that join the same two runs, one is kept.  Each warp has a dense list of these; each
  pass follows three parents and tries one compare-and-swap per pair, and repacks unfinished pairs.
* Bonds across periodic boundaries come last, and add up the periods of the nodes on their paths.
* Links within a word are shortened; then sizes and flags are added to the parents word by word,
  from the last word on.  No node walks to its root.

At further p of a grid the clusters grow (:func:`small_grid_kernel`): a second table has sizes and
flags, and the first keeps the periods.  Newly open bonds are joined over periods, and former roots
add their sizes to the new ones.
"""

from typing import Any, NamedTuple

from numba import int32, int64, types, uint32, uint64

from percolab.kernels.bits import highest_one, lowest_one, popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.neighbours import inner_word, other_bits
from percolab.kernels.runs import fill_segments, low_bits, mark_segment_starts
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.sums import SUMS32
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

#: Threads of a warp, which work in step.  In the simulator they are few, to test more edge cases.
LANES = 4 if SIMULATED else 32
#: The most words of a team of several samples, and the most words of a larger sample.
SHARED_WORDS, MOST_WORDS = LANES, 4 * LANES
#: Entries of the table for each word, and bits of a parent.
WORD_NODES, PARENT_BITS = 33, 13
#: Bits for the periods along all axes, and where the flags of end layers begin.
PERIODS, ENDS = 18, 26
#: The fewest bits of an axis; only the last of four axes has the four bits that are left.
LEAST_WIDTH = 5
#: Room for pairs on the list of a warp; its memory later has the sums of its threads.
PAIRS = 8 * LANES if SIMULATED else 256
_PARENT = (1 << PARENT_BITS) - 1
#: The bit that marks a pair of nodes on a list of bonds; other entries number periodic bonds.
_NODES = 1 << 31
#: In ``Loops.seen``: the mask of loops in two directions; the first bit of the axes spanned.
_TWO, _SPANS = 1 << 28, 29
_FLAGS, _SIZE = 0x3F << ENDS, _PARENT << PARENT_BITS
#: Bits of a word for each thread of a warp.
_BITS = 32 // LANES
_ALL = 0xFFFFFFFF
_empty, _with_cluster, _merged = SUMS32.empty, SUMS32.with_cluster, SUMS32.merged
_put, _take = SUMS32.put, SUMS32.take


class SmallLattice(NamedTuple):
    """A topology of few sites in the form that :func:`small_rows_kernel` takes.

    adjacency:       the other ends of bonds
    exists:          uint32 (num_words,), the sites that exist
    stride:          words of an entry, uint32: of its bonds and, if sites are drawn, its sites
    first_site:      the first word of sites among them, uint32; 0 if no sites are drawn
    together:        entries of a team, uint32
    inside, beyond:  bit masks of classes, uint32: those with bonds within a word, without the
                     chain, and those with bonds from one word to another
    end_masks:       uint32 (flags * num_words,), bit masks of the sites of every end layer; empty
                     where no axis is open
    periodic_places: uint32 (n,), the bonds across periodic boundaries, as numbers 32 * word + bit
                     of an entry
    periodic_owners, periodic_ends: uint32 (n,) each, their sites
    periodic_codes:  int32 (n,), the periods that they cross, ``width`` bits per axis
    axes, width:     int32
    halves:          half the range of an axis' field of a code, in the fields of all axes, uint32
    row_width:       numbers of a row, uint32; ROW_WIDTH + 1 if it includes the openings
    """

    adjacency: Any
    exists: Any
    stride: Any
    first_site: Any
    together: Any
    inside: Any
    beyond: Any
    end_masks: Any
    periodic_places: Any
    periodic_owners: Any
    periodic_ends: Any
    periodic_codes: Any
    axes: Any
    width: Any
    halves: Any
    row_width: Any


class Loops(NamedTuple):
    """The loops found so far, in every entry of a team, that wind around the lattice.

    first: int32 (entries,), the code of the periods along one of them, 0 if there is none yet
    seen:  uint32 (entries,), bits: one in an axis' field of a code if any loop winds around that
           axis; above these fields _TWO, and from _SPANS on the axes that a cluster spans
    """

    first: Any
    seen: Any


class Team(NamedTuple):
    """A team's arrays in shared memory, uint32 each, and the place of this thread in it.

    table:    the nodes
    sizes:    the same table or, where clusters grow, a second one for the sizes and flags
    occupied: the occupied sites of the team's words
    edges:    in the team's words, the bits where a run or a vacancy begins
    pairs:    the list of this warp, ``PAIRS`` places
    words:    the number of words of the team
    word:     this thread's word; there are threads without one
    place:    the place of the word in its entry
    entry:    the entry of the word
    first:    the first entry of the team
    steps:    the number of successive entries of one sample
    number:   the number, in the team, of the word's entry
    is_mine:  whether this thread has a word of an entry
    """

    table: Any
    sizes: Any
    occupied: Any
    edges: Any
    pairs: Any
    words: Any
    word: Any
    place: Any
    entry: Any
    first: Any
    steps: Any
    number: Any
    is_mine: Any


def team_threads(words: int) -> int:
    """Return the number of threads, in whole warps, of a team with this many words."""
    return -(-words // LANES) * LANES


def shared_bytes(words: int, tables: int) -> int:
    """Return the shared memory of a team with this many words and one table or two."""
    warps = team_threads(words) // LANES
    each = tables * WORD_NODES + 2
    return 4 * (each * words + warps * (PAIRS + LANES) + 3 * SHARED_WORDS)


if SIMULATED:

    def _rank(flag, pairs):
        """Return (how many lanes before this one have the flag, how many of the warp)."""
        lane = cuda.threadIdx.x % LANES
        pairs[PAIRS + lane] = flag
        cuda.syncwarp()
        flags = [int(pairs[PAIRS + n]) for n in range(LANES)]
        cuda.syncwarp()
        return sum(flags[:lane]), sum(flags)
else:

    @cuda.jit(device=True)
    def _rank(flag, pairs):
        """Return (how many lanes before this one have the flag, how many of the warp)."""
        lanes = uint32(cuda.ballot_sync(uint32(_ALL), flag))
        lane = uint32(uint32(cuda.threadIdx.x) & uint32(LANES - 1))
        before = uint32(lanes & uint32(uint32(uint32(1) << lane) - uint32(1)))
        return uint32(popcount(before)), uint32(popcount(lanes))


@cuda.jit(device=True)
def _start(edges, bit):
    """Return the bit at which the run of an occupied site begins in its word."""
    return uint32(highest_one(uint32(edges & low_bits(uint32(bit + uint32(1))))))


@cuda.jit(device=True)
def _place(site):
    """Return the table's index of the run that begins at a site of the team."""
    return uint32(site + uint32(site >> uint32(5)))


@cuda.jit(device=True)
def node(team, site):
    """Return the node of an occupied site of the team."""
    word, bit = uint32(site >> uint32(5)), uint32(site & uint32(31))
    return uint32(uint32(word * uint32(WORD_NODES)) + _start(team.edges[word], bit))


@cuda.jit(device=True)
def parent(team, n):
    return uint32(team.table[n] & uint32(_PARENT))


@cuda.jit(device=True)
def load_word(team, lattice, opened):
    """Find the runs of this thread's word, and make its nodes roots.

    If the chain continues from the word before, the first run gets its parent there.
    Return 1 if so, else 0.
    """
    adjacency, word = lattice.adjacency, team.word
    base = uint32(team.entry * lattice.stride)
    occupied, joined = uint32(0), uint32(0)
    if team.is_mine:
        occupied = uint32(lattice.exists[team.place])
        if lattice.first_site:
            occupied = uint32(opened[uint32(uint32(base + lattice.first_site) + team.place)])
        if adjacency.chain >= 0:
            index = uint32(uint32(adjacency.chain) * adjacency.num_words)
            joined = inner_word(opened, adjacency.periodic_words, base, uint32(index + team.place))
    if word < team.words:
        team.occupied[word] = occupied
        # 64 bits let the compiler add the number of a bit to the address.
        first = uint64(word) * uint64(WORD_NODES)
        for bit in range(32):
            team.table[first + uint64(bit)] = uint32(uint32(first) + uint32(bit))
    if lattice.first_site:
        cuda.syncthreads()
        if team.is_mine and joined:
            before = uint32(0)
            if word:
                before = uint32(team.occupied[uint32(word - uint32(1))] >> uint32(31))
            both = uint32(occupied & uint32(uint32(occupied << uint32(1)) | before))
            joined = uint32(joined & both)
    if word < team.words:
        # A run ends where the next run or a vacancy begins; at bit 0, one begins in any case.
        team.edges[word] = uint32(uint32(~joined) | uint32(1))
    cuda.syncthreads()
    chained = uint32(joined & uint32(1))
    if chained:
        before = uint32(uint32(word << uint32(5)) - uint32(1))
        team.table[uint32(word * uint32(WORD_NODES))] = node(team, before)
    return chained


@cuda.jit(device=True)
def count_openings(lattice, opened, entry, place):
    """Return a word's number of occupied sites if sites are drawn, else its number of open bonds.

    place: the place of the word in its entry.
    """
    index, total = uint32(uint32(entry * lattice.stride) + place), uint32(0)
    if lattice.first_site:
        return uint32(popcount(opened[uint32(index + lattice.first_site)]))
    for _ in range(len(lattice.adjacency.ends)):
        total = uint32(total + uint32(popcount(opened[index])))
        index = uint32(index + lattice.adjacency.num_words)
    return total


@cuda.jit(device=True)
def _between(sites, start, count, lattice, k, word, bonds):
    """Return those bonds of class k of a word that have occupied sites at both ends.

    sites: the occupied sites, ``count`` words from ``sites[start]`` on.
    """
    others = other_bits(sites, start, count, lattice.adjacency.ends, k, word, bonds)
    return uint32(bonds & uint32(sites[uint32(start + word)] & others))


@cuda.jit(device=True)
def _read_bonds(team, lattice, opened, k):
    """Return (open bonds of class k of the word, one per pair of runs; other starts).

    Other starts: the run starts around the bonds' other ends, shifted to the owners' bits.
    """
    adjacency, base = lattice.adjacency, uint32(team.entry * lattice.stride)
    index = uint32(uint32(uint32(k) * adjacency.num_words) + team.place)
    bonds = inner_word(opened, adjacency.periodic_words, base, index)
    count, word = team.words, team.word
    if lattice.first_site:
        bonds = _between(team.occupied, uint32(0), count, lattice, k, word, bonds)
    starts = other_bits(team.edges, uint32(0), count, adjacency.ends, k, word, bonds)
    return mark_segment_starts(bonds, uint32(team.edges[word] | starts)), starts


@cuda.jit(device=True)
def join_runs(team, lattice, opened, chained):
    """Join the runs of all words by bonds that are in no chain and cross no periodic boundary."""
    listed = _join_word(team, lattice, opened, chained, False)
    # From here on, every node without a parent is a root.
    cuda.syncthreads()
    if listed > uint32(PAIRS):
        # The list was too short: list the bonds again, and process the list whenever it gets long.
        listed = _join_word(team, lattice, opened, chained, True)
    cuda.syncwarp()
    _join_listed(team, listed)


@cuda.jit(device=True)
def _join_word(team, lattice, opened, chained, is_again):
    """Link runs by their first bonds, and list the other bonds; return the length of the list.

    is_again: do not link, and join the listed pairs when the list gets long.
    """
    adjacency, listed = lattice.adjacency, uint32(0)
    edges, covered = uint32(0), uint32(0)
    if team.is_mine:
        edges = team.edges[team.word]
        covered = fill_segments(chained, edges)
    for k in range(len(adjacency.ends)):
        delta, left, starts = int32(adjacency.ends[k]), uint32(0), uint32(0)
        if k == adjacency.chain:
            continue
        if team.is_mine:
            left, starts = _read_bonds(team, lattice, opened, k)
            firsts = mark_segment_starts(uint32(left & uint32(~covered)), edges)
            covered = uint32(covered | fill_segments(firsts, edges))
            left = uint32(left & uint32(~firsts))
            if is_again:
                firsts = uint32(0)
            while firsts:
                i, j = _find_ends(team, edges, starts, delta, firsts)
                firsts = uint32(firsts & uint32(firsts - uint32(1)))
                team.table[i] = j
        while True:
            place, more = _rank(left != uint32(0), team.pairs)
            if more == uint32(0):
                break
            slot = uint32(listed + place)
            if left != uint32(0) and slot < uint32(PAIRS):
                i, j = _find_ends(team, edges, starts, delta, left)
                team.pairs[slot] = uint32(uint32(i << uint32(16)) | j)
            left = uint32(left & uint32(left - uint32(1))) if left else uint32(0)
            listed = uint32(listed + more)
            if is_again and listed > uint32(PAIRS - LANES):
                cuda.syncwarp()
                _join_listed(team, listed)
                listed = uint32(0)
    return listed


@cuda.jit(device=True)
def _find_ends(team, edges, starts, delta, bonds):
    """Return the nodes at the two ends of the lowest bond of ``bonds``.

    edges: those of the word.  starts: run starts around the other ends, at the owners' bits.
    """
    bit, first = uint32(lowest_one(bonds)), uint32(team.word << uint32(5))
    below = low_bits(uint32(bit + uint32(1)))
    i = uint32(first + uint32(highest_one(uint32(edges & below))))
    starts = uint32(starts & below)
    if starts:
        bit = uint32(highest_one(starts))
        return _place(i), _place(uint32(int32(uint32(first + bit)) + delta))
    # The run at the other end begins before these bits do.
    return _place(i), node(team, uint32(int32(uint32(first + bit)) + delta))


@cuda.jit(device=True)
def _join_listed(team, listed):
    """Join the trees of the listed pairs, the larger root under the smaller."""
    lane = uint32(uint32(cuda.threadIdx.x) & uint32(LANES - 1))
    while listed != uint32(0):
        kept = uint32(0)
        for first in range(uint32(0), listed, LANES):
            k, keep, pair = uint32(uint32(first) + lane), False, uint32(0)
            if k < listed:
                pair = team.pairs[k]
                i, j = uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF))
                for _ in range(3):
                    i, j = parent(team, i), parent(team, j)
                low, high = min(i, j), max(i, j)
                if low != high:
                    old = uint32(cuda.atomic.cas(team.table, high, high, low))
                    keep = old != high and old != low
                    pair = uint32(uint32(old << uint32(16)) | low)
            place, more = _rank(keep, team.pairs)
            # Wait until all lanes have read their pairs.
            cuda.syncwarp()
            if keep:
                team.pairs[uint32(kept + place)] = pair
            kept = uint32(kept + more)
        cuda.syncwarp()
        listed = kept


@cuda.jit(device=True)
def _join_periodic_bonds(team, lattice, opened, samples, loops, listed, is_step):
    """Join the roots by the open bonds across periodic boundaries, and note loops that wrap.

    samples: those of the team.  listed: bonds already on the list.  is_step: leave out bonds that
    were open at the step before, unless sites are drawn.
    """
    each, thread = uint32(lattice.periodic_places.size), uint32(cuda.threadIdx.x)
    # All entries of the team have the same number of threads.
    threads = uint32(uint32(cuda.blockDim.x) // lattice.together)
    number = uint32(thread // threads)
    is_mine = number < samples
    base = uint32(uint32(team.first + uint32(number * team.steps)) * lattice.stride)
    k, left = uint32(thread - uint32(number * threads)), each
    while True:
        is_open = is_mine and k < each
        if is_open:
            is_open = is_periodic_bond_open(team, lattice, opened, base, number, k, is_step)
        place, more = _rank(is_open, team.pairs)
        if is_open:
            team.pairs[uint32(listed + place)] = uint32(uint32(number << uint32(16)) | k)
        listed, k = uint32(listed + more), uint32(k + threads)
        left = uint32(left - min(left, threads))
        if listed > uint32(PAIRS - LANES) or left == uint32(0):
            listed = _join_listed_bonds(team, lattice, listed, loops)
        if left == uint32(0):
            break


@cuda.jit(device=True)
def is_periodic_bond_open(team, lattice, opened, base, number, k, is_step):
    """Return whether the k-th periodic bond of an entry is open and has two occupied sites."""
    bond = lattice.periodic_places[k]
    place = uint32(base + uint32(bond >> uint32(5)))
    word = uint32(opened[place])
    if is_step and lattice.first_site == uint32(0):
        word = uint32(word & uint32(~opened[uint32(place - lattice.stride)]))
    bits = uint32(word >> uint32(bond & uint32(31)))
    if lattice.first_site:
        first = uint32(number * lattice.adjacency.num_words)
        for site in (lattice.periodic_owners[k], lattice.periodic_ends[k]):
            word = team.occupied[uint32(first + uint32(site >> uint32(5)))]
            bits = uint32(bits & uint32(word >> uint32(site & uint32(31))))
    return uint32(bits & uint32(1)) != uint32(0)


@cuda.jit(device=True)
def _periods(entry):
    """Return the periods from the parent to a node, as a code."""
    return int32(int32(uint32(entry)) >> int32(PARENT_BITS))


@cuda.jit(device=True)
def _find_over_periods(team, i, j):
    """Return the roots of two nodes, and the periods from each to its node; shorten both paths.

    Another thread on the same path adds up the same periods, by the old parent or by the root.
    """
    n, m, to_i, to_j, hops = i, j, int32(0), int32(0), uint32(0)
    while True:
        one, other = team.table[i], team.table[j]
        up_i, up_j = uint32(one & uint32(_PARENT)), uint32(other & uint32(_PARENT))
        if up_i == i and up_j == j:
            break
        # The periods from a root to itself are 0.
        to_i, to_j = int32(to_i + _periods(one)), int32(to_j + _periods(other))
        i, j, hops = up_i, up_j, uint32(hops + uint32(1))
    if hops > uint32(1):
        # A node that is a root may get a parent meanwhile.
        if n != i:
            cuda.atomic.exch(team.table, n, uint32(uint32(uint32(to_i) << uint32(PARENT_BITS)) | i))
        if m != j:
            cuda.atomic.exch(team.table, m, uint32(uint32(uint32(to_j) << uint32(PARENT_BITS)) | j))
    return i, j, to_i, to_j


@cuda.jit(device=True)
def _find_bond(team, lattice, n):
    """Return (entry of the team, nodes at both ends, periods) of a bond on a list."""
    if n >= uint32(_NODES):
        i, j = uint32(uint32(n >> uint32(16)) & uint32(_PARENT)), uint32(n & uint32(_PARENT))
        number = uint32(i // uint32(uint32(WORD_NODES) * lattice.adjacency.num_words))
        return number, i, j, int32(0)
    k, number = uint32(n & uint32(0xFFFF)), uint32(n >> uint32(16))
    begin = uint32(uint32(number * lattice.adjacency.num_words) << uint32(5))
    i = node(team, uint32(begin + lattice.periodic_owners[k]))
    j = node(team, uint32(begin + lattice.periodic_ends[k]))
    return number, i, j, int32(lattice.periodic_codes[k])


@cuda.jit(device=True)
def _join_listed_bonds(team, lattice, listed, loops):
    """Join the ends of each listed bond over periods; return 0, the length of the list now."""
    cuda.syncwarp()
    for m in range(uint32(uint32(cuda.threadIdx.x) & uint32(LANES - 1)), listed, LANES):
        number, i, j, code = _find_bond(team, lattice, team.pairs[uint32(m)])
        while True:
            i, j, to_i, to_j = _find_over_periods(team, i, j)
            # The periods from root to root, in the table's encoding.
            code = _periods(uint32(uint32(int32(int32(to_i + code) - to_j)) << uint32(PARENT_BITS)))
            if i == j:
                _note_loop(lattice, code, number, loops)
                break
            low, high, away = min(i, j), max(i, j), code if i < j else int32(-code)
            entry = uint32(uint32(uint32(away) << uint32(PARENT_BITS)) | low)
            if uint32(cuda.atomic.cas(team.table, high, high, entry)) == high:
                break
    cuda.syncwarp()
    return uint32(0)


@cuda.jit(device=True)
def _note_loop(lattice, code, number, loops):
    """Note the periods of a loop of an entry, unless all are 0."""
    if code != int32(0):
        before = int32(cuda.atomic.cas(loops.first, number, int32(0), code))
        # With half its range added, no field borrows from the next, and zeros are recognized.
        moved, halves = uint32(uint32(code) + lattice.halves), lattice.halves
        seen = uint32(moved ^ halves)
        differs = before != int32(0) and before != code and before != int32(-code)
        if differs and not _are_parallel(lattice, moved, uint32(uint32(before) + halves)):
            seen = uint32(seen | uint32(_TWO))
        if uint32(loops.seen[number] & seen) != seen:
            cuda.atomic.or_(loops.seen, number, seen)


@cuda.jit(device=True)
def _are_parallel(lattice, one, other):
    """Return whether two loops wind in one direction or opposite ones; codes with halves added."""
    for a in range(lattice.axes):
        for b in range(a):
            cross = int32(_along(lattice, one, a) * _along(lattice, other, b))
            if cross != int32(_along(lattice, one, b) * _along(lattice, other, a)):
                return False
    return True


@cuda.jit(device=True)
def _along(lattice, moved, axis):
    """Return the periods along an axis of a code with halves added, int32."""
    half = uint32(uint32(1) << uint32(lattice.width - int32(1)))
    field = uint32(uint32(moved >> uint32(axis * lattice.width)) & uint32(half + uint32(half - 1)))
    return int32(int32(field) - int32(half))


@cuda.jit(device=True)
def _wrapping_bits(lattice, seen):
    """Return the bits of a row's flags that follow from an entry's loops."""
    bits = uint32(seen >> uint32(_SPANS))
    for axis in range(lattice.axes):
        field = uint32(uint32(seen & uint32(_TWO - 1)) >> uint32(axis * lattice.width))
        if uint32(field << uint32(32 - lattice.width)):
            bits = uint32(bits | uint32(uint32(1) << uint32(FIRST_WRAPPING + axis)))
    if uint32(seen & uint32(_TWO)):
        bits = uint32(bits | uint32(1 << TWO_DIRECTIONS))
    return bits


@cuda.jit(device=True)
def _shorten_links(team, lattice, grows):
    """Give the runs of the word sizes and flags, and parents that are roots or in earlier words.

    Afterwards ``edges`` has the starts of runs.  Return those that are roots.  grows: a second
    table has the sizes, and the nodes keep their periods.
    """
    word, roots = team.word, uint32(0)
    if not team.is_mine:
        return roots
    edges, occupied = team.edges[word], team.occupied[word]
    first, left = uint32(word * uint32(WORD_NODES)), uint32(edges & occupied)
    # Bits before which the next run or a vacancy begins, or the word ends.
    ends = uint32(uint32(edges >> uint32(1)) | uint32(0x80000000))
    team.edges[word] = left
    while left:
        bit = uint32(lowest_one(left))
        left = uint32(left & uint32(left - uint32(1)))
        n = uint32(first + bit)
        entry = team.table[n]
        up = uint32(entry & uint32(_PARENT))
        if up == n:
            roots = uint32(roots | uint32(uint32(1) << bit))
        elif up >= first:
            # The link of that run has already been shortened.
            if grows:
                team.table[n] = _over_two(entry, team.table[up])
            up = parent(team, up)
        sites = uint32(uint32(lowest_one(uint32(ends >> bit))) + uint32(1))
        sites = uint32(sites << uint32(PARENT_BITS))
        team.sizes[n] = sites if grows else uint32(up | sites)
    _flag_ends(team, lattice, edges, occupied)
    return roots


@cuda.jit(device=True)
def _over_two(entry, above):
    """Return a node's entry after its parent is skipped: the periods of both, the parent above."""
    code = int32(_periods(entry) + _periods(above))
    return uint32(uint32(uint32(code) << uint32(PARENT_BITS)) | uint32(above & uint32(_PARENT)))


@cuda.jit(device=True)
def _above_lowest(word):
    """Return the lowest one of a word, which is not 0, and all bits above it."""
    return uint32(uint32(_ALL) << uint32(lowest_one(word)))


@cuda.jit(device=True)
def _flag_ends(team, lattice, edges, occupied):
    """Give the runs of the word the flags of the end layers that they touch."""
    num_words, masks = lattice.adjacency.num_words, lattice.end_masks
    place, first = team.place, uint32(team.word * uint32(WORD_NODES))
    flag = uint32(1 << ENDS)
    while place < uint32(masks.size):
        left = uint32(masks[place] & occupied)
        while left:
            bit = uint32(lowest_one(left))
            n = uint32(first + _start(edges, bit))
            team.sizes[n] = uint32(team.sizes[n] | flag)
            # The other sites of the run, up to the next edge, need not be examined.
            above = uint32(edges & uint32(uint32(0xFFFFFFFE) << bit))
            left = uint32(left & uint32(_above_lowest(above))) if above else uint32(0)
        flag, place = uint32(flag << uint32(1)), uint32(place + num_words)


@cuda.jit(device=True)
def _words_of_warp(team, lattice):
    """Return (this lane, begin, end): the words of this warp's entries; no link leaves an entry."""
    thread, warps = uint32(cuda.threadIdx.x), uint32(uint32(cuda.blockDim.x) // uint32(LANES))
    each = uint32(uint32(lattice.together + uint32(warps - uint32(1))) // warps)
    each = uint32(each * lattice.adjacency.num_words)
    begin = uint32(uint32(thread // uint32(LANES)) * each)
    return uint32(thread & uint32(LANES - 1)), begin, min(uint32(begin + each), team.words)


@cuda.jit(device=True)
def _add_sizes(team, lattice):
    """Add the sizes and flags of all runs to their parents, from the last word to the first."""
    lane, begin, word = _words_of_warp(team, lattice)
    first = uint32(uint32(word * uint32(WORD_NODES)) + lane)
    while word > begin:
        word, first = uint32(word - uint32(1)), uint32(first - uint32(WORD_NODES))
        starts = uint32(team.edges[word] >> lane)
        for k in range(_BITS):
            if uint32(starts >> uint32(k * LANES)) & uint32(1):
                _add_to_parent(team, uint32(first + uint32(k * LANES)))
        cuda.syncwarp()
    cuda.syncthreads()


@cuda.jit(device=True)
def _add_to_parent(team, n):
    up = parent(team, n)
    if up != n:
        _add_to(team, up, team.sizes[n])


@cuda.jit(device=True)
def _add_to(team, n, entry):
    cuda.atomic.add(team.sizes, n, uint32(entry & uint32(_SIZE)))
    if entry >= uint32(1 << ENDS):
        cuda.atomic.or_(team.sizes, n, uint32(entry & uint32(_FLAGS)))


@cuda.jit(device=True)
def _point_to_roots(team, lattice):
    """Make the roots the parents of all runs, from the first word to the last."""
    lane, word, end = _words_of_warp(team, lattice)
    first = uint32(uint32(word * uint32(WORD_NODES)) + lane)
    while word < end:
        starts = uint32(team.edges[word] >> lane)
        for k in range(_BITS):
            n = uint32(first + uint32(k * LANES))
            if uint32(starts >> uint32(k * LANES)) & uint32(1) and parent(team, n) != n:
                # A root is its own parent, with periods 0.
                team.table[n] = _over_two(team.table[n], team.table[parent(team, n)])
        cuda.syncwarp()
        word, first = uint32(word + uint32(1)), uint32(first + uint32(WORD_NODES))
    cuda.syncthreads()


@cuda.jit(device=True)
def _add_sites(team, lattice, opened, roots):
    """Make roots of the sites that became occupied at this step; return all roots."""
    fresh = uint32(0)
    if team.is_mine:
        index = uint32(uint32(team.entry * lattice.stride) + lattice.first_site)
        occupied = uint32(opened[uint32(index + team.place)])
        fresh = uint32(occupied & uint32(~team.occupied[team.word]))
        edges = uint32(team.edges[team.word] | fresh)
        team.occupied[team.word], team.edges[team.word] = occupied, edges
        first, left = uint32(team.word * uint32(WORD_NODES)), fresh
        while left:
            n = uint32(first + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            team.sizes[n] = uint32(1 << PARENT_BITS)
        _flag_ends(team, lattice, edges, fresh)
    return uint32(roots | fresh)


@cuda.jit(device=True)
def read_new_bonds(team, lattice, opened, k):
    """Return the bonds of class k of the word that have opened since the step before."""
    adjacency, before = lattice.adjacency, uint32(uint32(team.entry - uint32(1)) * lattice.stride)
    index = uint32(uint32(uint32(k) * adjacency.num_words) + team.place)
    base = uint32(before + lattice.stride)
    bonds = inner_word(opened, adjacency.periodic_words, base, index)
    joined = uint32(opened[uint32(before + index)])
    if lattice.first_site:
        bonds = _between(team.occupied, uint32(0), team.words, lattice, k, team.word, bonds)
        sites = uint32(before + lattice.first_site)
        joined = _between(opened, sites, adjacency.num_words, lattice, k, team.place, joined)
    return uint32(bonds & uint32(~joined))


@cuda.jit(device=True)
def _list_new_bonds(team, lattice, opened, loops):
    """List the pairs of runs joined by bonds opened since the step before; return how many."""
    adjacency, listed = lattice.adjacency, uint32(0)
    for k in range(len(adjacency.ends)):
        delta, left = int32(adjacency.ends[k]), uint32(0)
        if team.is_mine:
            left = read_new_bonds(team, lattice, opened, k)
        while True:
            place, more = _rank(left != uint32(0), team.pairs)
            if more == uint32(0):
                break
            if left != uint32(0):
                site = uint32(uint32(team.word << uint32(5)) + uint32(lowest_one(left)))
                left = uint32(left & uint32(left - uint32(1)))
                i, j = node(team, site), node(team, uint32(int32(site) + delta))
                pair = uint32(uint32(i << uint32(16)) | j)
                team.pairs[uint32(listed + place)] = uint32(pair | uint32(_NODES))
            listed = uint32(listed + more)
            if listed > uint32(PAIRS - LANES):
                listed = _join_listed_bonds(team, lattice, listed, loops)
    return listed


@cuda.jit(device=True)
def _hand_on_sizes(team, roots):
    """Add the sizes and flags of former roots to their new roots; return those still roots."""
    first, left = uint32(team.word * uint32(WORD_NODES)), roots
    while left:
        bit = uint32(lowest_one(left))
        left = uint32(left & uint32(left - uint32(1)))
        n = uint32(first + bit)
        up = parent(team, n)
        if up != n:
            roots = uint32(roots & uint32(~uint32(uint32(1) << bit)))
            root = parent(team, up)
            while root != up:
                up = root
                root = parent(team, up)
            _add_to(team, root, team.sizes[n])
    return roots


@cuda.jit(device=True)
def even_bits(flags):
    """Return bits 0, 2 and 4 as bits 0, 1 and 2: those of axes whose two ends a cluster touches."""
    bits = uint32(flags & uint32(1))
    bits = uint32(bits | uint32(uint32(flags >> uint32(1)) & uint32(2)))
    return uint32(bits | uint32(uint32(flags >> uint32(2)) & uint32(4)))


@cuda.jit(device=True)
def _write_rows(team, lattice, roots, loops, counts, sums_of_all, rows):
    """Sum over the roots of every entry, and write the rows.

    counts: the openings of every entry.  sums_of_all: shared memory for all threads' sums.
    """
    thread, threads = uint32(cuda.threadIdx.x), uint32(cuda.blockDim.x)
    sums, spanned, first = _empty(), uint32(0), uint32(team.word * uint32(WORD_NODES))
    while roots:
        entry = team.sizes[uint32(first + uint32(lowest_one(roots)))]
        roots = uint32(roots & uint32(roots - uint32(1)))
        size = uint32(uint32(entry >> uint32(PARENT_BITS)) & uint32(_PARENT))
        sums = _with_cluster(sums, size)
        both = uint32(entry >> uint32(ENDS))
        spanned = uint32(spanned | uint32(both & uint32(both >> uint32(1))))
    if spanned:
        cuda.atomic.or_(loops.seen, team.number, uint32(even_bits(spanned) << uint32(_SPANS)))
    _put(sums_of_all, thread, threads, sums)
    cuda.syncthreads()
    # Half of an entry's threads, rounded up, remain at every step.
    size = lattice.adjacency.num_words
    while size > uint32(1):
        half = uint32(uint32(size + uint32(1)) >> uint32(1))
        if team.is_mine and uint32(team.place + half) < size:
            sums = _merged(sums, _take(sums_of_all, uint32(thread + half), threads))
            _put(sums_of_all, thread, threads, sums)
        cuda.syncthreads()
        size = half
    if team.is_mine and team.place == uint32(0):
        row = int64(team.entry) * int64(lattice.row_width)
        _put(rows, row, 1, sums)
        rows[row + SPANNING] = int64(_wrapping_bits(lattice, loops.seen[team.number]))
        if lattice.row_width > uint32(ROW_WIDTH):
            rows[row + ROW_WIDTH] = int64(counts[team.number])


@cuda.jit(device=True)
def _count_and_wrap(team, lattice, opened, loops, counts, rows):
    """Write only the wrapping bits and the openings of each row."""
    if lattice.row_width > uint32(ROW_WIDTH) and team.is_mine:
        openings = count_openings(lattice, opened, team.entry, team.place)
        cuda.atomic.add(counts, team.number, openings)
    cuda.syncthreads()
    if team.is_mine and team.place == uint32(0):
        row = int64(team.entry) * int64(lattice.row_width)
        rows[row + SPANNING] = int64(_wrapping_bits(lattice, loops.seen[team.number]))
        if lattice.row_width > uint32(ROW_WIDTH):
            rows[row + ROW_WIDTH] = int64(counts[team.number])
    cuda.syncthreads()


@cuda.jit(device=True)
def _measure_samples(lattice, opened, samples, steps, rows, grows, wraps):
    """Write the rows of samples at ``steps`` p; a block of threads takes one team after another.

    grows: a literal, whether clusters grow from p to p; if not, there is one step.  wraps: a
    literal, whether rows get only the wrapping bits and the openings.
    """
    shared, signed = cuda.shared.array(0, types.uint32), cuda.shared.array(0, types.int32)
    together, thread = lattice.together, uint32(cuda.threadIdx.x)
    num_words = lattice.adjacency.num_words
    words, warp = uint32(together * num_words), uint32(thread // uint32(LANES))
    sizes = uint32(uint32(WORD_NODES) * words) if grows else uint32(0)
    occupied = uint32(sizes + uint32(uint32(WORD_NODES) * words))
    edges = uint32(occupied + words)
    seen = uint32(edges + words)
    firsts = uint32(seen + uint32(SHARED_WORDS))
    counted = uint32(firsts + uint32(SHARED_WORDS))
    lists = uint32(counted + uint32(SHARED_WORDS))
    pairs = uint32(lists + uint32(warp * uint32(PAIRS + LANES)))
    loops = Loops(signed[firsts:], shared[seen:])
    counts = shared[counted:]
    number = uint32(thread // num_words)
    place = uint32(thread - uint32(number * num_words))
    first = uint32(cuda.blockIdx.x * together)
    while first < samples:
        if thread < together:
            loops.seen[thread], loops.first[thread] = uint32(0), int32(0)
        roots, own = uint32(0), min(together, uint32(samples - first))
        for step in range(steps):
            entry = uint32(uint32(first * steps) + uint32(step))
            team = Team(
                shared, shared[sizes:], shared[occupied:], shared[edges:], shared[pairs:], words,
                thread, place, uint32(entry + uint32(number * steps)), entry, steps, number,
                thread < words and number < own,
            )  # fmt: skip
            if thread < together:
                counts[thread] = uint32(0)
            is_step, listed = step != 0, uint32(0)
            if not is_step:
                chained = load_word(team, lattice, opened)
                join_runs(team, lattice, opened, chained)
                cuda.syncthreads()
            elif grows:
                if lattice.first_site:
                    roots = _add_sites(team, lattice, opened, roots)
                    cuda.syncthreads()
                listed = _list_new_bonds(team, lattice, opened, loops)
            if lattice.periodic_places.size or is_step:
                _join_periodic_bonds(team, lattice, opened, own, loops, listed, is_step)
                cuda.syncthreads()
            if wraps:
                _count_and_wrap(team, lattice, opened, loops, counts, rows)
                continue
            if not is_step:
                roots = _shorten_links(team, lattice, grows)
                cuda.syncthreads()
                _add_sizes(team, lattice)
                if grows:
                    _point_to_roots(team, lattice)
            elif grows:
                roots = _hand_on_sizes(team, roots)
                cuda.syncthreads()
            if lattice.row_width > uint32(ROW_WIDTH) and team.is_mine:
                openings = count_openings(lattice, opened, team.entry, place)
                cuda.atomic.add(counts, number, openings)
            _write_rows(team, lattice, roots, loops, counts, shared[lists:], rows)
            cuda.syncthreads()
        first = uint32(first + uint32(cuda.gridDim.x * together))


@cuda.jit(cache=True, max_registers=64)
def small_rows_kernel(lattice, opened, entries, rows):
    """Write the rows of entries.

    opened: uint32, ``lattice.stride`` words of every entry.  rows: int64, ``lattice.row_width`` of
    every entry.
    """
    _measure_samples(lattice, opened, entries, uint32(1), rows, False, False)


@cuda.jit(cache=True, max_registers=64)
def small_wrapping_kernel(lattice, opened, entries, rows):
    """Write only the wrapping bits and the openings of the rows of entries on tori.

    Arguments as for :func:`small_rows_kernel`.
    """
    _measure_samples(lattice, opened, entries, uint32(1), rows, False, True)


@cuda.jit(cache=True, max_registers=64)
def small_grid_kernel(lattice, opened, samples, steps, rows):
    """Write the rows of samples at ascending p; the entries of a sample follow one another.

    steps: the number of p, uint32; other arguments as for :func:`small_rows_kernel`.
    """
    _measure_samples(lattice, opened, samples, steps, rows, True, False)
