"""Invasion percolation against a plain judge, which looks at the whole frontier in every step."""

from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest

from percolab.bonds.words import GENERATORS, uniform_of
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import unpack_bits
from percolab.trees.invasion import (
    Target,
    Weights,
    burst_sizes,
    ground_of_lattice,
    ground_of_topology,
    invade,
)
from percolab.trees.weights import keys_of_values

NO_SITES = np.empty(0, np.int64)


class Judge:
    """Bonds and keys of a topology, as Python sees them."""

    def __init__(self, topology, model, generator=0, seed=1, sample=0, given=None):
        self.topology, self.by_site = topology, model == "site"
        klass, owner, other = topology.bonds().T
        stride = 32 * topology.num_words
        self.bonds = [
            (k * stride + i, i, j)
            for k, i, j in zip(klass.tolist(), owner.tolist(), other.tolist())
            if i != j
        ]
        self.around = {}
        for number, i, j in self.bonds:
            self.around.setdefault(i, []).append((number, j))
            self.around.setdefault(j, []).append((number, i))
        first = topology.num_words * topology.num_classes if self.by_site else 0

        def key(number):
            if given is not None:
                return int(given[number])
            word = np.uint32(first + number // 32)
            key = np.uint64(seed), np.uint64(sample)
            return int(uniform_of(generator, *key, word, np.uint32(number % 32)))

        self.key = cache(key)

    def connected(self, invaded, target):
        """Return the sites of the defender that have a way to the target."""
        left = [site for site in target if site not in invaded]
        found = set(left)
        while left:
            for _, end in self.around.get(left.pop(), []):
                if end not in invaded and end not in found:
                    found.add(end)
                    left.append(end)
        return found

    def frontier(self, invaded, entrance, free):
        """Return {number: sites that it leads to} of what could be taken."""
        found = {site: site for site in entrance if site not in invaded}
        for site in invaded:
            for number, end in self.around.get(site, []):
                if end not in invaded:
                    found[end if self.by_site else number] = end
        return {number: end for number, end in found.items() if free is None or end in free}

    def invade(self, sources, target, *, enters, stop, trapping):
        """Return (sites, keys, fronts, tried numbers, step of breakthrough)."""
        entrance = sources if self.by_site and enters else []
        order = [] if entrance else list(sources)
        keys, fronts, tried, reached = [None] * len(order), [], set(), None

        def look():
            free = self.connected(set(order), target) if trapping else None
            found = self.frontier(set(order), entrance, free)
            fronts.append(len(found))
            tried.update(found)
            return found

        found = look()
        fronts = fronts * len(order)
        while found and not (isinstance(stop, int) and len(order) >= stop):
            number = min(found, key=lambda number: (self.key(number), number))
            order.append(found[number])
            keys.append(self.key(number))
            found = look()
            if reached is None and order[-1] in target:
                reached = len(order) - 1
                if stop == "spanning":
                    break
        return order, keys, fronts, tried, reached


def assert_judged(ground, judge, weights, sources, layers, target, **options):
    """Assert that an invasion is the judge's, step by step."""
    trapping = options.pop("trapping")
    listed = np.array(sorted(target), np.int64)
    found = invade(
        ground,
        weights,
        np.array(sources, np.int64),
        Target(layers, NO_SITES if layers.any() else listed),
        num_sites=judge.topology.num_points,
        exits=listed if trapping else None,
        num_points=judge.topology.num_points,
        **options,
    )
    sites, keys, fronts, tried, reached = judge.invade(
        sources, set(target), trapping=trapping, **options
    )
    assert found.sites.tolist() == sites
    assert found.breakthrough == reached
    assert found.fronts.tolist() == fronts
    assert found.tried.size == len(tried)
    if weights.given is None:
        assert [int(key) for key in found.keys[found.num_sources :]] == keys[found.num_sources :]
    else:
        taken = weights.given[found._numbers[found.num_sources :]]
        assert found.weights[found.num_sources :].tolist() == taken.tolist()
    ends = {number: {i, j} for number, i, j in judge.bonds}
    for site, origin, bond in zip(found.sites.tolist(), found.origins.tolist(), found.bonds):
        assert origin == -1 or ends[bond] == {site, origin}
    return found


CASES = list(product((False, True), ("spanning", "all", 17)))


@pytest.mark.parametrize("model", ["bond", "site"])
@pytest.mark.parametrize(
    ("name", "shape", "boundary"),
    [
        ("square", (7, 6), ("open", "open")),
        ("square", (2, 9), ("periodic", "open")),
        ("triangular", (5, 7), ("periodic", "open")),
        ("honeycomb", (8, 6), ("open", "open")),
        ("kagome", (8, 5), ("periodic", "open")),
        ("square-nnn", (1, 9), ("periodic", "open")),
        ("cubic", (3, 4, 4), ("open", "periodic", "open")),
    ],
    ids=str,
)
def test_lattice_is_invaded_as_the_judge_does(name, shape, boundary, model):
    lattice = load_lattice(name)
    topology = lattice.topology(shape, boundary)
    axis = len(shape) - 1
    low, high = (layer.tolist() for layer in topology.end_layers[axis])
    sides, none = np.zeros((len(shape), 2), np.int64), np.zeros((len(shape), 2), np.int64)
    sides[axis, 1] = 1
    sites = np.flatnonzero(unpack_bits(topology.occupied, topology.num_points)).tolist()
    for (trapping, stop), (sample, generator) in product(CASES, enumerate(GENERATORS.values())):
        judge = Judge(topology, model, generator, 5, sample)
        weights = Weights(model, generator, 5, sample, len(lattice.bonds))
        kind = {"stop": stop, "trapping": trapping}
        grounds = ground_of_lattice(lattice, shape, boundary), ground_of_topology(topology)
        of_side = low, sides, high
        of_site = sites[len(sites) // 2 : len(sites) // 2 + 1], none, [sites[0], sites[-1]]
        for ground in grounds:
            layers = sides if ground is grounds[0] else none
            assert_judged(ground, judge, weights, of_side[0], layers, high, enters=True, **kind)
            assert_judged(ground, judge, weights, *of_site, enters=False, **kind)


def random_graph(random):
    """Return a small graph, with loops, parallel bonds and pieces."""
    sites = int(random.integers(2, 14))
    count = int(random.integers(1, 3 * sites))
    return graph_topology(sites, random.integers(0, sites, (count, 2)))


def test_graphs_are_invaded_as_the_judge_does_with_ties_too():
    random = np.random.default_rng(2)
    for _ in range(150):
        topology = random_graph(random)
        model = ("bond", "site")[random.integers(2)]
        classes, stride = topology.num_classes, 32 * topology.num_words
        size = stride if model == "site" else classes * stride
        values = random.integers(0, 4, size).astype(np.float64)
        weights = Weights(model, 0, 1, 0, classes, values, keys_of_values(values))
        if random.integers(2):
            weights = Weights(model, int(random.integers(2)), 3, 7, classes)
        given = None if weights.keys is None else weights.keys
        judge = Judge(topology, model, weights.generator, weights.seed, 7, given)
        sites = random.permutation(topology.num_points).tolist()
        sources = sites[: 1 + random.integers(len(sites) - 1)]
        target = sites[len(sources) :][: 1 + random.integers(3)]
        stop = ("spanning", "all", int(random.integers(len(sources), len(sites) + 2)))
        assert_judged(
            ground_of_topology(topology),
            judge,
            weights,
            sources,
            np.zeros((0, 2), np.int64),
            target,
            enters=bool(random.integers(2)),
            stop=stop[random.integers(3)],
            trapping=bool(random.integers(2)),
        )
