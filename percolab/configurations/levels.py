"""The levels at which a user's array or weighted graph percolates, and their paths as CSV."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from percolab.configurations.array_files import read_array, to_array
from percolab.configurations.configuration import DEFAULT_LATTICES
from percolab.configurations.tree import IN_FILE, take_weighted_graph
from percolab.errors import InputError, refuse_given, refuse_mask
from percolab.kernels.device import Device, open_device
from percolab.lattices.graph import Graph
from percolab.lattices.graph_files.weights import NOT_FINITE, make_weights
from percolab.lattices.lattice import AXIS_NAMES, Lattice, load_lattice
from percolab.lattices.shown import csv_text
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.topology import MAX_POINTS
from percolab.store.output_files import Kind, begins
from percolab.tasks.study import axis_boundaries
from percolab.tasks.values import take_flag
from percolab.trees.levels import Levels, LevelSearch, levels_too_large

_FINITE_ABOVE = (
    "but for levels from above a bond of a graph has a finite weight: leave out what never opens"
)
PATH_CSV = Kind("a path of percolab's", begins(rb"axis,step,site,"))


def find_given_levels(
    weights: Any,
    lattice: str | Path | Structure | None = None,
    *,
    above: bool = False,
    boundary: str | Sequence[str] | None = None,
    device: str = "cpu",
    graph: Any = None,
    **of_graph: Any,
) -> Levels:
    """Return the levels at which weights percolate (:class:`percolab.trees.levels.LevelSearch`).

    weights: an array, or a .npy file or "file.h5:/dataset", for sites (..., y, x), or for bonds
    (classes, ..., y, x); for a graph one per bond, or "file", its own.  lattice: None means the
    square lattice for an array of two dimensions, the cubic one for three.  device: "auto", "cpu",
    "cuda" or "cuda:n", where levels of a lattice are found; a contiguous array with
    ``__cuda_array_interface__`` is already on a GPU and stays there.
    graph: a file or an object as for :func:`percolab.tree`, or a :class:`Graph` with its source and
    target.  of_graph: source and target of any other graph, and multi and columns.

    InputError (one line) for anything that cannot be used.
    """
    above = take_flag("above", above)
    if graph is not None:
        refuse_given("a graph has none", lattice=lattice, boundary=boundary)
        where = Device.parse(device)
        if where.kind == "cuda":
            raise InputError(f"--device {device}: levels of a graph's weights are found on the CPU")
        return _levels_of_graph(graph, weights, above, of_graph)
    refuse_given("only a graph has it", **of_graph)
    if isinstance(weights, str) and weights == IN_FILE:
        raise InputError("--weights file: only a graph's file (--graph) holds weights")
    known = load_structure(str(lattice)) if isinstance(lattice, str | Path) else lattice
    if not isinstance(known, Lattice | None):
        what = known.name if isinstance(known, Structure) else f"{type(known).__name__} given"
        raise InputError(f"lattice: {what}, but weights are those of a lattice or a graph")

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        if dtype.kind not in "iuf" or dtype.itemsize > 8:
            return f"holds {dtype}, but weights are integers or floats of 64 bits at most"
        if known is None and len(shape) not in DEFAULT_LATTICES:
            return f"an array of {len(shape)} dimensions; name its lattice"
        classes, axes = (known.num_classes, known.dimension) if known else (3, len(shape))
        points = shape[len(shape) - axes :]
        if shape not in (points, (classes, *points)) or len(points) != axes:
            names = ", ".join(AXIS_NAMES[axes - 1 :: -1])
            return (f"has the shape {shape}, but the weights of sites have ({names}), and those of "
                    f"bonds ({classes}, {names})")  # fmt: skip
        if not 1 <= prod(points) <= MAX_POINTS:
            return f"{prod(points)} sites, but there must be 1 to {MAX_POINTS}"
        if where.kind == "cuda":
            return ""
        return levels_too_large(prod(points), classes, dtype.itemsize * prod(shape))

    where = Device.parse(device).resolve()
    refuse_mask("weights", weights)
    if hasattr(weights, "__cuda_array_interface__"):
        weights, where = _view(weights, where)
    if not hasattr(weights, "dtype"):
        is_file = isinstance(weights, str | Path)
        weights = read_array(weights, wrong) if is_file else to_array("weights", weights)
    if problem := wrong(weights.shape, weights.dtype):
        raise InputError(f"weights: {problem}")
    known = known or load_lattice(DEFAULT_LATTICES[weights.ndim])
    kinds = axis_boundaries(known, boundary)
    values = weights
    if isinstance(values, np.ndarray):
        values = np.ascontiguousarray(weights, weights.dtype.newbyteorder("="))
    first = values.ndim - known.dimension
    topology = known.topology(values.shape[: first - 1 if first else None : -1], kinds)
    flat = values.reshape(*values.shape[:first], topology.num_points)
    with where.driven():
        search = LevelSearch(topology, flat, known, kinds, above=above, device=where.kind)
        return search.find()


def _view(weights: Any, device: Device) -> tuple[Any, Device]:
    """Return a Numba view of weights on a GPU, after pending work is done, and that GPU."""
    if device.kind != "cuda":
        device = Device.parse("cuda")
    cuda = open_device(str(device))
    view = cuda.as_cuda_array(weights)
    cuda.synchronize()
    if not view.is_c_contiguous():
        raise InputError("weights: an array on a GPU must be contiguous (torch: x.contiguous())")
    if view.dtype == np.float16:
        raise InputError("weights: an array of float16 on a GPU; make it float32 there first")
    return view, Device("cuda", cuda.get_current_device().id)


def _levels_of_graph(graph: Any, weights: Any, above: bool, options: dict[str, Any]) -> Levels:
    if isinstance(graph, Graph):
        refuse_given("the graph has its own", **options)
    try:
        if isinstance(graph, Graph):
            taken, values = graph, make_weights(weights)
        else:
            taken, values, _ = take_weighted_graph(graph, weights, **options)
    except InputError as error:
        text = str(error)
        if above and text.endswith(NOT_FINITE):
            raise InputError(text.removesuffix(NOT_FINITE) + _FINITE_ABOVE) from error
        raise
    if above and np.isinf(values).any():
        raise InputError(f"weight inf, {_FINITE_ABOVE}")
    if values.shape != (taken.num_bonds,):
        raise InputError(f"{values.size} weights, but {taken.name} has {taken.num_bonds} bonds")
    topology = taken.topology((taken.num_sites,))
    of_bonds = np.zeros((topology.num_classes, 32 * topology.num_words), values.dtype)
    of_bonds.reshape(-1)[taken.bond_numbers()] = values
    flat = of_bonds[:, : topology.num_points]
    return LevelSearch(topology, flat, taken, above=above).find()


def path_csv(levels: Levels) -> str:
    """Return all paths as CSV, a line per step: axis, step, site, its coordinates and its value.

    With weights of bonds, the value is that of the bond to the site, empty at the first site.
    """
    dimension = len(levels.boundary)
    rows = []
    for axis, level in levels.axes.items():
        if level is None or level.path is None:
            continue
        path = level.path
        values = [None] * (path.sites.size - path.values.size) + path.values.tolist()
        cells = zip(path.sites.tolist(), path.places.tolist(), values, strict=True)
        rows += [
            (axis, step, levels.site_name(site), *place, value)
            for step, (site, place, value) in enumerate(cells)
        ]
    return csv_text(("axis", "step", "site", *AXIS_NAMES[:dimension], "value"), rows)
