"""The program that measures Guo's figures: its graphs, and its records in CUDA's simulator."""

import json

import numpy as np
import pytest
from helpers import run_simulated

from percolab.papers.guo2011 import figures as script

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
