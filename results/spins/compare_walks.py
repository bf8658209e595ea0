"""Wolff sweeps on the CPU that walk their clusters, beside the same ones that label all clusters.

Two chains of the Ising model with the same keys begin with the same spins, which Swendsen-Wang
sweeps have brought to equilibrium, and make the same sweeps in turn: one as those of a burn-in, one
as measured ones.  One thread; times are sums over all sweeps, and of each lattice the mean size of
the clusters is told, over all sites.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Any

import click
import numpy as np

from percolab.bonds.words import p_to_threshold
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import SUM_SQUARES
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.spins.words import Chain
from percolab.store.provenance import package_versions, processor_name

SQUARE, CUBIC = 2 / np.log1p(2**0.5), 1 / 0.221654626
#: Lattice, temperatures, sizes, update.
CASES = (
    ("square", (SQUARE,), (64, 128, 256, 512), "wolff"),
    ("square", (2.5, 2.0), (64, 512), "wolff"),
    ("cubic", (CUBIC,), (16, 32, 64), "wolff"),
    ("square", (SQUARE,), (256,), "few:8,flip=0.5"),
)
#: Sweeps that are made in turn, and sweeps of Swendsen and Wang before.
STRETCH, BEFORE = 32, 200


def chains_of(name: str, size: int, temperature: float, update: str) -> list[Any]:
    """Return two chains with the same keys and spins."""
    lattice = load_lattice(name)
    shape = (size,) * lattice.dimension
    topology = lattice.topology(shape, ("periodic",) * lattice.dimension)
    threshold = np.uint64(p_to_threshold(-np.expm1(-2 / temperature)))
    key = Chain(np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(0), threshold)
    before = new_chains("raster", "cpu", topology, Update().rule(2))
    before.begin(0, [key], [temperature > SQUARE])
    before.advance(BEFORE)
    found = []
    for _ in range(2):
        one = new_chains("raster", "cpu", topology, Update.parse(update).rule(2))
        one.begin(0, [key], [False])
        one.resume(before.copy_planes(), BEFORE)
        found.append(one)
    return found


def compared(name: str, size: int, temperature: float, update: str, seconds: float) -> str:
    """Return a line on one case."""
    labeling, walking = chains_of(name, size, temperature, update)
    spent, sweeps, fractions = [0.0, 0.0], 0, []
    sites = labeling.labeler.batch.topology.num_sites
    # Compiled before.
    labeling.advance(2)
    walking.skip(2)
    while min(sum(spent), 2 * spent[0]) < seconds:
        begin = time.perf_counter()
        rows, _ = labeling.advance(STRETCH)
        middle = time.perf_counter()
        walking.skip(STRETCH)
        spent[0] += middle - begin
        spent[1] += time.perf_counter() - middle
        sweeps += STRETCH
        fractions.append(rows[0, :, SUM_SQUARES].mean() / sites**2)
    assert np.array_equal(labeling.copy_planes(), walking.copy_planes())
    label, walk = (1e6 * each / sweeps for each in spent)
    return (
        f"{name:<7}{size:>5}  T = {temperature:.4f}  {update:<15} cluster "
        f"{np.mean(fractions):8.5f} of the lattice  {label:9.1f} us labeling  "
        f"{walk:9.1f} us walking  {label / walk:7.2f}  ({sweeps} sweeps)"
    )


@click.command()
@click.option("--seconds", default=2.0, help="Of every case.  [default: 2]")
@click.option("--largest", default=512, help="Largest L.  [default: 512]")
def main(seconds: float, largest: int) -> None:
    """Time every case and print a line on each."""
    versions = package_versions()
    told = ", ".join(f"{key} {versions[key]}" for key in ("percolab", "numba") if key in versions)
    click.echo(f"{processor_name()}, {os.cpu_count()} cores, one thread; {told}")
    click.echo(f"Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}")
    for name, temperatures, sizes, update in CASES:
        for temperature in temperatures:
            for size in (size for size in sizes if size <= largest):
                click.echo(compared(name, size, temperature, update, seconds))


if __name__ == "__main__":
    main()
