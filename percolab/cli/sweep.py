"""percolab sweep: sample a study, store it, and print its threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli import options as shared
from percolab.cli.answers import find_answers
from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.progress import ProgressBar
from percolab.cli.setting_options import given_settings, setting_options
from percolab.cli.terminal import echo
from percolab.errors import AnalysisError, InputError
from percolab.kernels.registry import load
from percolab.run.runner import prepare_study, run_study
from percolab.store.results import ResultsWriter, StoredResults
from percolab.tasks.part import WHOLE
from percolab.tasks.setting_groups import OUTPUT
from percolab.tasks.settings import MPI
from percolab.tasks.study_file import SweepRequest, make_request, read_request
from percolab.tasks.study_library import find_study

if TYPE_CHECKING:
    from percolab.run.plan import Plan

#: Columns of a plan.
_HEADINGS = ("L", "p", "samples", "stored", "samples/s", "time", "memory", "file")


@click.command(cls=GroupedCommand)
@click.argument(
    "study",
    required=False,
    type=click.Path(),
    metavar="[STUDY]",
    shell_complete=shared.complete_study,
)
@setting_options
@grouped(
    OUTPUT, "--plan", is_flag=True, help="Predict time, memory, file and error; sample nothing."
)
@grouped(
    OUTPUT, "--prepare", is_flag=True, help="Choose p and write the file from which parts start."
)
@grouped(OUTPUT, "--json", "as_json", is_flag=True, help="With --plan: write JSON to stdout.")
@quiet_option()
def command(study: str | None, **given: Any) -> None:
    """Sample spanning clusters at several p and L, and estimate the threshold p_c.

    Give sizes and p by options or in a STUDY: a .toml file, or a name that percolab studies lists.
    Sizes have defaults, and a pilot chooses p.  The same command again continues the sweep: it adds
    what is missing, or nothing.

    --method threshold finds the exact p at which each sample begins to span, which gives R_L(p) at
    all p; --method grid measures every observable at the given p.

    With --model site, p is the probability that a site is occupied, and a bond is open if both its
    sites are; with site-bond, bonds are open at random, too.  Clusters consist of occupied sites.

    --plan measures a few samples of every size and predicts the error of p_c and what the sweep
    will need, within a factor of 1.5; it reads the results file and does not write it.

    --part 3/16 samples one of 16 parts of a study, in its own file; percolab merge joins them.
    Where a pilot has to choose p, run --prepare once, and start each part from a copy of the file
    that it writes (docs/clusters.md).

    A --graph has one size.  Its threshold is where its second largest cluster and the mean size of
    the others are largest; with --source and --target, also where these become connected.
    """  # fmt: skip
    if given["executor"] != MPI:
        _sweep(study, given)
        return
    from percolab.run.mpi import mpi_executor, mpi_ranks, mpi_workers

    # An executor on rank 0; None on the others, after their work.
    opened = mpi_ranks if given["split"] else mpi_workers if given["plan"] else mpi_executor
    with opened() as executor:
        if executor is not None:
            _sweep(study, given | {"executor": executor})


def _sweep(study: str | None, given: Mapping[str, Any]) -> None:
    plan, prepare, as_json = given["plan"], given["prepare"], given["as_json"]
    overrides = given_settings(given)
    if study is None:
        request = make_request(**overrides)
    else:
        request = read_request(find_study(study), overrides)
    ways = {**request.options, "observer": ProgressBar(silent=given["quiet"] or plan)}
    if as_json and not plan:
        raise InputError("--json: only with --plan; for results use percolab fit --json")
    for name, is_given in (("plan", plan), ("prepare", prepare)):
        if is_given and ways["part"] != WHOLE:
            raise InputError(f"--{name}: only for the whole study; leave out --part")
    if plan and prepare:
        raise InputError("--plan and --prepare exclude each other: give one of them")
    if plan:
        _write_plan(request, ways, as_json=as_json)
        return
    with ResultsWriter(request.out) as ways["writer"]:
        if prepare:
            prepared = prepare_study(request.study, request.rule, **ways)
            tasks = shared.counted(len(prepared.tasks), "task")
            echo(f"{shared.described(prepared.study)}: {tasks} prepared in {request.out}")
            return
        with shared.exit_if_interrupted(request.out):
            results = run_study(request.study, request.rule, **ways)
    _write_end(results, request.out, request.rule.target_error)


def write_transition(results: StoredResults, target_error: float | None) -> None:
    from percolab.analysis.spin_fit import fit_spins
    from percolab.analysis.text import transition_lines

    try:
        lines = transition_lines(fit_spins(results))
    except (AnalysisError, InputError) as error:
        lines = [f"no transition: {error}"]
    for line in lines:
        echo(line)


def _write_end(results: StoredResults, out: Path, target_error: float | None) -> None:
    """Write what a study has come to, as far as its samples give it."""
    study = results.study
    answers = find_answers(study)
    if study.structure.is_scalable:
        sizes = ", ".join(map(str, results.sizes))
        echo(f"{study.structure.title}: L = {sizes}; results in {out}")
    else:
        echo(f"{shared.described(study)}; results in {out}")
        if answers.scales:
            echo(shared.estimates_answer(results)[1])
            return
    load(answers.end)(results, target_error)


def write_trees(results: StoredResults, target_error: float | None) -> None:
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees

    echo(tree_table(fit_trees(results)))


def write_threshold(results: StoredResults, target_error: float | None) -> None:
    """Write p_c with its error, and whether more samples can bring it to a target."""
    from percolab.analysis.stored_data import default_observable
    from percolab.analysis.stored_fits import fit_results
    from percolab.analysis.text import format_with_error
    from percolab.run.targets import why_unmet

    try:
        fit = fit_results(results)
    except (AnalysisError, InputError) as error:
        echo(f"no threshold: {error}")
        return
    if fit.problem is not None:
        echo(fit.problem)
        for note in fit.notes:
            echo(f"note: {note}")
        return
    quality = fit.chi_square
    tested = f"chi2/dof {quality.value:.1f}/{quality.dof}" if quality.dof else "no chi2: 0 dof"
    echo(
        f"p_c = {format_with_error(fit.threshold, fit.threshold_error)}"
        f"  (statistical {fit.statistical_error:.1e}, systematic {fit.systematic_error:.1e}, "
        f"{tested}, from {default_observable(results)})"
    )
    if target_error is not None and fit.threshold_error > target_error:
        unmet = why_unmet(results, target_error)
        if unmet is not None:
            echo(unmet)
    for note in fit.notes:
        echo(f"note: {note}")


# What a sweep will take


def _write_plan(request: SweepRequest, ways: Mapping[str, Any], *, as_json: bool) -> None:
    """Write to stdout what a request would take; InputError as the sweep itself."""
    from percolab.run.plan import plan_study

    plan = plan_study(request.study, request.rule, **ways, writer=ResultsWriter(request.out))
    title = shared.described(request.study)
    if as_json:
        shared.echo_json({"study": title, "results": str(request.out)} | asdict(plan))
        return
    echo(f"{title}; would go to {request.out}")
    echo("\n".join(_describe_plan(plan)))


def _describe_plan(plan: Plan) -> list[str]:
    """Return a plan as lines of text: a row a size, then totals and notes."""
    rows = []
    for size in plan.sizes:
        rate = "-" if size.rate is None else f"{size.rate:.4g}"
        gpu = f" + {_bytes(size.device_bytes)} GPU" if size.device_bytes else ""
        memory = _bytes(size.host_bytes) + gpu
        numbers = map(str, (size.L, size.points or "all", size.samples, size.stored))
        rows.append((*numbers, rate, _time(size.seconds), memory, _bytes(size.file_bytes)))
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows)]
    table = ((text.rjust(n) for text, n in zip(row, widths)) for row in (_HEADINGS, *rows))
    return [*map("  ".join, table), *_totals(plan), *(f"note: {note}" for note in plan.notes)]


def _totals(plan: Plan) -> list[str]:
    from percolab.run.plan import FACTOR

    workers = shared.counted(plan.workers, "worker")
    lines = [
        f"time    {_time(plan.seconds)} within a factor of {FACTOR}, on {plan.device} with "
        f"{workers}, labeler {plan.labeler} (of it {_time(plan.start_seconds)} to start, "
        f"{_time(plan.placing_seconds)} to find p, {_time(plan.analysis_seconds)} to fit)",
        f"memory  at most {_bytes(plan.host_bytes)}, "
        f"of it {_bytes(plan.base_bytes)} Python and libraries"
        + (f"; {_bytes(plan.device_bytes)} on {plan.device}" if plan.device_bytes else ""),
        f"file    {_bytes(plan.file_bytes)}",
    ]
    if plan.rounds > 1:
        # What is there already has been judged; what is to come will be, by its own samples.
        about = ", or one more or less, as the samples of the sweep decide" if plan.seconds else ""
        lines.append(f"rounds  {plan.rounds}{about}")
    if plan.threshold_error is not None:
        lines.append(f"error   sigma(p_c) = {plan.threshold_error:.1e}")
    return lines


def _time(seconds: float) -> str:
    """Return a time in the largest unit that leaves two digits.

    >>> _time(0.21), _time(45.3), _time(400), _time(9000)
    ('0.2 s', '45 s', '6.7 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _bytes(count: float) -> str:
    """Return a number of bytes in decimal units.

    >>> _bytes(999), _bytes(45_300), _bytes(1_230_000_000)
    ('999 B', '45.3 kB', '1.23 GB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
