r"""Radii of clusters: R_s ~ s^(1/d_f) at p_c, and the correlation length at every p.

Sums of s^2 and of s^2 R_s^2, R_s being the radius of gyration, are stored for each bin of sizes,
over clusters that neither wrap nor span; from these

    R_s^2 = sum s^2 R_s^2 / sum s^2      of a bin,
    xi^2  = 2 sum s^2 R_s^2 / sum s^2    over all bins

(D. Stauffer and A. Aharony, Introduction to Percolation Theory, 1994, sections 3.1 and 3.2).  At
p_c

    ln R_s^2 = ln A + (2/d_f) ln s + b s^-Omega + c s^-2 Omega + d s^-3 Omega + k / s
               + e x + f x^2 + g / L + h x s^-Omega,         x = R_s / L,

is fitted to the bins of all sizes up to a fraction of <s_1>.  k stands for a constant that is added
to R_s^2.  The last four terms are for open sides, at which clusters end; a torus has none of them.
h: clusters at a side, a fraction x of all, have another b.  Priors, 3 for b, k, e and g, 9
for c, f and h, 27 for d, and the average over smallest and largest s are those of
:mod:`percolab.analysis.power_law`.  Errors: jackknife over blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.json_values import Part, Record
from percolab.analysis.power_law import PRIORS, average, fit_member
from percolab.analysis.statistics import MIN_BLOCKS, Floats, jackknife_error
from percolab.analysis.tau import coarse_edges
from percolab.analysis.theory.known_exponents import Known, find_size_correction, known_exponents
from percolab.analysis.value import Value
from percolab.errors import AnalysisError

#: Smallest sizes of the averaged fits, largest ones as parts of <s_1>, and least bins of a fit.
S_MIN, CUTOFFS, LEAST_BINS = (16, 32, 64, 128), (0.1, 0.05, 0.02), 8


@dataclass(frozen=True, eq=False)
class GyrationSums:
    """Sums over clusters that neither wrap nor span, of one task: one size, one p grid, one seed.

    p: float64 (m,), ascending.  edges: int64 (bins + 1,), the smallest size of every bin, and the
    first beyond.  squares, spreads: float64 (n_blocks, m, bins), sums of s^2 and of s^2 R_s^2 in
    each block's samples, lengths in the unit of the lattice file.  largest: <s_1>, float64 (m,).
    """

    L: int
    num_sites: int
    samples: int
    p: Floats
    edges: NDArray[np.int64]
    squares: Floats
    spreads: Floats
    largest: Floats

    def radii(self, at: int) -> tuple[Floats, Floats, Floats]:
        """Return (s, R_s^2, R_s^2 without each block) of the bins that contain clusters, at one p.

        s, R_s^2: float64 (k,); without a block: (n_blocks, k).  s is the mean of the sizes in a
        bin, as four bins a power of two are so narrow that s^2 n_s hardly varies.  Bins with
        clusters in fewer than MIN_BLOCKS blocks (or all, if less) scatter too little: left out.
        """
        edges = coarse_edges(self.edges)
        first = np.searchsorted(self.edges, edges[:-1])
        squares, spreads = (
            np.add.reduceat(sums[:, at], first, axis=1) for sums in (self.squares, self.spreads)
        )
        kept = (squares > 0).sum(axis=0) >= max(min(MIN_BLOCKS, len(squares)), 2)
        s = ((edges[:-1] + edges[1:] - 1) / 2)[kept]
        squares, spreads = squares[:, kept], spreads[:, kept]
        total, spread = squares.sum(axis=0), spreads.sum(axis=0)
        return s, spread / total, (spread - spreads) / (total - squares)

    def correlation_length(self) -> tuple[Floats, Floats]:
        """Return xi and its jackknife error at every p, float64 (m,) each; NaN if unknown."""
        squares, spreads = self.squares.sum(axis=2), self.spreads.sum(axis=2)
        total, spread = squares.sum(axis=0), spreads.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            xi = np.sqrt(2 * spread / total)
            without = np.sqrt(2 * (spread - spreads) / (total - squares))
        return xi, jackknife_error(without)


@dataclass(frozen=True)
class RadiusFit(Record):
    """d_f from R_s ~ s^(1/d_f) at the p of the grids nearest to p_c.

    sizes: every L.  amplitude: A.  corrections: b, c, d and k.  s_min, s_max: of the largest
    window.  known: d_f.
    """

    result_keys: ClassVar = ("d_f",)

    result: Value
    sizes: tuple[int, ...]
    amplitude: float
    corrections: tuple[float, ...]
    omega: float
    s_min: int
    s_max: int
    known: Known | None

    d_f, error = Part[float]("result.value"), Part[float]("result.error")

    def squared_radius(self, s: Floats) -> Floats:
        """Return the fitted R_s^2 at sizes s of the infinite lattice."""
        small = _small(s, self.omega) @ self.corrections
        return np.asarray(self.amplitude * s ** (2 / self.d_f) * np.exp(small), np.float64)


def _small(s: Floats, omega: float) -> Floats:
    """Return the factors of b, c, d and k, float64 (n, 4)."""
    return np.stack([s**-omega, s ** (-2 * omega), s ** (-3 * omega), 1 / s], axis=1)


def fit_radius(
    tasks: Sequence[GyrationSums], *, threshold: float, dimension: int, is_open: bool
) -> RadiusFit:
    """Fit R_s of all sizes at the p nearest to a threshold.

    is_open: whether any axis is.  The error of d_f does not contain those of the threshold and of
    the distance to the nearest p.  Tasks with fewer than MIN_BLOCKS blocks are left out.  Raises
    AnalysisError with fewer than LEAST_BINS bins.
    """
    from scipy.linalg import block_diag

    omega = find_size_correction(dimension).value
    designs, parts, covariances, sizes = [], [], [], []
    for task in tasks:
        at = int(np.argmin(np.abs(task.p - threshold)))
        s, squared, without = task.radii(at)
        reach = s / float(task.largest[at])
        inside = (s >= S_MIN[0]) & (reach <= CUTOFFS[0]) & (without > 0).all(axis=0)
        if len(without) < MIN_BLOCKS or not inside.any():
            continue
        s, squared, again = s[inside], squared[inside], np.log(without[:, inside])
        x = np.sqrt(squared) / task.L
        sides = np.stack([x, x**2, np.full_like(x, 1 / task.L), x * s**-omega], axis=1)
        sides = sides[:, : 4 * is_open]
        designs.append(np.column_stack([np.ones_like(s), np.log(s), _small(s, omega), sides]))
        parts.append(np.stack([s, reach[inside], np.log(squared)]))
        covariances.append((len(again) - 1) * np.cov(again.T, ddof=0))
        sizes.append(task.L)
    if sum(map(len, designs)) < LEAST_BINS:
        raise AnalysisError(
            f"d_f from R_s: fewer than {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to "
            f"{CUTOFFS[0]:g} <s_1> in {MIN_BLOCKS} blocks"
        )
    s, reach, values = np.concatenate(parts, axis=1)
    design, covariance = np.concatenate(designs), block_diag(*covariances)
    of_sides = *PRIORS[:2], *PRIORS[:2]
    widths = (np.inf, np.inf, *PRIORS, PRIORS[0], *of_sides)[: design.shape[1]]
    windows = [(s >= s_min) & (reach <= cutoff) for cutoff in CUTOFFS for s_min in S_MIN]
    # The weights use variances alone, no correlations.
    members = [
        fit_member(design, values, np.diag(covariance), widths, kept)
        for kept in windows
        if kept.sum() >= LEAST_BINS
    ]
    best = average(members, covariance)
    d_f = float(2 / best.theta[1])
    return RadiusFit(
        result=best.value(1).scaled(d_f, d_f**2 / 2),
        sizes=tuple(sizes),
        amplitude=float(np.exp(best.theta[0])),
        corrections=tuple(best.theta[2:6].tolist()),
        omega=omega,
        s_min=int(s.min()),
        s_max=int(s.max()),
        known=known_exponents(dimension).get("d_f"),
    )
