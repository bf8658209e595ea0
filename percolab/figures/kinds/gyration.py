"""Radii of clusters: R_s against s at p_c, and the correlation length against p."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.analysis import AnalysisError
from percolab.analysis.json_values import plain
from percolab.analysis.power_law import LocalSlopes, local_slopes
from percolab.analysis.radii import GyrationSums, RadiusFit, fit_radius
from percolab.analysis.statistics import jackknife_error
from percolab.analysis.stored_data import read_gyration_sums
from percolab.analysis.stored_fits import has_open_axis
from percolab.figures import elements
from percolab.figures.alt_text import Numbers
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import DOTTED_LINE, PAGE_WIDTH, Axes, choose_looks
from percolab.lattices.shown import counted

#: Local slopes with a larger error are not drawn.
_LARGEST_ERROR = 0.1


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw R_s at the p nearest to p_c against s with its d_f, its local slopes, and xi."""
    tasks, exact = read_gyration_sums(figures.results), figures.head["exact"]
    threshold, source = figures.find_threshold()
    try:
        radius: RadiusFit | None = fit_radius(
            tasks,
            threshold=threshold,
            dimension=figures.study.structure.dimension,
            is_open=has_open_axis(figures.results),
        )
    except AnalysisError:
        radius = None
    sites = {item.L: item.num_sites for item in tasks}
    numbers = []
    with into.sheet(PAGE_WIDTH, 4.8) as sheet:
        places: Any = sheet.grid(2, 2, height_ratios=[1.8, 1])
        left = sheet.figure.add_subplot(places[0, 0])
        beneath = sheet.figure.add_subplot(places[1, 0])
        right = sheet.figure.add_subplot(places[:, 1])
        for item, look, new in choose_looks(tasks):
            look |= {"label": elements.size_label(item.L, sites) if new else None}
            numbers.append(_draw_task(left, right, item, threshold, look))
            numbers[-1]["local_slopes"] = _draw_slopes(beneath, item, threshold, look)
        if radius is not None:
            _draw_fit(left, radius)
        left.set(ylabel="$R_s$ (lattice units)")
        beneath.set(xlabel="$s$ (sites)", ylabel=r"$\mathrm{d}\ln R_s\,/\,\mathrm{d}\ln s$")
        right.set(xlabel="$p$", ylabel=r"correlation length $\xi$ (lattice units)")
        for axes, logarithmic in ((left, "xy"), (beneath, "x"), (right, "y")):
            _make_logarithmic(axes, logarithmic)
        _finish_slopes(left, beneath, radius)
        # Every size has its own grid of p.
        at = {item["p_of_radius"] for item in numbers}
        text = f"$p = {min(at):.6g}$" if len(at) == 1 else f"$p$ nearest to ${threshold:.6g}$"
        left.annotate(text, (0.05, 0.95), None, "axes fraction", va="top", fontsize=9)
        elements.draw_exact(right, exact)
        elements.letter_panels([left, beneath, right])
        sheet.set_title(figures.head["title"])
        entries = [
            *elements.legend_entries(left),
            *elements.legend_entries(beneath),
            *elements.legend_entries(right),
        ]
        about = elements.jackknife_title(item["radius_error"] for item in numbers)
        sheet.add_legend(entries, ncols=3, title=about)
    return sheet.figure, {
        "title": figures.head["title"],
        "threshold": threshold,
        "threshold_source": source,
        "exact": elements.exact_record(exact),
        "curves": plain(numbers),
        "fit": radius.to_dict() if radius is not None else None,
    }


def _draw_slopes(
    axes: Axes, item: GyrationSums, threshold: float, look: dict[str, Any]
) -> LocalSlopes:
    """Draw the local slopes of R_s of one task, where they tell it from a power law."""
    s, squared, without = item.radii(int(np.argmin(np.abs(item.p - threshold))))
    found = local_slopes(s, np.sqrt(squared), np.sqrt(without))
    drawn = ~(found.error > _LARGEST_ERROR)
    style: dict[str, Any] = {"label": None, "linestyle": "none", "markersize": 2.8}
    elements.draw_bars(axes, found.x[drawn], found.slope[drawn], found.error[drawn], look, **style)
    return found


def _finish_slopes(above: Axes, axes: Axes, radius: RadiusFit | None) -> None:
    """Draw 1/d_f as it is known, and give the local slopes the horizontal axis of the radii."""
    if radius is not None and radius.known is not None:
        label = f"$1/d_f = {1 / radius.known.value:.4g}$, {elements.known_word(radius.known)}"
        axes.axhline(1 / radius.known.value, label=label, zorder=0, **DOTTED_LINE)
    if above.get_xscale() == "log":
        axes.set_xlim(above.get_xlim())
        above.tick_params(labelbottom=False)


def _make_logarithmic(axes: Axes, names: str) -> None:
    """Make the axes of these names logarithmic where there are points, or say that none are."""
    if not any(line.get_xdata().size for line in axes.lines):  # type: ignore[union-attr]
        # Nothing is positive, which a logarithmic axis has to be.
        axes.annotate("too few samples", (0.5, 0.5), None, "axes fraction", ha="center")
        axes.set(**{f"{name}ticks": [] for name in names})
        return
    axes.set(**{f"{name}scale": "log" for name in names})
    elements.plain_ticks(axes)


def _draw_task(
    left: Axes, right: Axes, item: GyrationSums, threshold: float, look: dict[str, Any]
) -> dict[str, Any]:
    """Draw R_s and xi of one task; return the numbers drawn."""
    at = int(np.argmin(np.abs(item.p - threshold)))
    s, squared, without = item.radii(at)
    radius, error = np.sqrt(squared), jackknife_error(np.sqrt(without))
    xi, xi_error = item.correlation_length()
    style: dict[str, Any] = {"markersize": 3.0}
    drawn = radius > 0
    elements.draw_bars(left, s[drawn], radius[drawn], error[drawn], look, linestyle="none", **style)
    # The left panel names the sizes.
    style |= {"linewidth": 0.7, "label": None}
    known = np.isfinite(xi) & (xi > 0) & ~(xi_error > xi / 2)
    elements.draw_bars(right, item.p[known], xi[known], xi_error[known], look, **style)
    return {
        "L": item.L,
        "num_sites": item.num_sites,
        "samples": item.samples,
        "p_of_radius": item.p[at],
        "s": s,
        "radius": radius,
        "radius_error": error,
        "p": item.p,
        "correlation_length": xi,
        "correlation_length_error": xi_error,
    }


def _draw_fit(axes: Axes, radius: RadiusFit) -> None:
    s = np.geomspace(radius.s_min, radius.s_max, 100)
    label = f"fit of all $L$, $s = {radius.s_min}$ to {radius.s_max}"
    fitted = np.sqrt(radius.squared_radius(s))
    axes.plot(s, fitted, color="black", linewidth=0.9, label=label, zorder=4)
    text = rf"$R_s \sim s^{{1/d_f}}$, $d_f$ = {radius.result}" + elements.known_text(radius.known)
    axes.annotate(text, (0.95, 0.06), None, "axes fraction", ha="right", fontsize=9)


def _problem(figures: StudyView) -> str | None:
    if not figures.study.structure.is_scalable:
        return f"{figures.study.structure.name} has no coordinates"
    if not any("gyration" in item.task.measure for item in figures.measured()):
        return f"radii of clusters were not measured: {figures.how_to_measure('gyration')}"
    # A cluster of two sites that neither wraps nor spans has a radius; single sites have none.
    if not any(item.spreads.any() for item in read_gyration_sums(figures.results)):
        return "no cluster of two sites or more ends inside the lattice, so there are no radii"
    return None


def _describe(numbers: Numbers) -> list[str]:
    last = numbers["curves"][-1]
    lengths = [value for value in last["correlation_length"] if value is not None]
    found = [
        f"Radii of clusters of {counted(len(numbers['curves']), 'size')} lie on a nearly straight "
        "line on logarithmic axes."
    ]
    if numbers["fit"]:
        found.append(f"Its slope is 1/d_f with d_f = {numbers['fit']['d_f']:.3f}.")
    if lengths:
        found.append(f"The correlation length of L = {last['L']} reaches {max(lengths):.3g}.")
    return found


GYRATION = FigureKind(
    help="radii of clusters, with d_f, and the correlation length",
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
