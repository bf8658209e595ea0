"""Chains of spins near the transition: autocorrelation, its times against L, energies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.power_law import PowerLaw
from percolab.analysis.reweighting import energy_histogram, find_first_order
from percolab.analysis.spin_fit import compute_autocorrelations, fit_times, time_at
from percolab.analysis.stored_spins import (
    correlation_errors,
    describe_system,
    list_spin_tasks,
    read_series,
)
from percolab.analysis.study_kinds import find_analysis
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import format_with_error
from percolab.errors import AnalysisError
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView, sizes_and_range
from percolab.figures.style import Axes, choose_look, size_look
from percolab.lattices.shown import counted
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: The series of a chain, as legends name them.
_SERIES: Mapping[str, str] = {
    "satisfied": "energy",
    "state_squares": r"$M^2$, by the spins",
    "sum_squares": r"$S_2$, by the clusters",
}
#: The axis of an autocorrelation ends at this value, or where rho is smaller than its error.
_LOWEST = 1e-3
#: Series are shifted by this factor of L, so that none hides another.
_ASIDE = 1.05
_LINE: dict[str, Any] = {"linestyle": "-", "linewidth": 0.6, "elinewidth": 0.7}


def _time_unit(study: Study) -> str:
    """Return the unit of autocorrelation times, which count measured sweeps."""
    return "updates" if study.every == 1 else f"{study.every} updates"


def _near_transition(figures: StudyView, task: TaskResult) -> tuple[int, dict[str, Any]]:
    """Return the index of a task's p nearest to the transition, and a record of this place."""
    threshold, source = figures.taken_for_threshold()
    p = np.array(task.task.p)
    at = int(np.argmin(np.abs(p - threshold)))
    temperature = float(describe_system(task).temperatures(p)[at])
    place = {"L": task.task.size, "p": float(p[at]), "p_source": source}
    return at, place | {"temperature": temperature}


def _draw_autocorrelation(figures: StudyView, into: Target) -> Drawn:
    """Draw rho(t) of the largest size, at its p nearest to the transition, logarithmically."""
    task = list_spin_tasks(figures.results)[-1]
    series = compute_autocorrelations(task)
    at, place = _near_transition(figures, task)
    curves = []
    with into.column(3.7) as (sheet, axes):
        for number, (name, label) in enumerate(_SERIES.items()):
            own = series[name][at]
            if own is None:
                continue
            rho, errors = own.correlation, correlation_errors(task, name, at)
            lags = np.arange(rho.size)
            # Draw up to the first rho that is smaller than its error.
            drawn = np.logical_and.accumulate(rho > np.maximum(np.nan_to_num(errors), _LOWEST))
            is_known, sign = np.isfinite(own.error), "=" if own.is_known else r"\geq"
            tau = format_with_error(own.tau, own.error) if is_known else f"{own.tau:.3g}"
            label += rf": $\tau_{{\mathrm{{int}}}} {sign} {tau}$"
            look = choose_look(number, number) | _LINE | {"markersize": 2.6, "zorder": 3}
            points = lags[drawn], rho[drawn], errors[drawn]
            elements.draw_bars(axes, *points, look, label=label)
            numbers: dict[str, Any] = {"series": name, "lag": lags, "correlation": rho}
            numbers |= {"correlation_error": errors, "autocorrelation": own}
            curves.append(plain(numbers))
        axes.set_yscale("log")
        smallest = min((line.get_ydata().min(initial=1.0) for line in axes.lines), default=_LOWEST)
        axes.set_ylim(bottom=max(_LOWEST, min(0.5 * float(smallest), 0.08)), top=1.3)
        axes.set(xlabel=f"$t$ ({_time_unit(figures.study)})", ylabel=r"autocorrelation $\rho(t)$")
        elements.few_ticks(axes, number=5)
        title = f"{figures.title}, $L = {place['L']}$"
        title += f", $k_B T / J = {place['temperature']:.6g}$"
        sheet.set_title(title)
        update = task.task.update
        about = f"update {update}; error bars: one standard error"
        sheet.add_legend(elements.legend_entries(axes), title=about)
    return sheet.figure, {"title": title, "update": update, "curves": curves} | place


def _no_autocorrelation(figures: StudyView) -> str | None:
    task = list_spin_tasks(figures.results)[-1]
    at, _ = _near_transition(figures, task)
    nothing = f"L = {task.task.size}: nothing varies within a chain, or it has a single sweep"
    return None if any(own[at] for own in compute_autocorrelations(task).values()) else nothing


AUTOCORRELATION = FigureKind(
    help="spins: autocorrelation functions near the transition",
    meaning=(
        "Autocorrelation functions of the energy, of M^2 and of S_2 against the number of measured "
        "sweeps, of the largest size at the p nearest to the transition, as far as they are above "
        "their errors; the integrated times are those of Wolff's window."
    ),
    errors="Error bars are one standard error, of a jackknife over chains.",
    problems=(StudyView.no_spins, _no_autocorrelation),
    draw=_draw_autocorrelation,
    alt=lambda numbers: [
        f"{counted(len(numbers['curves']), 'correlation function')} at L = {numbers['L']}, which "
        "fall from 1."
    ],
)


def _draw_tau(figures: StudyView, into: Target) -> Drawn:
    rows = _tau_rows(figures)
    omega = find_analysis(figures.study).correction(figures.study, "tau")
    curves = []
    with into.column(3.7) as (sheet, axes):
        for number, (name, label) in enumerate(_SERIES.items()):
            own = [row for row in rows if row["series"] == name]
            if own:
                fit = _fit_z(own, omega)
                _draw_series(axes, own, fit, label, number)
                z = fit and {"z": fit.exponent.value, **fit.exponent.to_dict()}
                curves.append({"series": name, "points": plain(own), "fit": z})
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < 4 * low:
            # The axis spans enough that nearly equal times are not drawn far apart.
            middle = (low * high) ** 0.5
            axes.set_ylim(middle / 2, 2 * middle)
        elements.place_sizes(axes, sorted({row["L"] for row in rows}))
        elements.plain_ticks(axes)
        axes.set_ylabel(rf"$\tau_{{\mathrm{{int}}}}$ ({_time_unit(figures.study)})")
        drawn_at = [f"{row['temperature']:.6g}" for row in rows]
        ends = " to ".join(dict.fromkeys((min(drawn_at, key=float), max(drawn_at, key=float))))
        sheet.set_title(f"{figures.title}, $k_B T / J$ = {ends}")
        update = figures.study.update
        about = f"update {update}; error bars: one standard error"
        sheet.add_legend(elements.legend_entries(axes), title=about)
    return sheet.figure, {"update": update, "curves": curves}


def _tau_rows(figures: StudyView) -> list[dict[str, Any]]:
    """Return the times of every size at the p_c of the fit, as used for z.

    Without a fit, at the p taken for p_c; if that is outside of the grid, at its nearest end.
    """
    fit = figures.spin_fit_or_problem
    at, source = figures.taken_for_threshold()
    if not isinstance(fit, str):
        at, source = fit.threshold, "the fit of all sizes"
    rows = []
    for task in list_spin_tasks(figures.results):
        p = min(max(at, task.task.p[0]), task.task.p[-1])
        temperature = float(describe_system(task).temperatures(np.array([p]))[0])
        place = {"L": task.task.size, "p": p, "p_source": source, "temperature": temperature}
        for name, series in compute_autocorrelations(task).items():
            time = time_at(task.task.p, series, p)
            if time is not None:
                rows.append(place | {"series": name} | time._asdict() | {"at_p_c": p == at})
    return rows


def _fit_z(rows: list[dict[str, Any]], omega: Known | None) -> PowerLaw | None:
    """Return z from the known times, or None if there are too few."""
    taken = [row for row in rows if row["complete"] and row["at_p_c"] and row["error"] > 0]
    taus = [(row["L"], (row["tau"], row["error"])) for row in taken]
    try:
        return fit_times(taus, omega.value if omega else 1.0)
    except AnalysisError:
        return None


def _draw_series(
    axes: Axes, rows: list[dict[str, Any]], fit: PowerLaw | None, label: str, number: int
) -> None:
    text, look = label, choose_look(number, number)
    if fit is not None:
        text += f": $z$ = {fit.exponent}"
        ends = np.geomspace(min(row["L"] for row in rows), max(row["L"] for row in rows), 50)
        axes.plot(ends, fit(ends), color=look["color"], linewidth=0.8, zorder=1)
    for complete in (True, False):
        own = [row for row in rows if row["complete"] == complete]
        if not own:
            continue
        sizes, taus, errors = (np.array([row[key] for row in own]) for key in ("L", "tau", "error"))
        style: dict[str, Any] = {"capsize": 1.5, "zorder": 3, "label": text}
        if not complete:
            # Lower bounds have arrows, which show no error.
            errors = 0.25 * taus
            style |= {"lolims": True, "markerfacecolor": "white"}
            style["label"] = f"{label}: lower bounds, no window among the lags"
        sizes = sizes * _ASIDE ** (number - 1)
        elements.draw_bars(axes, sizes, taus, errors, look, **style)


def _no_tau(figures: StudyView) -> str | None:
    if len({task.task.size for task in list_spin_tasks(figures.results)}) < 2:
        return "a single size does not tell how times grow with L: autocorrelation"
    return None if _tau_rows(figures) else "nothing varies within a chain"


def _describe_tau(numbers: Numbers) -> list[str]:
    sentences = []
    for curve in numbers["curves"]:
        taus = [f"{point['tau']:.3g} at L = {point['L']}" for point in curve["points"]]
        name = curve["series"].replace("_", " ")
        sentences.append(f"The time of {name} goes from {taus[0]} to {taus[-1]}.")
    return sentences


TAU = FigureKind(
    help="spins: autocorrelation times against L, with z",
    meaning=(
        "Integrated autocorrelation times in measured sweeps against L, at the p_c of the fit, "
        "between two p of the grid, or without a fit at the p taken for it, the series side by "
        "side; lines are power laws L^z with a constant and corrections."
    ),
    errors=(
        "Error bars are one standard error, of a jackknife over chains; an arrow is a lower bound, "
        "where the stored lags end before the autocorrelation does."
    ),
    problems=(StudyView.no_spins, _no_tau),
    draw=_draw_tau,
    alt=_describe_tau,
)


def _draw_histogram(figures: StudyView, into: Target) -> Drawn:
    tasks = _with_series(figures)
    sizes = sorted({task.task.size for task in tasks})
    curves = [curve for task in tasks if (curve := _histogram(figures, task)) is not None]
    one = len({curve["temperature"] for curve in curves}) == 1
    with into.column(3.7) as (sheet, axes):
        for curve in curves:
            at = f", $k_B T / J = {curve['temperature']:.6g}$"
            label = elements.size_label(curve["L"], {}) + ("" if one else at)
            look = size_look(sizes.index(curve["L"])) | {"markersize": 2.2, "label": label}
            points = (curve["energy"], curve["density"], curve["error"])
            elements.draw_bars(axes, *points, look, **_LINE)
        axes.set_ylim(bottom=0)
        axes.set(xlabel=r"energy per site $E / (J N)$", ylabel="probability density")
        elements.few_ticks(axes, number=5)
        sheet.set_title(figures.title + (at if one else ""))
        two = [curve for curve in curves if curve["first_order"] is not None]
        if two:
            heat = format_with_error(*two[-1]["latent_heat"])
            text = f"two peaks at $L = {two[-1]['L']}$, ${heat}\\,J$ per site apart"
            axes.annotate(text, (0.04, 0.96), None, "axes fraction", va="top", fontsize=7)
            axes.set_ylim(top=1.35 * axes.get_ylim()[1])
        about = f"{elements.ERROR_BARS}, jackknife over chains"
        sheet.add_legend(elements.legend_entries(axes), ncols=3, title=about)
    return sheet.figure, {"curves": plain(curves)}


def _histogram(figures: StudyView, task: TaskResult) -> dict[str, Any] | None:
    at, place = _near_transition(figures, task)
    satisfied, system = read_series(task)["satisfied"][at], describe_system(task)
    unit, sites = system.bond_energy, system.num_sites
    keys: dict[str, Any] = {"q": system.model.states, "one_chain": task.task.is_serial}
    keys["beta"] = unit * float(system.couplings(np.array(task.task.p))[at])
    try:
        histogram = energy_histogram(satisfied)
        first = find_first_order(satisfied, num_sites=sites, **keys)
    except AnalysisError:
        return None
    # Satisfied bonds per energy, so that the integral over the energy is 1.
    return place | {
        "energy": system.energy((histogram.edges[1:] + histogram.edges[:-1]) / 2),
        "density": histogram.density * sites / unit,
        "error": histogram.errors * sites / unit,
        "first_order": first,
        # Per site in units of J, with its error.
        "latent_heat": first and (unit * first.latent_heat, unit * first.latent_heat_error),
    }


def _with_series(figures: StudyView) -> list[TaskResult]:
    return [task for task in list_spin_tasks(figures.results) if task.has("satisfied_series")]


def _no_histogram(figures: StudyView) -> str | None:
    tasks = _with_series(figures)
    if not tasks:
        return f"the energy of single sweeps was not kept: {figures.how_to_measure('series')}"
    if max(len(task.blocks) for task in tasks) < 2:
        return "a histogram with errors needs 2 chains"
    drawn = any(_histogram(figures, task) is not None for task in tasks)
    return None if drawn else "the energy does not vary"


HISTOGRAM = FigureKind(
    help="spins: the distribution of the energy near the transition",
    meaning=(
        "Distribution of the energy per site in units of J, each size at its p nearest to the "
        "transition; two peaks that sharpen with L are a transition of first order."
    ),
    errors="Error bars are one standard error, of a jackknife over chains.",
    problems=(StudyView.no_spins, _no_histogram),
    draw=_draw_histogram,
    alt=lambda numbers: [sizes_and_range(numbers["curves"])],
)
