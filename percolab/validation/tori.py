"""Critical tori: clusters per site with the finite-size term, and wrapping probabilities."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from functools import partial

from percolab.analysis.theory.critical import WRAPPING
from percolab.analysis.theory.planar import CLUSTERS_PER_SITE, THRESHOLDS
from percolab.analysis.theory.torus import excess_clusters, wrapping_probabilities
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_observables
from percolab.measure.rows import CLUSTERS
from percolab.validation.check import Check, Conditions, Outcome, with_joint
from percolab.validation.sampling import fraction_outcome, mean_outcome, sampled_rows

#: Period along y over that along x, of L x L grid points: the triangular lattice's axes are at 120
#: degrees; a brick of the honeycomb is sqrt(3)/2 wide and 3/2 high.
TORI = {"square": 1j, "triangular": cmath.exp(2j * math.pi / 3), "honeycomb": 1j * math.sqrt(3)}
#: By L: samples, quick and full.  At L = 16 the term b / N is tens of sigma, at 256 a fraction.
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
    exact, compared = wrapping_probabilities(TORI[lattice_name]), []
    text = f"{lattice_name} torus, L = {size}"
    for observable in list_observables(_BOUNDARY):
        if observable.name in WRAPPING:
            values, expected = observable.of_rows(rows), getattr(exact, WRAPPING[observable.name])
            name = f"{observable.name}, {text}"
            outcome = fraction_outcome(name, values, expected, "Pinson (1994)")
            compared.append((outcome, (values != 0) - expected))
    yield from with_joint(text, compared)


DENSITIES = tuple(
    Check("clusters per site", f"{name}, L = {size}", partial(_density, name, size))
    for name in TORI
    for size in _SAMPLES
)
WRAPPINGS = tuple(Check("wrapping", name, partial(_wrapping, name)) for name in TORI)
