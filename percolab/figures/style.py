"""The style of all figures: fonts, widths, colours and markers, and a new figure with it.

Figures are plain `matplotlib.figure.Figure` objects, without pyplot or any global state.  Colours
were found by a search: they differ in lightness, so also in grey, and are far apart in CIELAB for
people with normal sight, deuteranopes and protanopes (G. M. Machado, M. M. Oliveira and L. A. F.
Fernandes, IEEE Trans. Vis. Comput. Graph. 15, 1291 (2009)).  Markers differ as well.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib loads when a figure is made
    Axes = Figure = Any

#: Blue, orange, brown, mint, purple, sky, green, plum; neighbours differ most in lightness.
COLOURS = ("#0B5AC1", "#E96700", "#571A00", "#36CCA1", "#6F256E", "#5BA9D4", "#318440", "#390018")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
#: Dashes of lines that could not be distinguished in grey.
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.5)), (0, (6, 2, 1.2, 2)))

STYLE: Any = {
    "font.size": 9,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "figure.titlesize": 10,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "axes.formatter.use_mathtext": True,
    "svg.hashsalt": "percolab",
}
#: Widths in inches of a journal's page and of one of its columns, 89 mm.
PAGE_WIDTH, COLUMN_WIDTH = 7.2, 3.5
#: A figure of one column is printed as it is: no smaller than 6.5 points.
COLUMN_STYLE: Any = STYLE | {
    "font.size": 7.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7.5,
    "lines.markersize": 3.2,
    "lines.linewidth": 1.0,
}
BAND: dict[str, Any] = {"color": "0.5", "alpha": 0.35, "linewidth": 0.8}
EXACT_LINE: dict[str, Any] = {"color": "black", "linestyle": (0, (5, 4)), "linewidth": 0.7}
DOTTED_LINE: dict[str, Any] = EXACT_LINE | {"linestyle": ":"}


@contextmanager
def new_figure(width: float, height: float, *, style: Any = STYLE) -> Iterator[Figure]:
    """Yield an empty figure, size in inches; the style applies while panels are drawn into it."""
    import matplotlib

    from percolab.figures.notebook import NotebookFigure

    with matplotlib.rc_context(style):
        yield NotebookFigure(figsize=(width, height), layout="constrained")


def choose_look(colour: int, marker: int) -> dict[str, Any]:
    return {"color": COLOURS[colour % len(COLOURS)], "marker": MARKERS[marker % len(MARKERS)]}


def size_look(number: int) -> dict[str, Any]:
    """Return the style of size number ``number``, ascending in L; hollow beyond the eighth."""
    again = number // len(COLOURS) % 2
    return choose_look(number, number) | ({"markerfacecolor": "white"} if again else {})


def choose_looks(items: Sequence[Any]) -> list[tuple[Any, dict[str, Any], bool]]:
    """Return every curve with the style of its L, and whether it is the first of this L."""
    sizes = sorted({curve.L for curve in items})
    looks, seen = [], set()
    for curve in items:
        looks.append((curve, size_look(sizes.index(curve.L)), curve.L not in seen))
        seen.add(curve.L)
    return looks
