"""Files of a minimum spanning tree: its bonds in CSV, NPZ or HDF5, or its bond words in NPY.

docs/trees.md describes them.
"""

import io
import json
from collections.abc import Iterable
from pathlib import Path

from percolab.configurations.array_files import HDF5_SUFFIXES
from percolab.errors import InputError
from percolab.lattices.graph import Graph
from percolab.lattices.shown import csv_text
from percolab.store import output_files as files
from percolab.store.reading import FileFormat, encode_file
from percolab.trees.given import SpanningTree

FORMAT = FileFormat("percolab tree", 1, "no tree")
SUFFIXES = (".csv", ".npz", ".npy", *HDF5_SUFFIXES)
_NPZ, _NPY = files.archive("a tree"), files.array("the words of a tree")
#: A CSV table of bonds has no mark that percolab wrote it.
_KINDS = {".csv": files.Kind("a tree"), ".npz": _NPZ, ".npy": _NPY}
_KINDS |= dict.fromkeys(HDF5_SUFFIXES, files.Kind("a tree", files.is_hdf5(FORMAT.name)))


def check_tree_file(path: str | Path, *, of_graph: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError unless a tree can be written to a file; call this before computing it.

    of_graph: whether it is the tree of a graph, which has no words, as they use other site numbers.
    inputs: the input files, which must not be replaced.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npy" and of_graph:
        raise InputError(
            f"{path}: a .npy file stores trees of lattices, not of graphs; write .csv or .npz"
        )
    files.check_suffix(path, SUFFIXES, "a tree")
    files.check_output(path, _KINDS.get(suffix), inputs)


def write_tree_file(path: str | Path, tree: SpanningTree) -> None:
    """Write a tree to .csv, .npz, .npy or .h5, completely or not at all.

    InputError: as for :func:`check_tree_file`.
    """
    check_tree_file(path, of_graph=isinstance(tree.structure, Graph))
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        rows = zip(tree.bonds.tolist(), tree.weights.tolist(), strict=True)
        cells = ((*map(tree.site_name, bond), weight) for bond, weight in rows)
        content = csv_text(("source", "target", "weight"), cells).encode()
    elif suffix == ".npz":
        from scipy.sparse import save_npz

        buffer = io.BytesIO()
        save_npz(buffer, tree.to_sparse())
        content = files.marked_archive(buffer.getvalue(), _NPZ)
    elif suffix == ".npy":
        content = files.encode_array(tree.words.astype("<u4", copy=False), _NPY)
    else:
        datasets = {"bonds": tree.bonds, "weights": tree.weights}
        if not isinstance(tree.structure, Graph):
            datasets["words"] = tree.words
        content = encode_file(FORMAT, {"record": json.dumps(tree.to_dict())}, datasets)
    files.write_output(path, content, _KINDS[suffix])
