"""First calls of a study, which compile its kernels; by several processes if some are missing.

Numba compiles in one thread of a process, and finds on the disk what another process compiled.  All
processes make real calls, of one sample each, so none reads what no kernel has written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from numba.core import event

from percolab.kernels.device import Device, begin_context
from percolab.kernels.memory import without_collections
from percolab.lattices.lattice import Lattice
from percolab.run import executors
from percolab.run.calls import be_worker
from percolab.run.processes import Hooks, Processes
from percolab.tasks.kind import BlockSampler, SamplerSpec

# Each has a context on the GPU, half a gigabyte, and a sample, less than that with so many grid
# points; half of the memory is left free.
_MOST_PROCESSES, _PROCESS_BYTES, _MOST_POINTS = 8, 2**30, 2**22
# Seconds after which a call is made here whatever another process does.
_PATIENCE = 120.0


class _FirstCall(NamedTuple):
    """One of the calls of ``BlockSampler.first_calls``, as it travels to another process."""

    spec: SamplerSpec
    with_pilot: bool
    number: int

    def make(self, device: str) -> None:
        sampler = self.spec.make(self.spec.task, Device.parse(device))
        with without_collections():
            sampler.first_calls(with_pilot=self.with_pilot)[self.number]()


def make_first_calls(samplers: Sequence[BlockSampler], device: Device, *, with_pilot: bool) -> None:
    """Make the first calls of samplers, one a size.

    Once one compiles for a GPU, other processes make the later ones too.  Every call is made here,
    after the process that compiles what it needs, if one does.
    """
    calls = [
        (call, _FirstCall(sampler.spec(), with_pilot, number))
        for sampler in samplers
        for number, call in enumerate(sampler.first_calls(with_pilot=with_pilot))
    ]
    elsewhere: dict[int, Future[None]] = {}
    with ExitStack() as stack:
        # Compiling makes little garbage, and a tenth of its time would go into looking for it.
        stack.enter_context(without_collections())

        def start() -> None:
            # Two sizes mostly need the same kernels, and a process takes seconds to be there.
            if device.is_shared and len(samplers) > 2:
                elsewhere.update(_start_processes([each for _, each in calls], device, stack))

        with report_compiling(start, device):
            for number, (call, _) in enumerate(calls):
                if number in elsewhere and not elsewhere[number].cancel():
                    wait([elsewhere[number]], _PATIENCE)
                call()


def _start_processes(
    calls: Sequence[_FirstCall], device: Device, stack: ExitStack
) -> dict[int, Future[None]]:
    """Have other processes make all calls but the first, the last one first."""
    tasks = [each.spec.task for each in calls]
    is_small = all(task.num_points <= _MOST_POINTS for task in tasks)
    is_lattice = isinstance(tasks[0].structure, Lattice)
    if not (is_small and is_lattice and executors.can_start_processes()):
        return {}
    fitting = device.free_memory() // (2 * _PROCESS_BYTES)
    count = min(len(calls) - 1, executors.usable_cores() - 1, _MOST_PROCESSES, fitting)
    if count < 1:
        return {}
    names = (str(device),) * count
    hooks = Hooks(be_worker, arguments=(names,), early=partial(begin_context, names))
    pool = Processes(count, 1, hooks)
    stack.callback(pool.shutdown, wait=False, cancel_futures=True)
    later = reversed(range(1, len(calls)))
    return {number: pool.submit(calls[number].make, str(device)) for number in later}


@contextmanager
def report_compiling(report: Callable[[], None], device: Device) -> Iterator[None]:
    """Call ``report`` once if Numba compiles for a device inside, which it need not if cached."""
    calls = iter([report])

    def on_start(listener: Any, event: Any) -> None:
        for first in calls:
            first()

    methods = {"on_start": on_start, "on_end": lambda listener, event: None}
    events: list[tuple[Any, str]] = [(event, "numba:compile")]
    if device.kind == "cuda":
        # The built-in CUDA target, deprecated, has no events of its own.
        with suppress(ImportError):
            events.append((import_module("numba.cuda.core.event"), "numba-cuda:compile"))
    with ExitStack() as stack:
        for module, kind in events:
            listener = type("Listener", (module.Listener,), methods)()
            stack.enter_context(module.install_listener(kind, listener))
        yield
