"""Exact thermal means of the square Ising model as functions of temperature.

Their names are those of :data:`percolab.analysis.thermodynamics.THERMAL`.  A Potts model of two
states is the same model with beta = 2 K; its energy counts satisfied bonds alone.
"""

from __future__ import annotations

import math
from functools import cache

from percolab.analysis.theory.ising import (
    ising_energy,
    ising_magnetization,
    ising_specific_heat,
    ising_torus,
)
from percolab.bonds.model import Model
from percolab.lattices.lattice import load_lattice
from percolab.lattices.structure import Structure

#: Bonds of a site of the square lattice, the difference of the two conventions of the energy.
_BONDS = 2

#: Q_m at T_c of the Ising model on a square torus.
BINDER_AT_CRITICALITY = 0.856216
BINDER_SOURCE = "Kamieniarz and Blöte 1993"


def is_square_ising(structure: Structure, model: Model) -> bool:
    """Return whether it is the Ising model, or a Potts model of 2 states, on the square lattice."""
    return model.states == 2 and structure.digest == _square_digest()


@cache
def _square_digest() -> str:
    return load_lattice("square").digest


def exact_on_torus(name: str, model: Model, size: int, coupling: float) -> float | None:
    """Return the exact mean on a torus of size x size sites, or None where it is unknown.

    Kaufman's energy and specific heat.  coupling: K, or beta of a Potts model.  ValueError if it is
    not from 1e-6 to 100.

    >>> round(exact_on_torus("energy", Model.parse("ising"), 64, 0.44), 6)
    -1.416121
    """
    torus = ising_torus(size, size, _ising_coupling(model, coupling))
    if name == "specific_heat":
        return torus.specific_heat
    return _energy(model, torus.energy) if name == "energy" else None


def exact_infinite(name: str, model: Model, coupling: float) -> float | None:
    """Return the exact mean of the infinite lattice, or None where it is unknown.

    Onsager's energy and specific heat, Yang's order parameter; arguments as for
    :func:`exact_on_torus`.
    """
    own = _ising_coupling(model, coupling)
    if name == "specific_heat":
        found = ising_specific_heat(own)
        return found if math.isfinite(found) else None
    if name == "order":
        return ising_magnetization(own)
    return _energy(model, ising_energy(own)) if name == "energy" else None


def _ising_coupling(model: Model, coupling: float) -> float:
    return coupling if model.name == "ising" else coupling / 2


def _energy(model: Model, energy: float) -> float:
    """Return an energy per site in the model's own convention."""
    return energy if model.name == "ising" else (energy - _BONDS) / 2
