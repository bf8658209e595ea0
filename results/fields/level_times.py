"""Time and memory of ``percolab threshold --weights``: fields of normal numbers on cubic tori.

python level_times.py 256 512 [--old CHECKOUT] [--turns 3]: every size is one field in a file,
float32 (n, n, n), by NumPy's generator of seed 1.  A line for each call: wall clock and processor
time in seconds, of the whole command; the largest memory in MB and in bytes a site, values
included.  With --old a checkout of another version takes turns, and its answer has to be the same.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parents[2]


def write_field(path: Path, n: int) -> None:
    field = np.lib.format.open_memmap(path, "w+", "f4", (n,) * 3)
    rng = np.random.default_rng(1)
    for layer in field:
        layer[:] = rng.standard_normal((n, n), dtype="f4")
    field.flush()


def time_levels(checkout: Path, path: Path) -> tuple[float, float, float, str]:
    """Return (wall clock, processor time, most bytes, answer) of one call."""
    command = [sys.executable, "-m", "percolab", "threshold", "--weights", str(path)]
    command += ["--boundary", "periodic", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    start = time.perf_counter()
    given = {"stdout": subprocess.PIPE, "env": environment, "cwd": checkout, "text": True}
    with subprocess.Popen(command, **given) as process:
        answer = process.stdout.read()
        # Of this child alone; resource.getrusage would give the most of all so far.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{checkout}: exit code {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss, answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--old", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    versions = {"new": HERE} | ({"old": chosen.old} if chosen.old else {})
    with tempfile.TemporaryDirectory() as folder:
        for n in chosen.sizes:
            path = Path(folder) / "field.npy"
            write_field(path, n)
            answers = set()
            for _ in range(chosen.turns):
                for name, checkout in versions.items():
                    wall, processor, most, answer = time_levels(checkout, path)
                    answers.add(answer)
                    times = f"wall {wall:.2f} s, processor {processor:.2f} s"
                    memory = f"{most / 1e6:.0f} MB, {most / n**3:.1f} bytes a site"
                    print(f"{n}^3 {name}: {times}, {memory}", flush=True)
            assert len(answers) == 1


if __name__ == "__main__":
    main()
