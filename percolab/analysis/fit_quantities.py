"""Dimensionless quantities of stored results, by their moments, and the joint fit of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from percolab.analysis.fits import notes_of, spanning_counts, transition_grid
from percolab.analysis.known_exponents import Known, known_exponents
from percolab.analysis.observations import MIN_SIZES, BlockMoments, what_blocks_lack, what_lacks
from percolab.analysis.quantities import (
    PROBABILITY,
    Floats,
    Quantity,
    choose_quantities,
    correction_exponents,
    quantities_of,
)
from percolab.analysis.quantity_fits import QuantityAnalysis, analyse_quantities
from percolab.analysis.theory.critical import critical_probability
from percolab.errors import AnalysisError
from percolab.measure.columns import spanning_names
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.task_result import TaskResult


def fit_quantities(
    results: Results,
    names: Sequence[str] = ("all",),
    *,
    omega: float | None = None,
    min_size: int | None = None,
    degree: int | None = None,
    corrections: str | None = None,
) -> QuantityAnalysis:
    """Fit p_c to several dimensionless quantities of stored results at once.

    names: of the quantities (:mod:`percolab.analysis.quantities`), or "all".  omega: exponent of
    the leading correction of all of them; by default that of each kind.  min_size: smallest L to
    use.  degree, corrections ("none", "b", "bc", "b2", "bc2"): held; by default chosen.

    InputError: no such quantity.  AnalysisError: the data cannot give a threshold.
    """
    structure, boundary = results.study.lattice, results.study.boundary
    if not structure.is_scalable:
        raise AnalysisError(f"{structure.name} has no sizes that scale, so no joint fit")
    chosen = choose_quantities(names, boundary, available_quantities(results))
    moments = moments_of(results, chosen)
    notes: list[str] = []
    if list(names) == ["all"]:
        chosen, notes = _fittable(chosen, moments)
    moments, left_out = _with_enough_blocks(moments, chosen)
    notes += left_out
    omegas, omega_2 = correction_exponents(chosen, boundary)
    if omega is not None:
        omegas, omega_2 = [(omega,) * len(chosen)], 2 * omega
    y_t = known_exponents(len(boundary)).get("1/nu")
    found = analyse_quantities(
        moments,
        chosen,
        omegas=omegas,
        omega_2=omega_2,
        y_t=y_t.value if y_t else None,
        min_size=min_size,
        degree=degree,
        corrections=corrections,
    )
    known = tuple(_known(results, item) for item in chosen)
    return replace(found, known=known, notes=(*notes_of(results), *notes, *found.notes))


def _fittable(
    quantities: Sequence[Quantity], moments: Sequence[BlockMoments]
) -> tuple[tuple[Quantity, ...], list[str]]:
    """Return the quantities with sizes and p enough, all if there is none, and notes on others."""
    lacks = [what_lacks(item, moments) for item in quantities]
    kept = tuple(item for item, lack in zip(quantities, lacks, strict=True) if not lack)
    return kept or tuple(quantities), [f"{lack}: left out" for lack in lacks if lack]


def _with_enough_blocks(
    moments: list[BlockMoments], quantities: Sequence[Quantity]
) -> tuple[list[BlockMoments], list[str]]:
    """Return the tasks whose blocks tell a covariance, all if too few sizes have, and notes.

    Of all, the one with the fewest blocks comes first: it says how many quantities they allow.
    """
    lacks = [what_blocks_lack(item.grouped(), sum(map(item.has, quantities))) for item in moments]
    kept = [item for item, lack in zip(moments, lacks, strict=True) if not lack]
    if len({item.L for item in kept}) < MIN_SIZES:
        return sorted(moments, key=lambda item: item.samples.size), []
    return kept, [f"{lack}: left out" for lack in lacks if lack]


def _known(results: Results, quantity: Quantity) -> Known | None:
    """Return the exact value of a quantity at p_c, or None."""
    if quantity.kind != PROBABILITY:
        return None
    study = results.study
    parts = [critical_probability(study.lattice, study.boundary, name) for name in quantity.needs]
    exact = [part for part in parts if part is not None]
    if len(exact) < len(parts):
        return None
    return replace(exact[0], value=sum(part.value for part in exact) / len(exact))


def moment_names(item: TaskResult) -> set[str]:
    """Return the names of the moments that a task's blocks hold."""
    if item.task.method == "threshold":
        return set(spanning_names(item.task.boundary))
    names = [observable.name for observable in item.observables]
    products = {f"{a}*{b}" for a in names for b in names}
    return {*names, *products, *(("s^4",) if item.has("sum_fourths") else ())}


def available_quantities(results: Results) -> list[str]:
    """Return the names of the quantities that at least one task of a file has."""
    held = [moment_names(item) for item in results.tasks.values() if item.blocks]
    known = quantities_of(results.study.boundary)
    return [item.name for item in known if any(set(item.needs) <= names for names in held)]


def moments_of(results: Results, quantities: Sequence[Quantity]) -> list[BlockMoments]:
    """Return the moments of all tasks that have blocks, ascending in L.

    Tasks with the same size, p, block size and moments differ in their seeds alone: they are one
    task with more blocks.  AnalysisError: two tasks hold the same samples.
    """
    items = [item for item in joined(results).tasks.values() if item.blocks]
    _check_independent(items)
    alike: dict[tuple, list[BlockMoments]] = {}
    for item in sorted(items, key=lambda item: (item.task.size, item.task.id)):
        found = _moments_of(item, quantities)
        if found.moments:
            key = (found.L, found.p.tobytes(), item.task.block_size, tuple(sorted(found.moments)))
            alike.setdefault(key, []).append(found)
    return [_pooled(parts) for parts in alike.values()]


def _moments_of(item: TaskResult, quantities: Sequence[Quantity]) -> BlockMoments:
    held = moment_names(item)
    needed = sorted({name for each in quantities if set(each.needs) <= held for name in each.needs})
    p = np.array(item.task.p)
    if item.task.method == "threshold" and needed:
        p = transition_grid(item.thresholds(needed[0]))
    return BlockMoments(
        L=item.task.size,
        p=p,
        samples=np.full(len(item.blocks), item.task.block_size),
        moments={name: _sums_of(item, name, p) for name in needed},
        label=item.task.id,
    )


def _sums_of(item: TaskResult, name: str, p: Floats) -> Floats:
    """Return the block sums of a moment, float64 (n_blocks, m)."""
    if item.task.method == "threshold":
        return spanning_counts(item.thresholds(name), p).astype(float)
    if name == "s^4":
        return np.asarray(item.extra("powers")[..., 1], np.float64)
    if "*" not in name:
        return item.column(name).astype(float)
    names = [observable.name for observable in item.observables]
    pair = sorted(names.index(part) for part in name.split("*"))
    rows, columns = np.triu_indices(len(names))
    at = int(np.flatnonzero((rows == pair[0]) & (columns == pair[1]))[0])
    return item.products()[:, :, at]


def _pooled(parts: Sequence[BlockMoments]) -> BlockMoments:
    """Return tasks that differ in their seed alone as one."""
    names = parts[0].moments
    return replace(
        parts[0],
        samples=np.concatenate([part.samples for part in parts]),
        moments={name: np.concatenate([part.moments[name] for part in parts]) for name in names},
    )


def _check_independent(items: Sequence[TaskResult]) -> None:
    """Raise AnalysisError if two tasks hold a sample of the same random numbers."""
    spans: dict[int, list[tuple[int, int, TaskResult]]] = {}
    for item in items:
        size = item.task.block_size
        own = [(n * size, (n + 1) * size, item) for n in item.numbers.tolist()]
        spans.setdefault(item.task.stream_seed, []).extend(own)
    for ranges in spans.values():
        ranges.sort(key=lambda part: part[:2])
        for (_, end, first), (start, _, second) in pairwise(ranges):
            if start < end:
                raise AnalysisError(
                    f"L = {first.task.size}: tasks {first.task.id} and {second.task.id} hold the "
                    f"same samples of seed {first.task.seed}, so they are not independent: sweep "
                    "one of them with another seed"
                )
