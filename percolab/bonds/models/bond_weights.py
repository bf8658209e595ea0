"""Bond percolation in which every bond of a graph has a weight w that determines its probability.

bond-weight  p w, for w from 0 to 1: at p = 1 weights are probabilities, as in the reliability
             of networks
bond-rate    1 - (1 - p)^w, for w of at least 0: with beta = -ln(1 - p) it is 1 - exp(-beta w), the
             probability of an infection along a contact of duration, or rate, w

The hooks are in :mod:`percolab.bonds.weights`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.models.base import Model
from percolab.bonds.weights import BondWeights
from percolab.errors import InputError


@dataclass(frozen=True)
class BondWeight(Model):
    """Bond percolation with probability p w."""

    name: ClassVar[str] = "bond-weight"
    needs_weights: ClassVar[bool] = True
    keeps_symmetry: ClassVar[bool] = False
    is_rate: ClassVar[bool] = False
    allowed: ClassVar[str] = "from 0 to 1"
    what: ClassVar[str] = "factor of the weights: a bond is open with probability p w"

    def on(self, structure: Any) -> Model:
        """Return the model; InputError unless the weights, if they are known, are allowed."""
        if not hasattr(structure, "content"):
            raise InputError(f"model {self}: only graphs have weights, and {structure.name} is "
                             "not one: give --graph")  # fmt: skip
        if structure.content is not None:
            weights = structure.content.weights
            if weights is None:
                raise InputError(f"model {self}: the bonds of {structure.name} have no weights")
            wrong = weights[(weights < 0) | (weights > (np.inf if self.is_rate else 1.0))]
            if wrong.size:
                raise InputError(f"model {self}: weight {wrong[0]}, but weights are {self.allowed}")
        return self

    def make_record(self, topology: Any) -> BondWeights:
        return BondWeights(topology.bond_weights, np.uint32(self.is_rate))

    @property
    def title(self) -> str:
        chance = "1 - (1 - p)^w" if self.is_rate else r"p\,w"
        return f"Bond percolation with probability ${chance}$"

    @property
    def varying(self) -> str:
        return self.what


@dataclass(frozen=True)
class BondRate(BondWeight):
    """Bond percolation with probability 1 - (1 - p)^w."""

    name: ClassVar[str] = "bond-rate"
    is_rate: ClassVar[bool] = True
    allowed: ClassVar[str] = "at least 0"
    what: ClassVar[str] = "probability that a bond of weight 1 is open, others with 1 - (1 - p)^w"

    def most_open(self, p: float) -> float:
        """Return 1, as weights have no upper bound."""
        return 1.0
