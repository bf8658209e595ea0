"""A whole benchmark: the stages that can be timed, and records as a document and a table."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import percolab.benchmark.further_times as further
from percolab.benchmark import stages
from percolab.benchmark.records import Setting, TimeRecord, make_topology
from percolab.benchmark.study_times import time_splits, time_studies
from percolab.errors import InputError
from percolab.labelers import labeler_class
from percolab.store.provenance import package_versions

_FORM = "{:<11}{:>13} {:>8}  {:<12}{:<20}{:>8}{:>11}{:>10}{:>8}{:>8}{:>8} {:<13} {}"
HEADER = _FORM.format(
    *("lattice", "L", "p", "program", "stage", "samples", "ms", "ps/site", "B/site"),
    *("of copy", "ratio", "to", "note"),
).rstrip()

#: The functions that time stages of samples, and sweeps of spins.
time_samples, time_sweeps = stages.time_samples, further.time_sweeps
#: The functions that time further stages, in addition to STAGES, by name of the stage.
FURTHER_STAGES: dict[str, Callable[[Setting], Iterator[TimeRecord]]] = {
    "grid": further.time_grids,
    "threshold": further.time_thresholds,
    "graph": further.time_graphs,
    "kernels": further.time_row_kernels,
    "slabs": further.time_slabs,
    "split": time_splits,
    "study": time_studies,
    "trees": further.time_trees,
}


def check_samples(setting: Setting, lattice: str, boundary: str) -> None:
    """Raise InputError if samples, or spins, of the setting or this lattice cannot be timed."""
    for labeler in setting.labelers:
        labeler_class(labeler, setting.kind)
    for each in setting.choose_lattices(lattice):
        setting.choose_places(each, 1.0)
        for size in setting.choose_sizes():
            make_topology(each, size, boundary)


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
            make_topology(lattice, size, setting.boundary)


def make_document(
    records: Sequence[TimeRecord],
    *,
    command: Sequence[str],
    machine: dict[str, Any],
    copy_bandwidth: float,
) -> dict[str, Any]:
    """Return records and their origin as plain JSON values; times in seconds unless named."""
    return {
        "command": list(command),
        "machine": machine,
        "versions": package_versions(),
        "copy_bandwidth_bytes_per_second": copy_bandwidth,
        "records": [
            record.to_dict() | {"copy_bandwidth_share": record.copy_share(copy_bandwidth)}
            for record in records
        ],
    }


def format_row(record: TimeRecord, copy_bandwidth: float) -> str:
    """Return the line of the table that shows a record."""
    seconds, moved = record.seconds_per_sample, record.bytes_moved_per_sample
    is_cube, share = len(set(record.shape)) == 1, record.copy_share(copy_bandwidth)
    picoseconds = 1e12 * seconds / record.num_sites
    return _FORM.format(
        record.lattice,
        str(record.shape[0]) if is_cube else "x".join(map(str, record.shape)),
        "-" if record.p is None else f"{record.p:.5f}",
        record.program,
        f"{record.stage}:{record.part}" if record.part else record.stage,
        record.samples,
        f"{1e3 * seconds:.4g}",
        f"{picoseconds:.{0 if picoseconds >= 1e3 else 3}f}",
        "" if moved is None else f"{moved / record.num_sites:.3g}",
        "" if share is None else f"{share:.2%}",
        "" if record.time_ratio is None else f"{record.time_ratio:.3g}",
        record.compared_with,
        record.note,
    ).rstrip()
