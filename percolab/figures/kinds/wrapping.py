"""The ways in which clusters wrap around periodic axes, against p, with a panel for each.

For Markov chains, which have no spanning curves, panels also show how clusters span open axes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import nearest_nodes, node_weights
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats, mean_of_blocks, standard_error, wilson_interval
from percolab.analysis.theory.critical import critical_probability
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import format_with_error
from percolab.figures import elements
from percolab.figures.math_text import symbol_text
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import (
    Drawn,
    FigureKind,
    Numbers,
    StudyView,
    goes_from,
    sizes_and_range,
)
from percolab.figures.style import COLUMN_WIDTH, PAGE_WIDTH, Axes, choose_looks
from percolab.measure.columns import spanning_names, wrapping_names

#: The line of the theoretical value at p_c, in every panel that has one.
_VALUE: dict[str, Any] = {"color": "black", "linestyle": ":", "linewidth": 0.9, "zorder": 1}


@dataclass(frozen=True, eq=False)
class WrappingCurve:
    """How many of `samples` samples of one task wrap, int64 (m,), at each p, float64 (m,).

    errors: of the probability, float64 (m,), if samples are sweeps of spins and thus correlated;
    None if they are independent.  block_means: float64 (blocks, m), with the numbers of samples in
    the blocks, int64 (blocks,), or None if unknown.
    """

    L: int
    samples: int
    p: Floats
    counts: NDArray[np.int64]
    errors: Floats | None = None
    block_means: Floats | None = None
    block_samples: NDArray[np.int64] | None = None

    @property
    def probability(self) -> Floats:
        """The fraction of the samples that wraps, float64 (m,)."""
        return self.counts / self.samples

    def interval(self) -> tuple[Floats, Floats]:
        """Return the ends of error bars, float64 (m,) each: 68 % Wilson intervals, or errors."""
        if self.errors is not None:
            known = np.nan_to_num(self.errors)
            return self.probability - known, self.probability + known
        return wilson_interval(self.counts, self.samples)

    def at(self, p: float) -> tuple[float, float] | None:
        """Return the probability at p and its error, or None if p is not inside the grid.

        It is a polynomial through the nearest p of the grid, with the error from the scatter of
        blocks; at a single p it is the value there.
        """
        means, samples = self.block_means, self.block_samples
        if means is None or samples is None or len(means) < 2 or not self.p[0] <= p <= self.p[-1]:
            return None
        near = nearest_nodes(self.p, p)
        at_p = means[:, near] @ node_weights(self.p[near], np.array([p]))[0]
        return float(mean_of_blocks(at_p, samples)), float(standard_error(at_p, samples))


@dataclass(frozen=True, eq=False)
class WrappingPanel:
    """One way to wrap: the curve of every task, and the exact value at p_c.

    name, meaning: of the observable.  symbol: the label of the axis in matplotlib's mathematics.
    """

    name: str
    meaning: str
    symbol: str
    curves: Sequence[WrappingCurve]
    known: Known | None = None


def plot_wrapping(
    panels: Sequence[WrappingPanel],
    figures: StudyView,
    into: Target = NEW_FIGURE,
    *,
    fitted: tuple[float, float] | None = None,
) -> Drawn:
    """Draw the probability of every way to wrap against p, for all sizes, with theory at p_c.

    panels: at least one, with curves of the same tasks; for a single p they are drawn against L.
    fitted: p_c of a fit, and its error.
    """
    exact = figures.exact
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    at = elements.only_p(panels[0].curves)
    rows = -(-len(panels) // columns)
    compared = _compared(panels, exact)
    against_size = at is not None
    width, height = (PAGE_WIDTH, 1.1 + 2.3 * rows) if columns > 1 else (COLUMN_WIDTH, 3.6)
    with into.sheet(width, height + (1.5 if compared else 0.0)) as sheet:
        if compared:
            places: Any = sheet.grid(rows + 1, columns, height_ratios=[*rows * [1], 0.55])
            drawn: list[Any] = []
            for place in [places[r, c] for r in range(rows) for c in range(columns)][: len(panels)]:
                first = drawn[0] if drawn else None
                drawn.append(sheet.figure.add_subplot(place, sharex=first))
        else:
            grid: Any = sheet.subplots(rows, columns, sharex=True, squeeze=False)
            drawn = list(grid.flat[: len(panels)])
            for axes in grid.flat[len(panels) :]:
                axes.set_axis_off()
        for number, (axes, panel) in enumerate(zip(drawn, panels, strict=True)):
            _draw_panel(axes, panel, figures.num_sites, against_size=against_size)
            elements.draw_exact(axes, None if against_size else exact)
            if fitted is not None and not against_size:
                label = f"$p_c = {format_with_error(*fitted)}$, fit of all sizes"
                elements.draw_band(axes, *fitted, label=label)
            at_foot = number >= len(panels) - columns
            axes.tick_params(labelbottom=at_foot)
            if at_foot:
                axes.set_xlabel("$p$")
            if at_foot and against_size:
                elements.place_sizes(axes, sorted({curve.L for curve in panels[0].curves}))
            elements.few_ticks(axes, number=4)
        if not against_size:
            elements.keep_to_probabilities(*drawn)
        if compared:
            drawn.append(sheet.figure.add_subplot(places[rows, :]))
            _draw_compared(drawn[-1], compared)
        elements.letter_panels(drawn)
        sheet.set_title(elements.title_with_p(figures.title, at))
        errors = [curve.errors for curve in panels[0].curves if curve.errors is not None]
        about: str | None = "Error bars: 68 % Wilson intervals"
        if errors:
            about = elements.jackknife_title(errors, over="chains")
        entries = _entries(drawn[0], panels)
        sheet.add_legend(entries, ncols=3 if columns > 1 else 1, title=about)
    return sheet.figure, {
        "fitted_threshold": list(fitted) if fitted is not None else None,
        "panels": [
            {
                "observable": panel.name,
                "meaning": panel.meaning,
                "theory": plain(panel.known),
                "curves": [
                    plain(replace(curve, block_means=None))
                    | plain({"probability": curve.probability, "low": low, "high": high})
                    for curve in panel.curves
                    for low, high in [curve.interval()]
                ],
            }
            for panel in panels
        ],
        "at_threshold": [
            {key: value for key, value in each.items() if key not in ("look", "symbol")}
            for each in compared
        ],
    }


def _compared(
    panels: Sequence[WrappingPanel], exact: elements.Exact | None
) -> list[dict[str, Any]]:
    """Return every probability at the published p_c with its theoretical value, if known."""
    # A single panel may be drawn into given axes, so it has no panel below.
    if exact is None or len(panels) == 1:
        return []
    return [
        {"observable": panel.name, "symbol": panel.symbol, "L": curve.L, "look": look,
         "value": own[0], "error": own[1], "theory": panel.known.value}
        for panel in panels if panel.known is not None
        for curve, look, _ in choose_looks(panel.curves)
        if (own := curve.at(exact[0])) is not None and own[1] > 0
    ]  # fmt: skip


def _draw_compared(axes: Axes, compared: Sequence[dict[str, Any]]) -> None:
    """Draw measured minus theoretical values at p_c, with the sizes of each side by side."""
    symbols = {each["observable"]: f"${each['symbol']}(p_c)$" for each in compared}
    names, sizes = list(symbols), sorted({each["L"] for each in compared})
    series = []
    for each in compared:
        aside = 0.6 * ((sizes.index(each["L"]) + 0.5) / len(sizes) - 0.5)
        away = (each["value"] - each["theory"]) / each["error"]
        series.append(([names.index(each["observable"]) + aside], [away], each["look"]))
    elements.draw_residuals(axes, series, of="theory")
    axes.set_xticks(range(len(names)), list(symbols.values()))
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.5, len(names) - 0.5)


def _draw_panel(
    axes: Axes, panel: WrappingPanel, num_sites: Mapping[int, int], *, against_size: bool
) -> None:
    for curve, look, new in choose_looks(panel.curves):
        style = {"markersize": 2.8, "linewidth": 0.7, "linestyle": "-", "zorder": 3}
        style |= {"label": elements.size_label(curve.L, num_sites) if new else None}
        x, bars = [curve.L] if against_size else curve.p, elements.interval_bars(curve)
        elements.draw_bars(axes, x, curve.probability, bars, look, **style)
    axes.set_ylabel(f"${panel.symbol}$")
    if panel.known is not None:
        axes.axhline(panel.known.value, **_VALUE)
        axes.set_title(f"theory at $p_c$: {panel.known.value:.5f}", fontsize=8)
    if not against_size:
        # Probabilities that do not rise with p are small, so their axis does not end at 1.
        top = max(float(curve.interval()[1].max()) for curve in panel.curves) or 1.0
        axes.set_ylim(-0.04 * top, 1.06 * top)


def _entries(axes: Axes, panels: Sequence[WrappingPanel]) -> list[tuple[Any, str]]:
    """Return the entries of the legend, with a single one for theory's lines in all panels."""
    from matplotlib.lines import Line2D

    entries = elements.legend_entries(axes)
    named = [panel.known for panel in panels if panel.known is not None]
    if named:
        line = {key: value for key, value in _VALUE.items() if key != "zorder"}
        formula, _, modulus = named[0].expression.partition(", tau = ")
        shape = rf", $\tau = {modulus}$" if modulus else ""
        entries.append((Line2D([], [], **line), f"at $p_c$, {formula}{shape}"))
    return entries


def _problem(figures: StudyView) -> str | None:
    if not _ways(figures):
        return "no axis is periodic"
    if not figures.measured("grid"):
        return "what wraps is measured on a grid of p, not by method threshold"
    return None


def _names(figures: StudyView) -> list[str]:
    """Return the observables that all tasks have: files of 0.2.0 lack the newest."""
    tasks = figures.measured("grid")
    return [name for name in _ways(figures) if all(task.has(name) for task in tasks)]


def _ways(figures: StudyView) -> list[str]:
    """Return the names of the ways to wrap; for chains also, and first, of the ways to span."""
    boundary = figures.study.boundary
    return [*(spanning_names(boundary) if figures.model.chains else ()), *wrapping_names(boundary)]


def _draw(figures: StudyView, into: Target) -> Drawn:
    study = figures.study
    observables = {each.name: each for each in study.observables}
    panels = []
    for name in _names(figures):
        # Theoretical values are those of percolation, not of the clusters of spins.
        known = None
        if not figures.model.chains:
            known = critical_probability(study.structure, study.boundary, name, study.model)
        curves = []
        for task in figures.measured("grid"):
            samples, counts = task.samples, task.column(name)
            means = counts / samples[:, None]
            errors = None if task.task.kind.independent else standard_error(means, samples)
            own = (np.array(task.task.p), counts.sum(axis=0), errors, means, samples)
            curves.append(WrappingCurve(task.task.size, task.num_samples, *own))
        meaning, symbol = observables[name].meaning, symbol_text(observables[name].symbol)
        panels.append(WrappingPanel(name, meaning, symbol, curves, known))
    fit, fitted = figures.spin_fit_or_problem if figures.model.chains else "", None
    if not isinstance(fit, str) and fit.threshold_error is not None:
        fitted = fit.threshold, fit.threshold_error
    return plot_wrapping(panels, figures, into, fitted=fitted)


def _describe(numbers: Numbers) -> list[str]:
    panels = numbers["panels"]
    lines = [sizes_and_range(panels[0]["curves"]), goes_from("The first", panels[0]["curves"][-1])]
    compared = numbers["at_threshold"]
    if compared:
        away = max(abs(point["value"] - point["theory"]) / point["error"] for point in compared)
        lines.append(f"At p_c all are within {away:.1f} standard errors of theory.")
    return lines


WRAPPING = FigureKind(
    help="every wrapping probability against p; for Markov chains also spanning",
    meaning=(
        "Probabilities of every way to wrap around the periodic axes, and of Markov chains to span "
        "the open ones, against p, of a single p against L; the band, of chains alone, is p_c of "
        "the fit of all sizes with its error; dotted, where it is known, what theory says of them "
        "at p_c, and below, how far from it they are there."
    ),
    errors=(
        "Error bars are 68 % Wilson intervals, of spins one standard error by the scatter of "
        "chains. At p_c a polynomial through the nearest p is taken, its error by the scatter "
        "of blocks."
    ),
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
