"""What flows, against exact results, networkx, and the closed bonds of the dual."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from flow_support import (
    chain_flow,
    expected_bridge_free,
    expected_bridges,
    expected_flow,
    random_flow,
    sample_flows,
)
from helpers import PLANAR, slow, slow_but

from percolab import InputError, graph_topology, load_lattice
from percolab.bonds.batch import new_batch
from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, unpack_open
from percolab.labelers import new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.dual import find_faces, make_dual_topology

#: The bridge of Wheatstone with a parallel bond, a dangling one and a loop.
WHEATSTONE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 3), (3, 4), (1, 1), (1, 5)]
TINY = {
    "square": load_lattice("square").topology((2, 3), ("periodic", "open")),
    "wide": load_lattice("square").topology((3, 3), ("periodic", "open")),
    "triangular": load_lattice("triangular").topology((2, 3), ("open", "open")),
    "graph": graph_topology(6, WHEATSTONE, source=[0], target=[3]),
}


@pytest.mark.parametrize("name", ["square", "graph", slow("triangular")])
def test_flow_of_all_configurations(name):
    """Each is as networkx has it, and red bonds add up to what Russo's formula says, exactly.

    With N(n) the configurations of n bonds that connect the terminals, and A(n) their red bonds,
    p dR/dp = sum of A(n) p^n q^(M - n) is A(n) = n N(n) - (M - n + 1) N(n - 1).
    """
    topology = TINY[name]
    circuit = Circuit(
        list_bonds(topology), topology.num_points, *topology.end_layers[topology.open_axes[-1]]
    )
    most = circuit.bonds.places.size
    connecting, red = np.zeros((2, most + 1), int)
    for bits in product((0, 1), repeat=most):
        flow = Flow(circuit, np.array(bits, np.uint8))
        connecting[sum(bits)] += flow.connected
        red[sum(bits)] += flow.num_red
        if sum(bits) % 5 == 0:
            expected = expected_flow(flow)
            assert (flow.connected, flow.length) == (expected[0], expected[4])
            found = flow.red, flow.trails, flow.backbone, flow.elastic
            assert all(map(np.array_equal, found, (*expected[1:4], expected[5])))
    opened = np.arange(1, most + 1)
    assert connecting[most] == 1
    assert red[0] == 0
    assert np.array_equal(red[1:], opened * connecting[1:] - (most - opened + 1) * connecting[:-1])


@pytest.mark.parametrize(
    ("name", "size", "p", "boundary"),
    [
        ("square", 16, 0.5, ("open", "open")),
        slow("cubic", 6, 0.25, ("periodic", "periodic", "open")),
        slow("kagome", 8, 0.55, ("periodic", "open")),
        ("graph", 40, 0.5, ("terminals",)),
    ],
)
def test_red_bonds_are_the_slope_of_the_spanning_probability(name, size, p, boundary):
    """Russo's formula on the same samples: <red> = p dR/dp = <R (n - p M)> / (1 - p)."""
    flows = sample_flows(name, size, p, boundary, samples=2000)
    most = flows[0].is_open.size
    opened = np.array([flow.is_open.sum(dtype=int) for flow in flows])
    spanning = np.array([flow.connected for flow in flows])
    red = np.array([flow.num_red for flow in flows])
    difference = red - spanning * (opened - p * most) / (1 - p)
    z = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(flows)))
    assert 0.1 < spanning.mean() < 0.95
    assert abs(z) <= 4


@pytest.mark.slow
def test_a_quarter_of_all_bonds_are_bridges_at_the_threshold_of_the_square_lattice():
    """Xu, Wang, Zhou, Garoni and Deng, Phys. Rev. E 89, 012120 (2014): up to about L^(-5/4)."""
    size = 512
    flows = sample_flows("square", size, 0.5, ("periodic", "periodic"), samples=32)
    densities = np.array([flow.num_bridges / (2 * size**2) for flow in flows])
    error = densities.std(ddof=1) / np.sqrt(len(flows))
    assert error < 6e-4
    assert abs(densities.mean() - 0.25) < 4 * error + size**-1.25


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("square", (9, 8)),
        ("kagome", (8, 6)),
        ("lieb", (8, 8)),
        slow("triangular", (9, 8)),
        slow("snub-square", (8, 8)),
    ],
)
def test_a_bond_in_the_plane_is_a_bridge_if_its_faces_are_one_cluster_of_the_dual(name, shape):
    lattice = load_lattice(name)
    topology = lattice.topology(shape, ("open", "open"))
    faces, none = find_faces(lattice, topology), np.empty(0, np.int32)
    circuit = Circuit(list_bonds(topology), topology.num_points, none, none)
    assert nx.is_connected(nx.Graph(circuit.bonds.sites.tolist()))
    rng, seen = np.random.default_rng(7), 0
    for number in range(40):
        is_open = rng.random(len(faces)) < rng.choice([0.5, 0.7, 0.85])
        dual = nx.MultiGraph(faces[~is_open].tolist())
        dual.add_nodes_from(range(faces.max() + 1))
        cluster = {face: n for n, own in enumerate(nx.connected_components(dual)) for face in own}
        same = np.array([cluster[a] == cluster[b] for a, b in faces[is_open].tolist()], bool)
        flow = Flow(circuit, is_open.astype(np.uint8), seed=number)
        assert np.array_equal(flow.bridges, same)
        seen += same.any() and not same.all()
    assert seen > 10


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [range(400), slow(range(400, 10_000))])
def test_flow_through_random_multigraphs_is_that_of_networkx(numbers):
    connected_ones, with_red, differing = 0, 0, 0
    for number in numbers:
        flow = random_flow(number)
        assert np.array_equal(flow.bridges, expected_bridges(flow.bonds)), number
        assert flow.num_bridges == flow.bridges.sum()
        assert flow.largest_bridge_free == expected_bridge_free(flow), number
        connected, red, trails, backbone, length, elastic = expected_flow(flow)
        assert flow.connected == connected, number
        assert flow.length == length, number
        found = flow.red, flow.trails, flow.backbone, flow.elastic
        for own, other in zip(found, (red, trails, backbone, elastic), strict=True):
            assert np.array_equal(own, other), number
        counts = flow.num_red, flow.num_trails, flow.num_backbone, flow.num_elastic
        assert counts == tuple(marks.sum() for marks in found), number
        touched = np.unique(flow.bonds[backbone]).size, np.unique(flow.bonds[elastic]).size
        assert touched == (flow.num_backbone_sites, flow.num_elastic_sites), number
        connected_ones += connected
        with_red += red.any()
        differing += not np.array_equal(trails, backbone)
    # All cases come: red bonds, and trails that are no paths.
    assert min(connected_ones, with_red, differing) > len(numbers) // 50


def test_a_long_loop_has_no_bridge_and_one_bond_less_only_bridges():
    flow = chain_flow(100_000, closed=True)
    assert (flow.num_bridges, flow.num_red, flow.num_backbone) == (0, 0, 100_000)
    flow = chain_flow(100_000, closed=False)
    assert (flow.num_bridges, flow.num_red, flow.length) == (99_999, 50_000, 50_000)


QUICK = ("square", "kagome")
CASES = slow_but([name for name in PLANAR if name != "lieb"], *QUICK)


def bridges_of_dual(dual, words):
    """Return the places of all bridges, ascending, from labels of the dual."""
    top = dual.topology
    opened = dual.open_words(words[None])
    labeler = new_labeler("raster", "cpu", top)
    labels = labeler.join(labeler.batch.load(opened), Reading.LABELS).labels()[0]
    k, owner, other = top.bonds().T
    places = 32 * top.num_words * k + owner
    is_open = opened[0][places >> 5] >> (places & 31).astype(np.uint32) & 1
    inside = (is_open == 0) & (labels[owner] == labels[other])
    return np.sort(dual.sources[places[inside]])


@pytest.mark.parametrize("name", CASES)
def test_closed_bonds_of_the_dual_within_a_cluster_cross_the_bridges(name):
    lattice = load_lattice(name)
    for cells, boundary in (((3, 2), "oo"), ((3, 3), "po"), ((3, 4), "op")):
        # An open side may cut a cell.
        shape = tuple(
            n * unit + (kind == "o") for n, unit, kind in zip(cells, lattice.cell, boundary)
        )
        kinds = tuple({"o": "open", "p": "periodic"}[kind] for kind in boundary)
        topology = lattice.topology(shape, kinds)
        dual, bonds = make_dual_topology(lattice, topology), list_bonds(topology)
        crossing = np.flatnonzero(dual.sources >= 0)
        # Every bond is crossed by one that exists.
        assert np.array_equal(np.sort(dual.sources[crossing]), np.sort(bonds.places))
        exists = dual.topology.exists.ravel()[crossing >> 5] >> (crossing & 31).astype(np.uint32)
        assert (exists & 1).all()
        none = np.empty(0, np.int32)
        circuit = Circuit(bonds, topology.num_points, none, none)
        found = 0
        for p, model in ((0.4, "bond"), (0.6, "bond"), (0.85, "site"), (1.0, "bond")):
            batch = new_batch("cpu", topology, Model.parse(model))
            for sample in range(5):
                one = np.array([sample], np.uint64), np.array([p_to_threshold(p)], np.uint64)
                batch.fill(XORWOW, 11, *one)
                words = batch.copy_open_words(1)[0]
                is_open = np.empty(bonds.places.size, np.uint8)
                unpack_open(words, bonds.places, is_open)
                flow = Flow(circuit, is_open, 11, sample)
                expected = np.sort(flow.places[flow.bridges])
                assert np.array_equal(bridges_of_dual(dual, words), expected)
                found += expected.size
        assert found


def test_lattices_without_a_dual_say_so():
    for name in ("lieb", "square-nnn"):
        lattice = load_lattice(name)
        with pytest.raises(InputError, match="dual"):
            make_dual_topology(lattice, lattice.topology((4, 4)))
