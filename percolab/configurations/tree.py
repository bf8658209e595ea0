"""percolab.tree: the minimum spanning tree of a user's weights, or of one sample."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.words import GENERATORS
from percolab.configurations.array_files import Check, read_array, to_array
from percolab.errors import InputError, refuse_given
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph, read_any_graph
from percolab.lattices.graph_files.weights import make_weights
from percolab.lattices.lattice import Lattice, lattice_names
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.topology import MAX_POINTS
from percolab.tasks.study import Task, axis_boundaries
from percolab.tasks.values import check_choice, take_integer, take_sample_key, take_shape
from percolab.trees.given import (
    SpanningTree,
    check_tree_memory,
    find_tree,
    keys_from_array,
    keys_from_list,
)
from percolab.trees.weights import given_weights, make_sample_weights

_NO_MEANING = "has no meaning here"
#: The value of ``weights`` that selects the weights in a graph's own file.
IN_FILE = "file"


def tree(
    lattice: Any = None,
    L: int | str | tuple[int, ...] | None = None,
    *,
    graph: Any = None,
    weights: str | np.ndarray | Sequence[Any] | None = None,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    boundary: str | Sequence[str] | None = None,
    source: str | Path | Sequence[int] | None = None,
    target: str | Path | Sequence[int] | None = None,
    multi: bool = False,
    num_sites: int | None = None,
    columns: str | Sequence[Any] | None = None,
    method: str | None = None,
    device: str = "cpu",
) -> SpanningTree:
    """Return the minimum spanning tree of weights or of one sample (a forest if not connected).

    The first argument, or ``graph`` in its place, is one of

    * a file of a weighted graph (docs/graph-files.md), or with ``weights`` any graph file;
    * a networkx graph whose edges have the attribute "weight";
    * a scipy.sparse matrix; every stored entry is an edge, zeros included;
    * a pandas.DataFrame with a column of weights;
    * a tuple (pairs, weights), an array (n, 3) of rows (site, site, weight), or a list of such
      tuples, whose numbers are not rounded;
    * the name of a lattice, or a lattice, Bethe lattice or :class:`percolab.Graph`: with
      ``weights``, or without them for the sample (seed, sample) that a sweep with this seed
      measures, whose weights are its uniform numbers.

    weights: for a lattice (classes, ..., y, x), where [k, y, x] is that of bond k of site (x, y);
    entries without a bond are ignored, and L follows from the shape.  For a graph one per bond, in
    their order, or "file", those in its file.  Integers are compared exactly; floats are allowed,
    and a bond of weight inf is in no tree.  They may be in a .npy file or "file.h5:/dataset".
    boundary: of a lattice, per axis or for all.  source, target: for a graph file, the sites that
    ``SpanningTree.trunk`` joins.  multi: keep parallel edges, of which otherwise only the one with
    the smallest weight is kept.  num_sites: if it is not the largest site number plus one.
    columns: column names of sites and weight in a data frame or an edge list with a header.
    method: one of :data:`percolab.trees.TREE_METHODS`; all give the same tree.

    InputError (one line): invalid arguments.

    >>> found = tree([(0, 1, 5), (1, 2, -3), (2, 0, 4)])
    >>> found.bonds.tolist(), found.weights.tolist(), found.weight
    ([[1, 2], [0, 2]], [-3, 4], 1)
    >>> tree("square", 8, seed=3).parts
    1
    """
    ways: dict[str, Any] = {"method": method, "device": device}
    sites: dict[str, Any] = {"source": source, "target": target}
    named: dict[str, Any] = {"multi": multi, "columns": columns}
    if lattice is None and graph is None:
        raise InputError("tree: give a lattice or a graph")
    refuse_given("the graph is given as well", lattice=None if graph is None else lattice)
    is_name = isinstance(lattice, str | Path)
    has_sample = _is_lattice(lattice, L) if is_name else isinstance(lattice, Structure)
    has_sample |= isinstance(graph, Structure)
    if has_sample and isinstance(weights, str) and weights == IN_FILE:
        raise InputError(f"--weights {weights}: only a graph's file (--graph) holds weights")
    graph = lattice if graph is None else graph
    is_name = isinstance(graph, str | Path)
    if weights is not None or not has_sample:
        refuse_given("these weights have no samples", seed=seed, sample=sample, rng=rng)
    if not has_sample:
        others = {"num_sites": num_sites} if is_name else sites
        refuse_given("a graph has its own", L=L, boundary=boundary)
        refuse_given(_NO_MEANING, **others)
        if isinstance(graph, tuple) and len(graph) == 2:
            refuse_given("the graph has weights", weights=weights)
        given = take_weighted_graph(graph, weights, num_sites=num_sites, **named, **sites)
        return _tree_from_list(*given, ways)
    refuse_given("only a graph has it", **named, num_sites=num_sites, **sites)
    structure: Structure = load_structure(graph) if is_name else graph
    if L is not None:
        structure, L = take_shape(structure, L)
    if weights is None:
        return _of_sample(structure, L, boundary, seed, sample, rng, ways)
    if isinstance(structure, Graph):
        refuse_given("a graph has its own", L=L, boundary=boundary)
        if isinstance(weights, str):
            weights = read_weight_list(weights, structure)
        return _tree_from_list(structure, make_weights(weights), structure.names, ways)
    if isinstance(weights, str):
        weights = read_weights(weights, structure, L, boundary)
    values = to_array("weights", weights)
    shape, kinds = _check_array(structure, values.shape, values.dtype, L, boundary)
    check_tree_memory(Extent.of_structure(structure, shape, kinds), **ways)
    topology = structure.topology(shape, kinds)
    keys = given_weights(keys_from_array(topology, values))
    return find_tree(topology, keys, values.dtype.kind, **ways, structure=structure, boundary=kinds)


def take_weighted_graph(
    graph: Any,
    weights: Any = None,
    *,
    source: Any = None,
    target: Any = None,
    num_sites: int | None = None,
    **named: Any,
) -> tuple[Graph, np.ndarray, Any]:
    """Return a graph, the weights of its bonds (its own unless given), and site names or None.

    graph, weights: as :func:`tree` takes them.  named: ``multi`` and ``columns``.
    """
    is_name = isinstance(weights, str)
    own = weights is None or (is_name and weights == IN_FILE)
    options: dict[str, Any] = {"num_sites": num_sites, "weights": own, **named}
    taken, data = read_any_graph(graph, source, target, **options)
    if is_name and not own:
        return taken, read_weight_list(weights, taken), data.names
    return taken, make_weights(data.weights if own else weights), data.names


def read_weights(
    name: str, lattice: Structure, L: int | None = None, boundary: str | Sequence[str] | None = None
) -> np.ndarray:
    """Return the weights of a lattice's bonds in a .npy file or FILE.h5:/DATASET.

    InputError: an unreadable file, an array of another shape or without numbers, or a tree that
    does not fit into memory.
    """

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        try:
            points, kinds = _check_array(lattice, shape, dtype, L, boundary)
            check_tree_memory(Extent.of_structure(lattice, points, kinds), None, "cpu")
        except InputError as error:
            return str(error)
        return ""

    return read_numbers(name, wrong)


def read_weight_list(name: str, graph: Graph) -> np.ndarray:
    """Return the weights of a graph's bonds, in their order, as :func:`read_weights` reads them."""

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        if dtype.kind not in "iuf":
            return f"holds {dtype}, but weights are integers or floats"
        if shape != (graph.num_bonds,):
            return f"weights of the shape {shape}, but {graph.name} has {graph.num_bonds} bonds"
        return ""

    return read_numbers(name, wrong)


def read_numbers(name: str, wrong: Check) -> np.ndarray:
    """Return an array from NPY or HDF5 (no image) in native byte order; see :func:`read_array`."""
    if name.lower().endswith(".png"):
        raise InputError(f"{name}: weights are a .npy file or an HDF5 dataset")
    numbers = read_array(name, wrong)
    return numbers.astype(numbers.dtype.newbyteorder("="), copy=False)


def _is_lattice(graph: str | Path, L: Any) -> bool:
    """Return whether a text names a lattice, not a graph's file."""
    if str(graph).endswith(".toml"):
        return True
    if isinstance(graph, Path):
        return False
    return L is not None or graph.partition(":")[0] == "bethe" or graph in lattice_names()


def _check_array(
    lattice: Structure,
    shape: tuple[int, ...],
    dtype: np.dtype,
    L: int | None,
    boundary: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the grid points and boundary per axis for an array of weights; InputError if wrong."""
    kinds = axis_boundaries(lattice, boundary)
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise InputError(
            f"weights are {dtype}, but they must be integers or floats of 64 bits at most"
        )
    if L is not None:
        lattice.check_size(L, kinds)
        points = lattice.shape(L)
    else:
        points = shape[:0:-1]
    if isinstance(lattice, Lattice):
        classes, axes = lattice.num_classes, "zyx"[-lattice.dimension :]
    elif L is None:
        raise InputError(f"L: give the size as well, for weights of {lattice.name}")
    else:
        classes, axes = lattice.topology(points, kinds).num_classes, "x"
    expected = axes if L is None else points[::-1]
    if shape != (classes, *points[::-1]) or len(points) != lattice.dimension:
        at = f" at L = {L}" if L is not None else ""
        raise InputError(
            f"weights have the shape {shape}, but those of {lattice.name}{at} have "
            f"({', '.join(map(str, (classes, *expected)))}): classes of bonds first, then sites"
        )
    if not 1 <= prod(points) <= MAX_POINTS:
        raise InputError(f"{prod(points)} sites, but there must be 1 to {MAX_POINTS}")
    return points, kinds


def _tree_from_list(
    graph: Graph, values: np.ndarray, names: Any, ways: dict[str, Any]
) -> SpanningTree:
    """Return the tree of a graph whose weights are in the order of its bonds."""
    topology = graph.topology((graph.num_sites,))
    check_tree_memory(Extent.of_topology(topology), **ways)
    keys = given_weights(keys_from_list(graph, values))
    facts = {"structure": graph, "names": names, "notes": graph.notes}
    return find_tree(topology, keys, values.dtype.kind, **ways, **facts)


def _of_sample(
    structure: Structure,
    L: int | None,
    boundary: str | Sequence[str] | None,
    seed: int,
    sample: int,
    rng: str,
    ways: dict[str, Any],
) -> SpanningTree:
    if isinstance(structure, Graph):
        refuse_given(_NO_MEANING, L=L, boundary=boundary)
        L, boundary = structure.num_sites, structure.boundaries * structure.dimension
    if L is None:
        raise InputError(f"L = {L!r}, but a sample of {structure.name} needs an integer size L")
    L, seed = take_integer("L", L), take_integer("seed", seed)
    sample = take_sample_key("sample", sample)
    check_choice("rng", rng, GENERATORS)
    kinds = axis_boundaries(structure, boundary) if structure.dimension else ()
    task = Task(structure, L, kinds, (0.5,), seed=seed, rng=rng)
    check_tree_memory(Extent.of_structure(structure, task.shape, kinds), **ways)
    topology = structure.topology(task.shape, kinds)
    weights = make_sample_weights(GENERATORS[rng], task.stream_seed, sample)
    return find_tree(topology, weights, structure=structure, boundary=kinds, **ways)
