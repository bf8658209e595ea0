"""What flows on CUDA is what flows on the CPU, number by number: in the simulator and on a GPU."""

import numpy as np
import pytest
from flow_support import assert_same_flow, flow_graph, planar_topologies
from helpers import LATTICES, PLANAR, assert_same_blocks, lattice
from kernel_report_support import load_report

import percolab
from percolab.bonds.words import XORWOW
from percolab.coupled import new_coupling
from percolab.flows.flow import Circuit
from percolab.flows.net import list_bonds
from percolab.flows.readers import Backbone, BridgeFree, Bridges, Path, PathLengths
from percolab.flows.tile_net import TILE, count_tiles, make_tiles, number_nodes
from percolab.lattices.corners import make_corners
from percolab.lattices.extent import Extent

#: Planar lattices whose duals are lattices.
DUAL = [name for name in PLANAR if name != "lieb"]


@pytest.mark.parametrize("reader", [Bridges, BridgeFree, Backbone, Path, PathLengths])
def test_memory_on_a_device_is_that_of_the_arrays(reader):
    for module, stated in (("flow_batch", reader.device_bytes), ("large_flow", reader.tile_bytes)):
        kinds = pytest.importorskip(f"percolab.flows.{module}").KINDS.get(reader.word, ())
        assert sum(np.dtype(kind).itemsize for kind in kinds) == stated


def test_memory_of_paths_of_large_samples_is_stated(monkeypatch):
    report, arrays = load_report(), []
    monkeypatch.setattr("percolab.flows.flow_batch.is_large", lambda points, entries: True)
    topology = lattice("square").topology((40, 30))
    keys = XORWOW, 0, np.zeros(1, np.uint64), np.ones(1, np.uint64)
    with report.on_host([], "open", arrays.append):
        coupling, reader = new_coupling(None, "cuda", topology), Path(None, topology.shape)
        without = sum(array.nbytes for array in arrays)
        reader.rows(coupling, *keys)
    used = sum(array.nbytes for array in arrays) - without
    stated = Path.memory(Extent.of_topology(topology)).device
    assert 0.8 * stated < used <= stated


@pytest.mark.parametrize("capacity", [1, 3])
def test_memory_of_backbones_by_labels_of_the_dual_is_stated(capacity):
    report, arrays = load_report(), []
    flows = pytest.importorskip("percolab.flows.dual_flow_cuda")
    # Around a cylinder the dual has two turns.
    topology = lattice("triangular").topology((192, 160), ("periodic", "open"))
    corners = make_corners(lattice("triangular"), topology)
    with report.on_host([], "periodic", arrays.append):
        coupling = new_coupling(None, "cuda", topology, capacity=capacity)
        without = sum(array.nbytes for array in arrays)
        flows.DualFlow(coupling.labeler.batch, lattice("triangular"), corners)
    used = sum(array.nbytes for array in arrays) - without
    # With no memory to share, one sample is read at a time.
    stated = flows.flow_memory(topology, corners, 1).device
    assert 0.8 * stated < used <= stated + 32 * capacity


def test_tiles_list_every_bond_and_those_between_them_at_both_ends():
    topology = lattice("square").topology((70, 45), ("periodic", "open"))
    circuit = Circuit(list_bonds(topology), topology.num_points, *topology.end_layers[1])
    tiles = make_tiles(circuit, topology.shape)
    # The terminals have one of their own.
    assert tiles.starts.size - 2 == count_tiles(topology.num_points, topology.shape) == 6
    nodes = number_nodes(topology.num_points, topology.shape)
    owners = np.arange(tiles.owners.size)
    owners[nodes[circuit.source]], owners[nodes[circuit.target]] = 6 * TILE, 6 * TILE + 1
    np.testing.assert_array_equal(tiles.owners, owners)
    first = TILE * np.repeat(np.arange(tiles.starts.size - 1), np.diff(tiles.starts))
    places, ends = tiles.bonds >> np.uint64(32), tiles.bonds & np.uint64(2**32 - 1)
    found = np.column_stack([places, first + tiles.at, ends]).astype(np.int64)
    inside = np.isin(circuit.bonds.sites, circuit.source).all(axis=1)
    inside |= np.isin(circuit.bonds.sites, circuit.target).all(axis=1)
    expected = np.column_stack([circuit.bonds.places, nodes[circuit.bonds.sites]])[~inside]
    expected[:, 1:] = np.sort(expected[:, 1:])
    between = expected[expected[:, 1] // TILE != expected[:, 2] // TILE]
    expected = np.concatenate([expected, between[:, [0, 2, 1]]])
    assert len(between) > 100
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(expected, axis=0))
    assert len(found) == len(expected)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "shape", "boundary", "ps"),
    [
        ("square", (300, 411), ("periodic", "open"), (0.5, 0.6)),
        ("triangular", (200, 97), ("open", "open"), (0.36, 1.0)),
        ("square", (130, 64), ("periodic", "periodic"), (0.5,)),
        ("cubic", (40, 33, 50), ("periodic", "open", "open"), (0.25, 0.4)),
        ("hypercubic-4d", (12, 9, 11, 10), ("periodic",) * 3 + ("open",), (0.17,)),
    ],
)
def test_samples_that_all_blocks_read_have_the_same_flow(monkeypatch, name, shape, boundary, ps):
    monkeypatch.setattr("percolab.flows.flow_batch.is_large", lambda points, entries: True)
    topology = lattice(name).topology(shape, boundary)
    for model in ("bond", "site"):
        # Of no lattice that is known to be planar.
        assert_same_flow(None, topology, model, ps, samples=5, capacity=2)


@pytest.mark.gpu
@pytest.mark.parametrize("times", [1, 9, 60])
@pytest.mark.parametrize("name", DUAL)
def test_labels_of_the_dual_give_the_same_backbone(name, times):
    item = lattice(name)
    ps = tuple(share / item.coordination_number for share in (2, 2.3, 2.8))
    many, found = (6, 4) if times == 60 else (100, 64), []
    for topology in planar_topologies(item, times):
        for model in ("bond", "site"):
            rows = assert_same_flow(
                item, topology, model, ps, samples=many[0], capacity=many[1],
                kinds=(Bridges, Backbone), ends={},
            )  # fmt: skip
            found.append(rows["backbone"].reshape(-1, 4))
    red, trails, bonds, _ = np.concatenate(found).T
    # Of the largest samples few or none have a red bond at these p.
    assert red.any() or times == 60
    assert (trails > bonds).any()


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
@pytest.mark.parametrize("is_large", [False, True])
def test_graphs_have_the_same_flow(monkeypatch, is_large):
    monkeypatch.setattr("percolab.flows.flow_batch.is_large", lambda points, entries: is_large)
    for seed in range(20):
        size = int(np.random.default_rng(seed).integers(8, 4000 if is_large else 300))
        graph = flow_graph(size, 2 * size, size // 2, seed)
        # Those that all blocks read come one after the other.
        samples = 8 if is_large else 40
        assert_same_flow(None, graph, "bond", (0.2, 0.5, 0.9), samples=samples, capacity=16)


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
