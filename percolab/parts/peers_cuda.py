"""Interfaces from one GPU of a host to another, over the link between them.

The rank that sends copies the arrays of an interface into one piece of its GPU's memory and says
where that is (:class:`Outbox`).  The one that receives, another process, maps this memory, copies
it into its own GPU's and unmaps it (:class:`Inbox`); then it answers, and the sender may write
there again.  It works on Linux, where the GPUs can reach each other; where it does not, interfaces
go through the host.  Source: CUDA driver API, interprocess communication.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.device import load_cuda
from percolab.kernels.launches import checked
from percolab.parts.interface import ARRAY_KINDS, Interface
from percolab.parts.join_cuda import DeviceArrays

cuda = load_cuda()

# Bytes that arrays begin at multiples of, and those of a handle.
_ALIGNED, _HANDLE = 256, 64


def _starts(counts: Sequence[int]) -> tuple[list[int], int]:
    """Return at which byte each of the arrays begins, and how many bytes there are in all."""
    starts, end = [], 0
    for count, kind in zip(counts, ARRAY_KINDS):
        starts.append(end)
        end += -(-count * np.dtype(kind).itemsize // _ALIGNED) * _ALIGNED
    return starts, end


def _pointer(array: Any) -> int:
    return int(array.device_ctypes_pointer.value)


class Outbox:
    """Memory of the selected GPU that another process may copy an interface from."""

    def __init__(self) -> None:
        self._memory = DeviceArrays(10, 2)

    def offer(self, interface: Interface) -> list[NDArray[Any]]:
        """Return where an interface of this GPU was copied to, as an :class:`Inbox` takes it.

        The copy stays until the next one is offered.  Nothing is returned if no other process can
        map it.
        """
        from cuda.bindings import driver

        arrays = interface.arrays
        counts = [int(array.size) for array in arrays]
        starts, total = _starts(counts)
        memory = _pointer(self._memory.take("front", total, np.uint8))
        try:
            handle = checked(driver.cuIpcGetMemHandle(memory))
            base = checked(driver.cuMemGetAddressRange(memory))
        except RuntimeError:
            return []
        cuda.synchronize()
        for array, start, count in zip(arrays, starts, counts):
            if count:
                size = count * array.dtype.itemsize
                checked(driver.cuMemcpyDtoD(memory + start, _pointer(array), size))
        cuda.synchronize()
        where = np.array([memory - int(base), *counts], np.int64)
        name = np.frombuffer(ctypes.string_at(handle.getPtr(), _HANDLE), np.uint8)
        return [where, name]


class Inbox:
    """Memory of the selected GPU for an interface that another process offers."""

    def __init__(self) -> None:
        self._memory = DeviceArrays(10, 2)

    def take(self, offer: Sequence[NDArray[Any]], interface: Interface) -> Interface | None:
        """Return an interface with the offered arrays, copied here; they stay until the next.

        interface: what else there is of it.  None: they cannot be mapped.
        """
        from cuda.bindings import driver

        (offset, *counts), name = offer[0].tolist(), offer[1]
        arrays = [
            self._memory.take(str(n), count, kind)[:count] if count else np.empty(0, kind)
            for n, (count, kind) in enumerate(zip(counts, ARRAY_KINDS))
        ]
        handle = driver.CUipcMemHandle()
        ctypes.memmove(handle.getPtr(), name.tobytes(), _HANDLE)
        reach = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.value
        try:
            base = checked(driver.cuIpcOpenMemHandle(handle, reach))
        except RuntimeError:
            return None
        try:
            for array, start, count in zip(arrays, _starts(counts)[0], counts):
                if count:
                    place, size = int(base) + offset + start, count * array.dtype.itemsize
                    checked(driver.cuMemcpyDtoD(_pointer(array), place, size))
            cuda.synchronize()
        finally:
            checked(driver.cuIpcCloseMemHandle(base))
        return interface.with_arrays(arrays)
