"""Known numbers at p_c: spanning and wrapping probabilities, clusters per site of tori."""

import cmath
import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from percolab.analysis.theory.critical import WRAPPING
from percolab.analysis.theory.planar import CLUSTERS_PER_SITE, THRESHOLDS, crossing_probability
from percolab.analysis.theory.torus import excess_clusters, wrapping_probabilities
from percolab.bonds.model import BOND, Model
from percolab.lattices.bethe import bethe_topology, reach_probability
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_observables
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    compare_means,
    mean_outcome,
    sampled_rows,
)


def _spanning(
    conditions: Conditions, name: str, shape: tuple[int, ...], samples: int, model: Model = BOND
) -> np.ndarray:
    """Return which samples at p = 1/2 span along the first axis, bool (samples,)."""
    topology, stream = load_lattice(name).topology(shape), ("spanning", name, shape)
    rows = sampled_rows(conditions, topology, 0.5, samples, stream=stream, model=model)
    return np.asarray(rows[:, SPANNING] & 1 == 1)


#: Shapes that span with probability 1/2, and numbers of samples: a rectangle of (n + 1) x n sites
#: is its own dual, rotated; occupied sites cross a rhombus, or vacant ones cross it the other way.
_SELF_DUAL: dict[tuple[int, ...], int] = {(6, 5): 400_000, (65, 64): 20_000}
_SELF_MATCHING: dict[tuple[int, ...], int] = {(8, 8): 200_000, (48, 48): 10_000}


def _halves(
    lattice: str, model: Model, shapes: dict[tuple[int, ...], int], note: str, where: Conditions
) -> Iterator[Outcome]:
    for shape, samples in shapes.items():
        spans = _spanning(where, lattice, shape, where.count(samples, 50 * samples), model)
        name = f"{lattice} {model}s, {shape[0]} x {shape[1]} spans along x"
        yield mean_outcome(name, spans, 0.5, note=f"{note}: 1/2 at every size")


def _cardy(conditions: Conditions) -> Iterator[Outcome]:
    """Check rectangles twice as long as wide; the correction of order 1/width is extrapolated."""
    width, samples = conditions.count(16, 128), conditions.count(200_000, 2_000_000)
    one, two = (
        _spanning(conditions, "square", (2 * h + 1, h), samples) for h in (width, 2 * width)
    )
    name = f"square bonds, 2:1 rectangle, widths {width} and {2 * width}"
    yield mean_outcome(name, 2.0 * two - one, crossing_probability(2), note="Cardy (1992)")


def _bethe(conditions: Conditions) -> Iterator[Outcome]:
    samples = conditions.count(20_000, 1_000_000)
    for z, shells, p in ((3, 8, 0.5), (4, 5, 0.4)):
        topology = bethe_topology(shells, coordination_number=z)
        rows = sampled_rows(conditions, topology, p, samples, stream=("Bethe", z, shells))
        name = f"Bethe lattice z = {z}, {shells} shells, p = {p}: reached"
        expected = reach_probability(p, shells, coordination_number=z)
        yield mean_outcome(name, rows[:, SPANNING] & 1, expected, note="by recursion")


#: Ratio of the periods along y and x of L x L grid points: the triangular lattice's axes are at 120
#: degrees; a brick of the honeycomb is sqrt(3)/2 wide and 3/2 high.
TORI = {"square": 1j, "triangular": cmath.exp(2j * math.pi / 3), "honeycomb": 1j * math.sqrt(3)}
#: By L: samples, quick and full.  The term b / N is tens of sigma at L = 16, a fraction at 256.
_SAMPLES = {16: (200_000, 5_000_000), 256: (1_000, 1_000_000)}
_BOUNDARY = ("periodic", "periodic")


def _density(lattice_name: str, size: int, conditions: Conditions) -> Iterator[Outcome]:
    topology = load_lattice(lattice_name).topology((size, size), _BOUNDARY)
    p, sites = THRESHOLDS[lattice_name, "bond"], topology.num_sites
    count = conditions.count(*_SAMPLES[size])
    rows = sampled_rows(conditions, topology, p, count, stream=("clusters", lattice_name, size))
    limit, excess = CLUSTERS_PER_SITE[lattice_name], excess_clusters(TORI[lattice_name])
    name = f"clusters per site, {lattice_name} torus, L = {size}"
    note = f"n_c + b / N with n_c = {limit:.9f}, b = {excess:.6f}"
    yield mean_outcome(name, rows[:, CLUSTERS], limit + excess / sites, scale=sites, note=note)


def _wrapping(lattice_name: str, conditions: Conditions) -> Iterator[Outcome]:
    size, samples = conditions.count(64, 256), conditions.count(20_000, 1_000_000)
    topology = load_lattice(lattice_name).topology((size, size), _BOUNDARY)
    p, stream = THRESHOLDS[lattice_name, "bond"], ("wrapping", lattice_name)
    rows = sampled_rows(conditions, topology, p, samples, stream=stream)
    exact, text = wrapping_probabilities(TORI[lattice_name]), f"{lattice_name} torus, L = {size}"
    values = {
        f"{observable.name}, {text}": (
            observable.of_rows(rows) != 0,
            getattr(exact, WRAPPING[observable.name]),
        )
        for observable in list_observables(_BOUNDARY)
        if observable.name in WRAPPING
    }
    yield from compare_means(text, values, "Pinson (1994)")


_rectangles = partial(_halves, "square", BOND, _SELF_DUAL, "self-dual")
_rhombi = partial(_halves, "triangular", Model.parse("site"), _SELF_MATCHING, "self-matching")
CHECKS = (
    *(
        Check("clusters per site", f"{name}, L = {size}", partial(_density, name, size))
        for name in TORI
        for size in _SAMPLES
    ),
    Check("spanning", "self-dual rectangles", _rectangles),
    Check("spanning", "self-matching rhombi", _rhombi),
    Check("spanning", "Cardy's formula", _cardy),
    Check("spanning", "Bethe lattices", _bethe),
    *(Check("wrapping", name, partial(_wrapping, name)) for name in TORI),
)
