"""Executors: by their names to what makes the blocks of one study, and how many do.

Blocks are the same whoever makes them, and only the process of the study writes its file.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.tasks.settings import DASK

_CUDA_THREADS = 6


def default_workers(device: Device, devices: int = 1) -> int:
    """Return the workers to use: all usable cores on the CPU; for CUDA one drives, others sum.

    A GPU measures small lattices faster than one thread sums up their rows.  devices: GPUs that
    share the cores, of which each gets so many workers.
    """
    cores = usable_cores()
    return min(max(cores // devices, 2), _CUDA_THREADS) if device.is_shared else cores


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(cores_here())


def cores_here() -> set[int]:
    """Return the numbers of the cores of this host that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def check_workers(workers: int) -> None:
    """Raise InputError if there are none."""
    if workers < 1:
        raise InputError(f"--workers {workers}: must be at least 1")


def check_processes(executor: str | Executor | None) -> None:
    """Raise InputError if processes are to be started by what this system does not have.

    They inherit pipes and blocked signals, and ranks meet at local sockets: not on Windows.
    """
    has_all = hasattr(signal, "pthread_sigmask") and hasattr(socket, "AF_UNIX")
    if executor == "processes" and not has_all:
        raise InputError(
            "executor processes: only on Linux and macOS; threads (with one GPU at most), MPI and "
            "Dask work without them"
        )


class CountedWorkers(Executor):
    """Workers of one or many hosts that a study is planned for, and that make nothing.

    total: in all; here: on this host; at_once: how many of all have a core of their host at a time
    """

    def __init__(self, total: int, here: int, at_once: int) -> None:
        self.total, self.here, self.at_once = total, here, at_once


def executor_name(executor: str | Executor) -> str:
    """Return what a run's record calls an executor."""
    return executor if isinstance(executor, str) else type(executor).__name__


def count_workers(executor: Executor) -> int:
    """Return how many calls an executor makes at a time, by default as many as there are cores.

    Python's own pools and those of mpi4py have an attribute for it.
    """
    for name in ("num_workers", "_max_workers"):
        number = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 1


def is_worker_too(devices: Sequence[Device]) -> bool:
    """Return whether the process of a study over processes makes blocks itself.

    One of several GPUs is open in it for the study's first calls, seconds before another process
    could begin there.
    """
    return len(devices) > 1


@contextmanager
def connected(executor: str | Executor | None) -> Iterator[str | Executor | None]:
    """Yield an executor as it is; in place of "dask:ADDRESS" that of the scheduler there."""
    if not isinstance(executor, str) or not executor.startswith(DASK):
        yield executor
        return
    from percolab.run.dask import dask_executor

    with dask_executor(executor.removeprefix(DASK)) as found:
        yield found
