"""Clusters of tori and of their duals: an identity that holds in every sample, without an error.

A bond of the dual is open where the bond that it crosses is closed.  With V sites, E open bonds, C
clusters, and C* clusters of the dual, C - C* - V + E is 1 where a cluster winds in two independent
directions, -1 where none winds, and 0 else.  C and the winding are those of a labeler, C* is
counted by scipy.

Source: S. Mertens and R. M. Ziff, Phys. Rev. E 94, 062152 (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.flows.net import list_bonds
from percolab.kernels.registry import load
from percolab.lattices.dual import find_faces
from percolab.lattices.lattice import Lattice, lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.topology import Topology
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS
from percolab.validation.check import Check, Conditions, Outcome, coupling_for, differing
from percolab.validation.parity import list_labelers

#: Grid points along x and y at least, below and across the edges of words and tiles.
_SHAPES = ((2, 3), (7, 5), (33, 34), (130, 70))
#: Faces whose clusters are counted at a time.
_FACES = 2**21
#: Whose samples and duals are also labeled on a CUDA device alone, and cells along each axis.
_ON_DEVICE, _CELLS = ("square", "triangular", "kagome"), 8
#: Of the bond threshold.
_PARTS = (0.6, 1.0, 1.1)


class Dual(NamedTuple):
    """The dual of a torus: a site in every face, a bond across every bond.

    places: int64 (m,), where the words of a sample have the bonds of the lattice.  faces: int32
    (m, 2), the two that each lies between.
    """

    places: NDArray[np.int64]
    faces: NDArray[np.int32]

    @classmethod
    def of_topology(cls, lattice: Lattice, topology: Topology) -> Dual:
        """Return the dual of a torus of a lattice that is drawn without crossings."""
        return cls(list_bonds(topology).places, find_faces(lattice, topology))

    def count_clusters(self, words: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the clusters of every sample, int64 (n,); words: uint32 (n, words), its bonds."""
        number = int(self.faces.max()) + 1
        parts = np.array_split(words, -(-words.shape[0] * number // _FACES))
        return np.concatenate([self._count(part, number) for part in parts])

    def _count(self, words: NDArray[np.uint32], number: int) -> NDArray[np.int64]:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
        sample, bond = np.nonzero(bits[:, self.places] == 0)
        ends = (sample[:, None] * number + self.faces[bond]).T
        whole = len(words) * number
        links = coo_array((np.ones(sample.size, np.int8), ends), shape=(whole, whole))
        labels = connected_components(links, directed=False)[1]
        # A cluster lies in one sample, that of its first face.
        first = np.unique(labels, return_index=True)[1]
        return np.bincount(first // number, minlength=len(words))


def count_violations(
    labeler: Any, dual: Dual, seed: int, samples: NDArray[np.uint64], p: float
) -> int:
    """Return in how many samples of a labeler's torus the identity does not hold."""
    batch = labeler.batch
    opened, rows = [], []
    for first in range(0, samples.size, batch.capacity):
        part = samples[first : first + batch.capacity]
        entries = batch.fill(XORWOW, seed, part, np.full(part.size, p_to_threshold(p), np.uint64))
        opened.append(batch.copy_open_words(entries).reshape(part.size, -1))
        rows.append(labeler.join(entries).rows().copy())
    words, measured = np.concatenate(opened), np.concatenate(rows)
    flags = measured[:, SPANNING]
    in_two, in_any = flags >> TWO_DIRECTIONS & 1, flags >> FIRST_WRAPPING & 3
    winds = np.where(in_two, 1, np.where(in_any, 0, -1))
    bonds = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    sites = batch.topology.num_sites
    return int((measured[:, CLUSTERS] - dual.count_clusters(words) - sites + bonds != winds).sum())


def _identity(conditions: Conditions) -> Iterator[Outcome]:
    for lattice in filter(is_drawn_planar, map(load_lattice, lattice_names())):
        yield from _identity_on(lattice, conditions)


def _identity_on(lattice: Lattice, conditions: Conditions) -> Iterator[Outcome]:
    device, name = conditions.device, lattice.name
    count = conditions.count(30, 3000)
    samples = np.arange(count, dtype=np.uint64)
    threshold = lattice.threshold("bond")
    middle = 0.5 if threshold is None else threshold.value
    # The other lattices differ in their bonds alone, of which few words and tiles have all.
    shapes = _SHAPES if name == "square" else _SHAPES[:-1]
    # The reference takes a hundred times as long; parity compares the others with it.
    names = sorted({*list_labelers(device.kind, lattice)} - {"reference"})
    wrong = dict.fromkeys(names, 0)
    for least in shapes:
        shape = tuple(-(-n // cell) * cell for n, cell in zip(least, lattice.cell))
        topology = lattice.topology(shape, ("periodic", "periodic"))
        dual = Dual.of_topology(lattice, topology)
        for labeler_name in names:
            coupling = coupling_for(device, topology, most=count, name=labeler_name)
            for part in _PARTS:
                seed = conditions.stream_seed("duals", name, shape, part)
                own = count_violations(coupling.labeler, dual, seed, samples, part * middle)
                wrong[labeler_name] += own
    note = f"{count * len(shapes) * len(_PARTS)} samples"
    for labeler_name in names:
        yield differing(f"C - C* - V + E, {labeler_name} on {name}", wrong[labeler_name], note)
    if device.kind == "cuda" and name in _ON_DEVICE:
        topology = lattice.topology(tuple(_CELLS * n for n in lattice.cell), ("periodic",) * 2)
        duals = load("validation.duals_cuda:SmallDuals")(lattice, topology)
        count, seed = conditions.count(2**10, 2**22), conditions.stream_seed("duals", name)
        own = duals.count_violations(seed, 0, count, middle)
        yield differing(f"C - C* - V + E, {name} and its dual", own, f"{count} samples")


CHECKS = (Check("dual clusters", "planar lattices", _identity),)
