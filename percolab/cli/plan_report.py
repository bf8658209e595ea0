"""`percolab sweep --plan`: what a sweep will take, as a table or JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from percolab.cli.options import counted, described, echo_json
from percolab.cli.terminal import echo
from percolab.run.request import SweepOptions
from percolab.store.results import ResultsWriter
from percolab.tasks.study_file import SweepRequest

if TYPE_CHECKING:
    from percolab.run.plan import Plan

_HEADINGS = ("L", "p", "samples", "held", "samples/s", "time", "memory", "file")


def echo_plan(request: SweepRequest, options: SweepOptions, *, as_json: bool) -> None:
    """Write to stdout what a request would take; InputError as the sweep itself."""
    from percolab.run.plan import plan_study

    options["writer"] = ResultsWriter(request.out)
    plan = plan_study(request.study, request.rule, **options)
    title = described(request.study)
    if as_json:
        echo_json({"study": title, "results": str(request.out)} | asdict(plan))
        return
    echo(f"{title}; would go to {request.out}")
    echo("\n".join(plan_lines(plan)))


def plan_lines(plan: Plan) -> list[str]:
    """Return a plan as lines of text: a row a size, then totals and notes."""
    rows = [
        (
            str(size.L),
            str(size.points) if size.points else "all",
            str(size.samples),
            str(size.held),
            "-" if size.rate is None else f"{size.rate:.4g}",
            _time(size.seconds),
            _bytes(size.host_bytes)
            + (f" + {_bytes(size.device_bytes)} GPU" if size.device_bytes else ""),
            _bytes(size.file_bytes),
        )
        for size in plan.sizes
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows)]
    table = ((text.rjust(n) for text, n in zip(row, widths)) for row in (_HEADINGS, *rows))
    return [*map("  ".join, table), *_totals(plan), *(f"note: {note}" for note in plan.notes)]


def _totals(plan: Plan) -> list[str]:
    from percolab.run.plan import FACTOR

    workers = counted(plan.workers, "worker")
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
