"""Spanning probabilities that are known: by duality exactly, by Cardy's formula, by a recursion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from percolab.analysis.theory.planar import crossing_probability
from percolab.bonds.model import BOND, Model
from percolab.lattices.bethe import bethe_topology, reach_probability
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import SPANNING
from percolab.validation.check import Check, Conditions, Outcome
from percolab.validation.sampling import fraction_outcome, sampled_rows


def _spanning(
    conditions: Conditions,
    lattice_name: str,
    shape: tuple[int, ...],
    samples: int,
    model: Model = BOND,
) -> np.ndarray:
    """Return which samples at p = 1/2 span along the first axis, bool (samples,)."""
    topology, stream = load_lattice(lattice_name).topology(shape), ("spanning", lattice_name, shape)
    rows = sampled_rows(conditions, topology, 0.5, samples, stream=stream, model=model)
    spans: np.ndarray = rows[:, SPANNING] & 1 == 1
    return spans


def _self_dual(conditions: Conditions) -> Iterator[Outcome]:
    """A rectangle of (n + 1) x n sites is its own dual, turned: it is crossed by one of the two."""
    for n, samples in ((5, 400_000), (64, 20_000)):
        count = conditions.count(samples, 50 * samples)
        found = _spanning(conditions, "square", (n + 1, n), count)
        name = f"square bonds, {n + 1} x {n} spans along x"
        yield fraction_outcome(name, found, 0.5, "self-dual: 1/2 at every size")


def _self_matching(conditions: Conditions) -> Iterator[Outcome]:
    """Either occupied sites cross a rhombus one way, or vacant ones the other."""
    for n, samples in ((8, 200_000), (48, 10_000)):
        count = conditions.count(samples, 50 * samples)
        found = _spanning(conditions, "triangular", (n, n), count, Model.parse("site"))
        name = f"triangular sites, {n} x {n} spans along x"
        yield fraction_outcome(name, found, 0.5, "self-matching: 1/2 at every size")


def _cardy(conditions: Conditions) -> Iterator[Outcome]:
    """Rectangles twice as long as wide; the correction, of order 1/width, is extrapolated away."""
    width, samples = conditions.count(16, 128), conditions.count(200_000, 2_000_000)
    found, variance = 0.0, 0.0
    for factor, weight in ((1, -1), (2, 2)):
        h = factor * width
        here = float(np.mean(_spanning(conditions, "square", (2 * h + 1, h), samples)))
        found += weight * here
        variance += weight**2 * here * (1 - here) / samples
    name = f"square bonds, 2:1 rectangle, widths {width} and {2 * width}"
    sigma = float(np.sqrt(variance))
    yield Outcome(name, found, crossing_probability(2), sigma, "Cardy (1992)")


def _bethe(conditions: Conditions) -> Iterator[Outcome]:
    samples = conditions.count(20_000, 1_000_000)
    for z, shells, p in ((3, 8, 0.5), (4, 5, 0.4)):
        topology = bethe_topology(shells, coordination_number=z)
        rows = sampled_rows(conditions, topology, p, samples, stream=("Bethe", z, shells))
        name = f"Bethe lattice z = {z}, {shells} shells, p = {p}: reached"
        expected = reach_probability(p, shells, coordination_number=z)
        yield fraction_outcome(name, rows[:, SPANNING] & 1, expected, "by recursion")


CHECKS = (
    Check("spanning", "self-dual rectangles", _self_dual),
    Check("spanning", "self-matching rhombi", _self_matching),
    Check("spanning", "Cardy's formula", _cardy),
    Check("spanning", "Bethe lattices", _bethe),
)
