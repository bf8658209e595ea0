"""percolab label: the clusters of a configuration as a file of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli.label_answer import answer_labels
from percolab.cli.options import as_json, output_file, refuse
from percolab.cli.sample_options import (
    OF_SPINS,
    has_point,
    lattice_and_size,
    need,
    sample_keys,
    sample_options,
)
from percolab.cli.setting_options import setting_option
from percolab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from percolab.configurations.configuration import Configuration


#: Options that say which pixels of an image are sites, and which are neighbours.
_OF_IMAGE = ("threshold", "below", "phase", "connectivity")
#: The labels, where no file is named.
_OUT = "labels.h5"


@click.command()
@click.argument("configuration", nargs=-1, metavar="[INPUT]...")
@sample_options
@click.option(
    "--phase",
    metavar="VALUES",
    help="Of INPUT with several values: sites are where it is 2; 1,2 are two phases, 1+2 is one, "
    "all is every value.",
)
@click.option(
    "--connectivity",
    type=click.Choice(["4", "8", "6", "18", "26"]),
    help="Neighbours of a pixel (4 or 8) or voxel (6, 18 or 26), in place of --lattice.  "
    "[default: 4 or 6]",
)
@click.option(
    "--threshold",
    metavar="NUMBER|otsu",
    help="Of INPUT in grey, colours or other values: sites are what is above it.",
)
@click.option("--below", is_flag=True, help="With --threshold: sites are what is not above it.")
@setting_option("graph", help="Graph file; all its bonds are open without -p.")
@setting_option("source", help="With --graph: sites 0,5,17 or a file with one a line.")
@setting_option("target", help="The same: clusters that connect both are named.")
@setting_option("multi", help="Keep parallel edges of the graph file.")
@setting_option("columns")
@setting_option("labeler")
@click.option("--device", default="cpu", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--tortuosity", is_flag=True,
              help="Of INPUT on square or cubic: of diffusion along open axes.")  # fmt: skip
@click.option("--serial", is_flag=True, help="Number the clusters 0 ... n - 1.")
@click.option(
    "--sizes",
    type=click.Path(),
    help="Write a CSV file with a line a cluster: label, sites, phase, what it spans.",
)
@click.option("--out", type=click.Path(),
              help=f"Labels: .h5 with sizes, or .npy.  [default: {_OUT}]")  # fmt: skip
@as_json
def command(
    configuration: tuple[str, ...],
    labeler: str | None,
    device: str,
    tortuosity: bool,
    serial: bool,
    sizes: str | None,
    out: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Label the clusters of a configuration of your own, or of one sample of a sweep.

    INPUT is an image in two or three dimensions: a .png, .tif, .npy or file.h5:/dataset, or the
    slices of one: a folder, a pattern as "slices/*.png", or several files.  Sites are where it is
    not 0, if that is one value, or what --phase or --threshold says; neighbours by --connectivity,
    or on --lattice, are joined.  --boundary periodic joins opposite sides.  With -L it is the
    packed open bonds of a lattice, uint32 in a .npy file.  Without INPUT it is a sample:
    --lattice, -L, -p and --seed; or
    one on a Bethe lattice: --bethe, --shells and -p; or a --graph.  Of spins (--model ising, -T) it
    is chain --sample after so many --sweeps.

    A label is the smallest site index of its cluster, -1 where there is no site.  Of an image the
    answer ends in a table of its phases: share of the image (porosity), clusters, the largest, the
    share of the phase in clusters that span or wrap, and its surface.
    """
    from percolab.cli.progress import ProgressWatcher
    from percolab.configurations import write_labels
    from percolab.configurations.flow import find_tortuosities
    from percolab.configurations.label_array import clusters_csv
    from percolab.configurations.label_files import find_label_format
    from percolab.store.output_files import CLUSTERS_CSV, write_output

    target = str(output_file(out, _OUT, find_label_format(out or _OUT)))
    if sizes is not None:
        output_file(sizes, "", CLUSTERS_CSV)
    chosen = _configuration(configuration, given)
    tortuosities = find_tortuosities(chosen) if tortuosity else {}
    clusters = chosen.label(labeler, device, watcher=ProgressWatcher())
    write_labels(target, clusters, chosen, serial=serial)
    if sizes is not None:
        write_output(sizes, clusters_csv(chosen, clusters, serial=serial), CLUSTERS_CSV)
    names: Sequence[str] | None = getattr(chosen.lattice, "names", None)
    phases = chosen.measure_phases(clusters)
    facts = (chosen.shape, chosen.record, clusters, phases)
    answer_labels(target, *facts, names=names, tortuosities=tortuosities, as_json=as_json)


def _configuration(files: tuple[str, ...], given: dict[str, Any]) -> Configuration:
    from percolab.configurations import bond_configuration, random_configuration, site_configuration
    from percolab.lattices.lattice import load_lattice

    name = files[0] if files else None
    is_image = name is not None and given["size"] is None and given["graph"] is None
    if not is_image:
        refuse(given, "only an INPUT of sites has it", *_OF_IMAGE)
    elif given["threshold"] is None:
        refuse(given, "only INPUT of sites with --threshold has it", "below")
    if given["graph"] is not None:
        return _graph_configuration(name, given)
    refuse(given, "only a graph (--graph) has it", "source", "target", "columns", "multi")
    if name is None:
        lattice, size = lattice_and_size(given, "a sample (without INPUT)")
        return random_configuration(lattice, size, boundary=given["boundary"], **sample_keys(given))
    reason = "INPUT is a configuration already"
    sampled = ("p", *OF_SPINS, "seed", "sample", "rng", "model")
    refuse(given, reason, *sampled, "bethe", "shells", "numbering")
    keys: dict[str, Any] = {"boundary": given["boundary"] or "open"}
    if given["size"] is not None:
        need(given, "a configuration of bonds (-L)", "lattice")
        if len(files) > 1:
            raise InputError(f"{files[1]}: a configuration of bonds (-L) is one file")
        return bond_configuration(name, load_lattice(given["lattice"]), given["size"], **keys)
    named = load_lattice(given["lattice"]) if given["lattice"] is not None else None
    if given["connectivity"] is not None:
        keys["connectivity"] = int(given["connectivity"])
    rule = {key: given[key] for key in ("threshold", "below", "phase")}
    return site_configuration(name if len(files) == 1 else files, named, **keys, **rule)


def _graph_configuration(name: str | None, given: dict[str, Any]) -> Configuration:
    from percolab.bonds.model import Model
    from percolab.configurations import random_configuration
    from percolab.lattices.graph import make_graph

    if name is not None:
        raise InputError(f"{name}: --graph is a configuration already; leave one of them out")
    refuse(given, "a graph (--graph) has its own", "lattice", "size", "boundary")
    refuse(given, "a graph (--graph) is no Bethe lattice", "bethe", "shells", "numbering")
    if not has_point(given):
        sampled = ("seed", "sample", "rng", "model", *OF_SPINS)
        refuse(given, "without -p all bonds are open", *sampled)
    options = {name: given[name] for name in ("source", "target", "multi", "columns")}
    weights = Model.parse(given["model"] or "bond").needs_weights
    graph = make_graph(given["graph"], **options, weights=weights)
    keys = sample_keys(given) | ({} if has_point(given) else {"p": 1.0})
    return random_configuration(graph, graph.num_sites, **keys)
