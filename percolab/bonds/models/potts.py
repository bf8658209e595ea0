"""The Potts model: H = -J sum delta(s, s') with s = 0 ... q - 1 and beta = J / kT.

The bond of two equal spins is open with probability p = 1 - exp(-beta) in the representation of
Fortuin and Kasteleyn, Physica 57, 536 (1972); tasks store p even if the coupling was given.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from percolab.bonds.models.base import Model
from percolab.errors import InputError

#: The most states of a spin.
MOST_STATES = 256

_NO_STATES = "model potts needs its number of states, as in potts:q=3; q = 1 is bond"


@dataclass(frozen=True)
class Potts(Model):
    """The Potts model of ``states`` states; InputError unless that is from 2 to MOST_STATES."""

    name: ClassVar[str] = "potts"
    chains: ClassVar[str] = "spins"
    #: The symbol of J / kT, and the meaning of p in words.
    coupling_symbol: ClassVar[str] = "beta"
    varying: ClassVar[str] = "probability that the bond of two equal spins is open, 1 - exp(-beta)"
    states: Any = 0

    def __post_init__(self) -> None:
        if self.states == 1:
            raise InputError(_NO_STATES)
        if not 2 <= self.states <= MOST_STATES:
            raise InputError(
                f"model {self.name}: q = {self.states}, but it must be an integer from 2 to "
                f"{MOST_STATES}"
            )

    @classmethod
    def read(cls, text: str, rest: str | None) -> Model:
        if rest is None:
            raise InputError(_NO_STATES)
        key, equals, number = (part.strip() for part in rest.partition("="))
        if key != "q" or not equals:
            raise InputError(f"model {text!r}, but states are written as in potts:q=3")
        if not number.isdecimal():
            raise InputError(
                f"model {text!r}: q = {number}, but it must be an integer from 2 to {MOST_STATES} "
                "(random-cluster:q=2.5 has any real q from 1 on)"
            )
        return cls(int(number[:9]))

    @property
    def title(self) -> str:
        return f"{self.states}-state Potts model"

    def coupling_to_p(self, coupling: float) -> float:
        """Return p of J / kT.

        >>> Model.parse("ising").coupling_to_p(0.25) == Potts(2).coupling_to_p(0.5)
        True
        """
        return -math.expm1(-self.exponent * coupling)

    def p_to_coupling(self, p: float) -> float:
        return -math.log1p(-p) / self.exponent if p < 1 else math.inf

    def __str__(self) -> str:
        return f"{self.name}:q={self.states}"
