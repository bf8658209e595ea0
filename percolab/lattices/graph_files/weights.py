"""Weights of bonds: int64 or float64, one per bond; a bond of infinite weight is never used.

Integers are never converted to floats that would not distinguish them.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from percolab.errors import InputError, refuse_mask

#: Integers up to here are exact as floats.
MOST_OF_FLOATS = 2**53
#: How an error about a bad weight ends.
NOT_FINITE = "but a weight is a finite number, or inf where nothing passes"
_TOO_LARGE = "but integers are at least -2^63 and below 2^63"
# An integer, with no more digits than Python reads; infinity; or any other number.
_WRITTEN = re.compile(
    r"([+-]?\d{1,999})|(\+?inf(?:inity)?)|[+-]?(?:\d+\.?\d*|\.\d+)(?:[ed][+-]?\d+)?",
    re.IGNORECASE | re.ASCII,
)


def make_weights(given: Any, where: Callable[[int], str] = lambda n: "") -> np.ndarray:
    """Return weights, int64 or float64, with no -0.0 among them.

    given: an array of any shape, or a sequence of numbers and of texts that :func:`read_weight`
    reads; the result has integers if all are integers.  where: returns, for the n-th weight, the
    text with which an error about it begins.

    InputError: None, another object, NaN, minus infinity, floats of more than 64 bits, an integer
    beyond int64, or one beyond 2^53 next to floats in a sequence.

    >>> make_weights([3, "9007199254740993"]).tolist(), make_weights(np.float32([-0.0])).tolist()
    ([3, 9007199254740993], [0.0])
    """
    refuse_mask("weights", given)
    if isinstance(given, np.ndarray):
        return _weights_of_array(given, where)
    numbers: list[int | float] = []
    try:
        for value in given:
            numbers.append(read_weight(value))
    except (ValueError, TypeError) as error:
        raise InputError(f"{where(len(numbers))}{error}") from error
    if all(isinstance(number, int) for number in numbers):
        return np.array(numbers, np.int64)
    for n, number in enumerate(numbers):
        if isinstance(number, int) and abs(number) > MOST_OF_FLOATS:
            raise InputError(
                f"{where(n)}weight {number}, but next to floats (a point, an exponent or inf) "
                "integers are at most 2^53, as floats do not distinguish larger ones"
            )
    return np.array(numbers, np.float64) + 0.0


def _weights_of_array(values: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    kind = values.dtype.kind
    if kind not in "biuf":
        raise InputError(f"weights are {values.dtype}, but they must be integers or floats")
    if kind == "f" and values.dtype.itemsize > 8:
        raise InputError(f"weights are {values.dtype}, but floats have 64 bits at most")
    is_wrong = ~(values > -np.inf) if kind == "f" else values > np.uint64(2**63 - 1)
    wrong = np.flatnonzero(is_wrong)
    if wrong.size:
        why = NOT_FINITE if kind == "f" else _TOO_LARGE
        raise InputError(f"{where(wrong[0])}weight {values.ravel()[wrong[0]]}, {why}")
    # Adding 0.0 makes -0.0 positive.
    weights: np.ndarray = (
        values.astype(np.float64) + 0.0 if kind == "f" else values.astype(np.int64)
    )
    return weights


def read_weight(value: Any) -> int | float:
    """Return a weight, given as a number or a text (Fortran's 1.5D+00, too), as int or float.

    ValueError: it is no number, beyond int64, NaN, -inf, or has too large an exponent.

    >>> read_weight("9007199254740993"), read_weight("-1.5D+01"), read_weight("inf")
    (9007199254740993, -15.0, inf)
    """
    if value is None or value == "":
        raise ValueError("there is no weight")
    number, own = value, f"weight {value}"
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        own = f"weight {str(value)[:40]!r}"
        match = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"{own}, {NOT_FINITE}")
        number = int(match[0]) if match[1] else float(match[0].lower().replace("d", "e"))
        if number == math.inf and not match[2]:
            raise ValueError(f"{own}, {NOT_FINITE}")
    is_integer = isinstance(number, int | np.integer)
    if is_integer and not -(2**63) <= number < 2**63:
        raise ValueError(f"{own}, {_TOO_LARGE}")
    if not number > -math.inf:
        raise ValueError(f"{own}, {NOT_FINITE}")
    return int(number) if is_integer else float(number)
