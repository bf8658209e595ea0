"""Groups of neighbouring blocks, so that the file of a long study stays small.

A group is 2^k neighbouring blocks that are added up to one; the number of its first block is a
multiple of 2^k.  Every block is in the largest possible group of at most 2^K blocks, where K is the
smallest with ceil(blocks / 2^K) <= ``most``.  A group needs both of its halves, and its integers
must fit in 64 bits.  So groups follow from which blocks a task has, in whatever order these
came; K never falls, and those of a part of a study are groups of the whole study, too.

Floats are added in pairs, first half to second, so that each sum is the same on every machine.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def largest_group(blocks: int, most: int) -> int:
    """Return 2^K, the number of blocks in the largest groups of a task with ``blocks`` blocks.

    >>> [largest_group(blocks, 4) for blocks in (0, 4, 5, 8, 9, 4000)]
    [1, 1, 2, 2, 4, 1024]
    """
    return 1 << (max(-(-blocks // most), 1) - 1).bit_length()


def group_neighbours(blocks: dict[int, Any], numbers: Iterable[int], largest: int) -> None:
    """Add up neighbours in place until no groups of at most ``largest`` blocks are left to form.

    blocks: that hold sums (:mod:`percolab.tasks.blocks`), by their first numbers; all but those
    with these numbers are in groups already.
    """
    for number in numbers:
        block = blocks.get(number)
        while block is not None and 2 * block.count <= largest:
            count = block.count
            first = block.number & -(2 * count)
            halves = blocks.get(first), blocks.get(first + count)
            block = _add_up(*halves, count=count)
            if block is not None:
                del blocks[first + count]
                blocks[first] = block


def _add_up(first: Any, second: Any, *, count: int) -> Any:
    """Return two halves of ``count`` blocks as one; None if one is missing, or sums do not fit."""
    if any(half is None or half.count != count for half in (first, second)):
        return None
    others, arrays = second.arrays, {}
    for name, own in first.arrays.items():
        total = _add_exactly(own, others[name])
        if total is None:
            return None
        arrays[name] = total
    return first.with_arrays(arrays, 2 * count)


def _add_exactly(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any] | None:
    """Return the sum of two arrays, or None where an integer does not fit in 64 bits."""
    total: NDArray[Any] = first + second
    is_integer = first.dtype.kind == "i"
    return None if is_integer and np.any((first ^ total) & (second ^ total) < 0) else total


def find_groups(numbers: Sequence[int], largest: int) -> NDArray[np.int64]:
    """Return where groups of at most ``largest`` blocks begin, and the end, int64 (groups + 1,).

    numbers: of blocks, ascending; a group is the longest run of 2^k neighbours from its first on
    whose number is a multiple of 2^k.  largest: a power of two.

    >>> find_groups([5, 6, 7, 8, 9, 10, 11], 4).tolist()
    [0, 1, 3, 7]
    """
    begins, gaps = [0], []
    if not isinstance(numbers, range):
        gaps = (np.flatnonzero(np.diff(numbers) != 1) + 1).tolist()
    for end in (*gaps, len(numbers)):
        while (begin := begins[-1]) < end:
            first = int(numbers[begin])
            count = min(first & -first or largest, largest)
            while begin + count > end:
                count //= 2
            begins.append(begin + count)
    return np.array(begins, np.int64)


def number_array(numbers: Sequence[int]) -> NDArray[np.int64]:
    """Return numbers of blocks as an array, int64; NumPy would read a range one by one."""
    if isinstance(numbers, range):
        return np.arange(numbers.start, numbers.stop, numbers.step)
    return np.array(numbers, np.int64)


def group_arrays(
    numbers: Sequence[int], arrays: dict[str, NDArray[Any]], largest: int
) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
    """Add up neighbours as :func:`group_neighbours` does, all blocks of a call at once.

    numbers: of the blocks, ascending.  arrays: what they hold, (n_blocks, ...) by name.
    Returns where groups begin, as :func:`find_groups` does, and their arrays.
    """
    begins = find_groups(numbers, largest)
    try:
        return begins, {name: add_groups(own, begins) for name, own in arrays.items()}
    except OverflowError:
        return group_arrays(numbers, arrays, largest // 2)


def add_groups(array: NDArray[Any], begins: NDArray[np.int64]) -> NDArray[Any]:
    """Return an array's sums over groups, (groups, ...); OverflowError if an integer is too large.

    array: (n_blocks, ...).  begins: as :func:`find_groups` returns it.
    """
    sizes = np.repeat(np.diff(begins), np.diff(begins))
    places, half = np.arange(len(array)) - np.repeat(begins[:-1], np.diff(begins)), 1
    totals = array
    while half < sizes.max(initial=1):
        (first,) = np.nonzero((sizes > half) & (places % (2 * half) == 0))
        both = _add_exactly(totals[first], totals[first + half])
        if both is None:
            raise OverflowError("the sum of a group does not fit in 64 bits")
        totals = array.copy() if totals is array else totals
        totals[first] = both
        half *= 2
    return totals[begins[:-1]]
