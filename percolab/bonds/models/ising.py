"""The Ising model: H = -J sum s s' with s = -1, 1 and K = J / kT.

It is the Potts model of two states with beta = 2 K: the bond of two equal spins is open with
probability p = 1 - exp(-2 K).
"""

from dataclasses import dataclass
from typing import ClassVar

from percolab.bonds.models.base import Model
from percolab.bonds.models.potts import Potts
from percolab.errors import InputError


@dataclass(frozen=True)
class Ising(Potts):
    """The Ising model."""

    name: ClassVar[str] = "ising"
    exponent: ClassVar[int] = 2
    title: ClassVar[str] = "Ising model"
    coupling_symbol: ClassVar[str] = "K"
    varying: ClassVar[str] = "probability that the bond of two equal spins is open, 1 - exp(-2 K)"
    states: int = 2

    @classmethod
    def read(cls, text: str, rest: str | None) -> Model:
        if rest is not None:
            raise InputError(
                f"model {text!r}: ising has two spins and no q; write ising, whose coupling is K, "
                "or potts:q=2, whose coupling is beta = 2 K"
            )
        return cls()

    def __str__(self) -> str:
        return self.name
