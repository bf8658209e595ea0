"""Extended neighbourhoods by name, as square:1-3."""

import tomllib
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal

import percolab
from percolab import InputError, load_lattice
from percolab.lattices.lattice import lattice_from_text
from percolab.lattices.shells import find_shells, parse_shells, shells_text

_DATA = Path(percolab.__file__).parent / "lattices/neighbourhoods.toml"
#: By the name of a neighbourhood, the source of its published threshold, and the value.
PUBLISHED = {
    name: (paper, value)
    for paper in tomllib.loads(_DATA.read_text(encoding="utf-8"))["papers"]
    for name, value in paper["values"].items()
}
#: Quadratic forms whose values at integers are squares of distances, and which integers are sites.
FORMS = {
    "square": (2, lambda x, y: x * x + y * y, None),
    "triangular": (2, lambda x, y: x * x + x * y + y * y, None),
    # A triangular lattice without one of its three sublattices, seen from a site of another.
    "honeycomb": (2, lambda x, y: x * x + x * y + y * y, lambda x, y: (x - y) % 3 != 2),
    "kagome": (2, lambda x, y: x * x + x * y + y * y, lambda x, y: not (x % 2 and y % 2)),
    "cubic": (3, lambda *x: sum(n * n for n in x), None),
    "bcc": (3, lambda *x: sum(n * n for n in x), lambda *x: len({n % 2 for n in x}) == 1),
    "fcc": (3, lambda *x: sum(n * n for n in x), lambda *x: sum(x) % 2 == 0),
    "hypercubic-4d": (4, lambda *x: sum(n * n for n in x), None),
}


def counted(name, last):
    """Return the sites in each shell, by counting lattice vectors of each length."""
    axes, form, is_site = FORMS[name]
    reach = 4 if axes == 4 else 9
    found = Counter(
        form(*point)
        for point in product(range(-reach, reach + 1), repeat=axes)
        if any(point) and (is_site is None or is_site(*point))
    )
    return [found[length] for length in sorted(found)[:last]]


@pytest.mark.parametrize("name", FORMS)
def test_shells_have_the_sites_that_lattice_vectors_of_each_length_count(name):
    last = 5
    lattice, sizes = load_lattice(name), counted(name, last)
    found = find_shells(lattice, last)
    assert [len(shell) / len(lattice.sites) for shell in found] == sizes
    for shell in (1, last):
        joined = load_lattice(f"{name}:1-{shell}")
        assert joined.coordination_number == sum(sizes[:shell])


def test_diamond_has_the_shells_of_two_sublattices():
    found = find_shells(load_lattice("diamond"), 5)
    # Odd shells lead to the other sublattice, even ones are shells of fcc and of the same.
    assert [len(shell) / 8 for shell in found] == [4, 12, 12, 6, 12]
    squares = [(shell[0][2] / found[0][0][2]) ** 2 for shell in found]
    assert squares == pytest.approx([1, 8 / 3, 11 / 3, 16 / 3, 19 / 3])


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("square:1-2", "square-nnn"), ("square:1,2", "square-nnn"), ("square:1", "square"),
        ("triangular:1", "triangular"), ("honeycomb:1", "honeycomb"), ("kagome:1", "kagome"),
        ("cubic:1", "cubic"), ("bcc:1", "bcc"), ("fcc:1", "fcc"), ("diamond:1", "diamond"),
    ],
)  # fmt: skip
def test_a_neighbourhood_equals_the_lattice_of_the_library_bond_for_bond(name, known):
    found, library = load_lattice(name), load_lattice(known)
    assert [(bond.offset, bond.at) for bond in found.bonds] == [
        (bond.offset, bond.at) for bond in library.bonds
    ]
    assert found.digest == library.digest
    assert found.thresholds == library.thresholds
    sizes = (4,) * found.dimension
    np.testing.assert_array_equal(
        percolab.label(found, sizes, 0.4, seed=3), percolab.label(library, sizes, 0.4, seed=3)
    )


def test_published_thresholds_are_those_of_the_data_and_in_the_source():
    for name, (paper, value) in PUBLISHED.items():
        lattice = load_lattice(name)
        assert lattice.name == name  # or it would not be found
        (known,) = lattice.thresholds
        assert (known.model, known.value, known.error) == (paper["model"], value, paper["error"])
        assert (known.reference, known.cite) == (paper["reference"], paper["cite"])
        assert lattice_from_text(lattice.source, where=name).thresholds == lattice.thresholds
    assert "0.1372(1)" in answer("lattices", "cubic:2,1")
    assert load_lattice("square:1-3").thresholds == ()
    assert "p_c" not in answer("lattices", "square:1,3")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[] if name in ("cubic:1-2", "square:1-7") else pytest.mark.slow)
    for name in PUBLISHED
])  # fmt: skip
def test_samples_at_a_published_threshold_are_critical(name):
    """As many tori wrap as with nearest neighbours alone; a value that is 2 % off fails."""
    paper, value = PUBLISHED[name]
    nearest = load_lattice(name.partition(":")[0])
    options = {"L": {2: 96, 3: 20, 4: 8}[nearest.dimension], "model": paper["model"]}
    options |= {"boundary": "periodic", "samples": 600, "device": "cpu", "seed": 2, "workers": 1}
    known = nearest.threshold(paper["model"]).value
    points = ((name, value), (nearest, known))
    wraps = [percolab.sweep(x, p=p, **options).means("wrapping_any")[1][0] for x, p in points]
    assert abs(wraps[0] - wraps[1]) < 0.1


@pytest.mark.parametrize(
    ("text", "shells"), [("1-3", (1, 2, 3)), ("4,1,2", (1, 2, 4)), ("7", (7,))]
)
def test_shells_are_written_in_one_way(text, shells):
    assert parse_shells(text, "") == shells
    assert parse_shells(shells_text(shells), "") == shells
    assert load_lattice(f"cubic:1,{text}").name == f"cubic:{shells_text(tuple({1, *shells}))}"


def test_a_shell_has_a_probability_of_its_own():
    lattice = load_lattice("square:1-2")
    assert set(lattice.class_names) == {"s1", "s2"}
    mixed = percolab.label(lattice, 8, 0.45, model="bond:s1=p,s2=0.0", seed=5)
    assert len(np.unique(mixed)) > len(np.unique(percolab.label(lattice, 8, 0.45, seed=5)))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("square:2", "square:2: the lattice is in pieces"),
        ("square:0", "square:0: shells are numbers from 1 to 20 as 1-3 or 1,2,4, but '0' is given"),
        ("square:3-1", "but '3-1' is given"),
        ("square:1-21", "but '1-21' is given"),
        ("square:", "but '' is given"),
        ("lieb:1-2", "lieb:1-2: sites of lieb have different shells of neighbours"),
        ("hypercubic-5d:1-9", "these shells have more than 512 sites"),
        ("squar:1-2", "unknown lattice 'squar:1-2'"),
    ],
)
def test_what_is_no_neighbourhood_is_refused_in_one_line(name, told):
    with pytest.raises(InputError) as error:
        load_lattice(name)
    assert told in str(error.value)
    assert refusal("lattices", name).endswith(str(error.value)[-40:])
