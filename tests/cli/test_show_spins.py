"""percolab show and label of spins: the chain of a sweep, at a sweep of it."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal

import percolab
from percolab.configurations import random_configuration
from percolab.figures.colours import spin_rgb
from percolab.figures.configuration import plot_clusters
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import unpack_bits


@pytest.mark.parametrize("update", ["sw", "wolff"])
@pytest.mark.parametrize(("name", "model"), [("kagome", "ising"), ("square", "potts:q=5")])
def test_the_configuration_is_the_one_that_a_sweep_measures(name, model, update):
    sweeps, chains = 7, 3
    results = percolab.sweep(
        name, model=model, L=[8], boundary="periodic", beta=[0.9], burn_in=sweeps,
        sweeps=sweeps + 1, samples=chains, update=update, seed=4, device="cpu",
    )  # fmt: skip
    (item,) = results.tasks.values()
    assert item.task.block_size == 1
    for chain in range(chains):
        found = random_configuration(
            load_lattice(name), 8, beta=0.9, model=model, boundary="periodic", seed=4,
            sample=chain, sweeps=sweeps, update=update,
        )  # fmt: skip
        topology, states = found.topology, item.task.draw.states
        klass, owner, other = topology.bonds().T
        equal = found.spins[owner] == found.spins[other]
        opened = unpack_bits(found.opened, topology.num_points)[klass, owner]
        assert equal[opened].all()
        counts = np.bincount(found.spins[found.sites], minlength=states)
        sizes = found.label().sizes.astype(np.int64)
        expected = {
            "satisfied": equal.sum(),
            "open_bonds": opened.sum(),
            "largest_state": counts.max(),
            "state_squares": (counts**2).sum(),
            "clusters": sizes.size,
            "sum_squares": (sizes**2).sum(),
        }
        stored = {column: item.column(column)[chain, 0] for column in expected}
        assert stored == expected


@pytest.mark.slow
def test_what_is_shown_and_labeled_is_a_chain_after_100_sweeps_unless_given():
    spins = ("--lattice", "square", "-L", 16, "--model", "ising", "-T", 2.3)
    told = [answer(name, *spins, *more, "--json") for name in ("show", "label")
            for more in ((), ("--sweeps", 100), ("--sweeps", 99))]  # fmt: skip
    assert told[0] == told[1] != told[2]
    assert told[3] == told[4] != told[5]


def test_chains_of_even_number_start_ordered_and_others_at_random():
    def start(sample):
        keys = {"model": "ising", "T": 2.0, "sample": sample, "sweeps": 0}
        return random_configuration(load_lattice("square"), 16, **keys).spins

    assert not start(0).any()
    assert 80 < start(1).sum() < 176


def test_spins_are_drawn_beside_the_clusters():
    sample = ("--lattice", "square", "-L", 48, "--model", "ising", "-T", 2.27, "--sweeps", 20)
    told = json.loads(answer("show", *sample, "--boundary", "periodic", "--json"))
    assert Path("clusters.png").exists()
    assert "$k_B T / J = 2.27$" in told["title"]
    assert "chain 0 after 20 sweeps" in told["title"]
    assert told["drawn"] == "cells"
    answer("label", *sample, "--out", "labels.h5")
    assert "chain 0 after 20 sweeps" in json.loads(answer("show", "labels.h5", "--json"))["title"]


def test_panels_show_the_spins_and_the_clusters():
    lattice = load_lattice("cubic")
    found = random_configuration(lattice, 6, T=4.0, model="ising", sample=1, sweeps=3)
    keys = {"opened": found.opened, "spins": found.spins}
    figure, _ = plot_clusters(found.label(), lattice, **keys)
    titles = [axes.get_title() for axes in figure.axes]
    assert len(titles) == 8
    assert titles[0] == "spins, $z = 0$"
    assert titles[4] == "clusters, $z = 0$"
    expected = spin_rgb(found.spins, found.sites, 2)[:36].reshape(6, 6, 3)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), expected)


@pytest.mark.parametrize("states", [2, 8, 9, 64])
def test_every_spin_has_its_colour_and_vacant_points_are_white(states):
    spins = np.arange(states).astype(np.uint8)
    rgb = spin_rgb(spins, np.ones(states, bool), states)
    assert len({tuple(each) for each in rgb.tolist()}) == states
    assert (spin_rgb(spins, np.zeros(states, bool), states) == 255).all()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-p", 0.5, "--sweeps", 4), "no spins"),
        (("-p", 0.5, "--update", "wolff"), "no spins"),
        (("-T", 2.0), "no temperature"),
        (("--model", "ising", "-T", 2.0, "-p", 0.5), "both given"),
        (("--model", "potts:q=3", "-K", 0.4), "K is the coupling of the Ising model"),
        (("--model", "ising"), "needs -T"),
    ],
)
def test_what_no_sweep_has_is_refused(options, reason):
    assert reason in refusal("show", "--lattice", "square", "-L", 8, *options)


def test_a_sample_of_results_is_shown_after_as_many_sweeps_as_asked():
    results = percolab.sweep(
        "square", model="ising", L=[4], p=[0.5], samples=20, boundary="periodic", device="cpu"
    )
    usual = results.show(4).numbers
    assert usual == results.show(4, sweeps=100).numbers
    assert usual["title"] != results.show(4, sweeps=3).numbers["title"]
