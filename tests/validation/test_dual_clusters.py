"""C - C* - V + E of a torus tells in how many directions clusters wind, in every sample."""

import numpy as np
import pytest
from helpers import slow

from percolab.kernels.device import Device
from percolab.labelers import new_labeler
from percolab.lattices.dual import DualTopology
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import CLUSTERS, ROW_WIDTH, SPANNING
from percolab.validation import duals
from percolab.validation.duals import Dual, count_labeled_violations, count_violations

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
