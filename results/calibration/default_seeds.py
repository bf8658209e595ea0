"""Default studies of many seeds: pulls of p_c, as a user who types one command has them.

    python results/calibration/default_seeds.py [SEEDS] > results/calibration/default_seeds.txt

Studies of seeds 1 to SEEDS, 80 unless given, of lattices whose threshold is known, which is used
for the pulls alone.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context

import numpy as np

import percolab

#: Lattice, model and known threshold.
CASES = (("square", "site", 0.59274605), ("square", "bond", 0.5), ("triangular", "site", 0.5))
PROCESSES = 8


def fit_default(seed: int) -> list[tuple[float, float]]:
    """Return p_c and its error of the default study of every case."""
    fits = [percolab.sweep(name, model=model, seed=seed).fit() for name, model, _ in CASES]
    return [(fit.threshold, fit.threshold_error) for fit in fits]


def main() -> None:
    """Print all fits, and how their pulls are distributed."""
    seeds = range(1, 1 + int(sys.argv[1] if len(sys.argv) > 1 else 80))
    with get_context("spawn").Pool(PROCESSES) as pool:
        found = np.array(pool.map(fit_default, seeds, chunksize=1))
    known = np.array([threshold for *_, threshold in CASES])
    pulls = (found[..., 0] - known) / found[..., 1]
    print("seed", *(f"{name} {model}" for name, model, _ in CASES), sep=", ")
    for seed, fits, own in zip(seeds, found, pulls):
        print(seed, *(f"{p:.6f} +- {error:.6f} {pull:+.2f}" for (p, error), pull in zip(fits, own)))
    for (name, model, _), own in zip(CASES, pulls.T):
        mean, width, largest = own.mean(), own.std(ddof=1), abs(own).max()
        more = ", ".join(f"{np.sum(abs(own) > n)} beyond {n}" for n in (2, 3))
        print(f"{name} {model}: mean {mean:+.2f}, width {width:.2f}, largest {largest:.2f}, {more}")


if __name__ == "__main__":
    main()
