"""The runs that are kept in results/: theory within four standard errors, and readable for good."""

from pathlib import Path

import numpy as np
import pytest
from helpers import slow

from percolab.analysis.stored_fits import compute_exponents, fit_quantities, fit_results
from percolab.analysis.theory.critical import critical_probability, torus_modulus
from percolab.analysis.theory.planar import CLUSTERS_PER_SITE
from percolab.analysis.theory.torus import excess_clusters
from percolab.api import open_results
from percolab.measure.columns import wrapping_names
from percolab.store.merging import merge

RESULTS = Path(__file__).parents[2] / "results"
TORI = ("square", "triangular", "honeycomb")


def tasks_of(name: str) -> list:
    """Return the tasks of a kept file, the smallest size first; skip where it was left out."""
    path = RESULTS / name
    if not path.exists():
        pytest.skip(f"{path.name} is not in this copy")
    return sorted(open_results(path).tasks.values(), key=lambda item: item.task.size)


@pytest.mark.parametrize("name", TORI)
def test_wrapping_at_the_threshold_is_pinsons(name):
    compared = 0
    for item in tasks_of(f"torus/{name}-critical.h5"):
        task = item.task
        # These files are older than wrapping_none and wrapping_two.
        for observable in filter(item.has, wrapping_names(task.boundary)):
            known = critical_probability(task.structure, task.boundary, observable)
            assert known is not None
            error = np.sqrt(known.value * (1 - known.value) / item.num_samples)
            mean = item.column(observable).sum() / item.num_samples
            assert abs(mean - known.value) <= 4 * error, (observable, task.size, mean, known.value)
            compared += 1
    assert compared >= 12


@pytest.mark.parametrize("name", TORI)
def test_clusters_per_site_at_the_threshold_are_exact(name):
    for item in tasks_of(f"torus/{name}-critical.h5"):
        task = item.task
        excess = excess_clusters(torus_modulus(task.structure)) / task.num_sites
        density = item.column("clusters")[:, 0] / (task.block_size * task.num_sites)
        error = density.std(ddof=1) / np.sqrt(len(density))
        assert abs(density.mean() - CLUSTERS_PER_SITE[name] - excess) <= 4 * error, task.size


@pytest.mark.slow
@pytest.mark.parametrize("name", [slow("square"), "square-scaling"])
def test_exponents_of_the_square_torus_are_nienhuis(name):
    tasks_of(f"torus/{name}.h5")
    results = open_results(RESULTS / "torus" / f"{name}.h5")
    fit = fit_results(results)
    assert abs(fit.threshold - 0.5) <= 4 * fit.threshold_error
    exponents = compute_exponents(results, fit).exponents
    assert {"1/nu", "beta/nu", "gamma/nu", "d_f", "tau"} <= {item.name for item in exponents}
    for item in exponents:
        assert abs(item.value - item.known.value) <= 4 * item.error, (item.name, item.source)


@pytest.mark.slow
def test_the_cubic_study_is_precise_within_its_time_and_near_the_published_threshold():
    names = ("small", "middle", "large", "largest", "more", "slopes")
    for name in names:
        tasks_of(f"cubic-h200/{name}.h5")
    parts = [(name, open_results(RESULTS / "cubic-h200" / f"{name}.h5")) for name in names]
    assert sum(run["seconds"] for _, part in parts for run in part.runs) <= 1200
    found = fit_quantities(merge(parts))
    published = 0.24881182
    error = np.hypot(found.threshold_error, found.systematic_error)
    assert abs(found.threshold - published) <= 4 * error
