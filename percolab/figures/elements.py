"""Elements that all figures share: titles, letters, sizes, ticks, legends, residuals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.figures.math_text import typeset
from percolab.figures.style import BAND, EXACT_LINE, Axes, Figure

if TYPE_CHECKING:
    from percolab.analysis.value import ChiSquare

#: A published threshold and its source: "1 - 2 sin(pi/18) [Sykes and Essam 1964]".
Exact = tuple[float, str]

#: The range of numbers that are not written in powers of ten.
_LEAST_PLAIN, _MOST_PLAIN = 1e-3, 1e5
#: If a curve has more than _MOST_POINTS points, only _MARKERS have a marker and a bar.
_MOST_POINTS, _MARKERS = 100, 25
#: Width of a digit, and of the space next to a tick's label, relative to the font size.
_DIGIT, _BESIDE = 0.64, 1.6


def set_title(figure: Figure, text: str) -> None:
    """Write a title over all panels, with line breaks if the figure is too narrow."""
    from matplotlib import rcParams

    size = rcParams["axes.titlesize"]
    figure.suptitle(_break_lines(figure, text, size), fontsize=size)


def _break_lines(figure: Figure, text: str, size: Any) -> str:
    """Return a title with line breaks after commas and, if necessary, after words."""
    room = figure.bbox.width - 0.1 * figure.dpi

    def fits(line: str) -> bool:
        drawn = figure.text(0, 0, line, fontsize=size)
        width = drawn.get_window_extent().width
        drawn.remove()
        return bool(width <= room)

    lines: list[str] = []
    for given in text.split("\n"):
        parts = [given] if fits(given) else _parts(given, r"(?<=,) ")
        words = [word for part in parts for word in ([part] if fits(part) else _parts(part, " "))]
        line = ""
        for word in words:
            longer = f"{line} {word}".strip()
            if line and not fits(longer):
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return "\n".join(lines)


def _parts(text: str, separator: str) -> list[str]:
    """Return text in parts, none of which ends within mathematics."""
    parts: list[str] = []
    for piece in re.split(separator, text):
        # An escaped dollar sign does not begin mathematics.
        inside = parts and len(re.findall(r"(?<!\\)\$", parts[-1])) % 2
        if inside:
            parts[-1] += f" {piece}"
        else:
            parts.append(piece)
    return parts


def letter_panels(panels: Iterable[Axes]) -> None:
    """Write (a), (b), ... next to the upper left corners of panels, unless there is only one.

    The letters are above the label of a tick at the corner.
    """
    each = list(panels)
    for letter, axes in zip("abcdefghijklmnop", each if len(each) > 1 else ()):
        axes.annotate(
            f"({letter})", (0, 1), (-6, 7), "axes fraction", "offset points", fontweight="bold",
            fontsize=9, ha="right",
        )  # fmt: skip


def keep_to_probabilities(*panels: Axes) -> None:
    """Let horizontal axes of probabilities end at 0 and 1, with whole markers there."""
    for axes in panels:
        low, high = axes.get_xlim()
        if axes.get_xscale() != "linear" or (low >= 0 and high <= 1):
            continue
        axes.set_xlim(max(low, 0.0), min(high, 1.0))
        bottom, top = sorted(axes.get_ylim())
        for line in axes.lines:
            x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
            inside = (x >= 0) & (x <= 1) & (y >= bottom) & (y <= top)
            if line.get_transform() == axes.transData and inside.all():
                line.set_clip_on(False)


def draw_residuals(
    axes: Axes, series: Iterable[tuple[Any, Any, dict[str, Any]]], *, of: str
) -> None:
    """Draw differences in standard errors, with a grey band of one error on either side.

    series: x, differences over errors, and the look of each.  of: the name of the subtrahend.
    """
    largest = 3.0
    for x, away, look in series:
        axes.plot(x, away, **(look | {"markersize": 2.8, "linestyle": "none"}))
        largest = max(largest, float(np.abs(away).max(initial=0.0)))
    axes.axhline(0, color="black", linewidth=0.6, zorder=0)
    axes.axhspan(-1, 1, color="0.9", linewidth=0, zorder=-1)
    axes.set_ylim(-1.15 * largest, 1.15 * largest)
    axes.set_ylabel(f"(measured $-$\n{of}) / error", fontsize=8)


def size_label(size: int, num_sites: Mapping[int, int]) -> str:
    """Return the label of a size in legends: L, with N if it is known, or N only if it equals L."""
    sites = f"$N = {num_sites[size]}$" if size in num_sites else ""
    own = "" if size == num_sites.get(size) else f"$L = {size}$"
    return ", ".join(filter(None, [sites, own]))


def is_size(label: str) -> bool:
    return label.startswith(("$L =", "$N ="))


def known_word(known: Any) -> str:
    """Return the word for a known value in figures: "exact", or "published" if it has an error."""
    return "published" if known.error else "exact"


def known_text(known: Any) -> str:
    """Return the known value as a line below a fitted one, or "" if there is none."""
    return "" if known is None else f"\n({known_word(known)}: ${known.value:.5g}$)"


def rejection_label(quality: ChiSquare | None) -> str | None:
    """Return the note in a figure for a fit that chi^2 rejects; None for other fits or no fit."""
    if quality is None or not quality.rejects:
        return None
    p_value = f"{quality.p_value:.1g}" if quality.p_value > 0 else "< 1e-300"
    shown = re.sub(r"(\d)e([+-])0*(\d+)", r"\1 \\times 10^{\g<2>\3}", p_value)
    return rf"fit rejected by $\chi^2$ ($p$-value ${shown}$)"


def exact_record(exact: Exact | None) -> dict[str, Any] | None:
    """Return a published threshold as plain values."""
    return {"threshold": exact[0], "citation": exact[1]} if exact else None


def draw_exact(
    axes: Axes,
    exact: Exact | None,
    *,
    across: bool = False,
    labelled: bool = True,
    zorder: float = 0,
) -> None:
    """Draw a published threshold, if there is one, as a vertical line, or across the axes."""
    if exact:
        line = axes.axhline if across else axes.axvline
        label = f"$p_c = {exact[0]:.8g}$, {typeset(exact[1])}" if labelled else None
        line(exact[0], label=label, zorder=zorder, **EXACT_LINE)


def draw_band(axes: Axes, value: float, error: float, *, across: bool = False, **look: Any) -> None:
    """Draw a value minus and plus its error as a vertical band, or as a horizontal one."""
    span = axes.axhspan if across else axes.axvspan
    span(value - error, value + error, **{"zorder": 0} | BAND | look)


def bars_if_known(errors: np.ndarray) -> np.ndarray | None:
    """Return errors for bars, NaN where an error is unknown; None if all are unknown."""
    known = np.isfinite(errors)
    return np.where(known, errors, np.nan) if known.any() else None


def draw_bars(axes: Axes, x: Any, y: Any, errors: Any, look: Any, **style: Any) -> None:
    """Draw points with their known errors, (n,) or (2, n); look and style: of the points.

    Points are not connected unless the style has a linestyle; if more than _MOST_POINTS points are
    connected, only some have a marker and a bar.
    """
    known = bars_if_known(np.asarray(errors, float))
    style = {"elinewidth": 0.8, "linestyle": "none"} | look | style
    if style["linestyle"] != "none" and np.size(x) > _MOST_POINTS:
        style |= dict.fromkeys(("markevery", "errorevery"), np.size(x) // _MARKERS)
    axes.errorbar(x, y, known, **style)


def interval_bars(curve: Any) -> np.ndarray:
    """Return the lengths below and above a curve's probability of its interval, (2, m)."""
    return np.asarray(np.abs(np.stack(curve.interval()) - curve.probability))


#: The legend's text for bars of one standard error.
ERROR_BARS = "Error bars: one standard error"


def jackknife_title(errors: Iterable[np.ndarray], *, over: str = "blocks") -> str | None:
    """Return the legend's text for bars from the scatter of blocks; None if none is known."""
    known = any(np.isfinite(each).any() for each in errors)
    return f"{ERROR_BARS}, jackknife over {over}" if known else None


def only_p(curves: Sequence[Any]) -> float | None:
    """Return the p of curves of several sizes at a single p, which are drawn against L."""
    all_p = np.unique(np.concatenate([curve.p for curve in curves]))
    return float(all_p[0]) if all_p.size == 1 and len({curve.L for curve in curves}) > 1 else None


def title_with_p(title: str, at: float | None) -> str:
    """Return the title of a figure, with p if all curves are at a single p."""
    return title if at is None else f"{title}, $p = {at:.8g}$"


def place_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Make a horizontal axis of ascending sizes: a tick for each size, and labels that fit."""
    axes.set_xscale("log", base=2)
    low, high = min(sizes) / 1.5, max(sizes) * 1.5
    octave = estimate_width(axes) / np.log2(high / low)
    labels, end = [], -np.inf
    for size in sizes:
        middle, half = octave * np.log2(size), 0.5 * _label_width(axes, str(size))
        fits = middle - half > end
        labels.append(str(size) if fits else "")
        end = middle + half if fits else end
    axes.set_xticks(list(sizes), labels)
    axes.set_xlim(low, high)
    axes.minorticks_off()
    axes.set_xlabel("$L$")


def estimate_width(axes: Axes) -> float:
    """Return the approximate width that a panel of a figure will have, in inches."""
    figure: Any = axes.figure
    place: Any = axes.get_subplotspec()
    # A user's axes may be anywhere, including a subfigure.
    if place is None or figure is not figure.figure:
        return float(axes.bbox.width / figure.dpi)
    return float(figure.get_figwidth() * place.get_position(figure).width)


def _label_width(axes: Axes, text: str) -> float:
    """Return the approximate width of a horizontal tick's label, in inches."""
    font = float(axes.xaxis.get_major_ticks(1)[0].label1.get_fontsize()) / 72
    return font * (_DIGIT * len(text) + _BESIDE)


def few_ticks(axes: Axes, *, number: int, width: float | None = None) -> None:
    """Label at most ``number`` + 1 ticks of linear axes in full, along x only as many as fit.

    width: of the axes, in inches; None if they are a panel of a figure.
    """
    if axes.get_yscale() == "linear":
        axes.locator_params(axis="y", nbins=number)
        axes.ticklabel_format(axis="y", useOffset=False)
    if axes.get_xscale() != "linear":
        return
    axes.ticklabel_format(axis="x", useOffset=False)
    width = estimate_width(axes) if width is None else width
    for most in range(number, 1, -1):
        axes.locator_params(axis="x", nbins=most)
        low, high = sorted(axes.get_xlim())
        labels = axes.xaxis.get_major_formatter().format_ticks(list(axes.get_xticks()))
        needed = sum(
            _label_width(axes, re.sub(r"[^\d.,\u2212-]", "", label))
            for label, at in zip(labels, axes.get_xticks(), strict=True)
            if low <= at <= high
        )
        if needed < width:
            return


def plain_ticks(axes: Axes, *, decades: float = 2.0) -> None:
    """Write plain numbers, 20, 50, 100, on logarithmic axes that span fewer decades than these.

    Ticks that were set individually are kept.
    """
    from matplotlib import ticker

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), ticker.FixedLocator):
            continue
        if not 1 < high / low < 10**decades or low < _LEAST_PLAIN or high > _MOST_PLAIN:
            continue
        within = [1.0, 2.0, 5.0] if high / low < 300 else [1.0]
        ticks = np.multiply.outer(10.0 ** np.arange(-4, 6), within)
        enough = np.count_nonzero((ticks >= low) & (ticks <= high)) > 2
        few = ticker.MaxNLocator(5, steps=[1, 2, 5, 10])
        axis.set_major_locator(ticker.LogLocator(10, subs=within) if enough else few)
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(ticker.NullFormatter())


def legend_entries(*panels: Axes) -> list[tuple[Any, str]]:
    """Return the entries that panels have for a legend, (handle, label) each."""
    listed = (axes.get_legend_handles_labels() for axes in panels)
    return [entry for each in listed for entry in zip(*each, strict=True)]


def sizes_first(entries: Iterable[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """Return the entries of a legend, with sizes before all others."""
    return sorted(entries, key=lambda entry: not is_size(entry[1]))


def add_legend(
    target: Axes | Figure, entries: Iterable[tuple[Any, str]], *, ncols: int = 1, **options: Any
) -> None:
    """Add a legend, sizes first, unless there is nothing to list.

    ncols: number of columns, reduced if they are wider than the figure.  Entries are in rows, or
    in columns if only rows are too wide.
    """
    shown = sizes_first(entries)
    if not shown:
        return
    figure: Any = target.figure
    for columns, by_row in product(range(ncols, 0, -1), (True, False)):
        # Matplotlib fills legends column by column.
        firsts = range(columns if by_row else 1)
        listed = [entry for first in firsts for entry in shown[first :: len(firsts)]]
        handles, labels = map(list, zip(*listed, strict=True))
        legend = target.legend(handles, labels, ncols=columns, **options)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def add_column_legend(
    figure: Figure, entries: Iterable[tuple[str, tuple[Any, str]]], **options: Any
) -> None:
    """Add a legend below the panels; entries of one name, the first of each pair, in one column.

    The figure is widened if its legend is wider.
    """
    from matplotlib.lines import Line2D

    columns: dict[str, list[tuple[Any, str]]] = {}
    for name, entry in entries:
        columns.setdefault(name, []).append(entry)
    depth = max(map(len, columns.values()))
    blank = (Line2D([], [], linestyle="none"), "")
    cells = [cell for own in columns.values() for cell in own + [blank] * (depth - len(own))]
    handles, labels = map(list, zip(*cells, strict=True))
    legend = figure.legend(
        handles, labels, loc="outside lower center", ncols=len(columns), **options
    )
    needed = legend.get_window_extent().width / figure.dpi + 0.1
    figure.set_figwidth(max(figure.get_figwidth(), needed))
