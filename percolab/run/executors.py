"""Who runs the blocks: the standard concurrent.futures.Executor, one for each kind of device."""

from __future__ import annotations

import os
from concurrent.futures import Executor, ThreadPoolExecutor

from percolab.errors import InputError
from percolab.run.sampler import Device

_CUDA_THREADS = 6


def default_workers(device: Device) -> int:
    """Return the threads to use: all usable cores on the CPU; for CUDA one drives, others sum.

    A GPU measures small lattices faster than one thread sums up their rows.
    """
    cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    return min(max(cores, 2), _CUDA_THREADS) if device.kind == "cuda" else cores


def make_executor(device: Device, workers: int) -> Executor:
    """Return threads: the CPU kernels release the GIL, and threads take turns with a GPU."""
    if workers < 1:
        raise InputError(f"--workers {workers}: must be at least 1")
    return ThreadPoolExecutor(workers, thread_name_prefix=f"percolab-{device.kind}")
