"""percolab show: the clusters of a sample, or of a file of labels, as a figure."""

from typing import Any

import click

from percolab.cli.groups import GroupedCommand, grouped
from percolab.cli.options import as_json, counted, echo_json, output_file, write_figure
from percolab.cli.sample_options import describe_directions, sample_options, with_usual
from percolab.cli.setting_options import setting_option
from percolab.cli.terminal import echo
from percolab.tasks.setting_groups import MEASURED, OUTPUT

#: The figure, where none is named.
_OUT = "clusters.png"


@click.command(cls=GroupedCommand)
@click.argument("labels", required=False, metavar="[LABELS]")
@sample_options
@setting_option("graph", help="Graph file of up to 1000 sites, an edge list for example.")
@grouped(
    MEASURED,
    "--tree",
    is_flag=True,
    help="Draw the minimum spanning tree of the sample and its trunk; takes no -p.",
)
@grouped(
    MEASURED,
    "--backbone",
    is_flag=True,
    help="Draw the sample's backbone between the sides of the last open axis, its red bonds and "
    "dangling ends.",
)
@grouped(MEASURED, "--weights", help="With --tree: your own weights, .npy or file.h5:/dataset.")
@grouped(
    OUTPUT,
    "--html",
    type=click.Path(),
    metavar="FILE",
    help="Instead of a figure write a page for a browser: a slider for p, the sample's clusters "
    "at that p, and its curves.",
)
@grouped(OUTPUT, "-o", "--out", type=click.Path(),
         help=f"Figure: .png, .pdf or .svg.  [default: {_OUT}]")  # fmt: skip
@as_json
def command(labels: str | None, as_json: bool, **given: Any) -> None:
    """Draw the clusters of a sample, at their places in real space.

    The sample is that of a sweep: --lattice (bethe:3 is a Bethe lattice), -L, -p and --seed; or
    LABELS is a file of percolab label.  The largest cluster and those that span are highlighted.
    A three-dimensional lattice is drawn layer by layer.  For spins (--model ising, -T) the spins
    and the clusters of equal spins are drawn, of chain --sample after --sweeps updates.

    --tree draws the minimum spanning tree, coloured by weight, and its trunk: the path through the
    tree between the sides of the last open axis.

    --backbone draws the flow between the sides of the last open axis.  The backbone carries
    current, every spanning path uses each red bond, and dangling ends are the rest of the spanning
    clusters.

    With --graph and -p, a spring layout of networkx places the sites of the graph.

    --html writes one page, which needs no network, for bond or site percolation on a lattice in the
    plane: a slider for p, which starts at -p.

    With --json every number drawn goes to stdout.
    """
    from percolab.configurations.show import draw
    from percolab.figures import FORMATS
    from percolab.store.output_files import check_suffix, write_output

    html, out = given["html"], given["out"]
    if html is not None:
        check_suffix(html, (".html", ".htm"), "a page")
    elif out is not None:
        check_suffix(out, FORMATS, "a figure")
    target = output_file(html or out, _OUT)
    drawn, numbers = draw(labels=labels, **with_usual(given))
    if html is not None:
        write_output(target, drawn.encode())
        echo(f"page in {target}", err=as_json)
    else:
        write_figure(drawn, target, quiet=as_json)
    if as_json:
        echo_json({"figure" if html is None else "page": str(target), **numbers})
        return
    for cluster in numbers.get("prominent", ()):
        ways = describe_directions(cluster)
        if ways:
            echo(f"cluster {cluster['label']} of {counted(cluster['size'], 'site')} {ways}")
