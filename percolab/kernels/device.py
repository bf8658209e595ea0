"""The devices on which samples are made, and the only place where CUDA is imported.

``numba-cuda`` is an extra (``percolab[cuda13]``, ``percolab[cuda12]``); importing this module needs
it, so modules with CUDA kernels are imported only after :func:`cuda_problem` returned None.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil

from percolab.errors import InputError

# Only one thread at a time drives GPUs, whatever the tasks, while others sum up measurements:
# numba-cuda uses no lock when it loads a kernel into the device.
_DRIVING = threading.Lock()
#: The library of NVIDIA's driver on Linux.
_DRIVER = "libcuda.so.1"


@dataclass(frozen=True)
class Device:
    """The device that makes samples: kind "cpu" or "cuda", and the number of a CUDA device.

    Kind "auto" leaves the choice to :meth:`resolve`, so that CUDA is only searched when needed.
    others: numbers of further CUDA devices, which only a study over several processes uses
    (:meth:`resolve_all`); all other work is done on the first.
    """

    kind: str
    number: int = 0
    others: tuple[int, ...] = ()

    @classmethod
    def parse_all(cls, text: str) -> Device:
        """Read the texts of :meth:`parse`, "cuda:0,1", or "cuda" for all CUDA devices.

        InputError: any other text, a device that does not exist, or one that is named twice.
        """
        text = str(text)
        if text == "cuda":
            numbers = [str(number) for number in range(gpu_count(text))]
        else:
            numbers = text.removeprefix("cuda:").split(",")
        if len(numbers) == 1 or not (text == "cuda" or text.startswith("cuda:")):
            return cls.parse(text)
        if not all(number.isascii() and number.isdecimal() for number in numbers):
            raise InputError(f"--device {text}: must be auto, cpu, cuda, cuda:n or cuda:n,m")
        first, *others = map(int, numbers)
        if len({first, *others}) != len(numbers):
            raise InputError(f"--device {text}: a GPU is named twice")
        count = gpu_count(text)
        if max(first, *others) >= count:
            raise InputError(f"--device {text}: this machine has {count} CUDA device(s)")
        return cls("cuda", first, tuple(others))

    @classmethod
    def parse(cls, text: str) -> Device:
        """Read "auto", "cpu", "cuda" or "cuda:n"; InputError: any other text, or no such device."""
        text = str(text)
        if text == "cpu":
            return cls("cpu")
        kind, _, number = text.partition(":")
        if text != "auto" and (kind != "cuda" or (":" in text and not number.isdecimal())):
            raise InputError(f"--device {text}: must be auto, cpu, cuda or cuda:n")
        if text == "auto":
            return cls("auto")
        open_device(text)
        return cls("cuda", int(number or 0))

    def resolve(self) -> Device:
        """Return the device; "auto" is replaced by CUDA if it works here, else by the CPU."""
        if self.kind != "auto":
            return self
        return Device("cpu" if cuda_problem() else "cuda")

    def resolve_all(self) -> tuple[Device, ...]:
        """Return the devices as a tuple; "auto" stands for all GPUs if they work, else the CPU."""
        first = self.resolve()
        others = self.others
        if self.kind == "auto" and first.kind == "cuda":
            others = tuple(range(1, gpu_count("auto")))
        return Device(first.kind, first.number), *(Device("cuda", number) for number in others)

    @property
    def is_shared(self) -> bool:
        """Whether all threads share one labeler with a large batch; else each has its own."""
        return self.kind == "cuda"

    @contextmanager
    def driven(self) -> Iterator[None]:
        """Let this thread drive the device: one thread at a time, with the device selected.

        A thread that has selected no device would use the first.
        """
        if not self.is_shared:
            yield
            return
        with _DRIVING:
            load_cuda().select_device(self.number)
            yield

    def open(self) -> None:
        """Select the device; InputError if it does not exist."""
        if self.kind == "cuda":
            open_device(str(self))

    def free_memory(self) -> int:
        """Return the free bytes of the device's own memory, or of the host's."""
        if self.kind == "cpu":
            return int(psutil.virtual_memory().available)
        return free_memory(open_device(str(self)))

    def __str__(self) -> str:
        return f"cuda:{self.number}" if self.kind == "cuda" else "cpu"


def cuda_problem(number: int | None = None) -> str | None:
    """Return why CUDA cannot be used on this machine, or None if it can.

    number: the GPU that will be used, whose context the driver makes while numba.cuda is imported;
    None if it is not known yet.
    """
    if importlib.util.find_spec("numba_cuda") is None:
        return "numba-cuda is not installed (pip install 'percolab[cuda13]' or 'percolab[cuda12]')"
    if _driver_is_missing():
        return f"no usable CUDA device (the driver's library {_DRIVER} is not found)"
    if _is_real() and "numba.cuda" not in sys.modules:
        names = () if number is None else (f"cuda:{number}",)
        threading.Thread(target=begin_context, args=(names, 0)).start()
    from numba import cuda

    if cuda.is_available():
        return None
    return f"no usable CUDA device ({_first_line(_cuda_error())})"


def _driver_is_missing() -> bool:
    """Return whether this is Linux without a CUDA driver, which takes numba.cuda 0.2 s to find."""
    if not _is_real():
        return False
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return True
    return False


def _is_real() -> bool:
    """Return whether CUDA is NVIDIA's driver on Linux, not the simulator or another system's."""
    from numba import config

    is_simulated = config.ENABLE_CUDASIM or "NUMBA_CUDA_DRIVER" in os.environ
    return sys.platform == "linux" and not is_simulated


def _cuda_error() -> str:
    from numba import cuda

    try:
        cuda.current_context()
    except Exception as error:  # the driver raises many kinds of exceptions
        return str(error) or type(error).__name__
    return "the driver found none"


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line and not line.endswith(":")), "unknown error")


def open_device(name: str):
    """Select a CUDA device, "cuda" or "cuda:n", and return the numba.cuda module.

    InputError if there is none, or none with that number.
    """
    number = int(name.partition(":")[2] or 0)
    problem = cuda_problem(number)
    if problem:
        raise InputError(f"--device {name}: {problem}")
    cuda = load_cuda()
    if number >= len(cuda.gpus):
        raise InputError(f"--device {name}: this machine has {len(cuda.gpus)} CUDA device(s)")
    cuda.select_device(number)
    return cuda


def begin_context(names: Sequence[str], number: int) -> None:
    """Have the driver make a context on the GPU that ``names[number]`` names, if it can.

    That takes tenths of a second without Python's global lock, so that another thread can import
    modules meanwhile.  Code that opens the GPU then finds the context, or gets the error.  Without
    names the driver only looks for GPUs.
    """
    device, context = ctypes.c_int(), ctypes.c_void_p()
    with suppress(OSError):
        driver = ctypes.CDLL(_DRIVER)
        # Each call returns 0 on success.
        if driver.cuInit(0) != 0 or not names:
            return
        gpu = int(names[number].removeprefix("cuda:"))
        if driver.cuDeviceGet(ctypes.byref(device), gpu) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


def memory_gpu(address: int) -> int:
    """Return the number of the GPU whose memory has this address, 0 if the driver finds none."""
    gpu, device_ordinal = ctypes.c_int(), 9
    with suppress(OSError):
        driver = ctypes.CDLL(_DRIVER)
        driver.cuPointerGetAttribute(ctypes.byref(gpu), device_ordinal, ctypes.c_uint64(address))
    return gpu.value


_registered = False


def load_cuda() -> Any:
    """Import numba.cuda, give the atomics their CUDA bodies (once), and return the module."""
    global _registered
    from numba import config, cuda

    if not _registered and not config.ENABLE_CUDASIM:
        from numba.cuda.core import caching
        from numba.cuda.core import config as cuda_config

        from percolab.kernels.atomics import register_cuda
        from percolab.kernels.cache import stamp_kernels

        register_cuda()
        stamp_kernels(caching)
        # Small lattices do not fill a GPU; a user need not be warned at every launch.
        cuda_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        # At exit this is called before the finalizers that it detaches.
        atexit.register(_leave_kernels_loaded)
    _registered = True
    return cuda


def _leave_kernels_loaded() -> None:
    """Keep numba-cuda from unloading kernels at exit.

    It unloads a kernel once for every GPU, but all GPUs share one handle: a process that had used
    two GPUs crashed (numba-cuda 0.30.4, a segmentation fault in cuLibraryUnload).
    """
    from numba.cuda.cudadrv.driver import driver

    for gpu in driver.devices.values():
        modules = gpu.primary_context.modules.values() if gpu.primary_context else ()
        for reference in (weak for module in modules for weak in weakref.getweakrefs(module)):
            # The isinstance test is needed, as a weak proxy has the attributes of its module.
            callback = reference.__callback__ if isinstance(reference, weakref.ref) else None
            if isinstance(callback, weakref.finalize):
                callback.detach()


def gpu_count(name: str) -> int:
    """Return the number of CUDA devices; InputError, which names --device, if none works."""
    problem = cuda_problem()
    if problem:
        raise InputError(f"--device {name}: {problem}")
    return len(load_cuda().gpus)


def device_names(devices: Sequence[Device]) -> str:
    """Return the names of devices in the form of ``--device``.

    >>> device_names([Device("cpu")]), device_names([Device("cuda", 0), Device("cuda", 2)])
    ('cpu', 'cuda:0,2')
    """
    first, *others = devices
    return ",".join([str(first), *(str(device.number) for device in others)])


def gpu_name(number: int) -> str:
    """Return the name of a CUDA device without selecting it."""
    name = getattr(load_cuda().gpus[number], "name", "CUDA simulator")
    return name.decode() if isinstance(name, bytes) else str(name)


def device_name(cuda) -> str:
    """Return the name of the selected device."""
    name = getattr(cuda.get_current_device(), "name", "CUDA simulator")
    return name.decode() if isinstance(name, bytes) else str(name)


def free_memory(cuda) -> int:
    """Return the free bytes of the selected device's memory."""
    free: float = cuda.current_context().get_memory_info()[0]
    # In the simulator, free memory is infinite.
    return int(min(free, 2**62))
