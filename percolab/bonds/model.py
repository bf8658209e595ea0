"""Models of percolation: their class, and bond percolation, the default nearly everywhere."""

from percolab.bonds.models.base import Model, Rule

__all__ = ["BOND", "Model", "Rule"]

BOND = Model.parse("bond")
