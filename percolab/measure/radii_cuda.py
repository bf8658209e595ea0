"""CUDA: radii of clusters, as defined in :mod:`percolab.measure.radii`.

The forest of the sites (:mod:`percolab.measure.wrapping_cuda`) is flattened, so that every site has
its root and the periods from there.  Sites add their coordinates to the sums of their roots; these
are integers, so the order does not matter.  ``reach`` has a root's end flags, and OUT if its
cluster wraps.

forest: uint64 (entries * num_points,); reach: uint32, as long; sums: uint64 (entries * num_points *
(axes + SCALARS),); bins: uint64 (entries * width,); sites, flags: uint32 (n,).
"""

from numba import config, float64, int32, int64, types, uint32, uint64

from percolab.kernels.cuda import cuda
from percolab.kernels.launches import PER_THREAD, element
from percolab.kernels.neighbours import has_bit, periodic_bond
from percolab.measure.radii import OUT, PER_BIN, SCALARS, has_end, read_spread
from percolab.measure.tallies import size_bin
from percolab.measure.tallies_cuda import add_wide
from percolab.measure.wrapping import periods_to, read_parent
from percolab.measure.wrapping_cuda import periods_along

#: For the kernel that sums bins: threads, bins, and samples at a time, of each block.
SUM_THREADS, SUM_BINS, SUM_SAMPLES = (8, 4, 2) if config.ENABLE_CUDASIM else (128, 8, 128)
_VALUES = 2 * SUM_BINS * SUM_SAMPLES


@cuda.jit(cache=True)
def flatten_kernel(forest, size, reach, sums, sums_of_entry):
    """Point every node to its root, with the periods from there; clear reach and sums."""
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * size)
    start = uint64(uint64(entry) * sums_of_entry)
    for step in range(PER_THREAD):
        n = element(step)
        if n < size:
            i = uint32(base + n)
            reach[i] = uint32(0)
            for k in range(uint64(n), sums_of_entry, uint64(size)):
                sums[uint64(start + uint64(k))] = uint64(0)
            total, root = int32(0), i
            node = forest[root]
            while read_parent(node) != root:
                total = int32(total + periods_to(node))
                root = read_parent(node)
                node = forest[root]
            # One 64-bit write: other threads find the parent or the root, each with its periods.
            forest[i] = (uint64(uint32(total)) << uint64(32)) | uint64(root)


@cuda.jit(cache=True)
def mark_periodic_kernel(forest, opened, adjacency, reach):
    """Mark the clusters that bonds across periodic boundaries close around the lattice.

    Bonds inside the lattice were joined before: the loops that they close do not wind.
    """
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < adjacency.periodic_bonds.size:
        num_words = adjacency.num_words
        base = uint32(entry * uint32(uint32(len(adjacency.ends)) * num_words))
        is_open, owner, other = periodic_bond(n, opened, base, adjacency)
        if is_open:
            start = uint32(entry * adjacency.num_points)
            node, end = forest[uint32(start + owner)], forest[uint32(start + other)]
            if int32(periods_to(node) + adjacency.periodic_codes[n]) != periods_to(end):
                cuda.atomic.or_(reach, read_parent(node), uint32(OUT))


@cuda.jit(cache=True)
def mark_ends_kernel(forest, num_points, sites, flags, reach):
    """Mark in the roots of all clusters which end layers these touch."""
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < sites.size:
        node = forest[uint32(uint32(entry * num_points) + uint32(sites[n]))]
        cuda.atomic.or_(reach, read_parent(node), flags[n])


@cuda.jit(cache=True)
def sum_places_kernel(forest, num_points, occupied, words_per_entry, geometry, reach, sums):
    """Add the coordinates of every occupied site, relative to its root, to the root's sums."""
    places, spans, width = geometry
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * num_points)
    axes = places.shape[0]
    start = uint64(uint64(entry) * uint64(uint64(SCALARS + axes) * uint64(num_points)))
    for step in range(PER_THREAD):
        i = element(step)
        if i < num_points:
            word = occupied[uint32(uint32(entry * words_per_entry) + uint32(i >> uint32(5)))]
            node = forest[uint32(base + i)]
            if has_bit(word, uint32(i & uint32(31))) and has_end(reach[read_parent(node)]):
                root = uint32(read_parent(node) - base)
                at = uint64(start + uint64(uint64(root) * uint64(SCALARS + axes)))
                square = uint64(0)
                for axis in range(axes):
                    place = int64(int64(places[axis, i]) - int64(places[axis, root]))
                    for period in range(spans.shape[0]):
                        turns = int64(periods_along(periods_to(node), period, width))
                        place = int64(place + int64(turns * spans[period, axis]))
                    square = uint64(square + uint64(place * place))
                    cuda.atomic.add(sums, uint64(at + uint64(SCALARS + axis)), uint64(place))
                low, high = uint64(square & uint64(0xFFFFFFFF)), uint64(square >> uint64(32))
                cuda.atomic.add(sums, at, uint64(1))
                cuda.atomic.add(sums, uint64(at + uint64(1)), low)
                cuda.atomic.add(sums, uint64(at + uint64(2)), high)


@cuda.jit(device=True)
def add_spread(sums, at, axes, bins, row):
    """Add the cluster whose sums are at ``at`` to its bin; the bins begin at ``row``."""
    size, low, high = read_spread(sums, at, axes)
    to = uint64(row + uint64(PER_BIN * size_bin(size)))
    cuda.atomic.add(bins, to, uint64(size * size))
    add_wide(bins, uint64(to + uint64(1)), low, high)


@cuda.jit(cache=True)
def add_spreads_kernel(forest, num_points, axes, sums, width, bins):
    """Add the sums at the roots to the bins of their entries in ``bins``."""
    entry = uint32(cuda.blockIdx.y)
    base = uint32(entry * num_points)
    start = uint64(uint64(entry) * uint64(uint64(SCALARS + axes) * uint64(num_points)))
    row = uint64(uint64(entry) * uint64(width))
    for part in range(PER_THREAD):
        i = element(part)
        if i < num_points and read_parent(forest[uint32(base + i)]) == uint32(base + i):
            at = uint64(start + uint64(uint64(i) * uint64(SCALARS + axes)))
            if sums[at] != uint64(0):
                add_spread(sums, at, axes, bins, row)


@cuda.jit(cache=True)
def sum_gyration_kernel(bins, entries, size, skipped, unit, sums):
    """Add the numbers of all bins of entries to the sums of their blocks, sample after sample.

    This does what :func:`percolab.measure.radii.sum_gyration` does, with the same rounding.  sums:
    float64 (blocks, 2 * bins), from the block of the first entry on.  size: samples of a block.
    skipped: samples of the first block that were added before.  Grid (blocks, SUM_BINS groups).
    """
    values = cuda.shared.array(_VALUES, types.float64)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    first = int64(cuda.blockIdx.y) * SUM_BINS
    num_bins = min(int64(sums.shape[1] // 2) - first, SUM_BINS)
    width, column = PER_BIN * int64(sums.shape[1] // 2), 2 * first + thread
    begin = max(block * size - skipped, 0)
    end = min((block + 1) * size - skipped, entries)
    is_mine, total = thread < 2 * num_bins, float64(0)
    if is_mine:
        total = sums[block, column]
    for start in range(begin, end, SUM_SAMPLES):
        count = min(end - start, SUM_SAMPLES)
        for n in range(thread, count * SUM_BINS, SUM_THREADS):
            sample, own = n // SUM_BINS, n % SUM_BINS
            if own < num_bins:
                at = (start + sample) * width + PER_BIN * (first + own)
                # The product is exact, and the next rounded value is in memory: no fused operation.
                spread = float64(bins[at + 2]) * 18446744073709551616.0 + float64(bins[at + 1])
                values[2 * n] = float64(bins[at])
                values[2 * n + 1] = spread * unit
        cuda.syncthreads()
        if is_mine:
            for n in range(count):
                total += values[2 * SUM_BINS * n + thread]
        cuda.syncthreads()
    if is_mine:
        sums[block, column] = total
