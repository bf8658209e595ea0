"""The inputs of the analysis refuse what is no curve, and lose no sample."""

import numpy as np
import pytest

from percolab.analysis.curves import SpanningCurve


def curve(p=(0.4, 0.5, 0.6), samples=(10, 20), spanning=((1, 4, 9), (2, 8, 20)), L=8):
    return SpanningCurve(L, p, samples, spanning, label="task")


def test_threshold_counts_are_a_partition_of_the_samples_also_at_fewer_p():
    assert curve().total_samples == 30
    np.testing.assert_allclose(curve().probability, [3 / 30, 12 / 30, 29 / 30])
    np.testing.assert_array_equal(curve().threshold_counts, [[1, 3, 5, 1], [2, 6, 12, 0]])
    part = curve().at(np.array([False, True, False]))
    np.testing.assert_array_equal(part.p, [0.5])
    np.testing.assert_array_equal(part.threshold_counts, [[4, 6], [8, 12]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"L": 0}, "L must be at least 1"),
        ({"p": (0.4, 0.6, 0.5)}, "strictly ascending"),
        ({"p": (0.4, 0.5, 1.6)}, r"in \[0, 1\]"),
        ({"p": (0.4, 0.5, float("nan"))}, r"in \[0, 1\]"),
        ({"samples": (10, 0)}, "positive count"),
        ({"samples": (10,)}, "shape"),
        ({"samples": (10, 19)}, "between 0 and"),
        ({"spanning": ((1, 4, 9), (-1, 8, 20))}, "between 0 and"),
        ({"spanning": ((1, 4, 3), (2, 8, 20))}, "not coupled"),
    ],
)
def test_a_broken_curve_is_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        curve(**change)
    assert "'task'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_curve_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="read-only"):
        curve().p[0] = 0.3
