"""Weights of bonds: int64 or float64, one for each bond; an infinite one is never used (solid).

Integers never become floats that would not distinguish them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

#: Integers up to here are floats, every one of them.
MOST_OF_FLOATS = 2**53
#: How an error about a bad weight ends.
NOT_FINITE = "but a weight is a finite number, or inf where nothing passes"
_INTEGER = re.compile(r"[+-]?\d{1,20}")
_INFINITE = re.compile(r"\+?inf(inity)?", re.IGNORECASE)
_WRITTEN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][+-]?[0-9]+)?")
_FORTRAN = str.maketrans("dD", "ee")


def plain_weights(values: np.ndarray) -> np.ndarray:
    """Return real numbers as weights, int64 or float64, with no -0.0 among them.

    ValueError: another kind of number, NaN, minus infinity, an integer beyond int64, or floats of
    more than 64 bits.

    >>> plain_weights(np.array([1.5, -0.0], np.float32)).tolist()
    [1.5, 0.0]
    """
    if values.dtype.kind not in "biuf":
        raise ValueError(f"weights are {values.dtype}, but they must be integers or floats")
    if values.dtype.kind == "f":
        if values.dtype.itemsize > 8:
            raise ValueError(f"weights are {values.dtype}, but floats have 64 bits at most")
        wrong = values[~(values > -np.inf)]
        if wrong.size:
            raise ValueError(f"weight {wrong.ravel()[0]}, {NOT_FINITE}")
        # Adding 0.0 makes -0.0 positive.
        weights: np.ndarray = values.astype(np.float64) + 0.0
        return weights
    if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
        raise ValueError(f"weight {values.max()}, but integers are below 2^63")
    return values.astype(np.int64)


def weights_from_objects(values: Sequence[Any]) -> np.ndarray:
    """Return weights from Python or NumPy numbers: int64 if all are integers, else float64.

    A text is one if it is an integer, which is how GML has those of more than 32 bits.

    ValueError: None, another object, as :func:`plain_weights`, or an integer beyond 2^53 next
    to floats.  The error names the first bad one.

    >>> weights_from_objects([3, "9007199254740993"]).tolist()
    [3, 9007199254740993]
    """
    numbers = [_number(value) for value in values]
    if all(isinstance(number, int) for number in numbers):
        return np.array(numbers, np.int64)
    for number in numbers:
        if isinstance(number, int) and abs(number) > MOST_OF_FLOATS:
            raise ValueError(
                f"weight {number}, but next to floats integers are at most 2^53, as floats do "
                "not distinguish larger ones"
            )
    return np.array(numbers, np.float64) + 0.0


def weight_of_text(text: str) -> int | float:
    """Return a weight that is written out, Fortran's 1.5D+00 among them.

    ValueError: it is none; the message says how a weight is written.

    >>> weight_of_text("9007199254740993"), weight_of_text("-1.5D+01")
    (9007199254740993, -15.0)
    """
    if _INFINITE.fullmatch(text):
        return math.inf
    if not _WRITTEN.fullmatch(text):
        raise ValueError(NOT_FINITE)
    if text.lstrip("+-").isdigit():
        # Python reads no integers of thousands of digits.
        weight = int(text) if len(text) < 1000 else 2**63
        if not -(2**63) <= weight < 2**63:
            raise ValueError("but integers are at least -2^63 and below 2^63")
        return weight
    value = float(text.translate(_FORTRAN))
    if not math.isfinite(value):
        raise ValueError(NOT_FINITE)
    return value


def _number(value: Any) -> int | float:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if value is None:
        raise ValueError("there is no weight")
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise ValueError(f"weight {str(value)[:40]!r}, {NOT_FINITE}")
    if isinstance(value, int | np.integer):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"weight {value}, but integers are at least -2^63 and below 2^63")
        return int(value)
    if not value > -math.inf:
        raise ValueError(f"weight {value}, {NOT_FINITE}")
    return float(value)


def is_beyond_floats(integers: np.ndarray) -> np.ndarray:
    """Return which integers are beyond 2^53 on either side."""
    is_beyond: np.ndarray = (integers > MOST_OF_FLOATS) | (integers < -MOST_OF_FLOATS)
    return is_beyond
