"""What the analysis of spins takes from stored results: thermal means, and series of chains.

A block is a chain; those of even number start ordered, those of odd number at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import autocorrelation
from percolab.analysis.quantities import BlockMoments
from percolab.analysis.spin_fit import SERIES
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.analysis.stored_data import moment_names, moment_sums
from percolab.analysis.thermodynamics import MOMENTS, System, Thermodynamics, thermodynamics
from percolab.errors import InputError
from percolab.lattices.extent import count_bonds
from percolab.measure.spins import LAGS
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Groups of chains that are left out in turn for the errors of autocorrelations.
_GROUPS = 50


def list_spin_tasks(results: StoredResults) -> list[TaskResult]:
    """Return the tasks of spins that have blocks, ascending in L."""
    items = [
        item for item in joined(results).tasks.values() if item.blocks and item.has("satisfied")
    ]
    return sorted(items, key=lambda item: (item.task.size, item.task.seed, item.task.id))


def describe_system(item: TaskResult) -> System:
    """Return what of a task its thermal means depend on beside moments."""
    task = item.task
    bonds = count_bonds(task.structure, task.shape, task.boundary)
    return System(task.draw, task.num_sites, bonds)


def compute_thermodynamics(results: StoredResults) -> list[Thermodynamics]:
    """Return the thermal means of all tasks of spins that have blocks, ascending in L."""
    return [_thermodynamics(item) for item in list_spin_tasks(results)]


def _thermodynamics(item: TaskResult) -> Thermodynamics:
    p, held = np.array(item.task.p), moment_names(item)
    moments = BlockMoments(
        L=item.task.size,
        p=p,
        samples=np.full(len(item.blocks), item.task.block_size),
        moments={name: moment_sums(item, name, p) for name in MOMENTS if name in held},
        label=item.task.id,
    )
    return thermodynamics(moments, describe_system(item))


def compute_correlation_lengths(item: TaskResult) -> tuple[Floats, Floats]:
    """Return the correlation length along every periodic axis and its error: (axes, m) each.

    The second-moment length in grid points, from the smallest wave vector k = 2 pi / L:

        xi = sqrt(G(0) / G(k) - 1) / (2 sin(k / 2)),    G(0) = sum N_a^2 - N^2 / q,    G(k) = F_a

    with means of both; errors by a jackknife over chains.  F. Cooper, B. Freedman and D. Preston,
    Nucl. Phys. B 210, 210 (1982).  InputError: it was not asked for (--measure correlation).
    """
    task = item.task
    factors = item.extra("structure_factor")
    uniform = item.column("state_squares").astype(float)
    uniform = uniform - task.block_size * task.num_sites**2 / task.draw.states
    values, errors = [], []
    for axis, (length, kind) in enumerate(zip(task.shape, task.boundary, strict=True)):
        if kind != "periodic":
            continue
        unit = 2 * np.sin(np.pi / length)

        def length_of(zero: Floats, wave: Floats, unit: float = unit) -> Floats:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(np.sqrt(zero / wave - 1) / unit)

        wave = factors[:, :, axis]
        totals = uniform.sum(axis=0), wave.sum(axis=0)
        values.append(length_of(*totals))
        left = length_of(totals[0] - uniform, totals[1] - wave)
        errors.append(jackknife_error(left))
    return np.array(values), np.array(errors)


def read_lagged(item: TaskResult, name: str, at: int) -> tuple[Floats, Floats]:
    """Return lagged products and edges of a series at one p, float64 (n_blocks, LAGS + 1) each."""
    width = LAGS + 1
    first = 2 * width * list(SERIES).index(name)
    found = item.extra("lagged")[:, at, first : first + 2 * width]
    return found[:, :width], found[:, width:]


def correlation_errors(item: TaskResult, name: str, at: int) -> Floats:
    """Return the errors of rho of a series at one p, float64 (lags + 1,), by a jackknife.

    Left out in turn are chains, or groups of them where there are many; NaN of a single chain.
    AnalysisError: the series does not vary.
    """
    lagged, edges = read_lagged(item, name, at)
    groups = np.array_split(np.arange(len(lagged)), min(len(lagged), _GROUPS))
    sweeps = item.task.block_size
    without = [
        autocorrelation(np.delete(lagged, own, 0), np.delete(edges, own, 0), sweeps).correlation
        for own in groups
        if len(groups) > 1
    ]
    return jackknife_error(
        np.array(without or [autocorrelation(lagged, edges, sweeps).correlation])
    )


def read_series(item: TaskResult) -> dict[str, NDArray[np.int64]]:
    """Return every sweep of every chain, by the names of SERIES: int64 (m, n_blocks, sweeps).

    InputError: they were not asked for (--measure series).
    """
    found = item.extra("series")
    chains, points, _ = found.shape
    parts = found.reshape(chains, points, len(SERIES), item.task.block_size)
    if not chains:
        raise InputError(f"L = {item.task.size}: no chains yet")
    return {name: np.moveaxis(parts[:, :, n], 0, 1) for n, name in enumerate(SERIES)}
