"""p_c and 1/nu from the spanning thresholds T of single samples: mean, median, width, cell to cell.

Each size gives the mean and the median of its T and their standard deviation, the width. These
scale as (D. Stauffer and A. Aharony, Introduction to Percolation Theory, 1994)

    mean_L  = p_c + width_L (A + b L^-omega + B L^-2 omega)      median_L likewise, with its own A
    width_L = S L^(-1/nu) exp(b L^-omega + B L^-2 omega)

with priors of b and B, averaged over smallest sizes (:mod:`percolab.analysis.power_law`): mean and
median give p_c where the width is 0, which needs no exponent, and the width gives 1/nu. The
covariance of the three numbers of one size is that of their influence functions (F. R. Hampel, J.
Am. Stat. Assoc. 69, 383 (1974)).

Cell to cell (P. J. Reynolds, H. E. Stanley and W. Klein, Phys. Rev. B 21, 1223 (1980)): a lattice
of L1 is renormalised to one of L2, p -> p' with R_L1(p') = R_L2(p); its fixed point is where both
curves cross, and the slopes there give 1/nu = ln(R'_L2 / R'_L1) / ln(L2 / L1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from typing import ClassVar

import numpy as np

from percolab.analysis.crossings import cross_sizes
from percolab.analysis.curves import SpanningCurve, linear_sizes, select_curves
from percolab.analysis.json_values import Record
from percolab.analysis.likelihood import SizeFit, fit_size
from percolab.analysis.power_law import PRIORS, average_over_sizes, fit_power_law
from percolab.analysis.statistics import Floats
from percolab.analysis.threshold import cut
from percolab.analysis.value import Value, list_rejections
from percolab.errors import AnalysisError

# The density of T at the median is estimated from this part of the samples about it.
_CENTRAL = 0.1

# Iterations for the amplitudes, on which the contribution of the widths' errors depends.
_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class SampleMoments(Record):
    """Mean, median and width of the T of one size; covariance: theirs, float64 (3, 3)."""

    added: ClassVar = ("errors",)

    L: int
    samples: int
    mean: float
    median: float
    width: float
    covariance: Floats

    @property
    def errors(self) -> Floats:
        """One-sigma errors of mean, median and width, float64 (3,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), np.float64)


@dataclass(frozen=True)
class Extrapolation(Record):
    """p_c of `estimator`, "mean" or "median", or 1/nu of "width"."""

    estimator: str
    name: str
    result: Value


@dataclass(frozen=True)
class CellToCell:
    """Fixed point p* and 1/nu of the renormalisation of L1 to L2, with first-order errors."""

    L1: int
    L2: int
    p: float
    p_error: float
    y_t: float
    y_t_error: float


@dataclass(frozen=True)
class SampleThresholds(Record):
    """Results from single T: every size, the extrapolations, cell to cell, and notes."""

    renamed: ClassVar = {"cells": "cell_to_cell"}

    sizes: tuple[SampleMoments, ...]
    extrapolations: tuple[Extrapolation, ...]
    cells: tuple[CellToCell, ...]
    notes: tuple[str, ...]


def compute_sample_moments(L: int, thresholds: Floats) -> SampleMoments:
    """Return mean, median and width of T, float64 (n,); AnalysisError: n < 20, or all are equal."""
    T = np.sort(thresholds)
    n = T.size
    if n < 20:
        raise AnalysisError(f"L = {L} has {n} samples, too few for their mean and median: need 20")
    mean, median, width = float(T.mean()), float(np.median(T)), float(T.std())
    half = max(int(0.5 * _CENTRAL * n), 2)
    low, high = T[n // 2 - half], T[min(n // 2 + half, n - 1)]
    if not high > low:
        raise AnalysisError(f"L = {L}: all samples have the same T")
    density = 2 * half / n / (high - low)
    of_width = ((T - mean) ** 2 - width**2) / (2 * width)
    influence = np.stack([T - mean, (0.5 - (median >= T)) / density, of_width])
    return SampleMoments(L, n, mean, median, width, influence @ influence.T / n**2)


def analyse_samples(
    thresholds: Sequence[tuple[int, Floats]], curves: Sequence[SpanningCurve], *, omega: float = 1.0
) -> SampleThresholds:
    """Analyse the T of every size.

    thresholds: (L, T) of every task, T float64 (n,), infinite where a sample never spans. curves:
    R_L of the same tasks, for cell to cell. omega: of the corrections. Raises AnalysisError when a
    size has too few samples.
    """
    sizes, notes = [], []
    for L in sorted({L for L, _ in thresholds}):
        T = np.concatenate([own for size, own in thresholds if size == L])
        if np.isinf(T).any():
            notes.append(f"L = {L} left out of mean and median: some samples never span")
            continue
        sizes.append(compute_sample_moments(L, T))
    limits: tuple[Extrapolation, ...] = ()
    if len(sizes) < 2:
        notes.append("fewer than two sizes: nothing to extrapolate")
    else:
        L, width, variance = np.array([(x.L, x.width, x.covariance[2, 2]) for x in sizes]).T
        law = fit_power_law(L, width, variance / width**2, omega=omega).exponent
        limits = (
            Extrapolation("mean", "p_c", _threshold(sizes, 0, omega)),
            Extrapolation("median", "p_c", _threshold(sizes, 1, omega)),
            Extrapolation("width", "1/nu", law.scaled(-law.value, -1.0)),
        )
    named = ((f"{own.name} from the {own.estimator} of T", own.result) for own in limits)
    notes = [*list_rejections(named), *notes]
    # With many samples, a cubic over the whole rise would bias 1/nu by some of its errors.
    middle = [cut(curve) or curve for curve in curves]
    fits = [fit_size(select_curves(middle, size)) for size in linear_sizes(middle)]
    cells = tuple(
        CellToCell(each.L1, each.L2, each.p, each.p_error, *_scale_factor(*pair, each.p))
        for each, pair in zip(cross_sizes(fits)[0], pairwise(fits), strict=True)
        if each.found
    )
    return SampleThresholds(tuple(sizes), limits, cells, tuple(notes))


def _threshold(sizes: Sequence[SampleMoments], index: int, omega: float) -> Value:
    """Return p_c from the means (index 0) or medians (1) of T against their widths."""
    L, values, width = np.array([(x.L, (x.mean, x.median)[index], x.width) for x in sizes]).T
    covariance = np.array([size.covariance for size in sizes])
    shapes = np.stack([np.ones_like(L), L**-omega, L ** (-2 * omega)], axis=1)
    design = np.column_stack([np.ones_like(L), width[:, None] * shapes])
    slope = np.zeros_like(L)
    for _ in range(_ROUNDS):
        # Variances of the value minus slope times width.
        variances = covariance[:, index, index] - 2 * slope * covariance[:, index, 2]
        variances += slope**2 * covariance[:, 2, 2]
        best = average_over_sizes(L, design, values, variances, (np.inf, np.inf, *PRIORS[:2]))
        slope = shapes @ best.theta[1:]
    return best.value(0)


def _scale_factor(small: SizeFit, large: SizeFit, p: float) -> tuple[float, float]:
    """Return 1/nu from the slopes at a crossing p, and its error; NaN unless both are positive."""
    if not min(small.slope(p), large.slope(p)) > 0:
        return nan, nan
    logarithm = float(np.log(large.L / small.L))
    apart = float(large.probit.deriv()(p) - small.probit.deriv()(p))
    # ln s = ln f' - f^2 / 2, and how it changes with p and with the coefficients of f.
    along = [float(fit.probit.deriv(2)(p) / fit.probit.deriv()(p)) for fit in (small, large)]
    moving = along[1] - along[0] - float(large.probit(p)) * apart
    variance = 0.0
    for fit, sign in ((small, -1), (large, 1)):
        powers, slopes = fit.powers(p)
        own = slopes / float(fit.probit.deriv()(p)) - float(fit.probit(p)) * powers
        gradient = sign * (own - moving * powers / apart)
        variance += float(gradient @ np.array(fit.covariance) @ gradient)
    ratio = float(np.log(large.slope(p) / small.slope(p)))
    return ratio / logarithm, float(np.sqrt(variance)) / logarithm
