"""Blocks hold exact sums and add; groups and parts of them follow from which blocks there are."""

from functools import reduce
from itertools import chain, pairwise

import numpy as np
import pytest

from percolab.measure.columns import Column, RowInteger, list_observables
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.tasks.blocks import Block, OpeningsBlock, make_sample_blocks, same_block
from percolab.tasks.groups import group_neighbours, largest_group
from percolab.tasks.part import JobPart

RNG = np.random.default_rng(1)


def test_squares_do_not_overflow_where_int64_would():
    rows = np.full((1, 3, 1, ROW_WIDTH), 2**40)
    (block,) = make_sample_blocks([0], rows, [Column("", "", "", "", RowInteger("largest"))])
    assert block.squares[0, 0] == 3 * 2.0**80


def test_blocks_hold_what_every_observable_makes_of_the_rows():
    rows = RNG.integers(0, 1000, (2, 7, 3, ROW_WIDTH))
    rows[..., SPANNING] = RNG.integers(0, 8, rows.shape[:-1])
    observables = list_observables(("open", "periodic", "open"))
    for block, own in zip(make_sample_blocks([0, 1], rows, observables), rows):
        values = np.stack([item.of_rows(own) for item in observables], axis=-1)
        np.testing.assert_array_equal(block.sums, values.sum(axis=0))
        squared = [not item.is_probability for item in observables]
        np.testing.assert_array_equal(block.squares, (values[..., squared] ** 2).sum(axis=0))
        assert 0 < sum(squared) < len(squared)


OF_GROUPS = np.random.default_rng(3)
#: Floats that no order of addition but the right one adds up to the same digits.
MANY = OF_GROUPS.random((600, 1, 2)) * 10.0 ** OF_GROUPS.integers(-8, 8, (600, 1, 2))


def block_of_group(number):
    sums = np.array([[number, 7 * number + 1]])
    return Block(number, sums, MANY[number], {"powers": MANY[number] ** 2})


def grouped(numbers, largest):
    """Return groups of blocks that come in this order, one by one."""
    blocks = {}
    for number in numbers:
        blocks[number] = block_of_group(number)
        group_neighbours(blocks, [number], largest)
    return blocks


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert all(same_block(block, other[number]) for number, block in one.items())


def in_pairs(numbers):
    """Return sums of squares of so many neighbours, added in pairs, then in pairs of these."""
    values = [MANY[n] for n in numbers]
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


@pytest.mark.parametrize("largest", [1, 2, 8, 64])
@pytest.mark.parametrize("seed", range(5))
def test_groups_do_not_depend_on_the_order_in_which_blocks_come(largest, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(600)[: rng.integers(1, 600)].tolist()
    blocks = grouped(numbers, largest)
    assert_same(blocks, grouped(sorted(numbers), largest))
    at_once = {number: block_of_group(number) for number in numbers}
    group_neighbours(at_once, sorted(at_once), largest)
    assert_same(blocks, at_once)
    # From smaller groups that were there before.
    later = grouped(numbers[: len(numbers) // 2], max(largest // 4, 1))
    later |= {number: block_of_group(number) for number in numbers[len(numbers) // 2 :]}
    group_neighbours(later, sorted(later), largest)
    assert_same(blocks, later)


@pytest.mark.parametrize("seed", range(5))
def test_every_block_is_in_the_largest_group_that_is_whole(seed):
    rng = np.random.default_rng(seed)
    there = set(rng.permutation(600)[:550].tolist())
    blocks = grouped(there, 32)
    covered = [n for number, block in blocks.items() for n in range(number, number + block.count)]
    assert sorted(covered) == sorted(there)
    for number in there:
        whole = [
            2**k for k in range(6) if {*range(number >> k << k, (number >> k << k) + 2**k)} <= there
        ]
        assert blocks[number & -max(whole)].count == max(whole)
    assert len({block.count for block in blocks.values()}) > 2


def test_sums_of_groups_are_exact_and_floats_are_added_in_pairs():
    blocks = grouped(range(128), 64)
    assert sorted(blocks) == [0, 64]
    for number, block in blocks.items():
        own = range(number, number + 64)
        assert block.sums.tolist() == [[sum(own), sum(7 * n + 1 for n in own)]]
        np.testing.assert_array_equal(block.squares, in_pairs(own))
        one_by_one = reduce(np.add, (MANY[n] for n in own))
        assert not np.array_equal(block.squares, one_by_one)


def test_integers_beyond_64_bits_are_never_added():
    blocks = {
        n: Block(n, np.array([[value]]), np.zeros((1, 1)))
        for n, value in enumerate([2**62, 2**62 - 1, 2**62, 2**62, 1, 2, 3, 4])
    }
    group_neighbours(blocks, sorted(blocks), 8)
    found = {n: (block.count, block.sums.item()) for n, block in blocks.items()}
    assert found == {0: (2, 2**63 - 1), 2: (1, 2**62), 3: (1, 2**62), 4: (4, 10)}


def test_blocks_of_openings_are_added():
    openings = {n: OpeningsBlock(n, {"largest": np.array([n, 2])}) for n in range(4)}
    group_neighbours(openings, range(4), 2)
    assert {n: block.sums["largest"].tolist() for n, block in openings.items()} == {
        0: [1, 4],
        2: [5, 4],
    }


@pytest.mark.parametrize("most", [1, 3, 64, 4096])
def test_the_largest_group_is_the_smallest_that_is_enough_and_never_falls(most):
    sizes = [largest_group(blocks, most) for blocks in range(3 * most + 50)]
    assert all(one <= other for one, other in pairwise(sizes))
    for blocks, size in enumerate(sizes):
        assert -(-blocks // size) <= most
        assert size == 1 or -(-blocks // (size // 2)) > most


def list_numbers(part, count):
    return list(chain.from_iterable(part.runs(count)))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("count", [0, 1, 63, 2047, 2049, 5000, 9001])
def test_parts_have_every_block_once(n, count):
    parts = [JobPart(k, n) for k in range(1, n + 1)]
    own = [list_numbers(part, count) for part in parts]
    assert sorted(number for numbers in own for number in numbers) == list(range(count))
    for part, numbers in zip(parts, own, strict=True):
        assert numbers == sorted(numbers)
        assert part.count(count) == len(numbers)
        assert all(map(part.has, numbers))
        assert numbers == [n for n in list_numbers(part, 2 * count + 1) if n < count]
        assert len(numbers) <= count / n + 2 * max(count / 1024, 1)


def test_later_blocks_come_in_runs_of_neighbours():
    numbers = set(list_numbers(JobPart(2, 5), 2**14))
    assert {n for n in numbers if n < 2048} == set(range(1, 2048, 5))
    for number in range(2048, 2**14):
        length = 2 ** (number.bit_length() - 11)
        first = number // length * length
        assert {*range(first, first + length)} <= numbers or number not in numbers
