"""What every model of percolation states: words in, planes of open bonds out.

A model's file in this folder has a class that inherits from :class:`Model`.  Where it draws
something else, kernels call the *hooks* of its record (:mod:`percolab.bonds.hooks`).
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
    """What p decides in a model, as kernels are given it.

    site_varies, bond_varies: whether p is the probability of a site, of a bond
    site_limit, bond_limit:   thresholds, which count where the probability does not vary
    """

    site_varies: np.uint32
    bond_varies: np.uint32
    site_limit: np.uint64
    bond_limit: np.uint64


class Model:
    """A percolation model; the clusters are those of occupied sites.  Its text enters ids.

    site_p, bond_p: probabilities that are fixed, None where p is that probability
    draws_sites:    whether sites may be vacant, so that their bonds are culled
    has_order:      whether bonds open one after the other by their numbers as p grows
    needs_weights:  whether bonds have weights, which decide their probabilities
    chains:         what its samples are the states of a Markov chain of: "spins", "clusters" or ""
    keeps_symmetry: whether it treats all bonds of a lattice alike
    states:         q, an int of spins, a float of random clusters; 1 of percolation

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
    #: What J / kT is multiplied by in p = 1 - exp(-...), where there are spins.
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
            raise InputError(f"model {text!r}: {cls.name} has nothing to choose, write {cls.name}")
        return cls()

    def __str__(self) -> str:
        """The text that :meth:`parse` reads: the same for equal models."""
        return self.name

    def on(self, structure: Any) -> Model:
        """Return the model as tasks of a structure name it; InputError if it has none there."""
        return self

    @property
    def title(self) -> str:
        """What it is called in a figure: "Site percolation"."""
        return f"{self.name.capitalize()} percolation"

    @property
    def varying(self) -> str:
        """What p is the probability of, in words."""
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
        """Whether every opening, a bond or where sites are drawn a site, is open at p alone.

        Then the covariance of a quantity with the number of openings is p (1 - p) times its
        derivative.
        """
        if self.draws_sites:
            return self.site_varies and not self.bond_varies
        has_own_limits = type(self).class_limits is not Model.class_limits
        return not (self.chains or self.has_own_record or has_own_limits)

    @property
    def has_own_record(self) -> bool:
        """Whether :meth:`make_record` is its own, which only batches on the CPU ask for."""
        return type(self).make_record is not Model.make_record

    @property
    def on_cpu_alone(self) -> bool:
        """Whether it is sampled on the CPU alone."""
        return self.has_own_record

    @property
    def has_spins(self) -> bool:
        """Whether sites have spins, which are the states of a Markov chain."""
        return self.chains == "spins"

    @property
    def coupling_symbol(self) -> str:
        """What J / kT is called where there are spins."""
        raise self._no_spins()

    def coupling_to_p(self, coupling: float) -> float:
        raise self._no_spins()

    def p_to_coupling(self, p: float) -> float:
        """Return J / kT; infinite at p = 1."""
        raise self._no_spins()

    def _no_spins(self) -> TypeError:
        return TypeError(f"{self} percolation has no spins and no coupling")

    def open_share(self, p: float) -> float:
        """Return the probability that a bond is open, its two sites occupied, or a bound of it."""
        site = p if self.site_varies else 1.0 if self.site_p is None else self.site_p
        bond = p if self.bond_varies else 1.0 if self.bond_p is None else self.bond_p
        return site * site * bond

    @property
    def steepest_share(self) -> int:
        """The most that :meth:`open_share` grows with p: of how many numbers p decides."""
        return 2 * self.site_varies + self.bond_varies

    def most_open(self, p: float) -> float:
        """Return a probability that no bond exceeds, nor a site at its end, at p."""
        return p

    @property
    def rule(self) -> Rule:
        """What the kernels are given."""
        return Rule(
            np.uint32(self.site_varies),
            np.uint32(self.bond_varies),
            np.uint64(TOP if self.site_p is None else p_to_threshold(self.site_p)),
            np.uint64(TOP if self.bond_p is None else p_to_threshold(self.bond_p)),
        )

    def class_limits(self, names: Sequence[str]) -> Any:
        """Return thresholds of classes of bonds, uint64, VARIES if that of p; () if all are."""
        return ()

    def make_record(self, topology: Any) -> Any:
        """Return the record that the hooks of bonds are given on the CPU.

        topology: :class:`percolab.lattices.topology.Topology`.  A model with a record of its own is
        refused on CUDA and in slabs, whose kernels know none but that of :meth:`class_limits`.
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
    """Return what "site=0.9" or "bond=0.7" fixes, by the argument's name."""
    key, equals, number = (part.strip() for part in rest.partition("="))
    if key not in ("site", "bond") or not equals:
        raise InputError(f"model {text!r}, but what is fixed is written as in site-bond:site=0.9")
    return {f"{key}_p": read_number(text, number)}
