"""The further stages on one device, one after the other.

grid       rows at 1, 9 and 21 values of p, compared with those at one
threshold  T of samples along every open axis, compared with a row
kernels    every CUDA kernel of a row and of labels
graph      labels and rows of a lattice that is given as a list of neighbours, compared with those
           of the lattice that computes them (Komura 2016, section 3)
slabs      rows, interfaces and joins of one large lattice, compared with a lattice in one piece
trees      minimum spanning trees of samples of a torus, and of a random graph with given weights
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from percolab.benchmark.calls import (
    Setting,
    compare_with_first,
    make_grid,
    time_call_kernels,
    time_calls,
)
from percolab.benchmark.records import CallTime, Place, time_topology
from percolab.benchmark.stages import SEED, SITES_PER_RUN, fitting_coupling, make_works
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling, new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import Lattice
from percolab.parts import interface as on_host
from percolab.parts.interface import Interface
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, readings_class
from percolab.trees.weights import values_to_keys

#: Sizes without -L.
SIZES = {"cpu": (64, 256, 1024), "cuda": (64, 256, 1024, 4096)}
_POINTS = (1, 9, 21)
#: Slabs of a lattice, and grid points of a slab without --sites.
SLABS = 4
_SLAB_SITES = {"cpu": 2**20, "cuda": 2**30}
#: Layers of a slab by dimension; in three also a thin slab, which is little more than its faces.
_LAYERS = {2: (256,), 3: (1024, 8)}
#: Linear sizes by dimension, sites of all samples of a call, sites of the graph and its bonds.
_TREE_SIZES = {"cpu": {2: 512, 3: 64}, "cuda": {2: 4096, 3: 256}}
_TREE_SITES = {"cpu": 2**18, "cuda": 2**26}
_GRAPH_SITES = {"cpu": 10_000, "cuda": 1_000_000}
_BONDS_PER_SITE = 10


@dataclass(frozen=True)
class _Case:
    """Samples of one lattice, ready to be measured; base: their record, without times."""

    lattice: Lattice
    size: int
    coupling: Coupling
    samples: np.ndarray
    base: CallTime


def _cases(setting: Setting, stage: str, names: tuple[str, ...]) -> Iterator[_Case]:
    """Yield a case for every lattice, size and labeler."""
    for lattice in setting.choose_lattices(*names):
        for size in setting.sizes or SIZES[setting.kind]:
            topology = setting.choose_topology(lattice, size, "open")
            sites = setting.sites or SITES_PER_RUN[setting.kind]
            count = setting.samples or max(sites // topology.num_points, 1)
            for labeler in setting.labelers:
                coupling = fitting_coupling(
                    setting.make_timer(), topology, labeler, count, setting.model
                )
                base = setting.make_record(
                    stage, lattice.name, topology, program=coupling.labeler.name, samples=count
                )
                yield _Case(lattice, size, coupling, np.arange(count, dtype=np.uint64), base)


def time_grids(setting: Setting) -> Iterator[CallTime]:
    numbers = setting.points or _POINTS
    name = "one p" if numbers[0] == 1 else f"{numbers[0]} p"
    for case in _cases(setting, "grid", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 1.0):
            records = (_time_grid(setting, case, place, points) for points in numbers)
            yield from compare_with_first(records, name)


def _time_grid(setting: Setting, case: _Case, place: Place, points: int) -> CallTime:
    values = make_grid(case.lattice, case.size, place.p, points)
    grid = np.array(list(map(p_to_threshold, values)), np.uint64)

    def work() -> None:
        case.coupling.grid_rows(XORWOW, SEED, case.samples, grid)

    times = time_calls(work, setting.kind, setting.runs)
    return case.base.timed(times, part=str(points), p=place.p, probabilities=points)


def time_thresholds(setting: Setting) -> Iterator[CallTime]:
    for case in _cases(setting, "threshold", ("honeycomb",)):
        for place in setting.choose_places(case.lattice, 1.0):
            yield from compare_with_first(_time_threshold(setting, case, place), "row")


def _time_threshold(setting: Setting, case: _Case, place: Place) -> Iterator[CallTime]:
    yield replace(_time_grid(setting, case, place, 1), part="row")
    low, _, high = map(p_to_threshold, make_grid(case.lattice, case.size, place.p, 3))

    def work() -> None:
        find_thresholds(case.coupling, XORWOW, SEED, case.samples, (low, high))

    times = time_calls(work, setting.kind, setting.runs)
    yield case.base.timed(times, part="T", p=place.p)


def time_row_kernels(setting: Setting) -> Iterator[CallTime]:
    for case in _cases(setting, "kernels", ("honeycomb", "square", "triangular")):
        for place in setting.choose_places(case.lattice, 0.5, 1.0, 1.5):
            works = make_works(case.coupling, case.samples.size)(place.p)
            works = {"row": works["measure"], "labels": works["labels"]}
            yield from time_call_kernels(setting, replace(case.base, p=place.p), works)


def time_graphs(setting: Setting) -> Iterator[CallTime]:
    """Time labels and rows of a lattice and of its list of neighbours: the same samples."""
    parts = {"labels": "labels", "measure": "row"}
    labeler = setting.labelers[0] or "four_step"
    options: Any = {"labeler": labeler, "stages": tuple(parts), "runs": setting.runs}
    for lattice in setting.choose_lattices("honeycomb"):
        places = setting.choose_places(lattice, 1.0)
        for size in setting.sizes or SIZES[setting.kind][-1:]:
            computed = setting.choose_topology(lattice, size, "open")
            options |= {"name": lattice.name, "size": size}
            first: dict[tuple[float, str], CallTime] = {}
            for form, topology in (("lattice", computed), ("list", computed.explicit())):
                for one in time_topology(setting.make_timer(), topology, places, **options):
                    part = f"{parts[one.stage]}:{form}"
                    timed = one.to_call(stage="graph", part=part, shape=computed.shape)
                    other = first.setdefault((one.p, one.stage), timed)
                    yield timed if other is timed else timed.compared(other, "lattice")


# Slabs


def layer_shape(points: int, axes: int) -> tuple[int, ...]:
    """Return the shape of a layer of about this many points, as even as powers of two allow."""
    if axes == 1:
        return (max(points, 1),)
    side = 1 << max(points.bit_length() - 1, 0) // axes
    return (side, *layer_shape(points // side, axes - 1))


def time_slabs(setting: Setting) -> Iterator[CallTime]:
    """Time a slab in one piece, a slab of a row, an interface alone, and a join of two interfaces.

    In a row interfaces are joined while the next slab is labeled.  On CUDA the kernels of an
    interface and of a join follow, by device events.
    """
    for lattice in setting.choose_lattices("square", "cubic"):
        for boundary in setting.choose_boundaries("open", "periodic"):
            for layers in setting.layers or _LAYERS.get(lattice.dimension, (8,)):
                for place in setting.choose_places(lattice, 1.0):
                    yield from _slab_times(setting, lattice, boundary, layers, place.p)


def _slab_times(
    setting: Setting, lattice: Lattice, boundary: str, layers: int, p: float
) -> Iterator[CallTime]:
    """Yield the times of a lattice of SLABS slabs; every call draws another sample."""
    setting.device.open()
    kind, threshold = setting.kind, p_to_threshold(p)
    face = layer_shape((setting.sites or _SLAB_SITES[kind]) // layers, lattice.dimension - 1)
    kinds, numbers = (boundary,) * lattice.dimension, count()
    whole = Whole(lattice, (*face, SLABS * layers), kinds)
    slabs = Slabs(whole, (layers,) * SLABS, kind=kind)
    join: Callable[[Interface, Interface], Interface] = on_host.join
    if kind == "cuda":
        from percolab.parts.join_cuda import InterfacesCuda

        join = InterfacesCuda().join

    def draw() -> SampleKey:
        return SampleKey(XORWOW, SEED, next(numbers), threshold)

    def interface() -> Interface:
        return slabs.interface(1, draw())

    def timed(work: Callable[[], object]) -> np.ndarray:
        return time_calls(work, kind, setting.runs)

    def time_piece() -> np.ndarray:
        """Time one sample of as many sites as a slab, in one piece."""
        coupling = new_coupling(None, kind, lattice.topology((*face, layers), kinds))
        key = np.zeros(1, np.uint64), np.array([threshold], np.uint64)
        return timed(lambda: coupling.rows(XORWOW, SEED, *key))

    base = CallTime(
        stage="slabs",
        lattice=lattice.name,
        shape=whole.shape,
        num_sites=whole.num_points // SLABS,
        p=p,
        program=boundary,
        device=str(setting.device),
        note=f"per slab of {layers} layers",
    )
    piece = base.timed(time_piece(), part="piece", shape=(*face, layers))
    yield piece
    row = base.timed(timed(lambda: slabs.row(draw())) / SLABS, part="row")
    yield row.compared(piece, "one piece")
    yield base.timed(timed(interface), part="front").compared(piece, "one piece")
    key = draw()
    low, high = slabs.interface(0, key), slabs.interface(1, key)
    bonds, clusters = low.high.num_bonds, (low.num_clusters, high.num_clusters)
    note = f"{bonds} open bonds at the face, {clusters[0]} and {clusters[1]} clusters"
    works = {"join": lambda: join(low, high), "front": interface}
    joined = base.timed(timed(works["join"]), part="join", note=note)
    yield joined.compared(row, "slab of a row")
    yield from time_call_kernels(setting, base, works)


# Trees


def time_trees(setting: Setting) -> Iterator[CallTime]:
    """Time building the trees of tori, reading them, and the tree of a random graph.

    On CUDA the kernels of the first two follow, by device events.  Times of the graph are those of
    a tree with its weights on the host, which are copied each time.
    """
    setting.device.open()
    for lattice in setting.choose_lattices("square", "honeycomb", "triangular", "cubic"):
        sizes = setting.sizes or (_TREE_SIZES[setting.kind].get(lattice.dimension, 16),)
        for size in sizes:
            yield from _torus_times(setting, lattice, size)
    yield _graph_time(setting)


def _torus_times(setting: Setting, lattice: Lattice, size: int) -> Iterator[CallTime]:
    kind, kinds = setting.kind, ("periodic",) * lattice.dimension
    lattice.check_size(size, kinds)
    topology = lattice.topology(lattice.shape(size), kinds)
    count = setting.samples or max((setting.sites or _TREE_SITES[kind]) // topology.num_points, 1)
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
