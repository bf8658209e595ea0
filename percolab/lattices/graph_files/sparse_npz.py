"""SciPy's sparse matrices in .npz files, as scipy.sparse.save_npz writes them.

Each array's own header is compared with the bytes that its member of the archive holds before the
array is read, so that no memory is taken for data that the file does not hold.  Nothing is
unpickled.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from percolab.lattices.graph_files.graph_data import (
    GraphData,
    check_num_sites,
    graph_data,
    without_loops,
)
from percolab.lattices.graph_files.stream import check_unpacked, file_size, refused
from percolab.lattices.graph_files.weights import NOT_FINITE, EdgeWeights, plain_weights

_COMPRESSED = {"data", "indices", "indptr"}
#: Names of the arrays that hold a matrix, by format; beside them are format and shape.
_ARRAYS = {
    "csr": (_COMPRESSED,),
    "csc": (_COMPRESSED,),
    "bsr": (_COMPRESSED,),
    "coo": ({"data", "row", "col"}, {"data", "coords"}),
}
_EVERY = {"format", "shape"}
_READ_HEADER = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

Arrays = dict[str, np.ndarray]


def read_npz(path: Path, num_sites: int | None, multi: bool, weights: bool = False) -> GraphData:
    """Return the graph whose adjacency matrix, csr, csc, coo or bsr, an .npz file holds.

    Every stored entry is an edge, whatever its value, but for the zeros in the blocks of bsr.
    """
    try:
        arrays = _load(path)
        kind, claimed = _format(arrays), _rows(arrays)
        check_num_sites(path, claimed, arrays["data"].size, num_sites)
        _check_values(arrays["data"])
        rows, columns, values = _entries(kind, arrays, claimed)
        found = _weights(values, rows, columns) if weights else None
    except Exception as error:  # an archive of anything makes its readers raise anything
        raise refused(
            path, "an adjacency matrix as scipy.sparse.save_npz writes it", error
        ) from error
    del arrays, values
    edges, num_loops = without_loops(rows, columns)
    if found is not None and num_loops:
        found = found[rows != columns]
    del rows, columns
    return graph_data(
        claimed,
        edges,
        multi=multi,
        is_matrix=True,
        num_loops=num_loops,
        weights=None if found is None else EdgeWeights(found, path),
    )


def _load(path: Path) -> Arrays:
    """Return the arrays of an archive whose members are what they should be."""
    size = file_size(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names):
            raise ValueError("it holds two arrays of one name")
        check_unpacked(path, sum(member.file_size for member in members), size)
        for name, member in zip(names, members):
            with archive.open(member) as stream:
                _check_header(name, stream, member.file_size)
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in names}


def _check_header(name: str, stream: IO[bytes], size: int) -> None:
    """Raise ValueError unless an array holds no objects and is as large as its header says."""
    version = np.lib.format.read_magic(stream)
    if version not in _READ_HEADER:
        raise ValueError(f"array {name!r} is stored in version {version[0]}.{version[1]}")
    shape, _, dtype = _READ_HEADER[version](stream)
    if dtype.hasobject:
        raise ValueError(f"array {name!r} holds Python objects, and they are not unpickled")
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize != size - stream.tell():
        raise ValueError(f"array {name!r} promises {count} values, but holds another number")


def _format(arrays: Arrays) -> str:
    """Return the format of a matrix; ValueError unless all its arrays are there, and no others."""
    missing = _EVERY - set(arrays)
    if missing:
        raise ValueError(f"array {min(missing)!r} is missing")
    stored = arrays["format"]
    text = stored.item() if stored.size == 1 and stored.dtype.kind in "SU" else None
    kind = text.decode("ascii") if isinstance(text, bytes) else text
    if kind not in _ARRAYS:
        raise ValueError(f"its format is {kind!r}, but it must be one of {', '.join(_ARRAYS)}")
    names = set(arrays) - _EVERY - {"_is_array"}
    if names not in _ARRAYS[kind]:
        expected = " or ".join(", ".join(sorted(known)) for known in _ARRAYS[kind])
        raise ValueError(f"a {kind} matrix has {expected}, but it holds {', '.join(sorted(names))}")
    return kind


def _rows(arrays: Arrays) -> int:
    """Return the rows of a square matrix."""
    shape = arrays["shape"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape[0] != shape[1]:
        raise ValueError(
            f"its shape is {shape.ravel()[:3].tolist()}, but an adjacency matrix is square"
        )
    return int(shape[0])


def _check_values(data: np.ndarray) -> None:
    if data.dtype.kind not in "biuf":
        raise ValueError(f"its values are {data.dtype}, but they must be real numbers")
    if data.dtype.kind == "f" and np.isnan(data).any():
        raise ValueError("a value is NaN, but a weight is a number")


def _weights(values: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the values of entries as weights; ValueError if one is not finite or too large."""
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(values))
        if wrong.size:
            entry = int(rows[wrong[0]]), int(columns[wrong[0]])
            raise ValueError(f"entry {entry} is {values[wrong[0]]}, {NOT_FINITE}")
    return plain_weights(values)


def _entries(kind: str, arrays: Arrays, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row and column of every entry, int32, and its value."""
    data = arrays["data"]
    if kind == "bsr":
        return _block_entries(arrays, size)
    if data.ndim != 1:
        raise ValueError(f"data has {data.ndim} axes, but it must have 1")
    if kind == "coo":
        rows, columns = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
        if not rows.size == columns.size == data.size:
            raise ValueError(f"{rows.size} rows, {columns.size} columns and {data.size} values")
        return _indices("row", rows, size), _indices("col", columns, size), data
    major, minor = _expanded(arrays, size, size)
    data = data[: major.size]
    return (major, minor, data) if kind == "csr" else (minor, major, data)


def _block_entries(arrays: Arrays, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and value of every value in the blocks of bsr that is not zero."""
    data = arrays["data"]
    if data.ndim != 3 or 0 in data.shape[1:] or size % data.shape[1] or size % data.shape[2]:
        raise ValueError(f"blocks of shape {data.shape[1:]} do not fill {size} rows and columns")
    height, width = data.shape[1:]
    block_row, block_column = _expanded(arrays, size // height, size // width)
    block, row, column = np.nonzero(data[: block_row.size])
    values = data[block, row, column]
    row += block_row[block] * height
    column += block_column[block] * width
    return row.astype(np.int32), column.astype(np.int32), values


def _expanded(arrays: Arrays, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the row, or row of blocks, and the column of each entry of compressed rows."""
    starts, indices = arrays["indptr"], arrays["indices"]
    if starts.dtype.kind not in "iu" or starts.shape != (rows + 1,):
        raise ValueError(f"indptr is {starts.dtype} {starts.shape}, not {rows + 1} integers")
    if starts[0] != 0 or np.any(starts[1:] < starts[:-1]) or starts[-1] > indices.size:
        raise ValueError(f"indptr does not rise from 0 to at most the {indices.size} indices")
    if len(arrays["data"]) != indices.size:
        raise ValueError(f"{indices.size} indices for {len(arrays['data'])} values")
    counts = (starts[1:] - starts[:-1]).astype(np.int64)
    major = np.repeat(np.arange(rows, dtype=np.int32), counts)
    return major, _indices("indices", indices[: major.size], columns)


def _indices(name: str, found: np.ndarray, size: int) -> np.ndarray:
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise ValueError(f"{name} is {found.dtype} {found.shape}, not a list of integers")
    if found.size and not (found.min() >= 0 and found.max() < size):
        wrong = found[(found < 0) | (found >= size)][0]
        raise ValueError(f"{name} holds {wrong}, but indices are 0 to {size - 1}")
    return found.astype(np.int32, copy=False)
