"""Guo's Prim on the CPU: its trees are those of plainly sorted bonds, bond for bond."""

import json

import numpy as np
import pytest
from helpers import run_simulated
from prim_support import assert_given_trees, assert_sampled_trees, random_graph, topologies

from percolab.lattices.extent import Extent
from percolab.papers.guo2011 import figures as script
from percolab.trees import new_trees

CASES = dict(topologies())


@pytest.mark.parametrize("name", CASES)
def test_trees_are_those_of_sorted_bonds(name):
    topology = CASES[name]
    trees = new_trees("prim", "cpu", topology)
    assert_given_trees(trees, topology, np.random.default_rng(3), (1, 2, 5, 1000))
    assert_sampled_trees(trees, topology)


def test_random_graphs_with_few_and_many_ties():
    rng = np.random.default_rng(4)
    for sites, bonds, kinds in rng.integers([1, 0, 1], [30, 90, 12], (200, 3)):
        topology = random_graph(rng, int(sites), int(bonds))
        assert_given_trees(new_trees("prim", "cpu", topology), topology, rng, (kinds,))


def test_memory_counts_the_arrays():
    topology = random_graph(np.random.default_rng(5), 1000, 4000)
    trees = new_trees("prim", "cpu", topology)
    stored = sum(part.nbytes for part in (*trees._graph, trees._keys, trees._where, trees._r3))
    memory = type(trees).memory(Extent.of_topology(topology))
    assert stored <= memory.host
    assert memory.device == 0


#: Runs it in the simulator.
PROGRAM = "papers/guo2011/simulated_guo_figures.py"


def test_graphs_are_those_of_the_paper():
    topology, numbers = script.random_graph(300)
    bonds = topology.bonds()
    assert len(bonds) == numbers.size == 3000
    assert (bonds[:, 1] != bonds[:, 2]).all()
    keys = script.random_keys(topology, numbers, 0)[numbers]
    weights = (keys ^ np.uint64(1 << 63)).astype(np.int64)
    assert (weights.min(), weights.max()) == (1, 1000) or np.ptp(weights) > 950
    assert not np.array_equal(keys, script.random_keys(topology, numbers, 1)[numbers])


@pytest.mark.slow
def test_a_tree_that_differs_is_a_failure():
    bench = script.Bench(20, None)
    (keys,) = bench.keys(1)
    trees = script.new_trees("prim", "cpu", bench.topology)
    trees.build_given(keys)
    words = trees.words(1)
    bench.check(words)
    words[0, 0] ^= np.uint32(2)
    with pytest.raises(RuntimeError, match="tree 0 differs from that of heap"):
        bench.check(words)


@pytest.mark.slow
def test_every_way_is_measured(tmp_path):
    out = tmp_path / "record.json"
    done = run_simulated(PROGRAM, str(out))
    assert done.returncode == 0, done.stderr
    parts = json.loads(out.read_text())["parts"]
    assert not any(own["skipped"] or own["failed"] for own in parts.values())
    found = {(r["V"], r["way"]) for r in parts["trees"]["records"]}
    ways = {"CPU, heap", "CPU, prim", "CPU, kruskal", "without primitive", "with primitive"}
    ways |= {"one launch", "one launch, 3 at once", "one launch, in device memory"}
    assert found == {(size, way) for size in (4, 9) for way in ways}
    assert all("call" in r for r in parts["trees"]["records"] if r.get("at_once") == 1)
    assert [r["elements"] for r in parts["minima"]["records"]] == [5]
    assert parts["trees"].keys() >= {"commit", "command", "device_name", "versions", "started"}
