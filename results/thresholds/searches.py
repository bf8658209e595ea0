"""Many searches for p_c, as ``percolab threshold`` makes them: a line of JSON for each.

    python results/thresholds/searches.py OUT.jsonl square:bond:1e-6:1 cubic:bond:60s:1-4 ...
    python results/thresholds/searches.py OUT.jsonl table blind --gpus 4 --seconds 400

A search is LATTICE:MODEL:GOAL:SEEDS; the goal is the error of p_c or a time, and a lattice is
percolab's or a file of ``lattices/``.  A name of :data:`PLANS`, or ``library``, stands for its
searches.  Those that OUT has are left out, so the same command continues.  Processes take the
searches in their order, each on its own GPU if there are enough.  After ``--seconds`` those that
run are ended: p_c of the samples so far is written, whose error then is larger than the goal.
Nothing that is published enters a search.  ``table.py`` prints what was found.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

#: Lattice files that are not in percolab's library.
LATTICES = Path(__file__).resolve().parent / "lattices"
#: Searches in the order of their weight.  No two lattices of a plan have one seed: equal random
#: numbers would make their errors alike.
PLANS = {
    # What the table of Archimedean and Laves lattices lacks at 1e-6.
    "table": """
        four-six-twelve:bond:1e-6:21 maple-leaf:bond:1e-6:22 dice:bond:1e-6:23 cairo:bond:1e-6:24
        prismatic:bond:1e-6:25 floret:bond:1e-6:26 deltoidal:bond:1e-6:27 tetrakis:bond:1e-6:28
        triakis:bond:1e-6:29 kisrhombille:bond:1e-6:30 tetrakis:site:1e-6:31 triakis:site:1e-6:32
        kisrhombille:site:1e-6:33 honeycomb:site:1e-6:34 four-eight:site:1e-6:35
        four-six-twelve:site:1e-6:36 ruby:site:1e-6:37 cairo:site:1e-6:38 prismatic:site:1e-6:39
        """,
    # Thresholds that are known to 1e-9 or better, once more.
    "blind": """
        square:bond:1e-6:41 triangular:bond:1e-6:42 honeycomb:bond:1e-6:43 kagome:bond:1e-6:44
        four-eight:bond:1e-6:45 snub-square:bond:1e-6:46 ruby:bond:1e-6:47 trellis:bond:1e-6:48
        three-twelve:bond:1e-6:49 square:site:1e-6:50 triangular:site:1e-6:51
        kagome:site:1e-6:52 three-twelve:site:1e-6:53
        """,
    # Sites of lattices for which no published value was found.
    "unpublished": """
        lieb:site:1e-6:101 decorated-triangular:site:1e-6:102 decorated-honeycomb:site:1e-6:103
        """,
    # Four seeds of twice the error that all of them together have.
    "cubic": "cubic:bond:1e-6:61-64",
    "snub-square": "snub-square:site:4e-7:65-68",
    "trellis": "trellis:site:4e-7:69-72",
    "square": "square:bond:2e-7:73-76",
    "stacked": "stacked-triangular:bond:1e-6:77-80",
    "diamond": "diamond:bond:4e-7:81-84",
}


class Job(NamedTuple):
    """A search: lattice, model, target (error of p_c, or a time such as 60s), seed and device."""

    lattice: str
    model: str
    target: float | str
    seed: int
    device: str = "cuda"


def read_jobs(texts: Iterable[str], device: str, scale: float = 1.0) -> Iterator[Job]:
    """Yield the searches that texts and names of plans stand for; scale: of target errors."""
    for text in texts:
        if text == "library":
            yield from read_jobs(plan_library(), device, scale)
            continue
        if text in PLANS:
            yield from read_jobs(PLANS[text].split(), device, scale)
            continue
        lattice, model, goal, seeds = text.split(":")
        is_time = goal.endswith(("s", "m", "h"))
        target = goal if is_time else float(f"{scale * float(goal):.6g}")
        first, _, last = seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            yield Job(lattice, model, target, seed, device)


def plan_library() -> list[str]:
    """Return the searches of all planar lattices of percolab, at 5e-5."""
    from percolab.lattices.lattice import lattice_names, load_lattice

    names = [name for name in lattice_names() if load_lattice(name).dimension == 2]
    every = [f"{name}:{model}" for name in names for model in ("bond", "site")]
    return [f"{of}:5e-5:{seed}" for seed, of in enumerate(every, 101)]


def find(job: Job, end: float = math.inf) -> dict[str, Any] | None:
    """Return the answer of one search as plain values; None where it had too little time.

    end: when it is over, in seconds of ``time.time``.
    """
    from percolab.run.request import Observer
    from percolab.run.search_steps import Goal
    from percolab.run.stored import Interrupted
    from percolab.run.threshold import find_threshold, request_threshold

    class Clock(Observer):
        results: Any = None

        def advanced(self, results: Any, result: Any, blocks: Any) -> None:
            self.results = results
            if time.time() > end:
                raise KeyboardInterrupt

    if time.time() > end:
        return None
    file = LATTICES / f"{job.lattice}.toml"
    name = str(file) if file.exists() else job.lattice
    goal = Goal.of(None, job.target) if isinstance(job.target, str) else Goal(job.target)
    request = request_threshold(name, goal, model=job.model, seed=job.seed, device=job.device)
    start, clock = time.perf_counter(), Clock()
    try:
        results = find_threshold(request.study, goal, **request.options, observer=clock)
    except Interrupted:
        results = clock.results
    return describe(job, results, time.perf_counter() - start)


def describe(job: Job, results: Any, seconds: float) -> dict[str, Any] | None:
    """Return what a search found in so many seconds as plain values; None: no answer."""
    from percolab.analysis.roots import fit_roots, why_no_roots
    from percolab.analysis.wrapping_fit import fit_wrapping
    from percolab.errors import AnalysisError

    study = results.study
    try:
        fit: Any = fit_wrapping(results) if why_no_roots(study) else fit_roots(results)
    except AnalysisError:
        return None
    known = study.structure.threshold(job.model)
    answer = {
        "lattice": job.lattice,
        "model": job.model,
        "target": job.target,
        "seed": job.seed,
        "known": known.value if known else None,
        "known_error": known.error if known else None,
        "reference": known.cite if known else "",
        "seconds": round(seconds, 3),
        "sampling": round(sum(run["seconds"] for run in results.runs), 3),
    }
    if not why_no_roots(study):
        return answer | fit.to_dict()
    tasks = sorted(results.tasks.values(), key=lambda result: (result.task.size, result.task.p))
    return answer | {
        "p_c": fit.p_c.to_dict("value"),
        "problem": fit.problem,
        "notes": list(fit.notes),
        "tasks": [[result.task.size, result.task.p[0], result.num_samples] for result in tasks],
        "at_p_c": {own.name: [own.at_p_c.value, own.at_p_c.error] for own in fit.quantities},
    }


def _use_gpu(gpus: Any) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus.get()


def _find_until(job_and_end: tuple[Job, float]) -> dict[str, Any] | None:
    return find(*job_and_end)


def read_answers(path: Path) -> list[dict[str, Any]]:
    """Return the answers of a file, none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_answers(
    jobs: Iterable[Job], path: Path, processes: int, *, gpus: int = 1, seconds: float = math.inf
) -> None:
    """Append the answers of searches that a file lacks, in the order in which they end.

    processes: on all GPUs together.  seconds: after which searches are ended.
    """
    end, context = time.time() + seconds, get_context("spawn")
    own = {tuple(answer[name] for name in Job._fields[:4]) for answer in read_answers(path)}
    missing = [(job, end) for job in jobs if job[:4] not in own]
    queue: Any = context.SimpleQueue()
    for number in range(processes):
        queue.put(str(number % gpus))
    begin, options = (_use_gpu, (queue,)) if gpus > 1 else (None, ())
    with context.Pool(processes, begin, options) as pool, path.open("a") as file:
        for answer in pool.imap_unordered(_find_until, missing, chunksize=1):
            if answer is not None:
                file.write(json.dumps(answer) + "\n")
                file.flush()
                p_c = answer["p_c"]
                print(*(answer[name] for name in Job._fields[:4]), p_c["value"], p_c["error"],
                      answer["seconds"], flush=True)  # fmt: skip


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("searches", nargs="+", metavar="LATTICE:MODEL:GOAL:SEEDS")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--processes", type=int, help="on all GPUs together, by default one each")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all target errors")
    given = parser.parse_args()
    jobs = list(read_jobs(given.searches, given.device, given.scale))
    processes = given.processes or given.gpus
    write_answers(jobs, given.path, processes, gpus=given.gpus, seconds=given.seconds)


if __name__ == "__main__":
    main()
