"""A whole benchmark: what to time, in which order, and the document that keeps the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from percolab.benchmark.peers import PeerTime, site_image_time
from percolab.benchmark.records import Place, StageTime, compared, time_lattice
from percolab.benchmark.stages import STAGES
from percolab.benchmark.timer import CpuTimer, CudaTimer
from percolab.labelers import labeler_class
from percolab.lattices.lattice import Lattice
from percolab.store.provenance import package_versions

Record = StageTime | PeerTime


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

    def records(self, timer: CpuTimer | CudaTimer) -> Iterator[Record]:
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


def document_of(
    records: Sequence[Record],
    *,
    command: Sequence[str],
    machine: dict[str, Any],
    copy_bandwidth: float,
) -> dict[str, Any]:
    """Return records and what made them as plain JSON values; times in seconds unless named."""
    own = [record for record in records if isinstance(record, StageTime)]
    return {
        "command": list(command),
        "machine": machine,
        "versions": package_versions(),
        "copy_bandwidth_bytes_per_second": copy_bandwidth,
        "records": [r.to_dict() | compared(r, records, copy_bandwidth) for r in own],
        "peers": [r.to_dict() for r in records if isinstance(r, PeerTime)],
    }
