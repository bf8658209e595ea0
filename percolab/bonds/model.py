"""Models: whether bonds, sites or both are drawn, and which of them p is the probability of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from percolab.bonds.words import TOP, threshold_of
from percolab.errors import InputError, nearest

MODELS = ("bond", "site", "site-bond")


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

    The clusters are those of occupied sites.  InputError: unknown name, a probability that the
    model does not have, one outside [0, 1], or two in site-bond percolation.

    Source: Hoshen, Klymko and Kopelman, J. Stat. Phys. 21, 583 (1979).

    >>> Model("site-bond", site_p=0.9).site_varies
    False
    >>> str(Model.parse("site-bond:bond=.70"))
    'site-bond:bond=0.7'
    """

    name: str = "bond"
    site_p: float | None = None
    bond_p: float | None = None

    def __post_init__(self) -> None:
        if self.name not in MODELS:
            raise InputError(f"unknown model {self.name!r}; {nearest(self.name, MODELS)}")
        fixed = self._fixed
        if fixed and self.name != "site-bond":
            raise InputError(f"model {self}: only site-bond has a probability that is fixed")
        if len(fixed) > 1:
            raise InputError(f"model {self}: one of site and bond must be left out, to be p")
        for key, value in fixed.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InputError(f"model: {key} = {value!r}, but it must be a number from 0 to 1")

    @classmethod
    def parse(cls, text: str) -> Model:
        """Read "bond", "site", "site-bond", "site-bond:site=0.9" or "site-bond:bond=0.7"."""
        name, colon, rest = text.partition(":")
        if not colon:
            return cls(name)
        key, equals, number = (part.strip() for part in rest.partition("="))
        if key not in ("site", "bond") or not equals:
            raise InputError(
                f"model {text!r}, but what is fixed is written as in site-bond:site=0.9"
            )
        try:
            value = float(number)
        except ValueError as error:
            raise InputError(f"model {text!r}: {number!r} is not a number") from error
        return cls(name, **{f"{key}_p": value})

    @property
    def _fixed(self) -> dict[str, float]:
        given = {"site": self.site_p, "bond": self.bond_p}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def title(self) -> str:
        """What it is called in a figure: "Site percolation"."""
        fixed = [f"$p_{{{key}}} = {value:g}$" for key, value in self._fixed.items()]
        return ", ".join([f"{self.name.capitalize()} percolation", *fixed])

    @property
    def varying(self) -> str:
        """What p is the probability of, in words."""
        what = []
        if self.site_varies:
            what.append("a site is occupied")
        if self.bond_varies:
            what.append("a bond is open")
        return "probability that " + ", and that ".join(what)

    @property
    def draws_sites(self) -> bool:
        """Whether sites may be vacant."""
        return self.name != "bond"

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
        return ":".join([self.name, *fixed])


BOND = Model()
