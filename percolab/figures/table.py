"""The fit of a table as a figure: its curves, the crossings of neighbouring sizes, the collapse."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.table_fit import TableFit
from percolab.analysis.value import format_with_error
from percolab.errors import AnalysisError, InputError
from percolab.figures import elements
from percolab.figures.kinds.collapse import LEGEND_TITLE, draw_points
from percolab.figures.kinds.roots import draw_threshold
from percolab.figures.math_text import name_text, plain_text
from percolab.figures.sheet import NEW_FIGURE, Target
from percolab.figures.study_view import Drawn
from percolab.figures.style import PAGE_WIDTH, size_look


def draw_table(fit: TableFit, kind: str | None = None, into: Target = NEW_FIGURE) -> Drawn:
    """Return a figure of a fit and every number drawn; kind: one of KINDS, None for the curves.

    InputError: an unknown kind.  AnalysisError: the fit does not give this figure.
    """
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        raise InputError(f"--kind {kind}: figures of tables are {', '.join(KINDS)}")
    kind = kind or "curves"
    figure, numbers = KINDS[kind](fit, into)
    named = {"kind": kind, "title": plain_text(fit.name)}
    return figure, {**named, **numbers, "notes": fit.notes}


def _labels(fit: TableFit, x: str = "", y: str = "") -> dict[str, str]:
    """Return labels of both axes with units; x, y: mathematics, or "" for the plain names."""
    names = x or name_text(fit.axis), y or name_text(fit.quantity)
    units = (f" ({unit})".replace("$", r"\$") if unit else "" for unit in fit.series.units)
    x, y = (f"${name}$" + unit for name, unit in zip(names, units))
    return {"xlabel": x, "ylabel": y}


def _draw_curves(fit: TableFit, into: Target) -> Drawn:
    lines, symbol = [], name_text(fit.axis)
    with into.column(3.6) as (sheet, axes):
        rows, near = fit.series, fit.series.at(fit.used)
        draw_points(axes, rows.L, rows.x, rows.values, rows.errors, rows.sizes)
        for size in near.sizes:
            own = near.x[size == near.L]
            x = np.linspace(own.min(), own.max(), 200)
            y, look = fit.value_at(x, size), size_look(rows.sizes.index(size))
            axes.plot(x, y, color=look["color"], zorder=2)
            lines.append({"L": size, "x": x.tolist(), "value": y.tolist()})
        if fit.problem is None:
            x_c = fit.threshold, fit.threshold_error
            elements.draw_band(axes, *x_c, label=f"${symbol}_c = {format_with_error(*x_c)}$")
        else:
            axes.plot([], [], " ", label=elements.rejection_label(fit.chi_square) or "no answer")
        axes.set(**_labels(fit))
        if fit.kappa is not None and rows.values.max() > 20 * rows.values.min():
            axes.set_yscale("log")
        elements.few_ticks(axes, number=6)
        sheet.set_title(plain_text(fit.name))
        sheet.add_legend(elements.legend_entries(axes), ncols=3, title=elements.ERROR_BARS)
    names = ("L", "x", "values", "errors")
    return sheet.figure, {
        "rows": plain({name: getattr(rows, name) for name in names}),
        "lines": lines,
        "threshold": plain(fit.threshold),
        "threshold_error": plain(fit.threshold_error),
    }


def _draw_crossings(fit: TableFit, into: Target) -> Drawn:
    crossings = [crossing for crossing in fit.crossings if crossing.found]
    if not crossings:
        raise AnalysisError("the curves of neighbouring sizes do not cross near the fitted point")
    symbol = name_text(fit.axis)
    with into.column(3.3) as (sheet, axes):
        draw_threshold(axes, fit.p_c, fit.problem, symbol)
        sizes, x = [each.L2 for each in crossings], [each.p for each in crossings]
        errors = [crossing.p_error for crossing in crossings]
        style: dict[str, Any] = {"elinewidth": 0.9, "capsize": 2.0, "label": "crossings"}
        elements.draw_bars(axes, sizes, x, errors, size_look(0), **style)
        elements.place_sizes(axes, sizes)
        axes.set(ylabel=f"crossing with the next smaller size, {_labels(fit)['xlabel']}")
        elements.few_ticks(axes, number=6)
        sheet.set_title(plain_text(fit.name))
        sheet.add_legend(elements.legend_entries(axes), ncols=2, title=elements.ERROR_BARS)
    numbers = {"crossings": plain(crossings), "x_c": fit.p_c.to_dict(), "problem": fit.problem}
    return sheet.figure, numbers


def _draw_collapse(fit: TableFit, into: Target) -> Drawn:
    collapse, symbol = fit.collapse(tuned=False), name_text(fit.axis)
    sizes = sorted(set(collapse.L.tolist()))
    with into.sheet(PAGE_WIDTH, 3.4) as sheet:
        before, after = sheet.subplots(1, 2)
        draw_points(before, collapse.L, collapse.p, collapse.value, collapse.value_error, sizes)
        draw_points(after, collapse.L, collapse.x, collapse.y, collapse.dy, sizes)
        threshold = format_with_error(fit.threshold, fit.threshold_error)
        y_t = format_with_error(fit.y_t, fit.y_t_error)
        values = [f"${symbol}_c = {threshold}$", rf"$1/\nu = {y_t}$"]
        scaled = ""
        if fit.kappa is not None:
            values.append(rf"$\kappa = {fit.kappa}$")
            scaled = rf"{name_text(fit.quantity)}\; L^{{-\kappa}}"
        second = ", ".join([*values[2:], f"$S = {collapse.quality:.3g}$"])
        after.set_title(f"{values[0]}, {values[1]}\n{second}", fontsize=9)
        before.set(**_labels(fit))
        after.set(**_labels(fit, rf"({symbol} - {symbol}_c)\, L^{{1/\nu}}", scaled))
        for axes in (before, after):
            elements.few_ticks(axes, number=6)
        elements.letter_panels((before, after))
        sheet.set_title(plain_text(fit.name))
        sheet.add_legend(elements.legend_entries(after), ncols=6, title=LEGEND_TITLE)
    return sheet.figure, {"collapse": collapse.to_dict()}


#: The figures of a table by the name that --kind takes.
KINDS: Mapping[str, Callable[[TableFit, Target], Drawn]] = {
    "curves": _draw_curves,
    "crossings": _draw_crossings,
    "collapse": _draw_collapse,
}
