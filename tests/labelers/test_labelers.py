"""Labelers: every one gives the labels and rows of the reference and of exact enumerations."""

import json
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import (
    CPU_LABELERS,
    EXACT_GRAPHS,
    EXACT_LATTICES,
    JUDGED_LABELERS,
    LATTICES,
    cpu_labeler,
    exact,
    exact_topology,
    items_of,
    label_pairs,
    labels_and_row,
    lattice,
    parity_topologies,
    probabilities,
    record_program,
    row_by_counting,
    slow,
    slow_but,
    without_wrapping,
)

from percolab import InputError, graph_topology
from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.labelers import DEFAULT_LABELER, LABELERS, labeler_class
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.rows import CLUSTERS, LARGEST, ROW_WIDTH, SPANNING, SUM_SQUARES
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

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
@pytest.mark.parametrize("lattice_name", slow_but(LATTICES, "honeycomb"))
def test_labels_and_rows_equal_scipy(lattice_name, name):
    for number, (case, topology) in enumerate(parity_topologies(lattice_name)):
        labeler = cpu_labeler(name, topology)
        for p in probabilities(lattice_name):
            labeler.open_bonds(XORWOW, 5, number, p_to_threshold(p))
            assert_equals_scipy(labeler, (case, p))


@pytest.mark.parametrize("model", ["bond", "site", "site-bond"])
@pytest.mark.parametrize("lattice_name", slow_but(LATTICES, "square", "kagome", "cubic"))
def test_what_wraps_alone_is_what_rows_have(lattice_name, model):
    item, samples, flags = lattice(lattice_name), np.arange(40, dtype=np.uint64), set[int]()
    for size in (4, 6):
        given = "raster", "cpu", item.topology(item.shape(size), ("periodic",) * item.dimension)
        own = {"model": Model.parse(model), "openings": True}
        whole, alone = (new_coupling(*given, **own, wraps_alone=each) for each in (False, True))
        for p in (0.15, 0.3, 0.5, 0.7):
            key = XORWOW, 7, samples, np.full(samples.size, p_to_threshold(p), np.uint64)
            rows, found = whole.rows(*key), alone.rows(*key)
            np.testing.assert_array_equal(found[:, [SPANNING, -1]], rows[:, [SPANNING, -1]])
            # Nothing else was summed.
            assert not found[:, LARGEST].any()
            flags |= set(rows[:, SPANNING].tolist())
    assert len(flags) > 2


def test_what_spans_is_in_rows_though_only_what_wraps_is_needed():
    given = "raster", "cpu", lattice("square").topology((6, 6), ("open", "periodic"))
    whole, alone = (new_coupling(*given, wraps_alone=each) for each in (False, True))
    samples = np.arange(40, dtype=np.uint64)
    key = XORWOW, 7, samples, np.full(samples.size, p_to_threshold(0.5), np.uint64)
    np.testing.assert_array_equal(alone.rows(*key), whole.rows(*key))


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
        ("raster", "cuda", "labeler 'raster' does not run on cuda; these do: four_step"),
    ],
)
def test_labeler_that_is_not_there_is_named(name, kind, message):
    with pytest.raises(InputError) as caught:
        labeler_class(name, kind)
    assert message in str(caught.value)


#: A labeler in plain Python gets through the configurations of so many bonds.
FEW_BONDS = 13
#: Beyond so many, parallel bonds are not distinguished: which of them is open changes nothing.
MANY_BONDS = 20


def graph_of(known):
    pairs = [edge[:2] for edge in known["edges"]]
    return graph_topology(known["V"], pairs, source=known["source"], target=known["target"])


def cases():
    """Yield (name, labeler, kind of neighbour list); what takes seconds in one kind only."""
    for name in (*EXACT_LATTICES, *EXACT_GRAPHS):
        few = exact(name)["E"] <= FEW_BONDS
        kinds = ("computed", "explicit", "graph") if name in EXACT_LATTICES else ("graph",)
        for labeler in CPU_LABELERS:
            # Of the large ones raster has the lattice's own list; the other labelers agree with it
            # bit for bit (test_labelers.py).
            if few or labeler == "raster":
                yield from ((name, labeler, kind) for kind in (kinds if few else kinds[:1]))


def topology_of(name, kind):
    if kind == "graph":
        return graph_of(exact(name))
    topology = exact_topology(name)
    return topology.explicit() if kind == "explicit" else topology


def configurations(topology):
    """Return which bonds are open, bool (configurations, E), and how many each stands for."""
    bonds = topology.bonds()[:, 1:]
    count = len(bonds)
    if count <= MANY_BONDS:
        numbers = np.arange(2**count)[:, None]
        return (numbers >> np.arange(count) & 1).astype(bool), np.ones(2**count, np.int64)
    first, second = paired(bonds)
    numbers = np.arange(3 ** len(first))[:, None]
    opened = numbers // 3 ** np.arange(len(first)) % 3  # 0, 1 or both bonds of every pair
    either = (numbers + np.arange(len(first))) % 2 == 0
    is_open = np.zeros((len(numbers), count), bool)
    is_open[:, first] = (opened == 2) | ((opened == 1) & either)
    is_open[:, second] = (opened == 2) | ((opened == 1) & ~either)
    return is_open, 2 ** (opened == 1).sum(axis=1)


def paired(bonds):
    """Return the numbers of the two bonds of every pair, where all bonds come in pairs."""
    pairs = {}
    for number, ends in enumerate(np.sort(bonds, axis=1).tolist()):
        pairs.setdefault(tuple(ends), []).append(number)
    return np.array(list(pairs.values())).T


def words_of(topology, is_open):
    """Return the words of open bonds of every configuration: tiny topologies have one a class."""
    assert topology.num_words == 1
    words = np.zeros((len(is_open), topology.num_classes), np.uint32)
    for bond, (k, owner) in enumerate(topology.bonds()[:, :2].tolist()):
        words[:, k] |= is_open[:, bond].astype(np.uint32) << np.uint32(owner)
    return words


def rows_of(labeler, words):
    rows = np.zeros((len(words), ROW_WIDTH), np.int64)
    batch, join = labeler.batch, labeler.labeler.join
    for n in range(len(words)):
        rows[n : n + 1] = join(batch.load(words[n : n + 1])).rows()
    return rows


def assert_enumeration(known, rows, num_open, weight):
    def total(values):
        found = np.zeros(known["E"] + 1, np.int64)
        np.add.at(found, num_open, weight * values)
        return found.tolist()

    assert total(np.ones_like(weight)) == known["n_configs"]
    assert total(rows[:, CLUSTERS]) == known["clusters"]
    assert total(rows[:, SUM_SQUARES]) == known["sum_s2"]
    assert total(rows[:, LARGEST]) == known["sum_max"]
    joint = np.zeros((known["E"] + 1, known["V"] + 1), np.int64)
    np.add.at(joint, (num_open, rows[:, CLUSTERS]), weight)
    assert joint.tolist() == known["joint_nk"]
    spanning = rows[:, SPANNING] & ((1 << FIRST_WRAPPING) - 1)
    if known["source"]:
        axis = int(spanning.max()).bit_length() - 1  # the last one
        assert total(spanning >> axis & 1) == known["n_span"]
    else:
        assert not spanning.any()


def assert_windings(known, flags, num_open):
    """Compare which axes are wrapped around, and in two dimensions the classes of windings."""

    def total(chosen):
        return np.bincount(num_open[chosen], minlength=known["E"] + 1).tolist()

    wrapped = flags >> FIRST_WRAPPING & 0b111
    for bits, expected in known.get("wrap_bits", {}).items():
        assert total(wrapped == int(bits)) == expected, bits
    if "wrap" in known:
        crossing = flags >> TWO_DIRECTIONS == 1
        assert total(crossing) == known["wrap"]["cross"]
        assert total((wrapped == 0b11) & ~crossing) == known["wrap"]["spiral"]


#: 2^20 configurations and more; the smaller ones are as exact.  Lattices as graphs have the lists
#: of explicit ones.
SLOW = ("hypercubic_open_2x2x3", "hypercubic_torus_2x2x2", "square_torus_3x3")


@pytest.mark.parametrize(
    ("name", "labeler", "kind"),
    [
        slow(*case)
        if case[0] in SLOW or (case[2] == "graph" and case[0] in EXACT_LATTICES)
        else case
        for case in cases()
    ],
)
def test_all_configurations_are_measured_exactly(name, labeler, kind):
    topology = topology_of(name, kind)
    is_open, weight = configurations(topology)
    rows = rows_of(cpu_labeler(labeler, topology), words_of(topology, is_open))
    assert_enumeration(exact(name), rows, is_open.sum(axis=1), weight)
    # Two bonds side by side may differ in the periodic boundaries they cross.
    if kind == "computed" and len(is_open) == 2 ** exact(name)["E"]:
        assert_windings(exact(name), rows[:, SPANNING], is_open.sum(axis=1))
    else:
        assert kind != "computed" or exact(name)["E"] >= MANY_BONDS


newman_ziff = record_program("newman-ziff/newman_ziff.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", LATTICES)
def test_its_rows_are_percolabs_at_every_p(name):
    thresholds = np.array([p_to_threshold(p) for p in probabilities(name)], np.uint64)
    for _, topology in parity_topologies(name):
        labeler = cpu_labeler("reference", topology)
        sample = 3
        samples = np.full(thresholds.size, sample, np.uint64)
        rows = labeler.rows(XORWOW, newman_ziff.SEED, samples, thresholds)
        found = newman_ziff.rows_in_order(topology, sample, np.array(probabilities(name)))
        np.testing.assert_array_equal(
            found, np.array(without_wrapping(rows))[:, newman_ziff.COLUMNS]
        )


def test_bonds_are_shuffled_and_none_is_lost():
    program = newman_ziff.NewmanZiff(lattice("square").topology((8, 8)))
    before = program.order.copy()
    program.shuffle()
    assert not np.array_equal(program.order, before)
    np.testing.assert_array_equal(np.sort(program.order), before)


@pytest.mark.slow
def test_command_prints_and_writes_the_comparison(tmp_path):
    target = tmp_path / "nz.json"
    given = ["-L", "8,16", "--runs", "1", "--json", str(target)]
    result = CliRunner().invoke(newman_ziff.main, given, catch_exceptions=False)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == ["L", "8", "16"]
    document = json.loads(target.read_text(encoding="utf-8"))
    for record in document["records"]:
        whole = record["shuffle_seconds"] + record["open_all_seconds"]
        ratio = whole / record["rows_at_grid_seconds"]
        assert record["newman_ziff_over_grid"] == pytest.approx(ratio)
