"""Graphs: a topology given bond by bond, owned by the larger of each bond's two sites.

A graph is identified by a digest of its sites, bonds, source and target, and of its weights and
its order of removal where a study uses them.  The bonds themselves are in the graph's file, so a
graph from a results file can be reported on but not sampled.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from percolab.errors import InputError, refuse_mask
from percolab.lattices.lattice import Threshold
from percolab.lattices.shown import Shown, counted, printable
from percolab.lattices.topology import MAX_POINTS, Topology, count_words, pack_bits

if TYPE_CHECKING:
    from percolab.lattices.graph_files import GraphData

_LOGGER = logging.getLogger("percolab")

#: The boundary of a graph's axis, as "open" or "periodic" is that of a lattice's: two site sets,
#: the source and the target, that a spanning cluster connects.
TERMINALS = "terminals"
#: Entries of the largest neighbour list, 16 GiB of int32.
MOST_NEIGHBOURS = 2**32
# From this many entries of the neighbour list per bond on, sites are renumbered, hubs first.
_ROOMY = 16


@dataclass(frozen=True, eq=False)
class _Bonds:
    """The bonds of a graph, with data on its bonds and sites.

    pairs:   int32 (num_bonds, 2)
    source, target: the two site sets, int32 each, ascending
    weights: of the bonds, int64 or float64 (num_bonds,); None where a study uses none
    ranks:   int64, rank of each site or bond: 0 is removed first, equal ranks in random order;
             None where the whole order is random (:mod:`percolab.lattices.removal`)
    """

    pairs: np.ndarray
    source: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None = None
    ranks: np.ndarray | None = None


@dataclass(frozen=True, repr=False)
class Graph(Shown):
    """One graph: name, digest, and its numbers of sites, bonds and terminals.

    With sources and targets it has one axis: a sample spans if one cluster has a site of both.
    Without them it has no axis.  ``content`` is None where the bonds are not known; ``notes`` are
    remarks on the file, one line each.  ``names`` are the sites' names in the order of their
    numbers, all different, or None if sites have no names.  The digest does not depend on them.

    ValueError: numbers of sites, bonds or terminals that are impossible.
    """

    boundaries: ClassVar[tuple[str, ...]] = (TERMINALS,)
    #: A graph has one size.
    is_scalable: ClassVar[bool] = False

    name: str
    digest: str
    num_sites: int
    num_bonds: int
    num_sources: int
    num_targets: int
    content: _Bonds | None = field(default=None, compare=False, repr=False)
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)
    names: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        counts = (self.num_sites, self.num_bonds, self.num_sources, self.num_targets)
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError(f"a graph's counts are integers of at least 0, not {counts}")
        if not 1 <= self.num_sites <= MAX_POINTS:
            raise ValueError(f"a graph has 1 to {MAX_POINTS} sites, got {self.num_sites}")
        if not all(isinstance(text, str) for text in (self.name, self.digest)):
            raise ValueError("a graph's name and digest are text")
        if self.names is not None and len(set(self.names)) != self.num_sites:
            raise ValueError(f"{len(set(self.names))} different names for {self.num_sites} sites")

    def _facts(self) -> dict[str, Any]:
        ends = counted(self.num_sources, "site")
        ends += f" to {counted(self.num_targets, 'site')}" if self.num_targets else ""
        return {
            "graph": self.name,
            "sites": self.num_sites,
            "bonds": self.num_bonds,
            **({"connected": ends} if self.num_sources else {}),
        }

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
        names: Sequence[str] | None = None,
    ) -> Graph:
        """Return the graph of bonds, as :func:`graph_topology` takes them.

        names: the sites' names, by number.

        InputError: a number of sites, a bond or a terminal that is not possible; source without
        target or target without source; names that are not all different.
        """
        lists = {
            "bonds": bonds,
            "source": source,
            "target": target,
            "names": () if names is None else names,
        }
        for what, given in lists.items():
            if not isinstance(given, Iterable) or isinstance(given, str):
                raise InputError(f"{what} = {given!r}, but it must be a list or an array")
        if not isinstance(name, str):
            raise InputError(f"name = {name!r}, but it must be text")
        if (len(source) == 0) != (len(target) == 0):
            raise InputError("source and target: give both, or none")
        num_sites = int(num_sites) if isinstance(num_sites, np.integer) else num_sites
        pairs, *ends = _site_arrays(num_sites, bonds, source, target)
        both = np.intersect1d(ends[0], ends[1])
        if both.size:
            site = both[0] if names is None else names[int(both[0])]
            raise InputError(f"site {site} is both in the source and in the target")
        if names is not None and len(set(names)) != num_sites:
            raise InputError(f"{len(set(names))} different names for {num_sites} sites")
        content = _Bonds(pairs, *ends)
        return cls(
            name,
            _hash_graph(num_sites, content),
            num_sites,
            len(pairs),
            len(content.source),
            len(content.target),
            content,
            notes,
            None if names is None else tuple(map(str, names)),
        )

    @property
    def title(self) -> str:
        return self.name

    def site_name(self, site: int) -> str | int:
        """Return a site's name, or its number where sites have no names."""
        return int(site) if self.names is None else self.names[site]

    @property
    def dimension(self) -> int:
        """One axis, from source to target, or none."""
        return 1 if self.num_targets else 0

    @property
    def num_classes(self) -> int:
        """Bond classes of the topology; InputError if the bonds are not here."""
        return self._topology.num_classes

    def shape(self, size: int) -> tuple[int, ...]:
        return (size,)

    def check_size(self, size: int, boundary: tuple[str, ...]) -> None:
        if size != self.num_sites:
            raise InputError(f"L = {size}, but {self.name} has {self.num_sites} sites")

    def topology(self, shape: tuple[int, ...], boundary: tuple[str, ...] | None = None) -> Topology:
        """Return the one topology that the graph has; InputError if its bonds are not here."""
        self.check_size(shape[0], boundary or ())
        return self._topology

    def threshold(self, model: str = "bond") -> Threshold | None:
        return None

    def record(self) -> dict[str, object]:
        names = ("name", "digest", "num_sites", "num_bonds", "num_sources", "num_targets")
        return {"kind": "graph"} | {name: getattr(self, name) for name in names}

    @cached_property
    def inner_numbers(self) -> np.ndarray | None:
        """The number of every site in the topology, int32 (num_sites,); None if it is unchanged.

        The neighbour list has num_sites entries for each smaller neighbour of the site that has the
        most of them, so a hub with a large number makes it long.  If it had more than 16 entries
        per bond, sites are numbered by degree, the largest first, equal ones in the file's order. A
        site with k smaller neighbours then has k neighbours of at least k bonds each, so that
        k^2 <= 2 num_bonds (parallel edges aside).  InputError if the bonds are not here.
        """
        pairs = self.bonds.pairs
        if _count_bond_classes(pairs) * self.num_sites <= _ROOMY * len(pairs):
            return None
        # The more bonds a site has, the smaller its number.
        degrees = np.bincount(pairs.ravel(), minlength=self.num_sites)
        rank = np.empty(self.num_sites, np.int32)
        rank[np.argsort(-degrees, kind="stable")] = np.arange(self.num_sites, dtype=np.int32)
        return rank

    @property
    def bonds(self) -> _Bonds:
        """The bonds and their data; InputError if they are not here."""
        if self.content is None:
            raise InputError(f"a results file lacks the bonds of {self.name}: give --graph")
        return self.content

    def with_weights(self, weights: np.ndarray) -> Graph:
        """Return the graph with bond weights, numbers (num_bonds,), which enter the digest.

        InputError: not one weight per bond, or an infinite one.

        >>> Graph.of_bonds(2, [(0, 1)]).with_weights([0.5]).bonds.weights.tolist()
        [0.5]
        """
        from percolab.lattices.graph_files.weights import make_weights

        values = make_weights(weights)
        if values.shape != (self.num_bonds,):
            raise InputError(f"weights: {values.size} given for {self.num_bonds} bonds")
        if values.max(initial=0) == np.inf:
            raise InputError(f"{self.name}: weight inf, but the weights of a study are finite")
        return self._with(weights=values)

    def with_source(self, source: Any) -> Graph:
        """Return the graph with a source alone: sites or a file; InputError: no such site."""
        source_sites = find_sites("source", source, self.num_sites, self.names)
        _, sites, _ = _site_arrays(self.num_sites, self.bonds.pairs, source_sites, ())
        return replace(self._with(source=sites), num_sources=sites.size)

    def with_ranks(self, ranks: np.ndarray) -> Graph:
        """Return the graph with ranks of removal, int64, of sites or bonds, in place of weights."""
        return self._with(weights=None, ranks=ranks)

    def _with(self, **known: Any) -> Graph:
        content = replace(self.bonds, **known)
        return replace(self, content=content, digest=_hash_graph(self.num_sites, content))

    def bond_numbers(self) -> np.ndarray:
        """Return every bond's number in the topology, int64 (num_bonds,), in the file's order.

        A bond's number is 32 * word + bit in the bond words of all classes, class after class.
        InputError if the bonds are not here.

        >>> Graph.of_bonds(4, [(0, 1), (3, 1), (3, 2), (2, 1)]).bond_numbers().tolist()
        [1, 3, 35, 2]
        """
        rank, content = self.inner_numbers, self.bonds
        pairs = content.pairs if rank is None else rank[content.pairs]
        order, klass, owner = _places(pairs.max(axis=1, initial=0), self.num_sites)
        numbers = np.empty(len(pairs), np.int64)
        numbers[order] = klass * (32 * count_words(self.num_sites)) + owner
        return numbers

    @cached_property
    def _topology(self) -> Topology:
        rank, content = self.inner_numbers, self.bonds
        pairs, source, target = content.pairs, content.source, content.target
        if rank is not None:
            pairs, source, target = rank[pairs], rank[source], rank[target]
        entries = _count_bond_classes(pairs) * self.num_sites
        if entries > MOST_NEIGHBOURS:
            raise InputError(
                f"{self.name}: its list of neighbours needs {entries} entries, but at most "
                f"{MOST_NEIGHBOURS} can be stored"
            )
        topology = graph_topology(self.num_sites, pairs, source=source, target=target)
        if content.weights is None:
            return topology
        weights = np.zeros(32 * topology.num_bond_words)
        weights[self.bond_numbers()] = content.weights
        return replace(topology, bond_weights=weights)


def load_graph(
    path: str | Path,
    *,
    source: Terminals = None,
    target: Terminals = None,
    multi: bool = False,
    columns: str | Sequence[str] | None = None,
) -> Graph:
    """Return the graph in a file (docs/graph-files.md), with the two site sets to connect.

    source, target: site numbers; or a text for :func:`percolab.lattices.graph_files.read_sites`,
    which is a list like "0,5,17" or the name of a file.  multi: keep parallel edges as separate
    bonds.  columns: names of the columns of the sites, and of the weight, in an edge list's header.
    Remarks on the file, a line each, are in ``notes`` and logged as warnings.

    InputError: a file that cannot be used, a site that does not exist, or only one of the two sets.
    """
    return read_any_graph(path, source, target, multi=multi, columns=columns)[0]


def read_any_graph(
    graph: Any, source: Any = None, target: Any = None, **options: Any
) -> tuple[Graph, GraphData]:
    """Return the graph that an object or a file gives, as :func:`make_graph` does, and its data.

    ``graph`` is not a :class:`Graph`.  The data have the sites' names and, if requested, the bonds'
    weights in the graph's order.  options: of :func:`percolab.lattices.graph_files.read_graph`.
    """
    from percolab.lattices.graph_files import read_graph
    from percolab.lattices.graph_files.objects import graph_from_object

    if (source is None) != (target is None):
        given, missing = ("target", "source") if source is None else ("source", "target")
        raise InputError(f"{given} is given without {missing}: give both, or none")
    is_file = isinstance(graph, str | Path)
    data = read_graph(graph, **options) if is_file else graph_from_object(graph, **options)
    name = Path(graph).name if is_file else graph_name(graph)
    return graph_from_data(data, name, source, target), data


def make_graph(
    graph: Any,
    *,
    source: Any = None,
    target: Any = None,
    multi: bool = False,
    columns: Any = None,
    weights: bool = False,
) -> Graph:
    """Return a graph that is given in any form, with the two site sets to connect.

    graph: a :class:`Graph`; a file, as :func:`load_graph` reads it; or an object that
    :func:`percolab.lattices.graph_files.objects.graph_from_object` takes: a networkx graph, a
    sparse matrix, a data frame, an edge array (n, 2) or a list of edges.  source, target: site
    numbers, names, or a text or file that lists them.  columns: of a file or a data frame, as in
    :func:`load_graph`.  weights: keep the weights of the bonds.
    InputError: input that cannot be used; terminals in addition to a :class:`Graph`, which has its
    own; a bond without a weight.
    """
    if isinstance(graph, Graph):
        if source is not None or target is not None or multi or columns is not None:
            raise InputError(
                "source, target, multi and columns are only for a file, not for a Graph"
            )
        if weights and graph.bonds.weights is None:
            raise InputError("this graph has no weights: give them by Graph.with_weights")
        return graph
    options: dict[str, Any] = {"multi": multi, "columns": columns, "weights": weights}
    made, data = read_any_graph(graph, source, target, **options)
    return made if data.weights is None else made.with_weights(data.weights)


def graph_name(graph: Any) -> str:
    """Return the name that a networkx graph has, and "graph" for others."""
    name = getattr(graph, "name", "") if hasattr(graph, "is_directed") else ""
    return str(name) or "graph"


Terminals = str | Path | int | np.ndarray | Sequence[int] | Sequence[str] | None


def graph_from_data(
    data: GraphData, name: str, source: Terminals = None, target: Terminals = None
) -> Graph:
    """Return the graph of the data read, with the site sets to connect; log its notes."""
    names = None if data.names is None else tuple(map(str, data.names))
    if names is not None and len(set(names)) < len(names):
        # Nodes may be any objects, and 1 and "1" are different.
        names = tuple(map(repr, data.names or ()))
    for text in (name, *(names or ())):
        if not text.isascii() and text != text.encode("utf-8", "replace").decode():
            raise InputError(f"the name {text!a} is no text in UTF-8")
    ends = {
        key: find_sites(key, sites, data.num_sites, names)
        for key, sites in (("source", source), ("target", target))
        if sites is not None
    }
    for note in data.notes:
        _LOGGER.warning("%s", printable(f"{name}: {note}"))
    return Graph.of_bonds(
        data.num_sites, data.bonds, name=name, notes=data.notes, names=names, **ends
    )


def find_sites(key: str, sites: Any, num_sites: int, names: tuple[str, ...] | None) -> np.ndarray:
    """Return the sites of a source or target, given by names or numbers; errors name the key."""
    from percolab.lattices.graph_files import read_sites
    from percolab.lattices.graph_files.site_list import sites_named

    try:
        if isinstance(sites, str | Path):
            return read_sites(sites, num_sites) if names is None else sites_named(sites, names)
        is_listed = np.iterable(sites) and not (
            isinstance(sites, tuple) and names is not None and str(sites) in names
        )
        given = list(sites) if is_listed else [sites]
        if names is not None and given:
            return _named_or_numbered(given, names)
        chosen = np.asarray(given)
    except InputError as error:
        raise InputError(f"{key}: {error}") from error
    except ValueError as error:
        raise InputError(f"{key} = {sites}: sites are one list") from error
    if not given:
        raise InputError(f"{key}: names no sites")
    if chosen.ndim > 1 or any(isinstance(site, bool) for site in given):
        raise InputError(f"{key} = {sites}: sites are one list")
    return chosen


def _named_or_numbered(given: Sequence[Any], names: tuple[str, ...]) -> np.ndarray:
    """Return the sites given by name, or by number if no name is a number."""
    from percolab.lattices.graph_files.site_list import sites_named

    numbers = {name: number for number, name in enumerate(names)}
    by_number = not any(name.lstrip("-").isdigit() for name in names)
    sites = []
    for site in given:
        if str(site) in numbers:
            sites.append(numbers[str(site)])
        elif by_number and isinstance(site, int | np.integer) and not isinstance(site, bool):
            sites.append(int(site))
        else:
            sites += sites_named(str(site), names).tolist()
    return np.unique(np.array(sites))


def graph_topology(
    num_sites: int,
    bonds: np.ndarray | Iterable[tuple[int, int]],
    *,
    source: np.ndarray | Sequence[int] = (),
    target: np.ndarray | Sequence[int] = (),
) -> Topology:
    """Return the topology of a graph: bond (u, v) belongs to max(u, v), in the order given.

    Parallel bonds and self-loops are kept: both are open or closed like any other bond.
    ``source`` and ``target`` are the two site sets that a spanning cluster connects.

    bonds: pairs of sites, or an integer array (num_bonds, 2), which needs less memory
    ValueError: no sites, too many, a bond or terminal that names a site outside 0..num_sites-1, or
    a list of neighbours that is too large because one site has many smaller neighbours

    >>> graph_topology(3, [(0, 1), (2, 1)]).bonds().tolist()
    [[0, 1, 0], [0, 2, 1]]
    """
    pairs, first_layer, last_layer = _site_arrays(num_sites, bonds, source, target)
    num_sites = int(num_sites)  # a NumPy integer might overflow
    neighbours = _neighbour_list(pairs, num_sites)
    return Topology(
        num_points=num_sites,
        occupied=pack_bits(np.ones(num_sites, bool)),
        deltas=np.zeros(len(neighbours), np.int64),
        neighbours=neighbours,
        end_layers=((first_layer, last_layer),) if first_layer.size and last_layer.size else (),
        chain=-1,
    )


def _site_arrays(
    num_sites: int,
    bonds: np.ndarray | Iterable[tuple[int, int]],
    source: np.ndarray | Sequence[int],
    target: np.ndarray | Sequence[int],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return bonds, int32 (num_bonds, 2), source and target, int32 ascending, each site once."""
    is_integer = isinstance(num_sites, int | np.integer) and not isinstance(num_sites, bool)
    if not is_integer or not 1 <= num_sites <= MAX_POINTS:
        raise InputError(f"a graph has 1 to {MAX_POINTS} sites, got {num_sites}")
    refuse_mask("bonds", bonds)
    if not np.iterable(bonds):
        raise InputError(f"bonds = {bonds!r}, but they are pairs of sites")
    try:
        pairs = np.asarray(bonds if isinstance(bonds, np.ndarray) else list(bonds))
    except ValueError as error:  # of different lengths
        raise InputError("every bond must name two sites") from error
    if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
        raise InputError("every bond must name two sites")
    try:
        terminals = {"source": np.atleast_1d(source), "target": np.atleast_1d(target)}
    except ValueError as error:  # lists in lists
        raise InputError("source and target: sites must be integers") from error
    arrays = {"bond": pairs, **terminals}
    for what, sites in arrays.items():
        if sites.size and sites.dtype.kind not in "iu":
            raise InputError(f"{what}: sites must be integers, got {sites.ravel()[0]!r}")
        if sites.size and not 0 <= sites.min() <= sites.max() < num_sites:
            wrong = sites[(sites < 0) | (sites >= num_sites)][0]
            raise InputError(f"{what} names site {wrong}; sites are 0 to {num_sites - 1}")
    first, last = (_distinct(arrays[what]).astype(np.int32) for what in ("source", "target"))
    return pairs.astype(np.int32, copy=False).reshape(-1, 2), first, last


def _hash_graph(num_sites: int, content: _Bonds) -> str:
    digest = hashlib.sha256()
    counts = [num_sites, len(content.pairs), len(content.source), len(content.target)]
    digest.update(np.array(counts, "<i8").tobytes())
    # The digest does not depend on which end of a bond is written first.
    low, high = content.pairs.min(axis=1, initial=2**31 - 1), content.pairs.max(axis=1, initial=0)
    for sites in (low, high, content.source, content.target):
        digest.update(sites.astype("<i4").tobytes())
    for what in ("weights", "ranks"):
        values = getattr(content, what)
        if values is not None:
            digest.update(what.encode() + values.astype(values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:16]


def _count_bond_classes(pairs: np.ndarray) -> int:
    """Return the largest number of smaller neighbours that a site has, at least 1."""
    return max(int(np.bincount(pairs.max(axis=1, initial=0), minlength=1).max()), 1)


def _distinct(sites: np.ndarray) -> np.ndarray:
    """Return the distinct sites in ascending order, faster than np.unique."""
    ascending = np.sort(sites)
    is_new = np.append(np.ones(min(sites.size, 1), bool), ascending[1:] != ascending[:-1])
    return np.compress(is_new, ascending)


def _neighbour_list(pairs: np.ndarray, num_sites: int) -> np.ndarray:
    """Return each site's smaller neighbours in order, then -1: int32 (num_classes, num_sites)."""
    owner = np.maximum(pairs[:, 0], pairs[:, 1])
    counts = np.bincount(owner, minlength=num_sites)
    num_classes = max(int(counts.max()), 1)
    if num_classes * num_sites > MOST_NEIGHBOURS:
        raise ValueError(
            f"site {counts.argmax()} has {num_classes} smaller neighbours, and a list of so many "
            f"for each of {num_sites} sites is larger than {MOST_NEIGHBOURS}; "
            "number the sites with the most bonds first"
        )
    order, klass, owner = _places(owner, num_sites)
    neighbours = np.full((num_classes, num_sites), -1, np.int32)
    neighbours[klass, owner] = np.minimum(pairs[:, 0], pairs[:, 1])[order]
    return neighbours


def _places(owner: np.ndarray, num_sites: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bonds' order by ascending owner (stable), and each one's class and owner."""
    counts = np.bincount(owner, minlength=num_sites)
    order = np.argsort(owner, kind="stable")
    klass = np.arange(owner.size)
    klass -= np.repeat(np.cumsum(counts) - counts, counts)
    return order, klass, owner[order]
