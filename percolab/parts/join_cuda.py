"""Joining interfaces in the memory of a GPU, and copying interfaces to it and from it.

An interface on a GPU is a :class:`percolab.parts.interface.Interface` with device arrays; its sums
are on the host.  It is equal to that of the CPU except for the numbers of its clusters, which
follow the order of a face's bonds only approximately.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS, Launches
from percolab.kernels.memory import Memory
from percolab.lattices.topology import PERIOD_BITS
from percolab.measure.sums import NUMBERS, ClusterSums
from percolab.parts import join_kernels as kernels
from percolab.parts.interface import (
    Face,
    Interface,
    InterfaceSums,
    Meeting,
    find_closing,
    find_meeting,
    join_digits,
)
from percolab.parts.kernels import merge_sums
from percolab.parts.parts import Whole

# Arrays are larger than requested by one part in _SPARE, so that they do not grow at every slab.
_SPARE = 16


class DeviceArrays:
    """Named device arrays that are reused; one is replaced when more elements are requested.

    spare: a new array has one part in ``spare`` more elements.  least: the fewest elements
    """

    def __init__(self, spare: int, least: int) -> None:
        self._spare, self._least = spare, least
        self._arrays: dict[str, Any] = {}

    def take(self, name: str, size: int, dtype: Any) -> Any:
        """Return ``size`` uninitialized elements or more.

        The array is not sliced, since slicing a device array takes as long as a launch.
        """
        if name not in self._arrays or self._arrays[name].size < size:
            # Free the old array first, so that both need not fit together.
            self._arrays.pop(name, None)
            elements = max(size + size // self._spare, self._least)
            self._arrays[name] = cuda.device_array(elements, dtype)
        return self._arrays[name]

    @property
    def num_bytes(self) -> int:
        return sum(array.size * array.dtype.itemsize for array in self._arrays.values())


class InterfacesCuda:
    """Joins interfaces on the selected GPU, in separate memory; for one thread at a time.

    An interface that :meth:`join` or :meth:`close` returns lies in that memory.  It is valid until
    the
    next call but one: two sets of arrays take turns, so that one result can be joined on.

    Clusters of a torus may be at most MOST_PERIODS = 1023 periods away from each other along any
    axis.  More, as when a cluster winds a thousand times around a lattice, is an InputError.
    """

    def __init__(self) -> None:
        # The stream has priority, as the next slab is labeled meanwhile and fills the device.
        self._launches = Launches(is_urgent=True)
        self._rooms, *results = (DeviceArrays(_SPARE, 1) for _ in range(3))
        self._results, self._turn = tuple(results), 0
        self._pinned = cuda.pinned_array(kernels.ALL_TOTALS, np.uint64)
        self._totals = cuda.device_array(kernels.ALL_TOTALS, np.uint64)
        # Placeholders for arrays that do not exist.
        self._no_codes = cuda.device_array(1, np.int64)
        self._no_sizes = cuda.device_array(1, np.uint64)
        self._no_flags = cuda.device_array(1, np.uint32)

    @staticmethod
    def memory(whole: Whole, p: float = 1.0) -> Memory:
        """Return the memory of joining, with two results and an interface from the host.

        p: the largest, of bonds or of sites, of whichever is smaller.  It is as if every open bond
        of a face led to a cluster of its own.
        """
        bonds, sites = whole.open_at_face(p)
        # In a chain on an open lattice, an interface has no lower face.
        faces = 2 if whole.is_closed else 1
        entries = (12 if whole.has_periods else 4) * faces * bonds
        # Clusters of the interface so far, and of the next slab.
        clusters = (faces + 2) * sites
        device = 24 * clusters + 3 * (entries + 12 * faces * sites)
        totals = 8 * (kernels.ALL_TOTALS)
        return Memory(host=totals, device=device + device // _SPARE + totals)

    @property
    def num_bytes(self) -> int:
        rooms = sum(room.num_bytes for room in (self._rooms, *self._results))
        return rooms + 8 * int(self._totals.size)

    def join(self, low: Interface, high: Interface) -> Interface:
        """Return the interface of two neighbouring parts, all three on the GPU.

        Errors: as for :func:`percolab.parts.interface.join`; InputError, too, if clusters wind more
        than MOST_PERIODS times.
        """
        return self._joined(find_meeting(low, high))

    def close(self, interface: Interface) -> Interface:
        """Return the interface of a whole torus, closed, both on the GPU.

        Errors: as for :meth:`join`; InputError, too, if the interface is not of all layers.
        """
        return self._joined(find_closing(interface))

    def _joined(self, meeting: Meeting) -> Interface:
        interfaces, shift, count = meeting.interfaces, meeting.shift, meeting.num_clusters
        axes, bins = interfaces[0].axes, len(interfaces[0].sums.bins)
        room = self._rooms
        forest = room.take("forest", count, np.uint64)
        sizes, flags = room.take("sizes", count, np.uint64), room.take("flags", count, np.uint32)
        numbers = room.take("numbers", count, np.uint32)
        each, number = self._launches.each, np.uint64(count)
        blocks = max(min(-(-count // THREADS), kernels.BLOCKS), 1)
        totals = self._totals
        # If there is only one interface, all clusters belong to it.
        below = interfaces[0].num_clusters if len(interfaces) > 1 else count
        planted = self._clusters(interfaces[0]), self._clusters(interfaces[-1])
        clusters = np.uint64(below), number, forest, sizes, flags, numbers, totals
        size = max(count, totals.size)
        each(kernels.plant_kernel, size, 1, *planted[0], *planted[1], *clusters)
        # The bits that cluster numbers do not need are used for periods.
        split = np.uint64(max(count - 1, 1).bit_length())
        halves = np.uint64(0)
        if meeting.has_codes:
            halves = np.uint64(sum(1 << PERIOD_BITS * (axis + 1) - 1 for axis in range(axes)))
        upper, lower = meeting.upper, meeting.lower
        each(
            kernels.join_kernel, upper.num_bonds, 1, *self._entries(upper), *self._entries(lower),
            np.uint64(upper.num_bonds), np.uint32(shift), forest, split, halves, np.int64(axes),
            totals,
        )  # fmt: skip
        if count:
            grid = -(-count // (kernels.GATHERED * THREADS))
            gathered = forest, number, split, halves, sizes, flags, totals
            self._launches.blocks(kernels.gather_clusters_kernel, grid, THREADS, *gathered)
        result = self._results[self._turn]
        faces = []
        for name, face, first in zip(("low", "high"), meeting.left, (0, shift)):
            roots = result.take(f"{name} clusters", face.num_bonds, np.uint32)
            codes = self._no_codes
            if meeting.has_codes:
                codes = result.take(f"{name} codes", face.num_bonds, np.int64)
            each(
                kernels.name_roots_kernel, face.num_bonds, 1, *self._entries(face),
                np.uint64(face.num_bonds), np.uint32(first), forest, split, halves, numbers, roots,
                codes, totals,
            )  # fmt: skip
            faces.append((roots, codes, face.num_bonds))
        most = min(count, sum(face.num_bonds for face in meeting.left))
        left = result.take("sizes", most, np.uint64), result.take("flags", most, np.uint32)
        if count:
            finished = forest, number, split, sizes, flags, numbers, np.int32(bins), left, totals
            self._launches.blocks(kernels.finish_kernel, blocks, THREADS, *finished)
        for roots, _, bonds in faces:
            each(kernels.renumber_kernel, bonds, 1, roots, np.uint64(bonds), numbers)
        self._launches.download(totals, self._pinned)
        self._launches.wait()
        pinned = self._pinned
        self._turn = 1 - self._turn
        if pinned[kernels.TOO_FAR]:
            raise InputError(
                f"clusters wind more than {kernels.MOST_PERIODS} times around the lattice, which "
                "CUDA does not tell apart; use --device cpu"
            )
        low, high = (
            Face(_part(roots, bonds), _part(codes, bonds if meeting.has_codes else 0))
            for roots, codes, bonds in faces
        )
        opened = int(pinned[kernels.OPEN])
        opened_sizes, opened_flags = (_part(array, opened) for array in left)
        sums = _read_sums(pinned, bins, blocks if count else 0)
        return meeting.interface((low, high), opened_sizes, opened_flags, sums)

    def _clusters(self, interface: Interface) -> tuple[Any, Any]:
        if not interface.num_clusters:
            return self._no_sizes, self._no_flags
        return interface.sizes, interface.flags

    def _entries(self, face: Face) -> tuple[Any, Any]:
        if not face.num_bonds:
            return self._no_flags, self._no_codes
        return face.clusters, face.codes if face.codes.size else self._no_codes


def _part(array: Any, size: int) -> Any:
    """Return the first elements of a device array; an empty result is on the host."""
    return array[:size] if size else np.empty(0, array.dtype)


def _read_sums(totals: Any, bins: int, blocks: int) -> InterfaceSums:
    """Return the sums over the finished clusters from the totals of the kernels."""
    powers = totals[kernels.SQUARES : kernels.TOTALS].reshape(-1, kernels.DIGITS)
    squares, cubes, fourths = map(join_digits, powers)
    clusters = merge_sums(totals[kernels.TOTALS + bins :][: NUMBERS * blocks])
    return InterfaceSums(
        ClusterSums(*map(int, clusters))._replace(sum_squares=squares),
        cubes,
        fourths,
        tuple(totals[kernels.TOTALS : kernels.TOTALS + bins].tolist()),
        int(totals[kernels.FLAGS]),
        int(totals[kernels.LOOP].astype(np.int64)),
    )


def to_device(interface: Interface) -> Interface:
    """Return an interface with its arrays on the selected GPU, copied only if necessary."""
    return _with_copies(interface, lambda x: cuda.to_device(x) if isinstance(x, np.ndarray) else x)


def to_host(interface: Interface) -> Interface:
    """Return an interface with its arrays on the host, copied only if necessary."""
    return _with_copies(interface, lambda x: x if isinstance(x, np.ndarray) else x.copy_to_host())


def _with_copies(interface: Interface, copy: Callable[[Any], Any]) -> Interface:
    """Return an interface with copies of its arrays; empty ones are on the host."""
    return interface.with_arrays(
        [copy(x) if x.size else np.empty(0, x.dtype) for x in interface.arrays]
    )
