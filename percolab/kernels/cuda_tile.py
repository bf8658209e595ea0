"""CUDA: the clusters of one tile, found in shared memory with runs of sites as nodes.

A tile is a box of words, numbered row by row, one thread a word.  Its runs are numbered in the
order of their first sites, strip by strip: a *strip* is the rows of one warp, which hangs them one
under the other from the top down.  A run's first bond upwards costs no atomic, since nobody else
knows the run yet; every further bond joins two trees and waits in a short queue until a whole warp
has one.  Bonds between strips follow after a barrier.

A table holds one uint32 a run, at ``strip * STRIP_NODES + number``:

    bits 0-11   the run's first site in the tile, 32 * word + bit
    bits 12-24  the parent; at a root the cluster's size, later its node number
    bit 25      at a root: the cluster holds a border site
    bit 31      this run is a root
"""

from numba import config, uint32

from percolab.device import load_cuda
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.runs import bits_at, first_of_segments, low_bits, run_from

cuda = load_cuda()

SIMULATED = bool(config.ENABLE_CUDASIM)
#: Threads that work in step.  The simulator gets tiny tiles, which meet more edges.
LANES = 4 if SIMULATED else 32
STRIPS = 2 if SIMULATED else 4
TILE_WORDS = LANES * STRIPS
TILE_NODES = 32 * TILE_WORDS
STRIP_NODES = 32 * LANES
#: Unions that wait for a full warp, in each strip.
QUEUE = 3 * LANES

PLACE = 0xFFF
FIELD = 12
FIELD_MASK = 0x1FFF
BORDER = 1 << 25
ROOT = 1 << 31

if SIMULATED:

    def _sync_strip():
        cuda.syncthreads()
else:

    @cuda.jit(device=True)
    def _sync_strip():
        cuda.syncwarp()


@cuda.jit(device=True)
def field_of(entry):
    """Return the parent, size or node number that a table entry holds."""
    return uint32(uint32(entry >> uint32(FIELD)) & uint32(FIELD_MASK))


@cuda.jit(device=True)
def table_root(table, n):
    """Return the root of a run's tree in the table."""
    entry = table[n]
    while entry < uint32(ROOT):
        n = field_of(entry)
        entry = table[n]
    return n


@cuda.jit(device=True)
def _table_union(table, i, j):
    """Join the trees of two runs, the larger root under the smaller, by one compare-and-swap."""
    i, j = table_root(table, i), table_root(table, j)
    while i != j:
        if i < j:
            i, j = j, i
        entry = table[i]
        if entry >= uint32(ROOT):
            hung = uint32(uint32(j << uint32(FIELD)) | uint32(entry & uint32(PLACE)))
            if cuda.atomic.cas(table, i, entry, hung) == entry:
                return
        i = table_root(table, i)


@cuda.jit(device=True)
def run_at(starts, first, word, bit):
    """Return the number of the run that holds a bit of a word of the tile."""
    upto = uint32(starts[word] & low_bits(uint32(bit + uint32(1))))
    return uint32(first[word] + uint32(popcount(upto)) - uint32(1))


@cuda.jit(device=True)
def _load_words(
    opened, base, inner, num_words, chain, classes, site, count, word, starts, links
):
    """Read a word's bonds inside the tile and cut it into runs."""
    joined = uint32(0)
    valid = uint32(0)
    if count > uint32(0):
        valid = low_bits(count)
        if chain >= 0:
            index = uint32(uint32(chain) * num_words)
            joined = bits_at(inner, index, site, count)
            joined = uint32(joined & bits_at(opened, uint32(base + index), site, count))
    starts[word] = uint32(uint32(uint32(~joined) | uint32(1)) & valid)
    links[uint32(len(classes) * TILE_WORDS + word)] = uint32(joined & uint32(1))
    for c in range(len(classes)):
        found = uint32(0)
        if count > uint32(0):
            index = uint32(uint32(classes[c]) * num_words)
            found = bits_at(inner, index, site, count)
            found = uint32(found & bits_at(opened, uint32(base + index), site, count))
        links[uint32(c * TILE_WORDS + word)] = found


@cuda.jit(device=True)
def _number_runs(starts, first, lane, strip, word):
    """Write the number of every word's first run; return how many runs the strip has."""
    first[word] = uint32(popcount(starts[word]))
    step = 1
    while step < LANES:
        _sync_strip()
        before = uint32(0)
        if lane >= step:
            before = first[word - step]
        _sync_strip()
        first[word] = uint32(first[word] + before)
        step *= 2
    _sync_strip()
    runs = first[strip * LANES + LANES - 1]
    _sync_strip()
    first[word] = uint32(
        uint32(first[word] - uint32(popcount(starts[word]))) + uint32(strip * STRIP_NODES)
    )
    return runs


@cuda.jit(device=True)
def _list_runs(starts, first, word, table):
    """Enter every run of a word in the table, as a root."""
    left, n = starts[word], first[word]
    entry = uint32(uint32(ROOT) | uint32(uint32(word) << uint32(5)))
    while left != uint32(0):
        table[n] = uint32(entry | uint32(trailing_zeros(left)))
        left = uint32(left & uint32(left - uint32(1)))
        n = uint32(n + uint32(1))


@cuda.jit(device=True)
def _prune(starts, links, shifts, rows, word):
    """Keep one of all bonds of a word that join the same two runs."""
    for c in range(len(shifts)):
        place = uint32(c * TILE_WORDS + word)
        bonds = links[place]
        if bonds != uint32(0):
            far = word + rows[c] + (shifts[c] >> 5)
            shift = uint32(shifts[c] & 31)
            edges = uint32(0)
            if far >= 0:
                edges = uint32(starts[far] >> shift)
            if shift != uint32(0) and far + 1 < TILE_WORDS:
                edges = uint32(edges | uint32(starts[far + 1] << uint32(uint32(32) - shift)))
            links[place] = first_of_segments(bonds, uint32(starts[word] | edges))


@cuda.jit(device=True)
def _other_run(starts, first, word, bit, shift, row):
    """Return the run at the other end of the bond of a bit."""
    place = int(bit) + shift
    return run_at(starts, first, uint32(int(word) + row + (place >> 5)), uint32(place & 31))


@cuda.jit(device=True)
def _hang_run(table, starts, first, links, shifts, rows, queue, pending, strip, n):
    """Hang a new run under the other end of its first bond within the strip; queue the others."""
    entry = table[n]
    word = uint32(uint32(entry & uint32(PLACE)) >> uint32(5))
    mask = run_from(starts[word], uint32(entry & uint32(31)))
    upper = n
    if uint32(entry & uint32(31)) == uint32(0) and links[len(rows) * TILE_WORDS + word]:
        upper = uint32(n - uint32(1))
    for c in range(len(rows)):
        if int(word) + rows[c] >= strip * LANES:
            left = uint32(links[uint32(c * TILE_WORDS + word)] & mask)
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                other = _other_run(starts, first, word, bit, shifts[c], rows[c])
                if upper == n:
                    upper = other
                else:
                    slot = cuda.atomic.add(pending, strip, uint32(1))
                    if slot < uint32(QUEUE):
                        queue[uint32(strip * QUEUE + slot)] = uint32(
                            uint32(n << uint32(FIELD)) | other
                        )
    if upper != n:
        root = table_root(table, upper)
        place = uint32(entry & uint32(PLACE))
        table[n] = uint32(uint32(root << uint32(FIELD)) | place)


@cuda.jit(device=True)
def _join_queued(table, queue, pending, overflow, lane, strip, least):
    """Join the queued pairs, a warp at a time, while at least ``least`` of them wait."""
    waiting = pending[strip]
    if waiting > uint32(QUEUE):
        # What found no room is joined later, together with the bonds between strips.
        overflow[0] = uint32(1)
        waiting = uint32(QUEUE)
    while waiting >= uint32(least):
        taken = min(waiting, uint32(LANES))
        waiting = uint32(waiting - taken)
        if uint32(lane) < taken:
            pair = queue[uint32(strip * QUEUE + waiting + lane)]
            i = uint32(pair >> uint32(FIELD))
            _table_union(table, i, uint32(pair & uint32(PLACE)))
    _sync_strip()
    if lane == 0:
        pending[strip] = waiting
    _sync_strip()


@cuda.jit(device=True)
def _join_strips(table, starts, first, links, shifts, rows, overflow, strip, n):
    """Join a run with what it is bonded to in the strips above; with ``overflow``, anywhere."""
    entry = table[n]
    word = uint32(uint32(entry & uint32(PLACE)) >> uint32(5))
    mask = run_from(starts[word], uint32(entry & uint32(31)))
    for c in range(len(rows)):
        if overflow or int(word) + rows[c] < strip * LANES:
            left = uint32(links[uint32(c * TILE_WORDS + word)] & mask)
            while left != uint32(0):
                bit = uint32(trailing_zeros(left))
                left = uint32(left & uint32(left - uint32(1)))
                other = _other_run(starts, first, word, bit, shifts[c], rows[c])
                _table_union(table, n, other)


@cuda.jit(device=True)
def join_tile(
    table, starts, first, links, queue, pending, bonds, num_words, lattice, site, count
):
    """Find the clusters of a tile: afterwards, ``table`` holds the trees of its runs.

    bonds: (opened, its first word, inner, chain).  lattice: (classes, shifts, rows, reach), for the
    bonds that are no chain bonds which class they are, how many bits and how many words of the tile
    the other end is away; and how many words of a strip have bonds to strips above.  site, count:
    the first grid point of this thread's word, and how many it holds.  links: scratch, TILE_WORDS
    for each class and once more.  Returns the runs of this thread's strip.
    """
    opened, base, inner, chain = bonds
    classes, shifts, rows, reach = lattice
    word = cuda.threadIdx.x
    strip, lane = word // LANES, word % LANES
    overflow = pending[STRIPS:]
    if lane == 0:
        pending[strip] = uint32(0)
    if word == 0:
        overflow[0] = uint32(0)
    _load_words(
        opened, base, inner, num_words, chain, classes, site, count, word, starts, links
    )
    runs = _number_runs(starts, first, lane, strip, word)
    _list_runs(starts, first, word, table)
    cuda.syncthreads()
    _prune(starts, links, shifts, rows, word)
    _sync_strip()
    start = strip * STRIP_NODES
    batches = 32 if SIMULATED else (runs + LANES - 1) // LANES
    for batch in range(batches):
        n = batch * LANES + lane
        if n < runs:
            _hang_run(
                table, starts, first, links, shifts, rows, queue, pending, strip,
                uint32(start + n),
            )
        _sync_strip()
        _join_queued(table, queue, pending, overflow, lane, strip, LANES)
    _join_queued(table, queue, pending, overflow, lane, strip, 1)
    cuda.syncthreads()
    last = runs
    if overflow[0] == uint32(0):
        edge = strip * LANES + reach
        last = uint32(first[edge] - uint32(start)) if reach < LANES else runs
        if strip == 0:
            last = uint32(0)
    for n in range(lane, last, LANES):
        _join_strips(
            table, starts, first, links, shifts, rows, overflow[0], strip, uint32(start + n)
        )
    cuda.syncthreads()
    return runs
