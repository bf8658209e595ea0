"""What the analysis of spins takes from stored results: moments, autocorrelations, starts, series.

A block is a chain; those of even number start ordered, those of odd number at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import (
    Autocorrelation,
    StartComparison,
    autocorrelation,
    compare_starts,
)
from percolab.analysis.quantities import BlockMoments
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.analysis.stored_data import moment_names, moment_sums
from percolab.analysis.thermodynamics import MOMENTS, System, Thermodynamics, thermodynamics
from percolab.errors import AnalysisError, InputError
from percolab.lattices.extent import num_bonds_of
from percolab.measure.spins import LAGS
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.task_result import TaskResult

#: What is known of every sweep of a chain: the energy, the order parameter, its improved estimator.
SERIES = ("satisfied", "state_squares", "sum_squares")
#: Groups of chains that are left out in turn for the errors of autocorrelations.
_GROUPS = 50


def spin_tasks_of(results: Results) -> list[TaskResult]:
    """Return the tasks of spins that have blocks, ascending in L."""
    items = [item for item in joined(results).tasks.values() if item.blocks and item.task.has_spins]
    return sorted(items, key=lambda item: (item.task.size, item.task.seed, item.task.id))


def system_of(item: TaskResult) -> System:
    """Return what of a task its thermal means depend on beside moments."""
    task = item.task
    bonds = num_bonds_of(task.structure, task.shape, task.boundary)
    return System(task.draw, task.num_sites, bonds)


def thermodynamics_of(results: Results) -> list[Thermodynamics]:
    """Return the thermal means of all tasks of spins that have blocks, ascending in L."""
    return [_thermodynamics(item) for item in spin_tasks_of(results)]


def _thermodynamics(item: TaskResult) -> Thermodynamics:
    p, held = np.array(item.task.p), moment_names(item)
    moments = BlockMoments(
        L=item.task.size,
        p=p,
        samples=np.full(len(item.blocks), item.task.block_size),
        moments={name: moment_sums(item, name, p) for name in MOMENTS if name in held},
        label=item.task.id,
    )
    return thermodynamics(moments, system_of(item))


@dataclass(frozen=True, eq=False)
class TaskAutocorrelations:
    """The autocorrelation of every series of one task, at m values of p.

    of_series:      by the names of SERIES, one for each p; None where a series does not vary
    p, temperature: float64 (m,)
    """

    L: int
    p: Floats
    temperature: Floats
    of_series: Mapping[str, list[Autocorrelation | None]]
    label: str = ""


def autocorrelations_of(results: Results) -> list[TaskAutocorrelations]:
    """Return the autocorrelations of all tasks of spins that have blocks, ascending in L."""
    return [
        TaskAutocorrelations(
            L=item.task.size,
            p=(p := np.array(item.task.p)),
            temperature=system_of(item).temperatures(p),
            of_series={
                name: [
                    _autocorrelation(*lagged_of(item, name, at), item.task.block_size)
                    for at in range(p.size)
                ]
                for name in SERIES
            },
            label=item.task.id,
        )
        for item in spin_tasks_of(results)
    ]


def lagged_of(item: TaskResult, name: str, at: int) -> tuple[Floats, Floats]:
    """Return lagged products and edges of a series at one p, float64 (n_blocks, LAGS + 1) each."""
    width = LAGS + 1
    first = 2 * width * SERIES.index(name)
    found = item.extra("lagged")[:, at, first : first + 2 * width]
    return found[:, :width], found[:, width:]


def _autocorrelation(lagged: Floats, edges: Floats, sweeps: int) -> Autocorrelation | None:
    try:
        return autocorrelation(lagged, edges, sweeps)
    except AnalysisError:
        return None


def correlation_errors(item: TaskResult, name: str, at: int) -> Floats:
    """Return the errors of rho of a series at one p, float64 (lags + 1,), by a jackknife.

    Left out in turn are chains, or groups of them where there are many; NaN of a single chain.
    AnalysisError: the series does not vary.
    """
    lagged, edges = lagged_of(item, name, at)
    groups = np.array_split(np.arange(len(lagged)), min(len(lagged), _GROUPS))
    sweeps = item.task.block_size
    without = [
        autocorrelation(np.delete(lagged, own, 0), np.delete(edges, own, 0), sweeps).correlation
        for own in groups
        if len(groups) > 1
    ]
    return jackknife_error(np.array(without or [autocorrelation(lagged, edges, sweeps).correlation]))


@dataclass(frozen=True)
class Start:
    """The means of one series at one p, of ordered starts against random ones."""

    L: int
    p: float
    series: str
    comparison: StartComparison


def starts_of(results: Results) -> list[Start]:
    """Return ordered against random starts of every size, p and series; [] with too few chains.

    What differs says that the burn-in was too short, or that the transition is of first order.
    """
    found = []
    for item in spin_tasks_of(results):
        is_random = item.numbers % 2 == 1
        if min(np.count_nonzero(is_random), np.count_nonzero(~is_random)) < 2:
            continue
        for name in SERIES:
            means = item.column(name) / item.task.block_size
            for at, p in enumerate(item.task.p):
                own = means[:, at]
                compared = compare_starts(own[~is_random], own[is_random])
                found.append(Start(item.task.size, p, name, compared))
    return found


def series_of(item: TaskResult) -> dict[str, NDArray[np.int64]]:
    """Return every sweep of every chain, by the names of SERIES: int64 (m, n_blocks, sweeps).

    InputError: they were not asked for (--measure series).
    """
    found = item.extra("series")
    chains, points, _ = found.shape
    parts = found.reshape(chains, points, len(SERIES), item.task.block_size)
    if not chains:
        raise InputError(f"L = {item.task.size}: no chains yet")
    return {name: np.moveaxis(parts[:, :, n], 0, 1) for n, name in enumerate(SERIES)}
