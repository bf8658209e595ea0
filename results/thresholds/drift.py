"""Roots of P(two directions) - P(none wraps) on small tori of every planar lattice: how they drift.

    python results/thresholds/drift.py OUT.jsonl

Sampled on a GPU at the published p_c; the slope comes from two p next to it.
"""

from __future__ import annotations

import json
import sys
from math import lcm, sqrt
from multiprocessing import get_context
from pathlib import Path

import percolab
from percolab.lattices.lattice import lattice_names, load_lattice

#: Samples of a torus whose L is the next multiple of the cell.
SAMPLES = {6: 3e7, 8: 3e7, 12: 3e7, 16: 3e7, 24: 2e7, 32: 1e7}


def measure(name: str, model: str, size: int, p: float, samples: float) -> tuple[float, float]:
    """Return the difference at p and its error."""
    results = percolab.sweep(
        name, L=[size], p=[p], samples=int(samples), device="cuda", boundary="periodic",
        model=model, block_size=2**15,
    )  # fmt: skip
    (item,) = results.tasks.values()
    two, none = (
        item.column(f"wrapping_{word}").sum() / item.num_samples for word in ("two", "none")
    )
    return two - none, sqrt((two + none - (two - none) ** 2) / item.num_samples)


def find_roots(job: tuple[str, str]) -> list[dict]:
    """Return the roots of the sizes of a lattice, relative to its published threshold."""
    name, model = job
    lattice = load_lattice(name)
    known = lattice.threshold(model)
    cells = lcm(*(cell // unit for cell, unit in zip(lattice.cell, lattice.per_size)))
    found = []
    for size in dict.fromkeys(-(-least // cells) * cells for least in SAMPLES):
        step = 0.05 * size**-0.75
        low, high = (measure(name, model, size, known.value + d, 2**18)[0] for d in (-step, step))
        slope = (high - low) / (2 * step)
        samples = SAMPLES[max(least for least in SAMPLES if least <= size)]
        value, error = measure(name, model, size, known.value, samples)
        found.append(
            {
                "lat": name,
                "model": model,
                "L": size,
                "n": int(samples),
                "root": -value / slope,
                "err": error / slope,
                "slope": slope,
                "ref": known.error,
            }
        )
    return found


def main() -> None:
    """Write a line for every lattice, model and size."""
    planar = [name for name in lattice_names() if load_lattice(name).dimension == 2]
    jobs = [(name, model) for model in ("site", "bond") for name in planar]
    jobs = [job for job in jobs if load_lattice(job[0]).threshold(job[1]) is not None]
    with get_context("spawn").Pool(7) as pool, Path(sys.argv[1]).open("w") as file:
        for found in pool.imap_unordered(find_roots, jobs):
            for record in found:
                file.write(json.dumps(record) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
