r"""Radii of clusters: R_s ~ s^(1/d_f) at p_c, and the correlation length at every p.

Over clusters that neither wrap nor span there are, for each bin of sizes, sums of s^2 and of
s^2 R_s^2, R_s being the radius of gyration; from these

    R_s^2 = sum s^2 R_s^2 / sum s^2      of a bin,
    xi^2  = 2 sum s^2 R_s^2 / sum s^2    over all bins

(D. Stauffer and A. Aharony, Introduction to Percolation Theory, 1994, sections 3.1 and 3.2).  At
p_c

    ln R_s^2 = ln A + (2/d_f) ln s + b s^-Omega + c s^-2 Omega

is fitted to the bins of the largest lattice, from a smallest s on up to a small part of <s_1>:
larger clusters are too compact, because they must end inside the lattice.  Errors: jackknife over
blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.cluster_numbers import coarse_edges
from percolab.analysis.fit_quality import ChiSquare, first_accepted, is_poor
from percolab.analysis.json_values import plain
from percolab.analysis.statistics import (
    MIN_BLOCKS,
    Floats,
    jackknife_error,
    least_squares,
    shrunk_correlation,
)
from percolab.analysis.theory.known_exponents import Known, correction_of_sizes, known_exponents
from percolab.errors import AnalysisError

#: Smallest sizes that are tried, the largest as a part of <s_1>, and bins that a fit needs.  From 8
#: sites on chi^2 does not see what two corrections leave out: square torus, L = 512, 3000 samples,
#: d_f = 1.9033(9) from 8, 1.9004(13) from 16, 1.8995(27) from 32, 1.8991(41) from 64; exact 1.8958.
S_MIN, CUTOFF, LEAST_BINS = (32, 64, 128, 256), 0.03, 8


@dataclass(frozen=True, eq=False)
class GyrationSums:
    """Sums over clusters that neither wrap nor span, of one task: one size, one p grid, one seed.

    p: float64 (m,), ascending.  edges: int64 (bins + 1,), the smallest size of every bin, and the
    first beyond.  squares, spreads: float64 (n_blocks, m, bins), sums of s^2 and of s^2 R_s^2 in
    each block's samples; lengths are in the unit of the lattice file.  largest: <s_1>, float64
    (m,).
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
        """Return (s, R_s^2, that without each block) of the bins at a p that hold clusters.

        s, R_s^2: float64 (k,); without a block: (n_blocks, k).  s is the mean of the sizes of a
        bin, four a power of two: s^2 n_s hardly depends on s.  Bins of one block are left out.
        """
        edges = coarse_edges(self.edges)
        first = np.searchsorted(self.edges, edges[:-1])
        squares, spreads = (
            np.add.reduceat(sums[:, at], first, axis=1) for sums in (self.squares, self.spreads)
        )
        kept = (squares > 0).sum(axis=0) > 1
        s = ((edges[:-1] + edges[1:] - 1) / 2)[kept]
        squares, spreads = squares[:, kept], spreads[:, kept]
        total, spread = squares.sum(axis=0), spreads.sum(axis=0)
        return s, spread / total, (spread - spreads) / (total - squares)

    def window(self, at: int, s: Floats, s_min: int) -> NDArray[np.bool_]:
        """Return which sizes s (k,) of clusters at a p are fitted from s_min on, bool (k,)."""
        return (s >= s_min) & (s <= CUTOFF * float(self.largest[at]))

    def correlation_length(self) -> tuple[Floats, Floats]:
        """Return xi and its standard error at every p, float64 (m,) each; NaN where it is unknown.

        The error is that of a jackknife over blocks.
        """
        squares, spreads = self.squares.sum(axis=2), self.spreads.sum(axis=2)
        total, spread = squares.sum(axis=0), spreads.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            xi = np.sqrt(2 * spread / total)
            without = np.sqrt(2 * (spread - spreads) / (total - squares))
        return xi, jackknife_error(without)


@dataclass(frozen=True)
class RadiusFit:
    """d_f with its one-sigma error from R_s ~ s^(1/d_f) at a p of the grid of one size.

    amplitude: A.  corrections: b and c.  known: the known d_f.
    """

    L: int
    p: float
    d_f: float
    error: float
    amplitude: float
    corrections: tuple[float, float]
    omega: float
    s_min: int
    s_max: int
    chi_square: ChiSquare
    known: Known | None

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the fit."""
        return not is_poor(self.chi_square)

    def squared_radius(self, s: Floats) -> Floats:
        """Return the fitted R_s^2 at sizes s."""
        small = s**-self.omega
        b, c = self.corrections
        power = self.amplitude * s ** (2 / self.d_f) * np.exp(b * small + c * small**2)
        return np.asarray(power, np.float64)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return plain(self)


def fit_radius(sums: GyrationSums, *, threshold: float, dimension: int) -> RadiusFit:
    """Fit R_s at the p nearest to a threshold, from the smallest s_min that chi^2 does not reject.

    The error of the threshold is not in that of d_f, nor is what p is off it.  Raises AnalysisError
    with fewer than MIN_BLOCKS blocks or LEAST_BINS bins.
    """
    at = int(np.argmin(np.abs(sums.p - threshold)))
    s, _, without = sums.radii(at)
    usable = [s_min for s_min in S_MIN if sums.window(at, s, s_min).sum() >= LEAST_BINS]
    if len(without) < MIN_BLOCKS or not usable:
        raise AnalysisError(
            f"d_f from R_s: fewer than {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to "
            f"{CUTOFF:g} <s_1>, or {MIN_BLOCKS} blocks"
        )
    return first_accepted(_fit_from(sums, at, s_min, dimension) for s_min in usable)


def _fit_from(sums: GyrationSums, at: int, s_min: int, dimension: int) -> RadiusFit:
    """Return the fit of the bins from s_min on at a p of the grid."""
    s, squared, without = sums.radii(at)
    window = sums.window(at, s, s_min)
    omega = correction_of_sizes(dimension).value
    logs, again = np.log(squared[window]), np.log(without[:, window])
    small = s[window] ** -omega
    design = np.stack([np.ones(logs.size), np.log(s[window]), small, small**2], axis=1)
    deviation = jackknife_error(again)
    covariance = shrunk_correlation(again) * np.outer(deviation, deviation)
    theta, _, quality = least_squares(design, logs, covariance)
    weights = np.linalg.solve(covariance, design)
    slopes = again @ weights @ np.linalg.inv(design.T @ weights)[:, 1]
    d_f = float(2 / theta[1])
    return RadiusFit(
        L=sums.L,
        p=float(sums.p[at]),
        d_f=d_f,
        error=float(d_f**2 / 2 * jackknife_error(slopes)),
        amplitude=float(np.exp(theta[0])),
        corrections=(float(theta[2]), float(theta[3])),
        omega=omega,
        s_min=s_min,
        s_max=int(s[window].max()),
        chi_square=quality,
        known=known_exponents(dimension).get("d_f"),
    )
