"""percolab threshold: p_c of a lattice to the requested precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli import options as shared
from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.progress import ProgressBar, root_text
from percolab.cli.setting_options import given_settings, settings_named
from percolab.errors import InputError
from percolab.lattices.shown import Table, counted
from percolab.store.results import ResultsWriter, StoredResults
from percolab.tasks.setting_groups import HOW_MUCH, OUTPUT, WHAT

if TYPE_CHECKING:
    from percolab.analysis.value import Value
    from percolab.trees.levels import Levels

#: The results file, where none is named.
_OUT = "threshold.h5"
#: Options that it shares with ``percolab sweep``.
SHARED = ("model", "L", "seed", "rng", "device", "workers", "executor", "labeler")
#: Options that only given weights have, in addition to the two of their own.
_OF_WEIGHTS = ("boundary", "graph", "source", "target", "multi", "columns")
_OF_SAMPLES = (
    "model", "L", "seed", "rng", "workers", "executor", "labeler", "error", "time", "universal",
)  # fmt: skip


@click.command(cls=GroupedCommand)
@click.argument("lattice", required=False, metavar="[LATTICE]")
@grouped(HOW_MUCH, "--error", type=float, metavar="E", help="Total error of p_c to reach.")
@grouped(HOW_MUCH, "--time", metavar="T", help="Sample for this time: 60s, 5m, 2h.")
@grouped(
    HOW_MUCH,
    "--universal",
    type=click.Choice(["known", "free"]),
    help="known: in three dimensions the fit takes the published wrapping probabilities of a cubic "
    "torus at p_c as priors, which makes the error smaller.  [default: free]",
)
@settings_named(
    *SHARED,
    *_OF_WEIGHTS,
    L={
        "help": "Linear sizes: 64,128,256, or from:to:count in equal ratios: 64:512:4.",
        "shown_default": "chosen",
    },
    source={"help": "Sites of the graph: 0,5,17, or their names, or a file with one per line."},
    target={"help": "Sites that a path from the source has to reach, like --source."},
    boundary={"shown_default": "open with --weights; otherwise all axes are periodic"},
)
@grouped(
    WHAT,
    "--weights",
    help="Find the levels at which these values percolate: an array of sites (..., y, x) or bonds "
    "(classes, ..., y, x) in .npy, file.h5:/dataset or a grey image; or the word file: weights in "
    "the graph's file.",
)
@grouped(WHAT, "--above", is_flag=True, help="With --weights: large values open first.")
@grouped(
    OUTPUT,
    "-o",
    "--out",
    type=click.Path(),
    help="Results file; an existing one of the same study is continued.  With --weights: a .csv "
    f"file of the paths.  [default: {_OUT}; no paths]",
)
@shared.as_json
@quiet_option()
def command(lattice: str | None, as_json: bool, quiet: bool, **given: Any) -> None:
    """Find the threshold p_c of a lattice, to the requested precision.

    LATTICE is a name (percolab lattices) or a .toml file.  Give --time, or --error, the target for
    the statistical and systematic errors together (1e-4 by default).

    In two dimensions p_c is where, on a torus, a cluster wraps in two independent directions as
    often as no cluster wraps: two sizes are sampled at one p near it.  The transition of spins
    (--model ising, potts:q=3) on planar lattices is found likewise.  In three dimensions and more
    p_c comes from one fit of the wrapping probabilities of several sizes.  percolab chooses sizes,
    p and samples (docs/thresholds.md).  The file is an ordinary results file; the same command with
    a smaller error continues it.

    With --weights, find instead the lowest level at which given values percolate, along every axis
    and in one, two, three directions, with the path (docs/fields.md): an energy landscape, heights,
    pore sizes, or the weights of a network; on the CPU, or with --device cuda on a GPU.  Only
    --weights allows --boundary, --graph, --source, --target, --multi and --columns.
    """
    if given["weights"] is not None:
        shared.write_answer(*_find_levels(lattice, given), as_json=as_json)
        return
    from percolab.run.threshold import find_threshold, refuse_graph, request_threshold

    if given["graph"] is not None:
        refuse_graph(given["graph"])
    shared.refuse(given, "only given weights (--weights) have it", "above", *_OF_WEIGHTS)
    if lattice is None:
        raise InputError("name a LATTICE (percolab lattices), or give --weights")
    from percolab.run.search_steps import Goal

    goal = Goal.of(given["error"], given["time"], given["universal"] or "free")
    out = given["out"] = given["out"] or _OUT
    request = request_threshold(lattice, goal, **given_settings(given))
    observer = ProgressBar(silent=quiet, estimate=root_text)
    with ResultsWriter(request.out) as writer, shared.exit_if_interrupted(out):
        ways = {**request.options, "writer": writer, "observer": observer}
        results = find_threshold(request.study, goal, **ways)
    shared.write_answer(*_answer(results, Path(out), goal.error), as_json=as_json)


def _answer(results: StoredResults, out: Path, error: float | None) -> tuple[dict[str, Any], str]:
    """Return the answer for JSON, and in a few lines: p_c, how it was found, what would help."""
    from percolab.analysis import roots as of_plane

    study = results.study
    if of_plane.why_no_roots(study):
        from percolab.analysis.wrapping_fit import fit_wrapping

        fit: Any = fit_wrapping(results)
    else:
        fit = of_plane.fit_roots(results)
    value = fit.p_c
    notes = [f"note: {note}" for note in fit.notes]
    if fit.problem is not None:
        return of_plane.threshold_record(study, fit), "\n".join([fit.problem, *notes])
    if error is not None and value.error > error:
        reason = "these sizes give a larger one; larger sizes are not given or do not fit in memory"
        notes.insert(0, f"note: --error {error:g} is not reached: {reason}")
    if of_plane.why_no_roots(study):
        sizes = ", ".join(map(str, fit.sizes))
        way = f"P(wrapping around any axis, one, all) on tori of L = {sizes} in one fit"
        quality = f"{value.quality}"
    else:
        roots = ", ".join(f"{root.value} at L = {root.size}" for root in fit.roots)
        way = f"roots of {of_plane.difference_text(study.model)} on tori: {roots}"
        quality = f"{value.quality}" if value.quality.dof else "one size, its drift not tested"
    rows = of_plane.coupling_rows(value, study.model)
    couplings = ", ".join(f"{name} = {text}" for name, text, _ in rows)
    lines = [
        f"{study.structure.title}, {study.model}: p_c = {value}"
        f"  (statistical {value.statistical_error:.1e}, systematic {value.systematic_error:.1e})",
        *([couplings] if couplings else []),
        f"{way}; {quality}",
        f"{_advice(value)}; samples in {out}",
        *notes,
        *shared.published_lines(study, value.value, value.error),
    ]
    return of_plane.threshold_record(study, fit), "\n".join(lines)


def _advice(value: Value) -> str:
    half = value.error / 2
    # Near half the error samples alone would take many times as long as larger sizes do.
    if value.systematic_error > 0.8 * half:
        return f"half the error (--error {half:.1e}) takes larger sizes; without -L it chooses them"
    more = value.statistical_error**2 / (half**2 - value.systematic_error**2)
    return f"half the error (--error {half:.1e}) takes {more:.1f} times the samples"


# Levels of given weights


def _find_levels(lattice: str | None, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the levels of given values for JSON and as text; write their paths if requested.

    InputError: options that do not go together, values that cannot be used.
    """
    from percolab.configurations.levels import PATH_CSV, find_given_levels, path_csv
    from percolab.store.output_files import write_output

    shared.refuse(given, "given weights (--weights) have no samples", *_OF_SAMPLES)
    out = given.pop("out")
    if out is not None:
        shared.check_target(out, "paths", (".csv",), PATH_CSV)
    levels = find_given_levels(
        given["weights"], lattice, above=given["above"], **given_settings(given)
    )
    record, text = levels.to_dict(), _describe_levels(levels)
    if out is not None:
        write_output(Path(out), path_csv(levels).encode(), PATH_CSV)
        record, text = {"paths": out} | record, f"{text}\npaths in {out}"
    return record, text


def _describe_levels(levels: Levels) -> str:
    from percolab.trees.levels import level_text

    words = {"open": "spans", "periodic": "wraps around"}
    verbs = [words[kind] for kind in levels.boundary] or ["connects"]
    items = [(f"{verb} {axis}", levels.axes[axis]) for verb, axis in zip(verbs, levels.axes)]
    if levels.boundary:
        items += [(counted(n, "direction"), level) for n, level in levels.directions.items()]
    rows: list[tuple[Any, ...]] = []
    for name, level in items:
        if level is None:
            rows.append((name, "none", *[""] * 5))
            continue
        saddle = "-".join(str(levels.site_name(site)) for site in level.saddle)
        path = level.path
        steps = "", ""
        if path is not None:
            steps = str(path.sites.size - 1), ",".join(map(str, path.winding))
        numbers = level_text(level.level), level_text(level.barrier), f"{level.share:.5f}"
        rows.append((name, *numbers, saddle, *steps))
    headings = "", "level", "barrier", f"open {levels.of}", "saddle", "steps", "winding"
    first = f"{levels.of} of {levels.structure.name}"
    first += "" if levels.bottom is None else f"; the first open at {level_text(levels.bottom)}"
    first += f"; {levels.never_open} never open" if levels.never_open else ""
    return f"{first}\n{Table(headings, rows).to_text()}"
