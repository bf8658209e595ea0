"""Integrated autocorrelation times near the transition against L, with the dynamic exponent z."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.power_law import PowerLaw, fit_power_law
from percolab.analysis.spin_fit import compute_autocorrelations
from percolab.analysis.stored_spins import describe_system, list_spin_tasks
from percolab.errors import AnalysisError
from percolab.figures.alt_text import Numbers
from percolab.figures.axes import (
    legend_entries,
    place_sizes,
    plain_ticks,
)
from percolab.figures.sheet import Target
from percolab.figures.spin_series import SERIES_LABELS, nearest_p, series_look, time_unit
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH

#: Series stand side by side, by this factor of L, so that none hides another.
_ASIDE = 1.05


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw tau of each series against L, each size at its p nearest to the transition."""
    rows = _rows(figures)
    curves = []
    with into.sheet(COLUMN_WIDTH, 3.7, style=COLUMN_STYLE) as sheet:
        axes: Any = sheet.subplots()
        for number, (name, label) in enumerate(SERIES_LABELS.items()):
            own = [row for row in rows if row["series"] == name]
            if own:
                fit = _fitted(own)
                aside = _ASIDE ** (number - 1)
                _draw_series(axes, own, fit, label, series_look(number), aside)
                found = fit and {"z": fit.exponent.value, **fit.exponent.to_dict()}
                curves.append({"series": name, "points": plain(own), "fit": found})
        axes.set_yscale("log")
        _widen(axes)
        place_sizes(axes, sorted({row["L"] for row in rows}))
        plain_ticks(axes)
        axes.set_ylabel(rf"$\tau_{{\mathrm{{int}}}}$ ({time_unit(figures.study)})")
        sheet.set_title(f"{figures.head['title']}, near the transition")
        update = figures.study.update
        sheet.add_legend(
            legend_entries(axes),
            title=f"update {update}; error bars: one standard error",
        )
    return sheet.figure, {"title": figures.head["title"], "update": update, "curves": curves}


def _widen(axes: Any) -> None:
    """Make the vertical axis no less than a factor 4 high, in which few times lie together."""
    low, high = axes.get_ylim()
    if high < 4 * low:
        middle = (low * high) ** 0.5
        axes.set_ylim(middle / 2, 2 * middle)


def _rows(figures: StudyView) -> list[dict[str, Any]]:
    """Return tau of every series and task at its p nearest to the transition."""
    rows = []
    for item in list_spin_tasks(figures.results):
        p = np.array(item.task.p)
        at, source = nearest_p(figures, p)
        temperature = float(describe_system(item).temperatures(p)[at])
        for name, series in compute_autocorrelations(item).items():
            own = series[at]
            if own is not None:
                rows.append(
                    {
                        "L": item.task.size,
                        "series": name,
                        "p": float(p[at]),
                        "temperature": temperature,
                        "p_source": source,
                        "tau": own.tau,
                        "error": own.error,
                        "window": own.window,
                        "complete": own.complete,
                    }
                )
    return rows


def _fitted(rows: list[dict[str, Any]]) -> PowerLaw | None:
    """Return z of the complete times, one of each size, or None where there are too few."""
    complete = {row["L"]: row for row in rows if row["complete"] and row["error"] > 0}
    sizes = sorted(complete)
    taus, errors = (np.array([complete[size][key] for size in sizes]) for key in ("tau", "error"))
    try:
        return fit_power_law(sizes, taus, (errors / taus) ** 2)
    except AnalysisError:
        return None


def _draw_series(
    axes: Any,
    rows: list[dict[str, Any]],
    fit: PowerLaw | None,
    label: str,
    look: dict[str, Any],
    aside: float,
) -> None:
    text = label
    if fit is not None:
        text += f": $z$ = {fit.exponent}"
        ends = np.geomspace(min(row["L"] for row in rows), max(row["L"] for row in rows), 50)
        axes.plot(ends, fit(ends), color=look["color"], linewidth=0.8, zorder=1)
    for complete in (True, False):
        own = [row for row in rows if row["complete"] == complete]
        if not own:
            continue
        bound: dict[str, Any] = {} if complete else {"lolims": True, "markerfacecolor": "white"}
        errors = np.nan_to_num([row["error"] for row in own])
        if not complete:
            # Lower bounds have arrows, which show no error.
            errors = 0.25 * np.array([row["tau"] for row in own])
        at, taus = (np.array([row[key] for row in own]) for key in ("L", "tau"))
        axes.errorbar(
            aside * at, taus, errors, **(look | bound), linestyle="none",
            elinewidth=0.8, capsize=1.5, zorder=3,
            label=text if complete else f"{label}: lower bounds, no window among the lags",
        )  # fmt: skip
        text = label


def _problem(figures: StudyView) -> str | None:
    problem = figures.no_spins()
    if problem is not None:
        return problem
    if len({item.task.size for item in list_spin_tasks(figures.results)}) < 2:
        return "a single size does not tell how times grow with L: autocorrelation"
    return None if _rows(figures) else "nothing varies within a chain"


def _describe(numbers: Numbers) -> list[str]:
    """Return what is seen, in sentences."""
    found = []
    for curve in numbers["curves"]:
        points = curve["points"]
        taus = f"from {points[0]['tau']:.3g} at L = {points[0]['L']}"
        taus += f" to {points[-1]['tau']:.3g} at L = {points[-1]['L']}"
        found.append(f"The time of {curve['series'].replace('_', ' ')} goes {taus}.")
    return found


KIND = FigureKind(
    place=26,
    help="of spins: autocorrelation times against L, with z",
    meaning=(
        "Integrated autocorrelation times in measured sweeps against L, each size at its p nearest "
        "to the transition, the series side by side; lines are power laws tau ~ L^z with "
        "corrections."
    ),
    errors=(
        "Error bars are one standard error, of a jackknife over chains; an arrow is a lower bound, "
        "where the stored lags end before the autocorrelation does."
    ),
    problem=_problem,
    draw=_draw,
    alt=_describe,
)
