"""A check: a function from conditions to outcomes, values next to their expectations."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from percolab.kernels.device import Device
from percolab.run.stored import Interrupted

#: The largest deviation, in standard deviations, that is attributed to chance.
LIMIT = 4.0


@dataclass(frozen=True)
class Conditions:
    """Where and how thoroughly the checks run.

    device: a resolved one.  seed: every check draws its streams from it.  full: more samples and
    larger lattices, for a GPU.
    """

    device: Device
    seed: int = 1
    full: bool = False

    def count(self, quick: int, full: int) -> int:
        """Return one of two numbers of samples, or sizes."""
        return full if self.full else quick

    def stream_seed(self, *name: object) -> int:
        """Return the seed, in [0, 2^63), of a name; different names have independent seeds."""
        text = json.dumps([self.seed, *map(str, name)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


@dataclass(frozen=True)
class Outcome:
    """One row of the table: a value, its expectation, and its standard deviation.

    sigma: None where value and expectation must be equal.  note: a hint for failures, or the source
    of the expectation.  correlated: whether it is of the same samples as its neighbours; a row of
    all of them together follows, which replaces them where deviations are counted.
    """

    name: str
    value: float
    expected: float
    sigma: float | None = None
    note: str = ""
    correlated: bool = False

    @property
    def z(self) -> float | None:
        """Deviation in units of sigma; None if exact, NaN for a sigma that is 0 or infinite."""
        if self.sigma is None:
            return None
        usable = 0 < self.sigma < math.inf
        return (self.value - self.expected) / self.sigma if usable else math.nan

    @property
    def holds(self) -> bool:
        """Whether the value equals its expectation, or is within LIMIT sigma of it."""
        if self.z is None:
            return self.value == self.expected
        # A comparison with NaN is False.
        return abs(self.z) <= LIMIT


@dataclass(frozen=True)
class Check:
    """A function that yields outcomes; name: its subject, group: its heading."""

    group: str
    name: str
    run: Callable[[Conditions], Iterator[Outcome]]


def run_check(check: Check, conditions: Conditions) -> Iterator[Outcome]:
    """Yield the outcomes of a check; an exception becomes a row that does not hold.

    Interrupted passes: a study was stopped by Ctrl-C or SIGTERM.
    """
    try:
        yield from check.run(conditions)
    except Interrupted:
        raise
    except Exception as error:  # checks look for anything that breaks on this installation
        text = " ".join(str(error).split())
        yield Outcome(check.name, math.nan, 0.0, note=f"{type(error).__name__}: {text}")


def differing(name: str, count: int, note: str = "") -> Outcome:
    """Return the outcome of a comparison in which nothing may differ."""
    return Outcome(name, count, 0, note=note)
