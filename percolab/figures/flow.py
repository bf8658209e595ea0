"""What flows through a sample as a figure: the backbone, its red bonds, and the dangling ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from percolab.figures import COLOURS, new_figure
from percolab.figures.configuration import bond_lines, make_map
from percolab.figures.elements import set_title
from percolab.figures.style import Figure
from percolab.figures.tree import check_tree_drawable
from percolab.flows.flow import Flow
from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import counted
from percolab.lattices.topology import Topology, set_bits

#: Of other clusters, dangling ends, the backbone and red bonds: colour, and width in bond lengths.
_LOOKS = (("0.85", 0.12), ("#8fc3ea", 0.16), (COLOURS[0], 0.24), (COLOURS[1], 0.42))
_THINNEST, _THICKEST = 0.3, 4.0


def plot_flow(
    flow: Flow, lattice: Lattice, topology: Topology, *, title: str = ""
) -> tuple[Figure, dict[str, Any]]:
    """Draw the open bonds by what flows in them; return the figure and its numbers, for JSON.

    title: with matplotlib's mathematics.
    InputError: no lattice in two dimensions, or more points than can be seen.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    check_tree_drawable(lattice, topology.num_points, "backbones")
    places = lattice.positions(topology.shape)
    low, high = places.min(axis=0), places.max(axis=0)
    across, along = np.maximum(high - low, 1e-9)
    ratio = float(np.clip(along / across, 0.3, 1.9))
    width = float(np.clip(5.2 / ratio, 3.0, 5.2))
    kinds = _kinds(flow)
    with new_figure(width + 0.4, width * ratio + 1.2) as figure:
        figure.set_layout_engine("constrained")
        axes: Any = figure.subplots()
        make_map(axes)
        set_title(figure, title)
        every, _ = bond_lines(lattice, topology, places, topology.exists)
        length = float(np.linalg.norm(every[:, 1] - every[:, 0], axis=1).max(initial=0.0)) or 1.0
        per_length = width * 72 / max(float(across), float(along), length)
        handles = []
        for order, ((name, chosen), (colour, share)) in enumerate(zip(kinds.items(), _LOOKS)):
            words = np.zeros_like(topology.exists)
            set_bits(words.reshape(-1), flow.places[chosen])
            lines, _ = bond_lines(lattice, topology, places, words)
            points = float(np.clip(share * length * per_length, _THINNEST, _THICKEST))
            look: dict[str, Any] = {"linewidths": points, "colors": colour, "capstyle": "round"}
            axes.add_collection(LineCollection(list(lines), zorder=2 + order, **look))
            label = f"{name}: {counted(int(chosen.sum()), 'bond')}"
            line = Line2D([], [], color=colour, linewidth=max(points, 1.5), label=label)
            handles += [line] if chosen.any() else []
        margin = 0.6 * length
        axes.set_xlim(low[0] - margin, high[0] + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)
        if not flow.connected:
            handles.append(Line2D([], [], linestyle="none", label="the sides are not connected"))
        if handles:
            figure.legend(handles=handles[::-1], loc="outside lower center", ncols=1 + (width > 4))
    drawn = {name: flow.bonds[chosen].tolist() for name, chosen in kinds.items()}
    return figure, {"title": title, **flow.summary(), "bonds_drawn": drawn}


def _kinds(flow: Flow) -> dict[str, np.ndarray]:
    """Return by name which open bonds are of each kind, bool (n,), in the order of the looks."""
    backbone = flow.backbone & ~flow.red
    others = ~(flow.dangling | flow.backbone)
    return {
        "other clusters": others,
        "dangling ends": flow.dangling,
        "backbone": backbone,
        "red": flow.red,
    }
