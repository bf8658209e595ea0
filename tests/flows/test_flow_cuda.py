"""What flows on CUDA is what flows on the CPU, number by number: in the simulator and on a GPU."""

import numpy as np
import pytest
from flow_support import CUDA_CASES, assert_same_flow, flow_graph
from helpers import LATTICES, assert_same_blocks, assert_simulated, lattice

import percolab
from percolab.flows.readers import Backbone, BridgeFree, Bridges, Path, PathLengths

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in CUDA_CASES if name != "square"]


@pytest.mark.parametrize("case", ["square", *SLOW])
def test_samples_that_a_gpu_draws_have_the_same_flow(case):
    assert_simulated("simulated_flows.py", case)


@pytest.mark.parametrize("reader", [Bridges, BridgeFree, Backbone, Path, PathLengths])
def test_memory_on_a_device_is_that_of_the_arrays(reader):
    kinds = pytest.importorskip("percolab.flows.flow_batch").KINDS[reader.word]
    assert sum(np.dtype(kind).itemsize for kind in kinds) == reader.device_bytes


@pytest.mark.gpu
@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize("name", LATTICES)
def test_lattices_have_the_same_flow(name, boundary):
    item = lattice(name)
    shape = item.shape({1: 300, 2: 24, 3: 8}.get(item.dimension, 4))
    topology = item.topology(shape, (boundary,) * (item.dimension - 1) + ("open",))
    ps = (0.3, 0.55, 0.8)
    for model in ("bond", "site"):
        assert_same_flow(item, topology, model, ps, samples=50, capacity=32)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("shape", "boundary"),
    [((300, 400), ("periodic", "open")), ((16, 16), ("periodic", "periodic"))],
)
def test_large_samples_and_tori_have_the_same_flow(shape, boundary):
    item = lattice("square")
    rows = assert_same_flow(item, item.topology(shape, boundary), "bond", (0.5, 0.52), samples=4)
    assert rows["bridges"].all()


@pytest.mark.gpu
def test_graphs_have_the_same_flow():
    for seed in range(20):
        size = int(np.random.default_rng(seed).integers(8, 300))
        graph = flow_graph(size, 2 * size, size // 2, seed)
        assert_same_flow(None, graph, "bond", (0.2, 0.5, 0.9), samples=40, capacity=16)


@pytest.mark.gpu
def test_a_study_has_the_same_blocks():
    asked = {"L": [16], "p": [0.45, 0.55], "samples": 200, "block_size": 20}
    own, host = (
        percolab.sweep(
            "square",
            measure="bridges,bridge_free,backbone,path,path_lengths",
            device=device,
            **asked,
        )
        for device in ("cuda", "cpu")
    )
    assert_same_blocks(own, host)
