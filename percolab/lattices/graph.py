"""A graph as a structure to be sampled: of one size, its number of sites.

A graph is known by the digest of its sites, bonds, source and target.  The bonds themselves are in
the graph's file, so one that comes out of a results file can be reported on, not sampled.

**Which numbers the sites have inside.**  A topology holds a list of num_sites entries a bond class,
and there are as many classes as the site with the most smaller neighbours has.  A hub with a large
number makes that list large.  Where it would have more than 16 entries a bond, the sites are
numbered by their bonds instead, the most first, equal ones in the file's order.  A site with k
smaller neighbours then has k neighbours of at least k bonds each, and k^2 <= 2 num_bonds (parallel
edges aside); that of a star has one.  Rows do not show numbers, and the sample of a file is always
the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_topology import MOST_NEIGHBOURS, TERMINALS, distinct, graph_topology
from percolab.lattices.lattice import Threshold
from percolab.lattices.topology import MAX_POINTS, Topology

# Entries a bond of the list of neighbours from which on hubs come first.
_ROOMY = 16


@dataclass(frozen=True, eq=False)
class _Bonds:
    """Bonds, int32 (num_bonds, 2), and the two site sets, int32 each, ascending."""

    pairs: np.ndarray
    source: np.ndarray
    target: np.ndarray


@dataclass(frozen=True)
class Graph:
    """One graph: name, digest, and how many sites, bonds and terminals there are.

    With sources and targets it has one axis: a sample spans if one cluster has a site of both.
    Without, it has none.  ``content`` is None where the bonds are not at hand; ``notes`` is what a
    user should know about the file, one line each.

    ValueError: numbers that no graph has.
    """

    name: str
    digest: str
    num_sites: int
    num_bonds: int
    num_sources: int
    num_targets: int
    content: _Bonds | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        counts = (self.num_sites, self.num_bonds, self.num_sources, self.num_targets)
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError(f"a graph has no {counts} sites, bonds, sources and targets")
        if not 1 <= self.num_sites <= MAX_POINTS:
            raise ValueError(f"a graph has 1 to {MAX_POINTS} sites, got {self.num_sites}")
        if not all(isinstance(text, str) for text in (self.name, self.digest)):
            raise ValueError("a graph's name and digest are text")

    @classmethod
    def of_bonds(
        cls,
        num_sites: int,
        bonds: np.ndarray | Iterable[tuple[int, int]],
        *,
        source: np.ndarray | Sequence[int] = (),
        target: np.ndarray | Sequence[int] = (),
        name: str = "graph",
        notes: tuple[str, ...] = (),
    ) -> Graph:
        """Return the graph of bonds, as :func:`graph_topology` takes them.

        InputError: a number of sites, a bond or a terminal that it refuses; one of source and
        target without the other.
        """
        if (len(source) == 0) != (len(target) == 0):
            raise InputError("source and target: give both, or none")
        pairs = np.asarray(bonds if isinstance(bonds, np.ndarray) else list(bonds))
        ends = [distinct(np.asarray(sites)) for sites in (source, target)]
        _check_sites(num_sites, pairs, ends)
        pairs = pairs.astype(np.int32, copy=False).reshape(-1, 2)
        content = _Bonds(pairs, *(sites.astype(np.int32) for sites in ends))
        return cls(
            name,
            _digest_of(num_sites, content),
            num_sites,
            len(pairs),
            len(content.source),
            len(content.target),
            content,
            notes,
        )

    @property
    def title(self) -> str:
        """The name."""
        return self.name

    @property
    def dimension(self) -> int:
        """One axis, from source to target, or none."""
        return 1 if self.num_sources else 0

    @property
    def boundaries(self) -> tuple[str, ...]:
        """What an axis is: a pair of terminals."""
        return (TERMINALS,)

    @property
    def num_classes(self) -> int:
        """Bond classes of the topology; InputError if the bonds are not here."""
        return self._topology.num_classes

    @property
    def is_scalable(self) -> bool:
        """A graph has one size."""
        return False

    def shape(self, size: int) -> tuple[int, ...]:
        """Return (size,)."""
        return (size,)

    def check_size(self, size: int, boundary: tuple[str, ...]) -> None:
        """Raise InputError unless the size is the number of sites."""
        if size != self.num_sites:
            raise InputError(f"L = {size}, but {self.name} has {self.num_sites} sites")

    def topology(self, shape: tuple[int, ...], boundary: tuple[str, ...] | None = None) -> Topology:
        """Return the one topology that the graph has; InputError if its bonds are not here."""
        self.check_size(shape[0], boundary or ())
        return self._topology

    def threshold(self, model: str = "bond") -> Threshold | None:
        """Return None: nothing is published about a user's graph."""
        return None

    def record(self) -> dict[str, object]:
        """Return what is stored of it, as plain JSON values."""
        names = ("name", "digest", "num_sites", "num_bonds", "num_sources", "num_targets")
        return {"kind": "graph"} | {name: getattr(self, name) for name in names}

    @cached_property
    def inner_numbers(self) -> np.ndarray | None:
        """The number inside of every site, int32 (num_sites,), or None where it is its own.

        InputError if the bonds are not here.
        """
        if self.content is None:
            raise InputError(f"the bonds of {self.name} are not in a results file: give --graph")
        pairs = self.content.pairs
        if _classes_of(pairs) * self.num_sites <= _ROOMY * len(pairs):
            return None
        return _hubs_first(self.num_sites, pairs)

    @cached_property
    def _topology(self) -> Topology:
        rank, content = self.inner_numbers, self.content
        assert content is not None
        pairs, source, target = content.pairs, content.source, content.target
        if rank is not None:
            pairs, source, target = rank[pairs], rank[source], rank[target]
        entries = _classes_of(pairs) * self.num_sites
        if entries > MOST_NEIGHBOURS:
            raise InputError(
                f"{self.name}: its list of neighbours needs {entries} entries, but at most "
                f"{MOST_NEIGHBOURS} can be held"
            )
        return graph_topology(self.num_sites, pairs, source=source, target=target)


def load_graph(
    path: str | Path,
    *,
    source: str | Path | np.ndarray | Sequence[int] | None = None,
    target: str | Path | np.ndarray | Sequence[int] | None = None,
    multi: bool = False,
) -> Graph:
    """Return the graph in a file (docs/graph-files.md), and the two site sets to connect.

    source, target: site numbers; or a text as :func:`percolab.lattices.graph_files.read_sites`
    takes it, a list "0,5,17" or the name of a file.  multi: keep parallel edges, each a bond of its
    own. InputError: a file that cannot be used, a site that is not there, or only one of the two
    sets.
    """
    from percolab.lattices.graph_files import read_graph, read_sites

    if (source is None) != (target is None):
        given, missing = ("target", "source") if source is None else ("source", "target")
        raise InputError(f"{given} is given without {missing}: give both, or none")
    data = read_graph(path, multi=multi)
    ends: dict[str, np.ndarray | Sequence[int]] = {}
    for key, sites in (("source", source), ("target", target)):
        if isinstance(sites, str | Path):
            try:
                ends[key] = read_sites(sites, data.num_sites)
            except InputError as error:
                raise InputError(f"{key}: {error}") from error
        elif sites is not None:
            ends[key] = sites
            if len(sites) == 0:
                raise InputError(f"{key} = {sites}: names no sites")
    return Graph.of_bonds(
        data.num_sites, data.bonds, name=Path(path).name, notes=data.notes, **ends
    )


def _check_sites(num_sites: int, pairs: np.ndarray, ends: list[np.ndarray]) -> None:
    if type(num_sites) is not int or not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"a graph has 1 to {MAX_POINTS} sites, got {num_sites}")
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise InputError("every bond must name two sites")
    for what, sites in zip(("bond", "source", "target"), (pairs, *ends)):
        if sites.size and sites.dtype.kind not in "iu":
            raise InputError(f"{what}: sites must be integers, got {sites.ravel()[0]!r}")
        if sites.size and not 0 <= sites.min() <= sites.max() < num_sites:
            wrong = sites[(sites < 0) | (sites >= num_sites)][0]
            raise InputError(f"{what} names site {wrong}; sites are 0 to {num_sites - 1}")


def _digest_of(num_sites: int, content: _Bonds) -> str:
    """Return a hash of the sites, the bonds in order, and the terminals."""
    digest = hashlib.sha256()
    counts = [num_sites, len(content.pairs), len(content.source), len(content.target)]
    digest.update(np.array(counts, "<i8").tobytes())
    # Which of its two ends a bond was written from decides nothing.
    low, high = content.pairs.min(axis=1, initial=2**31 - 1), content.pairs.max(axis=1, initial=0)
    for sites in (low, high, content.source, content.target):
        digest.update(sites.astype("<i4").tobytes())
    return digest.hexdigest()[:16]


def _classes_of(pairs: np.ndarray) -> int:
    """Return how many smaller neighbours the site with the most of them has, at least 1."""
    return max(int(np.bincount(pairs.max(axis=1, initial=0), minlength=1).max()), 1)


def _hubs_first(num_sites: int, pairs: np.ndarray) -> np.ndarray:
    """Return a number, int32, for every site: the more bonds, the smaller."""
    degrees = np.bincount(pairs.ravel(), minlength=num_sites)
    rank = np.empty(num_sites, np.int32)
    rank[np.argsort(-degrees, kind="stable")] = np.arange(num_sites, dtype=np.int32)
    return rank
