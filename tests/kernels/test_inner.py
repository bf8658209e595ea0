"""Inner functions, words of runs, and what is cached: the same numbers in plain Python."""

import itertools

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import JITCodeLibrary

import percolab.bonds.sites
import percolab.bonds.weights  # noqa: F401  All models add their hooks.
from percolab.bonds import hooks
from percolab.bonds.words import uniform_number
from percolab.flows.cycle_words import virtual_word, word_streams
from percolab.kernels import inner as module
from percolab.kernels.inner import inner, inner_with_arrays
from percolab.kernels.runs import bits_at, fill_segments, low_bits, mark_segment_starts
from percolab.trees.weights import compute_key


@inner
def quotient(x, y):
    return x // y


@inner_with_arrays
def with_array(n):
    numbers = np.zeros(n, np.int64)
    numbers[0] = quotient(n, 2)
    return numbers


@njit
def outer(n, y):
    return with_array(n)[0] + quotient(n, y)


def test_a_jitted_function_calls_inner_ones():
    assert outer(9, 2) == 8
    assert quotient.nopython_signatures  # compiled as what is called


def test_an_exception_of_an_inner_function_passes_through_the_others():
    with pytest.raises(ZeroDivisionError):
        outer(9, 0)


def test_an_inner_function_has_no_machine_code(monkeypatch):
    finalized = []
    real = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(
        JITCodeLibrary, "_finalize_specific", lambda self: (finalized.append(self.name), real(self))
    )

    @inner
    def twice(x):
        return 2 * x

    @njit
    def four_times(x):
        return twice(twice(x))

    assert four_times(3) == 12
    assert any(name.endswith("four_times") for name in finalized)
    assert not any(name.endswith("twice") for name in finalized)


def test_python_may_call_an_inner_function_before_and_after_others_do():
    @inner
    def half(x):
        return x / 2

    @njit
    def quarter(x):
        return half(half(x))

    assert half(3) == 1.5
    assert quarter(3) == 0.75
    assert half(5) == 2.5
    assert half(np.float32(1)) == 0.5
    assert half.py_func in module._called


def test_an_inner_function_that_returns_an_array_must_count_references():
    @inner
    def first(numbers):
        return numbers, 1

    @inner_with_arrays
    def second(numbers):
        return numbers[1:], 1

    @njit
    def call_first(numbers):
        return first(numbers)[0][0]

    @njit
    def call_second(numbers):
        return second(numbers)[0][0]

    numbers = np.arange(5)
    with pytest.raises(TypeError, match="returns an array: use inner_with_arrays"):
        call_first(numbers)
    assert call_second(numbers) == 1


def test_an_inner_function_that_gets_a_new_array_must_count_references():
    @inner
    def loses(n):
        return with_array(n)[0]

    @inner_with_arrays
    def gives_back(n):
        return with_array(n)[0]

    @njit
    def call_one(n):
        return loses(n)

    @njit
    def call_other(n):
        return gives_back(n)

    with pytest.raises(TypeError, match=r"gets a new array .*: use inner_with_arrays"):
        call_one(9)
    assert call_other(9) == 4


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


CALLED = [uniform_number, virtual_word, word_streams, compute_key]


@pytest.mark.parametrize("function", [*CALLED, *(each.draw for each in hooks._HOOKS.values())])
def test_what_python_calls_itself_is_cached(function):
    assert len(hooks._HOOKS) == 4
    assert type(function._cache).__name__ == "FunctionCache"
