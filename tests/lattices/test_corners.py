"""Corners of planar lattices: the bonds around every site, and along the two sides."""

import numpy as np
import pytest
from flow_support import planar_topologies
from helpers import PLANAR, lattice

from percolab.labelers import new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.corners import make_corners
from percolab.lattices.dual import make_dual
from percolab.lattices.lattice import lattice_from_text
from percolab.lattices.topology import unpack_bits

DUAL = [name for name in PLANAR if name != "lieb"]


def split(place, topology):
    """Return class, and coordinates of the owner, of the places of bonds in words."""
    k, owner = np.divmod(place, 32 * topology.num_words)
    return k, owner % topology.shape[0], owner // topology.shape[0]


def labels_of(dual, is_open):
    """Return the labels of the faces, for bool (bonds,) by their places in words."""
    labeler = new_labeler("raster", "cpu", dual.topology)
    words = np.packbits(is_open, bitorder="little").view(np.uint32)
    opened = dual.open_words(words[None])
    return labeler.join(labeler.batch.load(opened), Reading.LABELS).labels()[0]


@pytest.mark.parametrize("name", DUAL)
def test_the_bonds_around_a_site_are_its_bonds_with_the_faces_between_them(name):
    item = lattice(name)
    for topology in planar_topologies(item):
        corners, at_site = make_corners(item, topology), {}
        for k, owner, other in topology.bonds().tolist():
            for site in (owner, other):
                at_site.setdefault(site, []).append((k, owner))
        shape, cell = topology.shape, item.cell
        exists = unpack_bits(topology.exists.ravel(), 32 * topology.num_bond_words)
        for site, expected in at_site.items():
            y, x = divmod(site, shape[0])
            point, found = x % cell[0] + cell[0] * (y % cell[1]), []
            rows = corners.around[corners.starts[point] : corners.starts[point + 1]].tolist()
            for row, before in zip(rows, rows[-1:] + rows[:-1], strict=True):
                k, at = row[0], [x + row[1], y + row[2]]
                for axis in range(2):
                    if axis not in topology.open_axes:
                        at[axis] %= shape[axis]
                if not all(0 <= place < size for place, size in zip(at, shape, strict=True)):
                    continue
                owner = at[0] + shape[0] * at[1]
                if exists[32 * topology.num_words * k + owner]:
                    found.append((k, owner))
                    # Of the bond, the faces to its left and right, seen from its owner.
                    own = at[0] % cell[0] + cell[0] * (at[1] % cell[1])
                    here, there = (
                        corners.dual.face(face, x // cell[0] + u, y // cell[1] + v)
                        for face, u, v in (row[3:], before[3:])
                    )
                    sides = corners.bonds[k * cell[0] * cell[1] + own].reshape(2, 3)
                    seen = [
                        corners.dual.face(
                            face, (x + row[1]) // cell[0] + u, (y + row[2]) // cell[1] + v
                        )
                        for face, u, v in sides.tolist()
                    ]
                    assert [here, there] == (seen if row[1:3] == [0, 0] else seen[::-1])
            assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("name", DUAL)
def test_sides_have_every_bond_that_leaves_a_terminal_once(name):
    item = lattice(name)
    for topology in planar_topologies(item):
        corners, bonds = make_corners(item, topology), topology.bonds()
        places = 32 * topology.num_words * bonds[:, 0] + bonds[:, 1]
        layers = topology.end_layers[topology.open_axes[-1]]
        for side, layer in zip(corners.sides, layers, strict=True):
            leaving = np.isin(bonds[:, 1:], layer).sum(axis=1) == 1
            assert np.array_equal(np.sort(side.places), np.sort(places[leaving]))
        # With all bonds closed the corners of a terminal are one face outside of it, but left and
        # right of a lattice with open sides the two sides are apart with all bonds open.
        every = np.ones(32 * topology.num_bond_words, bool)
        closed, opened = (labels_of(corners.dual, flags) for flags in (~every, every))
        for side in corners.sides:
            assert np.unique(closed[side.faces]).size == 1
        ends = [set(opened[side.faces[[0, -1]]].tolist()) for side in corners.sides]
        if not any(corners.dual.turn):
            assert ends[0] == ends[1]
            assert len(ends[0]) == 2


def test_lattices_without_such_corners_are_told():
    square = lattice("square")
    # A bond around a cylinder to its own site, and layers that belong to both sides.
    assert make_corners(square, square.topology((1, 5), ("periodic", "open"))) is None
    assert make_corners(square, square.topology((5, 1), ("periodic", "open"))) is None
    dual = make_dual(lattice("four-eight"), name="deep")
    assert make_corners(dual, dual.topology((7, 4), ("open", "periodic"))) is None
    assert make_corners(dual, dual.topology((8, 4), ("open", "periodic"))) is not None
    assert make_corners(square, square.topology((2, 2), ("periodic", "open"))) is not None
    # Every second site of the first layer has bonds inward alone, and so has all beyond it.
    text = """
        name = "comb"
        dimension = 2
        [cell]
        shape = [2, 2]
        [[bonds]]
        offset = [1, 0]
        at = [[0, 1], [1, 1]]
        [[bonds]]
        offset = [0, 1]
        at = [[0, 0], [1, 0], [1, 1]]
        [[bonds]]
        offset = [1, 1]
        at = [[0, 0], [0, 1]]
        [[bonds]]
        offset = [-1, 1]
        at = [[0, 0]]
    """
    comb = lattice_from_text(text, where="given")
    assert make_corners(comb, comb.topology((4, 5), ("periodic", "open"))) is None
