"""Open bonds: bit b of a word is u_b < p; the streams XORWOW and Philox, digit by digit."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import DATA
from numba import types

from percolab.bonds.keys import mix64, seed_at
from percolab.bonds.philox import philox_block, philox_digits
from percolab.bonds.words import (
    GENERATORS,
    XORWOW,
    open_word,
    open_word_philox,
    open_word_xorwow,
    p_to_threshold,
    uniform_number,
)
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.bonds.xorwow import next_digits, scattered, xorwow_next, xorwow_state
from percolab.lattices.topology import unpack_bits

ALL = 0xFFFFFFFF
PLANES = 63
SEED, SAMPLE = 20240229, 11
EDGES = [0.0, 5e-324, 2.0**-63, 2.0**-62, 1e-9, 1 / 3, 0.6527, 1 - 2.0**-53, 1.0]
EDGES += [k / 2**m for m in (1, 2, 3, 10, 11) for k in (1, 2**m - 1)]
EDGES += [math.nextafter(0.5, 0), math.nextafter(0.5, 1), math.nextafter(0.0009765625, 0)]

every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)


def stream(generator, seed, sample, word):
    """Return the 63 digit planes of a word's 32 uniform numbers."""
    key = np.uint64(seed), np.uint64(sample), np.uint64(word)
    if generator == XORWOW:
        state, planes = xorwow_state(*key), []
        for plane in range(PLANES):
            digits, *state = next_digits(plane, *(np.uint32(number) for number in state))
            planes.append(digits)
        return planes
    return [digits for block in range(16) for digits in philox_digits(*key, block)][:PLANES]


def uniforms(generator, seed, sample, word):
    """Return the 32 uniform numbers of a word as integers in units of 2^-63."""
    planes = stream(generator, seed, sample, word)
    return [
        sum((digits >> bit & 1) << (PLANES - 1 - k) for k, digits in enumerate(planes))
        for bit in range(32)
    ]


def word_at(generator, word, threshold, exists=ALL, seed=SEED, sample=SAMPLE):
    key = np.uint64(seed), np.uint64(sample), np.uint64(word)
    return open_word(generator, *key, np.uint64(threshold), np.uint32(exists))


def filled(generator, p, *, seed=SEED, sample=SAMPLE, words=4096):
    exists, opened = np.full(words, ALL, np.uint32), np.zeros(words, np.uint32)
    key = np.uint64(seed), np.uint64(sample), np.uint64(p_to_threshold(p))
    fill_open_bonds(generator, *key, np.uint64(0), exists, opened)
    return opened


@pytest.mark.parametrize("p", EDGES)
def test_threshold_is_the_least_integer_not_below_p(p):
    assert p_to_threshold(p) == math.ceil(Fraction(p) * 2**63)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf, math.nextafter(1, 2)])
def test_p_outside_zero_to_one_is_refused(p):
    with pytest.raises(ValueError, match=r"p must be in \[0, 1\]"):
        p_to_threshold(p)


@every_generator
@pytest.mark.parametrize("p", EDGES)
def test_bond_is_open_when_its_uniform_is_below_p(generator, p):
    for word in (0, 1, 2**32 - 1, 2**32, 2**45 + 1):
        expected = [
            Fraction(u, 2**PLANES) < Fraction(p) for u in uniforms(generator, SEED, SAMPLE, word)
        ]
        found = np.array([word_at(generator, word, p_to_threshold(p))], np.uint32)
        assert unpack_bits(found, 32).tolist() == expected


@every_generator
def test_bond_opens_exactly_one_step_above_its_uniform(generator):
    for bit, u in enumerate(uniforms(generator, SEED, SAMPLE, 3)):
        assert not word_at(generator, 3, u) >> bit & 1
        assert word_at(generator, 3, u + 1) >> bit & 1


@every_generator
def test_bond_is_closed_at_a_dyadic_p_equal_to_the_digits_it_starts_with(generator):
    for m in (1, 2, 3, 10, 11, 12, 53):
        for bit, u in enumerate(uniforms(generator, SEED, SAMPLE, 5)):
            k = u >> (PLANES - m)
            assert not word_at(generator, 5, p_to_threshold(math.ldexp(k, -m))) >> bit & 1
            assert word_at(generator, 5, p_to_threshold(math.ldexp(k + 1, -m))) >> bit & 1


@every_generator
def test_no_bond_is_open_at_p_zero_and_all_at_p_one(generator):
    assert not filled(generator, 0.0).any()
    assert (filled(generator, 1.0) == ALL).all()


@every_generator
def test_only_bonds_that_exist_open_and_the_others_do_not_change_them(generator):
    for p in (0.3, 0.6527, 1.0):
        whole = word_at(generator, 9, p_to_threshold(p))
        for exists in (0, 1, 0x80000000, 0x0F0F0F0F):
            assert word_at(generator, 9, p_to_threshold(p), exists) == whole & exists


@every_generator
def test_words_are_numbered_beyond_32_bits(generator):
    exists, opened = np.full(4, ALL, np.uint32), np.zeros(4, np.uint32)
    key = np.uint64(SEED), np.uint64(SAMPLE), np.uint64(p_to_threshold(0.4))
    for first in (2**32 - 2, 2**40):
        fill_open_bonds(generator, *key, np.uint64(first), exists, opened)
        again = [word_at(generator, first + n, p_to_threshold(0.4)) for n in range(4)]
        assert opened.tolist() == again
        assert again != [word_at(generator, n, p_to_threshold(0.4)) for n in range(4)]
        assert again != [
            word_at(generator, (first + n) % 2**32, p_to_threshold(0.4)) for n in range(4)
        ]


def test_generators_differ():
    one, other = (filled(generator, 0.5) for generator in GENERATORS.values())
    assert (one != other).any()


def test_words_are_uint32():
    for generator in GENERATORS.values():
        word_at(generator, 0, p_to_threshold(0.5))
    functions = (open_word, open_word_xorwow, open_word_philox)
    found = {s.return_type for function in functions for s in function.nopython_signatures}
    assert found == {types.uint32}


@every_generator
def test_the_uniform_number_of_one_bond_is_the_one_its_word_spells(generator):
    for word in (0, 7, 2**20):
        key = np.uint64(SEED), np.uint64(SAMPLE), np.uint32(word)
        expected = uniforms(generator, SEED, SAMPLE, word)
        found = [int(uniform_number(generator, *key, np.uint32(bit))) for bit in range(32)]
        assert found == expected


@every_generator
@pytest.mark.parametrize("p", EDGES)
def test_all_words_at_once_are_those_made_one_by_one(generator, p):
    exists = np.random.default_rng(3).integers(0, 2**32, 700, dtype=np.uint64).astype(np.uint32)
    key = np.uint64(SEED), np.uint64(SAMPLE), np.uint64(p_to_threshold(p))
    opened = np.zeros_like(exists)
    fill_open_bonds(generator, *key, np.uint64(0), exists, opened)
    expected = [
        open_word(generator, *key[:2], np.uint32(word), key[2], there)
        for word, there in enumerate(exists)
    ]
    np.testing.assert_array_equal(opened, expected)


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


def test_types_of_philox_stay_unsigned():
    philox_digits(np.uint64(1), np.uint64(2), np.uint32(3), 4)
    four = types.UniTuple(types.uint32, 4)
    for function in (philox_block, philox_digits):
        assert {s.return_type for s in function.nopython_signatures} <= {four}
