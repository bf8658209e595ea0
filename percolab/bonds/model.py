"""Models: what is drawn at random, bonds, sites or both, or spins; and what p is of it.

Spins have two conventions.  An Ising model has H = -J sum s s' with s = -1, 1 and K = J / kT; a
Potts model has H = -J sum delta(s, s') with s = 0 ... q - 1 and beta = J / kT.  At q = 2 they are
the same with beta = 2 K.  In both, p is the probability that the bond of two equal spins is open in
the representation of Fortuin and Kasteleyn, p = 1 - exp(-2 K) = 1 - exp(-beta); and p is what tasks
store, whatever it was given by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from percolab.bonds.words import TOP, threshold_of
from percolab.errors import InputError, nearest

MODELS = ("bond", "site", "site-bond", "ising", "potts")
#: The most states of a spin.
MOST_STATES = 256


class Rule(NamedTuple):
    """What p decides in a model, as kernels are given it.

    site_varies, bond_varies: whether p is the probability of a site, of a bond
    site_limit, bond_limit:   thresholds, which count where the probability does not vary
    """

    site_varies: np.uint32
    bond_varies: np.uint32
    site_limit: np.uint64
    bond_limit: np.uint64


@dataclass(frozen=True)
class Model:
    """A percolation model.

    bond:       every bond is open with probability p, all sites are occupied
    site:       every site is occupied with probability p; a bond is open if both its sites are
    site-bond:  sites are occupied with probability ``site_p`` and bonds between them are open with
                probability ``bond_p``.  What is left out is p; if both are left out, both are p.

    ising:      every site has one of two spins; the bond of two equal ones is open with
                probability p
    potts:      the same with ``states`` spins; H and beta as the module says

    The clusters are those of occupied sites.  InputError: unknown name, a probability that the
    model does not have, one outside [0, 1], or two in site-bond percolation; a number of states
    that is no integer from 2 to 256.

    Sources: Hoshen, Klymko and Kopelman, J. Stat. Phys. 21, 583 (1979); Fortuin and Kasteleyn,
    Physica 57, 536 (1972).

    >>> Model("site-bond", site_p=0.9).site_varies
    False
    >>> str(Model.parse("site-bond:bond=.70"))
    'site-bond:bond=0.7'
    >>> str(Model.parse("potts:q=3"))
    'potts:q=3'
    """

    name: str = "bond"
    site_p: float | None = None
    bond_p: float | None = None
    states: int = 1

    def __post_init__(self) -> None:
        if self.name not in MODELS:
            raise InputError(f"unknown model {self.name!r}; {nearest(self.name, MODELS)}")
        self._check_states()
        fixed = self._fixed
        if fixed and self.name != "site-bond":
            raise InputError(f"model {self}: only site-bond has a probability that is fixed")
        if len(fixed) > 1:
            raise InputError(f"model {self}: one of site and bond must be left out, to be p")
        for key, value in fixed.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InputError(f"model: {key} = {value!r}, but it must be a number from 0 to 1")

    def _check_states(self) -> None:
        if self.name == "ising" and self.states == 1:
            object.__setattr__(self, "states", 2)
        if self.name == "potts" and self.states == 1:
            raise InputError(
                "model potts needs its number of states, as in potts:q=3; q = 1 is bond"
            )
        allowed = {"ising": (2, 2), "potts": (2, MOST_STATES)}.get(self.name, (1, 1))
        if not allowed[0] <= self.states <= allowed[1]:
            raise InputError(
                f"model {self.name}: q = {self.states}, but it must be an integer from 2 to "
                f"{MOST_STATES}" + (", and only potts has it" if allowed[1] < MOST_STATES else "")
            )

    @classmethod
    def parse(cls, text: str) -> Model:
        """Read a name alone, "site-bond:site=0.9", "site-bond:bond=0.7", or "potts:q=3"."""
        name, colon, rest = str(text).partition(":")
        if not colon:
            return cls(name)
        key, equals, number = (part.strip() for part in rest.partition("="))
        if name == "ising":
            raise InputError(
                f"model {text!r}: ising has two spins and no q; write ising, whose coupling is K, "
                "or potts:q=2, whose coupling is beta = 2 K"
            )
        if name == "potts":
            if key != "q" or not equals:
                raise InputError(f"model {text!r}, but states are written as in potts:q=3")
            return cls(name, states=_read_states(text, number))
        if key not in ("site", "bond") or not equals:
            raise InputError(
                f"model {text!r}, but what is fixed is written as in site-bond:site=0.9"
            )
        try:
            value = float(number)
        except ValueError as error:
            raise InputError(f"model {text!r}: {number!r} is not a number") from error
        return cls(name, site_p=value) if key == "site" else cls(name, bond_p=value)

    @property
    def _fixed(self) -> dict[str, float]:
        given = {"site": self.site_p, "bond": self.bond_p}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def title(self) -> str:
        """What it is called in a figure: "Site percolation"."""
        if self.has_spins:
            return "Ising model" if self.name == "ising" else f"{self.states}-state Potts model"
        fixed = [f"$p_{{{key}}} = {value:g}$" for key, value in self._fixed.items()]
        return ", ".join([f"{self.name.capitalize()} percolation", *fixed])

    @property
    def has_spins(self) -> bool:
        """Whether sites have spins, so that samples are the sweeps of Markov chains."""
        return self.states > 1

    @property
    def coupling_symbol(self) -> str:
        """What J / kT is called: "K" of the Ising model, "beta" of a Potts model."""
        return "K" if self.name == "ising" else "beta"

    def p_of_coupling(self, coupling: float) -> float:
        """Return p of J / kT, K of the Ising model or beta of a Potts model.

        >>> Model("ising").p_of_coupling(0.25) == Model("potts", states=2).p_of_coupling(0.5)
        True
        """
        return -math.expm1(-self._exponent * coupling)

    def coupling_of_p(self, p: float) -> float:
        """Return J / kT, K of the Ising model or beta of a Potts model; infinite at p = 1."""
        return -math.log1p(-p) / self._exponent if p < 1 else math.inf

    @property
    def _exponent(self) -> int:
        """What J / kT is multiplied by in p = 1 - exp(-...)."""
        return 2 if self.name == "ising" else 1

    @property
    def varying(self) -> str:
        """What p is the probability of, in words."""
        if self.has_spins:
            return "probability that the bond of two equal spins is open, " + (
                "1 - exp(-2 K)" if self.name == "ising" else "1 - exp(-beta)"
            )
        what = []
        if self.site_varies:
            what.append("a site is occupied")
        if self.bond_varies:
            what.append("a bond is open")
        return "probability that " + ", and that ".join(what)

    @property
    def draws_sites(self) -> bool:
        """Whether sites may be vacant."""
        return self.name in ("site", "site-bond")

    @property
    def site_varies(self) -> bool:
        """Whether p is the probability of a site."""
        return self.draws_sites and self.site_p is None

    @property
    def bond_varies(self) -> bool:
        """Whether p is the probability of a bond."""
        return self.name != "site" and self.bond_p is None

    def open_share(self, p: float) -> float:
        """Return the probability that a bond is open, its two sites occupied."""
        site = p if self.site_varies else 1.0 if self.site_p is None else self.site_p
        bond = p if self.bond_varies else 1.0 if self.bond_p is None else self.bond_p
        return site * site * bond

    @property
    def steepest_share(self) -> int:
        """The most that :meth:`open_share` grows with p: of how many numbers p decides."""
        return 2 * self.site_varies + self.bond_varies

    @property
    def rule(self) -> Rule:
        """What the kernels are given."""
        return Rule(
            np.uint32(self.site_varies),
            np.uint32(self.bond_varies),
            np.uint64(TOP if self.site_p is None else threshold_of(self.site_p)),
            np.uint64(TOP if self.bond_p is None else threshold_of(self.bond_p)),
        )

    def __str__(self) -> str:
        """The text that :meth:`parse` reads: the same for equal models."""
        fixed = [f"{key}={float(value)!r}" for key, value in self._fixed.items()]
        states = [f"q={self.states}"] if self.name == "potts" else []
        return ":".join([self.name, *fixed, *states])


def _read_states(text: str, number: str) -> int:
    if not number.isdecimal():
        raise InputError(
            f"model {text!r}: q = {number}, but it must be an integer from 2 to {MOST_STATES}"
        )
    return int(number[:9])


BOND = Model()
