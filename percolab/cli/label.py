"""percolab label: the clusters of a configuration as a file of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.options import as_json, counted, echo_json, output_file, refuse
from percolab.cli.sample_options import (
    OF_SPINS,
    has_point,
    lattice_and_size,
    need,
    sample_keys,
    sample_options,
    shaped,
)
from percolab.cli.setting_options import setting_option
from percolab.cli.status import LabelFacts, answer_labels, echo_phases
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.tasks.setting_groups import MACHINE, OUTPUT, WHAT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from percolab.configurations.configuration import Configuration


#: Options that say which pixels of an image are sites, and which are neighbours.
_OF_IMAGE = ("threshold", "below", "phase", "connectivity")
#: Why an option is refused, and options that only a graph has, or only a sample.
_OF_GRAPH = ("only a graph (--graph) has it", "source", "target", "columns", "multi")
_OF_SAMPLE = (
    "INPUT is a configuration already",
    *("p", *OF_SPINS, "seed", "sample", "rng", "model", "bethe", "shells", "numbering"),
)
#: The labels, where no file is named.
_OUT = "labels.h5"


@click.command(cls=GroupedCommand)
@click.argument("configuration", nargs=-1, metavar="[INPUT]...")
@sample_options
@grouped(
    WHAT,
    "--phase",
    metavar="VALUES",
    help="Of INPUT with several values: sites are where it is 2; 1,2 are two phases, 1+2 is one, "
    "all is every value.",
)
@grouped(
    WHAT,
    "--connectivity",
    type=click.Choice(["4", "8", "6", "18", "26"]),
    help="Neighbours of a pixel (4 or 8) or voxel (6, 18 or 26), in place of --lattice.  "
    "[default: 4 or 6]",
)
@grouped(
    WHAT,
    "--threshold",
    metavar="NUMBER|otsu",
    help="Of INPUT in grey, colours or other values: sites are what is above it.",
)
@grouped(WHAT, "--below", is_flag=True, help="With --threshold: sites are what is not above it.")
@setting_option("graph", help="Graph file; all its bonds are open without -p.")
@setting_option("source", help="With --graph: sites 0,5,17 or a file with one a line.")
@setting_option("target", help="The same: clusters that connect both are named.")
@setting_option("multi", help="Keep parallel edges of the graph file.")
@setting_option("columns")
@setting_option("labeler")
@grouped(MACHINE, "--device", default="cpu", show_default=True, help="auto, cpu, cuda or cuda:n.")
@grouped(
    MACHINE,
    "--slabs",
    metavar="N|auto",
    help="Cut INPUT along its first axis and read and label one slab after the other, where it is "
    "larger than the memory; --out is a .npy file.",
)
@grouped(OUTPUT, "--tortuosity", is_flag=True,
         help="Of INPUT on square or cubic: of diffusion along open axes.")  # fmt: skip
@grouped(OUTPUT, "--serial", is_flag=True, help="Number the clusters 0 ... n - 1.")
@grouped(
    OUTPUT,
    "--sizes",
    type=click.Path(),
    help="Write a CSV file with a line a cluster: label, sites, phase, what it spans.",
)
@grouped(OUTPUT, "--out", type=click.Path(),
         help=f"Labels: .h5 with sizes, or .npy.  [default: {_OUT}]")  # fmt: skip
@as_json
@quiet_option()
def command(
    configuration: tuple[str, ...], as_json: bool, quiet: bool, serial: bool, **given: Any
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
    from percolab.cli.progress import ProgressBar
    from percolab.configurations import write_labels
    from percolab.configurations.flow import find_tortuosities
    from percolab.configurations.label_array import clusters_csv
    from percolab.configurations.label_files import find_label_format
    from percolab.store.output_files import CLUSTERS_CSV, write_output

    sizes, out = given["sizes"], given["out"]
    default = _OUT if given["slabs"] is None else "labels.npy"
    target = str(output_file(out, default, find_label_format(out or default)))
    if sizes is not None:
        output_file(sizes, "", CLUSTERS_CSV)
    if given["slabs"] is not None:
        given["serial"] = serial
        refuse(given, "labels in slabs (--slabs) have none", "serial", "sizes", "tortuosity")
        _label_in_slabs(configuration, given, target, as_json=as_json)
        return
    chosen = _configuration(configuration, given)
    tortuosities = find_tortuosities(chosen) if given["tortuosity"] else {}
    observer = ProgressBar(silent=quiet)
    clusters = chosen.label(given["labeler"], given["device"], observer=observer)
    write_labels(target, clusters, chosen, serial=serial)
    if sizes is not None:
        write_output(sizes, clusters_csv(chosen, clusters, serial=serial), CLUSTERS_CSV)
    names: Sequence[str] | None = getattr(chosen.lattice, "names", None)
    phases = chosen.measure_phases(clusters)
    facts = (chosen.shape, chosen.record, clusters, phases, names, tortuosities)
    answer_labels(LabelFacts(target, *facts), as_json=as_json)


def _label_in_slabs(
    files: tuple[str, ...], given: dict[str, Any], target: str, *, as_json: bool
) -> None:
    """Label an image slab by slab, and write what was found of it."""
    from percolab.configurations.label_slabs import label_in_slabs

    refuse(given, "an image (--slabs) has none", "size", "graph")
    if not files:
        raise InputError("--slabs: only an INPUT of sites has it; leave it out")
    slabs = given["slabs"]
    count = int(slabs) if slabs.isascii() and slabs.isdigit() else slabs
    ways: dict[str, Any] = {"labeler": given["labeler"], "device": given["device"], "slabs": count}
    labeled = label_in_slabs(**_image(files, given), **ways, out=target)
    summary = labeled.summary()
    if as_json:
        facts = {"labels": target, "shape": list(labeled.array.shape), **labeled.record, **summary}
        echo_json(facts | {"phases": [phase.to_dict() for phase in labeled.phases]})
        return
    sites = counted(summary["sites"], "site")
    echo(f"{counted(summary['clusters'], 'cluster')} of {sites} in {target}")
    echo_phases(labeled.phases)


def _configuration(files: tuple[str, ...], given: dict[str, Any]) -> Configuration:
    from percolab.configurations import bond_configuration, random_configuration, site_configuration
    from percolab.lattices.lattice import load_lattice

    name = files[0] if files else None
    if name is not None and given["size"] is None and given["graph"] is None:
        return site_configuration(**_image(files, given))
    refuse(given, "only an INPUT of sites has it", *_OF_IMAGE)
    if given["graph"] is not None:
        return _graph_configuration(name, given)
    refuse(given, *_OF_GRAPH)
    if name is None:
        lattice, size = lattice_and_size(given, "a sample (without INPUT)")
        return random_configuration(lattice, size, boundary=given["boundary"], **sample_keys(given))
    refuse(given, *_OF_SAMPLE)
    need(given, "a configuration of bonds (-L)", "lattice")
    if len(files) > 1:
        raise InputError(f"{files[1]}: a configuration of bonds (-L) is one file")
    boundary = given["boundary"] or "open"
    lattice, size = shaped(load_lattice(given["lattice"]), given["size"])
    return bond_configuration(name, lattice, size, boundary)


def _image(files: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an image as site_configuration takes them."""
    from percolab.lattices.lattice import load_lattice

    if given["threshold"] is None:
        refuse(given, "only INPUT of sites with --threshold has it", "below")
    refuse(given, *_OF_GRAPH)
    refuse(given, *_OF_SAMPLE)
    connectivity = given["connectivity"]
    return {
        "name": files[0] if len(files) == 1 else files,
        "lattice": None if given["lattice"] is None else load_lattice(given["lattice"]),
        "boundary": given["boundary"] or "open",
        "connectivity": None if connectivity is None else int(connectivity),
    } | {key: given[key] for key in ("threshold", "below", "phase")}


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
