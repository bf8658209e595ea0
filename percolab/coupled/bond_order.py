"""The bonds that open between two p, and their order: by the steps of a grid, or one by one.

An *opening* bond is closed at the lower p and open at the higher; few words have one.  On a grid of
p it opens at one of the *steps*: at step j if u lies in [p_{j-1}, p_j).  The first digits of u
decide at which; only if they do not, for one bond in 2^24, all digits are compared.
"""

from numba import float64, int64, uint8, uint32, uint64

from percolab.bonds.hooks import bond_number, fill_sample, first_digits
from percolab.kernels.bits import popcount, trailing_zeros
from percolab.kernels.inner import inner

#: Bit planes that are compared at once; a multiple of Philox's four.
PLANES = 24
_LAST_PLANE = 63


def count_compared_digits(count: int) -> int:
    """Return how many digits are enough that few of ``count`` uniform numbers agree in all."""
    return min(4 * (count.bit_length() // 4 + 2), 60)


@inner
def find_step(digits, count, thresholds):
    """Return (step, sure): the first threshold above a number, given its first ``count`` digits."""
    shift = uint64(_LAST_PLANE - count)
    for j in range(thresholds.size):
        prefix = uint64(thresholds[j] >> shift)
        if digits < prefix:
            return j, True
        if digits == prefix and count < _LAST_PLANE:
            return j, False
    return thresholds.size, True


@inner
def list_opening_bonds(generator, record, seed, sample, low, high, exists, opened, later, bonds):
    """Write the bonds open at threshold ``low``, and list those that open between it and ``high``.

    exists, opened: uint32 words; later: scratch like them; bonds: uint32, the list of bond numbers
    32 * word + bit, ascending.  Return the length of the list, or -1 if it does not fit; ``opened``
    is complete in either case.
    """
    fill_sample(generator, record, seed, sample, low, exists, opened)
    fill_sample(generator, record, seed, sample, high, exists, later)
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


@inner
def write_bond_steps(generator, record, seed, sample, thresholds, bonds, count, planes, steps):
    """Write the step of a grid at which each of the listed bonds opens, uint8.

    thresholds: uint64, strictly ascending; planes: uint32, scratch of 63.
    """
    last = int64(-1)
    for n in range(count):
        digits, last = first_digits(
            generator, record, seed, sample, bonds[n], planes[:PLANES], last
        )
        step, sure = find_step(digits, PLANES, thresholds)
        if not sure:
            digits = bond_number(generator, record, seed, sample, bonds[n])
            step, _ = find_step(digits, _LAST_PLANE, thresholds)
        steps[n] = uint8(step)


@inner
def order_by_number(
    generator, record, seed, sample, low, high, bonds, count, planes, numbers, order, heads
):
    """Write the listed bonds' positions in ascending order of the bonds' uniform numbers.

    low, high: thresholds between which all numbers lie; planes: uint32 scratch, one for each digit
    that is compared first; numbers: uint64 and heads: uint32, scratch of count and count + 1.
    The numbers are uniform: ``count`` equal intervals have about one each, so time is linear.
    """
    shift = uint64(_LAST_PLANE - planes.size)
    least = uint64(low >> shift)
    width = float64(uint64(high >> shift) - least) + 1.0
    heads[: count + 1] = 0
    last = int64(-1)
    for n in range(count):
        numbers[n], last = first_digits(generator, record, seed, sample, bonds[n], planes, last)
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
            generator, record, seed, sample, bonds, numbers, n, order[place - 1]
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = n


@inner
def _interval(number, least, width, count):
    """Return which of ``count`` equal intervals a number lies in."""
    return min(int64(float64(number - least) / width * count), count - 1)


@inner
def _is_below(generator, record, seed, sample, bonds, numbers, one, other):
    """Return whether a bond's number is below another's, by all digits if the first ones agree."""
    if numbers[one] != numbers[other]:
        return numbers[one] < numbers[other]
    return bond_number(generator, record, seed, sample, bonds[one]) < bond_number(
        generator, record, seed, sample, bonds[other]
    )
