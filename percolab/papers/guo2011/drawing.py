"""Draw Figs 5 and 6 of Guo et al. from what a GPU measured; needs none.

S. Guo, W. Wang and L. Wang, Application Research of Computers 28, 1682 (2011): the time of a
minimum spanning tree against V, and the speed-up over a binary heap on one core.  The record is
that of figures.py.  The folder gets both as PNG, PDF and SVG, table.md, and
findings.txt with a sentence a figure: what agrees with the paper and what does not.  The machines
are others than the paper's, so that orderings and crossings are compared, not times.
"""

import json
from pathlib import Path
from typing import Any

from percolab.figures import new_figure
from percolab.figures.elements import plain_ticks
from percolab.figures.style import DASHES, choose_look
from percolab.papers.guo2011.figures import RECORD, SERIAL
from percolab.papers.measured_record import draw_over, make_drawing_command

#: Where the figures go, from the folder of a checkout.
FOLDER = Path("results/guo-h200")
HEAP = f"CPU, {SERIAL}"
WITH, WITHOUT, PERSISTENT = "with primitive", "without primitive", "one launch"
#: The paper's: the largest speed-up, and from which V on there is any.
SPEED_UP, FASTER_FROM = 2, 4096

#: Times in ms by way, then by V.
Times = dict[str, dict[int, float]]


def times_of(parts: dict[str, Any]) -> Times:
    """Return the medians of a record."""
    times: Times = {}
    for r in sorted(parts["trees"]["records"], key=lambda r: r["V"]):
        times.setdefault(r["way"], {})[r["V"]] = r["time"]
    return times


def ratios_of(times: Times, way: str, over: str = HEAP) -> dict[int, float]:
    """Return by V how many times faster a way is than another one."""
    slow, fast = times.get(over, {}), times.get(way, {})
    return {size: slow[size] / fast[size] for size in slow if size in fast}


def draw(series: Times, ways: list[str], ylabel: str) -> Any:
    """Return a figure of curves against V; a way looks the same in both figures.

    ways: those of the record, in its order.
    """
    with new_figure(5.6, 3.8) as figure:
        axes = figure.subplots()
        for name, own in series.items():
            number = ways.index(name)
            look = choose_look(number, number) | {"linestyle": DASHES[number % len(DASHES)]}
            label = name if name.startswith("CPU") else f"GPU, {name}"
            axes.plot(list(own), list(own.values()), label=label, **look)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        sizes = sorted({size for own in series.values() for size in own})
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set_xlabel("$V$")
        axes.set_ylabel(ylabel)
        plain_ticks(axes)
        figure.legend(loc="outside right center")
    return figure


def figure_5(times: Times) -> tuple[Any, str]:
    """The times."""
    size = max(times[HEAP])
    at = {way: own[size] for way, own in times.items() if size in own}
    shown = ", ".join(f"{way} {time:.3g}" for way, time in at.items())
    ordered = at[WITHOUT] > at[WITH]
    verdict = "agrees" if ordered else "does not agree"
    return draw(times, list(times), "time of a tree (ms)"), (
        f"at V = {size}, in ms a tree: {shown}.  The primitive makes the rounds "
        f"{at[WITHOUT] / at[WITH]:.2g} times as fast, which {verdict} with the paper: it is faster "
        "with the primitive than without."
    )


def crossing_of(ratios: dict[int, float]) -> str:
    """Say from which V on a way is faster."""
    slower = [size for size, ratio in ratios.items() if ratio <= 1]
    if not slower:
        return "at every V"
    faster = [size for size in ratios if size > max(slower)]
    return f"from V = {faster[0]} on" if faster else "at no V up to the largest"


def figure_6(times: Times) -> tuple[Any, str]:
    """The speed-ups."""
    ways = [way for way in times if not way.startswith("CPU")]
    ratios = {way: ratios_of(times, way) for way in ways}
    last = {way: list(own.values())[-1] for way, own in ratios.items()}
    shown = ", ".join(f"{value:.2g} ({way})" for way, value in last.items())
    never = all(value < 1 for value in ratios[WITHOUT].values())
    late = all((value > 1) == (size > FASTER_FROM) for size, value in ratios[WITH].items())
    fastest = ratios_of(times, PERSISTENT, "CPU, kruskal")
    sentence = (
        f"over {SERIAL} on one core the speed-ups at V = {max(times[HEAP])} are {shown}.  Launch "
        f"by launch, the GPU is faster {crossing_of(ratios[WITH])} with the primitive and "
        f"{crossing_of(ratios[WITHOUT])} without.  The paper has at most {SPEED_UP}, above V = "
        f"{FASTER_FROM} alone, and less than 1 without the primitive: the first "
        f"{'agrees' if late else 'does not agree'}, the second "
        f"{'agrees' if never else 'does not agree'}.  In one launch it is faster "
        f"{crossing_of(ratios[PERSISTENT])}"
    )
    if fastest:
        sentence += (
            f", and {crossing_of(fastest)} ({list(fastest.values())[-1]:.2g} at the largest) than "
            "Kruskal's algorithm, the fastest on that core"
        )
    return draw(ratios, list(times), f"speed-up over {SERIAL} on one core"), sentence + "."


FIGURES = {"fig5": figure_5, "fig6": figure_6}


def table_of(times: Times) -> str:
    """Return all times as a table, one row a V."""
    rows = [["V", *times], ["---"] * (len(times) + 1)]
    for size in times[HEAP]:
        rows.append(
            [str(size)] + [f"{own[size]:.4g}" if size in own else "" for own in times.values()]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def draw_all(record: Path, folder: Path) -> list[str]:
    """Draw both figures; return a line for each, or one that says what is missing."""
    if not record.exists():
        return [f"Guo's figures: {record} is missing (guo2011/figures.py makes it on a GPU)"]
    times = times_of(json.loads(record.read_bytes())["parts"])
    missing = [way for way in (HEAP, WITH, WITHOUT, PERSISTENT) if way not in times]
    if missing:
        return [f"Guo's figures: {record} has no times of {', '.join(missing)}"]
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, make in FIGURES.items():
        figure, sentence = make(times)
        draw_over(figure, folder / f"guo-{name}")
        lines.append(f"{name}: {sentence}")
    (folder / "table.md").write_text(table_of(times), encoding="utf-8")
    (folder / "findings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


main = make_drawing_command(__doc__, draw_all, RECORD, FOLDER)


if __name__ == "__main__":
    main()
