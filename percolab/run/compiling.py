"""First calls of a study, which compile its kernels; several processes do so if some are missing.

Numba compiles in one thread of a process, and finds on the disk what another process compiled.  The
process of the study makes real calls, of one sample each.  The others launch nothing: they compile
what no process is compiling yet, and their calls end where the results of a kernel would be read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from numba.core import event

from percolab.kernels.device import Device, begin_context
from percolab.kernels.first_launches import (
    compile_unlocked,
    launch_locked,
    launched_by,
    refuse_reading,
)
from percolab.kernels.memory import without_collections
from percolab.lattices.lattice import Lattice
from percolab.run import executors
from percolab.run.calls import be_worker
from percolab.run.processes import Hooks, Processes
from percolab.tasks.kind import BlockSampler, SamplerSpec

# Each process has a context on the GPU, half a gigabyte, and a sample, which takes less up to this
# number of grid points; half of the memory is left free.
_MOST_PROCESSES, _PROCESS_BYTES, _MOST_POINTS = 8, 2**30, 2**22


class _FirstCall(NamedTuple):
    """One of the calls of ``BlockSampler.first_calls``, as it is sent to another process."""

    spec: SamplerSpec
    with_pilot: bool
    number: int

    def make(self, device: Device) -> None:
        sampler = self.spec.make(self.spec.task, device)
        sampler.first_calls(with_pilot=self.with_pilot)[self.number]()


def make_first_calls(samplers: Sequence[BlockSampler], device: Device, *, with_pilot: bool) -> None:
    """Make the first calls of samplers, one sampler for each size.

    When one of them compiles for a GPU, other processes compile what the later ones need.
    """
    calls = [
        (call, _FirstCall(sampler.spec(), with_pilot, number))
        for sampler in samplers
        for number, call in enumerate(sampler.first_calls(with_pilot=with_pilot))
    ]
    with ExitStack() as stack:
        # Compiling makes little garbage, and collecting it would take a tenth of the time.
        stack.enter_context(without_collections())

        def start() -> None:
            if device.is_shared:
                _start_processes([each for _, each in calls], device, stack)

        with report_compiling(start, device):
            for call, _ in calls:
                call()


def _start_processes(calls: Sequence[_FirstCall], device: Device, stack: ExitStack) -> None:
    """Start processes, if possible, that compile what calls need, until the end of ``stack``."""
    tasks = [each.spec.task for each in calls]
    is_small = all(task.num_points <= _MOST_POINTS for task in tasks)
    is_lattice = isinstance(tasks[0].structure, Lattice)
    if not (is_small and is_lattice and executors.can_start_processes()):
        return
    fitting = device.free_memory() // (2 * _PROCESS_BYTES)
    count = min(len(calls) + 1, executors.usable_cores() - 1, _MOST_PROCESSES, fitting)
    if count < 1:
        return
    try:
        locks = Path(stack.enter_context(TemporaryDirectory(prefix="percolab-")))
    except OSError:  # no place for locks
        return
    names = (str(device),) * count
    hooks = Hooks(be_worker, arguments=(names,), early=partial(begin_context, names))
    pool = Processes(count, 1, hooks)
    stack.callback(pool.shutdown, wait=False, cancel_futures=True)
    stack.enter_context(launched_by(partial(launch_locked, locks)))
    backwards = calls[::-1]
    for number in range(count):
        # Each begins with a different call, the first one with the call that the study makes last.
        first = number % len(calls)
        mine = [*backwards[first:], *backwards[:first]]
        pool.submit(_compile_ahead, mine, str(device), locks)


def _compile_ahead(calls: Sequence[_FirstCall], device_name: str, locks: Path) -> None:
    """Compile the kernels of calls that no other process compiles; runs in a separate process."""
    device = Device.parse(device_name)
    refuse_reading(device)
    with without_collections(), launched_by(partial(compile_unlocked, locks)):
        for call in calls:
            # Any error is ignored here: the process of the study makes this call, too.
            with suppress(Exception):
                call.make(device)


@contextmanager
def report_compiling(report: Callable[[], None], device: Device) -> Iterator[None]:
    """Call ``report`` once if Numba compiles for a device inside; it does not if all is cached."""
    calls = iter([report])

    def on_start(listener: Any, event: Any) -> None:
        for first in calls:
            first()

    methods = {"on_start": on_start, "on_end": lambda listener, event: None}
    events: list[tuple[Any, str]] = [(event, "numba:compile")]
    if device.kind == "cuda":
        # The built-in CUDA target, deprecated, has no events of its own; numba-cuda 0.30 has none
        # of kernels but those of their passes.
        with suppress(ImportError):
            module = import_module("numba.cuda.core.event")
            events += [(module, "numba-cuda:compile"), (module, "numba-cuda:run_pass")]
    with ExitStack() as stack:
        for module, kind in events:
            listener = type("Listener", (module.Listener,), methods)()
            stack.enter_context(module.install_listener(kind, listener))
        yield
