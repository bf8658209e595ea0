"""What searches for a threshold share: goal, rounds, clock, whole cells, rounded p."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf, lcm, log10, prod
from typing import Any, NoReturn

from percolab.errors import AnalysisError, InputError
from percolab.run.engine import Engine
from percolab.run.request import Observer
from percolab.store.results import StoredResults
from percolab.tasks.study import Study, Task
from percolab.tasks.values import take_number, take_seconds

#: The error of p_c, where neither an error nor a time is given.
_USUAL_ERROR = 1e-4


@dataclass(frozen=True)
class Goal:
    """When a threshold is found: at this whole error of p_c, or after so many seconds.

    universal: whether the known values of wrapping probabilities at p_c are priors.
    """

    error: float | None = None
    seconds: float | None = None
    universal: bool = False

    def __post_init__(self) -> None:
        if (self.error is None) == (self.seconds is None):
            raise InputError("error and time: give one of them, and not both")
        if self.error is not None and not 1e-9 <= self.error <= 0.1:
            raise InputError(f"error = {self.error:g}, but it must be from 1e-9 to 0.1")
        if self.seconds is not None and not 0.1 <= self.seconds <= 1e7:
            raise InputError(f"time = {self.seconds:g} s, but it must be from 0.1 s to 1e7 s")

    @classmethod
    def of(cls, error: Any, time: Any, universal: str = "free") -> Goal:
        """Return the goal that a user gives; without either the error is 1e-4."""
        if universal not in ("known", "free"):
            raise InputError(f"universal = {universal!r}, but it must be 'known' or 'free'")
        if error is None and time is None:
            return cls(_USUAL_ERROR, universal=universal == "known")
        return cls(
            None if error is None else take_number("error", error),
            None if time is None else take_seconds("time", time),
            universal == "known",
        )

    def record(self) -> dict[str, Any]:
        """Return the given error or time in the form of a run's record."""
        return {"threshold": {name: own for name, own in vars(self).items() if own}}


@dataclass(frozen=True)
class Round:
    """The next samples: new tasks, and the blocks that tasks have at the end of the round.

    until: the time, by ``time.monotonic``, from which no further blocks are begun.
    """

    tasks: tuple[Task, ...]
    blocks: Mapping[str, int]
    until: float = inf


class Search:
    """Decides what is sampled next, until a goal is reached; rate: work in a second, roughly."""

    def __init__(self, study: Study, goal: Goal, rate: float) -> None:
        self._study, self._goal, self._rate = study, goal, rate
        self._start, self._begun_with = time.monotonic(), 0.0

    def known_p(self, results: StoredResults) -> float | None:
        """Return a p next to p_c that stored results have; None without samples."""
        raise NotImplementedError

    def find_p(self, engine: Engine) -> float:
        """Return a first p next to p_c, from samples that are used for nothing else."""
        raise NotImplementedError

    def begin(self, results: StoredResults, engine: Engine, observer: Observer) -> None:
        """Start the clock of a goal in seconds; pilots measure with an engine."""
        self._start, self._begun_with = time.monotonic(), self._done(results)

    def forecast(self, results: StoredResults) -> float:
        """Return about how many seconds are left until an error is reached."""
        raise NotImplementedError

    def next_round(self, results: StoredResults, p: float) -> Round | None:
        """Return the next round, by default next to p, or None where the goal is reached."""
        raise NotImplementedError

    def _done(self, results: StoredResults) -> float:
        """Return the work of all existing samples."""
        raise NotImplementedError

    @property
    def _end(self) -> float:
        """The time at which a goal in seconds ends; with a value, nothing is begun after it."""
        return inf if self._goal.seconds is None else self._start + self._goal.seconds

    def _work_in_time(self, done: float) -> float | None:
        """Return the work of all samples at the end of the time, early on of 40 % of the rest."""
        seconds = self._goal.seconds or 0.0
        spent, made = time.monotonic() - self._start, done - self._begun_with
        left = seconds - spent
        if left <= 0.05 * seconds:
            return None
        part = 0.95 if spent > 0.2 * seconds else 0.4
        return done + part * left * (made / spent if made > 0 else self._rate)


def refuse_end(study: Study, size: int, p: float) -> NoReturn:
    """Raise AnalysisError: wrapping at p = 0 or 1 shows that p_c is not between them."""
    name, tori = f"{study.structure.title}, {study.model}", f"tori of L = {size}"
    if p > 0.5:
        reason = f"no p_c is found: at p = 1 clusters wrap around fewer {tori} than expected at p_c"
        raise AnalysisError(f"{name}: {reason}")
    reason = f"at p = 0 clusters wrap around more {tori} than expected at p_c"
    raise AnalysisError(f"{name}: {reason}; give larger sizes (-L)")


def whole_size(lattice: Any, points: int) -> int:
    """Return the size of whole cells that has about ``points`` points along an axis."""
    cells = lcm(*(cell // unit for cell, unit in zip(lattice.cell, lattice.per_size, strict=True)))
    return max(round(points / axis_length(lattice, cells)), 1) * cells


def axis_length(lattice: Any, size: int) -> float:
    """Return the grid points along an axis of a size, the geometric mean of all axes."""
    return float(prod(lattice.shape(size)) ** (1 / lattice.dimension))


def rounded(p: float, error: float) -> float:
    """Return p rounded to the digits that its error leaves."""
    return round(p, 1 - floor(log10(error)))
