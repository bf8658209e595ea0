"""What searches for a threshold share: their goal, rounds, whole cells, rounded p."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, lcm, log10, prod
from typing import Any

from percolab.errors import InputError
from percolab.tasks.study import Task
from percolab.tasks.values import take_number, take_seconds

#: Of p_c, where neither an error nor a time is given.
_USUAL_ERROR = 1e-4


@dataclass(frozen=True)
class Goal:
    """When a threshold is found: at this whole error of p_c, or after so many seconds."""

    error: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.error is None) == (self.seconds is None):
            raise InputError("error and time: give one of them, and not both")
        if self.error is not None and not 1e-9 <= self.error <= 0.1:
            raise InputError(f"error = {self.error:g}, but it must be from 1e-9 to 0.1")
        if self.seconds is not None and not 0.1 <= self.seconds <= 1e7:
            raise InputError(f"time = {self.seconds:g} s, but it must be from 0.1 s to 1e7 s")

    @classmethod
    def of(cls, error: Any, time: Any) -> Goal:
        """Return the goal that a user gives; without either the error is 1e-4."""
        if error is None and time is None:
            return cls(_USUAL_ERROR)
        return cls(
            None if error is None else take_number("error", error),
            None if time is None else take_seconds("time", time),
        )

    def record(self) -> dict[str, Any]:
        """Return it as the record of a run has it."""
        own = {"error": self.error, "seconds": self.seconds}
        return {"threshold": {name: value for name, value in own.items() if value is not None}}


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
