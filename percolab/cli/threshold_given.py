"""percolab threshold --weights: the levels at which values of one's own percolate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from percolab.cli.options import input_files, refuse, write_answer
from percolab.cli.setting_options import given_settings
from percolab.lattices.shown import Table, counted

if TYPE_CHECKING:
    from percolab.trees.levels import Levels

_OF_SAMPLES = ("model", "L", "seed", "rng", "workers", "executor", "labeler", "error", "time")


def write_levels(
    weights: str,
    lattice: str | None,
    given: dict[str, Any],
    *,
    above: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """Find the levels of given values, write their paths to a file if requested, and print them.

    given: the other options of the command by name.  InputError: options that do not go together,
    values that cannot be used.
    """
    from percolab.configurations.levels import PATH_CSV, find_given_levels, path_csv
    from percolab.store.output_files import check_output, check_suffix, write_output

    refuse(given, "given weights (--weights) have no samples", *_OF_SAMPLES)
    if given["device"] in ("cpu", "auto"):
        given["device"] = None
    refuse(given, "levels of given weights (--weights) are found on the CPU", "device")
    if out is not None:
        check_suffix(out, (".csv",), "paths")
        check_output(out, PATH_CSV, input_files())
    found = find_given_levels(weights, lattice, above=above, **given_settings(given))
    record, text = found.to_dict(), levels_text(found)
    if out is not None:
        write_output(Path(out), path_csv(found).encode(), PATH_CSV)
        record, text = {"paths": out} | record, f"{text}\npaths in {out}"
    write_answer(record, text, as_json=as_json)


def levels_text(levels: Levels) -> str:
    """Return levels as a table: a row for every axis, and for every number of directions."""
    from percolab.trees.levels import level_text

    words = {"open": "spans", "periodic": "wraps around"}
    verbs = [words[kind] for kind in levels.boundary] or ["connects"]
    items = [(f"{verb} {axis}", levels.axes[axis]) for verb, axis in zip(verbs, levels.axes)]
    if levels.boundary:
        items += [(counted(n, "direction"), item) for n, item in levels.directions.items()]
    rows: list[tuple[Any, ...]] = []
    for name, item in items:
        if item is None:
            rows.append((name, "none", *[""] * 5))
            continue
        saddle = "-".join(str(levels.site_name(site)) for site in item.saddle)
        path = item.path
        steps = "", ""
        if path is not None:
            steps = str(path.sites.size - 1), ",".join(map(str, path.winding))
        numbers = level_text(item.level), level_text(item.barrier), f"{item.share:.5f}"
        rows.append((name, *numbers, saddle, *steps))
    headings = "", "level", "barrier", f"open {levels.of}", "saddle", "steps", "winding"
    first = f"{levels.of} of {levels.structure.name}"
    first += "" if levels.bottom is None else f"; the first open at {level_text(levels.bottom)}"
    first += f"; {levels.never_open} never open" if levels.never_open else ""
    return f"{first}\n{Table(headings, rows).to_text()}"
