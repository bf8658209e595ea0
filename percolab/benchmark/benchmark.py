"""A whole benchmark: what to time, in which order, and the records as a document and a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import percolab.benchmark.further_times as further
from percolab.benchmark.calls import Setting
from percolab.benchmark.records import (
    CallTime,
    PeerTime,
    StageTime,
    compared,
    site_image_time,
    time_lattice,
)
from percolab.benchmark.spin_times import SweepTime
from percolab.benchmark.study_times import time_splits, time_studies
from percolab.benchmark.timer import Timer
from percolab.errors import InputError
from percolab.labelers import labeler_class
from percolab.store.provenance import package_versions

Record = StageTime | PeerTime | SweepTime | CallTime

_FORM = "{:<11}{:>13} {:>8}  {:<12}{:<20}{:>8}{:>11}{:>10}{:>8}{:>8}{:>8} {:<13} {}"
HEADER = _FORM.format(
    *("lattice", "L", "p", "program", "stage", "samples", "ms", "ps/site", "B/site"),
    *("of copy", "ratio", "to", "note"),
).rstrip()

#: What is timed in addition to STAGES, by the name of its stage.
FURTHER_STAGES: dict[str, Callable[[Setting], Iterator[CallTime]]] = {
    "grid": further.time_grids,
    "threshold": further.time_thresholds,
    "graph": further.time_graphs,
    "kernels": further.time_row_kernels,
    "slabs": further.time_slabs,
    "split": time_splits,
    "study": time_studies,
    "trees": further.time_trees,
}


def check_stage(stage: str, setting: Setting) -> None:
    """Raise InputError if one of FURTHER_STAGES cannot be timed with this setting."""
    if stage == "kernels" and setting.kind != "cuda":
        raise InputError("--stage kernels: needs a GPU (--device cuda)")
    if stage == "threshold" and setting.boundary == "periodic":
        raise InputError("--boundary: a threshold T needs open axes")
    if stage == "split" and setting.kind == "cuda" and len(setting.devices) == 1:
        raise InputError("--stage split: compares one GPU with several (--device cuda:0,1)")
    for lattice in setting.lattices:
        for size in setting.sizes or ():
            lattice.check_size(size, (setting.boundary or "open",) * lattice.dimension)


def prepare_stages(
    setting: Setting,
    sizes: Sequence[int],
    ratios: Sequence[float],
    stages: Sequence[str],
    peers: bool,
) -> Callable[[Timer], Iterator[StageTime | PeerTime]]:
    """Return what times stages of samples: every lattice by size, then labeler, then p, then stage.

    ratios: p / p_c without others.  stages: of STAGES, in that order; a sweep is compared with the
    row at one p, so that it needs "measure" too.  InputError: what cannot be timed.
    """
    cases = [
        (lattice, setting.choose_places(lattice, *ratios))
        for lattice in setting.choose_lattices("honeycomb")
    ]
    for labeler in setting.labelers:
        labeler_class(labeler, setting.kind)
    for lattice, _ in cases:
        for size in sizes:
            lattice.check_size(size, ("open",) * lattice.dimension)
    options: Any = {"labelers": setting.labelers, "stages": stages, "runs": setting.runs}

    def records(timer: Timer) -> Iterator[StageTime | PeerTime]:
        for lattice, places in cases:
            for size in sizes:
                yield from time_lattice(timer, lattice, size, places, **options, peers=peers)
        for size in sizes if peers else ():
            image = site_image_time(timer, size, setting.runs)
            if image is not None:
                yield image

    return records


def list_stages(records: Sequence[Record]) -> list[StageTime | PeerTime]:
    """Return the records of stages of a sample, and of other programs."""
    return [record for record in records if isinstance(record, StageTime | PeerTime)]


def make_document(
    records: Sequence[Record],
    *,
    command: Sequence[str],
    machine: dict[str, Any],
    copy_bandwidth: float,
) -> dict[str, Any]:
    """Return records and what made them as plain JSON values; times in seconds unless named."""
    staged = list_stages(records)

    def described(record: Record) -> dict[str, Any]:
        more = compared(record, staged, copy_bandwidth) if isinstance(record, StageTime) else {}
        return record.to_dict() | more

    return {
        "command": list(command),
        "machine": machine,
        "versions": package_versions(),
        "copy_bandwidth_bytes_per_second": copy_bandwidth,
        "records": [described(r) for r in records if not isinstance(r, PeerTime)],
        "peers": [r.to_dict() for r in records if isinstance(r, PeerTime)],
    }


# The table


def format_row(record: Record, records: Sequence[Record], copy_bandwidth: float) -> str:
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
    if isinstance(record, StageTime):
        ratios = compared(record, list_stages(records), 1.0)
        scipy, one_p = ratios["scipy_over_this"], ratios["over_one_p"]
        ratio, name = (one_p, "one p") if one_p else (1 / scipy, "scipy") if scipy else (None, "")
        return record.to_call(ratio=ratio, compared_with=name)
    row: dict[str, Any] = {"lattice": record.lattice, "shape": (record.L,), "p": record.p}
    row |= {"num_sites": record.num_sites, "device": ""}
    if isinstance(record, SweepTime):
        row |= {"program": record.labeler, "stage": f"{record.model}:{record.update}"}
        seconds = record.seconds_per_sweep / record.chains
        return CallTime(**row, samples=record.chains, seconds_per_sample=seconds)
    return CallTime(
        **row,
        program=record.peer,
        stage=record.part,
        seconds_per_sample=record.seconds_per_sample,
    )
