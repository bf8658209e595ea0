"""Labels as files: NPY with the labels alone, or HDF5 with cluster sizes and a record.

docs/labels.md describes both.
"""

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.configurations.array_files import HDF5_SUFFIXES, check_file, read_array
from percolab.configurations.configuration import DEFAULT_LATTICES, Configuration, compute_labels
from percolab.configurations.label_array import LabeledClusters, Labels
from percolab.configurations.phases import SiteRule
from percolab.errors import InputError, one_line, unreadable
from percolab.lattices.bethe import BetheLattice, bethe_lattice
from percolab.lattices.graph import Graph, graph_topology
from percolab.lattices.lattice import Lattice, lattice_from_text, load_lattice
from percolab.lattices.topology import MAX_POINTS, Topology, bonds_between
from percolab.measure.clusters import Clusters
from percolab.store import output_files as files
from percolab.store.reading import LABELS, FileFormat, check_kinds, encode_file, read_file
from percolab.store.tree import Node, check_seal, check_tables, encode_texts
from percolab.tasks.study import axis_boundaries

FORMAT = FileFormat(LABELS, 2, "not one of labels")
SUFFIXES = (".npy", *HDF5_SUFFIXES)
Names = tuple[str, ...] | None
_NPY = files.array("labels")
_FILES = {".npy": _NPY} | dict.fromkeys(
    HDF5_SUFFIXES, files.Kind("labels", files.is_hdf5(FORMAT.name))
)


def find_label_format(out: str | Path) -> files.Kind:
    """Return the kind of a file of labels by its suffix; InputError for other suffixes."""
    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"{out}: labels are written as .npy or .h5, a table of clusters by --sizes"
        )
    return _FILES[suffix]


def write_labels(
    out: str | Path, clusters: Clusters, configuration: Configuration, *, serial: bool = False
) -> None:
    """Write labels, int32 in the configuration's shape, to .npy or .h5, completely or not at all.

    InputError: a file that cannot be written, or that holds something else.
    """
    kind = find_label_format(out)
    files.check_output(out, kind)
    labels = clusters.numbers if serial else clusters.labels
    labels = labels.reshape(configuration.shape)
    if kind is _NPY:
        files.write_output(out, files.encode_array(labels, _NPY), kind)
        return
    lattice = configuration.lattice
    attributes = {
        "numbering": "serial" if serial else "smallest site",
        "record": json.dumps(configuration.record),
        "summary": json.dumps(clusters.summary()),
        "lattice": lattice.source if isinstance(lattice, Lattice) else lattice.name,
    }
    datasets = {"labels": labels, "roots": clusters.roots, "sizes": clusters.sizes}
    if configuration.phases is not None and "phase" in configuration.record:
        datasets["phases"] = configuration.phases[clusters.roots]
    if isinstance(lattice, Graph) and lattice.names is not None:
        datasets["site_names"] = encode_texts(lattice.names)
    files.write_output(out, encode_file(FORMAT, attributes, datasets), kind)


def read_labels(
    name: str, lattice: Lattice | None = None, boundary: str | None = None
) -> LabeledClusters:
    """Return the labels in a .npy or .h5 file that :func:`write_labels` wrote.

    lattice: for a .npy file; None means the square lattice in two dimensions, the cubic one in
    three, and no lattice in other dimensions.  An .h5 file stores its lattice and boundary.

    InputError: no labels, labels below -1, or a lattice of another dimension.
    """
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{name}: labels are .npy or .h5 files, as percolab label writes them")
    if path.suffix.lower() == ".npy":
        labels = read_array(name, _wrong_labels)
        is_own = bool(_NPY.is_own and _NPY.is_own(path))
        return _labels_of_array(name, labels, lattice, boundary, is_own)
    if lattice is not None or boundary is not None:
        raise InputError(f"{name}: the file has its lattice and boundary; leave out these options")
    record, text, labels, phases, names = _read_hdf5(path)
    if record.get("graph"):
        return _labels(name, labels, None, (), record, names=names)
    # A lattice's TOML text cannot begin like this.
    if text.startswith("bethe:"):
        return _bethe_labels(name, labels, text, record)
    lattice = lattice_from_text(text, where=f"{name}: lattice")
    kinds = axis_boundaries(lattice, ",".join(record["boundary"]))
    return _labels(name, labels, lattice, kinds, record, phases=phases)


def take_labels(
    given: np.ndarray, lattice: Lattice | None = None, boundary: str | None = None
) -> LabeledClusters:
    """Return labels in memory as if they had been read from a file.

    given: the result of :func:`percolab.label`, which knows its lattice and boundary; or an array
    of integers, with ``lattice`` and ``boundary`` as for :func:`read_labels`.

    InputError: as for :func:`read_labels`.
    """
    if not isinstance(given, Labels) or given.configuration is None:
        wrong = _wrong_labels(given.shape, given.dtype)
        if wrong:
            raise InputError(f"labels: {wrong} (an image is labeled first, by percolab.label)")
        return _labels_of_array("labels", np.asarray(given), lattice, boundary, is_own=False)
    if lattice is not None or boundary is not None:
        raise InputError("labels: they have their lattice and boundary; leave out these arguments")
    return given.known


def _labels_of_array(
    name: str, labels: np.ndarray, lattice: Lattice | None, boundary: str | None, is_own: bool
) -> LabeledClusters:
    """Return labels without a record; is_own: percolab made them, so each is one cluster."""
    if lattice is None and labels.ndim not in DEFAULT_LATTICES:
        return _labels(name, labels, None, (), {})
    lattice = lattice or load_lattice(DEFAULT_LATTICES[labels.ndim])
    found = _labels(name, labels, lattice, axis_boundaries(lattice, boundary or "open"), {})
    if not is_own:
        _check_connected(name, labels.ravel(), found.clusters.topology, lattice.name)
    return found


def _read_hdf5(path: Path) -> tuple[dict[str, Any], str, np.ndarray, np.ndarray | None, Names]:
    """Return the record, lattice's text, labels, phases and site names of an .h5 file of labels.

    InputError: the file is damaged or of another kind.
    """
    check_file(path)
    try:
        root = read_file(path, FORMAT, _check_shapes)
        _check_shapes(root)
        check_seal(root)
        record, text = json.loads(root.text("record")), root.text("lattice")
        if not all(isinstance(kind, str) for kind in record["boundary"]):
            raise ValueError("the record is no table with a boundary")
        _check_record(record)
        if "labels" not in root.datasets:
            raise ValueError("there are no labels in it")
        labels = root.datasets["labels"].values
        wrong = _wrong_labels(labels.shape, labels.dtype)
        if wrong:
            raise ValueError(f"labels: {wrong}")
        phases = root.array("phases", np.uint8) if "phases" in root.datasets else None
        names = root.names("site_names") if "site_names" in root.datasets else None
        return record, text, labels, phases, names
    except InputError:
        raise
    except PermissionError as error:
        raise unreadable(path, error) from error
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path}: is not a readable HDF5 file") from error
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: is damaged: {one_line(error)}") from error


def _check_shapes(root: Node) -> None:
    """Raise ValueError for a dataset that no file of labels has."""
    check_tables(root, "labels", "site_names")
    names = root.datasets.get("site_names")
    if names and names.values.size != root.datasets["labels"].values.size:
        raise ValueError("there are other names than labels")


#: The types of a record's optional values; L is compared with the labels.
_KINDS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "input": (str,),
    "model": (str,),
    "seed": (int,),
    "sample": (int,),
    "p": (int, float),
    "threshold": (int, float),
    "below": (bool,),
    "phase": (str,),
}


def _check_record(record: dict[str, Any]) -> None:
    """Raise ValueError if a value of a record has a type that percolab never writes."""
    check_kinds(record, {key: _KINDS[key] for key in _KINDS.keys() & record.keys()}, "its record")
    try:
        Model.parse(record.get("model", "bond"))
        SiteRule.from_record(record)
    except InputError as error:
        raise ValueError(f"its record has {error}") from error


def _bethe_labels(
    name: str, labels: np.ndarray, text: str, record: dict[str, Any]
) -> LabeledClusters:
    try:
        lattice, shells = bethe_lattice(text), record.get("L")
        if type(shells) is not int or labels.shape != lattice.shape(shells):
            raise InputError(
                f"{labels.shape} labels, but it says that they are those of {lattice.name} with "
                f"{shells} shells"
            )
    except InputError as error:
        raise InputError(f"{name}: is damaged: {error}") from error
    return _labels(name, labels, lattice, (), record)


def _wrong_labels(shape: tuple[int, ...], dtype: np.dtype) -> str:
    if dtype.kind not in "iu":
        return f"holds {dtype}, but labels are integers"
    if not 1 <= prod(shape) <= MAX_POINTS:
        return f"{prod(shape)} sites, but there must be 1 to {MAX_POINTS}"
    return ""


def _labels(
    name: str,
    labels: np.ndarray,
    lattice: Lattice | BetheLattice | None,
    kinds: tuple[str, ...],
    record: dict[str, Any],
    *,
    phases: np.ndarray | None = None,
    names: Names = None,
) -> LabeledClusters:
    """Return labels on a lattice, which may be None; kinds: the boundary, for a Lattice only."""
    if isinstance(lattice, Lattice) and labels.ndim != lattice.dimension:
        raise InputError(f"{name}: {labels.ndim} axes, but {lattice.name} has {lattice.dimension}")
    if labels.min() < -1:
        raise InputError(f"{name}: label {labels.min()}, but labels are at least -1 (no site)")
    if lattice is None:
        topology = graph_topology(labels.size, np.empty((0, 2), np.int64))
    else:
        topology = lattice.topology(labels.shape[::-1], kinds)
    is_image = record.get("kind") == "sites" and isinstance(lattice, Lattice)
    # For an image the labels decide which bonds are open: those between equal labels.
    opened = bonds_between(topology, labels.ravel() + 1) if is_image else None
    clusters = Clusters.of_any_labels(labels.ravel(), topology, opened)
    numbers = None
    if is_image:
        count = clusters.roots.size
        numbers = np.ones(count, np.uint8) if phases is None else phases
        named = len(SiteRule.from_record(record).names)
        if numbers.size != count or (count and not 1 <= numbers.min() <= numbers.max() <= named):
            raise InputError(f"{name}: is damaged: its phases are not those of its clusters")
    cluster_labels = labels.ravel()[clusters.roots]
    return LabeledClusters(clusters, lattice, record, cluster_labels, numbers, names)


def _check_connected(name: str, labels: np.ndarray, topology: Topology, lattice: str) -> None:
    """Raise InputError unless the sites of every label are connected, as a cluster must be."""
    opened, sites = bonds_between(topology, labels + 1), labels >= 0
    found = compute_labels(topology, opened, sites, None, "cpu")
    roots = labels[(found == np.arange(found.size)) & sites]
    values, pieces = np.unique(roots, return_counts=True)
    if values.size < roots.size:
        most = int(np.argmax(pieces))
        raise InputError(
            f"{name}: label {values[most]} is in {pieces[most]} pieces on {lattice}, but a cluster "
            "is connected: label an image first (percolab label), and name the lattice and "
            f"--boundary of labels{'' if values[most] else ' (no site is -1, not 0)'}"
        )
