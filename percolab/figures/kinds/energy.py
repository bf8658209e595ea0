"""Energy per site against temperature, with Kaufman's exact curves of square Ising tori."""

from percolab.figures.alt_text import describe_panels
from percolab.figures.study_view import FigureKind
from percolab.figures.thermal import JACKKNIFE, draw_thermal, make_panel, thermal_problem

KIND = FigureKind(
    place=21,
    help="of spins: the energy",
    meaning=(
        "Energy per site in units of J against temperature, of one temperature against L; lines "
        "are exact where they are known, with the deviations below in standard errors."
    ),
    errors=JACKKNIFE,
    problem=lambda figures: thermal_problem(figures, "energy"),
    draw=lambda figures, into: draw_thermal(
        figures,
        into,
        [make_panel(figures, "energy", r"energy per site $\langle E \rangle / (J N)$")],
    ),
    alt=describe_panels,
)
