"""Invasion percolation against a plain reference, which looks at all the frontier in every step."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from percolab import Graph, InputError, graph_topology, load_lattice, sweep
from percolab.bonds.words import GENERATORS, uniform_number
from percolab.configurations.invade import Invader, make_field
from percolab.configurations.invade import invade as invade_named
from percolab.lattices.structure import load_structure
from percolab.lattices.topology import unpack_bits
from percolab.trees import invasion
from percolab.trees.invasion import (
    InvasionWeights,
    Target,
    burst_sizes,
    invade,
    lattice_ground,
    topology_ground,
)
from percolab.trees.weights import values_to_keys

NO_SITES = np.empty(0, np.int64)


class Reference:
    """Bonds and keys of a topology, as Python sees them."""

    def __init__(self, topology, model, generator=0, seed=1, sample=0, given=None, solid=()):
        self.solid = set(solid)  # numbers of bonds or sites that are never used
        self.topology, self.by_site = topology, model == "site"
        klass, owner, other = topology.bonds().T
        stride = 32 * topology.num_words
        self.bonds = [
            (k * stride + i, i, j)
            for k, i, j in zip(klass.tolist(), owner.tolist(), other.tolist())
            if i != j and self.solid.isdisjoint((i, j) if self.by_site else (k * stride + i,))
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
            return int(uniform_number(generator, *key, word, np.uint32(number % 32)))

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
        found = {site: site for site in entrance if site not in self.solid.union(invaded)}
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


def assert_as_reference(ground, reference, weights, sources, layers, target, **options):
    """Assert that an invasion is that of the reference, step by step."""
    trapping = options.pop("trapping")
    listed = np.array(sorted(target), np.int64)
    found = invade(
        ground,
        weights,
        np.array(sources, np.int64),
        Target(layers, NO_SITES if layers.any() else listed),
        num_sites=reference.topology.num_points,
        exits=listed if trapping else None,
        **options,
    )
    sites, keys, fronts, tried, reached = reference.invade(
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
    ends = {number: {i, j} for number, i, j in reference.bonds}
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
)
def test_lattice_is_invaded_as_the_reference_does(name, shape, boundary, model, monkeypatch):
    lattice = load_lattice(name)
    topology = lattice.topology(shape, boundary)
    axis = len(shape) - 1
    low, high = (layer.tolist() for layer in topology.end_layers[axis])
    sides, none = np.zeros((len(shape), 2), np.int64), np.zeros((len(shape), 2), np.int64)
    sides[axis, 1] = 1
    sites = np.flatnonzero(unpack_bits(topology.occupied, topology.num_points)).tolist()
    cases = product(CASES, enumerate(GENERATORS.values()))
    for n, ((trapping, stop), (sample, generator)) in enumerate(cases):
        # Words in a hash table, as those of large lattices are, with either generator.
        monkeypatch.setattr(invasion, "WORDS_LISTED", (1 << 17, 0, 0, 1 << 17)[n % 4])
        reference = Reference(topology, model, generator, 5, sample)
        weights = InvasionWeights(model, generator, 5, sample, len(lattice.bonds))
        kind = {"stop": stop, "trapping": trapping}
        grounds = lattice_ground(lattice, shape, boundary), topology_ground(topology)
        of_side = low, sides, high
        of_site = sites[len(sites) // 2 : len(sites) // 2 + 1], none, [sites[0], sites[-1]]
        for ground in grounds:
            layers = sides if ground is grounds[0] else none
            assert_as_reference(
                ground, reference, weights, of_side[0], layers, high, enters=True, **kind
            )
            assert_as_reference(ground, reference, weights, *of_site, enters=False, **kind)


@pytest.mark.parametrize("model", ["bond", "site"])
def test_what_has_an_infinite_weight_is_never_invaded_and_no_way_out(model):
    random, reached = np.random.default_rng(7), set()
    for case in range(48):
        graph = Graph.of_bonds(24, random.integers(0, 24, (50, 2)), source=[0, 1], target=[22, 23])
        name, L, boundary = ("square", 5, "open,periodic") if case % 2 else (graph, None, None)
        source = "x-" if case % 2 else None
        field = make_field(load_structure(name) if case % 2 else graph, L, boundary)
        topology = field.structure.topology(field.shape, field.boundary)
        shape = (topology.num_classes, *field.shape[::-1]) if case % 2 else (graph.num_bonds,)
        shape = field.shape[::-1] if model == "site" else shape
        values = random.integers(0, 30, shape).astype(float)
        values[random.random(shape) < 0.3] = np.inf
        trapping, stop = bool(case & 2), ("spanning", "all", 13)[case % 3]
        options = {"source": source, "model": model, "trapping": trapping, "stop": stop}
        invader = Invader(field, weights=values, **options)
        floats, keys = invader.given
        reference = Reference(
            topology, model, given=keys, solid=np.flatnonzero(floats == np.inf).tolist()
        )
        low, high = (layer.tolist() for layer in topology.end_layers[0])
        expected = reference.invade(low, set(high), enters=True, stop=stop, trapping=trapping)
        found = invader.run()
        outer = np.arange(25) if field.inner is None else invader._outer_numbers
        assert found.sites.tolist() == outer[expected[0]].tolist()
        assert found.fronts.tolist() == expected[2]
        assert (found.tried.size, found.breakthrough) == (len(expected[3]), expected[4])
        assert np.isfinite(found.tried).all()
        reached.add(found.breakthrough is None)
    assert reached == {True, False}


def test_a_solid_site_is_no_source():
    values = np.ones((4, 4))
    values[0, 1] = np.inf
    given = {"model": "site", "weights": values}
    with pytest.raises(InputError, match="source: site 1 has the weight inf, so nothing enters"):
        invade_named("square", 4, source=[0, 1], target="top", **given)
    assert 1 not in invade_named("square", 4, source="bottom", stop="all", **given).sites
    values[0] = np.inf
    assert invade_named("square", 4, source="bottom", **given).num_invaded == 0


def random_graph(random):
    """Return a small graph, with loops, parallel bonds and pieces."""
    sites = int(random.integers(2, 14))
    count = int(random.integers(1, 3 * sites))
    return graph_topology(sites, random.integers(0, sites, (count, 2)))


def test_graphs_are_invaded_as_the_reference_does_with_ties_too():
    random = np.random.default_rng(2)
    for _ in range(150):
        topology = random_graph(random)
        model = ("bond", "site")[random.integers(2)]
        classes, stride = topology.num_classes, 32 * topology.num_words
        size = stride if model == "site" else classes * stride
        values = random.integers(0, 4, size).astype(np.float64)
        weights = InvasionWeights(model, 0, 1, 0, classes, values, values_to_keys(values))
        if random.integers(2):
            weights = InvasionWeights(model, int(random.integers(2)), 3, 7, classes)
        given = None if weights.keys is None else weights.keys
        reference = Reference(topology, model, weights.generator, weights.seed, 7, given)
        sites = random.permutation(topology.num_points).tolist()
        sources = sites[: 1 + random.integers(len(sites) - 1)]
        target = sites[len(sources) :][: 1 + random.integers(3)]
        stop = ("spanning", "all", int(random.integers(len(sources), len(sites) + 2)))
        assert_as_reference(
            topology_ground(topology),
            reference,
            weights,
            sources,
            np.zeros((0, 2), np.int64),
            target,
            enters=bool(random.integers(2)),
            stop=stop[random.integers(3)],
            trapping=bool(random.integers(2)),
        )


# Trees and thresholds


@pytest.mark.parametrize("model", ["bond", "site"])
def test_the_largest_weight_is_the_threshold_that_a_sweep_finds(model):
    results = sweep("square", L=[33], method="threshold", samples=6, model=model, seed=4,
                    device="cpu", workers=1)  # fmt: skip
    (item,) = results.tasks.values()
    blocks = [item.blocks[number].thresholds for number in sorted(item.blocks)]
    expected = np.concatenate(blocks)
    for axis, source in enumerate(("left", "bottom")):
        asker = Invader(
            make_field(load_structure("square"), 33), source=source, model=model, seed=4
        )
        found = [asker.run(sample).threshold_key for sample in range(6)]
        assert found == expected[:, axis].tolist()


# What it costs, and what it is


def test_only_what_is_touched_is_drawn():
    """Of 2^30 sites there are 2^26 random words."""
    for model, most in (("bond", 600), ("site", 400)):
        found = invade_named("square", 2**15, source="centre", stop=3000, model=model)
        assert found.num_invaded == 3000
        assert 2 * 3000 / 32 / 2 < found.touched < most
        assert found.num_sites == 2**30


@pytest.mark.parametrize("model", ["bond", "site"])
def test_words_in_a_hash_table_that_grows_are_those_in_a_list(model, monkeypatch):
    options = {"source": "centre", "stop": "all", "boundary": "periodic", "model": model}
    listed = invade_named("square", 500, **options)
    monkeypatch.setattr(invasion, "WORDS_LISTED", 0)
    found = invade_named("square", 500, **options)
    assert found.sites.tolist() == listed.sites.tolist()
    assert found.fronts.tolist() == listed.fronts.tolist()
    assert found.touched == listed.touched


def test_large_frontiers_leave_the_heap_and_come_back():
    """A star has a frontier of all its bonds at once; they are taken in order, by all digits."""
    leaves = 250_000
    ends = np.arange(1, leaves + 1)
    graph = Graph.of_bonds(leaves + 1, np.column_stack([0 * ends, ends]))
    found = invade_named(graph, source=[0], stop="all")
    keys = found.keys[1:]
    assert (keys[1:] > keys[:-1]).all()
    assert (np.diff(keys >> np.uint64(31)) == 0).sum() > 3
    assert found.num_invaded == leaves + 1
    equal = invade_named(graph, source=[0], stop="all", weights=np.ones(leaves))
    assert (np.diff(equal.bonds[1:]) > 0).all()


@pytest.mark.slow
def test_acceptance_profile_of_bonds_in_the_plane_tends_to_a_step_at_one_half():
    """The step lacks what n sites have not found out yet, n^(-1 / (nu d_f)) = n^(-36/91)."""
    lacking, errors = [], []
    for n, samples in ((600, 40), (9600, 20)):
        shares = []
        for sample in range(samples):
            found = invade_named("square", 2**14, source="centre", stop=n, sample=sample)
            edges, tried, accepted = found.acceptance(20)
            shares.append(accepted / tried)
        positions = 0.5 - np.sum(shares, axis=1) / 20
        lacking.append(positions.mean())
        errors.append(positions.std(ddof=1) / np.sqrt(samples) / positions.mean())
    np.testing.assert_allclose(edges, np.linspace(0, 1, 21))
    mean, error = np.mean(shares, axis=0), np.std(shares, axis=0, ddof=1) / np.sqrt(samples)
    assert (mean[:8] > 0.98).all()
    assert (np.abs(mean[11:]) <= 4 * error[11:] + 1e-3).all()
    power = np.log(lacking[0] / lacking[1]) / np.log(16)
    assert abs(power - 36 / 91) < 4 * np.hypot(*errors) / np.log(16)


def test_bursts_of_a_hand_example():
    weights = np.array([0.3, 0.7, 0.2, 0.4, 0.9, 0.8, 0.1])
    # Those that begin with 0.7 and 0.9; the one of 0.8 goes on.
    assert burst_sizes(weights, 0.6).tolist() == [3, 1]
    # Records are 0.3, 0.7, 0.9.
    assert burst_sizes(weights).tolist() == [1, 3]
    assert burst_sizes(weights, 0.95).tolist() == burst_sizes(weights[:1], 0.1).tolist() == []
    assert burst_sizes(np.empty(0)).tolist() == []


#: Pores 0 ... 5 and the throats between them, with their entry pressures.
THROATS = {(0, 1): 4.0, (1, 2): 2.0, (0, 3): 6.0, (3, 4): 1.0, (2, 4): 5.0, (4, 5): 3.0}


def test_pressure_curve_of_a_pore_network_by_hand():
    """The largest entry pressure so far, against the pores that are filled at it."""
    graph = Graph.of_bonds(6, list(THROATS))
    found = invade_named(graph, source=[0], target=[5], weights=list(THROATS.values()))
    # 0 -4-> 1 -2-> 2 -5-> 4 -1-> 3 -3-> 5
    assert found.sites.tolist() == [0, 1, 2, 4, 3, 5]
    assert found.weights[1:].tolist() == [4.0, 2.0, 5.0, 1.0, 3.0]
    assert found.origins.tolist() == [-1, 0, 1, 2, 4, 4]
    pressures, saturations = found.pressure_curve()
    assert pressures.tolist() == [4.0, 5.0]
    assert saturations.tolist() == [3 / 6, 6 / 6]
    assert found.threshold == 5.0
    assert found.bursts().tolist() == [2]


def test_the_threshold_of_weights_below_zero_is_the_largest_of_them():
    found = invade_named([(0, 1), (1, 2)], weights=[-4, -3], source=0, target=2)
    assert found.threshold == -3


def test_sites_of_a_graph_have_the_numbers_of_its_file():
    """A hub is numbered first inside."""
    bonds = [(site, 39) for site in range(39)]
    graph = Graph.of_bonds(40, bonds)
    assert graph.inner_numbers is not None
    values = np.arange(39.0)[::-1]
    found = invade_named(graph, source=[3], stop="all", weights=values)
    assert found.sites.tolist() == [3, 39, *range(38, 3, -1), 2, 1, 0]
    assert set(found.origins[2:].tolist()) == {39}
    sites = invade_named(graph, source=[3], stop="all", model="site", weights=np.arange(40.0))
    assert sites.sites.tolist() == [3, 39, 0, 1, 2, *range(4, 39)]


def test_mass_within_a_distance_uses_the_places_of_sites():
    field = make_field(load_structure("triangular"), 20, "periodic")
    found = Invader(field, source=[0], stop="all").run()
    distances = field.distances(found.sites, 0)
    assert found.mass_within(distances, [0.5, 1.01, 1.8]).tolist() == [1, 7, 13]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source": 4.5}, "source: sites are integers"),
        ({"source": []}, "source: names no sites"),
        ({"sample": -1}, "sample = -1, but it must be an integer from 0"),
        ({"stop": True}, "stop = True, but only integers are allowed"),
        (
            {"weights": np.ones((2, 3))},
            "weights have the shape (2, 3), but those of the bonds of square",
        ),
        (
            {"weights": np.full((2, 64), np.nan)},
            "weight nan, but a weight is a finite number, or inf",
        ),
        ({"weights": [["a"]]}, "weights must be floats or integers"),
    ],
)
def test_bad_input_from_python_is_refused(options, message):
    with pytest.raises(InputError) as error:
        invade_named("square", 8, **options)
    assert str(error.value).startswith(message)


def test_weights_are_not_given_with_the_pairs():
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3)]
    ways = {"source": 0, "stop": "all"}
    assert invade_named(pairs, weights=[4, 3, 2, 1], **ways).sites.tolist() == [0, 3, 2, 1]
    with pytest.raises(InputError, match="their weights as weights"):
        invade_named((pairs, [4.0, 3, 2, 1]), **ways)
