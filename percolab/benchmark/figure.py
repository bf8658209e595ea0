"""Time per site against N: a panel for every lattice and p, a line for every labeler and stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from percolab.benchmark.records import Place, TimeRecord
from percolab.benchmark.stages import STAGES
from percolab.figures import elements
from percolab.figures.style import DASHES, choose_look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PEERS: Any = {"color": "0.45", "markerfacecolor": "white", "linewidth": 0.8, "linestyle": ":"}
_PEER_MARKERS = {("scipy", "build"): "v", ("scipy", "labels"): "P", ("cupyx", "labels"): "X"}
#: Units of the vertical axis in ns, the smallest first.
_UNITS = (("ps", 1e-3), ("ns", 1.0), ("µs", 1e3))


def plot_time_per_site(records: Sequence[TimeRecord], *, title: str) -> Figure:
    """Draw the time per site against the number of sites, doubly logarithmic.

    A row of panels is for a lattice, a column for a value of p.  cupyx labels an image of sites, so
    its line is in every panel.  Only records of stages of samples are drawn; ValueError without
    any.
    """
    own = [r for r in records if r.stage in STAGES and not _is_peer(r)]
    if not own:
        raise ValueError("plot_time_per_site needs at least one record of a stage")
    drawn = [*own, *filter(_is_peer, records)]
    places: dict[str, dict[Place, None]] = {}
    for record in own:
        places.setdefault(record.lattice, {})[_place(record)] = None
    columns = max(map(len, places.values()))
    unit, scale = _unit(own)
    width = max(4.6, 2.0 + 2.3 * columns, 1.75 * len({record.program for record in drawn}))
    with new_figure(width, 1.4 + 2.6 * len(places)) as figure:
        grid = figure.subplots(len(places), columns, sharex=True, sharey=True, squeeze=False)
        for row, (lattice, columns_of) in zip(grid, places.items(), strict=True):
            for axes, place in zip(row, columns_of):
                _draw_panel(axes, drawn, lattice, place, scale)
            for axes in row[len(columns_of) :]:
                axes.set_visible(False)
        elements.plain_ticks(grid[0, 0], decades=8)
        batches = describe_batches([record.samples for record in own])
        elements.set_title(figure, ", ".join(filter(None, [title, batches])))
        elements.letter_panels([axes for axes in grid.flat if axes.get_visible()])
        for axes in grid[-1]:
            axes.set_xlabel(r"number of sites $N$")
        for axes in grid[:, 0]:
            axes.set_ylabel(f"time per site ({unit})")
        _add_legend(figure)
    return figure


def describe_batches(batches: Sequence[int | None]) -> str:
    """Return a figure's text about the number of samples timed together; "" if it is unknown."""
    known = sorted({batch for batch in batches if batch is not None})
    if not known:
        return ""
    if known[-1] == 1:
        return "a sample at a time"
    least = "" if known[0] == known[-1] else f"{known[0]} to "
    return f"batched: {least}{known[-1]} samples at a time"


def _is_peer(record: TimeRecord) -> bool:
    return (record.program, record.stage) in _PEER_MARKERS


def _place(record: TimeRecord) -> Place:
    return Place(record.p or 0.0, record.ratio)


def _unit(records: Sequence[TimeRecord]) -> tuple[str, float]:
    """Return the unit in which the median time has digits before the decimal point."""
    times = sorted(record.nanoseconds_per_site for record in records)
    middle = times[len(times) // 2]
    return max(_UNITS, key=lambda unit: (unit[1] <= middle, unit[1] if unit[1] <= middle else 0))


def _draw_panel(
    axes: Axes, records: Sequence[TimeRecord], lattice: str, place: Place, scale: float
) -> None:
    labelers = list(dict.fromkeys(r.program for r in records if not _is_peer(r)))
    series: dict[tuple[str, str], list[TimeRecord]] = {}
    for record in records:
        if record.program == "cupyx" or (record.lattice, _place(record)) == (lattice, place):
            series.setdefault((record.program, record.stage), []).append(record)
    for (program, stage), line in series.items():
        line.sort(key=lambda record: record.num_sites)
        if _is_peer(line[0]):
            look = _PEERS | {"marker": _PEER_MARKERS[program, stage]}
        else:
            # Colours and markers show the stage, dashes the labeler.
            look = choose_look(STAGES.index(stage), STAGES.index(stage))
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


def _label(record: TimeRecord) -> str:
    if record.program == "cupyx":
        return "cupyx, labels of a site image"
    if record.stage == "sweep":
        return f"{record.program}, sweep of {record.probabilities} $p$"
    return f"{record.program}, {record.stage}"


def _add_legend(figure: Figure) -> None:
    """Write a legend below the panels, with a column for every program."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in elements.legend_entries(axes):
            entries.setdefault(label, handle)
    programs = ((label.partition(",")[0], (handle, label)) for label, handle in entries.items())
    elements.add_column_legend(figure, programs, handlelength=3.2)
