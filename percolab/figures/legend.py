"""What a figure of clusters says in words and numbers: its legend, and the same as a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from percolab.figures.colours import MUTED, SINGLE, ClusterColours, Prominent
from percolab.figures.style import Figure
from percolab.lattices.shown import counted
from percolab.measure.clusters import Clusters

#: Clusters that a legend names one by one.
_MOST_NAMED = 4


def add_legend(
    figure: Figure,
    clusters: Clusters,
    colours: ClusterColours,
    *,
    with_bonds: bool,
    grey_singles: bool = True,
) -> None:
    """Name the prominent clusters below the panels, and what the other colours mean.

    grey_singles: whether single sites have a colour, and so an entry, of their own.
    """
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"marker": "o" if with_bonds else "s", "markersize": 6.5}
    look |= {"linestyle": "-" if with_bonds else "none", "linewidth": 2.0}

    def sample(colour: str, **other: Any) -> Line2D:
        return Line2D([], [], color=colour, **look | other)

    entries: list[tuple[Any, str]] = [
        (sample(item.colour), _described(item, clusters))
        for item in colours.prominent[:_MOST_NAMED]
    ]
    hidden = len(colours.prominent) - _MOST_NAMED
    if hidden > 0:
        entries[-1] = (entries[-1][0], f"{entries[-1][1]}, and {hidden} more that span")
    named = [item.number for item in colours.prominent]
    rest = np.delete(clusters.sizes, named)
    singles = int(np.count_nonzero(rest == 1))
    others = rest.size - (singles if grey_singles else 0)
    text = counted(others, "other cluster")
    if singles and not grey_singles:
        text += f", {counted(singles, 'single site')} among them"
    if others:
        several = tuple(sample(colour, linestyle="none") for colour in MUTED[:4])
        entries.append((several, text))
    if singles and grey_singles:
        entries.append((sample(SINGLE, linestyle="none"), counted(singles, "single site")))
    if entries:
        columns = 2 if len(figure.axes) > 1 and len(entries) > 1 else 1
        figure.legend(
            *zip(*entries, strict=True), loc="outside lower center", ncols=columns,
            handler_map={tuple: HandlerTuple(ndivide=None)},
        )  # fmt: skip


def _described(item: Prominent, clusters: Clusters) -> str:
    size = int(clusters.sizes[item.number])
    name = "largest cluster" if item.is_largest else "cluster"
    text = f"{name}, {size} of {int(clusters.sizes.sum())} sites"
    if item.spanning == ("source-target",):
        return f"{text}, from the centre to the outermost shell"
    if item.spanning:
        text += f", spans along {_listed(item.spanning)}"
    return f"{text}, wraps around {_listed(item.wrapping)}" if item.wrapping else text


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def legend_numbers(
    clusters: Clusters,
    colours: ClusterColours,
    title: str,
    *,
    drawn: str,
    layers: list[int] | None = None,
) -> dict[str, Any]:
    """Return what a figure of clusters shows, as plain JSON values."""
    prominent = [
        {
            "label": int(clusters.roots[item.number]),
            "size": int(clusters.sizes[item.number]),
            "spanning": list(item.spanning),
            **({"wrapping": list(item.wrapping)} if item.wrapping else {}),
            "colour": item.colour,
        }
        for item in colours.prominent
    ]
    summary = {"title": title, "drawn": drawn, **clusters.summary(), "prominent": prominent}
    return summary if layers is None else {**summary, "layers": layers}
