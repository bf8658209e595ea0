"""GraphData: the sites and bonds of a file, self-loops left out, parallel edges merged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.repeats import FIRST, PARALLEL, mark_repeats
from percolab.lattices.graph_files.weights import EdgeWeights, make_bond_weights
from percolab.lattices.shown import Shown, few
from percolab.lattices.topology import MAX_POINTS

#: Sites that a file may claim without being asked twice: this many, and so many more an edge.
FREE_SITES, SITES_PER_EDGE = 10**6, 64


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
                they were not asked for
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


def check_num_sites(path: Path, claimed: int, num_edges: int, asked: int | None) -> None:
    """Raise InputError unless a file's number of sites is possible, plausible and as asked.

    A few edges between sites of huge numbers would be a graph of isolated sites, gigabytes large.
    """
    if not 1 <= claimed <= MAX_POINTS:
        raise InputError(f"{path}: has {claimed} sites, but a graph has 1 to {MAX_POINTS}")
    if asked is not None and asked != claimed:
        raise InputError(f"{path}: has {claimed} sites, not the {asked} asked for")
    if asked is None and claimed > FREE_SITES + SITES_PER_EDGE * num_edges:
        raise InputError(
            f"{path}: {claimed} sites for {num_edges} edges, more than {SITES_PER_EDGE} an edge "
            f"and {FREE_SITES}; renumber the sites 0, 1, 2, ... or give the number of sites"
        )


def graph_data(
    num_sites: int,
    edges: np.ndarray,
    *,
    multi: bool,
    is_matrix: bool = False,
    names: tuple[str, ...] | None = None,
    num_loops: int = 0,
    notes: tuple[str, ...] = (),
    weights: EdgeWeights | None = None,
) -> GraphData:
    """Return the graph of edges, int32 (num_edges, 2) without self-loops.

    Parallel edges are merged unless ``multi``; an entry (j, i) of a matrix that says again what
    its entry (i, j) says is no edge of its own either way.

    weights: of the edges; merged ones get the least.  InputError: two such entries of a matrix have
    different weights.
    """
    sites, count = edges, num_sites
    if num_sites > 4 * len(edges):  # most sites have no bond: only the others need be looked at
        _, numbers = np.unique(edges, return_inverse=True)
        sites, count = numbers.reshape(-1, 2).astype(np.int32), numbers.size
    marks = mark_repeats(sites, count, is_matrix)
    kept = marks <= PARALLEL if multi else marks == FIRST
    num_merged = 0 if multi else int(np.count_nonzero(marks == PARALLEL))
    bonds = edges if kept.all() else edges[kept]
    if num_loops:
        notes += (f"{num_loops} self-loops left out: they join nothing",)
    if num_merged:
        least = "" if weights is None else " with the least weight"
        notes += (f"{num_merged} parallel edges merged, one bond for each pair of sites{least}",)
    found = None
    if weights is not None:
        found = make_bond_weights(
            edges, sites, count, marks, weights, multi=multi, is_matrix=is_matrix
        )
        if found.dtype == np.float64:
            found = found + 0.0  # which makes -0.0 positive
    return GraphData(num_sites, bonds, names, num_loops, num_merged, notes, found)


def without_loops(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
    """Return edges, int32 (num_edges, 2), from their sites, and the number of loops left out."""
    joins = first != second
    edges = np.empty((int(np.count_nonzero(joins)), 2), np.int32)
    edges[:, 0], edges[:, 1] = first[joins], second[joins]
    return edges, first.size - len(edges)
