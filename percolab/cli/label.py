"""percolab label: the clusters of a configuration as a file of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.options import as_json, counted, echo_json, output_file, refuse
from percolab.cli.sample_options import (
    OF_SPINS,
    describe_directions,
    has_point,
    lattice_and_size,
    need,
    sample_keys,
    sample_options,
    shaped,
)
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.tasks.setting_groups import MACHINE, OUTPUT, WHAT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from percolab.configurations.configuration import Configuration
    from percolab.measure.clusters import Clusters


#: Clusters that span or wrap and are named one by one.
_MOST_NAMED = 4
#: The labels, where no file is named.
_OUT = "labels.h5"


@click.command(cls=GroupedCommand)
@click.argument("configuration", required=False, metavar="[INPUT]")
@sample_options
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
@grouped(OUTPUT, "--serial", is_flag=True, help="Number the clusters 0 ... n - 1.")
@grouped(OUTPUT, "--out", type=click.Path(),
         help=f"Labels: .h5 with sizes, or .npy.  [default: {_OUT}]")  # fmt: skip
@as_json
@quiet_option()
def command(
    configuration: str | None,
    labeler: str | None,
    device: str,
    serial: bool,
    out: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Label the clusters of a configuration of your own, or of one sample of a sweep.

    INPUT is a configuration of sites: a black and white .png or .tif, a .npy, or file.h5:/dataset,
    of 0 and one other value, or any with --threshold; neighbours on --lattice are joined.  With -L
    it is the packed open bonds of a lattice, uint32 in a .npy file.  Without INPUT it is a sample:
    --lattice, -L, -p and --seed; or
    one on a Bethe lattice: --bethe, --shells and -p; or a --graph.  Of spins (--model ising, -T) it
    is chain --sample after so many --sweeps.

    A label is the smallest site index of its cluster, -1 where there is no site.
    """
    from percolab.cli.progress import ProgressWatcher
    from percolab.configurations import write_labels
    from percolab.configurations.label_files import find_label_format

    target = str(output_file(out, _OUT, find_label_format(out or _OUT)))
    chosen = _configuration(configuration, given)
    clusters = chosen.label(labeler, device, watcher=ProgressWatcher(silent=quiet))
    write_labels(target, clusters, chosen, serial=serial)
    summary, crossing = clusters.summary(), clusters.crossing()
    names: Sequence[str] | None = getattr(chosen.lattice, "names", None)
    if names is not None:
        crossing = [item | {"name": names[item["label"]]} for item in crossing]
    if as_json:
        record = {"labels": target, "shape": list(chosen.shape), **chosen.record}
        more = {} if names is None else {"largest_names": _largest_names(clusters, names)}
        echo_json(record | summary | {"crossing_clusters": crossing} | more)
        return
    sites = counted(summary["sites"], "site")
    echo(f"{counted(summary['clusters'], 'cluster')} of {sites} in {target}")
    echo(f"largest {summary['largest']}, second largest {summary['second_largest']}")
    if summary["open_axes"]:
        echo(f"spanning along {', '.join(summary['spanning']) or 'no axis'}")
    if summary.get("periodic_axes"):
        echo(f"wrapping around {', '.join(summary['wrapping']) or 'no axis'}")
    if names is not None and summary["largest"]:
        first = ", ".join(_largest_names(clusters, names))
        hidden = summary["largest"] - _MOST_NAMED
        echo(f"largest cluster: {first}{f' and {hidden} more' if hidden > 0 else ''}")
    for item in crossing[:_MOST_NAMED]:
        sites = counted(item["sites"], "site")
        which = f"of {item['name']}, {sites}," if names else f"{item['label']} of {sites}"
        echo(f"cluster {which} {describe_directions(item)}")
    hidden = len(crossing) - _MOST_NAMED
    if hidden > 0:
        echo(f"and {counted(hidden, 'more cluster')} that span or wrap (--json names all)")


def _largest_names(clusters: Clusters, names: Sequence[str]) -> list[str]:
    """Return the names of the first sites of the largest cluster."""
    label = clusters.roots[clusters.by_size[0]] if clusters.roots.size else -2
    return [names[site] for site in (clusters.labels == label).nonzero()[0][:_MOST_NAMED]]


def _configuration(name: str | None, given: dict[str, Any]) -> Configuration:
    from percolab.configurations import bond_configuration, random_configuration, site_configuration
    from percolab.lattices.lattice import load_lattice

    threshold, below = given["threshold"], given["below"]
    if threshold is not None or below:
        is_sites = name is not None and given["size"] is None and given["graph"] is None
        if not is_sites or threshold is None:
            option = "--below" if threshold is None else "--threshold"
            need_of = "INPUT of sites with --threshold" if is_sites else "an INPUT of sites"
            raise InputError(f"{option}: only {need_of} has it; leave it out")
    if given["graph"] is not None:
        return _graph_configuration(name, given)
    refuse(given, "only a graph (--graph) has it", "source", "target", "columns", "multi")
    if name is None:
        lattice, size = lattice_and_size(given, "a sample (without INPUT)")
        return random_configuration(lattice, size, boundary=given["boundary"], **sample_keys(given))
    reason = "INPUT is a configuration already"
    sampled = ("p", *OF_SPINS, "seed", "sample", "rng", "model")
    refuse(given, reason, *sampled, "bethe", "shells", "numbering")
    keys = {"boundary": given["boundary"] or "open"}
    if given["size"] is not None:
        need(given, "a configuration of bonds (-L)", "lattice")
        lattice, size = shaped(load_lattice(given["lattice"]), given["size"])
        return bond_configuration(name, lattice, size, **keys)
    named = load_lattice(given["lattice"]) if given["lattice"] is not None else None
    return site_configuration(name, named, **keys, threshold=threshold, below=below)


def _graph_configuration(name: str | None, given: dict[str, Any]) -> Configuration:
    from percolab.configurations import random_configuration
    from percolab.lattices.graph import load_graph

    if name is not None:
        raise InputError(f"{name}: --graph is a configuration already; leave one of them out")
    refuse(given, "a graph (--graph) has its own", "lattice", "size", "boundary")
    refuse(given, "a graph (--graph) is no Bethe lattice", "bethe", "shells", "numbering")
    if not has_point(given):
        sampled = ("seed", "sample", "rng", "model", *OF_SPINS)
        refuse(given, "without -p all bonds are open", *sampled)
    options = {name: given[name] for name in ("source", "target", "multi", "columns")}
    graph = load_graph(given["graph"], **options)
    keys = sample_keys(given) | ({} if has_point(given) else {"p": 1.0})
    return random_configuration(graph, graph.num_sites, **keys)
