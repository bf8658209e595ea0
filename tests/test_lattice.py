"""Lattices: geometry against counting formulas, topologies against exact edge lists, bad files."""

from collections import Counter
from math import comb

import numpy as np
import pytest
from helpers import (
    BUILT_IN,
    EXACT_LATTICES,
    LATTICES,
    TEXTS,
    exact,
    exact_topology,
    lattice,
    parity_topologies,
)
from scipy.sparse import coo_array

from percolab.lattice import lattice_from_text, load_lattice
from percolab.toml_input import InputError
from percolab.topology import Topology, unpack_bits

COORDINATION = {
    "honeycomb": 3,
    "honeycomb_unit_cell": 3,
    "square": 4,
    "triangular": 6,
    "kagome": 4,
    "cubic": 6,
    "hypercubic_4d": 8,
}
#: Too large for a closed walk of 8 steps to go around.
WIDE = 10


def hypercubic_walks(dimension):
    """Return closed walks of 0 ... 8 steps: each axis takes an even number of them, half back."""
    walks = [1] + [0] * 8
    for _ in range(dimension):
        line = [comb(n, n // 2) if n % 2 == 0 else 0 for n in range(9)]
        walks = [sum(comb(n, k) * line[k] * walks[n - k] for k in range(n + 1)) for n in range(9)]
    return walks


HONEYCOMB_WALKS = [1, 0, 3, 0, 15, 0, 93, 0, 639]
#: Kagome is the line graph of honeycomb: its spectrum is honeycomb's plus 1, and -2 once a cell.
KAGOME_WALKS = [
    (2 * sum(comb(n, k) * HONEYCOMB_WALKS[k] for k in range(n + 1)) + (-2) ** n) // 3
    for n in range(9)
]
WALKS = {
    "honeycomb": HONEYCOMB_WALKS,
    "honeycomb_unit_cell": HONEYCOMB_WALKS,
    "square": [1, 0, 4, 0, 36, 0, 400, 0, 4900],
    "triangular": [1, 0, 6, 12, 90, 360, 2040, 10080, 54810],
    "kagome": KAGOME_WALKS,
    "cubic": hypercubic_walks(3),
    "hypercubic_4d": hypercubic_walks(4),
}

every_lattice = pytest.mark.parametrize("name", LATTICES)


def periodic(name, size=WIDE):
    item = lattice(name)
    return item.topology(item.shape(size), ("periodic",) * item.dimension)


def occupied_points(topology: Topology):
    return np.flatnonzero(unpack_bits(topology.occupied, topology.num_points))


def adjacency(topology: Topology):
    _, owner, other = topology.bonds().T
    rows, columns = np.concatenate([owner, other]), np.concatenate([other, owner])
    shape = (topology.num_points,) * 2
    return coo_array((np.ones(rows.size, np.int64), (rows, columns)), shape).tocsr()


def edge_counter(pairs):
    return Counter((min(u, v), max(u, v)) for u, v in pairs)


@every_lattice
def test_coordination_number_matches_bond_list(name):
    assert lattice(name).coordination_number == COORDINATION[name]
    topology = periodic(name, 4)
    degree = adjacency(topology).sum(axis=1)
    assert (degree[occupied_points(topology)] == COORDINATION[name]).all()
    assert 2 * topology.num_bonds == COORDINATION[name] * topology.num_sites


@every_lattice
def test_closed_walks_match_counting_formula(name):
    topology = periodic(name)
    step = adjacency(topology)
    shape = lattice(name).shape(WIDE)
    cell = np.indices(lattice(name).cell[::-1]).reshape(len(shape), -1)
    starts = np.ravel_multi_index(tuple(cell), shape[::-1])
    for start in np.intersect1d(starts, occupied_points(topology)):
        walkers = np.zeros(topology.num_points, np.int64)
        walkers[start] = 1
        counts = []
        for _ in range(9):
            counts.append(int(walkers[start]))
            walkers = step @ walkers
        assert counts == WALKS[name]


@every_lattice
def test_bonds_have_equal_lengths_in_real_space(name):
    item = lattice(name)
    shape = item.shape(4)
    places = item.positions(shape)
    _, owner, other = item.topology(shape).bonds().T
    lengths = np.linalg.norm(places[owner] - places[other], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-12)
    assert lengths[0] > 0


@every_lattice
def test_open_boundaries_leave_out_the_bonds_that_leave(name):
    item = lattice(name)
    shape, axes = item.shape(4), ("open",) * item.dimension
    whole, cut = periodic(name, 4), item.topology(shape, axes)
    unit = np.array([item.cell]).T  # bonds within half the lattice do not wrap
    ends = np.array(np.unravel_index(whole.bonds()[:, 1:], shape[::-1]))[::-1]
    inside = (abs(ends[..., 0] - ends[..., 1]) <= unit).all(axis=0)
    assert edge_counter(whole.bonds()[inside, 1:].tolist()) == edge_counter(
        cut.bonds()[:, 1:].tolist()
    )
    assert not inside.all()


@every_lattice
def test_every_bond_of_an_open_lattice_belongs_to_its_larger_end(name):
    item = lattice(name)
    _, owner, other = item.topology(item.shape(4)).bonds().T
    assert (owner > other).all()


@every_lattice
def test_bond_order_is_independent_of_the_boundary(name):
    item = lattice(name)
    whole = {tuple(bond) for bond in periodic(name, 4).bonds()[:, :2].tolist()}
    cut = {tuple(bond) for bond in item.topology(item.shape(4)).bonds()[:, :2].tolist()}
    assert cut < whole


@every_lattice
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


@every_lattice
def test_unused_bits_of_the_last_word_are_zero(name):
    for case, topology in parity_topologies(name):
        masks = [topology.occupied, *topology.exists]
        masks += [] if topology.seam is None else [*topology.seam]
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


CLOSED_FORMS = {
    "1/2": 0.5,
    "2 sin(pi/18)": 2 * np.sin(np.pi / 18),
    "1 - 2 sin(pi/18)": 1 - 2 * np.sin(np.pi / 18),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_published_threshold_is_its_expression_or_has_an_error(name):
    found = load_lattice(name).threshold("bond")
    assert found is not None
    assert found.reference
    if found.expression:
        assert found.value == pytest.approx(CLOSED_FORMS[found.expression], abs=1e-15)
    else:
        assert 0 < found.error < found.value < 1
    assert load_lattice(name).threshold("nothing") is None


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
        (3, torus, "a periodic axis 0 of honeycomb needs a multiple of 2"),
        (50_000, free, "at most"),
    ):
        with pytest.raises(InputError, match=message):
            honeycomb.check_size(size, boundary)


def test_file_gives_the_same_lattice_as_its_text(tmp_path):
    path = tmp_path / "kagome.toml"
    path.write_text(TEXTS["kagome"])
    assert load_lattice(str(path)) == lattice("kagome")


def test_positions_need_drawing_vectors():
    bare = lattice_from_text(TEXTS["cubic"].partition("[drawing]")[0], where="x")
    with pytest.raises(ValueError, match="no \\[drawing\\] vectors"):
        bare.positions((2, 2, 2))


# What is replaced in the kagome file (or the unit-cell honeycomb file), and what the error says.
BAD_BLOCKS = {
    "not TOML": ("dimension = 2", "dimension == 2", "is not valid TOML"),
    "huge integer": ("dimension = 2", "dimension = " + "1" * 5000, "is not valid TOML"),
    "misspelt key": ("dimension", "dimensoin", "unknown key 'dimensoin'; did you mean 'dimension'"),
    "strange key": ("dimension", "zzz", "unknown key 'zzz'; known: bonds, cell"),
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
    "no offset": ("offset = [1, 0]\n", "", "bonds[0]: key 'offset' is missing"),
    "offset too short": ("[1, 0]\nat", "[1]\nat", "bonds[0]: offset = [1], but it must be a list"),
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
    "bond twice": ("[[0, 0], [1, 0]]", "[[0, 0], [0, 0]]", "bonds[0]: this bond is given twice"),
    "bond twice, from its other end": (
        "[1, -1]\nat = [[1, 0], [0, 1]]",
        "[-1, 0]\nat = [[1, 0]]",
        "bonds[2]: this bond is given twice",
    ),
    "self-loop": ("[1, -1]", "[0, 0]", "bonds[2]: offset [0, 0] joins a site to itself"),
    "vectors too few": (
        ", [0.5, 0.8660254037844386]]",
        "]",
        "drawing: vectors = [[1.0, 0.0]], but",
    ),
    "vectors of strings": ("[[1.0, 0.0]", '[["a", 0.0]', "drawing: vectors: vector = ['a', 0.0]"),
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
        ("zzz", f"unknown lattice 'zzz'; known: {', '.join(BUILT_IN)}"),
        ("no/such/file.toml", "no/such/file.toml: cannot be read: No such file"),
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
