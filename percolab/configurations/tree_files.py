"""A minimum spanning tree as a file: its bonds in CSV, NPZ or HDF5, or its words in NPY.

docs/trees.md describes them.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from percolab.configurations.array_files import HDF5_SUFFIXES
from percolab.errors import InputError
from percolab.lattices.graph import Graph
from percolab.store.output_files import Kind, check_output, check_suffix, write_output
from percolab.store.reading import read_file
from percolab.store.tree import Data, Node, write_tree
from percolab.trees.given import SpanningTree

FORMAT, SCHEMA_VERSION = "percolab tree", 1
SUFFIXES = (".csv", ".npz", ".npy", *HDF5_SUFFIXES)
_HEADER = b"source,target,weight"
_KINDS = {
    ".csv": Kind("a tree's table of bonds", lambda start: start.startswith(_HEADER)),
    ".npz": Kind("an .npz file", lambda start: start.startswith(b"PK")),
    ".npy": Kind("words of bonds", lambda start: b"'descr': '<u4'" in start[:80]),
}


def check_tree_file(path: str | Path, *, of_graph: bool) -> None:
    """Raise InputError unless a tree can be written to a file: before any work is done for it.

    of_graph: whether it is that of a graph, which has no words, as its sites have other numbers
    there.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy" and of_graph:
        raise InputError(f"{path}: a graph's bonds have no words of their own; write .csv or .npz")
    check_suffix(path, SUFFIXES, "a tree")
    check_output(path, _KINDS.get(suffix))
    is_kept = suffix in HDF5_SUFFIXES and path.exists() and path.stat().st_size > 0
    if is_kept and not _is_ours(path):
        raise InputError(f"{path}: holds something else than a tree; give another name")


def _is_ours(path: Path) -> bool:
    try:
        return read_file(path).attributes.get("format") == FORMAT
    except (OSError, RuntimeError, ValueError):
        return False


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
    write_output(path, buffer.getvalue(), _KINDS.get(suffix))


def _write_csv(buffer: io.BytesIO, tree: SpanningTree) -> None:
    text = io.TextIOWrapper(buffer, "utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_HEADER.decode().split(","))
    for (one, other), weight in zip(tree.bonds.tolist(), tree.weights.tolist(), strict=True):
        rows.writerow((tree.name_of(one), tree.name_of(other), weight))
    text.flush()
    text.detach()


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
