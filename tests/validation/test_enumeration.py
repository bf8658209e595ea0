"""Means of tiny Potts models: from spins, from open bonds, and as known in other ways."""

import math

import numpy as np
import pytest
from helpers import slow
from spin_support import spin_means_given_bonds

from percolab.analysis.theory.ising import ising_torus
from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.lattices.dual import DualTopology
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import CLUSTERS, ROW_WIDTH, SPANNING
from percolab.validation import duals
from percolab.validation.duals import Dual, count_labeled_violations, count_violations
from percolab.validation.enumeration import bond_means, spin_means


def torus(length_x, length_y):
    """Return the bonds of a square torus; along a length of 2 every bond is there twice."""
    sites = np.arange(length_x * length_y).reshape(length_x, length_y)
    pairs = [(sites, np.roll(sites, 1, axis)) for axis in (0, 1)]
    return [(int(i), int(j)) for a, b in pairs for i, j in zip(a.ravel(), b.ravel())]


#: Sites and bonds of tiny graphs: with several bonds of a pair, loops, sites without bonds.
GRAPHS = {
    "one site": (1, []),
    "one loop": (1, [(0, 0)]),
    "three sites, no bond": (3, []),
    "triangle": (3, [(0, 1), (1, 2), (0, 2)]),
    "torus 2 x 2": (4, torus(2, 2)),
    "torus 2 x 3": (6, torus(2, 3)),
    "loops and repeats": (5, [(0, 0), (0, 1), (1, 0), (1, 2), (3, 2), (3, 0), (3, 3), (1, 3)]),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS)
every_q = pytest.mark.parametrize("q", [2, 3, 4, 10])
every_p = pytest.mark.parametrize("p", [0.0, 0.3, 0.7, 0.99])


@every_graph
@every_q
@every_p
def test_spins_and_open_bonds_give_the_same_means_by_the_identities_of_clusters(graph, q, p):
    means, given_bonds = (f(*GRAPHS[graph], q=q, p=p) for f in (bond_means, spin_means_given_bonds))
    assert len(given_bonds) == 6
    squared, fourths = means["sum_squares_squared"], means["sum_fourths"]
    satisfied = means["satisfied"]
    expected = {
        "magnetization_square": means["sum_squares"],
        "magnetization_square_squared": squared + 2 * (squared - fourths) / (q - 1),
        "open_bonds": p * satisfied,
        "open_bonds_squared": p * (1 - p) * satisfied + p**2 * means["satisfied_squared"],
    }
    for name, mean in [*given_bonds.items(), *expected.items()]:
        assert means[name] == pytest.approx(mean, rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("coupling", [0.1, 0.44, 0.9])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (3, 4)])
def test_ising_energy_is_that_of_kaufman(shape, coupling):
    sites = math.prod(shape)
    means = spin_means(sites, torus(*shape), q=2, p=-math.expm1(-2 * coupling))
    exact = ising_torus(*shape, coupling)
    assert means["satisfied"] == pytest.approx(sites * (1 - exact.energy / 2), rel=1e-12)
    # The energy is 2 (sites - satisfied).
    variance = means["satisfied_squared"] - means["satisfied"] ** 2
    heat = 4 * coupling**2 * variance / sites
    assert heat == pytest.approx(exact.specific_heat, rel=1e-11)


@pytest.mark.parametrize("q", [2, 3, 10])
def test_one_bond_by_hand(q):
    satisfied = 1 / (1 + (q - 1) * (1 - 0.3))
    opened = 0.3 * satisfied
    expected = {
        "satisfied": satisfied,
        "clusters": 2 - opened,
        "sum_squares": 2 + 2 * opened,
        "sum_fourths": 2 + 14 * opened,
        "largest_cluster": 1 + opened,
        "largest_state": 1 + satisfied,
    }
    means = bond_means(2, [(0, 1)], q=q, p=0.3)
    assert {name: means[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("num_sites", "bonds", "q", "p", "text"),
    [
        (0, [], 2, 0.5, "0 sites"),
        (2, [(0, 2)], 2, 0.5, "bond"),
        (2, [(-1, 0)], 2, 0.5, "bond"),
        (2, [(0, 1)], 1, 0.5, "q = 1"),
        (2, [(0, 1)], 2, 1.0, "p = 1"),
        (2, [(0, 1)], 2, math.nan, "p = nan"),
    ],
)
def test_what_cannot_be_enumerated_is_refused(num_sites, bonds, q, p, text):
    for function in (spin_means, bond_means):
        with pytest.raises(ValueError, match=text):
            function(num_sites, bonds, q=q, p=p)


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match="states"):
        spin_means(12, [(0, 1)], q=10, p=0.5)
    with pytest.raises(ValueError, match="bonds"):
        bond_means(2, [(0, 1)] * 21, q=2, p=0.5)


SAMPLES = np.arange(60, dtype=np.uint64)


def make_labeler(shape, name="square", labeler="raster"):
    """Return a labeler of a torus, and the dual."""
    lattice = load_lattice(name)
    topology = lattice.topology(shape, ("periodic", "periodic"))
    return new_labeler(labeler, "cpu", topology), Dual.of_topology(lattice, topology)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("square", (2, 3)),
        ("kagome", (6, 8)),
        ("lieb", (4, 6)),
        slow("square", (40, 33)),
        slow("triangular", (7, 5)),
    ],
)
def test_the_identity_holds_in_every_sample_and_finds_wrong_rows(name, shape, monkeypatch):
    labeler, dual = make_labeler(shape, name)
    for p in (0.3, 0.5, 0.6):
        assert count_violations(labeler, dual, 5, SAMPLES, p) == 0
    # Faces that belong to other bonds.
    other = Dual(dual.places, np.roll(dual.faces, 1, axis=0))
    assert count_violations(labeler, other, 5, SAMPLES, 0.5) > 0
    join = labeler.join

    class OneMore:
        """A forest with a cluster too many, of half of the samples."""

        def __init__(self, items):
            self.found = join(items).rows()

        def rows(self):
            self.found[:, CLUSTERS] += self.found[:, CLUSTERS] & 1
            return self.found

    monkeypatch.setattr(labeler, "join", OneMore)
    assert count_violations(labeler, dual, 5, SAMPLES, 0.5) > 0


def test_all_directions_of_winding_come():
    labeler, dual = make_labeler((6, 6))
    seen = set()
    for p in (0.3, 0.5, 0.7):
        for sample in SAMPLES:
            assert count_violations(labeler, dual, 2, np.array([sample]), p) == 0
            seen.add(int(labeler.join(1).rows()[0, SPANNING]))
    assert len(seen) >= 4


def test_clusters_of_the_dual_are_counted_by_sample(monkeypatch):
    _, dual = make_labeler((8, 4))
    words = np.zeros((3, 2), np.uint32)
    # No bond is open, all are, and the four around a face.
    words[1] = 2**32 - 1
    for place in dual.places[(dual.faces == 5).any(axis=1)]:
        words[2, place // 32] |= np.uint32(1) << np.uint32(place % 32)
    assert np.bitwise_count(words[2]).sum() == 4
    expected = [1, 32, 2]
    assert dual.count_clusters(words).tolist() == expected
    # A few samples at a time.
    monkeypatch.setattr("percolab.validation.duals._FACES", 40)
    assert dual.count_clusters(words).tolist() == expected


def test_a_dual_that_is_labeled_has_to_wind_where_the_lattice_does_not(monkeypatch):
    lattice, cpu = load_lattice("triangular"), Device("cpu")
    given = cpu, lattice, 4, SAMPLES, lattice.threshold("bond").value
    assert count_labeled_violations(*given) == 0
    # Bonds of the dual that cross others, and a dual whose winding is not seen.
    dual = DualTopology.open_words
    monkeypatch.setattr(DualTopology, "open_words", lambda self, words: dual(self, ~words))
    assert count_labeled_violations(*given) > 0
    monkeypatch.setattr(DualTopology, "open_words", dual)
    is_kept = np.arange(ROW_WIDTH) != SPANNING
    rows = duals.measure_words
    monkeypatch.setattr(duals, "measure_words", lambda *words: rows(*words) * is_kept)
    assert count_labeled_violations(*given) > 0
