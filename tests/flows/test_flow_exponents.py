"""Exponents of what flows: D_B, d_min, 1/nu and t/nu, of sweeps over a transition or at one p."""

import json

import numpy as np
import pytest
from cli_support import answer, refusal

import percolab
from percolab.analysis.curves import ClusterCurve
from percolab.analysis.exponents import FLOW_QUANTITIES, GivenThreshold, fit_exponents
from percolab.analysis.quantities import BlockMoments
from percolab.analysis.stored_data import read_flow_moments
from percolab.analysis.stored_fits import compute_exponents, only_threshold
from percolab.figures.kinds import StudyFigures
from percolab.store.results import read_results

#: Powers of L of the means over the samples that span, in the order of FLOW_QUANTITIES.
POWERS = {"backbone_sites": 1.8, "path_length": 1.375, "red_bonds": 1.14, "conductance": -1.28}
#: That of the mean over all samples.
OF_ALL = 1.9
WORDS = "bridge_free,backbone,path,conductance"


def a_task(size, rng, p=(0.5,), blocks=40):
    """Return cluster sizes without a meaning and flows of a task, spanning in a third of samples.

    Every sum over the samples that span is (1 + 2 (p - 0.5)) L^power of each, with noise of 2 %.
    """
    p, shape = np.array(p), (blocks, len(p))
    spanning = rng.binomial(50, 0.33, (blocks, 1)) * (1 + p - 0.5)
    moments = {
        name: spanning * (1 + 2 * (p - 0.5)) * size**k * (1 + 0.02 * rng.standard_normal(shape))
        for name, k in POWERS.items()
    } | {"spanning": spanning.astype(float)}
    noise = 1 + 0.02 * rng.standard_normal(shape)
    moments["bridge_free_largest"] = 50 * (1 + 2 * (p - 0.5)) * size**OF_ALL * noise
    label = f"{size} {rng.integers(2**40)}"
    whole = np.full(shape, 50.0 * size)
    samples = np.full(blocks, 50)
    curve = ClusterCurve(size, size**3, p, samples, whole, whole / 2, whole, whole, label)
    return curve, BlockMoments(size, p, samples, moments, label)


@pytest.mark.parametrize("p", [(0.5,), tuple(np.linspace(0.3, 0.7, 9))])
def test_exponents_are_powers_of_means_over_the_samples_that_span(p):
    rng = np.random.default_rng(4)
    tasks = [a_task(size, rng, p) for size in (8, 16, 32, 64, 64)]
    clusters, flows = zip(*tasks)
    found = fit_exponents(GivenThreshold(0.5, 1.0), clusters, dimension=3, flows=flows)
    own = {item.name: item for item in found.exponents if item.law is not None}
    (of_all,) = (item for item in found.exponents if item.source.startswith("largest cluster"))
    assert abs(of_all.value - OF_ALL) <= 4 * of_all.error
    expected = {"D_B": 1.8, "d_min": 1.375, "1/nu": 1.14, "t/nu": 1 + 1.28}
    for name, value in expected.items():
        assert abs(own[name].value - value) <= 4 * own[name].error
        assert 0 < own[name].result.statistical_error < 0.03
    values = {item.name: item for item in found.values}
    sizes = np.array(values["bridge_free_largest"].sizes)
    assert values["bridge_free_largest"].values == pytest.approx(sizes**OF_ALL, rel=0.02)
    for name, k in POWERS.items():
        # Two seeds of L = 64 are one size.
        assert values[name].sizes == (8, 16, 32, 64)
        away = values[name].values / np.array([8.0, 16.0, 32.0, 64.0]) ** k - 1
        # Noise of 2 %, a block; of several p the interpolation leaves as much.
        assert np.abs(away).max() <= 4 * 0.02 / np.sqrt(40)
        assert values[name].errors == pytest.approx(
            0.02 / np.sqrt([40, 40, 40, 80]) * values[name].values, rel=0.5
        )


def test_corrections_of_what_flows_are_those_of_no_probability():
    """On a torus those of wrapping probabilities, L^-2, made the error of D_B a third."""
    rng = np.random.default_rng(6)
    clusters, flows = zip(*(a_task(size, rng) for size in (8, 16, 32, 64)))
    found = fit_exponents(GivenThreshold(0.5, 2.0), clusters, dimension=2, flows=flows)
    omegas = {each.source: each.law.omega for each in found.exponents if each.law is not None}
    assert omegas == dict.fromkeys((own.meaning for own in FLOW_QUANTITIES), 1.0)


def test_a_size_at_which_nothing_spans_is_left_out_and_named():
    rng = np.random.default_rng(5)
    tasks = [a_task(size, rng) for size in (8, 16, 32)]
    clusters, flows = zip(*tasks)
    for sums in flows[1].moments.values():
        sums[:] = 0
    found = fit_exponents(GivenThreshold(0.5, 1.0), clusters, dimension=3, flows=flows)
    assert sum("for L = 16: left out" in note for note in found.notes) == len(FLOW_QUANTITIES)
    assert {"D_B", "d_min", "t/nu"} <= {item.name for item in found.exponents}


@pytest.fixture(scope="module")
def at_one_p(tmp_path_factory):
    path = tmp_path_factory.mktemp("flows") / "flow.h5"
    percolab.sweep(
        "square", L=[4, 8, 16], p=[0.5], samples=400, block_size=10, measure=WORDS, out=path,
        device="cpu", boundary=("periodic", "open"),
    )  # fmt: skip
    return path


@pytest.mark.slow
def test_fit_takes_the_only_p_for_the_threshold(at_one_p):
    text = answer("fit", at_one_p, "--exponents")
    assert text.startswith("at p = 0.5, which is taken for p_c without an error:")
    assert "1.6433331633 (exact, Nolin et al. 2024)" in text
    record = json.loads(answer("fit", at_one_p, "--exponents", "--json"))
    assert record["threshold"] == 0.5
    found = {item["source"]: item for item in record["exponents"]["exponents"]}
    for item in FLOW_QUANTITIES:
        assert found[item.meaning]["name"] == item.exponent
    for item in record["exponents"]["exponents"]:
        assert item["difference"] is None or abs(item["difference"]) <= 4
    line = refusal("fit", at_one_p, "--exponents", "--degree", "2")
    assert "--degree" in line
    assert "nothing is fitted, as there is only one p" in line


def test_means_are_those_of_the_stored_columns(at_one_p):
    results = read_results(at_one_p)
    values = compute_exponents(results, only_threshold(results)).values
    mass = next(item for item in values if item.name == "backbone_sites")
    tasks = sorted(results.tasks.values(), key=lambda item: item.task.size)
    assert mass.sizes == (4, 8, 16)
    for mean, item in zip(mass.values, tasks, strict=True):
        sums = item.extra("backbone")[:, 0, 3].sum()
        assert mean == pytest.approx(sums / item.column("spanning_y").sum(), rel=1e-12)


def test_the_figure_draws_every_mean_with_its_law(at_one_p):
    results = read_results(at_one_p)

    def no_fit():
        raise percolab.AnalysisError("one p")

    figures = StudyFigures(results, no_fit)
    assert "flow" in figures.kinds()
    figure, numbers = figures.draw("flow")
    assert len(figure.axes) == len(FLOW_QUANTITIES)
    names = [item["exponent"]["name"] for item in numbers["quantities"]]
    assert names == [item.exponent for item in FLOW_QUANTITIES]


def test_other_studies_have_no_flows():
    plain = percolab.sweep("square", L=[4, 8], p=[0.5, 0.6], samples=40, device="cpu")
    assert read_flow_moments(plain) == []
    assert only_threshold(plain) is None
    spins = percolab.sweep("square", L=[4], p=[0.5], samples=40, model="ising", device="cpu")
    assert only_threshold(spins) is None
    figures = StudyFigures(plain, lambda: None)
    assert "what flows was not measured: sweep with --measure" in figures.problem("flow")
