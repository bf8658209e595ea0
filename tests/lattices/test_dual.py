"""Corners of planar lattices, the faces between them, and percolation on the dual."""

from collections import Counter
from itertools import product
from math import prod

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from flow_support import planar_topologies
from helpers import PLANAR, RESULTS, count_by_walking, lattice, slow_but

from percolab.cli import main
from percolab.errors import InputError
from percolab.labelers import new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.corners import make_corners
from percolab.lattices.dual import find_faces, make_dual
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.topology import unpack_bits

TORUS = ("periodic", "periodic")


def bonds_and_sites(lattice):
    return sum(len(bond.at) for bond in lattice.bonds), prod(lattice.cell) - len(lattice.vacant)


#: With triangles, and faces of three and more kinds.
QUICK = ("square", "kagome", "lieb", "trellis", "three-twelve")


@pytest.mark.parametrize("name", slow_but([n for n in PLANAR if n != "lieb"], *QUICK))
def test_sites_and_faces_are_exchanged(name):
    lattice = load_lattice(name)
    dual = make_dual(lattice, name="dual")
    bonds, sites = bonds_and_sites(lattice)
    # On a torus sites - bonds + faces is 0.
    assert bonds_and_sites(dual) == (bonds, bonds - sites)
    assert is_drawn_planar(dual)
    again = make_dual(dual, name="again")
    assert bonds_and_sites(again) == (bonds, sites)


@pytest.mark.parametrize("name", slow_but(PLANAR, *QUICK))
def test_faces_of_a_topology_are_those_of_the_cells_and_around_the_outside(name):
    lattice = load_lattice(name)
    bonds, sites = bonds_and_sites(lattice)
    for cells in ((1, 1), (1, 2), (3, 2)):
        topology = lattice.topology(tuple(np.multiply(cells, lattice.cell)), TORUS)
        faces = find_faces(lattice, topology)
        assert faces.max() + 1 == (bonds - sites) * prod(cells)
        # A face has as many bonds around it, on either side, as those of a dual site.
        sizes = np.bincount(faces.ravel())
        if name != "lieb":
            dual = make_dual(lattice, name="dual")
            shape = tuple(np.multiply(cells, dual.cell))
            ends = dual.topology(shape, TORUS).bonds()[:, 1:]
            degrees = np.bincount(ends.ravel())
            assert Counter(sizes) == Counter(degrees[degrees > 0])
    topology = lattice.topology(tuple(np.multiply((3, 2), lattice.cell)), ("open", "open"))
    pairs = topology.bonds()[:, 1:]
    graph = nx.Graph(pairs.tolist())
    # Euler's formula: V - E + F is 1 and the pieces, of which each has an outside here.
    pieces = nx.number_connected_components(graph)
    found = find_faces(lattice, topology).max() + 1
    assert len(graph) - len(pairs) + found == 2 * pieces


def count_windings(lattice, shape):
    """Return of all configurations of a torus how many have two directions, and none, by bonds."""
    topology = lattice.topology(shape, TORUS)
    bonds = topology.bonds().tolist()
    two, none = Counter(), Counter()
    for is_open in product((False, True), repeat=len(bonds)):
        opened = [bond for bond, chosen in zip(bonds, is_open, strict=True) if chosen]
        has_two, has_none, _ = count_by_walking(topology, opened)
        two[len(opened)] += has_two
        none[len(opened)] += has_none
    return two, none, len(bonds)


@pytest.mark.parametrize(("name", "cells"), [("square", 2), ("kagome", 1), ("honeycomb", 1)])
def test_two_directions_are_open_as_often_as_none_is_on_the_dual(name, cells):
    lattice = load_lattice(name)
    dual = make_dual(lattice, name="dual")
    shapes = [tuple(cells * n for n in each.cell) for each in (lattice, dual)]
    two, none, bonds = count_windings(lattice, shapes[0])
    dual_two, dual_none, dual_bonds = count_windings(dual, shapes[1])
    assert bonds == dual_bonds
    for n in range(bonds + 1):
        assert two[n] == dual_none[bonds - n]
        assert none[n] == dual_two[bonds - n]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("square-nnn", "drawn without crossings"), ("lieb", "two bonds between the same two sites")],
)
def test_what_has_no_dual_says_why(name, reason):
    with pytest.raises(InputError, match=reason):
        make_dual(load_lattice(name), name="dual")


def test_the_command_writes_a_lattice_file():
    told = CliRunner().invoke(main, ["lattices", "kagome", "--dual"])
    assert told.exit_code == 0
    dual = lattice_from_text(told.output, where="stdout")
    ends = dual.topology(dual.shape(3), TORUS).bonds()[:, 1:]
    assert set(np.bincount(ends.ravel())) == {3, 6}
    bad = CliRunner().invoke(main, ["lattices", "--dual"])
    assert bad.exit_code == 2
    assert "name the lattice" in bad.output


@pytest.mark.parametrize(
    "path",
    sorted((RESULTS / "thresholds" / "lattices").glob("[!d]*.toml"))
    + [RESULTS / "thresholds" / "lattices" / f"{name}.toml" for name in ("deltoidal", "dice")],
)
def test_files_of_the_laves_lattices_are_planar_and_name_what_they_are_dual_to(path):
    lattice = load_lattice(path)
    assert is_drawn_planar(lattice)
    (original,) = [
        name
        for name in PLANAR
        if lattice.threshold("bond").reference.startswith(f"1 - p_c of {load_lattice(name).title}:")
    ]
    assert lattice.threshold("bond").value == pytest.approx(
        1 - load_lattice(original).threshold("bond").value, abs=1e-14
    )


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
