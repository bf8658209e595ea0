"""Time minimum spanning trees on CUDA: boruvka of tori and of a graph, prim:persistent of many.

    python scripts/bench_trees.py

Of a torus: whole calls by the host's clock, from samples on the host to trees on the device, and
what studies store of the trees (readings); then every kernel of such a call by device events,
launched one by one.  Of a random graph with given weights: whole calls, the weights being on the
device.  Of Prim's rounds in one launch: many weightings of one random graph at once, by device
events; percolab/papers/guo2011/figures.py has the rest.  Medians over repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np
from bench_kernels import picoseconds, time_kernels

from percolab.bonds.words import XORWOW
from percolab.kernels.device import device_name, open_device
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.papers.guo2011.figures import BONDS, Bench, random_graph, random_keys
from percolab.papers.guo2011.prim_cuda import PersistentPrim
from percolab.trees.boruvka_cuda import BoruvkaCuda
from percolab.trees.readings_batch import ReadingsBatch

#: Lattice, L and samples of a call.
CASES = (
    "square:4096:4",
    "square:4096:1",
    "square:512:64",
    "square:16384:1",
    "honeycomb:4096:4",
    "triangular:4096:4",
    "cubic:256:4",
    "cubic:256:1",
)
#: Directly, which compiles; recorded; replayed.
WARM_UP = 3


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call by the host's clock."""
    times = []
    for _ in range(WARM_UP + repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times[WARM_UP:]))


class Torus:
    """A torus and the trees of some samples of it: lattice:L:samples."""

    def __init__(self, case: str) -> None:
        name, size, samples = case.split(":")
        lattice = load_lattice(name)
        self.count = int(samples)
        shape = lattice.shape(int(size))
        topology = lattice.topology(shape, ("periodic",) * lattice.dimension)
        self.trees = BoruvkaCuda(topology, self.count)
        self.readings = ReadingsBatch(self.trees)
        self.samples = np.arange(self.count, dtype=np.uint64)
        self.sites = self.count * topology.num_sites
        self.what = f"{name} torus, L = {size}, {samples} samples"

    def build(self) -> None:
        """Find the trees."""
        self.trees.build(XORWOW, 1, self.samples)

    def read(self) -> None:
        """Read them."""
        self.readings.read(self.count)


def graph_line(sites: int, repeats: int) -> str:
    """Return the times of the tree of a random graph with given weights."""
    topology, numbers = random_graph(sites)
    trees = BoruvkaCuda(topology)
    begin = time.perf_counter()
    trees.load(random_keys(topology, numbers, 0))
    loading = 1e3 * (time.perf_counter() - begin)
    took = milliseconds(trees.build_loaded, repeats)
    return (
        f"graph of {sites} sites, {_bonds(topology)} bonds, given weights: {took:.3f} ms, "
        f"after {loading:.0f} ms of making keys and copying them"
    )


def _bonds(topology: Topology) -> int:
    return BONDS * topology.num_points


@click.command(help=__doc__)
@click.option("--case", "cases", multiple=True, default=CASES, show_default=True)
@click.option("--graph", default=1_000_000, show_default=True, help="Sites of the random graph.")
@click.option("--prim", "sizes", default="2048:1056", show_default=True, help="V:trees at once.")
@click.option("--repeats", default=11, show_default=True)
def main(cases: tuple[str, ...], graph: int, sizes: str, repeats: int) -> None:
    """Time and print."""
    cuda = open_device("cuda")
    click.echo(f"{device_name(cuda)}, boruvka: whole calls")
    for case in cases:
        torus = Torus(case)
        built = milliseconds(torus.build, repeats) / torus.count
        read = milliseconds(torus.read, repeats) / torus.count
        per_site = 1e9 * built * torus.count / torus.sites
        click.echo(
            f"{torus.what}: {built:.4f} ms a sample, {per_site:.2f} ps a site, "
            f"readings {read:.4f} ms a sample"
        )
        del torus
    click.echo(graph_line(graph, repeats))
    click.echo("prim:persistent")
    for part in sizes.split(","):
        sites, count = map(int, part.split(":"))
        found = Bench(sites, cuda).on_gpu(lambda own, n=count: PersistentPrim(own, n), count)
        click.echo(
            f"V = {sites}, {count} trees at once: {found['time'] * count:.3f} ms, "
            f"{found['time']:.4f} ms a tree"
        )
    # From here on nothing is recorded any more.
    time_kernels(cuda)
    click.echo("boruvka: kernel by kernel, ps a site, pauses of the host among short ones left out")
    for case in cases:
        torus = Torus(case)
        for name, work in (("trees", torus.build), ("readings", torus.read)):
            took = picoseconds(cuda, work, repeats, torus.sites)
            shown = "  ".join(f"{kernel} {value:.2f}" for kernel, value in took.items())
            click.echo(f"{torus.what}, {name}: {shown}")
        del torus


if __name__ == "__main__":
    main()
