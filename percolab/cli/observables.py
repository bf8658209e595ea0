"""percolab observables: what is measured, by which symbol, and in what unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from percolab.cli.groups import Command
from percolab.cli.options import as_json, echo_json
from percolab.cli.terminal import echo
from percolab.errors import InputError, nearest
from percolab.lattices.shown import Table

if TYPE_CHECKING:
    from percolab.measure.columns import Column

#: Boundaries whose observables are listed together when none is chosen.
_USUAL = (("open", "open"), ("periodic", "periodic"))


@click.command(cls=Command)
@click.option(
    "--boundary",
    help="open or periodic for both axes of the plane, one per axis: open,periodic,open, or "
    "terminals for a graph with source and target.  [default: both open and periodic]",
)
@as_json
def command(boundary: str | None, as_json: bool) -> None:
    """List the observables: name, symbol, unit, definition and source.

    Which ones a lattice has depends on its boundary: spanning needs an open axis.  Those of spin
    models, of each word of sweep --measure, of trees, and of installed packages follow.
    """
    from percolab.measure import columns
    from percolab.measure.functions import LabelFunction, list_plugins

    chosen = _USUAL if boundary is None else (_boundary(boundary),)
    usual = {each.name: each for kinds in chosen for each in columns.list_observables(kinds)}
    spins = {each.name: each for each in columns.list_observables(chosen[0], chains="spins")}
    only_spins = [each for name, each in spins.items() if name not in usual]
    only_spins += [each for each in columns.CHAIN_COLUMNS if not each.measure]
    extras = [*columns.EXTRA_COLUMNS, *(each for each in columns.CHAIN_COLUMNS if each.measure)]
    trees = {
        each.name: each for kinds in chosen for each in columns.list_columns(kinds, trees=True)
    }
    groups: dict[str, list[dict[str, str]]] = {"": [_record(each) for each in usual.values()]}
    groups["of spins (--model ising, potts:q=3), and all these:"] = [
        _record(each) | {"model": "spins"} for each in only_spins
    ]
    for word in dict.fromkeys(each.measure for each in extras):
        groups[f"with sweep --measure {word}, and all these:"] = [
            _record(each) | {"measure": word} for each in extras if each.measure == word
        ]
    groups["of minimum spanning trees (percolab tree), in place of these:"] = [
        _record(each) | {"method": "tree"} for each in trees.values()
    ]
    groups["of packages that are installed, with sweep --observable NAME:"] = [
        _record(LabelFunction(each.name, package=each.package).column) | {"package": each.package}
        for each in list_plugins()
    ]
    everything = [record for own in groups.values() for record in own]
    if as_json:
        echo_json(everything)
        return
    rows = [_cells(record) for record in everything]
    lines = iter(Table(("name", "symbol", "unit", "definition"), rows).lines())
    echo(next(lines))
    for words, own in groups.items():
        if words and own:
            echo(f"\n{words}")
        for _ in own:
            echo(next(lines))


def _cells(record: dict[str, str]) -> tuple[str, ...]:
    source = f"  [{record['source']}]" if record["source"] and "package" not in record else ""
    return record["name"], record["symbol"], record["unit"], record["definition"] + source


def _boundary(text: str) -> tuple[str, ...]:
    from percolab.lattices.graph import TERMINALS
    from percolab.lattices.lattice import AXIS_NAMES, BOUNDARIES

    kinds = tuple(part.strip() for part in text.split(","))
    known = (*BOUNDARIES, TERMINALS)
    for kind in kinds:
        if kind not in known:
            raise InputError(f"--boundary {text}: unknown {kind!r}; {nearest(kind, known)}")
    if TERMINALS in kinds and len(kinds) > 1:
        raise InputError(f"--boundary {text}: {TERMINALS} is for a graph, which has no axes")
    if len(kinds) > len(AXIS_NAMES):
        raise InputError(f"--boundary {text}: there are at most {len(AXIS_NAMES)} axes")
    return kinds * 2 if len(kinds) == 1 and TERMINALS not in kinds else kinds


def _record(column: Column) -> dict[str, str]:
    record = {name: getattr(column, name) for name in ("name", "symbol", "unit")}
    return record | {"definition": column.meaning, "source": column.source}
