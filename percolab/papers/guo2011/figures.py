"""Measure on a GPU what Figs 5 and 6 of Guo et al. show: minimum spanning trees by Prim's rounds.

S. Guo, W. Wang and L. Wang, Application Research of Computers 28, 1682 (2011).  Random graphs of V
sites and 10 V bonds between pairs of sites, weights that are integers from 1 to 1000, V = 128 ...
16384.  One core runs Prim with a binary heap, which is what the paper compares with, Guo's own
rounds, and Kruskal's algorithm, the fastest there.  The GPU runs the rounds launch by launch, with
the primitive and without, and all of them in one launch, for one graph and for 132 weightings of a
graph at once.

Equal weights are distinguished by the bonds' numbers, so that every tree is one and the same set of
bonds: a tree that differs from the heap's is a failure, and no time of it is written down.

Times are in ms, medians, with all repeats.  ``time`` is by the clock on the CPU, by device
events on the GPU, where graph and weights are in its memory; ``call`` is by the clock, with the
weights brought there.  Nothing of the graph's own arrays is in either.  The primitive alone is
timed too: its elements, and microseconds by device events.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from percolab.kernels.device import device_name, open_device
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import Topology
from percolab.papers.measured_record import Found, Record, by_commas, made_by
from percolab.trees import new_trees
from percolab.trees.weights import values_to_keys

#: The paper's graphs: bonds a site, and the largest weight.
BONDS, MOST_WEIGHT = 10, 1000
#: Graphs that one launch has side by side: the multiprocessors of an H100 or H200.
BATCH = 132
REPEATS = 3
#: What one core runs to compare with, and what gives the reference trees.
SERIAL = "heap"
#: What one core runs besides: Guo's rounds, and the fastest way there is on it.
OTHERS = ("prim", "kruskal")
#: Elements that the primitive is timed with.
LENGTHS = (128, 1024, 16384, 2**20, 2**24)
RECORD = Path("results/h200/guo.json")


def random_graph(sites: int) -> tuple[Topology, np.ndarray]:
    """Return a random graph as the paper's, and its bonds' numbers."""
    random = np.random.default_rng(sites)
    pairs = np.empty((0, 2), np.int64)
    while len(pairs) < BONDS * sites:
        more = random.integers(0, sites, (BONDS * sites, 2))
        pairs = np.concatenate([pairs, more[more[:, 0] != more[:, 1]]])[: BONDS * sites]
    topology = graph_topology(sites, pairs)
    k, owner, _ = topology.bonds().T
    return topology, 32 * topology.num_words * k + owner


def random_keys(topology: Topology, numbers: np.ndarray, seed: int) -> np.ndarray:
    """Return the keys of integer weights by the bonds' numbers."""
    keys = np.zeros(32 * topology.exists.size, np.uint64)
    weights = np.random.default_rng([topology.num_points, seed]).integers(
        1, MOST_WEIGHT + 1, numbers.size
    )
    keys[numbers] = values_to_keys(weights)
    return keys


class Bench:
    """A random graph, its reference trees, and how long it takes to find them."""

    def __init__(self, sites: int, cuda: Any) -> None:
        self.cuda = cuda
        self.topology, self._numbers = random_graph(sites)
        self._reference = new_trees(SERIAL, "cpu", self.topology)
        self.what = {"V": sites, "E": self.topology.num_bonds}

    def keys(self, count: int) -> Iterator[np.ndarray]:
        """Yield the keys of so many weightings."""
        return (random_keys(self.topology, self._numbers, seed) for seed in range(count))

    def check(self, words: np.ndarray) -> None:
        """Raise RuntimeError unless trees of weightings are the reference, some of many."""
        for tree, keys in enumerate(self.keys(len(words))):
            if tree in (0, 1, len(words) // 2, len(words) - 1):
                self._reference.build_given(keys)
                if not np.array_equal(self._reference.words(1)[0], words[tree]):
                    raise RuntimeError(f"tree {tree} differs from that of {SERIAL}")

    def on_cpu(self, method: str) -> Found:
        """Return the time of a tree by one core."""
        trees = new_trees(method, "cpu", self.topology)
        (keys,) = self.keys(1)
        trees.build_given(keys)  # compiles
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            trees.build_given(keys)
            times.append(1e3 * (time.perf_counter() - begin))
        self.check(trees.words(1))
        return summary({"time": times})

    def on_gpu(self, made: Callable[[Topology], Any], count: int = 1) -> Found:
        """Return the time of a tree, and of a whole call, where so many are found at once."""
        trees: Any = made(self.topology)
        keys = list(self.keys(1))
        for _ in range(3):  # directly, which compiles; captured; launched
            trees.build_each_given(keys)
        trees.load(self.keys(count))
        times, calls = [], []
        for _ in range(REPEATS):
            begin, end = self.cuda.event(), self.cuda.event()
            begin.record(trees.launches.stream)
            trees.grow(count)
            end.record(trees.launches.stream)
            end.synchronize()
            times.append(begin.elapsed_time(end) / count)
        self.check(trees.words(count))
        if count > 1:
            return summary({"time": times})
        for _ in range(REPEATS):
            start = time.perf_counter()
            trees.build_each_given(keys)
            trees.launches.wait()
            calls.append(1e3 * (time.perf_counter() - start))
        return summary({"time": times, "call": calls})


def summary(repeats: Found) -> Found:
    """Return the medians of repeats, ms, and all of them."""
    return {name: float(np.median(own)) for name, own in repeats.items()} | {"repeats": repeats}


def ways() -> dict[str, tuple[Callable[[Topology], Any], int]]:
    """Return what the GPU runs: how it is made, and how many trees it finds at once."""
    from percolab.papers.guo2011.prim_cuda import PersistentPrim, PrimCuda

    return {
        "without primitive": (lambda graph: PrimCuda(graph, primitive=False), 1),
        "with primitive": (PrimCuda, 1),
        "one launch": (PersistentPrim, 1),
        f"one launch, {BATCH} at once": (lambda graph: PersistentPrim(graph, BATCH), BATCH),
        "one launch, in device memory": (lambda graph: PersistentPrim(graph, most_shared=0), 1),
    }


def measure_trees(record: Record, sizes: list[int], cuda: Any) -> None:
    """Measure every way of finding a tree against V."""
    for sites in sizes:
        bench = Bench(sites, cuda)
        for method in (SERIAL, *OTHERS):
            what = bench.what | {"way": f"CPU, {method}"}
            record.add(what, partial(bench.on_cpu, method))
        for name, (made, count) in ways().items():
            at_once = bench.what | {"way": name, "at_once": count}
            record.add(at_once, partial(bench.on_gpu, made, count))
        click.echo(f"V = {sites} done", err=True)


def measure_minima(record: Record, lengths: list[int]) -> None:
    """Measure the primitive alone."""
    from percolab.papers.guo2011.min_reduction import time_min_reduction

    for length in lengths:

        def work(length: int = length) -> Found:
            times = [1e6 * each for each in time_min_reduction(length)]
            return {"microseconds": float(np.median(times)), "repeats": times}

        record.add({"elements": length}, work)


def table(parts: Found) -> str:
    """Return all medians as text."""
    lines = []
    for r in parts["trees"]["records"]:
        call = f", {r['call']:.4g} ms a call" if "call" in r else ""
        lines.append(f"V = {r['V']:<6} {r['way']:<28} {r['time']:.4g} ms a tree{call}")
    for r in parts["minima"]["records"]:
        lines.append(f"minimum of {r['elements']} elements: {r['microseconds']:.4g} us")
    for own in parts.values():
        lines += [f"FAILED {each}" for each in own["failed"]]
        lines += [f"skipped {each}" for each in own["skipped"]]
    return "\n".join(lines)


@click.command(help=__doc__)
@click.option(
    "-V",
    "sizes",
    default="128,256,512,1024,2048,4096,8192,16384",
    callback=by_commas,
    show_default=True,
)
@click.option("--seconds", default=120.0, show_default=True, help="After which nothing is begun.")
@click.option("--commit", "known", help="Of the working tree, where git does not know it.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help=f"Write JSON here, as {RECORD}.")
def main(sizes: list[int], seconds: float, known: str | None, out: Path | None) -> None:
    """Measure, write and print."""
    cuda = open_device("cuda")
    record = Record(out, made_by(known, device_name(cuda)), seconds)
    record.begin("trees")
    measure_trees(record, sizes, cuda)
    record.begin("minima")
    measure_minima(record, list(LENGTHS))
    record.write()
    click.echo(device_name(cuda))
    click.echo(table(record.parts))
    record.end()


if __name__ == "__main__":
    main()
