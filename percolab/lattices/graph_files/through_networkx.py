"""GraphML and GML, read by networkx where it is installed; every site and edge is an object there.

networkx evaluates nothing and follows no entities to elsewhere, but entities declared in the file
itself may expand to gigabytes, so GraphML with a document type declaration is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from percolab.errors import InputError, import_networkx
from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.stream import read_bytes, refused
from percolab.lattices.graph_files.weights import weights_from_objects

#: The note on a graph whose edges have a direction.
DIRECTED = "is directed, but a bond has no direction: u to v and v to u are one bond, u - v"

#: Largest file, unpacked, about 10^6 edges; networkx takes 12 times as much memory as the file has.
MOST_BYTES = 1 << 26


def read_through_networkx(path: Path, num_sites: int | None, weights: bool, *, what: str) -> Edges:
    """Return the edges of a file of GraphML or GML; InputError where networkx is missing."""
    networkx = import_networkx(f"{path}: {what} is read through networkx")
    advice = f"{what} is for small graphs, an edge list or Matrix Market file for large ones"
    data = read_bytes(path, most=MOST_BYTES, advice=advice)
    try:
        if what == "GML":
            graph = networkx.read_gml(BytesIO(data), label=None)
        else:
            _refuse_declarations(path, data)
            graph = networkx.read_graphml(BytesIO(data))
        for one, other, weight in graph.edges(data="weight"):
            if isinstance(weight, float) and math.isnan(weight):
                raise InputError(
                    f"{path}: edge {one} - {other}: weight nan, but a weight is a number"
                )
        known = _names(graph)
        names: tuple[str, ...] | None = tuple(known)
        numbers: Iterable[int] = range(len(known))
        if set(known) == set(map(str, numbers)):
            numbers, names = map(int, known), None
        edges = edges_of_networkx(graph, dict(zip(graph.nodes, numbers)), names, weights, path)
    except Exception as error:  # a text of anything makes its parser raise anything
        raise refused(path, what, error) from error
    check_num_sites(path, edges.num_sites, len(edges.ends), num_sites)
    return edges


def edges_of_networkx(
    graph: Any,
    numbers: dict[Any, int],
    names: tuple[str, ...] | None,
    weights: bool,
    where: Path | str,
) -> Edges:
    """Return the edges of a networkx graph, by the numbers of its nodes.

    Weights are the edges' attributes "weight".
    InputError: with weights, a directed graph, or an edge without a finite one; the line names it.
    """
    ends = (numbers[site] for edge in graph.edges() for site in edge)
    pairs = np.fromiter(ends, np.int32, 2 * graph.number_of_edges()).reshape(-1, 2)
    notes = (DIRECTED,) if graph.is_directed() else ()
    values = _weights(graph, where) if weights else None
    return Edges(len(numbers), pairs, values, names, notes=notes)


def _weights(graph: Any, where: Path | str) -> np.ndarray:
    if graph.is_directed():
        raise InputError(f"{where}: is directed, but weights are of bonds, which have no direction")
    bonds = list(graph.edges(data="weight"))
    try:
        return weights_from_objects([weight for _, _, weight in bonds])
    except ValueError as error:
        # Only now, edge by edge, which one is wrong.
        for one, other, weight in bonds:
            try:
                weights_from_objects([weight])
            except ValueError as own:
                raise InputError(f"{where}: edge {one} - {other}: {own}") from own
        raise InputError(f"{where}: {error}") from error


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
