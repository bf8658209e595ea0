"""A Bethe lattice is swept like a lattice; its L counts shells, and its sizes do not scale."""

from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, refusal
from helpers import assert_z, slow

import percolab
from percolab.lattices.bethe import reach_probability
from percolab.store.results import read_results

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


@pytest.mark.parametrize(("name", "z"), [("bethe", 3), slow("bethe:4", 4), ("bethe:3:random", 3)])
def test_clusters_and_reach_have_their_exact_means(name, z):
    p = (0.3, 0.5, 0.8)
    answer("sweep", "--lattice", name, "-L", "3,6", "-p", "0.3,0.5,0.8", "--samples", 6000,
           "--quiet")  # fmt: skip
    results = read_results("results.h5")
    for item in results.tasks.values():
        samples, bonds = item.num_samples, item.task.num_points - 1
        reached = item.column("spanning").sum(axis=0) / samples
        clusters = item.column("clusters").sum(axis=0) / samples
        for n, x in enumerate(p):
            exact = reach_probability(x, item.task.size, coordination_number=z)
            assert_z(reached[n], exact, np.sqrt(exact * (1 - exact) / samples))
            expected, error = bonds + 1 - x * bonds, np.sqrt(x * (1 - x) * bonds / samples)
            assert_z(clusters[n], expected, error)
    assert {item.task.num_points for item in results.tasks.values()} == {
        1 + z * ((z - 1) ** k - 1) // (z - 2) for k in (3, 6)
    }


def test_thresholds_of_samples_are_distributed_as_the_recursion_says():
    results = percolab.sweep("bethe", L=[5], samples=5000, method="threshold", device="cpu")
    (item,) = results.tasks.values()
    found = item.thresholds("spanning") / 2.0**63
    for p in (0.35, 0.5, 0.7):
        exact = reach_probability(p, 5)
        assert_z((found <= p).mean(), exact, np.sqrt(exact * (1 - exact) / found.size))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lattice", "bethe:2"), "coordination number 2: a Bethe lattice needs at least 3"),
        (("--lattice", "bethe:x"), "a Bethe lattice is bethe, bethe:z or bethe:z:random"),
        (("--lattice", "bethe:3:odd"), "unknown numbering 'odd'"),
        (("--lattice", "bethe", "-L", "40"), "40 shells with coordination number 3: more than"),
        (("--lattice", "bethe", "--boundary", "open"), "unknown boundary 'open'; known: terminals"),
        (("--lattice", "bethe", "--target-error", "0.1"), "give the number of samples"),
    ],
    ids=str,
)
def test_a_bethe_lattice_that_is_none_is_refused(options, message):
    assert message in refusal("sweep", *options)
    assert list(Path().iterdir()) == []
