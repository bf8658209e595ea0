"""Part k of n of a study: every n-th block of every task, for job arrays (``--part k/n``).

A block is a pure function of its number, so that parts need know nothing of each other, and their
files merged are the undivided run's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from percolab.errors import InputError
from percolab.lattices.toml_table import shown


@dataclass(frozen=True)
class JobPart:
    """The blocks whose number leaves k - 1 when divided by n: part k of n, 1 <= k <= n.

    >>> part = JobPart.parse("2/4")
    >>> str(part), list(part.below(10)), part.count(10)
    ('2/4', [1, 5, 9], 3)
    """

    k: int
    n: int

    @classmethod
    def parse(cls, text: Any) -> JobPart:
        """Read "k/n"; InputError otherwise."""
        first, _, second = text.partition("/") if isinstance(text, str) else ("", "", "")
        # Longer ones are no numbers of machines.
        if not all(word.isascii() and word.isdecimal() and len(word) < 10
                   for word in (first, second)):  # fmt: skip
            raise InputError(f"part = {shown(text)}, but a part is k/n, as in 3/16")
        if not 1 <= int(first) <= int(second):
            raise InputError(f"part = {text}: of n parts k is the first, 1, to the last, n")
        return cls(int(first), int(second))

    def has(self, number: int) -> bool:
        """Return whether a block is of this part."""
        return number % self.n == self.k - 1

    def below(self, count: int) -> range:
        """Return the numbers of its blocks among the first ``count`` ones."""
        return range(self.k - 1, count, self.n)

    def count(self, blocks: int) -> int:
        """Return how many of the first ``blocks`` blocks are of this part."""
        return max(-(-(blocks - self.k + 1) // self.n), 0)

    def __str__(self) -> str:
        return f"{self.k}/{self.n}"


#: All blocks.
WHOLE = JobPart(1, 1)
