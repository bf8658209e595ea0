"""Bond percolation: every bond is open with probability p, all sites are occupied."""

from dataclasses import dataclass
from typing import ClassVar

from percolab.bonds.models.base import Model


@dataclass(frozen=True)
class Bond(Model):
    """Bond percolation; its hooks are the defaults, those of the empty record."""

    name: ClassVar[str] = "bond"
