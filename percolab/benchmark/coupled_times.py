"""Rows of a grid of p, thresholds T, kernels one by one, and a lattice as a stored graph.

grid       rows at 1, 9 and 21 values of p, compared with those at one
threshold  T of samples along every open axis, compared with a row
kernels    every CUDA kernel of a row and of labels
graph      labels and rows of a lattice that is given as a list of neighbours, compared with those
           of the lattice that computes them (Komura 2016, section 3)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from percolab.benchmark.calls import (
    CallTime,
    Setting,
    compare_with_first,
    make_grid,
    make_thresholds,
    time_calls,
)
from percolab.benchmark.kernel_times import time_call_kernels
from percolab.benchmark.records import Place, time_topology
from percolab.benchmark.stages import SEED, SITES_PER_RUN, fitting_coupling, make_works
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling
from percolab.coupled.thresholds import find_thresholds
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
    for lattice in setting.choose_lattices(*names):
        for size in setting.sizes or SIZES[setting.kind]:
            topology = setting.choose_topology(lattice, size, "open")
            sites = setting.sites or SITES_PER_RUN[setting.kind]
            count = setting.samples or max(sites // topology.num_points, 1)
            for labeler in setting.labelers:
                coupling = fitting_coupling(
                    setting.make_timer(), topology, labeler, count, setting.model
                )
                base = setting.make_record(
                    stage, lattice.name, topology, program=coupling.labeler.name, samples=count
                )
                yield _Case(lattice, size, coupling, np.arange(count, dtype=np.uint64), base)


def time_grids(setting: Setting) -> Iterator[CallTime]:
    """Time rows at several numbers of p, from samples and p on the host to rows there."""
    numbers = setting.points or _POINTS
    name = "one p" if numbers[0] == 1 else f"{numbers[0]} p"
    for case in _cases(setting, "grid", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 1.0):
            records = (_time_grid(setting, case, place, points) for points in numbers)
            yield from compare_with_first(records, name)


def _time_grid(setting: Setting, case: _Case, place: Place, points: int) -> CallTime:
    grid = make_thresholds(make_grid(case.lattice, case.size, place.p, points))

    def work() -> None:
        case.coupling.grid_rows(XORWOW, SEED, case.samples, grid)

    times = time_calls(work, setting.kind, setting.runs)
    return case.base.timed(times, part=str(points), p=place.p, probabilities=points)


def time_thresholds(setting: Setting) -> Iterator[CallTime]:
    """Time a row, and T of the same samples along every open axis."""
    for case in _cases(setting, "threshold", ("honeycomb",)):
        for place in setting.choose_places(case.lattice, 1.0):
            yield from compare_with_first(_time_threshold(setting, case, place), "row")


def _time_threshold(setting: Setting, case: _Case, place: Place) -> Iterator[CallTime]:
    yield replace(_time_grid(setting, case, place, 1), part="row")
    low, _, high = map(p_to_threshold, make_grid(case.lattice, case.size, place.p, 3))

    def work() -> None:
        find_thresholds(case.coupling, XORWOW, SEED, case.samples, (low, high))

    times = time_calls(work, setting.kind, setting.runs)
    yield case.base.timed(times, part="T", p=place.p)


def time_row_kernels(setting: Setting) -> Iterator[CallTime]:
    """Time every kernel of a row and of labels."""
    for case in _cases(setting, "kernels", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 0.5, 1.0, 1.5):
            works = make_works(case.coupling, case.samples.size)(place.p)
            works = {"row": works["measure"], "labels": works["labels"]}
            yield from time_call_kernels(setting, replace(case.base, p=place.p), works)


def time_graphs(setting: Setting) -> Iterator[CallTime]:
    """Time labels and rows of a lattice and of its list of neighbours: the same samples."""
    parts = {"labels": "labels", "measure": "row"}
    labeler = setting.labelers[0] or "four_step"
    options: Any = {"labeler": labeler, "stages": tuple(parts), "runs": setting.runs}
    same: tuple[str, ...] = ("num_sites", "p", "runs", "seconds_per_sample")
    same += ("seconds_per_sample_min", "seconds_per_sample_max", "bytes_moved_per_sample")
    for lattice in setting.choose_lattices("honeycomb"):
        places = setting.choose_places(lattice, 1.0)
        for size in setting.sizes or SIZES[setting.kind][-1:]:
            computed = setting.choose_topology(lattice, size, "open")
            options |= {"name": lattice.name, "size": size}
            first: dict[tuple[float, str], CallTime] = {}
            for form, topology in (("lattice", computed), ("list", computed.explicit())):
                for one in time_topology(setting.make_timer(), topology, places, **options):
                    found = CallTime(
                        stage="graph",
                        part=f"{parts[one.stage]}:{form}",
                        lattice=lattice.name,
                        shape=computed.shape,
                        program=one.labeler,
                        device=one.device,
                        samples=one.samples_per_run,
                        **{name: getattr(one, name) for name in same},
                    )
                    other = first.setdefault((one.p, one.stage), found)
                    yield found if other is found else found.compared(other, "lattice")
