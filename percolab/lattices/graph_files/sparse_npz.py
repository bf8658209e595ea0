"""SciPy's sparse matrices in .npz files, as scipy.sparse.save_npz writes them.

Before SciPy reads an array, its header is compared with the bytes in the archive, so that no memory
is taken for data that are not there.  Nothing is unpickled.
"""

from __future__ import annotations

import zipfile
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from percolab.lattices.graph_files.graph_data import Edges, check_num_sites
from percolab.lattices.graph_files.stream import check_unpacked, file_size, refused
from percolab.lattices.graph_files.weights import NOT_FINITE, plain_weights

#: Arrays of indices, next to data, format and shape.
_INDICES = {"shape", "indices", "indptr", "row", "col", "coords"}
_KNOWN = _INDICES | {"data", "format", "_is_array"}
_FORMATS = ("csr", "csc", "bsr", "coo")
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: Path, num_sites: int | None, weights: bool) -> Edges:
    """Return the edges of the adjacency matrix, csr, csc, coo or bsr, in an .npz file.

    Every stored entry is an edge, whatever its value, but for the zeros in the blocks of bsr.
    """
    try:
        matrix = _load(path)
        check_num_sites(path, matrix.shape[0], matrix.size, num_sites)
        entries = matrix.tocoo()
        if matrix.format == "bsr":
            entries.eliminate_zeros()
        ends = np.stack([entries.row, entries.col], axis=1, dtype=np.int32)
        found = _weights(entries.data, ends) if weights else None
    except Exception as error:  # an archive of anything makes its readers raise anything
        raise refused(
            path, "an adjacency matrix as scipy.sparse.save_npz writes it", error
        ) from error
    return Edges(matrix.shape[0], ends, found, is_matrix=True)


def _load(path: Path) -> Any:
    """Return the sparse matrix in an archive whose members are what they should be."""
    import scipy.sparse

    size = file_size(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names):
            raise ValueError("it holds two arrays of one name")
        if "format" not in names:
            raise ValueError("array 'format' is missing")
        check_unpacked(path, sum(member.file_size for member in members), size)
        for name, member in zip(names, members):
            with archive.open(member) as stream:
                _check_header(name, stream, member.file_size)
    matrix = scipy.sparse.load_npz(path)
    if matrix.format not in _FORMATS:
        raise ValueError(
            f"its format is {matrix.format!r}, but it must be one of {', '.join(_FORMATS)}"
        )
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"its shape is {list(matrix.shape)}, but an adjacency matrix is square")
    if matrix.format != "coo":
        matrix.check_format(full_check=True)
    _check_values(matrix.data)
    return matrix


def _check_header(name: str, stream: IO[bytes], size: int) -> None:
    """Raise ValueError unless an array is one of a matrix, and as large as its header says."""
    version = np.lib.format.read_magic(stream)
    if version not in _READ_HEADER:
        raise ValueError(f"array {name!r} is stored in version {version[0]}.{version[1]}")
    shape, _, dtype = _READ_HEADER[version](stream)
    if dtype.hasobject:
        raise ValueError(f"array {name!r} holds Python objects, and they are not unpickled")
    if name not in _KNOWN:
        raise ValueError(f"array {name!r} is none of a matrix")
    if name in _INDICES and dtype.kind not in "iu":
        raise ValueError(f"array {name!r} is {dtype}, not integers")
    count = prod(shape)
    if count * dtype.itemsize != size - stream.tell():
        raise ValueError(f"array {name!r} promises {count} values, but holds another number")


def _check_values(data: np.ndarray) -> None:
    if data.dtype.kind not in "biuf":
        raise ValueError(f"its values are {data.dtype}, but they must be real numbers")
    if data.dtype.kind == "f" and np.isnan(data).any():
        raise ValueError("a value is NaN, but a weight is a number")


def _weights(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the values of entries as weights; ValueError if one is not finite or too large."""
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            entry = tuple(ends[wrong[0]].tolist())
            raise ValueError(f"entry {entry} is {values[wrong[0]]}, {NOT_FINITE}")
    return plain_weights(values)
