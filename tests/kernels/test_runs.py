"""Words of runs, bit by bit in plain Python."""

import itertools

import numpy as np

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


def test_segments_begin_at_their_first_bit_and_are_filled_where_one_is_set():
    for word, starts in CASES:
        found = [bits for bits in segments(starts) if any(word >> bit & 1 for bit in bits)]
        first = sum(1 << next(bit for bit in bits if word >> bit & 1) for bits in found)
        marked = mark_segment_starts(np.uint32(word), np.uint32(starts))
        assert marked == first, (word, starts)
        filled = sum(1 << bit for bits in found for bit in bits)
        assert fill_segments(np.uint32(marked), np.uint32(starts)) == filled, (word, starts)


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
