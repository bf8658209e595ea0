"""The order in which the sites or bonds of a graph are removed: ranks by a score or by a list.

degree       a site's number of bonds; for a bond, the product of the degrees of its two sites
betweenness  of the intact graph, by networkx, to nine digits, so that symmetric sites are equal
weight       a bond's weight; for a site, the sum of its bonds' weights
a file       one site (or bond, as its two sites) on each line, the first is removed first; or each
             with a score after it, the largest is removed first

The largest score is removed first, with ":ascending" the smallest.  Equal scores have equal ranks,
and sites or bonds that are not listed come last.  "degree:adaptive", "betweenness:adaptive" and
"influence:adaptive" have no ranks: these scores are computed again after every removal.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, import_networkx
from percolab.lattices.graph import Graph

RANDOM, GIVEN = "random", "given"
ADAPTIVE = ("degree:adaptive", "betweenness:adaptive", "influence:adaptive")
_ASCENDING = ":ascending"
_SCORES = ("degree", "betweenness", "weight")
#: The orders that a user can name; a file or a list is another possibility.
ORDERS = (RANDOM, *_SCORES, *ADAPTIVE, *(f"{name}{_ASCENDING}" for name in _SCORES))
#: Digits after the point of betweenness, in units of the largest, when scores are compared.
_DIGITS = 9

Scores = NDArray[np.float64]
#: Where an entry stands, the texts in it, and how it is shown in a message.
_Entry = tuple[str, list[str]]


def needs_weights(order: Any) -> bool:
    return isinstance(order, str) and order.partition(":")[0] == "weight"


def describe_removal(order: str) -> str:
    """Return how sites or bonds are removed, in words after a comma; "" for a random order.

    >>> describe_removal("random"), describe_removal("degree"), describe_removal("given")
    ('', ', removed by degree', ', removed in a given order')
    """
    if order == RANDOM:
        return ""
    return ", removed in a given order" if order == GIVEN else f", removed by {order}"


def order_graph(graph: Graph, order: Any, *, sites: bool) -> tuple[str, Graph]:
    """Return the name of an order, and the graph with the ranks that it gives its sites or bonds.

    order: one of ORDERS; a file; a list of sites (or of bonds, as pairs of sites), the first
    removed first; or a mapping or pandas.Series from them to scores.  sites: remove sites, not
    bonds.

    InputError: no such order or file; an entry that is no site or bond of the graph.
    """
    if isinstance(order, str) and order in ORDERS:
        if order == RANDOM or order in ADAPTIVE:
            if order == "betweenness:adaptive" and _has_parallel_bonds(graph):
                raise InputError(f"order {order} allows no parallel bonds: leave out --multi")
            if order == "influence:adaptive" and not sites:
                raise InputError(f"order {order} removes sites: give --model site")
            return order, graph
        scores = _SCORE_FUNCTIONS[order.removesuffix(_ASCENDING)](graph, sites)
        scores = -scores if order.endswith(_ASCENDING) else scores
        return order, graph.with_ranks(_rank(scores))
    if isinstance(order, str | Path):
        entries = _read_entries(Path(order))
    elif hasattr(order, "items"):  # a mapping, or a series of pandas
        entries = ((f"order {key!r}", [*_texts(key, sites), str(x)]) for key, x in order.items())
    elif np.iterable(order):
        entries = ((f"order {key!r}", _texts(key, sites)) for key in order)
    else:
        raise InputError(f"order = {order!r}, but it must be a name, a file, a list or a mapping")
    return GIVEN, graph.with_ranks(_rank(_score_entries(graph, entries, sites)))


def has_one_order(graph: Graph) -> bool:
    """Return whether the ranks of a graph leave nothing to chance: no two are equal."""
    ranks = graph.bonds.ranks
    return ranks is not None and np.unique(ranks).size == ranks.size


def _rank(scores: Scores) -> NDArray[np.int64]:
    """Return the ranks of scores: 0 for the largest score, 1 for the next smaller one, ..."""
    return np.unique(-scores, return_inverse=True)[1].astype(np.int64)


def _score_degree(graph: Graph, sites: bool) -> Scores:
    pairs = graph.bonds.pairs
    degrees = np.bincount(pairs.ravel(), minlength=graph.num_sites).astype(np.float64)
    return degrees if sites else np.asarray(degrees[pairs].prod(axis=1))


def _score_weight(graph: Graph, sites: bool) -> Scores:
    pairs, weights = graph.bonds.pairs, graph.bonds.weights
    if weights is None:
        raise InputError("order weight: this graph has no weights")
    if not sites:
        return weights.astype(np.float64)
    return np.asarray(
        np.bincount(pairs.ravel(), np.repeat(weights, 2), minlength=graph.num_sites), np.float64
    )


def _score_betweenness(graph: Graph, sites: bool) -> Scores:
    """Return the betweenness in the intact graph; parallel bonds count as one bond."""
    networkx = import_networkx("order betweenness")
    pairs = graph.bonds.pairs
    simple = networkx.Graph()
    simple.add_nodes_from(range(graph.num_sites))
    simple.add_edges_from(pairs.tolist())
    if sites:
        values = networkx.betweenness_centrality(simple)
        scores = np.array([values[n] for n in range(graph.num_sites)])
    else:
        between = networkx.edge_betweenness_centrality(simple)
        by_pair = {frozenset(pair): value for pair, value in between.items()}
        scores = np.array([by_pair[frozenset(pair)] for pair in pairs.tolist()])
    return np.round(scores / (scores.max(initial=0.0) or 1.0), _DIGITS)


def _has_parallel_bonds(graph: Graph) -> bool:
    pairs = np.sort(graph.bonds.pairs, axis=1)
    return len(np.unique(pairs, axis=0)) < len(pairs)


_SCORE_FUNCTIONS = {
    "degree": _score_degree,
    "betweenness": _score_betweenness,
    "weight": _score_weight,
}


def _texts(key: Any, sites: bool) -> list[str]:
    """Return the name of a site, or the names of the two sites of a bond."""
    if sites:
        return [str(key)]
    if not isinstance(key, Iterable) or isinstance(key, str) or len(pair := list(key)) != 2:
        raise InputError(f"order: {key!r} is no bond, which is a pair of sites")
    return [str(site) for site in pair]


def _read_entries(path: Path) -> Iterator[_Entry]:
    """Yield the entries of a file; commas separate its columns, or tabs, or else blanks."""
    from percolab.lattices.graph_files.pair_lines import split_line
    from percolab.lattices.graph_files.site_list import places_and_lines

    if not os.path.isfile(path):
        raise InputError(f"order = {path}: no such file, and none of {', '.join(ORDERS)}")
    for place, text in places_and_lines(path):
        yield place, split_line(text, next((each for each in (",", "\t") if each in text), ""))


def _score_entries(graph: Graph, entries: Iterable[_Entry], sites: bool) -> Scores:
    """Return the scores that entries give; -inf for sites or bonds without an entry."""
    places = _places(graph, sites)
    what, columns = ("site", 1) if sites else ("bond", 2)
    scores = np.full(graph.num_sites if sites else graph.num_bonds, -np.inf)
    seen: set[tuple[str, ...]] = set()
    width = 0
    for n, (where, cells) in enumerate(entries):
        if sites and (width == 1 or " ".join(cells) in places):
            cells = [" ".join(cells)]
        width = width or len(cells)
        if len(cells) != width or not columns <= width <= columns + 1:
            form = "a site" if sites else "the two sites of a bond"
            raise InputError(f"{where}: {len(cells)} columns, but each line has {form} and, in all "
                             "lines or none, a score")  # fmt: skip
        key = tuple(cells[:columns]) if sites else tuple(sorted(cells[:columns]))
        shown = " ".join(cells[:columns])
        numbers = places.get(key[0] if sites else key)
        if numbers is None:
            raise InputError(f"{where}: {shown} is no {what} of {graph.name}")
        if key in seen:
            raise InputError(f"{where}: {what} {shown} is given twice")
        seen.add(key)
        scores[numbers] = -n if width == columns else _read_score(where, cells[-1])
    if not seen:
        raise InputError(f"order: names no {what}s")
    return scores


def _places(graph: Graph, sites: bool) -> dict[Any, Any]:
    """Return the numbers of sites by name, or of bonds by the names of their sites, sorted."""
    names = [str(graph.site_name(n)) for n in range(graph.num_sites)]
    if sites:
        return {name: n for n, name in enumerate(names)}
    numbers: dict[Any, list[int]] = {}
    for n, (i, j) in enumerate(graph.bonds.pairs.tolist()):
        numbers.setdefault(tuple(sorted((names[i], names[j]))), []).append(n)
    return numbers


def _read_score(where: str, text: str) -> float:
    with suppress(ValueError):
        if isfinite(score := float(text)):
            return score
    raise InputError(f"{where}: score {text!r}, but it must be a finite number")
