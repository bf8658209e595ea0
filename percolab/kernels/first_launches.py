"""The launch of kernels during the first calls of a study: one process compiles each kernel.

Several processes share the compilation of a study's kernels.  Each kernel has a lock file, which a
process holds while it compiles; the others load the result from Numba's cache.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from percolab.kernels.device import Device, load_cuda

#: Launches a kernel, or does something else instead; called with kernel, configuration, arguments.
Launcher = Callable[[Any, Any, tuple[Any, ...]], None]
# Seconds to wait for another process before a kernel is compiled here, too.
_PATIENCE = 120.0


def _launch_now(kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
    kernel[configuration](*arguments)


#: ``launcher`` of a thread, if there is one.
_THREAD = threading.local()


def launch(kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
    """Launch a kernel; configuration: blocks, threads, stream, bytes of shared memory."""
    launcher: Launcher = getattr(_THREAD, "launcher", _launch_now)
    launcher(kernel, configuration, arguments)


@contextmanager
def launched_by(launcher: Launcher) -> Iterator[None]:
    """Pass all launches of this thread to ``launcher``."""
    _THREAD.launcher = launcher
    try:
        yield
    finally:
        del _THREAD.launcher


def launch_locked(locks: Path, kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
    """Launch a kernel; if another process is compiling it, wait for that first."""
    with ExitStack() as stack:
        if _argument_types(kernel, arguments) not in kernel.overloads:
            with suppress(Timeout):
                stack.enter_context(_lock(locks, kernel).acquire(_PATIENCE))
        _launch_now(kernel, configuration, arguments)


def compile_unlocked(locks: Path, kernel: Any, _: Any, arguments: tuple[Any, ...]) -> None:
    """Compile a kernel unless another process is compiling it; launch nothing."""
    types = _argument_types(kernel, arguments)
    if types not in kernel.overloads:
        with suppress(Timeout), _lock(locks, kernel).acquire(blocking=False):
            kernel.compile(types)


def refuse_reading(device: Device) -> None:
    """Make this process fail if it reads from GPUs, since it launches nothing."""
    if device.kind == "cuda":
        load_cuda()
        array = import_module("numba.cuda.cudadrv.devicearray").DeviceNDArrayBase
        array.copy_to_host = _refuse


def _refuse(*_: Any, **__: Any) -> None:
    raise RuntimeError("no kernel has written anything")


def _argument_types(kernel: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(kernel.typeof_pyval, arguments))


def _lock(locks: Path, kernel: Any) -> FileLock:
    # One lock for all argument types: a function's cache takes one new entry at a time.
    return FileLock(locks / f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}")
