"""Observables are what their names say, for every boundary."""

import numpy as np
import pytest

from percolab.measure.columns import observables_of, spanning_names, wrapping_names
from percolab.measure.rows import ROW_WIDTH, SPANNING

SIZES = ["clusters", "largest", "second_largest", "sum_squares"]


def spanning_of(bits, boundary):
    """Return the spanning observables of a row with these spanning bits, by name."""
    row = np.zeros(ROW_WIDTH, np.int64)
    row[SPANNING] = bits
    return {
        item.name: int(item.of_rows(row))
        for item in observables_of(boundary)
        if item.name.startswith("spanning")
    }


@pytest.mark.parametrize(
    ("boundary", "spanning"),
    [
        (("open",), ["spanning_x"]),
        (("open", "open"), ["spanning_x", "spanning_y", "spanning_any", "spanning_all"]),
        (("open", "periodic"), ["spanning_x"]),
        (("periodic", "open"), ["spanning_y"]),
        (("periodic", "periodic"), []),
        (
            ("open", "periodic", "open"),
            ["spanning_x", "spanning_z", "spanning_any", "spanning_all"],
        ),
    ],
    ids=str,
)
def test_spanning_is_measured_along_open_axes_alone(boundary, spanning):
    measured = SIZES + spanning + wrapping_names(boundary)
    assert [item.name for item in observables_of(boundary)] == measured
    assert len(wrapping_names(boundary)) == {0: 0, 1: 1, 2: 6}[boundary.count("periodic")]
    assert spanning_names(boundary) == spanning


@pytest.mark.parametrize(
    ("bits", "x", "y", "any_axis", "all_axes"),
    [(0b00, 0, 0, 0, 0), (0b01, 1, 0, 1, 0), (0b10, 0, 1, 1, 0), (0b11, 1, 1, 1, 1)],
)
def test_any_is_at_least_one_axis_and_all_is_every_axis(bits, x, y, any_axis, all_axes):
    assert spanning_of(bits, ("open", "open")) == {
        "spanning_x": x,
        "spanning_y": y,
        "spanning_any": any_axis,
        "spanning_all": all_axes,
    }


@pytest.mark.parametrize("boundary", [("open", "open"), ("periodic", "periodic")], ids=str)
def test_symbols_of_probabilities_are_short_for_their_names(boundary):
    letters = {"spanning": "R", "wrapping": "W"}
    for item in observables_of(boundary):
        if item.is_probability:
            word, _, way = item.name.partition("_")
            assert item.symbol == f"{letters[word]}_{way}"


def test_any_and_all_ask_open_axes_alone():
    found = spanning_of(0b101, ("open", "periodic", "open"))
    assert found["spanning_all"] == 1
    assert spanning_of(0b010, ("open", "periodic", "open"))["spanning_any"] == 0


def test_sizes_are_the_columns_of_the_row():
    rows = np.arange(3 * ROW_WIDTH).reshape(3, ROW_WIDTH)
    for index, item in enumerate(observables_of(("open",))[:4]):
        np.testing.assert_array_equal(item.of_rows(rows), rows[:, index])


def test_every_observable_says_what_it_is():
    for item in observables_of(("open",) * 8):
        assert all([item.name, item.symbol, item.meaning, item.unit]), item
    names = [item.name for item in observables_of(("open",) * 8)]
    assert len(set(names)) == len(names)
