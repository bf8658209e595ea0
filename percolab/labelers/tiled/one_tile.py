"""CUDA: the clusters of one tile, found in shared memory with runs of sites as nodes.

A tile is a box of words, numbered row by row, with one thread per word.  Its runs are numbered in
the order of their first sites, strip by strip; a *strip* is the words of one warp.  A run's first
bond upwards makes its other end the run's parent: this needs no atomic, as only the run's own
thread does it, and builds most of the tree before the first union.  All other bonds, the *extra*
bonds, may join two trees each, and are listed, so that all lanes of a warp have one.

Every run adds its sites to the root of that first tree; when two trees are joined, the size of the
former root is added to the new one.

A table has one uint32 for each run, at ``strip * STRIP_NODES + number``:

    bits 0-11   the run's first site in the tile, 32 * word + bit
    bits 12-16  the sites of the run less one
    bit 17      at a root: the cluster holds a border site
    bits 19-30  the parent; at a root, the number of sites of the cluster's other runs, later the
                number of its node
    bit 31      this run is a root
"""

from numba import int32, uint32

from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.runs import bits_at, fill_segments, low_bits, mark_segment_starts

#: Threads that work in step.  In the simulator tiles are tiny, to test more edge cases.
LANES = 4 if SIMULATED else 32
STRIPS = 2 if SIMULATED else 4
TILE_WORDS = LANES * STRIPS
TILE_NODES = 32 * TILE_WORDS
STRIP_NODES = 32 * LANES
#: The number of totals, two for every strip: its runs and its extra bonds.
TOTALS = 2 * STRIPS
PLACE = 0xFFF
LENGTH = 12
BORDER = 1 << 17
FIELD = 19
ROOT = 1 << 31
#: Flags in the 16 bits stored for a run: its cluster is at the tile's border; or it is a finished
#: cluster of one site.
KEPT_BORDER, KEPT_SINGLE = 1 << 15, 1 << 14
_BELOW_FIELD = (1 << FIELD) - 1

if SIMULATED:

    def sync_strip():
        cuda.syncthreads()

    def _rejoin():
        pass
else:

    @cuda.jit(device=True)
    def sync_strip():
        cuda.syncwarp()

    @cuda.jit(device=True)
    def _rejoin():
        # Otherwise, lanes that finish early would continue alone.
        cuda.syncwarp()


@cuda.jit(device=True)
def entry_field(entry):
    """Return the size or the node number that a root's table entry holds."""
    return uint32(uint32(entry >> uint32(FIELD)) & uint32(0xFFF))


@cuda.jit(device=True)
def run_length(entry):
    """Return the number of sites of the run of a table entry."""
    return uint32(uint32(uint32(entry >> uint32(LENGTH)) & uint32(31)) + uint32(1))


@cuda.jit(device=True)
def table_root(table, n):
    """Return the root of a run's tree in the table."""
    entry = table[n]
    while entry < uint32(ROOT):
        n = uint32(entry >> uint32(FIELD))
        entry = table[n]
    return n


@cuda.jit(device=True)
def list_root(table, root, counter, queue, room):
    """Mark a root as one that becomes a node, and list it when it is first found."""
    if uint32(cuda.atomic.or_(table, root, uint32(BORDER)) & uint32(BORDER)) == uint32(0):
        number = cuda.atomic.add(counter, 0, uint32(1))
        if number < room:
            queue[number] = root


@cuda.jit(device=True)
def with_parent(entry, parent):
    """Return the entry of a root once it has a parent."""
    return uint32(uint32(entry & uint32(_BELOW_FIELD)) | uint32(parent << uint32(FIELD)))


@cuda.jit(device=True)
def _table_union(table, i, j):
    """Join the trees of two runs, the larger root under the smaller, by one compare-and-swap.

    Return the former root and its previous entry, or (0, 0) if the trees were one already.
    """
    i, j = table_root(table, i), table_root(table, j)
    while i != j:
        if i < j:
            i, j = j, i
        entry = table[i]
        if (
            entry >= uint32(ROOT)
            and cuda.atomic.cas(table, i, entry, with_parent(entry, j)) == entry
        ):
            return i, entry
        i = table_root(table, i)
    return uint32(0), uint32(0)


@cuda.jit(device=True)
def count_starts(starts, bit):
    """Return how many runs start at or below a bit of a word."""
    return uint32(popcount(uint32(starts & low_bits(uint32(bit + uint32(1))))))


@cuda.jit(device=True)
def other_starts(starts, word, shift, row):
    """Return the run starts around the other ends of a class's bonds, shifted to owners' bits."""
    far = int32(int32(word) + int32(row + (shift >> 5)))
    places = uint32(shift & 31)
    bits = uint32(0)
    if far >= int32(0):
        bits = uint32(starts[uint32(far)] >> places)
    if places != uint32(0) and far < int32(TILE_WORDS - 1):
        following = starts[uint32(far + int32(1))]
        bits = uint32(bits | uint32(following << uint32(uint32(32) - places)))
    return bits


@cuda.jit(device=True)
def before_first(starts, first, word, shift, row, others):
    """Return the offset from a rank among ``others`` to the number of its run, plus one.

    The other ends of a word's bonds lie in up to two words of a row, whose runs follow one another.
    The count begins at the word that is certainly in that row.
    """
    far = int32(int32(word) + int32(row + (shift >> 5)))
    places = uint32(shift & 31)
    if places == uint32(0):
        return first[uint32(far)]
    if shift < 0:
        before = uint32(popcount(uint32(others & low_bits(uint32(32) - places))))
        return uint32(first[uint32(far + int32(1))] - before)
    inside = uint32(starts[uint32(far)] & low_bits(places))
    return uint32(first[uint32(far)] + uint32(popcount(inside)))


@cuda.jit(device=True)
def load_chain(tiles, opened, base, site, count):
    """Return a word's chain bonds inside the tile; the entry's words start at ``opened[base]``."""
    if tiles.chain < 0 or count == uint32(0):
        return uint32(0)
    index = uint32(uint32(tiles.chain) * tiles.num_words)
    joined = bits_at(tiles.inner, index, site, count)
    return uint32(joined & bits_at(opened, uint32(base + index), site, count))


@cuda.jit(device=True)
def _load_bonds(tiles, opened, base, site, count, word, links):
    """Read a word's bonds inside the tile that are no chain bonds into ``links``."""
    classes = tiles.classes
    for c in range(len(classes)):
        bonds = uint32(0)
        if count > uint32(0):
            index = uint32(uint32(classes[c]) * tiles.num_words)
            bonds = bits_at(tiles.inner, index, site, count)
            bonds = uint32(bonds & bits_at(opened, uint32(base + index), site, count))
        links[2 * c * TILE_WORDS + word] = bonds


@cuda.jit(device=True)
def split_bonds(starts, edges, joined, shifts, rows, word, links):
    """Split a word's bonds into first bonds, one per run, and extra ones; count the extra ones.

    Of all bonds that join the same two runs, one is kept.  ``links`` has the bonds of class c at
    2 * c and gets the extra ones at 2 * c + 1, each TILE_WORDS long.
    """
    # If a run is joined to the word before by a chain bond, that is its first bond.
    covered = fill_segments(uint32(joined & uint32(1)), edges)
    extras = uint32(0)
    for c in range(len(shifts)):
        place = uint32(uint32(2 * c * TILE_WORDS) + uint32(word))
        bonds = links[place]
        if bonds != uint32(0):
            others = other_starts(starts, word, shifts[c], rows[c])
            bonds = mark_segment_starts(bonds, uint32(edges | others))
            firsts = mark_segment_starts(uint32(bonds & ~covered), edges)
            if c + 1 < len(shifts):
                covered = uint32(covered | fill_segments(firsts, edges))
            links[place] = firsts
            bonds = uint32(bonds & ~firsts)
            extras = uint32(extras + uint32(popcount(bonds)))
        links[uint32(place + uint32(TILE_WORDS))] = bonds
    return extras


@cuda.jit(device=True)
def number_words(counts, count, strip, lane, word):
    """Return the sums of ``count`` over the strip's words before this one, and over all its words.

    counts: scratch in shared memory, a place for each word.
    """
    total = count
    counts[word] = total
    step = 1
    while step < LANES:
        sync_strip()
        if lane >= step:
            total = uint32(total + counts[word - step])
        sync_strip()
        counts[word] = total
        step *= 2
    sync_strip()
    whole = counts[strip * LANES + LANES - 1]
    sync_strip()
    return uint32(total - count), whole


@cuda.jit(device=True)
def list_runs(table, starts, edges, joined, n, word):
    """Enter the runs of a word in the table, from number n on."""
    left, first = starts, n
    ends = uint32(uint32(edges >> uint32(1)) | uint32(0x80000000))
    entry = uint32(uint32(ROOT) | uint32(uint32(word) << uint32(5)))
    while left != uint32(0):
        bit = uint32(lowest_one(left))
        left = uint32(left & uint32(left - uint32(1)))
        length = uint32(lowest_one(uint32(ends >> bit)))
        table[n] = uint32(uint32(entry | bit) | uint32(length << uint32(LENGTH)))
        n = uint32(n + uint32(1))
    if uint32(joined & uint32(1)) != uint32(0):
        table[first] = with_parent(table[first], uint32(first - uint32(1)))


@cuda.jit(device=True)
def join_first(table, starts, first, shifts, rows, word, own, links):
    """Make the runs at the other ends of first bonds the parents of their runs.

    own: the bits of the word that this thread works on.
    """
    for c in range(len(shifts)):
        left = uint32(links[uint32(uint32(2 * c * TILE_WORDS) + uint32(word))] & own)
        if left != uint32(0):
            others = other_starts(starts, word, shifts[c], rows[c])
            before = before_first(starts, first, word, shifts[c], rows[c], others)
            number, ours = first[word], starts[word]
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n = uint32(uint32(number + count_starts(ours, bit)) - uint32(1))
                parent = uint32(uint32(before + count_starts(others, bit)) - uint32(1))
                # Both ends of a bond along the row may be in the same run.
                if parent != n:
                    table[n] = with_parent(table[n], parent)


@cuda.jit(device=True)
def list_extras(table, starts, first, shifts, rows, word, own, links, queue, begin, room, slot):
    """List the two runs of the extra bonds of a word, the first at ``slot`` of the strip's list.

    own: the bits of the word that this thread works on.  begin: where the list begins; bonds beyond
    its ``room`` places are left out.
    """
    for c in range(len(shifts)):
        left = uint32(links[uint32(uint32((2 * c + 1) * TILE_WORDS) + uint32(word))] & own)
        if left != uint32(0):
            others = other_starts(starts, word, shifts[c], rows[c])
            before = before_first(starts, first, word, shifts[c], rows[c], others)
            number, ours = first[word], starts[word]
            while left != uint32(0):
                bit = uint32(lowest_one(left))
                left = uint32(left & uint32(left - uint32(1)))
                n = uint32(uint32(number + count_starts(ours, bit)) - uint32(1))
                other = uint32(uint32(before + count_starts(others, bit)) - uint32(1))
                # The slot of a bond listed in an earlier pass has wrapped around to a huge number.
                if slot < room:
                    queue[uint32(begin + slot)] = uint32(uint32(n << uint32(16)) | other)
                slot = uint32(slot + uint32(1))


@cuda.jit(device=True)
def shorten_path(table, n, with_sizes):
    """Make the root a run's parent, and add the run's sites to the root's size."""
    entry = table[n]
    if entry < uint32(ROOT):
        parent = uint32(entry >> uint32(FIELD))
        root = table_root(table, parent)
        # Other threads that pass this node find the parent or the root; both are valid.
        cuda.atomic.exch(table, n, uint32(entry ^ uint32(uint32(parent ^ root) << uint32(FIELD))))
        if with_sizes:
            cuda.atomic.add(table, root, uint32(run_length(entry) << uint32(FIELD)))


@cuda.jit(device=True)
def _shorten_paths(table, runs_of, with_sizes):
    """Point all runs to their roots, from the top down, and add their sites to the roots' sizes.

    All warps process a strip together, so the strips above are done and paths are short.
    """
    for strip in range(STRIPS):
        n = uint32(strip * STRIP_NODES + cuda.threadIdx.x)
        end = uint32(uint32(strip * STRIP_NODES) + runs_of[strip])
        while n < end:
            shorten_path(table, n, with_sizes)
            n = uint32(n + uint32(TILE_WORDS))


@cuda.jit(device=True)
def join_listed(table, queue, begin, end, lane, lanes):
    """Join the trees of the listed pairs, and replace the pairs in the list by the former roots.

    lane, lanes: number of this thread, a multiple of LANES of which share the list.
    """
    while begin < end:
        k = uint32(begin + lane)
        if k < end:
            pair = queue[k]
            root, entry = _table_union(
                table, uint32(pair >> uint32(16)), uint32(pair & uint32(0xFFFF))
            )
            size = uint32(entry_field(entry) + run_length(entry)) if entry else uint32(0)
            queue[k] = uint32(uint32(root << uint32(16)) | size)
        _rejoin()
        begin = uint32(begin + uint32(lanes))


@cuda.jit(device=True)
def move_sizes(table, queue, begin, end, lane, lanes):
    """Add the sizes of former roots to their present roots, and shorten their paths."""
    k = uint32(begin + lane)
    while k < end:
        n, size = uint32(queue[k] >> uint32(16)), uint32(queue[k] & uint32(0xFFFF))
        if size != uint32(0):
            root = table_root(table, n)
            cuda.atomic.exch(table, n, with_parent(table[n], root))
            cuda.atomic.add(table, root, uint32(size << uint32(FIELD)))
        k = uint32(k + uint32(lanes))


@cuda.jit(device=True)
def join_tile(
    table, starts, first, totals, links, queue, room, tiles, opened, base, place, with_sizes
):  # fmt: skip
    """Find the clusters of a tile: afterwards, ``table`` holds the trees of its runs.

    starts, first: get a word's run starts and the number of its first run, TILE_WORDS each.
    totals: gets the runs of every strip, and how many bonds it lists, 2 * STRIPS.  links, queue:
    scratch, 2 * TILE_WORDS for each class and STRIPS * room.  The entry's words start at
    ``opened[base]``.  place: the first grid point of this thread's word, how many it holds, and
    the bits of those that are occupied.  with_sizes: whether roots get the sizes of their clusters.
    Returns the number of runs of this thread's strip.
    """
    shifts, rows = tiles.shifts, tiles.rows
    site, count, occupied = place
    word = cuda.threadIdx.x
    strip, lane = word // LANES, word % LANES
    joined = load_chain(tiles, opened, base, site, count)
    _load_bonds(tiles, opened, base, site, count, word, links)
    # A run ends where the next run or a vacancy begins; a vacancy is not a run.
    edges = uint32(uint32(~joined) | uint32(1))
    ours = uint32(edges & occupied)
    starts[word] = ours
    cuda.syncthreads()
    extras = split_bonds(starts, edges, joined, shifts, rows, word, links)
    both = uint32(uint32(popcount(ours)) | uint32(extras << uint32(16)))
    before, whole = number_words(first, both, strip, lane, word)
    runs, listed = uint32(whole & uint32(0xFFFF)), uint32(whole >> uint32(16))
    if lane == 0:
        totals[strip], totals[STRIPS + strip] = runs, listed
    slot = uint32(before >> uint32(16))
    n = uint32(uint32(strip * STRIP_NODES) + uint32(before & uint32(0xFFFF)))
    first[word] = n
    list_runs(table, ours, edges, joined, n, word)
    cuda.syncthreads()
    own = uint32(0xFFFFFFFF)
    join_first(table, starts, first, shifts, rows, word, own, links)
    most = totals[STRIPS]
    for other in range(1, STRIPS):
        most = max(most, totals[STRIPS + other])
    begin, done = uint32(strip * room), uint32(0)
    while True:
        list_extras(
            table, starts, first, shifts, rows, word, own, links, queue, begin, room,
            uint32(slot - done),
        )  # fmt: skip
        cuda.syncthreads()
        if done == uint32(0):
            _shorten_paths(table, totals, with_sizes)
            cuda.syncthreads()
        end = uint32(begin + min(uint32(max(listed, done) - done), room))
        join_listed(table, queue, begin, end, uint32(lane), LANES)
        cuda.syncthreads()
        if with_sizes:
            move_sizes(table, queue, begin, end, uint32(lane), LANES)
            cuda.syncthreads()
        # Most tiles are done now; otherwise the list was too short, and is filled again.
        done = uint32(done + room)
        if done >= most:
            break
    return runs
