"""The time per sample of labelers as a figure, like Fig 7 of Komura (2016)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from percolab.benchmark.figure import describe_batches
from percolab.figures.elements import draw_bars, letter_panels, plain_ticks, set_title
from percolab.figures.style import DASHES, PAGE_WIDTH, Axes, Figure, choose_look, new_figure

# Diameter of the smallest marker in points, and by how much the next ones are larger.
_MARKER, _GROWTH = 3.4, 1.35
#: Lines whose ends differ by less than this part have one label.
_ALIKE = 0.04


@dataclass(frozen=True)
class Timing:
    """Time per sample of one labeler on one lattice: `num_sites` sites, p = ratio * p_c.

    milliseconds: mean time per sample; error: its one-sigma error in ms, 0 when not known.
    batch: samples that were timed together, None when not known.
    """

    lattice: str
    labeler: str
    ratio: float
    num_sites: int
    milliseconds: float
    error: float = 0.0
    batch: int | None = None


def plot_timing(records: Sequence[Timing], *, title: str) -> tuple[Figure, dict[str, Any]]:
    """Draw the time per sample against N, doubly logarithmic, with a guide proportional to N.

    A series is one (lattice, labeler, p / p_c): colour and dashes tell lattice and labeler, the
    marker p, and each is named at its end; those that end together have one name.
    Markers are hollow, larger for a larger p, so that times that agree are seen to.  Of several
    labelers every lattice has a panel.
    Returns the figure and the numbers drawn. Raises ValueError without records.
    """
    if not records:
        raise ValueError("plot_timing needs at least one record")
    lattices = list(dict.fromkeys(record.lattice for record in records))
    labelers = list(dict.fromkeys(record.labeler for record in records))
    apart = len(labelers) > 1 and len(lattices) > 1
    parts = [[name] for name in lattices] if apart else [lattices]
    series: list[dict[str, Any]] = []
    rows = -(-len(parts) // 2)
    width = PAGE_WIDTH if len(parts) > 1 else 5.6
    with new_figure(width, 3.9 * rows) as figure:
        grid: Any = figure.subplots(
            rows, min(len(parts), 2), sharex=True, sharey=True, squeeze=False
        )
        for axes in grid.flat[len(parts) :]:
            axes.set_axis_off()
        # All panels have one guide.
        guide = _guide(records)
        for axes, names in zip(grid.flat, parts):
            own = [record for record in records if record.lattice in names]
            _draw_panel(axes, own, drawn=series)
            _draw_guide(axes, guide)
            if apart:
                axes.set_title(names[0], fontsize=9)
        plain_ticks(grid[0, 0])
        for axes in grid[-1]:
            axes.set_xlabel(r"number of sites $N$")
        for axes in grid[:, 0]:
            axes.set_ylabel("time per sample (ms)")
        letter_panels(grid.flat[: len(parts)])
        batches = describe_batches([record.batch for record in records])
        set_title(figure, ", ".join(filter(None, [title, batches])))
    return figure, {"title": title, "series": series, "guide": guide}


def _draw_panel(axes: Axes, records: Sequence[Timing], *, drawn: list[dict[str, Any]]) -> None:
    """Draw the series of a panel with their names, and add their numbers to those drawn.

    Lines are named by their labelers, of several lattices by these.
    """
    groups = list(dict.fromkeys((record.lattice, record.labeler) for record in records))
    ratios = sorted({record.ratio for record in records})
    axes.set(xscale="log", yscale="log")
    ends: list[tuple[float, float, str, str]] = []
    for number, group in enumerate(groups):
        together: dict[float, float] = {}
        for ratio in ratios:
            own = [r for r in records if (r.lattice, r.labeler, r.ratio) == (*group, ratio)]
            if not own:
                continue
            at = ratios.index(ratio)
            look = choose_look(number, at) | {"linestyle": DASHES[number % len(DASHES)]}
            look |= {"markerfacecolor": "none", "markeredgewidth": 0.9}
            look |= {"markersize": _MARKER * _GROWTH**at}
            drawn.append(_draw_series(axes, own, look))
            together[ratio] = drawn[-1]["milliseconds"][-1]
        name = group[1] if len({lattice for lattice, _ in groups}) == 1 else group[0]
        last = max(record.num_sites for record in records)
        colour = choose_look(number, 0)["color"]
        for alike in _alike(together):
            middle = float(np.exp(np.mean(np.log([together[ratio] for ratio in alike]))))
            ends.append((last, middle, f"{name}, {_times_p_c(alike)}", colour))
    _label_ends(axes, ends)


def _alike(ends: dict[float, float]) -> list[list[float]]:
    """Return the p / p_c whose lines end together, group by group."""
    groups: list[list[float]] = []
    for ratio in sorted(ends, key=lambda key: ends[key]):
        if groups and ends[ratio] < (1 + _ALIKE) * ends[groups[-1][0]]:
            groups[-1].append(ratio)
        else:
            groups.append([ratio])
    return [sorted(group) for group in groups]


def _times_p_c(ratios: Sequence[float]) -> str:
    """Return p / p_c for a figure: of one line, or of several that end together."""
    if list(ratios) == [1]:
        return "$p_c$"
    return rf"${', '.join(f'{ratio:g}' for ratio in ratios)}\,p_c$"


def _draw_series(axes: Axes, records: Sequence[Timing], look: dict[str, Any]) -> dict[str, Any]:
    ordered = sorted(records, key=lambda record: record.num_sites)
    columns = {
        name: [getattr(record, name) for record in ordered]
        for name in ("num_sites", "milliseconds", "error", "batch")
    }
    # A bar of no length is drawn as a dash, as if the error were known to be small.
    errors = [error or np.nan for error in columns["error"]]
    style = {"linewidth": 0.7, "capsize": 1.5}
    draw_bars(axes, columns["num_sites"], columns["milliseconds"], errors, look, **style)
    own = {name: getattr(ordered[0], name) for name in ("lattice", "labeler", "ratio")}
    return own | columns


def _guide(records: Sequence[Timing]) -> dict[str, Any]:
    """Return the ends of a line proportional to N below all points."""
    sites = np.array([record.num_sites for record in records], float)
    times = np.array([record.milliseconds for record in records])
    rate = 0.5 * float((times / sites).min())
    ends = np.array([sites.min(), sites.max()])
    return {"num_sites": ends.tolist(), "milliseconds": (rate * ends).tolist()}


def _draw_guide(axes: Axes, guide: dict[str, Any]) -> None:
    axes.plot(guide["num_sites"], guide["milliseconds"], color="0.4", linewidth=0.7)
    middle = [float(np.sqrt(np.prod(guide[key]))) for key in ("num_sites", "milliseconds")]
    axes.annotate(
        r"$\propto N$", (middle[0], middle[1]), (4, -4), textcoords="offset points",
        color="0.4", ha="left", va="top",
    )  # fmt: skip


def _label_ends(axes: Axes, ends: Iterable[tuple[float, float, str, str]]) -> None:
    """Name lines on logarithmic axes next to their right ends: x, y, name and colour of each.

    Names that would overlap are moved apart, and a thin line leads to each.
    """
    from matplotlib import rcParams

    figure: Any = axes.figure
    ordered = sorted(ends, key=lambda end: end[1])
    if not ordered:
        return
    axes.margins(x=0.08)
    low, high = np.log(axes.get_ylim())
    # In parts of the height of the panel, of which titles and ticks leave this much.
    inches = 0.78 * figure.get_figheight() / max(axes.get_subplotspec().get_gridspec().nrows, 1)  # type: ignore[union-attr]
    apart = 1.25 * float(rcParams["legend.fontsize"]) / 72 / inches
    ideal = [(np.log(y) - low) / (high - low) for _, y, _, _ in ordered]
    # Names that touch stand together, with the middle of their ends as theirs.
    groups: list[list[int]] = []
    for number in range(len(ordered)):
        groups.append([number])
        while len(groups) > 1:
            one, two = groups[-2:]
            middle = [float(np.mean([ideal[n] for n in group])) for group in (one, two)]
            if middle[1] - middle[0] >= apart * (len(one) + len(two)) / 2:
                break
            groups[-2:] = [[*one, *two]]
    for group in groups:
        middle_of = float(np.mean([ideal[n] for n in group]))
        for place, n in enumerate(group):
            x, y, name, colour = ordered[n]
            at = middle_of + apart * (place - (len(group) - 1) / 2)
            axes.annotate(
                name, (x, y), (1.04, at), "data", "axes fraction", color=colour, va="center",
                fontsize=rcParams["legend.fontsize"], annotation_clip=False,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4, "shrinkB": 4},
            )  # fmt: skip
