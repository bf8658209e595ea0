"""The dual of a planar lattice: its faces, and percolation where the lattice has none."""

from collections import Counter
from itertools import product
from math import prod

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import PLANAR, RESULTS, count_by_walking, slow_but

from percolab.cli import main
from percolab.errors import InputError
from percolab.lattices.dual import find_faces, make_dual
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.planarity import is_drawn_planar

TORUS = ("periodic", "periodic")


def bonds_and_sites(lattice):
    """Return the numbers of bonds and sites of a cell."""
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
