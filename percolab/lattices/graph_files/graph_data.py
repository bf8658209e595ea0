"""GraphData: the sites and bonds of a file, self-loops left out, parallel edges merged."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.shown import Shown, counted, few
from percolab.lattices.topology import MAX_POINTS

#: The note on a graph whose edges have a direction.
DIRECTED = "is directed, but a bond has no direction: u to v and v to u are one bond, u - v"
#: The note on a matrix that may be that of a directed graph.
NOT_SYMMETRIC = "is not symmetric, but a bond has no direction: entry (i, j) alone is bond i - j"
#: Sites that a file may have unless their number is given: this many, and so many more per edge.
FREE_SITES, SITES_PER_EDGE = 10**6, 64


class Edges(NamedTuple):
    """The edges of a graph as in its file or object, before any are left out or merged.

    num_sites: sites, numbered from 0
    ends:      int32 (num_edges, 2), the two sites of every edge
    weights:   int64 or float64 (num_edges,), finite; None where they are not requested
    names:     of the sites, where they are not just their numbers
    notes:     what a user should know about the file, one line each
    is_matrix: edges are entries of an adjacency matrix
    base:      the number that the file gives to site 0
    """

    num_sites: int
    ends: np.ndarray
    weights: np.ndarray | None = None
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    is_matrix: bool = False
    base: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class GraphData(Shown):
    """Sites and bonds of a graph, as ``graph_topology`` takes them.

    num_sites:  sites, numbered from 0
    bonds:      int32 (num_bonds, 2), read-only, the two sites of each bond in the file's order;
                no self-loops
    names:      the sites' names, where they are not just their numbers
    num_loops:  self-loops that were left out: they join nothing
    num_merged: parallel edges that were merged into another one
    notes:      what a user should know about the file, one line each
    weights:    int64 or float64 (num_bonds,), read-only, the bonds' weights, finite; None where
                they are not requested
    """

    num_sites: int
    bonds: np.ndarray
    names: tuple[str, ...] | None = None
    num_loops: int = 0
    num_merged: int = 0
    notes: tuple[str, ...] = ()
    weights: np.ndarray | None = None

    def _facts(self) -> dict[str, object]:
        return {
            "sites": self.num_sites,
            "bonds": len(self.bonds),
            **({} if self.names is None else {"names": few(self.names)}),
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }

    def __post_init__(self) -> None:
        for array in (self.bonds, self.weights):
            if array is not None:
                array.setflags(write=False)


def check_options(num_sites: Any, multi: Any) -> None:
    """Raise InputError unless num_sites is None or an integer, and multi True or False."""
    if not isinstance(multi, bool | np.bool_):
        raise InputError(f"multi = {multi!r}, but it must be True or False")
    is_integer = isinstance(num_sites, int | np.integer) and not isinstance(num_sites, bool)
    if num_sites is not None and not is_integer:
        raise InputError(f"num_sites = {num_sites!r}, but only integers are allowed")


def check_num_sites(path: Path | str, claimed: int, num_edges: int, requested: int | None) -> None:
    """Raise InputError unless a file's number of sites is possible, plausible and as requested.

    A few edges between sites with huge numbers would make gigabytes of isolated sites.
    """
    if not 1 <= claimed <= MAX_POINTS:
        raise InputError(f"{path}: has {claimed} sites, but a graph has 1 to {MAX_POINTS}")
    if requested is not None and requested != claimed:
        raise InputError(f"{path}: has {claimed} sites, but {requested} were requested")
    if requested is None and claimed > FREE_SITES + SITES_PER_EDGE * num_edges:
        raise InputError(
            f"{path}: {claimed} sites for {num_edges} edges, more than {SITES_PER_EDGE} per "
            f"edge plus {FREE_SITES}; renumber the sites 0, 1, 2, ... or give the number of sites"
        )


def merge_edges(edges: Edges, where: Path | str, multi: bool) -> GraphData:
    """Return the graph of edges without self-loops; merge parallel edges unless ``multi``.

    Entries (i, j) and (j, i) of a matrix are one edge, with ``multi`` or without.
    A merged bond has the least weight of its edges.

    where: the file, for errors.  InputError: two entries of one edge have different weights.
    """
    joins = edges.ends[:, 0] != edges.ends[:, 1]
    num_loops, num_merged = joins.size - int(np.count_nonzero(joins)), 0
    ends, weights, notes = edges.ends, edges.weights, edges.notes
    if num_loops:
        ends, weights = ends[joins], None if weights is None else weights[joins]
        notes += (
            f"{counted(num_loops, 'self-loop')} left out: a bond to its own site joins nothing",
        )
    pairs = _number_pairs(ends)
    if edges.is_matrix and not _is_symmetric(ends, pairs):
        notes += (NOT_SYMMETRIC,)
    order = np.argsort(pairs, kind="stable")
    again = np.diff(pairs[order]) == 0
    if again.any():
        is_repeated = np.zeros(pairs.size, bool)
        is_repeated[order[1:][again]] = is_repeated[order[:-1][again]] = True
        own = np.flatnonzero(is_repeated)
        values = None if weights is None else weights[own]
        repeated, pairs = edges._replace(ends=ends[own], weights=values), pairs[own]
        is_edge = find_edges(repeated, pairs)
        is_bond = is_edge if multi else count_earlier(pairs) == 0
        num_merged = int(np.count_nonzero(is_edge) - np.count_nonzero(is_bond))
        is_kept = ~is_repeated
        is_kept[own] = is_bond
        if weights is not None:
            weights = weights.copy()
            weights[own[is_bond]] = _weigh_bonds(repeated, pairs, is_edge, is_bond, where)
            weights = weights[is_kept]
        ends = ends[is_kept]
    if num_merged:
        least = "" if weights is None else " with the least weight"
        edges_merged = counted(num_merged, "parallel edge")
        notes += (f"{edges_merged} merged, one bond for each pair of sites{least}",)
    if weights is not None and weights.dtype == np.float64:
        weights = weights + 0.0  # which makes -0.0 positive
    return GraphData(edges.num_sites, ends, edges.names, num_loops, num_merged, notes, weights)


def _is_symmetric(ends: np.ndarray, pairs: np.ndarray) -> bool:
    """Return whether a matrix has (j, i) for every entry (i, j), or is a triangular one."""
    is_upper = ends[:, 0] < ends[:, 1]
    upper, lower = np.unique(pairs[is_upper]), np.unique(pairs[~is_upper])
    return not (upper.size and lower.size) or np.array_equal(upper, lower)


def _number_pairs(ends: np.ndarray) -> np.ndarray:
    """Return a number for the pair of sites of every edge, in either order: int64 (num_edges,)."""
    pairs: np.ndarray = np.minimum(*ends.T).astype(np.int64)
    pairs <<= 32
    pairs |= np.maximum(*ends.T)
    return pairs


def count_earlier(*keys: np.ndarray) -> np.ndarray:
    """Return, for each element, how many elements before it have the same keys, int64.

    >>> count_earlier(np.array([5, 7, 5, 5]), np.array([1, 1, 0, 1])).tolist()
    [0, 0, 0, 1]
    """
    order = np.lexsort(keys)
    is_new = np.ones(order.size, bool)
    is_new[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    starts = np.flatnonzero(is_new)
    earlier: np.ndarray = np.empty(order.size, np.int64)
    earlier[order] = np.arange(order.size) - np.repeat(starts, np.diff(starts, append=order.size))
    return earlier


def find_edges(edges: Edges, *keys: np.ndarray) -> np.ndarray:
    """Return which edges are kept; keys: arrays in which an edge and its repetition are equal.

    In a matrix the k-th entry at (j, i) and the k-th at (i, j) are one edge, and the earlier one is
    kept: where m entries are at (i, j) and n at (j, i), there are max(m, n) edges.
    """
    if not edges.is_matrix:
        return np.ones(len(edges.ends), bool)
    is_upper = edges.ends[:, 0] < edges.ends[:, 1]
    is_edge: np.ndarray = count_earlier(*keys, count_earlier(*keys, is_upper)) == 0
    return is_edge


def _weigh_bonds(
    edges: Edges, pairs: np.ndarray, is_edge: np.ndarray, is_bond: np.ndarray, where: Path | str
) -> np.ndarray:
    """Return the weights of bonds; a merged bond has the least weight of its edges.

    InputError: entries (i, j) and (j, i) of a matrix have different weights.  If there are more
    entries on one side, the weights of the other side must be among theirs.
    """
    values = edges.weights
    assert values is not None
    used = np.flatnonzero(find_edges(edges, pairs, values))
    used = used[np.argsort(pairs[used], kind="stable")]
    known, counts = np.unique(pairs[is_edge], return_counts=True)
    strange = known[np.unique(pairs[used], return_counts=True)[1] != counts]
    if strange.size:
        own, is_upper = pairs == strange[0], edges.ends[:, 0] < edges.ends[:, 1]
        i, j = np.sort(edges.ends[own][0]) + edges.base
        upper, lower = (few(list(map(str, values[own & side]))) for side in (is_upper, ~is_upper))
        raise InputError(
            f"{where}: is not symmetric: entry ({i}, {j}) is {upper}, entry ({j}, {i}) is {lower}, "
            "but a bond has one weight"
        )
    merged = values[used]
    if np.count_nonzero(is_bond) < used.size:
        merged = np.minimum.reduceat(merged, np.flatnonzero(np.diff(pairs[used], prepend=-1)))
    weights: np.ndarray = np.empty_like(merged)
    weights[np.argsort(pairs[is_bond], kind="stable")] = merged
    return weights
