"""One fit of tau to the n_s of all sizes in a window of s: model, weights, least squares.

:mod:`percolab.analysis.fisher` says what is fitted, and chooses the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.cluster_numbers import SizeCounts, mean_power
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.power_law import least_squares
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]

#: Bins with fewer clusters have no error of their own worth the name.
LEAST_COUNT = 100
#: Bins on either side that tell the variance of one; how often the errors are found again.
_NEIGHBOURS, _ROUNDS = 4, 3
#: Two interpolations to p_c may differ by this many errors of n_s.
_AGREE = 1.0
#: Steps of Gauss and Newton, and where they begin, and the range they may not leave.
_STEPS, _START, _RANGE = 30, 2.1, (1.2, 4.0)


@dataclass(frozen=True, eq=False)
class Replicas:
    """Thresholds of a bootstrap (r,), and by label how often a task's blocks were drawn (r, n)."""

    thresholds: Floats
    weights: Mapping[str, Floats]

    def numbers(self, task: SizeCounts, threshold: float) -> Floats:
        """Return the n_s of every replica at its own threshold, float64 (r, bins)."""
        drawn = self.weights[task.label]
        # The data come first, whose threshold says which grid points are interpolated.
        at = np.concatenate([[threshold], self.thresholds])
        rows = np.concatenate([np.ones((1, drawn.shape[1])), drawn])
        return task.numbers_at(at, rows)[1:]


@dataclass(frozen=True)
class Model:
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
class Points:
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
    drawn: Any

    @classmethod
    def of(cls, task: SizeCounts, threshold: float, replicas: Replicas | None) -> Points:
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

    def __init__(self, points: Sequence[Points], s_min: int, cutoff: float) -> None:
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
class Fit:
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
    def of(cls, window: Window, model: Model) -> Fit:
        """Fit with the errors of n_s itself, then with those of the fitted n_s.

        AnalysisError if a fit does not converge, or n_s is nowhere near its model.
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
    def _step(cls, window: Window, model: Model, expected: Floats, tau: float) -> Fit:
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
        window = self.window
        parts = list(zip(window.points, window.masks, window.split(self.influence)))
        if parts[0][0].drawn is None:
            each = [item.blocks[:, mask] @ own for item, mask, own in parts]
            return float(sum(values.var(ddof=1) / values.size for values in each)) ** 0.5
        taus: Floats = np.sum([item.drawn[:, mask] @ own for item, mask, own in parts], axis=0)
        blocks = min(len(item.blocks) for item in window.points)
        return float(taus.std(ddof=1)) * (blocks / (blocks - 1)) ** 0.5
