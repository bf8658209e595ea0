"""Swendsen-Wang on the CPU beside the PyPI packages mcising and peapods: ns a spin, one core.

Square torus, Ising model, at the transition of the infinite lattice.  All run in this process, one
thread each, in turn, round by round: what else the machine does slows all of them alike, so that
the ratios, medians over the rounds, tell more than the times, which are the shortest.  A peapods
sweep always has a Metropolis sweep, which is timed alone and subtracted.  Every sweep of percolab
measures energy, clusters, their sizes and wrapping; mcising and peapods make the update (peapods
with its sums of energy and magnetization).  The energies are printed with Kaufman's, so that one
sees that all sample the same model.

The packages are no dependencies: pip install mcising peapods, in an environment of their own.
"""

from __future__ import annotations

import importlib
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
import numpy as np

from percolab.analysis.theory.ising import CRITICAL_COUPLING, ising_torus
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.lattices.lattice import load_lattice
from percolab.measure.spins import SATISFIED
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.spins.words import Chain
from percolab.store.provenance import processor_name

#: What makes n sweeps and returns the seconds they took and the mean energy a site.
Work = Callable[[int], tuple[float, float]]

TEMPERATURE = 1 / CRITICAL_COUPLING
PEERS = ("mcising", "peapods")
#: Sweeps before anything is timed.
BURN_IN = 60


def percolab_work(size: int, rng: str) -> Work:
    """Return percolab's sweeps by a generator."""
    topology = load_lattice("square").topology((size, size), ("periodic",) * 2)
    chains = new_chains(None, "cpu", topology, Update().rule(2))
    p = -float(np.expm1(-2 * CRITICAL_COUPLING))
    key = Chain(*(np.uint64(n) for n in (1, 2, 3, 4)), np.uint64(p_to_threshold(p)))
    chains.begin(GENERATORS[rng], [key], [False])
    chains.advance(BURN_IN)

    def work(sweeps: int) -> tuple[float, float]:
        begin = time.perf_counter()
        _, numbers = chains.advance(sweeps)
        seconds = time.perf_counter() - begin
        return seconds, 2 - 2 * float(numbers[0, :, SATISFIED].mean()) / size**2

    return work


def mcising_work(size: int) -> Work:
    """Return those of mcising."""
    core: Any = importlib.import_module("mcising._core")
    chain = core.IsingSimulation(size, 1.0, 0.0, 0.0, 0.0, 1, "swendsen_wang", "square")
    chain.sweep(BURN_IN, temperature=TEMPERATURE)

    def work(sweeps: int) -> tuple[float, float]:
        seconds, energy = 0.0, 0.0
        # In pieces, so that energies are of several states; reading them is not timed.
        for part in np.array_split(np.arange(sweeps), 8):
            begin = time.perf_counter()
            chain.sweep(len(part), temperature=TEMPERATURE)
            seconds += time.perf_counter() - begin
            energy += energy_of(np.asarray(chain.get_spins())) / 8
        return seconds, energy

    return work


def energy_of(spins: np.ndarray) -> float:
    """Return the energy a site of spins, (L, L) or flat, 1 and -1."""
    size = round(spins.size**0.5)
    grid = spins.reshape(size, size).astype(np.int64)
    return -float(sum((grid * np.roll(grid, 1, axis)).sum() for axis in (0, 1))) / spins.size


def peapods_work(size: int, *, alone: bool) -> Work:
    """Return those of peapods: with a Metropolis sweep each; alone: with its time subtracted."""
    package: Any = importlib.import_module("peapods")
    temperatures = np.array([TEMPERATURE])
    model = package.Ising((size, size), temperatures=temperatures)
    model.sample(BURN_IN, cluster_update_interval=1, sequential=True)

    def timed(sweeps: int, **given: Any) -> float:
        begin = time.perf_counter()
        model.sample(sweeps, warmup_ratio=0.0, sequential=True, **given)
        return time.perf_counter() - begin

    def work(sweeps: int) -> tuple[float, float]:
        less = timed(sweeps) if alone else 0.0
        seconds = timed(sweeps, cluster_update_interval=1)
        # It counts satisfied bonds as positive.
        return seconds - less, -float(np.ravel(model.energies_avg)[0])

    return work


def works_of(size: int, peers: list[str]) -> dict[str, Work]:
    """Return what is timed, by name, percolab first."""
    works = {f"percolab {rng}": percolab_work(size, rng) for rng in GENERATORS}
    if "mcising" in peers:
        works["mcising"] = mcising_work(size)
    if "peapods" in peers:
        works["peapods"] = peapods_work(size, alone=True)
        works["peapods with Metropolis"] = peapods_work(size, alone=False)
    return works


def compare(size: int, peers: list[str], rounds: int, seconds: float) -> None:
    """Print the times of one size."""
    works = works_of(size, peers)
    # About as many sweeps as fill the time, by one try each.
    counts = {}
    for name, work in works.items():
        took = max(work(16)[0], 1e-6) / 16
        counts[name] = max(round(seconds / took / 8) * 8, 8)
    times = {name: np.empty(rounds) for name in works}
    energies = dict.fromkeys(works, 0.0)
    for n in range(rounds):
        for name, work in works.items():
            took, energy = work(counts[name])
            times[name][n] = 1e9 * took / (counts[name] * size**2)
            energies[name] += energy / rounds
    exact = ising_torus(size, size, CRITICAL_COUPLING).energy
    first = times[next(iter(times))]
    for name, each in times.items():
        click.echo(
            f"{size:>5}  {name:<24} {each.min():>8.2f} ns a spin  "
            f"{np.median(each / first):>6.2f} times percolab's  "
            f"energy {energies[name]:.4f} ({exact:.4f})  {counts[name] * rounds} sweeps"
        )


@click.command()
@click.option("-L", "--size", "sizes", default="64,128,256,512,1024", show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.5, show_default=True, help="Of each code in every round.")
def main(sizes: str, rounds: int, seconds: float) -> None:
    """Time Swendsen-Wang sweeps of percolab and of the peers that are installed."""
    # Rust's pool of threads starts when a peer is imported, below.
    os.environ["RAYON_NUM_THREADS"] = "1"
    peers, shown = [], [f"Python {platform.python_version()}"]
    for name in ("percolab", "numba", "numpy", *PEERS):
        try:
            shown.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            click.echo(f"{name} is not installed (pip install {name}): it is left out")
            continue
        if name in PEERS:
            peers.append(name)
    click.echo(f"{processor_name()}, one thread; {', '.join(shown)}")
    click.echo(f"square torus, K = {CRITICAL_COUPLING:.7f}, Swendsen-Wang")
    for size in (int(part) for part in sizes.split(",")):
        compare(size, peers, rounds, seconds)


if __name__ == "__main__":
    main()
