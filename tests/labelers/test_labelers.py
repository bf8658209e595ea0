"""Labelers: every one gives the labels and rows of the reference, bit for bit."""

from itertools import product

import numpy as np
import pytest
from helpers import (
    CPU_LABELERS,
    JUDGED_LABELERS,
    LATTICES,
    cpu_labeler,
    items_of,
    label_pairs,
    labels_and_row,
    lattice,
    parity_topologies,
    probabilities,
    row_by_counting,
    slow,
    slow_but,
    without_wrapping,
)

from percolab.bonds.words import GENERATORS, XORWOW, p_to_threshold
from percolab.errors import InputError
from percolab.labelers import DEFAULT_LABELER, LABELERS, labeler_class
from percolab.lattices.graph import graph_topology
from percolab.lattices.topology import Topology, unpack_bits

every_labeler = pytest.mark.parametrize("name", CPU_LABELERS)


def scipy_labels(topology: Topology, opened: np.ndarray) -> np.ndarray:
    """Return every site's smallest site of its cluster, by scipy's connected components."""
    k, owner, other = topology.bonds().T
    is_open = unpack_bits(opened.reshape(topology.num_classes, -1), topology.num_points)[k, owner]
    return label_pairs(owner[is_open], other[is_open], topology.num_points)


def assert_equals_scipy(labeler, case: object) -> None:
    topology = labeler.topology
    expected = scipy_labels(topology, labeler.opened)
    labels, row = labels_and_row(labeler)
    np.testing.assert_array_equal(labels, expected, err_msg=str(case))
    assert labels.dtype == np.int32
    assert without_wrapping(row) == row_by_counting(topology, expected), case


@every_labeler
@pytest.mark.parametrize(
    "lattice_name",
    slow_but(LATTICES, "honeycomb"),
)
def test_labels_and_rows_equal_scipy(lattice_name, name):
    for number, (case, topology) in enumerate(parity_topologies(lattice_name)):
        labeler = cpu_labeler(name, topology)
        for p in probabilities(lattice_name):
            labeler.open_bonds(XORWOW, 5, number, p_to_threshold(p))
            assert_equals_scipy(labeler, (case, p))


@every_labeler
@pytest.mark.parametrize("boundary", ["open", "periodic"])
@pytest.mark.parametrize("lattice_name", slow_but(LATTICES, "square", "kagome", "cubic"))
def test_batch_of_entries_gives_the_rows_of_single_samples(lattice_name, boundary, name):
    item = lattice(lattice_name)
    topology = item.topology(item.shape(6), (boundary,) * item.dimension)
    labeler, single = cpu_labeler(name, topology), cpu_labeler("reference", topology)
    items = items_of(probabilities(lattice_name), samples=3)
    for generator in GENERATORS.values():
        rows = labeler.rows(generator, 17, *items)
        for row, sample, threshold in zip(rows, *items):
            single.open_bonds(generator, 17, sample, threshold)
            assert without_wrapping(row) == row_by_counting(topology, single.label())


# The reference, plain Python, has words of one lattice alone: it knows of no other.
@pytest.mark.parametrize(
    ("lattice_name", "name"),
    [
        slow("square", "reference"),
        *product(("honeycomb", "square", "triangular", "kagome"), JUDGED_LABELERS),
    ],
)
def test_clusters_of_many_words_equal_scipy(lattice_name, name):
    for boundary in ("open", "periodic"):
        topology = lattice(lattice_name).topology((130, 94), (boundary,) * 2)
        labeler = cpu_labeler(name, topology)
        for p in probabilities(lattice_name)[1:4]:
            labeler.open_bonds(XORWOW, 1, 2, p_to_threshold(p))
            assert_equals_scipy(labeler, (boundary, p))


def random_graphs():
    """Yield graphs by name: sites and bonds, some with self-loops, parallel bonds, or neither."""
    yield "one site", 1, []
    yield "empty", 70, []
    yield "self-loops", 5, [(2, 2), (2, 2), (4, 4)]
    yield "parallel bonds", 3, [(0, 1)] * 5 + [(1, 0)] * 3
    yield "star around its first site", 90, [(0, leaf) for leaf in range(1, 90)]
    yield "star around its last site", 90, [(89, leaf) for leaf in range(89)]
    yield "path", 100, [(i, i + 1) for i in range(99)]
    yield (
        "path in a random order",
        100,
        list(zip(*np.random.default_rng(1).permuted([range(100)] * 2, axis=1).tolist())),
    )
    yield "cycle", 65, [(i, (i + 1) % 65) for i in range(65)]
    yield "two halves", 64, [(i, i + 1) for i in range(63) if i != 31]
    for seed in range(12):
        rng = np.random.default_rng(seed)
        sites = int(rng.integers(2, 200))
        yield (
            f"random {seed}",
            sites,
            rng.integers(0, sites, (int(rng.integers(0, 3 * sites)), 2)).tolist(),
        )


GRAPHS = {name: (sites, bonds) for name, sites, bonds in random_graphs()}


@every_labeler
@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_equal_scipy(graph, name):
    sites, bonds = GRAPHS[graph]
    terminals = {"source": [0], "target": [sites - 1]}
    topology = graph_topology(sites, bonds, **terminals)
    labeler = cpu_labeler(name, topology)
    for sample, p in enumerate((0.0, 0.2, 0.5, 0.9, 1.0)):
        labeler.open_bonds(XORWOW, 3, sample, p_to_threshold(p))
        assert_equals_scipy(labeler, p)


def test_registry_names_classes_that_exist():
    for entry in LABELERS.values():
        assert entry.summary
        if "cpu" in entry.classes:
            assert labeler_class(entry.name, "cpu").__name__ in entry.classes["cpu"]
    for kind, name in DEFAULT_LABELER.items():
        assert kind in LABELERS[name].classes


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("rastr", "cpu", "unknown labeler 'rastr'; did you mean 'raster'"),
        ("raster", "cuda", "labeler 'raster' does not run on cuda; there: four_step"),
    ],
)
def test_labeler_that_is_not_there_is_named(name, kind, message):
    with pytest.raises(InputError) as caught:
        labeler_class(name, kind)
    assert message in str(caught.value)
