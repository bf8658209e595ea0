"""A minimum spanning tree as a file: its bonds in CSV, NPZ or HDF5, or its words in NPY.

docs/trees.md describes them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from percolab.configurations.array_files import HDF5_SUFFIXES
from percolab.errors import InputError
from percolab.lattices.graph import Graph
from percolab.store.output_files import (
    Kind,
    archive,
    array,
    check_output,
    check_suffix,
    is_hdf5,
    marked_archive,
    marked_array,
    write_output,
)
from percolab.store.tree import Data, Node, write_tree
from percolab.tables.csv_text import csv_text
from percolab.trees.given import SpanningTree

FORMAT, SCHEMA_VERSION = "percolab tree", 1
SUFFIXES = (".csv", ".npz", ".npy", *HDF5_SUFFIXES)
_NPZ, _NPY = archive("a tree"), array("the words of a tree")
#: A table of bonds is one of any graph, whoever wrote it.
_KINDS = {".csv": Kind("a tree"), ".npz": _NPZ, ".npy": _NPY}
_KINDS |= dict.fromkeys(HDF5_SUFFIXES, Kind("a tree", is_hdf5(FORMAT)))


def check_tree_file(path: str | Path, *, of_graph: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError unless a tree can be written to a file: before any work is done for it.

    of_graph: whether it is that of a graph, which has no words, as its sites have other numbers
    there.  inputs: files that it is made of.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy" and of_graph:
        raise InputError(f"{path}: a graph's bonds have no words of their own; write .csv or .npz")
    check_suffix(path, SUFFIXES, "a tree")
    check_output(path, _KINDS.get(suffix), inputs)


def write_tree_file(path: str | Path, tree: SpanningTree) -> None:
    """Write a tree to .csv, .npz, .npy or .h5; complete or not at all.

    InputError: as for :func:`check_tree_file`.
    """
    check_tree_file(path, of_graph=isinstance(tree.structure, Graph))
    suffix = Path(path).suffix.lower()
    write: Callable[[Any, SpanningTree], None] = {
        ".csv": _write_csv,
        ".npz": _write_npz,
        ".npy": _write_npy,
    }.get(suffix, _write_hdf5)
    buffer = io.BytesIO()
    write(buffer, tree)
    write_output(path, _marked(buffer.getvalue(), suffix), _KINDS[suffix])


def _marked(content: bytes, suffix: str) -> bytes:
    if suffix == ".npz":
        return marked_archive(content, _NPZ)
    return marked_array(content, _NPY) if suffix == ".npy" else content


def _write_csv(buffer: io.BytesIO, tree: SpanningTree) -> None:
    rows = zip(tree.bonds.tolist(), tree.weights.tolist(), strict=True)
    cells = ((tree.site_name(one), tree.site_name(other), weight) for (one, other), weight in rows)
    buffer.write(csv_text(("source", "target", "weight"), cells).encode())


def _write_npz(buffer: io.BytesIO, tree: SpanningTree) -> None:
    from scipy.sparse import save_npz

    save_npz(buffer, tree.to_sparse())


def _write_npy(buffer: io.BytesIO, tree: SpanningTree) -> None:
    np.save(buffer, tree.words.astype("<u4", copy=False), allow_pickle=False)


def _write_hdf5(buffer: io.BytesIO, tree: SpanningTree) -> None:
    datasets = {"bonds": tree.bonds, "weights": tree.weights}
    if not isinstance(tree.structure, Graph):
        datasets["words"] = tree.words
    node = Node(
        {
            "format": FORMAT,
            "schema_version": np.array(SCHEMA_VERSION),
            "record": json.dumps(tree.to_dict()),
        },
        {name: Data(values) for name, values in datasets.items()},
    )
    write_tree(buffer, node)
