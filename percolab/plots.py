"""Results as figures, one function a figure; each also returns every number that it draws.

Figures are plain `matplotlib.figure.Figure` objects, without pyplot or any global state. matplotlib
and scipy load when a figure is made, so importing this module is cheap. Colours are the
colour-blind-safe set of Okabe and Ito (2008); markers differ as well, for print in grey.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.math_text import typeset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from percolab.analysis import SpanningCurve, ThresholdFit

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F3C8D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

#: What `save_figure` writes, with the metadata that would otherwise hold the date or version.
FORMATS: Mapping[str, Mapping[str, str | None]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".svg": {"Date": None, "Creator": None},
}

STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "svg.hashsalt": "percolab",
}
_BAND: dict[str, Any] = {"color": "0.5", "alpha": 0.35, "linewidth": 0.8}
_EXACT: dict[str, Any] = {"color": "black", "linestyle": (0, (5, 4)), "linewidth": 0.7}

#: Where the close-up may stand: below the curves on the right, or above them on the left.
_INSET_PLACES = (
    (0.655, 0.125, 0.325, 0.36),
    (0.655, 0.125, 0.325, 0.22),
    (0.12, 0.4, 0.28, 0.26),
    (0.12, 0.27, 0.28, 0.22),
)
#: Height of a line in the legend of the sizes, which stands in the upper left corner.
_LEGEND_LINE = 0.055

Exact = tuple[float, str]
Box = tuple[float, float, float, float]


def plot_spanning(
    data: ThresholdFit | Sequence[SpanningCurve],
    *,
    title: str,
    axis_label: str,
    exact: Exact | None = None,
    num_sites: Mapping[int, int] | None = None,
) -> tuple[Figure, dict[str, Any]]:
    """Draw R_L(p) with its threshold, the crossings close up, and the drift of the crossings.

    data: a fit; or bare curves when no threshold can be had, drawn without an estimate.
    axis_label: what spans, for the vertical axis. exact: published threshold and what is said of
    it, as in "1 - 2 sin(pi/18) [Sykes and Essam 1964]".
    num_sites: sites N of each L, to label curves by N as well.
    Returns the figure and a JSON-serialisable dict of all numbers drawn.
    """
    import matplotlib
    from matplotlib.figure import Figure

    from percolab.analysis import ThresholdFit

    fit = data if isinstance(data, ThresholdFit) else None
    curves = fit.curves if fit else tuple(data)  # type: ignore[arg-type]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.3) if fit else (4.8, 4.3), layout="constrained")
        panels: Any = figure.subplots(1, 2 if fit else 1, width_ratios=[1.9, 1] if fit else None)
        main, side = panels if fit else (panels, None)
        lines = _draw_curves(main, curves, fit, num_sites or {})
        main.set(xlabel=r"$p$", ylabel=axis_label, ylim=(-0.03, 1.03), title=title)
        main.set_xlim(*_symmetric_range(curves, fit))
        if fit and side is not None:
            _draw_estimate(main, fit)
            _draw_close_up(main, fit)
            _draw_drift(side, fit, exact)
        if exact:
            label = f"{exact[0]:.8g}, {typeset(exact[1])}"
            main.axvline(exact[0], label=label, zorder=1, **_EXACT)
        _add_legends(figure, main)
    numbers = {
        "title": title,
        "exact": {"threshold": exact[0], "citation": exact[1]} if exact else None,
        "curves": [curve.to_dict() for curve in curves],
        "lines": lines,
        "fit": fit.to_dict() if fit else None,
    }
    return figure, numbers


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png (300 dpi), .pdf or .svg; equal figures give equal bytes.

    The file appears complete or not at all. Raises ValueError for another suffix.
    """
    import matplotlib

    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        allowed = ", ".join(FORMATS)
        raise ValueError(
            f"{path}: cannot write a figure as {suffix or 'no suffix'!r}; use {allowed}"
        )
    part = path.with_name(f".{path.name}.part")
    try:
        with matplotlib.rc_context({"svg.hashsalt": "percolab"}):
            figure.savefig(part, format=suffix[1:], dpi=300, metadata=dict(FORMATS[suffix]))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def look_of(colour: int, marker: int) -> dict[str, Any]:
    """Return the colour and the marker with these numbers, as matplotlib's keywords."""
    return {"color": COLOURS[colour % len(COLOURS)], "marker": MARKERS[marker % len(MARKERS)]}


def _draw_curves(
    axes: Axes,
    curves: Sequence[SpanningCurve],
    fit: ThresholdFit | None,
    num_sites: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Points with Wilson bars and a fitted line for each size; return the lines."""
    lines = []
    sizes = sorted({curve.L for curve in curves})
    for index, size in enumerate(sizes):
        own = [curve for curve in curves if size == curve.L]
        look = look_of(index, index)
        for number, curve in enumerate(own):
            low, high = curve.interval()
            bars = np.abs(np.stack([low, high]) - curve.probability)
            sites = f"$N = {num_sites[size]}$, " if size in num_sites else ""
            label = f"{sites}$L = {size}$" if number == 0 else None
            axes.errorbar(
                curve.p, curve.probability, bars, **look, linestyle="none", capsize=1.5,
                elinewidth=0.8, label=label, zorder=3,
            )  # fmt: skip
        line = _fitted_line(own, fit)
        if line is not None:
            axes.plot(*line, color=look["color"], zorder=2)
            lines.append({"L": size, "p": line[0].tolist(), "probability": line[1].tolist()})
    return lines


def _fitted_line(
    curves: Sequence[SpanningCurve], fit: ThresholdFit | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The simultaneous fit, or without one the size's own fit, over the p that were fitted."""
    from percolab.analysis import AnalysisError, fit_size
    from percolab.analysis.selection import WINDOW

    size = curves[0].L
    if fit is not None:
        own = [curve.p for curve in fit.used if size == curve.L]
        if not own:
            return None
        p = np.linspace(np.concatenate(own).min(), np.concatenate(own).max(), 200)
        return p, fit.probability(p, size)
    try:
        parts = [part for curve in curves if (part := curve.within(*WINDOW)) is not None]
        alone = fit_size(parts)
    except (AnalysisError, ValueError):
        return None
    p = np.linspace(alone.p_low, alone.p_high, 200)
    return p, alone.probability(p)


def _symmetric_range(
    curves: Sequence[SpanningCurve], fit: ThresholdFit | None
) -> tuple[float, float]:
    """Range of p where any R_L rises, centred so that the corners beside the curves stay free."""
    p = np.concatenate([curve.p for curve in curves])
    probability = np.concatenate([curve.probability for curve in curves])
    centre = fit.threshold if fit else float(p[np.argmin(np.abs(probability - 0.5))])
    rising = p[(probability > 0.001) & (probability < 0.999)]
    p = rising if rising.size else p
    reach = 1.06 * max(float(np.abs(p - centre).max()), 1e-6)
    return centre - reach, centre + reach


def _draw_estimate(axes: Axes, fit: ThresholdFit) -> None:
    """Draw p_c as a band one error wide on either side, with its value in the legend."""
    from percolab.analysis import format_with_error

    value = format_with_error(fit.threshold, fit.threshold_error)
    low, high = fit.threshold - fit.threshold_error, fit.threshold + fit.threshold_error
    axes.axvspan(low, high, label=rf"$p_c = {value}$, finite-size scaling", zorder=0, **_BAND)
    axes.axvline(fit.threshold, color="0.5", linewidth=0.6, zorder=0)


def _draw_close_up(main: Axes, fit: ThresholdFit) -> None:
    """Inset with the own fits of the sizes drawn, where they cross."""
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
        look = look_of(sizes.index(own.L), 0)
        grid = np.linspace(*p_range, 100)
        grid = grid[(grid >= own.p_low) & (grid <= own.p_high)]
        inset.plot(grid, own.probability(grid), color=look["color"], linewidth=0.9)
    inset.errorbar(
        p, r, r_error, p_error, color="black", marker="o", markersize=3, markerfacecolor="white",
        linestyle="none", elinewidth=0.8, zorder=4,
    )  # fmt: skip
    inset.set(xlim=p_range, ylim=_padded(r, r_error, least=0.02))
    _few_ticks(inset, number=3)
    inset.tick_params(labelsize=6.5, length=2)


def _free_place(axes: Axes, curves: Sequence[SpanningCurve]) -> Box | None:
    """Place for an inset (left, bottom, width, height in axes fractions) that hides nothing."""
    legend = 1.0 - _LEGEND_LINE * (1 + len({curve.L for curve in curves}))
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


def _draw_drift(axes: Axes, fit: ThresholdFit, exact: Exact | None) -> None:
    """Crossings against Lbar^-(omega + y_t), with the extrapolation to infinite size."""
    from percolab.analysis import format_with_error

    exponent = fit.scaling.omega + fit.y_t
    found = [crossing for crossing in fit.by_size.crossings if crossing.found]
    x = np.array([crossing.mean_size**-exponent for crossing in found])
    p = np.array([crossing.p for crossing in found])
    errors = np.nan_to_num([crossing.p_error for crossing in found])
    axes.axhspan(
        fit.threshold - fit.threshold_error, fit.threshold + fit.threshold_error, zorder=0, **_BAND
    )
    axes.errorbar(
        x, p, errors, color="black", marker="o", markerfacecolor="white", linestyle="none",
        elinewidth=0.8, capsize=1.5, label="crossings of neighbouring sizes",
    )  # fmt: skip
    drift = fit.by_size.drift
    if drift is not None:
        value = format_with_error(drift.threshold, drift.threshold_error)
        end = np.array([0.0, 1.04 * x.max()])
        axes.plot(end, drift.threshold + drift.amplitude * end, color=COLOURS[1], zorder=1)
        axes.errorbar(
            0.0, drift.threshold, drift.threshold_error, color=COLOURS[1], marker="D",
            elinewidth=1.0, capsize=2.5, label=rf"$p_c = {value}$, drift of crossings",
        )  # fmt: skip
    if exact:
        axes.axhline(exact[0], zorder=1, **_EXACT)
    right = 1.1 * float(x.max()) if x.size else 1.0
    axes.set(xlim=(-0.08 * right, right), title="drift of the crossings")
    axes.set(xlabel=r"$\bar{L}^{\,-(\omega + 1/\nu)}$", ylabel=r"$p^*(L_1, L_2)$")
    axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    _few_ticks(axes, number=5)


def _padded(values: np.ndarray, errors: np.ndarray, *, least: float) -> tuple[float, float]:
    low, high = float(np.min(values - errors)), float(np.max(values + errors))
    margin = max(0.35 * (high - low), least)
    return low - margin, high + margin


def _few_ticks(axes: Axes, *, number: int) -> None:
    axes.locator_params(axis="x", nbins=number)
    axes.locator_params(axis="y", nbins=number)
    axes.ticklabel_format(axis="both", useOffset=False)


def _add_legends(figure: Figure, main: Axes) -> None:
    """Sizes in the free upper left corner, everything else below the panels."""
    entries = [pair for axes in figure.axes for pair in legend_entries(axes)]
    sizes = [(handle, label) for handle, label in entries if label.startswith(("$L", "$N"))]
    rest = [entry for entry in entries if entry not in sizes]
    main.legend(
        *zip(*sizes, strict=True), loc="upper left", frameon=False,
        title="68 % Wilson intervals", title_fontsize=8, alignment="left",
    )  # fmt: skip
    if rest:
        figure.legend(*zip(*rest, strict=True), loc="outside lower center", ncols=2, frameon=False)


def legend_entries(axes: Axes) -> list[tuple[Any, str]]:
    """Return what axes would list in a legend, (handle, label) each."""
    return list(zip(*axes.get_legend_handles_labels(), strict=True))
