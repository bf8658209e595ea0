"""GraphML and GML, read by networkx where it is installed; every site and edge is an object there.

networkx evaluates nothing and follows no entities to elsewhere, but entities declared in the file
itself may expand to gigabytes, so GraphML with a document type declaration is refused.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import (
    GraphData,
    check_num_sites,
    graph_data,
    without_loops,
)
from percolab.lattices.graph_files.stream import read_bytes, refused
from percolab.lattices.graph_files.weights import EdgeWeights, weights_from_objects

#: What is said of a graph whose edges have a direction.
DIRECTED = "is directed, but a bond has no direction: u to v and v to u are one bond, u - v"

#: Largest file, unpacked, about 10^6 edges; networkx takes 12 times as much memory as the file has.
MOST_BYTES = 1 << 26


def read_graphml(
    path: Path, num_sites: int | None, multi: bool, weights: bool = False
) -> GraphData:
    """Return the graph of a GraphML file; InputError where networkx is not installed."""

    def parse(networkx: Any, data: bytes) -> Any:
        _refuse_declarations(path, data)
        return networkx.read_graphml(BytesIO(data))

    return _read(path, num_sites, multi, weights, "GraphML", parse)


def read_gml(path: Path, num_sites: int | None, multi: bool, weights: bool = False) -> GraphData:
    """Return the graph of a GML file; InputError where networkx is not installed."""

    def parse(networkx: Any, data: bytes) -> Any:
        return networkx.read_gml(BytesIO(data), label=None)

    return _read(path, num_sites, multi, weights, "GML", parse)


def _read(
    path: Path,
    num_sites: int | None,
    multi: bool,
    weights: bool,
    what: str,
    parse: Callable[[Any, bytes], Any],
) -> GraphData:
    networkx = _networkx(path, what)
    advice = f"{what} is for small graphs, an edge list or Matrix Market file for large ones"
    data = read_bytes(path, most=MOST_BYTES, advice=advice)
    try:
        graph = parse(networkx, data)
        numbers, names = _numbered(_names(graph))
        _check_weights(path, graph)
        edges = read_edges(graph, dict(zip(graph.nodes, numbers)))
        found = _weights(path, graph) if weights else None
    except Exception as error:  # a text of anything makes its parser raise anything
        raise refused(path, what, error) from error
    check_num_sites(path, len(numbers), len(edges), num_sites)
    notes = (DIRECTED,) if graph.is_directed() else ()
    if found is not None:
        found = EdgeWeights(found.values[edges[:, 0] != edges[:, 1]], path)
    edges, num_loops = without_loops(edges[:, 0], edges[:, 1])
    return graph_data(
        len(numbers),
        edges,
        multi=multi,
        names=names,
        num_loops=num_loops,
        notes=notes,
        weights=found,
    )


def read_edges(graph: Any, numbers: dict[Any, int]) -> np.ndarray:
    """Return the edges of a networkx graph, int32 (num_edges, 2), by the numbers of its nodes."""
    ends = (numbers[site] for edge in graph.edges() for site in edge)
    return np.fromiter(ends, np.int32, 2 * graph.number_of_edges()).reshape(-1, 2)


def networkx_weights(graph: Any) -> np.ndarray:
    """Return the attributes "weight" of a networkx graph's edges, as in ``read_edges``.

    InputError: a directed graph, or an edge without a finite weight; the line names it.
    """
    if graph.is_directed():
        raise InputError("is directed, but weights are wanted of bonds, which have no direction")
    found = list(graph.edges(data="weight"))
    try:
        return weights_from_objects([weight for _, _, weight in found])
    except ValueError as error:
        # Which edge it is is looked for where something is wrong, not edge by edge.
        for one, other, weight in found:
            try:
                weights_from_objects([weight])
            except ValueError as own:
                raise InputError(f"edge {one} - {other}: {own}") from own
        raise InputError(str(error)) from error


def _weights(path: Path, graph: Any) -> EdgeWeights:
    try:
        return EdgeWeights(networkx_weights(graph), path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _networkx(path: Path, what: str) -> Any:
    try:
        return importlib.import_module("networkx")
    except ImportError as error:
        raise InputError(
            f"{path}: {what} is read through networkx, which is not installed; "
            "pip install 'percolab[graph]'"
        ) from error


def _refuse_declarations(path: Path, data: bytes) -> None:
    """Raise InputError if XML declares a document type, in which alone entities are declared."""

    def declared(*_: object) -> None:
        raise InputError(f"{path}: declares a document type (<!DOCTYPE>), which GraphML needs not")

    def begun(*_: object) -> None:
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.StartElementHandler = begun
    with suppress(StopIteration):
        parser.Parse(data, True)


def _names(graph: Any) -> list[str]:
    """Return the sites' names: their labels (GML) where all differ, otherwise their ids."""
    labels = [str(label) for _, label in graph.nodes(data="label") if label is not None]
    if len(set(labels)) == graph.number_of_nodes():
        return labels
    return [str(node) for node in graph.nodes]


def _numbered(names: Sequence[str]) -> tuple[Sequence[int], tuple[str, ...] | None]:
    """Return each site's number, and the names by number unless names and numbers are the same."""
    if set(names) == set(map(str, range(len(names)))):
        return [int(name) for name in names], None
    return range(len(names)), tuple(names)


def _check_weights(path: Path, graph: Any) -> None:
    for one, other, weight in graph.edges(data="weight"):
        if isinstance(weight, float) and math.isnan(weight):
            raise InputError(f"{path}: edge {one} - {other}: weight nan, but a weight is a number")
