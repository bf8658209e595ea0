"""Site percolation: sites are occupied with probability p, bonds are open between occupied ones.

The hooks are in :mod:`percolab.bonds.sites`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from percolab.bonds.models.base import Model, read_fixed
from percolab.errors import InputError


@dataclass(frozen=True)
class Site(Model):
    """Site percolation."""

    name: ClassVar[str] = "site"
    draws_sites: ClassVar[bool] = True
    bond_varies: ClassVar[bool] = False

    @classmethod
    def read(cls, text: str, rest: str | None) -> Site:
        if rest is not None:
            read_fixed(text, rest)
            raise InputError(f"model {text}: only site-bond takes a fixed probability")
        return cls()
