"""Whole studies, and one sample on several processors, compared with one processor."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from percolab.benchmark.calls import kernel_events, sum_events
from percolab.benchmark.records import Place, Setting, TimeRecord, make_grid, make_topology
from percolab.kernels.device import open_device
from percolab.lattices.lattice import Lattice
from percolab.run.request import Observer
from percolab.run.runner import run_study
from percolab.store.results import StoredResults
from percolab.tasks.study_file import make_request

_SIZES = {"cpu": (64,), "cuda": (64, 256, 1024, 4096)}
#: Sites of all samples of a study, and of a split sample, without --sites.
_STUDY_SITES = {"cpu": 2**24, "cuda": 2**37}
_SPLIT_SITES = {"cpu": 2**20, "cuda": 10**11}
#: Number of rows of each case of a split without --samples; the first is not counted.
_ROWS = 4
_SEED = 7


class _BlockTimes(Observer):
    """An observer of the time at which every block is finished, and of reports by ranks."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.first: dict[str, Any] = {}

    def advanced(self, results: Any, result: Any, blocks: Any) -> None:
        """Record the time of finished blocks."""
        self.times += [time.perf_counter()] * len(blocks)
        self.first = self.first or _sum_ranks(results)


def _sum_ranks(results: StoredResults) -> dict[str, float]:
    """Return the sums of rows, bytes and seconds over all ranks of a split run so far."""
    ranks = results.runs[-1]["split"]
    joining = sum(stage["join_seconds"] for stage in ranks["stages"])
    names = ("rows", "bytes", "local_seconds", "transport_seconds")
    return {name: ranks[name] for name in names} | {"join_seconds": joining}


def _run(lattice: Lattice, observer: Observer | None = None, **settings: Any) -> StoredResults:
    """Run a study in memory, as ``percolab sweep`` would."""
    request = make_request(lattice, seed=_SEED, **settings)
    return run_study(request.study, request.rule, **request.options, observer=observer)


def _choose_workers(setting: Setting) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Return the settings of one processor and of all of them, and their number."""
    if setting.kind == "cpu":
        return {"device": "cpu"}, {"device": "cpu"}, 2
    numbers = ",".join(str(device.number) for device in setting.devices)
    return {"device": str(setting.device)}, {"device": f"cuda:{numbers}"}, len(setting.devices)


# Studies


def time_studies(setting: Setting) -> Iterator[TimeRecord]:
    """Time studies of nine p and of thresholds, with their preparation, on one and all GPUs.

    The fraction of time in which the GPU computes is measured in a study with a tenth of the
    samples, by device events around every kernel.
    """
    points, boundary = (setting.points or (9,))[0], setting.boundary or "open"
    for lattice in setting.choose_lattices("honeycomb"):
        for size in setting.sizes or _SIZES[setting.kind]:
            topology = make_topology(lattice, size, boundary)
            count = (setting.sites or _STUDY_SITES[setting.kind]) // topology.num_points
            samples = setting.samples or max(count, 10)
            for place in setting.choose_places(lattice, 1.0):
                grid = make_grid(place.p, topology, points).tolist()
                studies = [("grid", {"p": grid}, samples, points)]
                if boundary == "open":
                    fewer = max(samples // 5, 10)
                    studies.append(("threshold", {"method": "threshold"}, fewer, 1))
                for part, options, count, probabilities in studies:
                    program = "1 process" if setting.kind == "cpu" else "1 GPU"
                    base = setting.make_record("study", lattice.name, topology, program=program)
                    base = base.at(place, part=part, samples=count, probabilities=probabilities)
                    common = {"L": [size], "boundary": boundary}
                    yield from _study_times(setting, lattice, base, common | options)


def _study_times(
    setting: Setting, lattice: Lattice, base: TimeRecord, options: dict[str, Any]
) -> Iterator[TimeRecord]:
    one, every, number = _choose_workers(setting)
    _run(lattice, samples=_count_few(base), **options, **one)  # compiles all that many samples take
    alone = _timed_study(lattice, base, options | one)
    if setting.kind == "cuda":
        few = max(base.samples // 10, 10)
        with kernel_events(open_device(str(setting.device))) as events:
            _run(lattice, samples=few, **options, **one)
            busy = sum(sum_events(events).values()) / few
        share = busy / alone.seconds_per_sample
        alone = replace(alone, note=f"{alone.note}, the GPU computes {share:.0%}")
    yield alone
    if number == 1:
        return
    if setting.kind == "cpu":
        every |= {"executor": "processes", "workers": number}
    program = f"{number} {'processes' if setting.kind == 'cpu' else 'GPUs'}"
    together = _timed_study(lattice, replace(base, program=program), options | every)
    yield together.compared(alone, "one")


def _count_few(base: TimeRecord) -> int:
    """Return a thirtieth of the samples of a study."""
    return max(base.samples // 30, 1)


def _timed_study(lattice: Lattice, base: TimeRecord, settings: dict[str, Any]) -> TimeRecord:
    """Return the time per sample without the start: of all samples minus that of a few."""
    seconds, few = [], _count_few(base)
    for samples in (few, base.samples):
        begin = time.perf_counter()
        _run(lattice, samples=samples, **settings)
        seconds.append(time.perf_counter() - begin)
    note = f"{base.samples} samples in {seconds[1]:.4g} s, {few} in {seconds[0]:.4g} s"
    running = max(seconds[1] - seconds[0], 0.0) * base.samples / max(base.samples - few, 1)
    return base.timed([running], note=note)


# One sample over several processors


def time_splits(setting: Setting) -> Iterator[TimeRecord]:
    """Time rows of one sample on one processor, on all ("strong"), and of a larger one ("weak").

    The larger sample has the sites times the number of processors, on an open lattice.  The time of
    a row is from the end of the previous block to that of its own, so the first row, which includes
    making tables and loading kernels, is not counted.
    """
    for lattice in setting.choose_lattices("square", "cubic"):
        for boundary in setting.boundaries:
            for place in setting.choose_places(lattice, 1.0):
                yield from _split_times(setting, lattice, boundary, place)


def _split_times(
    setting: Setting, lattice: Lattice, boundary: str, place: Place
) -> Iterator[TimeRecord]:
    one, every, number = _choose_workers(setting)
    sites = setting.sites or _SPLIT_SITES[setting.kind]
    cases = [("one", sites, 1, one), ("strong", sites, number, every)]
    if boundary == "open":
        cases.append(("weak", number * sites, number, every))
    first: TimeRecord | None = None
    for part, points, workers, device in cases:
        size = round(points ** (1 / lattice.dimension))
        settings = {"L": [size], "p": [place.p], "boundary": boundary, "workers": workers}
        samples = max(setting.samples or _ROWS, 2)
        seconds, note = _row_seconds(lattice, samples=samples, **settings, **device)
        timed = TimeRecord(
            stage="split",
            part=part,
            lattice=lattice.name,
            shape=lattice.shape(size),
            num_sites=size**lattice.dimension,
            program=f"{workers} {boundary}",
            device=device["device"],
        ).at(place)
        timed = timed.timed(seconds, note=note)
        first = first or timed
        yield timed if timed is first else _with_efficiency(timed, first, workers)


def _row_seconds(lattice: Lattice, **settings: Any) -> tuple[np.ndarray, str]:
    """Return the seconds of the rows after the first, and a summary of the ranks' reports."""
    observer = _BlockTimes()
    parallel = {"executor": "processes", "split": "lattice", "block_size": 1}
    results = _run(lattice, observer, **settings, **parallel)
    last, first = _sum_ranks(results), observer.first
    rows = max(last["rows"] - first["rows"], 1)
    mean = {name: 1e3 * (last[name] - first[name]) / rows for name in last}
    note = f"ranks {mean['local_seconds']:.4g} ms"
    if mean["bytes"]:
        note += (
            f", messages {mean['bytes'] / 1e9:.3g} MB in {mean['transport_seconds']:.3g} ms, "
            f"joining {mean['join_seconds']:.3g} ms"
        )
    return np.diff(observer.times), note


def _with_efficiency(many: TimeRecord, one: TimeRecord, workers: int) -> TimeRecord:
    """Return a record compared with one processor; the efficiency is from the least times."""
    rates = [record.num_sites / record.seconds_per_sample_min for record in (one, many)]
    note = f"{many.note}, efficiency {rates[1] / rates[0] / workers:.3f}"
    return replace(many.compared(one, "one"), note=note)
