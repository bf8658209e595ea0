"""Blocks hold exact sums and sums of squares, and they add."""

import numpy as np
import pytest

from percolab.measure.columns import Column, RowInteger, list_observables
from percolab.measure.rows import ROW_WIDTH, SPANNING
from percolab.tasks.blocks import make_sample_blocks

RNG = np.random.default_rng(1)
#: 12 samples of 3 observables at 2 values of p, large enough to need 64 bits.
VALUES = RNG.integers(0, 2**40, size=(12, 2, 3))


def block_of(number, values):
    """Return the block of observables (samples, m, C)."""
    rows = np.zeros((1, *values.shape[:2], ROW_WIDTH), np.int64)
    rows[0, ..., : values.shape[2]] = values
    columns = [
        Column("", "", "", "", RowInteger(n, tuple(range(99)))) for n in range(values.shape[2])
    ]
    return make_sample_blocks([number], rows, columns)[0]


def test_sums_are_those_of_the_samples():
    block = block_of(4, VALUES)
    assert block.number == 4
    assert block.sums.dtype == np.int64
    for point in range(2):
        for column in range(3):
            assert block.sums[point, column] == sum(VALUES[:, point, column].tolist())


def test_squares_are_those_of_every_sample():
    small = VALUES % 1000
    block = block_of(0, small)
    assert block.squares.dtype == np.float64
    np.testing.assert_array_equal(block.squares, (small**2).sum(axis=0))


def test_squares_do_not_overflow_where_int64_would():
    block = block_of(0, np.full((3, 1, 1), 2**40))
    assert block.squares[0, 0] == 3 * 2.0**80


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_blocks_add(cut):
    whole, first, second = (block_of(0, part) for part in (VALUES, VALUES[:cut], VALUES[cut:]))
    np.testing.assert_array_equal(first.sums + second.sums, whole.sums)
    np.testing.assert_allclose(first.squares + second.squares, whole.squares, rtol=1e-15)


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
