"""Compile every CUDA kernel for sm_90 and print registers, shared memory, stack and spills.

    python scripts/kernel_report.py

No GPU is needed: the labelers run on host arrays, every kernel launch is recorded instead of made,
and kernels are compiled for the types of their arguments, so that no signature is written down
twice.  ptxas reports the resources of a kernel; a spill or a stack frame is unintended memory
traffic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import walk_packages
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from numba import cuda, typeof, types
from numba.cuda import dispatcher

from percolab import (
    bonds,
    configurations,
    coupled,
    flows,
    labelers,
    measure,
    papers,
    parts,
    spins,
    trees,
)
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS
from percolab.coupled import SampleBlocks, new_coupling
from percolab.kernels.launches import Launches
from percolab.labelers import LABELERS
from percolab.labelers.forest import Reading
from percolab.lattices.geometry import Geometry
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.measure.rows import SPANNING
from percolab.spins.update import Update
from percolab.spins.words import Chain

#: The rooms that have kernels.
ROOMS = (
    bonds,
    measure,
    labelers,
    flows,
    coupled,
    parts,
    spins,
    trees,
    papers,
    configurations,
)
COMPUTE_CAPABILITY = (9, 0)
ARCHITECTURE = "sm_90a"
_MAKE_SCANNED = "percolab.labelers.scan_cuda.make_scan_lattice"


@dataclass(frozen=True)
class Launch:
    """A kernel, the types of its arguments, and the kind of topology for which it was launched."""

    name: str
    function: Any
    signature: tuple[types.Type, ...]
    topology: str


@dataclass(frozen=True)
class KernelUsage:
    """The resources of a kernel as reported by ptxas: registers per thread, the rest in bytes."""

    name: str
    topology: str
    registers: int
    shared: int
    stack: int
    spills: int


def topologies() -> dict[str, tuple[Topology, Model]]:
    """Return the kinds of topology and model that kernels are specialised for."""
    square = load_lattice("square")
    # Some labelers do not launch all of their kernels on a lattice that is a single tile.
    bonds = square.topology((20, 20))
    periodic = square.topology((20, 20), ("periodic", "open"))
    graph = graph_topology(8, [(0, 1), (1, 2), (0, 2)], source=[0], target=[7])
    return {
        "open": (bonds, BOND),
        "vacant": (replace(bonds, occupied=bonds.occupied & ~np.uint32(1)), BOND),
        "periodic": (periodic, BOND),
        "graph": (graph, BOND),
        "open, sites": (bonds, Model.parse("site")),
        "periodic, sites": (periodic, Model.parse("site")),
        "open, classes": (bonds, Model.parse("bond:y=0.3")),
        "graph, sites": (graph, Model.parse("site")),
    }


def kernels_of(module: Any) -> dict[str, Any]:
    """Return the kernels in a module's namespace, without device functions."""
    return {
        name: item
        for name, item in vars(module).items()
        if isinstance(item, dispatcher.CUDADispatcher) and not item.targetoptions["device"]
    }


class HostArray(np.ndarray):
    """Host memory with the copying methods of a device array."""

    def copy_to_host(self, target: np.ndarray | None = None, stream: Any = None) -> np.ndarray:
        """Return the array, copied to the target if there is one."""
        if target is not None:
            target[...] = self
        return np.array(self)

    def copy_to_device(self, data: np.ndarray, stream: Any = None) -> None:
        """Take the data."""
        self[...] = data

    def is_c_contiguous(self) -> bool:
        """Return whether the array is contiguous."""
        return self.flags.c_contiguous


def _host_array(shape: Any, dtype: Any) -> HostArray:
    return np.zeros(shape, dtype).view(HostArray)


def _type_of(argument: Any) -> types.Type:
    if hasattr(argument, "_fields"):
        return types.NamedTuple(tuple(map(_type_of, argument)), type(argument))
    if isinstance(argument, tuple):
        return types.BaseTuple.from_types([_type_of(item) for item in argument])
    return typeof(argument.view(np.ndarray) if isinstance(argument, np.ndarray) else argument)


class _Recorder:
    """A replacement of a kernel that records ``kernel[grid, threads](*arguments)`` only."""

    def __init__(self, kernel: Any, topology: str, launches: list[Launch]) -> None:
        self.kernel, self.topology, self.launches = kernel, topology, launches

    def __getitem__(self, configuration: Any) -> _Recorder:
        return self

    def __call__(self, *arguments: Any) -> None:
        function = self.kernel.py_func
        signature = tuple(map(_type_of, arguments))
        self.launches.append(Launch(function.__name__, function, signature, self.topology))


class _Event:
    """A replacement of an event, which has always occurred."""

    def record(self, stream: Any) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""


def no_geometry(topology: Topology) -> Geometry:
    """Return a geometry in which all sites of a topology have the same place."""
    axes = topology.num_axes
    places = np.zeros((axes, topology.num_points), np.int32)
    return Geometry(places, np.zeros((axes, axes), np.int64), 0)


@contextmanager
def on_host(
    launches: list[Launch], kind: str, made: Callable[[np.ndarray], None] = lambda array: None
) -> Iterator[None]:
    """Let CUDA labelers run on host arrays, with launches recorded instead of made.

    made: called with every array that would be in the device's memory.
    """

    def array(shape: Any, dtype: Any) -> HostArray:
        found = _host_array(shape, dtype)
        made(found)
        return found

    def copy(data: np.ndarray) -> HostArray:
        found = np.array(data).view(HostArray)
        made(found)
        return found

    def stream() -> SimpleNamespace:
        return SimpleNamespace(synchronize=lambda: None)

    with ExitStack() as stack:
        for place in kernel_modules():
            for name, kernel in kernels_of(place).items():
                recorder = _Recorder(kernel, kind, launches)
                stack.enter_context(mock.patch.object(place, name, recorder))
        for name, substitute in (
            ("device_array", array),
            ("pinned_array", _host_array),
            ("to_device", copy),
            ("stream", stream),
            ("event", _Event),
        ):
            stack.enter_context(mock.patch.object(cuda, name, substitute))
        stack.enter_context(mock.patch("percolab.kernels.launches.urgent_stream", stream))
        for module, free in (
            *dict.fromkeys(("flow_batch", "large_paths", "dual_bridges_cuda"), 0).items(),
            ("dual_flow_cuda", 2**32),
        ):
            place = f"percolab.flows.{module}.free_memory"
            stack.enter_context(mock.patch(place, return_value=free))
        # Run work directly instead of capturing it as a graph.
        direct = mock.patch.object(Launches, "call", lambda self, key, work: work())
        stack.enter_context(direct)
        yield


def prim_launches() -> list[Launch]:
    """Return the launches of all variants of Guo's Prim, which take any topology as a graph."""
    from percolab.papers.guo2011.min_reduction import min_reduction
    from percolab.papers.guo2011.prim_cuda import PersistentPrim, PrimCuda

    launches: list[Launch] = []
    sites = 600
    topology = graph_topology(sites, [(i, i + 1) for i in range(sites - 1)])
    keys = np.zeros(32 * topology.exists.size, np.uint64)
    with on_host(launches, "graph"):
        for made in (
            PrimCuda(topology),
            PrimCuda(topology, primitive=False),
            PersistentPrim(topology),
            PersistentPrim(topology, most_shared=0),
        ):
            made.build(GENERATORS["xorwow"], 0, np.zeros(1, np.uint64))
            made.build_given(keys)
            made.words(1)
        min_reduction(keys, np.zeros(keys.size, np.uint32))
    return launches


def launches_of(labeler: str, kind: str, topology: Topology, model: Model) -> list[Launch]:
    """Return the launches that label and measure one sample of a topology at two p."""
    from percolab.coupled.tiled import TiledCoupling

    launches: list[Launch] = []
    with on_host(launches, kind):
        coupling = new_coupling(labeler, "cuda", topology, model, tally=True)
        key, sample = (GENERATORS["xorwow"], 0), np.zeros(1, np.uint64)
        grid = np.array([1, 2], np.uint64)
        coupling.rows(*key, sample, grid[:1])
        coupling.grid_rows(*key, sample, grid)
        coupling.labeler.join(1, Reading.LABELS).labels()
        if topology.shape:
            coupling.radii_rows(*key, sample, grid[:1], no_geometry(topology))
        if hasattr(coupling, "radii_sums"):
            blocks = SampleBlocks(sample, 1)
            coupling.radii_sums(*key, blocks, grid[:1], no_geometry(topology))
        if topology.open_axes:
            window = *key, sample, grid[:1], grid[1:]
            coupling.scan_windows(*window)
            if isinstance(coupling, TiledCoupling):
                # Call it directly, since this lattice is small enough for a method without tiles.
                TiledCoupling.scan_windows(coupling, *window)
        if model == BOND and coupling.labeler.is_capturable:
            _sweep_spins(coupling.labeler)
    return launches


def _sweep_spins(labeler: Any) -> None:
    """Begin chains of spins and do a sweep of each, by updates of all and of chosen clusters."""
    from percolab.spins.chains import new_chains
    from percolab.spins.chains_cuda import CudaChains

    one, topology = np.uint64(1), labeler.batch.topology
    for update in (Update(), Update("wolff", 1)):
        rule = update.rule(3)
        # Without a tally each chain may be swept by one block.
        for chains in (CudaChains(labeler, rule), new_chains(labeler.name, "cuda", topology, rule)):
            chains.begin(GENERATORS["xorwow"], [Chain(one, one, one, one, one)], [True])
            chains.advance(1)


def tree_launches(kind: str, topology: Topology) -> list[Launch]:
    """Return the launches that find and read a tree of a sample, and find one of given keys."""
    from percolab.trees.boruvka_cuda import BoruvkaCuda
    from percolab.trees.readings_cuda import ReadingsBatch

    launches: list[Launch] = []
    with on_host(launches, kind):
        for tiled in (True, False):
            trees = BoruvkaCuda(topology, tiled=tiled)
            trees.build(GENERATORS["xorwow"], 0, np.zeros(1, np.uint64))
            ReadingsBatch(trees).read(1)
            trees.build_given(np.zeros(32 * topology.exists.size, np.uint64))
    return launches


def level_launches(kind: str, topology: Topology) -> list[Launch]:
    """Return the launches that find the levels of values of sites and of bonds, and their paths."""
    from percolab.trees.level_labeler_cuda import CudaLevelLabeler

    launches: list[Launch] = []
    module = "percolab.trees.level_labeler_cuda"
    free = mock.patch(f"{module}.free_memory", return_value=2**62)
    # Every count is 1.
    ones = lambda labeler, array: np.ones(array.size, array.dtype)  # noqa: E731
    read = mock.patch(f"{module}.CudaLevelLabeler._read", ones)
    blocks = mock.patch(f"{module}._most_blocks", return_value=1)
    shapes = (topology.num_points,), (topology.num_classes, topology.num_points)
    with on_host(launches, kind), free, read, blocks:
        for shape, dtype in zip(shapes, (np.float32, np.uint8), strict=True):
            labeler = CudaLevelLabeler(topology, np.zeros(shape, dtype), above=False)
            labeler.candidates()
            labeler.label(dtype(0))
            labeler.label_between(None, dtype(0))
            labeler.find_path(dtype(0), topology.open_axes[0])
            labeler.find_loop(dtype(0), 0, 0)
    return launches


def flow_launches(kind: str, topology: Topology) -> list[Launch]:
    """Return the launches that read the flow through a sample."""
    from percolab.flows.readers import Backbone, Bridges, Path

    launches: list[Launch] = []
    keys = GENERATORS["xorwow"], 0, np.zeros(1, np.uint64), np.ones(1, np.uint64)
    with on_host(launches, kind):
        coupling = new_coupling(None, "cuda", topology)
        # Launch both variants: a block for each sample, and all blocks for one sample.
        for is_large in (False, True):
            rule = mock.patch("percolab.flows.flow_batch.is_large", return_value=is_large)
            with rule:
                for reader in (Bridges, Backbone, Path):
                    reader(None, ()).rows(coupling, *keys)
        if topology.shape:
            for reader in (Bridges, Backbone):
                reader(load_lattice("square"), topology.shape).rows(coupling, *keys)
    return launches


def small_launches(kind: str, topology: Topology, model: Model) -> list[Launch]:
    """Return the launches that measure samples of a small lattice."""
    launches: list[Launch] = []
    if topology.shape:
        with on_host(launches, kind):
            blocks, begins = SampleBlocks(np.arange(2, dtype=np.uint64), 1), np.array([0, 2])
            grid, picks = np.array([1, 2], np.uint64), np.zeros((4, 2), np.int64)
            squared = np.array([True, False])
            # Scan by single threads, and by teams of threads, at one p and several.
            for scanned in (nullcontext(), mock.patch(_MAKE_SCANNED, return_value=None)):
                with scanned:
                    coupling = new_coupling("tiled", "cuda", topology, model)
                for steps in (1, 2):
                    given = blocks, grid[:steps], picks, squared, begins
                    coupling.block_sums(GENERATORS["xorwow"], 0, *given)
            # Only wrapping is measured.
            torus = load_lattice("square").topology((20, 20), ("periodic", "periodic"))
            coupling = new_coupling("tiled", "cuda", torus, model, wraps_alone=True)
            coupling.block_sums(GENERATORS["xorwow"], 0, blocks, grid, picks + SPANNING, squared)
    return launches


def image_launches() -> list[Launch]:
    """Return the launches that label an image on a device."""
    from percolab.configurations.device_arrays import label_device_array

    launches: list[Launch] = []
    image = np.ones((40, 33), np.uint8).view(HostArray)
    viewed = mock.patch("percolab.configurations.device_arrays._viewed")
    with on_host(launches, "image"), viewed as given:
        given.return_value = nullcontext((image, 0))
        label_device_array(image)
    return launches


def interface_launches() -> list[Launch]:
    """Return the launches that join two interfaces with tallies, on tori, where they have codes."""
    from percolab.parts.interface import Face, Interface, InterfaceSums
    from percolab.parts.join_cuda import InterfacesCuda, to_device

    launches: list[Launch] = []
    one, sums = np.zeros(1, np.uint32), InterfaceSums.empty(1)
    with on_host(launches, "front"):
        face = Face(one, np.zeros(1, np.int64))
        low, high = (
            to_device(Interface(layer, 1, 2, 2, face, face, np.ones(1, np.uint64), one, sums))
            for layer in range(2)
        )
        InterfacesCuda().join(low, high)
    return launches


def slab_launches() -> list[Launch]:
    """Return the launches that make a slab's interface, whose words begin at any bit."""
    from percolab.parts.parts import Parts, Whole
    from percolab.parts.raster import SampleKey
    from percolab.parts.tiled_cuda import SlabTiled

    launches: list[Launch] = []
    open_, periodic = ("open",) * 2, ("periodic",) * 2
    cases = (
        ("slab", open_, BOND),
        ("slab, sites", periodic, Model.parse("site")),
        ("slab, classes", open_, Model.parse("bond:y=0.3")),
    )
    for kind, boundary, model in cases:
        whole = Whole(load_lattice("square"), (33, 40), boundary, model)
        with on_host(launches, kind):
            slabs, parts = SlabTiled(whole, 20, tally=True), Parts(whole)
            for first in (0, 20):
                slabs.make_interface(
                    parts.part(first, 20), SampleKey(GENERATORS["xorwow"], 0, 0, 1)
                )
    return launches


def all_launches() -> list[Launch]:
    """Return one launch of every kernel for every signature that any labeler launches it with."""
    found: dict[tuple[str, tuple[types.Type, ...]], Launch] = {}
    for launch in (
        *prim_launches(),
        *interface_launches(),
        *slab_launches(),
        *image_launches(),
    ):
        found.setdefault((launch.name, launch.signature), launch)
    for entry in LABELERS.values():
        kinds = topologies() if "cuda" in entry.classes else {}
        if entry.bonds:
            # Labelers of papers share their other kernels with labelers that are seen anyway.
            kinds = {"periodic": kinds["periodic"]}
        for kind, measured in kinds.items():
            for launch in launches_of(entry.name, kind, *measured):
                found.setdefault((launch.name, launch.signature), launch)
    for kind, (topology, model) in topologies().items():
        for launch in small_launches(kind, topology, model):
            found.setdefault((launch.name, launch.signature), launch)
        if model == BOND:
            flow = flow_launches(kind, topology) if topology.open_axes else []
            levels = level_launches(kind, topology) if topology.shape else []
            for launch in (*tree_launches(kind, topology), *levels, *flow):
                found.setdefault((launch.name, launch.signature), launch)
    return list(found.values())


def kernel_modules() -> list[Any]:
    """Return all modules of the rooms that have kernels, including those that launch them."""
    return [
        import_module(item.name)
        for room in ROOMS
        for item in walk_packages(room.__path__, f"{room.__name__}.")
    ]


def all_kernels() -> set[str]:
    """Return the names of all kernels."""
    return {name for module in kernel_modules() for name in kernels_of(module)}


@contextmanager
def no_gpu_needed() -> Iterator[None]:
    """Let numba-cuda compile for one compute capability without querying a device."""
    device = SimpleNamespace(compute_capability=COMPUTE_CAPABILITY)
    with mock.patch.object(dispatcher, "get_current_device", return_value=device):
        yield


def usage_of(launch: Launch) -> KernelUsage:
    """Compile and link a launched kernel, and return its resources as reported by ptxas."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    with no_gpu_needed():
        code, _ = cuda.compile(
            launch.function,
            types.void(*launch.signature),
            device=False,
            abi="numba",
            output="ltoir",
            cc=COMPUTE_CAPABILITY,
        )
    options = LinkerOptions(arch=ARCHITECTURE, link_time_optimization=True, ptxas_options=["-v"])
    linker = Linker(ObjectCode.from_ltoir(code), options=options)
    linker.link("cubin")
    return _parsed(launch, linker.get_info_log())


def _parsed(launch: Launch, log: str) -> KernelUsage:
    def total(pattern: str) -> int:
        return sum(int(number) for number in re.findall(pattern, log))

    if "registers" not in log:
        raise RuntimeError(f"ptxas reports nothing about {launch.name}: {log!r}")
    return KernelUsage(
        name=launch.name,
        topology=launch.topology,
        registers=total(r"Used (\d+) registers"),
        shared=total(r"(\d+) bytes smem"),
        stack=total(r"(\d+) bytes stack frame"),
        spills=total(r"(\d+) bytes spill stores") + total(r"(\d+) bytes spill loads"),
    )


def table_of(usages: list[KernelUsage]) -> str:
    """Return a table with a row for every kernel and signature."""
    columns = ("kernel", "topology", "registers", "shared B", "stack B", "spills B")
    width = max(len(usage.name) for usage in usages)
    rows = [columns] + [
        (u.name, u.topology, u.registers, u.shared, u.stack, u.spills) for u in usages
    ]
    line = f"{{:<{width}}}  {{:<15}}  {{:>9}}  {{:>8}}  {{:>7}}  {{:>8}}"
    return "\n".join(line.format(*row) for row in rows)


if __name__ == "__main__":
    print(f"{ARCHITECTURE}, by ptxas")
    print(table_of([usage_of(launch) for launch in all_launches()]))
