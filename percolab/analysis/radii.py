r"""Radii of clusters: R_s ~ s^(1/d_f) at p_c, and the correlation length at every p.

Over clusters that neither wrap nor span there are, for each bin of sizes, sums of s^2 and of
s^2 R_s^2, R_s being the radius of gyration; from these

    R_s^2 = sum s^2 R_s^2 / sum s^2      of a bin,
    xi^2  = 2 sum s^2 R_s^2 / sum s^2    over all bins

(D. Stauffer and A. Aharony, Introduction to Percolation Theory, 1994, sections 3.1 and 3.2).  At
p_c

    ln R_s^2 = ln A + (2/d_f) ln s + b s^-Omega + c s^-2 Omega

is fitted to the bins of the largest lattice, up to a small part of <s_1>: larger clusters are too
compact, because they must end inside the lattice.  Priors of b and c, and the average over smallest
and largest s, are those of :mod:`percolab.analysis.power_law`.  Errors: jackknife over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.averaging import Value
from percolab.analysis.cluster_numbers import coarse_edges
from percolab.analysis.json_values import plain
from percolab.analysis.power_law import PRIORS, average, fit_member
from percolab.analysis.statistics import MIN_BLOCKS, Floats, jackknife_error, shrunk_correlation
from percolab.analysis.theory.known_exponents import Known, correction_of_sizes, known_exponents
from percolab.errors import AnalysisError

#: Smallest sizes that are averaged over, the largest ones as parts of <s_1>, and bins that a fit
#: needs.
S_MIN, CUTOFFS, LEAST_BINS = (8, 16, 32, 64, 128, 256), (0.03, 0.02, 0.01), 8


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
    """d_f from R_s ~ s^(1/d_f) at a p of the grid of one size.

    amplitude: A.  corrections: b and c.  s_min, s_max: of the largest window.  known: d_f.
    """

    L: int
    p: float
    result: Value
    amplitude: float
    corrections: tuple[float, float]
    omega: float
    s_min: int
    s_max: int
    known: Known | None

    @property
    def d_f(self) -> float:
        """The fractal dimension."""
        return self.result.value

    @property
    def error(self) -> float:
        """Its whole error, one sigma."""
        return self.result.error

    def squared_radius(self, s: Floats) -> Floats:
        """Return the fitted R_s^2 at sizes s."""
        small = s**-self.omega
        b, c = self.corrections
        power = self.amplitude * s ** (2 / self.d_f) * np.exp(b * small + c * small**2)
        return np.asarray(power, np.float64)

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        beside = {key: value for key, value in vars(self).items() if key != "result"}
        record = self.result.to_dict()
        return plain({"rejected": record["rejected"], "d_f": record.pop("value")} | record | beside)


def fit_radius(sums: GyrationSums, *, threshold: float, dimension: int) -> RadiusFit:
    """Fit R_s at the p nearest to a threshold.

    The error of the threshold is not in that of d_f, nor is what p is off it.  Raises AnalysisError
    with fewer than MIN_BLOCKS blocks or LEAST_BINS bins.
    """
    at = int(np.argmin(np.abs(sums.p - threshold)))
    s, squared, without = sums.radii(at)
    reach = s / float(sums.largest[at])
    inside = (s >= S_MIN[0]) & (reach <= CUTOFFS[0])
    if len(without) < MIN_BLOCKS or inside.sum() < LEAST_BINS:
        raise AnalysisError(
            f"d_f from R_s: fewer than {LEAST_BINS} bins of sizes from s = {S_MIN[0]} to "
            f"{CUTOFFS[0]:g} <s_1>, or {MIN_BLOCKS} blocks"
        )
    omega = correction_of_sizes(dimension).value
    s, reach, again = s[inside], reach[inside], np.log(without[:, inside])
    design = np.stack([np.ones(s.size), np.log(s), s**-omega, s ** (-2 * omega)], axis=1)
    deviation = jackknife_error(again)
    covariance = shrunk_correlation(again) * np.outer(deviation, deviation)
    found = average(
        [
            fit_member(design, np.log(squared[inside]), covariance, (np.inf, np.inf, *PRIORS), kept)
            for cutoff in CUTOFFS
            for s_min in S_MIN
            if (kept := (s >= s_min) & (reach <= cutoff)).sum() >= LEAST_BINS
        ],
        # What is correlated enters the error as the blocks tell it.
        (len(again) - 1) * np.cov(again.T, ddof=0),
    )
    amplitude, slope, *corrections = found.theta
    d_f = float(2 / slope)
    return RadiusFit(
        L=sums.L,
        p=float(sums.p[at]),
        result=found.value(1).scaled(d_f, d_f**2 / 2),
        amplitude=float(np.exp(amplitude)),
        corrections=(float(corrections[0]), float(corrections[1])),
        omega=omega,
        s_min=int(s.min()),
        s_max=int(s.max()),
        known=known_exponents(dimension).get("d_f"),
    )
