"""Draw Figs 4 to 7 and write Tables 1 and 2 of Fink et al. from what was measured.

S. J. Fink, S. B. Baden, C. Huston and K. Jansen, Parallel cluster identification for
multidimensional lattices, IEEE Transactions on Parallel and Distributed Systems (1997).  The record
is that of figures.py.  The folder gets the four figures, and two of Tables 1 and 2, as
PNG, PDF and SVG, table1.md and table2.md, and findings.txt with the paper's claims one by one: what
agrees and what does not.  The text of the paper that we have lost the cells of its tables and the
curves, so that shapes and claims are compared; and its bonds are those of Ising models, ours those
of percolation.
"""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from percolab.figures import new_figure
from percolab.figures.style import DASHES, EXACT_LINE, choose_look
from percolab.papers.fink1997.figures import OURS, PAPER, RECORD
from percolab.papers.measured_record import draw_over, make_drawing_command

#: Where the figures go, from the folder of a checkout.
FOLDER = Path("results/fink")
NONE, BUBBLES, RUNS, BOTH = PAPER
SHORTER, TREE, TREE_SHORTER = OURS
NAMES = {
    NONE: "no optimization",
    BUBBLES: "bubble elimination",
    RUNS: "border compression",
    BOTH: "both",
    SHORTER: "bubbles, shorter of both forms",
    TREE: "tree",
    TREE_SHORTER: "tree, bubbles, shorter",
}
#: The paper's: figures by dimension, and by how much the global time falls.
FIGURES = {2: "fig4", 3: "fig5", 4: "fig6"}
GAINS = {2: (0.20, 0.70), 3: (0.35, 0.85), 4: (0.35, 0.85)}
#: The most that optimizations save in bytes, and how we say where p lies.
MOST_RATIO = 20
PLACES = {0.5: "below", 1.0: "at", 1.5: "above"}
#: kappa / kappa_c of the paper's supercritical runs, or near it; that of 2-D is lost.
ABOVE = {2: 2.0, 3: 2.0, 4: 2.5}
#: What is compared: its key in the record, what it is called, unit and scale.
KINDS = (("global_ms", "time", "ms", 1.0), ("bytes", "bytes", "MB", 1e-6))
#: Named where a table or a figure has no room for a sentence.
ABOUT_TIMES = "processor time of simulated ranks, one after the other; sending takes none"

Records = list[dict[str, Any]]
Parts = dict[str, Records]


def select(records: Records, **criteria: Any) -> Records:
    """Return the records that have these values, in their order."""
    return [r for r in records if all(r.get(key) == value for key, value in criteria.items())]


def values(records: Records, merge: str, key: str, along: str) -> dict[float, float]:
    """Return one number of a way of merging by another number of its records."""
    return {r[along]: r[key] for r in select(records, merge=merge)}


def read_record(path: Path) -> Parts:
    """Return the records by part, one for every way of merging a sample."""
    parts = json.loads(path.read_bytes())["parts"]
    return {
        name: [each | way for each in own["records"] for way in each["ways"].values()]
        for name, own in parts.items()
    }


def couplings_of(dimension: int) -> dict[str, float]:
    """Return kappa / kappa_c of the paper's three runs."""
    return {"subcritical": 0.5, "critical": 1.0, "supercritical": ABOVE[dimension]}


def shape_text(record: dict[str, Any]) -> str:
    """Return the sites along the axes, times their numbers."""
    return r" \times ".join(map(str, record["shape"]))


def draw_line(axes: Any, points: dict[float, float], merge: str) -> None:
    """Draw one way of merging, which looks the same in all figures."""
    number = list(NAMES).index(merge)
    look = choose_look(number, number) | {"linestyle": DASHES[number % len(DASHES)]}
    axes.plot(list(points), list(points.values()), label=NAMES[merge], **look)


def figure_of_times(records: Records, dimension: int) -> Any:
    """Draw the global time against kappa: Figs 4, 5 and 6."""
    own = select(records, dimension=dimension)
    with new_figure(5.6, 3.5) as figure:
        axes = figure.subplots()
        for merge in (*PAPER, TREE):
            draw_line(axes, values(own, merge, "global_ms", "kappa"), merge)
        axes.axvline(own[0]["kappa_c"], **EXACT_LINE, label=r"$\kappa_c$ of bond percolation")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=-0.02 * max(r["kappa"] for r in own))
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel(r"coupling $\kappa$,  $p = 1 - e^{-4\kappa}$")
        axes.set_ylabel("global combining time (ms)")
        axes.set_title(f"{dimension}-D, {own[0]['ranks']} simulated ranks, ${shape_text(own[0])}$")
        figure.legend(loc="outside right center")
    return figure


def figure_7(records: Records) -> Any:
    """Draw local and global time a site, with and without optimizations."""
    dimensions = dimensions_of(records)
    with new_figure(7.2, 3.1) as figure:
        panels = figure.subplots(1, len(dimensions), squeeze=False)[0]
        for axes, dimension in zip(panels, dimensions):
            own = select(records, dimension=dimension)
            for n, ratio in enumerate(couplings_of(dimension).values()):
                for side, merge in ((-0.2, NONE), (0.2, BOTH)):
                    (r,) = select(own, merge=merge, coupling_ratio=ratio)
                    each = 1e6 / r["box_sites"]
                    local, added = r["local_ms"] * each, r["global_ms"] * each
                    is_first = n == 0 and axes is panels[0]
                    axes.bar(
                        n + side, local, 0.36, color="#0072B2",
                        label="local labeling" if is_first and merge == NONE else None,
                    )  # fmt: skip
                    name = "no optimization" if merge == NONE else "both optimizations"
                    axes.bar(
                        n + side, added, 0.36, bottom=local,
                        color="#D55E00" if merge == NONE else "#E69F00",
                        hatch="" if merge == NONE else "////", edgecolor="white", linewidth=0,
                        label=f"global, {name}" if is_first else None,
                    )  # fmt: skip
            ticks = [rf"${ratio:g}\,\kappa_c$" for ratio in couplings_of(dimension).values()]
            axes.set_xticks(range(len(ticks)), ticks)
            axes.tick_params(axis="x", length=0)
            axes.set_title(f"{dimension}-D, ${shape_text(own[0])}$", fontsize=8.5)
        panels[0].set_ylabel("time a site of a rank (ns)")
        figure.legend(loc="outside lower center", ncols=3)
    return figure


def figure_of_bytes(records: Records) -> Any:
    """Draw all bytes against kappa, what Table 1 has at three places."""
    dimensions = dimensions_of(records)
    with new_figure(7.2, 3.2) as figure:
        panels = figure.subplots(1, len(dimensions), squeeze=False)[0]
        for axes, dimension in zip(panels, dimensions):
            own = [r for r in select(records, dimension=dimension) if r["kappa"] > 0]
            for merge in (*PAPER, TREE):
                points = values(own, merge, "bytes", "coupling_ratio")
                draw_line(axes, {x: y / 1e6 for x, y in points.items()}, merge)
            axes.axvline(1, **EXACT_LINE)
            axes.set_yscale("log")
            axes.set_xlabel(r"$\kappa / \kappa_c$")
            axes.set_title(f"{dimension}-D, ${shape_text(own[0])}$", fontsize=8.5)
        panels[0].set_ylabel("bytes sent by all ranks (MB)")
        lines, names = panels[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=5)
    return figure


def figure_of_scaling(records: Records) -> Any:
    """Draw the global time against the number of ranks: Table 2."""
    dimensions = dimensions_of(records)
    with new_figure(7.2, 3.1) as figure:
        panels = figure.subplots(1, len(dimensions), squeeze=False)[0]
        for axes, dimension in zip(panels, dimensions):
            own = [r for r in select(records, dimension=dimension) if r["ranks"] > 1]
            for merge in (NONE, BOTH, TREE):
                draw_line(axes, values(own, merge, "global_ms", "ranks"), merge)
            ranks = sorted({r["ranks"] for r in own})
            axes.set_xscale("log", base=2)
            axes.set_xticks(ranks, [str(n) for n in ranks])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.set_xlabel("ranks")
            side = round(own[0]["box_sites"] ** (1 / dimension))
            axes.set_title(f"{dimension}-D, ${side}^{dimension}$ sites a rank", fontsize=8.5)
        panels[0].set_ylabel("global combining time (ms)")
        lines, names = panels[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=3)
    return figure


def dimensions_of(records: Records) -> list[int]:
    """Return the dimensions that there are."""
    return sorted({r["dimension"] for r in records})


def table_text(rows: Iterable[Iterable[str]]) -> str:
    """Return rows as a table in Markdown, the first of them its head."""
    first, *rest = (list(row) for row in rows)
    lines = [first, ["---"] * len(first), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def table_1(records: Records) -> str:
    """Return bytes by lattice, p and way of merging."""
    rows = [["lattice", "p / p_c", *NAMES.values(), "bubble exchange"]]
    for dimension in dimensions_of(records):
        for ratio in PLACES:
            own = select(records, dimension=dimension, p_ratio=ratio)
            (chosen,) = select(own, merge=BUBBLES)
            by = {merge: select(own, merge=merge)[0]["bytes"] for merge in NAMES}
            name = f"{dimension}-D {' x '.join(map(str, chosen['shape']))}"
            cells = [f"{number / 1e6:.3g}" for number in (*by.values(), chosen["bubble_bytes"])]
            rows.append([name, f"{ratio:g}", *cells])
    (first, *_) = records
    return (
        f"MB sent by {first['ranks']} ranks in all stages, labels and offsets of 4 bytes, runs of "
        "8.  The exchange before bubbles are\ndropped, 4 bytes a bond, is not in the other "
        "columns.  The first four are the paper's.\n\n" + table_text(rows)
    )


def table_2(records: Records) -> str:
    """Return the global time by ranks, dimension and way of merging."""
    dimensions, ways = dimensions_of(records), (NONE, BOTH, TREE)
    heads = [f"{d}-D, {NAMES[merge]}" for merge in ways for d in dimensions]
    rows = [["ranks", *heads, *(f"{d}-D, local" for d in dimensions)]]
    for ranks in sorted({r["ranks"] for r in records}):
        here = select(records, ranks=ranks)
        selected = [select(here, dimension=d, merge=merge) for merge in ways for d in dimensions]
        cells = [f"{r[0]['global_ms']:.3g}" if r else "" for r in selected]
        local = [select(here, dimension=d) for d in dimensions]
        cells += [f"{r[0]['local_ms']:.3g}" if r else "" for r in local]
        rows.append([str(ranks), *cells])
    return f"Global time in ms at p_c: {ABOUT_TIMES}.\n\n{table_text(rows)}"


# --- claims --------------------------------------------------------------------------------------


def verdict(checks: Iterable[bool]) -> str:
    """Say whether all, some or none of several checks hold."""
    outcomes = list(checks)
    return "agrees" if all(outcomes) else "agrees in part" if any(outcomes) else "does not agree"


def shares(points: dict[float, float]) -> str:
    """Return fractions as percents, by what they belong to."""
    return ", ".join(f"{100 * value:+.0f} % at {where:g}" for where, value in points.items())


def falls(own: Records, fixed: tuple[float, float]) -> dict[float, float]:
    """Return by what part both optimizations make the global time less, by kappa / kappa_c.

    fixed: milliseconds that are left out, without optimizations and with both
    """
    base, other = (values(own, merge, "global_ms", "coupling_ratio") for merge in (NONE, BOTH))
    return {x: 1 - (other[x] - fixed[1]) / (base[x] - fixed[0]) for x in base if x}


def claims_of_times(parts: Parts) -> list[str]:
    """Check what Figs 4 to 6 are to show."""
    lines = []
    for dimension in dimensions_of(parts["coupling"]):
        own = select(parts["coupling"], dimension=dimension)
        none, both = (
            select(own, merge=m, coupling_ratio=0.0)[0]["global_ms"] for m in (NONE, BOTH)
        )
        low, high = GAINS[dimension]
        kept, net = falls(own, (0, 0)), falls(own, (none, both))
        lines.append(
            f"{FIGURES[dimension]}, {dimension}-D: both optimizations together make the global "
            f"stage faster by {100 * low:.0f} to {100 * high:.0f} %: "
            f"{verdict(x >= low for x in kept.values())}.  Here, by kappa / kappa_c: "
            f"{shares(kept)}.  At p = 0 there is nothing to merge, but the calls take "
            f"{none:.2g} ms without and {both:.2g} ms with both.  Less those: "
            f"{verdict(x >= low for x in net.values())}; {shares(net)}."
        )
    return lines


def claims_of_places(parts: Parts) -> list[str]:
    """Check where each optimization is the better one, by time and by bytes."""
    lines = []
    for dimension in dimensions_of(parts["coupling"]):
        own, sentences = select(parts["coupling"], dimension=dimension), []
        places = couplings_of(dimension)
        low, middle, high = places.values()
        for key, name, unit, scale in KINDS:
            by = {merge: values(own, merge, key, "coupling_ratio") for merge in PAPER}
            below = by[BUBBLES][low] < min(by[NONE][low], by[RUNS][low])
            above = by[RUNS][high] < min(by[NONE][high], by[BUBBLES][high])
            at = by[BOTH][middle] < min(by[BUBBLES][middle], by[RUNS][middle])
            shown = "; ".join(
                f"{place} " + ", ".join(f"{by[merge][ratio] * scale:.3g}" for merge in PAPER)
                for place, ratio in places.items()
            )
            sentences.append(
                f"by {name}, bubbles {verdict([below])}, compression {verdict([above])}, both "
                f"{verdict([at])} ({unit} without, bubbles, compression, both: {shown})"
            )
        lines.append(
            f"{FIGURES[dimension]}, {dimension}-D: bubble elimination wins below kappa_c, border "
            f"compression above, both together at kappa_c: {'; '.join(sentences)}."
        )
    return lines


def claims_of_bytes(parts: Parts) -> list[str]:
    """Check how many bytes are saved, and how few a tree sends."""
    most, saved, less = [], [], []
    for dimension in dimensions_of(parts["bytes"]):
        own = select(parts["bytes"], dimension=dimension)
        by = {merge: values(own, merge, "bytes", "p_ratio") for merge in NAMES}
        ratios = {x: by[NONE][x] / min(by[merge][x] for merge in PAPER[1:]) for x in by[NONE]}
        most.append(max(ratios.values()))
        listed = ", ".join(f"{ratio:.3g} {PLACES[x]}" for x, ratio in ratios.items())
        saved.append(f"{dimension}-D {listed}")
        trees = [by[NONE][x] / by[TREE][x] for x in by[NONE]]
        forms = [by[BOTH][x] / by[SHORTER][x] for x in by[NONE]]
        less.append(
            f"{dimension}-D {min(trees):.3g} to {max(trees):.3g} times less; the shorter form of "
            f"each border takes {max(forms):.3g} times less than runs alone at most"
        )
    return [
        f"Table 1: up to {MOST_RATIO} times fewer bytes: {verdict([max(most) >= MOST_RATIO])}.  "
        f"Times fewer by the best of the three, p against p_c: {'; '.join(saved)}.",
        f"Ours: a tree, which leaves the row on one rank, sends {'; '.join(less)}.",
    ]


def claim_of_costs(parts: Parts) -> list[str]:
    """Check which stage takes longer."""
    expected: dict[int, Callable[[float], bool]] = {
        2: lambda share: share < 0.5, 3: lambda share: share > 0.5, 4: lambda share: share > 0.5,
    }  # fmt: skip
    checks, shown = [], []
    for dimension in dimensions_of(parts["coupling"]):
        own = select(parts["coupling"], dimension=dimension, merge=NONE)
        costs = {
            place: r["global_ms"] / (r["global_ms"] + r["local_ms"])
            for place, ratio in couplings_of(dimension).items()
            for r in select(own, coupling_ratio=ratio)
        }
        checks += [expected[dimension](share) for share in costs.values()]
        shown.append(
            f"{dimension}-D {', '.join(f'{100 * s:.0f} % {place}' for place, s in costs.items())}"
        )
    return [
        "fig7: local labeling takes most of the time in 2-D, the global stage in 3-D and 4-D: "
        f"{verdict(checks)}.  Share of the global stage without optimizations: {'; '.join(shown)}."
    ]


def claims_of_scaling(parts: Parts) -> list[str]:
    """Check how times grow with ranks, and how messages do."""
    grown, gains, bound, shown, sizes = {}, [], [], [], []
    for dimension in dimensions_of(parts["scaled"]):
        own = [r for r in select(parts["scaled"], dimension=dimension) if r["ranks"] > 1]
        none, both = (values(own, merge, "global_ms", "ranks") for merge in (NONE, BOTH))
        local = values(own, NONE, "local_ms", "ranks")
        first, last = min(none), max(none)
        growth = both[last] / both[first]
        total = (local[last] + both[last]) / (local[first] + both[first])
        grown[dimension] = total
        gains.append(both[last] / none[last] < both[first] / none[first])
        shown.append(
            f"{dimension}-D from {first:g} to {last:g} ranks {none[last] / none[first]:.2g} times "
            f"longer without, {growth:.2g} with both; with the local stage {total:.2g}"
        )
        most = list(select(own, merge=NONE, ranks=last)[0]["most_bytes"].values())[1:]
        if len(most) > dimension:
            ratio = most[-1] / most[-1 - dimension]
            sizes.append(f"{dimension}-D {ratio:.3g} (2^{dimension - 1} = {2 ** (dimension - 1)})")
            bound.append(ratio <= 2 ** (dimension - 1))
    ordered = list(grown.values())
    return [
        "Table 2: with both, 2-D scales best and 4-D worst: "
        f"{verdict(a < b for a, b in pairwise(ordered))}; optimizations gain more, the more "
        f"ranks: {verdict(gains)}.  {'; '.join(shown)}.",
        "The longest message grows by at most 2^(d-1) in d stages: "
        f"{verdict(bound)}.  In the last d stages, without optimizations: {', '.join(sizes)}.",
    ]


def claims_of(parts: Parts) -> list[str]:
    """Check all claims, one by one."""
    claims = (claims_of_times, claims_of_places, claims_of_bytes, claim_of_costs, claims_of_scaling)
    return [line for check in claims for line in check(parts)]


def draw_all(record: Path, folder: Path) -> list[str]:
    """Draw all figures; return the claims, or a line that says what is missing."""
    if not record.exists():
        return [f"Fink's figures: {record} is missing (percolab.papers.fink1997.figures makes it)"]
    parts = read_record(record)
    missing = [name for name in ("coupling", "bytes", "scaled") if not parts.get(name)]
    if missing:
        return [f"Fink's figures: {record} has nothing of {', '.join(missing)}"]
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        FIGURES[dimension]: figure_of_times(parts["coupling"], dimension)
        for dimension in dimensions_of(parts["coupling"])
    }
    figures["fig7"] = figure_7(parts["coupling"])
    figures["table1"] = figure_of_bytes(parts["coupling"])
    figures["table2"] = figure_of_scaling(parts["scaled"])
    for name, figure in figures.items():
        draw_over(figure, folder / f"fink-{name}")
    (folder / "table1.md").write_text(table_1(parts["bytes"]), encoding="utf-8")
    (folder / "table2.md").write_text(table_2(parts["scaled"]), encoding="utf-8")
    lines = claims_of(parts)
    (folder / "findings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


main = make_drawing_command(__doc__, draw_all, RECORD, FOLDER)


if __name__ == "__main__":
    main()
