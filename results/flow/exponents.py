"""Exponents of what flows at p_c, from a few minutes of one device, with pulls from known values.

    python results/flow/exponents.py [--device cuda] [--seconds 100] [--seeds 3] [--case NAME]

Backbones, shortest paths and red bonds of square and cubic lattices, periodic but for two sides,
and the largest cluster without bridges of square tori.
Every size of every seed gets the same time; how many samples that is follows from a short run with
another seed.  Each seed is a study of its own, and all together are another one.  No exponent is a
prior of any fit, and nothing is chosen by its result.  Compiling and these runs come on top of
SECONDS; seeds that would end after LIMIT seconds in all are left out, with a line.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

import percolab
from percolab.analysis.stored_fits import compute_exponents, only_threshold
from percolab.analysis.text import exponent_table


class Case(NamedTuple):
    """What is sampled; p_c of cubic bonds: Wang et al. 2013.  share: of the time."""

    lattice: str
    boundary: str
    p: float
    sizes: tuple[int, ...]
    measure: str
    share: float


CASES = {
    "square": Case("square", "periodic,open", 0.5, (32, 64, 128, 256, 512), "backbone,path", 0.4),
    "torus": Case("square", "periodic", 0.5, (32, 64, 128, 256, 512), "bridge_free", 0.3),
    "cubic": Case(
        "cubic",
        "periodic,periodic,open",
        0.24881185,
        (12, 16, 24, 32, 48, 64),
        "backbone,path",
        0.3,
    ),
}
NAMES = ("D_B", "d_min", "1/nu")
SOURCES = ("backbone", "shortest path", "red bonds", "without bridges")
#: Blocks of a size.
BLOCKS = 100
START = time.perf_counter()


def sample(name: str, size: int, samples: int, seed: int, device: str) -> Any:
    """Return the results of one size, and the seconds that they took."""
    lattice, boundary, p, _, measure, _ = CASES[name]
    start = time.perf_counter()
    results = percolab.sweep(
        lattice,
        L=[size],
        p=p,
        boundary=boundary,
        samples=samples,
        block_size=max(samples // BLOCKS, 1),
        seed=seed,
        measure=measure,
        device=device,
    )
    return results, time.perf_counter() - start


def choose_samples(name: str, seconds: float, device: str) -> dict[int, int]:
    """Return the samples of every size that take so many seconds each."""
    found = {}
    for size in CASES[name].sizes:
        samples, took = BLOCKS, 0.0
        # The first run compiles.
        sample(name, size, samples, 999, device)
        while took < min(0.4, seconds):
            samples *= 1 if not took else min(max(math.ceil(0.6 / took), 2), 64)
            took = sample(name, size, samples, 1000, device)[1]
        each = max(int(samples / took * seconds) // BLOCKS, 2) * BLOCKS
        found[size] = each
        print(
            f"{name} L = {size}: {1e9 * took / samples / size ** (2 + (name == 'cubic')):.3f} ns a "
            f"site, {each} samples a seed [{time.perf_counter() - START:.0f} s]",
            flush=True,
        )
    return found


def show(what: str, results: Any) -> dict[str, Any]:
    """Print the exponents of results; return those of what flows by name."""
    found = compute_exponents(results, only_threshold(results))
    print(f"\n{what} [{time.perf_counter() - START:.0f} s]\n{exponent_table(found)}", flush=True)
    for note in found.notes:
        print(note)
    flows = [each for each in found.exponents if any(word in each.source for word in SOURCES)]
    return {each.name: each for each in flows}


def measure(name: str, seconds: float, seeds: int, device: str, limit: float) -> None:
    """Sample a case with several seeds, and print exponents and pulls."""
    sizes = CASES[name].sizes
    samples = choose_samples(name, seconds / seeds / len(sizes), device)
    every, rows = [], []
    for seed in range(31, 31 + seeds):
        if rows and time.perf_counter() - START + seconds / seeds > limit:
            print(f"{name}, seed {seed}: left out")
            continue
        own = [sample(name, size, samples[size], seed, device)[0] for size in sizes]
        every += own
        rows.append((f"seed {seed}", show(f"{name}, seed {seed}", percolab.merge(own))))
    if len(rows) > 1:
        rows.append(("all", show(f"{name}, all seeds", percolab.merge(every))))
    print(f"\n{name}: value(error), and (value - known) / error")
    for what, found in rows:
        texts = []
        for exponent in NAMES:
            if exponent in found:
                item = found[exponent]
                texts.append(
                    f"{exponent} {item.value:.6f} +- {item.error:.6f} {item.difference:+.2f}"
                )
        print(f"{what:8} {'   '.join(texts)}", flush=True)


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=100.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=190.0)
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    given = parser.parse_args()
    print(f"percolab {percolab.__version__}, {given}", flush=True)
    names = list(CASES) if given.case == "all" else [given.case]
    whole, done = sum(CASES[name].share for name in names), 0.0
    for name in names:
        share = CASES[name].share / whole
        done += share
        measure(name, share * given.seconds, given.seeds, given.device, done * given.limit)
    print(f"{time.perf_counter() - START:.0f} s in all")


if __name__ == "__main__":
    main()
