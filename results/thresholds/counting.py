"""How often the errors of ``percolab threshold`` hold: p_c of many seeds against known values.

    python results/thresholds/counting.py sample OUT.jsonl [--workers 8] [--device cuda]
    python results/thresholds/counting.py table OUT.jsonl

``sample`` finds p_c of every system below for many seeds and writes a line for each: p_c, the two
parts of its error, the roots.  ``table`` prints means and widths of the pulls (p_c minus the known
value, over the whole error) and the share within one and two errors.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from searches import Job, write_answers

#: Lattice and model; all have a p_c that is exact, or known to 1e-9 or better.
SYSTEMS = (
    ("square", "bond"),
    ("triangular", "bond"),
    ("honeycomb", "bond"),
    ("kagome", "bond"),
    ("triangular", "site"),
    ("kagome", "site"),
)
#: Seeds at each target error.
SEEDS = {1e-3: 200, 1e-4: 50, 1e-5: 20}


def make_jobs(systems: list, seeds: dict, device: str) -> list[Job]:
    """Return all searches, the long ones last."""
    return [
        Job(lattice, model, error, seed, device)
        for error, count in sorted(seeds.items())
        for seed in range(1, count + 1)
        for lattice, model in systems
    ]


def table(path: Path) -> None:
    """Print one row for every system and target, and one for each target."""
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for line in path.read_text().splitlines():
        answer = json.loads(line)
        groups[f"{answer['target']:g}", f"{answer['lattice']} {answer['model']}"].append(answer)
        groups[f"{answer['target']:g}", "all"].append(answer)
        groups["all", "all"].append(answer)
    print(
        f"{'target':>7s} {'system':24s} {'n':>5s} {'mean':>7s} {'width':>6s} {'<1':>6s} {'<2':>6s}"
        f" {'error':>9s} {'of samples':>10s} {'seconds':>8s} {'p<.001':>6s}"
    )
    for (target, system), answers in sorted(groups.items()):
        values = [answer["p_c"] for answer in answers]
        errors = np.array([value["error"] for value in values])
        pulls = (np.array([v["value"] for v in values]) - [a["known"] for a in answers]) / np.hypot(
            errors, [a["known_error"] for a in answers]
        )
        rejected = sum(value["rejected"] for value in values)
        print(
            f"{target:>7s} {system:24s} {pulls.size:5d} {pulls.mean():+7.2f}"
            f" {pulls.std(ddof=1) if pulls.size > 1 else np.nan:6.2f}"
            f" {np.mean(abs(pulls) < 1):6.1%} {np.mean(abs(pulls) < 2):6.1%}"
            f" {np.median(errors):9.1e}"
            f" {np.median([v['statistical_error'] for v in values]):10.1e}"
            f" {np.median([a['seconds'] for a in answers]):8.2f} {rejected:6d}"
        )


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("sample", "table"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--systems", help="lattice:model,... in place of all")
    parser.add_argument("--seeds", help="error:count,... in place of all")
    given = parser.parse_args()
    if given.command == "table":
        table(given.path)
        return
    systems, seeds = list(SYSTEMS), SEEDS
    if given.systems:
        systems = [tuple(item.split(":")) for item in given.systems.split(",")]
    if given.seeds:
        seeds = {float(e): int(n) for e, n in (item.split(":") for item in given.seeds.split(","))}
    write_answers(make_jobs(systems, seeds, given.device), given.path, given.workers)


if __name__ == "__main__":
    main()
