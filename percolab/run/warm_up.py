"""The first call of every kernel, which compiles it or loads it: before anything is timed.

Numba compiles a kernel when it is first called, for which a fresh install takes a minute or two,
and keeps it on the disk.  A sweep makes these calls with a single sample before it starts to count,
so that its rate and the time it has left are those of sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from numba.core import event

from percolab.errors import InputError
from percolab.run.sampler import Device, Sampler
from percolab.tasks.study import Study, Task

# Kernels do not depend on the size of a lattice on the CPU, so the smallest of this L will do.
_SMALL = 4


def warm_up(study: Study, device: Device, labeler: str, *, with_pilot: bool) -> None:
    """Call once what sampling a study calls, and what its pilot calls if there is one.

    On a GPU what is compiled may depend on the size, and one sample of any takes little.
    """
    tasks = [_small_task(study)] if device.kind == "cpu" else [_task(study, L) for L in study.sizes]
    for task in tasks:
        # A share of nothing: memory for one sample.
        sampler = Sampler(task, labeler=labeler, device=device, share=0.0)
        sampler.call_first(with_pilot=with_pilot)


@contextmanager
def heard_compiling(tell: Callable[[], None], device: Device) -> Iterator[None]:
    """Call ``tell`` once if Numba compiles something for a device inside.

    What comes from the disk is not compiled.
    """
    told: list[bool] = []

    def tell_once() -> None:
        if not told:
            told.append(True)
            tell()

    with ExitStack() as stack:
        for module, kind in _compile_events(device):
            stack.enter_context(module.install_listener(kind, _listener(module, tell_once)))
        yield


def _listener(module: Any, tell: Callable[[], None]) -> Any:
    """Return a listener, of the kind that a module of events takes, which tells of every start."""

    class Listener(module.Listener):
        def on_start(self, event: Any) -> None:
            tell()

        def on_end(self, event: Any) -> None:
            pass

    return Listener()


def _compile_events(device: Device) -> list[tuple[Any, str]]:
    """Return Numba's events and the kind to hear, and those of its CUDA target, which has its own.

    The built-in CUDA target, deprecated, has none: there nothing is told.
    """
    found: list[tuple[Any, str]] = [(event, "numba:compile")]
    if device.kind == "cuda":
        with suppress(ImportError):
            found.append((import_module("numba.cuda.core.event"), "numba-cuda:compile"))
    return found


def _small_task(study: Study) -> Task:
    """Return the task of a study at a small size that its lattice and boundary allow."""
    for size in range(_SMALL, study.sizes[0]):
        try:
            return _task(study, size)
        except InputError:
            continue
    return _task(study, study.sizes[0])


def _task(study: Study, size: int) -> Task:
    """Return a task of one sample a block; its p makes no difference."""
    p = () if study.method == "threshold" else (0.5,)
    return replace(study.task(size, p), block_size=1)
