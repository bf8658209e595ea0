"""Thresholds of the eleven Archimedean lattices and their duals, bond and site, found anew.

    python results/thresholds/table.py sample OUT.jsonl [--device cuda] [--processes 3]
    python results/thresholds/table.py sample OUT.jsonl --searches square:bond:1e-6 dice:site:7e-7
    python results/thresholds/table.py print OUT.jsonl

``sample`` runs ``percolab threshold`` once for every line of :data:`ENTRIES`, or for the searches
that are given, blind: nothing that is published enters.  ``print`` compares.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from searches import Job, write_answers

#: Lattice, model and target error; those with a published error of 3e-6 or more first.
ENTRIES = (
    ("maple-leaf", "site", 7e-7),
    ("snub-square", "site", 7e-7),
    ("trellis", "site", 7e-7),
    ("floret", "site", 1e-6),
    ("dice", "site", 1e-6),
    ("deltoidal", "site", 1e-6),
    ("square", "site", 2e-6),
    ("honeycomb", "site", 2e-6),
    ("kagome", "site", 2e-6),
    ("triangular", "site", 2e-6),
    ("three-twelve", "site", 2e-6),
    ("ruby", "site", 2e-6),
    ("square", "bond", 2e-6),
    ("kagome", "bond", 2e-6),
    ("four-eight", "bond", 2e-6),
    ("snub-square", "bond", 2e-6),
    ("dice", "bond", 2e-6),
    ("cairo", "bond", 2e-6),
    ("four-eight", "site", 2e-6),
    ("four-six-twelve", "site", 2e-6),
    ("cairo", "site", 2e-6),
    ("prismatic", "site", 2e-6),
    ("tetrakis", "site", 3e-6),
    ("kisrhombille", "site", 3e-6),
    ("triakis", "site", 3e-6),
    ("floret", "bond", 5e-6),
    ("deltoidal", "bond", 5e-6),
    ("prismatic", "bond", 5e-6),
)


def show(path: Path) -> None:
    """Print a row for every answer, and the pulls of those whose p_c is known to 1e-8 or better."""
    from percolab.analysis.text import format_with_error

    print(
        f"{'lattice':16s} {'model':5s} {'p_c':>16s} {'of samples':>10s} {'drift':>8s} {'L':>8s}"
        f" {'seconds':>7s} {'published':>20s} {'pull':>6s}"
    )
    pulls = []
    for line in path.read_text().splitlines():
        answer = json.loads(line)
        value = answer["p_c"]
        sizes = ", ".join(str(root["L"]) for root in answer["roots"])
        published, pull = "-", ""
        if answer["known"] is not None:
            published = format_with_error(answer["known"], answer["known_error"])
            if not answer["known_error"]:
                published = f"{answer['known']:.12g}"
            error = np.hypot(value["error"], answer["known_error"])
            pull = (value["value"] - answer["known"]) / error
            if answer["known_error"] <= 1e-8:
                pulls.append(pull)
            pull = f"{pull:+.2f}"
        print(
            f"{answer['lattice']:16s} {answer['model']:5s}"
            f" {format_with_error(value['value'], value['error']):>16s}"
            f" {value['statistical_error']:10.1e} {value['systematic_error']:8.1e} {sizes:>8s}"
            f" {answer['seconds']:7.1f} {published:>20s} {pull:>6s}"
        )
    if len(pulls) > 1:
        print(
            f"{len(pulls)} known to 1e-8 or better: pulls {np.mean(pulls):+.2f} on average, "
            f"{np.std(pulls, ddof=1):.2f} wide"
        )


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("sample", "print"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--searches", nargs="+", metavar="LATTICE:MODEL:ERROR", help="in place of ENTRIES"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all target errors")
    given = parser.parse_args()
    if given.command == "print":
        show(given.path)
        return
    entries = [text.split(":") for text in given.searches] if given.searches else ENTRIES
    jobs = [
        Job(name, model, given.scale * float(error), given.seed, given.device)
        for name, model, error in entries
    ]
    write_answers(jobs, given.path, given.processes)


if __name__ == "__main__":
    main()
