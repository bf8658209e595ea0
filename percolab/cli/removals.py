"""percolab removals: what is left of a graph without each single site or bond."""

from typing import Any

import click

from percolab.cli.groups import GroupedCommand, grouped
from percolab.cli.options import as_json, check_target, write_answer
from percolab.cli.setting_options import given_settings, setting_option
from percolab.lattices.shown import Table, counted, csv_text
from percolab.tasks.setting_groups import OUTPUT

#: Rows that are shown.
_SHOWN = 10


@click.command(cls=GroupedCommand)
@click.argument("graph")
@setting_option("model", help="site or bond: what is removed.", shown_default="site")
@setting_option("multi")
@setting_option("columns")
@grouped(OUTPUT, "-o", "--out", type=click.Path(), help="Write all removals to this .csv file.")
@as_json
def command(graph: str, out: str | None, as_json: bool, **given: Any) -> None:
    """Show what is left of GRAPH after removing each single site, or each single bond.

    The list has the ten whose removal leaves the smallest largest cluster, and the number of
    clusters left; --out and --json give all.  Nothing is random.
    """
    from percolab.configurations.removals import REMOVALS_CSV, remove_each
    from percolab.store.output_files import write_output

    if out is not None:
        check_target(out, "removals", (".csv",), REMOVALS_CSV)
    found = remove_each(graph, **given_settings(given))
    keys, rows = found.to_table()
    whole, clusters = found.intact
    counts = {"site": found.graph.num_sites, "bond": found.graph.num_bonds, "cluster": clusters}
    shown = ", ".join(counted(count, what) for what, count in counts.items())
    text = f"{found.graph.name}: {shown}; the largest has {counted(whole, 'site')}\n\n"
    text += Table(keys, rows[:_SHOWN]).to_text()
    removals = [dict(zip(keys, row, strict=True)) for row in rows]
    record = {"largest": whole, "clusters": clusters, "removals": removals}
    if out is not None:
        write_output(out, csv_text(keys, rows).encode(), REMOVALS_CSV)
        record, text = {"table": out} | record, f"{text}\nall of them in {out}"
    write_answer(record, text, as_json=as_json)
