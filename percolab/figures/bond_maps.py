"""Bonds of one sample as a figure: a minimum spanning tree and its trunk, or the flow.

The trunk is the path between two sides.  A figure of the flow shows the backbone, its red bonds,
and the dangling ends.  matplotlib is imported when a figure is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.figures import COLOURS, new_figure
from percolab.figures.configuration import bond_lines, check_drawable, draw_lines, make_map
from percolab.figures.elements import set_title
from percolab.figures.style import Axes, Figure
from percolab.flows.flow import Flow
from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import counted
from percolab.lattices.topology import Topology, set_bits, unpack_bits
from percolab.trees.given import SpanningTree

#: With more grid points than this, bonds are too fine to be seen.
MOST_POINTS = 2**16
_TRUNK = COLOURS[1]
#: Light to dark: heavy bonds, which the tree takes last, are dark.
_COLOUR_MAP, _LIGHTEST, _DARKEST = "Blues", 0.4, 1.0
#: Widths of a bond and of the trunk: in bond lengths, and the smallest and largest in points.
_WIDTHS, _TRUNK_WIDTHS = (0.16, 0.35, 2.4), (0.34, 1.1, 5.0)
#: Colour, and width in bond lengths, of other clusters, dangling ends, backbone and red bonds.
_LOOKS = (("0.85", 0.12), ("#8fc3ea", 0.16), (COLOURS[0], 0.24), (COLOURS[1], 0.42))
_THINNEST, _THICKEST = 0.3, 4.0


def check_tree_drawable(lattice: Lattice, num_points: int, what: str = "trees") -> None:
    """Raise InputError unless trees, or ``what``, can be drawn for this lattice and size."""
    check_drawable(lattice, num_points)
    if lattice.dimension != 2:
        raise InputError(f"{lattice.name}: only {what} in two dimensions are drawn")
    if num_points > MOST_POINTS:
        raise InputError(
            f"{num_points} grid points, but {what} are drawn for at most {MOST_POINTS}"
        )


@contextmanager
def _map(
    places: NDArray[np.float64], length: float, title: str, more: tuple[float, float]
) -> Iterator[tuple[Figure, Axes, float]]:
    """Yield a figure with a map of sites at these places, its axes, and a bond's length in points.

    length: of a bond.  more: inches that legends and colour bars add to width and height.
    """
    low, high = places.min(axis=0), places.max(axis=0)
    across, along = high - low
    ratio = float(np.clip(along / max(across, 1e-9), 0.3, 1.9))
    width = float(np.clip(5.2 / ratio, 3.0, 5.2))
    with new_figure(width + more[0], width * ratio + more[1]) as figure:
        axes: Any = figure.subplots()
        make_map(axes)
        set_title(figure, title)
        yield figure, axes, length * width * 72 / max(across, along, length)
        margin = 0.6 * length
        axes.set_xlim(low[0] - margin, high[0] + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)


def plot_spanning_tree(
    tree: SpanningTree,
    *,
    trunk: NDArray[np.int64] | None = None,
    trunk_name: str = "",
    title: str = "",
) -> tuple[Figure, dict[str, Any]]:
    """Draw a tree on a lattice in the plane; return the figure and every number in it, for JSON.

    trunk: indices in ``tree.bonds`` of the highlighted bonds (:meth:`SpanningTree.trunk`).
    trunk_name: its name in the legend.  title: may contain matplotlib's mathematics.

    InputError: not a lattice in two dimensions, or more points than can be seen.
    """
    lattice = tree.structure
    if not isinstance(lattice, Lattice):
        name = "this" if lattice is None else lattice.name
        raise InputError(f"{name}: only trees on lattices are drawn, whose sites have coordinates")
    check_tree_drawable(lattice, tree.topology.num_points)
    import matplotlib
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.lines import Line2D

    on_trunk = np.zeros(len(tree.bonds), bool)
    on_trunk[np.empty(0, np.int64) if trunk is None else trunk] = True
    places = lattice.positions(tree.topology.shape)
    lines, bonds = _make_lines(tree, lattice, places)
    length = float(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).mean()) if len(lines) else 1.0
    weights = tree.weights.astype(float)
    # Leave out the palest colours, which are invisible on white paper.
    shades = matplotlib.colormaps[_COLOUR_MAP](np.linspace(_LIGHTEST, _DARKEST, 256))
    look: dict[str, Any] = {"cmap": ListedColormap(shades)}
    look["norm"] = Normalize(weights.min(initial=np.inf), weights.max(initial=-np.inf))
    if not weights.size:
        look["norm"] = Normalize(0.0, 1.0)
    with _map(places, length, title, (1.2, 0.9)) as (figure, axes, points):
        # Draw light bonds first, so that heavier bonds are on top where lines touch.
        for is_trunk, widths in ((False, _WIDTHS), (True, _TRUNK_WIDTHS)):
            chosen = on_trunk[bonds] == is_trunk
            own = {"colors": _TRUNK} if is_trunk else look | {"array": weights[bonds[chosen]]}
            own |= {"linewidths": float(np.clip(widths[0] * points, *widths[1:]))}
            drawn = draw_lines(axes, lines[chosen], capstyle="round", zorder=2 + is_trunk, **own)
            if not is_trunk:
                figure.colorbar(drawn, ax=axes, shrink=0.7, label="weight")
        if on_trunk.any():
            largest = tree.weights[on_trunk].max().item()
            label = f"{trunk_name or 'trunk'}: {on_trunk.sum()} bonds, largest weight {largest:.6g}"
            line = Line2D([], [], color=_TRUNK, linewidth=2.5, label=label)
            figure.legend(handles=[line], loc="outside lower center")
    numbers = {
        "title": title,
        **tree.to_dict(),
        "trunk": tree.bonds[on_trunk].tolist(),
        "bonds_drawn": tree.bonds.tolist(),
        "weights": tree.weights.tolist(),
    }
    return figure, numbers


def _make_lines(
    tree: SpanningTree, lattice: Lattice, places: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the tree's bonds as lines (n, 2, 2), and the index of each line's bond (n,)."""
    topology = tree.topology
    lines, _ = bond_lines(lattice, topology, places, tree.words)
    stride, numbers = 32 * topology.num_words, []
    # For each class the lines of all bonds, then the second halves of bonds across a periodic
    # boundary.
    for klass in range(topology.num_classes):
        owners = np.flatnonzero(unpack_bits(tree.words[klass], topology.num_points))
        numbers.append(klass * stride + owners)
        if topology.periodic_words is not None:
            crosses = unpack_bits(topology.periodic_words[klass], topology.num_points)[owners]
            numbers.append(klass * stride + owners[crosses])
    order = np.argsort(tree.numbers)
    at = np.searchsorted(tree.numbers, np.concatenate(numbers), sorter=order)
    return lines, order[at]


def plot_flow(
    flow: Flow, lattice: Lattice, topology: Topology, *, title: str = ""
) -> tuple[Figure, dict[str, Any]]:
    """Draw the open bonds by their part in the flow; return the figure and its numbers, for JSON.

    title: may contain matplotlib's mathematics.
    InputError: not a lattice in two dimensions, or more points than can be seen.
    """
    from matplotlib.lines import Line2D

    check_tree_drawable(lattice, topology.num_points, "backbones")
    places = lattice.positions(topology.shape)
    every, _ = bond_lines(lattice, topology, places, topology.exists)
    length = float(np.linalg.norm(every[:, 1] - every[:, 0], axis=1).max(initial=0.0)) or 1.0
    # Masks of the open bonds of each kind, in the order of _LOOKS.
    kinds = {
        "other clusters": ~(flow.dangling | flow.backbone),
        "dangling ends": flow.dangling,
        "backbone": flow.backbone & ~flow.red,
        "red": flow.red,
    }
    with _map(places, length, title, (0.4, 1.2)) as (figure, axes, points):
        handles = []
        for order, ((name, chosen), (colour, share)) in enumerate(zip(kinds.items(), _LOOKS)):
            words = np.zeros_like(topology.exists)
            set_bits(words.reshape(-1), flow.places[chosen])
            lines, _ = bond_lines(lattice, topology, places, words)
            width = float(np.clip(share * points, _THINNEST, _THICKEST))
            look: dict[str, Any] = {"linewidths": width, "colors": colour, "capstyle": "round"}
            draw_lines(axes, lines, zorder=2 + order, **look)
            label = f"{name}: {counted(int(chosen.sum()), 'bond')}"
            line = Line2D([], [], color=colour, linewidth=max(width, 1.5), label=label)
            handles += [line] if chosen.any() else []
        if not flow.connected:
            handles.append(Line2D([], [], linestyle="none", label="the sides are not connected"))
        if handles:
            columns = 1 + (figure.get_figwidth() > 4.4)
            figure.legend(handles=handles[::-1], loc="outside lower center", ncols=columns)
    drawn = {name: flow.bonds[chosen].tolist() for name, chosen in kinds.items()}
    return figure, {"title": title, **flow.summary(), "bonds_drawn": drawn}
