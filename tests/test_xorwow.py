"""XORWOW: cuRAND's recurrence word for word, and the keyed start of a stream."""

import json

import numpy as np
import pytest
from helpers import DATA
from numba import types

from percolab.kernels.xorwow import mix64, uniform_double, xorwow_next, xorwow_state

VECTORS = json.loads((DATA / "curand_xorwow.json").read_text())["vectors"]
MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
KEYS = [
    (0, 0, 0),
    (1, 0, 0),
    (0, 1, 0),
    (0, 0, 1),
    (7, 3, 2**32 - 1),
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
    return np.uint64(seed), np.uint64(sample), np.uint32(word)


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda v: f"{v['seed']}-{v['subsequence']}-{v['offset']}"
)
def test_outputs_equal_curand(vector):
    found = outputs([*vector["v"], vector["d"]], 16)
    assert found[: len(vector["u32"])] == vector["u32"]
    pairs = zip(found[::2], found[1::2])
    assert [uniform_double(np.uint32(x), np.uint32(y)) for x, y in pairs] == vector["double"]


def test_mix64_gives_the_outputs_of_splitmix64():
    # The first outputs of SplitMix64 from seed 1234567, as in its reference implementation.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [mix64(np.uint64((1234567 + n * GOLDEN) & MASK)) for n in (1, 2, 3)] == known


@pytest.mark.parametrize("numbers", KEYS)
def test_state_equals_its_definition_in_integers(numbers):
    assert list(xorwow_state(*key(*numbers))) == state_in_integers(*numbers)


def test_neighbouring_keys_have_different_streams():
    keys = [(seed, sample, word) for seed in range(8) for sample in range(8) for word in range(64)]
    assert len({tuple(xorwow_state(*key(*numbers))) for numbers in keys}) == len(keys)


def test_types_stay_unsigned():
    state = xorwow_state(*key(1, 2, 3))
    xorwow_next(*(np.uint32(word) for word in state))
    words = types.UniTuple(types.uint32, 6)
    assert {s.return_type for s in xorwow_state.nopython_signatures} == {words}
    words = types.UniTuple(types.uint32, 7)
    assert {s.return_type for s in xorwow_next.nopython_signatures} == {words}
