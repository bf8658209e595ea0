"""The base class of all models of percolation: probabilities, text, and the rule for kernels.

A model's file in this folder has a class that inherits from :class:`Model`.  If it does not draw
independent bonds or sites with p alone, kernels call its *hooks* (:mod:`percolab.bonds.hooks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from percolab.bonds.hooks import ClassLimits
from percolab.bonds.models import parse_model
from percolab.bonds.words import TOP, p_to_threshold
from percolab.errors import InputError


class Rule(NamedTuple):
    """The meaning of p in a model, in the form for kernels.

    site_varies, bond_varies: whether p is the probability of a site, and of a bond
    site_limit, bond_limit:   the fixed thresholds, used if the probability is not p
    """

    site_varies: np.uint32
    bond_varies: np.uint32
    site_limit: np.uint64
    bond_limit: np.uint64


class Model:
    """A percolation model; the clusters are those of occupied sites.  Its text enters ids.

    site_p, bond_p: fixed probabilities, None where the probability is p
    draws_sites:    whether sites may be vacant, so that their bonds are culled
    has_order:      whether bonds open one after the other by their numbers as p grows
    needs_weights:  whether bonds have weights, which determine their probabilities
    chains:         "spins" or "clusters" if samples are states of a Markov chain of these, else ""
    keeps_symmetry: whether it treats all bonds of a lattice alike
    states:         q, an int for spins, a float for random clusters; 1 for percolation

    >>> str(Model.parse("site-bond:bond=.70"))
    'site-bond:bond=0.7'
    >>> str(Model.parse("potts:q=3"))
    'potts:q=3'
    """

    name: ClassVar[str]
    draws_sites: ClassVar[bool] = False
    has_order: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = False
    chains: ClassVar[str] = ""
    keeps_symmetry: ClassVar[bool] = True
    #: The factor of J / kT in p = 1 - exp(-factor J / kT), for models with spins.
    exponent: ClassVar[int] = 1
    site_p: float | None = None
    bond_p: float | None = None
    states: Any = 1

    @staticmethod
    def parse(text: str) -> Model:
        """Return the model of a text: a name, or "site-bond:site=0.9", "potts:q=3", ..."""
        model: Model = parse_model(str(text))
        return model

    @classmethod
    def read(cls, text: str, rest: str | None) -> Model:
        """Return the model of the whole text, ``rest`` being what follows its first colon."""
        if rest is not None:
            raise InputError(f"model {text!r}: {cls.name} takes no parameters, write {cls.name}")
        return cls()

    def __str__(self) -> str:
        """The text that :meth:`parse` reads: the same for equal models."""
        return self.name

    def on(self, structure: Any) -> Model:
        """Return the model in the form for a structure's tasks; InputError if it cannot be used."""
        return self

    @property
    def title(self) -> str:
        """The model's name in a figure: "Site percolation"."""
        return f"{self.name.capitalize()} percolation"

    @property
    def varying(self) -> str:
        """The meaning of the probability p, in words."""
        what = ["a site is occupied"] * self.site_varies + ["a bond is open"] * self.bond_varies
        return "probability that " + ", and that ".join(what)

    @property
    def site_varies(self) -> bool:
        return self.draws_sites and self.site_p is None

    @property
    def bond_varies(self) -> bool:
        return self.bond_p is None

    @property
    def openings_have_p(self) -> bool:
        """Whether every opening (a bond or, if sites are drawn, a site) is open with probability p.

        Then the covariance of a quantity with the number of openings is p (1 - p) times its
        derivative.
        """
        if self.draws_sites:
            return self.site_varies and not self.bond_varies
        has_own_limits = type(self).class_limits is not Model.class_limits
        return not (self.chains or self.has_own_record or has_own_limits)

    @property
    def has_own_record(self) -> bool:
        """Whether the model overrides :meth:`make_record`, which only batches on the CPU call."""
        return type(self).make_record is not Model.make_record

    @property
    def on_cpu_alone(self) -> bool:
        """Whether it can only be sampled on the CPU."""
        return self.has_own_record

    @property
    def has_spins(self) -> bool:
        """Whether sites have spins; samples are then states of a Markov chain."""
        return self.chains == "spins"

    @property
    def coupling_symbol(self) -> str:
        """The symbol of J / kT, for models with spins."""
        raise self._no_spins()

    def coupling_to_p(self, coupling: float) -> float:
        raise self._no_spins()

    def p_to_coupling(self, p: float) -> float:
        """Return J / kT; infinite at p = 1."""
        raise self._no_spins()

    def _no_spins(self) -> TypeError:
        return TypeError(f"{self} percolation has no spins and no coupling")

    def open_share(self, p: float) -> float:
        """Return the probability, or a bound on it, that a bond is open and both sites occupied."""
        site = p if self.site_varies else 1.0 if self.site_p is None else self.site_p
        bond = p if self.bond_varies else 1.0 if self.bond_p is None else self.bond_p
        return site * site * bond

    @property
    def steepest_share(self) -> int:
        """The largest slope of :meth:`open_share`: how many numbers of a bond depend on p."""
        return 2 * self.site_varies + self.bond_varies

    def most_open(self, p: float) -> float:
        """Return a bound, at p, on the probability of any bond and of any site at its end."""
        return p

    @property
    def rule(self) -> Rule:
        """The rule in the form for kernels."""
        return Rule(
            np.uint32(self.site_varies),
            np.uint32(self.bond_varies),
            np.uint64(TOP if self.site_p is None else p_to_threshold(self.site_p)),
            np.uint64(TOP if self.bond_p is None else p_to_threshold(self.bond_p)),
        )

    def class_limits(self, names: Sequence[str]) -> Any:
        """Return thresholds of classes of bonds, uint64, VARIES for that of p; () if all vary."""
        return ()

    def make_record(self, topology: Any) -> Any:
        """Return the record for the hooks of bonds on the CPU.

        topology: :class:`percolab.lattices.topology.Topology`.  A model that overrides this method
        is refused on CUDA and in slabs, whose kernels only know the record of class limits.
        """
        limits = self.class_limits(topology.class_names)
        return ClassLimits(limits, np.uint32(topology.num_words)) if len(limits) else ()


def check_probability(key: str, value: object) -> None:
    """Raise InputError unless a fixed probability is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"model: {key} = {value!r}, but it must be a number from 0 to 1")


def read_number(text: str, number: str) -> float:
    """Return a number of a model's text; InputError if it is none."""
    try:
        return float(number)
    except ValueError as error:
        raise InputError(f"model {text!r}: {number!r} is not a number") from error


def read_fixed(text: str, rest: str) -> dict[str, float]:
    """Return the probability that "site=0.9" or "bond=0.7" fixes, by the argument's name."""
    key, equals, number = (part.strip() for part in rest.partition("="))
    if key not in ("site", "bond") or not equals:
        raise InputError(f"model {text!r}, but what is fixed is written as in site-bond:site=0.9")
    return {f"{key}_p": read_number(text, number)}
