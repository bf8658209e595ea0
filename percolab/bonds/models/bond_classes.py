"""Bond percolation with fixed probabilities on some classes of bonds: "bond:x=p,y=0.3".

A class is the bonds of one offset, named by the lattice; several offsets may share a name.  Classes
that are left out have p.  On the honeycomb lattice, which is a brick wall here, class x has two of
the three directions of bonds.

The critical line of the square lattice is p_x + p_y = 1, that of the triangular lattice is
p_x + p_y + p_d - p_x p_y p_d = 1: M. F. Sykes and J. W. Essam, J. Math. Phys. 5, 1117 (1964).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.hooks import VARIES
from percolab.bonds.models.base import Model, check_probability, read_number
from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError

_EXAMPLE = "classes of bonds are written as in bond:x=p,y=0.3"


@dataclass(frozen=True)
class BondClasses(Model):
    """Bond percolation with fixed probabilities of some classes.

    chosen: (name, probability) of classes, sorted by name; None for p.  InputError: a name that is
    given twice, a probability outside [0, 1].
    """

    name: ClassVar[str] = "bond"
    keeps_symmetry: ClassVar[bool] = False
    chosen: tuple[tuple[str, float | None], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "chosen", tuple(sorted(self.chosen, key=lambda chosen: chosen[0])))
        names = [name for name, _ in self.chosen]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"model {self}: {name} is given twice")
        for name, value in self.fixed.items():
            check_probability(name, value)

    @classmethod
    def read(cls, text: str, rest: str | None) -> Model:
        chosen: list[tuple[str, float | None]] = []
        for part in (rest or "").split(","):
            name, equals, number = (word.strip() for word in part.partition("="))
            if not name or not equals:
                raise InputError(f"model {text!r}, but {_EXAMPLE}")
            chosen.append((name, None if number == "p" else read_number(text, number)))
        return cls(tuple(chosen))

    @property
    def fixed(self) -> dict[str, float]:
        return {name: value for name, value in self.chosen if value is not None}

    def on(self, structure: Any) -> Model:
        """Return the model without classes that have p; InputError: unknown class, or no p."""
        names = getattr(structure, "class_names", ())
        known = sorted(set(names) - {""})
        if not known:
            raise InputError(
                f"model {self}: {structure.name} has no named classes of bonds; its bonds all "
                "have p"
            )
        for name, _ in self.chosen:
            if name not in known:
                raise InputError(
                    f"model {self}: {structure.name} has no class of bonds {name}; it has "
                    f"{', '.join(known)}"
                )
        if not self.fixed:
            return Model.parse("bond")
        if set(names) <= self.fixed.keys():
            raise InputError(f"model {self}: one of {', '.join(known)} must be p")
        return BondClasses(tuple(self.fixed.items()))

    @property
    def title(self) -> str:
        fixed = [f"$p_{{{name}}} = {value:g}$" for name, value in self.fixed.items()]
        return ", ".join(["Bond percolation", *fixed])

    @property
    def varying(self) -> str:
        return f"probability that a bond is open, of classes other than {', '.join(self.fixed)}"

    def most_open(self, p: float) -> float:
        return max([p, *self.fixed.values()])

    def class_limits(self, names: Sequence[str]) -> NDArray[np.uint64]:
        """Return thresholds of classes, uint64, or VARIES; ValueError: a fixed class is missing."""
        if not self.fixed.keys() <= set(names):
            raise ValueError(f"model {self}: the classes of bonds are {', '.join(names) or 'none'}")
        limits = {name: p_to_threshold(value) for name, value in self.fixed.items()}
        return np.array([limits.get(name, VARIES) for name in names], np.uint64)

    def __str__(self) -> str:
        words = [f"{name}={'p' if value is None else repr(float(value))}"
                 for name, value in self.chosen]  # fmt: skip
        return f"{self.name}:{','.join(words)}"
