"""How kernels are launched while the first calls of a study are made: by a process at a time.

Several processes then compile the kernels of a study.  Each kernel has a lock, a file, which a
process has while it compiles; the cache of Numba hands what it made to the others.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from percolab.kernels.device import Device, load_cuda

#: Launches a kernel, or does something else in its place: kernel, configuration, arguments.
Launcher = Callable[[Any, Any, tuple[Any, ...]], None]
# Seconds after which a kernel is compiled here, whatever another process does.
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
    """Leave the launches of this thread to ``launcher``."""
    _THREAD.launcher = launcher
    try:
        yield
    finally:
        del _THREAD.launcher


def launch_locked(locks: Path, kernel: Any, configuration: Any, arguments: tuple[Any, ...]) -> None:
    """Launch a kernel, which is compiled after another process that compiles it."""
    with ExitStack() as stack:
        if _argument_types(kernel, arguments) not in kernel.overloads:
            with suppress(Timeout):
                stack.enter_context(_lock(locks, kernel).acquire(_PATIENCE))
        _launch_now(kernel, configuration, arguments)


def compile_unlocked(locks: Path, kernel: Any, _: Any, arguments: tuple[Any, ...]) -> None:
    """Compile a kernel unless another process does; launch nothing."""
    types = _argument_types(kernel, arguments)
    if types not in kernel.overloads:
        with suppress(Timeout), _lock(locks, kernel).acquire(blocking=False):
            kernel.compile(types)


def refuse_reading(device: Device) -> None:
    """Let this process read nothing from GPUs any more, since nothing is launched."""
    if device.kind == "cuda":
        load_cuda()
        array = import_module("numba.cuda.cudadrv.devicearray").DeviceNDArrayBase
        array.copy_to_host = _refuse


def _refuse(*_: Any, **__: Any) -> None:
    raise RuntimeError("no kernel has written anything")


def _argument_types(kernel: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(kernel.typeof_pyval, arguments))


def _lock(locks: Path, kernel: Any) -> FileLock:
    # One for all types: the cache of a function takes one new entry at a time.
    return FileLock(locks / f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}")
