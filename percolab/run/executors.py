"""Executors: by their names to what makes the blocks of one study, and how many do.

Blocks are the same whoever makes them, and only the process of the study writes its file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from percolab.errors import InputError
from percolab.kernels.device import Device, begin_context
from percolab.lattices.graph import Graph
from percolab.lattices.structure import Structure
from percolab.run.calls import ThisWorker, be_worker, stop
from percolab.run.measured import Callers, WorkerPool
from percolab.run.processes import Hooks, Processes
from percolab.tasks.kind import BlockSampler
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


def make_executor(device: Device, workers: int) -> Executor:
    """Return threads: the CPU kernels release the GIL, and threads take turns with a GPU."""
    check_workers(workers)
    return ThreadPoolExecutor(workers, thread_name_prefix=f"percolab-{device.kind}")


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
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
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


@contextmanager
def opened(
    executor: str | Executor,
    structure: Structure,
    devices: tuple[Device, ...],
    workers: int,
    processes: tuple[int, int],
    on_progress: Callable[[Any], None] | None = None,
) -> Iterator[Executor]:
    """Open what makes the blocks of a study until the end of the context.

    executor: "threads", "processes", or an executor, which is left open.  structure: what is
    sampled; all processes get a graph when they start.  workers: threads.  processes: how many, and
    the threads of each; they start at once, so that they are ready after a pilot.  Where they drive
    several GPUs, this process drives the first.  on_progress: is called with the progress of
    blocks.
    """
    if executor == "threads":
        with make_executor(devices[0], workers) as threads:
            yield threads
    elif isinstance(executor, str):
        graph = structure if isinstance(structure, Graph) else None
        names = tuple(map(str, devices))
        early = partial(begin_context, names) if devices[0].is_shared else None
        hooks = Hooks(be_worker, stop, (names, graph), early=early)
        this = ThisWorker(graph) if is_worker_too(devices) else None
        with Processes(*processes, hooks, on_progress=on_progress, this=this) as pool:
            pool.start()
            yield pool
    else:
        yield executor


def make_worker_pool(
    executor: str | Executor,
    opened: Executor,
    samplers: Mapping[str, BlockSampler],
    devices: tuple[Device, ...],
    workers: int,
) -> WorkerPool:
    """Return the workers that make the blocks of these tasks by an opened executor.

    devices: that they drive, threads the first.  workers: how many calls are made at a time.
    """
    if executor == "threads":
        return WorkerPool(samplers, opened, workers)
    return Callers(samplers, opened, workers, tuple(map(str, devices)))
