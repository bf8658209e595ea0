"""Bonds are counted from the cell as they are in the topology itself."""

import pytest

from percolab.lattices.bethe import BetheLattice
from percolab.lattices.extent import count_bonds
from percolab.lattices.lattice import lattice_names, load_lattice


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
