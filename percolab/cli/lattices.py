"""percolab lattices: the lattices that come with percolab, or one described and drawn."""

import math
from typing import Any

import click

from percolab.cli.groups import Command
from percolab.cli.options import as_json, echo_json, output_file, write_figure
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.lattices.lattice import Lattice, Threshold, lattice_names, load_lattice

_ROW = "{:<18}  {:>3}  {:>5}  {:<14}  {:<14}  {}"
_MODELS = ("bond", "site")


@click.command(cls=Command)
@click.argument("name", required=False)
@click.option("--plot", is_flag=False, flag_value="", metavar="[FILE]",
              help="Draw the lattice NAME: .png, .pdf or .svg.  [default: NAME.png]")  # fmt: skip
@click.option("--dual", is_flag=True, help="Write the lattice file of the dual of NAME to stdout.")
@as_json
def command(name: str | None, plot: str | None, dual: bool, as_json: bool) -> None:
    """List the lattices with dimension, coordination number z and published thresholds p_c.

    bethe:z, as in percolab sweep --lattice bethe:4, is the Bethe lattice of any z of at least 3.
    er:k=4 stands for random graphs of mean degree 4; docs/networks.md lists other random graphs.

    With a NAME (or a .toml file), describe its cell and give the sources in full.
    """
    if plot is not None and not name:
        raise InputError("--plot: name the lattice to draw, as in percolab lattices kagome --plot")
    if name and name.partition(":")[0] == "bethe":
        raise InputError(f"{name}: a Bethe lattice has no cell; percolab show draws one")
    if dual:
        if not name:
            raise InputError("--dual: name the lattice, as in percolab lattices kagome --dual")
        from percolab.lattices.dual import make_dual

        lattice = load_lattice(name)
        made = make_dual(lattice, name=f"{lattice.name}-dual", title=f"dual of {lattice.title}")
        echo(made.source)
        return
    chosen = [load_lattice(each) for each in ([name] if name else lattice_names())]
    if plot is not None:
        from percolab.figures.lattice import plot_lattice

        target = output_file(plot or None, f"{chosen[0].name}.png")
        write_figure(plot_lattice(chosen[0]), target, quiet=as_json)
    if as_json:
        echo_json([_record(lattice) for lattice in chosen])
    elif name:
        _describe(chosen[0])
    else:
        _list(chosen)


def _list(lattices: list[Lattice]) -> None:
    """Write a line a lattice, and below the sources in full."""
    echo(_ROW.format("name", "dim", "z", "p_c (bond)", "p_c (site)", "sources"))
    for lattice in lattices:
        known = [lattice.threshold(model) for model in _MODELS]
        values = [_shown(each, decimals=10) if each else "-" for each in known]
        sources = "; ".join(dict.fromkeys(each.cite or each.reference for each in known if each))
        z = f"{lattice.coordination_number:.4g}"
        echo(_ROW.format(lattice.name, lattice.dimension, z, *values, sources))
    exact = "1/(z - 1)"
    echo(_ROW.format("bethe:z", "-", "z", exact, exact, "Bethe lattice; z = 3 if left out"))
    echo(_ROW.format("er:k=K", "-", "K", "1/K", "1/K", "random graphs (Erdos and Renyi)"))
    references = {each.cite: each.reference for lattice in lattices for each in lattice.thresholds}
    echo("\nsources")
    for cite, reference in sorted(references.items()):
        echo(f"  {cite}: {reference}")


def _describe(lattice: Lattice) -> None:
    sites = math.prod(lattice.cell) - len(lattice.vacant)
    unit = math.prod(lattice.shape(1)) * sites / math.prod(lattice.cell)
    echo(lattice.name if lattice.title == lattice.name else f"{lattice.name}: {lattice.title}")
    echo(f"dimension            {lattice.dimension}")
    echo(f"coordination number  {lattice.coordination_number:.6g}")
    echo(f"sites                {unit:g} L^{lattice.dimension}")
    for threshold in lattice.thresholds:
        exact = f" = {threshold.expression}" if threshold.expression else ""
        echo(f"p_c ({threshold.model})           {_shown(threshold)}{exact}")
        echo(f"{'':21}{threshold.reference}")
    echo(f"cell                 {list(lattice.cell)} grid points, {sites} sites")
    if lattice.vacant:
        echo(f"vacant points        {_points(lattice.vacant)}")
    echo("bonds                offset from owner to neighbour, name, and the owners in the cell")
    for bond in lattice.bonds:
        owners = "all" if len(bond.at) == sites else _points(bond.at)
        offset = f"{list(bond.offset)!s:<{4 * lattice.dimension + 2}}"
        echo(f"{'':21}{offset} {bond.name or '-':<3} {owners}")


def _points(points: frozenset[tuple[int, ...]]) -> str:
    return " ".join(str(list(point)) for point in sorted(points, key=lambda point: point[::-1]))


def _shown(threshold: Threshold, *, decimals: int = 16) -> str:
    """Return a value with its error in parentheses, as in 0.24881185(10), where decimals allow."""
    if threshold.error >= 10.0**-decimals:
        written = len(repr(threshold.value).partition(".")[2])
        places = max(written, math.ceil(-math.log10(threshold.error) - 1e-9))
        if places <= decimals:
            return f"{threshold.value:.{places}f}({threshold.error * 10**places:.0f})"
    return f"{threshold.value:.{decimals}f}".rstrip("0").rstrip(".")


def _record(lattice: Lattice) -> dict[str, Any]:
    names = ("name", "title", "dimension", "coordination_number", "digest")
    return {
        **{name: getattr(lattice, name) for name in names},
        "cell": list(lattice.cell),
        "vacant": list(map(list, sorted(lattice.vacant))),
        "bonds": [
            {"offset": list(bond.offset), "name": bond.name, "at": list(map(list, sorted(bond.at)))}
            for bond in lattice.bonds
        ],
        "thresholds": [vars(threshold) for threshold in lattice.thresholds],
    }
