"""percolab tree --weights, and percolab show --tree: one tree, printed, written and drawn."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, left_in, refusal, run
from matplotlib.collections import LineCollection

import percolab
from percolab.figures.bond_maps import plot_spanning_tree
from percolab.lattices.graph_files import read_graph

ON_CPU = ("--device", "cpu")

ROADS = "source,target,weight\n4,1,3\n1,0,-2\n4,0,5\n2,2,1\n3,2,9007199254740993\n1,4,4\n"


@pytest.fixture
def roads():
    Path("roads.csv").write_text(ROADS)
    return ("tree", "--graph", "roads.csv", *ON_CPU)


def test_the_tree_of_a_graph_file_is_printed_and_written(roads):
    said = run(*roads, "--weights", "file", "--out", "out.csv", "--source", "0", "--target", "4")
    assert said.exit_code == 0
    assert said.stdout.splitlines() == [
        "minimum spanning forest of roads.csv, which is not connected: 2 trees; 5 sites, 3 bonds "
        "of 4 (kruskal)",
        "weight 9007199254740994",
        "path source-target: 2 bonds, largest weight 3",
        "tree in out.csv",
    ]
    assert [line.split(" ")[:2] for line in said.stderr.splitlines()] == [
        ["roads.csv:", "1"],
        ["roads.csv:", "1"],
    ]
    rows = ["source,target,weight", "0,1,-2", "1,4,3", "2,3,9007199254740993"]
    assert Path("out.csv").read_text().splitlines() == rows


@pytest.mark.parametrize(
    ("middle", "told"),
    [
        ("inf", "forest of line.csv, which its bonds of finite weight do not connect: 2 trees; "),
        ("7.5", "tree of line.csv; "),
    ],
)
def test_what_only_solid_bonds_connect_is_not_said_to_be_unconnected(middle, told):
    Path("line.csv").write_text(f"source,target,weight\n0,1,0.5\n1,2,{middle}\n2,3,2.5\n")
    said = run("tree", "--graph", "line.csv", "--weights", "file", *ON_CPU)
    assert said.stdout.startswith(f"minimum spanning {told}4 sites, ")


def test_names_of_sites_are_written():
    text = 'graph [ node [ id 0 label "a, b" ] node [ id 1 label "c" ] edge [ source 0 target 1 '
    Path("a.gml").write_text(text + "weight 0.25 ] ]")
    answer("tree", "--graph", "a.gml", "--weights", "file", "--out", "a.csv", *ON_CPU)
    assert Path("a.csv").read_text() == 'source,target,weight\n"a, b",c,0.25\n'


def test_weights_of_a_graph_may_be_an_array(roads):
    # One for each bond, in the order of the file, parallel edges merged.
    np.save("w.npy", np.array([1.5, -2.0, 0.5, 7.0]))
    said = json.loads(answer(*roads, "--weights", "w.npy", "--out", "out.npz", "--json"))
    assert said["weight"] == 5.5
    found = read_graph("out.npz", weights=True)
    assert found.bonds.tolist() == [[0, 1], [0, 4], [2, 3]]
    assert found.weights.tolist() == [-2.0, 0.5, 7.0]
    of_graph = percolab.tree(graph="roads.csv", weights="w.npy")
    assert of_graph.weights.tolist() == [-2.0, 0.5, 7.0]
    own = json.loads(answer(*roads, "--weights", "file", "--json"))["weight"]
    assert percolab.tree(graph="roads.csv", weights="file").weight == own != of_graph.weight


@pytest.mark.parametrize("suffix", ["npy", "h5"])
def test_the_words_of_a_lattices_tree_are_a_configuration_of_bonds(suffix):
    weights = np.random.default_rng(2).random((3, 8, 8))
    np.save("w.npy", weights)
    with h5py.File("w.h5", "w") as file:
        file["a/b"] = weights
    name = {"npy": "w.npy", "h5": "w.h5:/a/b"}[suffix]
    options = ("--lattice", "triangular", "-L", 8)
    tree = ("tree", *options, "--weights", name, "--boundary", "open,periodic", *ON_CPU)
    said = answer(*tree, "--out", f"tree.{suffix}")
    found = percolab.tree("triangular", weights=weights, boundary=["open", "periodic"])
    assert said.splitlines()[1] == f"weight {found.weight}"
    same = percolab.tree("triangular", 8, weights=name, boundary="open,periodic")
    assert same.bonds.tolist() == found.bonds.tolist()
    words = {"npy": "tree.npy", "h5": "tree.h5:/words"}[suffix]
    label = ("label", words, *options, "--boundary", "open,periodic", "--json")
    assert json.loads(answer(*label))["clusters"] == 1
    assert answer(*tree, "--out", f"tree.{suffix}") == said, "the same file is written again"


def test_an_h5_file_holds_bonds_and_weights(roads):
    answer(*roads, "--weights", "file", "--out", "tree.h5")
    with h5py.File("tree.h5") as file:
        assert file["bonds"][...].tolist() == [[0, 1], [1, 4], [2, 3]]
        assert file["weights"][...].tolist() == [-2, 3, 2**53 + 1]
        assert json.loads(file.attrs["record"])["parts"] == 2
        assert "words" not in file, "sites have other numbers there"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--weights", "file", "--seed", 2), "--seed: given weights (--weights) have no samples"),
        (("--weights", "file", "-L", 4), "-L: a graph has its own; leave it out"),
        (("--weights", "file", "--out", "a.txt"), "a.txt: cannot write a tree as '.txt'; use .csv"),
        (("--weights", "file", "--out", "a.npy"), "a.npy: a .npy file stores trees of lattices"),
        (("--weights", "file", "--out", "roads.csv"), "roads.csv: is the input itself"),
        (("--weights", "file", "--out", "other.h5"), "other.h5: holds something else than a tree"),
        (("--weights", "file", "--source", "9", "--target", "0"), "source: sites '9': site '9'"),
        (("--weights", "none.npy"), "none.npy: no such file"),
        (("--weights", "w.npy"), "w.npy: weights of the shape (2, 3, 3), but roads.csv has 4 bo"),
        (("--weights", "w.png"), "w.png: weights are a .npy file or an HDF5 dataset"),
    ],
)
def test_what_does_not_go_with_a_weighted_graph_is_refused(roads, options, told):
    Path("roads.csv").write_text('"from","to",weight\n4,1,3\n1,0,-2\n4,0,5\n3,2,9\n')
    np.save("w.npy", np.zeros((2, 3, 3)))
    with h5py.File("other.h5", "w") as file:
        file["data"] = 1
    before = left_in()
    assert told in refusal(*roads, *options)
    assert left_in() == before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("tree --weights w.npy", "tree: give a lattice or a graph"),
        ("tree --weights file --lattice square", "--weights file: only a graph's file"),
        ("tree --weights w.npy --lattice square -L 3,4", "-L: weights have one size"),
        ("tree --weights w.npy --lattice square -L 4", "w.npy: weights have the shape"),
        ("tree --weights w.npy --lattice square --multi", "--multi: only a graph has it"),
        (
            "tree --weights nan.npy --lattice square",
            "weights[1, 2, 0]: weight nan, but a weight is",
        ),
        ("tree --weights text.npy --lattice square", "text.npy: weights are <U1, but they"),
        ("tree --graph a.txt --weights file", "a.txt: line 1: '0 1', but there is no weight in co"),
        ("show --tree --lattice square -L 8 -p 0.5", "-p: a tree is of all bonds"),
        ("show --tree --lattice square", "a picture of a sample needs -L"),
        ("show --tree --lattice cubic -L 4", "cubic: only trees in two dimensions are drawn"),
        (
            "show --tree --lattice square -L 512",
            "262144 grid points, but trees are drawn for at mo",
        ),
        ("show --tree labels.h5", "--tree: labels have none (a lattice goes with --lattice)"),
        ("show --tree --lattice square --weights w.npy --seed 2", "--seed: weights are given"),
        ("show --lattice square -L 8 -p 0.5 --weights w.npy", "--weights: only a tree has it; lea"),
    ],
)
def test_what_does_not_go_with_a_tree_is_refused(command, told):
    values = np.zeros((2, 3, 3))
    np.save("w.npy", values)
    values[1, 2, 0] = np.nan
    np.save("nan.npy", values)
    np.save("text.npy", np.full((2, 3, 3), "a"))
    Path("a.txt").write_text("0 1\n1 2\n")
    assert told in refusal(*command.split())


# Pictures


@pytest.mark.parametrize("boundary", ["open", "periodic,open", "periodic"])
def test_every_bond_of_the_tree_is_drawn_at_its_place_and_the_trunk_stands_out(boundary):
    found = percolab.tree("honeycomb", 12, seed=2, boundary=boundary)
    trunk = found.trunk(1) if boundary != "periodic" else np.empty(0, np.int64)
    figure, numbers = plot_spanning_tree(found, trunk=trunk)
    others, bold = (item for item in figure.axes[0].collections if isinstance(item, LineCollection))
    places = found.structure.positions(found.topology.shape)
    ends = places[found.bonds]
    inside = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) < 1.5
    is_trunk = np.isin(np.arange(len(ends)), trunk)
    for drawn, chosen in ((others, ~is_trunk), (bold, is_trunk)):
        lines = {frozenset(map(tuple, np.round(line, 6))) for line in drawn.get_segments()}
        expected = ends[chosen & inside]
        halves = 2 * np.count_nonzero(chosen & ~inside)
        assert len(drawn.get_segments()) == len(expected) + halves
        assert {frozenset(map(tuple, np.round(line, 6))) for line in expected} <= lines
    # A bond has the colour of its weight; halves those of one bond.
    shown = others.get_array()
    assert set(shown.tolist()) == set(found.weights[~is_trunk].tolist())
    middles = {
        tuple(np.round(line.mean(axis=0), 6)): n for n, line in enumerate(others.get_segments())
    }
    for place in np.flatnonzero(~is_trunk & inside):
        line = middles[tuple(np.round(ends[place].mean(axis=0), 6))]
        assert shown[line] == found.weights[place]
    # Half of a bond across the boundary begins at one of its two sites.
    site_at = {tuple(np.round(place, 6)): site for site, place in enumerate(places)}
    for line, weight in zip(others.get_segments(), shown.tolist(), strict=True):
        bond = found.bonds[found.weights.tolist().index(weight)]
        assert site_at[tuple(np.round(line[0], 6))] in bond
    assert numbers["trunk"] == found.bonds[trunk].tolist()
    assert bold.get_linewidths()[0] > 1.5 * others.get_linewidths()[0]


def test_the_tree_of_a_sample_is_shown():
    options = ("show", "--tree", "--lattice", "square", "-L", 8, "--seed", 3, "--out", "a.png")
    numbers = json.loads(answer(*options, "--json"))
    found = percolab.tree("square", 8, seed=3)
    assert numbers["weights"] == found.weights.tolist()
    assert numbers["trunk"] == found.bonds[found.trunk(1)].tolist()
    assert left_in() == ["a.png"]
    np.save("w.npy", np.arange(32).reshape(2, 4, 4))
    numbers = json.loads(
        answer("show", "--tree", "--lattice", "square", "--weights", "w.npy", "--json")
    )
    assert numbers["integers"]
