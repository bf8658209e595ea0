"""The Binder ratio against temperature, whose curves for different sizes cross near T_c."""

from percolab.analysis.stored_spins import list_spin_tasks
from percolab.analysis.theory.ising import (
    BINDER_AT_CRITICALITY,
    BINDER_SOURCE,
    is_square_ising,
)
from percolab.figures.alt_text import describe_panels
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.thermal import (
    JACKKNIFE,
    draw_thermal,
    fitted_temperature,
    make_panel,
    thermal_problem,
)

_RATIO = r"$Q_m = \langle M^2 \rangle^2 / \langle M^4 \rangle$"


def _draw(figures: StudyView, into: Target) -> Drawn:
    panels = [make_panel(figures, "binder", _RATIO)]
    if all(item.has("sum_fourths") for item in list_spin_tasks(figures.results)):
        panels += [make_panel(figures, "improved_binder", f"{_RATIO}, by the clusters")]
    study, levels = figures.study, []
    if is_square_ising(study.structure, figures.model) and set(study.boundary) == {"periodic"}:
        label = f"$Q_m(T_c) = {BINDER_AT_CRITICALITY}$ [{BINDER_SOURCE}]"
        levels = [(BINDER_AT_CRITICALITY, label)]
    return draw_thermal(figures, into, panels, levels, fitted=fitted_temperature(figures))


KIND = FigureKind(
    place=20,
    help="of spins: Binder's ratio, whose curves cross near T_c",
    meaning=(
        "Binder ratio of the order parameter by the spins, and by the clusters where their fourth "
        "powers are there (--measure sizes), against temperature, of one temperature against L; "
        "the band is T_c of the fit of all sizes (percolab fit) with its error; dotted, where it "
        "is known, the ratio's value at T_c."
    ),
    errors=JACKKNIFE,
    problem=lambda figures: thermal_problem(figures, "binder"),
    draw=_draw,
    alt=describe_panels,
)
