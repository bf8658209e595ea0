"""Lattices as topologies: boundaries, order of bonds, exact edge lists, sizes, planar drawings.

What each lattice is, test_lattice_library tests; which files are rejected, test_lattice_refused.
"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    EXACT_LATTICES,
    FLAT,
    JUDGED_LABELERS,
    LATTICES,
    PLANAR,
    TEXTS,
    cpu_labeler,
    exact,
    exact_topology,
    labels_and_row,
    lattice,
    parity_topologies,
)

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.errors import InputError
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.extent import count_bonds
from percolab.lattices.lattice import Lattice, lattice_from_text, lattice_names, load_lattice
from percolab.lattices.planarity import is_drawn_planar
from percolab.lattices.topology import Topology, unpack_bits

every_lattice = pytest.mark.parametrize("name", [*lattice_names(), "honeycomb_unit_cell"])
every_shape = pytest.mark.parametrize("name", LATTICES)


def reach(name):
    """Return the longest offset of a bond along each axis."""
    offsets = np.abs([bond.offset for bond in lattice(name).bonds])
    return offsets.max(axis=0)


def whole_cells(name):
    """Return a shape of whole cells in which bonds that wrap differ from all others."""
    least = np.maximum(2 * reach(name) + 2, 4)
    return tuple(int(-(-n // cell) * cell) for n, cell in zip(least, lattice(name).cell))


def periodic(name):
    item = lattice(name)
    return item.topology(whole_cells(name), ("periodic",) * item.dimension)


def occupied_points(topology: Topology):
    return np.flatnonzero(unpack_bits(topology.occupied, topology.num_points))


def edge_counter(pairs):
    return Counter((min(u, v), max(u, v)) for u, v in pairs)


@every_lattice
def test_open_boundaries_leave_out_the_bonds_that_leave(name):
    whole, cut = periodic(name), lattice(name).topology(whole_cells(name))
    ends = np.array(np.unravel_index(whole.bonds()[:, 1:], whole.shape[::-1]))[::-1]
    inside = (abs(ends[..., 0] - ends[..., 1]) <= reach(name)[:, None]).all(axis=0)
    assert edge_counter(whole.bonds()[inside, 1:].tolist()) == edge_counter(
        cut.bonds()[:, 1:].tolist()
    )
    assert not inside.all()


@every_lattice
def test_every_bond_of_an_open_lattice_belongs_to_its_larger_end(name):
    _, owner, other = lattice(name).topology(whole_cells(name)).bonds().T
    assert (owner > other).all()


@every_lattice
def test_bond_order_is_independent_of_the_boundary(name):
    whole = {tuple(bond) for bond in periodic(name).bonds()[:, :2].tolist()}
    cut = lattice(name).topology(whole_cells(name))
    assert {tuple(bond) for bond in cut.bonds()[:, :2].tolist()} < whole


@every_lattice
def test_labelers_agree_with_the_reference(name):
    item, shape = lattice(name), whole_cells(name)
    published = item.threshold() or lattice("honeycomb").threshold()
    for boundary in ("open", "periodic"):
        mixed = (boundary, *["periodic"] * (item.dimension - 2), "open")
        topology = item.topology(shape, mixed)
        reference = cpu_labeler("reference", topology)
        labelers = [cpu_labeler(each, topology) for each in JUDGED_LABELERS]
        for sample in range(3):
            reference.open_bonds(XORWOW, 5, sample, p_to_threshold(published.value))
            expected = labels_and_row(reference)
            for labeler in labelers:
                labeler.open_bonds(XORWOW, 5, sample, p_to_threshold(published.value))
                for pair in zip(labels_and_row(labeler), expected):
                    np.testing.assert_array_equal(*pair, err_msg=f"{mixed} {sample}")


@every_shape
def test_explicit_list_holds_the_same_bonds(name):
    for case, topology in parity_topologies(name):
        if case[-1] == "computed":
            explicit = topology.explicit()
            np.testing.assert_array_equal(explicit.bonds(), topology.bonds(), err_msg=str(case))
            assert explicit.neighbours is not None
            assert (explicit.num_sites, explicit.num_bonds) == (
                topology.num_sites,
                topology.num_bonds,
            )


@every_shape
def test_unused_bits_of_the_last_word_are_zero(name):
    for case, topology in parity_topologies(name):
        masks = [topology.occupied, *topology.exists]
        masks += [] if topology.periodic_words is None else [*topology.periodic_words]
        spare = 32 * topology.num_words - topology.num_points
        beyond = [unpack_bits(mask, 32 * topology.num_words)[-spare:] for mask in masks]
        assert spare == 0 or not np.any(beyond), case


@pytest.mark.parametrize("name", EXACT_LATTICES)
def test_topology_has_the_edges_of_the_exact_enumeration(name):
    known, topology = exact(name), exact_topology(name)
    assert topology.num_sites == known["V"]
    expected = edge_counter(edge[:2] for edge in known["edges"])
    assert edge_counter(topology.bonds()[:, 1:].tolist()) == expected
    if known["source"]:
        first, last = topology.end_layers[-1]
        assert (first.tolist(), last.tolist()) == (known["source"], known["target"])


def test_vacant_points_have_no_site_no_bond_and_no_place_in_an_end_layer():
    item = lattice("kagome")
    topology = item.topology((6, 6))
    vacant = [x + 6 * y for y in (1, 3, 5) for x in (1, 3, 5)]
    assert np.setdiff1d(np.arange(36), occupied_points(topology)).tolist() == vacant
    named = [topology.bonds()[:, 1:].ravel(), *(s for pair in topology.end_layers for s in pair)]
    assert not np.isin(np.concatenate(named), vacant).any()


def test_folded_unit_cell_has_layers_one_cell_thick():
    (left, right), (bottom, top) = lattice("honeycomb_unit_cell").topology((6, 3)).end_layers
    assert (left.tolist(), right.tolist()) == ([0, 1, 6, 7, 12, 13], [4, 5, 10, 11, 16, 17])
    assert (bottom.tolist(), top.tolist()) == ([*range(6)], [*range(12, 18)])


def test_periodic_axis_has_no_end_layers():
    along_x, along_y = lattice("square").topology((4, 3), ("periodic", "open")).end_layers
    assert [layer.size for layer in along_x] == [0, 0]
    assert [layer.tolist() for layer in along_y] == [[0, 1, 2, 3], [8, 9, 10, 11]]


def test_digest_ignores_names_and_order_but_not_bonds():
    text = TEXTS["kagome"]
    same = text.replace('"kagome"', '"other"').replace("[[0, 0], [0, 1]]", "[[0, 1], [0, 0]]")
    assert lattice_from_text(same, where="x").digest == lattice("kagome").digest
    assert lattice("square").digest != lattice("triangular").digest


def test_size_is_checked_against_boundary_and_largest_label():
    honeycomb, free, torus = lattice("honeycomb"), ("open",) * 2, ("periodic",) * 2
    honeycomb.check_size(3, free)
    honeycomb.check_size(4, torus)
    lattice("honeycomb_unit_cell").check_size(3, torus)
    for size, boundary, message in (
        (0, free, "at least 1"),
        (3, torus, "along the periodic axis x of honeycomb it must be a multiple of 2"),
        (50_000, free, "at most"),
    ):
        with pytest.raises(InputError, match=message):
            honeycomb.check_size(size, boundary)
    honeycomb.check_existence(50_000, free)
    with pytest.raises(InputError, match="multiple of 2"):
        honeycomb.check_existence(50_001, torus)


def test_file_gives_the_same_lattice_as_its_text(tmp_path):
    path = tmp_path / "kagome.toml"
    path.write_text(TEXTS["kagome"])
    assert load_lattice(str(path)) == lattice("kagome")


def test_positions_need_drawing_vectors():
    bare = lattice_from_text(TEXTS["cubic"].partition("[drawing]")[0], where="x")
    with pytest.raises(ValueError, match="no \\[drawing\\] vectors"):
        bare.positions((2, 2, 2))


def examples(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```toml\n(.*?)```", text, re.DOTALL)


def test_examples_of_the_documentation_are_lattices():
    kagome, honeycomb, placed = examples("lattice-format.md")
    assert lattice_from_text(kagome, where="x").digest == lattice("kagome").digest
    assert lattice_from_text(honeycomb, where="x").digest == lattice("honeycomb_unit_cell").digest
    assert lattice_from_text(placed, where="x").digest == lattice("honeycomb_unit_cell").digest
    block, known, unit_cell = examples("tutorial-lattice.md")
    assert len(block.splitlines()) <= 10
    assert lattice_from_text(f"{block}\n{known}", where="x").threshold().value == np.sqrt(0.5)
    ends = []
    for text, size in ((block, 6), (unit_cell, 3)):
        item = lattice_from_text(text, where="x")
        topology = item.topology(item.shape(size), ("periodic",) * 2)
        degree = np.bincount(topology.bonds()[:, 1:].ravel(), minlength=topology.num_points)
        ends.append(sorted(degree[occupied_points(topology)].tolist()))
    assert ends[0] == ends[1] == 18 * [2] + 9 * [4]


@pytest.mark.parametrize("name", lattice_names())
def test_bonds_are_counted_without_a_topology(name):
    lattice = load_lattice(name)
    cells = [cell // unit for cell, unit in zip(lattice.cell, lattice.per_size)]
    kinds = ["open", "periodic"]
    boundaries = {
        tuple(kinds[(n >> axis) % 2] for axis in range(lattice.dimension)) for n in range(4)
    }
    for boundary in sorted(boundaries):
        for size in (1, 2, 3, max(cells), 2 * max(cells)):
            if any(k == "periodic" and size % c for k, c in zip(boundary, cells)):
                continue
            shape = lattice.shape(size)
            counted = count_bonds(lattice, shape, boundary)
            assert counted == lattice.topology(shape, boundary).num_bonds, (boundary, size)


def test_a_tree_has_one_bond_less_than_sites():
    tree = BetheLattice(3)
    (sites,) = tree.shape(5)
    assert count_bonds(tree, (sites,), tree.boundaries) == sites - 1


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
