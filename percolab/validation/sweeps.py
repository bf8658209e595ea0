"""Checks of whole sweeps: thresholds, interruptions, and the two generators."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from percolab.analysis.stored_fits import fit_results
from percolab.analysis.theory.planar import THRESHOLDS
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import list_observables
from percolab.run.request import Observer
from percolab.run.runner import run_study
from percolab.run.stored import Interrupted
from percolab.store.results import ResultsWriter, encode, read_results
from percolab.tasks.study import StopRule, Study
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    compare_means,
    differing,
    sampled_rows,
)

_SIZES, _SAMPLES, _BLOCK = (8, 16), 400, 10


class _Interrupter(Observer):
    """An observer that raises KeyboardInterrupt once, when the first blocks are finished."""

    pressed = False

    def advanced(self, *_: Any) -> None:
        if not self.pressed:
            self.pressed = True
            raise KeyboardInterrupt


def _continuation(conditions: Conditions) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        once, twice = Path(folder, "once.h5"), Path(folder, "twice.h5")
        _run(once, conditions, _SAMPLES)
        observer = _Interrupter()
        try:
            # A GPU makes all blocks in one call, so half of them are left for the second run.
            _run(twice, conditions, _SAMPLES // 2, observer)
        except Interrupted:
            if not observer.pressed:
                raise
        blocks = sum(len(result.blocks) for result in read_results(twice).tasks.values())
        _run(twice, conditions, _SAMPLES)
        # Compare everything that is stored, except time and place of the runs.
        first, second = (encode(replace(read_results(path), runs=[])) for path in (once, twice))
    note = f"interrupted at {blocks} of {len(_SIZES) * _SAMPLES // _BLOCK} blocks"
    yield differing("files unlike those of a run in one go", int(first != second), note)


def _run(path: Path, conditions: Conditions, samples: int, observer: Any = None) -> None:
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
        run_study(study, rule, writer=writer, device=conditions.device, observer=observer)


def _generators(conditions: Conditions) -> Iterator[Outcome]:
    """Check that samples of XORWOW and of Philox have the same means."""
    size, samples = conditions.count(32, 256), conditions.count(50_000, 500_000)
    boundary = ("open", "open")
    topology = load_lattice("square").topology((size, size), boundary)
    rows = [
        sampled_rows(conditions, topology, 0.5, samples, stream=("generators", rng), rng=rng)
        for rng in ("xorwow", "philox")
    ]
    values = {}
    for observable in list_observables(boundary):
        one, other = (observable.of_rows(each).astype(np.float64) for each in rows)
        expected = float(other.mean())
        values[f"mean {observable.name}, square, L = {size}"] = one - other + expected, expected
    yield from compare_means("XORWOW and Philox", values, "value: XORWOW; expected: Philox")


#: A sample of site percolation takes about ten times as long as one of bond percolation.
_THRESHOLD_SAMPLES = {"bond": 10_000, "site": 5_000}


def _threshold(lattice_name: str, model: str, conditions: Conditions) -> Iterator[Outcome]:
    sizes = (64, 128, 256, 512) if conditions.full else (16, 32, 64, 128)
    samples = _THRESHOLD_SAMPLES[model] * conditions.count(1, 10)
    study = Study(
        structure=load_lattice(lattice_name),
        sizes=sizes,
        boundary=("open", "open"),
        seed=conditions.stream_seed("threshold", lattice_name, model),
        model=model,
        method="threshold",
    )
    rule = StopRule(samples=dict.fromkeys(sizes, samples))
    fit = fit_results(run_study(study, rule, device=conditions.device))
    exact, note = THRESHOLDS[lattice_name, model], f"L = {', '.join(map(str, sizes))}"
    # 1/nu is not checked: at these sizes the transition's width has corrections above its error.
    yield Outcome(f"p_c, {lattice_name} {model}s", fit.threshold, exact, fit.threshold_error, note)


THRESHOLD_CHECKS = tuple(
    Check("thresholds", f"{name} {model}s", partial(_threshold, name, model))
    for name, model in THRESHOLDS
)
CHECKS = (
    Check("sweeps", "interrupted and continued", _continuation),
    Check("sweeps", "XORWOW and Philox", _generators),
)
