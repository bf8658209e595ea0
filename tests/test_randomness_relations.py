"""Relations between the digits of a word: what is exact is compared with going through all states.

The programs are those of results/randomness that choose and judge the scatter of sample version 2.
"""

import numpy as np
import pytest
from helpers import record_program

relations = record_program("randomness/randomness_relations.py")
law = record_program("randomness/randomness_law.py")

FIVE_LANES = (0, 2, 11, 12, 13)


def relation_on(lanes, rotation):
    """Return the relation of two neighbouring instances at bit 0, whose lanes must be these."""
    masks = (0b101, 0b101, 0, 0, 1, 0, 1)
    found = relations.Relation(masks, relations.exact_bias(masks))
    assert tuple(found.lanes(rotation)) == lanes
    return found


def test_first_five_planes_are_independent_and_no_two_planes_have_a_relation():
    found = relations.dependent_planes(8, 4)
    assert min(map(len, found)) == 3
    assert [planes for planes in found if max(planes) <= 6] == [(0, 4, 5), (1, 5, 6), (0, 1, 4, 6)]


@pytest.mark.slow
def test_exact_bias_of_two_instances_agrees_with_simulation():
    masks = np.array([[5, 5, 0, 0, 1, 0, 1], [5, 0, 0, 0, 1, 1, 0]], np.uint32)
    states = 1_000_000
    measured = relations.measured_bias(masks, states, scrambled=False, seed=1)
    for row, value in zip(masks, measured):
        exact = relations.exact_bias(tuple(map(int, row)))
        assert abs(value - exact) < 4 / states**0.5
    assert relations.exact_bias((5, 5, 0, 0, 1, 0, 1)) == 0.25


@pytest.mark.slow
@pytest.mark.parametrize(("p", "factor"), [(85 / 256, 2), (58 / 256, 0)])
def test_rotation_alone_correlates_five_lanes(p, factor):
    """Carries bring a second relation of the same lanes: together twice the first, or nothing."""
    found = relation_on(FIVE_LANES, relations.ROTATION).correlation(relations.ROTATION, p)
    exact = law.product_correlation(
        law.walk(FIVE_LANES, p, relations.ROTATION, planes=8), tuple(range(5)), p
    )
    assert found > 5e-6
    assert exact == pytest.approx(factor * found, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("p", "lanes_0_2"), [(1 / 3, -2.01e-3), (0.120164, -2.24e-3)])
def test_walk_of_version_1_gives_what_was_measured(p, lanes_0_2):
    """Measured over 4e9 words: -2.04e-3 and -2.25e-3, one sigma 1.6e-5."""
    found = law.walk((0, 1, 2), p, 0, planes=16)
    assert law.product_correlation(found, (0,), p) == pytest.approx(0, abs=1e-4)
    assert law.product_correlation(found, (0, 2), p) == pytest.approx(lanes_0_2, rel=0.01)


@pytest.mark.parametrize("masks", [(1, 1, 1), (32, 16, 1), (3, 32, 9)])
def test_spectral_law_is_that_of_all_states(masks):
    every = law.brute(masks, 6)
    assert law.spectral(masks, 6, tolerance=1e-12) == pytest.approx(every.mean(), abs=1e-9)
    assert law.spectral(masks, 6, d=5, tolerance=1e-12) == pytest.approx(every[5], abs=1e-9)


def test_suspect_sets_can_be_tested():
    assert len(relations.SUSPECT_SETS) <= 24
    assert FIVE_LANES in relations.SUSPECT_SETS
    for lanes in relations.SUSPECT_SETS:
        assert 3 <= len(set(lanes)) == len(lanes) <= 6
        assert all(0 <= lane < 32 for lane in lanes)
