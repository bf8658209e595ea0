"""Graphs, options and records of graphs that cannot be used are refused in one line."""

import json
from pathlib import Path

import h5py
import pytest
from cli_support import answer, put_text, refusal, sealed_again, text_of
from graph_file_support import write_edges

import percolab
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.graph import Graph, load_graph
from percolab.store.results import read_results
from percolab.tasks.kind import make_sampler

CPU = Device("cpu")


#: Five bonds from 0 to 3: the dual of the bridge is the bridge, so R(1/2) = 1/2.
BRIDGE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


#: What a sweep of a graph can get wrong, as options or as the text of the graph's file.
WRONG = {
    ("--graph", "nowhere.txt"): "nowhere.txt: no such file",
    ("--source", "0"): "belong to a graph",
    ("--graph", "g.txt", "--source", "0"): "source is given without target",
    ("--graph", "g.txt", "--source", "0", "--target", "9"): "target: sites '9': site '9', but",
    ("--graph", "g.txt", "--source", "0", "--target", "far"): "target: far: no such file",
    ("--graph", "g.txt", "--lattice", "square"): "lattice = 'square', but a graph has its own",
    ("--graph", "g.txt", "-L", "8"): "L = [8], but a graph has its own",
    ("--graph", "g.txt", "--boundary", "open"): "boundary = 'open', but a graph has its own",
    ("--graph", "g.txt", "--method", "threshold"): "needs a source and a target",
    ("--graph", "g.txt", "--target-error", "0.1"): "give the number of samples",
    ("--graph", "bad.txt"): "bad.txt: line 2",
    ("--graph", "bad.npz"): "bad.npz: ",
    ("--graph", "bad.mtx"): "bad.mtx: ",
    ("--graph", "bad.gml"): "bad.gml: ",
    ("--graph", "huge.txt"): "renumber the sites",
}


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_what_cannot_be_sampled_is_refused_in_one_line_and_leaves_nothing(options):
    write_edges("g.txt", BRIDGE)
    for ending in ("npz", "mtx", "gml"):
        Path(f"bad.{ending}").write_bytes(b"\x80\x04cos\nsystem\n")
    Path("bad.txt").write_text("0 1\n0 __import__('os')\n")
    Path("huge.txt").write_text("0 2147483000\n")
    before = sorted(Path().iterdir())
    assert WRONG[options] in refusal("sweep", *options)
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, []), "a graph has 1 to"),
        ((2, [(0, 2)]), "bond names site 2; sites are 0 to 1"),
        ((2, [(0, 1, 1)]), "two sites"),
        ((2, [(0.5, 1)]), "bond: sites must be integers"),
        ((2, [], [0], [-1]), "target names site -1"),
        ((2, [], [0], []), "give both, or none"),
    ],
)
def test_a_graph_that_is_none_is_refused(arguments, message):
    num_sites, bonds, *ends = arguments
    with pytest.raises(InputError) as error:
        Graph.of_bonds(num_sites, bonds, **dict(zip(("source", "target"), ends)))
    assert message in str(error.value)


def test_a_graph_without_its_bonds_is_not_sampled():
    write_edges("bridge.txt", BRIDGE)
    answer("sweep", "--graph", "bridge.txt", "-p", "0.5", "--samples", 10, "--quiet")
    study = read_results("results.h5").study
    assert study.structure == load_graph("bridge.txt")
    with pytest.raises(InputError, match=r"bonds of bridge\.txt are not in a results file"):
        make_sampler(study.task(4), device=CPU).sample([0])


DAMAGED = {
    "another kind": {"kind": "lattice"},
    "no digest": {"digest": None},
    "another digest": {"digest": "0" * 16},
    "another size": {"num_sites": 5},
    "no size": {"num_sites": "4"},
    "a key more": {"bonds": []},
    "terminals": {"num_sources": 1, "num_targets": 1},
}


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_of_a_graph_is_refused_with_the_name_of_the_file(change):
    percolab.sweep(graph=Graph.of_bonds(4, BRIDGE), p=[0.5], samples=10, device="cpu", out="g.h5")
    with h5py.File("g.h5", "r+") as file:
        record = json.loads(text_of(file, "structure")) | change
        put_text(file, "structure", json.dumps(record))
    sealed_again(Path("g.h5"))
    assert refusal("status", "g.h5").startswith("g.h5: ")
