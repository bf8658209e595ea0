"""GraphData: the sites and bonds of a file, self-loops left out, parallel edges merged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.shown import Shown, few
from percolab.lattices.topology import MAX_POINTS

#: Sites that a file may claim unless their number is given: this many, and so many more an edge.
FREE_SITES, SITES_PER_EDGE = 10**6, 64
#: An edge is the first between its sites; or parallel to earlier ones; or, in a matrix, the entry
#: (j, i) of an edge whose entry (i, j) was there before.
FIRST, PARALLEL, MIRROR = range(3)


class Edges(NamedTuple):
    """The edges of a graph as a file or an object has them, before any are left out or merged.

    num_sites: sites, numbered from 0
    ends:      int32 (num_edges, 2), the two sites of every edge
    weights:   int64 or float64 (num_edges,), finite; None where they are not requested
    names:     of the sites, where they are not just their numbers
    num_loops: self-loops that are not among ``ends`` any more
    notes:     what a user should know about the file, one line each
    is_matrix: edges are entries of an adjacency matrix
    base:      the number that the file gives to site 0
    """

    num_sites: int
    ends: np.ndarray
    weights: np.ndarray | None = None
    names: tuple[str, ...] | None = None
    num_loops: int = 0
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
        bonds = self.bonds
        if bonds.dtype != np.int32 or bonds.ndim != 2 or bonds.shape[1] != 2:
            raise ValueError(f"bonds must be int32 (num_bonds, 2), got {bonds.dtype} {bonds.shape}")
        if not 1 <= self.num_sites <= MAX_POINTS:
            raise ValueError(f"a graph has 1 to {MAX_POINTS} sites, got {self.num_sites}")
        if bonds.size and not 0 <= bonds.min() <= bonds.max() < self.num_sites:
            raise ValueError(f"a bond names a site outside 0 to {self.num_sites - 1}")
        if self.names is not None and len(self.names) != self.num_sites:
            raise ValueError(f"{len(self.names)} names for {self.num_sites} sites")
        bonds.setflags(write=False)
        if self.weights is not None:
            if self.weights.shape != (len(bonds),):
                raise ValueError(f"{self.weights.size} weights for {len(bonds)} bonds")
            self.weights.setflags(write=False)


def check_options(num_sites: Any, multi: Any) -> None:
    """Raise InputError unless a number of sites is None or an integer, and multi true or false."""
    if not isinstance(multi, bool | np.bool_):
        raise InputError(f"multi = {multi!r}, but it must be True or False")
    is_integer = isinstance(num_sites, int | np.integer) and not isinstance(num_sites, bool)
    if num_sites is not None and not is_integer:
        raise InputError(f"num_sites = {num_sites!r}, but only integers are allowed")


def check_num_sites(path: Path | str, claimed: int, num_edges: int, requested: int | None) -> None:
    """Raise InputError unless a file's number of sites is possible, plausible and as requested.

    A few edges between sites of huge numbers would be a graph of isolated sites, gigabytes large.
    """
    if not 1 <= claimed <= MAX_POINTS:
        raise InputError(f"{path}: has {claimed} sites, but a graph has 1 to {MAX_POINTS}")
    if requested is not None and requested != claimed:
        raise InputError(f"{path}: has {claimed} sites, but {requested} were requested")
    if requested is None and claimed > FREE_SITES + SITES_PER_EDGE * num_edges:
        raise InputError(
            f"{path}: {claimed} sites for {num_edges} edges, more than {SITES_PER_EDGE} an edge "
            f"and {FREE_SITES}; renumber the sites 0, 1, 2, ... or give the number of sites"
        )


def merge_edges(edges: Edges, where: Path | str, multi: bool) -> GraphData:
    """Return the graph of edges without self-loops; parallel ones are merged unless ``multi``.

    An entry (j, i) of a matrix that repeats its entry (i, j) is no edge of its own either way.
    A merged bond has the least weight of its edges.

    where: the file, for errors.  InputError: two such entries of a matrix have different weights.
    """
    joins = edges.ends[:, 0] != edges.ends[:, 1]
    if not joins.all():
        values = None if edges.weights is None else edges.weights[joins]
        loops = edges.num_loops + joins.size - int(np.count_nonzero(joins))
        edges = edges._replace(ends=edges.ends[joins], weights=values, num_loops=loops)
    ends, num_sites, notes = edges.ends, edges.num_sites, edges.notes
    marks, same = find_repeats(ends, edges.is_matrix)
    kept = marks <= PARALLEL if multi else marks == FIRST
    num_merged = 0 if multi else int(np.count_nonzero(marks == PARALLEL))
    if edges.num_loops:
        notes += (f"{edges.num_loops} self-loops left out: they join nothing",)
    if num_merged:
        least = "" if edges.weights is None else " with the least weight"
        notes += (f"{num_merged} parallel edges merged, one bond for each pair of sites{least}",)
    weights = edges.weights
    if weights is not None:
        if marks.any():
            weights = _merge_weights(edges, same, marks, where, multi)[kept]
        if weights.dtype == np.float64:
            weights = weights + 0.0  # which makes -0.0 positive
    bonds = ends if kept.all() else ends[kept]
    return GraphData(num_sites, bonds, edges.names, edges.num_loops, num_merged, notes, weights)


def find_repeats(ends: np.ndarray, is_matrix: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return FIRST, PARALLEL or MIRROR for each edge, uint8, and the edge that it repeats, int64.

    ends: int32 (num_edges, 2), in the file's order, without self-loops.  A FIRST repeats itself, a
    PARALLEL edge the FIRST between its sites; of a matrix the k-th entry at (j, i), if a MIRROR,
    the k-th at (i, j).  Where m entries are at (i, j) and n at (j, i), there are max(m, n) edges.
    """
    pairs = np.minimum(*ends.T).astype(np.int64)
    pairs <<= 32
    pairs |= np.maximum(*ends.T)
    marks, order = np.zeros(len(ends), np.uint8), np.sort(pairs)
    if not (order[1:] == order[:-1]).any():
        return marks, np.arange(len(ends))
    order = np.argsort(pairs, kind="stable")
    pairs = pairs[order]
    again = np.append(False, pairs[1:] == pairs[:-1])
    repeated = again | np.append(again[1:], False)
    order, begins = order[repeated], np.flatnonzero(~again[repeated])
    del pairs
    start = np.repeat(begins, np.diff(begins, append=order.size))
    place = np.arange(order.size) - start
    is_lower = is_matrix & (ends[order, 0] > ends[order, 1])
    before = np.cumsum(is_lower) - is_lower
    before -= before[start]
    # How many entries at (i, j) are before one at (i, j).
    number = np.where(is_lower, before, place - before)
    is_mirror = 2 * number < place
    marks[order] = np.where(is_mirror, MIRROR, np.where(place, PARALLEL, FIRST))
    same = np.arange(len(ends))
    same[order] = order[start]
    partner, number = np.empty(order.size, np.int64), number + start
    partner[number[~is_mirror]] = order[~is_mirror]
    same[order[is_mirror]] = partner[number[is_mirror]]
    return marks, same


def _merge_weights(
    edges: Edges, same: np.ndarray, marks: np.ndarray, where: Path | str, multi: bool
) -> np.ndarray:
    """Return the weights of edges as bonds; same, marks: those of :func:`find_repeats`."""
    assert edges.weights is not None
    values = edges.weights.copy()
    mirrors = np.flatnonzero(marks == MIRROR)
    differing = mirrors[values[mirrors] != values[same[mirrors]]]
    if differing.size:
        firsts = same[same]
        members = np.flatnonzero(np.isin(firsts, firsts[differing]))
        members = members[np.argsort(firsts[members], kind="stable")]
        starts = np.flatnonzero(np.diff(firsts[members], prepend=-1))
        for own in np.split(members, starts[1:]):
            merged = _merge_both_entries(edges.ends[own], values[own], edges.base, where)
            values[own[marks[own] <= PARALLEL]] = merged
    if not multi:
        parallel = np.flatnonzero(marks == PARALLEL)
        np.minimum.at(values, same[parallel], values[parallel])
    return values


def _merge_both_entries(
    ends: np.ndarray, values: np.ndarray, base: int, where: Path | str
) -> np.ndarray:
    """Return the weights of the bonds between two sites, from their entries (i, j) and (j, i).

    They are those of the side with more entries; each of the other side must be one of them.
    """
    is_upper = ends[:, 0] == ends[0, 0]
    more, fewer, at = values[is_upper], values[~is_upper], ends[0]
    if more.size < fewer.size:
        more, fewer, at = fewer, more, at[::-1]
    strange = Counter(fewer.tolist()) - Counter(more.tolist())
    if strange:
        i, j = (at + np.int64(base)).tolist()
        missed = next(iter(Counter(more.tolist()) - Counter(fewer.tolist())))
        raise InputError(
            f"{where}: is not symmetric: entry ({i}, {j}) is {missed}, entry ({j}, {i}) is "
            f"{next(iter(strange))}, but a bond has one weight"
        )
    merged: np.ndarray = more
    return merged
