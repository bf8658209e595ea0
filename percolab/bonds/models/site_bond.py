"""Site-bond percolation: sites are occupied, and bonds between occupied ones are open, at random.

If one of site_p and bond_p is left out, that probability is p; if both are, both are p.  The hooks
are in :mod:`percolab.bonds.sites`.
Source: Hoshen, Klymko and Kopelman, J. Stat. Phys. 21, 583 (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from percolab.bonds.models.base import Model, check_probability, read_fixed
from percolab.errors import InputError


@dataclass(frozen=True)
class SiteBond(Model):
    """Site-bond percolation; InputError: both probabilities given, or one outside [0, 1].

    >>> SiteBond(site_p=0.9).site_varies
    False
    """

    name: ClassVar[str] = "site-bond"
    draws_sites: ClassVar[bool] = True
    site_p: float | None = None
    bond_p: float | None = None

    def __post_init__(self) -> None:
        if len(self._fixed) > 1:
            raise InputError(f"model {self}: give only one of site and bond; the other is p")
        for key, value in self._fixed.items():
            check_probability(key, value)

    @classmethod
    def read(cls, text: str, rest: str | None) -> SiteBond:
        return cls() if rest is None else cls(**read_fixed(text, rest))

    @property
    def _fixed(self) -> dict[str, float]:
        given = {"site": self.site_p, "bond": self.bond_p}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def title(self) -> str:
        fixed = [f"$p_{{{key}}} = {value:g}$" for key, value in self._fixed.items()]
        return ", ".join(["Site-bond percolation", *fixed])

    def __str__(self) -> str:
        fixed = [f"{key}={float(value)!r}" for key, value in self._fixed.items()]
        return ":".join([self.name, *fixed])
