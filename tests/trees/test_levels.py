"""Levels at which given values percolate: brute force at all levels, scipy, networkx, samples."""

import json
from collections import deque
from itertools import pairwise, product

import numpy as np
import pytest
from helpers import slow
from numpy.linalg import matrix_rank
from scipy import ndimage

import percolab
from percolab import InputError, load_lattice
from percolab.tasks.study import axis_boundaries
from percolab.trees import level_labeler, levels

#: Lattice, shape of the array, boundary; cells of several sites, and short axes, among them.
CASES = [
    slow(("square", (4, 5), "periodic")),
    ("square", (6, 4), "periodic,open"),
    slow(("square", (5, 5), "open")),
    ("square", (2, 2), "periodic"),
    ("square", (1, 3), "periodic"),
    slow(("triangular", (4, 4), "periodic")),
    ("kagome", (4, 6), "periodic"),
    slow(("cubic", (3, 3, 3), "periodic")),
    slow(("cubic", (2, 3, 4), "periodic,open,periodic")),
    slow(("bcc", (2, 2, 2), "periodic")),
]
#: Open axes of one layer, which any open site spans: of values of sites.
THIN = [
    ("square", (1, 6), "open"),
    ("cubic", (4, 1, 5), "open,open,periodic"),
    slow(("kagome", (4, 2), "open")),
    slow(("cubic", (1, 5, 1), "open")),
]


def reference_bonds(lattice, shape, boundary):
    """Return rows (class, owner, other, offset) of sites (x, y, ...), in plain Python."""
    sizes, found = shape[::-1], []
    for klass, bond in enumerate(lattice.bonds):
        for point in product(*map(range, sizes)):
            if tuple(x % n for x, n in zip(point, lattice.cell)) not in bond.at:
                continue
            end = [x + step for x, step in zip(point, bond.offset)]
            sides = zip(end, sizes, boundary)
            if all(0 <= x < n or kind == "periodic" for x, n, kind in sides):
                other = tuple(x % n for x, n in zip(end, sizes))
                found.append((klass, point, other, bond.offset))
    return found


def open_links(bonds, values, by_site, level):
    """Return by site the steps (other site, offset) over bonds that are open at a level."""
    links = {}
    for klass, owner, other, offset in bonds:
        if by_site:
            links |= {s: links.get(s, []) for s in (owner, other) if values[s[::-1]] <= level}
            value = max(values[owner[::-1]], values[other[::-1]])
        else:
            value = values[(klass, *owner[::-1])]
        if value <= level:
            links.setdefault(owner, []).append((other, np.array(offset)))
            links.setdefault(other, []).append((owner, -np.array(offset)))
    return links


def reaches(links, sizes, boundary):
    """Return (axes reached, most directions of one cluster), by a search with displacements."""
    axes, most, seen = set(), 0, {}
    for start in links:
        if start in seen:
            continue
        seen[start] = np.zeros(len(sizes), int)
        queue, loops, members = [start], [], [start]
        while queue:
            site = queue.pop()
            for other, offset in links[site]:
                there = seen[site] + offset
                if other not in seen:
                    seen[other] = there
                    queue.append(other)
                    members.append(other)
                elif np.any(there != seen[other]):
                    loops.append(there - seen[other])
        own = {axis for loop in loops for axis in np.flatnonzero(loop).tolist()}
        rank = matrix_rank(np.array(loops)) if loops else 0
        for axis, kind in enumerate(boundary):
            along = {site[axis] for site in members}
            if kind == "open" and {0, sizes[axis] - 1} <= along:
                own.add(axis)
                rank += 1
        axes |= own
        most = max(most, rank)
    return axes, most


def fewest_steps(links, sizes, boundary, axis, starts=None):
    """Return the steps of the shortest path along or around an axis, over all starts."""
    best = np.inf
    for start in starts or links:
        if boundary[axis] == "open" and start[axis] != 0:
            continue
        depth, queue = {start: 0}, deque([start])
        while queue:
            point = queue.popleft()
            home = tuple(x % n for x, n in zip(point, sizes))
            if boundary[axis] == "open":
                arrived = point[axis] == sizes[axis] - 1
            else:
                arrived = home == start and point[axis] != start[axis]
            if arrived or depth[point] >= best:
                best = min(best, depth[point])
                break
            for _, offset in links[home]:
                there = tuple((np.array(point) + offset).tolist())
                if there not in depth:
                    depth[there] = depth[point] + 1
                    queue.append(there)
    return best


def random_values(shape, seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "ties":
        return rng.integers(0, 6, shape, dtype=np.uint8)
    values = rng.normal(size=shape).astype(np.float32)
    if kind == "solid":
        values[rng.random(shape) < 0.3] = np.inf
    return values


def check_against_brute_force(name, shape, boundary, values, *, unique):
    lattice = load_lattice(name)
    kinds, sizes = axis_boundaries(lattice, boundary), shape[::-1]
    found = percolab.threshold(lattice, weights=values, boundary=boundary)
    by_site = values.ndim == len(shape)
    bonds = reference_bonds(lattice, shape, kinds)
    axis_levels, direction_levels = {}, {}
    if by_site:
        sites = {site for _, owner, other, _ in bonds for site in (owner, other)}
        used = np.array([values[site[::-1]] for site in sorted(sites)])
    else:
        used = np.array([values[(klass, *owner[::-1])] for klass, owner, _, _ in bonds])
    for level in np.unique(used[used < np.inf]).tolist():
        links = open_links(bonds, values, by_site, level)
        axes, most = reaches(links, sizes, kinds)
        for axis in axes:
            axis_levels.setdefault(axis, level)
        for n in range(1, most + 1):
            direction_levels.setdefault(n, level)
    for axis, (letter, item) in enumerate(found.axes.items()):
        assert (item and item.level) == axis_levels.get(axis), letter
        if item is None:
            continue
        assert item.share == np.count_nonzero(used <= item.level) / used.size
        assert item.barrier == abs(item.level - used.min().item())
        check_path(item, found, bonds, values, sizes, kinds, axis, unique=unique)
    for n, item in found.directions.items():
        assert (item and item.level) == direction_levels.get(n), n
    return len(axis_levels)


def check_path(item, found, bonds, values, sizes, kinds, axis, *, unique):
    path, by_site = item.path, values.ndim == len(sizes)
    homes = path.places % sizes
    assert np.ravel_multi_index(tuple(homes.T), sizes, order="F").tolist() == path.sites.tolist()
    assert path.values.max() == item.level
    links = open_links(bonds, values, by_site, item.level)
    for (one, other), step in zip(pairwise(homes), np.diff(path.places, axis=0)):
        ways = [end for end, offset in links[tuple(one)] if np.array_equal(offset, step)]
        assert tuple(other) in ways
    if kinds[axis] == "open":
        assert path.places[0, axis] == 0
        assert path.places[-1, axis] == sizes[axis] - 1
    else:
        around = [turns * n for turns, n in zip(path.winding, sizes)]
        assert (path.places[-1] - path.places[0]).tolist() == around
        assert path.winding[axis] != 0
    best = fewest_steps(links, sizes, kinds, axis)
    assert path.sites.size - 1 >= best
    if unique:
        assert path.sites.size - 1 == best


@pytest.mark.parametrize("of", ["sites", "bonds"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2]}-{case[1][0]}")
def test_levels_and_paths_are_those_of_a_search_at_every_level(case, of):
    name, shape, boundary = case
    classes = () if of == "sites" else (load_lattice(name).num_classes,)
    reached = 0
    for seed in range(2):
        for kind in ("real", "ties", "solid"):
            values = random_values((*classes, *shape), seed, kind)
            unique = kind != "ties"
            reached += check_against_brute_force(name, shape, boundary, values, unique=unique)
    assert reached > 4


@pytest.mark.parametrize("case", THIN, ids=lambda case: f"{case[0]}-{case[2]}-{case[1][0]}")
def test_an_open_axis_of_one_layer_is_spanned_by_the_first_open_site(case):
    name, shape, boundary = case
    for kind in ("real", "ties", "solid"):
        values = random_values(shape, 3, kind)
        assert check_against_brute_force(name, shape, boundary, values, unique=kind != "ties")


def test_no_loop_through_the_saddle_has_fewer_steps():
    # A gap in a wall, and few obstacles: many loops of odd and of even lengths.
    lattice, boundary = load_lattice("triangular"), ("periodic", "periodic")
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = tuple(rng.integers(3, 9, 2).tolist())
        values = np.where(rng.random(sizes[::-1]) < 0.2, 9.0, 0.0)
        values[:, 0] = 9
        values[rng.integers(sizes[1]), 0] = 1
        item = percolab.threshold(lattice, weights=values, boundary="periodic").axes["x"]
        if item is None or item.level != 1:
            continue
        bonds = reference_bonds(lattice, sizes[::-1], boundary)
        links = open_links(bonds, values, True, 1)
        saddle = tuple(int(x) for x in np.unravel_index(item.saddle[0], sizes, order="F"))
        assert item.path.sites.size - 1 == fewest_steps(links, sizes, boundary, 0, [saddle])


def test_a_bond_that_leads_from_the_saddle_around_an_axis_is_the_shortest_loop():
    found = percolab.threshold(
        "square-nnn", weights=np.ones((1, 2), int), boundary="periodic", device="cpu"
    )
    assert found.axes["y"].path.sites.tolist() == [0, 0]
    assert np.abs(found.axes["y"].path.winding).tolist() == [0, 1]


@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_many_values_are_bisected_to_the_same_levels(boundary):
    # More values than are tried: labelings, then bonds one by one; scipy, by bisection.
    values = np.random.default_rng(3).normal(size=(20, 21, 22)).astype(np.float32)
    found = percolab.threshold(weights=values, boundary=boundary)
    tried = np.unique(values)
    for axis, item in enumerate(found.axes.values()):
        low, high = 0, tried.size - 1
        while low < high:
            middle = (low + high) // 2
            if scipy_percolates(values <= tried[middle], 2 - axis, boundary):
                high = middle
            else:
                low = middle + 1
        assert item.level == tried[low]
        assert item.level.hex() == float(tried[low]).hex()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("cubic", (24, 22, 20)), ("triangular", (90, 40))])
def test_parts_of_a_lattice_that_threads_join_give_the_same_levels_and_paths(
    name, shape, monkeypatch
):
    rng, answers, rooms = np.random.default_rng(5), [], []
    fields = [rng.normal(size=shape) for _ in range(8)]
    labeler = level_labeler.CpuLevelLabeler
    make = labeler._make_growth
    monkeypatch.setattr(
        labeler, "_make_growth", lambda self, size: (rooms.append(size), make(self, size))
    )
    for threads in (1, 4):
        monkeypatch.setattr(level_labeler, "_THREADS", threads)
        for boundary, field in product(("open", "periodic"), fields):
            found = percolab.threshold(name, weights=field, boundary=boundary)
            answers.append((threads, found.to_dict()))
    alone, together = ([answer for n, answer in answers if n == threads] for threads in (1, 4))
    assert alone == together
    lattice = load_lattice(name)
    topology = lattice.topology(shape[::-1], ("open",) * len(shape))
    parts, between = levels.LevelSearch(topology, fields[0].ravel(), lattice).labeler.parts
    assert len(parts) > 1
    assert len(between) == len(parts) - 1
    # Sites that are never open take no room.
    assert max(rooms) < np.prod(shape) / 2.5


def test_runs_that_do_not_fit_into_the_memory_are_refused(free_memory):
    field, lattice = np.random.default_rng(1).normal(size=(64, 64)), load_lattice("square")
    search = levels.LevelSearch(lattice.topology((64, 64), ("open",) * 2), field.ravel(), lattice)
    free_memory(1000)
    with pytest.raises(InputError, match="the open sites need 0"):
        search.find()


def scipy_percolates(opened, axis, boundary):
    """Return whether opened sites span an axis, or wrap around it, by scipy.ndimage.label."""
    if boundary == "open":
        labels, _ = ndimage.label(opened)
        first, last = labels.take(0, axis), labels.take(-1, axis)
        return bool(np.intersect1d(first[first > 0], last).size)
    # Unrolled: a site is joined to its image one or two periods along the axis.
    copies = np.tile(opened, [3] * opened.ndim)
    labels, _ = ndimage.label(copies)
    blocks = [slice(size, 2 * size) for size in opened.shape]
    here = labels[tuple(blocks)]
    found = False
    for steps in product((0, 1, 2), repeat=opened.ndim):
        if steps[axis] == 1:
            continue
        there = tuple(
            slice(step * size, (step + 1) * size) for step, size in zip(steps, opened.shape)
        )
        found = found or bool(np.any((here > 0) & (here == labels[there])))
    return found


def test_clusters_that_wrap_in_different_directions_are_not_one_with_two():
    values = np.full((4, 4, 4), 9)
    values[0, 0, :] = 1  # along x
    values[2, :, 2] = 2  # along y
    values[1, 0, 2] = 3  # joins them
    found = percolab.threshold(weights=values, boundary="periodic")
    assert [item.level for item in found.axes.values()] == [1, 2, 9]
    assert [item.level for item in found.directions.values()] == [1, 3, 9]
    assert found.directions[2].saddle == (18,)


def test_the_path_of_a_graph_is_a_minimax_path_with_the_fewest_steps():
    networkx = pytest.importorskip("networkx")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = networkx.gnm_random_graph(30, 60, seed=seed)
        for edge in graph.edges.values():
            edge["weight"] = int(rng.integers(-20, 20))
        found = percolab.threshold(graph=graph, weights="file", source=[0, 1], target=[28, 29])
        networkx.add_path(graph, ["source", 0], weight=-99)
        networkx.add_path(graph, ["source", 1], weight=-99)
        networkx.add_path(graph, [28, "target", 29], weight=-99)
        tree = networkx.minimum_spanning_tree(graph)
        item = found.axes["source-target"]
        if not networkx.has_path(tree, "source", "target"):
            assert item is None
            continue
        way = networkx.shortest_path(tree, "source", "target")
        level = max(tree.edges[pair]["weight"] for pair in pairwise(way))
        edges = [pair for pair in graph.edges if graph.edges[pair]["weight"] <= level]
        steps = networkx.shortest_path_length(graph.edge_subgraph(edges), "source", "target") - 2
        path = [found.site_name(site) for site in item.path.sites.tolist()]
        along = [graph.edges[int(u), int(v)]["weight"] for u, v in pairwise(path)]
        assert (item.level, item.path.sites.size - 1) == (level, steps)
        assert item.path.values.tolist() == along
        assert max(along) == level


@pytest.mark.parametrize("dtype", ["u1", "i2", "u8", "i8", "f2", "f4", "f8", ">f4"])
def test_large_values_open_first_with_above(dtype):
    values = np.random.default_rng(2).integers(0, 100, (9, 9)).astype(dtype)
    below = percolab.threshold(weights=100.0 - values.astype(float))
    above = percolab.threshold(weights=values, above=True)
    for axis in "xy":
        assert above.axes[axis].level == 100 - below.axes[axis].level
        assert above.axes[axis].path.sites.tolist() == below.axes[axis].path.sites.tolist()
        assert above.axes[axis].path.values.min() == above.axes[axis].level
    assert above.bottom == values.max()


def test_a_barrier_beyond_all_floats_is_no_number_of_json():
    levels = percolab.threshold(weights=np.array([[1e308, -1e308]])).to_dict()
    assert levels["axes"]["x"]["barrier"] is None
    json.dumps(levels, allow_nan=False)


def test_solid_never_opens_and_large_integers_are_not_rounded():
    values = np.full((3, 4), 2**62)
    values[1] += [3, 1, 2, 0]
    found = percolab.threshold(weights=values + np.array([[9], [0], [9]]))
    assert found.axes["x"].level == 2**62 + 3
    wall = np.zeros((3, 4))
    wall[:, 2] = np.inf
    found = percolab.threshold(weights=wall)
    assert (found.axes["x"], found.axes["y"].level, found.never_open) == (None, 0, 3)
    assert found.axes["y"].share == 9 / 12
    found = percolab.threshold(weights=np.full((2, 2), np.inf))
    assert (found.axes, found.bottom) == ({"x": None, "y": None}, None)
    assert found.never_open == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": np.array([[1, np.nan]])}, "a weight is nan, but it must be finite, or inf"),
        ({"weights": np.array([[1, -np.inf]])}, "a weight is -inf"),
        ({"weights": np.array([[1, np.inf]]), "above": True}, "a weight is inf, .*, or -inf"),
        *(
            ({"graph": graph, "weights": given, "above": True, "source": 0, "target": 2}, of_graph)
            for infinity in (np.inf, -np.inf)
            for graph, given in (
                ([(0, 1, 1.0), (1, 2, infinity)], "file"),
                ([(0, 1), (1, 2)], np.array([1.0, infinity])),
            )
            for of_graph in [f"^weight {infinity}, but for levels from above .* finite weight"]
        ),
        ({"lattice": "square", "weights": np.ones((2, 1, 3))}, "axis y: site 0 is on both sides"),
        ({"weights": np.ones(3)}, "1 dimensions; name its lattice"),
        ({"weights": np.ones((2, 2), complex)}, "holds complex128"),
        ({"weights": np.ones((0, 2))}, "0 sites"),
        ({"weights": np.ones((2, 2)), "seed": 3}, "seed: weights have no samples"),
        ({"weights": np.ones((2, 2)), "source": 3}, "source: only a graph has it"),
        ({"lattice": "bethe:3", "weights": np.ones((2, 2))}, "lattice: bethe:3"),
        ({"lattice": "square", "boundary": "open"}, "boundary: only weights have it"),
        ({}, "give a lattice, or weights"),
    ],
)
def test_what_has_no_levels_is_refused_in_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as error:
        percolab.threshold(**arguments)
    assert "\n" not in str(error.value)


def chords(shape):
    """Return the distance from the first site to every site of a torus."""
    squares = np.zeros(shape)
    for axis, n in enumerate(shape):
        along = (n / np.pi * np.sin(np.pi * np.arange(n) / n)) ** 2
        squares += np.expand_dims(along, [k for k in range(len(shape)) if k != axis])
    return np.sqrt(squares)


@pytest.mark.parametrize(
    ("shape", "correlation"),
    [
        slow((9, 16), 0.5),
        slow((4, 5, 6), 1.0),
        ((31,), 2.0),
        slow((12, 12), lambda r: np.exp(-((r / 2) ** 2))),
    ],
)
def test_fields_have_the_correlation_that_is_requested(shape, correlation):
    count = 1000
    given = {"correlation" if callable(correlation) else "exponent": correlation}
    fields = np.array([percolab.gaussian_field(shape, **given, seed=n) for n in range(count)])
    r = chords(shape)
    expected = correlation(r) if callable(correlation) else (1 + r**2) ** (-correlation / 2)
    origin = fields.reshape(count, -1)[:, 0].reshape(-1, *[1] * len(shape))
    products = origin * fields
    # The variance of a product of two Gaussian numbers of variance 1 is 1 + C^2.
    z = (products.mean(axis=0) - expected) / np.sqrt((1 + expected**2) / count)
    assert np.abs(z).max() < 4
    # All modes, independent of one another: their sum has the variance of that of squares.
    axes = range(1, fields.ndim)
    modes = np.abs(np.fft.fftn(fields, axes=axes)) ** 2 / np.fft.fftn(expected).real / expected.size
    assert abs(modes.mean() - 1) * np.sqrt(modes.size / 2) < 4
    assert np.abs(fields.mean(axis=0) * np.sqrt(count)).max() < 4


def test_a_field_is_a_function_of_its_arguments():
    field = percolab.gaussian_field((8, 6), 1.5, seed=3)
    assert (field.shape, field.dtype) == ((8, 6), np.float64)
    assert np.array_equal(field, percolab.gaussian_field((8, 6), 1.5, seed=3))
    assert not np.array_equal(field, percolab.gaussian_field((8, 6), 1.5, seed=4))
    by_function = percolab.gaussian_field((8, 6), correlation=lambda r: (1 + r**2) ** -0.75, seed=3)
    assert np.allclose(field, by_function)
    # NumPy promises the same stream of Philox for ever.
    assert field[0, 0] == pytest.approx(-0.004823910112475405, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 1.0), "shape = 8, but it must have a length for each axis"),
        (((8, 0), 1.0), "shape = .8, 0."),
        (((8, 2**40), 1.0), "at most"),
        (((8, 8), 0), "exponent = 0, but it must be a finite number above 0"),
        (((8, 8), np.nan), "exponent = nan"),
        (((8, 8),), "give either exponent or correlation"),
        (((8, 8), None, lambda r: 1.0 * (r < 2)), "spectrum on this torus is negative"),
        (((8, 8), None, lambda r: np.nan * r), "a finite number for each distance"),
    ],
)
def test_what_is_no_correlation_is_refused(arguments, message):
    shape, exponent, correlation = (*arguments, None, None)[:3]
    with pytest.raises(InputError, match=message):
        percolab.gaussian_field(shape, exponent, correlation=correlation)
