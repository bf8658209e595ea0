"""components: strongly connected components of a directed graph, and its bow tie.

The *core* is the largest strongly connected component, *in* are the sites that lead to it and *out*
those that it leads to; *tubes* lead from in to out past the core, *tendrils* can be reached from in
or lead to out, and *others* are the rest: A. Broder et al., Comput. Netw. 33, 309 (2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.graph_files import GraphData, read_graph
from percolab.lattices.graph_files.graph_data import Edges, merge_edges
from percolab.lattices.graph_files.objects import graph_from_object
from percolab.lattices.shown import Shown

#: The parts of a bow tie, by their numbers in ``parts``.
PARTS = ("core", "in", "out", "tubes", "tendrils", "others")
_MATRIX_FILES = (".mtx", ".npz")


@dataclass(frozen=True, eq=False, repr=False)
class DirectedComponents(Shown):
    """The result of :func:`components`.

    labels: int64 (num_sites,), for every site the smallest site of its strongly connected component
    parts:  int8 (num_sites,), for every site the index in PARTS of its part of the bow tie
    names:  names of the sites, or None if they have none
    """

    labels: NDArray[np.int64]
    parts: NDArray[np.int8]
    names: tuple[Any, ...] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The number of sites in each part of the bow tie."""
        counts = np.bincount(self.parts, minlength=len(PARTS))
        return dict(zip(PARTS, counts.tolist(), strict=True))

    @property
    def num_components(self) -> int:
        return np.unique(self.labels).size

    def sites(self, part: str) -> list[Any]:
        """Return the sites of a part of the bow tie, by name if they have names.

        InputError: an unknown part.
        """
        if part not in PARTS:
            raise InputError(f"part = {part!r}, but it must be one of {', '.join(PARTS)}")
        sites = np.flatnonzero(self.parts == PARTS.index(part)).tolist()
        return sites if self.names is None else [self.names[site] for site in sites]

    def _facts(self) -> dict[str, Any]:
        return {"strongly connected components": self.num_components, **self.sizes}


def components(
    graph: Any, *, num_sites: int | None = None, columns: str | Sequence[Any] | None = None
) -> DirectedComponents:
    """Return the strongly connected components of a directed graph, and the parts of its bow tie.

    graph: a networkx graph; a scipy.sparse matrix, whose stored entry (i, j) is an edge from i to
    j; or a data frame, an edge array (n, 2), a list of edges or an edge-list file, where each row
    is an edge from its first site to its second.  An undirected networkx graph has edges both ways.
    num_sites: if it is not the largest site number plus one.  columns: as for
    :func:`percolab.load_graph`.

    InputError (one line): any other argument.

    >>> components([(0, 1), (1, 2), (2, 1), (2, 3)]).sizes
    {'core': 2, 'in': 1, 'out': 1, 'tubes': 0, 'tendrils': 0, 'others': 0}
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    data, both_ways = _read(graph, num_sites, columns)
    count, (one, other) = data.num_sites, data.bonds.astype(np.int64).T
    if both_ways:
        one, other = np.concatenate([one, other]), np.concatenate([other, one])
    matrix = coo_array((np.ones(one.size, bool), (one, other)), (count, count)).tocsr()
    _, strong = connected_components(matrix, connection="strong")
    _, smallest, sizes = np.unique(strong, return_index=True, return_counts=True)
    labels = smallest[strong]
    first = smallest[sizes == sizes.max()].min()
    core = labels == first
    after, before = _reached(matrix, core), _reached(matrix.T.tocsr(), core)
    ways_in, ways_out = before & ~core, after & ~core
    from_in, to_out = _reached(matrix, ways_in), _reached(matrix.T.tocsr(), ways_out)
    chosen = [core, ways_in, ways_out, from_in & to_out, from_in | to_out]
    parts = np.select(chosen, np.arange(len(chosen)), len(chosen)).astype(np.int8)
    return DirectedComponents(labels.astype(np.int64), parts, data.names)


def _read(graph: Any, num_sites: int | None, columns: Any) -> tuple[GraphData, bool]:
    """Return the directed edges, and whether each edge also leads back."""
    options: dict[str, Any] = {"num_sites": num_sites, "columns": columns, "multi": True}
    if isinstance(graph, str | Path):
        if set(Path(graph).suffixes) & set(_MATRIX_FILES):
            raise InputError(
                f"{graph}: a matrix file has no directions here; give it as a scipy.sparse array"
            )
        return read_graph(graph, **options), False
    if hasattr(graph, "tocoo"):
        entries = graph.tocoo()
        if entries.shape[0] != entries.shape[1]:
            raise InputError(f"the matrix has the shape {entries.shape}, but it must be square")
        edges = Edges(entries.shape[0], np.stack(entries.coords, axis=1).astype(np.int32))
        return merge_edges(edges, "the matrix", multi=True), False
    is_directed = getattr(graph, "is_directed", None)
    return graph_from_object(graph, **options), is_directed is not None and not is_directed()


def _reached(matrix: Any, start: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which sites can be reached from the start sites, including these."""
    reached, new = start.copy(), np.flatnonzero(start)
    while new.size:
        ends = np.unique(matrix[new].indices)
        new = ends[~reached[ends]]
        reached[new] = True
    return reached
