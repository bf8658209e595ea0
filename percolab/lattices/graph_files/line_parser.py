"""The loop over the bytes of a text: two site numbers a line, compiled, no object a line.

Text comes as blocks of whole lines.  A line is blank, a comment (# or %), or columns separated by
one delimiter or, delimiter 0, by blanks; a column may be put in double quotes.  What is wrong is
returned as a code with the place, and put into words by ``pair_lines``.
"""

from __future__ import annotations

from numba import njit

#: What can be wrong with a line.
FINE, MISSING_SITE, BAD_SITE, NAN_WEIGHT, BAD_WEIGHT, BAD_WIDTH = range(6)

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT = 9, 10, 13, 32, 34, 35, 37
_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_A, _D, _E, _N, _LOWER = 97, 100, 101, 110, 32


@njit(nogil=True, cache=True)
def parse_lines(text, delimiter, columns, width, base, top, pairs):
    """Write the pairs of sites of all lines, from 0 on, and return how the parsing went.

    text:      uint8, whole lines
    delimiter: byte between columns, 0 for blanks
    columns:   int64 (3,), numbers of the two columns of sites and of the weight, or -1
    width:     columns that every line must have, the last a number where there are 3; 0 for any
    base, top: smallest and largest site number that may be written; base becomes 0
    pairs:     int32 (num_pairs, 2), room for a pair every four bytes

    Returns (pairs written, self-loops left out, largest site or -1, lines before the one that is
    wrong, what is wrong, first and last + 1 byte of it).
    """
    used, loops, largest, lines, at = 0, 0, -1, 0, 0
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
            if wrong != FINE:
                return used, loops, largest, lines, wrong, first, last
            largest = max(largest, u, v)
            if u == v:
                loops += 1
            else:
                pairs[used, 0] = u
                pairs[used, 1] = v
                used += 1
        lines += 1
    return used, loops, largest, lines, FINE, 0, 0


@njit(nogil=True)
def _parse_line(text, begin, stop, delimiter, columns, width, base, top):
    """Return (what is wrong, both sites, the bytes that are wrong)."""
    u, v, column, at = -1, -1, 0, begin
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
            if _is_nan(text, first, last):
                return NAN_WEIGHT, u, v, first, last
            if width > 0 and not _is_number(text, first, last):
                return BAD_WEIGHT, u, v, first, last
        column += 1
    if u < 0 or v < 0:
        return MISSING_SITE, u, v, begin, stop
    if width > 0 and column != width:
        return BAD_WIDTH, u, v, begin, stop
    return FINE, u, v, 0, 0


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
