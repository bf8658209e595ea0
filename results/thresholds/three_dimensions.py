"""Searches in three dimensions: p_c of many lattices and seeds, and how often the errors hold.

    python results/thresholds/three_dimensions.py search OUT.jsonl cubic:bond:2e-6:1 bcc:site:1e-3:9
    python results/thresholds/three_dimensions.py table OUT.jsonl

``search`` takes lattice:model:error:seeds, with a time such as 60s in place of an error, and writes
a line for each search: p_c, the parts of its error, sizes, samples, seconds.  ``table`` prints
means and widths of the pulls, p_c minus the published value over both errors.  The published value
enters no search.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np


def search(lattice: str, model: str, goal_text: str, seed: int, device: str) -> dict:
    """Return the answer of one search as plain values."""
    from percolab.analysis.wrapping_fit import fit_wrapping
    from percolab.run.request import Observer, make_options
    from percolab.run.search_steps import Goal
    from percolab.run.threshold import find_threshold, request_threshold

    is_time = goal_text.endswith(("s", "m", "h"))
    goal = Goal.of(None, goal_text) if is_time else Goal.of(goal_text, None)
    request = request_threshold(lattice, goal, model=model, seed=seed, device=device)
    start = time.perf_counter()
    results = find_threshold(request.study, goal, **make_options(request, observer=Observer()))
    seconds = time.perf_counter() - start
    fit = fit_wrapping(results)
    known = request.study.structure.threshold(model)
    tasks = sorted(results.tasks.values(), key=lambda item: (item.task.size, item.task.p))
    return {
        "lattice": lattice,
        "model": model,
        "goal": goal_text,
        "seed": seed,
        "seconds": round(seconds, 3),
        "known": None if known is None else [known.value, known.error],
        "p_c": fit.p_c.to_dict("value"),
        "problem": fit.problem,
        "notes": list(fit.notes),
        "tasks": [[item.task.size, item.task.p[0], item.num_samples] for item in tasks],
        "runs": [run["seconds"] for run in results.runs],
        "at_p_c": {item.name: [item.at_p_c.value, item.at_p_c.error] for item in fit.quantities},
    }


def search_all(path: Path, jobs: list[str], device: str, first_seed: int) -> None:
    """Write the answers of all searches."""
    with path.open("a") as file:
        for job in jobs:
            lattice, model, goal, seeds = job.split(":")
            for seed in range(first_seed, first_seed + int(seeds)):
                answer = search(lattice, model, goal, seed, device)
                file.write(json.dumps(answer) + "\n")
                file.flush()


def table(path: Path) -> None:
    """Print one row for every system and goal, and one for each goal."""
    groups: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for line in path.read_text().splitlines():
        answer = json.loads(line)
        groups[answer["goal"], f"{answer['lattice']} {answer['model']}"].append(answer)
        groups[answer["goal"], "all"].append(answer)
    print(
        f"{'goal':>7s} {'system':22s} {'n':>4s} {'mean':>6s} {'width':>6s} {'<1':>4s} {'<2':>4s}"
        f" {'error':>8s} {'of samples':>10s} {'seconds':>8s} {'L':>4s} {'problem':>7s}"
    )
    for (goal, system), answers in sorted(groups.items()):
        good = [item for item in answers if item["problem"] is None and item["known"]]
        values = np.array([item["p_c"]["value"] for item in good])
        errors = np.array([item["p_c"]["error"] for item in good])
        known = np.array([item["known"] for item in good]).reshape(-1, 2)
        pulls = (values - known[:, 0]) / np.hypot(errors, known[:, 1])
        width = pulls.std(ddof=1) if pulls.size > 1 else np.nan
        statistical = [item["p_c"]["statistical_error"] for item in good]
        print(
            f"{goal:>7s} {system:22s} {pulls.size:4d} {pulls.mean():+6.2f} {width:6.2f}"
            f" {np.mean(abs(pulls) < 1):4.0%} {np.mean(abs(pulls) < 2):4.0%}"
            f" {np.median(errors):8.1e} {np.median(statistical):10.1e}"
            f" {np.median([item['seconds'] for item in good]):8.1f}"
            f" {max(item['tasks'][-1][0] for item in good):4d} {len(answers) - len(good):7d}"
        )


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("search", "table"))
    parser.add_argument("path", type=Path)
    parser.add_argument("jobs", nargs="*", metavar="LATTICE:MODEL:GOAL:SEEDS")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--first-seed", type=int, default=1)
    given = parser.parse_args()
    if given.command == "table":
        table(given.path)
        return
    if not given.jobs:
        sys.exit("give at least one LATTICE:MODEL:GOAL:SEEDS")
    search_all(given.path, given.jobs, given.device, given.first_seed)


if __name__ == "__main__":
    main()
