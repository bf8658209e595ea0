"""Words of runs, bit by bit in plain Python."""

import itertools

import numpy as np
import pytest

from percolab.kernels.runs import bits_at, fill_segments, low_bits, mark_segment_starts

RNG = np.random.default_rng(1)
CASES = [
    (int(word) & int(mask), (int(starts) & int(sparse)) | 1)
    for word, mask, starts, sparse in RNG.integers(0, 2**32, (200, 4), dtype=np.uint64)
] + [(word, starts) for word in (0, 1, 2**31, 2**32 - 1) for starts in (1, 2**31 + 1, 2**32 - 1)]


def segments(starts):
    """Return the bit positions of every segment."""
    edges = [bit for bit in range(32) if starts >> bit & 1] + [32]
    return [range(low, high) for low, high in itertools.pairwise(edges)]


@pytest.mark.parametrize(("word", "starts"), CASES)
def test_first_of_segments(word, starts):
    expected = 0
    for segment in segments(starts):
        ones = [bit for bit in segment if word >> bit & 1]
        expected |= 1 << ones[0] if ones else 0
    assert mark_segment_starts(np.uint32(word), np.uint32(starts)) == expected


@pytest.mark.parametrize(("word", "starts"), CASES)
def test_fill_segments(word, starts):
    first = mark_segment_starts(np.uint32(word), np.uint32(starts))
    expected = sum(
        1 << bit
        for segment in segments(starts)
        for bit in segment
        if any(word >> other & 1 for other in segment)
    )
    assert fill_segments(np.uint32(first), np.uint32(starts)) == expected


def test_bits_at_any_place():
    words = RNG.integers(0, 2**32, 4, dtype=np.uint64).astype(np.uint32)
    number = sum(int(word) << (32 * n) for n, word in enumerate(words))
    for bit in range(96):
        for count in (1, 5, 31, 32):
            if bit + count <= 128:
                found = bits_at(words, np.uint32(0), np.uint32(bit), np.uint32(count))
                assert found == (number >> bit) & ((1 << count) - 1)


def test_low_bits():
    assert [low_bits(np.uint32(n)) for n in (1, 2, 31, 32)] == [1, 3, 2**31 - 1, 2**32 - 1]
