"""A lattice that Python gives by its unit cell is that of a file, with the same messages."""

import re
from dataclasses import replace

import numpy as np
import pytest

import percolab
from percolab.errors import InputError
from percolab.lattices.lattice import Lattice, lattice_from_text, load_lattice

HEIGHT = 3**0.5 / 2
BONDS = [(0, 1, (0, 0)), (0, 1, (-1, 0)), (0, 1, (0, -1))]
HONEYCOMB = ([[1.5, HEIGHT], [0, 2 * HEIGHT]], [[0, 0], [1 / 3, 1 / 3]], BONDS)


def test_a_unit_cell_is_that_of_a_file():
    text = 'name = "h"\ndimension = 2\n[unit_cell]\nsites = 2\nbonds = [\n' + "".join(
        f"{{ from = {u}, to = {v}, cell = {list(cell)} }}," for u, v, cell in BONDS
    )
    found = Lattice.from_cell(*HONEYCOMB, name="h", coordination_number=3)
    assert found.digest == lattice_from_text(f"{text}]\n", where="h").digest
    assert lattice_from_text(found.source, where="again") == found
    arrays = (np.array(HONEYCOMB[0]), np.array(HONEYCOMB[1], np.float32), BONDS)
    numpy_bonds = [(np.int64(u), np.int32(v), np.array(cell)) for u, v, cell in BONDS]
    assert Lattice.from_cell(arrays[0], HONEYCOMB[1], numpy_bonds, name="h").digest == found.digest


def test_sites_are_where_the_cell_has_them():
    lattice = Lattice.from_cell(*HONEYCOMB)
    shape = lattice.shape(3)
    places = lattice.positions(shape)
    ends = lattice.topology(shape).bonds()[:, 1:]
    lengths = np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1)
    np.testing.assert_allclose(lengths, 1.0)


def test_a_lattice_from_python_is_swept_and_stored(tmp_path):
    lattice = Lattice.from_cell(
        *HONEYCOMB, name="mine", title="My honeycomb",
        thresholds=[{"model": "bond", "value": 0.6527, "reference": "Sykes and Essam 1964"}],
    )  # fmt: skip
    path = tmp_path / "a.h5"
    options = {"L": [4], "p": [0.65], "samples": 20, "device": "cpu"}
    percolab.sweep(lattice, out=path, **options)
    stored = percolab.open_results(path).study.structure
    assert stored == lattice
    assert stored.threshold().value == 0.6527
    (tmp_path / "mine.toml").write_text(lattice.source, encoding="utf-8")
    one, other = percolab.sweep(tmp_path / "mine.toml", **options), percolab.open_results(path)
    assert one.tasks.keys() == other.tasks.keys()
    assert load_lattice(tmp_path / "mine.toml") == lattice


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vectors": [[1, 0]]}, "lattice x: vectors have the shape (1, 2), but d vectors"),
        ({"vectors": [[1, 0], [0, np.nan]]}, "lattice x: vectors must be finite numbers"),
        ({"vectors": [[1, 2], [2, 4]]}, "lattice x: vectors = [[1.0, 2.0], [2.0, 4.0]] are"),
        ({"vectors": [[1, 0], [0, 0]]}, "lattice x: vectors = [[1.0, 0.0], [0.0, 0.0]] are"),
        ({"vectors": "ab"}, "lattice x: vectors must be a table of numbers"),
        ({"sites": [0, 0]}, "lattice x: sites have the shape (2,), but those of 2 axes are (n, 2)"),
        ({"bonds": [(0, 1)]}, "lattice x: bond 0 is (0, 1), but a bond is (from, to, cell)"),
        ({"bonds": []}, "lattice x: a lattice needs at least one bond"),
        ({"bonds": [(0, 2, (0, 0))]}, "lattice x: unit_cell: bonds[0]: to = 2, but"),
        ({"bonds": [(0, 0.5, (0, 0))]}, "lattice x: unit_cell: bonds[0]: to = 0.5, but"),
        ({"bonds": [*BONDS, (1, 0, (0, 0))]}, "lattice x: unit_cell: bonds[3]: this bond is given"),
        ({"bonds": [(0, 0, (0, 0))]}, "lattice x: unit_cell: bonds[0]: offset [0, 0] joins"),
        ({"bonds": BONDS[:2]}, "lattice x: the lattice is in pieces: no path of bonds leads"),
        ({"bonds": [(0, 1, object())]}, "lattice x: <object object"),
        ({"coordination_number": 4}, "lattice x: coordination_number = 4, but it must be 3"),
    ],
)
def test_what_is_no_lattice_is_refused_in_one_line(change, message):
    cell = dict(zip(("vectors", "sites", "bonds"), HONEYCOMB)) | change
    with pytest.raises(InputError) as error:
        Lattice.from_cell(**cell, name="x")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


POSITIONS = """
name = "h"
dimension = 2
[unit_cell]
vectors = [[1.5, 0.8660254037844386], [0.0, 1.7320508075688772]]
sites = [[0, 0], [0.3333333333333333, 0.3333333333333333]]
bonds = [
    { from = 0, to = 1, cell = [0, 0] },
    { from = 0, to = 1, cell = [-1, 0] },
    { from = 0, to = 1, cell = [0, -1] },
]
"""


def test_sites_of_a_file_have_positions_as_those_of_python():
    found = lattice_from_text(POSITIONS, where="h")
    own = Lattice.from_cell(*HONEYCOMB, name="h")
    assert found == replace(own, source=found.source)
    assert own.source.count("[") == POSITIONS.count("[")
    without = POSITIONS.replace("sites = [[0, 0], [0.3333333333333333, 0.3333333333333333]]", "")
    counted = re.sub("vectors = .*", "sites = 2", without)
    assert lattice_from_text(counted, where="h").digest == found.digest
    assert lattice_from_text(counted, where="h").vectors == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("vectors = [[1.5, 0.8660254037844386], ", "vectors = [", "h: unit_cell: vectors = "),
        ("vectors = [[1.5, 0.8660254037844386], ", "vectors = [[1.5], ", "h: unit_cell: vectors"),
        ("sites = [[0, 0], ", "sites = [[0], ", "h: unit_cell: sites[0] = "),
        ("sites = [[0, 0], ", 'sites = [["a", 0], ', "h: unit_cell: sites[0] = "),
        ("vectors = [[1.5, 0.8660254037844386], [0.0, 1.7320508075688772]]\n", "",
         "h: unit_cell: key 'vectors' is missing"),
        ("sites = [[0, 0], [0.3333333333333333, 0.3333333333333333]]", "sites = 2",
         "h: unit_cell: vectors go with positions of its sites"),
        ("\n[unit_cell]", "\ndrawing = { vectors = [[1.0, 0.0], [0.0, 1.0]] }\n[unit_cell]",
         "h: sites of the unit cell have positions; leave out drawing"),
        ("sites = [[0, 0], [0.3333333333333333, 0.3333333333333333]]", "sites = []",
         "h: unit_cell: sites = []"),
    ],
)  # fmt: skip
def test_positions_that_are_none_are_refused_in_one_line(old, new, message):
    assert old in POSITIONS
    with pytest.raises(InputError) as error:
        lattice_from_text(POSITIONS.replace(old, new), where="h")
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
