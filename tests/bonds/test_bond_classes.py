"""Bond percolation with a probability for every class of bonds, from the words to the fit."""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from helpers import assert_cuda_equals_cpu, cpu_labeler, items_of, lattice, slow, slow_but
from slab_support import compare_rows

import percolab
from percolab.analysis.theory.critical import critical_probability
from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND, Model
from percolab.bonds.models.bond_classes import BondClasses
from percolab.bonds.words import GENERATORS, TOP, p_to_threshold, uniform_number
from percolab.coupled import new_coupling
from percolab.coupled.points import PointByPoint
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.lattices.bethe import bethe_lattice
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.lattices.topology import unpack_bits
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey

MODEL = Model.parse("bond:y=0.3")
#: Lattices, shapes of some words and a part of one, boundaries, and what is fixed.
CASES = [
    ("square", (37, 9), ("open", "open"), "bond:y=0.3"),
    ("square", (8, 12), ("periodic", "periodic"), "bond:x=0.45"),
    ("triangular", (33, 7), ("periodic", "open"), "bond:d=0.15,y=0.4"),
    ("square-nnn", (9, 8), ("open", "periodic"), "bond:d=0.05"),
    ("cubic", (5, 4, 6), ("open", "periodic", "open"), "bond:z=0.1"),
    ("honeycomb", (12, 10), ("open", "open"), "bond:y=0.9"),
]


def case_of(name, shape, boundary, text):
    return load_lattice(name).topology(shape, boundary), Model.parse(text)


def limits_by_name(topology, model, p):
    """Return the threshold of every class, from the names and the numbers in the text."""
    fixed = dict(part.split("=") for part in str(model).partition(":")[2].split(","))
    return [p_to_threshold(float(fixed.get(name, p))) for name in topology.class_names]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}")
@pytest.mark.parametrize("generator", GENERATORS.values())
def test_a_bond_is_open_if_its_number_is_below_the_limit_of_its_class(case, generator):
    topology, model = case_of(*case)
    batch, seed, sample = new_batch("cpu", topology, model), np.uint64(2**63 + 9), np.uint64(4)
    exists = unpack_bits(topology.exists.ravel(), 32 * topology.num_bond_words)
    for p in (0.0, 0.5, 1.0):
        batch.fill(generator, seed, np.array([sample]), np.array([p_to_threshold(p)], np.uint64))
        found = unpack_bits(batch.opened, exists.size)
        limits = limits_by_name(topology, model, p)
        for bond in np.flatnonzero(exists):
            word, bit = np.uint32(bond >> 5), np.uint32(bond & 31)
            number = uniform_number(generator, seed, sample, word, bit)
            assert found[bond] == (number < limits[int(word) // topology.num_words])
        assert not found[~exists].any()


@pytest.mark.parametrize(
    "case", slow_but(CASES, CASES[1], CASES[5]), ids=lambda case: f"{case[0]}-{case[3]}"
)
def test_a_grid_of_p_and_thresholds_are_those_of_single_points(case):
    topology, model = case_of(*case)
    coupled = new_coupling("raster", "cpu", topology, model, tally=True)
    # Its labeling is another one, and it is not coupled.
    single = cpu_labeler("reference", topology, model, tally=True)
    samples, ps = np.arange(4, dtype=np.uint64), (0.0, 0.2, 0.4, 0.45, 0.5, 0.55, 0.7, 1.0)
    items = items_of(ps, samples=4)
    rows = coupled.grid_rows(0, 5, samples, items[1][: len(ps)])
    expected = single.rows(0, 5, *items)
    np.testing.assert_array_equal(rows.reshape(-1, rows.shape[-1]), expected)
    if topology.open_axes:
        pair = [find_thresholds(each, 0, 5, samples, (0, TOP)) for each in (coupled, single)]
        np.testing.assert_array_equal(*pair)


@dataclass(frozen=True)
class Unordered(BondClasses):
    """The same model without the hook for the order of bonds."""

    has_order: ClassVar[bool] = False


def test_a_model_without_an_order_is_measured_point_by_point():
    topology = lattice("square").topology((21, 8), ("open", "periodic"))
    unordered, model = Unordered((("y", 0.3),)), BondClasses((("y", 0.3),))
    pair = [new_coupling("raster", "cpu", topology, each) for each in (unordered, model)]
    assert [type(each) is PointByPoint for each in pair] == [True, False]
    samples = np.arange(3, dtype=np.uint64)
    grid = np.array([p_to_threshold(p) for p in (0.4, 0.5, 0.6)], np.uint64)
    np.testing.assert_array_equal(*(each.grid_rows(0, 1, samples, grid) for each in pair))
    np.testing.assert_array_equal(
        *(find_thresholds(each, 0, 1, samples, (0, TOP)) for each in pair)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts", [{"slabs": 3}, {"split": "lattice", "workers": 2}], ids=lambda parts: next(iter(parts))
)
def test_parts_of_a_lattice_are_measured_as_the_whole(parts):
    for name, text, boundary in (
        ("square", "bond:y=0.3", "open"),
        ("triangular", "bond:d=0.1,x=0.5", "periodic"),
    ):
        options = {"L": [21], "p": [0.45], "samples": 6, "device": "cpu", "model": text, "seed": 3}
        whole, cut = (
            percolab.sweep(name, boundary=boundary, **options, **more) for more in ({}, parts)
        )
        (one,), (other,) = whole.tasks.values(), cut.tasks.values()
        assert one.task == other.task
        for number, block in one.blocks.items():
            np.testing.assert_array_equal(block.sums, other.blocks[number].sums)


@pytest.mark.gpu
@pytest.mark.parametrize("labeler", ["tiled", "four_step"])
def test_kernels_on_a_gpu_equal_the_cpu(labeler):
    for n, (name, shape, text, ps) in enumerate(
        (
            ("square", (1030, 517), "bond:y=0.3", (0.69, 0.695, 0.7, 0.8)),
            ("triangular", (258, 130), "bond:d=0.15,y=0.4", (0.4, 0.45, 0.5)),
            ("cubic", (61, 37, 45), "bond:z=0.1", (0.3, 0.33)),
        )
    ):
        item, model = load_lattice(name), Model.parse(text)
        kinds = product(("open", "periodic"), repeat=item.dimension)
        for boundary in kinds:
            topology = item.topology(shape, boundary)
            items = items_of(ps, samples=2)
            assert_cuda_equals_cpu(labeler, topology, items, generator=n % 2, model=model)


@pytest.mark.gpu
def test_slabs_on_a_gpu_equal_the_cpu():
    for boundary, text in (("open", "bond:y=0.3"), ("periodic", "bond:x=0.6")):
        model = Model.parse(text)
        whole = Whole(load_lattice("square"), (1501, 141), (boundary,) * 2, model)
        draw = SampleKey(0, 5, 7, p_to_threshold(0.6))
        compare_rows(whole, [draw], [70, 31, 40])


def test_a_study_keeps_what_is_fixed_alone():
    for text, stored in (
        ("bond:x=p,y=0.30", "bond:y=0.3"),
        ("bond:y=0.3,x=p", "bond:y=0.3"),
        ("bond:y=0.3", "bond:y=0.3"),
        ("bond:x=p,y=p", "bond"),
    ):
        assert str(Model.parse(text).on(load_lattice("square"))) == stored
    options = {"L": [4], "p": [0.5], "samples": 4, "device": "cpu"}
    pair = [percolab.sweep("square", model=text, **options) for text in ("bond:x=p,y=p", "bond")]
    assert [results.study.model for results in pair] == ["bond", "bond"]
    assert pair[0].tasks.keys() == pair[1].tasks.keys()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("square", "bond:w=0.3", "square has no class of bonds w; it has x, y"),
        ("square", "bond:w=p,y=0.3", "square has no class of bonds w; it has x, y"),
        ("square", "bond:x=0.5,y=0.3", "model bond:x=0.5,y=0.3: one of x, y must be p"),
        ("triangular", "bond:z=0.3", "triangular has no class of bonds z; it has d, x, y"),
        ("bethe:3", "bond:x=0.3", "bethe:3 has no named classes of bonds"),
    ],
)
def test_classes_that_a_structure_has_not_are_refused_in_one_line(name, text, message):
    structure = bethe_lattice(name) if ":" in name else load_lattice(name)
    with pytest.raises(InputError, match=message) as found:
        Model.parse(text).on(structure)
    assert "\n" not in str(found.value)


def test_a_topology_without_names_does_not_pass_for_one_where_all_bonds_have_p():
    topology = lattice("square").topology((4, 4))
    object.__setattr__(topology, "class_names", ())
    with pytest.raises(ValueError, match="the classes of bonds are none"):
        new_batch("cpu", topology, MODEL)


BONDS = """
name = "named"
dimension = 2

[cell]
shape = [1, 1]

[[bonds]]
offset = [1, 0]
name = "{x}"

[[bonds]]
offset = [0, 1]

[[bonds]]
offset = [1, 1]
"""


def test_names_of_classes_come_from_the_file_or_from_unit_offsets():
    item, plain = (lattice_from_text(BONDS.format(x=x), where="named") for x in ("east", "x"))
    assert dict(zip((bond.offset for bond in item.bonds), item.class_names, strict=True)) == {
        (-1, 0): "east",
        (0, -1): "y",
        (-1, -1): "",
    }
    assert item.digest == plain.digest
    assert set(load_lattice("honeycomb").class_names) == {"x", "y"}
    with pytest.raises(InputError, match="other than p"):
        lattice_from_text(BONDS.format(x="p"), where="named")


def test_both_diagonals_of_the_square_lattice_are_one_name():
    item = load_lattice("square-nnn")
    assert sorted(item.class_names) == ["d", "d", "x", "y"]
    limits = Model.parse("bond:d=0.25").class_limits(item.class_names)
    assert [limit == p_to_threshold(0.25) for limit in limits] == [
        name == "d" for name in item.class_names
    ]


def test_theory_of_isotropic_lattices_is_not_told_of_anisotropic_percolation():
    place = load_lattice("square"), ("open", "open"), "spanning_x"
    assert critical_probability(*place, "bond") is not None
    assert critical_probability(*place, "bond:y=0.3") is None


def test_memory_of_faces_is_bounded_by_the_largest_probability():
    assert MODEL.most_open(0.1) == 0.3
    assert (MODEL.most_open(0.5), BOND.most_open(0.1)) == (0.5, 0.1)


#: The honeycomb lattice with a class of bonds for each direction, as docs/lattice-format.md has it.
THREE_DIRECTIONS = percolab.Lattice.from_cell(
    [[1.5, 0.75**0.5], [1.5, -(0.75**0.5)]],
    [[0, 0], [1 / 3, 1 / 3]],
    [(0, 1, (0, 0), "a"), (0, 1, (0, -1), "b"), (0, 1, (1, -1), "c")],
    name="three-directions",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "exact"),
    [
        # p_x + p_y = 1, and p_x + p_y + p_d - p_x p_y p_d = 1.
        ("square", "bond:x=p,y=0.3", 0.7),
        slow("triangular", "bond:y=0.3,d=0.2", (1 - 0.3 - 0.2) / (1 - 0.3 * 0.2)),
        # p_a p_b + p_b p_c + p_c p_a - p_a p_b p_c = 1.
        (THREE_DIRECTIONS, "bond:b=0.6,c=0.7", (1 - 0.6 * 0.7) / (0.6 + 0.7 - 0.6 * 0.7)),
    ],
)
def test_thresholds_lie_on_the_exact_critical_line(name, text, exact):
    options = {"L": [16, 32, 64], "samples": 4000, "device": "cpu", "model": text, "seed": 5}
    results = percolab.sweep(name, method="threshold", **options)
    found = percolab.fit(results, "spanning_x")
    assert abs(found.threshold - exact) <= 4 * found.threshold_error
    assert found.threshold_error < 0.01
