"""A colour for every cluster: strong for spanning clusters and the largest, muted for the rest.

The strong colours are those of curves; the muted ones have the hues of Paul Tol's "light" scheme
(2021), spread in lightness, so that they differ in grey and for colour-blind readers.  Touching
clusters get different colours, so that they do not look like one: by greedy colouring, smallest
degree last (D. W. Matula and L. L. Beck, J. ACM 30, 417 (1983)).  With it two colours are enough
for a tree, and six for every planar lattice.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.figures import COLOURS
from percolab.figures.elements import add_legend
from percolab.figures.style import Figure
from percolab.lattices.shown import counted
from percolab.lattices.topology import at_other_end, unpack_bits
from percolab.measure.clusters import Clusters

NO_SITE, SINGLE, LARGEST = "#ffffff", "#e2e2e2", COLOURS[0]
SPANNING = (COLOURS[1], COLOURS[4], COLOURS[6], COLOURS[2], COLOURS[7])
MUTED = ("#aae2ff", "#b6c821", "#febac7", "#46c5a1", "#fbe98f", "#71a8dd")
PALETTE = (NO_SITE, SINGLE, LARGEST, *SPANNING, *MUTED)
#: Colours of spins with two states.
TWO_SPINS = ("#20364f", "#f2d9a0")
_FIRST_SPANNING = 3
_FIRST_MUTED = _FIRST_SPANNING + len(SPANNING)
#: The number of largest clusters that differ from their neighbours; the others take turns.
_MOST_KEPT_APART = 20_000
#: The largest number of clusters that a legend names one by one.
_MOST_NAMED = 4


@dataclass(frozen=True)
class Prominent:
    """A cluster that is named in the legend: its number, its colour, and the axes it spans.

    wrapping: the periodic axes around which it wraps
    """

    number: int
    colour: str
    spanning: tuple[str, ...]
    is_largest: bool
    wrapping: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ClusterColours:
    """The colour of every cluster, and the clusters that a legend names.

    of_clusters:  uint8 (n,), index into ``PALETTE``
    of_sites:     uint8 (num_points,), the index of every site's cluster; 0 where there is no site
    grey_singles: whether single sites are grey, with an entry in the legend
    phases:       the name of every cluster's phase if an image has several, else ()
    """

    clusters: Clusters
    of_clusters: np.ndarray
    of_sites: np.ndarray
    prominent: tuple[Prominent, ...]
    grey_singles: bool
    phases: Sequence[str] = ()

    def rgb(self, sites: Any = slice(None)) -> np.ndarray:
        """Return the colours of sites, all or those of an index array: uint8 (..., 3)."""
        return np.asarray(_rgb(PALETTE)[self.of_sites[sites]])

    def add_legend(self, figure: Figure, *, with_bonds: bool) -> None:
        """Add a legend below the panels: prominent clusters, and the meaning of other colours."""
        from matplotlib.legend_handler import HandlerTuple
        from matplotlib.lines import Line2D

        look: dict[str, Any] = {"marker": "o" if with_bonds else "s", "markersize": 6.5}
        look |= {"linestyle": "-" if with_bonds else "none", "linewidth": 2.0}

        def sample(colour: str, **other: Any) -> Line2D:
            return Line2D([], [], color=colour, **look | other)

        entries: list[tuple[Any, str]] = [
            (sample(cluster.colour), self._described(cluster))
            for cluster in self.prominent[:_MOST_NAMED]
        ]
        hidden = self.prominent[_MOST_NAMED:]
        if hidden:
            strong = dict.fromkeys(cluster.colour for cluster in hidden)
            handles = tuple(sample(colour, linestyle="none") for colour in strong)
            ways = {"span" if cluster.spanning else "wrap" for cluster in hidden}
            text = f"{counted(len(hidden), 'more cluster')} that {' or '.join(sorted(ways))}"
            if len(self.prominent) > len({cluster.colour for cluster in self.prominent}):
                text += ", in the same colours again"
            entries.append((handles, text))
        rest = np.delete(self.clusters.sizes, [cluster.number for cluster in self.prominent])
        singles = int(np.count_nonzero(rest == 1))
        others = rest.size - (singles if self.grey_singles else 0)
        text = counted(others, "other cluster")
        if singles and not self.grey_singles:
            text += f", {counted(singles, 'single site')} among them"
        if others:
            several = tuple(sample(colour, linestyle="none") for colour in MUTED[:4])
            entries.append((several, text))
        if singles and self.grey_singles:
            entries.append((sample(SINGLE, linestyle="none"), counted(singles, "single site")))
        add_legend(
            figure, entries, loc="outside lower center", ncols=1 + (len(figure.axes) > 1),
            handler_map={tuple: HandlerTuple(ndivide=None)},
        )  # fmt: skip
        for legend in figure.legends:  # the panels have room for three lines below them
            more = legend.get_window_extent().height / figure.dpi - 0.6
            figure.set_figheight(figure.get_figheight() + max(more, 0.0))

    def _described(self, cluster: Prominent) -> str:
        size = int(self.clusters.sizes[cluster.number])
        text = f"{'largest cluster' if cluster.is_largest else 'cluster'}, "
        text += f"phase {self.phases[cluster.number]}, " if self.phases else ""
        text += f"{size} of {int(self.clusters.sizes.sum())} sites"
        if cluster.spanning == ("source-target",):
            return f"{text}, from the centre to the outermost shell"
        if cluster.spanning:
            text += f", spans along {_listed(cluster.spanning)}"
        return f"{text}, wraps around {_listed(cluster.wrapping)}" if cluster.wrapping else text

    def to_dict(self, title: str, *, drawn: str, layers: list[int] | None = None) -> dict[str, Any]:
        """Return the numbers of a figure of the clusters as plain JSON values."""
        clusters, prominent = self.clusters, []
        for each in self.prominent:
            size, label = int(clusters.sizes[each.number]), int(clusters.roots[each.number])
            ways: dict[str, Any] = {"spanning": list(each.spanning)}
            ways |= {"wrapping": list(each.wrapping)} if each.wrapping else {}
            ways |= {"phase": self.phases[each.number]} if self.phases else {}
            prominent.append({"label": label, "size": size, **ways, "colour": each.colour})
        summary = {"title": title, "drawn": drawn, **clusters.summary(), "prominent": prominent}
        return summary if layers is None else {**summary, "layers": layers}


def _rgb(colours: Sequence[Any]) -> np.ndarray:
    """Return colours in any form of matplotlib's as uint8 (n, 3)."""
    from matplotlib.colors import to_rgb

    return np.round(255 * np.array([to_rgb(colour) for colour in colours])).astype(np.uint8)


def choose_colours(
    clusters: Clusters, *, grey_singles: bool = True, phases: Sequence[str] = ()
) -> ClusterColours:
    """Choose the colours of clusters; equal clusters give equal colours.

    grey_singles: whether single sites are grey, even next to each other, or coloured like others.
    phases: names, as in :class:`ClusterColours`.
    """
    colours = np.full(clusters.sizes.size, PALETTE.index(SINGLE), np.uint8)
    prominent = _prominent(clusters)
    taken = {cluster.number for cluster in prominent}
    _choose_muted(clusters, colours, taken, least=2 if grey_singles else 1)
    for cluster in prominent:
        colours[cluster.number] = PALETTE.index(cluster.colour)
    of_sites = np.append(colours, np.uint8(0))[clusters.numbers]
    return ClusterColours(clusters, colours, of_sites, prominent, grey_singles, phases)


def spin_rgb(spins: np.ndarray, there: np.ndarray, states: int) -> np.ndarray:
    """Return the colours of spins, uint8 (num_points, 3); points without a site are white.

    spins: uint8 (num_points,), below ``states``.  there: bool (num_points,).  Two states are dark
    and light; up to eight have the strong colours, and more a scale from dark to light.
    """
    from matplotlib import colormaps

    table: Any = TWO_SPINS if states == 2 else COLOURS
    if states > len(COLOURS):
        table = colormaps["cividis"](np.linspace(0, 1, states))
    rgb: np.ndarray = _rgb(table)[spins]
    rgb[~there] = 255
    return rgb


def _prominent(clusters: Clusters) -> tuple[Prominent, ...]:
    """Return the spanning clusters, the largest first, and the largest cluster."""
    axes: dict[int, list[str]] = {}
    around: dict[int, list[str]] = {}
    for ways, named in ((axes, clusters.spanning), (around, clusters.wrapping)):
        for name, numbers in named.items():
            for number in numbers.tolist():
                ways.setdefault(number, []).append(name)
    if not clusters.sizes.size:
        return ()
    largest = int(clusters.by_size[0])
    order = sorted({*axes, *around}, key=lambda number: (-clusters.sizes[number], number))
    strong = _in_turn(order, _touching(clusters, np.array(order, np.int64)) if order else {})
    prominent = [
        Prominent(
            number, colour, tuple(axes.get(number, ())), number == largest,
            tuple(around.get(number, ())),
        )
        for number, colour in strong.items()
    ]  # fmt: skip
    if largest not in order and clusters.sizes[largest] > 1:
        prominent.insert(0, Prominent(largest, LARGEST, (), True))
    return tuple(prominent)


def _in_turn(order: list[int], touching: dict[int, list[int]]) -> dict[int, str]:
    """Return a strong colour for each of these clusters, in turn.

    The colour of a touching cluster is skipped, unless all are taken.
    """
    chosen: dict[int, str] = {}
    for n, number in enumerate(order):
        turn = [SPANNING[(n + k) % len(SPANNING)] for k in range(len(SPANNING))]
        around = {chosen.get(other) for other in touching.get(number, ())}
        chosen[number] = next((colour for colour in turn if colour not in around), turn[0])
    return chosen


def _choose_muted(clusters: Clusters, codes: np.ndarray, taken: set[int], *, least: int) -> None:
    """Give a muted colour to every cluster of ``least`` sites or more that is not in ``taken``."""
    others = [n for n in clusters.by_size.tolist() if clusters.sizes[n] >= least and n not in taken]
    apart = others[:_MOST_KEPT_APART]
    touching = _touching(clusters, np.array(apart, np.int64))
    colours = range(_FIRST_MUTED, len(PALETTE))
    used: Counter[int] = Counter()
    for number in _fewest_neighbours_last(apart, touching):
        around = Counter(int(codes[other]) for other in touching.get(number, ()))
        # Among the colours seen least around it (mostly not at all), take the least used one.
        chosen = min(colours, key=lambda colour: (around[colour], used[colour], colour))
        codes[number] = chosen
        used[chosen] += 1
    for turn, number in enumerate(others[_MOST_KEPT_APART:]):
        codes[number] = colours[turn % len(colours)]


def _fewest_neighbours_last(numbers: list[int], touching: dict[int, list[int]]) -> list[int]:
    """Return clusters in an order in which each has few neighbours among those before it.

    The cluster with the fewest neighbours is removed repeatedly; among equal ones the smallest,
    which is last in ``numbers``.
    """
    from heapq import heapify, heappop, heappush

    degree = {number: len(touching.get(number, ())) for number in numbers}
    place = {number: -n for n, number in enumerate(numbers)}
    heap = [(degree[number], place[number], number) for number in numbers]
    heapify(heap)
    taken_away: list[int] = []
    while heap:
        least, _, number = heappop(heap)
        # Skip outdated entries: a cluster is pushed again when it has fewer neighbours.
        if degree.get(number) != least:
            continue
        del degree[number]
        taken_away.append(number)
        for other in touching.get(number, ()):
            if other in degree:
                degree[other] -= 1
                heappush(heap, (degree[other], place[other], other))
    return taken_away[::-1]


def _touching(clusters: Clusters, numbers: np.ndarray) -> dict[int, list[int]]:
    """Return, for each of these clusters, those that a bond of the lattice connects it with."""
    topology, count = clusters.topology, clusters.sizes.size
    kept = np.zeros(count + 1, bool)
    kept[numbers] = True
    # Store the number plus 1, so that 0 means no cluster.
    here = np.where(kept[clusters.numbers], clusters.numbers.astype(np.int64) + 1, 0)
    pairs = []
    for klass in range(topology.num_classes):
        exists = unpack_bits(topology.exists[klass], topology.num_points)
        there = at_other_end(topology, klass, here)
        differ = exists & (here != there) & (here > 0) & (there > 0)
        pairs.append(np.unique(here[differ] * (count + 1) + there[differ]))
    touching: dict[int, set[int]] = {}
    for pair in np.concatenate(pairs).tolist():
        one, other = divmod(pair, count + 1)
        touching.setdefault(one - 1, set()).add(other - 1)
        touching.setdefault(other - 1, set()).add(one - 1)
    return {number: sorted(others) for number, others in touching.items()}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
