"""Cluster numbers n_s: at p_c against s, their flat region, their cut-off, and away from p_c."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import plain
from percolab.analysis.power_law import LocalSlopes, local_slopes
from percolab.analysis.statistics import Floats, standard_error
from percolab.analysis.stored_data import has_sizes, read_size_counts
from percolab.analysis.stored_fits import tau_at
from percolab.analysis.tau import SizeCounts, TauFit
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.value import format_with_error
from percolab.errors import AnalysisError, UserError
from percolab.figures import elements
from percolab.figures.sheet import Sheet, Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import (
    COLUMN_WIDTH,
    EXACT_LINE,
    PAGE_WIDTH,
    Axes,
    choose_looks,
    size_look,
)
from percolab.lattices.shown import counted

#: Bins with fewer clusters are not drawn: their error bars would reach to zero.
_LEAST_COUNT = 10
#: Local slopes with a larger error are not drawn.
_LARGEST_ERROR, _AROUND_TAU = 0.25, 0.6
#: Away from p_c: the smallest s, and the largest s relative to <s_1>, in between which neither the
#: discreteness nor the size of the lattice matters.
_SMALLEST, _PART = 30, 0.1
#: The close-up of the flat part: this fraction below it to twice as much above, or more.
_AROUND = 0.15
_TICKS = r"ticks at the foot: $\langle s_1 \rangle$"
_FOOT: dict[str, Any] = {"marker": 2, "markersize": 8, "markeredgewidth": 1.6, "linestyle": "none"}
_LINE: dict[str, Any] = {"color": "black", "linewidth": 0.9, "zorder": 4}


@dataclass(frozen=True, eq=False)
class SizeCurve:
    """n_s of one task at one p, as it is drawn: in four bins for each power of two.

    p: of n_s; counted_p: the nearest grid point, at which `count` clusters were counted.  s_low,
    s_high: int64 (bins,), smallest and largest size of each bin; s, n_s, error: float64 (bins,).
    largest: <s_1>.
    """

    L: int
    num_sites: int
    samples: int
    p: float
    counted_p: float
    largest: float
    s_low: NDArray[np.int64]
    s_high: NDArray[np.int64]
    s: Floats
    count: NDArray[np.int64]
    n_s: Floats
    error: Floats

    @property
    def drawn(self) -> NDArray[np.bool_]:
        """Which bins have enough clusters to be drawn."""
        return (self.count >= _LEAST_COUNT) & (self.n_s > 0)


def size_curve(task: SizeCounts, p: float) -> SizeCurve:
    """Return n_s at p: interpolated inside the grid, as for the fit; else at its nearest end."""
    task = task.coarse()
    near = task.nearest(p)
    if not task.p[0] <= p <= task.p[-1]:
        p = float(task.p[near])
    blocks, count = task.samples.size, task.counts[:, near].sum(axis=0)
    n_s = task.numbers_at(np.array([p]))[0]
    error = standard_error(task.numbers_at(np.full(blocks, p), np.eye(blocks)), task.samples)
    head = (task.L, task.num_sites, int(task.samples.sum()), p, float(task.p[near]))
    bins = (task.edges[:-1], task.edges[1:] - 1, task.sizes)
    return SizeCurve(*head, task.largest_at(p), *bins, count, n_s, error)


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw n_s at the p_c of the fit against s; with a fit of tau, s^tau n_s in further panels too.

    Without a fit, a p of the grid is taken for p_c.  With the 1/nu of the fit, s^tau n_s away from
    p_c is drawn against (p - p_c) s^sigma, sigma = (tau - 1) / (d nu); not for a lattice with open
    sides, for which points of different L do not collapse.
    """
    threshold, source = figures.find_threshold()
    fit, fisher = _find_fits(figures, threshold)
    y_t = fit.y_t if fit is not None else None
    tasks = read_size_counts(figures.results)
    curves = [size_curve(task, threshold) for task in tasks]
    off: list[dict[str, Any]] = []
    slopes: list[LocalSlopes] = []
    if fisher is not None and y_t is not None and not fisher.is_open:
        off = _off_points(tasks, fisher, threshold, y_t)
    # Small lattices have no clusters that are large but far below the lattice's size.
    with_off = any(point["s"] for point in off)
    height = 3.6 if fisher is None else 8.4 if with_off else 6.4
    with into.sheet(COLUMN_WIDTH if fisher is None else PAGE_WIDTH, height) as sheet:
        rows, columns = (1, 1) if fisher is None else (3 if with_off else 2, 2)
        panels: Any = list(np.atleast_1d(sheet.subplots(rows, columns)).flat)
        _draw_numbers(panels[0], curves, fisher, threshold)
        _write_p(panels[0], threshold, fit)
        if fisher is not None:
            _draw_flat(panels[1], curves, fisher)
            slopes = _draw_slopes(panels[2], tasks, curves, fisher)
            _draw_cutoff(panels[3], curves, fisher)
            if with_off and y_t is not None:
                _draw_off(panels[4], off, y_t / fisher.fractal_dimension)
            drawn = panels[:5]
            elements.letter_panels(drawn)
            for axes in drawn:
                elements.plain_ticks(axes)
        sheet.set_title(figures.title)
        about = elements.jackknife_title(curve.error for curve in curves)
        _add_legend(sheet, panels, in_last=with_off, title=about)
    return sheet.figure, {
        "threshold": threshold,
        "threshold_source": source,
        "curves": plain(curves),
        "fit": fisher.to_dict() if fisher is not None else None,
        "y_t": y_t,
        "scaled": off,
        "local_slopes": plain(slopes),
    }


def _find_fits(figures: StudyView, threshold: float) -> tuple[ThresholdFit | None, TauFit | None]:
    """Return the fit of p_c and the fit of tau, each None if there is none."""
    with suppress(UserError):
        return figures.fit, figures.exponents.tau_fit if figures.exponents is not None else None
    with suppress(AnalysisError):
        # Known values of tau are those of percolation.
        return None, None if figures.model.chains else tau_at(figures.results, threshold)
    return None, None


def _add_legend(sheet: Sheet, panels: Sequence[Axes], *, in_last: bool, title: str | None) -> None:
    """Add the legend below the panels, or in the place of the last panel."""
    from matplotlib.lines import Line2D

    tick = Line2D([], [], color="black", **_FOOT | {"marker": "|"})
    # The third panel, of local slopes, has the published value.
    others = elements.legend_entries(panels[2]) if len(panels) > 2 else []
    entries = [*elements.legend_entries(panels[0]), (tick, _TICKS), *others]
    if in_last:
        panels[-1].set_axis_off()
        elements.add_legend(panels[-1], entries, title=title, loc="center")
        return
    sheet.add_legend(entries, title=title, ncols=3 if len(panels) > 1 else 2)


def _write_p(axes: Axes, threshold: float, fit: ThresholdFit | None) -> None:
    """Write the p of n_s into the upper right corner, which is free."""
    text = f"$p = {threshold:.8g}$"
    if fit is not None:
        text = f"$p_c = {format_with_error(threshold, fit.threshold_error)}$"
    rejection = elements.rejection_label(None if fit is None else fit.chi_square)
    if rejection:
        # A single line would overlap the points.
        text = "\n".join([text, *rejection.split(" (")]).replace("\n$p$-", "\n($p$-")
    axes.annotate(text, (0.95, 0.95), None, "axes fraction", ha="right", va="top", fontsize=9)


def _draw_numbers(
    axes: Axes, curves: Sequence[SizeCurve], fisher: TauFit | None, threshold: float
) -> None:
    """Draw n_s against s on logarithmic axes, the fit, and a tick at <s_1> of each size."""
    axes.set(xscale="log", yscale="log", xlabel="$s$ (sites)", ylabel="$n_s$ (per site)")
    sites = {curve.L: curve.num_sites for curve in curves}
    for curve, look, new in choose_looks(curves):
        elsewhere = f", $p = {curve.p:.6g}$" if curve.p != threshold else ""
        look |= {"label": elements.size_label(curve.L, sites) + elsewhere if new else None}
        _bars(axes, (curve.s, curve.n_s, curve.error), curve.drawn, look)
        # A tick at <s_1>, where the size of the lattice cuts n_s off.
        foot = axes.get_xaxis_transform()
        axes.plot(max(curve.largest, 1.0), 0.0, color=look["color"], transform=foot, **_FOOT)
    if fisher is not None:
        s = np.geomspace(fisher.s_min, max(fisher.s_max), 100)
        limit = r", $L \to \infty$" if fisher.is_open else ""
        label = rf"fit, $s = {fisher.s_min}$ to ${fisher.cutoff:g}\langle s_1 \rangle${limit}"
        axes.plot(s, fisher.numbers(s), label=label, **_LINE)
        text = rf"$n_s \sim s^{{-\tau}}$, $\tau$ = {fisher.result}" + elements.known_text(
            fisher.known
        )
        axes.annotate(text, (0.05, 0.08), None, "axes fraction", fontsize=9)


def _draw_flat(axes: Axes, curves: Sequence[SizeCurve], fisher: TauFit) -> None:
    for curve, look, _ in choose_looks(curves):
        # Beyond <s_1> n_s drops, and would cross the panel again.
        kept = curve.drawn & (curve.s <= curve.largest)
        _bars(axes, (curve.s, *_flattened(curve, fisher)), kept, look | {"linestyle": ":"})
    s = np.geomspace(fisher.s_min, max(fisher.s_max), 100)
    flat = s**fisher.tau * fisher.numbers(s)
    axes.plot(s, flat, **_LINE)
    top = flat
    if fisher.is_open:
        # With open sides every size has its own correction.
        for L, end in zip(fisher.sizes, fisher.s_max):
            part = s[s <= end]
            of_size = part**fisher.tau * fisher.numbers(part, L)
            axes.plot(part, of_size, **(_LINE | {"linewidth": 0.6}))
            top = np.append(top, of_size)
    axes.axhline(fisher.coefficients[0], color="0.5", linestyle="--", linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="$s$ (sites)", ylabel=r"$s^{\tau} n_s$")
    middle, around = float(np.median(flat)), max(_AROUND, 2 * float(np.ptp(flat) / flat.mean()))
    high = max(middle * (1 + 2 * around), float(top.max()) * (1 + _AROUND))
    axes.set_ylim(middle * (1 - around), high)


def _draw_slopes(
    axes: Axes, tasks: Sequence[SizeCounts], curves: Sequence[SizeCurve], fisher: TauFit
) -> list[LocalSlopes]:
    """Draw -d ln n_s / d ln s, which is tau where n_s is a power of s; return the slopes."""
    slopes = []
    for (curve, look, _), task in zip(choose_looks(curves), tasks, strict=True):
        task = task.coarse()
        blocks = task.samples.size
        without = np.empty((0, curve.s.size))
        if blocks > 1:
            without = task.numbers_at(np.full(blocks, curve.p), 1.0 - np.eye(blocks))
        inside = curve.drawn & (curve.s <= curve.largest)
        own = local_slopes(curve.s[inside], curve.n_s[inside], without[:, inside])
        drawn = ~(own.error > _LARGEST_ERROR)
        _bars(axes, (own.x, -own.slope, own.error), drawn, look)
        slopes.append(own)
    if fisher.known is not None:
        label = rf"$\tau = {fisher.known.value:.5g}$, {elements.known_word(fisher.known)}"
        axes.axhline(fisher.known.value, label=label, zorder=1, **EXACT_LINE)
    axes.axvspan(fisher.s_min, max(fisher.s_max), color="0.93", linewidth=0, zorder=-1)
    axes.set(xscale="log", xlabel="$s$ (sites)")
    axes.set_ylabel(r"$-\mathrm{d}\ln n_s\,/\,\mathrm{d}\ln s$")
    # Where the size of the lattice cuts off n_s, slopes are outside of the panel.
    axes.set_ylim(fisher.tau - _AROUND_TAU, fisher.tau + _AROUND_TAU)
    return slopes


def _draw_cutoff(axes: Axes, curves: Sequence[SizeCurve], fisher: TauFit) -> None:
    """Draw s^tau n_s against s / L^d_f, where the cut-offs of all sizes coincide."""
    d_f = fisher.fractal_dimension
    for curve, look, _ in choose_looks(curves):
        x = curve.s / float(curve.L) ** d_f
        large = curve.drawn & (curve.s >= fisher.s_min)
        _bars(axes, (x, *_flattened(curve, fisher)), large, look)
    axes.axhline(fisher.coefficients[0], color="0.5", linestyle="--", linewidth=0.8, zorder=1)
    axes.set(xscale="log", yscale="log", ylabel=r"$s^{\tau} n_s$")
    axes.set_xlabel(rf"$s\,/\,L^{{d_f}}$,  $d_f = d/(\tau - 1) = {d_f:.3f}$")


def _off_points(
    tasks: Sequence[SizeCounts], fisher: TauFit, threshold: float, y_t: float
) -> list[dict[str, Any]]:
    """Return s^tau n_s and (p - p_c) s^sigma at every p of the grids."""
    sigma = y_t / fisher.fractal_dimension
    points: list[dict[str, Any]] = []
    for task in (task_counts.coarse() for task_counts in tasks):
        numbers, errors, s = task.numbers(), task.errors(), task.sizes
        largest = task.largest.sum(axis=0) / task.samples.sum()
        # Below p_c, <s_1> is set by the correlation length, so use <s_1> at p_c.
        reach = _PART * max(task.largest_at(threshold), 1.0)
        for index, p in enumerate(task.p):
            enough = task.counts[:, index].sum(axis=0) >= _LEAST_COUNT
            kept = enough & (s >= _SMALLEST) & (s <= reach)
            power = s[kept] ** fisher.tau
            x = (p - threshold) * s[kept] ** sigma
            y, dy = (power * each[index, kept] for each in (numbers, errors))
            record = {"L": task.L, "p": p, "largest": largest[index], "s": s[kept]}
            points.append(plain(record | {"x": x, "y": y, "error": dy}))
    return points


def _draw_off(axes: Axes, points: Sequence[dict[str, Any]], sigma: float) -> None:
    """Draw s^tau n_s against (p - p_c) s^sigma, a single curve for all p and L."""
    sizes = sorted({point["L"] for point in points})
    for point in points:
        look = size_look(sizes.index(point["L"])) | {"markersize": 2.2}
        x, y, errors = (np.array(point[name]) for name in ("x", "y", "error"))
        _bars(axes, (x, y, errors), ..., look)
    axes.axvline(0.0, color="0.5", linewidth=0.6, zorder=1)
    axes.set_xlabel(rf"$(p - p_c)\,s^{{\sigma}}$,  $\sigma = 1/(\nu d_f) = {sigma:.3f}$")
    axes.set_ylabel(r"$s^{\tau} n_s$")
    axes.set_ylim(bottom=0.0)


def _flattened(curve: SizeCurve, fisher: TauFit) -> tuple[Floats, Floats]:
    power = curve.s**fisher.tau
    return power * curve.n_s, power * curve.error


def _bars(
    axes: Axes, points: tuple[Floats, Floats, Floats], kept: Any, look: dict[str, Any]
) -> None:
    """Draw the points (x, y, errors) selected by ``kept``."""
    style: dict[str, Any] = {"markersize": 3.0, "linewidth": 0.6, "zorder": 3}
    x, y, errors = (each[kept] for each in points)
    elements.draw_bars(axes, x, y, errors, style | look)


def _problem(figures: StudyView) -> str | None:
    if any(map(has_sizes, figures.measured())):
        return None
    return f"clusters of every size were not counted: {figures.how_to_measure('sizes')}"


def _describe(numbers: Numbers) -> list[str]:
    sizes = sorted({curve["L"] for curve in numbers["curves"]})
    last = numbers["curves"][-1]
    positive = [value for value in last["n_s"] if value > 0]
    about = f"Cluster numbers of {counted(len(sizes), 'size')} up to L = {sizes[-1]}"
    if not positive:
        return [f"{about}: there are no clusters."]
    sentences = [
        f"{about} fall from {positive[0]:.2g} to {min(positive):.1g} per site, on a nearly "
        "straight line on logarithmic axes up to where the lattice ends them."
    ]
    if numbers["fit"]:
        sentences.append(f"Its slope is tau = {numbers['fit']['tau']:.3f}.")
    return sentences


SIZES = FigureKind(
    help="cluster numbers n_s against size s, with tau",
    meaning=(
        "Cluster numbers n_s at p_c, clusters of s sites per site, with the exponent tau; "
        "s^tau n_s against s; local slopes between s and 2 s, which are tau where n_s is a power, "
        "the sizes that are fitted in grey; s^tau n_s against s in units of L^d_f, and off p_c."
    ),
    errors=(
        "Error bars are one standard error, of a jackknife over blocks, without that of tau. At "
        "p_c n_s is interpolated between the p of the grid; bins with fewer than 10 clusters are "
        "not drawn."
    ),
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
