"""p_c on tori of two dimensions: the root of P(two directions) - P(no direction), size by size.

On a torus a sample has a cluster that wraps in two independent directions ("two"), or none that
wraps ("none"), or clusters that wrap in one direction.  On a planar lattice "two" is the event
"none" of the dual or matching lattice, so that

    D(p, L) = P(two) - P(none)

vanishes at p_c as L goes to infinity: at any L if the lattice is its own dual, elsewhere with
corrections that fall as L^-4.  With spins of q states D = P(two) - q P(none) of the clusters of
Fortuin and Kasteleyn.  Near its root D is a straight line, whose slope grows as L^(3/4).  Samples
at one p are enough where the openings were counted: their covariance with D gives the slope.

The method is that of critical polynomials: C. Scullard and R. Ziff; J. Jacobsen and C. Scullard,
J. Phys. A 46, 075001 (2013), who compute D exactly on small tori.  Here it is sampled.

p_c, which all sizes share, is the mean of the roots with *drifts* whose amplitudes have priors,

    root(L) = p_c + C / L^4                                     planar lattices
    root(L) = p_c + C / L^4 + (A + B ln L) / L^2                others

with widths set from roots of small tori, exact and sampled (docs/thresholds.md): the largest C was
0.9 for sites, and 0.011 for bonds of planar lattices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import plain
from percolab.analysis.statistics import Floats, unit_diagonal
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.theory.potts import critical_bond_probability
from percolab.analysis.value import ChiSquare, Value, format_with_error, published_text
from percolab.bonds.model import Model
from percolab.errors import AnalysisError
from percolab.lattices.lattice import Lattice, library_name
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.shown import Shown, Table
from percolab.lattices.structure import Structure
from percolab.measure.rows import OPENINGS
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: Only p with |D| up to this are used: near enough to the root for the three terms below.
_WINDOW = 0.5
#: D = u (1 + k u + l u^2), u = slope (p - root): widths of the priors of k and l.
_CURVATURE = np.array([0.3, 0.5])
#: The most states whose transition in the plane is continuous.
_MOST_STATES = 4
#: Most steps of a fit; it ends when a step of the root is below this part of the root's error.
_MOST_STEPS, _CONVERGED = 50, 1e-9
#: Least number of blocks for the covariance of several p of the same samples.
LEAST_BLOCKS = 16


@dataclass(frozen=True)
class Drift:
    """How roots of finite sizes differ from p_c: widths of the priors of its amplitudes.

    fourth: of C, in root = p_c + C / L^4.  second: of A and of B, in (A + B ln L) / L^2.
    """

    fourth: float
    second: float = 0.0

    def __str__(self) -> str:
        if not self.second:
            return f"C/L^4, C = 0 +- {self.fourth:g}"
        both = f"C = 0 +- {self.fourth:g}, A and B = 0 +- {self.second:g}"
        return f"C/L^4 + (A + B ln L)/L^2, {both}"

    def of_length(self, length: float) -> float:
        """Return the width of the prior of the drift of a torus of `length` points an axis."""
        return sqrt(float(self.spread(np.array([length]))[0, 0]))

    def widened(self, factor: float) -> Drift:
        """Return the drift with priors that are wider by a factor."""
        return Drift(factor * self.fourth, factor * self.second)

    def spread(self, sizes: Floats) -> Floats:
        """Return the covariance of the drifts of sizes, float64 (n, n)."""
        terms = [self.fourth * sizes**-4.0]
        if self.second:
            terms += [self.second * sizes**-2.0, self.second * np.log(sizes) * sizes**-2.0]
        return sum((np.outer(term, term) for term in terms), np.zeros((sizes.size, sizes.size)))


#: Drifts of bonds of planar lattices that all open with p; of planar bonds in large cells, with
#: fixed probabilities or spins; and of sites of planar lattices, alone or with bonds.
PLANAR_BONDS, OTHER_BONDS, PLANAR_SITES = Drift(0.01), Drift(0.15), Drift(1.5)
#: The drift of lattices whose bonds cross.
OTHERS = Drift(1.5, 0.02)
#: Most grid points along an axis of a cell that is not large: up to this, C has been measured.
_SMALL_CELL = 4


def choose_drift(study: Study) -> Drift:
    lattice, draw = study.structure, study.draw
    assert isinstance(lattice, Lattice)
    if not is_drawn_planar(lattice):
        return OTHERS
    if draw.draws_sites:
        return PLANAR_SITES
    is_small = prod(lattice.cell) <= _SMALL_CELL**2
    return PLANAR_BONDS if is_small and draw.openings_have_p else OTHER_BONDS


def why_no_roots(study: Study) -> str:
    """Return why the roots of a study do not give p_c, or ""."""
    lattice, model, root = study.structure, study.draw, "a root of P(two directions)"
    if not isinstance(lattice, Lattice) or lattice.dimension != 2:
        return f"{root} - P(no direction) is that of a lattice in the plane"
    if set(study.boundary) != {"periodic"}:
        return f"{root} - P(no direction) is that of a torus (--boundary periodic)"
    if lattice.aspect:
        return "roots are known of tori whose sides are equal"
    measured = {column.name for column in study.observables}
    if not study.kind.codec.holds_columns or "wrapping_any" not in measured:
        return "roots are those of percolation at given p"
    if not model.chains:
        return ""
    if model.states > _MOST_STATES:
        most = f"more than {_MOST_STATES}"
        return f"the transition of q = {model.states:g} states, {most}, is of first order"
    if study.chains:
        return "roots of spins take many chains, whose means are independent"
    if not is_drawn_planar(lattice):
        return f"{lattice.name} is not planar: the drift of its roots is not known of spins"
    return ""


@dataclass(frozen=True)
class SizeRoot:
    """The root of one size.

    size: L.  length: grid points along an axis, the geometric mean of all axes.  value: the root
    and its statistical error.  slope: dD/dp there.  samples: at the p that has most.
    """

    size: int
    length: float
    value: Value
    slope: float
    samples: int

    def to_dict(self) -> dict[str, Any]:
        own = {"L": self.size, "slope": plain(self.slope), "samples": self.samples}
        return own | self.value.to_dict("root")


@dataclass(frozen=True, repr=False)
class RootFit(Shown):
    """p_c from the roots of several sizes.

    threshold: p_c with its error; the statistical part comes from the samples, the systematic part
    from the drift with size.  roots: of each size, ascending.  drift: the priors of its amplitudes.
    weights: of the roots in p_c.  notes: remarks, one sentence each.
    """

    threshold: Value
    roots: tuple[SizeRoot, ...]
    drift: Drift
    weights: tuple[float, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def p_c(self) -> Value:
        """The threshold, by the name that other fits have for it."""
        return self.threshold

    @property
    def problem(self) -> str | None:
        problem = f"no p_c: the roots of the sizes contradict each other ({self.threshold.quality})"
        return problem if self.threshold.rejected else None

    def _facts(self) -> dict[str, Any]:
        p_c = self.threshold
        return {
            **({"problem": self.problem} if self.problem else {"p_c": p_c}),
            "statistical, systematic": f"{p_c.statistical_error:.2g}, {p_c.systematic_error:.2g}",
            "roots": ", ".join(f"{root.value} at L = {root.size}" for root in self.roots),
            **{f"note {n}": note for n, note in enumerate(self.notes, 1)},
        }

    def to_dict(self) -> dict[str, Any]:
        p_c = self.threshold.to_dict("value")
        return {
            "p_c": p_c,
            "threshold": p_c["value"],
            "threshold_error": p_c["error"],
            "roots": [
                root.to_dict() | {"weight": plain(weight)}
                for root, weight in zip(self.roots, self.weights, strict=True)
            ],
            "drift": {"L^-4": self.drift.fourth, "L^-2": self.drift.second},
            "notes": list(self.notes),
        }


#: Options of :func:`fit_roots`.
ROOT_OPTIONS = ("min_size", "priors")


def fit_roots(
    results: StoredResults, *, min_size: int | None = None, priors: float = 1.0
) -> RootFit:
    """Return p_c from the roots of the sizes of stored results.

    min_size: smallest L to use.  priors: factor on the widths of the priors of the drift.

    AnalysisError: no size has p on both sides of its root, or too few blocks.  It is raised, too,
    where results have no such roots (:func:`why_no_roots`).
    """
    if reason := why_no_roots(results.study):
        raise AnalysisError(reason)
    roots, stored = [], joined(results)
    lacks: dict[str, list[str]] = {}
    sizes = sorted({result.task.size for result in stored.measured})
    used = [size for size in sizes if size >= (min_size or 1)]
    if sizes and not used:
        raise AnalysisError(f"no size of L >= {min_size}: the largest is {sizes[-1]}")
    for size in used:
        try:
            roots.append(find_root(stored.of_size(size)))
        except AnalysisError as error:
            lacks.setdefault(str(error), []).append(str(size))
    notes = [f"L = {', '.join(of)}: {reason}" for reason, of in lacks.items()]
    if not roots:
        raise AnalysisError("; ".join(notes) or "no samples yet")
    return combine_roots(roots, choose_drift(results.study).widened(priors), notes)


def combine_roots(roots: Sequence[SizeRoot], drift: Drift, notes: Sequence[str] = ()) -> RootFit:
    """Return p_c from roots of different sizes, whose drifts have Gaussian priors."""
    values = np.array([root.value.value for root in roots])
    statistical = np.diag([root.value.error**2 for root in roots])
    covariance = statistical + drift.spread(np.array([root.length for root in roots]))
    weights = np.linalg.solve(covariance, np.ones(len(roots)))
    variance = 1 / weights.sum()
    weights *= variance
    threshold = float(weights @ values)
    rest = values - threshold
    chi_square = ChiSquare.of(float(rest @ np.linalg.solve(covariance, rest)), len(roots) - 1)
    combined = Value(
        threshold, sqrt(variance), sqrt(float(weights @ statistical @ weights)), chi_square, 1
    )
    return RootFit(combined, tuple(roots), drift, tuple(map(float, weights)), tuple(notes))


@dataclass(frozen=True, eq=False)
class _Curve:
    """D of one set of samples: p, means and root of the inverse covariance, (m,), (m,), (m, m).

    slope: dD/dp at ``slope_p`` with its error, where it is known from the openings; or None.
    """

    p: Floats
    mean: Floats
    whitening: Floats
    slope: tuple[float, float] | None = None
    slope_p: float = 0.0


def find_root(items: Iterable[TaskResult]) -> SizeRoot:
    """Return the root of one size; items: its tasks, no two of which share samples."""
    measured = [result for result in items if result.blocks]
    task = measured[0].task
    curves: list[_Curve] = []
    for result in measured:
        # With independent samples all p in the window are one curve; chains give one for each p.
        independent = result.task.kind.independent
        curves += filter(None, [_read_curve(result)]) if independent else _read_chains(result)
    curvature = _CURVATURE * task.draw.states
    p = np.concatenate([np.empty(0), *(curve.p for curve in curves)])
    mean = np.concatenate([np.empty(0), *(curve.mean for curve in curves)])
    slopes = [curve.slope[0] for curve in curves if curve.slope is not None]
    has_both = np.unique(p).size > 1 and mean.min() <= 0 <= mean.max()
    if not has_both and not slopes:
        raise AnalysisError(
            f"P(two directions) - P(no direction) needs {LEAST_BLOCKS} blocks, and p on both sides "
            f"of its root at which it is between -{_WINDOW} and {_WINDOW}"
        )
    slope, start = (
        (slopes[0], mean[0] - slopes[0] * p[0]) if slopes else np.polyfit(p, mean, 1).tolist()
    )
    if slope == 0:
        raise AnalysisError("the samples do not determine the root")

    parameters = np.array([-start / slope, slope, 0.0, 0.0])
    for _ in range(_MOST_STEPS):
        rest, jacobian = _residuals(curves, parameters, curvature)
        scaled, scale = unit_diagonal(jacobian.T @ jacobian)
        covariance = np.linalg.inv(scaled) * np.outer(scale, scale)
        step = covariance @ jacobian.T @ rest
        parameters -= step
        if abs(step[0]) < _CONVERGED * sqrt(covariance[0, 0]):
            break
    root, slope = parameters[:2].tolist()
    reach = _WINDOW / slope if slopes else 0.0
    if slope <= 0 or not p.min() - reach <= root <= p.max() + reach:
        raise AnalysisError("the samples do not determine the root")
    value = Value(float(root), sqrt(covariance[0, 0]), sqrt(covariance[0, 0]))
    length = prod(task.shape) ** (1 / len(task.shape))
    samples = Counter[float]()
    for result in measured:
        samples.update(dict.fromkeys(result.task.p, result.num_samples))
    return SizeRoot(task.size, length, value, float(slope), max(samples.values()))


def _residuals(
    curves: Sequence[_Curve], parameters: Floats, curvature: Floats
) -> tuple[Floats, Floats]:
    """Return the residuals of D, its slopes and the priors, float64 (n,), and Jacobian (n, 4)."""
    root, rate, k, l = parameters  # noqa: E741
    rest, jacobian = [parameters[2:] / curvature], [np.eye(4)[2:] / curvature[:, None]]
    for curve in curves:
        away = curve.p - root
        u = rate * away
        first = 1 + 2 * k * u + 3 * l * u**2
        rest.append(curve.whitening @ (u * (1 + k * u + l * u**2) - curve.mean))
        jacobian.append(curve.whitening @ np.array([-rate * first, away * first, u**2, u**3]).T)
        if curve.slope is not None:
            away, (value, error) = curve.slope_p - root, curve.slope
            u = rate * away
            first, bend = 1 + 2 * k * u + 3 * l * u**2, rate * (2 * k + 6 * l * u)
            rest.append(np.array([rate * first - value]) / error)
            own = [-rate * bend, first + bend * away, 2 * rate * u, 3 * rate * u**2]
            jacobian.append(np.array([own]) / error)
    return np.concatenate(rest), np.concatenate(jacobian)


def _read_chains(result: TaskResult) -> list[_Curve]:
    """Return D and its slope at each p within the window, from the means of independent chains.

    The open bonds b have the weight (p / (1 - p))^b, so that dD/dp = cov(D, b) / (p (1 - p)).
    """
    if len(result.blocks) < LEAST_BLOCKS or not has_slopes(result):
        return []
    q, samples, curves = result.task.draw.states, result.num_samples, []
    for place, p in enumerate(result.task.p):
        two, none, open_two, open_none, bonds = _read_sums(result, place, "open_bonds")
        difference = two - q * none
        mean, most = difference.sum() / samples, bonds.sum() / samples
        if abs(mean) > _WINDOW:
            continue
        # Sums over chains of (D - mean) (b - its mean).
        products = open_two - q * open_none
        products += mean * most * result.samples - mean * bonds - most * difference
        slope, scatter = products.sum() / samples, _error_of_mean(products, result.samples)
        error = _error_of_mean(difference, result.samples) + 1 / samples
        if slope > 0 and scatter > 0:
            unit = p * (1 - p)
            at = np.array([p]), np.array([mean]), np.array([[1 / error]])
            curves.append(_Curve(*at, (slope / unit, scatter / unit), p))
    return curves


def _read_sums(result: TaskResult, place: int, openings: str) -> list[Floats]:
    """Return block sums at one p: of "two" and "none", the openings in each, and all openings."""
    names = ("wrapping_two", "wrapping_none", "openings_two", "openings_none", openings)
    return [result.column(name)[:, place].astype(float) for name in names]


def _error_of_mean(sums: Floats, samples: NDArray[np.int64]) -> float:
    """Return the error of a mean over all samples from independent sums over parts, (n,)."""
    away = sums - sums.sum() / samples.sum() * samples
    return float(sqrt((away**2).sum() * sums.size / (sums.size - 1)) / samples.sum())


def _read_curve(result: TaskResult) -> _Curve | None:
    """Return D of a task at the p within the window; None where there are none.

    The variance of D is exact, as it is -1, 0 or 1 in each sample; correlations between several p
    of the same samples are estimated from the blocks.
    """
    samples, blocks = result.num_samples, len(result.blocks)
    two, none = _column(result, "two"), _column(result, "none")
    mean = (two - none).sum(axis=0) / samples
    near = np.abs(mean) <= _WINDOW
    if near.sum() > 1 and blocks < LEAST_BLOCKS:
        near &= np.abs(mean) == np.abs(mean).min()
    if not near.any():
        return None
    share = (two + none).sum(axis=0)[near] / samples
    if len(result.blocks) >= LEAST_BLOCKS and has_slopes(result):
        # Other p of the same samples add hardly any information.
        curve = _read_with_openings(result, int(np.abs(mean).argmin()))
        if curve is not None:
            return curve
    # One count is added, so that a few samples that all agree do not have an error of 0.
    deviation = np.sqrt((np.maximum(share - mean[near] ** 2, 0) + 1 / samples) / samples)
    correlation = np.eye(int(near.sum()))
    if near.sum() > 1:
        away = (two - none - result.samples[:, None] * mean)[:, near]
        spread = np.sqrt((away**2).sum(axis=0))
        with np.errstate(invalid="ignore"):
            measured = np.nan_to_num(away.T @ away / np.outer(spread, spread))
        # Noise must not make the matrix singular.
        correlation = 0.999 * measured + 0.001 * correlation
        np.fill_diagonal(correlation, 1.0)
    covariance = correlation * np.outer(deviation, deviation)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    return _Curve(np.array(result.task.p)[near], mean[near], whitening)


def has_slopes(result: TaskResult) -> bool:
    """Return whether the covariance with the openings gives the slope of D at each p."""
    draw = result.task.draw
    own = result.has("wrapping_two", "wrapping_none", "openings_two", "openings_none")
    return own and (draw.openings_have_p or bool(draw.chains))


def _read_with_openings(result: TaskResult, place: int) -> _Curve | None:
    """Return D at one of the p of a task, and its slope from the covariance with the openings.

    None where there are too few samples to show a slope.

    With N of M open and z = N - M p, dD/dp = cov(D, z) / (p (1 - p)).  The part of D that varies
    with N acts as if p were N / M: D is taken at the mean of N / M, and only the rest is its error.
    """
    p, most = result.task.p[place], result.task.num_openings
    samples, unit = result.num_samples, p * (1 - p)
    two, none, open_two, open_none, opened = _read_sums(result, place, OPENINGS)
    mean, excess = (two - none).sum() / samples, opened - most * p * result.samples
    # Sums over blocks of (D - mean) z, whose scatter is the error of the slope.
    with_excess = open_two - open_none - most * p * (two - none) - mean * excess
    slope = with_excess.sum() / samples / unit
    scatter = _error_of_mean(with_excess, result.samples) / unit
    variance = (two + none).sum() / samples - mean**2
    rest = max(variance - slope**2 * unit / most, 0) + 1 / samples
    if slope <= 0 or scatter == 0:
        return None
    at = np.array([p + excess.sum() / samples / most]), np.array([mean])
    return _Curve(*at, np.array([[1 / sqrt(rest / samples)]]), (slope, scatter), p)


def _column(result: TaskResult, word: str) -> Floats:
    """Return block sums of P(two) or P(none), also of files without columns for these."""
    if result.has(f"wrapping_{word}"):
        return result.column(f"wrapping_{word}").astype(float)
    if word == "two":
        return (result.column("wrapping_all") - result.column("wrapping_diagonal")).astype(float)
    return (result.samples[:, None] - result.column("wrapping_any")).astype(float)


def read_difference(result: TaskResult) -> float:
    """Return D of a task of one p."""
    two, none = (_column(result, name).sum() for name in ("two", "none"))
    return float(two - result.task.draw.states * none) / result.num_samples


def read_differences(items: Iterable[TaskResult]) -> tuple[Floats, Floats, Floats]:
    """Return p, D and its standard error of the tasks of one size, float64 (m,), p ascending."""
    sums: dict[float, Floats] = {}
    for result in items:
        two, none, samples = _column(result, "two"), _column(result, "none"), result.num_samples
        difference = two - result.task.draw.states * none
        mean = difference.sum(axis=0) / samples
        # Variance of D in one sample: the squared error of the mean is this over their number.
        spread = np.maximum((two + none).sum(axis=0) / samples - mean**2, 0)
        if not result.task.kind.independent:
            errors = [_error_of_mean(own, result.samples) for own in difference.T]
            spread = samples * np.square(errors)
        for n, p in enumerate(result.task.p):
            sums[p] = sums.get(p, 0) + samples * np.array([mean[n], spread[n], 1])
    every = sorted(sums)
    mean, spread, total = np.array([sums[p] for p in every]).T
    return np.array(every), mean / total, np.sqrt(spread) / total


def bend_of(difference: float, states: float) -> float:
    """Return how far D, where it has this value, may be off a straight line through its root."""
    return float(states * _CURVATURE[0] * difference**2)


#: (a, b, c) for 1, 2, 3 and 4 states: dD/dp is about a L^b, and the error of D c / sqrt(samples),
#: every sweep of a chain counting as a sample.
_FORECASTS = {1: (1.8, 0.75, 0.79), 2: (3.0, 1.0, 2.0), 3: (3.2, 1.2, 4.0), 4: (2.3, 1.5, 9.0)}


def forecast(length: float, states: float = 1) -> tuple[float, float]:
    """Return estimates of dD/dp at p_c, and of the error of D times sqrt(samples).

    For q between integers they are interpolated; on square-nnn the slope is twice as large.
    """
    columns = zip(*_FORECASTS.values(), strict=True)
    factor, power, scatter = (np.interp(states, list(_FORECASTS), own) for own in columns)
    return float(factor * length**power), float(scatter)


#: Why a threshold study has no curves: its p are few, and near p_c.
NO_CURVES = (
    "percolab threshold samples only a few p near p_c, for roots of P(two directions) - P(none "
    "wraps); for a curve use percolab sweep --boundary periodic"
)


def was_searched(results: StoredResults) -> bool:
    """Return whether ``percolab threshold`` made results, which no sweep over p has extended."""
    made = any(
        isinstance(run.get("asked"), Mapping) and "threshold" in run["asked"]
        for run in results.runs
    )
    return made and all(len(result.task.p) == 1 for result in results.tasks.values())


def asks_for_roots(results: StoredResults) -> bool:
    """Return whether results were made by ``percolab threshold`` in two dimensions."""
    return was_searched(results) and not why_no_roots(results.study)


def difference_text(model: str) -> str:
    """Return what vanishes at a root, in words."""
    states = Model.parse(model).states
    times = f"{states:g} " if states > 1 else ""
    return f"P(two directions) - {times}P(none wraps)"


def known_threshold(structure: Structure, model: str) -> Known | None:
    """Return the published p_c of a model, or None; with spins, that of the open bonds."""
    draw = Model.parse(model)
    if draw.chains:
        return critical_bond_probability(library_name(structure), draw.states)
    known = structure.threshold(model)
    if known is None:
        return None
    return Known(known.value, known.error, known.expression, known.reference)


def coupling_record(value: Value, model: str) -> dict[str, Any]:
    """Return J / kT and kT / J at p_c with their errors, as plain JSON values; {} without spins."""
    draw = Model.parse(model)
    if not draw.chains:
        return {}
    coupling = draw.p_to_coupling(value.value)
    error = value.error / (1 - value.value) / draw.exponent
    record = {"coupling_name": draw.coupling_symbol, "coupling": coupling, "coupling_error": error}
    return record | {"temperature": 1 / coupling, "temperature_error": error / coupling**2}


def coupling_rows(value: Value, model: str) -> list[tuple[str, str, str]]:
    """Return name, value and convention of J / kT and of kT / J at p_c; [] without spins."""
    record, draw = coupling_record(value, model), Model.parse(model)
    if not record:
        return []
    coupling, temperature = (
        format_with_error(record[name], record[f"{name}_error"])
        for name in ("coupling", "temperature")
    )
    symbol = f"{draw.coupling_symbol}_c"
    return [(symbol, coupling, describe_coupling(draw)), ("T_c", temperature, "kT / J")]


def describe_coupling(model: Model) -> str:
    """Return the convention of a spin model's coupling, in formulae."""
    if model.name == "ising":
        return "H = -J sum s s', K = J / kT, p = 1 - exp(-2 K)"
    return "H = -J sum delta(s, s'), beta = J / kT, p = 1 - exp(-beta)"


def root_table(fit: RootFit, structure: Structure, model: str) -> str:
    """Render p_c with both parts of its error, the published value, the roots, and notes."""
    value, statistical, systematic = fit.threshold.cells
    rows = [
        ("p_c", value, "whole error"),
        ("", statistical, "of it statistical"),
        ("", systematic, f"systematic: drift of the roots, {fit.drift}"),
    ]
    if fit.problem is not None:
        rows = [("p_c", f"{fit.threshold.value:.4g}?", "no answer, see above")]
    elif fit.threshold.quality.dof:
        rows.append(("roots", "", f"agree with this drift, {fit.threshold.quality}"))
    if fit.problem is None:
        rows += coupling_rows(fit.threshold, model)
    known = known_threshold(structure, model)
    if known is not None:
        rows.append(("", "", published_text(known, fit.threshold if fit.problem is None else None)))
    roots = [
        (root.size, str(root.value), f"{weight:.2f}", f"{root.slope:.4g}", root.samples)
        for root, weight in zip(fit.roots, fit.weights, strict=True)
    ]
    heads = ("L", "root", "weight", "dD/dp", "samples")
    tables = Table((), rows).to_text(), Table(heads, roots, fit.notes).to_text()
    return "\n\n".join([*filter(None, [fit.problem]), *tables])


def threshold_record(study: Study, fit: Any) -> dict[str, Any]:
    """Return p_c, from roots or from wrapping probabilities, as plain JSON values."""
    own: dict[str, Any] = {"lattice": study.structure.name, "model": study.model}
    couplings = {} if fit.problem else coupling_record(fit.p_c, study.model)
    own |= fit.to_dict()
    return own | couplings
