"""Graphs given as Python objects: networkx graphs, sparse matrices, data frames, arrays, lists.

Sites that are not numbered 0, 1, 2, ... have names, and are numbered in the order in which their
names first occur.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from percolab.errors import InputError, one_line, refuse_mask
from percolab.lattices.graph_files.edge_list import choose_columns, take_columns
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
from percolab.lattices.shown import counted
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

    graph: a graph of networkx or igraph; a scipy.sparse matrix, of which every stored entry is an
    edge; a pandas.DataFrame, whose sites are in the columns source and target, or as a header of a
    file may name them, or else in the first two, and the weights in the column weight; an integer
    array (n, 2), or (n, 3) with weights; a list of such pairs or rows, whose sites may be texts or
    tuples, their names; or a tuple (pairs, weights). A dense array is never read as an adjacency
    matrix, and one of 2 or 3 rows that may be one is rejected.
    columns: of a data frame, the names of the columns of the sites, and of the weight.
    num_sites: by default the largest site number plus one.  Self-loops are left out, and parallel
    edges are merged unless ``multi``.

    InputError (one line): anything else; with weights, an edge without a weight, or with one that
    is not finite.
    """
    import scipy.sparse

    check_options(num_sites, multi)
    requested = take_columns(columns)
    if requested and not is_frame(graph):
        raise InputError(f"columns: a {type(graph).__name__} has no named columns; leave them out")
    if hasattr(graph, "to_networkx"):  # of igraph
        graph = graph.to_networkx(vertex_attr_hashable="name")
    try:
        if _is_networkx(graph) or scipy.sparse.issparse(graph):
            if _is_networkx(graph):
                edges = edges_of_networkx(graph, list(graph.nodes), weights, "the graph: ")
            else:
                edges = edges_of_matrix(graph, weights, "the matrix: ")
            count = edges.num_sites
            check_num_sites("the graph", count, 0, count if num_sites is None else num_sites)
        else:
            edges = _edges_of_columns(_split_columns(graph, requested, weights), num_sites)
    except InputError:
        raise
    except (ValueError, TypeError) as error:  # raised by other packages
        raise InputError(one_line(error)) from error
    return merge_edges(edges, "the matrix", multi)


def _split_columns(graph: Any, requested: Sequence[Any], weights: bool) -> list[Any]:
    """Return the columns of the two sites of edges, and of their weights if requested."""
    if is_frame(graph):
        return _columns_of_frame(graph, requested, weights)
    for array in graph[:1] if isinstance(graph, tuple) else (graph,):
        refuse_mask("the graph", array)
    count = 3 if weights else 2
    if isinstance(graph, tuple) and len(graph) == 2:
        pairs = np.asarray(graph[0])
        if pairs.size and pairs.shape[1:] != (2,):
            raise InputError("pairs of sites are an integer array (n, 2)")
        values = make_weights(graph[1])
        if values.shape != (len(pairs),):
            raise InputError(f"{values.size} weights for {counted(len(pairs), 'bond')}")
        return [*pairs.reshape(-1, 2).T, values][:count]
    row = ", ".join(("site", "site", "weight")[:count])
    if isinstance(graph, Iterable) and not isinstance(graph, np.ndarray | dict | str | bytes):
        graph = list(graph)
    if isinstance(graph, list):
        if not any(isinstance(edge, tuple) for edge in graph):
            _refuse_matrix(graph)
        # A text of two letters is not a pair of sites.
        is_listed = not any(isinstance(edge, str | bytes) for edge in graph)
        rows = [tuple(edge) for edge in graph if is_listed and isinstance(edge, Iterable)]
        if len(rows) < len(graph) or not {len(edge) for edge in rows} <= {count, 3}:
            raise InputError(f"a list has rows ({row})")
        return [[edge[at] for edge in rows] for at in range(count)]
    if isinstance(graph, np.ndarray):
        _refuse_matrix(graph)
        if graph.ndim == 2 and graph.shape[1] in (count, 3):
            return list(graph.T[:count])
    kind = type(graph).__name__
    raise InputError(
        f"a graph is no {kind}: give a file, networkx graph, sparse matrix, or rows ({row})"
    )


def _refuse_matrix(given: np.ndarray | list[Any]) -> None:
    """Raise InputError for an array, or a list of lists, that may be an adjacency matrix.

    A list of edges can also have 2 or 3 rows and as many columns.  The array may be a matrix if it
    is all zeros and ones, or symmetric with a diagonal of zeros.  Read as edges, it would have only
    edges of sites 0 and 1, or every edge of site 0 twice.
    """
    count = len(given)
    if isinstance(given, list) and any(
        not isinstance(row, Sequence) or isinstance(row, str) or len(row) != count for row in given
    ):
        return
    array = np.asarray(given)
    if array.shape != (count, count) or array.dtype.kind not in "biuf" or count < 2:
        return
    is_symmetric = np.array_equal(array, array.T) and not array.diagonal().any()
    if count > 3 or is_symmetric or np.isin(array, (0, 1)).all():
        raise InputError(
            f"an array ({count}, {count}) may be an adjacency matrix: give a matrix as "
            "scipy.sparse.csr_array(array), edges as a list of tuples"
        )


def _columns_of_frame(frame: Any, requested: Sequence[Any], weights: bool) -> list[Any]:
    labels = list(frame.columns)
    if len(labels) < 2:
        raise InputError("a data frame of edges has two columns of sites")
    if list(frame.index) == labels:
        _refuse_matrix(frame.to_numpy())
    sites, weight = choose_columns(labels, requested)
    if weights and weight < 0:
        raise InputError(
            "a data frame has a column 'weight' where bonds have weights, or columns names it third"
        )
    used = [frame.iloc[:, at] for at in (*(sites or (0, 1)), weight)[: 3 if weights else 2]]
    missing = np.flatnonzero(used[0].isna() | used[1].isna())
    if missing.size:
        raise InputError(f"row {missing[0]} of the data frame lacks a site")
    arrays = [column.to_numpy() for column in used]
    return [array if array.dtype.kind in "iuf" else array.tolist() for array in arrays]


def _edges_of_columns(columns: Sequence[Any], num_sites: int | None) -> Edges:
    """Return the edges given by columns: two of sites, numbers or names, and one of weights."""
    names = None
    # Tuples are sites of networkx, as those of grid_2d_graph.
    if any(isinstance(site, str | tuple) for column in columns[:2] for site in column):
        ends = [str(site) for pair in zip(*columns[:2]) for site in pair]
        names = {name: n for n, name in enumerate(dict.fromkeys(ends))}
        pairs = np.array([names[name] for name in ends]).reshape(-1, 2)
    else:
        pairs = np.stack([_whole(np.asarray(column)) for column in columns[:2]], axis=1)
    values = make_weights(columns[2]) if len(columns) > 2 else None
    if num_sites is None and not len(pairs):
        raise InputError("names no sites; give num_sites if that is meant")
    most = (num_sites or MAX_POINTS) - 1
    wrong = pairs[(pairs < 0) | (pairs > most)]
    if wrong.size:
        raise InputError(f"a bond names site {wrong[0]}, but sites are 0 to {most}")
    count = num_sites if num_sites is not None else int(pairs.max()) + 1
    check_num_sites("pairs", count, len(pairs), num_sites)
    return Edges(count, pairs.astype(np.int32), values, tuple(names) if names else None)


def _whole(sites: np.ndarray) -> np.ndarray:
    """Return site numbers as integers; ValueError if they are none."""
    if sites.ndim != 1:
        raise ValueError("sites are integers or texts, no lists")
    if sites.dtype.kind not in "iuf":
        raise ValueError(f"sites are {sites.dtype}, but they must be integers")
    whole = np.where(np.isfinite(sites), sites, -1).astype(np.int64)
    wrong = sites[whole != sites]
    if wrong.size:
        raise ValueError(f"site {wrong[0]}, but sites are integers")
    return whole
