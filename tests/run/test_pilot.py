"""Pilots find the p of a study: where lattices span, where maxima are, where spins order."""

import json
import math
from dataclasses import replace

import networkx
import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import PLANE, slow
from scipy.special import ndtr

from percolab import Graph, InputError, estimates, sweep
from percolab.analysis.spin_fit import compute_autocorrelations, fit_spins
from percolab.analysis.theory.ising import ising_torus
from percolab.kernels.device import Device
from percolab.kinds.pilots.percolation import (
    _REACH,
    POINTS,
    _sample_thresholds,
    covering,
    make_pilot_task,
    place_probabilities,
    place_windows,
)
from percolab.kinds.pilots.spins import find_burn_in, place_spins
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.measure.columns import list_observables
from percolab.tasks.kind import PilotConditions, make_sampler
from percolab.tasks.study import Study, Task

CPU = Device("cpu")
PILOT = PilotConditions(None, CPU)
#: In one piece if it is large, but 8 by 8 points are rows: the other bonds lead 9 points on.
ROWS = """
name = "rows"
dimension = 2
cell = { shape = [1, 1] }
bonds = [{ offset = [1, 0] }, { offset = [9, 1] }]
"""


def test_a_pilot_is_on_a_grid_and_has_no_setting_of_another_kind_alone():
    graph = Graph.of_bonds(3, [(0, 1), (1, 2)])
    task = Task(graph, 3, (), (), method="microcanonical", order="degree", seed=4)
    pilot = make_pilot_task(task)
    assert (pilot.kind.name, pilot.order, pilot.seed) == ("grid", "random", 4)


def study_of(lattice, *sizes, boundary=("open", "open"), **options):
    return Study(structure=lattice, sizes=sizes, boundary=boundary, **options)


def spanning_probability(study, size, p, name, samples=400):
    """Return R_L at every p from samples that the pilot has not seen."""
    task = replace(study.task(size, p), block_size=samples)
    names = [item.name for item in list_observables(task.boundary)]
    return make_sampler(task, device=CPU).sample([0])[0].sums[:, names.index(name)] / samples


@pytest.mark.parametrize("lattice", [PLANE[0], *(slow(n) for n in PLANE[1:])])
def test_the_p_values_hold_the_whole_transition(lattice):
    """The ends are 1.75 standard deviations of T from its mean, both known from 48 samples alone.

    So an end is off by 0.23 of these standard deviations, and R there is between 0.01 and 0.22 with
    four of them, where 400 samples add 0.02; the mean over seeds, sizes and axes is to be 0.05.
    """
    ends = []
    for seed in (1, 2, 3):
        study = replace(study_of(load_lattice(lattice), 8, 32), seed=seed)
        for size, grid in place_probabilities(study, PILOT).items():
            assert len(grid) >= 5
            assert list(grid) == sorted(grid)
            for axis in ("spanning_x", "spanning_y"):
                low, *inside, high = spanning_probability(study, size, grid, axis)
                ends += [low, 1 - high]
                assert sum(0.1 < value < 0.9 for value in inside) >= 3, inside
                assert sum(0.02 < value < 0.98 for value in (low, *inside, high)) >= 6, inside
    assert max(ends) < 0.22 + 4 * 0.02
    assert np.mean(ends) < 0.1


def grid_of(centres, spreads):
    return covering(centres - _REACH * spreads, centres + _REACH * spreads, POINTS)


def information(grid, centre, spread):
    """Return what counts at the p of a grid tell of a normal transition's place, of all there is.

    The second number is the same for place and width together.
    """
    z = (np.array(grid) - centre) / spread
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    cells = np.diff(np.concatenate([[0], ndtr(z), [1]]))
    slopes = np.diff([[0, *density, 0], [0, *(z * density), 0]])
    fisher = (slopes / np.maximum(cells, 1e-12)) @ slopes.T
    return fisher[0, 0], np.sqrt(np.linalg.det(fisher) / 2)


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.45, 3.0, 6.0, 10.0, 100.0])
@pytest.mark.parametrize("sharper", [1.0, 2.0])
def test_the_p_values_give_equal_information_on_every_axis(distance, sharper):
    """However far the transitions of two axes are apart, in standard deviations of the first."""
    scale = 0.002
    centres = 0.4 + scale * np.array([0.0, distance])
    spreads = scale * np.array([1.0, 1.0 / sharper])
    grid = grid_of(centres, spreads)
    assert len(grid) == POINTS
    message = np.array([information(grid, *axis) for axis in zip(centres, spreads)])
    assert np.all(message > [0.89, 0.74])
    assert np.ptp(message[:, 0]) < 0.04
    np.testing.assert_allclose(grid_of(centres[::-1], spreads[::-1]), grid)


def test_axes_that_agree_get_equal_spacing():
    grid = grid_of(np.array([0.5, 0.5]), np.array([0.02, 0.02]))
    assert grid == tuple(grid_of(np.array([0.5]), np.array([0.02])))
    np.testing.assert_allclose(np.diff(grid), 3.5 * 0.02 / 8, atol=0.001)


def test_the_pilot_gives_the_same_p_values_every_time():
    study = study_of(load_lattice("honeycomb"), 6, 12)
    first = place_probabilities(study, PILOT)
    assert place_probabilities(study, PilotConditions("reference", CPU)) == first
    assert place_probabilities(replace(study, sizes=(12, 6)), PILOT) == first


def test_another_seed_is_another_pilot():
    study = study_of(load_lattice("honeycomb"), 12)
    other = replace(study, seed=2)
    assert place_probabilities(study, PILOT) != place_probabilities(other, PILOT)


def test_the_pilot_never_uses_the_published_threshold():
    square = load_lattice("square")
    one, other = (study_of(item, 16) for item in (square, replace(square, thresholds=())))
    assert place_probabilities(one, PILOT) == place_probabilities(other, PILOT)


def test_one_open_axis_is_enough():
    study = study_of(load_lattice("square"), 16, boundary=("open", "periodic"))
    grid = place_probabilities(study, PILOT)[16]
    low, high = spanning_probability(study, 16, (grid[0], grid[-1]), "spanning_x")
    assert low < 0.1
    assert high > 0.9


def test_p_values_stay_inside_0_and_1_on_a_chain_that_spans_at_1_alone():
    chain = lattice_from_text(
        'name = "chain"\ndimension = 1\ncell = { shape = [1] }\nbonds = [{ offset = [1] }]',
        where="chain",
    )
    study = study_of(chain, 64, boundary=("open",))
    grid = place_probabilities(study, PILOT)[64]
    assert grid
    assert all(0 < p < 1 for p in grid)
    assert isinstance(study.task(64, grid), Task)


def test_a_lattice_that_cannot_span_is_reported():
    study = study_of(lattice_from_text(ROWS, where="rows.toml"), 8)
    with pytest.raises(InputError, match="rows spans at p = 1 in no sample: give the p values"):
        place_probabilities(study, PILOT)
    # Method threshold takes no p.
    with pytest.raises(InputError, match=r"in no sample: use method grid with p values \(p\)"):
        place_windows(study, [8], (), PILOT)


@pytest.mark.parametrize("name", ["square", "kagome", "maple-leaf"])
def test_a_single_layer_has_no_transition(name):
    with pytest.raises(InputError, match=f"L = 1: {name} spans at every p, .* give the p values"):
        place_probabilities(study_of(load_lattice(name), 1, 2), PILOT)


@pytest.mark.parametrize("window", [(0.7, 0.9), (0.1, 0.3)], ids=["above", "below"])
def test_a_window_that_misses_the_transition_is_mended(window):
    task = study_of(load_lattice("square"), 16).task(16, (0.5,))
    found = _sample_thresholds(task, window, PILOT)
    np.testing.assert_allclose(found, _sample_thresholds(task, (0.0, 1.0), PILOT), atol=0.02)


GRAPHS = {
    "petersen": networkx.petersen_graph(),
    "random regular": networkx.random_regular_graph(3, 400, seed=1),
    "barabasi-albert": networkx.barabasi_albert_graph(500, 2, seed=1),
    "erdos-renyi": networkx.gnm_random_graph(500, 1000, seed=1),
    "small world": networkx.connected_watts_strogatz_graph(400, 4, 0.1, seed=1),
    "karate": networkx.karate_club_graph(),
    "path": networkx.path_graph(50),
    "complete": networkx.complete_graph(150),
    "large random": networkx.gnm_random_graph(3000, 6000, seed=1),
    "large barabasi-albert": networkx.barabasi_albert_graph(3000, 3, seed=1),
}


def graph_of(name, **ends):
    graph = GRAPHS[name]
    bonds = np.array([pair[:2] for pair in graph.edges()])
    return Graph.of_bonds(graph.number_of_nodes(), bonds, name=name, **ends)


def assert_inside(**settings):
    """Assert that all thresholds lie inside the p that a pilot placed; return the results."""
    results = sweep(**settings, samples=500, device="cpu", workers=1)
    for size in estimates(results, bootstrap=0):
        assert {"second", "chi", "ratio"} <= {item.name for item in size.estimates}
        for item in size.estimates:
            assert np.isfinite(item.p), (size.L, item)
            assert not item.at_edge, (size.L, item)
    return results


@pytest.mark.parametrize(
    "name", [slow(name) if name.startswith("large") else name for name in GRAPHS]
)
def test_the_maxima_of_a_graph_are_inside(name):
    results = assert_inside(graph=graph_of(name))
    (item,) = results.tasks.values()
    assert 20 <= len(item.task.p) <= 25
    # Several of them are about each of <s_2> and chi.
    for estimate in estimates(results, bootstrap=0)[0].estimates[:2]:
        assert sum(abs(p / estimate.p - 1) < 0.5 for p in item.task.p) >= 6, estimate


def test_a_graph_with_ends_has_its_median_and_its_maxima_inside():
    assert_inside(graph=graph_of("random regular", source=[0], target=[200]))


@pytest.mark.parametrize(
    ("name", "shells"),
    [
        ("bethe:3", [2, 5, 7]),
        ("bethe:3:random", [6]),
        ("bethe:4", [3, 5]),
        ("bethe:4:random", [4]),
        ("bethe:5", [4]),
        ("bethe:6:random", [3]),
    ],
)
def test_the_maxima_of_a_bethe_lattice_and_its_median_are_inside(name, shells):
    assert_inside(lattice=name, L=shells)


def task_of(name, size, model="ising", boundary="periodic", **given):
    structure = load_lattice(name)
    return Task(
        structure=structure, size=size, boundary=(boundary,) * structure.dimension, model=model,
        **({"p": (0.5,)} | given),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "size", "model", "boundary", "p_c"),
    [
        slow("square", 16, "ising", "periodic", 0.5858),
        slow("square", 16, "potts:q=3", "open", None),
        slow("square", 16, "potts:q=10", "periodic", 0.7597),
        slow("triangular", 12, "potts:q=4", "periodic", 0.5),
        slow("honeycomb", 12, "ising", "open", None),
        slow("cubic", 8, "ising", "periodic", 0.3581),
        ("square", 3, "ising", "periodic", None),
    ],
)
def test_p_are_placed_over_the_transition(name, size, model, boundary, p_c):
    task = task_of(name, size, model, boundary)
    p = place_spins(task, PILOT)
    assert list(p) == sorted(set(p))
    assert p_c is None or p[0] < p_c < p[-1]
    if model == "potts:q=10":
        # Chains stay in the phase that they began in.
        return
    blocks = make_sampler(replace(task, p=p, block_size=60, burn_in=60), device=CPU).sample(
        range(8)
    )
    word = "wrapping_x" if boundary == "periodic" else "spanning_x"
    place = [column.name for column in task.observables].index(word)
    found = np.mean([block.sums[:, place] for block in blocks], axis=0) / 60
    assert found[0] < 0.35
    assert found[-1] > 0.65


@pytest.mark.slow
def test_other_sizes_and_the_update_do_not_move_p():
    given = {"boundary": "periodic", "model": "potts:q=3", "burn_in": 20, "samples": 40}
    alone, among, wolff = (
        sweep("square", L=sizes, device="cpu", update=update, **given)
        for sizes, update in (([8], "sw"), ([4, 8, 10], "sw"), ([8], "wolff"))
    )
    grids = [
        next(item.task.p for item in results.tasks.values() if item.task.size == 8)
        for results in (alone, among, wolff)
    ]
    assert grids[0] == grids[1] == grids[2]


def test_p_on_a_graph_are_where_its_largest_cluster_grows():
    bonds = [(i, j) for i in range(24) for j in range(i) if (5 * i * i + 3 * j) % 7 < 2]
    graph = Graph.of_bonds(24, bonds)
    task = Task(structure=graph, size=24, boundary=(), p=(0.5,), model="potts:q=3")
    p = place_spins(task, PILOT)
    blocks = make_sampler(replace(task, p=p, block_size=60, burn_in=60), device=CPU).sample(
        range(4)
    )
    largest = [column.name for column in task.observables].index("largest")
    share = np.mean([block.sums[:, largest] for block in blocks], axis=0) / (60 * 24)
    assert share[0] < 0.4
    assert share[-1] > 0.6


@pytest.mark.parametrize(("name", "size", "p"), [("square", 12, 0.5858), slow("cubic", 6, 0.3581)])
@pytest.mark.parametrize("update", ["sw", "wolff"])
def test_a_burn_in_is_twenty_autocorrelation_times(name, size, p, update):
    """Of wolff the pilot's own burn-in comes before them."""
    task = task_of(name, size, p=(p,), update=update)
    burn_in = find_burn_in(task, PILOT).updates
    results = sweep(
        name, L=size, p=p, model="ising", update=update, boundary="periodic", device="cpu",
        burn_in=200, sweeps=2200, samples=20 * 2000,
    )  # fmt: skip
    (item,) = results.tasks.values()
    tau = max(found[0].tau for found in compute_autocorrelations(item).values())
    assert burn_in % 10 == 0
    assert 10 * tau < burn_in < (60 if update == "sw" else 240) * tau


@pytest.mark.slow
def test_single_clusters_forget_a_random_start_before_they_are_measured():
    """From one wolff needs far more updates than 20 autocorrelation times, which are 40 here."""
    coupling = 1.05 * math.log(1 + math.sqrt(2)) / 2
    task = task_of("square", 32, p=(1 - math.exp(-2 * coupling),), update="wolff")
    burn_in = find_burn_in(task, PILOT).updates
    random = range(1, 200, 2)
    blocks = make_sampler(replace(task, burn_in=burn_in, block_size=1), device=CPU).sample(random)
    place = [column.name for column in task.observables].index("satisfied")
    satisfied = np.array([block.sums[0, place] for block in blocks], float)
    energies = 2 - 2 * satisfied / 32**2
    error = energies.std(ddof=1) / math.sqrt(energies.size)
    assert abs(energies.mean() - ising_torus(32, 32, coupling).energy) <= 4 * error


def test_a_burn_in_of_independent_sweeps_is_the_least():
    """At p = 0 every sweep of Swendsen and Wang forgets all."""
    assert find_burn_in(task_of("square", 6, p=(0.01,)), PILOT).updates <= 30


def test_chains_that_stay_in_their_phase_are_reported_with_its_burn_in():
    found = find_burn_in(task_of("square", 24, "potts:q=20", p=(0.8172,)), PILOT)
    assert 380 < found.updates < 4000
    assert "stay in different phases at p = 0.8172: a transition of first order" in found.warning


@pytest.mark.parametrize("q", [2, 3, 4])
def test_chains_at_a_critical_point_are_in_one_phase(q):
    p = math.sqrt(q) / (1 + math.sqrt(q))
    assert find_burn_in(task_of("square", 24, f"potts:q={q}", p=(p,)), PILOT).warning == ""


def test_an_unknown_burn_in_is_reported_and_stops_nothing(monkeypatch):
    monkeypatch.setattr("percolab.kinds.pilots.spins._MOST_SWEEPS", 48)
    found = find_burn_in(task_of("square", 16, "potts:q=4", p=(2 / 3,)), PILOT)
    assert found.updates > 0
    assert "spins are correlated over more than" in found.warning


def test_a_burn_in_of_single_clusters_is_found_at_high_temperature():
    """An update of wolff changes two of 256 spins there: 20 times take more than 2^14 updates."""
    task = task_of("square", 20, p=(1 - math.exp(-2 / 20),), update="wolff")
    found = find_burn_in(task, PILOT)
    assert found.warning == ""
    assert found.updates > 20 * task.num_sites / 2


def short_chains(*sizes, model, p):
    answer(
        "sweep", "--lattice", "square", "--boundary", "periodic", "-L", ",".join(map(str, sizes)),
        "--model", model, "-p", p, "--burn-in", "8", "--sweeps", "48", "--samples", "4000",
        "--device", "cpu", "--quiet",
    )  # fmt: skip


@pytest.mark.slow
def test_starts_show_a_first_order_transition_which_gets_no_error():
    short_chains(8, 10, 14, model="potts:q=10", p="0.745:0.77:6")
    text = answer("fit", "results.h5")
    record = json.loads(answer("fit", "results.h5", "--json"))
    assert record["threshold_error"] is None
    assert record["coupling_error"] is None
    assert record["temperature_error"] is None
    assert {item["L"] for item in record["start_differences"]} <= {8, 10, 14}
    assert all(abs(item["z"]) > 4 for item in record["start_differences"])
    assert text.startswith("p_c ")
    assert all("(no error)" in line for line in text.splitlines()[:3])
    assert "no error is quoted: chains that started ordered and at random differ" in text


@pytest.mark.slow
def test_a_failed_fit_reports_the_starts_too():
    short_chains(12, 14, 16, model="potts:q=20", p="0.79:0.84:6")
    message = refusal("fit", "results.h5")
    assert "chains that started ordered and at random differ (L = 1" in message
    assert "the burn-in is too short or the transition is of first order" in message


@pytest.mark.parametrize(("name", "size", "model", "p"), [("square", 32, "potts:q=4", 2 / 3)])
def test_a_burn_in_is_found_where_spins_are_correlated_beyond_the_stored_lags(name, size, model, p):
    burn_in = find_burn_in(task_of(name, size, model, p=(p,)), PILOT).updates
    assert 20 * 20 < burn_in < 20 * 60


@pytest.mark.slow
def test_chains_that_forget_their_start_quote_an_error():
    results = sweep(
        "square", boundary="periodic", L=[6, 8, 12], p=[0.5, 0.55, 0.58, 0.6, 0.65], model="ising",
        burn_in=60, sweeps=160, samples=3200, device="cpu",
    )  # fmt: skip
    found = fit_spins(results)
    assert found.differences == ()
    assert found.threshold_error is not None
    assert abs(found.threshold - 0.58579) < 4 * found.threshold_error
    assert found.coupling_error == pytest.approx(
        found.threshold_error / (2 * (1 - found.threshold)), rel=1e-12
    )
    two = fit_spins(results, min_size=8)
    assert list(two.joint.samples) == [8, 12]
    assert abs(two.threshold - 0.58579) < 4 * two.threshold_error
