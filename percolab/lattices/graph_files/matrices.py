"""Adjacency matrices: Matrix Market files, and SciPy's sparse matrices in .npz files.

Matrix Market is the format of Boisvert, Pozo and Remington, NISTIR 5935 (1996): a coordinate
matrix, each entry an edge, its value the weight.  Lines are read as those of an edge list, so
nothing is set aside for what a header merely promises.

Before SciPy reads an array of an .npz file, its header is compared with the bytes in the archive,
so that no memory is taken for data that are not there.  Nothing is unpickled.
"""

from __future__ import annotations

import re
import zipfile
from itertools import chain
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

import percolab.lattices.graph_files.stream as stream
from percolab.errors import InputError
from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.pair_lines import Columns, read_pairs
from percolab.lattices.graph_files.stream import Lines, shown
from percolab.lattices.graph_files.weights import NOT_FINITE, plain_weights

#: Columns of an entry's line by what the header says the values are.
_WIDTHS = {b"pattern": 2, b"integer": 3, b"real": 3}
_SYMMETRIES = (b"general", b"symmetric")
_SIZE = re.compile(rb"\s*(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s*")
#: Arrays of indices, next to data, format and shape.
_INDICES = {"shape", "indices", "indptr", "row", "col", "coords"}
_KNOWN = _INDICES | {"data", "format", "_is_array"}
_FORMATS = ("csr", "csc", "bsr", "coo")
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_matrix_market(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the graph whose adjacency matrix a Matrix Market file holds."""
    parts = stream.read_lines(path)
    banner = next(parts, None)
    if banner is None:
        raise InputError(f"{path}: is empty")
    end = banner.text.index(b"\n")
    width = _width(path, banner.text[:end])
    if weights and width < 3:
        raise InputError(f"{path}: line 1: is a pattern, whose bonds have no weights")
    rest = Lines(banner.text[end + 1 :], banner.line + 1)
    size, parts = stream.next_data_line(chain([rest], parts))
    claimed, entries = _size(path, size)
    check_num_sites(path, claimed, entries, num_sites)
    columns = Columns(width=width, base=1, top=claimed)
    pairs = read_pairs(path, parts, columns, most=entries, weights=weights)
    num_edges = len(pairs.bonds) + pairs.num_loops
    if num_edges < entries:
        raise InputError(f"{path}: holds {num_edges} entries, but its header promises {entries}")
    return Edges(
        claimed, pairs.bonds, pairs.weights, num_loops=pairs.num_loops, is_matrix=True, base=1
    )


def _width(path: Path, banner: bytes) -> int:
    """Return the columns of an entry's line, by the first line of the file."""
    words = banner.lower().split()
    if len(words) != 5 or words[:2] != [b"%%matrixmarket", b"matrix"]:
        raise InputError(
            f"{path}: line 1: {shown(banner)}, but a Matrix Market file starts with "
            "'%%MatrixMarket matrix'"
        )
    layout, values, symmetry = words[2:]
    if layout != b"coordinate" or values not in _WIDTHS or symmetry not in _SYMMETRIES:
        raise InputError(
            f"{path}: line 1: {shown(b' '.join(words[2:]))}, but an adjacency matrix is "
            "coordinate, pattern or integer or real, and general or symmetric"
        )
    return _WIDTHS[values]


def _size(path: Path, line: Lines | None) -> tuple[int, int]:
    """Return rows and entries of a matrix as its header promises them."""
    if line is None:
        raise InputError(f"{path}: ends before the line with its rows, columns and entries")
    numbers = _SIZE.fullmatch(line.text)
    if not numbers:
        raise InputError(
            f"{path}: line {line.line}: {shown(line.text)}, but rows, columns and entries are "
            "three integers"
        )
    rows, columns, entries = map(int, numbers.groups())
    if rows != columns:
        raise InputError(
            f"{path}: line {line.line}: {rows} rows and {columns} columns, but an adjacency "
            "matrix is square"
        )
    return rows, entries


def read_npz(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the matrix in an .npz file: its entries, of bsr without zeros."""
    try:
        matrix = _load(path)
        check_num_sites(path, matrix.shape[0], matrix.size, num_sites)
        entries = matrix.tocoo()
        if matrix.format == "bsr":
            entries.eliminate_zeros()
        ends = np.stack([entries.row, entries.col], axis=1, dtype=np.int32)
        values = _weights(entries.data, ends) if weights else None
    except Exception as error:  # an archive of anything makes its readers raise anything
        raise stream.refused(
            path, "an adjacency matrix as scipy.sparse.save_npz writes it", error
        ) from error
    return Edges(matrix.shape[0], ends, values, is_matrix=True)


def _load(path: Path) -> Any:
    """Return the sparse matrix in an archive whose members are what they should be."""
    import scipy.sparse

    size = stream.file_size(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names):
            raise ValueError("it holds two arrays of one name")
        if "format" not in names:
            raise ValueError("array 'format' is missing")
        stream.check_unpacked(path, sum(member.file_size for member in members), size)
        for name, member in zip(names, members):
            with archive.open(member) as file:
                _check_header(name, file, member.file_size)
    matrix = scipy.sparse.load_npz(path)
    if matrix.format not in _FORMATS:
        raise ValueError(
            f"its format is {matrix.format!r}, but it must be one of {', '.join(_FORMATS)}"
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"its shape is {list(matrix.shape)}, but an adjacency matrix is square")
    if matrix.format != "coo":
        matrix.check_format(full_check=True)
    if matrix.data.dtype.kind not in "biuf":
        raise ValueError(f"its values are {matrix.data.dtype}, but they must be real numbers")
    if matrix.data.dtype.kind == "f" and np.isnan(matrix.data).any():
        raise ValueError("a value is NaN, but a weight is a number")
    return matrix


def _check_header(name: str, file: IO[bytes], size: int) -> None:
    """Raise ValueError unless an array is one of a matrix, and as large as its header says."""
    version = np.lib.format.read_magic(file)
    if version not in _READ_HEADER:
        raise ValueError(f"array {name!r} is stored in version {version[0]}.{version[1]}")
    shape, _, dtype = _READ_HEADER[version](file)
    if dtype.hasobject:
        raise ValueError(f"array {name!r} holds Python objects, and they are not unpickled")
    if name not in _KNOWN:
        raise ValueError(f"array {name!r} is none of a matrix")
    if name in _INDICES and dtype.kind not in "iu":
        raise ValueError(f"array {name!r} is {dtype}, not integers")
    count = prod(shape)
    if count * dtype.itemsize != size - file.tell():
        raise ValueError(f"array {name!r} promises {count} values, but holds another number")


def _weights(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the values of entries as weights; ValueError if one is NaN, -inf or too large."""
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~(values > -np.inf))
        if wrong.size:
            entry = tuple(ends[wrong[0]].tolist())
            raise ValueError(f"entry {entry} is {values[wrong[0]]}, {NOT_FINITE}")
    return plain_weights(values)
