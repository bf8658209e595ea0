"""The susceptibility against temperature: by spins and by clusters, and the connected one."""

from percolab.figures.alt_text import describe_panels
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, StudyView
from percolab.figures.thermal import JACKKNIFE, draw_thermal, make_panel, thermal_problem


def _draw(figures: StudyView, into: Target) -> Drawn:
    whole = make_panel(
        figures,
        "improved_susceptibility",
        r"$\langle M^2 \rangle / N$ (sites); hollow: by the spins",
        hollow="susceptibility",
        logarithmic=True,
    )
    connected = make_panel(
        figures,
        "connected_susceptibility",
        r"$(\langle M^2 \rangle - \langle |M| \rangle^2) / N$ (sites)"
        if figures.model.states == 2
        else r"$(\langle |M|^2 \rangle - \langle |M| \rangle^2) / N$ (sites)",
        logarithmic=True,
    )
    return draw_thermal(figures, into, [whole, connected])


KIND = FigureKind(
    place=24,
    help="of spins: by spins, by clusters, and connected",
    meaning=(
        "Susceptibility without the factor 1 / k_B T: <M^2> / N by the clusters, which is <S_2> / "
        "N, and hollow by the spins; and with <|M|>^2 / N taken away; against temperature, of one "
        "temperature against L."
    ),
    errors=JACKKNIFE,
    problem=lambda figures: thermal_problem(figures, "susceptibility"),
    draw=_draw,
    alt=describe_panels,
)
