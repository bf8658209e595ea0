"""Executors: from their names to the workers that make the blocks of a study, and their number.

Blocks do not depend on what makes them, and only the process of the study writes its file.
"""

import importlib.util
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, ParamSpec, TypeVar

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.parts.ranks import Leader
from percolab.parts.transport import Transport
from percolab.tasks.settings import DASK, EXECUTORS

_CUDA_THREADS = 6
_P = ParamSpec("_P")
_T = TypeVar("_T")
# Seconds within which a Dask scheduler must answer.
_PATIENCE = 10


def default_workers(device: Device, devices: int = 1) -> int:
    """Return the workers to use: all usable cores on the CPU; on CUDA one drives, others add up.

    A GPU measures small lattices faster than one thread adds up their rows.  devices: GPUs that
    share the cores; the number is that of each GPU.
    """
    cores = usable_cores()
    return min(max(cores // devices, 2), _CUDA_THREADS) if device.is_shared else cores


def usable_cores() -> int:
    return len(cores_here())


def cores_here() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def check_workers(workers: int) -> None:
    if workers < 1:
        raise InputError(f"--workers {workers}: must be at least 1")


def can_start_processes() -> bool:
    return hasattr(signal, "pthread_sigmask") and hasattr(socket, "AF_UNIX")


def check_processes(executor: str | Executor | None) -> None:
    """Raise InputError on Windows, which lacks blocked signals and local sockets."""
    if executor == "processes" and not can_start_processes():
        raise InputError(
            "executor processes: only on Linux and macOS; use threads (with at most one GPU), MPI "
            "or Dask"
        )


class RankExecutor(ThreadPoolExecutor):
    """The one thread of rank 0, of ranks that run already, as an executor given in Python."""

    def __init__(self, transport: Transport, name: str) -> None:
        super().__init__(1, thread_name_prefix="percolab-rank")
        self.leader, self.name = Leader(transport), name


def check_executor(
    executor: str | Executor | None, *, slabs: int | str | None, split: str | None
) -> None:
    """Raise InputError unless the workers of an executor can measure parts of samples, if any."""
    if executor in (None, *EXECUTORS):
        return
    if split is not None and not isinstance(executor, RankExecutor):
        name = "Dask" if isinstance(executor, str) else "this executor"
        raise InputError(
            f"--split lattice: the workers of {name} cannot exchange data; use threads, processes "
            "or mpi"
        )
    if split is None and slabs is not None:
        # Their checkpoints are on the host of the results file.
        raise InputError(
            "--slabs: only with threads or processes of one host; for several hosts use --part "
            "k/n on each, or --split lattice with --executor mpi"
        )


class CountedWorkers(Executor):
    """Workers that a study is planned for: all, those on this host, and those with a core each."""

    def __init__(self, total: int, here: int, at_once: int) -> None:
        self.total, self.here, self.at_once = total, here, at_once


def count_workers(executor: Executor) -> int:
    """Return how many calls an executor makes at a time, by default the number of its cores."""
    for name in ("num_workers", "_max_workers"):
        number = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 1


def is_worker_too(devices: Sequence[Device]) -> bool:
    """Return whether the process of a study over processes makes blocks itself.

    The first calls of the study open one of several GPUs in it, seconds before another process
    could begin there.
    """
    return len(devices) > 1


@contextmanager
def connected(executor: str | Executor | None) -> Iterator[str | Executor | None]:
    """Yield the given executor; for "dask:ADDRESS" that of the scheduler at the address."""
    if not isinstance(executor, str) or not executor.startswith(DASK):
        yield executor
        return
    with dask_executor(executor.removeprefix(DASK)) as connection:
        yield connection


class DaskExecutor(Executor):
    """The executor of a Dask client; ``gives_up``: what it raises where workers are lost for good.

    Dask itself repeats a job when its worker is lost, three times unless its ``allowed-failures``
    says otherwise.
    """

    def __init__(self, client: Any) -> None:
        from distributed import KilledWorker

        # Equal calls must be made separately.
        self._executor = client.get_executor(pure=False)
        self.num_workers = sum(client.ncores().values())
        self.gives_up = (KilledWorker,)

    def submit(
        self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> Future[_T]:
        future: Future[_T] = self._executor.submit(function, *args, **kwargs)
        return future


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yield the workers of a scheduler, as in ``tcp://host:8786``; InputError if there are none."""
    option = f"--executor dask:{address}"
    if importlib.util.find_spec("distributed") is None:
        raise InputError(f"{option}: distributed is not installed (pip install 'percolab[dask]')")
    from distributed import Client

    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"{option}: no scheduler answers there") from error
    with client:
        _check_dask_workers(client, option)
        yield DaskExecutor(client)


def _check_dask_workers(client: Any, option: str) -> None:
    if not client.ncores():
        raise InputError(f"{option}: the scheduler has no workers")
    own = version("percolab")
    for worker, answer in client.run(version, "percolab", on_error="return").items():
        if answer != own:
            there = f"percolab {answer}" if isinstance(answer, str) else "no percolab"
            raise InputError(f"{option}: {worker} has {there}, not {own} as here")
