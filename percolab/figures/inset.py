"""The crossings of neighbouring sizes close up, in an inset where there is room for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from percolab.analysis import SpanningCurve, ThresholdFit
from percolab.figures.axes import estimate_width, few_ticks
from percolab.figures.style import Axes, size_look

#: Where the close-up may stand: below the curves on the right, or above them on the left.
_INSET_PLACES = (
    (0.655, 0.125, 0.325, 0.36),
    (0.655, 0.125, 0.325, 0.22),
    (0.12, 0.4, 0.28, 0.26),
    (0.12, 0.27, 0.28, 0.22),
    (0.12, 0.4, 0.28, 0.22),
)
#: Height of a line in the legend of the sizes, in the upper left corner, and of its margins.
_LEGEND_LINE, _LEGEND_MARGINS = 0.055, 0.035

Box = tuple[float, float, float, float]


def draw_close_up(main: Axes, fit: ThresholdFit) -> None:
    """Draw an inset with the own fits of the sizes drawn, where they cross."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    sizes = sorted({curve.L for curve in fit.curves})
    own_fits = [own for own in fit.by_size.fits if own.L in sizes]
    crossings = fit.by_size.crossings
    found = [c for c in crossings if c.found and c.L1 in sizes and c.L2 in sizes]
    if not found:
        return
    p = np.array([crossing.p for crossing in found])
    r = np.array([crossing.probability for crossing in found])
    p_error = np.nan_to_num([crossing.p_error for crossing in found])
    r_error = np.nan_to_num([crossing.probability_error for crossing in found])
    place = _free_place(main, fit.curves)
    if place is None:
        return
    inset = main.inset_axes(place)
    steepest = max(float(own.probit.deriv()(p.mean())) for own in own_fits)
    p_range = _padded(p, p_error, least=0.02 / steepest)
    for own in own_fits:
        number = sizes.index(own.L)
        grid = np.linspace(*p_range, 100)
        grid = grid[(grid >= own.p_low) & (grid <= own.p_high)]
        # Markers tell the lines apart in grey; not at the same p, where lines cross.
        inset.plot(
            grid, own.probability(grid), **size_look(number), linewidth=0.9, markersize=2.6,
            markevery=(6 + 7 * number % 24, 30),
        )  # fmt: skip
    inset.errorbar(
        p, r, r_error, p_error, color="black", marker="o", markersize=3, markerfacecolor="white",
        linestyle="none", elinewidth=0.8, zorder=4,
    )  # fmt: skip
    inset.set(xlim=p_range, ylim=_padded(r, r_error, least=0.02))
    # Labels at the ends of the axes would stick out of the panel.
    for axis in (inset.xaxis, inset.yaxis):
        axis.set_major_locator(MaxNLocator(3, prune="both"))
        axis.set_major_formatter(ScalarFormatter(useOffset=False))
    inset.tick_params(labelsize=6.5, length=2)
    few_ticks(inset, number=3, width=place[2] * estimate_width(main))


def _free_place(axes: Axes, curves: Sequence[SpanningCurve]) -> Box | None:
    """Place for an inset (left, bottom, width, height in axes fractions) that hides nothing."""
    lines = 1 + len({curve.L for curve in curves})
    legend = 1.0 - _LEGEND_MARGINS - _LEGEND_LINE * lines
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    grid = np.linspace(0.0, 1.0, 400)
    for left, base, width, height in _INSET_PLACES:
        # The tick labels of the inset stand outside its left and lower edge.
        beside = (grid > left - 0.1) & (grid < left + width + 0.02)
        p = low + grid[beside] * (high - low)
        hidden = left < 0.5 and base + height > legend
        for curve in curves:
            inside = p[(p >= curve.p[0]) & (p <= curve.p[-1])]
            y = (np.interp(inside, curve.p, curve.probability) - bottom) / (top - bottom)
            hidden |= bool(np.any((y > base - 0.08) & (y < base + height + 0.04)))
        if not hidden:
            return left, base, width, height
    return None


def _padded(values: np.ndarray, errors: np.ndarray, *, least: float) -> tuple[float, float]:
    low, high = float(np.min(values - errors)), float(np.max(values + errors))
    margin = max(0.35 * (high - low), least)
    return low - margin, high + margin
