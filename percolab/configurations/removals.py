"""remove_each: the clusters of a graph without each single site, or each single bond.

One depth-first search finds them all (R. Tarjan, SIAM J. Comput. 1, 146 (1972)): without a site its
cluster falls apart into the branches below it from which no bond leads above it, and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from percolab.flows.branches import search_branches
from percolab.lattices.graph import Graph, make_graph
from percolab.lattices.shown import Shown
from percolab.store.output_files import Kind, begins
from percolab.tasks.values import check_choice

if TYPE_CHECKING:
    import pandas

Integers = NDArray[np.int64]
REMOVALS_CSV = Kind("a table of removals", begins(rb"without,(to,)?largest,clusters\n"))


@dataclass(frozen=True, eq=False, repr=False)
class Removals(Shown):
    """The result of :func:`remove_each`.

    graph:    the graph, whose sites or bonds are removed one at a time
    model:    "site" or "bond": what is removed
    largest:  int64 (num_sites,) or (num_bonds,), sites of the largest cluster after each removal
    clusters: the same shape, number of clusters after each removal
    intact:   sites of the largest cluster, and number of clusters, of the whole graph
    """

    graph: Graph
    model: str
    largest: Integers
    clusters: Integers
    intact: tuple[int, int]

    def name(self, number: int) -> Any:
        """Return the name of a site, or the names of the two sites of a bond."""
        if self.model == "site":
            return self.graph.site_name(number)
        return tuple(map(self.graph.site_name, self.graph.bonds.pairs[number]))

    @property
    def order(self) -> Integers:
        """Sites or bonds, first those whose removal leaves the smallest largest cluster."""
        return np.lexsort((-self.clusters, self.largest))

    def to_rows(self) -> list[tuple[Any, int, int]]:
        """Return (name, largest, clusters) of each removal, in the order of :attr:`order`."""
        return [(self.name(n), int(self.largest[n]), int(self.clusters[n])) for n in self.order]

    def to_table(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return headings and rows, sorted as in :attr:`order`; bonds have two site names."""
        names = ("without",) if self.model == "site" else ("without", "to")
        rows = [
            (*((name,) if self.model == "site" else name), largest, clusters)
            for name, largest, clusters in self.to_rows()
        ]
        return (*names, "largest", "clusters"), rows

    def to_pandas(self) -> pandas.DataFrame:
        """Return :meth:`to_table` as a pandas.DataFrame; InputError: pandas is not installed."""
        from percolab.tables.frames import imported

        header, rows = self.to_table()
        return imported("pandas").DataFrame(rows, columns=list(header))

    def _facts(self) -> dict[str, Any]:
        first, left, _ = [*self.to_rows(), ("none", *self.intact)][0]
        return {
            "graph": self.graph.name,
            "largest cluster": self.intact[0],
            f"smallest without one {self.model}": f"{left}, without {first}",
        }


def remove_each(
    graph: Any, *, model: str = "site", multi: bool = False, columns: Any = None
) -> Removals:
    """Return the largest cluster and the number of clusters after removing each site, or bond.

    graph, multi, columns: as :func:`percolab.sweep` takes them.  model: "site" or "bond".
    InputError (one line): a graph that cannot be used.

    >>> found = remove_each([(0, 1), (1, 2), (2, 3), (3, 4)])
    >>> found.largest.tolist(), found.clusters.tolist()
    ([4, 3, 2, 3, 4], [1, 2, 2, 2, 1])
    """
    check_choice("model", model, ("bond", "site"))
    found = make_graph(graph, multi=multi, columns=columns)
    pairs, count = found.bonds.pairs.astype(np.int64), found.num_sites
    bonds = np.tile(np.arange(len(pairs)), 2)
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    by_site = np.argsort(ends[:, 0], kind="stable")
    starts = np.searchsorted(ends[by_site, 0], np.arange(count + 1))
    tree = search_branches(starts, ends[by_site, 1], bonds[by_site], count)
    return Removals(found, model, *_read(found, model, *tree))


def _read(
    graph: Graph, model: str, above: Integers, via: Integers, sizes: Integers, root: Integers,
    is_cut: NDArray[np.bool_], is_bridge: NDArray[np.bool_],
) -> tuple[Integers, Integers, tuple[int, int]]:  # fmt: skip
    """Return the largest cluster and number of clusters without each, and of the whole graph."""
    count = graph.num_sites
    whole = sizes[root]
    roots = np.flatnonzero(root == np.arange(count))
    first, second = [*np.sort(sizes[roots])[::-1].tolist(), 0][:2]
    # The size of the largest of the other clusters, which may equal that of the site's own.
    others = np.where(whole == first, second, first)
    if model == "bond":
        bridges = np.flatnonzero(is_bridge)
        largest = np.full(graph.num_bonds, first)
        clusters = np.full(graph.num_bonds, roots.size)
        below, rest = sizes[bridges], whole[bridges] - sizes[bridges]
        largest[via[bridges]] = np.maximum(np.maximum(below, rest), others[bridges])
        clusters[via[bridges]] += 1
        return largest, clusters, (first, roots.size)
    largest, rest, parts = np.zeros(count, np.int64), whole - 1, np.zeros(count, np.int64)
    cut = np.flatnonzero(is_cut)
    np.maximum.at(largest, above[cut], sizes[cut])
    np.subtract.at(rest, above[cut], sizes[cut])
    np.add.at(parts, above[cut], 1)
    largest = np.maximum(np.maximum(largest, rest), others)
    return largest, roots.size - 1 + parts + (rest > 0), (first, roots.size)
