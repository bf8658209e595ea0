"""Statistics as normal deviates, to which one limit applies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.validation.check import Outcome

#: Eigenvalues of a correlation matrix below this are those of values that determine each other.
_DEPENDENT = 1e-8


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
    """Return the largest of many |z| as the normal deviate of the same probability."""
    from scipy.stats import norm

    largest = float(np.max(np.abs(z)))
    # The probability that one of them at least is as large.
    exceeded = -np.expm1(z.size * np.log1p(-2 * norm.sf(largest)))
    return Outcome(name, _deviate(float(exceeded)), 0.0, 1.0, f"|z| {largest:.2f} of {z.size}")


def with_joint(name: str, found: Iterable[tuple[Outcome, NDArray[Any]]]) -> Iterator[Outcome]:
    """Yield outcomes of the same samples, and one of all of them together, by their covariance.

    found: each outcome with the deviation of every sample from its expectation, float64 (samples,).
    Hotelling's T^2 of their means, as the normal deviate of the same probability: H. Hotelling,
    Ann. Math. Stat. 2, 360 (1931).
    """
    from scipy.stats import f

    outcomes, columns = zip(*found, strict=True)
    yield from (replace(outcome, correlated=True) for outcome in outcomes)
    deviations = np.stack(columns, axis=1)
    count = len(deviations)
    spread = deviations.std(axis=0, ddof=1)
    varies = spread > _DEPENDENT * spread.max()
    scaled = deviations[:, varies] / spread[varies]
    eigenvalues, vectors = np.linalg.eigh(np.atleast_2d(np.cov(scaled, rowvar=False)))
    kept = eigenvalues > _DEPENDENT
    along = scaled.mean(axis=0) @ vectors[:, kept]
    rank = int(kept.sum())
    t_square = count * float(np.sum(along**2 / eigenvalues[kept]))
    ratio = (count - rank) / (rank * (count - 1)) * t_square
    deviate = _deviate(float(f.sf(ratio, rank, count - rank)))
    note = f"T^2 {t_square:.1f} of {rank} values, {count} samples"
    yield Outcome(f"together: {name}", deviate, 0.0, 1.0, note)
