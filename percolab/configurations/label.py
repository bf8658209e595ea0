"""The cluster labels of one configuration, as an array."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS
from percolab.configurations.array_files import HDF5_SUFFIXES, IMAGES, split_name
from percolab.configurations.configuration import (
    OF_GRAPH,
    OF_IMAGE,
    OF_SAMPLE,
    OF_SPINS,
    Configuration,
    compute_labels,
    draw_sample,
    given_configuration,
    random_configuration,
    site_configuration,
    take_open_bonds,
)
from percolab.configurations.label_array import Labels
from percolab.errors import InputError, need_given, refuse_given, refuse_together
from percolab.lattices.graph import Graph, make_graph
from percolab.lattices.graph_files.objects import is_graph_object
from percolab.lattices.lattice import Lattice, lattice_names, load_lattice
from percolab.lattices.structure import take_structure
from percolab.lattices.topology import Topology
from percolab.measure.clusters import Clusters
from percolab.run.request import Observer, take_observer
from percolab.tasks.study import check_probabilities
from percolab.tasks.values import check_choice, take_flag, take_sample_key, take_shape


def label(
    configuration: Any = None,
    L: int | str | tuple[int, ...] | None = None,
    p: float | None = None,
    *,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    model: str = "bond",
    boundary: str | Sequence[str] | None = None,
    opened: np.ndarray | None = None,
    labeler: str | None = None,
    device: str = "cpu",
    serial: bool = False,
    observer: Observer | None = None,
    lattice: str | Path | Lattice | None = None,
    threshold: float | str | None = None,
    below: bool = False,
    phase: Any = None,
    connectivity: int | None = None,
    graph: Any = None,
    source: Any = None,
    target: Any = None,
    multi: bool = False,
    columns: str | Sequence[Any] | None = None,
) -> Labels | Any:
    """Return the cluster labels of one configuration, int32, one per grid point.

    A label is the smallest site index of the cluster, and -1 where there is no site; ``serial``
    renumbers the clusters 0 ... n - 1 in the same order.  The array also describes the clusters:
    ``sizes``, ``spanning``, ``wrapping``, ``phases``, ``to_pandas()``
    (:class:`percolab.configurations.label_array.Labels`).

    configuration is one of

    * an image, an array of 2 or 3 dimensions (with ``lattice`` of any): array[y, x] is the grid
      point (x, y).  It may be a file, .npy, .png, .tif or "file.h5:/dataset", or a stack of slices:
      a folder, "slices/*.png" or a list of files.  Sites are its nonzero points, if these have one
      value; or the points above ``threshold`` (a number or "otsu"; with ``below`` all others); or
      those with the values ``phase``: 2, [1, 2] or "1,2" (two phases), (1, 2) in a list or "1+2"
      (one phase), "all" (each value).  Neighbours of one phase are joined: ``connectivity`` 4
      (default) or 8, in three dimensions 6 (default), 18 or 26; or those of ``lattice``.
      ``boundary``: for all axes or one per axis, "open" by default.  Labels have the image's shape.
    * an image on a GPU, an array with ``__cuda_array_interface__`` (CuPy, PyTorch, Numba, JAX):
      sites are its nonzero points, and neighbours of equal value are joined.  The labels stay on
      the GPU, as a device array without clusters
      (:func:`percolab.configurations.device_arrays.label_device_array`).
    * a lattice or its name (or ``lattice`` alone), with its size L, or its sides as (64, 128): one
      sample of percolation at p, 0.5 by default; (seed, sample) selects the sample that a sweep
      with this seed measures.  Labels have the lattice's shape, last axis first.
    * a :class:`percolab.Graph`, a networkx graph or a scipy.sparse matrix; or, as the argument
      ``graph``, one of these, a file (docs/graph-files.md), a pandas.DataFrame, or an edge array
      (n, 2): with p a sample of it, without p its connected components.  source, target: sites
      by number or name; ``spanning["source-target"]`` has the labels that connect both.  multi:
      keep parallel edges.  columns: names of columns, as for :func:`percolab.load_graph`.  Labels
      are one-dimensional, in the order of the site numbers; sites with names are numbered in the
      order of their first appearance.
    * a :class:`Topology`, with one-dimensional labels; seed is that of the random streams.

    opened: a configuration of bonds in place of the random one of (seed, sample, p): packed uint32
    words (num_classes, num_words), or booleans (classes, ..., y, x).  observer: notified if the
    lattice does not support the labeler, and another one replaces it.

    Raises InputError for an unknown name or size, for an array that is no mask, for a graph that
    cannot be used, and for bond words of the wrong shape.

    >>> label("square", 4, p=1.0).tolist()[3]
    [0, 0, 0, 0]
    >>> label("square", 2, p=0.0, serial=True).tolist()
    [[0, 1], [2, 3]]
    >>> label(np.array([[1, 1, 0], [0, 0, 1]])).tolist()
    [[0, 0, -1], [-1, -1, 5]]
    >>> label(np.array([[1, 2, 2], [1, 1, 0]]), phase="1,2").tolist()
    [[0, 1, 1], [0, 0, -1]]
    >>> label(graph=[(0, 1), (3, 4)]).sizes.tolist()
    [2, 1, 2]
    """
    given = locals()
    ways: dict[str, Any] = {"labeler": labeler, "device": device}
    if isinstance(configuration, list) and not is_mask_file(configuration):
        raise InputError(
            "label: a list is given, but a mask is an array (numpy.array), and a list of edges "
            "goes with graph="
        )
    serial, observer = take_flag("serial", serial), take_observer(observer)
    if not isinstance(labeler, str | None):
        raise InputError(f"labeler = {labeler!r}, but it must be a name")
    refuse_spins(Model.parse(model))
    # Of CuPy, JAX, Numba, PyTorch: an array on a GPU.
    if hasattr(configuration, "__cuda_array_interface__"):
        from percolab.configurations.device_arrays import label_device_array

        excluded = (*OF_SAMPLE, "L", "p", "opened", "graph", *OF_GRAPH)
        why = "an array on a GPU is a configuration already"
        refuse_given(why, **{name: given[name] for name in excluded})
        refuse_given("labels on a GPU are smallest sites", serial=serial)
        refuse_given(
            "compare on the GPU, as image > 0.5", threshold=threshold, below=below, phase=phase
        )
        rule: dict[str, Any] = {"connectivity": connectivity, "labeler": labeler}
        return label_device_array(
            configuration, load_labeled_lattice(lattice), boundary or "open", **rule
        )
    if isinstance(configuration, Topology):
        check_choice("rng", rng, GENERATORS)
        check_probabilities((p := 0.5 if p is None else p,))
        if opened is None:
            seed, sample = take_sample_key("seed", seed), take_sample_key("sample", sample)
            key = GENERATORS[rng], seed, sample
            words, sites = draw_sample(configuration, Model.parse(model), key, p)
        else:
            words, sites = take_open_bonds(configuration, opened, "this topology")
        labels = compute_labels(configuration, words, sites, **ways)
        return Labels.make(Clusters(labels, configuration, words), (-1,), serial=serial)
    chosen = configure("label", given)
    clusters = chosen.label(**ways, observer=observer)
    return Labels.make(clusters, chosen.shape, serial=serial, configuration=chosen)


#: For each kind of configuration, the reason for refusing arguments, and these arguments.
_REFUSED = {
    "mask": ("an image is a configuration already",
             "L", "p", "opened", "graph", *OF_SAMPLE, *OF_SPINS),
    "graph": ("a graph has its own", "lattice", "L", "boundary", "opened"),
    "opened": ("opened is a configuration already", "p", *OF_SAMPLE, *OF_SPINS),
}  # fmt: skip


def configure(caller: str, arguments: Mapping[str, Any]) -> Configuration:
    """Return the configuration that the arguments of :func:`label` describe.

    arguments: also ``mask``, an image whatever its file's name is, and arguments of spins; missing
    ones are None.  InputError: arguments that are invalid or exclude each other.
    """
    names = ("mask", "p", "opened", *OF_SPINS, *OF_SAMPLE, *OF_GRAPH, *OF_IMAGE)
    given: dict[str, Any] = dict.fromkeys(names) | {"configuration": None} | dict(arguments)
    configuration = given.pop("configuration")
    if is_mask(configuration):
        given["mask"] = configuration
    elif isinstance(configuration, Graph) or is_graph_object(configuration):
        refuse_given("the graph is given as well", graph=given["graph"])
        given["graph"] = configuration
    elif configuration is not None:
        refuse_given("only an image has it", lattice=given["lattice"])
        given["lattice"] = configuration
    refuse_together(_REFUSED, given)
    p, boundary, opened = given["p"], given["boundary"], given["opened"]
    if given["mask"] is None:
        refuse_given("only an image has it", **{name: given[name] for name in OF_IMAGE})
    if given["graph"] is None:
        refuse_given("only a graph has it", **{name: given[name] for name in OF_GRAPH})
    if given["mask"] is not None:
        return site_configuration(**take_image(given))
    keys = {name: given[name] for name in (*OF_SAMPLE, *OF_SPINS) if given[name] is not None}
    has_p = p is not None or bool(keys.keys() & {"T", "K", "beta"})
    if given["graph"] is not None:
        weights = Model.parse(given["model"]).needs_weights
        named = {name: given[name] for name in OF_GRAPH}
        graph = make_graph(given["graph"], weights=weights, **named)
        if not has_p:
            refuse_given("without -p all bonds are open", **keys)
        return random_configuration(graph, graph.num_sites, p if has_p else 1.0, **keys)
    need_given("a sample", lattice=given["lattice"])
    structure = take_structure(given["lattice"], caller)
    need_given("a sample", L=given["L"])
    structure, L = take_shape(structure, given["L"])
    if opened is not None:
        return given_configuration(structure, L, boundary, opened)
    # The same sample that a sweep with this seed measures.
    return random_configuration(structure, L, p if has_p else 0.5, boundary=boundary, **keys)


def take_image(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image and its options, as :func:`site_configuration` takes them."""
    image = {name: given[name] for name in OF_IMAGE} | {"name": given["mask"]}
    image["lattice"] = load_labeled_lattice(given["lattice"])
    return image | {"boundary": "open" if given["boundary"] is None else given["boundary"]}


def is_mask(given: Any) -> bool:
    """Return whether the argument is an array of sites, or names its files."""
    is_array = all(hasattr(given, name) for name in ("shape", "dtype", "__getitem__"))
    return (is_array and not is_graph_object(given)) or is_mask_file(given)


def is_mask_file(given: Any) -> bool:
    """Return whether the argument names a file of a mask, or slices of one."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(each, str | Path) for each in given)
    if not isinstance(given, str | Path):
        return False
    path, dataset = split_name(str(given))
    is_file = dataset is not None or path.suffix.lower() in (".npy", *IMAGES, *HDF5_SUFFIXES)
    return is_file or (os.path.isdir(path) and str(given) not in lattice_names())


def load_labeled_lattice(lattice: str | Path | Lattice | None) -> Lattice | None:
    if lattice is None or isinstance(lattice, Lattice):
        return lattice
    if not isinstance(lattice, str | Path):
        raise InputError(
            f"lattice = {lattice!r}, but it must be a lattice, its name or a .toml file"
        )
    return load_lattice(str(lattice))


def refuse_spins(draw: Model) -> None:
    """Raise InputError for a model whose samples are sweeps of a chain."""
    if draw.chains:
        raise InputError(
            f"model {draw}: {draw.chains} have no single samples, only sweeps of a chain: use "
            "percolab sweep"
        )
