"""All configurations of tiny lattices and graphs, against exact enumerations, with no tolerance."""

import numpy as np
import pytest
from helpers import (
    CPU_LABELERS,
    EXACT_GRAPHS,
    EXACT_LATTICES,
    cpu_labeler,
    exact,
    exact_topology,
    slow,
)

from percolab.lattices.graph import graph_topology
from percolab.measure.rows import CLUSTERS, LARGEST, ROW_WIDTH, SPANNING, SUM_SQUARES
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS

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
