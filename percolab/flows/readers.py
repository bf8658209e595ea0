"""Measurements of the flow in sweeps: readers of bridges, backbone, path and conductance.

On a CUDA device all are counted there except conductances, for which the open bonds of every sample
are copied to the host.  All devices give the same integers.  The terminals are the two sides of the
last open axis unless others are given; for a graph they are its source and target.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.errors import InputError
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, net_bytes, unpack_open
from percolab.flows.tile_net import LEAST_LARGE, tile_bytes
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.lattices.corners import make_corners
from percolab.lattices.dual import make_dual, make_dual_topology
from percolab.lattices.extent import Extent
from percolab.lattices.lattice import Lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.structure import Structure
from percolab.lattices.terminals import find_terminals, parse_terminal
from percolab.lattices.topology import Topology, UInt64s
from percolab.measure.columns import open_axes
from percolab.measure.measurements import Reader
from percolab.measure.tallies import CURRENT_BINS, current_edges, quarter_edges

#: Binary digits after the point of a conductance.
_DIGITS = 30


class FlowReader(Reader):
    """A reader of some numbers of the flow through samples.

    word: of ``--measure``, and the name of the dataset.  numbers: attributes of :class:`Flow`, in
    the order of the columns.  with_terminals: whether they need terminals.
    """

    word: ClassVar[str]
    numbers: ClassVar[tuple[str, ...]]
    with_terminals = True
    #: Memory of one sample without the net, in bytes per site and per bond.
    site_bytes: ClassVar[int]
    bond_bytes: ClassVar[int] = 2
    #: Memory of one sample on a CUDA device, in bytes per site; 0 if samples are not read there.
    device_bytes: ClassVar[int] = 0
    #: The same for a sample that all blocks share, in bytes per node; 0 if that is not done.
    tile_bytes: ClassVar[int] = 0

    def __init__(self, structure: Structure, shape: tuple[int, ...], **ends: str) -> None:
        self._structure, self._shape = structure, shape
        self._ends = dict[str, Any](source=None, target=None) | ends
        self._lock = threading.Lock()
        self._circuit: Circuit | None = None
        self._on_device: Any = None

    @classmethod
    def check(cls, structure: Structure, boundary: Sequence[str], **ends: str) -> None:
        """Raise InputError if terminals are needed but there are none."""
        axes = open_axes(boundary)
        for key, text in ends.items():
            parse_terminal(key, text, len(boundary), axes)
        if cls.with_terminals and not axes and len(ends) < 2:
            what = "an open axis (--boundary)" if structure.is_scalable else "--source and --target"
            raise InputError(f"measure {cls.word} needs two terminals: give {what}")

    @classmethod
    def memory(cls, extent: Extent) -> Memory:
        """Return the memory of the net, and of one sample."""
        bonds = extent.num_classes * extent.num_points
        own = cls.site_bytes * extent.num_points + cls.bond_bytes * bonds
        # A device has every bond at both of its ends, and where each site's bonds begin.
        device = 16 * bonds + (8 + cls.device_bytes) * extent.num_points if cls.device_bytes else 0
        if cls.tile_bytes and extent.num_points >= LEAST_LARGE:
            device = max(device, tile_bytes(extent, cls.tile_bytes))
        return Memory(net_bytes(extent) + own, device)

    def read_batch(self, labeler: Any, seed: int, samples: UInt64s) -> Any:
        batch = labeler.batch
        # Kernels number the ends of all bonds, two each, with 32 bits.
        fits = 64 * batch.topology.num_bond_words < 2**32
        if self.device_bytes and fits and not isinstance(batch, CpuBatch):
            return self._read_on_device(labeler, len(samples))
        circuit, rows = self._of_topology(batch.topology), []
        for sample, words in zip(samples, batch.copy_open_words(len(samples)), strict=True):
            is_open = np.empty(len(circuit.bonds.places), np.uint8)
            unpack_open(words, circuit.bonds.places, is_open)
            rows.append(self.read(Flow(circuit, is_open, seed, int(sample))))
        return rows

    def _read_on_device(self, labeler: Any, entries: int) -> NDArray[np.int64]:
        """Return the numbers of the first entries of a batch on a CUDA device."""
        if self._on_device is None:
            self._on_device = self._make_on_device(labeler)
        rows: NDArray[np.int64] = self._on_device.rows(entries)
        return rows

    def _make_on_device(self, labeler: Any) -> Any:
        """Return an object that reads the samples of a labeler's batch on a CUDA device."""
        circuit = self._make_circuit(labeler.batch.topology)
        make = load("flows.flow_batch:make_reading")
        return make(labeler, circuit, self.word, len(self.numbers))

    def read(self, flow: Flow) -> list[int]:
        """Return the numbers of a sample."""
        return [getattr(flow, name) for name in self.numbers]

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums over the samples of blocks."""
        return {self.word: rows.sum(axis=1)}

    def _of_topology(self, topology: Topology) -> Circuit:
        """Return the circuit that all threads share."""
        with self._lock:
            if self._circuit is None:
                self._circuit = self._make_circuit(topology)
                if self.with_terminals:
                    # Make the joined net before threads need it.
                    _ = self._circuit.joined
            return self._circuit

    def _make_circuit(self, topology: Topology) -> Circuit:
        """Return the bonds and terminals of a topology."""
        terminals: Any = [np.empty(0, np.int32)] * 2
        if self.with_terminals:
            terminals = find_terminals(topology, self._ends)
        return Circuit(list_bonds(topology), topology.num_points, *terminals)


class Bridges(FlowReader):
    """Bonds whose removal splits their cluster in two."""

    word = "bridges"
    numbers = ("num_bridges",)
    with_terminals = False
    site_bytes = 20
    device_bytes = 24
    tile_bytes = 48

    @classmethod
    def add_needs(cls, structure: Structure, needs: Needs) -> Needs:
        """Return the needs with labels added: a search on a CUDA device begins at all roots."""
        return needs._replace(labels=True)

    def _make_on_device(self, labeler: Any) -> Any:
        """Return a counter of bridges, which uses labels of the dual if the lattice is planar."""
        lattice, topology = self._structure, labeler.batch.topology
        if _has_dual(lattice, topology):
            dual = make_dual_topology(lattice, topology)
            return load("flows.dual_bridges_cuda:DualBridges")(labeler.batch, dual)
        return super()._make_on_device(labeler)


class BridgeFree(Bridges):
    """The largest cluster without bridges."""

    word = "bridge_free"
    numbers = ("largest_bridge_free",)
    site_bytes = 48
    bond_bytes = 50
    # The dual only counts bridges; words tell which bonds they are.
    _make_on_device = FlowReader._make_on_device


class Backbone(FlowReader):
    """Red bonds, and the bonds on trails and on paths between two sides."""

    word = "backbone"
    numbers = ("num_red", "num_trails", "num_backbone", "num_backbone_sites")
    site_bytes = 47
    device_bytes = 40
    tile_bytes = 57

    def _make_on_device(self, labeler: Any) -> Any:
        """Return a reader, which uses labels of the dual between two sides of a planar lattice."""
        lattice, topology = self._structure, labeler.batch.topology
        if _has_dual(lattice, topology) and not any(self._ends.values()):
            corners, make = make_corners(lattice, topology), load("flows.dual_flow_cuda:make_flow")
            reading = make(labeler.batch, lattice, corners) if corners else None
            if reading:
                return reading
        return super()._make_on_device(labeler)


class Path(FlowReader):
    """The shortest path between the terminals, and the bonds and sites on all shortest paths."""

    word = "path"
    numbers: ClassVar[tuple[str, ...]] = ("length", "num_elastic", "num_elastic_sites")
    site_bytes = 9
    device_bytes = 8


class Connected(Path):
    """Whether open bonds connect the terminals."""

    word = "connected"
    numbers = ("length",)

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the number of samples with a path, for every block."""
        return {self.word: (rows > 0).sum(axis=1)}


class PathLengths(Path):
    """A histogram of the lengths of shortest paths; bins are quarters of those of sizes."""

    word = "path_lengths"
    numbers = ("length",)

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the histogram of every block, without samples that have no path."""
        # A length of 0, that is, no path, is below the first bin.
        edges = quarter_edges(prod(self._shape))
        bins = np.searchsorted(edges, rows[..., 0], side="right")
        counts = [(bins == n).sum(axis=1) for n in range(1, edges.size)]
        return {self.word: np.stack(counts, axis=-1)}


class Conductance(FlowReader):
    """The conductance between the terminals, the resistance, and the currents' fourth moment.

    Each is rounded to a multiple of 2^-30, so that sums are exact.
    """

    word = "conductance"
    numbers: ClassVar[tuple[str, ...]] = ("conductance", "resistance", "current_fourths")
    site_bytes = 60
    #: Marks, conductances, potentials, and lists of neighbours that grow.
    bond_bytes = 120

    def read(self, flow: Flow) -> list[int]:
        """Return the numbers of a sample in units of 2^-30; 0 if nothing flows."""
        if not flow.conductance:
            return [0, 0, 0]
        values = flow.conductance, flow.resistance, flow.current_moment(4)
        return [round(number * 2**_DIGITS) for number in values]

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums over the samples of blocks, float64."""
        return {self.word: rows.sum(axis=1) / 2.0**_DIGITS}


class Currents(Conductance):
    """A histogram of the bonds' shares of the current, the largest share, and moments.

    The last four numbers are rounded as conductances are.
    """

    word = "currents"
    numbers = (*["currents"] * CURRENT_BINS, "largest_current", "firsts", "cubes", "sixths")

    def read(self, flow: Flow) -> list[int]:
        """Return the number of bonds in every bin, and the other numbers in units of 2^-30."""
        if not flow.conductance:
            return [0] * len(self.numbers)
        shares = np.abs(flow.currents[flow.backbone])
        bins = np.searchsorted(-current_edges(), -shares, side="right") - 1
        values = flow.largest_current, *map(flow.current_moment, (1, 3, 6))
        moments = [round(number * 2**_DIGITS) for number in values]
        return [*np.bincount(bins, minlength=CURRENT_BINS).tolist(), *moments]

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums over the samples of blocks, int64 and float64."""
        whole = rows.sum(axis=1)
        moments = whole[..., CURRENT_BINS:] / 2.0**_DIGITS
        return {self.word: whole[..., :CURRENT_BINS], "current_moments": moments}


def _has_dual(structure: Structure, topology: Topology) -> TypeGuard[Lattice]:
    """Return whether the dual of a lattice with an open axis is a lattice that can be labeled."""
    if not (isinstance(structure, Lattice) and topology.open_axes and is_drawn_planar(structure)):
        return False
    # The dual of some planar lattices is not a lattice that percolab can describe.
    with suppress(InputError):
        make_dual(structure, name="dual")
        return True
    return False
