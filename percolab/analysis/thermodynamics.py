"""Thermal means of Ising and Potts models: energy, specific heat, order parameter, susceptibility.

Units: energies in J, temperatures in J / k_B, specific heats in k_B.  With n the satisfied bonds
(between equal spins), B all bonds, N sites, N_a those in state a and N_max those in the commonest,

    Ising  H = -J sum s s'      E = B - 2 n    K = J / k_B T       p = 1 - exp(-2 K)
    Potts  H = -J sum delta     E = -n         beta = J / k_B T    p = 1 - exp(-beta)

    |M| = (q N_max - N) / (q - 1)        M^2 = (q sum N_a^2 - N^2) / (q - 1)

where M is the sum over spins of unit vectors from the centre of a simplex to its q corners, for
q = 2 the sum of spins -1 and 1.  |M| is its largest component along a corner.

*Improved estimators* are means over all spins that given clusters of open bonds can have, with the
sums S_2 and S_4 of the squares and fourth powers of cluster sizes:

    <M^2> = <S_2>,    <M^4> = <(q + 1) S_2^2 - 2 S_4> / (q - 1).

Blocks are independent chains; errors are those of a jackknife over them, so that they contain the
autocorrelation within a chain.

Sources: F. Y. Wu, Rev. Mod. Phys. 54, 235 (1982); K. Binder, Z. Phys. B 43, 119 (1981); U. Wolff,
Nucl. Phys. B 300, 501 (1988) for the improved estimators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from percolab.analysis.quantities import BlockMoments, Moments
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.bonds.model import Model


@dataclass(frozen=True)
class System:
    """The properties of a task, other than moments, that its thermal means depend on."""

    model: Model
    num_sites: int
    num_bonds: int

    @property
    def bond_energy(self) -> float:
        """The fall of the energy when a bond becomes satisfied, in J: 2 or 1."""
        return 2.0 if self.model.name == "ising" else 1.0

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
    """A thermal mean as tables have it: name, meaning and unit."""

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
    item.name: item
    for item in (
        Thermal(
            "energy",
            "energy per site, in J",
            "J",
            ("satisfied",),
            lambda system, p, mean: system.energy(mean["satisfied"]),
        ),
        Thermal(
            "specific_heat",
            "specific heat per site, in k_B: K^2 or beta^2 times the variance of E, over N",
            "k_B",
            ("satisfied", "satisfied*satisfied"),
            _specific_heat,
        ),
        Thermal("order", "order parameter, <|M|> / N", "1", _LARGEST[:1], _order),
        Thermal(
            "susceptibility",
            "<M^2> / N by the spins, in sites",
            "sites",
            ("m^2",),
            lambda system, p, mean: mean["m^2"] * system.num_sites,
        ),
        Thermal(
            "improved_susceptibility",
            "<M^2> / N by the clusters, <S_2> / N, in sites",
            "sites",
            ("sum_squares",),
            lambda system, p, mean: mean["sum_squares"] / system.num_sites,
        ),
        Thermal(
            "connected_susceptibility",
            "(<|M|^2> - <|M|>^2) / N, in sites",
            "sites",
            _LARGEST,
            _connected,
        ),
        Thermal(
            "binder",
            "Q_m = <M^2>^2 / <M^4> by the spins",
            "1",
            ("m^2", "m^4"),
            lambda system, p, mean: mean["m^2"] ** 2 / mean["m^4"],
        ),
        Thermal(
            "improved_binder",
            "Q_m by the clusters, which needs S_4 (--measure sizes)",
            "1",
            ("sum_squares", "sum_squares*sum_squares", "s^4"),
            _improved_binder,
        ),
        Thermal(
            "open_excess",
            "open bonds less p times the satisfied ones: 0 but for errors",
            "bonds",
            ("open_bonds", "satisfied"),
            lambda system, p, mean: mean["open_bonds"] - p * mean["satisfied"],
        ),
    )
}
#: All moments that thermal means need.
MOMENTS = tuple(dict.fromkeys(name for item in THERMAL.values() for name in item.needs))


@dataclass(frozen=True, eq=False)
class Thermodynamics:
    """The thermal means of one task at m values of p.

    p, coupling, temperature: float64 (m,), p ascending; the coupling is K of the Ising model and
    beta of a Potts model, the temperature 1 over it.  values, errors: by the names in THERMAL that
    the task measures, float64 (m,); jackknife errors over chains, NaN of a single chain.  chains,
    sweeps: number of chains, and of measured sweeps in each.
    """

    L: int
    system: System
    p: Floats
    coupling: Floats
    temperature: Floats
    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    chains: int
    sweeps: int
    label: str = ""


def thermodynamics(moments: BlockMoments, system: System) -> Thermodynamics:
    """Return the thermal means of a task from the block sums of its moments.

    moments: those of MOMENTS that are there, block sums float64 (n_blocks, m); blocks are chains.
    Values are corrected for the bias of order 1 / samples.  <M^4> by the spins cancels far above
    the transition: its relative rounding error is about 1e-16 (N^2 / <M^2>)^2.
    """
    sums = {name: values.sum(axis=0) for name, values in moments.moments.items()}
    chains, samples = len(moments.samples), float(moments.samples.sum())
    values = _values(sums, samples, moments.p, system)
    errors = {name: np.full(moments.p.size, np.nan) for name in values}
    if chains > 1:
        rest = {name: sums[name] - own for name, own in moments.moments.items()}
        left = np.asarray(samples - moments.samples, np.float64)[:, None]
        without = _values(rest, left, moments.p, system)
        errors = {name: jackknife_error(own) for name, own in without.items()}
        values = {
            name: chains * value - (chains - 1) * without[name].mean(axis=0)
            for name, value in values.items()
        }
    return Thermodynamics(
        L=moments.L,
        system=system,
        p=moments.p,
        coupling=system.couplings(moments.p),
        temperature=system.temperatures(moments.p),
        values=values,
        errors=errors,
        chains=chains,
        sweeps=int(moments.samples[0]),
        label=moments.label,
    )


def _values(sums: Moments, samples: float | Floats, p: Floats, system: System) -> dict[str, Floats]:
    """Return the thermal means from the moments of these samples, float64 (..., m)."""
    mean = {name: values / samples for name, values in sums.items()}
    # At p = 0 and p = 1 a coupling or a fourth moment can be 0 or infinite.
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: item.value(system, p, mean)
            for name, item in THERMAL.items()
            if set(item.needs) <= mean.keys()
        }
