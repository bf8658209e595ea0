"""GraphML and GML, read by networkx where it is installed; every site and edge is an object there.

networkx evaluates nothing and loads no external entities, but entities declared in the file itself
may expand to gigabytes, so GraphML with a document type declaration is rejected.
"""

import math
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from percolab.errors import InputError, import_networkx
from percolab.lattices.graph_files.graph_data import DIRECTED, Edges, check_num_sites
from percolab.lattices.graph_files.text import read_bytes, refused
from percolab.lattices.graph_files.weights import make_weights

#: Largest file in bytes, unpacked, about 10^6 edges; networkx needs 12 times the file's size.
MOST_BYTES = 1 << 26


def read_through_networkx(path: Path, num_sites: int | None, weights: bool, *, what: str) -> Edges:
    """Return the edges of a file of GraphML or GML; InputError where networkx is missing."""
    networkx = import_networkx(f"{path}: {what} is read through networkx")
    advice = f"{what} is for small graphs, an edge list or Matrix Market file for large ones"
    data = read_bytes(path, MOST_BYTES, advice)
    try:
        if what == "GML":
            graph = networkx.read_gml(BytesIO(data), label=None)
        else:
            _refuse_declarations(path, data)
            graph = networkx.read_graphml(BytesIO(data))
        edges = edges_of_networkx(graph, _names(graph), weights, f"{path}: ")
    except Exception as error:  # a damaged text may make its parser raise any exception
        raise refused(path, what, error) from error
    check_num_sites(path, edges.num_sites, len(edges.ends), num_sites)
    return edges


def edges_of_networkx(graph: Any, names: Sequence[Any], weights: bool, where: str = "") -> Edges:
    """Return the edges of a networkx graph, with their attributes "weight" if requested.

    names: the nodes' names, in order; if they are the integers 0 to N - 1, they number the sites.
    where: how an error begins.
    InputError: a weight is NaN; with weights, a directed graph, or an edge without a finite weight.
    """
    is_numbered = set(names) == set(range(len(names)))
    numbers = dict(zip(graph.nodes, names if is_numbered else range(len(names))))
    bonds = list(graph.edges(data="weight"))
    for one, other, weight in bonds:
        if isinstance(weight, float) and math.isnan(weight):
            raise InputError(f"{where}edge {one} - {other}: weight nan, but a weight is a number")
    if weights and graph.is_directed():
        raise InputError(f"{where}is directed, but weights are of bonds, which have no direction")
    values = None
    if weights:
        given = [weight for _, _, weight in bonds]
        values = make_weights(given, lambda n: f"{where}edge {bonds[n][0]} - {bonds[n][1]}: ")
    ends = np.array([(numbers[one], numbers[other]) for one, other, _ in bonds], np.int32)
    notes = (DIRECTED,) if graph.is_directed() else ()
    known = None if is_numbered else tuple(names)
    return Edges(len(names), ends.reshape(-1, 2), values, known, notes)


def _refuse_declarations(path: Path, data: bytes) -> None:
    """Raise InputError if XML declares a document type, the only place to declare entities."""

    def declared(*_: object) -> None:
        raise InputError(f"{path}: declares a document type (<!DOCTYPE ...>): remove it")

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.Parse(data, True)


def _names(graph: Any) -> list[Any]:
    """Return the sites' names: their labels (GML) where all differ, otherwise their ids.

    They are integers if they are the numbers of the sites.
    """
    labels = [str(label) for _, label in graph.nodes(data="label") if label is not None]
    if len(set(labels)) != graph.number_of_nodes():
        labels = [str(node) for node in graph.nodes]
    return list(map(int, labels)) if set(labels) == set(map(str, range(len(labels)))) else labels
