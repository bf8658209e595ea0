"""Open bonds: bit b of a word is u_b < p, exactly, for the uniform numbers its stream spells."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import assert_z
from numba import types

from percolab.bonds.philox import philox_digits
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
from percolab.bonds.xorwow import next_digits, xorwow_state
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


@every_generator
@pytest.mark.parametrize("p", [0.001, 0.25, 0.3473, 0.5, 0.6527, 0.999])
def test_fraction_of_open_bonds_is_p(generator, p):
    words = filled(generator, p, words=2**16)
    n = 32 * words.size
    assert_z(int(np.bitwise_count(words).sum()), n * p, math.sqrt(n * p * (1 - p)))


@every_generator
@pytest.mark.parametrize("bit", range(32))
def test_every_bit_of_a_word_is_open_with_probability_p(generator, bit):
    words, p = filled(generator, 0.6527, words=2**14), 0.6527
    count = int((words >> np.uint32(bit) & np.uint32(1)).sum())
    assert_z(count, words.size * p, math.sqrt(words.size * p * (1 - p)))


PAIRS = {
    f"bits {shift} apart": lambda open_at, shift=shift: _bits_apart(open_at, shift)
    for shift in range(1, 32)
}
PAIRS |= {
    f"words {lag} apart": lambda open_at, lag=lag: (open_at()[lag:], open_at()[:-lag])
    for lag in (1, 2, 3, 64, 1000)
}
PAIRS |= {
    "next sample": lambda open_at: (open_at(), open_at(sample=SAMPLE + 1)),
    "next seed": lambda open_at: (open_at(), open_at(seed=SEED + 1)),
    "seed and sample swapped": lambda open_at: (
        open_at(seed=1, sample=2),
        open_at(seed=2, sample=1),
    ),
    "next sample, next word": lambda open_at: (open_at()[1:], open_at(sample=SAMPLE + 1)[:-1]),
}


def _bits_apart(open_at, shift):
    bonds = open_at().reshape(-1, 32)
    return bonds[:, shift:], bonds[:, :-shift]


@every_generator
@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_of_bonds_are_uncorrelated(generator, pair):
    p = 0.6527

    def open_at(**key):
        return unpack_bits(filled(generator, p, words=2**13, **key), 2**18)

    first, second = PAIRS[pair](open_at)
    product = np.vdot(first.astype(float) - p, second.astype(float) - p) / (p * (1 - p))
    assert_z(product, 0, math.sqrt(first.size))


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
