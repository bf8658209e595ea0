"""Wrapping probabilities of critical tori against Pinson's formula.

What is checked is what the registry of observables has on a torus, by name: an observable that is
not listed there yet is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from percolab.analysis.theory.critical import WRAPPING
from percolab.analysis.theory.planar import THRESHOLDS
from percolab.analysis.theory.torus import wrapping_probabilities
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_observables
from percolab.validation.check import Check, Conditions, Outcome
from percolab.validation.clusters import TORI
from percolab.validation.deviates import with_joint
from percolab.validation.sampling import fraction_outcome, sampled_rows

_BOUNDARY = ("periodic", "periodic")


def _wrapping(lattice_name: str, conditions: Conditions) -> Iterator[Outcome]:
    measured = [item for item in list_observables(_BOUNDARY) if item.name in WRAPPING]
    if not measured:
        return
    size, samples = conditions.count(64, 256), conditions.count(20_000, 1_000_000)
    topology = load_lattice(lattice_name).topology((size, size), _BOUNDARY)
    p, stream = THRESHOLDS[lattice_name, "bond"], ("wrapping", lattice_name)
    rows = sampled_rows(conditions, topology, p, samples, stream=stream)
    exact = wrapping_probabilities(TORI[lattice_name])
    text = f"{lattice_name} torus, L = {size}"
    outcomes, apart = [], []
    for observable in measured:
        values: np.ndarray = observable.of_rows(rows)
        expected = getattr(exact, WRAPPING[observable.name])
        name = f"{observable.name}, {text}"
        outcomes.append(fraction_outcome(name, values, expected, "Pinson (1994)"))
        apart.append((values != 0) - expected)
    yield from with_joint(text, outcomes, np.stack(apart, axis=1))


CHECKS = tuple(Check("wrapping", name, partial(_wrapping, name)) for name in TORI)
