"""Models of percolation: the class, and bond percolation, which most things have by default."""

from percolab.bonds.models.base import Model, Rule

__all__ = ["BOND", "Model", "Rule"]

BOND = Model.parse("bond")
