"""Thermal means and series of chains from stored results of spins.

A block is a chain; those of even number start ordered, those of odd number at random.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import autocorrelation
from percolab.analysis.spin_fit import SERIES, read_lagged
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.analysis.stored_data import list_tasks, moment_names, read_moments
from percolab.analysis.thermodynamics import MOMENTS, System, Thermodynamics, thermodynamics
from percolab.errors import InputError
from percolab.lattices.extent import count_bonds
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Groups of chains of the jackknife for the errors of autocorrelations.
_GROUPS = 50


def list_spin_tasks(results: StoredResults) -> list[TaskResult]:
    """Return the tasks of spins that have blocks, ascending in L."""
    return list_tasks(results, "satisfied")


def describe_system(item: TaskResult) -> System:
    """Return the properties of a task that its thermal means depend on, but for the moments."""
    task = item.task
    bonds = count_bonds(task.structure, task.shape, task.boundary)
    return System(task.draw, task.num_sites, bonds)


def compute_thermodynamics(results: StoredResults) -> list[Thermodynamics]:
    """Return the thermal means of all tasks of spins that have blocks, ascending in L."""
    found = []
    for item in list_spin_tasks(results):
        names = [name for name in MOMENTS if name in moment_names(item)]
        found.append(thermodynamics(read_moments(item, names), describe_system(item)))
    return found


def compute_correlation_lengths(item: TaskResult) -> tuple[Floats, Floats]:
    """Return the correlation length along every periodic axis and its error: (axes, m) each.

    The second-moment length in grid points, from the smallest wave vector k = 2 pi / L:

        xi = sqrt(G(0) / G(k) - 1) / (2 sin(k / 2)),    G(0) = sum N_a^2 - N^2 / q,    G(k) = F_a

    with means of both; errors by a jackknife over chains.  F. Cooper, B. Freedman and D. Preston,
    Nucl. Phys. B 210, 210 (1982).  InputError: it was not measured (--measure correlation).
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

        def compute_length(zero: Floats, wave: Floats, unit: float = unit) -> Floats:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(np.sqrt(zero / wave - 1) / unit)

        wave = factors[:, :, axis]
        totals = uniform.sum(axis=0), wave.sum(axis=0)
        values.append(compute_length(*totals))
        left = compute_length(totals[0] - uniform, totals[1] - wave)
        errors.append(jackknife_error(left))
    return np.array(values), np.array(errors)


def correlation_errors(item: TaskResult, name: str, at: int) -> Floats:
    """Return the jackknife errors over chains of rho of a series at one p, float64 (lags + 1,).

    NaN of a single chain.  AnalysisError: the series does not vary.
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

    InputError: they were not measured (--measure series).
    """
    found = item.extra("series")
    chains, points, _ = found.shape
    parts = found.reshape(chains, points, len(SERIES), item.task.block_size)
    if not chains:
        raise InputError(f"L = {item.task.size}: no chains yet")
    return {name: np.moveaxis(parts[:, :, n], 0, 1) for n, name in enumerate(SERIES)}
