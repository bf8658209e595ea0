"""Exact probabilities that source and target are connected, against all configurations."""

import json
from fractions import Fraction
from itertools import pairwise, product
from math import comb

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import assert_z

import percolab
from percolab import Graph, InputError
from percolab.configurations import exact as module
from percolab.validation.enumeration import count_configurations

BRIDGE = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]


def count_sites(num_sites, bonds, source, target):
    """Return by n how many sets of n open sites connect the two, by networkx."""
    counts = [0] * (num_sites + 1)
    for is_open in product((False, True), repeat=num_sites):
        graph = networkx.Graph()
        graph.add_nodes_from(n for n in range(num_sites) if is_open[n])
        graph.add_edges_from((i, j) for i, j in bonds if is_open[i] and is_open[j])
        parts = networkx.connected_components(graph)
        counts[sum(is_open)] += any(part & source and part & target for part in parts)
    return tuple(counts)


@pytest.mark.parametrize("seed", range(12))
def test_counts_are_those_of_all_configurations(seed):
    """Random graphs, with isolated sites and parallel bonds, and one or two terminals a side."""
    rng = np.random.default_rng(seed)
    sites, bonds = 8, rng.integers(0, 8, (13, 2))
    bonds = bonds[bonds[:, 0] != bonds[:, 1]]
    ends = rng.permutation(sites)
    source, target = ends[: 1 + seed % 2], ends[2 : 3 + seed % 3 // 2]
    graph = Graph.of_bonds(sites, bonds, source=source, target=target)
    *_, expected = count_configurations(sites, bonds.tolist(), [(source, target)])
    assert percolab.exact(graph).counts == tuple(expected)
    sets = set(source.tolist()), set(target.tolist())
    assert percolab.exact(graph, model="site").counts == count_sites(sites, bonds.tolist(), *sets)


def test_the_bridge_has_the_polynomial_that_is_known():
    """2 p^2 + 2 p^3 - 5 p^4 + 2 p^5; by symmetry one half at p = 1/2."""
    found = percolab.exact(BRIDGE, source="s", target="t")
    assert found.coefficients == (0, 0, 2, 2, -5, 2)
    assert found.polynomial == "2 p^2 + 2 p^3 - 5 p^4 + 2 p^5"
    assert found.probability(Fraction(1, 2)) == Fraction(1, 2)
    assert found.probability(0.5) == 0.5
    assert [found.probability(p) for p in (0, 1)] == [0, 1]
    horner = sum(a * Fraction(1, 3) ** k for k, a in enumerate(found.coefficients))
    assert found.probability(Fraction(1, 3)) == horner
    with pytest.raises(InputError, match=r"p = 1\.5, but it must be a number from 0 to 1"):
        found.probability(1.5)


def test_a_square_of_49_sites_is_exact_and_agrees_with_samples():
    """84 bonds: far more sets than could be listed.  A dual lattice gives the crossing exactly."""
    side = 6
    grid = networkx.grid_2d_graph(side, side + 1)
    ends = [[(x, y) for x in range(side)] for y in (0, side)]
    found = percolab.exact(grid, source=ends[0], target=ends[1])
    assert sum(found.counts) < 2 ** grid.size()
    results = percolab.sweep(
        graph=grid, source=ends[0], target=ends[1], p=[0.45, 0.55], samples=4000, device="cpu"
    )
    p, mean, error = results.means("spanning")
    for n in range(2):
        assert_z(mean[n], found.probability(float(p[n])), error[n])
    # Without the bonds inside source and target it crosses its own dual: one half at p = 1/2.
    free = grid.copy()
    for row in ends:
        free.remove_edges_from(list(pairwise(row)))
    crossed = percolab.exact(free, source=ends[0], target=ends[1])
    assert crossed.probability(Fraction(1, 2)) == Fraction(1, 2)
    most = len(crossed.counts) - 1
    for n, count in enumerate(crossed.counts):
        assert count + crossed.counts[most - n] == comb(most, n)


def test_what_is_never_connected_has_the_polynomial_zero():
    graph = Graph.of_bonds(4, [(0, 1), (2, 3)], source=[0], target=[3])
    for model in ("bond", "site"):
        found = percolab.exact(graph, model=model)
        assert found.polynomial == "0"
        assert found.probability(0.5) == 0
    assert percolab.exact([(0, 1)], source=0, target=1).polynomial == "p"


def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_STATES", 3)
    with pytest.raises(InputError, match="needs more than 3 states; percolab sweep samples it"):
        percolab.exact(BRIDGE, source="s", target="t")


def test_the_command_shows_the_polynomial_and_values(tmp_path):
    path = tmp_path / "bridge.csv"
    path.write_text("\n".join(f"{i},{j}" for i, j in BRIDGE))
    ends = ("--source", "s", "--target", "t")
    found = answer("exact", path, *ends, "-p", "0.25,0.5")
    assert "P(p) = 2 p^2 + 2 p^3 - 5 p^4 + 2 p^5\n16 of 2^5 sets of open bonds connect" in found
    assert "\n0.5   0.5\n" in found
    record = json.loads(answer("exact", path, *ends, "--model", "site", "--json"))
    assert record["counts"] == [0, 0, 0, 2, 1]
    assert record["coefficients"] == [0, 0, 0, 2, -1]
    assert "give a source and a target" in refusal("exact", path)
    assert "no such file" in refusal("exact", tmp_path / "none.csv", *ends).lower()
