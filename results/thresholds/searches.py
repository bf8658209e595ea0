"""Many searches for p_c, as ``percolab threshold`` makes them, a line of JSON for each."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

#: Lattice files that are not in percolab's library.
LATTICES = Path(__file__).resolve().parent / "lattices"


class Job(NamedTuple):
    """A search: lattice, model, target error of p_c, seed and device."""

    lattice: str
    model: str
    error: float
    seed: int
    device: str


def find(job: Job) -> dict[str, Any]:
    """Return the answer of one search as plain values: nothing that is published enters."""
    from percolab.analysis.roots import fit_roots
    from percolab.run.request import Observer, make_options
    from percolab.run.search_steps import Goal
    from percolab.run.threshold import find_threshold, request_threshold

    file = LATTICES / f"{job.lattice}.toml"
    name, goal = str(file) if file.exists() else job.lattice, Goal(job.error)
    request = request_threshold(name, goal, model=job.model, seed=job.seed, device=job.device)
    start = time.perf_counter()
    results = find_threshold(request.study, goal, **make_options(request, observer=Observer()))
    seconds = time.perf_counter() - start
    known = request.study.structure.threshold(job.model)
    return {
        "lattice": job.lattice,
        "model": job.model,
        "target": job.error,
        "seed": job.seed,
        "known": known.value if known else None,
        "known_error": known.error if known else None,
        "reference": known.cite if known else "",
        "seconds": round(seconds, 3),
        **fit_roots(results).to_dict(),
    }


def write_answers(jobs: Iterable[Job], path: Path, processes: int) -> None:
    """Append the answers of searches to a file, in the order in which they end."""
    with get_context("spawn").Pool(processes) as pool, path.open("a") as file:
        for answer in pool.imap_unordered(find, jobs, chunksize=1):
            file.write(json.dumps(answer) + "\n")
            file.flush()
