"""Time whole studies on CUDA: how much of their wall time the GPU computes, and how fast they are.

Device events around every kernel are added up and compared with the host's clock, for sweeps of
nine p and for exact thresholds; the pilot and all preparation count as well.  Then one sample that
fills the GPU alone is measured, labeled and brought to its threshold.
"""

from __future__ import annotations

import time

import click
import numpy as np
from bench_kernels import Timed, time_kernels

from percolab.api import sweep
from percolab.benchmark import probability_of
from percolab.bonds.words import TOP, XORWOW, threshold_of
from percolab.coupled import new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.kernels.device import device_name, open_device
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.measure.rows import SPANNING

#: Samples by linear size: some seconds of work.
SAMPLES = {64: 6_000_000, 256: 1_000_000, 512: 600_000, 1024: 160_000, 4096: 16_000}


def nine_around(p: float, size: int) -> list[float]:
    """Return nine p over the transition of a two-dimensional lattice."""
    return list(p + 0.0013 * (4096 / size) ** 0.75 * np.linspace(-1, 1, 9))


def time_study(cuda, lattice: Lattice, size: int, samples: int, **options) -> tuple[float, float]:
    """Return the seconds of a study by the host's clock, and of its kernels by device events."""
    sweep(lattice, L=[size], samples=200, device="cuda", **options)  # compiles
    Timed.events.clear()
    begin = time.perf_counter()
    sweep(lattice, L=[size], samples=samples, device="cuda", **options)
    whole = time.perf_counter() - begin
    pairs = [pair for found in Timed.events.values() for pair in found]
    return whole, sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3


def time_one_sample(cuda, lattice: Lattice, size: int) -> None:
    """Print the times of one large sample, and whether its T and its rows agree."""
    topology = lattice.topology(lattice.shape(size))
    coupling = new_coupling(None, "cuda", topology)
    p, sample = probability_of(lattice, 1.0), np.zeros(1, np.uint64)
    at_p, window = (
        np.array([threshold_of(p)], np.uint64),
        [threshold_of(p + x) for x in (-1e-3, 1e-3)],
    )

    def label() -> None:
        items = coupling.labeler.batch.fill(XORWOW, 1, sample, at_p)
        coupling.labeler.join(items, Reading.LABELS).make_labels()

    def find() -> np.ndarray:
        return find_thresholds(coupling, XORWOW, 1, sample, (window[0], window[1]))

    works = {"row": lambda: coupling.rows(XORWOW, 1, sample, at_p), "labels": label, "T": find}
    for name, work in works.items():
        times = []
        for _ in range(4):
            cuda.synchronize()
            begin = time.perf_counter()
            work()
            cuda.synchronize()
            times.append(time.perf_counter() - begin)
        per_site = 1e12 * min(times[1:]) / topology.num_points
        click.echo(f"L = {size}, {name}: {1e3 * min(times[1:]):.2f} ms, {per_site:.2f} ps a site")
    for n, axis in enumerate(topology.open_axes):
        found = find()[:, n]
        spans = [
            bool(coupling.rows(XORWOW, 1, sample, found - np.uint64(less))[0, SPANNING] >> axis & 1)
            for less in (0, 1)
        ]
        click.echo(f"axis {axis}: T = {found[0] / TOP}, spans at T, just below: {spans}")


@click.command(help=__doc__)
@click.option("--lattice", "name", default="honeycomb", show_default=True)
@click.option("--large", default=32768, show_default=True, help="L of the one large sample.")
def main(name: str, large: int) -> None:
    """Time and print."""
    cuda = open_device("cuda")
    lattice = load_lattice(name)
    click.echo(f"{device_name(cuda)}, {name}")
    time_one_sample(cuda, lattice, large)
    time_kernels(cuda)
    for size, samples in SAMPLES.items():
        p = nine_around(probability_of(lattice, 1.0), size)
        whole, device = time_study(cuda, lattice, size, samples, p=p)
        rate = samples * len(p) * size**2 / whole / 1e9
        click.echo(
            f"L = {size}, {samples} samples at 9 p: {whole:.2f} s, on the GPU "
            f"{100 * device / whole:.0f} %, {rate:.0f}e9 sites and p a second"
        )
    for size, samples in SAMPLES.items():
        whole, device = time_study(cuda, lattice, size, samples // 5, method="threshold")
        click.echo(
            f"L = {size}, T of {samples // 5} samples: {whole:.2f} s, on the GPU "
            f"{100 * device / whole:.0f} %, {samples // 5 / whole:.0f} samples a second"
        )


if __name__ == "__main__":
    main()
