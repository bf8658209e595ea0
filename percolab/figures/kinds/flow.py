"""Flow at p_c against L: the backbone, the shortest path, red bonds and the conductance."""

from typing import Any

import numpy as np

from percolab.analysis.exponents import FLOW_QUANTITIES, Exponent, Values
from percolab.figures import elements
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn, FigureKind, Numbers, StudyView
from percolab.figures.style import PAGE_WIDTH, Axes, size_look
from percolab.lattices.shown import counted

#: By column: the name of the quantity, and its exponent in mathematics.
_LABELS = {
    "bridge_free_largest": ("largest cluster without bridges", "D_B"),
    "backbone_sites": ("sites of the backbone", "D_B"),
    "path_length": ("bonds of the shortest path", r"d_\mathrm{min}"),
    "red_bonds": ("red bonds", r"1/\nu"),
    "conductance": ("conductance $G$", r"t/\nu"),
}


def _draw(figures: StudyView, into: Target) -> Drawn:
    """Draw the mean of every column over spanning samples against L, with its power law."""
    fits = figures.exponents
    assert fits is not None
    drawn = [column for column in fits.values if column.quantity in FLOW_QUANTITIES]
    threshold, source = figures.find_threshold()
    rows = 1 + (len(drawn) > 3)
    columns = -(-len(drawn) // rows)
    numbers = []
    with into.sheet(PAGE_WIDTH * min(columns, 2) / 2, 2.6 * rows + 0.4) as sheet:
        panels: Any = np.atleast_1d(sheet.subplots(rows, columns)).ravel()
        for axes in panels[len(drawn) :]:
            axes.remove()
        panels = panels[: len(drawn)]
        for axes, column in zip(panels, drawn, strict=True):
            laws = [each for each in fits.exponents if each.source == column.meaning]
            numbers.append(_draw_values(axes, column, laws[0] if laws else None))
        elements.letter_panels(panels)
        sheet.set_title(f"{figures.title}, $p = {threshold:.6g}$")
    return sheet.figure, {"threshold": threshold, "threshold_source": source, "quantities": numbers}


def _draw_values(axes: Axes, column: Values, exponent: Exponent | None) -> dict[str, Any]:
    label, symbol = _LABELS[column.name]
    for n, point in enumerate(zip(column.sizes, column.values, column.errors, strict=True)):
        if column.values[n] > 0:
            elements.draw_bars(axes, *point, size_look(n))
    axes.set(xscale="log", yscale="log", xlabel="$L$", ylabel=label)
    record = column.to_dict() | {"exponent": None if exponent is None else exponent.to_dict()}
    if exponent is not None and exponent.law is not None and not exponent.result.rejected:
        sizes = np.geomspace(column.sizes[0], column.sizes[-1], 50)
        axes.plot(sizes, exponent.law(sizes), color="black", linewidth=0.8, zorder=0)
        rising = column.quantity.sign > 0
        at, side = ((0.05, 0.94), "left") if rising else ((0.95, 0.94), "right")
        text = f"${symbol}$ = {exponent.result}{elements.known_text(exponent.known)}"
        axes.annotate(text, at, None, "axes fraction", ha=side, va="top", fontsize=8)
    elements.place_sizes(axes, list(column.sizes))
    elements.plain_ticks(axes)
    return record


def _problem(figures: StudyView) -> str | None:
    words = {word for each in figures.measured() for word in each.task.measure}
    if not words & {"backbone", "path", "conductance", "bridge_free"}:
        return f"what flows was not measured: {figures.how_to_measure('backbone,path,conductance')}"
    if figures.exponents is None or not any(
        each.quantity in FLOW_QUANTITIES for each in figures.exponents.values
    ):
        return "there is no p_c at which exponents can be read off"
    return None


def _describe(numbers: Numbers) -> list[str]:
    sentences = []
    for column in numbers["quantities"]:
        words, exponent = _LABELS[column["quantity"]][0].replace("$", ""), column["exponent"]
        law = f", with {exponent['name']} = {exponent['value']:.4g}" if exponent else ""
        sentences.append(f"The {words} of {counted(len(column['sizes']), 'size')}{law}.")
    return sentences


FLOW = FigureKind(
    help="flow at p_c: backbone, shortest path, red bonds, conductance",
    meaning=(
        "Means over the samples that span at p_c, or at the only p, against L: sites of the "
        "backbone, bonds of the shortest path, red bonds, and the conductance between two sides, "
        "with their power laws with corrections."
    ),
    errors="Error bars are one standard error, of a bootstrap over blocks, p_c with it.",
    problems=(_problem,),
    draw=_draw,
    alt=_describe,
)
