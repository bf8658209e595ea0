"""The finite-size scaling of several dimensionless quantities with one p_c and one y: one fit.

Every quantity Q is the f of :mod:`percolab.analysis.scaling`: p_c, y and the nonlinear scaling
field are common to all; the amplitudes and the exponent of the leading correction belong to each.

The start: for given p_c and y the model is linear, so p_c and y are searched on a grid, as if the
errors were uncorrelated.  Then only those p are kept at which every quantity is near its value at
p_c.  The fit: generalised least squares with the same natural priors, whitened by the covariance of
each task.  Errors allow for the noise of covariances that are estimated from few blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from percolab.analysis.averaging import ThresholdMember
from percolab.analysis.quantities import PROBABILITY, BlockMoments, Observations, Quantity
from percolab.analysis.scaling import (
    FREE_EXPONENT,
    OUTER,
    ScalingFunction,
    ScalingTerms,
    Units,
    amplitude_precision,
    fit_least_squares,
    outer_prior,
    physical,
)
from percolab.analysis.statistics import Floats, geometric_mean, jackknife_error
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError

#: How far a quantity may be from its value at p_c, by the straight line through it.
REACH = 0.2

#: The change of a quantity between 0 and 1 where its probit changes by 1: the unit in which its
#: amplitudes have the priors of a probit.
PROBIT_UNIT = 0.4

# A slope below this part of the steepest one is too small to be a unit of the terms with X.
_FLAT = 0.1

# The grid of the search: number of p_c in the p of the study, values of y, number of refinements.
_P, _Y_T, _ROUNDS = 41, np.linspace(0.3, 2.7, 9), 3

# Errors in the search are at least this, and the correction in it decays by this exponent.
_FLOOR, _DECAY = 0.003, 1.5

#: Known values at p_c that are priors have this error at least.
LEAST_ERROR = 1e-6

# A parameter that the data do not determine shows in the singular values of the scaled Jacobian.
_UNDETERMINED = 1e-9


@dataclass(frozen=True, eq=False)
class JointModel:
    """The model of a set of observations, in units of order one.

    theta is (delta, y, n, m, amplitudes of the first quantity, of the second, ...), the amplitudes
    of each (a_0 ... a_d, b, c, B, C).  omegas: of each quantity.  slopes: an estimate of |a_1| of
    each, in these units.  known: 1/nu, a prior.  wider: factor on the widths of the other priors.
    critical: of each quantity its known value at p_c, a prior, or None; () for none at all.
    """

    observations: tuple[Observations, ...]
    degree: int
    omegas: tuple[float, ...]
    slopes: tuple[float, ...]
    units: Units
    known: Known | None = None
    wider: float = 1.0
    critical: tuple[Known | None, ...] = ()

    @property
    def terms(self) -> int:
        return self.degree + 5

    @cached_property
    def _data(self) -> tuple[Floats, Floats, Floats, Floats]:
        """p in units, ln(L / L_0), indicators (n, quantities) of the quantity, omega: by value."""
        p = np.concatenate([one.p for one in self.observations])
        size = np.concatenate([np.full(one.p.size, one.L, float) for one in self.observations])
        of = np.concatenate([one.quantity for one in self.observations])
        own = (np.arange(len(self.omegas)) == of[:, None]).astype(float)
        return *self.units.scaled(p, size), own, own @ np.array(self.omegas)

    @cached_property
    def target(self) -> Floats:
        """The whitened values, float64 (d,)."""
        return self.whitened(np.concatenate([one.values for one in self.observations]))

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Mean and 1 / sigma of the priors, float64 (k,) each; 0 where there is none."""
        mean, precision = outer_prior(self.units, self.known, self.wider)
        roots = [np.sqrt(precision)]
        for omega, slope in zip(self.omegas, self.slopes, strict=True):
            # Terms without X are in units of the quantity, those with X in units of its slope.
            unit = np.full(self.terms, slope)
            unit[[0, self.degree + 1, self.degree + 3]] = PROBIT_UNIT
            own = amplitude_precision(self.units, self.degree, omega, self.wider)
            roots.append(np.sqrt(own) / unit)
        root = np.concatenate(roots)
        mean = np.concatenate([mean, np.zeros(root.size - OUTER)])
        for n, known in enumerate(self.critical):
            if known is not None:
                at = OUTER + n * self.terms
                mean[at], root[at] = known.value, 1 / max(known.error, LEAST_ERROR)
        return mean, root

    def whitened(self, values: Floats) -> Floats:
        """Return values (n, ...) as independent numbers of unit variance (d, ...)."""
        ends = np.cumsum([one.p.size for one in self.observations])[:-1]
        parts = np.split(values, ends)
        return np.concatenate(
            [one.whiten @ part for one, part in zip(self.observations, parts, strict=True)]
        )

    def _terms(self, outer: Floats) -> ScalingTerms:
        p, log_size, _, omega = self._data
        return ScalingTerms.at(p, log_size, outer, self.degree, omega)

    def _spread(self, columns: Floats) -> Floats:
        """Return the columns of each quantity's amplitudes side by side, (n, amplitudes)."""
        spread = self._data[2][:, :, None] * columns[:, None, :]
        return np.asarray(spread.reshape(len(columns), -1), np.float64)

    def _amplitudes(self, theta: Floats) -> Floats:
        """Return the amplitudes of every value's quantity, float64 (n, terms)."""
        return np.asarray(self._data[2] @ theta[OUTER:].reshape(-1, self.terms), np.float64)

    def start(self, y_t: float) -> Floats:
        """Return theta at p_0, with the best amplitudes there."""
        outer = np.array([0.0, y_t, 0.0, 0.0])
        mean, root = self.prior
        design = self.whitened(self._spread(self._terms(outer).columns))
        design = np.vstack([design, np.diag(root[OUTER:])])
        target = np.concatenate([self.target, root[OUTER:] * mean[OUTER:]])
        return np.concatenate([outer, np.linalg.lstsq(design, target, rcond=1e-12)[0]])

    def residuals(self, theta: Floats) -> Floats:
        """Return the whitened residuals, model minus values, then those of the priors, (d + k,)."""
        values = np.sum(self._terms(theta[:OUTER]).columns * self._amplitudes(theta), axis=1)
        mean, root = self.prior
        return np.concatenate([self.whitened(values) - self.target, root * (theta - mean)])

    def jacobian(self, theta: Floats) -> Floats:
        """Return the derivatives of the residuals, float64 (d + k, k)."""
        terms = self._terms(theta[:OUTER])
        outer = terms.slope(self._amplitudes(theta))[:, None] * terms.derivatives
        data = self.whitened(np.hstack([outer, self._spread(terms.columns)]))
        return np.vstack([data, np.diag(self.prior[1])])


@dataclass(frozen=True, eq=False)
class JointMaximum(ThresholdMember):
    """One joint fit; functions: the scaling of each quantity, in physical parameters."""

    functions: tuple[ScalingFunction, ...]

    def place_at_p_c(self, index: int) -> int:
        """Return the index in theta of the value of a quantity at p_c."""
        return OUTER + index * (self.degree + 5)


@dataclass(frozen=True)
class Start:
    """p_c, y and |a_1| of each quantity in a rough fit.

    power: kappa of L^kappa f, else 0.  spans: of each quantity, () where one is a probability.
    """

    threshold: float
    y_t: float
    slopes: tuple[float, ...]
    power: float = 0.0
    spans: tuple[float, ...] = ()

    @property
    def steepest(self) -> float:
        """The slope of a probability: the largest slope of a quantity over its span."""
        spans = self.spans or (1.0,) * len(self.slopes)
        return max(*(slope / span for slope, span in zip(self.slopes, spans, strict=True)), 1e-3)

    def near(self, moments: BlockMoments) -> np.ndarray:
        """Return which p of a task are near p_c, bool (m,)."""
        x = (moments.p - self.threshold) * moments.L**self.y_t
        return np.asarray(np.abs(self.steepest * x) <= REACH)

    def units(self, sizes: Sequence[int]) -> tuple[Units, tuple[float, ...]]:
        """Return units in which the steepest slope is PROBIT_UNIT, and the slopes in them."""
        L_0 = geometric_mean(sizes)
        width = PROBIT_UNIT / self.steepest / L_0**self.y_t
        slopes = [max(abs(slope) / self.steepest, _FLAT) * PROBIT_UNIT for slope in self.slopes]
        return Units(self.threshold, width, L_0), tuple(slopes)


def near_threshold(
    moments: Sequence[BlockMoments], quantities: Sequence[Quantity], known: Known | None = None
) -> tuple[Start, list[BlockMoments]]:
    """Return the start of a fit and the moments near p_c, of two sizes at least; known: 1/nu."""
    kept = list(moments)
    has_probability = any(each.kind == PROBABILITY for each in quantities)
    spans = () if has_probability else tuple(each.span for each in quantities)

    def search() -> Start:
        found = search_start([_table(kept, each) for each in quantities], known)
        return replace(found, spans=spans)

    start = search()
    for _ in range(2):
        masks = [start.near(each) for each in moments]
        near = [each.at(mask) for each, mask in zip(moments, masks, strict=True) if mask.any()]
        if len({each.L for each in near}) < 2 or len({p for m in near for p in m.p.tolist()}) < 2:
            raise AnalysisError(
                f"fewer than two sizes have p near {start.threshold:.6g}, within "
                f"{REACH / start.steepest:.2g} L^-{start.y_t:.2f} of it: use a finer p grid"
            )
        if [each.p.size for each in near] == [each.p.size for each in kept]:
            break
        kept = near
        start = search()
    return start, kept


def search_start(
    tables: Sequence[tuple[Floats, ...]], known: Known | None = None, *, power: bool = False
) -> Start:
    """Return p_c, y and the slopes of the best rough fit; known: 1/nu.

    tables: of every quantity L, p, values and errors, float64 (n,) each.  power: whether kappa ln L
    is a term of the values, which are logarithms.
    """
    low = min(float(p.min()) for _, p, *_ in tables)
    high = max(float(p.max()) for _, p, *_ in tables)
    y_ts, best = _Y_T if known is None else np.array([known.value]), (low, 1.0)
    mean, sigma = FREE_EXPONENT
    for _ in range(_ROUNDS):
        p_cs = np.linspace(low, high, _P)
        misfits = np.zeros((_P, len(y_ts)))
        for own, y_t in zip(misfits.T, y_ts, strict=True):
            own += ((y_t - mean) / sigma) ** 2 if known is None else 0.0
            own += np.sum([_misfits(table, p_cs, y_t, power)[0] for table in tables], axis=0)
        place = np.unravel_index(np.argmin(misfits), misfits.shape)
        best = float(p_cs[place[0]]), float(y_ts[place[1]])
        width = (high - low) / (_P - 1)
        low, high = best[0] - 2 * width, best[0] + 2 * width
        if known is None:
            step = (y_ts[-1] - y_ts[0]) / (len(y_ts) - 1)
            y_ts = np.linspace(max(best[1] - step, 0.1), best[1] + step, 5)
    rough = [_misfits(table, np.array(best[:1]), best[1], power) for table in tables]
    return Start(*best, tuple(abs(float(slope[0])) for _, slope, _ in rough), float(rough[0][2][0]))


def _table(moments: Sequence[BlockMoments], quantity: Quantity) -> tuple[Floats, ...]:
    """Return L, p, values and errors of one quantity, each (n,), of all tasks that have it."""
    rows = []
    for each in moments:
        if each.has(quantity):
            blocks = each.samples.size
            if blocks < 2:
                raise AnalysisError(f"L = {each.L}: one block has no error; add samples")
            values, replicas = each.values([quantity])
            errors = jackknife_error(replicas[:, 0])
            size = np.full(each.p.size, float(each.L))
            rows.append(np.stack([size, each.p, values[0], np.hypot(errors, _FLOOR)]))
    return tuple(np.concatenate(rows, axis=1))


def _misfits(
    table: tuple[Floats, ...], p_c: Floats, y_t: float, power: bool
) -> tuple[Floats, Floats, Floats]:
    """Return the residual sum of squares of a quantity at each p_c, its a_1, and kappa or 0."""
    size, p, values, errors = table
    scale = (p.max() - p.min()) * np.median(size) ** y_t
    x = (p - p_c[:, None]) * size**y_t / scale
    others = [size**-_DECAY] + [np.log(size / np.median(size))] * power
    columns = [x**n for n in range(4)] + [np.broadcast_to(each, x.shape) for each in others]
    design = np.stack(columns, axis=2) / errors[:, None]
    # With few p, priors of order one exclude large terms that cancel each other.
    priors = np.broadcast_to(np.eye(5 + power)[2:5], (p_c.size, 3, 5 + power))
    whitened = np.concatenate([design, priors], axis=1)
    target = np.concatenate([values / errors, np.zeros(3)])
    theta = np.linalg.pinv(whitened, rcond=1e-10) @ target
    left = np.sum((target - (whitened @ theta[:, :, None])[:, :, 0]) ** 2, axis=1)
    return left, theta[:, 1] / scale, theta[:, 5] if power else np.zeros(p_c.size)


def fit_joint(model: JointModel, y_t: float, *, left_out: int = 0) -> JointMaximum:
    """Minimise chi^2; left_out: number of omitted values.  AnalysisError: it is undetermined."""
    theta, cost = fit_least_squares(model.residuals, model.start(y_t), model.jacobian)
    covariance, statistical, effective = _covariance(model, model.jacobian(theta))
    amplitudes = theta[OUTER:].reshape(-1, model.terms)
    return JointMaximum(
        min_size=min(task.L for task in model.observations),
        degree=model.degree,
        p_0=model.units.p_0,
        width=model.units.width,
        theta=theta,
        covariance=covariance,
        statistical=statistical,
        chi_square=ChiSquare.of(cost, max(round(model.target.size - effective), 0)),
        criterion=cost + 2 * theta.size + 2 * left_out,
        functions=tuple(
            physical(theta[:OUTER], own, model.units, omega)
            for own, omega in zip(amplitudes, model.omegas, strict=True)
        ),
    )


def _covariance(model: JointModel, jacobian: Floats) -> tuple[Floats, Floats, float]:
    """Return the whole and the statistical covariance, (k, k), and the effective parameters.

    If the covariances of the data were exact, the whole one would be the inverse of H = J^T J.  The
    part of H of a task whose d residuals are whitened by a covariance of n degrees of freedom, and
    which determines k parameters (the trace of its part of the hat matrix), has a factor, exact for
    one task: (n - 1) (n - d - 1) / ((n - 1 - d + k) (n - d + k)): C. R. Rao, Proc. 5th Berkeley
    Symp. 1, 355 (1967).
    """
    scale = np.linalg.norm(jacobian, axis=0)
    singular = np.zeros(1)
    if np.isfinite(scale).all() and scale.all():
        left, singular, right = np.linalg.svd(jacobian / scale, full_matrices=False)
    if not singular[-1] > _UNDETERMINED * singular[0]:
        raise AnalysisError("the data do not determine all parameters of the fit")
    # Rows of `left` are the residuals in an orthonormal basis of the parameters.
    data, row = np.zeros((singular.size, singular.size)), 0
    for task in model.observations:
        own = left[row : row + task.dimension]
        row += task.dimension
        n, d, k = task.degrees, task.dimension, float(np.sum(own**2))
        factor = (n - 1) * (n - d - 1) / ((n - 1 - d + k) * (n - d + k))
        data += factor * own.T @ own
    effective, priors = float(np.sum(left[:row] ** 2)), left[row:].T @ left[row:]
    back = right.T / singular / scale[:, None]
    return back @ (data + priors) @ back.T, back @ data @ back.T, effective
