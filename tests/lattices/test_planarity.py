"""A drawing without crossing bonds proves a lattice planar; any other counts as not planar."""

import pytest

from percolab.lattices.lattice import lattice_from_text, lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar

PLANE = [name for name in lattice_names() if load_lattice(name).dimension == 2]

CROSSING = """
name = "crossed"
dimension = 2

[cell]
shape = [1, 1]

[[bonds]]
offset = [1, 0]

[[bonds]]
offset = [0, 1]

[[bonds]]
offset = [1, 1]

[[bonds]]
offset = [1, -1]
{drawing}
"""
VECTORS = "[drawing]\nvectors = [[1.0, 0.0], [0.5, 0.8]]"


def read(text):
    return lattice_from_text(text, where="given")


@pytest.mark.parametrize("name", PLANE)
def test_of_the_library_all_are_planar_but_square_nnn(name):
    assert is_drawn_planar(load_lattice(name)) == (name != "square-nnn")


@pytest.mark.parametrize("drawing", [VECTORS, ""], ids=["with vectors", "without vectors"])
def test_bonds_that_cross_are_found(drawing):
    assert not is_drawn_planar(read(CROSSING.format(drawing=drawing)))


@pytest.mark.parametrize("drawing", [VECTORS, ""], ids=["with vectors", "without vectors"])
def test_one_diagonal_is_planar(drawing):
    one = CROSSING.replace("\n[[bonds]]\noffset = [1, -1]\n", "")
    assert is_drawn_planar(read(one.format(drawing=drawing)))


def test_a_bond_on_top_of_another_is_no_planar_drawing():
    long = CROSSING.replace("[1, 1]\n\n[[bonds]]\noffset = [1, -1]", "[2, 0]")
    assert "offset = [2, 0]" in long
    assert not is_drawn_planar(read(long.format(drawing="")))


def test_a_long_bond_that_crosses_one_far_away_is_found():
    knight = CROSSING.replace("[1, 1]\n\n[[bonds]]\noffset = [1, -1]", "[3, 1]")
    assert not is_drawn_planar(read(knight.format(drawing="")))


def test_in_three_dimensions_nothing_is_planar():
    assert not is_drawn_planar(load_lattice("cubic"))
