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

Closed on itself along all axes there is nothing to meet: as long as no cluster wraps, n_s is that
of the infinite lattice.  Bins are used from s_min up to a part of <s_1>, which grows as L^d_f.  Of
all windows that chi^2 does not reject at 5 %, that with the most bins is taken: the one with the
smallest error would be one whose error is too small by chance.

Errors: the same bootstrap over blocks that gives p_c, so that the error of p_c, its correlation
with n_s, and the correlations of bins are contained; where p is given, a jackknife over blocks.
Weights and chi^2 are of the variances of bins alone, at fixed p, in proportion to the fitted n_s.
Two kinds of weights were tried and left.  Correlations of bins as the blocks tell them, shrunk
towards none: what 20 blocks give and the weights minimise in the same 20 is too small, and one
error held tau in 60 % of the studies.  Weights that know of the error of p_c: tau then follows the
noise of the slope of n_s in p, and is off by four errors in one of ten studies.
results/calibration says how often the errors hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.cluster_numbers import SizeCounts
from percolab.analysis.fisher_fit import LEAST_COUNT, Fit, Model, Points, Replicas, Window
from percolab.analysis.known_exponents import Known, correction_exponent, known_exponents
from percolab.analysis.likelihood import MIN_BLOCKS, ChiSquare
from percolab.analysis.record import plain
from percolab.analysis.selection import is_poor
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]

#: Smallest sizes that are tried, and the largest ones as parts of <s_1>.
S_MIN, CUTOFFS = (8, 16, 32, 64, 128), (0.1, 0.05, 0.02)
#: A fit has so many bins at least.
LEAST_BINS = 8


@dataclass(frozen=True)
class FisherTrial:
    """One fit: its window, tau with its error, and its quality.

    cutoff: the largest size in units of <s_1>.  bins: how many were fitted.
    """

    s_min: int
    cutoff: float
    tau: float
    error: float
    bins: int
    chi_square: ChiSquare

    @classmethod
    def of(cls, fit: Fit) -> FisherTrial:
        """Return the record of a fit."""
        window = fit.window
        return cls(window.s_min, window.cutoff, fit.tau, fit.error(), window.bins, fit.chi_square)


@dataclass(frozen=True)
class FisherFit:
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
    trials: tuple[FisherTrial, ...]
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


def correction_of_sizes(dimension: int) -> Known:
    """Return Omega of n_s = s^-tau (a + b s^-Omega), its error, and its source.

    Two dimensions: 72/91, A. Aharony and J. Asikainen, Fractals 11, 3 (2003); R. M. Ziff, Phys.
    Rev. E 83, 020107 (2011).  Three: C. D. Lorenz and R. M. Ziff, Phys. Rev. E 57, 230 (1998).
    Four and five: omega / d_f.  Elsewhere 1/2.

    >>> correction_of_sizes(2).expression
    '72/91'
    """
    if dimension == 2:
        return Known(72 / 91, 0.0, "72/91", "Aharony and Asikainen 2003; Ziff 2011")
    if dimension == 3:
        return Known(0.64, 0.02, "", "Lorenz and Ziff 1998")
    known = known_exponents(dimension)
    if "d_f" not in known:
        return Known(0.5, 0.0, "", "by default: none is known")
    omega, d_f = correction_exponent(dimension, periodic=True), known["d_f"].value
    return Known(omega.value / d_f, omega.error / d_f, "omega/d_f", omega.reference)


def fit_fisher(
    tasks: Sequence[SizeCounts],
    *,
    threshold: float,
    threshold_error: float = 0.0,
    dimension: int,
    is_open: bool,
    replicas: Replicas | None = None,
) -> FisherFit:
    """Fit tau to n_s at a threshold.

    tasks: of any sizes; those with fewer than MIN_BLOCKS blocks, or without the threshold between
    their p, are left out.  threshold_error: 0 where it was given.  is_open: whether any axis is.
    replicas: of p_c and the blocks of those tasks, for the error; without them a jackknife at fixed
    p.  Raises AnalysisError where no window has bins enough.
    """
    used = [item for item in tasks if _is_usable(item, threshold, replicas)]
    notes = [
        f"L = {item.L} left out of n_s: fewer than {MIN_BLOCKS} blocks, or p_c outside its p grid"
        for item in tasks
        if item not in used
    ]
    # Four bins a power of two: in single sizes chi^2 would be blind to what changes slowly with s.
    points = [Points.of(item.coarse(), threshold, replicas) for item in used]
    omega = correction_of_sizes(dimension)
    fits = _fits(points, Model(dimension, is_open, omega.value))
    if not fits:
        raise AnalysisError(
            f"tau from n_s: no {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to {CUTOFFS[0]:g} "
            f"<s_1> hold {LEAST_COUNT} clusters in {MIN_BLOCKS} blocks"
        )
    trials = [FisherTrial.of(item) for item in fits]
    chosen = _choose(trials)
    best = fits[chosen]
    if is_poor(best.chi_square):
        notes.append(
            f"tau from n_s: its fit is poor (p-value {best.chi_square.p_value:.1e}), so its error "
            "is too small"
        )
    return FisherFit(
        tau=best.tau,
        error=trials[chosen].error,
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


def _is_usable(item: SizeCounts, threshold: float, replicas: Replicas | None) -> bool:
    drawn = replicas is None or item.label in replicas.weights
    return drawn and item.samples.size >= MIN_BLOCKS and item.p[0] <= threshold <= item.p[-1]


def _fits(points: Sequence[Points], model: Model) -> list[Fit]:
    """Return the fit of every window that has bins enough and converges."""
    found = []
    for cutoff in CUTOFFS:
        for s_min in S_MIN:
            window = Window(points, s_min, cutoff)
            if window.bins < LEAST_BINS:
                continue
            try:
                found.append(Fit.of(window, model))
            except AnalysisError:
                continue
    return found


def _choose(trials: Sequence[FisherTrial]) -> int:
    """Return which fit has the most bins of those not rejected, else the least poor one."""
    every = range(len(trials))
    accepted = [n for n in every if not is_poor(trials[n].chi_square)]
    if accepted:
        return max(accepted, key=lambda n: trials[n].bins)
    return max(every, key=lambda n: trials[n].chi_square.p_value)
