"""The Bethe lattice: its sites and bonds, and what is known exactly about its clusters."""

import numpy as np
import pytest
from helpers import exact, traced_peak

from percolab.errors import InputError
from percolab.lattices.bethe import (
    NUMBERINGS,
    bethe_num_sites,
    bethe_topology,
    parents,
    reach_probability,
    site_numbers,
)

TREES = [(1, 3), (2, 3), (5, 3), (1, 4), (4, 4), (3, 7)]


def distances(topology):
    """Return every site's distance from the centre, by growing from it over the list of bonds."""
    _, one, other = topology.bonds().T
    found = np.full(topology.num_points, -1)
    reached, step = topology.end_layers[0][0], 0
    while reached.size:
        found[reached] = step
        step += 1
        near = np.concatenate([other[np.isin(one, reached)], one[np.isin(other, reached)]])
        reached = np.unique(near[found[near] < 0])
    return found


@pytest.mark.parametrize("shells", [*range(1, 8), *range(17, 23)])
def test_number_of_sites_for_z_3_is_that_of_the_paper(shells):
    assert bethe_num_sites(shells) == 3 * 2**shells - 2
    assert shells > 7 or bethe_topology(shells).num_sites == 3 * 2**shells - 2


@pytest.mark.parametrize("numbering", NUMBERINGS)
@pytest.mark.parametrize(("shells", "z"), TREES)
def test_every_shell_has_its_sites_and_every_site_its_neighbours(shells, z, numbering):
    topology = bethe_topology(shells, coordination_number=z, numbering=numbering, seed=5)
    _, owner, other = topology.bonds().T
    away = distances(topology)
    in_shell = [1] + [z * (z - 1) ** (shell - 1) for shell in range(1, shells + 1)]
    np.testing.assert_array_equal(np.bincount(away), in_shell)
    degree = np.bincount(np.concatenate([owner, other]), minlength=topology.num_points)
    np.testing.assert_array_equal(degree, np.where(away == shells, 1, z))
    assert topology.num_bonds == topology.num_sites - 1
    centre, outermost = topology.end_layers[0]
    np.testing.assert_array_equal(centre, np.flatnonzero(away == 0))
    np.testing.assert_array_equal(outermost, np.flatnonzero(away == shells))


@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_bond_belongs_to_its_larger_end(numbering):
    topology = bethe_topology(6, coordination_number=4, numbering=numbering, seed=2)
    _, owner, other = topology.bonds().T
    assert (owner > other).all()
    assert topology.num_classes == (1 if numbering == "standard" else 4)


def test_standard_numbering_goes_outwards_with_children_side_by_side():
    away = distances(bethe_topology(5))
    assert (np.diff(away) >= 0).all()
    inner = parents(94, 3)
    assert inner[:9].tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert (np.diff(inner) >= 0).all()


def test_both_numberings_are_of_the_same_tree():
    pairs = {
        numbering: bethe_topology(6, numbering=numbering, seed=9).bonds()[:, 1:]
        for numbering in NUMBERINGS
    }
    numbers = site_numbers(190, "random", seed=9)
    np.testing.assert_array_equal(np.sort(numbers), np.arange(190))
    renumbered = np.sort(numbers[pairs["standard"]], axis=1)
    found = np.sort(pairs["random"], axis=1)
    assert set(map(tuple, renumbered.tolist())) == set(map(tuple, found.tolist()))
    assert set(map(tuple, found.tolist())) != set(map(tuple, np.sort(pairs["standard"]).tolist()))


def test_random_numbering_depends_on_the_seed_and_never_changes():
    assert site_numbers(10, "random", seed=1).tolist() == [3, 5, 2, 9, 7, 0, 8, 6, 1, 4]
    assert site_numbers(10, "random", seed=2).tolist() != site_numbers(10, "random", 1).tolist()
    assert site_numbers(10).tolist() == list(range(10))


@pytest.mark.parametrize("shells", [1, 2])
def test_tiny_trees_are_the_enumerated_ones(shells):
    known = exact(f"cayley_z3_k{shells}")
    topology = bethe_topology(shells)
    edges = np.array(known["edges"])[:, :2]
    np.testing.assert_array_equal(topology.bonds()[:, :0:-1], edges)
    assert [layer.tolist() for layer in topology.end_layers[0]] == [
        known["source"],
        known["target"],
    ]


@pytest.mark.parametrize("shells", [1, 2])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_reach_probability_is_that_of_the_enumeration(shells, p):
    known = exact(f"cayley_z3_k{shells}")
    weights = [p**n * (1 - p) ** (known["E"] - n) for n in range(known["E"] + 1)]
    expected = np.dot(weights, known["n_span"])
    assert reach_probability(p, shells) == pytest.approx(expected, abs=1e-14)


def test_reach_probability_goes_to_that_of_the_infinite_lattice():
    # At z = 3 a branch is infinite with q = (2 p - 1) / p^2, which solves q = 1 - (1 - p q)^2.
    p = 0.75
    limit = 1 - (1 - p * (2 * p - 1) / p**2) ** 3
    assert reach_probability(p, 200) == pytest.approx(limit, abs=1e-14)
    assert reach_probability(0.4, 200) < 1e-12


@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_memory_is_that_of_a_few_arrays(numbering):
    peak = traced_peak(lambda: bethe_topology(15, numbering=numbering))
    # A list of Python pairs would take 130 bytes a site and more.
    assert peak < 80 * bethe_topology(15, numbering=numbering).num_points


@pytest.mark.parametrize(
    ("shells", "options", "message"),
    [
        (0, {}, "0 shells, but a Bethe lattice has at least 1"),
        (3, {"coordination_number": 2}, "coordination number 2: a Bethe lattice needs at least 3"),
        (30, {}, "30 shells with coordination number 3: more than the 2147483584 sites"),
        (10**9, {}, "1000000000 shells with coordination number 3: more than"),
        (2, {"coordination_number": 10**6}, "2 shells with coordination number 1000000: more"),
        (3, {"numbering": "randon"}, "unknown numbering 'randon'; did you mean 'random'?"),
        (3, {"numbering": "random", "seed": -1}, "seed = -1, but it must be"),
        (3, {"numbering": "random", "seed": 2**64}, "seed = 18446744073709551616, but"),
    ],
)
def test_trees_that_cannot_be_made_are_refused(shells, options, message):
    with pytest.raises(InputError) as error:
        bethe_topology(shells, **options)
    assert str(error.value).startswith(message)
