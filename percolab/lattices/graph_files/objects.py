"""Graphs as Python has them: networkx graphs, sparse matrices, data frames, arrays, lists.

Sites that are not numbered 0, 1, 2, ... have names, which are numbered in the order in which they
come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.edge_list import columns_named, known_ends, take_columns
from percolab.lattices.graph_files.graph_data import (
    Edges,
    GraphData,
    check_num_sites,
    check_options,
    merge_edges,
)
from percolab.lattices.graph_files.matrices import edges_of_matrix
from percolab.lattices.graph_files.through_networkx import edges_of_networkx
from percolab.lattices.graph_files.weights import make_weights
from percolab.lattices.topology import MAX_POINTS


def is_graph_object(graph: Any) -> bool:
    return _is_networkx(graph) or (hasattr(graph, "tocoo") and hasattr(graph, "shape"))


def _is_networkx(graph: Any) -> bool:
    return hasattr(graph, "is_directed") and hasattr(graph, "edges")


def is_frame(graph: Any) -> bool:
    return all(hasattr(graph, name) for name in ("columns", "iloc", "to_numpy"))


def graph_from_object(
    graph: Any,
    *,
    num_sites: int | None = None,
    multi: bool = False,
    weights: bool = False,
    columns: str | Sequence[Any] | None = None,
) -> GraphData:
    """Return sites and bonds of a graph given as objects or arrays, and weights if requested.

    graph: a networkx graph; a scipy.sparse matrix, of which every stored entry is an edge; a
    pandas.DataFrame, whose sites are in the columns source and target, or as a header of a file may
    name them, or else in the first two, and the weights in the column weight; an integer array
    (n, 2), or (n, 3) with weights; or a list of such pairs or rows, whose sites may be texts, their
    names.  With ``weights`` also a tuple (pairs, weights).  A dense array is never read as an
    adjacency matrix, and one of 2 or 3 rows that may be one is rejected.
    columns: of a data frame, the names of the columns of the sites, and of the weight.
    num_sites: where the largest site number does not say it.  Self-loops are left out, and parallel
    edges are merged unless ``multi``.

    InputError (one line): anything else; with weights, an edge that has none, or none that is
    finite.
    """
    import scipy.sparse

    check_options(num_sites, multi)
    requested = take_columns(columns)
    if requested and not is_frame(graph):
        raise InputError(f"columns: a {type(graph).__name__} has none by name; leave them out")
    try:
        if is_frame(graph):
            edges = _edges_of_frame(graph, requested, num_sites, weights)
        elif _is_networkx(graph) or scipy.sparse.issparse(graph):
            edges = _edges_of_graph(graph, weights)
            count = edges.num_sites
            check_num_sites("the graph", count, 0, count if num_sites is None else num_sites)
        elif weights and isinstance(graph, tuple) and len(graph) == 2:
            edges = _edges_of_pairs(np.asarray(graph[0]), make_weights(graph[1]), num_sites)
        elif isinstance(graph, list):
            if not any(isinstance(row, tuple) for row in graph):
                _refuse_matrix(graph)
            edges = _edges_of_rows(graph, num_sites, weights)
        else:
            edges = _edges_of_array(graph, num_sites, weights)
    except InputError:
        raise
    except (ValueError, TypeError) as error:  # what other packages refuse
        raise InputError(" ".join(str(error).split())) from error
    return merge_edges(edges, "the matrix", multi)


def _refuse_matrix(given: np.ndarray | list[Any]) -> None:
    """Raise InputError for an array, or a list of lists, that may be an adjacency matrix.

    One with 2 or 3 rows and as many columns is also the shape of edges.  It may be a matrix if it
    is all zeros and ones, or symmetric with a diagonal of zeros.  As edges it would name the edge
    of sites 0 and 1 alone, or every edge of site 0 twice.
    """
    if isinstance(given, list) and not all(
        isinstance(row, Sequence) and not isinstance(row, str) and len(row) == len(given)
        for row in given
    ):
        return
    array = np.asarray(given)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "biuf":
        return
    count = len(array)
    is_binary = np.isin(array, (0, 1)).all()
    is_symmetric = np.array_equal(array, array.T) and not array.diagonal().any()
    if count in (2, 3) and (is_binary or is_symmetric):
        raise InputError(
            f"an array ({count}, {count}) that may be edges or an adjacency matrix: give a matrix "
            "as scipy.sparse.csr_array(array), edges as a list of tuples"
        )
    if count > 3:
        raise InputError(
            f"an array ({count}, {count}) is no list of edges (n, 2): give an adjacency matrix as "
            "scipy.sparse.csr_array(array)"
        )


def _edges_of_graph(graph: Any, weights: bool) -> Edges:
    if _is_networkx(graph):
        return edges_of_networkx(graph, list(graph.nodes), weights, "the graph: ")
    return edges_of_matrix(graph, weights, "the matrix: ")


def _edges_of_array(given: Any, num_sites: int | None, weights: bool) -> Edges:
    if isinstance(given, np.ndarray):
        _refuse_matrix(given)
        if given.ndim == 2 and given.shape[1] in (2, 3):
            if weights and given.shape[1] == 2:
                raise InputError("an array (n, 2) has no weights: rows are (site, site, weight)")
            pairs = _whole(given[:, :2])
            values = make_weights(given[:, 2]) if weights else None
            return _edges_of_pairs(pairs, values, num_sites)
    kinds = "(pairs, weights) or rows (site, site, weight)" if weights else "edges (site, site)"
    raise InputError(
        f"a graph is no {type(given).__name__}: give a file, networkx graph, sparse matrix, {kinds}"
    )


def _edges_of_rows(given: Sequence[Any], num_sites: int | None, weights: bool) -> Edges:
    # A text is no pair of its letters.
    is_listed = all(isinstance(row, Iterable) and not isinstance(row, str | bytes) for row in given)
    rows = [tuple(row) for row in given] if is_listed else [()]
    if any(len(row) != 3 for row in rows) and (weights or any(len(row) != 2 for row in rows)):
        raise InputError(f"a list has rows (site, site{', weight' if weights else ''})")
    values = make_weights([row[2] for row in rows]) if weights else None
    if not any(isinstance(site, str) for row in rows for site in row[:2]):
        pairs = np.array([row[:2] for row in rows], object)
        pairs = np.array(pairs.tolist() or np.empty((0, 2), np.int64))
        return _edges_of_pairs(pairs, values, num_sites)
    ends = [str(site) for row in rows for site in row[:2]]
    numbers = {name: n for n, name in enumerate(dict.fromkeys(ends))}
    pairs = np.array([numbers[name] for name in ends]).reshape(-1, 2)
    return _edges_of_pairs(pairs, values, num_sites, tuple(numbers))


def _edges_of_frame(
    frame: Any, requested: tuple[Any, ...], num_sites: int | None, weights: bool
) -> Edges:
    labels = list(frame.columns)
    names = [str(label).lower() for label in labels]
    if len(labels) < 2:
        raise InputError("a data frame of edges has two columns of sites")
    if requested:
        sites, weight = columns_named(requested, labels)
    else:
        sites = known_ends(names) or (0, 1)
        weight = names.index("weight") if "weight" in names else -1
    if weights and weight < 0:
        raise InputError(
            "a data frame has a column 'weight' where bonds have weights, or columns names it third"
        )
    used = [frame.iloc[:, at] for at in (*sites, weight)[: 3 if weights else 2]]
    missing = np.flatnonzero(used[0].isna() | used[1].isna())
    if missing.size:
        raise InputError(f"row {missing[0]} of the data frame lacks a site")
    arrays = [column.to_numpy() for column in used]
    if not all(column.dtype.kind in "iuf" for column in arrays):
        return _edges_of_rows(list(zip(*(column.tolist() for column in used))), num_sites, weights)
    pairs = np.stack([_whole(column) for column in arrays[:2]], axis=1)
    return _edges_of_pairs(pairs, make_weights(arrays[2]) if weights else None, num_sites)


def _whole(sites: np.ndarray) -> np.ndarray:
    """Return site numbers as integers; ValueError if they are none."""
    if sites.dtype.kind not in "iuf":
        raise ValueError(f"sites are {sites.dtype}, but they must be integers")
    is_finite = np.isfinite(sites)
    whole = np.where(is_finite, sites, -1).astype(np.int64)
    wrong = sites[~is_finite | (whole != sites)]
    if wrong.size:
        raise ValueError(f"site {wrong[0]}, but sites are integers")
    return whole


def _edges_of_pairs(
    pairs: np.ndarray,
    values: np.ndarray | None,
    num_sites: int | None,
    names: tuple[str, ...] | None = None,
) -> Edges:
    if pairs.size == 0:
        pairs = np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError("pairs of sites are an integer array (n, 2)")
    if values is not None and values.shape != (len(pairs),):
        raise InputError(f"{values.size} weights for {len(pairs)} bonds")
    if num_sites is None and not len(pairs):
        raise InputError("names no sites; give num_sites if that is meant")
    most = num_sites - 1 if num_sites is not None else MAX_POINTS - 1
    if len(pairs) and not 0 <= pairs.min() <= pairs.max() <= most:
        wrong = pairs[(pairs < 0) | (pairs > most)][0]
        raise InputError(f"a bond names site {wrong}, but sites are 0 to {most}")
    count = num_sites if num_sites is not None else int(pairs.max()) + 1
    check_num_sites("pairs", count, len(pairs), num_sites)
    return Edges(count, pairs.astype(np.int32), values, names)
