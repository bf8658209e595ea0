"""Two timers: device events on CUDA, the performance counter on the CPU.

Both measure the machine's copy bandwidth in the same way, by timing a copy.
"""

import gc
import os
import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from percolab.kernels.device import Device, device_name, free_memory, open_device
from percolab.store.provenance import processor_name

Work = Callable[[], object]

#: Seconds of untimed work before a measurement, so that clocks are up and kernels compiled.
WARM_UP_SECONDS = 0.1
#: Number of untimed calls.  On CUDA the first compiles, the second is captured as a graph.
WARM_UP_CALLS = {"cpu": 1, "cuda": 3}
#: Bytes of each of the two arrays of a copy: far larger than any cache.
COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}
# A copy takes half a millisecond on a fast GPU, so time several to make launches negligible.
_COPIES = 8


class Timer:
    """The timer of the CPU: the performance counter, for work on the calling thread."""

    device = Device("cpu")

    def seconds(self, work: Work) -> float:
        """Return the duration of ``work`` in seconds."""
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    def free_memory(self) -> int:
        """Return the free bytes of the host's memory."""
        return self.device.free_memory()

    def copier(self) -> tuple[Work, int]:
        """Return a copy by NumPy, on one thread, and the bytes it reads and writes."""
        source, target = (np.full(COPY_BYTES["cpu"] // 4, n, np.uint32) for n in range(2))
        return lambda: np.copyto(target, source), 2 * source.nbytes

    def machine(self) -> dict[str, Any]:
        """Return the processor and the system."""
        return {
            "device": "cpu",
            "device_name": processor_name(),
            "processor": processor_name(),
            "logical_cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        }


class CudaTimer(Timer):
    """The timer of a CUDA device: two events in the default stream, and a wait for the second.

    ``cuda`` is the numba.cuda module with the device selected.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.cuda: Any = open_device(str(device))

    def seconds(self, work: Work) -> float:
        """Return the time between an event before and one after ``work``, in seconds."""
        begin, end = self.cuda.event(), self.cuda.event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def copier(self) -> tuple[Work, int]:
        elements = min(COPY_BYTES["cuda"], self.free_memory() // 4) // 4
        source, target = (self.cuda.device_array(elements, np.uint32) for _ in range(2))

        def work() -> None:
            for _ in range(_COPIES):
                target.copy_to_device(source)

        return work, 2 * _COPIES * 4 * elements

    def free_memory(self) -> int:
        """Return the free bytes of the device, after unused arrays are released."""
        gc.collect()
        # Numba collects freed arrays, and releases them in batches.
        manager = getattr(self.cuda.current_context(), "memory_manager", None)
        if manager is not None:
            manager.deallocations.clear()
        return free_memory(self.cuda)

    def machine(self) -> dict[str, Any]:
        return super().machine() | {
            "device": str(self.device),
            "device_name": device_name(self.cuda),
            "driver": driver_version(),
            "cuda": "{}.{}".format(*self.cuda.runtime.get_version()),
        }


def driver_version(path: Path = Path("/proc/driver/nvidia/version")) -> str | None:
    """Return the version of NVIDIA's kernel driver, or None if the system does not report it."""
    try:
        match = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", path.read_text(encoding="utf-8"))
    except OSError:
        return None
    return match and match.group()


def make_timer(device: Device) -> Timer:
    """Return the timer of a resolved device; InputError if there is no such CUDA device."""
    return CudaTimer(device) if device.kind == "cuda" else Timer()


def warm_up(timer: Timer, work: Work, calls: int = 1) -> None:
    """Do work at least ``calls`` times, and long enough for clocks to be up."""
    begin, done = time.perf_counter(), 0
    while done < calls or time.perf_counter() - begin < WARM_UP_SECONDS:
        timer.seconds(work)
        done += 1


def time_runs(timer: Timer, work: Work, runs: int, warm_up_calls: int = 1) -> np.ndarray:
    """Return the seconds of ``runs`` runs, float64 (runs,), after the device has warmed up."""
    warm_up(timer, work, warm_up_calls)
    return np.array([timer.seconds(work) for _ in range(runs)])


def time_calls(work: Work, kind: str, runs: int) -> np.ndarray:
    """Return the seconds of whole calls by the host's clock, float64 (runs,).

    The work ends when its result is on the host, or the device has finished.
    """
    return time_runs(Timer(), work, runs, WARM_UP_CALLS[kind])


def copy_bandwidth(timer: Timer, runs: int) -> float:
    """Return the bytes per second that a copy reads and writes in total, median over ``runs``.

    CUDA: from device memory to device memory.  CPU: NumPy's copy on one thread.
    """
    work, moved = timer.copier()
    return moved / float(np.median(time_runs(timer, work, runs)))
