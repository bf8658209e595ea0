"""Compiled loops: masks over a grid, and bonds across periodic boundaries with their other ends."""

from numba import int64, njit, uint32, uint64


@njit(nogil=True, cache=True)
def put_rows(words, rows, first, bits, there):
    """Put a row of ``bits`` bits, from bit ``n * bits`` on, for every n where ``there`` is True.

    words: uint32, zeros before; rows: uint32 (kinds, words of a row), used cyclically from row
    ``first`` on, with zeros after their bits; there: bool (places,)
    """
    kinds, count = rows.shape
    for n in range(there.size):
        if there[n]:
            row = rows[(first + n) % kinds]
            place, shift = uint64((n * bits) >> 5), uint32((n * bits) & 31)
            if shift == 0:
                for j in range(uint64(count)):
                    words[place + j] = row[j]
            else:
                back = uint32(uint32(32) - shift)
                words[place] |= uint32(row[0] << shift)
                for j in range(uint64(1), uint64(count)):
                    words[place + j] = uint32(
                        uint32(row[j] << shift) | uint32(row[j - uint64(1)] >> back)
                    )
                beyond = uint32(row[count - 1] >> back)
                if beyond != 0:
                    words[place + uint64(count)] = beyond


@njit(nogil=True, cache=True)
def list_bits(first, words, start, places, count):
    """List the places of set bits, from word ``start`` on, while there is room for another word's.

    first: the number of the word ``words[0]``; words: uint32; places: int32, with room for 32 more
    after the first ``count``, gets the places.  Return the new count, and the word at which to
    continue.
    """
    for n in range(start, words.size):
        word = words[n]
        if word != 0:
            if count + 32 > places.size:
                return count, n
            for low in range(0, 32, 8):
                if (word >> uint32(low)) & uint32(255):
                    for bit in range(low, low + 8):
                        # Where the bit is not set, the next place overwrites this one.
                        places[count] = 32 * (first + n) + bit
                        count += int64((word >> uint32(bit)) & uint32(1))
    return count, words.size


@njit(nogil=True, cache=True, error_model="numpy")
def find_other_ends(owners, shape, offset, width, ends, codes):
    """Write the other ends of bonds and the codes of their periods (``Grid.other_ends``).

    owners, ends: int32 (n,); shape: uint32 (axes,); offset: int64 (axes,); codes: int64 (n,)
    width: the bits an axis has in a code
    """
    for n in range(owners.size):
        left, end, stride, code = uint32(owners[n]), int64(0), int64(1), int64(0)
        for axis in range(shape.size):
            size = int64(shape[axis])
            rest = uint32(left // shape[axis])
            to = int64(uint32(left - uint32(rest * shape[axis]))) + offset[axis]
            # Most bonds cross at most one period, so this is faster than another division.
            while to < 0:
                to += size
                code -= int64(1) << int64(width * axis)
            while to >= size:
                to -= size
                code += int64(1) << int64(width * axis)
            end += to * stride
            left, stride = rest, stride * size
        ends[n], codes[n] = end, code


@njit(nogil=True, cache=True)
def put_periods(codes, axes, width, narrow, narrowed):
    """Convert codes of periods from ``width`` to ``narrow`` bits per axis.

    codes: int64 (n,); narrowed: int32 (n,)
    """
    half = int64(1) << int64(width - 1)
    for n in range(codes.size):
        code, put = codes[n], int64(0)
        for axis in range(axes):
            periods = ((code & int64(2 * half - 1)) ^ half) - half
            put += periods << int64(narrow * axis)
            code = (code - periods) >> int64(width)
        narrowed[n] = put
