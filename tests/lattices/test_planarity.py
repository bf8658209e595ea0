"""A drawing without crossing bonds proves a lattice planar; any other counts as not planar."""

import pytest
from helpers import FLAT, PLANAR

from percolab.lattices.lattice import Lattice, lattice_from_text, load_lattice
from percolab.lattices.planarity import is_drawn_planar

#: Bonds of the square lattice, and both diagonals; the diagonals cross.
SQUARE, DIAGONALS = ((1, 0), (0, 1)), ((1, 1), (1, -1))
WITH_AND_WITHOUT_VECTORS = pytest.mark.parametrize(
    "drawing",
    ["[drawing]\nvectors = [[1.0, 0.0], [0.5, 0.8]]", ""],
    ids=["with vectors", "without vectors"],
)


def is_planar(*offsets, drawing=""):
    """Return whether a drawing of a cell of one site with these bonds counts as planar."""
    bonds = ", ".join(f"{{ offset = {list(offset)} }}" for offset in offsets)
    head = 'name = "drawn"\ndimension = 2\ncell = { shape = [1, 1] }'
    text = f"{head}\nbonds = [{bonds}]\n{drawing}"
    return is_drawn_planar(lattice_from_text(text, where="given"))


@pytest.mark.parametrize("name", FLAT)
def test_of_the_library_all_are_planar_but_square_nnn(name):
    assert is_drawn_planar(load_lattice(name)) == (name in PLANAR)


@WITH_AND_WITHOUT_VECTORS
def test_bonds_that_cross_are_found(drawing):
    assert not is_planar(*SQUARE, *DIAGONALS, drawing=drawing)


@WITH_AND_WITHOUT_VECTORS
def test_one_diagonal_is_planar(drawing):
    assert is_planar(*SQUARE, DIAGONALS[0], drawing=drawing)


def test_a_bond_on_top_of_another_is_no_planar_drawing():
    assert not is_planar(*SQUARE, (2, 0))


def test_bonds_on_top_of_each_other_are_found_where_no_other_crosses_them():
    steps = [(0, 1, (0, 0)), (1, 0, (1, 0)), (0, 0, (0, 1))]
    cell = [[2.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.5, 0.0]]
    assert is_drawn_planar(Lattice.from_cell(*cell, steps))
    assert not is_drawn_planar(Lattice.from_cell(*cell, [*steps, (0, 0, (1, 0))]))


def test_a_long_bond_that_crosses_one_far_away_is_found():
    assert not is_planar(*SQUARE, (3, 1))


def test_in_three_dimensions_nothing_is_planar():
    assert not is_drawn_planar(load_lattice("cubic"))
