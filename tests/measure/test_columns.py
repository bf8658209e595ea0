"""Columns are what their names say, and a measurement is a line of the registry with a reader."""

import numpy as np
import pytest
from helpers import slow

import percolab
from percolab import Graph, InputError, load_lattice
from percolab.measure import columns, gyration, measurements
from percolab.measure.columns import (
    EXTRA_COLUMNS,
    RADII,
    TALLY,
    WORDS_WITH_COLUMNS,
    Column,
    Dataset,
    SumColumn,
    is_gathered_from,
    list_columns,
    list_datasets,
    list_observables,
    spanning_names,
    wrapping_names,
)
from percolab.measure.measurements import MEASUREMENTS, Measurement, Reader
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
    columns = list_columns(("open",) * 8, WORDS_WITH_COLUMNS)
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


class OpenBonds(Reader):
    """Counts the open bonds of every class, which labels do not tell."""

    def __init__(self, structure, shape):
        self.classes = structure.num_classes

    @staticmethod
    def check(structure, boundary):
        """Have a meaning everywhere."""

    def rows(self, coupling, generator, seed, samples, thresholds):
        """Count in each sample at each threshold."""
        batch = coupling.labeler.batch
        found = np.empty((len(samples), len(thresholds), self.classes), np.int64)
        for n, k in np.ndindex(found.shape[:2]):
            batch.fill(generator, seed, samples[n : n + 1], thresholds[k : k + 1])
            words = batch.copy_open_words(1)[0].reshape(self.classes, -1)
            found[n, k] = np.bitwise_count(words).sum(axis=1)
        return found

    def sums(self, rows):
        """Add up the samples of blocks."""
        return {"openness": rows.sum(axis=1)}


@pytest.fixture
def openness(monkeypatch):
    dataset = Dataset("openness", "open bonds of every class", "1")
    column = Column(
        "openness", "b", "open bonds of every class", "1",
        SumColumn(RADII, np.int64, 2, dataset=dataset), "openness",
    )  # fmt: skip
    for module in (columns, measurements):
        monkeypatch.setattr(module, "EXTRA_COLUMNS", (*columns.EXTRA_COLUMNS, column))
    monkeypatch.setattr(columns, "MEASURES", (*columns.MEASURES, "openness"))
    monkeypatch.setattr(gyration, "OpenBonds", OpenBonds, raising=False)
    made = Measurement("openness", frozenset({"bonds"}), "measure.gyration:OpenBonds")
    monkeypatch.setitem(MEASUREMENTS, "openness", made)
    return made


@pytest.mark.parametrize("text", ["bond", *(slow(text) for text in ("site", "bond:y=0.3"))])
def test_a_measurement_of_open_bonds_is_sampled_stored_and_read(openness, text, tmp_path):
    settings = {"L": [6], "p": [0.4, 1.0], "samples": 40, "block_size": 20, "device": "cpu"}
    words = ["gyration", "openness"]
    path = tmp_path / "own.h5"
    percolab.sweep("square", model=text, measure=words, out=path, **settings)
    (item,) = percolab.open_results(path).tasks.values()
    (plain,) = percolab.sweep("square", model=text, measure=["gyration"], **settings).tasks.values()
    assert item.extra("gyration").any()
    assert item.extra("gyration").shape == plain.extra("gyration").shape
    found = item.extra("openness").sum(axis=0) / 40
    bonds = load_lattice("square").topology((6, 6)).num_bonds / 2
    most = {"bond": (1, 1), "site": (1, 1), "bond:y=0.3": (1, 0.3)}[text]
    assert found[1] / bonds == pytest.approx(most, abs=0 if 0.3 not in most else 0.1)
    assert found[1, 0] > found[0, 0] > 0


def test_a_measurement_without_columns_or_with_other_reads_is_a_mistake_of_its_author():
    with pytest.raises(TypeError, match="measurement other has no columns"):
        Measurement("other", frozenset({"bonds"}), "measure.gyration:Gyration")
    with pytest.raises(TypeError, match="not of"):
        Measurement("gyration", frozenset({"spins"}), "measure.gyration:Gyration")


def has_meaning(reader, structure, boundary):
    """Return whether a reader has a meaning on a structure with this boundary."""
    try:
        return reader.check(structure, boundary) is None
    except InputError:
        return False


def test_every_measurement_has_columns_and_a_reader_that_has_a_meaning_somewhere():
    graph, square = Graph.of_bonds(2, [(0, 1)]).with_source([0]), load_lattice("square")
    places = [(graph, ()), *((square, (kind,) * 2) for kind in ("open", "periodic"))]
    for word, each in MEASUREMENTS.items():
        assert each.name == word
        assert any(has_meaning(each.reader_class, *place) for place in places), word
        assert {column.measure for column in each.columns} == {word}
