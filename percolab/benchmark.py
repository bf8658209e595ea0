"""Timing of bonds, labels and rows on one device, with the memory a sample takes.

CUDA is timed by device events over batches, the CPU by its clock over single samples on one
thread.  Every figure is the median over repeats, per sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from percolab.kernels.open_bonds import XORWOW, threshold_of
from percolab.labelers import DEFAULT_LABELER, labeler_class
from percolab.lattice import Lattice
from percolab.sampler import Device
from percolab.toml_input import InputError

REPEATS = 11
_SITES_PER_BATCH = 2**28
_MAX_BATCH = 1024
_WARM_UP_SECONDS = 0.1


@dataclass(frozen=True)
class Measurement:
    """Milliseconds a sample, median over repeats, and bytes a sample.

    bonds, bonds_and_labels, bonds_and_row: what was timed; spread: (max - min) / median of
    bonds_and_labels.  bytes_needed: bond words, labels and sizes; bytes_taken: what the device
    allocated (CUDA) or the labeler holds (CPU).
    """

    lattice: str
    L: int
    num_sites: int
    p: float
    ratio: float | None
    labeler: str
    device: str
    batch: int
    bonds: float
    bonds_and_labels: float
    bonds_and_row: float
    spread: float
    bytes_needed: int
    bytes_taken: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


def probability_of(lattice: Lattice, ratio: float) -> float:
    """Return ratio * p_c of the published bond threshold; InputError if none is known."""
    known = lattice.threshold("bond")
    if known is None:
        raise InputError(f"{lattice.name} has no published threshold: give p (-p)")
    return min(ratio * known.value, 1.0)


def measure(
    lattice: Lattice,
    size: int,
    *,
    p: float,
    ratio: float | None = None,
    labeler: str | None = None,
    device: Device,
    repeats: int = REPEATS,
) -> Measurement:
    """Time one labeler on one lattice of linear size L at one p, open boundaries."""
    boundary = ("open",) * lattice.dimension
    lattice.check_size(size, boundary)
    topology = lattice.topology(lattice.shape(size), boundary)
    chosen = labeler_class(labeler, device.kind)
    run = _cuda_timings if device.kind == "cuda" else _cpu_timings
    times, batch, taken = run(chosen, topology, threshold_of(p), device, repeats)
    bonds, labels, rows = (1e3 * float(np.median(t)) / batch for t in times)
    return Measurement(
        lattice=lattice.name,
        L=size,
        num_sites=topology.num_points,
        p=p,
        ratio=ratio,
        labeler=labeler or DEFAULT_LABELER[device.kind],
        device=str(device),
        batch=batch,
        bonds=bonds,
        bonds_and_labels=labels,
        bonds_and_row=rows,
        spread=float(np.ptp(times[1]) / np.median(times[1])),
        bytes_needed=4 * topology.exists.size + 8 * topology.num_points,
        bytes_taken=taken,
    )


def _repeat(work: Callable[[], None], clock: Callable[[Callable[[], None]], float], repeats: int):
    """Return seconds of ``repeats`` runs, after the device's clocks are warm."""
    start = time.perf_counter()
    work()
    while time.perf_counter() - start < _WARM_UP_SECONDS:
        work()
    return np.array([clock(work) for _ in range(repeats)])


def _cuda_timings(chosen: Any, topology: Any, threshold: int, device: Device, repeats: int):
    from percolab.device import free_memory, open_device

    cuda = open_device(str(device))
    before = free_memory(cuda)
    wanted = min(max(_SITES_PER_BATCH // topology.num_points, 1), _MAX_BATCH)
    batch = chosen(topology, capacity=min(wanted, before // (2 * chosen.bytes_per_item(topology))))
    items = batch.capacity
    samples = cuda.to_device(np.arange(items, dtype=np.uint64))
    thresholds = cuda.to_device(np.full(items, threshold, np.uint64))

    def bonds() -> None:
        batch.open_bonds(XORWOW, 1, samples, thresholds)

    def labels() -> None:
        bonds()
        batch.label_items(items)

    def rows() -> None:
        labels()
        batch.measure_items(items)

    def clock(work: Callable[[], None]) -> float:
        begin, end = cuda.event(), cuda.event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return cuda.event_elapsed_time(begin, end) / 1e3

    times = [_repeat(work, clock, repeats) for work in (bonds, labels, rows)]
    return times, items, (before - free_memory(cuda)) // items


def _cpu_timings(chosen: Any, topology: Any, threshold: int, device: Device, repeats: int):
    single = chosen(topology)
    batch = max(2**20 // topology.num_points, 1)
    thresholds = np.full(batch, threshold, np.uint64)
    samples = np.arange(batch, dtype=np.uint64)

    def bonds() -> None:
        for sample in samples:
            single.open_bonds(XORWOW, 1, sample, threshold)

    def labels() -> None:
        for sample in samples:
            single.open_bonds(XORWOW, 1, sample, threshold)
            single.label()

    def rows() -> None:
        single.rows(XORWOW, 1, samples, thresholds)

    def clock(work: Callable[[], None]) -> float:
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    times = [_repeat(work, clock, repeats) for work in (bonds, labels, rows)]
    taken = single.opened.nbytes + single.scratch_bytes(topology.num_points, topology.num_classes)
    return times, batch, taken
