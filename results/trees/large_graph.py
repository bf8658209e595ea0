"""Find the tree of a large random graph by percolab tree, from a file, and compare it with scipy's.

Edges join sites drawn at random, a tenth as many; weights are integers from 1 to 999, so that many
are equal.  Of two trees the number of bonds and the weight are compared.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
from scipy.sparse import coo_array, save_npz
from scipy.sparse.csgraph import minimum_spanning_tree


def random_graph(edges: int) -> coo_array:
    """Return the matrix of a graph above its diagonal, with the least weight of parallel edges."""
    random, sites = np.random.default_rng(1), edges // 10
    pairs = np.sort(random.integers(0, sites, (edges, 2)), axis=1)
    weights = random.integers(1, 1000, edges)
    order = np.lexsort((weights, pairs[:, 1], pairs[:, 0]))
    pairs, weights = pairs[order], weights[order]
    kept = np.r_[True, (np.diff(pairs, axis=0) != 0).any(axis=1)] & (pairs[:, 0] != pairs[:, 1])
    return coo_array((weights[kept], pairs[kept].T), shape=(sites, sites))


@click.command()
@click.option("--edges", default=46_600_000, show_default=True)
def main(edges: int) -> None:
    graph = random_graph(edges)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        save_npz(path, graph, compressed=False)
        line = ("-m", "percolab", "tree", "--graph", path, "--weights", "file", "--json")
        done = subprocess.run([sys.executable, *line], check=True, capture_output=True)
    found = json.loads(done.stdout)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    click.echo(f"{found['sites']} sites, {graph.nnz} edges of {edges} drawn")
    click.echo(f"percolab: {found['bonds']} bonds, weight {found['weight']}; {memory:.1f} GiB")
    theirs = minimum_spanning_tree(graph.tocsr().astype(float))
    click.echo(f"scipy: {theirs.nnz} bonds, weight {int(theirs.sum())}")
    if (found["bonds"], found["weight"]) != (theirs.nnz, int(theirs.sum())):
        raise SystemExit("they differ")


if __name__ == "__main__":
    main()
