"""Groups of neighbouring blocks, so that the file of a long study stays small.

A group is 2^k neighbouring blocks that are added up to one; the number of its first block is a
multiple of 2^k.  Every block is in the largest group that there can be of at most 2^K blocks, where
K is the smallest with ceil(blocks / 2^K) <= ``most``.  A group needs both of its halves, and each
of its integers 64 bits.  So groups follow from which blocks a task has, in whatever order they
came; K never falls, and those of a part of a study are groups of the whole study, too.

Floats are added in pairs, first half to second, so that each sum is the same on every machine.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def largest_group(blocks: int, most: int) -> int:
    """Return 2^K: how many blocks the largest groups have of a task with so many blocks.

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
    """Return two halves of so many blocks each as one; None if one lacks, or they do not fit."""
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


def group_arrays(
    numbers: Sequence[int], arrays: dict[str, NDArray[Any]], largest: int
) -> tuple[list[int], list[int], dict[str, NDArray[Any]]]:
    """Add up neighbours as :func:`group_neighbours` does, all blocks of a call at once.

    numbers: of the blocks, ascending.  arrays: what they hold, (n_blocks, ...) by name.
    Returns the numbers of the groups' first blocks, how many blocks each has, and their arrays.
    """
    firsts, counts, count = np.array(numbers, np.int64), np.ones(len(numbers), np.int64), 1
    while 2 * count <= largest:
        is_alike = (counts[:-1] == count) & (counts[1:] == count)
        is_pair = (firsts[:-1] & count == 0) & (firsts[1:] == firsts[:-1] + count)
        (pairs,) = np.nonzero(is_alike & is_pair)
        totals = {name: _add_exactly(own[pairs], own[pairs + 1]) for name, own in arrays.items()}
        if not len(pairs) or any(total is None for total in totals.values()):
            break
        is_kept = np.ones(len(firsts), bool)
        is_kept[pairs + 1] = False
        counts[pairs] = 2 * count
        places = np.cumsum(is_kept)[pairs] - 1
        firsts, counts = firsts[is_kept], counts[is_kept]
        arrays = {name: own[is_kept] for name, own in arrays.items()}
        for name, total in totals.items():
            arrays[name][places] = total
        count *= 2
    return firsts.tolist(), counts.tolist(), arrays
