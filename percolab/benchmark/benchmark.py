"""A whole benchmark: what to time, in which order, and the document that keeps the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from percolab.benchmark.calls import CallTime, Setting
from percolab.benchmark.coupled_times import (
    time_graphs,
    time_grids,
    time_row_kernels,
    time_thresholds,
)
from percolab.benchmark.peers import PeerTime, site_image_time
from percolab.benchmark.records import Place, StageTime, compared, time_lattice
from percolab.benchmark.slab_times import time_slabs
from percolab.benchmark.stages import STAGES
from percolab.benchmark.study_times import time_splits, time_studies
from percolab.benchmark.table import Record
from percolab.benchmark.timer import CpuTimer, CudaTimer
from percolab.benchmark.tree_times import time_trees
from percolab.errors import InputError
from percolab.labelers import labeler_class
from percolab.lattices.lattice import Lattice
from percolab.store.provenance import package_versions

#: What is timed in addition to STAGES, by the name of its stage.
FURTHER_STAGES: dict[str, Callable[[Setting], Iterator[CallTime]]] = {
    "grid": time_grids,
    "threshold": time_thresholds,
    "graph": time_graphs,
    "kernels": time_row_kernels,
    "slabs": time_slabs,
    "split": time_splits,
    "study": time_studies,
    "trees": time_trees,
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


@dataclass(frozen=True)
class Benchmark:
    """What to time: every lattice at its places, by size, then labeler, then p, then stage.

    labelers: names, None for the device's fastest.  stages: of STAGES, in that order; a sweep is
    compared with the row at one p, so that it needs "measure" too.
    """

    lattices: tuple[tuple[Lattice, tuple[Place, ...]], ...]
    sizes: tuple[int, ...]
    labelers: tuple[str | None, ...] = (None,)
    stages: tuple[str, ...] = STAGES
    runs: int = 11
    peers: bool = True

    def check(self, kind: str) -> None:
        """Raise InputError for a size or labeler that a "cpu" or "cuda" device cannot time."""
        for labeler in self.labelers:
            labeler_class(labeler, kind)
        for lattice, _ in self.lattices:
            for size in self.sizes:
                lattice.check_size(size, ("open",) * lattice.dimension)

    def records(self, timer: CpuTimer | CudaTimer) -> Iterator[StageTime | PeerTime]:
        """Yield every record as soon as it is there."""
        for lattice, places in self.lattices:
            for size in self.sizes:
                yield from time_lattice(
                    timer,
                    lattice,
                    size,
                    places,
                    labelers=self.labelers,
                    stages=self.stages,
                    runs=self.runs,
                    peers=self.peers,
                )
        for size in self.sizes if self.peers else ():
            image = site_image_time(timer, size, self.runs)
            if image is not None:
                yield image


def make_document(
    records: Sequence[Record],
    *,
    command: Sequence[str],
    machine: dict[str, Any],
    copy_bandwidth: float,
) -> dict[str, Any]:
    """Return records and what made them as plain JSON values; times in seconds unless named."""
    staged = [record for record in records if isinstance(record, StageTime | PeerTime)]

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
