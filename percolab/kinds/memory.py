"""The memory that measuring a task takes, and whether there is enough of it."""

import psutil

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.tasks.study import Task


def estimate_memory(task: Task, algorithm: str | None, device: str, workers: int = 1) -> Memory:
    """Return the memory that measuring a task takes at its peak, one entry in a batch.

    algorithm: the labeler or tree method, None for the fastest.  device: its kind, "cpu" or "cuda".
    """
    extent = Extent.of_structure(task.structure, task.shape, task.boundary)
    name = algorithm or task.kind.algorithms.default(device)
    one: Memory = task.kind.memory(task, name, device, extent)
    # Kernels of a device read the bonds there.
    is_short = device == "cuda" and not task.kind.tables_on_host
    tables = extent.base_bytes if is_short else extent.topology_bytes
    # While the topology is being made nothing measures yet.
    host = max(extent.building_bytes, workers * one.host) + tables
    return Memory(host, one.device)


def check_memory(
    task: Task,
    algorithm: str | None,
    device: Device,
    workers: int,
    copies: int = 1,
    *,
    in_use: int = 0,
    share: float = 0.9,
) -> int:
    """Return the host's bytes that a task needs; InputError, before any are taken, if too many.

    copies: how many are measured in parallel, one in each process.  in_use: host memory that
    everything else takes, such as tasks of other sizes, or labels.  share: the part of a CUDA
    device's free memory that may be taken.
    """
    needed = estimate_memory(task, algorithm, device.kind, workers)
    in_use += (copies - 1) * needed.host
    available = psutil.virtual_memory().available
    if in_use + needed.host > available:
        others = f" in addition to {in_use / 1e9:.1f} GB for all else" if in_use > 1e8 else ""
        raise InputError(
            f"L = {task.size} needs {needed.host / 1e9:.1f} GB of memory{others}; "
            f"{available / 1e9:.1f} GB are free"
        )
    if not needed.device:
        return copies * needed.host
    axes = len(task.boundary)
    most = task.kind.algorithms.most_points(algorithm, device.kind, axes)
    if most is not None and task.num_points > most:
        raise InputError(
            f"L = {task.size}: {task.num_points} sites in {axes} dimensions are too many for "
            f"32-bit labels on {device}; use --device cpu"
        )
    free = share * device.free_memory()
    if needed.device > free:
        raise InputError(
            f"L = {task.size} needs {needed.device / 1e9:.1f} GB on {device}; "
            f"{free / 1e9:.1f} GB of GPU memory are available"
        )
    return copies * needed.host
