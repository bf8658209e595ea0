"""The loop over the bytes of a text: two site numbers a line, compiled, no object a line.

Where weights are wanted integers are read here, all their digits, and of other numbers it is told
where they stand.

Text comes as blocks of whole lines.  A line is blank, a comment (# or %), or columns separated by
one delimiter or, delimiter 0, by blanks; a column may be put in double quotes.  What is wrong is
returned as a code with the place, and put into words by ``pair_lines``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

#: What can be wrong with a line.
FINE, MISSING_SITE, BAD_SITE, NAN_WEIGHT, BAD_WEIGHT, BAD_WIDTH = range(6)
#: The same where weights are wanted.
MISSING_WEIGHT, NO_FINITE_WEIGHT, HUGE_INTEGER = range(6, 9)

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT = 9, 10, 13, 32, 34, 35, 37
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_A, _D, _E, _N, _LOWER = 97, 100, 101, 110, 32
# The least int64, and the last of its tens.
_LEAST, _LEAST_TENTH = -(2**63), -(2**63 // 10)


class WeightRoom(NamedTuple):
    """Room for the weights of pairs; all of length 0 where weights are not wanted.

    integers:   int64 (num_pairs,), the weight where it is written as an integer, else 0
    is_integer: bool (num_pairs,)
    places:     int32 (num_pairs, 2), the first and last + 1 byte of the weight
    """

    integers: Any
    is_integer: Any
    places: Any

    @classmethod
    def of(cls, num_pairs: int) -> WeightRoom:
        """Return room for the weights of so many pairs."""
        return cls(
            np.empty(num_pairs, np.int64),
            np.empty(num_pairs, np.bool_),
            np.empty((num_pairs, 2), np.int32),
        )


@njit(nogil=True, cache=True)
def parse_lines(text, delimiter, columns, width, base, top, pairs, weights):
    """Write the pairs of sites of all lines, from 0 on, and return how the parsing went.

    text:      uint8, whole lines
    delimiter: byte between columns, 0 for blanks
    columns:   int64 (3,), numbers of the two columns of sites and of the weight, or -1
    width:     columns that every line must have, the last a number where there are 3; 0 for any
    base, top: smallest and largest site number that may be written; base becomes 0
    pairs:     int32 (num_pairs, 2), room for a pair every four bytes
    weights:   WeightRoom for as many, or for none

    Returns (pairs written, self-loops left out, largest site or -1, lines before the one that is
    wrong, what is wrong, first and last + 1 byte of it).
    """
    used, loops, largest, lines, at = 0, 0, -1, 0, 0
    wanted = weights.integers.size > 0
    is_integer, integer = False, 0
    while at < text.size:
        begin = at
        while text[at] != _NEWLINE:
            at += 1
        stop = at
        at += 1
        begin = _skip_blanks(text, begin, stop)
        if begin < stop and text[begin] != _HASH and text[begin] != _PERCENT:
            wrong, u, v, first, last = _parse_line(
                text, begin, stop, delimiter, columns, width, base, top
            )
            if wanted and wrong == FINE:
                wrong, is_integer, integer = _weight(text, first, last)
                if wrong == MISSING_WEIGHT:
                    first, last = begin, stop
            if wrong != FINE:
                return used, loops, largest, lines, wrong, first, last
            largest = max(largest, u, v)
            if u == v:
                loops += 1
            else:
                pairs[used, 0] = u
                pairs[used, 1] = v
                if wanted:
                    weights.integers[used] = integer
                    weights.is_integer[used] = is_integer
                    weights.places[used, 0] = first
                    weights.places[used, 1] = last
                used += 1
        lines += 1
    return used, loops, largest, lines, FINE, 0, 0


@njit(nogil=True)
def _parse_line(text, begin, stop, delimiter, columns, width, base, top):
    """Return (what is wrong, both sites, the bytes that are wrong, or else those of the weight)."""
    u, v, column, at = -1, -1, 0, begin
    weight_first, weight_last = begin, begin
    while at <= stop and (width > 0 or column <= max(columns[0], columns[1], columns[2])):
        first, last, at = _next_column(text, at, stop, delimiter)
        if delimiter == 0 and first == stop:
            break
        if column == columns[0] or column == columns[1]:
            site = _site_number(text, first, last, base, top)
            if site < 0:
                return BAD_SITE, u, v, first, last
            if column == columns[0]:
                u = site
            else:
                v = site
        elif column == columns[2]:
            weight_first, weight_last = first, last
            if _is_nan(text, first, last):
                return NAN_WEIGHT, u, v, first, last
            if width > 0 and not _is_number(text, first, last):
                return BAD_WEIGHT, u, v, first, last
        column += 1
    if u < 0 or v < 0:
        return MISSING_SITE, u, v, begin, stop
    if width > 0 and column != width:
        return BAD_WIDTH, u, v, begin, stop
    return FINE, u, v, weight_first, weight_last


@njit(nogil=True)
def _weight(text, first, last):
    """Return (what is wrong with a weight, whether it is an integer, the integer or 0)."""
    if first >= last:
        return MISSING_WEIGHT, False, 0
    at = first
    is_negative = text[at] == _MINUS
    if is_negative or text[at] == _PLUS:
        at += 1
    # Summed up as a negative number, as there is one more of these.
    start, value, is_huge = at, 0, False
    while at < last and _ZERO <= text[at] <= _NINE:
        digit = text[at] - _ZERO
        if value < _LEAST_TENTH or (value == _LEAST_TENTH and digit > 8):
            is_huge, value = True, 0
        value = 10 * value - digit
        at += 1
    digits = at - start
    if at == last and digits > 0:
        if is_huge or (value == _LEAST and not is_negative):
            return HUGE_INTEGER, True, 0
        return FINE, True, value if is_negative else -value
    if at < last and text[at] == _POINT:
        at += 1
        start = at
        while at < last and _ZERO <= text[at] <= _NINE:
            at += 1
        digits += at - start
    if digits > 0 and at < last and (text[at] | _LOWER == _E or text[at] | _LOWER == _D):
        at += 1
        if at < last and (text[at] == _PLUS or text[at] == _MINUS):
            at += 1
        digits = last - at
        while at < last and _ZERO <= text[at] <= _NINE:
            at += 1
    if digits > 0 and at == last:
        return FINE, False, 0
    return NO_FINITE_WEIGHT, False, 0


@njit(nogil=True)
def _next_column(text, at, stop, delimiter):
    """Return the bytes of the column at ``at``, without blanks and quotes, and where to go on."""
    first = _skip_blanks(text, at, stop)
    last, quoted = first, False
    while last < stop:
        byte = text[last]
        if byte == _QUOTE:
            quoted = not quoted
        elif not quoted and (byte == delimiter or (delimiter == 0 and _is_blank(byte))):
            break
        last += 1
    following = last + 1
    while last > first and _is_blank(text[last - 1]):
        last -= 1
    if last - first > 1 and text[first] == _QUOTE and text[last - 1] == _QUOTE:
        first, last = first + 1, last - 1
    return first, last, following


@njit(nogil=True)
def _site_number(text, first, last, base, top):
    """Return the site that a column of digits names, counted from 0; negative if it names none."""
    value = 0
    for at in range(first, last):
        byte = text[at]
        if byte < _ZERO or byte > _NINE:
            return -1
        value = 10 * value + (byte - _ZERO)
        if value > top:
            return -1
    return value - base if first < last else -1


@njit(nogil=True)
def _is_number(text, first, last):
    """Return whether a column is written with the characters of a number, a digit among them."""
    digits = 0
    for at in range(first, last):
        byte = text[at]
        if _ZERO <= byte <= _NINE:
            digits += 1
        elif byte != _PLUS and byte != _MINUS and byte != _POINT:
            byte |= _LOWER
            if byte != _E and byte != _D:
                return False
    return digits > 0


@njit(nogil=True)
def _is_nan(text, first, last):
    if first < last and (text[first] == _PLUS or text[first] == _MINUS):
        first += 1
    if last - first != 3 or text[first] | _LOWER != _N or text[last - 1] | _LOWER != _N:
        return False
    return text[first + 1] | _LOWER == _A


@njit(nogil=True)
def _skip_blanks(text, at, stop):
    while at < stop and _is_blank(text[at]):
        at += 1
    return at


@njit(nogil=True)
def _is_blank(byte):
    # A carriage return is only ever found at the end of a line here.
    return byte in (_SPACE, _TAB, _RETURN)
