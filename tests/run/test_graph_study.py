"""A graph is sampled, stored, continued and reported on like a lattice of one size."""

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest
from cli_support import (
    answer,
    assert_equal_datasets,
    put_text,
    refusal,
    run,
    sealed_again,
    stored,
    text_of,
)
from graph_file_support import write_edges
from helpers import assert_z, cpu_labeler, slow

import percolab
from percolab import Graph, InputError, load_graph, load_lattice
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.kernels.device import Device
from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import SPANNING
from percolab.store.results import read_results
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Study
from percolab.tasks.study_file import read_request

CPU = Device("cpu")
#: Two complete graphs of four sites with a bond between them.
DUMBBELL = [*nx.complete_graph(4).edges, *((a + 4, b + 4) for a, b in nx.complete_graph(4).edges)]
DUMBBELL += [(0, 4)]
#: Five bonds from 0 to 3: the dual of the bridge is the bridge, so R(1/2) = 1/2.
BRIDGE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
KARATE = nx.karate_club_graph()


def write_matrix(path, num_sites, pairs):
    """Write a graph with all its sites, those without bonds too."""
    lines = [f"{max(pair) + 1} {min(pair) + 1}\n" for pair in pairs]
    head = (
        f"%%MatrixMarket matrix coordinate pattern general\n{num_sites} {num_sites} {len(lines)}\n"
    )
    Path(path).write_text(head + "".join(lines))
    return path


def study_of(graph, **options):
    boundary = graph.boundaries[: graph.dimension]
    return Study(structure=graph, sizes=(graph.num_sites,), boundary=boundary, **options)


def open_pairs(topology, seed, sample, p):
    """Return the bonds of a sample that are open, as pairs of sites."""
    labeler = cpu_labeler("raster", topology)
    labeler.open_bonds(XORWOW, seed, sample, p_to_threshold(p))
    is_open = unpack_bits(labeler.opened.reshape(topology.exists.shape), topology.num_points)
    klass, owner, other = topology.bonds().T
    return np.column_stack([owner, other])[is_open[klass, owner]].tolist()


@pytest.mark.parametrize("name", ["square", slow("honeycomb"), "triangular", slow("cubic")])
def test_a_configuration_gives_the_same_row_through_its_lattice_and_through_graph(name):
    lattice = load_lattice(name)
    for kind, p in product(("open", "periodic"), (0.3, 0.65)):
        boundary = ("open", *[kind] * (lattice.dimension - 1))
        study = Study(structure=lattice, sizes=(6,), boundary=boundary, p=(p,))
        sampler = make_sampler(study.tasks[6], device=CPU)
        row = sampler.rows(np.array([0], np.uint64), np.array([p_to_threshold(p)], np.uint64))[0]
        topology = sampler.topology
        pairs = open_pairs(topology, sampler.task.stream_seed, 0, p)
        assert 0 < len(pairs) < topology.num_bonds
        write_matrix("opened.mtx", topology.num_points, pairs)
        for end, sites in zip(("left", "right"), topology.end_layers[0]):
            Path(f"{end}.txt").write_text("\n".join(map(str, sites.tolist())))
        answer("sweep", "--graph", "opened.mtx", "--source", "left.txt", "--target", "right.txt",
               "-p", 1, "--samples", 1, "--out", f"{kind}{p}.h5", "--quiet")  # fmt: skip
        (item,) = read_results(f"{kind}{p}.h5").tasks.values()
        found = item.blocks[0].sums[0]
        expected = [*row[:SPANNING], row[SPANNING] & 1]
        np.testing.assert_array_equal(found, item.task.block_size * np.array(expected))


def exact_means(num_sites, bonds):
    """Return p and the exact <s_2>, chi and var(s_1)/<s_1> there, from every configuration."""
    p = np.linspace(0, 1, 20001)
    sums = np.zeros((4, len(bonds) + 1))
    for opened in product((False, True), repeat=len(bonds)):
        graph = nx.empty_graph(num_sites)
        graph.add_edges_from(bond for bond, is_open in zip(bonds, opened) if is_open)
        first, second, *_ = [*sorted(map(len, nx.connected_components(graph)))[::-1], 0]
        squares = sum(len(cluster) ** 2 for cluster in nx.connected_components(graph))
        sums[:, sum(opened)] += second, squares - first**2, first, first**2
    number = np.arange(len(bonds) + 1)[:, None]
    second, others, first, squares = sums @ (p**number * (1 - p) ** number[::-1])
    return p, {"second": second, "chi": others, "ratio": (squares - first**2) / first}


@pytest.mark.slow
def test_estimators_of_a_small_graph_are_at_the_exact_maxima():
    graph = Graph.of_bonds(8, DUMBBELL)
    results = percolab.sweep(graph=graph, samples=40_000, seed=3, device="cpu")
    p, exact = exact_means(8, DUMBBELL)
    (size,) = percolab.estimates(results)
    assert [item.name for item in size.estimates] == ["second", "chi", "ratio"]
    assert size.samples == 40_000
    assert size.notes == ()
    for item in size.estimates:
        assert 0 < item.error < 0.02
        assert_z(item.p, p[exact[item.name].argmax()], item.error)


@pytest.mark.parametrize("method", [slow("grid"), "threshold"])
def test_median_of_the_bridge_is_one_half(method):
    graph = Graph.of_bonds(4, BRIDGE, source=[0], target=[3])
    results = percolab.sweep(graph=graph, samples=20_000, method=method, device="cpu")
    median = percolab.estimates(results)[0].estimates[-1]
    assert median.name == "median"
    assert 0 < median.error < 0.01
    assert_z(median.p, 0.5, median.error)


@pytest.mark.parametrize(("multi", "bonds"), [(False, 1), (True, 3)])
def test_parallel_edges_are_bonds_of_their_own_if_they_are_kept(multi, bonds):
    write_edges("triple.txt", [(0, 1), (1, 0), (0, 1)])
    result = run("sweep", "--graph", "triple.txt", "--source", "0", "--target", "1", "-p", "0.3",
                 "--samples", 4000, *["--multi"] * multi)  # fmt: skip
    assert f"triple.txt: 2 sites, {bonds} bond{'s' * multi}, source" in result.stdout
    assert result.stderr.count("2 parallel edges merged") == (not multi)
    (item,) = read_results("results.h5").tasks.values()
    expected = 1 - 0.7**bonds
    error = np.sqrt(expected * (1 - expected) / item.num_samples)
    assert_z(item.column("spanning").sum() / item.num_samples, expected, error)


@pytest.mark.slow
def test_a_results_file_is_read_without_the_graph(tmp_path):
    nx.write_edgelist(KARATE, "karate.txt", data=False)
    sweep = ("sweep", "--graph", "karate.txt", "--samples", 1000, "--out", "one.h5")
    printed = answer(*sweep, "--quiet")
    assert printed.startswith(
        "karate.txt: 34 sites, 78 bonds; results in one.h5\n34 sites, 1000 samp"
    )
    answer(*sweep[:-1], "two.h5", "--seed", 2, "--quiet")
    Path("karate.txt").unlink()
    answer("merge", "one.h5", "two.h5", "--out", "both.h5")
    assert "karate.txt: 34 sites, 78 bonds, bond percolation\n" in answer("status", "both.h5")
    record = json.loads(answer("fit", "both.h5", "--json"))
    assert [size["samples"] for size in record] == [2000]
    assert "p = " in answer("fit", "one.h5")
    assert answer("export", "one.h5").splitlines()[1].startswith("karate.txt,bond,,34,34,1,")
    numbers = json.loads(answer("plot", "both.h5", "--json"))
    assert len(numbers["curves"]) == 2
    assert numbers["sizes"] == record
    assert Path("both.png").read_bytes()[:4] == b"\x89PNG"
    again = stored(tmp_path / "again.h5", read_results("both.h5"))
    assert again.read_bytes() == Path("both.h5").read_bytes()


def test_a_sweep_is_continued_with_the_same_graph_under_any_name_and_with_no_other():
    edges = list(KARATE.edges)
    write_edges("karate.txt", edges)
    write_edges("renamed.csv", [edge[::-1] for edge in edges])
    write_edges("turned.txt", edges[::-1])
    ends = ("--source", "0", "--target", "33", "-p", "0.2,0.3", "--out", "one.h5", "--quiet")
    answer("sweep", "--graph", "karate.txt", *ends, "--samples", 1000)
    answer("sweep", "--graph", "renamed.csv", *ends, "--samples", 3000)
    whole = percolab.sweep(graph="karate.txt", source=[0], target="33", p=[0.2, 0.3], samples=3000,
                           device="cpu")  # fmt: skip
    assert_equal_datasets(Path("one.h5"), stored(Path("whole.h5"), whole))
    message = refusal("sweep", "--graph", "turned.txt", *ends, "--samples", 400)
    assert "one.h5: was sampled on renamed.csv (digest " in message
    assert "turned.txt has other sites, bonds, source or target" in message
    assert "other sites, bonds, source or target" in refusal(
        "sweep", "--graph", "karate.txt", "--source", "1", *ends[2:], "--samples", 400
    )
    assert "holds another study (lattice is renamed.csv there" in refusal(
        "sweep", "--lattice", "square", "-L", 4, "-p", "0.5", "--out", "one.h5"
    )


def test_a_study_file_names_a_graph_next_to_it(tmp_path, monkeypatch):
    write_edges("bridge.txt", BRIDGE)
    Path("ends.txt").write_text("# far end\n3\n")
    keys = 'graph = "bridge.txt"\nsource = 0\ntarget = "ends.txt"\nmulti = true\np = [0.5]\n'
    Path("study.toml").write_text(keys)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    study = read_request(tmp_path / "study.toml", {}).study
    assert study.structure == Graph.of_bonds(4, BRIDGE, source=[0], target=[3], name="bridge.txt")
    assert study.sizes == (4,)
    assert study.boundary == ("terminals",)


def test_the_pilot_reports_terminals_without_a_path_and_given_p_count_them():
    write_edges("apart.txt", [(0, 1), (2, 3)])
    ends = ("--graph", "apart.txt", "--source", "0", "--target", "3", "--samples", 100, "--quiet")
    assert "apart.txt spans at p = 1 in no sample" in refusal("sweep", *ends)
    message = answer("sweep", *ends, "-p", "0.5,1")
    assert "p = -" in message
    assert "R(p) does not pass 1/2" in message


def test_a_maximum_at_the_end_of_the_grid_is_called_so():
    write_edges("karate.txt", KARATE.edges)
    message = answer(
        "sweep", "--graph", "karate.txt", "-p", "0.4:0.9:6", "--samples", 2000, "--quiet"
    )
    assert message.count("p = 0.4 ") == 3
    assert message.count("(at an end of the grid)") == 3
    assert "may lie beyond it" in message


@pytest.mark.parametrize(("edges", "end"), [([], 0.9), ([(0, 1)], 0.5)], ids=["none", "one bond"])
def test_the_pilot_of_a_graph_without_a_maximum_covers_where_its_means_are_high(edges, end):
    (item,) = percolab.sweep(
        graph=Graph.of_bonds(2, edges), samples=10, device="cpu"
    ).tasks.values()
    assert item.task.p[0] < 0.1
    assert item.task.p[-1] > end


def test_hubs_come_first_where_the_list_of_neighbours_would_be_long():
    hub = 10**5
    star = np.column_stack([np.full(hub, hub), np.arange(hub)])
    last = Graph.of_bonds(hub + 1, star, source=[hub], target=[3])
    assert last.num_classes == 1
    topology = last.topology(last.shape(hub + 1))
    # The hub is number 0, and what was number 3 is 4.
    assert [layer.tolist() for layer in topology.end_layers[0]] == [[0], [4]]
    assert topology.num_bonds == hub


def test_a_graph_is_known_by_its_sites_bonds_and_terminals():
    ends = {"source": [0], "target": [3]}
    digest = Graph.of_bonds(4, BRIDGE, **ends).digest
    assert Graph.of_bonds(4, np.array(BRIDGE)[:, ::-1], name="same", **ends).digest == digest
    others = [
        Graph.of_bonds(5, BRIDGE, **ends),
        Graph.of_bonds(4, BRIDGE[::-1], **ends),
        Graph.of_bonds(4, BRIDGE[1:], **ends),
        Graph.of_bonds(4, BRIDGE),
        Graph.of_bonds(4, BRIDGE, source=[3], target=[0]),
        Graph.of_bonds(4, BRIDGE, source=[0], target=[2, 3]),
        Graph.of_bonds(4, BRIDGE, source=[0], target=[2]),
    ]
    assert len({digest, *(graph.digest for graph in others)}) == 8


@pytest.mark.slow
def test_networkx_and_the_readers_are_loaded_when_a_graph_is_read():
    write_edges("bridge.txt", BRIDGE)
    code = (
        "import sys; from percolab.cli import sweep\n"
        "slow = {'networkx', 'percolab.lattices.graph_files'}; print(slow & set(sys.modules))\n"
        "sweep.make_request(graph='bridge.txt'); print(slow & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "{'percolab.lattices.graph_files'}"]


#: What a sweep of a graph can get wrong, as options or as the text of the graph's file.
WRONG = {
    ("--graph", "nowhere.txt"): "nowhere.txt: no such file",
    ("--source", "0"): "source and target need a graph",
    ("--graph", "g.txt", "--source", "0"): "source is given without target",
    ("--graph", "g.txt", "--source", "0", "--target", "9"): "target: sites '9': site '9', but",
    ("--graph", "g.txt", "--source", "0", "--target", "far"): "target: far: no such file",
    ("--graph", "g.txt", "--lattice", "square"): "lattice: a graph has its own; leave it out",
    ("--graph", "g.txt", "-L", "8"): "L: a graph has its own; leave it out",
    ("--graph", "g.txt", "--boundary", "open"): "boundary: a graph has its own; leave it out",
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


def test_a_graph_without_its_bonds_is_not_sampled():
    write_edges("bridge.txt", BRIDGE)
    answer("sweep", "--graph", "bridge.txt", "-p", "0.5", "--samples", 10, "--quiet")
    study = read_results("results.h5").study
    assert study.structure == load_graph("bridge.txt")
    with pytest.raises(InputError, match=r"a results file lacks the bonds of bridge\.txt"):
        make_sampler(study.tasks[4], device=CPU).sample([0])


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
