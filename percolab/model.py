"""Models: whether bonds, sites or both are drawn, and which of them p is the probability of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from percolab.kernels.open_bonds import TOP, threshold_of
from percolab.toml_input import InputError, nearest

MODELS = ("bond", "site", "site-bond")


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
    """

    name: str = "bond"
    site_p: float | None = None
    bond_p: float | None = None

    def __post_init__(self) -> None:
        if self.name not in MODELS:
            raise InputError(f"unknown model {self.name!r}; {nearest(self.name, MODELS)}")
        given = {"site_p": self.site_p, "bond_p": self.bond_p}
        fixed = [key for key, value in given.items() if value is not None]
        if fixed and self.name != "site-bond":
            raise InputError(f"{fixed[0]}: only model site-bond has it, not {self.name}")
        if len(fixed) > 1:
            raise InputError("site_p and bond_p: one of them must be left out, to be p")
        for key in fixed:
            value = given[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InputError(f"{key} = {value!r}, but it must be a number from 0 to 1")

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
    def rule(self) -> tuple[np.uint32, np.uint32, np.uint64, np.uint64]:
        """What the kernels are given: (site varies, bond varies, threshold of sites, of bonds).

        A threshold counts where its probability does not vary.
        """
        site = TOP if self.site_p is None else threshold_of(self.site_p)
        bond = TOP if self.bond_p is None else threshold_of(self.bond_p)
        return (
            np.uint32(self.site_varies),
            np.uint32(self.bond_varies),
            np.uint64(site),
            np.uint64(bond),
        )

    def __str__(self) -> str:
        """The name, and what is fixed: "site-bond, site_p = 0.9"."""
        fixed = {"site_p": self.site_p, "bond_p": self.bond_p}
        return ", ".join(
            [self.name, *(f"{key} = {value}" for key, value in fixed.items() if value is not None)]
        )


BOND = Model()
