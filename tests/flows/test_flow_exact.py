"""What flows, against exact results: all configurations, Russo's formula, bridges at p_c."""

from itertools import product

import networkx as nx
import numpy as np
import pytest
from flow_support import expected_flow, sample_flows
from helpers import slow

from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds
from percolab.lattices.dual import find_faces
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice

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
