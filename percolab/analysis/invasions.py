"""Means over invasions of several samples, and the fractal dimension of the invaded sites.

Sites invaded at breakthrough grow as L^D, with corrections (:mod:`percolab.analysis.power_law`),
and those within a distance r of a source as r^D.  Without trapping, and in three dimensions with
it, D is the d_f of percolation (D. Wilkinson and J. F. Willemsen, J. Phys. A 16, 3365 (1983)).

A sample is a block: errors of means are standard errors over samples, and that of D by the mass
within r is a jackknife over them, for masses of one sample at several r are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.analysis.power_law import fit_power_law
from percolab.analysis.statistics import Floats, jackknife_error
from percolab.analysis.value import Value
from percolab.errors import AnalysisError

#: Names of the averaged numbers.
AVERAGED = ("invaded", "threshold", "front", "largest_burst")


@dataclass(frozen=True)
class InvasionMeans:
    """Means over the invasions of one size.

    reached: how many of the samples reached their target.  means, errors: by the names in
    :data:`AVERAGED`; errors are NaN of a single sample.
    """

    L: int
    samples: int
    reached: int
    means: dict[str, float]
    errors: dict[str, float]

    @classmethod
    def of(cls, L: int, rows: Sequence[dict[str, Any]]) -> InvasionMeans:
        """Return the means of rows, one a sample, with the averaged numbers and "reached"."""
        table = np.array([[row[name] for name in AVERAGED] for row in rows], np.float64)
        n = len(rows)
        errors = table.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(AVERAGED), np.nan)
        return cls(
            L,
            n,
            sum(bool(row["reached"]) for row in rows),
            dict(zip(AVERAGED, table.mean(axis=0).tolist())),
            dict(zip(AVERAGED, errors.tolist())),
        )


def fit_size_dimension(means: Sequence[InvasionMeans]) -> Value | None:
    """Return D of <invaded sites> ~ L^D; None where the means of two sizes have no error."""
    used = [item for item in means if item.reached == item.samples and item.means["invaded"] > 0]
    masses = np.array([item.means["invaded"] for item in used])
    relative = np.array([item.errors["invaded"] for item in used]) / masses
    try:
        return fit_power_law([item.L for item in used], masses, relative**2).exponent
    except AnalysisError:
        return None


def fit_mass_dimension(radii: Floats, masses: Floats) -> Value | None:
    """Return D of <sites within r> = A r^D; None of fewer than two samples or radii.

    masses: float64 (samples, radii), all positive.
    """
    if len(masses) < 2 or len(radii) < 2:
        return None

    def slope(means: Floats) -> Any:
        return np.polynomial.polynomial.polyfit(np.log(radii), np.log(means).T, 1)[1]

    without = (masses.sum(axis=0) - masses) / (len(masses) - 1)
    error = float(jackknife_error(np.asarray(slope(without), np.float64)))
    return Value(float(slope(masses.mean(axis=0))), error)
