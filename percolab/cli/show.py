"""percolab show: the clusters of a sample, or of a file of labels, as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import GroupedCommand, grouped
from percolab.cli.options import as_json, counted, echo_json, output_file, refuse, write_figure
from percolab.cli.sample_options import (
    OF_SPINS,
    describe_directions,
    lattice_and_size,
    need,
    sample_keys,
    sample_options,
    shaped,
    with_defaults,
)
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.tasks.setting_groups import MEASURED, OUTPUT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    #: A figure, and every number drawn in it.
    Drawn = tuple[Figure, dict[str, Any]]

#: The figure, where none is named.
_OUT = "clusters.png"


@click.command(cls=GroupedCommand)
@click.argument("labels", required=False, metavar="[LABELS]")
@sample_options
@setting_option("graph", help="Graph of up to 1000 sites, an edge list or another of its files.")
@grouped(
    MEASURED,
    "--tree",
    is_flag=True,
    help="Draw the minimum spanning tree of the sample and its trunk; no -p.",
)
@grouped(
    MEASURED,
    "--backbone",
    is_flag=True,
    help="Draw what flows between the sides of the last open axis: the backbone of the sample, its "
    "red bonds and its dangling ends.",
)
@grouped(
    MEASURED, "--weights", help="With --tree: .npy or file.h5:/dataset, in place of a sample's."
)
@grouped(
    OUTPUT,
    "--html",
    type=click.Path(),
    metavar="FILE",
    help="Write a page for a browser in place of a figure: a slider for p, the clusters "
    "of the sample at it, and its curves.",
)
@grouped(OUTPUT, "--out", type=click.Path(),
         help=f"Figure: .png, .pdf or .svg.  [default: {_OUT}]")  # fmt: skip
@as_json
def command(labels: str | None, as_json: bool, **given: Any) -> None:
    """Draw the clusters of a sample, at their places in real space.

    The sample is that of a sweep: --lattice, -L, -p and --seed; or one on a Bethe lattice: --bethe,
    --shells and -p.  LABELS is a file that percolab label wrote.  The largest cluster and those
    that span stand out.  A lattice in space is drawn as layers.  Of spins (--model ising, -T) both
    the spins and the clusters between equal ones are drawn, of chain --sample after --sweeps.

    With --tree it is the minimum spanning tree, coloured by weight, and its trunk: the path through
    it between the sides of the last open axis.

    With --backbone it is what flows between the sides of the last open axis: a red bond alone
    connects them, the backbone is what carries current, and dangling ends are the rest of the
    clusters that span.

    With --graph and -p the sites of a graph are where a spring layout of networkx puts them.

    With --html it is one page without network: a slider for p, of bond or site percolation on a
    lattice in the plane; -p is where it begins.

    With --json every number drawn goes to stdout.
    """
    from percolab.figures import FORMATS

    out, as_tree, backbone = given["out"], given["tree"], given["backbone"]
    if given["html"] is not None:
        if labels is not None:
            raise InputError(f"{labels}: a page (--html) shows a sample; leave one of them out")
        refuse(given, "a page (--html) shows one sample", "tree", "backbone", "weights", "out")
        _write_page(given["html"], given, as_json=as_json)
        return
    if out is not None and not out.lower().endswith(tuple(FORMATS)):
        raise InputError(f"{out}: a figure is written as {', '.join(FORMATS)}")
    if not as_tree:
        refuse(given, "only a tree (--tree) has it", "weights")
    target = output_file(out, _OUT)
    if labels is not None or backbone or as_tree:
        refuse(given, "a graph is drawn with its clusters alone", "graph")
    if backbone:
        figure, numbers = _show_flow(labels, given)
    elif as_tree:
        figure, numbers = _show_tree(labels, given)
    elif labels is not None:
        figure, numbers = _show_labels(labels, given)
    elif given["graph"] is not None:
        figure, numbers = _show_graph(given)
    else:
        figure, numbers = _show_sample(given)
    write_figure(figure, target, quiet=as_json)
    if as_json:
        echo_json({"figure": str(target), **numbers})
        return
    for cluster in numbers.get("prominent", ()):
        ways = describe_directions(cluster)
        if ways:
            echo(f"cluster {cluster['label']} of {counted(cluster['size'], 'site')} {ways}")


def _write_page(html: str, given: dict[str, Any], *, as_json: bool) -> None:
    from percolab.configurations.sample_page import sample_page
    from percolab.lattices.structure import load_structure
    from percolab.store.output_files import check_suffix, write_output

    reason = "a page (--html) shows percolation on a lattice"
    refuse(given, reason, "graph", *OF_SPINS, "bethe", "shells", "numbering")
    need(given, "a page (--html)", "lattice", "size")
    check_suffix(html, (".html", ".htm"), "a page")
    target = output_file(html, "")
    keys = with_defaults(given, "seed", "sample", "rng", "model")
    structure, size = shaped(load_structure(given["lattice"]), given["size"])
    page, facts = sample_page(structure, size, given["p"], boundary=given["boundary"], **keys)
    write_output(target, page.encode())
    echo(f"page in {target}", err=as_json)
    if as_json:
        echo_json({"page": str(target), **facts})


def _show_sample(given: dict[str, Any]) -> Drawn:
    from percolab.configurations.picture import draw_sample_picture

    lattice, size = lattice_and_size(given, "a sample (without LABELS)")
    return draw_sample_picture(lattice, size, boundary=given["boundary"], **sample_keys(given))


def _show_graph(given: dict[str, Any]) -> Drawn:
    from percolab.bonds.model import Model
    from percolab.configurations.picture import draw_sample_picture
    from percolab.lattices.graph import make_graph

    reason = "a graph (--graph) has its own, and no spins are drawn on it"
    refuse(given, reason, "lattice", "size", "boundary", "bethe", "shells", "numbering", *OF_SPINS)
    need(given, "a graph (--graph)", "p")
    keys = sample_keys(given)
    model = Model.parse(keys["model"])
    if model.chains:
        raise InputError(f"model {model}: of a graph samples of percolation are drawn")
    graph = make_graph(given["graph"], weights=model.needs_weights)
    return draw_sample_picture(graph, graph.num_sites, **keys)


def _show_tree(labels: str | None, given: dict[str, Any]) -> Drawn:
    from percolab.configurations.picture import draw_tree_picture
    from percolab.lattices.lattice import load_lattice

    if labels is not None:
        raise InputError(f"{labels}: a tree (--tree) has no labels; leave one of them out")
    reason = "a tree (--tree) is of all bonds of a lattice"
    refuse(given, reason, "p", *OF_SPINS, "model", "bethe", "shells", "numbering")
    need(given, "a tree (--tree)", "lattice", *(() if given["weights"] else ("size",)))
    keys = {"weights": given["weights"]}
    if given["weights"] is not None:
        refuse(given, "weights are given (--weights)", "seed", "sample", "rng")
    else:
        keys = with_defaults(given, "seed", "sample", "rng")
    lattice, size = shaped(load_lattice(given["lattice"]), given["size"])
    return draw_tree_picture(lattice, size, boundary=given["boundary"], **keys)


def _show_flow(labels: str | None, given: dict[str, Any]) -> Drawn:
    from percolab.configurations.picture import draw_flow_picture

    if labels is not None or given["tree"]:
        other = "--tree" if given["tree"] else labels
        raise InputError(f"--backbone draws a sample of open bonds; leave out {other}")
    refuse(given, "what flows is drawn of percolation, between sides", *OF_SPINS, "bethe", "shells")
    lattice, size = lattice_and_size(given, "a backbone (--backbone)")
    keys = sample_keys(given)
    if "sweeps" in keys:
        raise InputError(f"model {keys['model']}: what flows is drawn of percolation, not of spins")
    return draw_flow_picture(lattice, size, boundary=given["boundary"], **keys)


def _show_labels(name: str, given: dict[str, Any]) -> Drawn:
    from percolab.configurations.picture import draw_labels_picture
    from percolab.lattices.lattice import load_lattice

    sampled = ("size", "p", "seed", "sample", "rng", "model", *OF_SPINS)
    reason = "LABELS is a configuration already"
    refuse(given, reason, *sampled, "bethe", "shells", "numbering")
    lattice = load_lattice(given["lattice"]) if given["lattice"] is not None else None
    return draw_labels_picture(name, lattice, given["boundary"])
