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
from functools import partial

import numpy as np

from percolab.benchmark.timer import Timer, Work
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling, compute_memory, new_coupling
from percolab.kernels.memory import Memory, Needs, entries_that_fit
from percolab.labelers import labeler_class, serving_labeler
from percolab.labelers.forest import Labeler, Reading
from percolab.lattices.extent import Extent
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
# A run that the clock measures well enough.
_RUN_SECONDS = 0.02
# The part of a device's free memory that a labeler may take.
_SHARE = 0.8
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
    stored neighbour list (0 on a lattice that computes it), R = 48 those of a row, and m =
    GRID_POINTS:

        bonds    W                    words written
        labels   2 W + G + P          words written, words and list read, labels written
        measure  2 W + G + R          words written, words and list read, row written
                 2 W + G + 4 P + R    with labels: these written and read, sizes written and read
        sweep    measure + (m - 1) (2 W + R)   words changed from p to p, a row at each

    Parents are followed and sizes counted in place, which is not counted.  The bonds that exist,
    which all samples share, stay in caches and are not counted either.  A list is larger than
    caches; it counts whole, since a line of memory has 8 neighbours or more, and hardly ever are
    all of their bonds closed.
    """
    words, labels = 4 * topology.num_bond_words, 4 * topology.num_points
    stored = 0 if topology.neighbours is None else topology.neighbours.nbytes
    measure = 2 * words + stored + _ROW_BYTES + (4 * labels if needs_labels else 0)
    return {
        "bonds": words,
        "labels": 2 * words + stored + labels,
        "measure": measure,
        "sweep": measure + (GRID_POINTS - 1) * (2 * words + _ROW_BYTES),
    }[stage]


def fitting_coupling(
    timer: Timer,
    topology: Topology,
    labeler: str | None,
    samples: int,
    model: Model = BOND,
) -> Coupling:
    """Return a labeler with room for as many samples as fit in memory, at most ``samples``.

    On a CPU it has room for one.  InputError: the labeler does not run on this topology.
    """
    kind = timer.device.kind
    labeler_class(labeler, kind)
    name = serving_labeler(labeler, kind, topology)
    memory = partial(_memory, name, kind, topology, model)
    fitting = 1
    if timer.device.is_shared:
        fitting = entries_that_fit(memory, int(_SHARE * timer.free_memory()))
    capacity = max(min(samples, fitting), 1)
    return new_coupling(name, kind, topology, model, capacity=capacity)


def _memory(name: str, kind: str, topology: Topology, model: Model, entries: int) -> Memory:
    needs = Needs(steps=GRID_POINTS, labels=True)
    return compute_memory(name, kind, Extent.of_topology(topology), model, needs, entries)


def prepare(timer: Timer, topology: Topology, labeler: str | None) -> Stages:
    """Return the stages of a labeler on a topology; InputError if it does not run there."""
    kind, before = timer.device.kind, timer.free_memory()
    most = max(SITES_PER_RUN[kind] // topology.num_points, 1)
    coupling = fitting_coupling(timer, topology, labeler, most)
    samples = coupling.labeler.batch.capacity
    if not timer.device.is_shared:
        samples = _choose_run_length(coupling, most)
    stages = make_works(coupling, samples)
    stages(0.5)["measure"]()  # some arrays are made when they are needed
    if timer.device.is_shared:
        memory = (before - timer.free_memory()) // samples
    else:
        memory = _memory(coupling.labeler.name, kind, topology, BOND, 1).host
    return Stages(samples, needs_labels(coupling.labeler), stages, memory)


def needs_labels(labeler: Labeler) -> bool:
    """Return whether a labeler's rows are read off the labels of all sites."""
    return labeler.name not in ("raster", "tiled")


def make_works(coupling: Coupling, count: int) -> Callable[[float], dict[str, Work]]:
    """Return for a p what every stage runs, on so many samples."""
    labeler, batch = coupling.labeler, coupling.labeler.batch
    samples = np.arange(count, dtype=np.uint64)
    batches = [samples[n : n + batch.capacity] for n in range(0, count, batch.capacity)]

    def works(p: float) -> dict[str, Work]:
        thresholds = np.full(count, p_to_threshold(p), np.uint64)
        grid = list(map(p_to_threshold, grid_around(p, batch.topology.num_points)))
        items = np.repeat(samples, len(grid)), np.tile(np.array(grid, np.uint64), count)

        def bonds() -> None:
            for part in batches:
                batch.fill(XORWOW, SEED, part, thresholds[: part.size])

        def labels() -> None:
            for part in batches:
                entries = batch.fill(XORWOW, SEED, part, thresholds[: part.size])
                labeler.join(entries, Reading.LABELS).make_labels()

        def measure() -> None:
            coupling.rows(XORWOW, SEED, samples, thresholds)

        def sweep() -> None:
            coupling.rows(XORWOW, SEED, *items)

        return {"bonds": bonds, "labels": labels, "measure": measure, "sweep": sweep}

    return works


def _choose_run_length(coupling: Coupling, most: int) -> int:
    """Return how many samples make a run long enough for the clock, at most so many."""
    half, first = np.full(1, p_to_threshold(0.5), np.uint64), np.zeros(1, np.uint64)
    coupling.rows(XORWOW, SEED, first, half)  # compiles
    begin = time.perf_counter()
    coupling.rows(XORWOW, SEED, first, half)
    took = max(time.perf_counter() - begin, 1e-9)
    return min(max(int(_RUN_SECONDS / took), 1), most)
