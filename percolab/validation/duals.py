"""Clusters of tori and of their duals: an identity that holds exactly in every sample.

A bond of the dual is open if the bond that it crosses is closed.  With V sites, E open bonds, C
clusters, and C* clusters of the dual, C - C* - V + E is 1 if a cluster winds in two independent
directions, -1 if none winds, and 0 otherwise.  C and the winding come from a labeler, C* is counted
by scipy.

Source: S. Mertens and R. M. Ziff, Phys. Rev. E 94, 062152 (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import Samples, fit_coupling
from percolab.coupled.points import measure_by_batches
from percolab.flows.net import list_bonds
from percolab.kernels.device import Device
from percolab.labelers.forest import Labeler
from percolab.lattices.dual import find_faces, make_dual_topology
from percolab.lattices.lattice import Lattice, lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    differing,
    list_labelers,
    measure_words,
    read_samples,
    sum_differing,
)

#: Smallest numbers of grid points along x and y: below and across the edges of words and tiles.
_SHAPES = ((2, 3), (7, 5), (33, 34), (130, 70))
#: Number of faces whose clusters are counted at a time.
_FACES = 2**21
#: Lattices whose duals are also labeled as lattices, and cells along each axis.
_LABELED, _CELLS = ("square", "triangular", "kagome"), 8
#: Values of p, relative to the bond threshold.
_PARTS = (0.6, 1.0, 1.1)


class Dual(NamedTuple):
    """The dual of a torus: a site in every face, a bond across every bond.

    places: int64 (m,), positions of the lattice's bonds in the words of a sample.  faces: int32
    (m, 2), the two faces on either side of each bond.
    """

    places: NDArray[np.int64]
    faces: NDArray[np.int32]

    @classmethod
    def of_topology(cls, lattice: Lattice, topology: Topology) -> Dual:
        """Return the dual of a torus of a lattice whose drawing has no crossings."""
        return cls(list_bonds(topology).places, find_faces(lattice, topology))

    def count_clusters(self, words: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the number of clusters of every sample, int64 (n,); words: uint32 (n, words)."""
        capacity = max(_FACES // (int(self.faces.max()) + 1), 1)
        counts: NDArray[np.int64] = measure_by_batches(self._count, capacity, words)
        return counts

    def _count(self, words: NDArray[np.uint32]) -> NDArray[np.int64]:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        number = int(self.faces.max()) + 1
        sample, bond = np.nonzero(~unpack_bits(words, 32 * words.shape[1])[:, self.places])
        ends = (sample[:, None] * number + self.faces[bond]).T
        whole = len(words) * number
        links = coo_array((np.ones(sample.size, np.int8), ends), shape=(whole, whole))
        labels = connected_components(links, directed=False)[1]
        # Each cluster is in one sample, that of its first face.
        first = np.unique(labels, return_index=True)[1]
        return np.bincount(first // number, minlength=len(words))


def _winding(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of directions in which clusters wind, minus one, int64 (n,)."""
    flags = rows[:, SPANNING]
    in_two, in_any = flags >> TWO_DIRECTIONS & 1, flags >> FIRST_WRAPPING & 3
    return np.where(in_two, 1, np.where(in_any, 0, -1))


def _draw(labeler: Labeler, seed: int, samples: Samples, p: float) -> tuple[Any, Any, Any]:
    """Return the words and the rows of samples, and their C - V + E."""
    drawn = XORWOW, seed, samples, np.full(samples.size, p_to_threshold(p), np.uint64)
    words, rows = read_samples(labeler, drawn, lambda entries: labeler.join(entries).rows())
    bonds = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return words, rows, rows[:, CLUSTERS] - labeler.batch.topology.num_sites + bonds


def count_violations(labeler: Labeler, dual: Dual, seed: int, samples: Samples, p: float) -> int:
    """Return the number of samples of a labeler's torus in which the identity does not hold."""
    words, rows, excess = _draw(labeler, seed, samples, p)
    return int((excess - dual.count_clusters(words) != _winding(rows)).sum())


def count_labeled_violations(
    device: Device, lattice: Lattice, seed: int, samples: Samples, p: float
) -> int:
    """Return that number for small tori whose duals are labeled as lattices; compare winding, too.

    InputError: the dual is not a lattice.
    """
    topology = lattice.topology(tuple(_CELLS * n for n in lattice.cell), ("periodic",) * 2)
    dual = make_dual_topology(lattice, topology)
    own, other = (
        fit_coupling(device, each, most=samples.size).labeler for each in (topology, dual.topology)
    )
    words, rows, excess = _draw(own, seed, samples, p)
    dual_rows = measure_words(other, dual.open_words(words))
    fails = excess - dual_rows[:, CLUSTERS] != _winding(rows)
    return int((fails | (_winding(dual_rows) != -_winding(rows))).sum())


def _identity(conditions: Conditions) -> Iterator[Outcome]:
    for lattice in filter(is_drawn_planar, map(load_lattice, lattice_names())):
        yield from _identity_on(lattice, conditions)


def _identity_on(lattice: Lattice, conditions: Conditions) -> Iterator[Outcome]:
    device, name = conditions.device, lattice.name
    count = conditions.count(30, 3000)
    samples = np.arange(count, dtype=np.uint64)
    threshold = lattice.threshold("bond")
    middle = 0.5 if threshold is None else threshold.value
    # Other lattices differ only in their bonds, all kinds of which are in a few words and tiles.
    shapes = _SHAPES if name == "square" else _SHAPES[:-1]
    # The reference is a hundred times slower, and the parity checks compare other labelers with it.
    names = sorted({*list_labelers(device.kind, lattice)} - {"reference"})

    def counted() -> Iterator[tuple[str, str, int]]:
        for least in shapes:
            shape = tuple(-(-n // cell) * cell for n, cell in zip(least, lattice.cell))
            topology = lattice.topology(shape, ("periodic", "periodic"))
            dual = Dual.of_topology(lattice, topology)
            for each in names:
                labeler = fit_coupling(device, topology, most=count, name=each).labeler
                for part in _PARTS:
                    seed, p = conditions.stream_seed("duals", name, shape, part), part * middle
                    wrong = count_violations(labeler, dual, seed, samples, p)
                    yield each, f"{' x '.join(map(str, shape))}, p = {p:.4g}", wrong

    note = f"{count * len(shapes) * len(_PARTS)} samples"
    yield from sum_differing(f"C - C* - V + E, {{}} on {name}", counted(), note)
    if name in _LABELED:
        samples = np.arange(conditions.count(2**10, 2**18), dtype=np.uint64)
        seed = conditions.stream_seed("duals", name)
        wrong = count_labeled_violations(device, lattice, seed, samples, middle)
        yield differing(f"C - C* - V + E, {name} and its dual", wrong, f"{samples.size} samples")


CHECKS = (Check("dual clusters", "planar lattices", _identity),)
