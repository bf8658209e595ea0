"""Thermal means and series of chains from stored results of spins.

A block is a chain; those of even number start ordered, those of odd number at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import autocorrelation
from percolab.analysis.spin_fit import SERIES, read_lagged
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.analysis.stored_data import list_tasks, moment_names, read_moments
from percolab.analysis.thermodynamics import (
    MOMENTS,
    THERMAL,
    System,
    ThermalName,
    Thermodynamics,
    thermodynamics,
)
from percolab.bonds.model import Model
from percolab.errors import InputError
from percolab.lattices.extent import count_bonds
from percolab.lattices.lattice import AXIS_NAMES
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Mean and standard error, None where there is none.
Mean = tuple[float | None, float | None]
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
    return [_thermodynamics(item) for item in list_spin_tasks(results)]


def _thermodynamics(item: TaskResult) -> Thermodynamics:
    names = [name for name in MOMENTS if name in moment_names(item)]
    return thermodynamics(read_moments(item, names), describe_system(item))


def list_thermal(results: StoredResults) -> list[ThermalName]:
    """Return the thermal means that tables of spins have, [] of anything else.

    These are the means of THERMAL, without the check of open bonds, and the correlation lengths.
    """
    items = list_spin_tasks(results)
    there = {name for item in items for name in moment_names(item)}
    found: list[ThermalName] = [
        each for each in THERMAL.values() if set(each.needs) <= there and each.name != "open_excess"
    ]
    if any(map(_has_lengths, items)):
        found += [
            ThermalName(
                f"correlation_length_{axis}", f"correlation length along {axis}", "grid points"
            )
            for axis in _periodic_axes(items[0])
        ]
    return found


def _has_lengths(item: TaskResult) -> bool:
    return "structure_factor" in item.datasets()


def _periodic_axes(item: TaskResult) -> list[str]:
    return [x for x, kind in zip(AXIS_NAMES, item.task.boundary) if kind == "periodic"]


def read_thermal_means(item: TaskResult) -> list[dict[str, Mean]]:
    """Return mean and error by the names of :func:`list_thermal` at every p, [] without spins.

    A number that is not finite is None.
    """
    if not item.blocks or not item.has("satisfied"):
        return []
    thermal = _thermodynamics(item)
    found = {name: (thermal.values[name], thermal.errors[name]) for name in thermal.values}
    del found["open_excess"]
    if _has_lengths(item):
        lengths = zip(_periodic_axes(item), *compute_correlation_lengths(item))
        found |= {f"correlation_length_{axis}": (xi, error) for axis, xi, error in lengths}
    return [
        {name: (_finite(mean[n]), _finite(error[n])) for name, (mean, error) in found.items()}
        for n in range(thermal.p.size)
    ]


def name_couplings(model: Model, p: float) -> dict[str, float | None]:
    """Return T and the coupling, K or beta, at a p by their names; {} of a model without spins.

    T is in J / k_B; None where one of them is infinite.

    >>> name_couplings(Model.parse("potts:q=3"), 0.5)
    {'T': 1.4426950408889634, 'beta': 0.6931471805599453}
    """
    if not model.has_spins:
        return {}
    coupling = model.p_to_coupling(p)
    return {
        "T": _finite(1 / coupling if coupling else np.inf),
        model.coupling_symbol: _finite(coupling),
    }


def thermal_records(results: StoredResults) -> list[dict[str, Any]]:
    """Return L, seed, p, T, K or beta, and all thermal means with errors, a dict a size and p."""
    return [
        {"L": item.task.size, "seed": item.task.seed, "p": p}
        | name_couplings(item.task.draw, p)
        | {
            key: number
            for name, pair in means.items()
            for key, number in zip((name, f"{name}_error"), pair)
        }
        for item in list_spin_tasks(results)
        for p, means in zip(item.task.p, read_thermal_means(item))
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


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
