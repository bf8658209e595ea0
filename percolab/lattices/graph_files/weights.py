"""Weights of bonds: int64 or float64, finite, one for each bond, and how those of edges are merged.

Integers are never made floats where floats would not tell them apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.repeats import MIRROR, PARALLEL, repeated_edges

#: Integers up to here are floats, every one of them.
MOST_OF_FLOATS = 2**53
#: How a line ends that tells of a weight that is none.
NOT_FINITE = "but a weight is a finite number"
_INTEGER = re.compile(r"[+-]?\d{1,20}")
_WRITTEN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][+-]?[0-9]+)?")
_FORTRAN = str.maketrans("dD", "ee")


class EdgeWeights(NamedTuple):
    """The weights of edges that are to be merged, as they stand in a file.

    values: int64 or float64, one for each edge
    path:   the file, or what errors call that which it stands for
    base:   the number that the file gives to site 0
    """

    values: np.ndarray
    path: Path | str
    base: int = 0


def plain_weights(values: np.ndarray) -> np.ndarray:
    """Return real numbers as weights, int64 or float64, with no -0.0 among them.

    ValueError: another kind of number, one that is not finite, an integer beyond int64, or floats
    of more than 64 bits.

    >>> plain_weights(np.array([1.5, -0.0], np.float32)).tolist()
    [1.5, 0.0]
    """
    if values.dtype.kind not in "biuf":
        raise ValueError(f"weights are {values.dtype}, but they must be integers or floats")
    if values.dtype.kind == "f":
        if values.dtype.itemsize > 8:
            raise ValueError(f"weights are {values.dtype}, but floats have 64 bits at most")
        wrong = values[~np.isfinite(values)]
        if wrong.size:
            raise ValueError(f"weight {wrong.ravel()[0]}, {NOT_FINITE}")
        # Adding 0.0 makes -0.0 positive.
        found: np.ndarray = values.astype(np.float64) + 0.0
        return found
    if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
        raise ValueError(f"weight {values.max()}, but integers are below 2^63")
    return values.astype(np.int64)


def weights_from_objects(values: Sequence[Any]) -> np.ndarray:
    """Return weights from Python or NumPy numbers: int64 if all are integers, else float64.

    A text is one if it is an integer, which is how GML has those of more than 32 bits.

    ValueError: None, another object, as :func:`plain_weights`, or an integer beyond 2^53 beside
    floats.  The error names the first that is wrong.

    >>> weights_from_objects([3, "9007199254740993"]).tolist()
    [3, 9007199254740993]
    """
    numbers = [_number(value) for value in values]
    if all(isinstance(number, int) for number in numbers):
        return np.array(numbers, np.int64)
    for number in numbers:
        if isinstance(number, int) and abs(number) > MOST_OF_FLOATS:
            raise ValueError(
                f"weight {number}, but beside floats integers are at most 2^53, as floats do not "
                "tell larger ones apart"
            )
    return np.array(numbers, np.float64) + 0.0


def weight_of_text(text: str) -> int | float:
    """Return a weight that is written out, Fortran's 1.5D+00 among them.

    ValueError, which says how a weight is written: it is none.

    >>> weight_of_text("9007199254740993"), weight_of_text("-1.5D+01")
    (9007199254740993, -15.0)
    """
    if not _WRITTEN.fullmatch(text):
        raise ValueError(NOT_FINITE)
    if text.lstrip("+-").isdigit():
        # Python reads no integers of thousands of digits.
        found = int(text) if len(text) < 1000 else 2**63
        if not -(2**63) <= found < 2**63:
            raise ValueError("but integers are at least -2^63 and below 2^63")
        return found
    value = float(text.translate(_FORTRAN))
    if not math.isfinite(value):
        raise ValueError(NOT_FINITE)
    return value


def _number(value: Any) -> int | float:
    """Return a weight as a Python number."""
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
    if not math.isfinite(value):
        raise ValueError(f"weight {value}, {NOT_FINITE}")
    return float(value)


def is_beyond_floats(integers: np.ndarray) -> np.ndarray:
    """Return which integers are beyond 2^53 on either side."""
    found: np.ndarray = (integers > MOST_OF_FLOATS) | (integers < -MOST_OF_FLOATS)
    return found


def make_bond_weights(
    edges: np.ndarray,
    sites: np.ndarray,
    num_sites: int,
    marks: np.ndarray,
    weights: EdgeWeights,
    *,
    multi: bool,
    is_matrix: bool,
) -> np.ndarray:
    """Return the weights of the bonds that edges become, in their order.

    edges: int32 (num_edges, 2).  sites: the same, of sites 0 to num_sites - 1 that may be numbered
    otherwise.  marks: of :func:`percolab.lattices.graph_files.repeats.mark_repeats`.
    With ``multi`` an edge keeps its own weight; merged ones get the least.

    InputError: the entries (i, j) and (j, i) of a matrix that are one bond have different weights.
    """
    values = weights.values
    if not marks.any():
        return values
    same = repeated_edges(sites, num_sites, marks, is_matrix)
    mirrors = np.flatnonzero(marks == MIRROR)
    differing = mirrors[values[mirrors] != values[same[mirrors]]]
    if differing.size:
        firsts = same[same]
        members = np.flatnonzero(np.isin(firsts, firsts[differing]))
        members = members[np.argsort(firsts[members], kind="stable")]
        starts = np.flatnonzero(np.diff(firsts[members], prepend=-1))
        values = values.copy()
        for own in np.split(members, starts[1:]):
            values[own[marks[own] <= PARALLEL]] = _merge_both_entries(
                edges[own], values[own], weights
            )
    if multi:
        return values[marks <= PARALLEL]
    least = values.copy()
    parallel = np.flatnonzero(marks == PARALLEL)
    np.minimum.at(least, same[parallel], values[parallel])
    found: np.ndarray = least[marks == 0]
    return found


def _merge_both_entries(edges: np.ndarray, values: np.ndarray, weights: EdgeWeights) -> np.ndarray:
    """Return the weights of the bonds between two sites, from their entries (i, j) and (j, i).

    They are those of the side with more entries; each of the other side must be one of them.
    """
    is_upper = edges[:, 0] == edges[0, 0]
    more, fewer, at = values[is_upper], values[~is_upper], edges[0]
    if more.size < fewer.size:
        more, fewer, at = fewer, more, at[::-1]
    strange = Counter(fewer.tolist()) - Counter(more.tolist())
    if strange:
        i, j = (at + np.int64(weights.base)).tolist()
        missed = next(iter(Counter(more.tolist()) - Counter(fewer.tolist())))
        raise InputError(
            f"{weights.path}: is not symmetric: entry ({i}, {j}) is {missed}, entry ({j}, {i}) is "
            f"{next(iter(strange))}, but a bond has one weight"
        )
    found: np.ndarray = more
    return found
