"""Studies of many samples on one GPU and on all: how much faster, and whether the files are equal.

    python results/h100-x4/studies.py --gpus 4

A study on one GPU runs beside those of the other lattices, each on a GPU of its own; then each runs
on all GPUs, one after the other.  The time of a study is that of all its samples less that of a
thirtieth of them, so that starting is not in it; both are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

#: Settings of a study, and how many samples it has for each second of one GPU (from results/h200).
STUDIES: dict[str, tuple[dict[str, Any], float]] = {
    "square L=64, 9 p": ({"lattice": "square", "L": [64], "points": 9}, 3e6),
    "square L=256, 9 p": ({"lattice": "square", "L": [256], "points": 9}, 8e5),
    "square L=1024, 9 p": ({"lattice": "square", "L": [1024], "points": 9}, 6e4),
    "cubic L=64, 9 p": ({"lattice": "cubic", "L": [64], "points": 9}, 1e5),
    "Ising, 1000 chains of L=256": (
        {
            "lattice": "square", "L": [256], "p": [0.585786437626905], "model": "ising",
            "burn_in": 100,
        },
        1.4e6,
    ),
}  # fmt: skip
SHARE, CHAINS = 30, 1000


def measure(name: str, samples: int, device: str) -> dict[str, Any]:
    """Run a study here and return its seconds and the digest of its file without its runs."""
    from percolab.benchmark.records import make_grid, make_topology
    from percolab.lattices.lattice import load_lattice
    from percolab.run.runner import run_study
    from percolab.store.results import encode
    from percolab.tasks.study_file import make_request

    settings = dict(STUDIES[name][0])
    lattice = load_lattice(settings.pop("lattice"))
    if "points" in settings:
        p_c = {"square": 0.5, "cubic": 0.24881185}[lattice.name]
        topology = make_topology(lattice, settings["L"][0])
        settings["p"] = make_grid(p_c, topology, settings.pop("points")).tolist()
    seconds = []
    for count in (max(samples // SHARE, CHAINS), samples):
        begin = time.perf_counter()
        if "model" in settings:
            measured = max(count // CHAINS, 20)
            settings["sweeps"] = settings["burn_in"] + measured
            count = CHAINS * measured
        request = make_request(
            lattice, boundary="periodic", seed=7, samples=count, device=device, **settings
        )
        results = run_study(request.study, request.rule, **request.options)
        seconds.append(time.perf_counter() - begin)
    digest = hashlib.sha256(encode(replace(results, runs=[]))).hexdigest()
    return {"seconds": seconds, "digest": digest[:16]}


def start(name: str, samples: int, device: str, visible: str) -> dict[str, Any]:
    """Run a study in a process that sees some GPUs."""
    command = [sys.executable, __file__, "--study", name, "--samples", str(samples)]
    known = {"CUDA_VISIBLE_DEVICES": visible} if visible else {}
    done = subprocess.run(
        [*command, "--device", device], env=os.environ | known, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def compare(gpus: list[str], seconds: float, names: list[str]) -> None:
    """Print a line for each study: one GPU, all, and their ratio."""
    free: SimpleQueue[str] = SimpleQueue()
    for gpu in gpus or [""]:
        free.put(gpu)
    one = "cuda" if gpus else "cpu"
    every = f"cuda:{','.join(str(n) for n in range(len(gpus)))}" if gpus else "cpu"

    def alone(name: str) -> dict[str, Any]:
        gpu = free.get()
        try:
            return start(name, int(STUDIES[name][1] * seconds), one, gpu)
        finally:
            free.put(gpu)

    with ThreadPoolExecutor(max(len(gpus), 1)) as pool:
        by_one = dict(zip(names, pool.map(alone, names)))
    for name in names:
        samples = int(STUDIES[name][1] * seconds)
        together = start(name, samples, every, ",".join(gpus))
        times = [by_one[name]["seconds"], together["seconds"]]
        running = [most - few for few, most in times]
        print(
            f"{name}: {samples} samples on one GPU {times[0][1]:.2f} s ({times[0][0]:.2f} s for"
            f" a thirtieth), on {max(len(gpus), 1)} {times[1][1]:.2f} s ({times[1][0]:.2f} s):"
            f" {running[0] / running[1]:.2f} times as fast,"
            f" {times[0][1] / times[1][1]:.2f} times with their starts; files"
            f" {'equal' if by_one[name]['digest'] == together['digest'] else 'NOT EQUAL'}",
            flush=True,
        )


def main() -> None:
    """Compare studies, or, with --study, run one of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0, help="Of a study on one GPU.")
    parser.add_argument("--only", nargs="*", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--study", choices=list(STUDIES))
    parser.add_argument("--samples", type=int)
    parser.add_argument("--device")
    options = parser.parse_args()
    if options.study:
        print(json.dumps(measure(options.study, options.samples, options.device)))
        return
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = visible.split(",") if visible else [str(n) for n in range(options.gpus)]
    compare(numbers[: options.gpus], options.seconds, options.only)


if __name__ == "__main__":
    main()
