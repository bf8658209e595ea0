"""The open bonds and the occupied sites of many entries in the memory of a CUDA device."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.closed_cuda import (
    MOST_LIMITS,
    Drawn,
    count_closed_along_kernel,
    count_closed_kernel,
)
from percolab.bonds.hooks import ClassLimits
from percolab.bonds.model import Model
from percolab.bonds.sites import Sites
from percolab.bonds.sites_cuda import close_bonds_kernel, close_periodic_kernel
from percolab.bonds.words_cuda import BatchKeys, open_words_kernel
from percolab.errors import InputError
from percolab.kernels.arrays import Arrays
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import Launches, zero_kernel
from percolab.kernels.memory import Memory
from percolab.kernels.neighbours import Adjacency
from percolab.lattices.extent import Extent
from percolab.lattices.grid_loops import put_periods
from percolab.lattices.topology import (
    PERIOD_BITS,
    PartWords,
    Topology,
    UInt64s,
    count_words,
    write_parts,
)

_MAX_GRID_Y = 65535


def period_width(topology: Topology) -> int:
    """Return the bits of each axis in a code of periods on CUDA: 32 bits for all axes."""
    return 32 // max(topology.num_axes, 1)


def narrow_codes(topology: Topology, codes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return codes of periods in the form for CUDA, with ``period_width`` bits per axis."""
    narrow = np.empty(codes.size, np.int32)
    put_periods(codes, topology.num_axes, PERIOD_BITS, period_width(topology), narrow)
    return narrow


def copied_by_class(topology: Topology, parts_of: Callable[[int], Iterable[PartWords]]) -> Any:
    """Return bond words on the device; make them on the host class by class."""
    length, on_device = topology.num_words, cuda.device_array(topology.num_bond_words, np.uint32)
    words = np.empty(length, np.uint32)
    for k in range(topology.num_classes):
        words.fill(0)
        write_parts(parts_of(k), words)
        on_device[k * length : (k + 1) * length].copy_to_device(words)
    return on_device


def _periodic_lists_on_device(topology: Topology) -> tuple[Any, Any, Any]:
    """Return the lists of all periodic bonds on the device: numbers, other ends, narrow codes."""
    kinds = np.int64, np.int32, np.int32
    lists = tuple(cuda.device_array(topology.num_periodic_bonds, kind) for kind in kinds)
    stride, start = 32 * topology.num_words, 0
    for k in range(topology.num_classes):
        for owners, ends, codes in topology.periodic_list_pieces(k):
            part = slice(start, start := start + owners.size)
            lists[0][part].copy_to_device(np.add(owners, k * stride, dtype=np.int64))
            lists[1][part].copy_to_device(ends)
            lists[2][part].copy_to_device(narrow_codes(topology, codes))
    return lists[0], lists[1], lists[2]


def end_flags_on_device(topology: Topology) -> tuple[Any, Any]:
    """Return the sites of all end layers and their flags on the device, uint32 each.

    They are those of :meth:`percolab.lattices.topology.Topology.end_flags`, copied layer by layer.
    """
    layers = [layer for pair in topology.end_layers for layer in pair]
    size = sum(layer.size for layer in layers)
    sites, flags = (cuda.device_array(size, np.uint32) for _ in range(2))
    start = 0
    for bit, layer in enumerate(layers):
        part = slice(start, start := start + layer.size)
        if layer.size:
            sites[part].copy_to_device(layer.astype(np.uint32))
            flags[part].copy_to_device(np.full(layer.size, 1 << bit, np.uint32))
    return sites, flags


class KeysOfBatch:
    """The keys from which a batch's entries are drawn, written on the host and copied."""

    def __init__(self, model: Model, capacity: int, launches: Launches) -> None:
        self._model, self._launches = model, launches
        self._pinned = BatchKeys(*(cuda.pinned_array(size, np.uint64) for size in _sizes(capacity)))
        self.on_device = BatchKeys(
            *(cuda.device_array(size, np.uint64) for size in _sizes(capacity))
        )

    @staticmethod
    def memory(capacity: int) -> Memory:
        keys = 8 * sum(_sizes(capacity))
        return Memory(host=keys, device=keys)

    def write(self, seed: int, samples: NDArray[np.uint64], thresholds: NDArray[np.uint64]) -> None:
        """Write the keys of entries on the host, from where :meth:`upload` copies them."""
        # The copy of earlier keys may not be finished.
        self._launches.wait()
        entries, rule, pinned = len(samples), self._model.rule, self._pinned
        pinned.samples[0] = seed
        pinned.samples[1 : entries + 1] = samples
        pinned.bonds[:entries] = thresholds if rule.bond_varies else rule.bond_limit
        if self._model.draws_sites:
            pinned.sites[:entries] = thresholds if rule.site_varies else rule.site_limit

    def upload(self, entries: int) -> None:
        """Copy the keys of the first entries to the device."""
        device, pinned = self.on_device, self._pinned
        self._launches.upload(device.samples[: entries + 1], pinned.samples[: entries + 1])
        self._launches.upload(device.bonds[:entries], pinned.bonds[:entries])
        if self._model.draws_sites:
            self._launches.upload(device.sites[:entries], pinned.sites[:entries])


def _sizes(capacity: int) -> tuple[int, int, int]:
    return capacity + 1, capacity, capacity


class ClosedCounts:
    """The number of vacant sites, or closed bonds, of every entry, at one p or along a grid of p.

    Counting neither allocates nor waits, so that it can be captured.  If the words do not depend on
    p, the last drawn ones are counted for every step.

    drawn: the words, which exist.  opened: uint32 (entries * words,), those of all entries as
    drawn last.  varies: whether p is the probability of the counted sites or bonds.
    """

    def __init__(
        self, drawn: Drawn, opened: Any, capacity: int, launches: Launches, *, varies: bool
    ) -> None:
        self._drawn, self._opened, self._launches = drawn, opened, launches
        self._varies = varies
        self._counts = cuda.device_array(capacity, np.uint32)

    @staticmethod
    def memory(entries: int, steps: int = 1) -> Memory:
        return Memory(host=12 * entries * steps, device=4 * entries * steps)

    def make_room(self, entries: int, steps: int) -> bool:
        """Allocate memory for the steps of a grid, if needed; return whether it is new."""
        if entries * steps <= self._counts.size:
            return False
        self._counts = cuda.device_array(entries * steps, np.uint32)
        return True

    def count(self, entries: int) -> None:
        """Count the closed bonds, or vacant sites, of the first entries as drawn last."""
        exists = self._drawn.exists
        self._clear(entries)
        launch = self._launches.each
        launch(count_closed_kernel, exists.size, entries, exists, self._opened, self._counts)

    def count_along(self, generator: int, samples: Any, entries: int, grid: Any) -> None:
        """Count the closed bonds, or vacant sites, of the first entries at all steps of a grid.

        samples: the seed and the entries' samples; grid: thresholds, uint64; both on the device
        """
        if not self._varies:
            self.count(entries)
            return
        steps, words = grid.size, self._drawn.exists.size
        self._clear(entries * steps)
        for first in range(0, steps, MOST_LIMITS):
            keys = generator, samples, grid[first : first + MOST_LIMITS], self._drawn
            places = np.uint32(first), np.uint32(steps), self._counts
            self._launches.each(count_closed_along_kernel, words, entries, *keys, *places)

    def fetch(self, entries: int, steps: int = 1) -> NDArray[np.int64]:
        """Wait for the device and return the counts, (entries,) or (entries, steps)."""
        counted = steps if self._varies else 1
        counts = self._counts[: entries * counted].copy_to_host()
        closed: NDArray[np.int64] = counts.astype(np.int64)
        if steps == 1:
            return closed
        return np.broadcast_to(closed.reshape(entries, counted), (entries, steps))

    def _clear(self, counts: int) -> None:
        self._launches.each(zero_kernel, counts, 1, self._counts, np.uint32(counts))


class CudaBatch:
    """The bonds of up to ``capacity`` entries; the protocol is :class:`percolab.bonds.batch.Batch`.

    exists:    uint32 (num_classes * num_words,), the bonds that exist
    opened:    uint32, the bond words of all entries, one entry after the other
    adjacency: the other ends of bonds
    limits:    :class:`percolab.bonds.hooks.ClassLimits` of the bonds, or ()
    sites:     the record :class:`percolab.bonds.sites.Sites` if sites are drawn, or ()
    closed:    counts of vacant sites if sites are drawn; else counts of closed bonds if these are
               requested (:meth:`count_bonds`), or None
    keys:      the keys from which the entries are drawn
    launches:  the stream on which all kernels and copies of this batch run
    arrays:    allocates its largest arrays, and those of its labeler
    """

    def __init__(
        self,
        topology: Topology,
        model: Model,
        capacity: int,
        *,
        launches: Launches | None = None,
        arrays: Arrays | None = None,
    ) -> None:
        # The kernels index the whole batch with 32 bits.
        fitting = (2**32 - 1) // max(topology.num_points, topology.num_bond_words)
        self.topology, self.capacity = topology, min(capacity, fitting, _MAX_GRID_Y)
        self.model = model
        if model.has_own_record:
            raise InputError(f"model {model} is sampled only on the CPU: use --device cpu")
        self.launches, self.arrays = launches or Launches(), arrays or Arrays()
        words = self.capacity * topology.num_bond_words
        self.opened = self.arrays.reserve("opened", words, np.uint32)
        self.keys = KeysOfBatch(model, self.capacity, self.launches)
        self.adjacency = self._adjacency()
        self.exists = copied_by_class(topology, topology.exists_parts)
        self.existing_sites = cuda.to_device(topology.occupied)
        #: The occupied sites, and the number of their words per entry, 0 if all entries share them.
        self.occupied, self.occupied_words = self.existing_sites, np.uint32(0)
        self.limits: Any = ()
        limits = model.class_limits(topology.class_names)
        if len(limits):
            self.limits = ClassLimits(cuda.to_device(limits), self.adjacency.num_words)
        self.sites: Any = ()
        self.closed: ClosedCounts | None = None
        if model.draws_sites:
            topology.check_end_layers()
            words = self.capacity * topology.num_words
            self.occupied = self.arrays.reserve("occupied", words, np.uint32)
            self.occupied_words = self.adjacency.num_words
            first = np.uint32(topology.num_bond_words)
            there = self.existing_sites
            self.sites = Sites(model.rule, first, self.adjacency, there, self.occupied)
            drawn = Drawn(first, there, ())
            self.closed = ClosedCounts(
                drawn, self.occupied, self.capacity, self.launches, varies=model.site_varies
            )

    def _adjacency(self) -> Adjacency:
        top = self.topology
        deltas = tuple(np.int32(delta) for delta in top.deltas)
        bonds, ends, codes = _periodic_lists_on_device(top)
        return Adjacency(
            ends=deltas if top.neighbours is None else cuda.to_device(top.neighbours),
            periodic_words=copied_by_class(top, top.periodic_parts)
            if top.num_periodic_bonds
            else (),
            periodic_bonds=bonds,
            periodic_ends=ends,
            periodic_codes=codes,
            num_points=np.uint32(top.num_points),
            num_words=np.uint32(top.num_words),
            chain=np.int32(top.chain),
        )

    def count_bonds(self) -> None:
        """Request counts of closed bonds, for models that draw no sites."""
        if self.closed is None:
            drawn = Drawn(np.uint32(0), self.exists, self.limits), self.opened
            self.closed = ClosedCounts(*drawn, self.capacity, self.launches, varies=True)

    @staticmethod
    def memory(extent: Extent, model: Model, entries: int) -> Memory:
        site_words = 4 * count_words(extent.num_points)
        keys = KeysOfBatch.memory(entries).device
        # On the device: masks of the existing and the periodic bonds, and lists of the periodic
        # bonds.
        masks = 2 if extent.periodic_bonds else 1
        shared = 4 * masks * extent.num_words + site_words + 16 * extent.periodic_bonds
        if extent.is_stored:
            shared += 4 * extent.num_classes * extent.num_points
        words = 4 * extent.num_words + site_words * model.draws_sites
        counts = ClosedCounts.memory(entries if model.draws_sites else 0)
        # The host makes bonds class by class, and the lists of periodic bonds in pieces.
        host = keys + site_words + extent.class_bytes
        return Memory(host=host, device=shared + keys + entries * words).plus(counts)

    def fill(self, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s) -> int:
        entries = len(samples)
        self.keys.write(seed, samples, thresholds)
        self.launches.call(
            ("fill", generator, entries),
            lambda: self.draw(generator, self.keys, entries, self.opened),
        )
        return entries

    def draw(self, generator: int, keys: KeysOfBatch, entries: int, opened: Any) -> None:
        """Copy keys to the device, and write the open bonds of the first entries there.

        This neither allocates nor waits, so it can be captured.  opened: like ``self.opened``.
        """
        keys.upload(entries)
        launch, key = self.launches, keys.on_device
        if self.sites:
            first, there = self.sites.first_word, self.sites.exists
            sites = generator, key.samples, key.sites, first, there, self.sites.occupied
            launch.each(open_words_kernel, there.size, entries, *sites, ())
        bonds = generator, key.samples, key.bonds, np.uint32(0), self.exists, opened
        launch.each(open_words_kernel, self.exists.size, entries, *bonds, self.limits)
        self.close_bonds(entries, opened)

    def close_bonds(self, entries: int, opened: Any) -> None:
        """Close the bonds of the first entries that have a vacant site, if sites are drawn."""
        if self.sites:
            top, launch = self.topology, self.launches
            launch.one(close_bonds_kernel, top.num_words, entries, opened, self.sites)
            launch.one(close_periodic_kernel, top.num_periodic_bonds, entries, opened, self.sites)

    def load(self, opened: NDArray[np.uint32]) -> int:
        flat = np.ascontiguousarray(opened, np.uint32).ravel()
        self.launches.wait()
        self.opened[: flat.size].copy_to_device(flat)
        return len(opened)

    def copy_open_words(self, entries: int) -> NDArray[np.uint32]:
        self.launches.wait()
        words = self.topology.num_bond_words
        opened: NDArray[np.uint32] = self.opened[: entries * words].copy_to_host()
        return opened.reshape(entries, words)

    def copy_occupied(self, entries: int) -> NDArray[np.uint32]:
        words = self.topology.num_words
        if not self.sites:
            return np.broadcast_to(self.topology.occupied, (entries, words))
        self.launches.wait()
        occupied: NDArray[np.uint32] = self.occupied[: entries * words].copy_to_host()
        return occupied.reshape(entries, words)

    def copy_vacant(self, entries: int) -> NDArray[np.int64]:
        assert self.closed is not None
        self.closed.count(entries)
        self.launches.wait()
        return self.closed.fetch(entries)
