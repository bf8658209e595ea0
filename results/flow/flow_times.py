"""Times of what flows, in ns a site, on one core, with scipy, igraph and networkx.

    python results/flow/flow_times.py

Each number is the least of three samples at p_c that span, after one that compiles; the net of the
lattice, which all samples of a sweep share, is made before.  networkx has objects for sites, so its
samples are small; scipy solves the whole cluster that spans.  Needs igraph, and networkx.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import click
import igraph
import networkx as nx
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import spsolve

import percolab
from percolab.configurations.configuration import random_configuration
from percolab.flows.flow import Circuit, Flow
from percolab.flows.net import list_bonds, unpack_open
from percolab.lattices.lattice import load_lattice

#: Lattice, sizes of percolab, of scipy, igraph and networkx, and p_c.
CASES = (("square", 1024, 256, 256, 128, 0.5), ("cubic", 128, 40, 40, 20, 0.24881182))
SAMPLES = 3
PACKAGES = ("numba", "scipy", "igraph", "networkx")


def spanning_flows(name: str, size: int, p: float) -> Iterator[Flow]:
    """Yield SAMPLES + 1 flows through samples that span along the last axis."""
    lattice, circuit, found, sample = load_lattice(name), None, 0, 0
    while found <= SAMPLES:
        chosen = random_configuration(lattice, size, p, sample=sample)
        if circuit is None:
            bonds, ends = list_bonds(chosen.topology), chosen.topology.end_layers[-1]
            circuit = Circuit(bonds, chosen.topology.num_points, *ends)
            _ = circuit.net, circuit.joined
        is_open = np.empty(circuit.bonds.places.size, np.uint8)
        unpack_open(chosen.opened.ravel(), circuit.bonds.places, is_open)
        flow = Flow(circuit, is_open, 1, sample)
        sample += 1
        if flow.connected:
            found += 1
            # Anew, so that nothing is known of it.
            yield Flow(circuit, is_open, 1, sample)


def least(calls: list[Callable[[], Any]], sites: int) -> float:
    """Return the time of the fastest call but the first, in ns a site."""
    times = []
    for call in calls:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times[1:]) / sites * 1e9


def as_matrix(flow: Flow, sites: int) -> Any:
    """Return the open bonds as a sparse matrix of ones."""
    i, j = flow.bonds.T
    ones = np.ones(2 * i.size)
    return coo_array((ones, (np.r_[i, j], np.r_[j, i])), shape=(sites, sites)).tocsr()


def solve_by_scipy(flow: Flow, matrix: Any) -> float:
    """Return the conductance by a direct solve of all that is connected with the first terminal."""
    source, target = flow.circuit.source, flow.circuit.target
    labels = connected_components(matrix, directed=False)[1]
    reached = np.isin(labels, np.intersect1d(labels[source], labels[target]))
    inner = reached.copy()
    inner[source] = inner[target] = False
    unknown = np.flatnonzero(inner)
    rows = matrix[unknown]
    diagonal = coo_array((rows.sum(axis=1), (np.arange(unknown.size),) * 2)).tocsc()
    potentials = np.zeros(matrix.shape[0])
    potentials[source] = 1
    inflow = rows[:, source].sum(axis=1)
    potentials[unknown] = spsolve((diagonal - rows[:, unknown]).tocsc(), inflow)
    i, j = flow.bonds[reached[flow.bonds[:, 0]]].T
    return float(((potentials[i] - potentials[j]) ** 2).sum())


def own_times(flows: list[Flow], sites: int) -> dict[str, float]:
    """Return the times of percolab by what is asked for."""
    names = {
        "bridges": "num_bridges", "red bonds and trails": "num_trails", "backbone": "num_backbone",
        "path and elastic backbone": "num_elastic", "conductance, backbone known": "conductance",
    }  # fmt: skip
    return {
        what: least([lambda f=flow, n=name: getattr(f, n) for flow in flows], sites)
        for what, name in names.items()
    }


def scipy_times(flows: list[Flow], sites: int) -> dict[str, float]:
    """Return the times of scipy, for what it has; conductances are compared."""
    matrices = [as_matrix(flow, sites) for flow in flows]
    for flow, matrix in zip(flows, matrices, strict=True):
        np.testing.assert_allclose(solve_by_scipy(flow, matrix), flow.conductance, rtol=1e-8)
    pairs = list(zip(flows, matrices, strict=True))
    first = flows[0].circuit.source[0]
    return {
        "connected components": least(
            [lambda m=m: connected_components(m, directed=False) for m in matrices], sites
        ),
        "breadth first from one site": least(
            [lambda m=m: breadth_first_order(m, first, directed=False) for m in matrices], sites
        ),
        "conductance": least([lambda f=f, m=m: solve_by_scipy(f, m) for f, m in pairs], sites),
    }


def igraph_times(flows: list[Flow], sites: int) -> dict[str, float]:
    """Return the times of igraph; bridges are compared."""
    graphs = [igraph.Graph(sites, flow.bonds.tolist()) for flow in flows]
    for flow, graph in zip(flows, graphs, strict=True):
        assert len(graph.bridges()) == flow.num_bridges
    return {
        "bridges": least([g.bridges for g in graphs], sites),
        "blocks": least([g.biconnected_components for g in graphs], sites),
    }


def networkx_times(flows: list[Flow], sites: int) -> dict[str, float]:
    """Return the times of networkx; bridges are compared."""
    graphs = [nx.Graph(flow.bonds.tolist()) for flow in flows]
    for flow, graph in zip(flows, graphs, strict=True):
        assert sum(1 for _ in nx.bridges(graph)) == flow.num_bridges
    return {
        "bridges": least([lambda g=g: list(nx.bridges(g)) for g in graphs], sites),
        "blocks": least([lambda g=g: list(nx.biconnected_components(g)) for g in graphs], sites),
    }


@click.command(help=__doc__)
def main() -> None:
    """Print the table."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    click.echo(f"percolab {percolab.__version__}, {versions}, Python {platform.python_version()}")
    for name, *sizes, p in CASES:
        dimension = load_lattice(name).dimension
        whose_times = own_times, scipy_times, igraph_times, networkx_times
        for whose, size, times in zip(("percolab", *PACKAGES[1:]), sizes, whose_times, strict=True):
            flows = list(spanning_flows(name, size, p))
            for what, found in times(flows, size**dimension).items():
                click.echo(f"{name:8} L = {size:<5} {whose:9} {what:28} {found:10.1f} ns a site")


if __name__ == "__main__":
    main()
