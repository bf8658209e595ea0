"""Rows of a grid of p, thresholds T, kernels one by one, and a lattice as a stored graph.

grid       rows at 1, 9 and 21 values of p, compared with those at one
threshold  T of samples along every open axis, compared with a row
kernels    every CUDA kernel of a row and of labels
graph      labels and rows of a lattice that is given as a list of neighbours, compared with those
           of the lattice that computes them (Komura 2016, section 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.benchmark.calls import CallTime, Setting, make_grid, make_thresholds, time_calls
from percolab.benchmark.kernel_times import kernel_records
from percolab.benchmark.records import Place, time_topology
from percolab.benchmark.stages import SEED, SITES_PER_RUN, fitting_coupling
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.kernels.device import open_device
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice

#: Sizes without -L.
SIZES = {"cpu": (64, 256, 1024), "cuda": (64, 256, 1024, 4096)}
_POINTS = (1, 9, 21)


@dataclass(frozen=True)
class _Case:
    """Samples of one lattice, ready to be measured; base: their record, without times."""

    lattice: Lattice
    size: int
    coupling: Coupling
    samples: np.ndarray
    base: CallTime


def _cases(setting: Setting, stage: str, names: tuple[str, ...]) -> Iterator[_Case]:
    """Yield a case for every lattice, size and labeler."""
    boundary = setting.choose_boundaries("open")[0]
    for lattice in setting.choose_lattices(*names):
        kinds = (boundary,) * lattice.dimension
        for size in setting.sizes or SIZES[setting.kind]:
            lattice.check_size(size, kinds)
            topology = lattice.topology(lattice.shape(size), kinds)
            sites = setting.sites or SITES_PER_RUN[setting.kind]
            count = setting.samples or max(sites // topology.num_points, 1)
            for labeler in setting.labelers:
                coupling = fitting_coupling(
                    setting.make_timer(), topology, labeler, count, setting.model
                )
                base = CallTime(
                    stage=stage,
                    lattice=lattice.name,
                    shape=topology.shape,
                    num_sites=topology.num_sites,
                    program=coupling.labeler.name,
                    device=str(setting.device),
                    samples=count,
                )
                yield _Case(lattice, size, coupling, np.arange(count, dtype=np.uint64), base)


def time_grids(setting: Setting) -> Iterator[CallTime]:
    """Time rows at several numbers of p, from samples and p on the host to rows there."""
    for case in _cases(setting, "grid", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 1.0):
            first: CallTime | None = None
            for points in setting.points or _POINTS:
                grid = make_thresholds(make_grid(case.lattice, case.size, place.p, points))

                def work(case: _Case = case, grid: np.ndarray = grid) -> None:
                    case.coupling.grid_rows(XORWOW, SEED, case.samples, grid)

                times = time_calls(work, setting.kind, setting.runs)
                found = case.base.timed(times, part=str(points), p=place.p, probabilities=points)
                first = first or found
                name = "one p" if first.probabilities == 1 else f"{first.probabilities} p"
                yield found if found is first else found.compared(first, name)


def time_thresholds(setting: Setting) -> Iterator[CallTime]:
    """Time a row, and T of the same samples along every open axis."""
    for case in _cases(setting, "threshold", ("honeycomb",)):
        for place in setting.choose_places(case.lattice, 1.0):
            grid = make_thresholds([place.p])
            low, _, high = map(p_to_threshold, make_grid(case.lattice, case.size, place.p, 3))

            def row(case: _Case = case, grid: np.ndarray = grid) -> None:
                case.coupling.grid_rows(XORWOW, SEED, case.samples, grid)

            def find(case: _Case = case, window: tuple[int, int] = (low, high)) -> None:
                find_thresholds(case.coupling, XORWOW, SEED, case.samples, window)

            times = time_calls(row, setting.kind, setting.runs)
            measured = case.base.timed(times, part="row", p=place.p)
            yield measured
            times = time_calls(find, setting.kind, setting.runs)
            yield case.base.timed(times, part="T", p=place.p).compared(measured, "row")


def time_row_kernels(setting: Setting) -> Iterator[CallTime]:
    """Time every kernel of a row and of labels."""
    cuda = open_device(str(setting.device))
    for case in _cases(setting, "kernels", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 0.5, 1.0, 1.5):
            for part, work in _works(case, place).items():
                base = case.base.timed([0.0], part=part, p=place.p)
                yield from kernel_records(base, cuda, work, setting.runs)


def _works(case: _Case, place: Place) -> dict[str, Any]:
    """Return what measures the samples of a case, and what labels as many as fit together."""
    labeler = case.coupling.labeler
    thresholds = np.full(case.samples.size, p_to_threshold(place.p), np.uint64)
    capacity = labeler.batch.capacity

    def row() -> None:
        case.coupling.rows(XORWOW, SEED, case.samples, thresholds)

    def labels() -> None:
        for first in range(0, case.samples.size, capacity):
            part = slice(first, first + capacity)
            count = labeler.batch.fill(XORWOW, SEED, case.samples[part], thresholds[part])
            labeler.join(count, Reading.LABELS).make_labels()

    return {"row": row, "labels": labels}


def time_graphs(setting: Setting) -> Iterator[CallTime]:
    """Time labels and rows of a lattice and of its list of neighbours: the same samples."""
    parts = {"labels": "labels", "measure": "row"}
    for lattice in setting.choose_lattices("honeycomb"):
        kinds = (setting.choose_boundaries("open")[0],) * lattice.dimension
        places = setting.choose_places(lattice, 1.0)
        for size in setting.sizes or SIZES[setting.kind][-1:]:
            lattice.check_size(size, kinds)
            computed = lattice.topology(lattice.shape(size), kinds)
            first: dict[tuple[float, str], CallTime] = {}
            for form, topology in (("lattice", computed), ("list", computed.explicit())):
                for one in time_topology(
                    topology,
                    places,
                    name=lattice.name,
                    size=size,
                    device=setting.device,
                    labeler=setting.labelers[0] or "four_step",
                    stages=tuple(parts),
                    runs=setting.runs,
                ):
                    found = CallTime(
                        stage="graph",
                        part=f"{parts[one.stage]}:{form}",
                        lattice=lattice.name,
                        shape=computed.shape,
                        num_sites=one.num_sites,
                        p=one.p,
                        program=one.labeler,
                        device=one.device,
                        samples=one.samples_per_run,
                        runs=one.runs,
                        seconds_per_sample=one.seconds_per_sample,
                        seconds_per_sample_min=one.seconds_per_sample_min,
                        seconds_per_sample_max=one.seconds_per_sample_max,
                        bytes_moved_per_sample=one.bytes_moved_per_sample,
                    )
                    other = first.setdefault((one.p, one.stage), found)
                    yield found if other is found else found.compared(other, "lattice")
