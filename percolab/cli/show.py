"""percolab show: the clusters of a sample, or of a file of labels, as a figure."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.options import as_json, echo_json, write_figure
from percolab.cli.sample_options import (
    OF_SPINS,
    lattice_and_size,
    need,
    refuse,
    sample_keys,
    sample_options,
    with_defaults,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from percolab.lattices.bethe import BetheLattice
    from percolab.lattices.lattice import Lattice
    from percolab.measure.clusters import Clusters

    #: A figure, and every number drawn in it.
    Drawn = tuple[Figure, dict[str, Any]]


@click.command()
@click.argument("labels", required=False, metavar="[LABELS]")
@sample_options
@click.option(
    "--tree",
    "as_tree",
    is_flag=True,
    help="Draw the minimum spanning tree of the sample and its trunk; no -p.",
)
@click.option("--weights", help="With --tree: .npy or file.h5:/dataset, in place of a sample's.")
@click.option("--out", default="clusters.png", show_default=True, type=click.Path(),
              help="Figure: .png, .pdf or .svg.")  # fmt: skip
@as_json
def command(
    labels: str | None,
    as_tree: bool,
    weights: str | None,
    out: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Draw the clusters of a sample, at their places in real space.

    The sample is that of a sweep: --lattice, -L, -p and --seed; or one on a Bethe lattice: --bethe,
    --shells and -p.  LABELS is a file that percolab label wrote.  The largest cluster and those
    that span stand out.  A lattice in space is drawn as layers.  Of spins (--model ising, -T) both
    the spins and the clusters between equal ones are drawn, of chain --sample after --sweeps.

    With --tree it is the minimum spanning tree, coloured by weight, and its trunk: the path through
    it between the sides of the last open axis.

    With --json every number drawn goes to stdout.
    """
    from percolab.errors import InputError
    from percolab.figures import FORMATS

    if not out.lower().endswith(tuple(FORMATS)):
        raise InputError(f"{out}: a figure is written as {', '.join(FORMATS)}")
    if weights is not None and not as_tree:
        raise InputError("--weights: only a tree (--tree) has it; leave it out")
    if as_tree:
        figure, numbers = _of_tree(labels, weights, given)
    elif labels is not None:
        figure, numbers = _of_labels(labels, given)
    else:
        figure, numbers = _of_sample(given)
    write_figure(figure, out, quiet=as_json)
    if as_json:
        echo_json({"figure": out, **numbers})


def _of_sample(given: dict[str, Any]) -> Drawn:
    from percolab.configurations import random_configuration
    from percolab.figures.bethe import check_shells
    from percolab.figures.configuration import check_drawable
    from percolab.lattices.bethe import BetheLattice

    lattice, size = lattice_and_size(given, "a sample (without LABELS)")
    if isinstance(lattice, BetheLattice):
        check_shells(lattice, size)
    else:
        check_drawable(lattice, prod(lattice.shape(size)))
    chosen = random_configuration(lattice, size, boundary=given["boundary"], **sample_keys(given))
    return _drawn(
        chosen.label(),
        lattice,
        chosen.record,
        lattice.title,
        opened=chosen.opened,
        spins=chosen.spins,
    )


def _of_tree(labels: str | None, weights: str | None, given: dict[str, Any]) -> Drawn:
    """Return the figure of the tree of a sample, or of given weights, and its numbers."""
    from percolab.configurations.tree import read_weights, tree, tree_of_array
    from percolab.errors import InputError
    from percolab.figures.tree import check_tree_drawable, plot_spanning_tree
    from percolab.lattices.lattice import AXIS_NAMES, load_lattice

    if labels is not None:
        raise InputError(f"{labels}: a tree (--tree) has no labels; leave one of them out")
    reason = "a tree (--tree) is of all bonds of a lattice"
    refuse(given, reason, "p", *OF_SPINS, "model", "bethe", "shells", "numbering")
    need(given, "a tree (--tree)", "lattice", *(() if weights else ("size",)))
    lattice, size, boundary = load_lattice(given["lattice"]), given["size"], given["boundary"]
    if size is not None:
        check_tree_drawable(lattice, prod(lattice.shape(size)))
    if weights is not None:
        refuse(given, "weights are given (--weights)", "seed", "sample", "rng")
        values = read_weights(weights, lattice, size, boundary)
        found = tree_of_array(lattice, values, size, boundary)
        record: dict[str, Any] = {"boundary": found.boundary}
    else:
        keys = with_defaults(given, "seed", "sample", "rng")
        found = tree(lattice, size, boundary=boundary, **keys)
        record = {"L": size, "boundary": found.boundary, **keys}
    title = _title(_plain(lattice.title), record)
    if not found.topology.open_axes:
        return plot_spanning_tree(found, title=title)
    axis = found.topology.open_axes[-1]
    name = f"trunk along ${AXIS_NAMES[axis]}$"
    return plot_spanning_tree(found, trunk=found.trunk(axis), trunk_name=name, title=title)


def _of_labels(name: str, given: dict[str, Any]) -> Drawn:
    from percolab.configurations import read_labels
    from percolab.lattices.lattice import load_lattice

    refuse(given, "LABELS is a configuration already", "size", "p", "seed", "sample")
    refuse(given, "LABELS is a configuration already", "rng", "model", *OF_SPINS)
    refuse(given, "LABELS is a configuration already", "bethe", "shells", "numbering")
    lattice = load_lattice(given["lattice"]) if given["lattice"] is not None else None
    found = read_labels(name, lattice, given["boundary"])
    kind = found.record.get("kind")
    name = found.lattice.title if kind == "sample" else found.record.get("input", Path(name).name)
    return _drawn(
        found.clusters,
        found.lattice,
        found.record,
        name,
        opened=found.opened,
        first_row_on_top=kind in (None, "sites"),
    )


def _drawn(
    clusters: Clusters,
    lattice: Lattice | BetheLattice,
    record: dict[str, Any],
    name: str,
    **options: Any,
) -> Drawn:
    """Return the figure of clusters on a lattice of any kind, and its numbers."""
    from percolab.bonds.model import Model
    from percolab.figures.bethe import plot_bethe
    from percolab.figures.configuration import plot_clusters
    from percolab.lattices.bethe import BetheLattice

    if isinstance(lattice, BetheLattice):
        name = f"Bethe lattice, $z = {lattice.coordination_number}$, {lattice.numbering} numbering"
        # The shells can be counted.
        title = _title(name, {key: record[key] for key in record if key != "L"})
        return plot_bethe(clusters, lattice, record["L"], title=title)
    if options.get("spins") is not None:
        options["states"] = Model.parse(record["model"]).states
    return plot_clusters(clusters, lattice, title=_title(_plain(name), record), **options)


def _plain(text: str) -> str:
    """Return a text in which no dollar sign begins mathematics."""
    return text.replace("$", r"\$")


def _title(name: str, record: dict[str, Any]) -> str:
    from percolab.bonds.model import Model
    from percolab.lattices.lattice import AXIS_NAMES

    parts = [name]
    if "model" in record:
        parts.insert(0, Model.parse(record["model"]).title)
    if "sweeps" in record:
        parts.append(f"$k_B T / J = {_temperature(record):.6g}$")
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
    # What tells a chain makes a title too long for one line.
    seed = f"seed {record.get('seed')}"
    second = parts.index(seed) if "sweeps" in record and seed in parts else len(parts)
    return "\n".join(filter(None, (", ".join(parts[:second]), ", ".join(parts[second:]))))


def _temperature(record: dict[str, Any]) -> float:
    """Return k_B T / J of a sample of spins; infinite at p = 0."""
    from percolab.bonds.model import Model

    coupling = Model.parse(record["model"]).coupling_of_p(record["p"])
    return 1 / coupling if coupling else float("inf")
