"""The finite-size scaling of several dimensionless quantities with one p_c and one y_t: one fit.

    Q(p, L) = Q_c + a_1 x + ... + a_d x^d + b_1 L^-omega + c x L^-omega + b_2 L^-omega_2,
    x = (p - p_c) L^{y_t}

Q_c, a_k, b_1, c and b_2 belong to each quantity.  Source: J. Wang et al., Phys. Rev. E 87, 052107
(2013).

The start.  For given p_c, y_t and omega the model is linear, so p_c and y_t are searched on a grid,
with uncorrelated errors that have a floor, because p far away, which no polynomial describes, must
not spoil the start.  Then only the p are kept at which no quantity is further than REACH from its
value at p_c.

The fit.  Generalised least squares: the residuals are whitened by the covariance of each task, so
that their sum of squares is chi^2.  Errors are those of its curvature, corrected for the noise of
the covariances, which come of a finite number of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from percolab.analysis.fit_quality import ChiSquare
from percolab.analysis.json_values import plain
from percolab.analysis.quantities import BlockMoments, Observations, Quantity
from percolab.analysis.statistics import Floats, geometric_mean, jackknife_error
from percolab.errors import AnalysisError

#: Corrections that can be fitted: which of b_1, c and b_2.
CORRECTIONS = {
    "none": (False, False, False),
    "b": (True, False, False),
    "bc": (True, True, False),
    "b2": (True, False, True),
    "bc2": (True, True, True),
}

#: How far a quantity may be from its value at p_c, in the straight line through it.
REACH = 0.2

# The grid of the search: p_c within the p of the study, y_t, and how often it is made finer.
_P, _Y_T, _ROUNDS = 41, np.linspace(0.3, 2.7, 9), 3

# Errors in the search are at least this, and the correction in it decays by this exponent.
_FLOOR, _DECAY = 0.003, 1.5

# A parameter that the data do not determine shows in the singular values of the scaled Jacobian.
_UNDETERMINED = 1e-9


@dataclass(frozen=True)
class ModelChoice:
    """Which terms are fitted.

    degree: d.  omegas: of each quantity.  corrections: a key of CORRECTIONS.  free_omega: the
    omegas are fitted, one for all quantities that have the same, beginning there.  y_t: held at
    this, or None to fit it.
    """

    degree: int
    omegas: tuple[float, ...]
    corrections: str = "b"
    free_omega: bool = False
    y_t: float | None = None

    @property
    def corrected(self) -> list[int]:
        """Indices in "b", "c", "b_2" of the corrections that are fitted."""
        return [index for index, used in enumerate(CORRECTIONS[self.corrections]) if used]

    @property
    def terms(self) -> int:
        """Amplitudes of each quantity."""
        return self.degree + 1 + sum(CORRECTIONS[self.corrections])


@dataclass(frozen=True)
class Scales:
    """Units in which every parameter is of order one: p = p_0 + width delta, L in units of L_0."""

    p_0: float
    width: float
    L_0: float


@dataclass(frozen=True, eq=False)
class JointModel:
    """The model of a set of observations.

    theta is (delta, [y_t], [omegas], amplitudes of the first quantity, of the second, ...), with
    p_c = p_0 + width delta and amplitudes (A_0 ... A_d, [B, [C], [B_2]]) of the powers of
    X = (p - p_c) / width (L / L_0)^{y_t} and of (L / L_0)^-omega.

    omega_2: exponent of b_2, of all quantities.
    """

    observations: tuple[Observations, ...]
    choice: ModelChoice
    omega_2: float
    scales: Scales

    @cached_property
    def groups(self) -> tuple[float, ...]:
        """The omegas that differ; each is one parameter if omega is fitted."""
        return tuple(sorted(set(self.choice.omegas)))

    @cached_property
    def outer(self) -> int:
        """Parameters that the model is not linear in."""
        groups = len(self.groups) if self.choice.free_omega else 0
        return 1 + (self.choice.y_t is None) + groups

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.outer + len(self.choice.omegas) * self.choice.terms

    @cached_property
    def _data(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """p in units of the width, ln(L / L_0) and quantity of every value, (n,) each."""
        p = np.concatenate([item.p for item in self.observations])
        size = np.concatenate([np.full(item.p.size, item.L, float) for item in self.observations])
        of = np.concatenate([item.quantity for item in self.observations])
        return (p - self.scales.p_0) / self.scales.width, np.log(size / self.scales.L_0), of

    @cached_property
    def _group_of(self) -> NDArray[np.int64]:
        """Index of the omega of every value, (n,)."""
        of_quantity = np.array([self.groups.index(value) for value in self.choice.omegas])
        return of_quantity[self._data[2]]

    @cached_property
    def target(self) -> Floats:
        """The whitened values, float64 (d,)."""
        return self.whitened(np.concatenate([item.values for item in self.observations]))

    def whitened(self, values: Floats) -> Floats:
        """Return values (n, ...) as independent numbers of unit variance (d, ...)."""
        ends = np.cumsum([item.p.size for item in self.observations])[:-1]
        parts = np.split(values, ends)
        return np.concatenate(
            [item.whiten @ part for item, part in zip(self.observations, parts, strict=True)]
        )

    def split(self, theta: Floats) -> tuple[float, float, Floats, Floats]:
        """Return delta, y_t, the omegas of the groups, and amplitudes (quantities, terms)."""
        free_y_t = self.choice.y_t is None
        y_t = float(theta[1]) if self.choice.y_t is None else self.choice.y_t
        omegas = np.array(self.groups)
        if self.choice.free_omega:
            omegas = theta[1 + free_y_t : self.outer]
        amplitudes = theta[self.outer :].reshape(len(self.choice.omegas), -1)
        return float(theta[0]), y_t, omegas, amplitudes

    def _columns(self, delta: float, y_t: float, omegas: Floats) -> tuple[Floats, ...]:
        """Return x, the stretch, the decay and what the amplitudes multiply (n, terms)."""
        p, log_size, _ = self._data
        stretch = np.exp(y_t * log_size)
        x = (p - delta) * stretch
        decay = np.exp(-omegas[self._group_of] * log_size)
        candidates = (decay, x * decay, np.exp(-self.omega_2 * log_size))
        chosen = [candidates[index] for index in self.choice.corrected]
        powers = x[:, None] ** np.arange(self.choice.degree + 1)
        return x, stretch, decay, np.column_stack([powers, *chosen])

    def _spread(self, columns: Floats) -> Floats:
        """Return the columns of each quantity's amplitudes beside one another, (n, amplitudes)."""
        own = np.arange(len(self.choice.omegas)) == self._data[2][:, None]
        spread = own[:, :, None] * columns[:, None, :]
        return np.asarray(spread.reshape(len(columns), -1), np.float64)

    def linear_fit(self, outer: Floats) -> Floats:
        """Return theta with the best amplitudes for given outer parameters."""
        theta = np.concatenate([outer, np.zeros(len(self.choice.omegas) * self.choice.terms)])
        delta, y_t, omegas, _ = self.split(theta)
        design = self.whitened(self._spread(self._columns(delta, y_t, omegas)[-1]))
        theta[self.outer :] = np.linalg.lstsq(design, self.target, rcond=1e-12)[0]
        return theta

    def values(self, theta: Floats) -> Floats:
        """Return the values of the model, float64 (n,), one observation after the other."""
        delta, y_t, omegas, amplitudes = self.split(theta)
        columns = self._columns(delta, y_t, omegas)[-1]
        return np.asarray(np.sum(columns * amplitudes[self._data[2]], axis=1), np.float64)

    def residuals(self, theta: Floats) -> Floats:
        """Return the whitened residuals, model minus values, float64 (d,)."""
        return self.whitened(self.values(theta)) - self.target

    def jacobian(self, theta: Floats) -> Floats:
        """Return the derivatives of the residuals, float64 (d, parameters)."""
        delta, y_t, omegas, amplitudes = self.split(theta)
        x, stretch, decay, columns = self._columns(delta, y_t, omegas)
        own, degree = amplitudes[self._data[2]], self.choice.degree
        slope = np.sum(own[:, 1 : degree + 1] * np.arange(1, degree + 1) * columns[:, :degree], 1)
        with_b, with_c, _ = CORRECTIONS[self.choice.corrections]
        if with_c:
            slope = slope + own[:, degree + 2] * decay
        log_size = self._data[1]
        found = [-slope * stretch]
        if self.choice.y_t is None:
            found.append(slope * x * log_size)
        if self.choice.free_omega:
            size = own[:, degree + 1] * with_b + (own[:, degree + 2] * x if with_c else 0.0)
            found += [
                -size * log_size * decay * (self._group_of == group)
                for group in range(len(self.groups))
            ]
        return self.whitened(np.column_stack([*found, self._spread(columns)]))


def scales_of(observations: Sequence[Observations], p_0: float, width: float) -> Scales:
    """Return the scales of some observations."""
    sizes = sorted({item.L for item in observations})
    return Scales(p_0, width, geometric_mean(sizes))


@dataclass(frozen=True)
class Start:
    """p_c, y_t and the steepest |a_1| of any quantity, of a first rough fit."""

    threshold: float
    y_t: float
    steepest: float

    def near(self, moments: BlockMoments) -> NDArray[np.bool_]:
        """Return which p of a task are near p_c, bool (m,)."""
        x = (moments.p - self.threshold) * moments.L**self.y_t
        return np.asarray(np.abs(self.steepest * x) <= REACH)


def near_threshold(
    moments: Sequence[BlockMoments], quantities: Sequence[Quantity]
) -> tuple[Start, list[BlockMoments]]:
    """Return the start of a fit, and the moments at the p that are near p_c.

    Every quantity has a size with two p.  AnalysisError: fewer than two sizes are near p_c.
    """
    kept = list(moments)
    start = _search(kept, quantities)
    for _ in range(2):
        masks = [start.near(item) for item in moments]
        near = [item.at(mask) for item, mask in zip(moments, masks, strict=True) if mask.any()]
        if len({item.L for item in near}) < 2 or len({p for m in near for p in m.p.tolist()}) < 2:
            raise AnalysisError(
                f"fewer than two sizes have p near {start.threshold:.6g}, within "
                f"{REACH / start.steepest:.2g} L^-{start.y_t:.2f} of it: use a finer p grid"
            )
        if [item.p.size for item in near] == [item.p.size for item in kept]:
            break
        kept, start = near, _search(near, quantities)
    return start, kept


def _search(moments: Sequence[BlockMoments], quantities: Sequence[Quantity]) -> Start:
    tables = [table for item in quantities if (table := _table(moments, item)) is not None]
    p = np.concatenate([item.p for item in moments])
    low, high = float(p.min()), float(p.max())
    y_ts, best = _Y_T, (low, 1.0)
    for _ in range(_ROUNDS):
        grid = [(p_c, y_t) for p_c in np.linspace(low, high, _P) for y_t in y_ts]
        best = min(grid, key=lambda pair: sum(_misfit(table, *pair)[0] for table in tables))
        width, step = (high - low) / (_P - 1), (y_ts[-1] - y_ts[0]) / (len(y_ts) - 1)
        low, high = best[0] - 2 * width, best[0] + 2 * width
        y_ts = np.linspace(max(best[1] - step, 0.1), best[1] + step, 5)
    slopes = [abs(_misfit(table, *best)[1]) for table in tables]
    return Start(float(best[0]), float(best[1]), max(*slopes, 1e-3))


def _table(moments: Sequence[BlockMoments], quantity: Quantity) -> tuple[Floats, ...] | None:
    """Return L, p, values and errors of one quantity, each (n,), of all tasks that have it."""
    rows = []
    for item in moments:
        if item.has(quantity):
            blocks = item.samples.size
            if blocks < 2:
                raise AnalysisError(f"L = {item.L}: one block has no error; add samples")
            values, replicas = item.values([quantity])
            errors = jackknife_error(replicas[:, 0])
            size = np.full(item.p.size, float(item.L))
            rows.append(np.stack([size, item.p, values[0], np.hypot(errors, _FLOOR)]))
    return tuple(np.concatenate(rows, axis=1)) if rows else None


def _misfit(table: tuple[Floats, ...], p_c: float, y_t: float) -> tuple[float, float]:
    """Return the sum of squares that is left of one quantity, and its a_1."""
    size, p, values, errors = table
    scale = (p.max() - p.min()) * np.median(size) ** y_t
    x = (p - p_c) * size**y_t / scale
    design = np.stack([np.ones_like(x), x, x**2, x**3, size**-_DECAY], axis=1)
    theta, *_ = np.linalg.lstsq(design / errors[:, None], values / errors, rcond=1e-10)
    return float(np.sum(((values - design @ theta) / errors) ** 2)), float(theta[1] / scale)


@dataclass(frozen=True)
class Amplitudes:
    """What a fit says of one quantity, with one-sigma errors; NaN where a term was not fitted.

    critical: Q_c.  slopes: a_1 ... a_d.  correction, mixed, second: b_1, c and b_2.  omega: of b_1.
    """

    name: str
    critical: float
    critical_error: float
    slopes: tuple[float, ...]
    slope_errors: tuple[float, ...]
    omega: float
    omega_error: float
    correction: float = nan
    correction_error: float = nan
    mixed: float = nan
    mixed_error: float = nan
    second: float = nan
    second_error: float = nan


@dataclass(frozen=True)
class QuantityFit:
    """One joint fit: p_c and y_t with errors (0 where y_t was held), and every quantity's numbers.

    sizes: linear sizes that entered, ascending.  choice: the terms.  points: independent residuals.
    """

    threshold: float
    threshold_error: float
    y_t: float
    y_t_error: float
    amplitudes: tuple[Amplitudes, ...]
    chi_square: ChiSquare
    sizes: tuple[int, ...]
    points: int
    choice: ModelChoice
    outer: tuple[float, ...]

    @property
    def min_size(self) -> int:
        """L_min."""
        return self.sizes[0]

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return {
            "min_size": self.min_size,
            "sizes": list(self.sizes),
            "degree": self.choice.degree,
            "corrections": self.choice.corrections,
            "omega_free": self.choice.free_omega,
            "y_t_free": self.choice.y_t is None,
            "threshold": self.threshold,
            "threshold_error": self.threshold_error,
            "y_t": self.y_t,
            "y_t_error": self.y_t_error,
            "points": self.points,
            "chi_square": plain(self.chi_square),
            "quantities": [plain(item) for item in self.amplitudes],
        }


def fit_model(model: JointModel, start: Floats, names: Sequence[str]) -> QuantityFit:
    """Minimise chi^2 from a start: delta, [y_t], [omegas].  names: of the quantities.

    AnalysisError: the data do not determine a parameter, or there are fewer data than parameters.
    """
    freedom = model.target.size - model.parameters
    if freedom < 0:
        raise AnalysisError(
            f"{model.target.size} values are too few for a fit with {model.parameters} parameters"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        found = optimize.least_squares(
            model.residuals,
            model.linear_fit(start),
            jac=model.jacobian,
            method="lm",
            x_scale="jac",
            max_nfev=200,
        )
        jacobian = model.jacobian(found.x)
    covariance = _covariance(model, jacobian)
    if not found.success:
        raise AnalysisError("the fit did not converge: fewer terms or more data are needed")
    _, y_t, omegas, _ = model.split(found.x)
    errors = np.sqrt(np.diag(covariance))[model.outer - omegas.size : model.outer]
    unknown = model.choice.free_omega and np.any(errors > omegas)
    if y_t <= 0 or np.any(omegas <= 0) or unknown:
        raise AnalysisError("the data do not determine the exponents of the fit")
    quality = ChiSquare.of(float(2 * found.cost), freedom)
    return _result(model, found.x, covariance, quality, names)


def _covariance(model: JointModel, jacobian: Floats) -> Floats:
    """Return the covariance of the parameters, float64 (k, k).

    Were the covariances of the data exact it would be the inverse of H = J^T J.  A task whose d
    residuals are whitened by a covariance of n degrees of freedom, and which determines k
    parameters (the trace of its part of the hat matrix), adds to it by a factor that is exact for
    one task: (n - 1) (n - d - 1) / ((n - 1 - d + k) (n - d + k)), above 1 for k << d, and below
    where k = d, as then the data are only copied.  It follows from the theory of growth curves, C.
    R. Rao, Proc. 5th Berkeley Symp. 1, 355 (1967).
    """
    scale = np.linalg.norm(jacobian, axis=0)
    if not (np.all(np.isfinite(scale)) and np.all(scale > 0)):
        raise AnalysisError("the data do not determine all parameters of the fit")
    left, singular, right = np.linalg.svd(jacobian / scale, full_matrices=False)
    if singular[-1] < _UNDETERMINED * singular[0]:
        raise AnalysisError("the data do not determine all parameters of the fit")
    # Rows of `left` are the residuals in an orthonormal basis of the parameters.
    total, row = np.zeros((singular.size, singular.size)), 0
    for item in model.observations:
        own = left[row : row + item.dimension]
        row += item.dimension
        n, d, k = item.degrees, item.dimension, float(np.sum(own**2))
        factor = (n - 1) * (n - d - 1) / ((n - 1 - d + k) * (n - d + k))
        total += factor * own.T @ own
    back = right.T / singular / scale[:, None]
    return np.asarray(back @ total @ back.T, np.float64)


def _result(
    model: JointModel,
    theta: Floats,
    covariance: Floats,
    quality: ChiSquare,
    names: Sequence[str],
) -> QuantityFit:
    errors = np.sqrt(np.diag(covariance))
    delta, y_t, _, _ = model.split(theta)
    sizes = sorted({item.L for item in model.observations})
    return QuantityFit(
        threshold=model.scales.p_0 + model.scales.width * delta,
        threshold_error=float(model.scales.width * errors[0]),
        y_t=y_t,
        y_t_error=float(errors[1]) if model.choice.y_t is None else 0.0,
        amplitudes=tuple(
            _amplitudes(model, theta, covariance, name, index) for index, name in enumerate(names)
        ),
        chi_square=quality,
        sizes=tuple(sizes),
        points=model.target.size,
        choice=model.choice,
        outer=tuple(float(value) for value in theta[: model.outer]),
    )


def _amplitudes(
    model: JointModel, theta: Floats, covariance: Floats, name: str, index: int
) -> Amplitudes:
    """Return one quantity's numbers in units of p and L."""
    choice, scales = model.choice, model.scales
    _, y_t, omegas, values = model.split(theta)
    group = model.groups.index(choice.omegas[index])
    omega, at_y_t = float(omegas[group]), 1 if choice.y_t is None else None
    at_omega = 1 + (choice.y_t is None) + group if choice.free_omega else None
    # An amplitude is its own parameter times width^-k L_0^(-k y_t + m omega + ...): the logarithmic
    # derivatives after y_t and omega enter its error too.
    powers = [(k, 0.0, 0.0) for k in range(choice.degree + 1)]
    kinds = [(0, 1.0, 0.0), (1, 1.0, 0.0), (0, 0.0, 1.0)]
    powers += [kind for kind, used in zip(kinds, CORRECTIONS[choice.corrections]) if used]
    log_L, numbers = np.log(scales.L_0), []
    for term, (k, m, second) in enumerate(powers):
        grown = -k * y_t + m * omega + second * model.omega_2
        factor = scales.width**-k * np.exp(grown * log_L)
        value = values[index, term] * factor
        gradient = np.zeros(theta.size)
        gradient[model.outer + index * choice.terms + term] = factor
        if at_y_t is not None:
            gradient[at_y_t] = -k * log_L * value
        if at_omega is not None:
            gradient[at_omega] = m * log_L * value
        numbers.append((float(value), float(np.sqrt(gradient @ covariance @ gradient))))
    rest = iter(numbers[choice.degree + 1 :])
    found = [next(rest) if used else (nan, nan) for used in CORRECTIONS[choice.corrections]]
    (b, b_error), (c, c_error), (b_2, b_2_error) = found
    return Amplitudes(
        name=name,
        critical=numbers[0][0],
        critical_error=numbers[0][1],
        slopes=tuple(value for value, _ in numbers[1 : choice.degree + 1]),
        slope_errors=tuple(error for _, error in numbers[1 : choice.degree + 1]),
        omega=omega,
        omega_error=float(np.sqrt(covariance[at_omega, at_omega])) if at_omega else 0.0,
        correction=b,
        correction_error=b_error,
        mixed=c,
        mixed_error=c_error,
        second=b_2,
        second_error=b_2_error,
    )
