"""Philox 4x32-10 against the known answers of Random123."""

import numpy as np
import pytest
from numba import types

from percolab.bonds.philox import philox_block, philox_digits

# kat_vectors of Random123 (Salmon et al. 2011): counter, key, output.
KNOWN = {
    "zeros": ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    "ones": ([2**32 - 1] * 4, [2**32 - 1] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    "pi": (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
}


def words(numbers):
    return [np.uint32(number) for number in numbers]


@pytest.mark.parametrize("name", KNOWN)
def test_block_equals_known_answer(name):
    counter, key, output = KNOWN[name]
    found = philox_block(*words(counter), *words(key))
    assert " ".join(f"{word:08x}" for word in found) == output


def test_stream_is_keyed_by_the_whole_of_seed_sample_word_and_block():
    seed, sample, word, block = 0x299F31D0A4093822, 0x0370734413198A2E, 0x243F6A88, 0x85A308D3
    found = philox_digits(np.uint64(seed), np.uint64(sample), np.uint32(word), block)
    assert " ".join(f"{digits:08x}" for digits in found) == KNOWN["pi"][2]


def test_the_counter_holds_words_of_60_bits():
    key = np.uint64(0x299F31D0A4093822), np.uint64(0x0370734413198A2E)
    # The words of the counter that the known answer has: block 15 of a word above 2^32.
    word = (0x85A308D3 >> 4) << 32 | 0x243F6A88
    found = philox_digits(*key, np.uint64(word), 0x85A308D3 & 15)
    assert " ".join(f"{digits:08x}" for digits in found) == KNOWN["pi"][2]
    below = philox_digits(*key, np.uint64(0x243F6A88), 3)
    assert below != philox_digits(*key, np.uint64(2**32 + 0x243F6A88), 3)


def test_types_stay_unsigned():
    philox_digits(np.uint64(1), np.uint64(2), np.uint32(3), 4)
    four = types.UniTuple(types.uint32, 4)
    for function in (philox_block, philox_digits):
        assert {s.return_type for s in function.nopython_signatures} <= {four}
