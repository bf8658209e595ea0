"""Part k of n of a study: every n-th run of blocks of every task, for job arrays (``--part k/n``).

Parts need not know of each other, and their files merge to that of the undivided study.  A run is
one block at first, from block 2048 on two neighbours, from 4096 on four, ..., so that the file of a
part has groups of blocks as well (:mod:`percolab.tasks.groups`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as count_from
from typing import Any

from percolab.errors import InputError
from percolab.lattices.toml_table import shown

#: Runs of blocks of one length, of which there are twice as many at first.
_RUNS = 1024


@dataclass(frozen=True)
class JobPart:
    """The blocks of the runs whose number leaves k - 1 when divided by n, 1 <= k <= n.

    >>> part = JobPart.parse("2/4")
    >>> str(part), list(part.runs(10)), part.count(10)
    ('2/4', [range(1, 2), range(5, 6), range(9, 10)], 3)
    """

    k: int
    n: int

    @classmethod
    def parse(cls, text: Any) -> JobPart:
        first, _, second = text.partition("/") if isinstance(text, str) else ("", "", "")
        # Longer words are no numbers of machines.
        if not all(word.isascii() and word.isdecimal() and len(word) < 10
                   for word in (first, second)):  # fmt: skip
            raise InputError(f"part = {shown(text)}, but a part is k/n, as in 3/16")
        if not 1 <= int(first) <= int(second):
            raise InputError(f"part = {text}, but in k/n k must be from 1 to n")
        return cls(int(first), int(second))

    def has(self, number: int) -> bool:
        level = max((number // _RUNS).bit_length() - 1, 0)
        return (number >> level) % self.n == self.k - 1

    def count(self, blocks: int) -> int:
        """Return how many of the first ``blocks`` blocks are of this part."""
        return blocks if self.n == 1 else sum(map(len, self.runs(blocks)))

    def runs(self, end: int) -> Iterator[range]:
        """Yield the runs of this part, as far as their blocks are below ``end``, ascending."""
        if self.n == 1:
            yield range(end)
            return
        for level in count_from():
            first, last = _RUNS << level if level else 0, min(end, _RUNS << (level + 1))
            if first >= end:
                return
            start = first >> level
            own = range(start + (self.k - 1 - start) % self.n, -(-last >> level), self.n)
            yield from (range(run << level, min((run + 1) << level, last)) for run in own)

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"


#: All blocks.
WHOLE = JobPart(1, 1)
