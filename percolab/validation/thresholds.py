"""Thresholds from short sweeps against exact ones, by the analysis that a user's sweep gets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from percolab.analysis.stored_fits import fit_results
from percolab.analysis.theory.planar import THRESHOLDS
from percolab.lattices.lattice import load_lattice
from percolab.run.runner import run_study
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study
from percolab.validation.check import Check, Conditions, Outcome

#: Site percolation takes about ten times as long a sample as bond percolation.
_SAMPLES = {"bond": 10_000, "site": 5_000}


def _threshold(lattice_name: str, model: str, conditions: Conditions) -> Iterator[Outcome]:
    sizes = (64, 128, 256, 512) if conditions.full else (16, 32, 64, 128)
    samples = _SAMPLES[model] * conditions.count(1, 10)
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
    exact = THRESHOLDS[lattice_name, model]
    note = f"L = {', '.join(map(str, sizes))}"
    # Not 1/nu: at these sizes the width of the transition has corrections beyond its error.
    name = f"p_c, {lattice_name} {model}s"
    yield Outcome(name, fit.threshold, exact, fit.threshold_error, note)


CHECKS = tuple(
    Check("thresholds", f"{lattice_name} {model}s", partial(_threshold, lattice_name, model))
    for lattice_name, model in THRESHOLDS
)
