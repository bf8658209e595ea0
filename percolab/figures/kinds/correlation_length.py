"""The correlation length over L against temperature, whose curves cross near T_c."""

from __future__ import annotations

import numpy as np

from percolab.analysis.stored_spins import (
    compute_correlation_lengths,
    describe_system,
    list_spin_tasks,
)
from percolab.analysis.theory.ising import is_square_ising
from percolab.figures.alt_text import describe_panels
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.thermal import (
    JACKKNIFE,
    ThermalCurve,
    ThermalPanel,
    draw_thermal,
    fitted_temperature,
)
from percolab.lattices.lattice import AXIS_NAMES

#: Panels that a page has room for.
_MOST_AXES = 3
#: xi / L at T_c of the Ising model on a large square torus.
_AT_CRITICALITY, _SOURCE = 0.9050488292, "Salas and Sokal 2000"


def _draw(figures: StudyView, into: Target) -> Drawn:
    study, levels = figures.study, []
    panels = [_panel(figures, axis) for axis in _periodic_axes(figures)[:_MOST_AXES]]
    is_torus = set(study.boundary) == {"periodic"}
    if is_torus and is_square_ising(study.structure, figures.model):
        label = rf"$\xi / L = {_AT_CRITICALITY:.6f}$ at $T_c$ [{_SOURCE}]"
        levels = [(_AT_CRITICALITY, label)]
    return draw_thermal(figures, into, panels, levels, fitted=fitted_temperature(figures))


def _periodic_axes(figures: StudyView) -> list[int]:
    return [axis for axis, kind in enumerate(figures.study.boundary) if kind == "periodic"]


def _panel(figures: StudyView, axis: int) -> ThermalPanel:
    letter = AXIS_NAMES[axis]
    return ThermalPanel(
        name=f"correlation_length_{letter}",
        label=rf"$\xi_{letter} / L_{letter}$",
        curves=_curves(figures, axis),
        meaning=f"second-moment correlation length along {letter} over the grid points along it",
    )


def _curves(figures: StudyView, axis: int) -> list[ThermalCurve]:
    """Return xi / L along a periodic axis of every task, where it is a number.

    It is none where S(k) exceeds S(0), as chance may have it far above the transition, and at
    infinite temperature.
    """
    found = []
    for item in list_spin_tasks(figures.results):
        task, p = item.task, np.array(item.task.p)
        lengths = compute_correlation_lengths(item)
        place = _periodic_axes(figures).index(axis)
        values, errors = (own[place] / task.shape[axis] for own in lengths)
        temperature = describe_system(item).temperatures(p)
        kept = np.isfinite(values) & np.isfinite(temperature)
        found.append(
            ThermalCurve(
                L=task.size,
                p=p[kept],
                temperature=temperature[kept],
                values=values[kept],
                errors=errors[kept],
            )
        )
    return found


def _problem(figures: StudyView) -> str | None:
    problem = figures.no_spins()
    if problem is not None:
        return problem
    if not all("structure_factor" in item.datasets() for item in list_spin_tasks(figures.results)):
        return f"no structure factors: {figures.how_to_measure('correlation')}"
    for axis in _periodic_axes(figures):
        for curve in _curves(figures, axis):
            if not curve.values.size:
                return f"L = {curve.L} has no correlation length at any finite temperature"
    return None


KIND = FigureKind(
    place=28,
    help="of spins: the correlation length over L",
    meaning=(
        "Second-moment correlation length of the spins over the length of the lattice, in grid "
        "points, along every periodic axis (three at most), against temperature, of one "
        "temperature against L; the band is T_c of the fit of all sizes (percolab fit) with its "
        "error; dotted, where it is known, the ratio's value at T_c."
    ),
    errors=JACKKNIFE,
    problem=_problem,
    draw=_draw,
    alt=describe_panels,
)
