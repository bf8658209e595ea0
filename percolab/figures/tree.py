"""A minimum spanning tree on its lattice as a figure: its bonds by weight, and its trunk.

The trunk is the path between two sides.  matplotlib loads when a figure is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.figures import COLOURS, new_figure
from percolab.figures.axes import set_title
from percolab.figures.configuration import bond_lines, check_drawable, make_map
from percolab.figures.style import Figure
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import unpack_bits
from percolab.trees.given import SpanningTree

#: More grid points than these have bonds too fine to be seen.
MOST_POINTS = 2**16
_TRUNK = COLOURS[1]
#: Light to dark: heavy bonds are dark, as they are the last that the tree takes.
_COLOUR_MAP, _LIGHTEST, _DARKEST = "Blues", 0.4, 1.0
#: Of a bond and of the trunk, in mean bond lengths and in points.
_WIDTHS, _TRUNK_WIDTHS = (0.16, 0.35, 2.4), (0.34, 1.1, 5.0)


def plot_spanning_tree(
    tree: SpanningTree,
    *,
    trunk: NDArray[np.int64] | None = None,
    trunk_name: str = "",
    title: str = "",
) -> tuple[Figure, dict[str, Any]]:
    """Draw a tree on a lattice in the plane; return the figure and every number in it, for JSON.

    trunk: places in ``tree.bonds`` of the bonds that stand out (:meth:`SpanningTree.trunk`).
    trunk_name: what a legend calls it.  title: with matplotlib's mathematics.

    InputError: no lattice in two dimensions, or more points than can be seen.
    """
    lattice = tree.structure
    if not isinstance(lattice, Lattice):
        name = "this" if lattice is None else lattice.name
        raise InputError(
            f"{name}: only the trees of lattices are drawn, as sites have places there"
        )
    check_tree_drawable(lattice, tree.topology.num_points)
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    places = lattice.positions(tree.topology.shape)
    on_trunk = np.zeros(len(tree.bonds), bool)
    on_trunk[np.empty(0, np.int64) if trunk is None else trunk] = True
    low, high = places.min(axis=0), places.max(axis=0)
    ratio = (high - low)[1] / max((high - low)[0], 1e-9)
    width = float(np.clip(5.2 / max(ratio, 0.2), 3.0, 5.2))
    weights = tree.weights.astype(float)
    norm = Normalize(weights.min(initial=np.inf), weights.max(initial=-np.inf))
    if not weights.size:
        norm = Normalize(0.0, 1.0)
    with new_figure(width + 1.2, width * min(ratio, 1.9) + 0.9) as figure:
        figure.set_layout_engine("constrained")
        axes: Any = figure.subplots()
        make_map(axes)
        set_title(figure, title)
        lines, bonds = _make_lines(tree, lattice, places)
        length = (
            float(np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).mean()) if len(lines) else 1
        )
        per_length = width * 72 / max(float((high - low).max()), length)
        colours = _colour_map()
        # Light ones first, so that where lines touch the later ones of the tree are on top.
        for is_trunk, widths in ((False, _WIDTHS), (True, _TRUNK_WIDTHS)):
            chosen = on_trunk[bonds] == is_trunk
            own = {"colors": _TRUNK} if is_trunk else {"cmap": colours, "norm": norm}
            drawn = LineCollection(
                list(lines[chosen]),
                linewidths=_points(widths, length * per_length),
                capstyle="round",
                zorder=2 + is_trunk,
                **own,
            )
            if not is_trunk:
                drawn.set_array(weights[bonds[chosen]])
                shown = drawn
            axes.add_collection(drawn)
        margin = 0.6 * length
        axes.set_xlim(low[0] - margin, high[0] + margin)
        axes.set_ylim(low[1] - margin, high[1] + margin)
        figure.colorbar(shown, ax=axes, shrink=0.7, label="weight")
        if on_trunk.any():
            from matplotlib.lines import Line2D

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


def check_tree_drawable(lattice: Lattice, num_points: int, what: str = "trees") -> None:
    """Raise InputError unless trees, or others, can be drawn on so many points of a lattice."""
    check_drawable(lattice, num_points)
    if lattice.dimension != 2:
        raise InputError(f"{lattice.name}: only {what} in two dimensions are drawn")
    if num_points > MOST_POINTS:
        raise InputError(f"{num_points} grid points, but {what} are drawn of at most {MOST_POINTS}")


def _points(widths: tuple[float, float, float], length: float) -> float:
    """Return the width of a line in points; length: of a bond, in points."""
    share, least, most = widths
    return float(np.clip(share * length, least, most))


def _colour_map() -> Any:
    """Return the colours of weights, without the palest ones, which white paper would hide."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    whole = matplotlib.colormaps[_COLOUR_MAP]
    return ListedColormap(whole(np.linspace(_LIGHTEST, _DARKEST, 256)))


def _make_lines(
    tree: SpanningTree, lattice: Lattice, places: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the tree's bonds as lines (n, 2, 2), and the place of each one's bond (n,)."""
    topology = tree.topology
    lines, _ = bond_lines(lattice, topology, places, tree.words)
    stride, numbers = 32 * topology.num_words, []
    # Class by class the lines of all bonds, and then the second halves of those across a periodic
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
