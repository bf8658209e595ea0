"""Which bonds open between two p, and in which order: by the steps of a grid, or one by one.

Few words hold an *opening* bond, closed at the lower p and open at the higher.  On a grid of p it
opens at one of the *steps*, step j if u lies in [p_{j-1}, p_j).  Its first digits decide where;
only where they do not, one bond in 2^24, all digits are compared.
"""

from numba import float64, int64, njit, types, uint8, uint32, uint64
from numba.extending import overload

from percolab.bonds.philox import philox_digits
from percolab.bonds.sites import bond_number, fill_sample
from percolab.bonds.words import XORWOW
from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.neighbours import end_of_bond

#: Planes that are compared at once; a multiple of Philox's four.
PLANES = 24
_LAST_PLANE = 63


@njit
def fill_planes(generator, seed, sample, word, planes):
    """Write the first ``planes.size`` outputs of a word's stream, uint32."""
    if generator == XORWOW:
        v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
        for k in range(planes.size):
            planes[k], v0, v1, v2, v3, v4, d = next_digits(k, v0, v1, v2, v3, v4, d)
    else:
        for k in range(0, planes.size, 4):
            x0, x1, x2, x3 = philox_digits(seed, sample, word, k >> 2)
            planes[k] = x0
            if k + 1 < planes.size:
                planes[k + 1] = x1
            if k + 2 < planes.size:
                planes[k + 2] = x2
            if k + 3 < planes.size:
                planes[k + 3] = x3


@njit
def leading_digits(planes, count, bit):
    """Return the first ``count`` binary digits of the uniform number of one bond, uint64."""
    digits = uint64(0)
    for k in range(count):
        digits = uint64((digits << uint64(1)) | uint64((planes[k] >> uint32(bit)) & uint32(1)))
    return digits


@njit
def _word_digits(generator, seed, sample, word, bit, planes, last):
    """Return the first digits of one bit of a word; ``planes`` hold those of word ``last``."""
    if int64(word) != last:
        fill_planes(generator, seed, sample, word, planes)
    return leading_digits(planes, planes.size, bit), int64(word)


@njit
def _bond_digits(generator, seed, sample, bond, planes, last):
    word, bit = uint32(bond >> uint32(5)), uint32(bond & uint32(31))
    return _word_digits(generator, seed, sample, word, bit, planes, last)


@njit
def _digits_with_sites(generator, sites, seed, sample, bond, planes, last):
    largest = uint64(0)
    if sites.rule.bond_varies != uint32(0):
        largest, last = _bond_digits(generator, seed, sample, bond, planes, last)
    if sites.rule.site_varies != uint32(0):
        for site in end_of_bond(bond, sites.adjacency):
            word = uint32(uint32(sites.first_word) + uint32(uint32(site) >> uint32(5)))
            bit = uint32(uint32(site) & uint32(31))
            digits, last = _word_digits(generator, seed, sample, word, bit, planes, last)
            largest = max(largest, digits)
    return largest, last


def first_digits(generator, sites, seed, sample, bond, planes, last):
    """Return (the first ``planes.size`` digits of a bond's number, the word in ``planes``)."""
    if len(sites):
        return _digits_with_sites(generator, sites, seed, sample, bond, planes, last)
    return _bond_digits(generator, seed, sample, bond, planes, last)


@overload(first_digits)
def _first_digits(generator, sites, seed, sample, bond, planes, last):
    if isinstance(sites, types.BaseTuple) and len(sites):
        return lambda generator, sites, seed, sample, bond, planes, last: _digits_with_sites(
            generator, sites, seed, sample, bond, planes, last
        )
    return lambda generator, sites, seed, sample, bond, planes, last: _bond_digits(
        generator, seed, sample, bond, planes, last
    )


@njit
def step_of(digits, count, thresholds):
    """Return (step, sure): the first threshold above a number known to ``count`` digits."""
    shift = uint64(_LAST_PLANE - count)
    for j in range(thresholds.size):
        prefix = uint64(thresholds[j] >> shift)
        if digits < prefix:
            return j, True
        if digits == prefix and count < _LAST_PLANE:
            return j, False
    return thresholds.size, True


@njit(nogil=True, cache=True)
def list_opening_bonds(generator, sites, seed, sample, low, high, exists, opened, later, bonds):
    """Write the bonds open at threshold ``low``, and list those that ``high`` opens beside them.

    exists, opened: uint32 words, and later, scratch like them; bonds: uint32, the list of bond
    numbers 32 * word + bit, ascending.  Returns the length of the list, or -1 if it does not fit;
    ``opened`` is complete then all the same.
    """
    fill_sample(generator, sites, seed, sample, low, exists, opened)
    fill_sample(generator, sites, seed, sample, high, exists, later)
    count = int64(0)
    for word in range(exists.size):
        left = uint32(later[word] & ~opened[word])
        if left == uint32(0):
            continue
        if count + popcount(left) > bonds.size:
            return int64(-1)
        while left != uint32(0):
            bonds[count] = uint32(32 * word + trailing_zeros(left))
            left = uint32(left & uint32(left - uint32(1)))
            count += int64(1)
    return count


@njit(nogil=True, cache=True)
def steps_of_bonds(generator, sites, seed, sample, thresholds, bonds, count, planes, steps):
    """Write at which step of a grid each of the listed bonds opens, uint8.

    thresholds: uint64, strictly ascending; planes: uint32, scratch of 63.
    """
    last = int64(-1)
    for n in range(count):
        digits, last = first_digits(generator, sites, seed, sample, bonds[n], planes[:PLANES], last)
        step, sure = step_of(digits, PLANES, thresholds)
        if not sure:
            digits = bond_number(generator, sites, seed, sample, bonds[n])
            step, _ = step_of(digits, _LAST_PLANE, thresholds)
        steps[n] = uint8(step)


@njit(nogil=True, cache=True)
def order_by_number(
    generator, sites, seed, sample, low, high, bonds, count, planes, numbers, order, heads
):
    """Write the listed bonds' positions in ascending order of the bonds' uniform numbers.

    low, high: thresholds between which all of them lie; planes: uint32 scratch, as many digits as
    are compared at first; numbers: uint64 and heads: uint32, scratch of count and count + 1.
    The numbers are uniform, so equal intervals hold about one each, and sorting takes linear time.
    """
    shift = uint64(_LAST_PLANE - planes.size)
    least = uint64(low >> shift)
    width = float64(uint64(high >> shift) - least) + 1.0
    heads[: count + 1] = 0
    last = int64(-1)
    for n in range(count):
        numbers[n], last = first_digits(generator, sites, seed, sample, bonds[n], planes, last)
        heads[_interval(numbers[n], least, width, count) + 1] += uint32(1)
    for k in range(count):
        heads[k + 1] += heads[k]
    for n in range(count):
        k = _interval(numbers[n], least, width, count)
        order[heads[k]] = uint32(n)
        heads[k] += uint32(1)
    for k in range(1, count):
        n, place = order[k], k
        while place > 0 and _is_below(
            generator, sites, seed, sample, bonds, numbers, n, order[place - 1]
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = n


@njit
def _interval(number, least, width, count):
    """Return in which of ``count`` equal intervals a number lies."""
    return min(int64(float64(number - least) / width * count), count - 1)


@njit
def _is_below(generator, sites, seed, sample, bonds, numbers, one, other):
    """Return whether a bond's number is below another's, by all digits if the first ones agree."""
    if numbers[one] != numbers[other]:
        return numbers[one] < numbers[other]
    return bond_number(generator, sites, seed, sample, bonds[one]) < bond_number(
        generator, sites, seed, sample, bonds[other]
    )
