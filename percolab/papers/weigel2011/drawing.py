"""Draw Weigel's figures and table, and Komura's comparison, from what a GPU measured; needs none.

M. Weigel, Phys. Rev. E 84, 036709 (2011), Figs. 2, 6, 8 to 14 and Table 1; Y. Komura,
arXiv:1603.08357.  The record is that of figures.py.  The folder gets each figure as PNG, PDF and
SVG, table.md, and findings.txt with a sentence a figure: what agrees with the paper and what does
not.  Shapes, exponents and orderings are compared, not its digits.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from percolab.figures import new_figure
from percolab.figures.elements import place_sizes, plain_ticks
from percolab.figures.style import DASHES, choose_look
from percolab.papers.measured_record import draw_over, make_drawing_command
from percolab.papers.weigel2011.figures import LEAST_SEWN, RECORD, fits

#: Where the figures go, from the folder of a checkout.
FOLDER = Path("results/weigel-h200")
D_MIN = 1.08
#: From how many tiles along an edge on the steps of relaxation are fitted.
LEAST_TILES = 8
SEWING, RELAXATION = "tiles:self+sewing", "tiles:self+relaxation"

Records = list[dict[str, Any]]
Parts = dict[str, Records]


def select(records: Records, **criteria: Any) -> Records:
    """Return the records that have these values, ascending in L, B and beta."""
    own = [r for r in records if all(r.get(key) == value for key, value in criteria.items())]
    return sorted(own, key=lambda r: (r["L"], r.get("B", 0), r["ratio"]))


def time_of(record: dict[str, Any], part: str = "update") -> float:
    """Return a time in ns a site."""
    return float(record["ns_a_site"][part])


def best(records: Records) -> Records:
    """Return for each L the record with the shortest update."""
    sizes = sorted({r["L"] for r in records})
    return [min((r for r in records if r["L"] == size), key=time_of) for size in sizes]


def local_power(x: list[float], y: list[float]) -> float:
    """Return the exponent of a power law through points."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw_line(axes: Any, x: Any, y: Any, number: int, label: str, **more: Any) -> None:
    """Draw one series with the look of its number."""
    look = choose_look(number, number) | {"linestyle": DASHES[number % len(DASHES)]} | more
    axes.plot(x, y, label=label, **look)


def finish(axes: Any, sizes: list[int] | None, ylabel: str, *, log: bool = True) -> None:
    """Give axes their scales and names; sizes: of an axis of L, None where it is another one."""
    if log:
        axes.set_yscale("log")
    axes.set_ylabel(ylabel)
    if sizes:
        place_sizes(axes, sorted(set(sizes)))
    plain_ticks(axes)
    axes.legend()


def figure_2(parts: Parts) -> tuple[Any, str]:
    """Local labeling against the edge of tiles."""
    power = {}
    with new_figure(4.4, 3.4) as figure:
        axes = figure.subplots()
        names = {"self": "self-labeling", "bfs": "breadth-first search", "union": "union-find"}
        for number, (name, label) in enumerate(names.items()):
            own = select(parts["local"], labeler=f"tiles:{name}+sewing")
            edges = [r["B"] for r in own]
            times = [time_of(r, "local") * r["B"] ** 2 for r in own]
            draw_line(axes, edges, times, number, label)
            power[name] = local_power(edges[-3:], times[-3:])
        axes.set_xscale("log", base=2)
        axes.set_xticks(edges, [str(edge) for edge in edges])
        axes.minorticks_off()
        axes.set_xlabel("edge $B$ of a tile")
        finish(axes, None, "time per tile over the tiles at once (ns)")
        axes.set_ylabel(r"local labeling, $B^2\times$ ns per site")
    at = {r["labeler"]: time_of(r, "local") for r in select(parts["local"], B=16)}
    times = [at[f"tiles:{name}+sewing"] for name in ("self", "union", "bfs")]
    order = "agrees" if times[0] < times[1] < times[2] else "does not agree"
    return figure, (
        f"at B = 16 self-labeling takes {times[0]:.3g}, union-find {times[1]:.3g} and "
        f"breadth-first search {times[2]:.3g} ns a site, {times[1] / times[0]:.2g} "
        f"and {times[2] / times[0]:.2g} times as much, which {order} with the paper's "
        f"order (8 and 13 times); a tile's time "
        f"grows at the largest B as B^{power['self']:.2f}, B^{power['union']:.2f} and "
        f"B^{power['bfs']:.2f}, in the paper as B^{2 + D_MIN:.2f}, B^2 and B^2."
    )


def figure_6(parts: Parts) -> tuple[Any, str]:
    """Steps of relaxation against L/B."""
    own = select(parts["sizes"], labeler=RELAXATION)
    fit = fits(parts["sizes"], LEAST_TILES)["steps"]
    with new_figure(4.4, 3.4) as figure:
        axes = figure.subplots()
        for number, edge in enumerate(sorted({r["B"] for r in own})):
            line = select(own, B=edge)
            ratios = [r["L"] / edge for r in line]
            draw_line(
                axes,
                ratios,
                [np.mean(r["steps"]) for r in line],
                number,
                f"$B = {edge}$",
                linestyle="none",
            )
        if fit:
            ends = np.array([LEAST_TILES, max(r["L"] / r["B"] for r in own)])
            label = rf"$\propto (L/B)^{{{fit['exponent']:.3f}}}$"
            axes.plot(ends, fit["prefactor"] * ends ** fit["exponent"], "k-", lw=0.8, label=label)
        axes.set_xscale("log")
        axes.set_xlabel("$L/B$")
        finish(axes, None, "steps of relaxation")
    if not fit:
        return figure, "too few sizes for a fit."
    error = fit["error"] or 0.0
    verdict = "agrees" if abs(fit["exponent"] - D_MIN) <= max(3 * error, 0.03) else "does not agree"
    return figure, (
        f"the steps grow as (L/B)^{fit['exponent']:.3f}({error:.3f}) for L/B >= {LEAST_TILES}, "
        f"which {verdict} with d_min = {D_MIN}."
    )


def figure_8(parts: Parts) -> tuple[Any, str]:
    """Sewing against L."""
    own = select(parts["sizes"], labeler=SEWING)
    fit = fits(parts["sizes"], LEAST_TILES)["sewing"]
    sizes = [r["L"] for r in own]
    with new_figure(4.4, 3.4) as figure:
        axes = figure.subplots()
        for number, edge in enumerate(sorted({r["B"] for r in own})):
            line = select(own, B=edge)
            times = [time_of(r, "consolidation") for r in line]
            draw_line(
                axes, [r["L"] for r in line], times, number, f"$B = {edge}$", linestyle="none"
            )
            if fit[edge]:
                x = np.geomspace(LEAST_SEWN * edge, max(sizes), 60)
                y = np.polyval(fit[edge][::-1], 1 / x)
                axes.plot(
                    x, np.where(y > 0, y, np.nan), lw=0.7, color=choose_look(number, 0)["color"]
                )
        finish(axes, sizes, "sewing (ns per site)")
    line = select(own, B=16)[-2:]
    before, last = (time_of(r, "consolidation") for r in line)
    limit = fit[16][0] if fit.get(16) else float("nan")
    flat = "has flattened, as the paper finds" if before < 1.3 * last else "still falls with L"
    return figure, (
        f"sewing at B = 16 takes {before:.3g} and {last:.3g} ns a site at L = {line[0]['L']} and "
        f"{line[1]['L']}: it {flat}; a + b/L + c/L^2 has a = {limit:.3g} ns."
    )


def figure_9(parts: Parts) -> tuple[Any, str]:
    """The best edge of tiles against L."""
    fit = fits(parts["sizes"], LEAST_TILES)
    with new_figure(4.4, 3.2) as figure:
        axes = figure.subplots()
        names = (("best_edge", "relaxation"), ("best_sewing_edge", "sewing"))
        for number, (key, label) in enumerate(names):
            draw_line(axes, list(fit[key]), list(fit[key].values()), number, label)
        edges = sorted({r["B"] for r in parts["sizes"] if "B" in r})
        axes.set_yscale("log", base=2)
        axes.set_yticks(edges, [str(edge) for edge in edges])
        finish(axes, list(fit["best_edge"]), "fastest $B$", log=False)
    relaxed, sewn = list(fit["best_edge"].values()), list(fit["best_sewing_edge"].values())
    grows = "grows" if relaxed[-1] > relaxed[0] else "does not grow"
    verdict = "agrees" if grows == "grows" and len(set(sewn[-3:])) == 1 else "agrees only in part"
    return figure, (
        f"the fastest B of relaxation {grows} from {relaxed[0]} to {relaxed[-1]}, of sewing it is "
        f"{', '.join(map(str, sewn[-3:]))} at the three largest L; this {verdict} with the paper, "
        "where the one grows and the other is constant."
    )


def curves_of(parts: Parts) -> dict[str, Records]:
    """Return what Fig. 10 compares, by name: those of the paper at their best B."""
    names = sorted({r["labeler"] for r in parts["sizes"]}, key=lambda n: (":" not in n, n))
    curves = {name: best(select(parts["sizes"], labeler=name)) for name in names}
    curves["CPU, raster"] = select(parts.get("cpu", []), states=2, update="sw")
    return {name: own for name, own in curves.items() if own}


def figure_10(parts: Parts) -> tuple[Any, str]:
    """Whole updates against L."""
    curves = curves_of(parts)
    with new_figure(6.4, 4.0) as figure:
        axes: Any = figure.subplots()
        for number, (name, own) in enumerate(curves.items()):
            more = {"markerfacecolor": "white"} if number >= 8 else {}
            draw_line(axes, [r["L"] for r in own], list(map(time_of, own)), number, name, **more)
        finish(axes, [r["L"] for own in curves.values() for r in own], "update (ns per spin)")
        axes.get_legend().remove()
        figure.legend(loc="outside right center")
    sewn, relaxed = (
        {r["L"]: time_of(r) for r in best(select(parts["sizes"], labeler=n))}
        for n in (SEWING, RELAXATION)
    )
    both = sorted(sewn.keys() & relaxed.keys())
    faster = [size for size in both if relaxed[size] < sewn[size]]
    turns = relaxed[both[-1]] > min(relaxed.values())
    expected = bool(faster) and both[-1] not in faster and turns
    verdict = "agrees" if expected else "does not agree in full"
    return figure, (
        f"relaxation is faster than sewing at L = {', '.join(map(str, faster)) or 'none'}, and "
        f"{'turns up' if turns else 'does not turn up'} at large L; at L = {both[-1]} it takes "
        f"{relaxed[both[-1]]:.3g} ns and sewing {sewn[both[-1]]:.3g} ns.  This {verdict} with the "
        "paper: relaxation wins at middle sizes and turns up, sewing wins in the end."
    )


def figure_11(parts: Parts) -> tuple[Any, str]:
    """The parts of an update, with sewing."""
    own = select(parts["sizes"], labeler=SEWING, B=16)
    sizes = [r["L"] for r in own]
    series = {
        "activation": [time_of(r, "activation") for r in own],
        "local labeling": [time_of(r, "local") for r in own],
        "consolidation": [time_of(r, "consolidation") for r in own],
        "flip, roots found": [time_of(r, "roots") + time_of(r, "flip") for r in own],
    }
    with new_figure(4.8, 3.6) as figure:
        axes = figure.subplots()
        for number, (name, times) in enumerate(series.items()):
            draw_line(axes, sizes, times, number, name)
        cpu = select(parts.get("cpu", []), states=2, update="sw")
        if cpu:
            draw_line(axes, [r["L"] for r in cpu], list(map(time_of, cpu)), 4, "CPU, whole update")
        finish(axes, sizes, "time (ns per spin)")
    local, joined = series["local labeling"], series["consolidation"]
    overtaken = [s for s, a, b in zip(sizes, local, joined, strict=True) if a > b]
    last = {name: times[-1] for name, times in series.items()}
    share = (last["activation"] + last["flip, roots found"]) / sum(last.values())
    verdict = "agrees" if joined[0] > local[0] and overtaken == sizes[-1:] else "agrees in part"
    return figure, (
        f"local labeling takes longer than consolidation at L = "
        f"{', '.join(map(str, overtaken)) or 'none'}; activation and flip are "
        f"{100 * share:.0f} % at L = {sizes[-1]}.  This {verdict} with the paper: at "
        "its largest L alone, and about 20 %."
    )


def figure_12(parts: Parts) -> tuple[Any, str]:
    """Updates against beta."""
    groups: dict[str, Records] = {}
    for r in select(parts["beta"]):
        tiles = f", $B = {r['B']}$" if "B" in r else ""
        groups.setdefault(r["labeler"].replace("tiles:self+", "") + tiles, []).append(r)
    with new_figure(4.8, 3.6) as figure:
        axes = figure.subplots()
        for number, (name, own) in enumerate(groups.items()):
            draw_line(axes, [r["ratio"] for r in own], list(map(time_of, own)), number, name)
        axes.axvline(1, color="0.6", lw=0.7, zorder=0)
        axes.set_xlabel(r"$\beta/\beta_c$")
        finish(axes, None, "update (ns per spin)")
    sewn = list(map(time_of, select(parts["beta"], labeler=SEWING)))
    rises = all(b >= 0.98 * a for a, b in pairwise(sewn))
    edges = sorted({r["B"] for r in select(parts["beta"], labeler=RELAXATION)})
    peaks = [max(select(parts["beta"], labeler=RELAXATION, B=e), key=time_of) for e in edges]
    at = [r["ratio"] for r in peaks]
    verdict = "agrees" if rises and all(abs(x - 1) < 0.06 for x in at) else "agrees in part"
    return figure, (
        f"sewing {'grows monotonically' if rises else 'is not monotonic'} with beta; relaxation "
        f"takes longest at {', '.join(f'{x:g}' for x in at)} beta_c (B = "
        f"{', '.join(map(str, edges))}).  This {verdict} with the paper: a peak at T_c."
    )


def figure_13(parts: Parts) -> tuple[Any, str]:
    """Speed-up over the CPU."""
    cpu = {r["L"]: time_of(r) for r in select(parts["cpu"], states=2, update="sw")}
    last = {}
    with new_figure(4.8, 3.6) as figure:
        axes = figure.subplots()
        names = (SEWING, RELAXATION, "four_step", "komura_2015", "tiled")
        for number, name in enumerate(names):
            own = [r for r in best(select(parts["sizes"], labeler=name)) if r["L"] in cpu]
            if own:
                ratios = [cpu[r["L"]] / time_of(r) for r in own]
                draw_line(axes, [r["L"] for r in own], ratios, number, name.split("+")[-1])
                last[name] = ratios[-1]
        axes.axhline(1, color="0.6", lw=0.7, zorder=0)
        finish(axes, list(cpu), "speed-up over one core")
    verdict = "agrees" if last[SEWING] > 30 else "does not agree"
    shown = ", ".join(f"{value:.3g} ({name})" for name, value in last.items())
    return figure, (
        f"at the largest L the speed-ups are {shown}; that of sewing {verdict} with the paper's "
        "more than 30, on other machines.  One core runs percolab's raster, which also measures."
    )


def figure_14(parts: Parts) -> tuple[Any, str]:
    """Updates of few clusters."""
    wolff = {r["L"]: time_of(r) for r in select(parts.get("cpu", []), states=2, update="wolff")}
    series: dict[str, Records] = {}
    for r in select(parts["few"]):
        name = "one seed a tile" if r["update"].startswith("few") else r["update"]
        series.setdefault(name, []).append(r)
    with new_figure(6.8, 3.2) as figure:
        axes, other = figure.subplots(1, 2)
        for number, (name, own) in enumerate(series.items()):
            draw_line(axes, [r["L"] for r in own], list(map(time_of, own)), number, name)
        sizes = [r["L"] for r in series["one seed a tile"]]
        finish(axes, sizes, "step (ns per site)")
        ratios = [
            (r["L"], wolff[r["L"]] / time_of(r))
            for r in series["one seed a tile"]
            if r["L"] in wolff
        ]
        if ratios:
            own_sizes, own_ratios = zip(*ratios, strict=True)
            draw_line(other, own_sizes, own_ratios, 2, "one seed a tile")
        finish(other, sizes, "speed-up over Wolff on one core")
    few, whole = (time_of(series[name][-1]) for name in ("one seed a tile", "sw"))
    verdict = "agrees" if few >= 0.9 * whole else "does not agree"
    up = f", {ratios[-1][1]:.3g} times faster than one core" if ratios else ""
    return figure, (
        f"a step of one seed a tile takes {few:.3g} ns a site at L = {sizes[-1]}{up}, one of all "
        f"clusters {whole:.3g}: this {verdict} with the advice to stay with all.  Here all "
        "clusters are labeled in either case, in the paper they grow from their seeds."
    )


def figure_komura(parts: Parts) -> tuple[Any, str]:
    """The general four steps and the special ones."""
    own = select(parts["komura"])
    places = list(dict.fromkeys((r["lattice"], r["L"]) for r in own))
    labels = [f"{lattice}, {size}" for lattice, size in places]
    more = []
    with new_figure(7.2, 3.2) as figure:
        panels = figure.subplots(1, 2)
        for axes, part in zip(panels, ("update", "labels"), strict=True):
            for number, name in enumerate(("komura_2015", "four_step")):
                line = {(r["lattice"], r["L"]): r for r in select(own, labeler=name)}
                at = [n + 0.4 * number - 0.2 for n, place in enumerate(places) if place in line]
                high = [1e3 * time_of(line[p], part) for p in places if p in line]
                axes.bar(at, high, 0.36, color=choose_look(number, 0)["color"], label=name)
            axes.set_xticks(range(len(places)), labels, fontsize=6, rotation=40, ha="right")
            axes.set_xlabel("lattice, $L$")
            axes.set_ylabel(f"{'update' if part == 'update' else 'labels alone'} (ps per site)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    for lattice, size in places:
        both = {r["labeler"]: r for r in select(own, lattice=lattice, L=size)}
        if len(both) == 2:
            special, general = both["komura_2015"], both["four_step"]
            ratio, labels_ratio = (
                time_of(general, p) / time_of(special, p) - 1 for p in ("update", "labels")
            )
            more.append((f"{lattice} L = {size}", 100 * ratio, 100 * labels_ratio))
    listed = "; ".join(f"{place} {a:+.0f} % ({b:+.0f} %)" for place, a, b in more)
    square = [a for place, a, _ in more if place.startswith("square")]
    verdict = "agrees" if square and square[-1] <= 25 else "does not agree"
    return figure, (
        f"the general algorithm takes, in a whole update (labels alone): {listed}; on the square "
        f"lattice this {verdict} with the paper's 20 %."
    )


def table(parts: Parts) -> str:
    """Return Table 1 as Markdown."""
    lines = ["| q | L | labeler | GPU, ns a spin | CPU, ns a spin | speed-up |", "|---" * 6 + "|"]
    for r in sorted(parts["states"], key=lambda r: (r["states"], r["L"], r["labeler"])):
        cpu = select(parts.get("cpu", []), states=r["states"], L=r["L"], update="sw")
        host, up = (
            (f"{time_of(cpu[0]):.4g}", f"{time_of(cpu[0]) / time_of(r):.3g}") if cpu else "--"
        )
        what = (r["states"], r["L"], r["labeler"], f"{time_of(r):.4g}", host, up)
        lines.append(f"| {' | '.join(map(str, what))} |")
    return "\n".join(lines) + "\n"


#: By name what draws a figure, and the parts that it needs.
FIGURES: dict[str, tuple[Callable[[Parts], tuple[Any, str]], tuple[str, ...]]] = {
    "fig2": (figure_2, ("local",)),
    "fig6": (figure_6, ("sizes",)),
    "fig8": (figure_8, ("sizes",)),
    "fig9": (figure_9, ("sizes",)),
    "fig10": (figure_10, ("sizes",)),
    "fig11": (figure_11, ("sizes",)),
    "fig12": (figure_12, ("beta",)),
    "fig13": (figure_13, ("sizes", "cpu")),
    "fig14": (figure_14, ("few",)),
    "komura": (figure_komura, ("komura",)),
}


def draw_all(path: Path, folder: Path) -> list[str]:
    """Draw what a record has parts for; return a sentence on each."""
    if not path.exists():
        return [f"{path} is missing: Weigel's figures are left out"]
    parts = {name: own["records"] for name, own in json.loads(path.read_bytes())["parts"].items()}
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, (draw, needed) in FIGURES.items():
        missing = [part for part in needed if not parts.get(part)]
        if missing:
            lines.append(f"{name}: left out, the record has no {' and no '.join(missing)}")
            continue
        figure, sentence = draw(parts)
        draw_over(figure, folder / f"weigel-{name}")
        lines.append(f"{name}: {sentence}")
    if parts.get("states"):
        (folder / "table.md").write_text(table(parts), encoding="utf-8")
    (folder / "findings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


main = make_drawing_command(__doc__, draw_all, RECORD, FOLDER)


if __name__ == "__main__":
    main()
