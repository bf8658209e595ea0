"""p_c of tori in three dimensions and more: wrapping probabilities of all sizes in one fit.

The probabilities that a cluster wraps around any axis, around one (the mean over the axes), and
around all are fitted together (:mod:`percolab.analysis.quantity_fits`).

Samples are made next to p_c (:mod:`percolab.run.scaling_search`): most samples of a size at one p,
its centre, and a few at the centre and at two p on its sides, which give the slopes.  Their Fisher
information about all parameters of the fit decides which sizes to sample, and how much: n samples
of size L have n J^T C^-1 J, where J are the derivatives of the three probabilities at these p, and
C is their covariance in one sample, which hardly depends on L at p_c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from percolab.analysis.averaging import ThresholdAverage
from percolab.analysis.json_values import Record
from percolab.analysis.quantities import Observations, Quantity, list_quantities
from percolab.analysis.quantity_fits import (
    Fitter,
    QuantityAnalysis,
    find_range,
    list_dropped,
    make_fitter,
)
from percolab.analysis.quantity_model import JointMaximum, JointModel
from percolab.analysis.roots import (
    ROOT_OPTIONS,
    RootFit,
    asks_for_roots,
    fit_roots,
    was_searched,
)
from percolab.analysis.statistics import Floats, jackknife_error, unit_diagonal
from percolab.analysis.stored_data import read_moments
from percolab.analysis.stored_fits import Prior, fit_quantities, read_joint_input
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import Information
from percolab.analysis.value import Value
from percolab.errors import AnalysisError
from percolab.lattices.lattice import Lattice
from percolab.store.results import StoredResults
from percolab.tasks.study import Study

#: The fitted quantities.
QUANTITIES = ("wrapping_any", "wrapping_axis", "wrapping_all")
#: Degrees that are averaged.  The p are so near to p_c that X^3 hardly matters, and X^4 only where
#: errors are below 1e-6.  Without degree 2, which fixes X^3 at 0, few samples would leave the slope
#: at the centre undetermined.
DEGREES = (2, 3, 4)
#: Change of P(any axis) between the centre and a side.
SIDE = 0.12
# Correlation of side, centre, side in one sample, P(any axis) being 0.34, 0.46, 0.58: since what
# wraps at one p wraps at a larger one, that of P < R is (P (1 - R) / R (1 - P))^(1/2).
_ALONG_P = np.array([[1.0, 0.78, 0.61], [0.78, 1.0, 0.78], [0.61, 0.78, 1.0]])
#: Samples at each side, over those at the centre.
SIDE_SHARE = 0.05

# Part of the work that is shared equally among all sizes, whatever their information.
_EQUAL_SHARE = 0.25
# Steps of the weights of sizes, each of which multiplies them by the root of their gain.
_STEPS = 40


def why_no_wrapping(study: Study) -> str:
    """Return why wrapping probabilities of several sizes do not give p_c, or ""."""
    lattice = study.structure
    if not isinstance(lattice, Lattice) or lattice.dimension < 3:
        return "wrapping probabilities of all sizes are fitted in three dimensions and more"
    if set(study.boundary) != {"periodic"}:
        return "clusters wrap on tori (--boundary periodic)"
    if not (study.kind.independent and study.kind.codec.holds_columns):
        return "the samples are not of percolation at given p"
    return ""


def list_fitted(study: Study) -> list[Quantity]:
    """Return the fitted quantities, in the order of QUANTITIES."""
    known = {quantity.name: quantity for quantity in list_quantities(study.boundary)}
    return [known[name] for name in QUANTITIES]


def asks_for_wrapping(results: StoredResults) -> bool:
    """Return whether results were made by ``percolab threshold`` in three dimensions or more."""
    return was_searched(results) and not why_no_wrapping(results.study)


def read_universal(results: StoredResults) -> Prior:
    """Return whether known values at p_c are priors of results, as the last search had them."""
    asked: Any = [run.get("asked") for run in results.runs if "asked" in run][-1:]
    searches = [own["threshold"] for own in asked if isinstance(own, dict) and "threshold" in own]
    return "known" if any(isinstance(x, dict) and x.get("universal") for x in searches) else "free"


#: Options of :func:`fit_wrapping`.
WRAPPING_OPTIONS = ("universal", "omega", "min_size", "degree", "nu", "priors")


def fit_wrapping(
    results: StoredResults,
    universal: Prior | None = None,
    names: Sequence[str] = QUANTITIES,
    *,
    degree: int | None = None,
    **options: Any,
) -> QuantityAnalysis:
    """Return p_c from the wrapping probabilities of all sizes; AnalysisError: too few samples.

    universal: whether values at p_c are priors (:func:`fit_quantities`), by default as the last
    search had it.  names: of other quantities.  degree: in place of DEGREES.  options: those of
    :func:`fit_quantities`.
    """
    own = read_universal(results) if universal is None else universal
    return fit_quantities(results, names, degree=degree or DEGREES, universal=own, **options)


#: Why options of fits are refused where results of ``percolab threshold`` are drawn.
FIXED_FIT = (
    "figures of percolab threshold show the fit that it made; percolab fit takes these options"
)


def search_options(results: StoredResults) -> tuple[str, ...]:
    """Return the options of the fit of ``percolab threshold``; () of results that it did not make.

    These are the results that :func:`fit_searched` fits.
    """
    if asks_for_roots(results):
        return ROOT_OPTIONS
    return WRAPPING_OPTIONS if asks_for_wrapping(results) else ()


def fit_searched(results: StoredResults, **options: Any) -> RootFit | QuantityAnalysis:
    """Return p_c of results of ``percolab threshold``, as it finds it."""
    fit: Any = fit_roots if asks_for_roots(results) else fit_wrapping
    found: RootFit | QuantityAnalysis = fit(results, **options)
    return found


@dataclass(frozen=True, eq=False)
class WrappingEstimate:
    """p_c of the samples so far, and the information that further ones would add.

    known: 1/nu, a prior.  notes: on what was left out.  sampled: the smallest and the largest p,
    of those that are left out, too.
    """

    fitter: Fitter
    average: ThresholdAverage[JointMaximum]
    known: Known | None
    notes: tuple[str, ...] = ()
    sampled: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(
        cls, results: StoredResults, universal: Prior | None = None, min_size: int | None = None
    ) -> WrappingEstimate:
        """Return the estimate of results; universal, min_size: as for :func:`fit_wrapping`."""
        if not any(result.blocks for result in results.tasks.values()):
            raise AnalysisError("no samples yet")
        own = read_universal(results) if universal is None else universal
        joint = read_joint_input(results, QUANTITIES, universal=own)
        fitter, used, near = make_fitter(joint, min_size=min_size, degrees=DEGREES)
        notes = (*joint.notes, *list_dropped(used, near))
        return cls(fitter, fitter.average(joint.y_t), joint.y_t, notes, find_range(used))

    @property
    def threshold(self) -> Value:
        return self.average.threshold

    def joint(self) -> tuple[Floats, Floats, Floats]:
        """Return p_c and the QUANTITIES at it, (4,), their whole and statistical covariance."""
        fits, best = self.average.fits, self.average.best
        places = [[fit.place_at_p_c(n) for fit in fits] for n in range(len(QUANTITIES))]
        mean, *covariances = self.average.values([0, *places])
        unit = np.array([best.width, 1.0, 1.0, 1.0])
        whole, statistical = (own * np.outer(unit, unit) for own in covariances)
        return np.array([best.p_0, 0.0, 0.0, 0.0]) + unit * mean, whole, statistical

    def slope(self, size: float) -> float:
        """Return dP(any axis)/dp at p_c."""
        function = self.average.fits[0].functions[0]
        return float(abs(function.coefficients[1]) * size**function.y_t)

    def information(self, sizes: Sequence[int]) -> Information:
        """Return the information of one sample of each size, labelled by its text."""
        first = self.average.fits[0]
        covariance = self._covariance()
        by_size = {str(size): self._information(first, size, covariance) for size in sizes}
        model = self._model(first, ())
        return Information(by_size, np.diag(model.prior[1] ** 2), first.width)

    def _model(self, fit: JointMaximum, observations: tuple[Observations, ...]) -> JointModel:
        units, slopes = self.fitter.start.units(self.fitter.sizes)
        omegas, priors = self.fitter.omegas, (self.known, 1.0, self.fitter.critical)
        return JointModel(observations, fit.degree, omegas, slopes, units, *priors)

    def _covariance(self) -> Floats:
        """Return the covariance in one sample, by quantity at side, centre, side, (9, 9)."""
        count = len(QUANTITIES)
        whole = [x for x in self.fitter.observations if x.dimension == x.p.size]
        whole = [x for x in whole if x.p.size % count == 0]
        if not whole:
            raise AnalysisError("no size has samples of all three probabilities")
        best = max(whole, key=lambda own: own.samples)
        points = best.p.size // count
        at = points // 2 + points * np.arange(count)
        return np.kron(best.covariance[np.ix_(at, at)] * best.samples, _ALONG_P)

    def _information(self, fit: JointMaximum, size: int, covariance: Floats) -> Floats:
        p_c = fit.p_0 + fit.width * float(fit.theta[0])
        three, one = p_c + SIDE / self.slope(size) * np.array([-1.0, 0.0, 1.0]), np.array([p_c])
        at_centre = np.ix_(np.arange(1, 9, 3), np.arange(1, 9, 3))
        information = np.zeros((fit.theta.size, fit.theta.size))
        for p, own, share in (
            (three, covariance, SIDE_SHARE),
            (one, covariance[at_centre], 1 - SIDE_SHARE),
        ):
            # One sample of the three quantities at these p, whose covariance is known.
            count, values = len(QUANTITIES), len(own)
            numbers = np.tile(p, count), np.repeat(np.arange(count), p.size), np.zeros(values)
            observed = Observations(size, *numbers, np.eye(values), own, degrees=2**53, samples=1)
            jacobian = self._model(fit, (observed,)).jacobian(fit.theta)[: observed.dimension]
            information += share * jacobian.T @ jacobian
        return information


@dataclass(frozen=True)
class WrappingCrossing(Record):
    """The p at which a quantity is the same on tori of two neighbouring sizes, and its error."""

    quantity: str
    L1: int
    L2: int
    p: float
    error: float


def find_crossings(results: StoredResults) -> list[WrappingCrossing]:
    """Return crossings of each quantity between neighbours.

    For each size, of the p with at least half of the most samples, the one next to p_c is taken.
    The fitted curve leads from there to p_c; its slopes lead from p_c to the crossing.
    """
    estimate = WrappingEstimate.of(results)
    functions, p_c = estimate.average.best.functions, estimate.threshold.value
    quantities = list_fitted(results.study)
    needs = sorted({name for quantity in quantities for name in quantity.needs})
    lines = []
    for size in sorted({result.task.size for result in results.measured}):
        own = [result for result in results.tasks.values() if result.task.size == size]
        most = max(result.num_samples for result in own)
        own = [result for result in own if 2 * result.num_samples >= most]
        result = min(own, key=lambda result: abs(result.task.p[0] - p_c))
        values, replicas = read_moments(result, needs).values(quantities)
        (p,), step = result.task.p, 0.01 / estimate.slope(size)
        moved = np.array([float(f(p_c, size) - f(p, size)) for f in functions])
        slopes = [float(f(p_c + step, size) - f(p_c - step, size)) / (2 * step) for f in functions]
        lines.append((size, values[:, 0] + moved, jackknife_error(replicas)[:, 0], slopes))
    crossings = []
    for (L1, W_1, e_1, s_1), (L2, W_2, e_2, s_2) in pairwise(lines):
        rates = np.subtract(s_2, s_1)
        for n, name in enumerate(QUANTITIES):
            p, error = p_c - (W_2[n] - W_1[n]) / rates[n], np.hypot(e_1[n], e_2[n]) / abs(rates[n])
            crossings.append(WrappingCrossing(name, L1, L2, float(p), float(error)))
    return crossings


@dataclass(frozen=True)
class Division:
    """Work divided among sizes: samples of each, their cost, and the error of p_c they give."""

    samples: Mapping[int, float]
    cost: float
    error: float


def divide_work(
    information: Information, costs: Mapping[int, float], work: float, least: float
) -> Division:
    """Return the samples of each size that give the smallest error of p_c for this work.

    costs: of a sample of each size.  least: least number of samples of each size.

    The variance of p_c is v = e' M^-1 e with M the information of all samples and priors.  Shares
    of the work are multiplied by the root of how fast v falls with them, step by step, towards the
    c-optimal design of G. Elfving, Ann. Math. Stat. 23, 255 (1952).  That leaves out most sizes,
    but they can contradict the fit: a quarter of the work goes to all sizes equally.
    """
    sizes = list(costs)
    own = np.stack([information.of(str(size)) / costs[size] for size in sizes])
    shares = np.full(len(sizes), 1 / len(sizes))
    for _ in range(_STEPS):
        total = information.prior + np.tensordot(work * _mixed(shares), own, 1)
        scaled, scale = unit_diagonal(total)
        first = scale * scale[0] * np.linalg.inv(scaled)[0]
        gains = np.maximum(np.einsum("i,kij,j->k", first, own, first), 0.0)
        better = shares * np.sqrt(gains)
        if not better.sum() > 0:
            # No work makes p_c more precise.
            break
        shares = better / better.sum()
    samples = {
        size: max(work * share / costs[size], least)
        for size, share in zip(sizes, _mixed(shares).tolist(), strict=True)
    }
    cost = sum(costs[size] * n for size, n in samples.items())
    return Division(samples, cost, information.error({str(k): n for k, n in samples.items()}))


def _mixed(shares: Floats) -> Floats:
    return _EQUAL_SHARE / shares.size + (1 - _EQUAL_SHARE) * shares


def divide_for_error(
    information: Information, costs: Mapping[int, float], error: float, least: float
) -> Division:
    """Return the division of the least work that reaches an error of p_c; others: as above.

    If no work reaches it, since these sizes leave corrections open, the error is larger.
    """
    low, high = 1.0, 1e20
    best = divide_work(information, costs, high, least)
    # Bisection gives the same digits on every machine, whatever the last ones of a fit are.
    while high > 1.05 * low:
        work = (low * high) ** 0.5
        tried = divide_work(information, costs, work, least)
        if tried.error <= error:
            high, best = work, tried
        else:
            low = work
    return best
