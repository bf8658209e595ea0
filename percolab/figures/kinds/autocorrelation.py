"""The autocorrelation functions of a chain of spins near the transition."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.analysis.autocorrelation import Autocorrelation
from percolab.analysis.json_values import plain
from percolab.analysis.spin_fit import compute_autocorrelations
from percolab.analysis.stored_spins import correlation_errors, describe_system, list_spin_tasks
from percolab.analysis.value import format_with_error
from percolab.figures.alt_text import Numbers
from percolab.figures.axes import few_ticks, legend_entries
from percolab.figures.sheet import Target
from percolab.figures.spin_series import SERIES_LABELS, nearest_p, series_look, time_unit
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH
from percolab.lattices.shown import counted

#: The axis ends at this value, or where rho is lost in its errors.
_LOWEST = 1e-3


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw rho(t) of the largest size, at its p nearest to the transition, logarithmically."""
    item = list_spin_tasks(figures.results)[-1]
    p, found = np.array(item.task.p), compute_autocorrelations(item)
    at, source = nearest_p(figures, p)
    curves = []
    with into.sheet(COLUMN_WIDTH, 3.7, style=COLUMN_STYLE) as sheet:
        axes: Any = sheet.subplots()
        for number, (name, label) in enumerate(SERIES_LABELS.items()):
            own = found[name][at]
            if own is None:
                continue
            errors = correlation_errors(item, name, at)
            drawn = _drawn(own, errors)
            lags = np.arange(own.correlation.size)
            axes.errorbar(
                lags[drawn], own.correlation[drawn], np.nan_to_num(errors[drawn]),
                **series_look(number), markersize=2.6, linewidth=0.6, elinewidth=0.7,
                label=f"{label}: {_tau_text(own)}", zorder=3,
            )  # fmt: skip
            curves.append(
                {
                    "series": name,
                    "lag": plain(lags),
                    "correlation": plain(own.correlation),
                    "correlation_error": plain(errors),
                    "autocorrelation": plain(own),
                }
            )
        axes.set_yscale("log")
        axes.set_ylim(bottom=max(_LOWEST, min(0.5 * _smallest(axes), 0.08)), top=1.3)
        axes.set(xlabel=f"$t$ ({time_unit(figures.study)})", ylabel=r"autocorrelation $\rho(t)$")
        few_ticks(axes, number=5)
        temperature = float(describe_system(item).temperatures(p)[at])
        shown = f"{figures.head['title']}, $L = {item.task.size}$, $k_B T / J = {temperature:.6g}$"
        sheet.set_title(shown)
        sheet.add_legend(
            legend_entries(axes),
            title=f"update {item.task.update}; error bars: one standard error",
        )
    return sheet.figure, {
        "title": shown,
        "L": item.task.size,
        "p": float(p[at]),
        "temperature": temperature,
        "update": item.task.update,
        "p_source": source,
        "curves": curves,
    }


def _drawn(own: Autocorrelation, errors: np.ndarray) -> np.ndarray:
    """Return which lags are drawn: up to the first whose rho is lost in its error, bool (lags,)."""
    lost = ~(own.correlation > np.maximum(np.nan_to_num(errors), _LOWEST))
    end = int(np.argmax(lost)) if lost.any() else lost.size
    return np.asarray(np.arange(lost.size) < end)


def _smallest(axes: Any) -> float:
    """Return the smallest value that is drawn."""
    values = [line.get_ydata() for line in axes.lines if len(line.get_ydata())]
    return float(np.concatenate(values).min()) if values else _LOWEST


def _tau_text(own: Autocorrelation) -> str:
    r"""Return tau as a legend has it, "$\tau = 4.1(2)$", or as a lower bound."""
    sign = "=" if own.complete else r"\geq"
    value = format_with_error(own.tau, own.error) if np.isfinite(own.error) else f"{own.tau:.3g}"
    return rf"$\tau_{{\mathrm{{int}}}} {sign} {value}$"


def _problem(figures: StudyView) -> str | None:
    problem = figures.no_spins()
    if problem is None:
        item = list_spin_tasks(figures.results)[-1]
        at, _ = nearest_p(figures, np.array(item.task.p))
        if all(series[at] is None for series in compute_autocorrelations(item).values()):
            return f"L = {item.task.size}: nothing varies within a chain, or it has a single sweep"
    return problem


def _describe(numbers: Numbers) -> list[str]:
    """Return what is seen, in sentences."""
    count = len(numbers["curves"])
    return [f"{counted(count, 'correlation function')} at L = {numbers['L']}, which fall from 1."]


KIND = FigureKind(
    place=25,
    help="of spins: autocorrelation functions near the transition",
    meaning=(
        "Autocorrelation functions of the energy, of M^2 and of S_2 against the number of measured "
        "sweeps, of the largest size at the p nearest to the transition, as far as they are above "
        "their errors; the integrated times are those of Wolff's window."
    ),
    errors="Error bars are one standard error, of a jackknife over chains.",
    problem=_problem,
    draw=_draw,
    alt=_describe,
)
