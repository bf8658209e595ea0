"""What all figures share: ticks, legends, colours, titles and mathematics that can be read."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from helpers import BUILT_IN, lattice, slow
from matplotlib.colors import to_rgb
from matplotlib.mathtext import MathTextParser
from matplotlib.text import Text
from synthetic_support import study_view

from percolab.analysis.curves import SpanningCurve
from percolab.configurations import random_configuration
from percolab.figures.colours import LARGEST, MUTED, SPANNING, choose_colours
from percolab.figures.elements import (
    add_column_legend,
    add_legend,
    bars_if_known,
    draw_band,
    draw_bars,
    few_ticks,
    keep_to_probabilities,
    letter_panels,
    place_sizes,
    plain_ticks,
    set_title,
    size_label,
)
from percolab.figures.kinds.clusters import PANELS, ClusterMeans, plot_clusters
from percolab.figures.kinds.curves import draw_spanning
from percolab.figures.kinds.wrapping import WrappingCurve, WrappingPanel, plot_wrapping
from percolab.figures.math_text import math_text, typeset
from percolab.figures.networks import open_inwards
from percolab.figures.style import COLOURS, DASHES, choose_look, new_figure, size_look
from percolab.lattices.bethe import BetheLattice, parents, site_numbers
from percolab.papers.komura2016.timing import Timing, plot_timing

SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 128)


def written(axis):
    """Return the labels that stand beside the ticks of an axis, minor ones too."""
    axis.figure.draw_without_rendering()
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1.get_text()
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        if low <= tick.get_loc() <= high and tick.label1.get_visible() and tick.label1.get_text()
    ]


SHORT = [(34, 52), (24, 62), (40, 110), (3.4, 5.2), (7, 150), (4, 45)]


@pytest.mark.parametrize("span", [*SHORT, slow((1, 1e4)), slow((1e-9, 5e-8)), (3e5, 2e7)])
def test_numbers_on_a_logarithmic_axis_are_plain_unless_long_or_of_many_decades(span):
    with new_figure(3, 3) as figure:
        axes = figure.subplots()
        axes.set(yscale="log", ylim=span)
        plain_ticks(axes)
        labels = written(axes.yaxis)
    if span in SHORT:
        assert len(labels) >= 3
        assert all(span[0] <= float(label) <= span[1] for label in labels)
    else:
        assert labels
        assert all("10^{" in label for label in labels)


def test_letters_of_panels_are_above_the_label_of_a_tick_at_the_corner():
    with new_figure(4, 4) as figure:
        panels = figure.subplots(2, 1)
        for axes in panels:
            axes.set(ylim=(0, 1.5), yticks=[0, 0.5, 1, 1.5])
        letter_panels(panels)
        figure.draw_without_rendering()
        for axes in panels:
            (letter,) = axes.texts
            tick = axes.yaxis.get_ticklabels()[-1]
            assert "1.5" in tick.get_text()
            assert not letter.get_window_extent().overlaps(tick.get_window_extent())


@pytest.mark.parametrize("panels", [slow(1), slow(2), 3])
@pytest.mark.parametrize(
    "span", [slow((0.2484, 0.2492)), (0.46, 0.54), slow((-1.1, 0.5)), (0.65, 0.6501)]
)
def test_labels_along_an_axis_do_not_touch(span, panels):
    with new_figure(7.2, 3) as figure:
        first = np.ravel(figure.subplots(1, panels))[0]
        first.set_xlim(*span)
        few_ticks(first, number=5)
        assert len(written(first.xaxis)) >= 2
        ticks = [tick.label1 for tick in first.xaxis.get_major_ticks()]
    shown = [tick for tick in ticks if span[0] <= tick.get_position()[0] <= span[1]]
    assert_apart(shown)


@pytest.mark.parametrize("panels", [1, 2, 3])
def test_sizes_along_an_axis_do_not_touch(panels):
    with new_figure(7.2, 3) as figure:
        first = np.ravel(figure.subplots(1, panels))[0]
        place_sizes(first, SIZES)
        labels = written(first.xaxis)
        assert_apart([tick.label1 for tick in first.xaxis.get_major_ticks()])
    assert len(first.get_xticks()) == len(SIZES)
    assert labels[0] == "8"
    assert len(labels) == len(SIZES) if panels == 1 else len(labels) >= 4


def assert_apart(labels):
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    assert not any(one.padded(2).overlaps(two) for one, two in pairwise(boxes))


def test_a_legend_takes_as_few_columns_as_fit_the_figure():
    with new_figure(3.5, 3) as figure:
        axes = figure.subplots()
        lines = [axes.plot([0, 1])[0] for _ in range(6)]
        for text, columns in (("short", 3), ("a text of some length", 2), ("much longer " * 4, 1)):
            add_legend(
                figure, [(line, text) for line in lines], loc="outside lower center", ncols=3
            )
            (legend,) = figure.legends
            assert legend._ncols == columns
            assert legend.get_window_extent().width <= figure.bbox.width
            legend.remove()


def test_a_legend_of_several_columns_is_read_row_by_row():
    with new_figure(6, 3) as figure:
        axes = figure.subplots()
        add_legend(figure, [(axes.plot([0, 1])[0], name) for name in "abcde"], ncols=4)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    places = [text.get_window_extent() for text in legend.get_texts()]
    read = sorted(zip(places, legend.get_texts()), key=lambda at: (-round(at[0].y0), at[0].x0))
    assert [text.get_text() for _, text in read] == list("abcde")


def test_long_entries_share_a_column_where_rows_would_be_too_wide():
    names = ["a long entry of the first column"] * 3 + ["short"] * 3
    with new_figure(4, 3) as figure:
        axes = figure.subplots()
        add_legend(figure, [(axes.plot([0, 1])[0], name) for name in names], ncols=2)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    lefts = [round(text.get_window_extent().x0) for text in legend.get_texts()]
    assert len(set(lefts[:3])) == len(set(lefts[3:])) == 1
    assert lefts[0] < lefts[3]


def test_an_unknown_error_hides_no_other_bar():
    bars = bars_if_known(np.array([0.1, np.nan, np.inf, 0.2]))
    np.testing.assert_array_equal(bars, [0.1, np.nan, np.nan, 0.2])
    assert bars_if_known(np.array([np.nan, np.nan])) is None
    assert bars_if_known(np.array([])) is None
    with new_figure(3, 3) as figure:
        drawn = figure.subplots().errorbar([0, 1, 2, 3], [1, 2, 3, 4], bars)
        assert sum(len(part) == 2 for part in drawn.lines[2][0].get_segments()) >= 2
        figure.draw_without_rendering()


@pytest.mark.parametrize(("count", "markers"), [(40, 40), (400, 25)])
def test_a_curve_of_many_points_has_some_markers_and_bars(count, markers):
    x = np.linspace(0, 1, count)
    with new_figure(3, 3) as figure:
        axes = figure.subplots()
        draw_bars(axes, x, x**2, np.full(count, 0.1), {"marker": "o"}, linestyle="-")
        ((line, _, (bars,)),) = axes.containers
        assert len(line.get_xdata()) == count
        assert len(bars.get_segments()) == markers
        assert len(line.get_xdata()[:: line.get_markevery() or 1]) == markers


def test_a_size_is_named_once():
    assert size_label(8, {}) == "$L = 8$"
    assert size_label(8, {8: 64}) == "$N = 64$, $L = 8$"
    # The size of a graph is its number of sites.
    assert size_label(3000, {3000: 3000}) == "$N = 3000$"


def test_no_two_of_sixteen_sizes_look_the_same():
    looks = [tuple(sorted(size_look(number).items())) for number in range(16)]
    assert len(set(looks)) == 16


def test_series_of_times_differ_in_grey_too():
    records = [
        Timing(lattice, labeler, 1.0, n, 1e-6 * n)
        for lattice in ("honeycomb", "triangular")
        for labeler in ("four_step", "tiled", "weigel", "reference")
        for n in (2**18, 2**20)
    ]
    figure, _ = plot_timing(records, title="time")
    for axes in figure.axes:
        dashes = {str(bars.lines[0]._unscaled_dash_pattern) for bars in axes.containers}
        assert len(dashes) == len(DASHES) == 4


def test_a_wide_legend_of_columns_widens_the_figure():
    with new_figure(3, 3) as figure:
        (line,) = figure.subplots().plot([0, 1])
        before = figure.get_figwidth()
        add_column_legend(figure, [(str(k), (line, f"lattice number {k}" * 2)) for k in range(4)])
    assert figure.get_figwidth() > before
    assert figure.legends[0].get_window_extent().width <= figure.bbox.width


def test_names_at_the_ends_of_lines_do_not_overlap():
    records = [
        Timing("square", f"labeler {k}", 1.0, n, 1e-6 * n * (1 + 0.02 * k))
        for k in range(6)
        for n in (2**18, 2**20)
    ]
    figure, _ = plot_timing(records, title="time")
    figure.draw_without_rendering()
    named = [text for text in figure.axes[0].texts if text.get_text().startswith("labeler")]
    # Of the names alone, without the lines that lead to them.
    boxes = sorted((Text.get_window_extent(text) for text in named), key=lambda box: box.y0)
    assert len(boxes) == 6
    assert all(one.y1 <= other.y0 + 0.5 for one, other in pairwise(boxes))
    assert all(box.x1 <= figure.bbox.width for box in boxes)


def spanning_curves(p):
    counts = [[round(200 + 4e5 * (x - p[0]) * size / 128) for x in p] for size in SIZES]
    return [SpanningCurve(size, p, [1000], [row]) for size, row in zip(SIZES, counts)]


@pytest.mark.parametrize("with_drift", [True, slow(False)])
def test_nine_sizes_close_to_the_threshold_are_not_hidden_by_their_legend(with_drift):
    curves = spanning_curves([0.2484, 0.2486, 0.2488, 0.2490, 0.2492])
    figure, _ = draw_spanning(study_view(curves), with_drift=with_drift)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    assert high - low < 0.5
    legends = [legend for legend in (*figure.legends, axes.get_legend()) if legend]
    boxes = [legend.get_window_extent() for legend in legends]
    names = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert {f"$L = {size}$" for size in SIZES} <= set(names)
    for curve in curves:
        for point in axes.transData.transform(np.column_stack([curve.p, curve.probability])):
            assert not any(box.contains(*point) for box in boxes)


@pytest.mark.parametrize("across", [False, True])
def test_a_band_is_one_error_wide_on_either_side(across):
    with new_figure(3, 3) as figure:
        axes = figure.subplots()
        draw_band(axes, 0.5, 0.1, across=across)
    box = axes.patches[0].get_extents().transformed(axes.transData.inverted())
    assert (box.intervaly if across else box.intervalx) == pytest.approx([0.4, 0.6])


def points_of(axes):
    return sorted(tuple(bars.lines[0].get_xydata()[0]) for bars in axes.containers)


@pytest.mark.slow
def test_a_study_of_one_p_is_drawn_against_size():
    p, sizes = np.array([0.5]), (64, 128, 256)
    means = [
        ClusterMeans(
            size, size**2, 10, p, dict.fromkeys(PANELS, p / size), dict.fromkeys(PANELS, p)
        )
        for size in sizes
    ]
    panel = WrappingPanel(
        "wrapping_x", "wraps", "W_x", [WrappingCurve(size, 10, p, np.array([5])) for size in sizes]
    )
    curves = [SpanningCurve(size, p, [10], [[5]]) for size in sizes]
    figures = study_view(curves, title="square", exact=(0.5, "1/2 [Kesten 1980]"))
    for figure, value in (
        (plot_clusters(means, figures)[0], lambda size: 0.5 / size),
        (plot_wrapping([panel], figures)[0], lambda _: 0.5),
        (draw_spanning(figures)[0], lambda _: 0.5),
    ):
        axes = figure.axes[0]
        assert points_of(axes) == [(size, value(size)) for size in sizes]
        assert figure.axes[-1].get_xlabel() == "$L$"
        assert written(figure.axes[-1].xaxis) == [str(size) for size in sizes]
        title = figure.get_suptitle() or axes.get_title()
        assert title == "square, $p = 0.5$"
        # The published threshold has no place on an axis of sizes.
        assert not any("p_c" in label for label in axes.get_legend_handles_labels()[1])


def test_one_size_at_one_p_is_drawn_at_its_p():
    figure, _ = draw_spanning(study_view([SpanningCurve(64, [0.5], [10], [[5]])]))
    low, high = figure.axes[0].get_xlim()
    assert low == pytest.approx(0.45)
    assert high == pytest.approx(0.55)


@pytest.mark.slow
def test_panels_above_an_empty_place_have_an_axis_of_their_own():
    p = np.array([0.1, 0.2])
    panels = [
        WrappingPanel(f"wrapping_{name}", name, f"W_{name}",
                      [WrappingCurve(4, 10, p, np.array([2, 7]))])
        for name in "xyzuv"
    ]  # fmt: skip
    figure, _ = plot_wrapping(panels, study_view([]))
    drawn = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_xlabel() for axes in drawn] == ["", "", "$p$", "$p$", "$p$"]
    assert [bool(written(axes.xaxis)) for axes in drawn] == [False, False, True, True, True]


def test_looks_are_colours_that_the_colour_blind_can_tell_apart():
    assert [choose_look(number, 0)["color"] for number in range(8)] == list(COLOURS)


#: What the eye of a reader sees of linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
SIGHTS = {
    "normal": np.eye(3),
    "deuteranope": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanope": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}
#: Linear RGB to CIE XYZ (IEC 61966-2-1).
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab_of(colours, sight="normal"):
    """Return CIELAB coordinates (n, 3) of colours as someone with this sight sees them."""
    encoded = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ SIGHTS[sight].T, 0, 1)
    t = seen @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
    )


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_of_curves_are_told_apart_by_every_eye(sight):
    lab = lab_of(COLOURS, sight)
    assert min(np.linalg.norm(one - other) for one, other in combinations(lab, 2)) > 20
    muted = lab_of(MUTED, sight)
    assert min(np.linalg.norm(one - other) for one, other in combinations(muted, 2)) > 13


def test_colours_of_curves_differ_in_grey():
    lightness = lab_of(COLOURS)[:, 0]
    assert np.diff(np.sort(lightness)).min() > 6
    assert np.diff(np.sort(lightness[:4])).min() > 14, "most studies have four sizes"
    assert min(abs(one - other) for one, other in pairwise(lightness)) > 15
    assert lightness.max() < 76, "on white paper"
    muted = lab_of(MUTED)[:, 0]
    assert np.diff(np.sort(muted)).min() > 4
    assert muted.min() > lab_of([LARGEST, *SPANNING])[:, 0].max() + 7


@pytest.mark.parametrize("numbering", ["standard", "random"])
@pytest.mark.parametrize("p", [0.3, 0.75])
def test_clusters_of_a_bethe_lattice_that_touch_have_different_colours(numbering, p):
    lattice, shells = BetheLattice(3, numbering), 7
    clusters = random_configuration(lattice, shells, p).label()
    colours = choose_colours(clusters, grey_singles=False)
    sites = site_numbers(len(clusters.labels), numbering)
    inner = sites[parents(len(sites), 3)]
    closed = ~open_inwards(clusters, sites, parents(len(sites), 3))
    of_sites = colours.of_sites
    assert closed.sum() > 50
    assert not (of_sites[sites[1:]] == of_sites[inner])[closed].any()


@pytest.mark.parametrize(
    "title",
    [
        "Site-bond percolation, $p_{site} = 0.9$, triangular, $L = 24$, $p = 0.6$, seed 12345, "
        "periodic along x and y",
        r"Bond percolation, \$a graph with a name of many words and commas, and a dollar\$",
        "short",
    ],
)
def test_a_title_is_as_wide_as_the_figure_at_most(title):
    with new_figure(3.5, 3) as figure:
        figure.subplots()
        set_title(figure, title)
    figure.draw_without_rendering()
    (text,) = [item for item in figure.texts if item.get_text() == figure.get_suptitle()]
    box = text.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert figure.get_suptitle().replace("\n", " ") == title
    assert ("\n" in figure.get_suptitle()) == (title != "short")


def test_axes_of_probabilities_end_at_0_and_1_with_whole_markers():
    with new_figure(3, 3) as figure:
        axes, other = figure.subplots(1, 2)
    for panel, p in ((axes, [0.0, 0.5, 1.0]), (other, [0.4, 0.5])):
        panel.plot(p, p, marker="o")
    wide = other.get_xlim()
    keep_to_probabilities(axes, other)
    assert axes.get_xlim() == (0, 1)
    assert not axes.lines[0].get_clip_on()
    assert other.get_xlim() == wide
    assert other.lines[0].get_clip_on()


def test_a_single_panel_has_no_letter():
    with new_figure(3, 3) as figure:
        one, two = figure.subplots(1, 2)
    letter_panels([one])
    assert not one.texts
    letter_panels([one, two])
    assert [panel.texts[0].get_text() for panel in (one, two)] == ["(a)", "(b)"]


WRITTEN = {
    "1 - 2 sin(pi/18)": r"$1 - 2\,\sin(\pi/18)$",
    "1/2": "$1/2$",
    "sqrt(2) - 1": r"$\sqrt{2} - 1$",
    "1 - sqrt(1 - 2 sin(pi/18))": r"$1 - \sqrt{1 - 2\,\sin(\pi/18)}$",
    "2^(1/3)": "$2^{1/3}$",
    "2 * 3^2": r"$2 \cdot 3^{2}$",
    "-exp(-1)": r"$-\exp(-1)$",
}
TEXT = ["", "published", "numerical, p. 5", "(1", "1)", "1 +", "sqrt", "2^", "sqrt 2(",
        "__import__(1)"]  # fmt: skip


def drawable(text):
    MathTextParser("agg").parse(text)
    return True


@pytest.mark.parametrize(("expression", "expected"), WRITTEN.items())
def test_expressions_become_mathematics(expression, expected):
    assert math_text(expression) == expected
    assert drawable(expected)


@pytest.mark.parametrize("text", TEXT)
def test_what_is_no_expression_stays_text(text):
    assert math_text(text) == text


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_published_expression_is_mathematics(name):
    for threshold in lattice(name).thresholds:
        if threshold.expression:
            assert drawable(math_text(threshold.expression))
            assert math_text(threshold.expression).startswith("$")


def test_a_dollar_sign_in_text_begins_no_mathematics():
    assert typeset("5 $ each [costs $3]") == r"5 \$ each [costs \$3]"
    assert typeset("1/2 [costs $3]") == r"$1/2$ [costs \$3]"
    assert drawable(typeset("1/2 [costs $3]"))
