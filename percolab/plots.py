"""What all figures share: style, colours, the published threshold, and how a file is written.

Figures are plain `matplotlib.figure.Figure` objects, without pyplot or any global state; the
function that draws one also returns every number drawn.  matplotlib and scipy load when a figure
is made, so importing this module is cheap.  Colours are the colour-blind-safe set of Okabe and
Ito (2008); markers differ as well, for print in grey.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from percolab.math_text import typeset

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
#: A figure of one column of a journal, 89 mm wide, is printed as it is: no smaller than 6.5 points.
COLUMN_WIDTH = 3.5
COLUMN_STYLE: Any = STYLE | {
    "font.size": 7.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "lines.markersize": 3.2,
    "lines.linewidth": 1.0,
}
BAND: dict[str, Any] = {"color": "0.5", "alpha": 0.35, "linewidth": 0.8}
EXACT_LINE: dict[str, Any] = {"color": "black", "linestyle": (0, (5, 4)), "linewidth": 0.7}

#: A published threshold, and what is said of it: "1 - 2 sin(pi/18) [Sykes and Essam 1964]".
Exact = tuple[float, str]


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


def svg_text(figure: Figure, name: str) -> str:
    """Return a figure as an <svg> element to stand in a page beside others.

    name: letters and digits, put before every id, which are unique in a page.  Text is drawn as
    outlines, and comments are left out, so that nothing but numbers reaches the page.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "percolab", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=dict(FORMATS[".svg"]))
    text = re.sub(r"<!--.*?-->\s*", "", buffer.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    for mark in (' id="', 'href="#', "url(#"):
        text = text.replace(mark, f"{mark}{name}-")
    return text


def look_of(colour: int, marker: int) -> dict[str, Any]:
    """Return the colour and the marker with these numbers, as matplotlib's keywords."""
    return {"color": COLOURS[colour % len(COLOURS)], "marker": MARKERS[marker % len(MARKERS)]}


def size_label(size: int, num_sites: Mapping[int, int]) -> str:
    """Return what a legend calls a size: its N too where it is known."""
    sites = f"$N = {num_sites[size]}$, " if size in num_sites else ""
    return f"{sites}$L = {size}$"


def is_size(label: str) -> bool:
    """Return whether a label is one of :func:`size_label`."""
    return label.startswith(("$L =", "$N ="))


def exact_label(exact: Exact) -> str:
    """Return what a legend calls a published threshold."""
    return f"$p_c = {exact[0]:.8g}$, {typeset(exact[1])}"


def exact_record(exact: Exact | None) -> dict[str, Any] | None:
    """Return a published threshold as plain values."""
    return {"threshold": exact[0], "citation": exact[1]} if exact else None


def few_ticks(axes: Axes, *, number: int) -> None:
    """Label at most ``number`` + 1 ticks of linear axes, each in full."""
    axes.locator_params(axis="x", nbins=number)
    axes.locator_params(axis="y", nbins=number)
    axes.ticklabel_format(axis="both", useOffset=False)


def legend_entries(axes: Axes) -> list[tuple[Any, str]]:
    """Return what axes would list in a legend, (handle, label) each."""
    return list(zip(*axes.get_legend_handles_labels(), strict=True))


def add_legend(target: Axes | Figure, entries: Iterable[tuple[Any, str]], **options: Any) -> None:
    """Add a legend without a frame, sizes first, unless there is nothing to list."""
    found = sorted(entries, key=lambda entry: not is_size(entry[1]))
    if found:
        handles, labels = zip(*found, strict=True)
        target.legend(list(handles), list(labels), frameon=False, **options)
