"""Adjacency matrices: Matrix Market files, and SciPy's sparse matrices, in .npz files or not.

Matrix Market is the format of Boisvert, Pozo and Remington, NISTIR 5935 (1996): a coordinate
matrix, each entry an edge, its value the weight.  Lines are read like those of an edge list, so no
memory is allocated for entries that a header merely promises; scipy.io.mmread allocates it, and
reads the weight 1.5D+01 as 1.5, and 1.5 in a matrix of integers as 1.

Before SciPy reads an array of an .npz file, its header is compared with the bytes in the archive,
so that no memory is taken for data that are not there.  Nothing is unpickled.
"""

import re
import zipfile
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.pair_lines import Columns, read_pairs
from percolab.lattices.graph_files.text import (
    check_unpacked,
    data_lines,
    file_size,
    read_text,
    refused,
    shown,
)
from percolab.lattices.graph_files.weights import make_weights

_BANNER = re.compile(
    rb"%%MatrixMarket[ \t]+matrix[ \t]+coordinate[ \t]+(pattern|integer|real)[ \t]+"
    rb"(?:general|symmetric)\s",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})")
#: Arrays that must have integers; SciPy would convert other numbers, 1.5 to 1.
_INDICES = {"shape", "indices", "indptr", "row", "col", "coords"}
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_matrix_market(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the graph whose adjacency matrix a Matrix Market file holds."""
    text = read_text(path)
    banner = _BANNER.match(text)
    if banner is None:
        line = text.partition(b"\n")[0].decode("utf-8", "replace")
        raise InputError(
            f"{path}: line 1: {shown(line)}, but an adjacency matrix starts with '%%MatrixMarket "
            "matrix coordinate', pattern, integer or real, and general or symmetric"
        )
    width = 2 if banner[1].lower() == b"pattern" else 3
    if weights and width < 3:
        raise InputError(f"{path}: line 1: is a pattern, whose bonds have no weights")
    place, line = next(data_lines(text), (1, ""))
    size = _SIZE.fullmatch(line)
    if size is None:
        raise InputError(
            f"{path}: line {place}: {shown(line)}, but rows, columns and entries are three integers"
        )
    rows, columns, entries = map(int, size.groups())
    if rows != columns:
        raise InputError(
            f"{path}: line {place}: {rows} rows and {columns} columns, but an adjacency matrix is "
            "square"
        )
    check_num_sites(path, rows, entries, num_sites)
    edges = read_pairs(path, text, place, Columns(width=width, base=1, top=rows), weights)
    if len(edges.ends) != entries:
        raise InputError(
            f"{path}: holds {len(edges.ends)} entries, but its header promises {entries}"
        )
    return edges._replace(num_sites=rows, is_matrix=True, base=1)


def read_npz(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the matrix in an .npz file: its entries, without the zeros of bsr."""
    try:
        edges = edges_of_matrix(_load(path), weights, f"{path}: ")
    except Exception as error:  # a damaged archive may make its readers raise any exception
        raise refused(
            path, "an adjacency matrix as scipy.sparse.save_npz writes it", error
        ) from error
    check_num_sites(path, edges.num_sites, len(edges.ends), num_sites)
    return edges


def edges_of_matrix(matrix: Any, weights: bool, where: str = "") -> Edges:
    """Return the edges of a square sparse matrix: its stored entries, without the zeros of bsr.

    where: how an error about an entry begins.  InputError: a weight that is invalid or too large.
    ValueError: the matrix is not square, or a value is NaN.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a matrix of shape {matrix.shape}, but an adjacency matrix is square")
    entries = matrix.tocoo(copy=True)
    if matrix.format == "bsr":  # the zeros in its blocks are padding
        entries.eliminate_zeros()
    if entries.data.dtype.kind == "f" and np.isnan(entries.data).any():
        raise ValueError("a value is NaN, but a weight is a number")
    ends = np.stack([entries.row, entries.col], axis=1, dtype=np.int32)
    values = None
    if weights:
        values = make_weights(entries.data, lambda n: f"{where}entry {tuple(ends[n].tolist())}: ")
    return Edges(matrix.shape[0], ends, values, is_matrix=True)


def _load(path: Path) -> Any:
    """Return the sparse matrix in an archive, after a check of its members."""
    import scipy.sparse

    size = file_size(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_unpacked(path, sum(member.file_size for member in members), size)
        if "format.npy" not in archive.namelist():
            raise ValueError("array 'format' is missing")
        for member in members:
            with archive.open(member) as file:
                _check_header(member.filename.removesuffix(".npy"), file, member.file_size)
    matrix = scipy.sparse.load_npz(path)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    kind = matrix.data.dtype
    if kind.kind not in "biuf" or (kind.kind == "f" and kind.itemsize > 8):
        raise ValueError(f"its values are {kind}, but they must be numbers of at most 64 bits")
    return matrix


def _check_header(name: str, file: IO[bytes], size: int) -> None:
    """Raise ValueError unless an array is as large as its header says, and its indices integers."""
    shape, _, dtype = _READ_HEADER[np.lib.format.read_magic(file)](file)
    if name in _INDICES and dtype.kind not in "iu":
        raise ValueError(f"array {name!r} is {dtype}, not integers")
    if not dtype.hasobject and prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(f"array {name!r} declares {prod(shape)} values, but has another number")
