"""Where a joint fit begins, and which p are near enough to p_c for its polynomial.

For given p_c and y_t the model is linear, so both are searched on a grid, with uncorrelated errors
that have a floor: this start must survive p far away, which no polynomial describes.  Then only
the p are kept at which no quantity is further than REACH from its value at p_c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.observations import BlockMoments
from percolab.analysis.quantities import Floats, Quantity
from percolab.errors import AnalysisError

#: How far a quantity may be from its value at p_c, in the straight line through it.
REACH = 0.2

# The grid of the search: p_c within the p of the study, y_t, and how often it is made finer.
_P, _Y_T, _ROUNDS = 41, np.linspace(0.3, 2.7, 9), 3

# Errors in the search are at least this, and the correction in it decays by this exponent.
_FLOOR, _DECAY = 0.003, 1.5


@dataclass(frozen=True)
class Start:
    """p_c, y_t and the steepest |a_1| of any quantity, of a first rough fit."""

    threshold: float
    y_t: float
    steepest: float

    def near(self, moments: BlockMoments) -> np.ndarray:
        """Return which p of a task are near p_c, bool (m,)."""
        x = (moments.p - self.threshold) * moments.L**self.y_t
        return np.abs(self.steepest * x) <= REACH


def near_threshold(
    moments: Sequence[BlockMoments], quantities: Sequence[Quantity]
) -> tuple[Start, list[BlockMoments]]:
    """Return the start of a fit, and the moments at the p that are near p_c.

    Every quantity has a size with two p.  AnalysisError: fewer than two sizes are near p_c.
    """
    kept = list(moments)
    start = _search(kept, quantities)
    for _ in range(2):
        masks = [start.near(item) for item in moments]
        near = [item.at(mask) for item, mask in zip(moments, masks, strict=True) if mask.any()]
        if len({item.L for item in near}) < 2 or len({p for m in near for p in m.p.tolist()}) < 2:
            raise AnalysisError(
                f"fewer than two sizes have p near {start.threshold:.6g}, within "
                f"{REACH / start.steepest:.2g} L^-{start.y_t:.2f} of it: use a finer p grid"
            )
        if [item.p.size for item in near] == [item.p.size for item in kept]:
            break
        kept, start = near, _search(near, quantities)
    return start, kept


def _search(moments: Sequence[BlockMoments], quantities: Sequence[Quantity]) -> Start:
    tables = [table for item in quantities if (table := _table(moments, item)) is not None]
    p = np.concatenate([item.p for item in moments])
    low, high = float(p.min()), float(p.max())
    y_ts, best = _Y_T, (low, 1.0)
    for _ in range(_ROUNDS):
        grid = [(p_c, y_t) for p_c in np.linspace(low, high, _P) for y_t in y_ts]
        best = min(grid, key=lambda pair: sum(_misfit(table, *pair)[0] for table in tables))
        width, step = (high - low) / (_P - 1), (y_ts[-1] - y_ts[0]) / (len(y_ts) - 1)
        low, high = best[0] - 2 * width, best[0] + 2 * width
        y_ts = np.linspace(max(best[1] - step, 0.1), best[1] + step, 5)
    slopes = [abs(_misfit(table, *best)[1]) for table in tables]
    return Start(float(best[0]), float(best[1]), max(*slopes, 1e-3))


def _table(moments: Sequence[BlockMoments], quantity: Quantity) -> tuple[Floats, ...] | None:
    """Return L, p, values and errors of one quantity, each (n,), of all tasks that have it."""
    rows = []
    for item in moments:
        if item.has(quantity):
            blocks = item.samples.size
            if blocks < 2:
                raise AnalysisError(f"L = {item.L}: one block has no error; add samples")
            values, replicas = item.values([quantity])
            errors = np.sqrt((blocks - 1) * replicas[:, 0].var(axis=0))
            size = np.full(item.p.size, float(item.L))
            rows.append(np.stack([size, item.p, values[0], np.hypot(errors, _FLOOR)]))
    return tuple(np.concatenate(rows, axis=1)) if rows else None


def _misfit(table: tuple[Floats, ...], p_c: float, y_t: float) -> tuple[float, float]:
    """Return the sum of squares that is left of one quantity, and its a_1."""
    size, p, values, errors = table
    scale = (p.max() - p.min()) * np.median(size) ** y_t
    x = (p - p_c) * size**y_t / scale
    design = np.stack([np.ones_like(x), x, x**2, x**3, size**-_DECAY], axis=1)
    theta, *_ = np.linalg.lstsq(design / errors[:, None], values / errors, rcond=1e-10)
    return float(np.sum(((values - design @ theta) / errors) ** 2)), float(theta[1] / scale)
