"""Exponents of what flows at p_c, from a few minutes of one device, with pulls from known values.

    python results/flow/exponents.py [--device cuda] [--seconds 220] [--seeds 3] [--case NAME]

D_B by the largest cluster without bridges of square tori, and d_min by the shortest path between
two sides of square and cubic lattices that are periodic but for these.  Every size of every seed
gets the same time; how many samples that is follows from a short run with another seed, and comes
on top of SECONDS.  No exponent is a prior of any fit, and nothing is chosen by its result.

The largest cluster without bridges takes ten times as long as its sample's row, in which much of
its scatter is told: by the largest cluster, sums of squares and windings.  So a part of the time
goes to samples of rows alone, whose means correct for what the rows of the others have by chance
(double sampling by regression, W. G. Cochran, Sampling Techniques, 1977, chapter 12).
"""

from __future__ import annotations

import argparse
import time
from math import ceil
from typing import Any, NamedTuple

import numpy as np

import percolab
from percolab.analysis.exponents import FLOW_OMEGA
from percolab.analysis.power_law import fit_power_law
from percolab.analysis.theory.known_exponents import known_exponents


class Case(NamedTuple):
    """What is sampled; p_c of cubic bonds: Wang et al. 2013.

    share: of the time.  of_rows: the part of it that goes to rows alone.
    """

    lattice: str
    boundary: str
    p: float
    sizes: tuple[int, ...]
    measure: str
    exponent: str
    share: float
    of_rows: float = 0.0


CASES = {
    "torus": Case(
        "square", "periodic", 0.5, (16, 32, 64, 128, 256, 512), "bridge_free", "D_B", 0.6, 0.25
    ),
    "square": Case(
        "square", "periodic,open", 0.5, (8, 16, 32, 64, 128, 256, 512, 1024), "path", "d_min", 0.25
    ),
    "cubic": Case(
        "cubic",
        "periodic,periodic,open",
        0.24881185,
        (8, 12, 16, 24, 32, 48, 64),
        "path",
        "d_min",
        0.15,
    ),
}
#: What of a row tells of the largest cluster without bridges.
TOLD_BY = ("clusters", "largest", "second_largest", "sum_squares", "wrapping_any", "wrapping_all")
#: Blocks of a size, and the seed of rows alone beside that of other samples.
BLOCKS, OF_ROWS = 200, 500
START = time.perf_counter()


def sample(case: Case, size: int, samples: int, seed: int, device: str, measure: str) -> Any:
    """Return the result of one size, and the seconds that it took."""
    start = time.perf_counter()
    results = percolab.sweep(
        case.lattice,
        L=[size],
        p=case.p,
        boundary=case.boundary,
        samples=samples,
        block_size=max(samples // BLOCKS, 1),
        seed=seed,
        measure=[measure] if measure else (),
        device=device,
    )
    (result,) = results.tasks.values()
    return result, time.perf_counter() - start


def choose_samples(
    case: Case, size: int, seconds: float, device: str, measure: str
) -> tuple[int, str]:
    """Return how many samples of a size take so many seconds, and how long one takes, in words."""
    # The first run compiles, and what the second takes is mostly not that of samples.
    start = [sample(case, size, BLOCKS, seed, device, measure)[1] for seed in (998, 999)][1]
    samples, took = BLOCKS, 0.0
    while took < min(0.5, seconds):
        samples *= min(max(ceil(0.7 / max(took, 0.01)), 2), 64)
        took = max(sample(case, size, samples, 1000, device, measure)[1] - start, 1e-3)
    each = max(int(samples / took * max(seconds - start, 0.1)) // BLOCKS, 2) * BLOCKS
    sites = size ** (2 + (case.lattice == "cubic"))
    return each, f"{each} samples at {1e9 * took / samples / sites:.3f} ns a site"


def read_mean(case: Case, result: Any) -> tuple[float, float]:
    """Return the mean length of the paths of a result's samples that have one, and its variance."""
    lengths = result.extra("path")[:, 0, 0].astype(float)
    many = result.column("spanning_y" if case.lattice == "square" else "spanning_z")[:, 0]
    mean = lengths.sum() / many.sum()
    away = lengths - mean * many
    return mean, away.var(ddof=1) * away.size / many.sum() ** 2


def read_corrected_mean(result: Any, rows: Any) -> tuple[float, float, float]:
    """Return the mean of the largest cluster without bridges, its variance, and that explained.

    rows: a result with rows alone.  The part of the variance between blocks that rows explain is
    the last number.
    """
    size = result.task.block_size
    own = result.extra("bridge_free")[:, 0, 0] / size
    told, others = (
        np.stack([each.column(name)[:, 0] for name in TOLD_BY], axis=1) / each.task.block_size
        for each in (result, rows)
    )
    away, more = told - told.mean(axis=0), others - others.mean(axis=0)
    slopes = np.linalg.lstsq(away, own - own.mean())[0]
    left = own - own.mean() - away @ slopes
    freedom = left.size - slopes.size - 1
    mean = own.mean() + (others.mean(axis=0) - told.mean(axis=0)) @ slopes
    variance = left @ left / freedom / left.size + (more @ slopes).var(ddof=1) / len(more)
    return mean, variance, 1 - left.var() / own.var()


def show_fit(what: str, case: Case, values: Any) -> None:
    """Print the exponent of a power law through (value, variance) of every size."""
    means, variances = np.array(values).T
    dimension = 2 + (case.lattice == "cubic")
    known = known_exponents(dimension)[case.exponent]
    found = fit_power_law(case.sizes, means, variances / means**2, omega=FLOW_OMEGA).exponent
    pull = (found.value - known.value) / np.hypot(found.error, known.error)
    print(
        f"{what:10} {case.exponent:5} {found.value:.6f} +- {found.error:.6f}  statistical "
        f"{found.statistical_error:.6f}  systematic {found.systematic_error:.6f}  pull "
        f"{pull:+.2f}  {found.quality}",
        flush=True,
    )


def measure(name: str, seconds: float, seeds: int, device: str) -> None:
    """Sample a case with several seeds, and print exponents and pulls."""
    case = CASES[name]
    each, every = seconds / seeds / len(case.sizes), []
    samples, rows = {}, {}
    for size in case.sizes:
        own = (1 - case.of_rows) * each
        samples[size], text = choose_samples(case, size, own, device, case.measure)
        if case.of_rows:
            rows[size], more = choose_samples(case, size, case.of_rows * each, device, "")
            text += f", rows alone {more}"
        print(f"{name} L = {size}: {text} [{time.perf_counter() - START:.0f} s]", flush=True)
    for seed in range(31, 31 + seeds):
        values = []
        for size in case.sizes:
            result, _ = sample(case, size, samples[size], seed, device, case.measure)
            if case.of_rows:
                alone, _ = sample(case, size, rows[size], seed + OF_ROWS, device, "")
                *value, part = read_corrected_mean(result, alone)
                print(f"seed {seed} L = {size}: {100 * part:.0f} % of the variance by rows")
            else:
                value = read_mean(case, result)
            values.append(value)
            print(f"seed {seed} L = {size}: {value[0]:.8g} +- {value[1] ** 0.5:.2g}", flush=True)
        every.append(values)
        show_fit(f"seed {seed}", case, values)
    if seeds > 1:
        together = np.array(every)
        # Equal numbers of samples have equal weights.
        mean, variance = together.mean(axis=0).T
        show_fit("all seeds", case, np.stack([mean, variance / seeds], axis=1))
    print(f"[{time.perf_counter() - START:.0f} s]\n", flush=True)


def main() -> None:
    """Read the options, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=220.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    given = parser.parse_args()
    print(f"percolab {percolab.__version__}, {given}", flush=True)
    names = list(CASES) if given.case == "all" else [given.case]
    whole = sum(CASES[name].share for name in names)
    for name in names:
        seconds = CASES[name].share / whole * given.seconds
        measure(name, seconds, given.seeds, given.device)
    print(f"{time.perf_counter() - START:.0f} s in all")


if __name__ == "__main__":
    main()
