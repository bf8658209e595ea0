"""percolab observables: what is measured, by which symbol, and in what unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from percolab.cli.options import as_json, echo_json
from percolab.cli.terminal import echo
from percolab.errors import InputError, nearest
from percolab.lattices.shown import Table

if TYPE_CHECKING:
    from percolab.measure.columns import Column

#: Boundaries whose observables are listed together when none is chosen.
_USUAL = (("open", "open"), ("periodic", "periodic"))


@click.command()
@click.option(
    "--boundary",
    help="open or periodic for both axes of the plane, one per axis as in open,periodic,open, or "
    "terminals for a graph with source and target.  [default: those of open and of periodic]",
)
@as_json
def command(boundary: str | None, as_json: bool) -> None:
    """List the observables: name, symbol, unit, definition and source.

    Which ones a lattice has depends on its boundary: what spans needs an open axis.  Below them is
    what models of spins have, what each word of sweep --measure adds, what trees have, and what
    packages that are installed declare.
    """
    from percolab.measure.columns import (
        CHAIN_COLUMNS,
        EXTRA_COLUMNS,
        list_columns,
        list_observables,
    )
    from percolab.measure.functions import LabelFunction
    from percolab.measure.packages import list_plugins

    chosen = _USUAL if boundary is None else (_boundary(boundary),)
    found = {item.name: item for kinds in chosen for item in list_observables(kinds)}
    records = [_record(item) for item in found.values()]
    with_spins = {item.name: item for item in list_observables(chosen[0], spins=True)}
    only_spins = [item for name, item in with_spins.items() if name not in found]
    always = [item for item in CHAIN_COLUMNS if not item.measure]
    spins = [_record(item) | {"model": "spins"} for item in (*only_spins, *always)]
    measured = (*EXTRA_COLUMNS, *(item for item in CHAIN_COLUMNS if item.measure))
    extras = [_record(item) | {"measure": item.measure} for item in measured]
    of_trees = {item.name: item for kinds in chosen for item in list_columns(kinds, trees=True)}
    trees = [_record(item) | {"method": "tree"} for item in of_trees.values()]
    of_packages = [
        _record(LabelFunction(item.name, package=item.package).column) | {"package": item.package}
        for item in list_plugins()
    ]
    everything = [*records, *spins, *extras, *trees, *of_packages]
    if as_json:
        echo_json(everything)
        return
    by_word = {
        word: [record for record in extras if record["measure"] == word]
        for word in dict.fromkeys(record["measure"] for record in extras)
    }
    groups = {
        "": records,
        "of spins (--model ising, potts:q=3), and all these:": spins,
        **{f"with sweep --measure {word}, and all these:": own for word, own in by_word.items()},
        "of minimum spanning trees (percolab tree), in place of these:": trees,
        "of packages that are installed, with sweep --observable NAME:": of_packages,
    }
    head = ("name", "symbol", "unit", "definition")
    rows = [_cells(record) for own in groups.values() for record in own]
    lines = iter(Table(head, rows).lines())
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
        raise InputError(f"--boundary {text}: {TERMINALS} are those of a graph, which has no axes")
    if len(kinds) > len(AXIS_NAMES):
        raise InputError(f"--boundary {text}: at most {len(AXIS_NAMES)} axes have a name")
    return kinds * 2 if len(kinds) == 1 and TERMINALS not in kinds else kinds


def _record(item: Column) -> dict[str, str]:
    return {
        "name": item.name,
        "symbol": item.symbol,
        "unit": item.unit,
        "definition": item.meaning,
        "source": item.source,
    }
