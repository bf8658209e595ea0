"""One table for everything that is timed: the same columns, whatever the stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from percolab.benchmark.calls import CallTime
from percolab.benchmark.peers import PeerTime
from percolab.benchmark.records import StageTime, compared
from percolab.benchmark.spin_times import SweepTime

Record = StageTime | PeerTime | SweepTime | CallTime

_FORM = "{:<11}{:>13} {:>8}  {:<12}{:<20}{:>8}{:>11}{:>10}{:>8}{:>8}{:>8} {:<13} {}"
HEADER = _FORM.format(
    *("lattice", "L", "p", "program", "stage", "samples", "ms", "ps/site", "B/site"),
    *("of copy", "ratio", "to", "note"),
).rstrip()


def format_row(record: Record, records: Sequence[Record], copy_bandwidth: float) -> str:
    """Return a record as a line of the table; records: with which a stage may be compared."""
    call = record if isinstance(record, CallTime) else _to_call(record, records)
    is_cube = len(set(call.shape)) == 1
    seconds, moved = call.seconds_per_sample, call.bytes_moved_per_sample
    picoseconds = 1e12 * seconds / call.num_sites
    bytes_a_site = copy = ""
    if moved is not None:
        bytes_a_site = f"{moved / call.num_sites:.3g}"
        copy = f"{moved / seconds / copy_bandwidth:.2%}" if seconds else ""
    return _FORM.format(
        call.lattice,
        str(call.shape[0]) if is_cube else "x".join(map(str, call.shape)),
        "-" if call.p is None else f"{call.p:.5f}",
        call.program,
        f"{call.stage}:{call.part}" if call.part else call.stage,
        call.samples,
        f"{1e3 * seconds:.4g}",
        f"{picoseconds:.{0 if picoseconds >= 1e3 else 3}f}",
        bytes_a_site,
        copy,
        "" if call.ratio is None else f"{call.ratio:.3g}",
        call.compared_with,
        call.note,
    ).rstrip()


def _to_call(record: StageTime | PeerTime | SweepTime, records: Sequence[Record]) -> CallTime:
    """Return what the table shows of a record."""
    row: dict[str, Any] = {"lattice": record.lattice, "shape": (record.L,), "p": record.p}
    row |= {"num_sites": record.num_sites, "device": ""}
    if isinstance(record, SweepTime):
        row |= {"program": record.labeler, "stage": f"{record.model}:{record.update}"}
        seconds = record.seconds_per_sweep / record.chains
        return CallTime(**row, samples=record.chains, seconds_per_sample=seconds)
    row["seconds_per_sample"] = record.seconds_per_sample
    if isinstance(record, PeerTime):
        return CallTime(**row, program=record.peer, stage=record.part)
    found = compared(record, [r for r in records if isinstance(r, StageTime | PeerTime)], 1.0)
    scipy, one_p = found["scipy_over_this"], found["over_one_p"]
    ratio, name = (one_p, "one p") if one_p else (1 / scipy, "scipy") if scipy else (None, "")
    return CallTime(
        **row,
        program=record.labeler,
        stage=record.stage,
        samples=record.samples_per_run,
        bytes_moved_per_sample=record.bytes_moved_per_sample,
        ratio=ratio,
        compared_with=name,
    )
