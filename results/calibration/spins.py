"""Means, times and exponents of spins: how often their stated errors hold.

    python results/calibration/spins.py [PART ...] > results/calibration/spins.txt

PART: means, lengths, times, one-chain, exponents or order; all of them unless given.  A pull is
(value - truth) / error.  Truths: transfer matrices of small square tori; autocorrelation times of
150 times as many sweeps as a study has; published exponents; the critical point.  Studies are the
independent chains of one long sweep, dealt out to them.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np

import percolab
from percolab.analysis.spin_fit import compute_autocorrelations, fit_spins, time_at
from percolab.analysis.stored_spins import list_spin_tasks, read_thermal_means
from percolab.analysis.theory.potts import critical_bond_probability, potts_exponents
from percolab.analysis.transition_order import classify_order
from percolab.errors import AnalysisError
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

Lines = Iterator[str]

#: Of the derivatives of ln Z.
_STEP = 2e-3
#: Central fraction of pulls whose half width is 1 where errors hold, and columns of a table.
_CENTRE = (0.15866, 0.84134)
_HEAD = f"{'':64}{'mean':>6}{'width':>7}{'68 %':>6}{'< 1':>6}{'< 2':>5}{'bias':>7}"


@cache
def exact_means(length: int, q: int, beta: float) -> dict[str, float]:
    """Return the thermal means of Potts spins on a square torus, by transfer matrices."""
    found = _moments(length, q, beta)
    logs = [_log_partition(length, q, beta + n * _STEP) for n in (-2, -1, 0, 1, 2)]
    sites = length**2
    satisfied = np.dot([1, -8, 0, 8, -1], logs) / (12 * _STEP)
    variance = np.dot([-1, 16, -30, 16, -1], logs) / (12 * _STEP**2)
    return found | {
        "energy": -satisfied / sites,
        "specific_heat": beta**2 * variance / sites,
        "improved_susceptibility": found["susceptibility"],
        "improved_binder": found["binder"],
    }


@cache
def _rows(length: int, q: int) -> np.ndarray:
    """Return all states of a row of spins, (q^length, length)."""
    return np.array(list(itertools.product(range(q), repeat=length)))


def _matrix(length: int, q: int, beta: float) -> np.ndarray:
    rows = _rows(length, q)
    within = np.exp(0.5 * beta * (rows == np.roll(rows, 1, axis=1)).sum(axis=1))
    between = sum((rows[:, None, n] == rows[None, :, n]).astype(float) for n in range(length))
    return within[:, None] * np.exp(beta * (between - length)) * within


def _log_partition(length: int, q: int, beta: float) -> float:
    values = np.linalg.eigvalsh(_matrix(length, q, beta))
    return float(np.log(np.sum((values / values[-1]) ** length)) + length * np.log(values[-1])
                 + beta * length**2)  # fmt: skip


def _moments(length: int, q: int, beta: float) -> dict[str, float]:
    """Return what is made of the numbers of sites in every state, and the correlation length."""
    sites, matrix = length**2, _matrix(length, q, beta)
    counts = np.stack([(_rows(length, q) == a).sum(axis=1) for a in range(q)])
    angles = 2 * np.pi * np.arange(sites + 1) / (sites + 1)
    shape = (sites + 1,) * (q - 1)
    waves = np.empty(shape, complex)
    for place in np.ndindex(shape):
        phases = np.exp(1j * sum(angles[n] * counts[a] for a, n in enumerate(place)))
        waves[place] = np.trace(np.linalg.matrix_power(phases[:, None] * matrix, length))
    weights = np.fft.fftn(waves).real
    weights /= weights.sum()
    numbers = np.stack(np.meshgrid(*[np.arange(sites + 1)] * (q - 1), indexing="ij"))
    numbers = np.concatenate([numbers, sites - numbers.sum(axis=0, keepdims=True)])
    real = numbers[-1] >= 0
    numbers, weights = numbers[:, real], weights[real]
    square = (q * (numbers**2).sum(axis=0) - sites**2) / (q - 1)
    largest = (q * numbers.max(axis=0) - sites) / (q - 1)
    second, fourth = weights @ square, weights @ square**2
    mean = weights @ largest
    zero = weights @ (numbers**2).sum(axis=0) - sites**2 / q
    powers = [np.linalg.matrix_power(matrix, n) for n in range(length + 1)]
    wave = 0.0
    for n in range(length):
        # Of sites in a state, in two rows at this distance.
        pairs = np.einsum("ai,ij,aj->ij", counts, powers[n], counts) * powers[length - n].T
        wave += math.cos(2 * np.pi * n / length) * pairs.sum()
    wave *= length / np.trace(powers[length])
    return {
        "order": mean / sites,
        "susceptibility": second / sites,
        "connected_susceptibility": (weights @ largest**2 - mean**2) / sites,
        "binder": second**2 / fourth,
        "correlation_length_x": math.sqrt(zero / wave - 1) / (2 * math.sin(np.pi / length)),
    }


def pulls_line(label: str, values: Iterable[float], errors: Iterable[float], truth: float) -> str:
    """Return a line of a table: mean, width, half of the middle 68.3 %, shares within 1 and 2.

    The last column is the mean deviation in units of the scatter of the studies.
    """
    value, error = np.array(list(values), float), np.array(list(errors), float)
    there = np.isfinite(value) & np.isfinite(error) & (error > 0)
    missing = there.size - int(there.sum())
    if there.sum() < 2:
        return f"{label:64} no errors"
    pulls = (value[there] - truth) / error[there]
    low, high = np.quantile(pulls, _CENTRE)
    shares = [100 * np.mean(np.abs(pulls) <= n) for n in (1, 2)]
    bias = (value[there].mean() - truth) / value[there].std(ddof=1)
    return (
        f"{label:64}{pulls.mean():+6.2f}{pulls.std(ddof=1):7.2f}{(high - low) / 2:6.2f}"
        f"{shares[0]:6.0f}{shares[1]:5.0f}{bias:+7.2f}"
        + (f"  {missing} without" if missing else "")
    )


def sample(model: str, length: int, p: Sequence[float], **options: Any) -> TaskResult:
    """Return chains on a square torus."""
    given = {"boundary": "periodic", "device": "cpu", "workers": 1} | options
    given["sweeps"] = given["burn_in"] + given.pop("measured")
    lattice = given.pop("lattice", "square")
    (task,) = list_spin_tasks(percolab.sweep(lattice, model=model, L=[length], p=list(p), **given))
    return task


def deal(task: TaskResult, chains: int) -> Iterator[TaskResult]:
    """Yield the chains of a task as studies of so many each."""
    numbers = task.numbers.tolist()
    for first in range(0, len(numbers) - chains + 1, chains):
        own = numbers[first : first + chains]
        yield TaskResult(task.task, {n: task.blocks[n] for n in own}, task.columns)


#: Small tori: model, q, and L; at these beta over beta_c.
_TORI = (("ising", 2, 8), ("potts:q=3", 3, 4))
_RATIOS = (0.9, 1.0, 1.1)
#: Burn-in, measured sweeps of a chain, chains of a study, studies.
_SETTINGS = (
    (40, 63, 64, 150), (40, 100, 20, 150), (40, 20, 20, 200), (40, 100, 8, 200),
    (40, 100, 4, 300), (40, 100, 2, 300), (4, 63, 64, 60), (0, 63, 64, 60),
)  # fmt: skip


def means() -> Lines:
    """Yield pulls of thermal means, those of three temperatures together."""
    for model, q, length in _TORI:
        yield from _pulls_of_means(model, q, length, _SETTINGS, ["sizes"], _RATIOS)


def lengths() -> Lines:
    """Yield pulls of correlation lengths, and what else is of the same few sweeps."""
    settings = ((40, 20, 20, 100), (40, 20, 8, 150), (40, 20, 4, 300), (40, 20, 2, 300))
    yield from _pulls_of_means("ising", 2, 8, settings, ["correlation"], _RATIOS[:2])


def _pulls_of_means(
    model: str, q: int, length: int, settings: Any, measure: list[str], ratios: Sequence[float]
) -> Lines:
    betas = [ratio * math.log1p(math.sqrt(q)) for ratio in ratios]
    for seed, (burn_in, measured, chains, studies) in enumerate(settings):
        task = sample(
            model, length, [-math.expm1(-beta) for beta in betas], burn_in=burn_in, seed=100 + seed,
            measured=measured, samples=chains * studies * measured, measure=measure,
        )  # fmt: skip
        found = [read_thermal_means(one) for one in deal(task, chains)]
        label = f"{model}, L = {length}, {chains} chains of {measured} after {burn_in}: "
        for name in exact_means(length, q, betas[0]):
            if name in found[0]:
                # In units of the truth's error all temperatures are one set.
                truths = [_truth(length, q, beta, name, model) for beta in betas]
                values = [own[name][0] - truths for own in found]
                errors = [own[name][1] for own in found]
                yield pulls_line(label + _SHORT[name], np.ravel(values), np.ravel(errors), 0.0)


def _truth(length: int, q: int, beta: float, name: str, model: str) -> float:
    value = exact_means(length, q, beta)[name]
    return 2 + 2 * value if name == "energy" and model == "ising" else value


_SHORT = {
    "order": "|M|", "susceptibility": "<M^2>", "connected_susceptibility": "<M^2> - <|M|>^2",
    "binder": "Q_m", "correlation_length_x": "xi", "energy": "E", "specific_heat": "C",
    "improved_susceptibility": "<S_2>", "improved_binder": "Q_m by clusters",
}  # fmt: skip


def times() -> Lines:
    """Yield pulls of autocorrelation times of the energy at T_c, of those that are known."""
    settings = ((63, 64, 100), (20, 64, 150), (200, 20, 150), (200, 10, 200), (400, 4, 200),
                (2000, 1, 200))  # fmt: skip
    for model, q, length, burn_in in (("ising", 2, 8, 40), ("ising", 2, 32, 90),
                                      ("potts:q=3", 3, 16, 200)):  # fmt: skip
        p = [-math.expm1(-math.log1p(math.sqrt(q)))]
        options: dict[str, Any] = {"burn_in": burn_in, "seed": 31}
        long = sample(model, length, p, measured=4000, samples=600_000, **options | {"seed": 999})
        known = time_at(p, compute_autocorrelations(long)["satisfied"], p[0])
        assert known is not None
        for measured, chains, studies in settings:
            samples = chains * studies * measured
            task = sample(model, length, p, measured=measured, samples=samples, **options)
            found = [time_of(one, p[0]) for one in deal(task, chains)]
            label = f"{model}, L = {length}, {chains} chains of {measured}: tau = {known.tau:.2f}"
            yield pulls_line(label, *zip(*found), known.tau)


def time_of(task: TaskResult, p: float) -> tuple[float, float]:
    """Return the time of the energy and its error, NaN where it is a lower bound."""
    found = time_at(task.task.p, compute_autocorrelations(task)["satisfied"], p)
    is_known = found is not None and found.complete
    return (found.tau, found.error) if is_known else (math.nan, math.nan)


def one_chain() -> Lines:
    """Yield pulls of thermal means of one long chain of 4000 sweeps with a burn-in of 50."""
    beta = math.log1p(math.sqrt(2))
    found = []
    for seed in range(300):
        given = {"burn_in": 50, "seed": seed, "measured": 63, "samples": 4032, "chains": 1}
        found.append(read_thermal_means(sample("ising", 8, [-math.expm1(-beta)], **given)))
    for name in exact_means(8, 2, beta):
        if name in found[0]:
            values, errors = np.array([[own[name][n][0] for n in (0, 1)] for own in found]).T
            label = f"ising, L = 8, blocks of 63 of one chain: {_SHORT[name]}"
            yield pulls_line(label, values, errors, _truth(8, 2, beta, name, "ising"))


#: Lattice, model, sizes, chains, measured sweeps, studies, and z of Swendsen and Wang: of the plane
#: Clive Baillie and Paul Coddington, Phys. Rev. B 43, 10617 (1991) (q = 2, or a logarithm), and J.
#: Salas and A. D. Sokal, J. Stat. Phys. 87, 1 (1997) (q = 3: 2/5 and about 0.08 more); of the cubic
#: lattice G. Ossola and A. D. Sokal, Nucl. Phys. B 691, 259 (2004).
_FITS = (
    ("square", "ising", (8, 16, 32), 64, 63, 40, 0.25),
    ("square", "potts:q=3", (8, 12, 16), 64, 63, 30, 0.48),
    ("cubic", "ising", (4, 6, 8), 64, 63, 40, 0.459),
)


def exponents() -> Lines:
    """Yield pulls of what `percolab fit` finds, with the p and the burn-in of one pilot."""
    for lattice, model, sizes, chains, measured, studies, z in _FITS:
        first = percolab.sweep(
            lattice, model=model, L=list(sizes), boundary="periodic", samples=1000, seed=7,
            device="cpu", workers=1,
        )  # fmt: skip
        tasks = [
            sample(
                model, own.task.size, own.task.p, lattice=lattice, burn_in=own.task.burn_in,
                seed=11, measured=measured, samples=chains * studies * measured,
            )
            for own in list_spin_tasks(first)
        ]  # fmt: skip
        q = first.study.states
        truths = {"p_c": critical_bond_probability(lattice, q).value}
        exact = potts_exponents(len(first.study.boundary), q)
        for name, known in (("y_t", "1/nu"), ("y_h", "d_f"), ("gamma/nu", "gamma/nu")):
            truths[name] = exact[known].value
        dealt = zip(*(deal(task, chains) for task in tasks))
        fits = [_fitted(first, own) for own in dealt]
        whole = _fitted(first, tasks)
        label = f"{lattice} {model}, {chains} chains of {measured}: "
        for name, truth in (truths | {"z": z}).items():
            values, errors = np.array([own.get(name, (math.nan, math.nan)) for own in fits]).T
            line = pulls_line(f"{label}{name} = {truth:.4g}", values, errors, truth)
            value, error = whole.get(name, (math.nan, math.nan))
            together = f"  median error {np.nanmedian(errors):.2g}; all {value:.4f} +- {error:.4f}"
            yield line + together


def _fitted(study: StoredResults, tasks: Sequence[TaskResult]) -> dict[str, tuple[float, float]]:
    """Return p_c and exponents with errors; {} where there is no fit."""
    try:
        fit = fit_spins(StoredResults(study.study, {str(own.task.size): own for own in tasks}))
    except AnalysisError:
        return {}
    found = {"p_c": (fit.threshold, fit.threshold_error or math.nan)}
    return found | {own.name: (own.result.value, own.result.error) for own in fit.exponents}


#: q, sizes, chains, measured sweeps, studies, burn-in, and the width of beta's range times L^x.
_ORDERS = (
    (2, (8, 16), 20, 200, 60, 60, 1.0, 1), (3, (8, 16), 20, 200, 60, 100, 0.6, 1),
    (4, (8, 16), 20, 200, 60, 200, 0.4, 1), (10, (12, 16), 20, 1000, 20, 400, 1.2, 2),
    (20, (8, 12), 20, 500, 40, 300, 1.2, 2),
)  # fmt: skip


def order() -> Lines:
    """Yield how often a transition is called one of first order, with beta_c and latent heat."""
    for q, sizes, chains, measured, studies, burn_in, width, power in _ORDERS:
        beta = math.log1p(math.sqrt(q))
        tasks = [
            sample(
                f"potts:q={q}", size,
                [-math.expm1(-beta - n * width / size**power) for n in (-0.5, 0, 0.5)],
                burn_in=burn_in, measured=measured, samples=chains * studies * measured,
                measure=["series"], seed=5,
            )
            for size in sizes
        ]  # fmt: skip
        model = tasks[0].task.draw
        whole, _ = classify_order(tasks, model)
        dealt = zip(*(deal(task, chains) for task in tasks))
        found = [classify_order(own, model)[0] for own in dealt]
        kept = [one for _, _, one in filter(None, found)]
        mixed = [one for one in kept if one.mixed]
        label = f"q = {q}, L = {sizes}, {chains} chains of {measured}"
        yield f"{label}: of first order {len(kept)} of {len(found)}, all as one {whole is not None}"
        if mixed:
            values, errors = zip(*((one.beta, one.beta_error) for one in mixed))
            yield pulls_line(f"{label}: beta_c", values, errors, beta)
        if kept and whole is not None:
            largest = [one for size, _, one in filter(None, found) if size == whole[0]]
            values, errors = zip(*((one.latent_heat, one.latent_heat_error) for one in largest))
            heat = whole[2].latent_heat
            yield pulls_line(f"{label}: latent heat, {heat:.4f} of all", values, errors, heat)


PARTS: dict[str, Callable[[], Lines]] = {
    "means": means, "lengths": lengths, "times": times, "one-chain": one_chain,
    "exponents": exponents, "order": order,
}  # fmt: skip


def main() -> None:
    """Print what was run, and the tables."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    print(
        f"# commit {commit}, {time.strftime('%Y-%m-%d')}; {os.cpu_count()} cores; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"
    )
    print("# $ python results/calibration/spins.py", *sys.argv[1:])
    for name in sys.argv[1:] or PARTS:
        start = time.perf_counter()
        print(f"\n{name}\n{_HEAD}", flush=True)
        for line in PARTS[name]():
            print(line, flush=True)
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
