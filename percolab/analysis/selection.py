"""Which points enter a threshold fit, how large a model they carry, and what must be said of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from percolab.analysis.crossings import Crossing
from percolab.analysis.curve import SpanningCurve, curves_of_size, linear_sizes
from percolab.analysis.likelihood import MIN_BLOCKS, ChiSquare
from percolab.errors import AnalysisError

#: The cubic probit describes R_L(p) in this range; points outside merge into the end intervals.
WINDOW = (0.02, 0.98)

#: A fit whose chi^2 is less probable than this is called poor, and its cut-off L_min is refused.
POOR_FIT = 0.05


def select(
    curves: Sequence[SpanningCurve], *, min_size: int | None, window: tuple[float, float]
) -> tuple[tuple[SpanningCurve, ...], list[str]]:
    """Return the usable curves, ascending in L, cut to the window, and notes on what was left out.

    A size is usable when R_L rises between at least two p inside the window. Raises AnalysisError
    with fewer than two usable sizes.
    """
    allowed = [curve for curve in curves if min_size is None or min_size <= curve.L]
    if len(linear_sizes(allowed)) < 2:
        above = "" if min_size is None else f" of L >= {min_size}"
        raise AnalysisError(
            f"need at least two sizes{above} to find a threshold, got {_listed(allowed) or 'none'}"
        )
    cut = [part for curve in allowed if (part := curve.within(*window)) is not None]
    used: list[SpanningCurve] = []
    notes: list[str] = []
    for size in linear_sizes(allowed):
        own = curves_of_size(cut, size)
        if _rises(own):
            used += own
        else:
            notes.append(
                f"L = {size} not used: fewer than two p with {window[0]:g} <= R <= {window[1]:g}"
            )
    if len(linear_sizes(used)) < 2:
        raise AnalysisError(
            f"need at least two sizes with two p inside {window[0]:g} <= R <= {window[1]:g}, "
            f"got {_listed(used) or 'none'}; use a finer p grid around the threshold"
        )
    return tuple(used), notes


def affordable_degree(curves: Sequence[SpanningCurve], *, degree: int, corrections: int) -> int:
    """Largest degree that leaves one point more than parameters and fits one size's own points.

    corrections: number of amplitudes of corrections to scaling that are fitted too.
    """
    points = sum(curve.p.size for curve in curves)
    own = max(
        np.unique(np.concatenate([curve.p for curve in curves_of_size(curves, size)])).size
        for size in linear_sizes(curves)
    )
    fixed = 3 + corrections
    return max(1, min(degree, own - 1, points - fixed - 1))


def describe(
    used: Sequence[SpanningCurve],
    quality: ChiSquare,
    crossings: Sequence[Crossing],
    *,
    with_correction: bool,
    lowered_to: int | None,
) -> list[str]:
    """Return one line for each thing that a reader of the threshold must know."""
    notes = []
    if not with_correction:
        notes.append(
            "no correction to scaling was fitted (it needs three sizes): "
            "the error leaves out the shift of p_c that a correction would make"
        )
    if lowered_to is not None:
        notes.append(f"too few p for the degree asked for: fitted with degree {lowered_to}")
    if any(curve.samples.size < MIN_BLOCKS for curve in used):
        notes.append(f"some tasks have fewer than {MIN_BLOCKS} blocks: resampled by sample instead")
    if is_poor(quality):
        notes.append(
            f"the fit is poor (p-value {quality.p_value:.1e}, below {POOR_FIT:g}): "
            "a higher degree, the mixed correction or fewer small sizes may help "
            "(--min-size auto tries them in turn)"
        )
    missing = [f"({c.L1}, {c.L2})" for c in crossings if not c.found]
    if missing:
        notes.append(f"no crossing inside the common p range for L = {', '.join(missing)}")
    return notes


def is_poor(quality: ChiSquare) -> bool:
    """Return whether chi^2 rejects a fit; one without degrees of freedom cannot be rejected."""
    return quality.p_value < POOR_FIT


def _rises(curves: Sequence[SpanningCurve]) -> bool:
    if not curves:
        return False
    p = np.concatenate([curve.p for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    return bool(np.unique(p).size > 1 and np.polyfit(p - p.mean(), probability, 1)[0] > 1e-9)


def _listed(curves: Sequence[SpanningCurve]) -> str:
    return ", ".join(f"L = {size}" for size in linear_sizes(curves))
