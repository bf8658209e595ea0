"""Every kind of figure draws the stored numbers, tells them all, or says why it cannot."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, nine_of, refusal, small_results, stored
from helpers import slow
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from synthetic_support import study_view

from percolab import InputError, fit, sweep
from percolab.bonds.words import NEVER, TOP
from percolab.figures.kinds import KINDS, StudyFigures, study_figure
from percolab.figures.kinds.thresholds import ThresholdSample, plot_thresholds
from percolab.store.results import StoredResults
from percolab.tables.flat import mean_table

REPLICAS = 60


@pytest.fixture(scope="module")
def single():
    return sweep("square", L=[4, 8], samples=400, method="threshold", device="cpu")


@cache
def grid():
    """Return a grid of p that crosses clearly; for reading only."""
    p = [0.42, 0.45, 0.48, 0.51, 0.54, 0.57]
    return sweep("square", L=[8, 16, 32], p=p, samples=600, block_size=30, device="cpu")


@cache
def fitted():
    return fit(grid())


@cache
def drawn(kind):
    return study_figure(grid(), kind=kind, fitted=fitted, bootstrap=REPLICAS)


def numbers_of(kind):
    return drawn(kind)[1]


@pytest.mark.parametrize("kind", ["curves", slow("drift"), slow("collapse"), slow("clusters")])
def test_a_kind_is_drawn_beside_its_file_with_its_numbers(kind):
    path = stored(Path("results.h5"), grid())
    output = json.loads(answer("plot", path, "--kind", kind, "--bootstrap", REPLICAS, "--json"))
    assert output["kind"] == kind
    assert Path(f"results-{kind}.png").exists()
    assert not Path("results.png").exists()
    assert output == json.loads(json.dumps(numbers_of(kind), allow_nan=False))


def test_the_clusters_drawn_are_the_stored_means_with_their_errors():
    header, rows = mean_table(grid())
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    for curve in numbers_of("clusters")["curves"]:
        own = [row for row in rows if row["L"] == curve["L"]]
        sites = curve["num_sites"]
        for name, stored_name in (
            ("percolation_strength", "largest"),
            ("second_largest", "second_largest"),
            ("cluster_density", "clusters"),
        ):
            mean = [row[stored_name] / sites for row in own]
            np.testing.assert_allclose(curve[name], mean, rtol=1e-12)
            # Twenty blocks scatter about the errors of single samples.
            error = np.array([row[f"{stored_name}_error"] / sites for row in own])
            ratio = np.array(curve[f"{name}_error"]) / error
            assert ((ratio > 0.5) & (ratio < 1.7)).all(), ratio
        squares = np.array([row["sum_squares"] for row in own])
        assert (np.array(curve["mean_cluster_size"]) < squares / sites).all()


def test_means_are_taken_over_sites_and_not_over_vacant_points():
    kagome = sweep("kagome", L=[8], p=[1.0], samples=20, device="cpu")
    (curve,) = study_figure(kagome, kind="clusters", fitted=lambda: fit(kagome))[1]["curves"]
    assert curve["num_sites"] == 48
    assert curve["percolation_strength"] == [1.0]
    assert curve["cluster_density"] == [pytest.approx(1 / 48)]


def test_the_collapse_is_that_of_the_fitted_exponents():
    numbers = numbers_of("collapse")
    known = fitted()
    spanning, *clusters = numbers["collapses"]
    x = (np.array(spanning["p"]) - known.threshold) * np.array(spanning["L"]) ** known.y_t
    np.testing.assert_allclose(spanning["x"], x, rtol=1e-12)
    assert spanning["y"] == spanning["value"]
    assert spanning["quality"] > 0
    # The line goes through the points of the largest size; corrections are small.
    line = numbers["line"]
    largest = (
        np.equal(spanning["L"], max(spanning["L"])) & (x >= line["x"][0]) & (x <= line["x"][-1])
    )
    assert largest.sum() > 1
    on_line = np.interp(x[largest], line["x"], line["probability"])
    misses = on_line - known.probability(np.array(spanning["p"])[largest], max(spanning["L"]))
    assert np.abs(misses).max() < 0.02
    assert [item["observable"] for item in clusters] == ["largest", "chi"]
    for item in clusters:
        scale = np.array(item["L"], float) ** -item["exponent"]
        np.testing.assert_allclose(item["y"], item["value"] * scale, rtol=1e-12)
        assert item["exponent_error"] > 0


def test_the_collapse_shows_its_fit_at_the_fitted_points_alone():
    figure, numbers = drawn("collapse")
    known = fitted()
    (below,) = (axes for axes in figure.axes if "measured" in axes.get_ylabel())
    shown = sorted(
        x for line in below.lines if line.get_marker() != "None" for x in line.get_xdata()
    )
    at = [(p - known.threshold) * c.L**known.y_t for c in known.used for p in c.p]
    assert len(shown) < len(numbers["collapses"][0]["p"])
    np.testing.assert_allclose(shown, sorted(at))
    np.testing.assert_allclose(
        [numbers["line"]["x"][0], numbers["line"]["x"][-1]], [min(at), max(at)]
    )


def test_the_drift_is_that_of_the_fit():
    numbers = numbers_of("drift")
    known = fitted()
    found = [item for item in known.by_size.crossings if item.found]
    assert numbers["drift"]["p"] == [item.p for item in found]
    exponent = known.scaling.omega + known.y_t
    np.testing.assert_allclose(numbers["drift"]["x"], [item.mean_size**-exponent for item in found])
    assert numbers["drift"]["line"] == known.by_size.drift.to_dict()


@pytest.mark.parametrize(
    ("order", "label"), [("degree", "$p$, share that is left"), ("random", "$p$")]
)
def test_the_axis_of_a_given_order_says_that_p_is_what_is_left(order, label):
    options = {"model": "site", "method": "microcanonical", "samples": 20, "device": "cpu"}
    results = sweep(graph=[(0, 1), (1, 2), (2, 3), (1, 3)], order=order, **options)
    figure, _ = study_figure(results, kind="maxima", fitted=lambda: fit(results))
    assert figure.axes[-1].get_xlabel() == label


def test_the_distribution_of_t_has_the_moments_of_the_stored_thresholds(single):
    numbers = study_figure(single, kind="thresholds", fitted=lambda: fit(single))[1]
    for item, size in zip(single.tasks.values(), numbers["sizes"], strict=True):
        t = item.thresholds("spanning_y").ravel() / TOP
        assert size["never"] == 0
        assert size["mean"] == pytest.approx(t.mean())
        assert size["median"] == pytest.approx(np.median(t))
        assert size["mean_error"] == pytest.approx(t.std(ddof=1) / 20)
        area = np.array(size["density"]) @ np.diff(size["edges"])
        assert 0.98 < area <= 1.0
        normal = size["normal"]
        assert np.trapezoid(normal["density"], normal["T"]) == pytest.approx(1, abs=1e-3)


def test_errors_of_the_moments_are_those_of_repeated_samples():
    rng = np.random.default_rng(3)
    found = [ThresholdSample(8, 64, np.sort(rng.beta(6, 4, 400))).moments() for _ in range(300)]
    for name in ("mean", "median", "deviation"):
        scatter = np.std([item[name] for item in found])
        assert np.mean([item[f"{name}_error"] for item in found]) == pytest.approx(
            scatter, rel=0.15
        )


def test_samples_that_never_span_are_counted_and_left_out(single):
    results = deepcopy(single)
    item = next(iter(results.tasks.values()))
    block = item.blocks[0]
    found = block.thresholds.copy()
    found[:3] = NEVER
    item.blocks[0] = replace(block, thresholds=found)
    sizes = study_figure(results, kind="thresholds", fitted=lambda: fit(results))[1]["sizes"]
    assert [size["never"] for size in sizes] == [3, 0]
    assert sizes[0]["mean"] < 1


def test_few_and_equal_thresholds_are_drawn():
    for t in ([0.5], [0.5, 0.5, 0.5], [0.2, 0.4]):
        sample = ThresholdSample(4, 16, np.array(t))
        _, numbers = plot_thresholds([sample], study_view([]))
        json.dumps(numbers, allow_nan=False)
        assert numbers["sizes"][0]["mean"] == pytest.approx(np.mean(t))


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("thresholds", "kind thresholds: T of single samples is found by method threshold, not"),
        ("thresholds", "; these results give: curves, collapse, clusters"),
        ("maxima", "kind maxima: it is for graphs and Bethe lattices"),
        ("curvs", "unknown kind 'curvs'; did you mean 'curves'?"),
    ],
)
def test_a_kind_that_the_file_cannot_give_is_refused_with_those_it_can(kind, output):
    path = stored(Path("results.h5"))
    assert output in refusal("plot", path, "--kind", kind, "--bootstrap", 0)
    assert sorted(item.name for item in Path().iterdir()) == [".results.h5.lock", "results.h5"]


def test_what_needs_a_fit_says_that_there_is_none(single):
    one = sweep("square", L=[4], p=[0.4, 0.6], samples=20, device="cpu")
    figures = StudyFigures(one, lambda: fit(one))
    assert nine_of(figures.kinds()) == ["curves", "clusters"]
    for kind in ("drift", "collapse"):
        assert "need at least two sizes" in figures.problem(kind)
    of_thresholds = StudyFigures(single, lambda: fit(single)).kinds()
    assert nine_of(of_thresholds) == ["curves", "drift", "collapse", "thresholds"]
    periodic = sweep("square", L=[4, 6], p=[0.5], samples=10, boundary="periodic", device="cpu")
    figures = StudyFigures(periodic, lambda: fit(periodic))
    assert nine_of(figures.kinds()) == ["curves", "clusters", "wrapping"]
    assert figures.name == "wrapping_y"


def test_what_connects_a_source_and_a_target_has_a_panel_of_its_own():
    tree = sweep("bethe:3", L=[4, 5], p=[0.4, 0.6], samples=40, device="cpu")
    figure, numbers = study_figure(tree, kind="maxima", fitted=lambda: fit(tree))
    first = figure.axes[0]
    assert first.get_ylabel() == "$R$"
    drawn = [bars.lines[0].get_ydata().tolist() for bars in first.containers]
    assert drawn == [curve["probability"] for curve in numbers["spanning"]]
    assert len(figure.axes) == 5
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"$N = 46$, $L = 4$", "$N = 94$, $L = 5$"} < set(names)


def test_clusters_of_a_source_have_a_panel_of_their_own_and_a_line_of_the_fit():
    graph = [(0, 1), (1, 2), (3, 4)]
    given = {"p": [0.0, 0.5, 1.0], "samples": 200, "block_size": 10, "device": "cpu"}
    outbreak = sweep(graph=graph, source=0, measure="source", **given)
    path = stored(Path("graph.h5"), outbreak)
    figure, numbers = study_figure(outbreak, kind="maxima", fitted=lambda: fit(outbreak))
    assert "src" in figure.axes[-1].get_ylabel()
    _, means, errors = outbreak.means("source_sites")
    assert (means[0], means[2]) == (1.0, 3.0)
    assert numbers["outbreaks"][0]["mean"] == means.tolist()
    np.testing.assert_allclose(numbers["outbreaks"][0]["error"], errors)
    (bars,) = figure.axes[-1].containers
    np.testing.assert_allclose(bars.lines[0].get_ydata(), means / 5)
    line = "clusters of the source: 1 of 5 sites at p = 0, 3 at p = 1\n"
    assert answer("fit", path).endswith(line)
    without = sweep(graph=graph, **given)
    figure, numbers = study_figure(without, kind="maxima", fitted=lambda: fit(without))
    assert (len(figure.axes), numbers["outbreaks"]) == (4, [])
    assert "source" not in answer("fit", stored(Path("other.h5"), without))


def test_nothing_is_drawn_without_samples():
    figures = StudyFigures(StoredResults(small_results().study), fitted)
    assert {figures.problem(kind) for kind in KINDS} == {"no samples yet"}


@pytest.mark.parametrize(
    "kind", ["curves", "drift", slow("collapse"), slow("clusters"), slow("thresholds")]
)
def test_every_panel_has_labels_and_no_legend_covers_data(kind, single):
    own = kind == "thresholds"
    figure, _ = study_figure(single, kind=kind, fitted=fitted) if own else drawn(kind)
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes.get_ylabel(), "an axis without a name"
        legend = axes.get_legend()
        boxes = [item.get_window_extent() for item in figure.legends]
        boxes += [legend.get_window_extent()] if legend else []
        for line in (bars.lines[0] for bars in axes.containers):
            for point in axes.transData.transform(line.get_xydata()):
                assert not any(box.contains(*point) for box in boxes)
    assert any(axes.get_xlabel() for axes in figure.axes)


def test_kinds_of_one_panel_go_into_given_axes_and_leave_the_others_alone():
    given = Figure(figsize=(9, 4), layout="constrained")
    left, right = given.subplots(1, 2)
    for kind, axes in (("curves", left), ("drift", right)):
        figure, numbers = study_figure(grid(), kind=kind, fitted=fitted, ax=axes)
        assert figure is given
        assert numbers == numbers_of(kind)
    assert left.get_ylabel().startswith("spanning probability")
    assert "p^*" in right.get_ylabel()
    assert right.get_legend() is not None
    # Two legends in or below the first: the sizes, and what else is drawn.
    listed = [text.get_text() for legend in _legends(left) for text in legend.get_texts()]
    assert "$L = 8$" in listed
    assert any("p_c" in text for text in listed)


def _legends(axes):
    return [item for item in axes.get_children() if isinstance(item, Legend)]


@pytest.mark.slow
def test_kinds_of_several_panels_do_not_go_into_one():
    axes = Figure().subplots()
    for kind, count in (("clusters", "4"), ("collapse", "several")):
        with pytest.raises(InputError, match=f"kind {kind} has {count} panels, but ax is"):
            study_figure(grid(), kind=kind, fitted=fitted, ax=axes)
    with pytest.raises(InputError, match="ax is Figure, but it must be one panel's"):
        study_figure(grid(), kind="curves", fitted=fitted, ax=axes.figure)
    assert not axes.lines


def test_the_help_of_plot_has_the_line_of_every_kind():
    output = " ".join(answer("plot", "--help").split())
    for name, kind in KINDS.items():
        assert f"{name} {kind.help}" in output
