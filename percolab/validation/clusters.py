"""Clusters per site of critical tori, the finite-size term included."""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator
from functools import partial

from percolab.analysis.theory.planar import CLUSTERS_PER_SITE, THRESHOLDS
from percolab.analysis.theory.torus import excess_clusters
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import CLUSTERS
from percolab.validation.check import Check, Conditions, Outcome
from percolab.validation.sampling import mean_outcome, sampled_rows

#: Period along y over that along x, of L x L grid points: the triangular lattice's axes are at 120
#: degrees; a brick of the honeycomb is sqrt(3)/2 wide and 3/2 high.
TORI = {
    "square": 1j,
    "triangular": cmath.exp(2j * math.pi / 3),
    "honeycomb": 1j * math.sqrt(3),
}


def _density(
    lattice_name: str, size: int, samples: tuple[int, int], conditions: Conditions
) -> Iterator[Outcome]:
    topology = load_lattice(lattice_name).topology((size, size), ("periodic",) * 2)
    p, sites = THRESHOLDS[lattice_name, "bond"], topology.num_sites
    count = conditions.count(*samples)
    rows = sampled_rows(conditions, topology, p, count, stream=("clusters", lattice_name, size))
    limit, excess = CLUSTERS_PER_SITE[lattice_name], excess_clusters(TORI[lattice_name])
    name = f"clusters per site, {lattice_name} torus, L = {size}"
    note = f"n_c + b / N with n_c = {limit:.9f}, b = {excess:.6f}"
    yield mean_outcome(name, rows[:, CLUSTERS], limit + excess / sites, scale=sites, note=note)


#: By L: samples, quick and full.  At L = 16 the term b / N is tens of sigma, at 256 a fraction.
_SAMPLES = {16: (200_000, 5_000_000), 256: (1_000, 1_000_000)}

CHECKS = tuple(
    Check(
        "clusters per site",
        f"{lattice_name}, L = {size}",
        partial(_density, lattice_name, size, samples),
    )
    for lattice_name in TORI
    for size, samples in _SAMPLES.items()
)
