"""Statistics as normal deviates, so that one limit judges them all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from percolab.validation.check import Outcome


def _deviate(exceeded: float) -> float:
    """Return the normal deviate that is exceeded with this probability."""
    from scipy.stats import norm

    # Where a probability underflows, the deviate is tens of sigma either way.
    return float(norm.isf(np.clip(exceeded, 1e-300, 1 - 1e-16)))


def as_normal(name: str, chi_square: float, dof: int) -> Outcome:
    """Return chi^2 as the normal deviate with the same probability to be exceeded."""
    from scipy.stats import chi2

    deviate = _deviate(float(chi2.sf(chi_square, dof)))
    return Outcome(f"chi^2: {name}", deviate, 0.0, 1.0, f"chi^2 {chi_square:.1f}, {dof} dof")


def largest_as_normal(name: str, z: NDArray[np.float64]) -> Outcome:
    """Return the largest of many |z| as the normal deviate that is exceeded as seldom."""
    from scipy.stats import norm

    largest = float(np.max(np.abs(z)))
    # The probability that one of them at least is as large.
    exceeded = -np.expm1(z.size * np.log1p(-2 * norm.sf(largest)))
    return Outcome(name, _deviate(float(exceeded)), 0.0, 1.0, f"|z| {largest:.2f} of {z.size}")
