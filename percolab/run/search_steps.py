"""What searches for a threshold share: rounds, whole cells, rounded p."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, lcm, log10, prod
from typing import Any

from percolab.tasks.study import Task


@dataclass(frozen=True)
class Round:
    """What is sampled next: tasks that are new, and the blocks that tasks have at its end."""

    tasks: tuple[Task, ...]
    blocks: Mapping[str, int]


def whole_size(lattice: Any, points: int) -> int:
    """Return the size of whole cells that has about so many points along an axis."""
    cells = lcm(*(cell // unit for cell, unit in zip(lattice.cell, lattice.per_size, strict=True)))
    return max(round(points / axis_length(lattice, cells)), 1) * cells


def axis_length(lattice: Any, size: int) -> float:
    """Return the grid points along an axis of a size, the geometric mean of all axes."""
    return float(prod(lattice.shape(size)) ** (1 / lattice.dimension))


def rounded(p: float, error: float) -> float:
    """Return p with the digits that its error leaves."""
    return round(p, 1 - floor(log10(error)))
