"""Pilots of spins: p over the transition, burn-ins long enough, and transitions of first order."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import slow

from percolab.analysis.spin_fit import compute_autocorrelations, fit_spins
from percolab.analysis.theory.ising import ising_torus
from percolab.api import sweep
from percolab.kernels.device import Device
from percolab.kinds.pilots.spins import find_burn_in, place_spins
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import load_lattice
from percolab.tasks.kind import PilotConditions, make_sampler
from percolab.tasks.study import Task

CPU = Device("cpu")
PILOT = PilotConditions(None, CPU)

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


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
