"""What flows through small random graphs, as networkx has it: what tests compare with."""

from itertools import pairwise

import networkx as nx
import numpy as np
from helpers import cuda_coupling

from percolab import graph_topology, load_lattice
from percolab.bonds.batch import new_batch
from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import BondList, list_bonds, unpack_open
from percolab.flows.readers import (
    Backbone,
    BridgeFree,
    Bridges,
    Conductance,
    Connected,
    Path,
    PathLengths,
)


def random_flow(number, most_sites=12, most_bonds=28):
    """Return a flow through a random multigraph with loops, and two sets of terminals."""
    rng = np.random.default_rng(number)
    n = int(rng.integers(2, most_sites))
    m = int(rng.integers(0, most_bonds))
    sites = rng.integers(0, n, (m, 2)).astype(np.int32)
    order = rng.permutation(n).astype(np.int32)
    first = int(rng.integers(1, min(n, 4)))
    last = int(rng.integers(first + 1, min(n, first + 3) + 1))
    is_open = (rng.random(m) < rng.choice([0.3, 0.6, 0.9, 1.0])).astype(np.uint8)
    circuit = Circuit(BondList(np.arange(m), sites), n, order[:first], order[first:last])
    return Flow(circuit, is_open, seed=number)


def without_loops(pairs):
    """Return the simple graph of pairs, and how often each pair comes."""
    graph, times = nx.Graph(), {}
    for i, j in pairs:
        if i != j:
            graph.add_edge(i, j)
            times[frozenset((i, j))] = times.get(frozenset((i, j)), 0) + 1
    return graph, times


def expected_bridges(bonds):
    """Return which bonds are bridges, (n,) bool, for (n, 2) sites."""
    pairs = [tuple(pair) for pair in np.asarray(bonds).tolist()]
    graph, times = without_loops(pairs)
    single = {pair for pair in map(frozenset, nx.bridges(graph)) if times[pair] == 1}
    return np.array([frozenset(pair) in single for pair in pairs], bool)


def expected_bridge_free(flow):
    """Return the sites of the largest cluster without bridges."""
    graph = nx.Graph(flow.bonds[~expected_bridges(flow.bonds)].tolist())
    graph.add_nodes_from(range(flow.circuit.num_points))
    return max(map(len, nx.connected_components(graph)))


def joined_pairs(flow):
    """Return the open bonds with the sites of the terminals in one node each, "S" and "T"."""
    names = dict.fromkeys(flow.circuit.source.tolist(), "S")
    names |= dict.fromkeys(flow.circuit.target.tolist(), "T")
    return [tuple(names.get(site, site) for site in pair) for pair in flow.bonds.tolist()]


def expected_flow(flow):
    """Return what networkx gives: connected, red, trails, backbone, length, elastic."""
    pairs = joined_pairs(flow)
    graph, times = without_loops(pairs)
    graph.add_nodes_from("ST")
    none = np.zeros(len(pairs), bool)
    if not nx.has_path(graph, "S", "T"):
        return False, none, none, none, 0, none

    def among(found):
        found = {frozenset(pair) for pair in found}
        return np.array([frozenset(pair) in found for pair in pairs], bool)

    bridges = [pair for pair in nx.bridges(graph) if times[frozenset(pair)] == 1]
    way = nx.shortest_path(graph, "S", "T")
    used = {frozenset(pair) for pair in pairwise(way)}
    red = among(pair for pair in bridges if frozenset(pair) in used)
    cut = graph.copy()
    cut.remove_edges_from(pair for pair in bridges if frozenset(pair) not in used)
    trails = among(cut.subgraph(nx.node_connected_component(cut, "S")).edges)
    virtual = graph.copy()
    virtual.add_edge("S", "T")
    (block,) = [
        edges for edges in nx.biconnected_component_edges(virtual)
        if frozenset("ST") in map(frozenset, edges)
    ]  # fmt: skip
    near = nx.single_source_shortest_path_length(graph, "S")
    far = nx.single_source_shortest_path_length(graph, "T")
    length = near["T"]
    elastic = among(
        (i, j) for i, j in graph.edges
        if i in near and length in (near[i] + 1 + far[j], near[j] + 1 + far[i])
    )  # fmt: skip
    return True, red, trails, among(block), length, elastic


def chain_flow(n, *, closed):
    """Return the flow from site 0 to site n / 2 of a chain of n sites, or of a loop."""
    sites = np.column_stack([np.arange(n), np.roll(np.arange(n), -1)]).astype(np.int32)
    is_open = np.ones(n, np.uint8)
    is_open[-1] = closed
    ends = np.array([[0], [n // 2]], np.int32)
    return Flow(Circuit(BondList(np.arange(n), sites), n, *ends), is_open)


def sample_flows(name, size, p, boundary, samples):
    """Return the flows of samples of percolation on a lattice, or on a random graph."""
    if name == "graph":
        pairs = np.random.default_rng(5).integers(0, size, (2 * size, 2))
        topology = graph_topology(size, pairs, source=[0], target=[1])
    else:
        topology = load_lattice(name).topology(load_lattice(name).shape(size), boundary)
    none = np.empty(0, np.int32)
    ends = topology.end_layers[topology.open_axes[-1]] if topology.open_axes else (none, none)
    circuit = Circuit(list_bonds(topology), topology.num_points, *ends)
    batch, flows = new_batch("cpu", topology), []
    for sample in range(samples):
        one = np.array([sample], np.uint64), np.array([p_to_threshold(p)], np.uint64)
        batch.fill(XORWOW, 11, *one)
        is_open = np.empty(circuit.bonds.places.size, np.uint8)
        unpack_open(batch.copy_open_words(1)[0], circuit.bonds.places, is_open)
        flows.append(Flow(circuit, is_open, 11, sample))
    return flows


#: What is compared.
ALL_KINDS = Bridges, BridgeFree, Backbone, Connected, Path, PathLengths, Conductance

#: Cases of what flows on CUDA, small: shape, boundary, model and p of each lattice, and of graphs.
CUDA_CASES = {
    "square": (
        ((5, 5), ("periodic", "open"), "bond", (0.5, 0.7)),
        ((5, 4), ("open", "open"), "site", (0.7, 0.9)),
        ((4, 4), ("periodic", "periodic"), "bond", (0.4, 0.6)),
        # A bond is a path.
        ((6, 2), ("open", "open"), "bond", (0.3,)),
    ),
    "triangular": (((6, 5), ("periodic", "open"), "bond", (0.35, 0.5, 1.0)),),
    "honeycomb": (((6, 6), ("open", "open"), "bond", (0.65, 0.8)),),
    "kagome": (((6, 6), ("periodic", "open"), "bond", (0.5, 0.8)),),
    "cubic": (
        ((4, 3, 4), ("periodic", "open", "open"), "bond", (0.25, 0.4)),
        # Two layers: two bonds between the same sites.
        ((2, 3, 3), ("periodic", "periodic", "open"), "site", (0.5, 0.7)),
    ),
    "graph": (((), (), "bond", (0.3, 0.6)), ((), (), "site", (0.6, 0.9))),
}


def planar_topologies(item, times=1):
    """Yield topologies of a few cells of a planar lattice, open and around a cylinder.

    times: as many cells along both axes.
    """
    for cells, boundary in (
        ((4, 4), ("open", "open")),
        ((5, 3), ("periodic", "open")),
        ((3, 2), ("open", "periodic")),
    ):
        # An open side may cut a cell.
        shape = tuple(
            times * n * unit + (kind == "open") for n, unit, kind in zip(cells, item.cell, boundary)
        )
        yield item.topology(shape, boundary)


def flow_graph(size, bonds, degree, seed=3):
    """Return a random graph with loops, a hub, and terminals of three sites and of one.

    A site hangs on the hub by three bonds, and one on a terminal.
    """
    pairs = np.random.default_rng(seed).integers(0, size, (bonds, 2))
    hub, hanging = [(0, i) for i in range(1, degree + 1)], [(0, size), (size - 1, size + 1)]
    pairs = np.concatenate([pairs, hub, *[hanging] * 3])
    return graph_topology(size + 2, pairs, source=[3, 4, 5], target=[size - 1])


def choose_ends(topology):
    """Return terminals inside of a lattice: two of a torus, or a site and all sides."""
    axes = topology.open_axes
    if topology.shape and not axes:
        return {"source": "0,7", "target": "centre"}
    wide = len(axes) > 1 and min(topology.shape[axis] for axis in axes) > 2
    return {"source": "centre", "target": "sides"} if topology.shape and wide else {}


def assert_same_flow(
    structure, topology, model, ps, *, samples=5, capacity=3, kinds=ALL_KINDS, ends=None
):
    """Assert that the numbers of samples on CUDA are the CPU's; return the CPU's by their word.

    ends: the terminals, chosen here if None.
    """
    numbers = np.arange(samples, dtype=np.uint64)
    thresholds = np.array([p_to_threshold(p) for p in ps], np.uint64)
    device = cuda_coupling("tiled", topology, Model.parse(model), capacity=capacity)
    host = new_coupling("raster", "cpu", topology, Model.parse(model))
    assert device.labeler.batch.capacity == capacity
    rows, ends = {}, choose_ends(topology) if ends is None else ends
    for kind in kinds:
        if kind.with_terminals and not (topology.open_axes or ends):
            continue
        found, rows[kind.word] = (
            kind(structure, topology.shape, **(ends if kind.with_terminals else {})).rows(
                coupling, XORWOW, 7, numbers, thresholds
            )
            for coupling in (device, host)
        )
        np.testing.assert_array_equal(found, rows[kind.word], err_msg=kind.word)
    return rows
