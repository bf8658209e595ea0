r"""The Fisher exponent tau from the cluster numbers n_s at p_c.

    n_s = s^-tau (a + b s^-Omega + c s^-2 Omega),

the leading power with its corrections, fitted by least squares to the means over bins
of sizes, of all L at once (D. Stauffer and A. Aharony, Introduction to Percolation Theory, 1994;
J. Hoshen, D. Stauffer, G. H. Bishop, R. J. Harrison and G. D. Quinn, J. Phys. A 12, 1285 (1979)).
Omega is given.  Without c a fit from s = 8 on is not rejected by 8000 samples of the square lattice
and yet off by three of its errors.

The system is finite.  A cluster smaller than it meets an open side with a probability proportional
to its extent s^(1/d_f) over L, and two sides with the square of it, which adds

    s^-tau (e x + f x^2),   x = s^(1/d_f) / L,   1/d_f = (tau - 1) / d.

A torus has no sides: the n_s of clusters that do not wrap are those of the infinite lattice.  Bins
are used from s_min up to a part of <s_1>, which grows as L^d_f.  Of all windows that chi^2 does not
reject at 5 %, that with the most bins is taken: the one with the smallest error would be one whose
error is too small by chance.

Errors: the same bootstrap over blocks that gives p_c, so that the error of p_c, its correlation
with n_s, and the correlations of bins are contained; where p is given, a jackknife over blocks.
Weights and chi^2 are of the variances of bins alone, at fixed p, in proportion to the fitted n_s.
Two other kinds of weights were tried and rejected.  The first were correlations of bins as the
blocks tell them, shrunk towards none: what 20 blocks give and the weights minimise in the same 20
is too small, and one error held tau in 60 % of the studies.  The second knew of the error of p_c:
tau then follows the noise of the slope of n_s in p, and is off by four errors in one of ten
studies.  results/calibration says how often the errors hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.cluster_numbers import SizeCounts, mean_power
from percolab.analysis.fit_quality import ChiSquare, first_accepted, fit_each, is_poor
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import MIN_BLOCKS, Floats, least_squares, with_data_first
from percolab.analysis.theory.known_exponents import Known, correction_of_sizes, known_exponents
from percolab.errors import AnalysisError

#: Smallest sizes that are tried, and the largest ones as parts of <s_1>.
S_MIN, CUTOFFS = (8, 16, 32, 64, 128), (0.1, 0.05, 0.02)

#: A fit has so many bins at least.
LEAST_BINS = 8

#: Clusters in a bin at least: with fewer its scatter says too little about its error.
LEAST_COUNT = 100

#: Bins on either side that tell the variance of one; how often the errors are found again.
_NEIGHBOURS, _ROUNDS = 4, 3

#: Two interpolations to p_c may differ by this many errors of n_s.
_AGREE = 1.0

#: Steps of Gauss and Newton, and where they begin, and the range they may not leave.
_STEPS, _START, _RANGE = 30, 2.1, (1.2, 4.0)


@dataclass(frozen=True)
class TauTrial:
    """One fit: its window, tau with its error, and its quality.

    cutoff: the largest size in units of <s_1>.  bins: how many were fitted.
    """

    s_min: int
    cutoff: float
    tau: float
    error: float
    bins: int
    chi_square: ChiSquare

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the fit."""
        return not is_poor(self.chi_square)

    @classmethod
    def of(cls, fit: WindowFit) -> TauTrial:
        """Return the record of a fit."""
        window = fit.window
        return cls(window.s_min, window.cutoff, fit.tau, fit.error(), window.bins, fit.chi_square)


@dataclass(frozen=True)
class TauFit:
    """tau with its one-sigma error, the n_s it was read off, and all fits that were tried.

    threshold, threshold_error: the p at which n_s was taken, and its error, 0 where it was given.
    omega: the given Omega.  sizes, s_max: every L, and the largest s of its bins.  coefficients: a,
    b and c, and of a lattice with open axes e and f.
    """

    tau: float
    error: float
    error_method: str
    threshold: float
    threshold_error: float
    dimension: int
    omega: float
    omega_source: str
    s_min: int
    cutoff: float
    sizes: tuple[int, ...]
    s_max: tuple[int, ...]
    coefficients: tuple[float, ...]
    chi_square: ChiSquare
    known: Known | None
    trials: tuple[TauTrial, ...]
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """What tau was read off, in a few words."""
        quality = f"chi2/dof {self.chi_square.value:.0f}/{self.chi_square.dof}"
        return f"n_s at p_c, s from {self.s_min} to {self.cutoff:g} <s_1>, {quality}"

    @property
    def fractal_dimension(self) -> float:
        """d_f = d / (tau - 1), by hyperscaling."""
        return self.dimension / (self.tau - 1)

    @property
    def is_open(self) -> bool:
        """Whether n_s has terms of open sides."""
        return len(self.coefficients) > 3

    def numbers(self, s: Floats, L: float = np.inf) -> Floats:
        """Return the fitted n_s at sizes s, float64 (n,), of a lattice of size L or the limit."""
        terms = [k * s ** (-n * self.omega) for n, k in enumerate(self.coefficients[:3])]
        x = s ** (1 / self.fractal_dimension) / L
        terms += [k * x ** (n + 1) for n, k in enumerate(self.coefficients[3:])]
        return np.asarray(s**-self.tau * np.sum(terms, axis=0), np.float64)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return plain(self)


def fit_tau(
    tasks: Sequence[SizeCounts],
    *,
    threshold: float,
    threshold_error: float = 0.0,
    dimension: int,
    is_open: bool,
    replicas: TauReplicas | None = None,
) -> TauFit:
    """Fit tau to n_s at a threshold.

    tasks: of any sizes; those with fewer than MIN_BLOCKS blocks, or without the threshold between
    their p, are left out.  threshold_error: 0 where it was given.  is_open: whether any axis is.
    replicas: of p_c and the blocks of those tasks, for the error; without them a jackknife at fixed
    p.  Raises AnalysisError where no window has bins enough.
    """
    used = [item for item in tasks if _is_usable(item, threshold, replicas)]
    # Four bins a power of two: in single sizes chi^2 would not notice what changes slowly with s.
    points = [TaskNumbers.of(item.coarse(), threshold, replicas) for item in used]
    omega = correction_of_sizes(dimension)
    best, trials = _best_window(points, ClusterNumberModel(dimension, is_open, omega.value))
    notes = [
        f"L = {item.L} left out of n_s: fewer than {MIN_BLOCKS} blocks, or p_c outside its p grid"
        for item in tasks
        if item not in used
    ]
    if is_poor(best.chi_square):
        notes.append(
            f"tau from n_s: its fit is poor (p-value {best.chi_square.p_value:.1e}), so its error "
            "is too small"
        )
    return TauFit(
        tau=best.tau,
        error=best.error(),
        error_method="jackknife" if replicas is None else "bootstrap",
        threshold=threshold,
        threshold_error=threshold_error,
        dimension=dimension,
        omega=omega.value,
        omega_source=omega.reference,
        s_min=best.window.s_min,
        cutoff=best.window.cutoff,
        sizes=tuple(item.task.L for item in points),
        s_max=best.window.s_max,
        coefficients=tuple(best.coefficients.tolist()),
        chi_square=best.chi_square,
        known=known_exponents(dimension).get("tau"),
        trials=tuple(trials),
        notes=tuple(notes),
    )


def _is_usable(item: SizeCounts, threshold: float, replicas: TauReplicas | None) -> bool:
    drawn = replicas is None or item.label in replicas.weights
    return drawn and item.samples.size >= MIN_BLOCKS and item.p[0] <= threshold <= item.p[-1]


def _best_window(
    points: Sequence[TaskNumbers], model: ClusterNumberModel
) -> tuple[WindowFit, list[TauTrial]]:
    """Return the chosen fit, and the record of all; AnalysisError if no window has bins enough."""
    fits = _fit_windows(points, model)
    if not fits:
        raise AnalysisError(
            f"tau from n_s: no {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to {CUTOFFS[0]:g} "
            f"<s_1> hold {LEAST_COUNT} clusters in {MIN_BLOCKS} blocks"
        )
    trials = [TauTrial.of(item) for item in fits]
    return fits[trials.index(_choose(trials))], trials


def _fit_windows(points: Sequence[TaskNumbers], model: ClusterNumberModel) -> list[WindowFit]:
    """Return the fit of every window that has bins enough and converges."""
    windows = (Window(points, s_min, cutoff) for cutoff in CUTOFFS for s_min in S_MIN)
    filled = (window for window in windows if window.bins >= LEAST_BINS)
    return fit_each(filled, lambda window: WindowFit.of(window, model))[0]


def _choose(trials: Sequence[TauTrial]) -> TauTrial:
    """Return the fit with the most bins of those not rejected, else the least poor one."""
    widest = first_accepted(sorted(trials, key=lambda trial: -trial.bins))
    return widest if widest.accepted else max(trials, key=lambda trial: trial.chi_square.p_value)


@dataclass(frozen=True, eq=False)
class TauReplicas:
    """Thresholds of a bootstrap (r,), and by label how often a task's blocks were drawn (r, n)."""

    thresholds: Floats
    weights: Mapping[str, Floats]

    def numbers(self, task: SizeCounts, threshold: float) -> Floats:
        """Return the n_s of every replica at its own threshold, float64 (r, bins)."""
        drawn = self.weights[task.label]
        # The data come first, whose threshold says which grid points are interpolated.
        at = np.concatenate([[threshold], self.thresholds])
        return task.numbers_at(at, with_data_first(drawn))[1:]


@dataclass(frozen=True)
class ClusterNumberModel:
    """n_s = s^-tau (a + b s^-Omega + c s^-2 Omega), with e x + f x^2 added where an axis is open.

    x = s^((tau - 1) / d) / L.  omega: Omega.
    """

    dimension: int
    is_open: bool
    omega: float

    def columns(self, tasks: Sequence[SizeCounts], tau: float) -> list[Floats]:
        """Return what multiplies a, b, c (and e, f) in the bins of every task, (3 or 5, bins)."""
        terms = [(tau + n * self.omega, 0) for n in range(3)]
        if self.is_open:
            terms += [(tau - n * (tau - 1) / self.dimension, n) for n in (1, 2)]
        return [
            np.stack([mean_power(item.edges, k) / float(item.L) ** sides for k, sides in terms])
            for item in tasks
        ]


@dataclass(frozen=True, eq=False)
class TaskNumbers:
    """n_s of one task at a threshold, float64 (bins,) unless said otherwise.

    values: at this very p.  spread: the variance of n_s over its mean.  usable: bins with clusters
    enough, in which p can be interpolated to.  reach: <s_1>.  blocks: n_s of each block alone
    (n_blocks, bins).  drawn: n_s of each replica, at its own threshold (r, bins), or None.
    """

    task: SizeCounts
    threshold: float
    values: Floats
    spread: Floats
    usable: NDArray[np.bool_]
    reach: float
    blocks: Floats
    drawn: Floats | None

    @classmethod
    def of(cls, task: SizeCounts, threshold: float, replicas: TauReplicas | None) -> TaskNumbers:
        """Return the n_s of a task at `threshold`."""
        blocks = task.samples.size
        every = task.numbers_at(np.full(blocks, threshold), np.eye(blocks))
        values = task.numbers_at(np.array([threshold]))[0]
        own = every.std(axis=0, ddof=1) / blocks**0.5
        total = task.counts[:, task.nearest(threshold)].sum(axis=0)
        # Where another polynomial says otherwise, the grid is too coarse for so large clusters.
        other = task.numbers_at(np.array([threshold]), fewer=1)[0]
        differs = np.abs(values - other) > _AGREE * own
        fine = ~np.logical_or.accumulate(differs & (total >= LEAST_COUNT))
        return cls(
            task=task,
            threshold=threshold,
            values=values,
            spread=_smooth_spread(values, own**2, np.diff(task.edges)),
            usable=fine & (own > 0) & (total >= LEAST_COUNT),
            reach=task.largest_at(threshold),
            blocks=every,
            drawn=None if replicas is None else replicas.numbers(task, threshold),
        )


def _smooth_spread(values: Floats, variances: Floats, widths: NDArray[np.int64]) -> Floats:
    """Return variance over mean of every bin from its own and its neighbours' blocks.

    Counts are nearly Poissonian: times the number of sizes in a bin, this is a smooth function of
    s.  A variance from few blocks is noisy, and small where n_s is small by chance: as a weight it
    would draw the fit below the data.
    """
    known = values > 0
    ratio = np.divide(variances * widths, values, out=np.zeros_like(values), where=known)
    window = np.ones(2 * _NEIGHBOURS + 1)
    sums, counts = (np.convolve(x, window, "same") for x in (ratio * known, known.astype(float)))
    return sums / np.maximum(counts, 1.0) / widths


class Window:
    """The usable bins of all tasks from s_min to a part of <s_1>, one task after the other."""

    def __init__(self, points: Sequence[TaskNumbers], s_min: int, cutoff: float) -> None:
        self.points, self.s_min, self.cutoff = points, s_min, cutoff
        self.tasks = [item.task for item in points]
        self.masks = [
            item.usable
            & (item.task.edges[:-1] >= s_min)
            & (item.task.edges[1:] <= cutoff * item.reach)
            for item in points
        ]
        self.bins = int(sum(mask.sum() for mask in self.masks))

    @property
    def s_max(self) -> tuple[int, ...]:
        """The largest size of every task, 0 where it has no bin here."""
        return tuple(
            int(task.edges[1:][mask].max()) - 1 if mask.any() else 0
            for task, mask in zip(self.tasks, self.masks)
        )

    def joined(self, arrays: Sequence[Floats]) -> Floats:
        """Return arrays of every task (..., bins), cut and put side by side: (..., n)."""
        return np.concatenate([a[..., m] for a, m in zip(arrays, self.masks)], axis=-1)

    def split(self, values: Floats) -> list[Floats]:
        """Return what :meth:`joined` put together, float64 (n,), task by task."""
        return np.split(values, np.cumsum([int(mask.sum()) for mask in self.masks])[:-1])

    def deviations(self, expected: Floats) -> Floats:
        """Return the errors of all bins at a given p (n,).

        expected: n_s, float64 (n,), to which the variances are proportional.
        """
        return np.sqrt(self.joined([item.spread for item in self.points]) * expected)


@dataclass(frozen=True, eq=False)
class WindowFit:
    """A fit of one window.

    coefficients: of the model's columns.  influence: what each n_s adds to tau, float64 (n,), to
    first order.
    """

    window: Window
    tau: float
    coefficients: Floats
    influence: Floats
    chi_square: ChiSquare

    @classmethod
    def of(cls, window: Window, model: ClusterNumberModel) -> WindowFit:
        """Fit with the errors of n_s itself, then with those of the fitted n_s.

        AnalysisError if a fit does not converge, or n_s is too far from the model.
        """
        values = window.joined([item.values for item in window.points])
        expected, tau = values, _START
        for _ in range(_ROUNDS):
            found = cls._step(window, model, expected, tau)
            tau = found.tau
            columns = window.joined(model.columns(window.tasks, found.tau))
            expected = found.coefficients @ columns
            if not (expected > 0).all():
                raise AnalysisError("the fitted n_s are not positive")
        return found

    @classmethod
    def _step(
        cls, window: Window, model: ClusterNumberModel, expected: Floats, tau: float
    ) -> WindowFit:
        """Fit by steps of Gauss and Newton from tau on, with the errors of the expected n_s."""
        values = window.joined([item.values for item in window.points])
        # In units of each error the equations are well conditioned.  Correlations of bins are left
        # to the error: as weights, from few blocks, they would fit the noise of these very blocks.
        unit = window.deviations(expected)
        covariance = np.eye(unit.size)

        def columns(exponent: float) -> Floats:
            return window.joined(model.columns(window.tasks, exponent)) / unit

        step = 1e-5
        coefficients, *_ = least_squares(columns(tau).T, values / unit, covariance)
        for _ in range(_STEPS):
            here = columns(tau)
            slope = coefficients @ (columns(tau + step) - columns(tau - step)) / (2 * step)
            design = np.column_stack([here.T, slope])
            rest = values / unit - coefficients @ here
            change, errors, quality = least_squares(design, rest, covariance)
            coefficients, tau = coefficients + change[:-1], float(tau + change[-1])
            if not _RANGE[0] < tau < _RANGE[1]:
                break
            if abs(change[-1]) < 1e-7:
                influence = design @ errors[-1] / unit
                return cls(window, tau, coefficients, influence, quality)
        raise AnalysisError("the fit of tau does not converge")

    def error(self) -> float:
        """Return the error of tau, of the bootstrap if there is one, or of a jackknife over blocks.

        To first order tau is a sum over n_s, weighted by influence.  Blocks drawn with replacement
        scatter less than samples do, by (B - 1) / B in the variance for B blocks.
        """
        points, influence = self.window.points, self.window.split(self.influence)

        def contributions(numbers: Sequence[Floats]) -> list[Floats]:
            """Return what the n_s of every task (r, bins) add to tau, float64 (r,) each."""
            masks = self.window.masks
            return [n[:, mask] @ own for n, mask, own in zip(numbers, masks, influence)]

        drawn = [item.drawn for item in points if item.drawn is not None]
        if not drawn:
            each = contributions([item.blocks for item in points])
            variance = sum(float(values.var(ddof=1) / values.size) for values in each)
            return float(variance**0.5)
        taus = np.sum(contributions(drawn), axis=0)
        blocks = min(len(item.blocks) for item in points)
        return float(taus.std(ddof=1) * (blocks / (blocks - 1)) ** 0.5)
