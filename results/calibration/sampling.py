"""Samples of systems with a known threshold, kept as counts from which studies are formed.

A system is a lattice, what opens (bonds or sites), a boundary and some sizes.  Its p are placed by
the pilot of `percolab sweep`, which knows no threshold; all studies of a system share them.  Of
every size how many samples span, or wrap, along the last axis is counted at all p in pieces of 4000
samples up to 8e5, and of 1e5 beyond.  What is kept of a system is one small file:

    sizes   int64 (n,)
    p       float64 (n, m), NaN where a size has fewer
    ends    int64 (pieces,), the samples up to the end of every piece
    counts  int32 (pieces, n, m), the samples of the piece that span
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

#: A piece, and where pieces of STEP samples begin; a call of the device has STEP samples.
PIECE, FINE, STEP = 4_000, 800_000, 100_000
#: Samples of every size between two looks at the clock.
_ROUND = 500_000
#: Samples of a default study of spins, and how many studies.
SPIN_SAMPLES, SPIN_STUDIES = 4_000, 100

#: Sizes by dimension, and of lattices whose cell has three points along an axis: tori need whole
#: cells, and open sides that cut cells, now here, now there, are compared with sides that do not.
SIZES = {2: (8, 16, 32, 64), 3: (6, 8, 12, 16), 4: (4, 5, 6, 8), 5: (3, 4, 5, 6)}
_THREEFOLD = (12, 24, 36, 60)
#: Systems with real studies on which the model of the fits was worked out, and first looked at.
_MADE_WITH = (
    "bcc-site-open", "cubic-bond-open", "cubic-bond-periodic", "fcc-bond-periodic",
    "honeycomb-bond-open", "kagome-bond-periodic", "kagome-site-open", "square-bond-open",
    "square-bond-periodic", "triangular-site-open",
)  # fmt: skip
#: Systems of which there are 3e7 samples.
_LONG = (
    "square-site-open", "square-site-periodic", "triangular-bond-open", "honeycomb-site-periodic",
    "four-eight-bond-open", "three-twelve-bond-periodic", "kagome-site-periodic",
    "ruby-bond-open", "cubic-site-periodic", "cubic-site-open", "diamond-bond-periodic",
    "trellis-bond-periodic", "bcc-bond-periodic", "snub-square-bond-open",
)  # fmt: skip


@dataclass(frozen=True)
class System:
    """What is sampled: a lattice's bonds or sites, one boundary for each axis, and sizes."""

    lattice: str
    model: str
    boundary: tuple[str, ...]
    sizes: tuple[int, ...]
    mark: str = ""

    @property
    def name(self) -> str:
        """The name of its file and its line of the table."""
        kinds = self.boundary[:1] if len(set(self.boundary)) == 1 else self.boundary
        return "-".join([self.lattice, self.model, *kinds, *([self.mark] if self.mark else [])])

    @property
    def aside(self) -> str:
        """Why it judges nothing, in two words, or "".

        Seen: the model of the fits was worked out on it.  Cut cells: open sides cut its unit cells
        differently from size to size, which no fit describes, and percolab says so.
        """
        if self.name in _MADE_WITH:
            return "seen"
        cell, study = self.study.structure.cell, self.study
        for axis, kind in enumerate(self.boundary):
            rests = {study.structure.shape(size)[axis] % cell[axis] for size in self.sizes}
            if kind == "open" and len(rests) > 1:
                return "cut cells"
        return ""

    @property
    def seed(self) -> int:
        """A seed of its own."""
        return zlib.crc32(self.name.encode())

    @property
    def study(self) -> Any:
        """The study that `percolab sweep` would make of it."""
        from percolab.lattices.lattice import load_lattice
        from percolab.tasks.study import Study

        return Study(
            structure=load_lattice(self.lattice),
            sizes=self.sizes,
            boundary=self.boundary,
            model=self.model,
            seed=self.seed,
        )

    def known(self) -> tuple[float, float]:
        """Return the known threshold and its error, 0 where it is exact."""
        from percolab.lattices.lattice import load_lattice

        found = load_lattice(self.lattice).threshold(self.model)
        assert found is not None
        return found.value, found.error


def systems() -> list[System]:
    """Return all systems: those that the model was made without come first."""
    from percolab.lattices.lattice import lattice_names, load_lattice

    found = []
    for name in lattice_names():
        lattice = load_lattice(name)
        for model in ("bond", "site"):
            for kind in ("open", "periodic"):
                sizes = SIZES[lattice.dimension]
                if kind == "periodic" and 3 in lattice.cell:
                    sizes = _THREEFOLD
                boundary = (kind,) * lattice.dimension
                if lattice.threshold(model) is not None:
                    found.append(System(name, model, boundary, sizes))
                if kind == "open" and 3 in lattice.cell:
                    found.append(System(name, model, boundary, _THREEFOLD, "whole-cells"))
                if kind == "open" and lattice.dimension == 4:
                    found.append(System(name, model, boundary, (6, 8, 10, 12), "larger"))
    found.append(System("cubic", "bond", ("open", "periodic", "periodic"), SIZES[3]))
    found.append(System("cubic", "site", ("open",) * 3, (8, 12, 16, 24), "to-24"))
    found.append(System("honeycomb", "bond", ("open", "open"), (32, 64, 128, 256), "default-sizes"))
    return sorted(found, key=lambda item: item.aside == "seen")


def plan(scale: float) -> list[tuple[System, int]]:
    """Return what is sampled, in order: two and three dimensions first, a dozen to 3e7 samples."""
    low = [item for item in systems() if len(item.boundary) <= 3]
    high = [item for item in systems() if len(item.boundary) > 3]
    long = [item for item in low if item.name in _LONG]
    passes = [(low, 2_000_000), (high, FINE), (low, 5_000_000), (high, 2_000_000)]
    passes.append((long, 30_000_000))
    rounded = [(few, max(round(scale * samples / PIECE), 1) * PIECE) for few, samples in passes]
    return [(item, samples) for few, samples in rounded for item in few]


@dataclass
class Counts:
    """The counts of a system; fields as in its file."""

    sizes: np.ndarray
    p: np.ndarray
    ends: np.ndarray
    counts: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Counts:
        """Return what a file holds."""
        with np.load(path, allow_pickle=False) as file:
            return cls(*(file[name] for name in ("sizes", "p", "ends", "counts")))

    def write(self, path: Path) -> None:
        """Put a whole file in the place of the earlier one."""
        beside = path.with_suffix(".part")
        with beside.open("wb") as file:
            np.savez_compressed(file, **vars(self))
        beside.replace(path)

    @property
    def samples(self) -> int:
        """Samples of every size."""
        return int(self.ends[-1]) if self.ends.size else 0

    def studies(self, samples: int, most: int) -> np.ndarray:
        """Return the counts of studies of so many samples each, int64 (studies, n, m)."""
        number = min(self.samples // samples, most)
        whole = np.cumsum(self.counts, axis=0, dtype=np.int64)
        whole = np.concatenate([np.zeros_like(whole[:1]), whole])
        at = np.searchsorted(np.append(0, self.ends), samples * np.arange(number + 1))
        assert np.array_equal(np.append(0, self.ends)[at], samples * np.arange(number + 1))
        return np.diff(whole[at], axis=0)


def new_counts(system: System, device: Any, share: float) -> Counts:
    """Return the counts of no samples, at the p that the pilot of a sweep places."""
    from percolab.kinds.pilots import percolation as pilot
    from percolab.tasks.kind import PilotConditions

    # Processes share the memory of a GPU, of which a pilot takes all otherwise.
    with mock.patch.object(pilot, "GridSampler", partial(pilot.GridSampler, share=share)):
        grids = pilot.place_probabilities(system.study, PilotConditions(None, device))
    p = np.full((len(system.sizes), max(map(len, grids.values()))), np.nan)
    for row, size in zip(p, system.sizes, strict=True):
        row[: len(grids[size])] = grids[size]
    nothing = np.zeros((0, *p.shape), np.int32)
    return Counts(np.array(system.sizes), p, np.zeros(0, np.int64), nothing)


class SizeCounter:
    """Counts what spans, or wraps, along the last axis in samples of one size."""

    def __init__(self, system: System, size: int, p: Sequence[float], device: Any, share: float):
        from percolab.bonds.words import p_to_threshold
        from percolab.measure.columns import open_axes
        from percolab.measure.wrapping import FIRST_WRAPPING
        from percolab.tasks.kind import make_sampler

        task = system.study.task(size, tuple(p))
        self._sampler, self._device = make_sampler(task, device=device, share=share), device
        self._thresholds = np.array([p_to_threshold(value) for value in p], np.uint64)
        axes = open_axes(task.boundary)
        self._bit = axes[-1] if axes else FIRST_WRAPPING + len(task.boundary) - 1

    def count(self, first: int, last: int) -> np.ndarray:
        """Return the counts of samples first ... last - 1 in pieces, int64 (pieces, m)."""
        from percolab.measure.rows import SPANNING

        samples = np.arange(first, last, dtype=np.uint64)
        with self._device.driven():
            rows = self._sampler.grid_rows(samples, self._thresholds)
        spans = rows[:, :, SPANNING] >> self._bit & 1
        starts = np.array(piece_ends(first, last)[:-1]) - first
        return np.add.reduceat(spans, np.append(0, starts).astype(int), axis=0)


def piece_ends(first: int, last: int) -> list[int]:
    """Return where the pieces of samples first ... last - 1 end: at multiples of their size."""
    found, at = [], first
    while at < last:
        size = PIECE if at < FINE else STEP
        at = min((at // size + 1) * size, last)
        found.append(at)
    return found


def parts_of(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Return first ... last cut at all multiples of a size."""
    cuts = [first, *range((first // size + 1) * size, last, size), last]
    return list(pairwise(cuts))


def extend(
    system: System, samples: int, path: Path, device: Any, *, share: float, deadline: float
) -> Counts:
    """Bring the file of a system to so many samples, or to as many as there is time for."""
    held = Counts.read(path) if path.exists() else new_counts(system, device, share)
    counters = [
        SizeCounter(system, size, row[~np.isnan(row)], device, share / len(system.sizes))
        for size, row in zip(system.sizes, held.p, strict=True)
    ]
    ends, counts = [held.ends], [held.counts]
    for begin, until in parts_of(held.samples, samples, _ROUND):
        if time.time() > deadline:
            break
        ends.append(np.array(piece_ends(begin, until)))
        found = np.zeros((ends[-1].size, *held.p.shape), np.int32)
        for n, counter in enumerate(counters):
            parts = [counter.count(*part) for part in parts_of(begin, until, STEP)]
            own = np.concatenate(parts)
            found[:, n, : own.shape[1]] = own
        counts.append(found)
    new = Counts(held.sizes, held.p, np.concatenate(ends), np.concatenate(counts))
    if new.samples > held.samples:
        new.write(path)
    return new


@dataclass(frozen=True)
class Asked:
    """How a plan is worked off: where files lie, on what, until when, and by how many processes."""

    folder: Path
    device: str
    deadline: float
    processes: int


def work(jobs: Sequence[tuple[System, int]], taken: Any, asked: Asked) -> None:
    """Take jobs until there are none left, or no time."""
    from percolab.kernels.device import Device

    device, share = Device.parse_all(asked.device), 0.7 / asked.processes
    while time.time() < asked.deadline:
        with taken.get_lock():
            number = taken.value
            taken.value += 1
        if number >= len(jobs):
            return
        system, samples = jobs[number]
        path = asked.folder / f"{system.name}.npz"
        if path.exists() and Counts.read(path).samples >= samples:
            continue
        begin = time.perf_counter()
        try:
            found = extend(system, samples, path, device, share=share, deadline=asked.deadline)
            said = f"{found.samples} of {samples} samples"
        except Exception as error:  # One system that fails must not end the others.
            said = f"{type(error).__name__}: {error}"
        print(f"{system.name}: {said}, {time.perf_counter() - begin:.1f} s", flush=True)


def sample_all(jobs: Iterable[tuple[System, int]], asked: Asked) -> None:
    """Work off a plan by several processes, which share a GPU and have a kernel cache each."""
    asked.folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    taken, jobs = context.Value("q", 0), list(jobs)
    if asked.processes == 1:
        work(jobs, taken, asked)
        return
    # Memory that a process has done with is there for the others at once.
    os.environ["NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT"] = "0"
    with contextlib.ExitStack() as stack:
        workers = []
        for _ in range(asked.processes):
            # Two processes that save kernels of one file may take each other's for their own.
            os.environ["NUMBA_CACHE_DIR"] = stack.enter_context(tempfile.TemporaryDirectory())
            workers.append(context.Process(target=work, args=(jobs, taken, asked)))
            workers[-1].start()
        for worker in workers:
            worker.join()


#: Spins at which K_c is known: lattice, model and sizes, on tori.
SPINS = {
    "square-ising": ("square", "ising", (8, 16, 32)),
    "triangular-ising": ("triangular", "ising", (8, 16, 32)),
    "honeycomb-ising": ("honeycomb", "ising", (8, 16, 32)),
    "square-potts-q3": ("square", "potts:q=3", (8, 16, 32)),
    "cubic-ising": ("cubic", "ising", (8, 12, 16)),
}


def spin_study(name: str) -> Any:
    """Return the study that `percolab sweep` would make of these spins."""
    from percolab.lattices.lattice import load_lattice
    from percolab.tasks.study import Study

    lattice, model, sizes = SPINS[name]
    structure = load_lattice(lattice)
    seed = zlib.crc32(name.encode())
    boundary = ("periodic",) * structure.dimension
    return Study(structure=structure, sizes=sizes, boundary=boundary, model=model, seed=seed)


def sample_spins(name: str, path: Path, device: Any, studies: int) -> None:
    """Write the moments of every chain of so many default studies, and how many chains each has.

    Of every size L: p_L float64 (m,), chains_L of a study, sweeps_L of a chain that are measured,
    and each moment, "L NAME", float32 (chains of all studies, m), summed over the sweeps.
    """
    from percolab.kinds.pilots.spins import find_burn_in, place_spins
    from percolab.tasks.kind import PilotConditions, make_sampler
    from percolab.tasks.study import StopRule

    study, found, pilot = spin_study(name), {}, PilotConditions(None, device)
    rule = StopRule(samples=dict.fromkeys(study.sizes, SPIN_SAMPLES))
    for size in study.sizes:
        p = place_spins(study.tasks[size], pilot)
        task = study.task(size, p)
        task = study.with_burn_in(task, find_burn_in(task, pilot).updates)
        task = study.kind.choose_blocks(study, task, rule.samples[task.size])
        each = -(-SPIN_SAMPLES // task.block_size)
        sampler = make_sampler(task, device=device, share=0.5)
        found |= {f"p_{size}": np.array(p), f"chains_{size}": np.array(each)}
        found[f"sweeps_{size}"] = np.array(task.block_size)
        parts: dict[str, list[np.ndarray]] = {}
        numbers = range(each * studies)
        for first in range(0, len(numbers), sampler.blocks_per_call):
            blocks = sampler.sample(numbers[first : first + sampler.blocks_per_call])
            for key, sums in chain_moments(task, blocks).items():
                parts.setdefault(key, []).append(sums.astype(np.float32))
        found |= {f"{size} {key}": np.concatenate(item) for key, item in parts.items()}
    beside = path.with_suffix(".part")
    with beside.open("wb") as file:
        np.savez_compressed(file, **found)
    beside.replace(path)


def chain_moments(task: Any, blocks: Iterable[Any]) -> dict[str, np.ndarray]:
    """Return the sums over chains of what the quantities of a default fit of spins are made of."""
    from percolab.analysis.quantities import choose_quantities, list_quantities
    from percolab.analysis.study_kinds import find_analysis
    from percolab.store.task_result import TaskResult

    item = TaskResult(task, {block.number: block for block in blocks})
    analysis = find_analysis(task)
    held = analysis.moment_names(item)
    known = list_quantities(task.boundary, spins=True)
    names = [each.name for each in known if set(each.needs) <= held]
    chosen = choose_quantities(["all"], task.boundary, names)
    needs = sorted({name for each in chosen for name in each.needs})
    return {name: analysis.moment_sums(item, name, np.array(task.p)) for name in needs}


def sample_all_spins(folder: Path, device_name: str, budget: float, studies: int) -> None:
    """Sample the spins whose files are not there, as long as there is time."""
    from percolab.kernels.device import Device

    deadline = time.time() + budget
    folder.mkdir(parents=True, exist_ok=True)
    device = Device.parse_all(device_name)
    for name in SPINS:
        path = folder / f"spins-{name}.npz"
        if path.exists() or time.time() > deadline:
            continue
        begin = time.perf_counter()
        sample_spins(name, path, device, studies)
        size = path.stat().st_size / 2**20
        print(f"{name}: {studies} studies, {size:.1f} MiB, {time.perf_counter() - begin:.1f} s",
              flush=True)  # fmt: skip
