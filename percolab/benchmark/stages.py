"""The stages of a sample, each from scratch, and the bytes that each has to move.

bonds    the open bonds
labels   the open bonds and the label of every site
measure  the open bonds and the row, by way of labels if the labeler needs them
sweep    the rows at a grid of p around this one
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from percolab.benchmark.peers import time_scipy, time_site_image
from percolab.benchmark.records import (
    GRID_POINTS,
    Place,
    Setting,
    TimeRecord,
    make_grid,
    make_topology,
)
from percolab.benchmark.timer import Work, make_timer, time_runs
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling, compute_memory, fit_coupling
from percolab.errors import InputError
from percolab.kernels.memory import Needs
from percolab.labelers.forest import Labeler, Reading
from percolab.lattices.extent import Extent
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology
from percolab.measure.rows import ROW_WIDTH

STAGES = ("bonds", "labels", "measure", "sweep")
SEED = 1

#: Sites of all samples of one timed run: enough to fill any GPU; on the CPU, enough for the clock.
SITES_PER_RUN = {"cpu": 2**20, "cuda": 2**30}
# Duration of a run that the clock measures accurately enough.
_RUN_SECONDS = 0.02
# The fraction of a device's free memory that a labeler may take.
_SHARE = 0.8
_ROW_BYTES = 8 * ROW_WIDTH
_NEEDS = Needs(steps=GRID_POINTS, labels=True)


def bytes_moved(stage: str, topology: Topology, *, needs_labels: bool) -> int:
    """Return the least bytes that a stage reads and writes for one sample, by its data structures.

    With W the bytes of the bond words (4 per word), P = 4 N those of one number per site, G those
    of a stored neighbour list (0 if the lattice computes neighbours), R = 48 those of a row, and
    m = GRID_POINTS:

        bonds    W                    words written
        labels   2 W + G + P          words written, words and list read, labels written
        measure  2 W + G + R          words written, words and list read, row written
                 2 W + G + 4 P + R    with labels: these written and read, sizes written and read
        sweep    measure + (m - 1) (2 W + R)   words changed from p to p, a row at each

    Following parents and counting sizes in place is not included.  The words of existing bonds,
    which all samples share, stay in caches and are not included either.  A neighbour list is larger
    than caches, and is included in full, since a memory line has 8 neighbours or more, whose bonds
    are hardly ever all closed.
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


def needs_labels(labeler: Labeler) -> bool:
    """Return whether a labeler computes rows from the labels of all sites."""
    return labeler.name not in ("raster", "tiled")


def prepare(
    setting: Setting, name: str, topology: Topology, labeler: str | None, count: int | None = None
) -> tuple[Coupling, TimeRecord]:
    """Return a labeler, and the record of its samples without times; name: of the structure.

    On a GPU the labeler takes as many samples as fit, on a CPU one.  count: samples of a run; None
    for a number that fills a GPU, or is long enough for the CPU's clock.  InputError: the labeler
    does not run on this kind of device, or on so large a topology.
    """
    device, kind, model = setting.device, setting.kind, setting.model
    free = make_timer(device).free_memory()  # gives back what earlier ones took
    most = count or max(SITES_PER_RUN[kind] // topology.num_points, 1)
    room: dict[str, Any] = {"most": most if device.is_shared else 1, "share": _SHARE}
    try:
        coupling = fit_coupling(device, topology, model, name=labeler, needs=_NEEDS, **room)
    except ValueError as error:
        raise InputError(f"{name}, {topology.num_points} grid points: {error}") from error
    serving = coupling.labeler.name
    base = setting.make_record("", name, topology, program=serving, samples=count or 1)
    if count is not None:
        return coupling, base
    if device.is_shared:
        count = coupling.labeler.batch.capacity
        make_works(coupling, count)(0.5)["measure"]()  # some arrays are made when they are needed
        memory = (free - make_timer(device).free_memory()) // count
    else:
        count = _choose_run_length(coupling, most)
        extent = Extent.of_topology(topology)
        memory = compute_memory(serving, kind, extent, model, _NEEDS).host
    return coupling, replace(base, samples=count, memory_bytes_per_sample=memory)


def make_works(coupling: Coupling, count: int) -> Callable[[float], dict[str, Work]]:
    """Return a function that returns, for a p, the work of every stage on ``count`` samples."""
    labeler, batch = coupling.labeler, coupling.labeler.batch
    samples = np.arange(count, dtype=np.uint64)
    batches = [samples[n : n + batch.capacity] for n in range(0, count, batch.capacity)]

    def works(p: float) -> dict[str, Work]:
        thresholds = np.full(count, p_to_threshold(p), np.uint64)
        grid = np.array([p_to_threshold(each) for each in make_grid(p, batch.topology)], np.uint64)
        entries_of_grid = np.repeat(samples, grid.size), np.tile(grid, count)

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
            coupling.rows(XORWOW, SEED, *entries_of_grid)

        return {"bonds": bonds, "labels": labels, "measure": measure, "sweep": sweep}

    return works


def _choose_run_length(coupling: Coupling, most: int) -> int:
    """Return the number of samples, at most ``most``, of a run long enough for the clock."""
    half, first = np.full(1, p_to_threshold(0.5), np.uint64), np.zeros(1, np.uint64)
    coupling.rows(XORWOW, SEED, first, half)  # compiles
    begin = time.perf_counter()
    coupling.rows(XORWOW, SEED, first, half)
    took = max(time.perf_counter() - begin, 1e-9)
    return min(max(int(_RUN_SECONDS / took), 1), most)


def time_topology(
    setting: Setting,
    name: str,
    topology: Topology,
    places: Sequence[Place],
    *,
    labeler: str | None = None,
    stages: Sequence[str] = STAGES,
) -> Iterator[TimeRecord]:
    """Time one labeler's stages on the topology of a graph or a lattice; name: for the records.

    A sweep is compared with the row at one p, if that is timed.  InputError as for
    :func:`prepare`.
    """
    coupling, base = prepare(setting, name, topology, labeler)
    timer, of_labels = make_timer(setting.device), needs_labels(coupling.labeler)
    works = make_works(coupling, base.samples)
    for place in places:
        at_p, row = works(place.p), None
        for stage in stages:
            record = base.at(
                place,
                stage=stage,
                probabilities=GRID_POINTS if stage == "sweep" else 1,
                bytes_moved_per_sample=bytes_moved(stage, topology, needs_labels=of_labels),
            ).timed(time_runs(timer, at_p[stage], setting.runs))
            if stage == "measure":
                row = record
            yield record if stage != "sweep" or row is None else record.compared(row, "one p")


def time_lattice(
    setting: Setting, lattice: Structure, size: int, stages: Sequence[str] = STAGES
) -> Iterator[TimeRecord]:
    """Time the labelers and, with peers, before them scipy, on an open lattice of size L.

    The lattice may be a Bethe lattice, with L its shells.  Every record is yielded immediately.
    InputError: an unknown size or labeler, or a size too large for its kernels.
    """
    topology, scipy = make_topology(lattice, size), dict[float | None, TimeRecord]()
    places = setting.choose_places(lattice, 0.5, 1.0, 1.5)
    for place in places if setting.peers else ():
        for record in time_scipy(setting, lattice.name, topology, place):
            scipy[record.p] = record
            yield record
    for labeler in setting.labelers:
        options: Any = {"labeler": labeler, "stages": stages}
        for record in time_topology(setting, lattice.name, topology, places, **options):
            if record.stage in ("labels", "measure") and record.p in scipy:
                record = record.compared(scipy[record.p], "scipy")
            yield record


def time_samples(setting: Setting, stages: Sequence[str]) -> Iterator[TimeRecord]:
    """Time stages of samples: every lattice by size, then labeler, then p, then stage.

    A sweep is compared with the row at one p, so "measure" is timed with it.
    """
    more = {"measure"} if "sweep" in stages else set()
    chosen = [stage for stage in STAGES if stage in {*stages, *more}]
    for lattice in setting.choose_lattices("honeycomb"):
        for size in setting.choose_sizes():
            yield from time_lattice(setting, lattice, size, chosen)
    for size in setting.choose_sizes() if setting.peers else ():
        yield from time_site_image(setting, size)
