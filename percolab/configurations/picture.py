"""The picture of a configuration's clusters or of an invasion, with its title."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import Model
from percolab.configurations.configuration import Configuration, random_configuration
from percolab.configurations.flow import flow
from percolab.configurations.invade import Invader, make_invaders
from percolab.configurations.invasion_files import read_invasion
from percolab.configurations.label_array import LabeledClusters
from percolab.configurations.tree import tree
from percolab.errors import InputError
from percolab.figures.bond_maps import check_tree_drawable, plot_flow, plot_spanning_tree
from percolab.figures.configuration import check_drawable, plot_clusters
from percolab.figures.invasion import Curves, plot_invasion
from percolab.figures.math_text import plain_text
from percolab.figures.networks import check_network, check_shells, plot_bethe, plot_network
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.shown import few
from percolab.lattices.structure import Structure
from percolab.lattices.topology import unpack_bits
from percolab.measure.columns import open_axes
from percolab.tasks.study import axis_boundaries
from percolab.trees.invasion import Invasion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    #: A figure, and every number drawn in it.
    Drawn = tuple[Figure, dict[str, Any]]


def draw_sample_picture(
    structure: Structure, size: int, p: float | None = None, **keys: Any
) -> Drawn:
    """Return the picture of a sample and its numbers.

    keys: as :func:`percolab.configurations.configuration.random_configuration` takes them.
    InputError: more sites than can be drawn, or a sample that does not exist.
    """
    if isinstance(structure, Graph):
        check_network(structure)
    elif isinstance(structure, BetheLattice):
        check_shells(structure, size)
    else:
        assert isinstance(structure, Lattice)
        check_drawable(structure, prod(structure.shape(size)))
    return draw_configuration(random_configuration(structure, size, p, **keys))


def draw_configuration(chosen: Configuration) -> Drawn:
    """Return the picture of a configuration's clusters, and its numbers.

    InputError: a graph with more sites than can be drawn.
    """
    graph = chosen.lattice
    if not isinstance(graph, Graph):
        labels = LabeledClusters.of(chosen.label(), chosen)
        return draw_picture(labels, graph.title, opened=chosen.opened, spins=chosen.spins)
    check_network(graph)
    words = chosen.opened.ravel()
    opened = unpack_bits(words, 32 * words.size)[graph.bond_numbers()]
    record = {key: value for key, value in chosen.record.items() if key not in ("L", "boundary")}
    title = make_title(plain_text(graph.title), record)
    return plot_network(chosen.label(), graph, opened, title=title)


def draw_flow_picture(lattice: Structure, size: int, **keys: Any) -> Drawn:
    """Return the picture of the flow through a sample between two sides, and its numbers.

    keys: as :func:`percolab.configurations.flow.flow` takes them.
    InputError: a lattice that cannot be drawn, a sample that does not exist, no open axis.
    """
    if not isinstance(lattice, Lattice):
        raise InputError(f"{lattice.name}: a backbone is drawn only between two sides of a lattice")
    check_tree_drawable(lattice, prod(lattice.shape(size)), "backbones")
    kinds = axis_boundaries(lattice, keys.get("boundary"))
    axes = open_axes(kinds)
    if not axes:
        raise InputError("a backbone needs two sides, but no axis is open (--boundary)")
    sample_flow = flow(lattice, size, **keys)
    record = {"L": size, **keys, "boundary": kinds}
    title = _sample_title(lattice, record)
    topology = lattice.topology(lattice.shape(size), kinds)
    text = f"{title}\nbetween the sides along ${AXIS_NAMES[axes[-1]]}$"
    return plot_flow(sample_flow, lattice, topology, title=text)


def draw_tree_picture(
    lattice: Lattice,
    size: int | None,
    *,
    boundary: str | Sequence[str] | None = None,
    weights: str | Path | NDArray[Any] | None = None,
    **keys: Any,
) -> Drawn:
    """Return the picture of the spanning tree of a sample, or of given weights, and its numbers.

    weights: an array as for :func:`percolab.configurations.tree.tree`, or its file; without weights
    the tree is that of a sample, with seed, sample and rng in ``keys``.
    InputError: a lattice that cannot be drawn, or a tree that does not exist.
    """
    if size is not None:
        check_tree_drawable(lattice, prod(lattice.shape(size)))
    if weights is None:
        drawn = tree(lattice, size, boundary=boundary, **keys)
        record = {"L": size, "boundary": drawn.boundary, **keys}
    else:
        weights = str(weights) if isinstance(weights, Path) else weights
        drawn = tree(lattice, size, weights=weights, boundary=boundary)
        record = {"boundary": drawn.boundary}
    title = _sample_title(lattice, record)
    if not drawn.topology.open_axes:
        return plot_spanning_tree(drawn, title=title)
    axis = drawn.topology.open_axes[-1]
    name = f"trunk along ${AXIS_NAMES[axis]}$"
    return plot_spanning_tree(drawn, trunk=drawn.trunk(axis), trunk_name=name, title=title)


def draw_stored_labels(stored: LabeledClusters, name: str) -> Drawn:
    """Return the picture of labels that were read from a file of this name, and its numbers."""
    if stored.lattice is None:
        places = "give the lattice of these labels by percolab show --lattice"
        if stored.record.get("graph"):
            places = (
                "the file of a graph's labels has no coordinates; percolab show --graph draws a "
                "sample of the graph"
            )
        raise InputError(f"{name}: {places}")
    kind = stored.record.get("kind")
    name = stored.lattice.title if kind == "sample" else stored.record.get("input", Path(name).name)
    options = {"opened": stored.clusters.opened, "first_row_on_top": kind in (None, "sites")}
    return draw_picture(stored, name, **options)


def draw_picture(labels: LabeledClusters, name: str, **options: Any) -> Drawn:
    """Return the figure of clusters on a lattice of any kind, and its numbers.

    name: the beginning of the title.  options: those of
    :func:`percolab.figures.configuration.plot_clusters`.
    """
    clusters, lattice, record = labels.clusters, labels.lattice, labels.record
    assert lattice is not None
    if isinstance(lattice, BetheLattice):
        name = f"Bethe lattice, $z = {lattice.coordination_number}$, {lattice.numbering} numbering"
        # The picture shows the number of shells.
        title = make_title(name, {key: record[key] for key in record if key != "L"})
        return plot_bethe(clusters, lattice, record["L"], title=title)
    if options.get("spins") is not None:
        options["states"] = Model.parse(record["model"]).states
    if labels.phases is not None and len(labels.phase_names) > 1:
        options["phases"] = [labels.phase_names[number - 1] for number in labels.phases]
    is_named = name == lattice.title
    title = _sample_title(lattice, record) if is_named else make_title(plain_text(name), record)
    return plot_clusters(clusters, lattice, title=title, **options)


def _sample_title(lattice: Lattice, record: dict[str, Any]) -> str:
    """Return the title of a sample: the lattice, its size or sides, and p, seed and sample."""
    if lattice.aspect and "L" in record:
        sides = lattice.size_text(record["L"]).replace("x", r" \times ")
        return make_title(plain_text(lattice.title.rpartition(", ")[0]), record | {"L": sides})
    return make_title(plain_text(lattice.title), record)


def make_title(name: str, record: dict[str, Any]) -> str:
    """Return a title: the name, and the facts in the record of the sample."""
    parts = [name]
    if "model" in record:
        parts.insert(0, Model.parse(record["model"]).title)
    if "phase" in record:
        phases = record["phase"].split(",")
        parts.append(f"phase{'s' * (len(phases) > 1)} {few(phases)}")
    if "sweeps" in record:
        coupling = Model.parse(record["model"]).p_to_coupling(record["p"])
        parts.append(f"$k_B T / J = {1 / coupling if coupling else float('inf'):.6g}$")
    for key, text in (("L", "$L = {}$"), ("p", "$p = {:g}$"), ("seed", "seed {}")):
        if key in record and not (key == "p" and "sweeps" in record):
            parts.append(text.format(record[key]))
    if "sweeps" in record:
        parts.append(f"chain {record['sample']} after {record['sweeps']} sweeps")
    elif record.get("sample"):
        parts.append(f"sample {record['sample']}")
    kinds = enumerate(record.get("boundary", ()))
    periodic = [AXIS_NAMES[axis] for axis, kind in kinds if kind == "periodic"]
    if periodic:
        parts.append(f"periodic along {' and '.join(periodic)}")
    # With the facts about a chain the title is too long for one line.
    seed = f"seed {record.get('seed')}"
    second = parts.index(seed) if "sweeps" in record and seed in parts else len(parts)
    return "\n".join(filter(None, (", ".join(parts[:second]), ", ".join(parts[second:]))))


def draw_invasion(
    invader: Invader, invasion: Invasion, curves: Curves, record: dict[str, Any]
) -> Drawn:
    """Return the figure of an invasion, with p_c if its weights are random, and its numbers.

    record: what was invaded, as for :func:`percolab.configurations.invasion_files.write_invasion`.
    """
    structure, known = invader.field.structure, None
    if record["weights"] is None:
        known = structure.threshold(record["model"])
    threshold = None if known is None else known.value
    title = name_invasion(invader, record)
    return plot_invasion(invasion, curves, structure, title=title, threshold=threshold)


def draw_stored_invasion(file: str) -> Drawn:
    """Return the figure of an invasion in a file, and its numbers.

    The sample in the file's record is invaded again, and the steps must equal those in the file.
    InputError: they differ, or the weights were given by a user and are not in the file.
    """
    record, sites = read_invasion(file)
    if record["weights"] is not None:
        raise InputError(f"{file}: its weights were given and are not in the file; draw it "
                         "when it is made (percolab invade --plot)")  # fmt: skip
    no_graph = dict.fromkeys(("graph", "multi", "columns"))
    (invader,) = make_invaders(record | no_graph)
    invasion = invader.run(record["sample"])
    if not np.array_equal(invasion.sites, sites):
        raise InputError(f"{file}: its steps are not those of lattice {record['lattice']}")
    figure, numbers = draw_invasion(invader, invasion, Curves.of(invasion), record)
    return figure, {"kind": "invasion"} | numbers | {"notes": []}


def name_invasion(invader: Invader, record: dict[str, Any]) -> str:
    """Return the title of an invasion."""
    structure = invader.field.structure
    parts = [f"{record['model'].capitalize()} invasion", plain_text(structure.title)]
    sizes = record["L"] if isinstance(record["L"], list) else [record["L"]]
    parts += [f"$L = {', '.join(map(str, sizes))}$"] if not isinstance(structure, Graph) else []
    parts += ["with trapping"] if record["trapping"] else []
    periodic = [a for a, kind in zip(invader.field.axes, record["boundary"]) if kind == "periodic"]
    parts += [f"periodic along {' and '.join(periodic)}"] if periodic else []
    if record["weights"] is None:
        parts.append(f"seed {record['seed']}")
        parts += [f"sample {record['sample']}"] if record["sample"] else []
    return ", ".join(parts)
