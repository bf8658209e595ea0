"""The further stages on one device, one after the other, and whole sweeps of spins.

grid       rows at 1, 9 and 21 values of p, compared with those at one
threshold  T of samples along every open axis, compared with a row
kernels    every CUDA kernel of a row and of labels
graph      labels and rows of a lattice given as a list of neighbours, compared with those of the
           same lattice with computed neighbours (Komura 2016, section 3)
slabs      rows, interfaces and joins of one large lattice, compared with a lattice in one piece
trees      minimum spanning trees of samples of a torus, and of a random graph with given weights
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from percolab.benchmark.calls import time_call_kernels
from percolab.benchmark.records import (
    Place,
    Setting,
    TimeRecord,
    compare_with_first,
    make_grid,
    make_topology,
)
from percolab.benchmark.stages import SEED, SITES_PER_RUN, make_works, prepare, time_topology
from percolab.benchmark.timer import make_timer, time_calls, time_runs
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Coupling, new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.labelers import serving_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import Lattice
from percolab.parts import interface as on_host
from percolab.parts.interface import Interface
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs
from percolab.spins.chains import new_chains
from percolab.spins.words import Chain
from percolab.trees import DEFAULT_TREE_METHOD, new_trees, readings_class
from percolab.trees.weights import values_to_keys

_POINTS = (1, 9, 21)
#: Number of slabs of a lattice, and grid points of a slab without --sites.
SLABS = 4
_SLAB_SITES = {"cpu": 2**20, "cuda": 2**30}
#: Layers of a slab by dimension; in three also a thin slab, which is hardly more than its faces.
_LAYERS = {2: (256,), 3: (1024, 8)}
#: Linear sizes by dimension, sites of all samples of a call, sites of the graph and its bonds.
_TREE_SIZES = {"cpu": {2: 512, 3: 64}, "cuda": {2: 4096, 3: 256}}
_TREE_SITES = {"cpu": 2**18, "cuda": 2**26}
_GRAPH_SITES = {"cpu": 10_000, "cuda": 1_000_000}
_BONDS_PER_SITE = 10
#: Spins of all chains times sweeps in one timed run, and the smallest number of sweeps.
_SPINS_PER_RUN = {"cpu": 2**22, "cuda": 2**31}
_LEAST_SWEEPS, _MOST_SWEEPS = 8, 1024
#: Number of sweeps before anything is timed.
_BURN_IN = 64


class _Case(NamedTuple):
    """Samples of one lattice to be measured at a p; base: their record without times."""

    coupling: Coupling
    samples: np.ndarray
    place: Place
    base: TimeRecord

    def time_grid(self, setting: Setting, points: int, part: str = "") -> TimeRecord:
        """Return the time of rows at a number of values of p."""
        values = make_grid(self.place.p, self.coupling.labeler.batch.topology, points)
        grid = np.array([p_to_threshold(p) for p in values], np.uint64)

        def work() -> None:
            self.coupling.grid_rows(XORWOW, SEED, self.samples, grid)

        times = time_calls(work, setting.kind, setting.runs)
        return self.base.timed(times, part=part or str(points), probabilities=points)


def _cases(setting: Setting, stage: str, names: str, *ratios: float) -> Iterator[_Case]:
    """Yield a case for every lattice, size, labeler and p; names: of the default lattices."""
    for lattice in setting.choose_lattices(*names.split()):
        places = setting.choose_places(lattice, *ratios)
        for size in setting.choose_sizes():
            topology = make_topology(lattice, size, setting.boundary)
            sites = setting.sites or SITES_PER_RUN[setting.kind]
            count = setting.samples or max(sites // topology.num_points, 1)
            for labeler in setting.labelers:
                coupling, base = prepare(setting, lattice.name, topology, labeler, count)
                samples = np.arange(count, dtype=np.uint64)
                for place in places:
                    yield _Case(coupling, samples, place, base.at(place, stage=stage))


def time_grids(setting: Setting) -> Iterator[TimeRecord]:
    """Time rows at several numbers of p, compared with the first number."""
    numbers = setting.points or _POINTS
    name = "one p" if numbers[0] == 1 else f"{numbers[0]} p"
    for case in _cases(setting, "grid", "honeycomb square triangular", 1.0):
        yield from compare_with_first(map(partial(case.time_grid, setting), numbers), name)


def time_thresholds(setting: Setting) -> Iterator[TimeRecord]:
    """Time exact thresholds of samples, compared with their rows."""
    for case in _cases(setting, "threshold", "honeycomb", 1.0):
        row = case.time_grid(setting, 1, "row")
        yield row
        window = make_grid(case.place.p, case.coupling.labeler.batch.topology, 3)
        ends = p_to_threshold(window[0]), p_to_threshold(window[-1])

        def work(case: _Case = case, ends: tuple[int, int] = ends) -> None:
            find_thresholds(case.coupling, XORWOW, SEED, case.samples, ends)

        times = time_calls(work, setting.kind, setting.runs)
        yield case.base.timed(times, part="T").compared(row, "row")


def time_row_kernels(setting: Setting) -> Iterator[TimeRecord]:
    """Time every CUDA kernel of a row and of labels."""
    for case in _cases(setting, "kernels", "honeycomb square triangular", 0.5, 1.0, 1.5):
        works = make_works(case.coupling, case.samples.size)(case.place.p)
        works = {"row": works["measure"], "labels": works["labels"]}
        yield from time_call_kernels(setting, case.base, works)


def time_graphs(setting: Setting) -> Iterator[TimeRecord]:
    """Time labels and rows of a lattice and of its list of neighbours, for the same samples."""
    parts = {"labels": "labels", "measure": "row"}
    labeler = setting.labelers[0] or "four_step"
    options: Any = {"labeler": labeler, "stages": tuple(parts)}
    for lattice in setting.choose_lattices("honeycomb"):
        places = setting.choose_places(lattice, 1.0)
        for size in setting.sizes or setting.choose_sizes()[-1:]:
            computed = make_topology(lattice, size, setting.boundary)
            first: dict[tuple[float | None, str], TimeRecord] = {}
            for form, topology in (("lattice", computed), ("list", computed.explicit())):
                for one in time_topology(setting, lattice.name, topology, places, **options):
                    part = f"{parts[one.stage]}:{form}"
                    timed = replace(one, stage="graph", part=part, shape=computed.shape)
                    other = first.setdefault((one.p, one.stage), timed)
                    yield timed if other is timed else timed.compared(other, "lattice")


# Slabs


def layer_shape(points: int, axes: int) -> tuple[int, ...]:
    """Return the shape of a layer of about this many points, as even as powers of two allow."""
    if axes == 1:
        return (max(points, 1),)
    side = 1 << max(points.bit_length() - 1, 0) // axes
    return (side, *layer_shape(points // side, axes - 1))


def time_slabs(setting: Setting) -> Iterator[TimeRecord]:
    """Time a slab in one piece, a slab of a row, a single interface, and a join of two interfaces.

    In a row of slabs, interfaces are joined while the next slab is labeled.  On CUDA the kernels of
    an interface and of a join follow, by device events.
    """
    for lattice in setting.choose_lattices("square", "cubic"):
        for boundary in setting.boundaries:
            for layers in setting.layers or _LAYERS.get(lattice.dimension, (8,)):
                for place in setting.choose_places(lattice, 1.0):
                    yield from _slab_times(setting, lattice, boundary, layers, place)


def _slab_times(
    setting: Setting, lattice: Lattice, boundary: str, layers: int, place: Place
) -> Iterator[TimeRecord]:
    """Yield the times of a lattice of SLABS slabs; every call draws another sample."""
    setting.device.open()
    kind, threshold = setting.kind, p_to_threshold(place.p)
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

    base = TimeRecord(
        stage="slabs",
        lattice=lattice.name,
        shape=whole.shape,
        num_sites=whole.num_points // SLABS,
        program=boundary,
        device=str(setting.device),
        note=f"per slab of {layers} layers",
    ).at(place)
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


def time_trees(setting: Setting) -> Iterator[TimeRecord]:
    """Time building the trees of tori, reading them, and the tree of a random graph.

    On CUDA the kernels of the first two follow, by device events.  Times of the graph include the
    copy of its weights from the host.
    """
    setting.device.open()
    for lattice in setting.choose_lattices("square", "honeycomb", "triangular", "cubic"):
        sizes = setting.sizes or (_TREE_SIZES[setting.kind].get(lattice.dimension, 16),)
        for size in sizes:
            yield from _torus_times(setting, lattice, size)
    yield _graph_time(setting)


def _torus_times(setting: Setting, lattice: Lattice, size: int) -> Iterator[TimeRecord]:
    kind, method = setting.kind, setting.labelers[0]
    topology = make_topology(lattice, size, "periodic")
    count = setting.samples or max((setting.sites or _TREE_SITES[kind]) // topology.num_points, 1)
    trees = new_trees(method, kind, topology, capacity=count)
    count = min(count, trees.capacity)
    samples = np.arange(count, dtype=np.uint64)
    program = method or DEFAULT_TREE_METHOD[kind]
    base = setting.make_record("trees", lattice.name, topology, program=program, samples=count)
    works: dict[str, Callable[[], object]] = {"build": lambda: trees.build(XORWOW, SEED, samples)}
    kinds = ("periodic",) * lattice.dimension
    reader = readings_class(method, kind, Extent.of_topology(topology), kinds)
    if reader is not None:
        readings = reader(trees)
        works["read"] = lambda: readings.read(count)
    calls = (
        base.timed(time_calls(work, kind, setting.runs), part=part) for part, work in works.items()
    )
    yield from compare_with_first(calls, "building")
    yield from time_call_kernels(setting, base, works)


def _graph_time(setting: Setting) -> TimeRecord:
    kind, method = setting.kind, setting.labelers[0]
    sites = min(setting.sites or _GRAPH_SITES[kind], _GRAPH_SITES[kind])
    random = np.random.default_rng(SEED)
    ends = random.integers(0, sites, (_BONDS_PER_SITE * sites, 2))
    topology = graph_topology(sites, ends[ends[:, 0] != ends[:, 1]])
    keys = values_to_keys(random.integers(1, 2**31, 32 * topology.exists.size))
    trees = new_trees(method, kind, topology)
    times = time_calls(lambda: trees.build_given(keys), kind, setting.runs)
    program = method or DEFAULT_TREE_METHOD[kind]
    note = f"{topology.num_bonds} bonds of given weights"
    base = setting.make_record("trees", "graph", topology, program=program)
    return base.timed(times, part="given", note=note)


# Spins


def time_sweeps(setting: Setting) -> Iterator[TimeRecord]:
    """Time sweeps of spins: open bonds, clusters, rows on the host, and new spins.

    Lattices are periodic; chains start at random, and relax before anything is timed.  On the CPU
    one chain is swept at a time.
    """
    for lattice in setting.choose_lattices("square"):
        for size in setting.choose_sizes():
            for labeler in setting.labelers:
                yield from _sweep_times(setting, lattice, size, labeler)


def _sweep_times(
    setting: Setting, lattice: Lattice, size: int, labeler: str | None
) -> Iterator[TimeRecord]:
    topology, kind = make_topology(lattice, size, "periodic"), setting.kind
    rule = setting.update.rule(setting.model.states)
    chains = new_chains(labeler, kind, topology, rule, capacity=setting.chains)
    count = min(setting.chains, chains.capacity)
    spins = topology.num_points * count
    sweeps = min(max(_SPINS_PER_RUN[kind] // spins, _LEAST_SWEEPS), _MOST_SWEEPS)
    # Only whole captured graphs.
    sweeps -= sweeps % _LEAST_SWEEPS
    base = setting.make_record(
        f"{setting.model}:{setting.update}",
        lattice.name,
        topology,
        program=serving_labeler(labeler, kind, topology),
        samples=count,
        note=f"{sweeps} sweeps a run",
    )
    for place in setting.choose_places(lattice, 1.0):
        seeds = np.uint64(1), np.uint64(2), np.uint64(3)
        threshold = np.uint64(p_to_threshold(place.p))
        keys = [Chain(*seeds, np.uint64(number), threshold) for number in range(count)]
        chains.begin(XORWOW, keys, [True] * count)
        chains.advance(_BURN_IN)
        times = time_runs(make_timer(setting.device), partial(chains.advance, sweeps), setting.runs)
        yield base.at(place).timed(times / sweeps)
