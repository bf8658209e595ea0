"""Print what searches for p_c found, as tables in Markdown.

    python results/thresholds/table.py > results/thresholds/tables.md

The records are ``table.jsonl`` (searches on a GPU), ``library.jsonl`` and
``three_dimensions.jsonl``; all answers of one lattice and model give one p_c.  Published values
enter here alone, as lattices have them today.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from searches import LATTICES, read_answers

from percolab.analysis.roots import Drift, SizeRoot, combine_roots
from percolab.analysis.value import Value, format_with_error
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.run.search_steps import axis_length

HERE = Path(__file__).resolve().parent
#: The eleven Archimedean lattices, each with its dual.
PAIRS = (
    ("square", "square"),
    ("triangular", "honeycomb"),
    ("honeycomb", "triangular"),
    ("kagome", "dice"),
    ("four-eight", "tetrakis"),
    ("three-twelve", "triakis"),
    ("four-six-twelve", "kisrhombille"),
    ("ruby", "deltoidal"),
    ("snub-square", "cairo"),
    ("trellis", "prismatic"),
    ("maple-leaf", "floret"),
)
#: A p_c with at most this error is known; the target of the blind searches.
KNOWN, TARGET = 1e-9, 1e-6
Answer = dict[str, Any]


def load(name: str) -> Lattice:
    """Return a lattice of the library, or of a file here."""
    file = LATTICES / f"{name}.toml"
    return load_lattice(str(file) if file.exists() else name)


def combine(answers: Sequence[Answer]) -> Value:
    """Return p_c of all answers of one lattice and model.

    In the plane that of all their roots, whose drifts are common.  Elsewhere the mean by
    statistical errors; the systematic parts, which hardly differ, count as one.
    """
    if len(answers) > 1 and "roots" not in answers[0]:
        values = [read_value(answer) for answer in answers]
        information = np.array([value.statistical_error**-2 for value in values])
        weights, error = information / information.sum(), sqrt(1 / information.sum())
        drift = float(weights @ [value.systematic_error for value in values])
        mean = float(weights @ [value.value for value in values])
        return Value(mean, hypot(error, drift), error)
    if len(answers) == 1:
        return read_value(answers[0])
    lattice = load(answers[0]["lattice"])
    roots = [
        SizeRoot(
            root["L"],
            axis_length(lattice, root["L"]),
            Value(root["root"], root["error"], root["error"]),
            root["slope"],
            root["samples"],
        )
        for answer in answers
        for root in answer["roots"]
    ]
    # Priors became narrower: those of the newest search.
    drift = answers[-1]["drift"]
    return combine_roots(roots, Drift(drift["L^-4"], drift["L^-2"])).threshold


def read_value(answer: Answer) -> Value:
    """Return p_c of one answer."""
    p_c = answer["p_c"]
    return Value(p_c["value"], p_c["error"], p_c["statistical_error"])


def group(answers: Iterable[Answer]) -> dict[tuple[str, str], list[Answer]]:
    """Return the answers of each lattice and model, of each seed the most precise one.

    Searches of one seed share samples.  Those whose sizes contradict each other are left out.
    """
    groups: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    for answer in sorted(answers, key=lambda answer: answer["p_c"]["error"]):
        own = groups[answer["lattice"], answer["model"]]
        is_new = answer.get("seed") not in [other.get("seed") for other in own]
        if is_new and not (answer["p_c"]["rejected"] or answer.get("problem")):
            own.append(answer)
    return dict(sorted(groups.items()))


def make_row(of: Lattice, model: str, answers: Sequence[Answer]) -> list[str]:
    """Return the cells of p_c, its parts, what is published, the pull, L and seconds."""
    value, known = combine(answers), of.threshold(model)
    cells = [format_with_error(value.value, value.error)]
    cells += [f"{part:.1e}" for part in (value.statistical_error, value.systematic_error)]
    if known is None:
        cells += ["-", "-"]
    else:
        text = format_with_error(known.value, known.error) if known.error else f"{known.value:.12g}"
        cells += [text, f"{value.deviation(known):+.2f}"]
    sizes = {size["L"] for each in answers for size in each.get("roots", ())}
    sizes |= {task[0] for each in answers for task in each.get("tasks", ())}
    shown = sorted(sizes) if len(sizes) < 6 else (f"{min(sizes)} to {max(sizes)}",)
    seconds = sum(answer["seconds"] for answer in answers)
    return [*cells, ", ".join(map(str, shown)), str(len(answers)), f"{seconds:.0f}"]


#: What :func:`make_row` has.
HEADINGS = "p_c", "of samples", "of drift", "published", "pull", "L", "searches", "seconds"


def write(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    for row in (headings, ["---"] * len(headings), *rows):
        print(f"| {' | '.join(row)} |")
    print()


def find_pulls(answers: Iterable[Answer], error: float = KNOWN) -> list[float]:
    """Return how far each answer is from a p_c that is known to an error, in errors."""
    pulls = []
    for answer in answers:
        known = load(answer["lattice"]).threshold(answer["model"])
        if known is not None and known.error <= error:
            pulls.append(read_value(answer).deviation(known))
    return pulls


def describe(pulls: Sequence[float]) -> list[str]:
    """Return the cells of pulls: how many, mean, width, shares within one error and two."""
    if len(pulls) < 2:
        return [str(len(pulls)), *(f"{pull:+.2f}" for pull in pulls), *["-"] * (4 - len(pulls))]
    away, width = np.abs(pulls), float(np.std(pulls, ddof=1))
    mean, error = float(np.mean(pulls)), 1 / sqrt(len(pulls))
    shares = [f"{np.mean(away < most):.0%}" for most in (1, 2)]
    return [str(len(pulls)), f"{mean:+.2f}({error * 100:.0f})", f"{width:.2f}", *shares]


#: Lattices and models of which no published threshold was found.
UNPUBLISHED = (
    ("lieb", "site"),
    ("decorated-triangular", "site"),
    ("decorated-honeycomb", "site"),
)
#: What :func:`describe` has.
PULLS = "searches", "mean pull", "width", "within one error", "within two"


def show_plane(answers: Sequence[Answer]) -> None:
    """Print the Archimedean and Laves lattices, bond and site, and the sums of dual bonds."""
    groups, rows, sums = group(answers), [], []
    names = dict.fromkeys([name for name, _ in PAIRS] + [dual for _, dual in PAIRS])
    duals = dict(PAIRS) | {dual: name for name, dual in PAIRS}
    for name in names:
        lattice = load(name)
        for model in ("bond", "site"):
            own = groups.get((name, model))
            cells = make_row(lattice, model, own) if own else ["-"] * len(HEADINGS)
            rows.append([lattice.title, duals[name], model, *cells])
    print("## The eleven Archimedean lattices and their duals\n")
    write(("lattice", "dual to", "model", *HEADINGS), rows)
    for name, dual in PAIRS[1:2] + PAIRS[3:]:
        pair = (name, "bond"), (dual, "bond")
        if all(key in groups for key in pair):
            one, other = (combine(groups[key]) for key in pair)
            error = hypot(one.error, other.error)
            away = one.value + other.value - 1
            sums.append([f"{name}, {dual}", f"{away:+.1e}", f"{error:.1e}", f"{away / error:+.2f}"])
    print("Bonds of a lattice and of its dual have thresholds whose sum is 1:\n")
    write(("bonds", "sum - 1", "error", "pull"), sums)
    others = [(load(name), *own) for name, *own in UNPUBLISHED if (name, *own) in groups]
    rows = [[x.title, model, *make_row(x, model, groups[x.name, model])] for x, model in others]
    print("Without a published value:\n")
    write(("lattice", "model", *HEADINGS), rows)


def show_blind(answers: Sequence[Answer]) -> None:
    """Print the pulls of the searches at 1e-6 whose p_c is known, those of seed 1 apart."""
    reached = [a for a in answers if a["target"] == TARGET >= a["p_c"]["error"]]
    print(f"## Searches at {TARGET:g} whose p_c is known to {KNOWN:g}\n")
    parts = {
        "seed 1": [a for a in reached if a["seed"] == 1],
        "other seeds": [a for a in reached if a["seed"] != 1],
        "all": reached,
    }
    write(("", *PULLS), [[name, *describe(find_pulls(own))] for name, own in parts.items()])


def show_space(answers: Sequence[Answer]) -> None:
    """Print searches in three dimensions: how often errors hold, and p_c of the precise ones."""
    print("## Three dimensions\n")
    by_target = defaultdict(list)
    for answer in answers:
        target = answer["target"]
        shown = target if isinstance(target, str) else f"{target:g}"
        for of in (f"{answer['lattice']} {answer['model']}", "all"):
            by_target[shown, of].append(answer)
    rows = [
        [*key, *describe(find_pulls(own, 1.0))]
        for key, own in by_target.items()
        if key[1] != "all" or len({answer["lattice"] for answer in own}) > 1
    ]
    write(("target", "p_c of", *PULLS), rows)
    precise = group(a for a in answers if a["p_c"]["error"] < 1e-5)
    rows = [[*key, *make_row(load(key[0]), key[1], own)] for key, own in precise.items()]
    write(("lattice", "model", *HEADINGS), rows)


def main() -> None:
    """Print all tables."""
    table, space, library = (
        read_answers(HERE / f"{name}.jsonl") for name in ("table", "three_dimensions", "library")
    )
    print(
        "# Thresholds that searches found\n\nMade by `table.py`.  Pull: p_c minus the published"
        " value, over both errors.  Seconds are those of\nall searches, several at a time on one"
        " GPU.\n"
    )
    show_plane([answer for answer in table if "roots" in answer])
    show_blind(table)
    show_space(space + [answer for answer in table if "tasks" in answer])
    print("## All planar lattices of the library, on a CPU\n")
    rows = [[*key, *make_row(load(key[0]), key[1], own)] for key, own in group(library).items()]
    write(("lattice", "model", *HEADINGS), rows)
    write(PULLS, [describe(find_pulls(library, 1.0))])


if __name__ == "__main__":
    main()
