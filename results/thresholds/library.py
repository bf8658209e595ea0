"""Bond and site thresholds of the planar lattices of the library, one command each, on a CPU.

    python results/thresholds/library.py sample OUT.jsonl [--error 5e-5]
    python results/thresholds/library.py print OUT.jsonl

``sample`` runs ``percolab threshold`` for every lattice of the library in two dimensions, blind:
nothing that is published enters.  ``print`` compares.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from percolab.analysis.text import format_with_error
from percolab.lattices.lattice import lattice_names, load_lattice


def find(name: str, model: str, error: float) -> dict:
    """Return the answer of one command as plain values, and the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threshold.h5"
        command = [sys.executable, "-m", "percolab", "threshold", name, "--model", model]
        command += ["--error", f"{error:g}", "--device", "cpu", "--json", "--quiet", "--out", path]
        start = time.perf_counter()
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, size = time.perf_counter() - start, path.stat().st_size
    found = {"lattice": name, "model": model, "target": error, "bytes": size}
    return found | {"seconds": round(seconds, 1)} | json.loads(text)


def show(path: Path) -> None:
    """Print a row for every answer, and how far all of them are off."""
    print(
        "| lattice | model | p_c | published | pull | L | samples |\n|---|---|---|---|---|---|---|"
    )
    pulls = []
    for answer in map(json.loads, path.read_text().splitlines()):
        value, known = answer["p_c"], load_lattice(answer["lattice"]).threshold(answer["model"])
        sizes, samples = (
            ", ".join(str(root[key]) for root in answer["roots"]) for key in ("L", "samples")
        )
        shown, published, pull = format_with_error(value["value"], value["error"]), "-", "-"
        if known is not None:
            published = f"{known.value:.10g}"
            if known.error:
                published = format_with_error(known.value, known.error)
            pulls.append((value["value"] - known.value) / np.hypot(value["error"], known.error))
            pull = f"{pulls[-1]:+.2f}"
        cells = answer["lattice"], answer["model"], shown, published, pull, sizes, samples
        print(f"| {' | '.join(cells)} |")
    print(f"\n{len(pulls)} pulls: {np.mean(pulls):+.2f} on average, {np.std(pulls):.2f} wide")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("sample", "print"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--error", type=float, default=5e-5)
    given = parser.parse_args()
    if given.command == "print":
        show(given.path)
        return
    names = [name for name in lattice_names() if load_lattice(name).dimension == 2]
    with given.path.open("a") as file:
        for name in names:
            for model in ("bond", "site"):
                file.write(json.dumps(find(name, model, given.error)) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
