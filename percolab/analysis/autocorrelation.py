"""Integrated autocorrelation times of Markov chains, from sums that are stored for every block.

A block is one chain of n updates after burn-in.  For a series x_0 ... x_(n-1) and lags l it stores

    lagged_l = sum over t < n - l of x_t x_(t+l)
    edges_l  = sum over t < n - l of x_t  +  sum over t >= l of x_t,   so that edges_0 = 2 sum x_t,

which give the autocovariance about any mean.  About the mean m of all blocks,

    gamma_l = sum over blocks of (lagged_l - m edges_l + (n - l) m^2) / (blocks (n - l)).

The estimate m makes every gamma_l too small by the variance of m, which is therefore added.
The integrated autocorrelation time is tau = 1/2 + rho_1 + rho_2 + ... with rho_l = gamma_l /
gamma_0, summed up to a window W that balances the rest of the sum against the noise of every term.
The variance of m is 2 tau gamma_0 / (blocks n).

Autocorrelations of a Swendsen-Wang chain are never negative, so a sum that ends too early is too
small: where no window is found among the stored lags, tau is a lower bound.

Source: U. Wolff, Comput. Phys. Commun. 156, 143 (2004), with erratum 176, 383 (2007).
"""

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from percolab.analysis.statistics import Floats, jackknife_error
from percolab.errors import AnalysisError

#: Wolff's S: the time over which rho falls by a factor e, in units of tau; 1 to 2 is usual.
_DECAY_TIME = 1.5

#: From this number of blocks on, the error of tau is taken from the scatter of the blocks.
_SCATTER_BLOCKS = 40

#: Chains of two starts whose means differ by more standard errors than this are not stationary.
START_LIMIT = 4.0

#: A variance below this fraction of the mean square is the rounding error of the sums.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Autocorrelation:
    """The autocorrelation of one series, and its integrated time in updates.

    mean, mean_error: of the series; the error is the scatter of the blocks, NaN with one block.
    covariance: gamma_l, bias removed, float64 (lags + 1,).  tau: 1/2 where updates are independent.
    window: the largest lag of the sum.  complete: False where no window was found: tau is then a
    lower bound.  jackknife_error: of tau, leaving out one block at a time, NaN with one block.
    formula_error: Wolff's 2 tau sqrt((W + 1/2 - tau) / N), N being the updates of all blocks.
    updates: in each block.
    """

    mean: float
    mean_error: float
    covariance: Floats
    tau: float
    window: int
    complete: bool
    jackknife_error: float
    formula_error: float
    blocks: int
    updates: int

    @property
    def error(self) -> float:
        """The error of tau to quote, without the part of tau beyond the window.

        Blocks are independent chains, so their scatter is right for any series.  With fewer than
        _SCATTER_BLOCKS the formula, which assumes Gaussian noise, is used: the scatter of 10 or 20
        blocks is too small where tau is; pulls then have a width of 1.3 (results/calibration).
        """
        return self.jackknife_error if self.blocks >= _SCATTER_BLOCKS else self.formula_error

    @property
    def is_known(self) -> bool:
        """Whether the part of tau beyond the window is less than half of the error.

        Otherwise tau is a lower bound.  At Wolff's window the rest is smaller, but it need not be
        found: where the stored lags end before it, tau is often known well enough, and of small
        data sets those that reach it are the ones whose tau came out too small.
        """
        return self.complete or self.tau * _rest(self.tau, self.window) <= self.error / 2

    @property
    def correlation(self) -> Floats:
        """rho_l = gamma_l / gamma_0, float64 (lags + 1,)."""
        return np.asarray(self.covariance / self.covariance[0])


def autocorrelation(lagged: ArrayLike, edges: ArrayLike, updates: int) -> Autocorrelation:
    """Return the integrated autocorrelation time of a series from the sums of its blocks.

    lagged, edges: float64 (blocks, lags + 1), defined above, preferably of the series minus a
    constant near its mean.  updates: n, in each block; lags of n and more are left out.
    AnalysisError: the shapes differ, there are fewer than 2 updates, or the series is constant.
    """
    lagged, edges = np.asarray(lagged, np.float64), np.asarray(edges, np.float64)
    if lagged.ndim != 2 or lagged.shape != edges.shape or not lagged.size:
        raise AnalysisError("lagged products and edges must both have the shape (blocks, lags + 1)")
    if updates < 2 or lagged.shape[1] < 2:
        raise AnalysisError("an autocorrelation needs at least 2 updates and 1 lag")
    lags = min(lagged.shape[1], updates)
    lagged, edges = lagged[:, :lags], edges[:, :lags]
    blocks = len(lagged)
    all_lagged, all_edges = lagged.sum(axis=0), edges.sum(axis=0)
    mean = float(all_edges[0]) / (2 * blocks * updates)
    plain = _covariance(all_lagged, all_edges, blocks, updates)
    if not plain[0] > _ROUNDING * all_lagged[0] / (blocks * updates):
        raise AnalysisError("the series does not vary")
    window, complete = _window(plain, blocks * updates)
    covariance = _unbiased(plain, window, blocks * updates)
    tau = float(_tau(covariance, window))
    error = scatter = nan
    if blocks > 1:
        rest = _covariance(all_lagged - lagged, all_edges - edges, blocks - 1, updates)
        with np.errstate(divide="ignore", invalid="ignore"):  # All but one block may be constant.
            without = _tau(_unbiased(rest, window, (blocks - 1) * updates), window)
        error = float(jackknife_error(without))
        scatter = float((edges[:, 0] / (2 * updates)).std(ddof=1)) / blocks**0.5
    noise = max(window + 0.5 - tau, 0.0) / (blocks * updates)
    return Autocorrelation(
        mean=mean,
        mean_error=scatter,
        covariance=covariance,
        tau=tau,
        window=window,
        complete=complete,
        jackknife_error=error,
        formula_error=2 * tau * noise**0.5,
        blocks=blocks,
        updates=updates,
    )


def _covariance(lagged: Floats, edges: Floats, blocks: int, updates: int) -> Floats:
    """Return gamma_l about the mean of the blocks, float64 (..., lags + 1)."""
    pairs = updates - np.arange(lagged.shape[-1])
    mean = edges[..., :1] / (2 * blocks * updates)
    return np.asarray((lagged - mean * edges) / (blocks * pairs) + mean**2)


def _unbiased(covariance: Floats, window: int, total: int) -> Floats:
    """Return gamma_l with the variance of the mean added."""
    summed = covariance[..., :1] + 2 * covariance[..., 1 : window + 1].sum(axis=-1, keepdims=True)
    return np.asarray(covariance + summed / total)


def _tau(covariance: Floats, window: int) -> Floats:
    """Return 1/2 and the sum of rho up to the window, float64 (...)."""
    summed = covariance[..., 1 : window + 1].sum(axis=-1)
    return np.asarray(0.5 + summed / covariance[..., 0])


def _window(covariance: Floats, total: int) -> tuple[int, bool]:
    """Return the first W at which one more term adds more noise than signal, and True.

    If there is none, return the last lag and False.  W is where Wolff's exp(-W / t) - t / sqrt(W N)
    becomes negative, t being S times the decay time of an exponential whose tau is the sum so far.
    """
    sums = 0.5 + np.cumsum(covariance[1:]) / covariance[0]
    for window, tau in enumerate(sums.tolist(), start=1):
        if tau <= 0.5:
            return window, True
        if _rest(tau, window) < _decay_time(tau) / np.sqrt(window * total):
            return window, True
    return len(sums), False


def _decay_time(tau: float) -> float:
    """Return S times the decay time (a factor e) of an exponential rho with this tau."""
    return float(_DECAY_TIME / np.log((2 * tau + 1) / (2 * tau - 1)))


def _rest(tau: float, window: int) -> float:
    """Return the fraction of tau - 1/2 beyond a window for an exponential rho; tau > 1/2."""
    return float(np.exp(-window / _decay_time(tau)))


def compare_starts(ordered: ArrayLike, random: ArrayLike) -> float:
    """Return the difference of the means of two starts, in errors, as a normal deviate z.

    |z| > START_LIMIT: the burn-in was too short, or the transition is of first order and the chains
    are in different phases.  ordered, random: means of blocks, float64, at least 2 each, else
    AnalysisError; compared by Welch's t-test.  Where the blocks of each start are all equal, z is
    0, or infinite if the two starts differ.

    Source: B. L. Welch, Biometrika 34, 28 (1947).

    >>> abs(compare_starts([1.0, 1.2, 0.9], [1.1, 1.0, 0.8])) > START_LIMIT
    False
    """
    starts = [np.asarray(values, np.float64) for values in (ordered, random)]
    if min(values.size for values in starts) < 2:
        raise AnalysisError("comparing ordered and random starts needs at least 2 blocks of each")
    difference = float(starts[0].mean() - starts[1].mean())
    parts = [(float(values.var(ddof=1)) / values.size, values.size - 1) for values in starts]
    variance = sum(part for part, _ in parts)
    size = np.inf if difference else 0.0
    if variance:
        freedom = variance**2 / sum(part**2 / count for part, count in parts)
        size = _deviate(abs(difference) / variance**0.5, freedom)
    return float(np.copysign(size, difference))


def _deviate(t: float, freedom: float) -> float:
    """Return the normal deviate with the same tail probability as Student's t."""
    from scipy.special import betaln, stdtr
    from scipy.stats import norm

    tail = float(stdtr(freedom, -t))
    if tail > 1e-300:
        return float(norm.isf(tail))
    # Where the probability underflows, equate the leading terms of both logarithms.
    a = freedom / 2
    logarithm = a * np.log(freedom / (freedom + t * t)) - np.log(2 * a) - float(betaln(a, 0.5))
    return float((-2 * logarithm) ** 0.5)
