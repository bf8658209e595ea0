"""percolab threshold: p_c of a lattice to the requested precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.options import (
    as_json,
    echo_json,
    exit_if_interrupted,
    published_lines,
    refuse,
)
from percolab.cli.progress import ProgressWatcher, root_text
from percolab.cli.setting_options import given_settings, setting_option
from percolab.cli.terminal import echo
from percolab.errors import InputError
from percolab.store.results import ResultsWriter
from percolab.tasks.setting_groups import HOW_MUCH, OUTPUT, WHAT

if TYPE_CHECKING:
    from percolab.analysis.quantity_fits import QuantityAnalysis
    from percolab.analysis.roots import RootFit
    from percolab.analysis.value import Value
    from percolab.store.results import StoredResults

#: The results file, where none is named.
_OUT = "threshold.h5"
#: Options that it shares with ``percolab sweep``.
SHARED = ("model", "L", "seed", "rng", "device", "workers", "executor", "labeler")
#: Options that only given weights have, beside the two of their own.
_OF_WEIGHTS = ("boundary", "graph", "source", "target", "multi", "columns")


def _shared_options(function: Any) -> Any:
    for name in reversed((*SHARED, *_OF_WEIGHTS)):
        function = setting_option(name)(function)
    return function


@click.command(cls=GroupedCommand)
@click.argument("lattice", required=False, metavar="[LATTICE]")
@grouped(HOW_MUCH, "--error", type=float, metavar="E", help="The whole error of p_c to reach.")
@grouped(HOW_MUCH, "--time", metavar="T", help="Sample so long: 60s, 5m, 2h.")
@_shared_options
@grouped(
    WHAT,
    "--weights",
    help="Find the levels at which given values percolate: an array of sites (..., y, x) or bonds "
    "(classes, ..., y, x) in .npy, file.h5:/dataset or a grey image; or file, those in the graph's "
    "file.",
)
@grouped(WHAT, "--above", is_flag=True, help="With --weights: large values open first.")
@grouped(
    OUTPUT,
    "--out",
    type=click.Path(),
    help="Results file; an existing one of the same study is continued.  With --weights the paths, "
    f".csv.  [default: {_OUT}; no paths]",
)
@as_json
@quiet_option()
def command(
    lattice: str | None,
    error: float | None,
    time: str | None,
    weights: str | None,
    above: bool,
    out: str | None,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Find the threshold p_c of a lattice, to the requested precision.

    LATTICE is a name (percolab lattices) or a .toml file.  Give --error, which the statistical and
    the systematic part together shall not exceed, or --time; without both the error is 1e-4.

    In two dimensions, on a torus of any size, p_c is where a cluster wraps in two independent
    directions as often as none wraps at all: two sizes are sampled at one p near it.  The
    transition of spins (--model ising, potts:q=3) on planar lattices is found likewise.  In three
    dimensions and more p_c comes from one fit of the wrapping probabilities of several sizes.
    Sizes, p and samples are chosen (docs/thresholds.md).  The file is a results file like any
    other; the same command with a smaller error continues it.

    With --weights it is the lowest level at which given values percolate, along every axis and in
    one, two, three directions, with the path (docs/fields.md): an energy landscape, heights, pore
    sizes, or the weights of a network.
    """
    if weights is not None:
        from percolab.cli.threshold_given import write_levels

        given |= {"error": error, "time": time}
        write_levels(weights, lattice, given, above=above, out=out, as_json=as_json)
        return
    refuse(
        given | {"above": above}, "only given weights (--weights) have it", "above", *_OF_WEIGHTS
    )
    if lattice is None:
        raise InputError("name a LATTICE (percolab lattices), or give --weights")
    out = out or _OUT
    from percolab.analysis.roots import fit_roots, why_no_roots
    from percolab.run.request import make_options
    from percolab.run.search_steps import Goal
    from percolab.run.threshold import find_threshold, request_threshold

    goal = Goal.of(error, time)
    request = request_threshold(lattice, goal, out=out, **given_settings(given))
    watcher = ProgressWatcher(silent=quiet, estimate=root_text)
    options = make_options(request, watcher=watcher)
    with ResultsWriter(request.out) as options["writer"], exit_if_interrupted(out):
        results = find_threshold(request.study, goal, **options)
    if why_no_roots(results.study):
        _write_scaling(results, Path(out), as_json=as_json)
        return
    fit = fit_roots(results)
    if as_json:
        echo_json(threshold_record(results, fit))
        return
    for line in threshold_lines(results, fit, Path(out)):
        echo(line)


def _write_scaling(results: StoredResults, out: Path, *, as_json: bool) -> None:
    """Write p_c from the wrapping probabilities of several sizes, where there are no roots."""
    from percolab.analysis.wrapping_fit import fit_wrapping

    study, fit = results.study, fit_wrapping(results)
    if as_json:
        own = {"lattice": study.structure.name, "model": study.model}
        echo_json(own | fit.to_dict())
        return
    for line in scaling_lines(results, fit, out):
        echo(line)


def scaling_lines(results: StoredResults, fit: QuantityAnalysis, out: Path) -> list[str]:
    """Return the answer in a few lines: p_c, how it was found, and what would make it better."""
    study, value = results.study, fit.p_c
    if fit.problem is not None:
        return [fit.problem, *(f"note: {note}" for note in fit.notes)]
    sizes = ", ".join(map(str, fit.sizes))
    lines = [
        f"{study.structure.title}, {study.model}: p_c = {value}"
        f"  (statistical {value.statistical_error:.1e}, systematic {value.systematic_error:.1e})",
        f"P(wrapping around any axis, one, all) on tori of L = {sizes} in one fit; {value.quality}",
        f"{_advice(value)}; samples in {out}",
        *(f"note: {note}" for note in fit.notes),
    ]
    return [*lines, *published_lines(results, value.value, value.error)]


def threshold_record(results: StoredResults, fit: RootFit) -> dict[str, Any]:
    """Return the answer as plain JSON values."""
    from percolab.analysis.root_text import root_record

    return root_record(results.study, fit)


def threshold_lines(results: StoredResults, fit: RootFit, out: Path) -> list[str]:
    """Return the answer in a few lines: p_c, how it was found, and what would make it better."""
    from percolab.analysis.root_text import coupling_rows, difference_text, known_threshold
    from percolab.analysis.value import published_text

    study, value = results.study, fit.threshold
    if fit.problem is not None:
        return [fit.problem, *fit.notes]
    roots = ", ".join(f"{root.value} at L = {root.size}" for root in fit.roots)
    couplings = coupling_rows(value, study.model)
    lines = [
        f"{study.structure.title}, {study.model}: p_c = {value}"
        f"  (statistical {value.statistical_error:.1e}, systematic {value.systematic_error:.1e})",
        *([", ".join(f"{name} = {text}" for name, text, _ in couplings)] if couplings else []),
        f"roots of {difference_text(study.model)} on tori: {roots}; "
        + (f"{value.quality}" if value.quality.dof else "one size, so no test of its drift"),
        f"{_advice(value)}; samples in {out}",
        *(f"note: {note}" for note in fit.notes),
    ]
    known = known_threshold(study.structure, study.model)
    if known is not None:
        lines.append(published_text(known, value))
    return lines


def _advice(value: Value) -> str:
    """Return what would make the error of p_c half as large."""
    half = value.error / 2
    if value.systematic_error > half:
        return f"half the error (--error {half:.1e}) takes larger sizes, which it chooses"
    more = value.statistical_error**2 / (half**2 - value.systematic_error**2)
    return f"half the error (--error {half:.1e}) takes {more:.1f} times the samples"
