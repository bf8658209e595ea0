"""Bridges of planar lattices are the closed bonds of the dual within a cluster of it."""

import numpy as np
import pytest
from helpers import PLANAR, slow_but

from percolab.bonds.batch import new_batch
from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.errors import InputError
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, unpack_open
from percolab.labelers import new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.dual import make_dual_topology
from percolab.lattices.lattice import load_lattice

QUICK = ("square", "kagome")
CASES = slow_but([name for name in PLANAR if name != "lieb"], *QUICK)


def bridges_of_dual(dual, words):
    """Return the places of all bridges, ascending, from labels of the dual."""
    top = dual.topology
    opened = dual.open_words(words[None])
    labeler = new_labeler("raster", "cpu", top)
    labels = labeler.join(labeler.batch.load(opened), Reading.LABELS).labels()[0]
    k, owner, other = top.bonds().T
    places = 32 * top.num_words * k + owner
    is_open = opened[0][places >> 5] >> (places & 31).astype(np.uint32) & 1
    inside = (is_open == 0) & (labels[owner] == labels[other])
    return np.sort(dual.sources[places[inside]])


@pytest.mark.parametrize("name", CASES)
def test_closed_bonds_of_the_dual_within_a_cluster_cross_the_bridges(name):
    lattice = load_lattice(name)
    for cells, boundary in (((3, 2), "oo"), ((3, 3), "po"), ((3, 4), "op")):
        # An open side may cut a cell.
        shape = tuple(
            n * unit + (kind == "o") for n, unit, kind in zip(cells, lattice.cell, boundary)
        )
        kinds = tuple({"o": "open", "p": "periodic"}[kind] for kind in boundary)
        topology = lattice.topology(shape, kinds)
        dual, bonds = make_dual_topology(lattice, topology), list_bonds(topology)
        crossing = np.flatnonzero(dual.sources >= 0)
        # Every bond is crossed by one that exists.
        assert np.array_equal(np.sort(dual.sources[crossing]), np.sort(bonds.places))
        exists = dual.topology.exists.ravel()[crossing >> 5] >> (crossing & 31).astype(np.uint32)
        assert (exists & 1).all()
        none = np.empty(0, np.int32)
        circuit = Circuit(bonds, topology.num_points, none, none)
        found = 0
        for p, model in ((0.4, "bond"), (0.6, "bond"), (0.85, "site"), (1.0, "bond")):
            batch = new_batch("cpu", topology, Model.parse(model))
            for sample in range(5):
                one = np.array([sample], np.uint64), np.array([p_to_threshold(p)], np.uint64)
                batch.fill(XORWOW, 11, *one)
                words = batch.copy_open_words(1)[0]
                is_open = np.empty(bonds.places.size, np.uint8)
                unpack_open(words, bonds.places, is_open)
                flow = Flow(circuit, is_open, 11, sample)
                expected = np.sort(flow.places[flow.bridges])
                assert np.array_equal(bridges_of_dual(dual, words), expected)
                found += expected.size
        assert found


def test_lattices_without_a_dual_say_so():
    for name in ("lieb", "square-nnn"):
        lattice = load_lattice(name)
        with pytest.raises(InputError, match="dual"):
            make_dual_topology(lattice, lattice.topology((4, 4)))
