"""CUDA: small lattices, with a thread or a team of threads per sample, or a team for several.

Only sums of blocks leave the device, unless rows are read.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.bonds.small_cuda import WORDS_EACH, SampleKeys, open_small_kernel
from percolab.bonds.words import TOP
from percolab.coupled import Rows, SampleBlocks, Samples
from percolab.coupled import small_thresholds as thresholds_cuda
from percolab.coupled.block_sums import Measure
from percolab.coupled.points import measure_by_batches
from percolab.coupled.thresholds import bisect
from percolab.coupled.tiled import TiledCoupling
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.memory import Memory, Needs
from percolab.labelers import scan_cuda
from percolab.labelers import small_cuda as rows_cuda
from percolab.labelers.forest import Reading
from percolab.labelers.tiled.labeler import Tiled
from percolab.lattices.extent import Extent
from percolab.lattices.grid_loops import put_periods
from percolab.lattices.topology import PERIOD_BITS, Topology, count_words, set_bits
from percolab.measure.rows import ROW_WIDTH

#: The most sites of all entries of a launch, and the most entries: a GPU then works some ten ms,
#: and the host takes 1 ms to launch the kernels.
_SITES, _ENTRIES = 2**30, 2**23
#: Blocks of threads in a launch that writes rows: each works for one team after another.
_BLOCKS = 2**14
#: The most values of p at which samples of a torus are scanned: for more, clusters that grow from p
#: to p take less time.
_MOST_SCANNED_STEPS = 8


def is_small(extent: Extent) -> bool:
    """Return whether a team of threads finds the clusters of a sample in shared memory."""
    if not 1 <= len(extent.shape) <= 4 or extent.is_stored:
        return False
    if len(extent.shape) == 4 and any(extent.depths):
        return False  # the table has flags for the ends of three axes
    strides = np.cumprod((1, *extent.shape[:-1]))
    # A bond's other end comes before its owner, unless the bond crosses a periodic boundary.
    leads_back = all(np.dot(offset, strides) < 0 for offset in extent.offsets)
    return leads_back and count_words(extent.num_points) <= rows_cuda.MOST_WORDS


class _Buffers(NamedTuple):
    """Device memory for the words and rows of ``entries`` entries."""

    entries: int
    opened: Any
    rows: Any


class SmallCoupling(TiledCoupling):
    """The coupling of small lattices; radii are those of tiles."""

    def __init__(self, labeler: Tiled, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        batch = labeler.batch
        self._topology, self._model, self._launches = batch.topology, batch.model, batch.launches
        self._exists = cuda.to_device(_words_of_entry(batch.topology, batch.model))
        self._small = _small_lattice(labeler, self._exists.size, self.row_width)
        self._scan = scan_cuda.make_scan_lattice(batch.topology, self._small)
        self._buffers = _Buffers(0, None, None)
        self._opening: thresholds_cuda.Opening | None = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, entries: int) -> Memory:
        """Return the memory of tiles, and of the words and rows of a launch."""
        words = extent.num_words + count_words(extent.num_points) * model.draws_sites
        row = 8 * (ROW_WIDTH + needs.openings)
        each = 4 * words + row
        own = Memory(host=row * entries, device=each * _most_entries(extent.num_points))
        if needs.thresholds:
            bonds = extent.num_points * extent.num_classes
            own = own.plus(Memory(device=thresholds_cuda.opening_bytes(bonds)))
        return TiledCoupling.memory(extent, model, needs, entries).plus(own)

    @staticmethod
    def sums_blocks(extent: Extent, model: Model, *, openings: bool) -> bool:
        return True

    def rows(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        if self.labeler.read.tally_width:
            return super().rows(generator, seed, samples, thresholds)
        return self._rows(generator, _keys(seed, samples, 1, thresholds, 1))

    def grid_rows(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        if self.labeler.read.tally_width:
            return super().grid_rows(generator, seed, samples, grid)
        rows = self._rows(generator, _keys(seed, samples, 1, grid))
        return rows.reshape(len(samples), grid.size, self.row_width)

    def measure_blocks(
        self, generator: int, seed: int, blocks: SampleBlocks, grid: Samples
    ) -> Measure:
        keys = _keys(seed, blocks.starts, blocks.size, grid)

        def measure(part: slice, first: int, samples: int) -> Iterator[tuple[slice, Any]]:
            own_keys = keys._replace(starts=keys.starts[part])
            self._measure(generator, own_keys, first, (part.stop - part.start) * samples)
            yield slice(grid.size), self._buffers.rows

        return measure

    def _rows(self, generator: int, keys: SampleKeys) -> Rows:
        """Return the rows (samples * steps, ROW_WIDTH) of samples that are a block each."""
        samples, steps = len(keys.starts), int(keys.steps)
        rows = np.empty((samples, steps * self.row_width), np.int64)
        step = self.most_samples(steps)
        for first in range(0, samples, step):
            count = min(step, samples - first)
            self._measure(generator, keys, first, count)
            self._launches.wait()
            own = self._buffers.rows[: count * steps * self.row_width].copy_to_host()
            rows[first : first + count] = own.reshape(count, -1)
        return rows.reshape(-1, self.row_width)

    def most_samples(self, steps: int) -> int:
        return max(_most_entries(self._topology.num_points) // steps, 1)

    def _open(self, generator: int, keys: SampleKeys, first: int, samples: int) -> None:
        """Write the open words of ``samples`` samples from ``first`` on, at all their p."""
        entries = samples * int(keys.steps)
        self._reserve(entries)
        opened, stride, batch = self._buffers.opened, self._exists.size, self.labeler.batch
        drawn = np.int64(generator), keys._replace(first=np.uint32(first)), self._model.rule
        bonds = batch.limits, self._exists, np.uint32(self._topology.num_bond_words), opened
        grid = -(-samples * -(-stride // WORDS_EACH) // THREADS)
        self._launches.blocks(open_small_kernel, grid, THREADS, *drawn, *bonds, np.uint32(samples))

    def _measure(self, generator: int, keys: SampleKeys, first: int, samples: int) -> None:
        """Write the rows of ``samples`` samples from ``first`` on into device memory."""
        self._open(generator, keys, first, samples)
        steps = 1 if keys.own_limits else int(keys.steps)
        entries, wraps = samples * int(keys.steps), self.reading is Reading.WRAPPING
        is_fast = steps <= _MOST_SCANNED_STEPS or not self._topology.num_periodic_bonds
        if wraps or steps == 1 or (self.is_scannable and is_fast):
            self.measure_words(entries)
            return
        rows = self._small, self._buffers.opened, np.uint32(samples), keys.steps, self._buffers.rows
        size, shared = self._teams(samples, 2)
        self._launches.blocks(rows_cuda.small_grid_kernel, *size, *rows, shared=shared)

    @property
    def widest_window(self) -> int:
        """The widest window for whose opening bonds a team has ample room."""
        bonds, share = self._topology.num_bonds, self._model.steepest_share
        most = thresholds_cuda.room_for(bonds)
        return TOP if most == bonds else 3 * most * TOP // (4 * bonds * share)

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        self._opening = self._opening or thresholds_cuda.Opening.allocate(self._topology.num_bonds)
        axes = cuda.to_device(np.array(self._topology.open_axes, np.int32))

        def measure(samples: Samples, low: Samples, high: Samples) -> Samples:
            windows = np.stack([low, high], axis=1).ravel()
            keys = _keys(seed, samples, 1, windows, 2)
            self._open(generator, keys, 0, len(samples))
            found = cuda.device_array((len(samples), axes.size), np.uint64)
            words, lattice = self._topology.num_words, self._small._replace(together=np.uint32(1))
            size = min(len(samples), thresholds_cuda.BLOCKS), rows_cuda.team_threads(words)
            drawn = generator, keys.seed, keys.starts, self.labeler.batch.sites
            opening = self._buffers.opened, keys.limits, axes, self._opening, found.ravel()
            shared = thresholds_cuda.shared_bytes(words)
            kernel = thresholds_cuda.small_thresholds_kernel
            self._launches.blocks(kernel, *size, *drawn, lattice, *opening, shared=shared)
            self._launches.wait()
            thresholds: Samples = found.copy_to_host()
            if (lost := thresholds == thresholds_cuda.TOO_MANY).any():
                many = np.any(lost, axis=1)
                key = self, generator, seed, samples[many]
                thresholds[many] = bisect(*key, low[many], high[many])
            return thresholds

        most = self.most_samples(2)
        thresholds: Samples = measure_by_batches(measure, most, samples, low, high)
        return thresholds

    def measure_block(
        self, generator: int, seed: int, start: int, samples: int, threshold: int
    ) -> tuple[Any, Any]:
        """Return the open words and the rows of consecutive samples, flat, on the device.

        samples: at most as many as fit into a launch.
        """
        starts, limits = np.array([start], np.uint64), np.array([threshold], np.uint64)
        self._measure(generator, _keys(seed, starts, samples, limits), 0, samples)
        return self._buffers.opened, self._buffers.rows

    def make_words(self, entries: int) -> Any:
        """Return memory for the words of entries, one entry after the other, on the device."""
        self._reserve(entries)
        return self._buffers.opened

    def measure_words(self, entries: int) -> Any:
        """Write the rows of entries from their words, and return them, on the device."""
        rows = self._buffers.opened, np.uint32(entries), self._buffers.rows
        wraps = self.reading is Reading.WRAPPING
        # Also for few samples: teams take a millisecond less, but compile for seconds.
        if self._scan and not wraps:
            threads, shared = scan_cuda.SAMPLES, scan_cuda.shared_bytes(self._scan)
            size, kernel = (-(-entries // threads), threads), scan_cuda.scan_rows_kernel
            self._launches.blocks(kernel, *size, self._scan, *rows, shared=shared)
        else:
            size, shared = self._teams(entries, 1)
            kernel = rows_cuda.small_wrapping_kernel if wraps else rows_cuda.small_rows_kernel
            self._launches.blocks(kernel, *size, self._small, *rows, shared=shared)
        return self._buffers.rows

    @property
    def is_scannable(self) -> bool:
        """Whether each thread scans one sample."""
        return self._scan is not None and self.reading is not Reading.WRAPPING

    def _teams(self, samples: int, tables: int) -> tuple[tuple[int, int], int]:
        """Return ((blocks, their threads), their shared memory) of teams for this many samples."""
        together = int(self._small.together)
        words = together * self._topology.num_words
        blocks = min(-(-samples // together), _BLOCKS)
        return (blocks, rows_cuda.team_threads(words)), rows_cuda.shared_bytes(words, tables)

    def _reserve(self, entries: int) -> None:
        if entries > self._buffers.entries:
            # Free the old memory first, so that old and new need not fit together.
            self._launches.wait()
            self._buffers = _Buffers(0, None, None)
            opened = cuda.device_array(entries * self._exists.size, np.uint32)
            rows = cuda.device_array(entries * self.row_width, np.int64)
            self._buffers = _Buffers(entries, opened, rows)


def _most_entries(points: int) -> int:
    """Return the most entries of a launch, unless one sample has more."""
    return min(_SITES // points, _ENTRIES)


def _keys(
    seed: int, starts: Samples, block_size: int, limits: Samples, own_limits: int = 0
) -> SampleKeys:
    """Return keys with the arrays on the device; own_limits: limits per sample, 0 for a grid."""
    return SampleKeys(
        seed=np.uint64(seed),
        starts=cuda.to_device(np.ascontiguousarray(starts, np.uint64)),
        block_size=np.uint32(block_size),
        first=np.uint32(0),
        limits=cuda.to_device(np.ascontiguousarray(limits, np.uint64)),
        steps=np.uint32(own_limits or limits.size),
        own_limits=np.uint32(own_limits),
    )


def _words_of_entry(topology: Topology, model: Model) -> NDArray[np.uint32]:
    """Return masks of the bonds that exist and, if sites are drawn, of the sites."""
    parts = [topology.exists.ravel()]
    if model.draws_sites:
        topology.check_end_layers()
        parts.append(topology.occupied)
    return np.concatenate(parts)


def _small_lattice(labeler: Tiled, stride: int, row_width: int) -> rows_cuda.SmallLattice:
    """Return a labeler's topology in the form for the kernels that write rows."""
    top, batch = labeler.batch.topology, labeler.batch
    axes = top.num_axes
    codes = np.empty(top.num_periodic_bonds, np.int32)
    width = max(rows_cuda.PERIODS // axes, rows_cuda.LEAST_WIDTH)
    put_periods(top.periodic_codes, axes, PERIOD_BITS, width, codes)
    owners = (top.periodic_bonds % (32 * top.num_words)).astype(np.uint32)
    together = _choose_entries(top.num_words)
    first_site = top.num_bond_words if batch.model.draws_sites else 0
    inside = [k != top.chain and delta > -32 for k, delta in enumerate(top.deltas)]
    beyond = [k != top.chain or bool(np.any(top.exists[k, 1:] & 1)) for k in range(len(inside))]
    return rows_cuda.SmallLattice(
        adjacency=batch.adjacency,
        exists=batch.existing_sites,
        stride=np.uint32(stride),
        first_site=np.uint32(first_site),
        together=np.uint32(together),
        inside=np.uint32(sum(1 << k for k, is_one in enumerate(inside) if is_one)),
        beyond=np.uint32(sum(1 << k for k, is_one in enumerate(beyond) if is_one)),
        end_masks=cuda.to_device(_end_masks(top)),
        periodic_places=cuda.to_device(top.periodic_bonds.astype(np.uint32)),
        periodic_owners=cuda.to_device(owners),
        periodic_ends=cuda.to_device(top.periodic_ends.astype(np.uint32)),
        periodic_codes=cuda.to_device(codes),
        axes=np.int32(axes),
        width=np.int32(width),
        halves=np.uint32(sum(1 << axis * width + width - 1 for axis in range(axes))),
        row_width=np.uint32(row_width),
    )


def _choose_entries(words: int) -> int:
    """Return how many entries of ``words`` words a team has, so that few threads are idle.

    >>> [_choose_entries(words) for words in (2, 8, 18, 128)]
    [16, 4, 7, 1]
    """
    teams = range(rows_cuda.LANES, rows_cuda.MOST_WORDS + 1, rows_cuda.LANES)
    most = (min(threads // words, rows_cuda.SHARED_WORDS) for threads in teams)
    choices = [(n * words / rows_cuda.team_threads(n * words), -n) for n in most if n]
    # In a larger team, more warps have to wait for one another.
    best = max(choices, key=lambda each: (round(10 * each[0]), each[1]))
    return -best[1]


def _end_masks(topology: Topology) -> NDArray[np.uint32]:
    """Return masks of the first and last layer of each axis, one bit per site; none on a torus."""
    masks = np.zeros((2 * topology.num_axes, topology.num_words), np.uint32)
    for mask, layer in zip(masks, chain.from_iterable(topology.end_layers)):
        set_bits(mask, layer)
    return masks.ravel() if topology.open_axes else masks[:0].ravel()
