"""What sweeps measure of what flows: the readers of bridges, backbone, path and conductance.

A reader takes the open bonds of every sample to the host and works on them there, whatever device
drew them, so that all devices give the same integers.  The terminals are the two sides of the last
open axis, and the source and the target of a graph.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, net_bytes, unpack_open
from percolab.kernels.memory import Memory
from percolab.lattices.extent import Extent
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, UInt64s
from percolab.measure.columns import open_axes
from percolab.measure.measurements import Reader

#: Binary digits of a conductance behind the point.
_DIGITS = 30


class FlowReader(Reader):
    """Reads some numbers of the flow through samples.

    word: of ``--measure``, and the name of its dataset.  numbers: of a :class:`Flow`, in the order
    of the columns.  with_terminals: whether they need any.
    """

    word: ClassVar[str]
    numbers: ClassVar[tuple[str, ...]]
    with_terminals: ClassVar[bool] = True
    #: Memory of one sample beside the net, in bytes a site and a bond.
    site_bytes: ClassVar[int]
    bond_bytes: ClassVar[int] = 2

    def __init__(self, structure: Structure, shape: tuple[int, ...]) -> None:
        self._lock = threading.Lock()
        self._circuit: Circuit | None = None

    @classmethod
    def check(cls, structure: Structure, boundary: Sequence[str]) -> None:
        """Raise InputError where there are no terminals, but some are needed."""
        if cls.with_terminals and not open_axes(boundary):
            what = "an open axis (--boundary)" if structure.is_scalable else "--source and --target"
            raise InputError(f"measure {cls.word}: between two terminals; give {what}")

    @classmethod
    def memory(cls, extent: Extent) -> Memory:
        """Return the memory of the net, and of one sample."""
        bonds = extent.num_classes * extent.num_points
        own = cls.site_bytes * extent.num_points + cls.bond_bytes * bonds
        return Memory(net_bytes(extent) + own)

    def rows(
        self, coupling: Any, generator: int, seed: int, samples: UInt64s, thresholds: UInt64s
    ) -> NDArray[np.int64]:
        """Return the numbers of samples at all thresholds, int64 (n, m, numbers)."""
        batch = coupling.labeler.batch
        circuit = self._of_topology(batch.topology)
        found = np.empty((len(samples), len(thresholds), len(self.numbers)), np.int64)
        for first in range(0, len(samples), batch.capacity):
            part = samples[first : first + batch.capacity]
            for k, threshold in enumerate(thresholds):
                items = batch.fill(generator, seed, part, np.full_like(part, threshold))
                for n, words in enumerate(batch.copy_open_words(items)):
                    is_open = np.empty(len(circuit.bonds.places), np.uint8)
                    unpack_open(words, circuit.bonds.places, is_open)
                    flow = Flow(circuit, is_open, seed, int(part[n]))
                    found[first + n, k] = self.read(flow)
        return found

    def read(self, flow: Flow) -> list[int]:
        """Return the numbers of a sample."""
        return [getattr(flow, name) for name in self.numbers]

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums over the samples of blocks."""
        return {self.word: rows.sum(axis=1)}

    def _of_topology(self, topology: Topology) -> Circuit:
        """Return the one circuit of all threads."""
        with self._lock:
            if self._circuit is None:
                ends: Any = [np.empty(0, np.int32)] * 2
                if self.with_terminals:
                    ends = topology.end_layers[topology.open_axes[-1]]
                self._circuit = Circuit(list_bonds(topology), topology.num_points, *ends)
                # Made before threads ask for it.
                _ = self._circuit.joined if self.with_terminals else self._circuit.net
            return self._circuit


class Bridges(FlowReader):
    """Bonds without which their cluster falls into two."""

    word = "bridges"
    numbers = ("num_bridges",)
    with_terminals = False
    site_bytes = 17


class Backbone(FlowReader):
    """Red bonds, and the bonds on trails and on paths between two sides."""

    word = "backbone"
    numbers = ("num_red", "num_trails", "num_backbone", "num_backbone_sites")
    site_bytes = 47


class Path(FlowReader):
    """The shortest path between two sides, and what is on shortest paths."""

    word = "path"
    numbers = ("length", "num_elastic", "num_elastic_sites")
    site_bytes = 9


class Conductance(FlowReader):
    """The conductance between two sides, the resistance, and the fourth moment of the currents.

    Each is rounded to a multiple of 2^-30, so that sums are exact.
    """

    word = "conductance"
    numbers = ("conductance", "resistance", "current_fourths")
    site_bytes = 60
    #: Marks, conductances, potentials, and lists of neighbours that grow.
    bond_bytes = 120

    def read(self, flow: Flow) -> list[int]:
        """Return the numbers of a sample, in units of 2^-30; 0 where nothing flows."""
        if not flow.conductance:
            return [0, 0, 0]
        found = flow.conductance, flow.resistance, flow.current_moment(4)
        return [round(number * 2**_DIGITS) for number in found]

    def sums(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the sums over the samples of blocks, float64."""
        return {self.word: rows.sum(axis=1) / 2.0**_DIGITS}
