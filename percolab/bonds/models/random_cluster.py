"""The random-cluster model: open bonds have the weight p^open (1 - p)^closed q^clusters.

With an integer q these are the clusters of the Potts model at p = 1 - exp(-beta), with q = 1 those
of percolation; q may be any real number from 1 on, the smallest for which the algorithm of Chayes
and Machta works (:mod:`percolab.spins.chayes_machta`).

Source: C. M. Fortuin and P. W. Kasteleyn, Physica 57, 536 (1972).
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from percolab.bonds.models.base import Model, read_number
from percolab.bonds.models.potts import Potts
from percolab.errors import InputError


@dataclass(frozen=True)
class RandomCluster(Potts):
    """The random-cluster model with ``states`` = q, a float; InputError unless 1 <= q < inf."""

    name: ClassVar[str] = "random-cluster"
    chains: ClassVar[str] = "clusters"
    on_cpu_alone: ClassVar[bool] = True
    varying: ClassVar[str] = "p of the random-cluster weights, 1 - exp(-beta)"
    states: Any = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.states) and self.states >= 1):
            raise InputError(
                f"model {self.name}: q = {self.states:g}, but Chayes and Machta's algorithm needs "
                "a finite q >= 1"
            )

    @classmethod
    def read(cls, text: str, rest: str | None) -> Model:
        key, equals, number = (part.strip() for part in (rest or "").partition("="))
        if key != "q" or not equals:
            raise InputError(f"model {text!r}, but q is written as in random-cluster:q=2.5")
        return cls(read_number(text, number))

    @property
    def title(self) -> str:
        return f"Random-cluster model of $q = {self.states:g}$"

    def __str__(self) -> str:
        return f"{self.name}:q={repr(self.states).removesuffix('.0')}"
