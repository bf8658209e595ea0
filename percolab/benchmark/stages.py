"""What is timed: the stages of a sample, each from nothing, and the bytes that each has to move.

bonds    the open bonds
labels   the open bonds and the label of every site
measure  the open bonds and the row, by way of labels where the labeler needs them
sweep    the rows at a grid of p around this one
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.benchmark.timer import CpuTimer, CudaTimer, Work
from percolab.bonds.words import XORWOW, threshold_of
from percolab.labelers import labeler_class
from percolab.lattices.topology import Topology
from percolab.measure.rows import ROW_WIDTH

STAGES = ("bonds", "labels", "measure", "sweep")
SEED = 1

#: Values of p of a sweep.
GRID_POINTS = 21
# Half the window of a sweep at N = 2^24 = 4096^2.  It shrinks as N^(-3/8), that is as L^(-1/nu) in
# two dimensions (nu = 4/3), and nearly so in three.
_HALF_WINDOW, _WINDOW_SITES, _WINDOW_EXPONENT = 0.0013, 2**24, 0.375

#: Sites of all samples of one timed run: enough to fill any GPU; on the CPU, enough for the clock.
SITES_PER_RUN = {"cpu": 2**20, "cuda": 2**30}
_CPU_RUN_SECONDS = 0.02
_ROW_BYTES = 8 * ROW_WIDTH


@dataclass(frozen=True)
class Stages:
    """A labeler ready to be timed.

    samples: samples of one run.  needs_labels: whether the row is taken from labels.
    works: for a p, what every stage runs.  memory: the bytes a sample takes.
    """

    samples: int
    needs_labels: bool
    works: Callable[[float], dict[str, Work]]
    memory: int


def grid_around(p: float, num_sites: int) -> np.ndarray:
    """Return the p of a sweep, float64 (GRID_POINTS,), ascending: a window as wide as a study's."""
    half = _HALF_WINDOW * (_WINDOW_SITES / num_sites) ** _WINDOW_EXPONENT
    return np.linspace(max(p - half, 0.0), min(p + half, 1.0), GRID_POINTS)


def bytes_moved(stage: str, topology: Topology, *, needs_labels: bool) -> int:
    """Return the least bytes that a stage reads and writes for one sample, by its data structures.

    With W the bytes of the bond words (4 a word), P = 4 N those of one number a site, G those of a
    stored neighbour list (0 on a lattice that computes it), R = 40 those of a row, and m =
    GRID_POINTS:

        bonds    W                    words written
        labels   2 W + G + P          words written, words and list read, labels written
        measure  2 W + G + R          words written, words and list read, row written
                 2 W + G + 4 P + R    with labels: these written and read, sizes written and read
        sweep    measure + (m - 1) (2 W + R)   words brought from p to p, a row at each

    Parents are followed and sizes counted in place: what that costs beyond, a labeler must justify.
    The bonds that exist, which all samples share, stay in caches and are not counted.  A list is
    shared as well, but is as large as labels and more.  It counts whole: what is read of memory at
    once has room for 8 neighbours or more, and hardly ever are all of their bonds closed.
    """
    words, labels = 4 * topology.exists.size, 4 * topology.num_points
    stored = 0 if topology.neighbours is None else topology.neighbours.nbytes
    measure = 2 * words + stored + _ROW_BYTES + (4 * labels if needs_labels else 0)
    return {
        "bonds": words,
        "labels": 2 * words + stored + labels,
        "measure": measure,
        "sweep": measure + (GRID_POINTS - 1) * (2 * words + _ROW_BYTES),
    }[stage]


def prepare(timer: CpuTimer | CudaTimer, topology: Topology, labeler: str | None) -> Stages:
    """Return the stages of a labeler on a topology; InputError if it does not run there."""
    if isinstance(timer, CudaTimer):
        return _cuda_stages(timer, labeler_class(labeler, "cuda"), topology)
    return _cpu_stages(labeler_class(labeler, "cpu"), topology)


def _sweep_items(samples: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    thresholds = np.array([threshold_of(p) for p in grid], np.uint64)
    return np.repeat(samples, grid.size), np.tile(thresholds, samples.size)


def _cuda_stages(timer: CudaTimer, chosen: Any, topology: Topology) -> Stages:
    """Batches: all samples of a run are one launch of each kernel."""
    before = timer.free_memory()
    wanted = max(SITES_PER_RUN["cuda"] // topology.num_points, 1)
    # Half of the memory: the estimate knows nothing of what a labeler keeps for itself.
    fitting = max(before // (2 * chosen.bytes_per_item(topology)), 1)
    batch = chosen(topology, capacity=min(wanted, fitting))
    items = batch.capacity
    samples = np.arange(items, dtype=np.uint64)
    on_device = timer.cuda.to_device(samples)

    def works(p: float) -> dict[str, Work]:
        thresholds = timer.cuda.to_device(np.full(items, threshold_of(p), np.uint64))
        grid_items = _sweep_items(samples, grid_around(p, topology.num_points))

        def bonds() -> None:
            batch.open_bonds(XORWOW, SEED, on_device, thresholds)

        def labels() -> None:
            bonds()
            batch.label_items(items)

        def measure() -> None:
            bonds()
            if batch.measure_needs_labels:
                batch.label_items(items)
            batch.measure_items(items)

        def sweep() -> None:
            batch.rows(XORWOW, SEED, *grid_items)

        return {"bonds": bonds, "labels": labels, "measure": measure, "sweep": sweep}

    works(0.5)["measure"]()  # some arrays are made when they are needed
    memory = (before - timer.free_memory()) // items
    return Stages(items, batch.measure_needs_labels, works, memory)


def _cpu_stages(chosen: Any, topology: Topology) -> Stages:
    """One sample after another on one thread, as many as a run of the clock should have."""
    from percolab.labelers.base import CpuLabeler

    single = chosen(topology)
    samples = np.arange(_cpu_samples(single), dtype=np.uint64)

    def works(p: float) -> dict[str, Work]:
        threshold = threshold_of(p)
        thresholds = np.full(samples.size, threshold, np.uint64)
        grid_items = _sweep_items(samples, grid_around(p, topology.num_points))

        def bonds() -> None:
            for sample in samples:
                single.open_bonds(XORWOW, SEED, sample, threshold)

        def labels() -> None:
            for sample in samples:
                single.open_bonds(XORWOW, SEED, sample, threshold)
                single.label()

        def measure() -> None:
            single.rows(XORWOW, SEED, samples, thresholds)

        def sweep() -> None:
            single.rows(XORWOW, SEED, *grid_items)

        return {"bonds": bonds, "labels": labels, "measure": measure, "sweep": sweep}

    scratch = single.scratch_bytes(topology.num_points, topology.num_classes)
    memory = single.opened.nbytes + scratch
    # A labeler that does not measure by itself inherits the way by labels.
    needs_labels = chosen.measure is CpuLabeler.measure
    return Stages(samples.size, needs_labels, works, memory)


def _cpu_samples(single: Any) -> int:
    """Return how many samples make a run long enough for the clock, at most SITES_PER_RUN sites."""
    half, first = np.full(1, threshold_of(0.5), np.uint64), np.zeros(1, np.uint64)
    single.rows(XORWOW, SEED, first, half)  # compiles
    begin = time.perf_counter()
    single.rows(XORWOW, SEED, first, half)
    took = max(time.perf_counter() - begin, 1e-9)
    most = max(SITES_PER_RUN["cpu"] // single.topology.num_points, 1)
    return min(max(int(_CPU_RUN_SECONDS / took), 1), most)
