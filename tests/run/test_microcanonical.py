"""Studies by method microcanonical: the rows of the grid at p, whatever the number of openings."""

import csv
import io
from itertools import combinations, permutations
from math import comb, factorial

import h5py
import numpy as np
import pytest
from cli_support import answer, refusal, refusal_after, replace_dataset, sealed_again, stored
from helpers import assert_z, slow

from percolab import Graph, InputError, fit, graph_topology, load_lattice, open_results, plot, sweep
from percolab.analysis.stored_data import read_curves
from percolab.analysis.stored_fits import fit_quantities
from percolab.bonds.batch_cpu import CpuBatch
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled.one_by_one import _begin, list_layers, list_openings, make_scratch, open_one
from percolab.kinds.microcanonical import KIND
from percolab.measure import openings as bins
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.store.results import read_results

#: A graph with a hub, two triangles, parallel ways and a double bond.
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (0, 4), (4, 5), (4, 5)]
SITES, SOURCE, TARGET = 6, [1], [5]
OPTIONS = {"method": "microcanonical", "device": "cpu", "seed": 4, "workers": 1}


def count_open(task, sample, p):
    """Return how many bonds of a sample, or sites, have numbers below p."""
    topology = task.structure.topology(task.shape, task.boundary)
    batch = CpuBatch(topology, task.draw)
    one = np.array([sample], np.uint64), np.array([p_to_threshold(p)], np.uint64)
    items = batch.fill(GENERATORS[task.rng], task.stream_seed, *one)
    words = batch.copy_occupied(items) if task.draw.draws_sites else batch.copy_open_words(items)
    return int(np.bitwise_count(words).sum())


@pytest.mark.parametrize(
    "given",
    [
        {"lattice": "square", "L": [9]},
        slow({"lattice": "square", "L": [6], "boundary": "periodic", "rng": "philox"}),
        slow({"lattice": "square", "L": [7], "boundary": "periodic", "model": "site"}),
        slow(
            {"lattice": "square-nnn", "L": [6], "boundary": ["periodic", "open"], "model": "site"}
        ),
        slow({"lattice": "kagome", "L": [8], "model": "site"}),
        slow({"lattice": "kagome", "L": [8], "boundary": "periodic"}),
        slow({"lattice": "cubic", "L": [4], "boundary": "periodic"}),
        slow({"lattice": "cubic", "L": [2], "boundary": "periodic", "model": "site"}),
        {"graph": Graph.of_bonds(SITES, EDGES)},
        {"graph": Graph.of_bonds(SITES, EDGES, source=SOURCE, target=TARGET), "model": "site"},
    ],
    ids=lambda given: "-".join(map(str, given.values())) if "lattice" in given else given.get(
        "model", "bond") + " graph",
)  # fmt: skip
def test_rows_after_n_openings_are_those_of_the_grid_where_n_are_open(given):
    p = [0.0, *np.linspace(0.02, 0.98, 25).tolist(), 1.0]
    common = given | {"samples": 12, "block_size": 1, "seed": 11, "device": "cpu", "workers": 1}
    (ours,) = sweep(method="microcanonical", **common).tasks.values()
    (grid,) = sweep(p=p, **common).tasks.values()
    assert ours.task.stream_seed == grid.task.stream_seed
    for sample in range(12):
        opened = [count_open(grid.task, sample, value) for value in p]
        assert opened[0] == 0
        assert opened[-1] == ours.task.num_openings
        for column in grid.observables:
            found = ours.stacked(column.name)[sample, opened]
            expected = grid.column(column.name)[sample]
            np.testing.assert_array_equal(found, expected, err_msg=column.name)


def numbers_of(sites, bonds):
    """Return what is measured of occupied sites and open bonds, by counting."""
    label = {site: site for site in sites}
    for a, b in bonds:
        old, new = label[a], label[b]
        label = {site: new if own == old else own for site, own in label.items()}
    sizes = sorted((list(label.values()).count(root) for root in set(label.values())), reverse=True)
    padded = [*sizes, 0, 0]
    roots = [{label[site] for site in ends if site in label} for ends in (SOURCE, TARGET)]
    sums = [len(sizes), padded[0], padded[1], sum(s * s for s in sizes), sizes.count(1)]
    return [*sums, int(bool(roots[0] & roots[1]))]


def exact_sums(model):
    """Return sums of these numbers over all subsets of n bonds or sites, (M + 1, numbers)."""
    members = range(len(EDGES) if model == "bond" else SITES)
    found = []
    for n in range(len(members) + 1):
        rows = []
        for chosen in combinations(members, n):
            sites = range(SITES) if model == "bond" else chosen
            bonds = [EDGES[k] for k in chosen] if model == "bond" else [
                (a, b) for a, b in EDGES if a in chosen and b in chosen
            ]  # fmt: skip
            rows.append(numbers_of(sites, bonds))
        found.append(rows)
    return [np.array(rows) for rows in found]


@pytest.mark.parametrize("model", ["site", slow("bond")])
def test_the_mean_over_all_orders_is_that_over_all_subsets(model):
    topology = graph_topology(SITES, EDGES, source=SOURCE, target=TARGET)
    openings = list_openings(topology, sites=model == "site")
    layers, scratch = list_layers(topology), make_scratch(topology, openings)
    count, orders = openings.places.size, 0
    total = np.zeros((count + 1, ROW_WIDTH), np.int64)
    for order in permutations(range(count)):
        state = _begin(openings, layers, scratch)
        total[0] += (*state[0], state[1])
        for n, opening in enumerate(order):
            state = open_one(opening, state, openings, layers, scratch)
            total[n + 1] += (*state[0], state[1])
        orders += 1
    assert SPANNING == ROW_WIDTH - 1
    for n, rows in enumerate(exact_sums(model)):
        assert len(rows) == comb(count, n)
        expected = rows.sum(axis=0) * (factorial(count) // len(rows))
        np.testing.assert_array_equal(total[n], expected, err_msg=f"{n} open")
    assert orders == factorial(count)


def test_sums_over_bins_are_those_of_the_openings_in_them(monkeypatch):
    given = {"L": [8], "samples": 6, "block_size": 3, "boundary": "periodic"} | OPTIONS
    (single,) = sweep("square", **given).tasks.values()
    expected = {name: single.stacked(name) for name in single.layout()}
    monkeypatch.setattr(bins, "MOST_BINS", 40)
    (binned,) = sweep("square", **given).tasks.values()
    assert bins.bin_width(128) == 4
    starts = np.arange(0, 129, 4)
    for name, rows in expected.items():
        added = np.add.reduceat(rows, starts, axis=1)
        np.testing.assert_array_equal(binned.stacked(name), added, err_msg=name)


@pytest.mark.slow
def test_means_at_any_p_are_those_of_a_grid_of_other_samples():
    p = [0.3, 0.5, 0.6]
    ours = sweep("square", L=[6, 12], samples=4000, **OPTIONS)
    grid = sweep("square", L=[6, 12], p=p, samples=4000, device="cpu", seed=5)
    for name in ("clusters", "largest", "second_largest", "spanning_y", "spanning_all"):
        for size in (6, 12):
            x, mean, error = ours.means(name, size, p=p)
            _, expected, other = grid.means(name, size)
            assert x.tolist() == p
            for k in range(len(p)):
                assert_z(mean[k], expected[k], float(np.hypot(error[k], other[k])))
    assert {20} == {len(item.blocks) for item in ours.tasks.values()}


def test_the_p_of_a_curve_are_where_its_own_probability_rises():
    results = sweep("square", L=[12], samples=50, boundary="open", **OPTIONS)
    some, every = (read_curves(results, f"spanning_{name}")[0] for name in ("any", "all"))
    assert some.p[0] < every.p[0]
    assert some.p[-1] < every.p[-1]
    for curve in (some, every):
        assert curve.probability[0] < 0.1
        assert curve.probability[-1] > 0.9


@pytest.mark.slow
def test_a_threshold_is_found_by_curves_and_by_quantities_and_drawn(tmp_path):
    samples = 1000
    results = sweep("square", L=[8, 16, 32], samples=samples, **OPTIONS)
    curves = read_curves(results)
    for curve in curves:
        _, mean, _ = results.means("spanning_y", curve.L, p=curve.p.tolist())
        np.testing.assert_allclose(curve.probability, mean, atol=4 / samples)
        assert curve.probability[0] < 0.03
        assert curve.probability[-1] > 0.97
    for estimate in (fit(results), fit_quantities(results, ["spanning_any"])):
        assert_z(estimate.threshold, 0.5, estimate.threshold_error)
    numbers = plot(results, tmp_path / "m.png").numbers
    assert [len(curve["p"]) > 20 for curve in numbers["curves"]] == [True] * 3


COMMAND = ("sweep", "--lattice", "square", "-L", "6,9,12", "--method", "microcanonical",
           "--samples", 200, "--device", "cpu", "--out", "m.h5")  # fmt: skip


@pytest.mark.slow
def test_the_command_line_plans_and_reports(tmp_path):
    assert "Python and libraries" in answer(*COMMAND, "--plan")
    answer(*COMMAND, "--quiet")
    answer("report", "m.h5", "--bootstrap", 0, "--out", "m.html")
    assert "in the order of these numbers" in (tmp_path / "m.html").read_text()


def test_the_command_line_sweeps_describes_and_exports():
    assert "p_c = 0." in answer(*COMMAND, "--quiet")
    assert "p any" in answer("status", "m.h5")
    rows = list(csv.DictReader(io.StringIO(answer("export", "m.h5", "-p", "0.3:0.7:3"))))
    assert [row["p"] for row in rows] == ["0.3", "0.5", "0.7"] * 3
    assert all(float(row["clusters"]) > 1 and row["largest_error"] for row in rows)
    frame = open_results("m.h5").to_pandas()
    assert set(frame.L) == {6, 9, 12}
    assert "sum_squares" in set(frame.observable)


@pytest.mark.slow
def test_a_graph_without_terminals_has_its_clusters_at_any_p(tmp_path):
    results = sweep(graph=Graph.of_bonds(SITES, EDGES), samples=100, **OPTIONS)
    _, mean, _ = results.means("largest", p=[0.0, 1.0])
    assert mean.tolist() == [1, 6]
    path = stored(tmp_path / "g.h5", results)
    assert "largest" in answer("fit", path)
    numbers = plot(results, tmp_path / "g.png").numbers
    assert len(numbers["curves"][0]["p"]) == 25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-p", "0.5"), "leave out p"),
        (("--model", "ising"), "differ at every p: leave it out"),
        (("--model", "site-bond"), "the model is bond or site, not site-bond"),
        (("--model", "bond:x=p,y=0.3"), "the model is bond or site, not bond:y=0.3"),
        (("--chains", "1"), "chains"),
        (("--measure", "sizes"), "which --order uses, does not measure it"),
        (("--slabs", "2"), "needs whole samples, whose bonds it opens"),
        (("--split", "lattice"), "needs whole samples, whose bonds it opens"),
        (("--target-error", "1e-3"), "few large blocks"),
        (("--labeler", "raster"), "unknown labeler of method microcanonical 'raster'"),
        (("-L", "4096"), "L = 4096: 33546240 bonds on 16777216 grid points, but"),
    ],
)
def test_what_it_does_not_have_is_refused_in_a_line(options, message, tmp_path):
    out = tmp_path / "m.h5"
    command = ("sweep", "--lattice", "square", "--method", "microcanonical", "--samples", 10)
    given = command if "-L" in options else (*command, "-L", 8)
    assert message in refusal(*given, *options, "--out", out)
    assert not out.exists()


def test_it_runs_on_the_cpu_alone():
    with pytest.raises(InputError, match="runs only on the CPU: use device cpu"):
        KIND.algorithms.choose(None, "cuda", load_lattice("square"))
    assert KIND.algorithms.choose(None, "cpu", load_lattice("square")) == ("newman_ziff", "")
    with pytest.raises(InputError, match="block_size = 1125899906842624, but at L = 8"):
        sweep("square", L=[8], samples=10, block_size=2**50, **OPTIONS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found[:, :10], "the shapes of its datasets do not fit together"),
        (lambda found: found[...] - 1000, "largest holds what its samples cannot have"),
        (lambda found: found[...] + 2**60, "largest holds what its samples cannot have"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, message):
    path = stored(tmp_path / "m.h5", sweep("square", L=[4], samples=20, **OPTIONS))
    assert message in refusal_after(path, lambda group: replace_dataset(group, "largest", change))


def test_a_file_without_an_observable_is_read_and_continued_without_it(tmp_path):
    given = OPTIONS | {"L": [4], "block_size": 10}
    path = stored(tmp_path / "m.h5", sweep("square", samples=20, **given))
    with h5py.File(path, "a") as file:
        del next(iter(file["tasks"].values()))["isolated"]
    sweep("square", samples=40, out=sealed_again(path), **given)
    (item,) = read_results(path).tasks.values()
    assert len(item.blocks) == 4
    assert item.has("largest")
    assert not item.has("isolated")
