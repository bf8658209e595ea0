"""Specific heat per site against temperature, with Kaufman's exact curves of square Ising tori."""

from percolab.figures.alt_text import describe_panels
from percolab.figures.study_view import FigureKind
from percolab.figures.thermal import JACKKNIFE, draw_thermal, make_panel, thermal_problem

KIND = FigureKind(
    place=22,
    help="of spins: the specific heat",
    meaning=(
        "Specific heat per site from the fluctuations of the energy, in units of k_B, against "
        "temperature, of one temperature against L; lines are exact where they are known, with the "
        "deviations below in standard errors."
    ),
    errors=JACKKNIFE,
    problem=lambda figures: thermal_problem(figures, "specific_heat"),
    draw=lambda figures, into: draw_thermal(
        figures,
        into,
        [make_panel(figures, "specific_heat", r"specific heat per site $C / (k_B N)$")],
    ),
    alt=describe_panels,
)
