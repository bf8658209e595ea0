"""Sizes with sides of their own: -L 64x128."""

import csv
import json
import math
import shlex

import numpy as np
import pytest
from cli_support import answer, refusal, run
from helpers import assert_z

import percolab
from percolab import InputError, load_lattice
from percolab.analysis.theory.critical import WRAPPING, critical_probability, torus_modulus
from percolab.analysis.theory.planar import crossing_probability
from percolab.analysis.theory.torus import wrapping_probabilities
from percolab.lattices.lattice import lattice_from_text
from percolab.tasks.study_file import make_request
from percolab.tasks.values import take_shapes

QUICK = {"p": 0.5, "device": "cpu", "workers": 1}


def test_a_shape_is_a_size_of_the_lattice_with_such_sides():
    lattice, sizes = take_shapes(load_lattice("honeycomb"), "8x12,16x24")
    assert sizes == (4, 8)
    assert [lattice.shape(size) for size in sizes] == [(8, 12), (16, 24)]
    assert lattice.name == "honeycomb 2x3"
    assert lattice.title == "honeycomb (brick wall), 2L \N{MULTIPLICATION SIGN} 3L"
    assert lattice.thresholds == load_lattice("honeycomb").thresholds
    again = lattice_from_text(lattice.source, where="stored")
    assert again == lattice == load_lattice("honeycomb 2x3")


def test_cells_of_several_sites_are_counted_as_always():
    text = """
    name = "ladder"\ndimension = 2
    [unit_cell]
    sites = 2
    bonds = [{ from = 0, to = 1, cell = [0, 0] }, { from = 1, to = 0, cell = [1, 0] },
             { from = 0, to = 0, cell = [0, 1] }]
    """
    lattice, (size,) = take_shapes(lattice_from_text(text, where="ladder"), [(4, 3)])
    assert lattice.shape(size) == (8, 3)


@pytest.mark.parametrize("sizes", [[(6, 6), (8, 8)], "6x6,8x8", ["6x6", 8], (6, 8)])
def test_equal_sides_are_the_lattice_itself(sizes):
    study = make_request("square", L=sizes).study
    usual = make_request("square", L=[6, 8]).study
    assert study == usual
    assert [study.tasks[size].id for size in (6, 8)] == [usual.tasks[size].id for size in (6, 8)]


def test_shapes_of_a_ratio_have_samples_of_their_own():
    tasks = [
        make_request("square", L=[shape], p=0.5).study.tasks[8] for shape in (8, (8, 16), (16, 8))
    ]
    assert len({task.stream_seed for task in tasks}) == 3
    assert [task.num_points for task in tasks] == [64, 128, 128]


@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_a_box_has_the_sample_of_the_sweep(boundary):
    own = {"boundary": boundary, "seed": 2}
    labels = percolab.label("square", (10, 6), 0.5, sample=3, **own)
    assert labels.shape == (6, 10)
    results = percolab.sweep("square", L="10x6", samples=4, block_size=1, **own, **QUICK)
    (row,) = results.tasks.values()
    assert row.task.shape == (10, 6)
    column = [column.name for column in row.columns].index("clusters")
    assert row.blocks[3].sums[0, column] == len(np.unique(labels))


@pytest.mark.slow
def test_every_command_takes_a_box():
    box = "--lattice", "square", "-L", "12x20"
    told = json.loads(answer("label", *box, "-p", "0.5", "--json"))
    assert told["shape"] == [20, 12]
    shown = json.loads(answer("show", *box, "-p", "0.5", "--json"))
    assert shown["title"] == r"square, $L = 12 \times 20$, $p = 0.5$, seed 1"
    again = json.loads(answer("show", "labels.h5", "--json", "--out", "b.png"))
    assert again["prominent"] == shown["prominent"]
    assert percolab.show("square", (12, 20), 0.5).numbers["title"] == shown["title"]
    told = json.loads(answer("show", *box, "--tree", "--json", "--out", "t.png"))
    assert "12 \\times 20" in told["title"]
    told = json.loads(answer("invade", *box, "--out", "i.h5", "--json"))
    found = percolab.invade("square", (12, 20))
    assert told["sizes"][0]["threshold"]["mean"] == found.threshold
    assert found.num_sites == 240
    answer("plot", "i.h5", "--out", "i.png")
    assert percolab.tree("square", "12x20").bonds.shape == (239, 2)
    assert percolab.flow("square", (12, 20), 1.0).length == 19


def test_a_study_of_shapes_says_what_they_are(tmp_path):
    (tmp_path / "own.toml").write_text('lattice = "square"\nL = ["4x8", [6, 12]]\np = [0.4, 0.6]\n')
    line = run("sweep", "own.toml", "--samples", 20, "--device", "cpu").stderr.splitlines()[0]
    assert line.startswith("square 1x2, bond, boundary open; L = 4, 6;")
    assert answer("status", "results.h5").startswith("square, L \N{MULTIPLICATION SIGN} 2L, bond")
    rows = list(csv.DictReader(answer("export", "results.h5").splitlines()))
    assert [(row["lattice"], row["L"], row["sites"]) for row in rows[::2]] == [
        ("square 1x2", "4", "32"), ("square 1x2", "6", "72"),
    ]  # fmt: skip
    study = percolab.open_results("results.h5").study
    assert study.tasks[6].shape == (6, 12)
    assert study == make_request("square 1x2", L=[4, 6], p=[0.4, 0.6]).study


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_rectangles_span_by_cardys_formula(ratio):
    shape = (64, round(64 * ratio)) if ratio >= 1 else (round(64 / ratio), 64)
    study = {"L": [shape], "samples": 2000, **QUICK}
    results = percolab.sweep("square", **study)
    for observable, along in (("spanning_y", ratio), ("spanning_x", 1 / ratio)):
        _, (value,), (error,) = results.means(observable)
        exact = crossing_probability(along)
        assert_z(value, exact, error)
        structure = results.study.structure
        known = critical_probability(structure, ("open", "open"), observable)
        assert known.value == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("lattice", "shape", "p", "tau"),
    [
        ("square", (32, 64), 0.5, 2j),
        ("square", (96, 32), 0.5, 1j / 3),
        ("triangular", (32, 64), 2 * math.sin(math.pi / 18), 2 * (-0.5 + 0.75**0.5 * 1j)),
    ],
)
def test_rectangular_tori_wrap_by_pinsons_formula(lattice, shape, p, tau):
    options = QUICK | {"p": p, "boundary": "periodic"}
    results = percolab.sweep(lattice, L=[shape], samples=3000, **options)
    assert torus_modulus(results.study.structure) == pytest.approx(tau)
    exact = wrapping_probabilities(tau)
    for observable, field in WRAPPING.items():
        _, (value,), _ = results.means(observable)
        expected = getattr(exact, field)
        assert_z(value, expected, math.sqrt(expected * (1 - expected) / 3000))


def test_a_fit_of_rectangles_finds_the_threshold():
    options = QUICK | {"p": [0.44, 0.48, 0.5, 0.52, 0.56]}
    results = percolab.sweep("square", L="8x16,16x32,32x64", samples=1000, **options)
    found = results.fit()
    assert_z(found.threshold, 0.5, found.threshold_error)
    assert found.threshold_error < 0.01
    assert results.plot(kind="curves").numbers["title"].endswith("L \N{MULTIPLICATION SIGN} 2L")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sweep --lattice square -L 4x4x8", "L = 4x4x8 has 3 sides, but square has 2 axes"),
        ("sweep --lattice square -L 8x4,8x8", "L = 8x8: all shapes of a study need the same ratio"),
        ("sweep --lattice square -L 8x16,8", "L = 8: all shapes of a study need the same ratio"),
        ("sweep --lattice square -L 8x0", "L = '8x0', but it must be an integer of at least 1"),
        ("sweep --lattice bethe:3 -L 3x3", "L = 3x3: bethe:3 has no sides"),
        ("sweep --lattice honeycomb -L 4x5 --boundary periodic", "L = 4x5, but along the periodic"),
        ("threshold square -L 8x16", "square 1x2: p_c is found on tori whose sides are equal"),
        ("label --lattice square -L 8x8x8 -p 0.5", "L = 8x8x8 has 3 sides"),
        ("invade --lattice cubic -L 8x9", "L = 8x9 has 2 sides, but cubic has 3 axes"),
        ("bench -L 8x16", "L = '8x16', but sides are equal here"),
        ("lattices square\\ 2x4", "aspect = [2, 4], but it must be positive integers without"),
    ],
)
def test_other_shapes_are_refused(line, told, tmp_path):
    assert told in refusal(*shlex.split(line))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("L", [[(4, 8), (8, 8)], [(4, 0)], [(4.5, 9)], [(4, 8, 8)], "4x", [()]])
def test_shapes_of_python_are_checked(L):
    with pytest.raises(InputError, match=r"L = |L: "):
        percolab.sweep("square", L=L, **QUICK)
