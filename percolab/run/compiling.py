"""Compiling before a study starts: reported, and for a GPU by several processes at the same time.

Numba compiles a kernel when it is first called and keeps it on the disk.  It compiles one at a time
in a process, and the kernels of a first study take a GPU's host half a minute.  So what a study
calls first is rehearsed where kernels are missing: nothing is launched, each kernel that would be
is compiled by one of several processes, and this one reads them from the disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

from numba.core import config, event

from percolab.kernels.device import Device, begin_context, load_cuda
from percolab.kernels.registry import load
from percolab.run.executors import usable_cores
from percolab.run.processes import Hooks, Processes

#: Processes that compile, at most, and kernels that a rehearsal launches.
_MOST_PROCESSES, _MOST_LAUNCHES = 12, 10_000


class _Missing(Exception):
    """A kernel is neither compiled nor on the disk."""


class _Enough(Exception):
    """A rehearsal does not come to an end by itself, as it has no results."""


@contextmanager
def report_compiling(report: Callable[[], None], device: Device) -> Iterator[Callable[[], None]]:
    """Call ``report`` once if Numba compiles for a device inside, which it need not if cached.

    Yields what does the same where others are going to compile.
    """
    calls = iter([report])

    def report_once() -> None:
        for first in calls:
            first()

    def on_start(listener: Any, event: Any) -> None:
        report_once()

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
        yield report_once


def compile_first(work: Callable[[], None], device: Device, report: Callable[[], None]) -> None:
    """Do ``work``, after its kernels have been compiled by several processes if any is missing.

    work: can be done again from its beginning.  report: is called before that.
    """
    processes = min(usable_cores(), _MOST_PROCESSES)
    if device.kind != "cuda" or processes < 2 or config.ENABLE_CUDASIM:  # type: ignore[attr-defined]
        work()
        return
    launched_by = load("kernels.launches:launched_by")
    try:
        with launched_by(_launch_compiled):
            work()
        return
    except _Missing:
        report()
    early = partial(begin_context, (str(device),) * processes)
    with Processes(processes, 1, Hooks(_begin, arguments=(device,), early=early)) as pool:
        pool.start()
        rehearsal = _Rehearsal(pool)
        # Without results it may end with any error; what it did not come to is compiled later.
        with suppress(Exception), launched_by(rehearsal.note):
            work()
        rehearsal.wait()
    work()


def _launch_compiled(kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
    if not _is_compiled(kernel, _types_of(kernel, arguments)):
        raise _Missing
    kernel[configuration](*arguments)


def _types_of(kernel: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(kernel.typeof_pyval(argument) for argument in arguments)


def _is_compiled(kernel: Any, types: tuple[Any, ...]) -> bool:
    """Return whether a kernel is compiled for arguments of these types, here or on the disk."""
    kernel._can_compile = False
    try:
        kernel.compile(types)
    except RuntimeError:
        return False
    finally:
        kernel._can_compile = True
    return True


class _Rehearsal:
    """Has a pool compile what would be launched, each kernel once for its arguments' types."""

    def __init__(self, pool: Processes) -> None:
        self._pool = pool
        self._calls: dict[tuple[Any, ...], Future[None]] = {}
        self._launches = 0

    def note(self, kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
        """Have a kernel compiled in the place of being launched."""
        self._launches += 1
        if self._launches > _MOST_LAUNCHES:
            raise _Enough
        module, name = kernel.py_func.__module__, kernel.py_func.__qualname__
        types = _types_of(kernel, arguments)
        # A process finds by its name what a module has under it.
        is_found = getattr(sys.modules[module], name, None) is kernel
        if is_found and (kernel, types) not in self._calls and not _is_compiled(kernel, types):
            self._calls[kernel, types] = self._pool.submit(_compile, module, name, types)

    def wait(self) -> None:
        """Wait until all are compiled; what a process cannot compile will be tried once more."""
        for call in self._calls.values():
            with suppress(Exception):
                call.result()


def _begin(number: int, device: Device) -> None:
    load_cuda().select_device(device.number)


def _compile(module: str, name: str, types: tuple[Any, ...]) -> None:
    getattr(import_module(module), name).compile(types)
