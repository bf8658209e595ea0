"""Lattice files that are refused: one line that names the file, the key or bond, and the value."""

import re
from itertools import product

import numpy as np
import pytest
from helpers import CHAIN, TEXTS
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from percolab.errors import InputError
from percolab.lattices.lattice import lattice_from_text, lattice_names, load_lattice
from percolab.lattices.one_piece import has_lines, unreached

# What is replaced in the kagome file (or the unit-cell honeycomb file), and what the error says.
BAD_BLOCKS = {
    "not TOML": ("dimension = 2", "dimension == 2", "is not valid TOML"),
    "huge integer": ("dimension = 2", "dimension = " + "1" * 5000, "is not valid TOML"),
    "misspelt key": ("dimension", "dimensoin", "unknown key 'dimensoin'; did you mean 'dimension'"),
    "strange key": ("dimension", "zzz", "unknown key 'zzz'; known: aspect, bonds, cell"),
    "another word": ("dimension", "sites", "unknown key 'sites'; known: aspect, bonds, cell"),
    "misspelt key of a bond": ("at =", "att =", "bonds[0]: unknown key 'att'; did you mean 'at'"),
    "no name": ('name = "kagome"\n', "", "key 'name' is missing; it must be a string"),
    "name no string": ('"kagome"', "7", "name = 7, but it must be a string"),
    "no dimension": ("dimension = 2\n", "", "key 'dimension' is missing"),
    "dimension zero": ("dimension = 2", "dimension = 0", "dimension = 0, but it must be"),
    "dimension a float": ("dimension = 2", "dimension = 2.0", "an integer from 1 to 8"),
    "dimension a truth": ("dimension = 2", "dimension = true", "an integer from 1 to 8"),
    "wrong coordination": ("number = 4", "number = 5", "coordination_number = 5, but it must be 4"),
    "cell no table": ("[cell]\n", "cell = 3\n[drawing2]\n", "unknown key 'drawing2'"),
    "no shape": ("shape = [2, 2]\n", "", "cell: key 'shape' is missing"),
    "shape too long": ("[2, 2]", "[2, 2, 2]", "shape = [2, 2, 2], but it must be a list of 2"),
    "shape of floats": ("[2, 2]", "[2.0, 2]", "it must be a list of 2 integers"),
    "shape zero": ("[2, 2]", "[0, 2]", "shape = [0, 2], but it must be positive"),
    "cell too large": ("[2, 2]", "[100, 100]", "at most 4096 points"),
    "vacant no list": ("[[1, 1]]", "3", "vacant = 3, but it must be a list"),
    "vacant outside": ("[[1, 1]]", "[[1, 2]]", "vacant names [1, 2], which is no point"),
    "vacant of floats": ("[[1, 1]]", "[[1.0, 1]]", "vacant names [1.0, 1], which is no point"),
    "vacant of truths": ("[[1, 1]]", "[[true, 1]]", "vacant names [True, 1], which is no point"),
    "vacant nested": ("[[1, 1]]", "[[[1], 1]]", "vacant names [[1], 1], which is no point"),
    "vacant a number": ("[[1, 1]]", "[1, 1]", "vacant names 1, which is no point"),
    "no offset": ("offset = [1, 0], ", "", "bonds[0]: key 'offset' is missing"),
    "offset too short": ("[1, 0], at", "[1], at", "bonds[0]: offset = [1], but it must be a list"),
    "owner outside": ("[[0, 0], [1, 0]]", "[[0, 2]]", "bonds[0]: at names [0, 2], which is no"),
    "bond to a vacancy": (
        "[[0, 0], [1, 0]]",
        "[[0, 1]]",
        "bonds[0]: bond to a site that does not exist, at [1, 1]",
    ),
    "bond from a vacancy": (
        "[[0, 0], [1, 0]]",
        "[[1, 1]]",
        "bonds[0]: bond to a site that does not exist, at [1, 1]",
    ),
    "bond twice": (
        "[[0, 0], [1, 0]]",
        "[[0, 0], [0, 0]]",
        "bonds[0]: this bond is given twice, from [0, 0]",
    ),
    "bond twice, from its other end": (
        "[1, -1], at = [[1, 0], [0, 1]]",
        "[-1, 0], at = [[1, 0]]",
        "bonds[2]: this bond is given twice, from [1, 0]",
    ),
    "self-loop": ("[1, -1]", "[0, 0]", "bonds[2]: offset [0, 0] joins a site to itself"),
    "vectors too few": (
        ", [0.5, 0.8660254037844386]]",
        "]",
        "drawing: vectors = [[1.0, 0.0]], but",
    ),
    "vectors of strings": ("[[1.0, 0.0]", '[["a", 0.0]', "drawing: vectors[0] = ['a', 0.0]"),
    "vectors infinite": ("[[1.0, 0.0]", "[[inf, 0.0]", "it must be a list of 2 numbers"),
    "shift nowhere": (
        "[drawing]\n",
        "[drawing]\nshifts = [{ at = [2, 0], shift = [0, 1] }]\n",
        "drawing: shifts[0]: at names [2, 0], which is no point of the cell",
    ),
    "both forms": ("[cell]", "[unit_cell]\n[cell]", "give either cell and bonds, or unit_cell"),
    "threshold without reference": (
        "[drawing]",
        '[[thresholds]]\nmodel = "bond"\nvalue = 0.5\n[drawing]',
        "thresholds[0]: key 'reference' is missing",
    ),
    "threshold not a number": (
        "[drawing]",
        '[[thresholds]]\nmodel = "bond"\nvalue = inf\nreference = "x"\n[drawing]',
        "thresholds[0]: value = inf, but it must be a number",
    ),
}
BAD_UNIT_CELLS = {
    "no sites": ("sites = 2\n", "", "unit_cell: key 'sites' is missing"),
    "sites zero": ("sites = 2", "sites = 0", "unit_cell: sites = 0, but it must be an integer"),
    "bond to nowhere": ("to = 1", "to = 2", "bonds[0]: to = 2, but it must be an integer from 0"),
    "bond without cell": (", cell = [0, 0]", "", "bonds[0]: key 'cell' is missing"),
    "bond cell too long": ("[0, 0]", "[0, 0, 0]", "bonds[0]: cell = [0, 0, 0], but it must be"),
    "bond twice": ("[-1, 0]", "[0, 0]", "unit_cell: bonds[1]: this bond is given twice"),
    "self-loop": (
        "to = 1, cell = [0, 0]",
        "to = 0, cell = [0, 0]",
        "bonds[0]: offset [0, 0] joins",
    ),
    "misspelt key": ("from", "fron", "unknown key 'fron'; did you mean 'from'"),
    "bonds no list": ("bonds = [", "bonds = 3\nzzz = [", "unknown key 'zzz'"),
}
BAD_FILES = {f"block, {what}": ("kagome", *how) for what, how in BAD_BLOCKS.items()}
BAD_FILES |= {
    f"unit cell, {what}": ("honeycomb_unit_cell", *how) for what, how in BAD_UNIT_CELLS.items()
}


# Bonds of a block of [2, 2] points or of a unit cell, and what keeps the lattice in pieces.
IN_PIECES = {
    "rows": ([([1, 0], "all")], "from site [0, 0] to any copy of site [0, 1]"),
    "two sublattices": (
        [([1, 1], "all"), ([-1, 1], "all")],
        "from site [0, 0] to any copy of site [0, 1]",
    ),
    "a ladder a cell": (
        [([1, 0], "all"), ([0, 1], [[0, 0], [1, 0]])],
        "from a cell to the next one along axis y",
    ),
    "every second row of cells": (
        [([1, 0], "all"), ([0, 1], [[0, 0]]), ([0, 3], [[0, 1]])],
        "from a cell to the next one along axis y",
    ),
    "chains through a site alone": (
        [([1, 0], [[0, 0], [1, 0]]), ([0, 1], [[0, 0], [0, 1]])],
        "from site [0, 0] to any copy of site [1, 1]",
    ),
}


@pytest.mark.parametrize("what", IN_PIECES)
def test_lattice_in_pieces_is_refused_and_says_where_it_falls_apart(what):
    bonds, missing = IN_PIECES[what]
    tables = [
        f"[[bonds]]\noffset = {offset}\n" + ("" if at == "all" else f"at = {at}\n")
        for offset, at in bonds
    ]
    head = 'name = "x"\ndimension = 2\n[cell]\nshape = [2, 2]\n'
    error = error_of(head + "".join(tables))
    assert error == f"bad.toml: the lattice is in pieces: no path of bonds leads {missing}"


def test_unit_cell_in_pieces_names_its_basis_site():
    text = TEXTS["honeycomb_unit_cell"].replace("sites = 2", "sites = 3")
    error = error_of(text.replace("coordination_number = 3", ""))
    assert error.endswith("no path of bonds leads from site 0 to any copy of site 2")


@pytest.mark.parametrize(
    ("offsets", "axis"),
    [
        ([(1, 0), (0, 1)], None),
        ([(1, 1), (1, -1)], 0),  # the even points only
        ([(1, 1), (1, 2)], None),
        ([(2, 0), (3, 0), (0, 1)], None),  # 3 - 2 = 1
        ([(2, 0), (4, 0), (0, 1)], 0),
        ([(1, 0)], 1),
        ([(1, 0), (5, 6), (7, 4)], 1),
        ([(2, 1), (1, 2)], 0),  # determinant 3
        ([(2, 1), (1, 1)], None),
        ([(-6, 10), (-10, 15), (15, 6)], None),
    ],
)
def test_one_site_reaches_all_copies_if_offsets_generate_all_translations(offsets, axis):
    assert unreached((1, 1), [(0, 0)], [((0, 0), offset) for offset in offsets]) == axis


@pytest.mark.parametrize("seed", range(40))
def test_unreached_agrees_with_a_walk_over_a_large_torus(seed):
    random = np.random.default_rng(seed)
    cell = tuple(int(n) for n in random.integers(1, 4, 2))
    sites = [tuple(point) for point in product(*map(range, cell)) if random.random() < 0.8]
    sites = sites or [(0, 0)]
    starts = random.integers(len(sites), size=int(random.integers(3, 10)))
    bonds = [(sites[n], tuple(int(x) for x in random.integers(-2, 3, 2))) for n in starts]
    bonds = [(a, d) for a, d in bonds if tuple((x + s) % n for x, s, n in zip(a, d, cell)) in sites]
    # Translations of index m show on a torus whose size shares a factor with m.
    pieces = [max(labels_on_torus(cell, sites, bonds, n)) + 1 for n in (4, 9, 5, 7, 11, 13)]
    assert (unreached(cell, sites, bonds) is None) == (max(pieces) == 1)


@pytest.mark.parametrize("seed", range(40))
def test_bonds_have_lines_where_a_cluster_is_larger_than_a_cell(seed):
    random = np.random.default_rng(seed)
    cell = tuple(int(n) for n in random.integers(1, 4, 2))
    sites = [tuple(int(x) for x in point) for point in product(*map(range, cell))]
    starts = random.integers(len(sites), size=int(random.integers(0, len(sites) + 2)))
    bonds = [(sites[n], tuple(int(x) for x in random.integers(-2, 3, 2))) for n in starts]
    largest = np.bincount(labels_on_torus(cell, sites, bonds, 13)).max()
    assert has_lines(cell, sites, bonds) == (largest > len(sites))


def labels_on_torus(cell, sites, bonds, copies):
    shape = tuple(n * copies for n in cell)
    whole = [
        (x + i * cell[0], y + j * cell[1])
        for x, y in sites
        for i, j in product(range(copies), repeat=2)
    ]
    number = {point: n for n, point in enumerate(whole)}
    ends = [
        (number[point], number[tuple((x + s) % n for x, s, n in zip(point, offset, shape))])
        for start, offset in bonds
        for point in whole
        if all((x - s) % n == 0 for x, s, n in zip(point, start, cell))
    ]
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(rows.size), (rows, columns)), (len(whole),) * 2)
    return connected_components(graph)[1]


def error_of(text):
    with pytest.raises(InputError) as caught:
        lattice_from_text(text, where="bad.toml")
    return str(caught.value)


@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_file_gives_one_line_that_names_it(what):
    name, good, bad, message = BAD_FILES[what]
    assert good in TEXTS[name]
    error = error_of(TEXTS[name].replace(good, bad, 1))
    assert error.startswith("bad.toml: ")
    assert message in error
    assert "\n" not in error


@pytest.mark.parametrize(
    "text",
    [
        'name = "x"\ndimension = 1\n[cell]\nshape = [1]\n',
        'name = "x"\ndimension = 1\n[cell]\nshape = [1]\nvacant = [[0]]\n[[bonds]]\noffset = [1]\n',
        'name = "x"\ndimension = 1\nunit_cell = { sites = 1 }\n',
    ],
)
def test_lattice_without_bonds_is_refused(text):
    assert error_of(text) == "bad.toml: a lattice needs at least one bond"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("honeycom", "unknown lattice 'honeycom'; did you mean 'honeycomb'"),
        ("zzz", f"unknown lattice 'zzz'; known: {', '.join(lattice_names())}"),
        ("no/such/file.toml", "no/such/file.toml: no such file"),
    ],
)
def test_lattice_that_is_not_there_is_named(name, message):
    with pytest.raises(InputError) as caught:
        load_lattice(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_binary_file_is_refused(tmp_path):
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml: is not a text file"):
        load_lattice(str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("value = 7.0", "value = 7.0, but it must be a number from 0 to 1"),
        ("value = -0.1", "value = -0.1, but it must be a number from 0 to 1"),
        ("value = 0.5\nerror = -1e-8", "error = -1e-08, but it must be a number from 0 to 1"),
        ("error = 1e-8", "key 'value' is missing; it must be a number from 0 to 1"),
    ],
)
def test_a_threshold_that_is_no_probability_is_refused(line, message):
    threshold = f'[[thresholds]]\nmodel = "bond"\nreference = "nobody"\n{line}\n'
    with pytest.raises(InputError, match=re.escape(message)):
        lattice_from_text(CHAIN + threshold, where="chain.toml")


def test_a_block_whose_end_layer_is_vacant_is_refused_where_the_layer_is_open():
    rows = (
        'name = "rows"\ndimension = 2\n[cell]\nshape = [3, 1]\nvacant = [[2, 0]]\n'
        "[[bonds]]\noffset = [1, 0]\nat = [[0, 0]]\n[[bonds]]\noffset = [2, 0]\nat = [[1, 0]]\n"
        "[[bonds]]\noffset = [0, 1]\n"
    )
    lattice = lattice_from_text(rows, where="rows.toml")
    for wide in (4, 5, 7, 8):
        (first, last), _ = lattice.topology((wide, 3)).end_layers
        assert first.size == last.size == 3
    with pytest.raises(InputError, match="the first or the last of 6 layers along x has no site"):
        lattice.topology((6, 3))
    assert lattice.topology((6, 3), ("periodic", "open")).num_points == 18


def test_an_end_layer_that_has_lost_its_sites_to_a_cut_of_the_block_is_refused():
    """The only site at x = 0 is that of y = 1, so that one row has none there."""
    corner = (
        'name = "corner"\ndimension = 2\n[cell]\nshape = [2, 2]\nvacant = [[0, 0]]\n'
        "[[bonds]]\noffset = [1, 0]\nat = [[0, 1], [1, 1]]\n"
        "[[bonds]]\noffset = [0, 1]\nat = [[1, 0], [1, 1]]\n"
    )
    lattice = lattice_from_text(corner, where="corner.toml")
    with pytest.raises(InputError, match="the first or the last of 2 layers along x has no site"):
        lattice.topology((2, 1))
    assert lattice.topology((2, 2)).num_sites == 3
