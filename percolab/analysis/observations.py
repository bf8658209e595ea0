"""Values of dimensionless quantities with the covariance of all that come from the same samples.

The values of one task, at all its p and of all quantities, are functions of the same samples.
Their covariance is that of a jackknife over blocks (B. Efron, SIAM, 1982): everything is computed
again with one group of blocks left out.  A covariance of d values that n blocks estimate is
inverted with an error of relative size d / n, so there must be MIN_BLOCKS_PER_VALUE times as many
blocks as values.  Where there are fewer, the p of a quantity are replaced by some linear
combinations, polynomials in p that are orthogonal on the grid, lowest first.  A model is combined
as the values are, so that biases nothing; and as the values vary smoothly with p, and their noise
does, next to nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.quantities import Floats, Quantity
from percolab.errors import AnalysisError

#: So many blocks a value at least, and so many combinations of a quantity's p at most.
MIN_BLOCKS_PER_VALUE, MAX_COMBINATIONS = 5, 6
#: Sizes that a fit must have.
MIN_SIZES = 3

#: Blocks of long runs are put together to about so many groups, which says no less of a covariance.
MAX_GROUPS = 4000

# Below this a variance, relative to the squared values, is that of rounding; and an eigenvalue of
# the correlations is that of values of which one follows from the others.
_ROUNDING, _SINGULAR = 1e-24, 1e-11


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """Sums over blocks of what quantities are made of; one task, or tasks that differ by seed.

    L: linear size.  p: float64 (m,), ascending.  samples: int64 (n_blocks,).  moments: by name,
    the sums over each block's samples, float64 (n_blocks, m).  label: for messages.
    """

    L: int
    p: Floats
    samples: NDArray[np.int64]
    moments: Mapping[str, Floats]
    label: str = ""

    def has(self, quantity: Quantity) -> bool:
        """Return whether the moments of a quantity are there."""
        return set(quantity.needs) <= set(self.moments)

    def grouped(self, groups: int = MAX_GROUPS) -> BlockMoments:
        """Return neighbouring blocks put together, to at most about so many groups."""
        each = -(-self.samples.size // groups)
        starts = np.arange(0, self.samples.size, each)
        sums = {name: np.add.reduceat(item, starts) for name, item in self.moments.items()}
        return replace(self, samples=np.add.reduceat(self.samples, starts), moments=sums)

    def at(self, keep: NDArray[np.bool_]) -> BlockMoments:
        """Return the moments at some of the p, bool (m,)."""
        sums = {name: item[:, keep] for name, item in self.moments.items()}
        return replace(self, p=self.p[keep], moments=sums)

    def values(self, quantities: Sequence[Quantity]) -> tuple[Floats, Floats]:
        """Return the quantities and their jackknife replicas.

        Values, float64 (quantities, m), are corrected for the bias of order 1 / samples that a
        function of means has; replicas, float64 (n_blocks, quantities, m), have one block left out.
        """
        left, whole = {}, {}
        total = int(self.samples.sum())
        for name, sums in self.moments.items():
            whole[name] = sums.sum(axis=0) / total
            left[name] = (sums.sum(axis=0) - sums) / (total - self.samples)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.stack([item.value(whole) for item in quantities])
            replicas = np.stack([item.value(left) for item in quantities], axis=1)
        n = self.samples.size
        return n * plain - (n - 1) * replicas.mean(axis=0), replicas


@dataclass(frozen=True, eq=False)
class Observations:
    """Values of one independent task that enter a fit, and their covariance.

    L: linear size.  p: float64 (n,), and quantity: int64 (n,), index of its quantity, of every
    value.  values: float64 (n,).  combine: float64 (d, n), the combinations of values that are
    used, each of one quantity.  covariance: float64 (d, d), their estimated one.  degrees: of
    freedom of that estimate, blocks - 1.  samples: that were measured.
    """

    L: int
    p: Floats
    quantity: NDArray[np.int64]
    values: Floats
    combine: Floats
    covariance: Floats
    degrees: int
    samples: int

    @property
    def dimension(self) -> int:
        """Number of combinations d."""
        return self.combine.shape[0]

    @cached_property
    def whiten(self) -> Floats:
        """Float64 (d, n): whiten @ (values - model) are d independent numbers of unit variance.

        The inverse of an estimated covariance is too large on average, by degrees / (degrees - d -
        1): J. Hartlap et al., Astron. Astrophys. 464, 399 (2007).
        """
        shrink = np.sqrt((self.degrees - self.dimension - 1) / self.degrees)
        scale = 1.0 / np.sqrt(np.diag(self.covariance))
        factor = np.linalg.cholesky(self.covariance * np.outer(scale, scale))
        return np.asarray(shrink * np.linalg.inv(factor) * scale @ self.combine, np.float64)

    def only(self, index: int) -> Observations:
        """Return the values of one quantity, which becomes the first."""
        mine = self.quantity == index
        rows = np.any(self.combine[:, mine] != 0, axis=1)
        return replace(
            self,
            p=self.p[mine],
            quantity=np.zeros(int(mine.sum()), np.int64),
            values=self.values[mine],
            combine=self.combine[np.ix_(rows, mine)],
            covariance=self.covariance[np.ix_(rows, rows)],
        )


def observe(moments: BlockMoments, quantities: Sequence[Quantity]) -> Observations:
    """Return the values of the quantities that a task has, with their covariance.

    AnalysisError: too few blocks, or one quantity follows from the others.
    """
    index = [i for i, item in enumerate(quantities) if moments.has(item)]
    own = [quantities[i] for i in index]
    moments = moments.grouped()
    blocks, points = moments.samples.size, moments.p.size
    of_p = _combinations(moments.p, _affordable(moments, len(own)))
    combine: Floats = np.kron(np.eye(len(own)), of_p).astype(np.float64)
    values, replicas = moments.values(own)
    away = (replicas - replicas.mean(axis=0)).reshape(blocks, -1) @ combine.T
    covariance = (blocks - 1) / blocks * away.T @ away
    varies = np.diag(covariance) > _ROUNDING * (combine**2 @ values.ravel() ** 2)
    if not varies.any():
        raise AnalysisError(f"L = {moments.L}: nothing that was asked for varies; add samples")
    covariance = covariance[np.ix_(varies, varies)]
    _check_regular(covariance, moments.L)
    return Observations(
        L=moments.L,
        p=np.tile(moments.p, len(own)),
        quantity=np.repeat(np.array(index, np.int64), points),
        values=values.ravel(),
        combine=combine[varies],
        covariance=covariance,
        degrees=blocks - 1,
        samples=int(moments.samples.sum()),
    )


def what_lacks(quantity: Quantity, moments: Sequence[BlockMoments]) -> str | None:
    """Return in a line why a quantity cannot be fitted, or None: too few sizes, or p."""
    own = [item for item in moments if item.has(quantity)]
    sizes = sorted({item.L for item in own})
    if len(sizes) < MIN_SIZES:
        shown = ", ".join(f"L = {size}" for size in sizes) or "no size"
        return f"quantity {quantity.name!r} is there at fewer than three sizes ({shown})"
    if max(len({p for m in own if size == m.L for p in m.p.tolist()}) for size in sizes) < 2:
        return f"quantity {quantity.name!r} is there at one p a size, so its slope is unknown"
    return None


def what_blocks_lack(moments: BlockMoments, quantities: int) -> str | None:
    """Return in a line why a task's blocks cannot tell a covariance, or None."""
    blocks = moments.samples.size
    least = min(moments.p.size, 2) * MIN_BLOCKS_PER_VALUE * quantities
    if blocks >= least:
        return None
    enough = _enough_for(moments)
    return (
        f"L = {moments.L}: {blocks} blocks are too few for the covariance of "
        f"{quantities} quantit{'y' if quantities == 1 else 'ies'} "
        f"(at least {least}{f'; they are enough for {enough}' if enough else ''})"
    )


def _enough_for(moments: BlockMoments) -> int:
    """Return of how many quantities a task's blocks tell the covariance, whatever they are.

    Each has two values: with fewer quantities more p may be near p_c than with many.
    """
    return moments.samples.size // (2 * MIN_BLOCKS_PER_VALUE)


def _affordable(moments: BlockMoments, quantities: int) -> int:
    """Return how many combinations of p a quantity may have; AnalysisError if too few.

    Of several p at least two combinations must be left, or they tell nothing of the slope.
    """
    lack = what_blocks_lack(moments, quantities)
    if lack:
        fewer = "ask for fewer quantities, or " if _enough_for(moments) else ""
        raise AnalysisError(f"{lack}: {fewer}add samples")
    most = moments.samples.size // (MIN_BLOCKS_PER_VALUE * quantities)
    return min(most, MAX_COMBINATIONS, moments.p.size)


def _combinations(p: Floats, count: int) -> Floats:
    """Return orthonormal polynomials on the grid, lowest first, float64 (count, m)."""
    if count == p.size:
        return np.eye(count)
    x = (p - p.mean()) / np.ptp(p)
    return np.linalg.qr(np.vander(x, count, increasing=True))[0].T


def _check_regular(covariance: Floats, size: int) -> None:
    """Raise AnalysisError where a value follows from the others."""
    scale = 1.0 / np.sqrt(np.diag(covariance))
    if np.linalg.eigvalsh(covariance * np.outer(scale, scale))[0] < _SINGULAR:
        raise AnalysisError(
            f"L = {size}: one of the quantities follows exactly from the others (as along two axes "
            "any + all = x + y): leave it out"
        )
