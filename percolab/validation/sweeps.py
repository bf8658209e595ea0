"""Sweeps as a whole: one that was interrupted and continued, and one with the other generator."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_observables
from percolab.run.request import Watcher
from percolab.run.runner import run_study
from percolab.run.stored import Interrupted
from percolab.store.results import ResultsWriter, read_results
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study
from percolab.validation.check import Check, Conditions, Outcome, differing
from percolab.validation.deviates import with_joint
from percolab.validation.sampling import sampled_rows

_SIZES, _SAMPLES, _BLOCK = (8, 16), 400, 10


class _Interrupter(Watcher):
    """Presses Ctrl-C, as it were, when the first blocks are finished."""

    pressed = False

    def advanced(self, *_: Any) -> None:
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


def _continuation(conditions: Conditions) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        once, twice = Path(folder, "once.h5"), Path(folder, "twice.h5")
        _run(once, conditions, _SAMPLES)
        watcher = _Interrupter()
        try:
            # A GPU makes all blocks in one go: half of them are left for the second run.
            _run(twice, conditions, _SAMPLES // 2, watcher)
        except Interrupted:
            if not watcher.pressed:
                raise
        blocks = sum(len(item.blocks) for item in read_results(twice).tasks.values())
        _run(twice, conditions, _SAMPLES)
        names, wrong = _differing_datasets(once, twice)
    note = f"{names} datasets; interrupted at {blocks} of {len(_SIZES) * _SAMPLES // _BLOCK} blocks"
    yield differing("datasets unlike those of a run in one go", wrong, note)


def _run(path: Path, conditions: Conditions, samples: int, watcher: Watcher | None = None) -> None:
    study = Study(
        structure=load_lattice("square"),
        sizes=_SIZES,
        boundary=("open", "open"),
        p=(0.4, 0.5, 0.6),
        seed=conditions.stream_seed("continuation"),
        block_size=_BLOCK,
    )
    rule = StopRule(samples=dict.fromkeys(_SIZES, samples))
    with ResultsWriter(path) as writer:
        run_study(study, rule, writer=writer, device=conditions.device, watcher=watcher)


def _differing_datasets(one: Path, other: Path) -> tuple[int, int]:
    """Return how many datasets two files hold together, and how many are not the same in both."""
    first, second = _datasets(one), _datasets(other)
    names = first.keys() | second.keys()
    equal = [name for name in first.keys() & second.keys() if first[name] == second[name]]
    return len(names), len(names) - len(equal)


def _datasets(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    found: dict[str, tuple[str, tuple[int, ...], bytes]] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = (str(item.dtype), item.shape, item[...].tobytes())

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return found


def _generators(conditions: Conditions) -> Iterator[Outcome]:
    """Samples of XORWOW and of Philox have the same means."""
    size, samples = conditions.count(32, 256), conditions.count(50_000, 500_000)
    boundary = ("open", "open")
    topology = load_lattice("square").topology((size, size), boundary)
    rows = [
        sampled_rows(conditions, topology, 0.5, samples, stream=("generators", rng), rng=rng)
        for rng in ("xorwow", "philox")
    ]
    outcomes, apart = [], []
    for observable in list_observables(boundary):
        one, other = (observable.of_rows(each).astype(np.float64) for each in rows)
        sigma = float(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / samples))
        name, note = (
            f"mean {observable.name}, square, L = {size}",
            "value: XORWOW; expected: Philox",
        )
        outcomes.append(Outcome(name, float(one.mean()), float(other.mean()), sigma, note))
        apart.append(one - other)
    yield from with_joint("XORWOW and Philox", outcomes, np.stack(apart, axis=1))


CHECKS = (
    Check("sweeps", "interrupted and continued", _continuation),
    Check("sweeps", "XORWOW and Philox", _generators),
)
