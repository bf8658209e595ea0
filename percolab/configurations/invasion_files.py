"""Invasions as files: CSV with a line per step; NPZ or HDF5 with the arrays and their origin.

docs/invasion.md describes them.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.configurations.array_files import HDF5_SUFFIXES, check_file
from percolab.errors import InputError, one_line
from percolab.lattices.shown import csv_text
from percolab.store import output_files as files
from percolab.store.reading import (
    DAMAGE,
    FileFormat,
    check_kinds,
    encode_file,
    read_file,
    read_format,
)
from percolab.store.tree import check_seal, check_tables
from percolab.trees.invasion import Invasion

FORMAT = FileFormat("percolab invasion", 1, "no invasion")
SUFFIXES = (".csv", ".npz", *HDF5_SUFFIXES)
_COLUMNS = ("step", "site", "origin", "bond", "weight", "front")
_NPZ = files.archive("an invasion")
_KINDS = {
    ".csv": files.Kind("an invasion", files.begins(f"{','.join(_COLUMNS)}\n".encode())),
    ".npz": _NPZ,
}
_KINDS |= dict.fromkeys(HDF5_SUFFIXES, files.Kind("an invasion", files.is_hdf5(FORMAT.name)))
#: The entries of a record from which the invasion can be repeated, and their types.
_FACTS: dict[str, tuple[type, ...]] = {
    "lattice": (str,),
    "boundary": (list,),
    "L": (int,),
    "model": (str,),
    "source": (str, type(None)),
    "target": (str, type(None)),
    "stop": (str, int),
    "trapping": (bool,),
    "seed": (int,),
    "sample": (int,),
    "rng": (str,),
    "weights": (str, type(None)),
}
#: The arrays that are written, with one entry per step or per bond of the frontier.
ARRAYS = ("sites", "origins", "bonds", "weights", "fronts", "tried", "accepted")


def check_invasion_target(out: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError unless an invasion can be written to a file; call this before invading.

    inputs: the input files, which must not be replaced.
    """
    path = Path(out)
    files.check_suffix(path, SUFFIXES, "an invasion")
    files.check_output(path, _KINDS.get(path.suffix.lower()), inputs)


def holds_invasion(path: str | Path) -> bool:
    """Return whether a file is an invasion in HDF5, as :func:`write_invasion` writes it."""
    return read_format(Path(path)) == FORMAT.name


def read_invasion(path: str | Path) -> tuple[dict[str, Any], NDArray[np.int32]]:
    """Return the record of a stored invasion, and its sites in the order of their invasion.

    sites: int32 (n,).  InputError: the file holds something else, or is damaged.
    """
    check_file(Path(path))
    if not holds_invasion(path):
        raise InputError(f"{path}: holds no invasion (percolab invade --out steps.h5)")
    try:
        node = read_file(Path(path), FORMAT, check_tables)
        check_seal(node)
        record = json.loads(node.text("record"))
        sites = np.asarray(node.datasets["sites"].values, np.int32)
        _check_record(record)
    except InputError:
        raise
    except DAMAGE as error:
        raise InputError(f"{path}: a damaged invasion: {one_line(error)}") from error
    return record, sites


def _check_record(record: Any) -> None:
    """Raise ValueError unless a record has all entries with the right types."""
    if not isinstance(record, dict):
        raise ValueError("its record is no table")
    missing = sorted(_FACTS.keys() - record.keys())
    if missing:
        raise ValueError(f"its record has no {missing[0]}")
    check_kinds(record, _FACTS, "its record")
    if not all(isinstance(kind, str) for kind in record["boundary"]):
        raise ValueError(f"its record has boundary = {record['boundary']!r}")


def write_invasion(
    out: str | Path, invasion: Invasion, record: dict[str, Any], names: Sequence[str] | None = None
) -> None:
    """Write an invasion, completely or not at all; InputError if the file cannot be written.

    record: what was invaded, as plain JSON values.  names: of a graph's sites, for CSV.
    """
    check_invasion_target(out)
    path = Path(out)
    suffix = path.suffix.lower()
    arrays = {name: getattr(invasion, name) for name in ARRAYS}
    if suffix == ".csv":
        columns = [array.tolist() for array in list(arrays.values())[:5]]
        # A source has no weight.
        columns[3][: invasion.num_sources] = [None] * invasion.num_sources
        if names is not None:
            columns[:2] = [[names[n] if n >= 0 else None for n in each] for each in columns[:2]]
        steps = range(len(columns[0]))
        content = csv_text(_COLUMNS, zip(steps, *columns, strict=True)).encode()
    elif suffix == ".npz":
        content = files.encode_archive({"record": np.array(json.dumps(record)), **arrays}, _NPZ)
    else:
        arrays["accepted"] = arrays["accepted"].astype(np.uint8)
        content = encode_file(FORMAT, {"record": json.dumps(record)}, arrays)
    files.write_output(path, content, _KINDS[suffix])
