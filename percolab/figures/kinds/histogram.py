"""The distribution of the energy near the transition, for every size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from percolab.analysis.json_values import plain
from percolab.analysis.reweighting import FirstOrder, energy_histogram, find_first_order
from percolab.analysis.stored_spins import describe_system, list_spin_tasks, read_series
from percolab.analysis.value import format_with_error
from percolab.errors import AnalysisError
from percolab.figures.alt_text import describe_curves
from percolab.figures.axes import few_ticks, legend_entries, size_label
from percolab.figures.sheet import Target
from percolab.figures.spin_series import nearest_p
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.style import COLUMN_STYLE, COLUMN_WIDTH, size_look
from percolab.store.task_result import TaskResult


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw the energy histograms of all sizes, each at its p nearest to the transition."""
    curves = []
    items = _with_series(figures)
    sizes = sorted({item.task.size for item in items})
    with into.sheet(COLUMN_WIDTH, 3.7, style=COLUMN_STYLE) as sheet:
        axes: Any = sheet.subplots()
        for item in items:
            curve = _histogram(figures, item)
            if curve is None:
                continue
            curves.append(curve)
            look = size_look(sizes.index(item.task.size))
            axes.errorbar(
                curve["energy"], curve["density"], np.nan_to_num(curve["error"]),
                **look, markersize=2.2, linewidth=0.7, elinewidth=0.7,
                label=size_label(item.task.size, {}),
            )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.set_xlabel(r"energy per site $E / (J N)$")
        axes.set_ylabel("probability density")
        few_ticks(axes, number=5)
        title = figures.head["title"]
        temperatures = sorted({curve["temperature"] for curve in curves})
        if len(temperatures) == 1:
            title = f"{title}, $k_B T / J = {temperatures[0]:.6g}$"
        else:
            _add_temperatures(axes, curves)
        sheet.set_title(title)
        two = [curve for curve in curves if curve["first_order"] is not None]
        if two:
            axes.annotate(_said(two[-1]), (0.04, 0.96), None, "axes fraction", va="top", fontsize=7)
            axes.set_ylim(top=1.35 * axes.get_ylim()[1])
        sheet.add_legend(
            legend_entries(axes),
            ncols=3,
            title="Error bars: one standard error, jackknife over chains",
        )
    return sheet.figure, {"title": figures.head["title"], "curves": plain(curves)}


def _add_temperatures(axes: Any, curves: Sequence[dict[str, Any]]) -> None:
    """Add to the labels at which temperature each histogram is."""
    handles, _ = axes.get_legend_handles_labels()
    for handle, curve in zip(handles, curves, strict=True):
        handle.set_label(f"{handle.get_label()}, $k_B T / J = {curve['temperature']:.6g}$")


def _histogram(figures: StudyView, item: TaskResult) -> dict[str, Any] | None:
    """Return the distribution of the energy per site of one task, or None if it does not vary."""
    p = np.array(item.task.p)
    at, source = nearest_p(figures, p)
    satisfied, system = read_series(item)["satisfied"][at], describe_system(item)
    beta = system.bond_energy * float(system.couplings(p)[at])
    try:
        found = energy_histogram(satisfied)
        states, sites = system.model.states, system.num_sites
        first = find_first_order(
            satisfied, beta=beta, q=states, num_sites=sites, one_chain=item.task.is_serial
        )
    except AnalysisError:
        return None
    per_bond = system.bond_energy / system.num_sites
    middles = (found.edges[1:] + found.edges[:-1]) / 2
    # Satisfied bonds per energy, so that the integral over the energy is 1.
    return {
        "L": item.task.size,
        "p": float(p[at]),
        "p_source": source,
        "temperature": float(system.temperatures(p)[at]),
        "energy": system.energy(middles),
        "density": found.density / per_bond,
        "error": found.errors / per_bond,
        "first_order": first,
        "latent_heat": _latent_heat(first, system.bond_energy),
    }


def _latent_heat(first: FirstOrder | None, bond_energy: float) -> tuple[float, float] | None:
    """Return the latent heat per site in J and its error."""
    if first is None:
        return None
    return bond_energy * first.latent_heat, bond_energy * first.latent_heat_error


def _said(curve: dict[str, Any]) -> str:
    """Return what is said of two peaks of the largest size that has them."""
    heat = format_with_error(*curve["latent_heat"])
    return f"two peaks at $L = {curve['L']}$, ${heat}\\,J$ per site apart"


def _with_series(figures: StudyView) -> list[TaskResult]:
    return [item for item in list_spin_tasks(figures.results) if item.has("satisfied_series")]


def _problem(figures: StudyView) -> str | None:
    problem = figures.no_spins()
    if problem is not None:
        return problem
    items = _with_series(figures)
    if not items:
        return f"the energy of single sweeps was not kept: {figures.how_to_measure('series')}"
    if max(len(item.blocks) for item in items) < 2:
        return "a histogram with errors needs 2 chains"
    drawn = any(_histogram(figures, item) is not None for item in items)
    return None if drawn else "the energy does not vary"


KIND = FigureKind(
    place=27,
    help="of spins: the distribution of the energy near the transition",
    meaning=(
        "Distribution of the energy per site in units of J, each size at its p nearest to the "
        "transition; two peaks that sharpen with L are a transition of first order."
    ),
    errors="Error bars are one standard error, of a jackknife over chains.",
    problem=_problem,
    draw=_draw,
    alt=describe_curves,
)
