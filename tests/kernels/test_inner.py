"""Inner functions: the same numbers without libraries of their own, and Python may call them."""

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import JITCodeLibrary

from percolab.kernels import inner as module
from percolab.kernels.inner import inner, inner_with_arrays


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
