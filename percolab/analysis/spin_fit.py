"""The transition of spins from stored results: temperature and exponents.

p_c comes from the joint fit of dimensionless quantities (:mod:`percolab.analysis.quantity_fits`):
wrapping or spanning of the clusters, and Binder's ratio of the order parameter.  Errors are those
of means over independent chains, whatever the correlations within a chain.  At p_c, <S_2> / N
~ L^(2 y_h - d) gives y_h = d - beta/nu, and the autocorrelation time of the energy, A L^z and a
constant, gives z.

Half of the chains started ordered and half at random.  Where their means differ by more than four
standard errors, the burn-in was too short, or the transition is of first order and a chain stays in
the phase in which it began: then no error is quoted.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from percolab.analysis.autocorrelation import (
    START_LIMIT,
    Autocorrelation,
    autocorrelation,
    compare_starts,
)
from percolab.analysis.exponents import Exponent
from percolab.analysis.json_values import Part, plain
from percolab.analysis.power_law import PowerLaw, fit_power_law
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.reweighting import FirstOrder
from percolab.analysis.statistics import MIN_BLOCKS, Floats, jackknife_error
from percolab.analysis.stored_fits import fit_quantities
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.theory.potts import critical_point, potts_exponents, spin_correction
from percolab.analysis.transition_order import classify_order
from percolab.analysis.value import format_with_error
from percolab.bonds.model import Model
from percolab.errors import AnalysisError
from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import Shown
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Least autocorrelation times in a block of one long chain; a fit warns of shorter blocks.
_ENOUGH_TIMES = 10
#: The series with autocorrelation times, in the order of the stored sums, with names for tables.
SERIES = {"satisfied": "energy", "state_squares": "M^2", "sum_squares": "S_2"}
_SERIES_OF_CLUSTERS = {"open_bonds": "open bonds", "largest": "s_1", "sum_squares": "S_2"}


@dataclass(frozen=True)
class StartDifference:
    """Chains of one size and p whose means depend on their start; z: the difference in errors."""

    L: int
    p: float
    series: str
    z: float


@dataclass(frozen=True, repr=False)
class SpinFit(Shown):
    """The transition: the joint fit of all quantities, and results derived from it.

    coupling, temperature: K of the Ising model or beta of a Potts model, and k_B T_c / J, with
    errors.  differences: where chains depend on their start; then errors are None.  exponents: y_t,
    y_h, the beta/nu and gamma/nu that y_h gives, and z, if the data allow.  known: the published
    coupling, for comparison.  first_order: (L, p, transition) of the largest size whose energies
    have two peaks, by classify_order.  notes: warnings, one line each.
    """

    model: Model
    joint: QuantityAnalysis
    differences: tuple[StartDifference, ...]
    exponents: tuple[Exponent, ...]
    known: Known | None
    first_order: tuple[int, float, FirstOrder] | None = None
    notes: tuple[str, ...] = field(default=())

    def _facts(self) -> dict[str, Any]:
        # format_with_error leaves out an error of 0.
        temperature, error = self.temperature
        return {
            "k_B T_c / J": format_with_error(temperature, error or 0.0),
            "p_c": format_with_error(self.threshold, self.threshold_error or 0.0),
            "model": str(self.model),
            **{x.name: str(x.result) for x in self.exponents if not self.differences},
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }

    threshold = Part[float]("joint.threshold")

    @property
    def threshold_error(self) -> float | None:
        """The one-sigma error of p_c; None where chains depend on their start."""
        return None if self.differences or self.joint.problem else self.joint.threshold_error

    @property
    def coupling(self) -> float:
        return self.model.p_to_coupling(self.threshold)

    @property
    def coupling_error(self) -> float | None:
        if self.threshold_error is None:
            return None
        return self.threshold_error / (1 - self.threshold) / self.model.exponent

    @property
    def temperature(self) -> tuple[float, float | None]:
        """kT / J at the transition, and its error."""
        error = self.coupling_error
        return 1 / self.coupling, None if error is None else error / self.coupling**2

    def to_dict(self) -> dict[str, Any]:
        temperature, error = self.temperature
        return {
            "model": str(self.model),
            "threshold": self.threshold,
            "threshold_error": self.threshold_error,
            "coupling_name": self.model.coupling_symbol,
            "coupling": self.coupling,
            "coupling_error": self.coupling_error,
            "temperature": temperature,
            "temperature_error": error,
            "published_coupling": plain(self.known),
            "start_differences": plain(self.differences),
            "exponents": [] if self.differences else [x.to_dict() for x in self.exponents],
            "first_order": plain(self.first_order),
            "joint_fit": None if self.differences else self.joint.to_dict(),
            "notes": list(self.notes),
        }


def fit_spins(results: StoredResults, names: Sequence[str] = ("all",), **options: Any) -> SpinFit:
    """Fit the transition of spins; options and errors as for :func:`fit_quantities`."""
    study = results.study
    if not study.structure.is_scalable:
        raise AnalysisError(
            f"{study.structure.name} has no sizes that scale: percolab plot --kind susceptibility "
            "shows where its spins order"
        )
    model = study.draw
    items = joined(results).measured
    differences = start_differences(items)
    first_order, order = classify_order(items, model)
    try:
        joint = fit_quantities(results, names, **options)
    except AnalysisError as error:
        reasons = str(error)
        if differences:
            worst = max(differences, key=lambda each: abs(each.z))
            reasons += (
                f"; chains that started ordered and at random differ (L = {worst.L}, p = "
                f"{worst.p:g}: {abs(worst.z):.0f} sigma in {worst.series}), so the burn-in is too "
                "short or the transition is of first order"
            )
        raise AnalysisError(f"{order}; no fit: {reasons}" if order else reasons) from error
    exponents, notes = _exponents(items, joint, model)
    notes += [note for note in (short_blocks(items), order) if note is not None]
    # The published coupling, in the model's convention.
    is_lattice = isinstance(study.structure, Lattice)
    known = critical_point(study.structure.name, model.states) if is_lattice else None
    if known is not None and model.name == "ising":
        known = Known(known.value / 2, known.error / 2, "", known.reference)
    return SpinFit(
        model, joint, tuple(differences), tuple(exponents), known, first_order, tuple(notes)
    )


def start_differences(items: Sequence[TaskResult]) -> list[StartDifference]:
    """Return where chains that started ordered differ from those that started at random."""
    differences = []
    for result in items:
        odd = result.numbers % 2 == 1
        # One long chain has one start.
        if result.task.is_serial or min(odd.sum(), (~odd).sum()) < 2:
            continue
        for name, text in series_of(result).items():
            means = result.column(name) / result.task.block_size
            for n, p in enumerate(result.task.p):
                z = compare_starts(means[~odd, n], means[odd, n])
                if abs(z) > START_LIMIT:
                    differences.append(StartDifference(result.task.size, p, text, z))
    return differences


def series_of(result: TaskResult) -> dict[str, str]:
    """Return the series whose autocorrelations a task has, in words by name; energies first."""
    return SERIES if result.has("satisfied") else _SERIES_OF_CLUSTERS


def short_blocks(items: Sequence[TaskResult]) -> str | None:
    """Return one line on blocks of one long chain that are too short for honest errors, or None.

    Their scatter misses the correlation of neighbouring blocks, which makes errors too small by a
    fraction of about tau / (2 S) for blocks of S sweeps.
    """
    found = [
        (result.task.block_size / one.tau, result, p, one)
        for result in items if result.task.is_serial
        for series in compute_autocorrelations(result).values()
        for p, one in zip(result.task.p, series, strict=True) if one is not None
    ]  # fmt: skip
    if min((each[0] for each in found), default=_ENOUGH_TIMES) >= _ENOUGH_TIMES:
        return None
    times, result, p, one = min(found, key=itemgetter(0))
    most = "" if one.complete else "at most "
    return (
        f"blocks of one chain are too short: at L = {result.task.size}, p = {p:.6g} they have "
        f"{result.task.block_size} measured sweeps, {most}{times:.2g} autocorrelation times, so "
        "errors are too small"
    )


def few_chains(items: Sequence[TaskResult]) -> str | None:
    """Return one line where chains, or blocks of one chain, are too few for errors, or None."""
    from scipy.special import stdtr

    sampled = [result for result in items if result.num_blocks]
    few = min((result.num_blocks for result in sampled), default=MIN_BLOCKS)
    if few >= MIN_BLOCKS:
        return None
    name = "block" if any(result.task.is_serial for result in sampled) else "chain"
    more = f"add samples, or make {name}s shorter (--sweeps)"
    if few == 1:
        return f"a single {name} gives no errors: {more}"
    beyond = [f"{200 * float(stdtr(few - 1, -n)):.0f} %" for n in (1, 2)]
    return (
        f"errors come from only {few} {name}s: {beyond[0]} of the means are off by more than one "
        f"error, not 32 %, and {beyond[1]} by more than two, not 5 %; {more}"
    )


def compute_autocorrelations(result: TaskResult) -> dict[str, list[Autocorrelation | None]]:
    """Return the autocorrelation of series at every p, in measured sweeps; None: constant."""
    points, sweeps = len(result.task.p), result.task.block_size
    names = series_of(result)
    parts = result.extra("lagged").reshape(len(result.blocks), points, len(names), 2, -1)
    times: dict[str, list[Autocorrelation | None]] = {name: [] for name in names}
    for n, own in enumerate(times.values()):
        for point in range(points):
            one = None
            with suppress(AnalysisError):
                one = autocorrelation(parts[:, point, n, 0], parts[:, point, n, 1], sweeps)
            own.append(one)
    return times


def read_lagged(result: TaskResult, name: str, at: int) -> tuple[Floats, Floats]:
    """Return lagged products and edges of a series at one p, float64 (n_blocks, LAGS + 1) each."""
    names = list(series_of(result))
    parts = result.extra("lagged")[:, at].reshape(len(result.blocks), len(names), 2, -1)
    own = parts[:, names.index(name)]
    return own[:, 0], own[:, 1]


def _exponents(
    items: Sequence[TaskResult], joint: QuantityAnalysis, model: Model
) -> tuple[list[Exponent], list[str]]:
    """Return y_t, y_h and what follows from it, and z, where sizes suffice, else notes on them."""
    boundary = items[0].task.boundary
    known = potts_exponents(len(boundary), model.states)
    periodic = set(boundary) == {"periodic"}
    omega = spin_correction(len(boundary), model.states, periodic=periodic).value
    exponents = [Exponent("y_t", joint.exponent, "the joint fit", known.get("1/nu"))]
    p_c, error = joint.threshold, joint.threshold_error
    sizes, *values = _by_size((result.task.size, _at(result, p_c, error)) for result in items)
    if len(sizes) >= 2:
        line = fit_power_law(sizes, *values, omega=omega, of_squares=True).exponent
        y_h = line.scaled((line.value + len(boundary)) / 2, 0.5)
        exponents.append(Exponent("y_h", y_h, "<S_2>/N at p_c", known.get("d_f")))
        beta = line.scaled((len(boundary) - line.value) / 2, 0.5)
        exponents.append(Exponent("beta/nu", beta, "d - y_h", known.get("beta/nu")))
        exponents.append(Exponent("gamma/nu", line, "2 y_h - d", known.get("gamma/nu")))
    taus = [(result.task.size, _tau_at(result, p_c)) for result in items]
    try:
        z = fit_times(taus, omega).exponent
    except AnalysisError as reason:
        return exponents, [f"z: {reason}"]
    return [*exponents, Exponent("z", z, "tau of the energy at p_c")], []


Measured = tuple[int, tuple[float, float] | None]


def fit_times(taus: Iterable[Measured], omega: float) -> PowerLaw:
    """Return the power law L^z of autocorrelation times, given by size with errors, or None.

    AnalysisError: there are fewer than two sizes.
    """
    sizes, *means = _by_size(taus)
    if len(sizes) < 2:
        raise AnalysisError("fewer than two sizes have a known autocorrelation time")
    return fit_power_law(sizes, *means, omega=omega, of_times=True)


def _by_size(measured: Iterable[Measured]) -> tuple[list[int], Floats, Floats]:
    """Return sizes ascending, and for each a value and the variance of its logarithm.

    Values of one size (several seeds) are averaged with weights that follow from their errors.
    """
    by_size: dict[int, list[tuple[float, float]]] = {}
    for size, one in measured:
        if one is not None:
            by_size.setdefault(size, []).append(one)
    sizes, means = sorted(by_size), []
    for size in sizes:
        values, errors = np.array(by_size[size]).T
        if values.size > 1:
            weights = errors**-2.0
            values, errors = [np.average(values, weights=weights)], [weights.sum() ** -0.5]
        means.append((values[0], errors[0]))
    values, errors = np.array(means).reshape(-1, 2).T
    return sizes, values, (errors / values) ** 2


def _tau_at(result: TaskResult, p_c: float) -> tuple[float, float] | None:
    """Return the autocorrelation time of the energy at p_c and its error, or None."""
    energies, *_ = compute_autocorrelations(result).values()
    time = time_at(result.task.p, energies, p_c)
    return (time.tau, time.error) if time is not None and time.complete else None


class Time(NamedTuple):
    """An integrated autocorrelation time and its error; a lower bound unless complete."""

    tau: float
    error: float
    complete: bool


def time_at(
    grid: Sequence[float], series: Sequence[Autocorrelation | None], at: float
) -> Time | None:
    """Return the time of a series at a p, by a straight line between two p of the grid, or None.

    None too outside the grid, and where a series does not vary.
    """
    p = np.array(grid)
    if not p[0] <= at <= p[-1]:
        return None
    after = max(int(np.searchsorted(p, at)), 1) if p.size > 1 else 0
    ends = series[max(after - 1, 0) : after + 1]
    known = [one for one in ends if one is not None]
    if len(known) < len(ends):
        return None
    share = float((at - p[after - 1]) / (p[after] - p[after - 1])) if p.size > 1 else 1.0
    weights = np.array([1 - share, share][-len(ends) :])
    tau = float(weights @ [one.tau for one in known])
    error = float(np.hypot.reduce(weights * [one.error for one in known]))
    complete = all(one.is_known for one, weight in zip(known, weights) if weight > 0)
    return Time(tau, error, complete)


def _at(result: TaskResult, p_c: float, error: float) -> tuple[float, float] | None:
    """Return <S_2> / N at p_c by a parabola of its logarithm, and its error; or None."""
    p = np.array(result.task.p)
    if p.size < 3 or not p[0] <= p_c <= p[-1]:
        return None
    near = np.sort(np.argsort(np.abs(p - p_c))[:3])
    sums = result.column("sum_squares")[:, near].astype(float)
    total = sums.sum(axis=0)
    scale = len(sums) * result.task.block_size * result.task.num_sites

    def read(totals: Floats, at: float) -> float:
        return float(np.polyval(np.polyfit(p[near] - p_c, np.log(totals), 2), at - p_c))

    if len(sums) < 2:
        return None
    value = math.exp(read(total / scale, p_c))
    left = scale * (len(sums) - 1) / len(sums)
    scatter = float(jackknife_error(np.array([read((total - own) / left, p_c) for own in sums])))
    shifted = (read(total / scale, p_c + error) - read(total / scale, p_c - error)) / 2
    return value, value * math.hypot(scatter, shifted)
