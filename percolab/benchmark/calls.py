"""Kernels one by one: on CUDA every kernel of a call is timed separately, by device events."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from percolab.benchmark.records import Setting, TimeRecord
from percolab.benchmark.timer import Timer, Work, warm_up
from percolab.kernels.device import open_device

Events = defaultdict[str, list[tuple[Any, Any]]]
#: The name of the whole call, timed by the host's clock while launched kernel by kernel.
WHOLE = "call"


class _TimedKernel:
    """A replacement of a kernel that records an event before and after every launch."""

    def __init__(self, cuda: Any, kernel: Any, pairs: list[tuple[Any, Any]]) -> None:
        self.cuda, self.kernel, self.pairs = cuda, kernel, pairs

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        stream = configuration[2] if len(configuration) > 2 else 0

        def launch(*arguments: Any) -> None:
            begin, end = self.cuda.event(), self.cuda.event()
            begin.record(stream)
            self.kernel[configuration](*arguments)
            end.record(stream)
            self.pairs.append((begin, end))

        return launch


def is_kernel(value: Any) -> bool:
    from numba.cuda.dispatcher import CUDADispatcher

    return isinstance(value, CUDADispatcher) and not value.targetoptions["device"]


@contextmanager
def kernel_events(cuda: Any) -> Iterator[Events]:
    """Yield the events of all kernels by name, as they are launched within the context.

    Within it calls are launched kernel by kernel, not as captured graphs.  Only kernels of loaded
    modules are timed: run the work once before.
    """
    from percolab.kernels.launches import Launches

    events: Events = defaultdict(list)
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            for key, kernel in list(vars(module).items()) if name.startswith("percolab.") else ():
                if is_kernel(kernel):
                    timed = _TimedKernel(cuda, kernel, events[key.removesuffix("_kernel")])
                    stack.enter_context(patch.object(module, key, timed))
        stack.enter_context(patch.object(Launches, "call", lambda self, key, work: work()))
        yield events


def sum_events(events: Events) -> dict[str, float]:
    """Return the seconds of every kernel that was launched, and discard the events."""
    seconds = {}
    for name, pairs in events.items():
        if pairs:
            seconds[name] = sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3
            pairs.clear()
    return seconds


def time_call_kernels(
    setting: Setting, base: TimeRecord, works: Mapping[str, Work]
) -> Iterator[TimeRecord]:
    """Yield the time of every kernel of each call, compared with the whole call; none on a CPU.

    works: the calls, by name of the part of the stage
    """
    if setting.kind != "cuda":
        return
    cuda, host = open_device(str(setting.device)), Timer()
    for part, work in works.items():
        work()  # loads the modules of its kernels
        times: dict[str, list[float]] = defaultdict(list)
        with kernel_events(cuda) as events:

            def call(work: Work = work) -> None:
                work()
                cuda.synchronize()

            warm_up(host, call)
            sum_events(events)
            for _ in range(setting.runs):
                times[WHOLE].append(host.seconds(call))
                for name, seconds in sum_events(events).items():
                    times[name].append(seconds)
        whole = base.timed(times.pop(WHOLE), part=f"{part}:{WHOLE}")
        yield whole
        for name, each in times.items():
            yield base.timed(each, part=f"{part}:{name}").compared(whole, "its call")
