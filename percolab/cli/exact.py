"""percolab exact: the polynomial in p with which two sites of a small graph are connected."""

from typing import Any

import click

from percolab.cli.groups import GroupedCommand
from percolab.cli.options import as_json, write_answer
from percolab.cli.setting_options import given_settings, settings_named
from percolab.lattices.shown import Table


@click.command(cls=GroupedCommand)
@click.argument("graph")
@settings_named(
    *("source", "target", "model", "p", "multi", "columns"),
    model={"help": "bond or site: what is open with probability p."},
    source={"help": "Sites of the graph: 0,5,17, or their names, or a file with one per line."},
    target={"help": "Sites to which the source should be connected, like --source."},
    p={"help": "Show the probability at these p, too: 0.5, or 0.1:0.9:9.", "shown_default": ""},
)
@as_json
def command(graph: str, as_json: bool, **given: Any) -> None:
    """Find the exact probability that --source and --target are connected in GRAPH.

    The result is a polynomial in p with integer coefficients, for bond percolation or, with --model
    site, site percolation.  GRAPH is the file of a small or narrow graph, such as a square of 9 x 9
    sites (docs/networks.md); graphs that are too wide are refused.
    """
    from percolab.configurations.exact import exact
    from percolab.tasks.values import take_probabilities

    settings = given_settings(given)
    shares = take_probabilities("p", settings.pop("p", ()))
    found = exact(graph, **settings)
    values = [[p, found.probability(p)] for p in shares or ()]
    elements = "sites" if found.model == "site" else "bonds"
    connected = f"{sum(found.counts)} of 2^{len(found.counts) - 1} sets of open {elements} connect"
    text = f"P(p) = {found.polynomial}\n{connected} source and target"
    if values:
        text += "\n\n" + Table(("p", "P"), [[f"{p:g}", f"{P:.12g}"] for p, P in values]).to_text()
    record = {
        "model": found.model,
        "counts": list(found.counts),
        "coefficients": list(found.coefficients),
        "values": values,
    }
    write_answer(record, text, as_json=as_json)
