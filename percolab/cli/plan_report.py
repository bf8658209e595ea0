"""`percolab sweep --plan`: what a sweep will take, as a table or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from percolab.cli.options import counted, described, echo_json
from percolab.cli.terminal import echo
from percolab.run.request import SweepOptions
from percolab.store.results import ResultsWriter
from percolab.tasks.study_file import SweepRequest

if TYPE_CHECKING:
    from percolab.run.plan import Plan
    from percolab.run.split_plan import SplitPlan

_HEADINGS = ("L", "p", "samples", "held", "samples/s", "time", "memory", "file")


def echo_plan(request: SweepRequest, options: SweepOptions, *, as_json: bool) -> None:
    """Write to stdout what a request would take; InputError as the sweep itself."""
    from percolab.run.plan import plan_study

    options["writer"] = ResultsWriter(request.out)
    if request.split is not None:
        _echo_split_plan(request, options, as_json=as_json)
        return
    plan = plan_study(request.study, request.rule, **options)
    if as_json:
        title = described(request.study)
        echo_json({"study": title, "results": str(request.out)} | plan.to_dict())
        return
    echo(f"{described(request.study)}; would go to {request.out}")
    echo("\n".join(plan_lines(plan)))


def _echo_split_plan(request: SweepRequest, options: SweepOptions, *, as_json: bool) -> None:
    """Write to stdout what a request whose samples are split would take."""
    from percolab.run.split_plan import plan_split

    plan = plan_split(request.study, request.rule, **options)
    if as_json:
        title = described(request.study)
        echo_json({"study": title, "results": str(request.out)} | plan.to_dict())
        return
    echo(f"{described(request.study)}; would go to {request.out}")
    echo("\n".join(split_plan_lines(plan)))


def split_plan_lines(plan: SplitPlan) -> list[str]:
    """Return a plan of samples that are split as lines of text: a row a size, then notes."""
    rows = [
        (
            str(size.L),
            str(size.points),
            str(size.slabs),
            _time(size.row_seconds),
            _time(size.seconds),
            _bytes(size.rank_bytes),
            _bytes(size.message_bytes),
            _bytes(size.bound_bytes),
            _bytes(size.sample_bytes),
        )
        for size in plan.sizes
    ]
    pieces = "boxes" if plan.blocks else "slabs"
    headings = ("L", "p", pieces, "a row", "time", "memory", "message", "bound", "all of a row")
    ranks, stages = counted(plan.ranks, "rank"), counted(plan.stages, "stage")
    joined = f"{plan.blocks} boxes merged by {plan.merge}" if plan.blocks else "joined"
    return [
        f"{ranks} on {plan.device}, {joined} in {stages}; memory is a rank's",
        *_table(headings, rows),
        *_totals(plan),
        *(f"note: {note}" for note in plan.notes),
    ]


def plan_lines(plan: Plan) -> list[str]:
    """Return a plan as lines of text: a row a size, then totals and notes."""
    rows = [
        (
            str(size.L),
            str(size.points) if size.points else "all",
            str(size.samples),
            str(size.held),
            f"{size.rate:.4g}",
            _time(size.seconds),
            _bytes(size.host_bytes),
            _bytes(size.file_bytes),
        )
        for size in plan.sizes
    ]
    return [*_table(_HEADINGS, rows), *_totals(plan), *(f"note: {note}" for note in plan.notes)]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines of text in columns."""
    widths = [max(map(len, column)) for column in zip(headings, *rows)]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths))
        for row in (headings, *rows)
    ]


def _totals(plan: Plan) -> list[str]:
    threads = counted(plan.workers, "worker")
    lines = [
        f"time    {_time(plan.seconds)} on {plan.device} with {threads}, labeler {plan.labeler}"
        f" (of it {_time(plan.placing_seconds)} to find p, {_time(plan.analysis_seconds)} to fit)",
        f"memory  at most {_bytes(plan.host_bytes)}, "
        f"of it {_bytes(plan.base_bytes)} Python and libraries"
        + (f"; {_bytes(plan.device_bytes)} on {plan.device}" if plan.device_bytes else ""),
        f"file    {_bytes(plan.file_bytes)}"
        + (f"; {_bytes(plan.checkpoint_bytes)} of checkpoints" if plan.checkpoint_bytes else ""),
    ]
    if plan.rounds > 1:
        # What is held already has been judged; what is to come will be, by its own samples.
        about = ", or one more or less: the sweep judges its own samples" if plan.seconds else ""
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
