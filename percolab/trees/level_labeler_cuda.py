"""The open bonds and the clusters at a level of given values, on a CUDA device.

The open bonds inside the array are joined there.  Clusters that touch an end layer, a bond across a
periodic boundary, or a bond that opens are nodes, which the host joins.  Labelers of samples would
have to cut the array into tiles first, which takes the host seconds.
"""

from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cuda import end_flags_on_device
from percolab.errors import InputError
from percolab.kernels.cuda import SIMULATED, cuda
from percolab.kernels.device import free_memory
from percolab.kernels.launches import THREADS, Launches
from percolab.kernels.memory import check_free
from percolab.lattices.extent import Extent
from percolab.lattices.topology import PERIOD_BITS, Topology
from percolab.trees import levels_cuda as kernels
from percolab.trees.level_labeler import (
    TRIED,
    FoundPath,
    NewBonds,
    Nodes,
    join_loop,
    make_growth,
    refuse_value,
    turned,
)
from percolab.trees.levels_cpu import Growth

#: Number of candidates drawn: a labeling costs less than the host's work on many opening bonds.
_TRIED = 2 * TRIED
#: Number of words whose new bonds a thread lists.
_PART = 256
#: Threads of a block that searches a path, and grid points per block: in small arrays few sites are
#: at the same distance, and blocks wait for each other.
_SEARCHERS, _POINTS_A_BLOCK = THREADS, 2**20
# Bytes of values per copy through pinned memory, the number of such buffers, and the number of
# threads that fill each of them.
_PART_BYTES, _PARTS, _COPIERS = 2**26, 2, 4
#: The usable part of a device's free memory.
_SHARE = 0.9
_GPU = " of GPU memory"

Integers = NDArray[np.int64]
Values = NDArray[Any]


class CudaLevelLabeler:
    """A labeler of levels on the current CUDA device.

    values: of sites (num_points,), or of bonds (num_classes, num_points), on the host, or on the
    device if contiguous

    InputError: a graph, or too little memory.
    """

    few: ClassVar[int] = 2

    def __init__(self, topology: Topology, values: Any, *, above: bool) -> None:
        if not topology.shape:
            raise InputError("--device cuda: levels of a graph's weights are found on the CPU")
        self.topology, self.above = topology, above
        self.by_site, self.dtype = values.ndim == 1, np.dtype(values.dtype)
        self._check_memory(values)
        self.values, self.launches = _on_device(values), Launches()
        points, words = topology.num_points, topology.num_words
        self._points, self._net = np.uint32(points), _make_net(topology)
        bonds = (cuda.device_array(topology.num_bond_words, np.uint32) for _ in range(4))
        self._exists, self._crossing, self._opened, self._later = bonds
        made = self._net, self._points, self._exists, self._crossing
        self.launches.one(kernels.make_bonds_kernel, self._exists.size, 1, *made)
        occupied = cuda.to_device(topology.occupied)
        self._among = occupied if self.by_site else self._exists
        self._nodes = cuda.device_array(words, np.uint32) if self.by_site else occupied
        #: Labels, and the numbers of nodes by label; or a search's queue, and the places in it.
        self._labels, self._numbers = (cuda.device_array(points, np.uint32) for _ in range(2))
        self._count = cuda.device_array(1, np.uint32)
        self._ends = end_flags_on_device(topology)
        self._listed = [cuda.device_array(self._ends[0].size, np.uint32) for _ in range(2)]
        self._fill(self._later, 0)
        #: The bonds across periodic boundaries; and the ends and codes of the open ones.
        self._periodic = self._list_bonds(self._later, self._crossing)
        crossing = self._periodic[0].size
        self._pairs = [cuda.device_array(crossing, np.uint32) for _ in range(2)]
        self._codes = cuda.device_array(crossing, np.int64)
        self._growth: Growth | None = None

    def _check_memory(self, values: Any) -> None:
        """Raise InputError if there is not enough memory, on the host or on the device."""
        topology, extent = self.topology, Extent.of_topology(self.topology)
        ends, crossing = extent.end_sites, topology.num_periodic_bonds
        device = 8 * topology.num_points + 16 * topology.num_bond_words + 8 * topology.num_words
        device += 20 * ends + 44 * crossing + 8 * (topology.num_bond_words // _PART)
        if isinstance(values, np.ndarray):
            device += max(self.dtype.itemsize, 4) * values.size
        what = f"{topology.num_points} sites need"
        # Memory for nodes, for the windings of clusters, and for pinned buffers.
        host = 24 * (ends + 2 * crossing) + 36 * crossing + _PARTS * _PART_BYTES
        check_free(what, host)
        check_free(what, device, int(_SHARE * free_memory(cuda)), _GPU)

    def _turned(self, values: Values) -> Values:
        return turned(values, above=self.above)

    # Values

    def candidates(self) -> Values:
        classes = 1 if self.by_site else self.topology.num_classes
        lowest, highest = self._extremes()
        size, points = classes * self.topology.num_points, self.topology.num_points
        random = np.random.Generator(np.random.Philox(0))
        some = random.integers(size, size=_TRIED) if size > _TRIED else np.arange(size)
        k, i = np.divmod(some, points)
        values, is_there = self._take(32 * self.topology.num_words * k + i)
        values = values[is_there.astype(bool)]
        if values.dtype.kind == "f":
            values = values[np.isfinite(values)]
        tried = np.concatenate([values, lowest, highest]).astype(self.dtype)
        return np.unique(self._turned(tried))

    def _extremes(self) -> tuple[Values, Values]:
        """Return the least and the greatest finite value, as arrays of one value, or empty ones."""
        threads = kernels.BLOCKS * THREADS
        low, high = (cuda.device_array(threads, self.values.dtype) for _ in range(2))
        seen = cuda.device_array(threads, np.uint32)
        given = self.values, self._points, self._among, low, high, seen
        self.launches.blocks(kernels.extremes_kernel, kernels.BLOCKS, THREADS, *given)
        flags = self._read(seen)
        every = np.bitwise_or.reduce(flags)
        if every & kernels.IS_NAN:
            refuse_value(np.nan, above=self.above)
        if every & (kernels.PLUS_INFINITY if self.above else kernels.MINUS_INFINITY):
            refuse_value(np.inf if self.above else -np.inf, above=self.above)
        has = flags & kernels.FINITE != 0
        low, high = self._read(low)[has], self._read(high)[has]
        return low[np.argsort(low)[:1]], high[np.argsort(high)[-1:]]

    def values_at(self, places: NDArray[Any]) -> Values:
        found, _ = self._take(places.ravel())
        return found.reshape(places.shape).astype(self.dtype, copy=False)

    def _take(self, places: NDArray[Any]) -> tuple[Values, NDArray[np.uint8]]:
        size = places.size
        found = cuda.device_array(size, self.values.dtype), cuda.device_array(size, np.uint8)
        where = cuda.to_device(places.astype(np.int64))
        given = self.values, self._points, self._among, where
        self.launches.one(kernels.take_kernel, size, 1, *given, *found)
        return self._read(found[0]), self._read(found[1])

    def count_open(self, level: Any) -> int:
        total = cuda.to_device(np.zeros(1, np.uint64))
        words = self._nodes if self.by_site else self._opened
        self._mark(level, words)
        self.launches.blocks(kernels.count_kernel, kernels.BLOCKS, THREADS, words, total)
        return int(self._read(total)[0])

    def _mark(self, level: Any, words: Any) -> None:
        """Mark the sites, or bonds of all classes, that are open at a level."""
        typed = self.values.dtype.type(self._turned(np.asarray(level)).item())
        rule = self.values, typed, np.uint32(self.above), self._points
        num_words = self.topology.num_words
        grid = -(-num_words // THREADS), words.size // num_words
        self.launches.blocks(kernels.mark_kernel, grid, THREADS, *rule, self._among, words)

    def _open(self, level: Any, opened: Any) -> None:
        """Mark the bonds that are open at a level, and the sites."""
        if not self.by_site:
            self._mark(level, opened)
            return
        self._mark(level, self._nodes)
        bonds = self._net, self._exists, self._crossing, self._nodes, opened
        self.launches.one(kernels.open_between_kernel, opened.size, 1, *bonds)

    # Labels

    def label(self, level: Any) -> Nodes:
        self._open(level, self._opened)
        self._join()
        return self._number()

    def label_between(self, low: Any, high: Any) -> tuple[Nodes, NewBonds]:
        if low is None:
            self._fill(self._opened, 0)
        else:
            self._open(low, self._opened)
        # Also mark the sites that will be open.
        self._open(high, self._later)
        self._join()
        numbers, ends, codes = self._list_bonds(self._opened, self._later)
        sites = self._read(ends).view(np.int32).reshape(2, -1)
        clusters = self._number(ends)
        nodes = self._read(ends).view(np.int32).reshape(2, -1)
        return clusters, NewBonds(self._read(numbers), sites, nodes, self._read(codes))

    def _join(self) -> None:
        """Label the open bonds that cross no boundary."""
        bonds = self._net, self._opened, self._crossing, self._labels
        self.launches.each(kernels.begin_labels_kernel, self._labels.size, 1, *bonds)
        self.launches.one(kernels.join_labels_kernel, self._opened.size, 1, *bonds)

    def _list_bonds(self, before: Any, after: Any) -> tuple[Any, Any, Any]:
        """Return the bonds in ``after``, not in ``before``, on the device: numbers, ends, codes."""
        bonds, parts = (before, after, np.uint32(_PART)), -(-after.size // _PART)
        counts = cuda.device_array(parts, np.uint32)
        self.launches.one(kernels.count_new_kernel, parts, 1, *bonds, counts)
        each = self._read(counts)
        size = int(each.sum(dtype=np.int64))
        check_free(f"{size} bonds that open need", 24 * size, free_memory(cuda), _GPU)
        starts = cuda.to_device((np.cumsum(each, dtype=np.int64) - each).astype(np.uint32))
        numbers, codes = (cuda.device_array(size, np.int64) for _ in range(2))
        ends = cuda.device_array(2 * size, np.uint32)
        listed = *bonds, starts, self._net, numbers, ends, codes
        self.launches.one(kernels.list_new_kernel, parts, 1, *listed)
        return numbers, ends, codes

    def _number(self, *others: Any) -> Nodes:
        """Number the clusters at end layers, at open bonds across boundaries, and of other sites.

        others: sites on the device, which are overwritten by their nodes
        """
        launch = self.launches.one
        (sites, flags), (found, found_flags) = self._ends, self._listed
        of_ends = self._nodes, sites, flags, found, found_flags
        ends = self._counted(kernels.list_ends_kernel, sites.size, *of_ends)
        across = self._opened, *self._periodic, *self._pairs, self._codes
        crossing = self._counted(kernels.list_open_kernel, self._codes.size, *across)
        listed = ((found, ends), *((pair, crossing) for pair in self._pairs))
        arrays = [*(array[:size] for array, size in listed if size), *others]
        for array in arrays:
            clear = self._labels, array, self._numbers
            launch(kernels.free_numbers_kernel, array.size, 1, *clear)
        self._fill(self._count, 0)
        for array in arrays:
            numbers = self._labels, array, self._numbers, self._count
            launch(kernels.number_roots_kernel, array.size, 1, *numbers)
        for array in arrays:
            launch(kernels.read_numbers_kernel, array.size, 1, self._labels, array, self._numbers)
        count = int(self._read(self._count)[0])
        reach = cuda.device_array(max(count, 1), np.uint32)
        self._fill(reach, 0)
        if ends:
            launch(kernels.flag_kernel, ends, 1, found[:ends], found_flags[:ends], reach)
        flagged = self._read(reach)
        touching = np.flatnonzero(flagged).astype(np.int32)
        pairs = np.empty((2, crossing), np.int32)
        codes = np.empty(0, np.int64)
        if crossing:
            for row, pair in zip(pairs, self._pairs):
                row[:] = self._read(pair[:crossing]).view(np.int32)
            codes = self._read(self._codes[:crossing])
        growth = self._grow(count)
        growth.parents[:count] = np.arange(count, dtype=np.int32)
        return Nodes(growth, count, touching, flagged[touching], pairs, codes)

    def _counted(self, kernel: Any, size: int, *arguments: Any) -> int:
        """Launch a kernel that lists some of ``size`` elements; return the number listed."""
        if not size:
            return 0
        self._fill(self._count, 0)
        self.launches.one(kernel, size, 1, *arguments, self._count)
        return int(self._read(self._count)[0])

    def _read(self, array: Any) -> NDArray[Any]:
        """Return a copy of an array on the host, after all pending work."""
        self.launches.wait()
        copy: NDArray[Any] = array.copy_to_host()
        return copy

    def _fill(self, words: Any, word: int) -> None:
        self.launches.each(kernels.fill_kernel, words.size, 1, words, np.uint32(word))

    def _grow(self, count: int) -> Growth:
        """Return arrays for a number of nodes."""
        if self._growth is None or self._growth.slots.size < count:
            self._growth = make_growth(self.topology, count + count // 4 + 1)
        return self._growth

    def release(self) -> None:
        self._growth = None

    # Paths

    def find_path(self, level: Any, axis: int) -> FoundPath:
        search = self._search(level, with_lifts=False)
        first, last = self.topology.end_layers[axis]
        targets = self._nodes, cuda.to_device(last.astype(np.uint32)), search.places
        self.launches.one(kernels.mark_targets_kernel, last.size, 1, *targets)
        self._begin(search, first)
        answer = cuda.device_array(2, np.uint64)
        self._launch_search(kernels.search_target_kernel, search, self._count, answer)
        site, steps = map(int, self._read(answer))
        back = self._way_back(search, site, steps)
        return FoundPath(back.sites[::-1], back.codes[::-1])

    def find_loop(self, level: Any, axis: int, site: int) -> FoundPath:
        search = self._search(level, with_lifts=True)
        self._begin(search, np.array([site]))
        answer = cuda.device_array(3, np.uint64)
        self._launch_search(kernels.search_loop_kernel, search, np.int64(axis), answer)
        bond, steps, both = map(int, self._read(answer))
        k, owner = divmod(bond, 32 * self.topology.num_words)
        other, code = self._bond_end(k, owner)
        one, two = owner, other
        if both:
            swapped = other < owner
        else:
            place = self._read(search.places[owner : owner + 1])
            swapped = bool(place < self._read(search.starts[steps : steps + 1]))
        if swapped:
            one, two, code = other, owner, -code
        ways = self._way_back(search, one, steps), self._way_back(search, two, steps - 1 + both)
        return join_loop(*ways, int(ways[0].codes[0]) + code - int(ways[1].codes[0]))

    def _bond_end(self, k: int, owner: int) -> tuple[int, int]:
        """Return the other end of a bond, and the periods that it crosses, as a code."""
        code, other, stride, rest = 0, 0, 1, owner
        for axis, (length, step) in enumerate(zip(self.topology.shape, self.topology.offsets[k])):
            rest, at = divmod(rest, length)
            turns, at = divmod(at + step, length)
            code += turns << (PERIOD_BITS * axis)
            other += stride * at
            stride *= length
        return other, code

    def _search(self, level: Any, *, with_lifts: bool) -> kernels.Search:
        num_open = self.topology.num_sites
        if self.by_site:
            num_open = self.count_open(level)
        room = (4 + 8 * with_lifts) * num_open
        check_free("the search for a path needs", room, free_memory(cuda), _GPU)
        self._open(level, self._opened)
        search = kernels.Search(
            opened=self._opened,
            places=self._numbers,
            queue=self._labels,
            starts=cuda.device_array(num_open + 2, np.uint32),
            lifts=cuda.device_array(num_open if with_lifts else 1, np.int64),
            meets=cuda.to_device(np.zeros(1, np.uint32)),
            added=cuda.to_device(np.zeros(3, np.uint32)),
            found=cuda.to_device(np.full(6, kernels.NOTHING, np.uint64)),
        )
        self._fill(search.places, kernels.FREE)
        return search

    def _launch_search(self, kernel: Any, search: kernels.Search, *arguments: Any) -> None:
        """Launch a search whose blocks wait for each other: only as many as can run at once."""
        blocks = max(min(_most_blocks(), self.topology.num_points // _POINTS_A_BLOCK), 1)
        given = self._net, search, *arguments
        self.launches.blocks(kernel, blocks, _SEARCHERS, *given, shared=4 * _SEARCHERS)

    def _begin(self, search: kernels.Search, sources: Integers) -> None:
        self._fill(self._count, 0)
        begun = self._nodes, cuda.to_device(sources.astype(np.uint32)), search, self._count
        self.launches.one(kernels.begin_search_kernel, sources.size, 1, *begun)

    def _way_back(self, search: kernels.Search, site: int, steps: int) -> FoundPath:
        sites = cuda.device_array(steps + 1, np.uint32)
        codes = cuda.device_array(steps + 1, np.int64)
        called = self._net, search, np.uint32(site), np.int64(steps), sites, codes
        threads = min(2 * self.topology.num_classes, _SEARCHERS)
        self.launches.blocks(kernels.way_back_kernel, 1, threads, *called)
        periods = self._read(codes)
        return FoundPath(self._read(sites).astype(np.int64), periods - periods[-1])


def _most_blocks() -> int:
    """Return the largest number of blocks that can wait for each other."""
    # The simulator runs one block after the other.
    if SIMULATED:
        return 1
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _make_net(topology: Topology) -> kernels.Net:
    """Return the offsets of a lattice's bonds, on the device."""
    grid = topology.grid
    owners_at = np.zeros((topology.num_classes, prod(grid.cell)), np.uint8)
    for k, owners in enumerate(topology.owners_at):
        for point in owners:
            owners_at[k, np.ravel_multi_index(point, grid.cell, order="F")] = 1
    periodic = np.array([kind == "periodic" for kind in grid.boundary], np.uint8)
    offsets = np.array(topology.offsets, np.int64).reshape(topology.num_classes, -1)
    return kernels.Net(
        shape=cuda.to_device(np.array(grid.shape, np.int64)),
        cell=cuda.to_device(np.array(grid.cell, np.int64)),
        offsets=cuda.to_device(offsets),
        deltas=cuda.to_device(topology.deltas),
        reach=cuda.to_device(np.abs(offsets).max(axis=0)),
        owners_at=cuda.to_device(owners_at),
        periodic=cuda.to_device(periodic),
        chain=np.int64(topology.chain),
        num_words=np.uint32(topology.num_words),
    )


def _on_device(values: Any) -> Any:
    """Return values on the device, flat; 16-bit floats become 32-bit ones."""
    if not isinstance(values, np.ndarray):
        return values.reshape(values.size)
    flat = values.ravel()
    if flat.dtype == np.float16:
        flat = flat.astype(np.float32)
    if flat.nbytes <= _PART_BYTES:
        return cuda.to_device(flat)
    device, stream = cuda.device_array(flat.size, flat.dtype), cuda.stream()
    part = _PART_BYTES // flat.itemsize
    pinned = [cuda.pinned_array(part, flat.dtype) for _ in range(_PARTS)]
    copied = [cuda.event() for _ in range(_PARTS)]
    with ThreadPoolExecutor(_COPIERS) as threads:
        for n, start in enumerate(range(0, flat.size, part)):
            some = flat[start : start + part]
            to, is_copied = pinned[n % _PARTS][: some.size], copied[n % _PARTS]
            if n >= _PARTS:
                is_copied.synchronize()
            # NumPy releases the GIL while it copies.
            list(threads.map(np.copyto, _pieces(to), _pieces(some)))
            device[start : start + some.size].copy_to_device(to, stream=stream)
            is_copied.record(stream)
    stream.synchronize()
    return device


def _pieces(array: Values) -> list[Values]:
    """Cut an array into pieces that threads copy."""
    step = -(-array.size // _COPIERS)
    return [array[start : start + step] for start in range(0, array.size, step)]
