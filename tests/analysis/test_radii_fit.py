"""Radii of clusters: synthetic sums with pulls, pairs of sites, and what has none."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal, stored

from percolab.analysis.radii import GyrationSums, fit_radius
from percolab.analysis.stored_data import read_gyration_sums
from percolab.api import sweep
from percolab.measure.tallies import bin_edges

pytestmark = pytest.mark.usefixtures("own_directory")


def gyration_sums(rng, d_f, *, blocks=20, L=256):
    """Return sums of clusters with R_s^2 = 0.3 s^(2/d_f) (1 + noise of a tenth a cluster)."""
    edges = bin_edges(L * L)
    sizes = (edges[:-1] + edges[1:] - 1) / 2
    number = rng.poisson(2e4 * sizes**-1.0, (blocks, 1, sizes.size))
    squares = number * sizes**2
    noise = 1 + 0.1 * rng.normal(size=number.shape) / np.sqrt(np.maximum(number, 1))
    spreads = squares * 0.3 * sizes ** (2 / d_f) * noise
    largest = np.array([0.8 * L ** (91 / 48)])
    return GyrationSums(L, L * L, 100, np.array([0.5]), edges, squares, spreads, largest)


@pytest.mark.parametrize("is_open", [False, True])
def test_errors_of_the_fractal_dimension_hold(is_open):
    rng = np.random.default_rng(12)
    options, fits = {"threshold": 0.5, "dimension": 2, "is_open": is_open}, []
    for _ in range(40):
        fits.append(fit_radius([gyration_sums(rng, 91 / 48, L=L) for L in (64, 256)], **options))
    pulls = np.array([(item.d_f - 91 / 48) / item.error for item in fits])
    assert abs(pulls.mean()) < 0.5
    assert pulls.std() < 1.2
    scatter = np.std([item.d_f for item in fits])
    own = np.median([item.result.statistical_error for item in fits])
    # Twenty blocks determine an error to a sixth.
    assert own == pytest.approx(scatter, rel=0.5)
    assert all(item.sizes == (64, 256) for item in fits)


def test_the_correlation_length_is_that_of_all_bins():
    sums = gyration_sums(np.random.default_rng(13), 1.9)
    xi, error = sums.correlation_length()
    assert xi[0] == pytest.approx(np.sqrt(2 * sums.spreads.sum() / sums.squares.sum()))
    found = [gyration_sums(np.random.default_rng(n), 1.9).correlation_length() for n in range(60)]
    scatter = np.std([item[0][0] for item in found])
    assert np.mean([item[1][0] for item in found]) == pytest.approx(scatter, rel=0.35)
    assert error[0] > 0


def test_radii_of_pairs_of_sites_are_half_a_bond_and_xi_is_drawn():
    results = sweep("square", L=[8, 16], p=[0.3, 0.5], samples=200, block_size=20,
                    measure="gyration", boundary="periodic", device="cpu")  # fmt: skip
    for sums in read_gyration_sums(results):
        s, squared, _ = sums.radii(0)
        assert squared[s == 1] == 0
        assert squared[s == 2] == pytest.approx(0.25)
    path = stored(Path("radii.h5"), results)
    message = json.loads(answer("plot", path, "--kind", "gyration", "--bootstrap", 0, "--json"))
    assert set(message) == {
        "kind", "title", "threshold", "threshold_source", "exact", "curves", "fit", "notes",
    }  # fmt: skip
    for curve, sums in zip(message["curves"], read_gyration_sums(results), strict=True):
        assert curve["correlation_length"] == sums.correlation_length()[0].tolist()
    message = refusal("plot", stored(Path("none.h5")), "--kind", "gyration", "--bootstrap", 0)
    assert "sweep with --measure gyration" in message


@pytest.mark.slow
@pytest.mark.parametrize("p", [[0.0, 1.0], [0.0]])
def test_without_a_cluster_of_two_sites_that_ends_there_are_no_radii(p):
    results = sweep("square", L=[2, 4], p=p, samples=40, block_size=10, measure="sizes,gyration",
                    device="cpu")  # fmt: skip
    path = stored(Path("radii.h5"), results)
    message = refusal("plot", path, "--kind", "gyration", "--bootstrap", 0)
    assert "there are no radii" in message
    answer("report", path, "--bootstrap", 0)
    assert "there are no radii" in Path("radii.html").read_text()


@pytest.mark.slow
def test_radii_of_one_block_leave_their_panel_empty():
    """An empty panel cannot be logarithmic, and does not end the report."""
    results = sweep("cubic", L=[1, 2, 3], p=[0.1, 0.2, 0.3], samples=50, measure="gyration",
                    boundary="periodic", device="cpu")  # fmt: skip
    path = stored(Path("block.h5"), results)
    answer("plot", path, "--kind", "gyration", "--bootstrap", 0)
    answer("report", path, "--bootstrap", 0)


@pytest.mark.slow
def test_a_refusal_says_what_would_measure_it():
    results = sweep("square", L=[4, 8], samples=40, method="threshold", device="cpu")
    path = stored(Path("thresholds.h5"), results)
    for kind in ("sizes", "gyration"):
        message = refusal("plot", path, "--kind", kind, "--bootstrap", 0)
        assert f"sweep with --measure {kind} and --method grid" in message
    bethe = stored(Path("bethe.h5"), sweep("bethe:3", L=[3], p=[0.5], samples=40, device="cpu"))
    assert "has no coordinates" in refusal("plot", bethe, "--kind", "gyration")
