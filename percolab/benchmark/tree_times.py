"""Minimum spanning trees: of samples of a torus, and of a random graph with given weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from percolab.benchmark.calls import CallTime, Setting, compare_with_first, time_calls
from percolab.benchmark.kernel_times import time_call_kernels
from percolab.benchmark.stages import SEED
from percolab.bonds.words import XORWOW
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import Lattice
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, readings_class
from percolab.trees.weights import values_to_keys

#: Linear sizes by dimension, sites of all samples of a call, sites of the graph and its bonds.
_SIZES = {"cpu": {2: 512, 3: 64}, "cuda": {2: 4096, 3: 256}}
_SITES = {"cpu": 2**18, "cuda": 2**26}
_GRAPH_SITES = {"cpu": 10_000, "cuda": 1_000_000}
_BONDS_PER_SITE = 10


def time_trees(setting: Setting) -> Iterator[CallTime]:
    """Time building the trees of tori, reading them, and the tree of a random graph.

    On CUDA the kernels of the first two follow, by device events.  Times of the graph are those of
    a tree with its weights on the host, which are copied each time.
    """
    setting.device.open()
    for lattice in setting.choose_lattices("square", "honeycomb", "triangular", "cubic"):
        sizes = setting.sizes or (_SIZES[setting.kind].get(lattice.dimension, 16),)
        for size in sizes:
            yield from _torus_times(setting, lattice, size)
    yield _graph_time(setting)


def _torus_times(setting: Setting, lattice: Lattice, size: int) -> Iterator[CallTime]:
    kind, kinds = setting.kind, ("periodic",) * lattice.dimension
    lattice.check_size(size, kinds)
    topology = lattice.topology(lattice.shape(size), kinds)
    count = setting.samples or max((setting.sites or _SITES[kind]) // topology.num_points, 1)
    trees = new_trees(setting.labelers[0], kind, topology, capacity=count)
    count = min(count, trees.capacity)
    samples = np.arange(count, dtype=np.uint64)
    program = setting.labelers[0] or DEFAULT_TREE_METHOD[kind]
    base = setting.make_record("trees", lattice.name, topology, program=program, samples=count)

    def build() -> None:
        trees.build(XORWOW, SEED, samples)

    works = {"build": build}
    reader = readings_class(setting.labelers[0], kind, Extent.of_topology(topology), kinds)
    if reader is not None:
        readings = reader(trees)
        works["read"] = lambda: readings.read(count)
    calls = (
        base.timed(time_calls(work, kind, setting.runs), part=part) for part, work in works.items()
    )
    yield from compare_with_first(calls, "building")
    yield from time_call_kernels(setting, base, works)


def _graph_time(setting: Setting) -> CallTime:
    """Return the time of the tree of a random graph with given weights."""
    kind = setting.kind
    sites = min(setting.sites or _GRAPH_SITES[kind], _GRAPH_SITES[kind])
    random = np.random.default_rng(SEED)
    ends = random.integers(0, sites, (_BONDS_PER_SITE * sites, 2))
    topology = graph_topology(sites, ends[ends[:, 0] != ends[:, 1]])
    keys = values_to_keys(random.integers(1, 2**31, 32 * topology.exists.size))
    trees = new_trees(setting.labelers[0], kind, topology)
    times = time_calls(lambda: trees.build_given(keys), kind, setting.runs)
    program = setting.labelers[0] or DEFAULT_TREE_METHOD[kind]
    note = f"{topology.num_bonds} bonds of given weights"
    base = setting.make_record("trees", "graph", topology, part="given", program=program, note=note)
    return base.timed(times)
