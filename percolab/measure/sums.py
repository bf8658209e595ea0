"""The sums over the clusters of a sample, with which its row begins, and all code specific to them.

A kernel keeps them in a record, which is empty first, to which single clusters or other records are
added, and which is finally written to the row.  The functions have one source for the CPU, for CUDA
and for exact integers of Python; they are made for each type of number, since one function for all
types would widen uint32.

A new number is a field of :class:`ClusterSums` and its terms in all functions of :func:`sums_in`
but ``put``, and a column (:mod:`percolab.measure.columns`).  Where a term is missing nothing
compiles.  Numbers that only grow by addition are nothing else; another rule, as the two largest
have, needs a way to be added up by the threads of a block as well
(:func:`percolab.measure.rows_cuda.add_atomically`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba import int64, uint32, uint64

from percolab.kernels.inner import inner


class ClusterSums(NamedTuple):
    """The sums over clusters.

    clusters:       the number of clusters
    largest:        sites of the largest, 0 if there is none
    second_largest: sites of the second largest, 0 if there is none
    sum_squares:    sum of the squared sizes, modulo the range of its type
    isolated:       the number of clusters of one site
    """

    clusters: Any
    largest: Any
    second_largest: Any
    sum_squares: Any
    isolated: Any


FIELDS = ClusterSums._fields
NUMBERS = len(FIELDS)
#: The numbers of a row by name: these, and the flags of spanning and wrapping.
ROW = (*FIELDS, "spanning")
#: The numbers that are added when disjoint sets of clusters are merged: all but the two largest.
ADDED = tuple(n for n, name in enumerate(FIELDS) if "largest" not in name)


class Arithmetic(NamedTuple):
    """The functions of :func:`sums_in`."""

    empty: Callable[..., Any]
    with_cluster: Callable[..., Any]
    merged: Callable[..., Any]
    replaced: Callable[..., Any]
    put: Callable[..., Any]
    take: Callable[..., Any]


def sums_in(number: Any, compiled: Callable[..., Any] = inner) -> Arithmetic:
    """Return the arithmetic of records whose numbers are of one type.

    number: int64, uint32 or uint64, or Python's int.  compiled: the decorator of the functions.
    """

    @compiled
    def empty():
        """Return the sums over no clusters."""
        none = number(0)
        return ClusterSums(none, none, none, none, none)

    @compiled
    def with_cluster(sums, size):
        """Return the sums over one more cluster; a cluster of size 0 changes nothing."""
        # There is no branch, as half of them would be mispredicted.
        return ClusterSums(
            number(sums.clusters + number(size > number(0))),
            max(sums.largest, size),
            max(sums.second_largest, min(sums.largest, size)),
            number(sums.sum_squares + number(size * size)),
            number(sums.isolated + number(size == number(1))),
        )

    @compiled
    def merged(one, other):
        """Return the sums over the union of two disjoint sets of clusters."""
        second = max(one.second_largest, other.second_largest)
        return ClusterSums(
            number(one.clusters + other.clusters),
            max(one.largest, other.largest),
            max(second, min(one.largest, other.largest)),
            number(one.sum_squares + other.sum_squares),
            number(one.isolated + other.isolated),
        )

    @compiled
    def replaced(sums, large, small):
        """Return (sums after two clusters became one, whether the second largest is now unknown).

        large, small: their sizes, at least 1.  If it is unknown, :func:`find_second` finds it.
        """
        joined = number(large + small)
        largest, second, is_lost = sums.largest, sums.second_largest, False
        if joined > largest:
            if large == largest:
                is_lost = small == second
            else:
                second = largest
            largest = joined
        else:
            second = max(second, joined)
        arithmetic = ClusterSums(
            number(sums.clusters - number(1)),
            largest,
            second,
            number(sums.sum_squares + number(number(2) * number(large * small))),
            number(sums.isolated - number(number(large == number(1)) + number(small == number(1)))),
        )
        return arithmetic, is_lost

    @compiled
    def put(numbers, first, step, sums):
        """Write the sums to ``first``, ``first + step``, ... of an array."""
        for n in range(NUMBERS):
            numbers[first + n * step] = sums[n]

    @compiled
    def take(numbers, first, step):
        """Return the sums that :func:`put` has written, with numbers of any type."""
        return ClusterSums(
            number(numbers[first]),
            number(numbers[first + step]),
            number(numbers[first + 2 * step]),
            number(numbers[first + 3 * step]),
            number(numbers[first + 4 * step]),
        )

    return Arithmetic(empty, with_cluster, merged, replaced, put, take)


SUMS, SUMS32, SUMS64 = sums_in(int64), sums_in(uint32), sums_in(uint64)
#: The same with integers of Python, of any length.
EXACT_SUMS = sums_in(int, lambda function: function)


@inner
def find_second(sizes, count, largest):
    """Return the second largest of the first ``count`` sizes, given the largest; 0 if none."""
    second, seen = int64(0), int64(0)
    # There is no branch, so that the compiler can vectorize the loop.
    for n in range(count):
        size = int64(sizes[n])
        seen += int64(size == largest)
        second = max(second, size if size != largest else int64(0))
    return largest if seen > 1 else second
