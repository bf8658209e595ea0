"""Thermal means, series and correlation lengths of Ising and Potts models from stored results.

Units: energies in J, temperatures in J / k_B, specific heats in k_B.  With n the satisfied bonds
(between equal spins), B all bonds, N sites, N_a those in state a and N_max those in the commonest,

    Ising  H = -J sum s s'      E = B - 2 n    K = J / k_B T       p = 1 - exp(-2 K)
    Potts  H = -J sum delta     E = -n         beta = J / k_B T    p = 1 - exp(-beta)

    |M| = (q N_max - N) / (q - 1)        M^2 = (q sum N_a^2 - N^2) / (q - 1)

where M is the sum over spins of unit vectors from the centre of a simplex to its q corners, for
q = 2 the sum of spins -1 and 1.  *Improved estimators* are means over all spins that given clusters
of open bonds can have, with the sums S_2 and S_4 of squares and fourth powers of cluster sizes:

    <M^2> = <S_2>,    <M^4> = <(q + 1) S_2^2 - 2 S_4> / (q - 1).

A block is a chain; those of even number start ordered, those of odd number at random.  Errors are
those of a jackknife over chains, so that they contain the autocorrelation within a chain.

Sources: F. Y. Wu, Rev. Mod. Phys. 54, 235 (1982); K. Binder, Z. Phys. B 43, 119 (1981); U. Wolff,
Nucl. Phys. B 300, 501 (1988) for the improved estimators.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import autocorrelation
from percolab.analysis.quantities import BlockMoments, Moments
from percolab.analysis.spin_fit import read_lagged, series_of
from percolab.analysis.statistics import Floats, jackknife_error, jackknife_value
from percolab.analysis.stored_data import list_tasks, moment_names, read_moments
from percolab.bonds.model import Model
from percolab.errors import InputError
from percolab.lattices.extent import count_bonds
from percolab.lattices.lattice import AXIS_NAMES
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult


@dataclass(frozen=True)
class System:
    """The properties of a task, other than moments, that its thermal means depend on."""

    model: Model
    num_sites: int
    num_bonds: int

    @property
    def bond_energy(self) -> float:
        """The decrease of the energy when a bond becomes satisfied, in J: 2 or 1."""
        return float(self.model.exponent)

    def energy(self, satisfied: Floats) -> Floats:
        """Return the energy per site of a number of satisfied bonds, in J."""
        constant = self.num_bonds if self.model.name == "ising" else 0
        return np.asarray((constant - self.bond_energy * satisfied) / self.num_sites)

    def couplings(self, p: Floats) -> Floats:
        """Return K or beta at every p, float64 like p; infinite at p = 1."""
        return np.array([self.model.p_to_coupling(float(each)) for each in p])

    def temperatures(self, p: Floats) -> Floats:
        """Return k_B T / J, 1 / K or 1 / beta, at every p, float64 like p; infinite at p = 0."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.couplings(p))


@dataclass(frozen=True)
class ThermalName:
    """A thermal mean in tables: name, meaning and unit."""

    name: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class Thermal(ThermalName):
    """One thermal mean: the moments it needs, and its value from them and p."""

    needs: tuple[str, ...]
    value: Callable[[System, Floats, Moments], Floats]


def _variance(mean: Moments, name: str) -> Floats:
    return np.asarray(mean[f"{name}*{name}"] - mean[name] ** 2)


def _order(system: System, _: Floats, mean: Moments) -> Floats:
    q, sites = system.model.states, system.num_sites
    return np.asarray((q * mean["largest_state"] - sites) / (q - 1) / sites)


def _specific_heat(system: System, p: Floats, mean: Moments) -> Floats:
    scale = system.couplings(p) * system.bond_energy
    return np.asarray(scale**2 * _variance(mean, "satisfied") / system.num_sites)


def _specific_heat_of_clusters(system: System, p: Floats, mean: Moments) -> Floats:
    satisfied = _variance(mean, "open_bonds") - (1 - p) * mean["open_bonds"]
    return np.asarray((system.couplings(p) / p) ** 2 * satisfied / system.num_sites)


def _connected(system: System, _: Floats, mean: Moments) -> Floats:
    q = system.model.states
    return np.asarray((q / (q - 1)) ** 2 * _variance(mean, "largest_state") / system.num_sites)


def _improved_binder(system: System, _: Floats, mean: Moments) -> Floats:
    q = system.model.states
    fourth = ((q + 1) * mean["sum_squares*sum_squares"] - 2 * mean["s^4"]) / (q - 1)
    return np.asarray(mean["sum_squares"] ** 2 / fourth)


_LARGEST = ("largest_state", "largest_state*largest_state")
#: Every thermal mean, by name.
THERMAL: Mapping[str, Thermal] = {
    name: Thermal(name, meaning, unit, needs, value)
    for name, meaning, unit, needs, value in (
        (
            "energy", "energy per site, in J", "J", ("satisfied",),
            lambda system, p, mean: system.energy(mean["satisfied"]),
        ),
        (
            "specific_heat",
            "specific heat per site, in k_B: K^2 or beta^2 times the variance of E, over N", "k_B",
            ("satisfied", "satisfied*satisfied"), _specific_heat,
        ),
        ("order", "order parameter, <|M|> / N", "1", _LARGEST[:1], _order),
        (
            "susceptibility", "<M^2> / N by the spins, in sites", "sites", ("m^2",),
            lambda system, p, mean: mean["m^2"] * system.num_sites,
        ),
        (
            "improved_susceptibility", "<M^2> / N by the clusters, <S_2> / N, in sites", "sites",
            ("sum_squares",), lambda system, p, mean: mean["sum_squares"] / system.num_sites,
        ),
        (
            "connected_susceptibility", "(<|M|^2> - <|M|>^2) / N, in sites", "sites", _LARGEST,
            _connected,
        ),
        (
            "binder", "Q_m = <M^2>^2 / <M^4> by the spins", "1", ("m^2", "m^4"),
            lambda system, p, mean: mean["m^2"] ** 2 / mean["m^4"],
        ),
        (
            "improved_binder", "Q_m by the clusters, which needs S_4 (--measure sizes)", "1",
            ("sum_squares", "sum_squares*sum_squares", "s^4"), _improved_binder,
        ),
        (
            "open_excess", "open bonds less p times the satisfied ones: 0 but for errors", "bonds",
            ("open_bonds", "satisfied"),
            lambda system, p, mean: mean["open_bonds"] - p * mean["satisfied"],
        ),
    )
}  # fmt: skip

#: The same for random clusters, which have no spins: <n> = <b> / p with b open bonds, and var(n) =
#: (var(b) - (1 - p) <b>) / p^2, as the b bonds are a binomial choice of the n satisfied ones.
_OF_CLUSTERS = {
    "energy": replace(
        THERMAL["energy"],
        needs=("open_bonds",),
        value=lambda system, p, mean: system.energy(mean["open_bonds"] / p),
    ),
    "specific_heat": replace(
        THERMAL["specific_heat"],
        needs=("open_bonds", "open_bonds*open_bonds"),
        value=_specific_heat_of_clusters,
    ),
    "improved_susceptibility": THERMAL["improved_susceptibility"],
}


def _there(moments: Collection[str]) -> list[Thermal]:
    """Return the thermal means that follow from moments."""
    known = THERMAL if "satisfied" in moments else _OF_CLUSTERS
    return [mean for mean in known.values() if set(mean.needs) <= set(moments)]


@dataclass(frozen=True, eq=False)
class Thermodynamics:
    """The thermal means of one task at m values of p.

    p, coupling, temperature: float64 (m,), p ascending; the coupling is K of the Ising model and
    beta of a Potts model, the temperature 1 over it.  values, errors: by the names in THERMAL that
    the task measures, float64 (m,); jackknife errors over chains, NaN of a single chain.
    """

    L: int
    system: System
    p: Floats
    coupling: Floats
    temperature: Floats
    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]


def thermodynamics(moments: BlockMoments, system: System) -> Thermodynamics:
    """Return the thermal means of a task from the block sums of its moments.

    moments: those that thermal means need, block sums float64 (n_blocks, m); blocks are chains.
    Values are corrected for the bias of order 1 / samples.  <M^4> by the spins cancels far above
    the transition: its relative rounding error is about 1e-16 (N^2 / <M^2>)^2.
    """
    thermal = _there(moments.moments)
    functions = [partial(mean.value, system, moments.p) for mean in thermal]
    values, without = moments.evaluate(functions)
    names = [mean.name for mean in thermal]
    return Thermodynamics(
        L=moments.L,
        system=system,
        p=moments.p,
        coupling=system.couplings(moments.p),
        temperature=system.temperatures(moments.p),
        values=dict(zip(names, values, strict=True)),
        errors=dict(zip(names, jackknife_error(without), strict=True)),
    )


#: Groups of chains of the jackknife for the errors of autocorrelations.
_GROUPS = 50


def list_spin_tasks(results: StoredResults) -> list[TaskResult]:
    """Return the tasks of spins that have blocks, ascending in L."""
    return list_tasks(results, "open_bonds")


def describe_system(result: TaskResult) -> System:
    """Return the properties of a task, other than moments, that its thermal means depend on."""
    task = result.task
    bonds = count_bonds(task.structure, task.shape, task.boundary)
    return System(task.draw, task.num_sites, bonds)


def compute_thermodynamics(results: StoredResults) -> list[Thermodynamics]:
    """Return the thermal means of all tasks of spins that have blocks, ascending in L."""
    return [_thermodynamics(result) for result in list_spin_tasks(results)]


def _thermodynamics(result: TaskResult) -> Thermodynamics:
    known = _there(moment_names(result))
    names = list(dict.fromkeys(name for mean in known for name in mean.needs))
    return thermodynamics(read_moments(result, names), describe_system(result))


def list_thermal(results: StoredResults) -> list[ThermalName]:
    """Return the thermal means and correlation lengths that tables of spins have, else []."""
    items = list_spin_tasks(results)
    there = {name for result in items for name in moment_names(result)}
    names: list[ThermalName] = [each for each in _there(there) if each.name != "open_excess"]
    if any(map(_has_lengths, items)):
        names += [
            ThermalName(
                f"correlation_length_{axis}", f"correlation length along {axis}", "grid points"
            )
            for axis in _periodic_axes(items[0])
        ]
    return names


def _has_lengths(result: TaskResult) -> bool:
    return "structure_factor" in result.datasets()


def _periodic_axes(result: TaskResult) -> list[str]:
    return [x for x, kind in zip(AXIS_NAMES, result.task.boundary) if kind == "periodic"]


def read_thermal_means(result: TaskResult) -> dict[str, tuple[Floats, Floats]]:
    """Return mean and error by the names of :func:`list_thermal`, (m,) each; {} without spins."""
    if not result.blocks or not result.has("open_bonds"):
        return {}
    thermal = _thermodynamics(result)
    means = {name: (thermal.values[name], thermal.errors[name]) for name in thermal.values}
    means.pop("open_excess", None)
    if _has_lengths(result):
        lengths = zip(_periodic_axes(result), *compute_correlation_lengths(result))
        means |= {f"correlation_length_{axis}": (xi, error) for axis, xi, error in lengths}
    return means


def name_couplings(model: Model, p: Floats) -> dict[str, Floats]:
    """Return T and the coupling, K or beta, at every p by their names; {} of a model without spins.

    T is in J / k_B; NaN where one of them is infinite.

    >>> name_couplings(Model.parse("potts:q=3"), np.array([0.5]))
    {'T': array([1.44269504]), 'beta': array([0.69314718])}
    """
    if not model.chains:
        return {}
    system = System(model, 1, 0)
    both = {"T": system.temperatures(p), model.coupling_symbol: system.couplings(p)}
    return {name: np.where(np.isfinite(values), values, np.nan) for name, values in both.items()}


def thermal_records(results: StoredResults) -> list[dict[str, Any]]:
    """Return L, seed, p, T, K or beta, and thermal means with errors, one dict a size and p."""
    records = []
    for result in list_spin_tasks(results):
        columns = name_couplings(result.task.draw, np.array(result.task.p))
        for name, (mean, error) in read_thermal_means(result).items():
            columns |= {name: mean, f"{name}_error": error}
        for n, p in enumerate(result.task.p):
            numbers = {name: finite(values[n]) for name, values in columns.items()}
            records.append({"L": result.task.size, "seed": result.task.seed, "p": p, **numbers})
    return records


def finite(value: float) -> float | None:
    """Return a number for tables, None where it is not finite."""
    return float(value) if np.isfinite(value) else None


def compute_correlation_lengths(result: TaskResult) -> tuple[Floats, Floats]:
    """Return the correlation length along every periodic axis and its error: (axes, m) each.

    The second-moment length in grid points, from the smallest wave vector k = 2 pi / L:

        xi = sqrt(G(0) / G(k) - 1) / (2 sin(k / 2)),    G(0) = sum N_a^2 - N^2 / q,    G(k) = F_a

    with means of both; bias and errors by a jackknife over chains.  F. Cooper, B. Freedman and D.
    Preston, Nucl. Phys. B 210, 210 (1982).  InputError: it was not measured (--measure
    correlation).
    """
    task = result.task
    axes = [axis for axis, kind in enumerate(task.boundary) if kind == "periodic"]
    unit = 2 * np.sin(np.pi / np.array(task.shape)[axes])
    uniform = result.column("state_squares").astype(float)[:, :, None]
    zero = uniform - task.block_size * task.num_sites**2 / task.draw.states
    wave = result.extra("structure_factor")[:, :, axes]
    zeros, waves = zero.sum(axis=0), wave.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.sqrt(zeros / waves - 1) / unit
        without = np.sqrt((zeros - zero) / (waves - wave) - 1) / unit
        corrected = jackknife_value(lengths, without)
        errors = jackknife_error(without)
    return np.where(np.isfinite(corrected), corrected, lengths).T, errors.T


def correlation_errors(result: TaskResult, name: str, at: int) -> Floats:
    """Return jackknife errors over chains of rho at one p, (lags + 1,); or AnalysisError."""
    lagged, edges = read_lagged(result, name, at)
    groups = np.array_split(np.arange(len(lagged)), min(len(lagged), _GROUPS))
    sweeps = result.task.block_size
    without = [
        autocorrelation(np.delete(lagged, own, 0), np.delete(edges, own, 0), sweeps).correlation
        for own in groups
        if len(groups) > 1
    ]
    return jackknife_error(
        np.array(without or [autocorrelation(lagged, edges, sweeps).correlation])
    )


def read_series(result: TaskResult) -> dict[str, NDArray[np.int64]]:
    """Return every sweep by name, int64 (m, n_blocks, sweeps); InputError: not measured."""
    series = result.extra("series")
    chains, points, _ = series.shape
    parts = series.reshape(chains, points, -1, result.task.block_size)
    if not chains:
        raise InputError(f"L = {result.task.size}: no chains yet")
    return {name: np.moveaxis(parts[:, :, n], 0, 1) for n, name in enumerate(series_of(result))}
