"""Every CUDA kernel of a call by itself, by device events."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import percolab.benchmark.timer as clock
from percolab.benchmark.calls import CallTime, Setting
from percolab.benchmark.timer import Work
from percolab.kernels.device import open_device
from percolab.kernels.launches import Launches

Events = defaultdict[str, list[tuple[Any, Any]]]
#: What the whole call takes by the host's clock, launched kernel by kernel.
WHOLE = "call"


class _TimedKernel:
    """Takes the place of a kernel and records an event before and after every launch."""

    def __init__(self, cuda: Any, kernel: Any, add: Callable[[tuple[Any, Any]], None]) -> None:
        self.cuda, self.kernel, self.add = cuda, kernel, add

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        """Return a function that launches the kernel with this configuration."""
        stream = configuration[2] if len(configuration) > 2 else 0

        def launch(*arguments: Any) -> None:
            begin, end = self.cuda.event(), self.cuda.event()
            begin.record(stream)
            self.kernel[configuration](*arguments)
            end.record(stream)
            self.add((begin, end))

        return launch


def is_kernel(item: Any) -> bool:
    """Return whether an object is a CUDA kernel that a host can launch."""
    from numba.cuda.dispatcher import CUDADispatcher

    return isinstance(item, CUDADispatcher) and not item.targetoptions["device"]


@contextmanager
def kernel_events(cuda: Any) -> Iterator[Events]:
    """Yield the events of all kernels by name, as they are launched within the context.

    Meanwhile calls are launched kernel by kernel, not as captured graphs.  Only kernels of loaded
    modules are replaced: run the work once before.
    """
    events: Events = defaultdict(list)
    replaced: list[tuple[Any, str, Any]] = [(Launches, "call", Launches.call)]
    for name, module in list(sys.modules.items()):
        if name.startswith("percolab."):
            found = [(key, item) for key, item in vars(module).items() if is_kernel(item)]
            replaced += [(module, key, item) for key, item in found]
    try:
        for place, key, item in replaced[1:]:
            add = events[key.removesuffix("_kernel")].append
            setattr(place, key, _TimedKernel(cuda, item, add))
        setattr(*replaced[0][:2], lambda self, key, work: work())
        yield events
    finally:
        for place, key, item in replaced:
            setattr(place, key, item)


def sum_events(events: Events) -> dict[str, float]:
    """Return the seconds of every kernel that was launched, and forget the events."""
    found = {
        name: sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3
        for name, pairs in events.items()
        if pairs
    }
    for pairs in events.values():
        pairs.clear()
    return found


def time_kernels(cuda: Any, work: Work, runs: int) -> dict[str, list[float]]:
    """Return the seconds of every kernel that ``work`` launches, and of :data:`WHOLE`, by run."""
    work()
    found: dict[str, list[float]] = defaultdict(list)
    with kernel_events(cuda) as events:
        begin = time.perf_counter()
        work()
        while time.perf_counter() - begin < clock.WARM_UP_SECONDS:
            work()
        cuda.synchronize()
        sum_events(events)
        for _ in range(runs):
            begin = time.perf_counter()
            work()
            cuda.synchronize()
            found[WHOLE].append(time.perf_counter() - begin)
            for name, seconds in sum_events(events).items():
                found[name].append(seconds)
    return dict(found)


def time_call_kernels(
    setting: Setting, base: CallTime, works: Mapping[str, Work]
) -> Iterator[CallTime]:
    """Yield the time of every kernel of each call, compared with the whole call; none on a CPU.

    works: the calls, by the part of the stage that they are
    """
    if setting.kind != "cuda":
        return
    cuda = open_device(str(setting.device))
    for part, work in works.items():
        found = time_kernels(cuda, work, setting.runs)
        whole = base.timed(found.pop(WHOLE), part=f"{part}:{WHOLE}")
        yield whole
        for name, seconds in found.items():
            yield base.timed(seconds, part=f"{part}:{name}").compared(whole, "its call")
