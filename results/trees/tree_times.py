"""Time minimum spanning trees on one core of the CPU, beside scipy's of the same weights.

Lattices: a sample of a torus, bonds, weights and tree together; scipy is given the matrix.
Graphs: --bonds random bonds of a tenth as many sites, with given weights.
Prints nanoseconds of processor time a site, or a bond of a graph, the least of a few repeats.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree

from percolab.bonds.words import GENERATORS
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.trees import TREE_METHODS, new_trees
from percolab.trees.weights import make_bond_keys, make_sample_weights, values_to_keys


def nanoseconds(work: Callable[[int], object], units: int, repeats: int) -> float:
    """Return the least processor time of a unit, over repeats after the first call."""
    times = []
    for number in range(repeats + 1):
        begin = time.process_time()
        work(number)
        times.append(time.process_time() - begin)
    return 1e9 * min(times[1:]) / units


def numbers_of(topology: Topology) -> np.ndarray:
    """Return the numbers of all bonds, as ``topology.bonds()`` has them."""
    klass, owner, _ = topology.bonds().T
    found: np.ndarray = klass * 32 * topology.num_words + owner
    return found


def time_scipy(topology: Topology, values: np.ndarray, units: int, repeats: int) -> float:
    """Return scipy's time for the weights of all bonds, none of them 0."""
    points = (topology.num_points,) * 2
    matrix = coo_array((values, tuple(topology.bonds()[:, 1:].T)), shape=points).tocsr()
    return nanoseconds(lambda number: minimum_spanning_tree(matrix), units, repeats)


@click.command(help=__doc__)
@click.option("--lattice", "names", multiple=True, default=("square",), show_default=True)
@click.option("-L", "size", default=1024, show_default=True)
@click.option("--bonds", default=0, show_default=True, help="Of a random graph, instead.")
@click.option("--method", "methods", multiple=True, default=("kruskal",), show_default=True)
@click.option("--generator", default="xorwow", type=click.Choice(list(GENERATORS)))
@click.option("--repeats", default=3, show_default=True)
def main(
    names: tuple[str, ...],
    size: int,
    bonds: int,
    methods: tuple[str, ...],
    generator: str,
    repeats: int,
) -> None:
    """Time and print."""
    assert set(methods) <= set(TREE_METHODS)
    if bonds:
        random, sites = np.random.default_rng(1), max(bonds // 10, 1)
        topology = graph_topology(sites, random.integers(0, sites, (bonds, 2)))
        values = random.random(32 * topology.exists.size) + 1e-9
        keys = values_to_keys(values)
        scipys = time_scipy(topology, values[numbers_of(topology)], bonds, repeats)
        click.echo(f"graph of {bonds} bonds: scipy {scipys:.0f} ns a bond")
        for name in methods:
            trees = new_trees(name, "cpu", topology)
            took = nanoseconds(lambda number: trees.build_given(keys), bonds, repeats)  # noqa: B023
            click.echo(f"{name:<10}{took:>8.1f}{scipys / took:>8.1f} times faster")
        return
    for lattice in names:
        item = load_lattice(lattice)
        topology = item.topology((size,) * item.dimension, ("periodic",) * item.dimension)
        weights = make_sample_weights(GENERATORS[generator], 1, 0)
        keys = make_bond_keys(weights, numbers_of(topology).astype(np.uint32))
        scipys = time_scipy(topology, keys / 2**63, topology.num_sites, repeats)
        click.echo(f"{lattice}, L = {size}: scipy {scipys:.0f} ns a site")
        for name in methods:
            trees = new_trees(name, "cpu", topology)

            def build(number: int) -> int:
                samples = np.array([number], np.uint64)
                return trees.build(GENERATORS[generator], 1, samples)  # noqa: B023

            took = nanoseconds(build, topology.num_sites, repeats)
            click.echo(f"{name:<10}{took:>8.1f}{scipys / took:>8.1f} times faster")


if __name__ == "__main__":
    main()
