"""Columns are what their names say, for every boundary."""

import numpy as np
import pytest

from percolab.measure.columns import (
    ADDING,
    EXTRA_COLUMNS,
    RADII,
    TALLY,
    is_gathered_from,
    list_columns,
    list_datasets,
    list_observables,
    spanning_names,
    wrapping_names,
)
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.measure.sums import FIELDS
from percolab.measure.tallies import num_bins

#: What every lattice has, whatever its boundary.
SIZES = [item.name for item in list_observables(())]


def spanning_of(bits, boundary):
    """Return the spanning observables of a row with these spanning bits, by name."""
    row = np.zeros(ROW_WIDTH, np.int64)
    row[SPANNING] = bits
    return {
        item.name: int(item.of_rows(row))
        for item in list_observables(boundary)
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
    assert [item.name for item in list_observables(boundary)] == measured
    assert len(wrapping_names(boundary)) == {0: 0, 1: 1, 2: 8}[boundary.count("periodic")]
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
    for item in list_observables(boundary):
        if item.is_probability:
            word, _, way = item.name.partition("_")
            assert item.symbol == f"{letters[word]}_{way}"


def test_any_and_all_ask_open_axes_alone():
    found = spanning_of(0b101, ("open", "periodic", "open"))
    assert found["spanning_all"] == 1
    assert spanning_of(0b010, ("open", "periodic", "open"))["spanning_any"] == 0


def test_sizes_are_the_numbers_of_the_row():
    assert SIZES[:4] == ["clusters", "largest", "second_largest", "sum_squares"]
    rows = np.arange(3 * ROW_WIDTH).reshape(3, ROW_WIDTH)
    for index, item in enumerate(list_observables(("open",))[:4]):
        np.testing.assert_array_equal(item.of_rows(rows), rows[:, index])


def test_every_column_says_what_it_is_under_a_name_of_its_own():
    columns = list_columns(("open",) * 8, ADDING)
    assert columns[-len(EXTRA_COLUMNS) :] == EXTRA_COLUMNS
    for item in columns:
        assert all([item.name, item.symbol, item.meaning, item.unit, item.source]), item
        assert item.is_known
    names = [item.name for item in columns]
    assert len(set(names)) == len(names)


def test_a_word_of_measure_adds_its_datasets():
    bins = num_bins(100)
    widths = {
        (): {},
        ("sizes",): {"size_counts": bins, "powers": 4},
        ("gyration",): {"gyration": 2 * bins},
        ("sizes", "gyration"): {"size_counts": bins, "powers": 4, "gyration": 2 * bins},
    }
    for measure, expected in widths.items():
        columns = list_columns(("open", "open"), measure)
        found = list_datasets(columns, 100)
        assert {name: stored.width for name, stored in found.items()} == expected
        assert list(found) == list(expected), "in the order in which they are stored"
        assert is_gathered_from(TALLY, columns) == ("sizes" in measure)
        assert is_gathered_from(RADII, columns) == ("gyration" in measure)


def test_the_units_of_a_dataset_are_those_of_its_columns():
    for name in ("powers", "gyration"):
        own = [item for item in EXTRA_COLUMNS if item.dataset and item.dataset.name == name]
        assert own[0].dataset.unit == ", ".join(item.unit for item in own)


def test_what_is_no_observable_is_not_read_off_a_row():
    with pytest.raises(ValueError, match="n_s is not read off a row"):
        EXTRA_COLUMNS[0].of_rows(np.zeros(ROW_WIDTH, np.int64))


def test_every_number_of_a_row_is_a_column():
    assert set(FIELDS) <= {column.name for column in list_columns(("open", "open"))}
