"""The order parameter against temperature, with Yang's of the infinite square Ising lattice."""

from percolab.figures.alt_text import describe_panels
from percolab.figures.study_view import FigureKind
from percolab.figures.thermal import JACKKNIFE, draw_thermal, make_panel, thermal_problem

KIND = FigureKind(
    place=23,
    help="of spins: the order parameter",
    meaning=(
        "Order parameter, (q N_max / N - 1) / (q - 1) in the mean, against temperature, of one "
        "temperature against L; black, where it is known, the spontaneous one of the infinite "
        "lattice."
    ),
    errors=JACKKNIFE,
    problem=lambda figures: thermal_problem(figures, "order"),
    draw=lambda figures, into: draw_thermal(
        figures, into, [make_panel(figures, "order", r"order parameter $\langle |m| \rangle$")]
    ),
    alt=describe_panels,
)
