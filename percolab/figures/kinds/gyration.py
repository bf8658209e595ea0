"""Radii of clusters: R_s against s at p_c, and the correlation length against p."""

from contextlib import suppress
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.power_law import local_slopes
from percolab.analysis.radii import GyrationSums, RadiusFit, fit_radius
from percolab.analysis.statistics import jackknife_error
from percolab.analysis.stored_data import read_gyration_sums
from percolab.errors import AnalysisError
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import DOTTED_LINE, PAGE_WIDTH, Axes, choose_looks
from percolab.lattices.shown import counted
from percolab.measure.columns import open_axes

#: Local slopes with a larger error are not drawn.
_LARGEST_ERROR = 0.1


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw R_s at the p nearest to p_c against s with its d_f, its local slopes, and xi."""
    tasks, exact = read_gyration_sums(figures.results), figures.exact
    threshold, source = figures.find_threshold()
    dimension, is_open = figures.study.structure.dimension, bool(open_axes(figures.study.boundary))
    radius: RadiusFit | None = None
    with suppress(AnalysisError):
        radius = fit_radius(tasks, threshold=threshold, dimension=dimension, is_open=is_open)
    numbers = []
    with into.sheet(PAGE_WIDTH, 4.8) as sheet:
        places: Any = sheet.grid(2, 2, height_ratios=[1.8, 1])
        left = sheet.figure.add_subplot(places[0, 0])
        beneath = sheet.figure.add_subplot(places[1, 0])
        right = sheet.figure.add_subplot(places[:, 1])
        for task, look, new in choose_looks(tasks):
            label = elements.size_label(task.L, figures.num_sites) if new else None
            numbers.append(_draw_task((left, beneath, right), task, threshold, look, label))
        if radius is not None:
            s = np.geomspace(radius.s_min, radius.s_max, 100)
            label = f"fit of all $L$, $s = {radius.s_min}$ to {radius.s_max}"
            line: dict[str, Any] = {"color": "black", "linewidth": 0.9, "zorder": 4}
            left.plot(s, np.sqrt(radius.squared_radius(s)), label=label, **line)
            text = rf"$R_s \sim s^{{1/d_f}}$, $d_f$ = {radius.result}"
            text += elements.known_text(radius.known)
            left.annotate(text, (0.95, 0.06), None, "axes fraction", ha="right", fontsize=9)
        left.set(ylabel="$R_s$ (lattice units)")
        beneath.set(xlabel="$s$ (sites)", ylabel=r"$\mathrm{d}\ln R_s\,/\,\mathrm{d}\ln s$")
        right.set(xlabel="$p$", ylabel=r"correlation length $\xi$ (lattice units)")
        for axes, logarithmic in ((left, "xy"), (beneath, "x"), (right, "y")):
            _make_logarithmic(axes, logarithmic)
        _finish_slopes(left, beneath, radius)
        # Grids of p may differ between sizes.
        at = {task["p_of_radius"] for task in numbers}
        text = f"$p = {min(at):.6g}$" if len(at) == 1 else f"$p$ nearest to ${threshold:.6g}$"
        left.annotate(text, (0.05, 0.95), None, "axes fraction", va="top", fontsize=9)
        elements.draw_exact(right, exact)
        elements.letter_panels([left, beneath, right])
        sheet.set_title(figures.title)
        entries = elements.legend_entries(left, beneath, right)
        about = elements.jackknife_title(task["radius_error"] for task in numbers)
        sheet.add_legend(entries, ncols=3, title=about)
    return sheet.figure, {
        "threshold": threshold,
        "threshold_source": source,
        "curves": plain(numbers),
        "fit": radius.to_dict() if radius is not None else None,
    }


def _finish_slopes(above: Axes, axes: Axes, radius: RadiusFit | None) -> None:
    """Draw the known 1/d_f, and give the local slopes the horizontal axis of the radii."""
    if radius is not None and radius.known is not None:
        label = f"$1/d_f = {1 / radius.known.value:.4g}$, {elements.known_word(radius.known)}"
        axes.axhline(1 / radius.known.value, label=label, zorder=0, **DOTTED_LINE)
    if above.get_xscale() == "log":
        axes.set_xlim(above.get_xlim())
        above.tick_params(labelbottom=False)


def _make_logarithmic(axes: Axes, names: str) -> None:
    """Make the axes of these names logarithmic if there are points; else note that none are."""
    if not any(line.get_xdata().size for line in axes.lines):  # type: ignore[union-attr]
        # A logarithmic axis needs positive values.
        axes.annotate("too few samples", (0.5, 0.5), None, "axes fraction", ha="center")
        axes.set(**{f"{name}ticks": [] for name in names})
        return
    axes.set(**{f"{name}scale": "log" for name in names})
    elements.plain_ticks(axes)


def _draw_task(
    panels: tuple[Axes, Axes, Axes],
    task: GyrationSums,
    threshold: float,
    look: dict[str, Any],
    label: str | None,
) -> dict[str, Any]:
    """Draw R_s, its local slopes with small errors, and xi; return the numbers."""
    at = int(np.argmin(np.abs(task.p - threshold)))
    s, squared, without = task.radii(at)
    radius, error = np.sqrt(squared), jackknife_error(np.sqrt(without))
    slopes = local_slopes(s, radius, np.sqrt(without))
    xi, xi_error = task.correlation_length()
    shown = radius > 0
    style: dict[str, Any] = {"markersize": 3.0}
    # The first panel has the labels of sizes.
    points = (s[shown], radius[shown], error[shown])
    elements.draw_bars(panels[0], *points, look, **style, label=label)
    steep = ~(slopes.error > _LARGEST_ERROR)
    points = (slopes.x[steep], slopes.slope[steep], slopes.error[steep])
    elements.draw_bars(panels[1], *points, look, markersize=2.8)
    known = np.isfinite(xi) & (xi > 0) & ~(xi_error > xi / 2)
    style |= {"linewidth": 0.7, "linestyle": "-"}
    elements.draw_bars(panels[2], task.p[known], xi[known], xi_error[known], look, **style)
    return {
        "L": task.L,
        "num_sites": task.num_sites,
        "samples": task.samples,
        "p_of_radius": task.p[at],
        "s": s,
        "radius": radius,
        "radius_error": error,
        "p": task.p,
        "correlation_length": xi,
        "correlation_length_error": xi_error,
        "local_slopes": slopes,
    }


def _problem(figures: StudyView) -> str | None:
    if not figures.study.structure.is_scalable:
        return f"{figures.study.structure.name} has no coordinates"
    if not any("gyration" in task.task.measure for task in figures.measured()):
        return f"radii of clusters were not measured: {figures.how_to_measure('gyration')}"
    # A cluster of two sites that neither wraps nor spans has a radius; single sites have none.
    if not any(task.spreads.any() for task in read_gyration_sums(figures.results)):
        return "no cluster of two sites or more ends inside the lattice, so there are no radii"
    return None


def _describe(numbers: Numbers) -> list[str]:
    last = numbers["curves"][-1]
    lengths = [value for value in last["correlation_length"] if value is not None]
    sentences = [
        f"Radii of clusters of {counted(len(numbers['curves']), 'size')} lie on a nearly straight "
        "line on logarithmic axes."
    ]
    if numbers["fit"]:
        sentences.append(f"Its slope is 1/d_f with d_f = {numbers['fit']['d_f']:.3f}.")
    if lengths:
        sentences.append(f"The correlation length of L = {last['L']} reaches {max(lengths):.3g}.")
    return sentences


GYRATION = FigureKind(
    help="radii of gyration of clusters, with d_f, and the correlation length",
    meaning=(
        "Radii of gyration R_s at the p nearest to p_c against s, with d_f from all sizes, "
        "and their local slopes, between s and 2 s, which are 1/d_f where R_s is a power; "
        "correlation length xi against p; both over clusters that neither wrap nor span."
    ),
    errors=(
        "Error bars are one standard error, of a jackknife over blocks; that of d_f leaves out the "
        "error of p_c."
    ),
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
