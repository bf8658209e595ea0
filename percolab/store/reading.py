"""The HDF5 files that percolab writes: their formats, and how they are read.

HDF5 itself keeps checksums of everything but the data in these files.  Any other HDF5 file is
refused: of one that an earlier percolab wrote, only its schema version is read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from percolab.errors import InputError, check_regular
from percolab.store.interrupts import default_signals
from percolab.store.tree import Check, Data, Node, Value, encode_tree, read_tree

#: Errors of h5py and NumPy for damage, wherever in a file it is.
DAMAGE = (
    KeyError, ValueError, TypeError, AttributeError, IndexError, ArithmeticError, OSError,
    RuntimeError, RecursionError,
)  # fmt: skip
#: What files state as their format, and who reads them.
LABELS, RESULTS = "percolab labels", "percolab results"
_READERS = {
    LABELS: "; percolab show, plot, status, report and export read labels",
    RESULTS: "; percolab plot, fit, status, report and export read the results of a study",
    "percolab invasion": "; percolab plot draws the steps of an invasion",
    "percolab tree": "; it is a minimum spanning tree, which no command reads",
}
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: The file begins with this version where HDF5 keeps checksums of all but the data.
_CHECKED_VERSION = 3


class FileFormat(NamedTuple):
    """The format that a kind of file states in its root.

    name: the attribute ``format``.  version: the attribute ``schema_version``; None where the kind
    has none.  meaning: the kind in words, for messages.  earlier: versions that are read as well.
    """

    name: str
    version: int | None
    meaning: str
    earlier: tuple[int, ...] = ()


def encode_file(
    form: FileFormat, attributes: Mapping[str, str], datasets: Mapping[str, np.ndarray]
) -> bytes:
    """Return a sealed HDF5 file of this format, with these attributes and datasets in its root."""
    head: dict[str, Value] = {"format": form.name, "schema_version": np.array(form.version)}
    data = {name: Data(np.asarray(values)) for name, values in datasets.items()}
    return encode_tree(Node({**head, **attributes}, data))


def check_kinds(record: Any, kinds: Mapping[str, tuple[type, ...]], what: str) -> None:
    """Raise ValueError unless a record has a value of one of these types for every key."""
    for key, types in kinds.items():
        # By type: true is an int in Python.
        if type(record.get(key)) not in types:
            raise ValueError(f"{what} has {key} = {record.get(key)!r}")


def read_file(path: Path, form: FileFormat, check: Check | None = None) -> Node:
    """Return everything in an HDF5 file; errors as :func:`percolab.store.tree.read_tree`.

    check: of the shapes of large datasets, before they are read.
    InputError: it is no regular file, or of another format or schema version.  OSError: it cannot
    be opened.
    """
    check_regular(path)
    # A stored file never changes, it is replaced; and HDF5's own locks fail on some networks.
    with default_signals(), h5py.File(path, "r", locking=False) as file:
        _check_format(path, file, form)
        return read_tree(file, check)


def read_format(path: Path) -> str | None:
    """Return the attribute ``format`` of an HDF5 file; None without one, or of a damaged file."""
    try:
        check_regular(path)
        if not _is_checked(path):
            return None
        with h5py.File(path, "r", locking=False) as file:
            return _read_format(file)
    except DAMAGE:
        return None


def _check_format(path: Path, file: h5py.File, form: FileFormat) -> None:
    is_checked, version = _is_checked(path), _read_version(file)
    # In files of earlier versions this is a text of variable length.
    if (_read_format(file) != form.name) if is_checked else (version is None):
        more = _READERS.get(_read_format(file) or "", "") if is_checked else ""
        raise InputError(f"{path}: is an HDF5 file, but {form.meaning}{more}")
    if version != form.version and version not in form.earlier:
        known = " and ".join(map(str, (*form.earlier, form.version)))
        raise InputError(
            f"{path}: has schema version {version}; this percolab reads version"
            f"{'s' * bool(form.earlier)} {known}"
        )
    if not is_checked:
        raise InputError(
            f"{path}: was copied by another program without the checksums of HDF5; "
            "use the file that percolab wrote"
        )


def _read_version(file: h5py.File) -> int | None:
    if "schema_version" not in file.attrs:
        return None
    stored = file.attrs.get_id("schema_version")
    is_integer = stored.get_type().get_class() == h5py.h5t.INTEGER and stored.shape == ()
    return int(file.attrs["schema_version"]) if is_integer else None


def _read_format(file: h5py.File) -> str | None:
    if "format" not in file.attrs:
        return None
    kind = file.attrs.get_id("format").get_type()
    if kind.get_class() != h5py.h5t.STRING or kind.is_variable_str():
        return None
    stored = file.attrs["format"]
    return stored.decode() if isinstance(stored, bytes) else None


def _is_checked(path: Path) -> bool:
    """Return whether a file has checksums of HDF5's own throughout."""
    with open(path, "rb") as file:
        return file.read(len(_SIGNATURE) + 1) == _SIGNATURE + bytes([_CHECKED_VERSION])
