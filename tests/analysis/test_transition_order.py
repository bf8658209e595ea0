"""Which transitions are called ones of first order: real chains of small lattices, a fixed seed."""

import math

import numpy as np
import pytest

import percolab
from percolab.analysis.transition_order import classify_order, phases_apart, two_peaks
from percolab.bonds.model import Model


def items_of(q, sizes, scales, **given):
    beta = [scale * math.log(1 + math.sqrt(q)) for scale in scales]
    options = {"burn_in": 100, "sweeps": 1100, "samples": 24_000, "seed": 424_000} | given
    results = percolab.sweep(
        "square", L=sizes, model=f"potts:q={q}", boundary="periodic", beta=beta, device="cpu",
        **options,
    )  # fmt: skip
    return list(results.tasks.values())


def test_a_strong_transition_is_of_first_order_at_its_beta():
    items = items_of(10, [8, 12], [0.97, 0.985, 1.0, 1.015], measure="series")
    model = Model.parse("potts:q=10")
    (L, _, found), note = classify_order(items, model)
    assert note is None
    assert L == 12
    assert found.depth >= 1
    assert found.beta == pytest.approx(math.log(1 + math.sqrt(10)), abs=0.02)
    assert len([each for item in items for each in two_peaks(item, model)]) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(("q", "scales"), [(3, (0.985, 1.0, 1.03, 1.045)), (5, (0.97, 0.985, 1.0))])
def test_a_continuous_transition_and_a_weak_one_are_not_of_first_order(q, scales):
    items = items_of(q, [8, 12], scales, measure="series")
    found, note = classify_order(items, Model.parse(f"potts:q={q}"))
    assert found is None
    # In the plane that of q = 3 is known to be continuous.
    assert (note is None) == (q == 3)
    assert note is None or note.startswith("order of the transition undecided: at L = 8, 12 no two")


def test_chains_that_stay_in_two_phases_say_first_order_without_their_series():
    items = items_of(20, [24], [0.998, 1.0], burn_in=500, sweeps=2500, samples=16_000)
    found, note = classify_order(items, Model.parse("potts:q=20"))
    assert found is None
    assert note.startswith("first order: chains that started ordered and at random stay in two")
    (one, other) = phases_apart(items[0])
    assert np.isclose(one.gap, other.gap, rtol=0.2)


def test_chains_that_relax_slowly_are_not_two_phases():
    """Without a burn-in ordered and random starts are apart for a while at any transition."""
    (item,) = items_of(4, [48], [1.0], burn_in=0, sweeps=20, samples=200)
    assert phases_apart(item) == []
    assert classify_order([item], Model.parse("potts:q=4")) == (None, None)
