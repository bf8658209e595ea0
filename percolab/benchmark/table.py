"""One table for everything that is timed: the same columns, whatever the stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Row:
    """What the table shows of a record; seconds are those of a sample."""

    lattice: str
    size: str
    p: float | None
    program: str
    stage: str
    samples: int
    seconds: float
    num_sites: int
    bytes_moved: int | None = None
    ratio: float | None = None
    compared_with: str = ""
    note: str = ""

    def text(self, copy_bandwidth: float) -> str:
        """Return the row as a line of the table."""
        picoseconds = 1e12 * self.seconds / self.num_sites
        bytes_a_site = copy = ""
        if self.bytes_moved is not None:
            bytes_a_site = f"{self.bytes_moved / self.num_sites:.3g}"
            copy = f"{self.bytes_moved / self.seconds / copy_bandwidth:.2%}" if self.seconds else ""
        return _FORM.format(
            self.lattice,
            self.size,
            "-" if self.p is None else f"{self.p:.5f}",
            self.program,
            self.stage,
            self.samples,
            f"{1e3 * self.seconds:.4g}",
            f"{picoseconds:.{0 if picoseconds >= 1e3 else 3}f}",
            bytes_a_site,
            copy,
            "" if self.ratio is None else f"{self.ratio:.3g}",
            self.compared_with,
            self.note,
        ).rstrip()


def make_row(record: Record, records: Sequence[Record]) -> Row:
    """Return the row of a record; records: with which a stage may be compared."""
    if isinstance(record, CallTime):
        return _make_call_row(record)
    where = (record.lattice, str(record.L), record.p)
    if isinstance(record, SweepTime):
        chain = record.seconds_per_sweep / record.chains
        stage = f"{record.model}:{record.update}"
        return Row(*where, record.labeler, stage, record.chains, chain, record.num_sites)
    if isinstance(record, PeerTime):
        return Row(*where, record.peer, record.part, 1, record.seconds_per_sample, record.num_sites)
    found = compared(record, [r for r in records if isinstance(r, StageTime | PeerTime)], 1.0)
    scipy, one_p = found["scipy_over_this"], found["over_one_p"]
    ratio, name = (one_p, "one p") if one_p else (1 / scipy, "scipy") if scipy else (None, "")
    return Row(
        *where,
        record.labeler,
        record.stage,
        record.samples_per_run,
        record.seconds_per_sample,
        record.num_sites,
        record.bytes_moved_per_sample,
        ratio,
        name,
    )


def _make_call_row(record: CallTime) -> Row:
    is_cube = len(set(record.shape)) == 1
    return Row(
        record.lattice,
        str(record.shape[0]) if is_cube else "x".join(map(str, record.shape)),
        record.p,
        record.program,
        f"{record.stage}:{record.part}",
        record.samples,
        record.seconds_per_sample,
        record.num_sites,
        record.bytes_moved_per_sample,
        record.ratio,
        record.compared_with,
        record.note,
    )
