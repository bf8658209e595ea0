"""Every labeler gives the same chain, bit for bit, and so do sweeps that are not measured."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import CPU_LABELERS, lattice, slow_but, without_wrapping
from spin_support import PARITY, graph_of, key_of, parity_case

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.labelers import serving_labeler
from percolab.lattices.topology import unpack_bits
from percolab.measure.spins import LARGEST_STATE, OPEN_BONDS, SATISFIED, STATE_SQUARES
from percolab.spins import chain_cpu
from percolab.spins.chains import new_chains
from percolab.spins.update import Update

SWEEPS = 24
#: Update and q of every case, one generator after the other.
RULES = [("sw", 2), ("wolff", 3), ("few:5,flip=0.6", 7), ("sw", 7), ("sw", 256), ("wolff", 256)]
P = {2: 0.6, 3: 0.65, 7: 0.75, 256: 0.95}


def chain(name, topology, update, q, generator, *, random, tally=False):
    rule = Update.parse(update).rule(q)
    found = new_chains(name, "cpu", topology, rule, tally=tally)
    found.begin(generator, [key_of(9, 17 + random, P[q])], [random])
    return found


@pytest.mark.parametrize("case", slow_but(PARITY, "kagome", "graph"))
def test_all_labelers_give_the_same_chain(case):
    topology = parity_case(case)
    names = [name for name in CPU_LABELERS if name != "raster"]
    for number, (update, q) in enumerate(RULES):
        generator = list(GENERATORS.values())[number % 2]
        given = update, q, generator
        own = {"random": number % 3 > 0, "tally": number % 4 == 1}
        reference = chain("raster", topology, *given, **own)
        rows, numbers = reference.advance(SWEEPS)
        planes = reference.copy_planes()
        assert len(np.unique(numbers[0, :, STATE_SQUARES])) > 1, "sweeps change something"
        for name in names:
            if serving_labeler(name, "cpu", topology) != name:
                continue
            other = chain(name, topology, *given, **own)
            # In pieces, which must not matter.
            parts = [other.advance(sweeps) for sweeps in (1, 7, SWEEPS - 8)]
            found = [np.concatenate(part, axis=1) for part in zip(*parts)]
            where = f"{name} on {case}, {update}, q = {q}"
            np.testing.assert_array_equal(found[0], rows, err_msg=where)
            np.testing.assert_array_equal(found[1], numbers, err_msg=where)
            np.testing.assert_array_equal(other.copy_planes(), planes, err_msg=where)


@pytest.mark.parametrize("case", PARITY)
def test_neighbour_lists_give_the_same_chain(case):
    topology = parity_case(case)
    if topology.neighbours is not None:
        pytest.skip("it has a neighbour list")
    for update, q in RULES[:3]:
        one, other = (
            chain("raster", item, update, q, 0, random=True)
            for item in (topology, topology.explicit())
        )
        (rows, numbers), (expected, counted) = one.advance(SWEEPS), other.advance(SWEEPS)
        # A list does not know over how many periods a bond leads.
        assert without_wrapping(rows) == without_wrapping(expected)
        np.testing.assert_array_equal(numbers, counted)
        np.testing.assert_array_equal(one.copy_planes(), other.copy_planes())


@pytest.mark.parametrize("case", PARITY)
def test_numbers_of_spins_are_those_of_counting(case):
    """The numbers of a sweep are of the spins that it began with; NumPy counts them."""
    topology = parity_case(case)
    _, bonds = graph_of(topology)
    occupied = unpack_bits(topology.occupied, topology.num_points)
    ends = np.array(bonds).T
    for number, (update, q) in enumerate(RULES):
        one = chain(("raster", "four_step")[number % 2], topology, update, q, 0, random=True)
        for _ in range(4):
            planes = [unpack_bits(words, topology.num_points) for words in one.copy_planes()[0]]
            spins = sum(plane.astype(np.int64) << n for n, plane in enumerate(planes))
            assert not spins[~occupied].any()
            spins = spins[occupied]
            counts = np.bincount(spins, minlength=q)
            assert counts.size == q
            _, found = one.advance(1)
            assert found[0, 0, SATISFIED] == (spins[ends[0]] == spins[ends[1]]).sum()
            assert found[0, 0, LARGEST_STATE] == counts.max()
            assert found[0, 0, STATE_SQUARES] == (counts**2).sum()
            assert 0 <= found[0, 0, OPEN_BONDS] <= found[0, 0, SATISFIED]


@pytest.mark.parametrize("labeler", ["raster", "four_step"])
def test_rows_that_come_next_change_no_spin(labeler):
    topology = parity_case("kagome")
    one = chain(labeler, topology, "sw", 3, 0, random=True)
    one.advance(3)
    before = one.copy_planes()
    grid = [0.2, P[3], 0.9]
    found = [one.rows_at(np.array([p_to_threshold(p)], np.uint64))[0] for p in grid]
    np.testing.assert_array_equal(one.copy_planes(), before)
    rows, _ = one.advance(1)
    np.testing.assert_array_equal(rows[0, 0], found[1])
    clusters = [row[0] for row in found]
    assert clusters[0] > clusters[1] > clusters[2]


@pytest.mark.parametrize("labeler", ["raster", "four_step"])
def test_a_sweep_at_another_p_is_that_of_a_chain_there(labeler):
    topology = parity_case("square")
    one = chain(labeler, topology, "sw", 2, 1, random=False)
    one.advance_at(np.array([p_to_threshold(0.9)], np.uint64))
    other = new_chains(labeler, "cpu", topology, Update().rule(2))
    key = key_of(9, 17, P[2])
    other.begin(1, [key._replace(threshold=np.uint64(p_to_threshold(0.9)))], [False])
    other.advance(1)
    np.testing.assert_array_equal(one.copy_planes(), other.copy_planes())
    # And the next is at its own p again.
    third = new_chains(labeler, "cpu", topology, Update().rule(2))
    third.begin(1, [key], [False])
    third.advance_at(np.array([p_to_threshold(0.9)], np.uint64))
    np.testing.assert_array_equal(one.advance(2)[0], third.advance(2)[0])


@pytest.mark.parametrize(
    ("name", "shape", "boundary", "q", "fits"),
    [
        ("square", (64, 64), "periodic", 2, True),
        ("square", (64, 64), "open", 256, True),
        ("square", (65, 64), "periodic", 2, False),
        ("square", (1, 64), "periodic", 2, True),
        ("cubic", (16, 16, 16), "periodic", 2, True),
        ("cubic", (16, 16, 16), "open", 256, True),
        ("fcc", (16, 16, 16), "periodic", 64, True),
        ("fcc", (16, 16, 16), "periodic", 256, False),
        ("cubic", (2, 32, 64), "periodic", 2, False),
    ],
)
def test_one_block_sweeps_what_fits_in_its_shared_memory(name, shape, boundary, q, fits):
    one_block = pytest.importorskip("percolab.spins.one_block")
    topology = lattice(name).topology(shape, (boundary,) * len(shape))
    rule = Update().rule(q)
    batch, read = SimpleNamespace(topology=topology), SimpleNamespace(tally_width=np.uint32(0))
    labeler = SimpleNamespace(name="tiled", batch=batch, read=read)
    assert one_block.is_one_block(labeler, rule) == fits
    labeler.read = SimpleNamespace(tally_width=np.uint32(40))
    assert not one_block.is_one_block(labeler, rule)
    labeler.read, labeler.name = read, "four_step"
    assert not one_block.is_one_block(labeler, rule)


#: Update, q and p: clusters of all sizes, many chosen sites in one cluster, several planes.
WALKED = [
    ("wolff", 2, 0.6),
    ("wolff", 7, 0.75),
    ("few:5,flip=0.6", 3, 0.65),
    ("few:40,flip=0.9", 2, 0.3),
]


def begun_chain(topology, update, q, p, generator=0, random=False):
    found = new_chains("raster", "cpu", topology, Update.parse(update).rule(q))
    found.begin(generator, [key_of(9, 17 + random, p)], [random])
    return found


@pytest.mark.parametrize("case", PARITY)
def test_walks_give_the_spins_of_labeling_all_clusters(case, monkeypatch):
    topology = parity_case(case)
    for number, (update, q, p) in enumerate(WALKED):
        # Walks that are given up, and walks that never are.
        monkeypatch.setattr(chain_cpu, "_WALKED", (8, 1)[number % 2])
        given = update, q, p, list(GENERATORS.values())[number // 2], number % 2 == 0
        one, other = (begun_chain(topology, *given) for _ in range(2))
        for sweeps in (1, 6, 30):
            one.advance(sweeps)
            other.skip(sweeps)
            where = f"{case}, {update}, q = {q}"
            np.testing.assert_array_equal(one.copy_planes(), other.copy_planes(), err_msg=where)
            # Measured sweeps go on from what walks have left, the counts of states among it.
            for expected, found in zip(one.advance(2), other.advance(2)):
                np.testing.assert_array_equal(expected, found, err_msg=where)


def test_a_walk_draws_the_bonds_of_its_cluster_alone():
    topology = lattice("square").topology((256, 256), ("periodic", "periodic"))
    one = begun_chain(topology, "wolff", 2, 0.3, random=True)
    drawn = []
    for _ in range(20):
        before = one.copy_planes()
        one.skip(1)
        sites = int(np.bitwise_count(before ^ one.copy_planes()).sum())
        words = int((one._walk.drawn == one._walk.stamp[0]).sum())
        drawn.append(words)
        # Of each site the words of its own two bonds, and of those two that end at it.
        assert 2 <= words <= 4 * sites
    assert max(drawn) < topology.exists.size / 50


def test_stamps_that_come_again_are_not_taken_for_those_of_old_sweeps():
    topology = parity_case("square")
    one, other = (begun_chain(topology, "wolff", 2, 0.6, random=True) for _ in range(2))
    one.advance(8)
    other.skip(4)
    other._walk.stamp[0] = 2**32 - 3
    other._walk.drawn[:] = 1
    other.skip(4)
    np.testing.assert_array_equal(one.copy_planes(), other.copy_planes())
