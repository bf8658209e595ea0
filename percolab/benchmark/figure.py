"""Time per site against N: a panel for every lattice and p, a line for every labeler and stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from percolab.benchmark.records import PeerTime, StageTime
from percolab.benchmark.stages import STAGES
from percolab.figures import elements
from percolab.figures.style import DASHES, choose_look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PEERS: Any = {"color": "0.45", "markerfacecolor": "white", "linewidth": 0.8, "linestyle": ":"}
_PEER_MARKERS = {("scipy", "build"): "v", ("scipy", "labels"): "P", ("cupyx", "labels"): "X"}
#: Units of the vertical axis in ns, the finest first.
_UNITS = (("ps", 1e-3), ("ns", 1.0), ("µs", 1e3))


def plot_time_per_site(records: Sequence[StageTime | PeerTime], *, title: str) -> Figure:
    """Draw the time per site against the number of sites, doubly logarithmic.

    A row of panels is a lattice, a column a value of p.  cupyx labels a site image, so its line is
    drawn in every panel.  Raises ValueError without records of a stage.
    """
    own = [record for record in records if isinstance(record, StageTime)]
    if not own:
        raise ValueError("plot_time_per_site needs at least one record of a stage")
    lattices = list(dict.fromkeys(record.lattice for record in own))
    columns = max(len(_places(own, lattice)) for lattice in lattices)
    programs = {_key(record)[0] for record in records}
    unit, scale = _unit(own)
    width = max(4.6, 2.0 + 2.3 * columns, 1.75 * len(programs))
    with new_figure(width, 1.4 + 2.6 * len(lattices)) as figure:
        grid = figure.subplots(len(lattices), columns, sharex=True, sharey=True, squeeze=False)
        for row, lattice in zip(grid, lattices, strict=True):
            places = _places(own, lattice)
            for axes, place in zip(row, places):
                _draw_panel(axes, records, lattice, place, scale)
            for axes in row[len(places) :]:
                axes.set_visible(False)
        elements.plain_ticks(grid[0, 0], decades=8)
        batches = describe_batches([record.samples_per_run for record in own])
        elements.set_title(figure, ", ".join(filter(None, [title, batches])))
        elements.letter_panels([axes for axes in grid.flat if axes.get_visible()])
        for axes in grid[-1]:
            axes.set_xlabel(r"number of sites $N$")
        for axes in grid[:, 0]:
            axes.set_ylabel(f"time per site ({unit})")
        _add_legend(figure)
    return figure


def describe_batches(batches: Sequence[int | None]) -> str:
    """Return what a figure of times says of the samples timed together; "" if it is not known."""
    known = sorted({batch for batch in batches if batch is not None})
    if not known:
        return ""
    if known[-1] == 1:
        return "a sample at a time"
    least = "" if known[0] == known[-1] else f"{known[0]} to "
    return f"batched: {least}{known[-1]} samples at a time"


def _places(records: Sequence[StageTime], lattice: str) -> list[tuple[float, float | None]]:
    return list(dict.fromkeys((r.p, r.ratio) for r in records if r.lattice == lattice))


def _unit(records: Sequence[StageTime]) -> tuple[str, float]:
    """Return the unit in which the middle of the times is a number with digits before the point."""
    times = sorted(record.nanoseconds_per_site for record in records)
    middle = times[len(times) // 2]
    return max(_UNITS, key=lambda unit: (unit[1] <= middle, unit[1] if unit[1] <= middle else 0))


def _draw_panel(
    axes: Axes,
    records: Sequence[StageTime | PeerTime],
    lattice: str,
    place: tuple[float, float | None],
    scale: float,
) -> None:
    labelers = list(dict.fromkeys(r.labeler for r in records if isinstance(r, StageTime)))
    series: dict[tuple[str, str], list[StageTime | PeerTime]] = {}
    for record in records:
        anywhere = isinstance(record, PeerTime) and record.peer == "cupyx"
        if anywhere or (record.lattice, record.p, record.ratio) == (lattice, *place):
            series.setdefault(_key(record), []).append(record)
    for (program, part), line in series.items():
        line.sort(key=lambda record: record.num_sites)
        if isinstance(line[0], PeerTime):
            look = _PEERS | {"marker": _PEER_MARKERS[program, part]}
        else:
            colour = STAGES.index(part)
            # Colour and marker show the stage, the line's dashes the labeler.
            look = choose_look(colour, colour)
            look["linestyle"] = DASHES[labelers.index(program) % len(DASHES)]
        sites = [record.num_sites for record in line]
        times = [record.nanoseconds_per_site / scale for record in line]
        axes.plot(sites, times, **look, label=_label(line[0]))
    p, ratio = place
    times_p_c = "" if ratio == 1 else f"{ratio:g} " if ratio is not None else ""
    at = f"$p = {p:.6g}$" if ratio is None else f"$p = {times_p_c}p_c$"
    axes.set(xscale="log", yscale="log")
    axes.set_title(f"{lattice}, {at}", fontsize=9)
    axes.grid(axis="y", color="0.9", linewidth=0.6)


def _key(record: StageTime | PeerTime) -> tuple[str, str]:
    if isinstance(record, PeerTime):
        return record.peer, record.part
    return record.labeler, record.stage


def _label(record: StageTime | PeerTime) -> str:
    program, part = _key(record)
    if program == "cupyx":
        return "cupyx, labels of a site image"
    if part == "sweep" and isinstance(record, StageTime):
        return f"{program}, sweep of {record.probabilities} $p$"
    return f"{program}, {part}"


def _add_legend(figure: Figure) -> None:
    """Write a legend below the panels, with a column for every program."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in elements.legend_entries(axes):
            entries.setdefault(label, handle)
    programs = ((label.partition(",")[0], (handle, label)) for label, handle in entries.items())
    elements.add_column_legend(figure, programs, handlelength=3.2)
