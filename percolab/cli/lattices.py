"""percolab lattices: the lattices that come with percolab, or one described."""

from __future__ import annotations

import click

from percolab.cli.options import as_json, echo_json
from percolab.lattice import Lattice, lattice_names, load_lattice


@click.command()
@click.argument("name", required=False)
@as_json
def command(name: str | None, as_json: bool) -> None:
    """List the lattices with dimension, coordination number and published p_c."""
    chosen = [load_lattice(name)] if name else [load_lattice(each) for each in lattice_names()]
    if as_json:
        echo_json([_record(lattice) for lattice in chosen])
        return
    click.echo(f"{'name':<12} {'dim':>3} {'z':>4}  {'p_c (bond)':<16} source")
    for lattice in chosen:
        known = lattice.threshold("bond")
        value = f"{known.value:.12g}" if known else "-"
        source = f"{known.expression}, {known.reference}" if known else ""
        z = f"{lattice.coordination_number:g}"
        click.echo(f"{lattice.name:<12} {lattice.dimension:>3} {z:>4}  {value:<16} {source}")
    if name:
        click.echo(f"\ncell {list(chosen[0].cell)}; bonds (owner's cell points -> offset):")
        for bond in chosen[0].bonds:
            click.echo(f"  {sorted(map(list, bond.at))} -> {list(bond.offset)}")


def _record(lattice: Lattice) -> dict:
    return {
        "name": lattice.name,
        "title": lattice.title,
        "dimension": lattice.dimension,
        "coordination_number": lattice.coordination_number,
        "digest": lattice.digest,
        "cell": list(lattice.cell),
        "vacant": [list(point) for point in sorted(lattice.vacant)],
        "bonds": [
            {"offset": list(bond.offset), "at": [list(point) for point in sorted(bond.at)]}
            for bond in lattice.bonds
        ],
        "thresholds": [vars(item) for item in lattice.thresholds],
    }
