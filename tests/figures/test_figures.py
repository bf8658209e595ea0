"""Figures hold what they claim, in every amount of data, and are written reproducibly."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import slow
from synthetic_support import study_view, synthetic_study

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.threshold import fit_threshold
from percolab.analysis.value import ChiSquare, format_with_error
from percolab.figures import save_figure
from percolab.figures.elements import exact_record
from percolab.figures.kinds.curves import draw_spanning, plot_drift
from percolab.figures.style import new_figure
from percolab.papers.komura2016.timing import Timing, plot_timing

TRUTH = ScalingFunction(0.6527, 0.75, (0.1, 1.3, 0.05, -0.06), corrections=(0.8, 0.0, 0.0, 0.0))
EXACT = (0.6527036, "Sykes & Essam (1964)")


def study(*sizes, **options):
    return synthetic_study(TRUTH, sizes, samples=50, rng=np.random.default_rng(0), **options)


def legend_texts(figure):
    legends = [*figure.legends, *(a.get_legend() for a in figure.axes if a.get_legend())]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


def test_a_fit_is_drawn_with_curves_estimate_exact_value_crossings_and_drift():
    fit = fit_threshold(study(64, 128, 256, 512))
    sites = {size: size**2 for size in fit.sizes}
    figure, numbers = draw_spanning(study_view(fit, exact=EXACT, num_sites=sites))
    texts = legend_texts(figure)
    assert [f"$N = {n}$, $L = {size}$" for size, n in sites.items()] == texts[-4:]
    estimate = format_with_error(fit.threshold, fit.threshold_error)
    assert any(estimate in text and "finite-size scaling" in text for text in texts)
    assert any(EXACT[1] in text for text in texts)
    assert any("drift of crossings" in text for text in texts)
    assert len(figure.axes[0].child_axes) == 1
    assert exact_record(EXACT) == {"threshold": EXACT[0], "citation": EXACT[1]}
    assert numbers["fit"] == fit.to_dict()
    assert len(numbers["curves"]) == len(numbers["lines"]) == 4
    json.dumps(numbers, allow_nan=False)


@pytest.mark.parametrize(
    ("quality", "problem", "said"),
    [
        slow(ChiSquare(900.0, 20, 9e-140), "no p_c: rejected; more", r"9 \times 10^{-140}"),
        slow(ChiSquare(90000.0, 20, 0.0), "no p_c: rejected; more", r"1 \times 10^{-300}"),
        (None, "no p_c: outside the sampled p; sample more", "no $p_c$: outside the sampled p"),
    ],
)
def test_a_fit_that_is_no_answer_has_no_band(quality, problem, said):
    good = fit_threshold(study(64, 128, 256, 512))
    p_c = replace(good.p_c, chi_square=quality or good.chi_square)
    none = replace(good, problem=problem, p_c=p_c)
    for plot in (draw_spanning, plot_drift):
        for fit, bands in ((good, True), (none, False)):
            figure, _ = plot(study_view(fit))
            texts = [text.get_text() for text in figure.legends[0].get_texts()]
            found = [patch for axes in figure.axes for patch in axes.patches]
            assert bool(found) == bands
            assert any("finite-size scaling" in text for text in texts) == bands
            assert any(said in text.replace("\n", " ") for text in texts) == (not bands)


def test_the_drawn_line_is_the_simultaneous_fit():
    fit = fit_threshold(study(64, 128, 256))
    _, numbers = draw_spanning(study_view(fit))
    line = numbers["lines"][1]
    assert line["L"] == 128
    np.testing.assert_allclose(line["probability"], fit.probability(line["p"], 128))


def test_two_sizes_are_drawn_without_drift_line():
    fit = fit_threshold(study(64, 128))
    figure, numbers = draw_spanning(study_view(fit))
    assert numbers["fit"]["drift"] is None
    assert not any("drift of crossings" in text for text in legend_texts(figure))


def test_one_size_is_drawn_without_an_estimate():
    figure, numbers = draw_spanning(study_view(study(64), exact=EXACT))
    assert numbers["fit"] is None
    assert len(numbers["lines"]) == 1
    assert not any("finite-size scaling" in text for text in legend_texts(figure))


def test_data_that_do_not_cross_are_drawn_without_close_up_and_crossings(tmp_path):
    below = [curve.at(curve.probability < 0.4) for curve in study(64, 128, 256)]
    fit = replace(fit_threshold(below), problem="no p_c: outside the sampled p")
    figure, numbers = draw_spanning(study_view(fit))
    assert figure.axes[0].child_axes == []
    assert len(figure.axes) == 1
    assert not any("crossings" in text for text in legend_texts(figure))
    assert numbers["drift"] is None
    # The axis ends where the data do, not as far beyond a p_c that there is not.
    p = np.concatenate([curve.p[curve.probability > 0.001] for curve in below])
    assert figure.axes[0].get_xlim()[1] - p.max() < 0.1 * np.ptp(p)
    save_figure(figure, tmp_path / "figure.png")


def test_saturated_curves_are_drawn_as_points_alone():
    figure, numbers = draw_spanning(study_view([SpanningCurve(64, [0.1, 0.9], [50], [[0, 50]])]))
    assert numbers["lines"] == []
    assert legend_texts(figure) == ["$L = 64$"]


def test_several_tasks_of_one_size_share_one_legend_entry():
    figure, _ = draw_spanning(study_view([*study(64), *study(64, points=5)]))
    assert legend_texts(figure) == ["$L = 64$"]


def test_the_inset_covers_no_data_point():
    fit = fit_threshold(study(64, 128, 256, 512))
    figure, _ = draw_spanning(study_view(fit))
    figure.draw_without_rendering()
    main = figure.axes[0]
    box = main.child_axes[0].get_window_extent()
    for curve in fit.curves:
        for point in main.transData.transform(np.column_stack([curve.p, curve.probability])):
            assert not box.contains(*point)


@pytest.mark.parametrize("count", [2, *(slow(n) for n in range(3, 9))])
def test_the_inset_and_the_legend_of_the_sizes_do_not_overlap(count):
    # Curves that cross low leave room in the upper left corner alone.
    low = replace(TRUTH, coefficients=(-0.73, 1.3, 0.05, -0.06))
    sizes = [32 * 2**n for n in range(count)]
    rng = np.random.default_rng(0)
    fit = fit_threshold(synthetic_study(low, sizes, samples=50, rng=rng))
    figure, _ = draw_spanning(study_view(fit, num_sites={L: L**2 for L in fit.sizes}))
    figure.draw_without_rendering()
    main = figure.axes[0]
    legend = main.get_legend().get_window_extent()
    assert not any(legend.overlaps(inset.get_tightbbox()) for inset in main.child_axes)
    assert main.child_axes or count > 5


RECORDS = [
    Timing(lattice, "four_step", ratio, n, 1e-6 * n * (1 + ratio), 0.01)
    for lattice in ("honeycomb", "triangular")
    for ratio in (0.5, 1.0, 1.5)
    for n in (2**20, 2**18)
]


def test_timings_are_one_ordered_series_for_each_lattice_and_p():
    figure, numbers = plot_timing(RECORDS, title="time")
    assert len(numbers["series"]) == 6
    assert numbers["series"][0]["num_sites"] == [2**18, 2**20]
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    named = {text.get_text() for text in figure.axes[0].texts}
    assert named >= {"honeycomb, $p_c$", "triangular, $p_c$"}


def test_the_guide_is_proportional_to_n_and_below_the_data():
    _, numbers = plot_timing(RECORDS, title="time")
    sites, times = (np.array(numbers["guide"][key]) for key in ("num_sites", "milliseconds"))
    assert times[1] / times[0] == pytest.approx(sites[1] / sites[0])
    assert all(record.milliseconds > times[0] / sites[0] * record.num_sites for record in RECORDS)


def bars_of(figure):
    """Return how many series of the first panel have error bars, in the legend too."""
    return sum(container.has_yerr for container in figure.axes[0].containers)


def test_timings_without_errors_are_drawn_and_listed_without_bars():
    bare = [replace(record, error=0.0) for record in RECORDS]
    assert bars_of(plot_timing(RECORDS, title="time")[0]) == 6
    figure, numbers = plot_timing(bare, title="time")
    assert bars_of(figure) == 0
    assert numbers["series"][0]["error"] == [0.0, 0.0]
    half = [replace(r, error=0.0) if r.num_sites == 2**18 else r for r in RECORDS]
    figure = plot_timing(half, title="time")[0]
    for container in figure.axes[0].containers:
        (segments,) = (lines.get_segments() for lines in container.lines[2])
        assert [len(segment) for segment in segments].count(2) == 1


def test_a_known_threshold_is_written_in_mathematics_and_stored_as_it_is():
    exact = (0.6527036, "1 - 2 sin(pi/18) [Sykes and Essam 1964]")
    figure, _ = draw_spanning(study_view(study(64, 128), exact=exact))
    assert legend_texts(figure)[0] == (
        r"$p_c = 0.6527036$, $1 - 2\,\sin(\pi/18)$ [Sykes and Essam 1964]"
    )
    assert exact_record(exact)["citation"] == exact[1]


def test_no_timings_are_refused():
    with pytest.raises(ValueError, match="at least one record"):
        plot_timing([], title="time")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".png", slow(".pdf"), slow(".svg")])
def test_equal_data_give_equal_files(tmp_path, suffix):
    for name in ("one", "two"):
        figure, _ = plot_timing(RECORDS, title="time")
        save_figure(figure, tmp_path / f"{name}{suffix}")
    one, two = (tmp_path / f"{name}{suffix}" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {one.name, two.name}


@pytest.mark.parametrize("suffix", [slow(".png"), slow(".pdf"), ".svg"])
def test_files_carry_no_date_and_no_version(tmp_path, suffix):
    figure, _ = plot_timing(RECORDS, title="time")
    save_figure(figure, tmp_path / f"figure{suffix}")
    content = (tmp_path / f"figure{suffix}").read_bytes()
    for mark in (b"CreationDate", b"dc:date", b"Matplotlib v"):
        assert mark not in content


def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch):
    figure, _ = plot_timing(RECORDS, title="time")

    def write_half(buffer, **_):
        buffer.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", write_half)
    with pytest.raises(OSError, match="disk full"):
        save_figure(figure, tmp_path / "figure.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["figure.gif", "figure"])
def test_an_unknown_suffix_is_refused_with_the_allowed_ones(tmp_path, name):
    figure, _ = plot_timing(RECORDS, title="time")
    with pytest.raises(ValueError, match=r"\.png, \.pdf, \.svg"):
        save_figure(figure, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("module", "unloaded"),
    [
        ("percolab.figures.elements", {"matplotlib", "scipy"}),
        slow("percolab.figures.kinds", {"matplotlib"}),
    ],
)
def test_importing_figures_does_not_load_what_draws_them(module, unloaded):
    code = f"import sys, {module}; print({unloaded} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


@pytest.mark.slow
def test_fonts_of_a_pdf_are_truetype(tmp_path):
    with new_figure(2, 2) as figure:
        figure.subplots().set_xlabel("$p$, probability")
    save_figure(figure, tmp_path / "figure.pdf")
    written = (tmp_path / "figure.pdf").read_bytes()
    assert b"/Subtype /Type3" not in written
    assert b"/CIDFontType2" in written
