"""Groups of neighbouring blocks, so that the file of a long study stays small.

A group is 2^k neighbouring blocks that are added up to one; the number of its first block is a
multiple of 2^k.  Every block is in the largest group that there can be of at most 2^K blocks, where
K is the smallest with ceil(blocks / 2^K) <= ``most``.  A group needs both of its halves, and each
of its integers 64 bits.  So groups follow from which blocks a task has, in whatever order they
came; K never falls, and those of a part of a study are groups of the whole study, too.

Floats are added in pairs, first half to second, so that each sum is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from percolab.tasks.blocks import AnyBlock


def largest_group(blocks: int, most: int) -> int:
    """Return 2^K: how many blocks the largest groups have of a task with so many blocks.

    >>> [largest_group(blocks, 4) for blocks in (0, 4, 5, 8, 9, 4000)]
    [1, 1, 2, 2, 4, 1024]
    """
    return 1 << (max(-(-blocks // most), 1) - 1).bit_length()


def group_neighbours(blocks: dict[int, AnyBlock], numbers: Iterable[int], largest: int) -> None:
    """Add up neighbours in place until no groups of at most ``largest`` blocks are left to form.

    blocks: that hold sums, by their first numbers; all but those with these numbers are in groups
    already.
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


def _add_up(first: Any, second: Any, *, count: int) -> AnyBlock | None:
    """Return two halves of so many blocks each as one; None if one lacks, or they do not fit."""
    if any(half is None or half.count != count for half in (first, second)):
        return None
    others, arrays = second.arrays, {}
    for name, own in first.arrays.items():
        total = own + others[name]
        if own.dtype.kind == "i" and np.any((own ^ total) & (others[name] ^ total) < 0):
            return None
        arrays[name] = total
    whole: AnyBlock = first.with_arrays(arrays, 2 * count)
    return whole
