"""C - C* - V + E of a torus tells in how many directions clusters wind, in every sample."""

import numpy as np
import pytest

from percolab.labelers import new_labeler
from percolab.lattices.lattice import load_lattice
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.validation.duals import count_violations, make_dual_words

SAMPLES = np.arange(60, dtype=np.uint64)


def make_labeler(shape, name="raster"):
    topology = load_lattice("square").topology(shape, ("periodic", "periodic"))
    return new_labeler(name, "cpu", topology)


@pytest.mark.parametrize("shape", [(2, 3), (7, 5), (40, 33)])
def test_the_identity_holds_in_every_sample_and_finds_wrong_rows(shape, monkeypatch):
    labeler = make_labeler(shape)
    for p in (0.3, 0.5, 0.6):
        assert count_violations(labeler, shape, 5, SAMPLES, p) == 0
    join = labeler.join

    class OneMore:
        """A forest with a cluster too many, of half of the samples."""

        def __init__(self, items):
            self.found = join(items).rows()

        def rows(self):
            self.found[:, CLUSTERS] += self.found[:, CLUSTERS] & 1
            return self.found

    monkeypatch.setattr(labeler, "join", OneMore)
    assert count_violations(labeler, shape, 5, SAMPLES, 0.5) > 0


def test_all_directions_of_winding_come():
    labeler, shape = make_labeler((6, 6)), (6, 6)
    seen = set()
    for p in (0.3, 0.5, 0.7):
        for sample in SAMPLES:
            assert count_violations(labeler, shape, 2, np.array([sample]), p) == 0
            # What was joined last is the dual.
            seen.add(int(labeler.join(1).rows()[0, SPANNING]))
    assert len(seen) >= 4


def test_the_dual_of_the_dual_is_the_lattice_moved_by_a_site():
    random = np.random.default_rng(4).integers(0, 2**32, (3, 2), np.uint32)
    shape = (8, 4)
    again = make_dual_words(make_dual_words(random, shape), shape)
    for one, other in zip(random.ravel(), again.ravel(), strict=True):
        flags = np.array([one >> b & 1 for b in range(32)]).reshape(4, 8)
        moved = np.roll(flags, (1, 1), axis=(0, 1)).ravel()
        assert [other >> b & 1 for b in range(32)] == moved.tolist()
