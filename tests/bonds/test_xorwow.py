"""XORWOW: cuRAND's recurrence word for word, the keyed start of a stream, scattered digits."""

import json

import numpy as np
import pytest
from helpers import DATA
from numba import types

from percolab.bonds.keys import mix64, seed_at
from percolab.bonds.xorwow import next_digits, scattered, xorwow_next, xorwow_state

VECTORS = json.loads((DATA / "curand_xorwow.json").read_text())["vectors"]
MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
KEYS = [
    (0, 0, 0),
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (7, 3, 2**32 - 1),
    (7, 3, 2**32),
    (7, 3, 2**60 + 2**33 + 5),
    (2**64 - 1, 2**64 - 1, 2**31),
    (0x0123456789ABCDEF, 2**40 + 5, 123456),
]


def outputs(state, count):
    state, found = tuple(np.uint32(word) for word in state), []
    for _ in range(count):
        output, *state = xorwow_next(*(np.uint32(word) for word in state))
        found.append(output)
    return found


def splitmix64(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def state_in_integers(seed, sample, word):
    start = splitmix64((splitmix64((seed + GOLDEN) & MASK) + sample * GOLDEN) & MASK)
    step = splitmix64(start ^ GOLDEN) | 1
    words = [splitmix64((start + (3 * word + n) * step) & MASK) for n in range(3)]
    return [half for z in words for half in (z & 0xFFFFFFFF, z >> 32)]


def key(seed, sample, word):
    return np.uint64(seed), np.uint64(sample), np.uint64(word)


def uniform_double(x, y):
    """Return the double in (0, 1] that cuRAND's ``curand_uniform_double`` makes of two outputs."""
    return float(int(x) ^ int(y) << 21) * 2.0**-53 + 2.0**-54


def rotated(x, count):
    count %= 32
    return (x << count | x >> (32 - count)) & 0xFFFFFFFF


def scattered_in_integers(output, plane):
    scrambled = rotated(output * 5 & 0xFFFFFFFF, 7) * 9 & 0xFFFFFFFF
    return rotated(scrambled, 11 * plane)


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda v: f"{v['seed']}-{v['subsequence']}-{v['offset']}"
)
def test_outputs_equal_curand(vector):
    found = outputs([*vector["v"], vector["d"]], 16)
    assert found[: len(vector["u32"])] == vector["u32"]
    pairs = zip(found[::2], found[1::2])
    assert [uniform_double(x, y) for x, y in pairs] == vector["double"]


def test_mix64_gives_the_outputs_of_splitmix64():
    # The first outputs of SplitMix64 from seed 1234567, as in its reference implementation.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix64(np.uint64((1234567 + n * GOLDEN) & MASK)) for n in (1, 2, 3)] == known


@pytest.mark.parametrize("numbers", KEYS)
def test_state_equals_its_definition_in_integers(numbers):
    assert list(xorwow_state(*key(*numbers))) == state_in_integers(*numbers)


@pytest.mark.parametrize("plane", [0, 1, 2, 3, 31, 32, 62])
def test_digits_are_the_scattered_outputs(plane):
    state = [np.uint32(word) for word in xorwow_state(*key(1, 2, 3))]
    output, *after = xorwow_next(*state)
    digits, *same = next_digits(plane, *state)
    assert same == after
    assert int(digits) == scattered_in_integers(int(output), plane)


def test_scattering_loses_nothing():
    """It is a bijection: the digits of every plane are as uniform as the outputs."""
    back5, back9 = pow(5, -1, 2**32), pow(9, -1, 2**32)
    for plane in (0, 7, 31, 32):
        for output in (0, 1, 0xFFFFFFFF, 0x12345678, 0x80000000):
            x = int(scattered(np.uint32(output), np.uint32(plane)))
            x = rotated(rotated(x, -11 * plane) * back9 & 0xFFFFFFFF, -7) * back5 & 0xFFFFFFFF
            assert x == output


def test_a_seed_drawn_again_is_another_seed_each_time():
    seeds = {int(seed_at(np.uint64(seed), np.uint64(n))) for seed in range(64) for n in range(64)}
    assert len(seeds) == 64 * 64
    assert seed_at(np.uint64(5), np.uint64(0)) == 5
    assert seed_at(np.uint64(5), np.uint64(2)) == splitmix64((5 + 2 * GOLDEN) & MASK)


def test_neighbouring_keys_have_different_streams():
    keys = [(seed, sample, word) for seed in range(8) for sample in range(8) for word in range(64)]
    assert len({tuple(xorwow_state(*key(*numbers))) for numbers in keys}) == len(keys)


def test_types_stay_unsigned():
    state = xorwow_state(*key(1, 2, 3))
    xorwow_next(*(np.uint32(word) for word in state))
    words = types.UniTuple(types.uint32, 6)
    assert {s.return_type for s in xorwow_state.nopython_signatures} == {words}
    words = types.UniTuple(types.uint32, 7)
    next_digits(np.uint32(4), *(np.uint32(word) for word in state))
    assert {s.return_type for s in xorwow_next.nopython_signatures} == {words}
    assert {s.return_type for s in next_digits.nopython_signatures} == {words}
    assert {s.return_type for s in scattered.nopython_signatures} == {types.uint32}
