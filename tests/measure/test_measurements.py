"""A measurement is a line of the registry, a reader and its columns; nothing else names it."""

import numpy as np
import pytest
from helpers import slow

import percolab
from percolab.kernels.memory import Memory
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import load_lattice
from percolab.measure import columns, gyration, measurements
from percolab.measure.columns import RADII, Column, Dataset, SumColumn
from percolab.measure.measurements import MEASUREMENTS, Measurement, Reader


class OpenBonds(Reader):
    """Counts the open bonds of every class, which labels do not tell."""

    def __init__(self, structure, shape):
        self.classes = structure.num_classes

    @staticmethod
    def check(structure, boundary):
        """Have a meaning everywhere."""

    @staticmethod
    def memory(extent):
        """Take none."""
        return Memory()

    @staticmethod
    def add_needs(structure, needs):
        """Need nothing."""
        return needs

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


def test_every_measurement_has_a_reader_and_columns():
    graph = Graph.of_bonds(2, [(0, 1)]).with_source([0])
    for word, each in MEASUREMENTS.items():
        assert each.name == word
        place = (graph, ()) if word == "source" else (load_lattice("square"), ("open", "open"))
        assert each.reader_class.check(*place) is None
        assert {column.measure for column in each.columns} == {word}
