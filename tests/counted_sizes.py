"""A small study with counted sizes, for reading only."""

from functools import cache

from percolab.api import sweep


@cache
def counted():
    """Return a small torus with counted sizes; for reading only."""
    return sweep(
        "square", L=[16, 32, 64], p=[0.46, 0.48, 0.5, 0.52, 0.54], samples=600, block_size=30,
        boundary="periodic", measure="sizes", device="cpu", seed=5,
    )  # fmt: skip


def sorted_tasks():
    """Return its tasks, ascending in L."""
    return sorted(counted().tasks.values(), key=lambda item: item.task.size)
