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


def occupied_points(topology: Topology):
    return np.flatnonzero(unpack_bits(topology.occupied, topology.num_points))


def edge_counter(pairs):
    return Counter((min(u, v), max(u, v)) for u, v in pairs)


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


@pytest.mark.parametrize("name", EXACT_LATTICES)
def test_topology_has_the_edges_of_the_exact_enumeration(name):
    known, topology = exact(name), exact_topology(name)
    assert topology.num_sites == known["V"]
    expected = edge_counter(edge[:2] for edge in known["edges"])
    assert edge_counter(topology.bonds()[:, 1:].tolist()) == expected
    if known["source"]:
        first, last = topology.end_layers[-1]
        assert (first.tolist(), last.tolist()) == (known["source"], known["target"])


def test_folded_unit_cell_has_layers_one_cell_thick():
    (left, right), (bottom, top) = lattice("honeycomb_unit_cell").topology((6, 3)).end_layers
    assert (left.tolist(), right.tolist()) == ([0, 1, 6, 7, 12, 13], [4, 5, 10, 11, 16, 17])
    assert (bottom.tolist(), top.tolist()) == ([*range(6)], [*range(12, 18)])


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
    kagome, honeycomb, placed, directions = examples("lattice-format.md")
    assert set(lattice_from_text(directions, where="x").class_names) == {"a", "b", "c"}
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


@pytest.mark.parametrize("name", FLAT)
def test_of_the_library_all_are_planar_but_square_nnn(name):
    assert is_drawn_planar(load_lattice(name)) == (name in PLANAR)


@pytest.mark.parametrize(
    ("offsets", "is_planar"),
    [
        ([(1, 1)], True),
        ([(1, 1), (1, -1)], False),
        # On top of another, and across one far away.
        ([(2, 0)], False),
        ([(3, 1)], False),
    ],
)
@pytest.mark.parametrize("drawing", ["[drawing]\nvectors = [[1.0, 0.0], [0.5, 0.8]]", ""])
def test_bonds_that_cross_in_a_drawing_are_found(offsets, is_planar, drawing):
    bonds = ", ".join(f"{{ offset = {list(step)} }}" for step in [(1, 0), (0, 1), *offsets])
    head = 'name = "drawn"\ndimension = 2\ncell = { shape = [1, 1] }'
    drawn = lattice_from_text(f"{head}\nbonds = [{bonds}]\n{drawing}", where="given")
    assert is_drawn_planar(drawn) == is_planar


def test_bonds_on_top_of_each_other_are_found_where_no_other_crosses_them():
    steps = [(0, 1, (0, 0)), (1, 0, (1, 0)), (0, 0, (0, 1))]
    cell = [[2.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.5, 0.0]]
    assert is_drawn_planar(Lattice.from_cell(*cell, steps))
    assert not is_drawn_planar(Lattice.from_cell(*cell, [*steps, (0, 0, (1, 0))]))


def test_in_three_dimensions_nothing_is_planar():
    assert not is_drawn_planar(load_lattice("cubic"))
