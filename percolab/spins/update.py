"""Updates: which clusters of a sweep get new spins, and how these are chosen.

* ``sw``: every cluster gets one of the q spins, all equally likely (Swendsen and Wang).
* ``wolff``: the cluster of one site, chosen at random, gets a different spin (Wolff).
* ``few:k,flip=f``: the clusters of k sites, chosen at random, each get a different spin with
  probability f, and only once if several of the sites are in it.  With f = 1 this would not be
  ergodic (Weigel, Phys. Rev. E 84, 036709 (2011), section III), so f is below 1.

A step is one update: updating until a number of spins has changed would prefer large clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from percolab.bonds.words import TOP, p_to_threshold
from percolab.errors import InputError, nearest

UPDATES = ("sw", "wolff", "few")
_MOST_SEEDS = 2**20


class UpdateRule(NamedTuple):
    """The parameters of an update, for kernels."""

    states: np.uint32  # q, uint32
    planes: np.uint32  # number of bit planes of spins, uint32
    seeds: np.uint32  # number of chosen sites, uint32; 0: every cluster gets a new spin
    by_word: np.uint32  # whether new spins are random binary digits, drawn by words, uint32
    flip: np.uint64  # threshold of the probability that a chosen cluster changes, uint64


def count_planes(states: int) -> int:
    """Return the number of bit planes of spins with this number of states.

    >>> [count_planes(q) for q in (2, 3, 4, 5, 256)]
    [1, 2, 2, 3, 8]
    """
    return (states - 1).bit_length()


@dataclass(frozen=True)
class Update:
    """An update by name, with the number of chosen sites and the probability of a change.

    >>> str(Update.parse("few:8,flip=.5"))
    'few:8,flip=0.5'
    """

    name: str = "sw"
    seeds: int = 0
    flip: float = 1.0

    @classmethod
    def parse(cls, text: str) -> Update:
        """Read "sw", "wolff" or "few:k,flip=f"; InputError otherwise."""
        name, colon, rest = str(text).partition(":")
        if name not in UPDATES:
            raise InputError(f"unknown update {text!r}; {nearest(name, UPDATES)}")
        if name != "few":
            if colon:
                raise InputError(f"update {text!r}: {name} has no options")
            return cls(name, int(name == "wolff"))
        count, _, last = rest.partition(",")
        key, _, number = last.partition("=")
        try:
            flip = float(number) if last else 0.5
        except ValueError:
            flip = 0.0
        is_known = count.strip().isdecimal() and (not last or key.strip() == "flip")
        if not is_known or not 0 < flip < 1 or not 1 <= int(count) <= _MOST_SEEDS:
            raise InputError(
                f"update {text!r}, but it must be like few:8,flip=0.5: from 1 to {_MOST_SEEDS} "
                "clusters, and a probability above 0 and below 1"
            )
        return cls(name, int(count), flip)

    def rule(self, states: int) -> UpdateRule:
        """Return the parameters for kernels, for spins with this number of states."""
        flip = TOP if self.flip == 1.0 else p_to_threshold(self.flip)
        planes = count_planes(states)
        return UpdateRule(
            states=np.uint32(states),
            planes=np.uint32(planes),
            seeds=np.uint32(self.seeds),
            by_word=np.uint32(states == 1 << planes and not self.seeds),
            flip=np.uint64(flip),
        )

    def __str__(self) -> str:
        if self.name != "few":
            return self.name
        return f"few:{self.seeds},flip={self.flip!r}"
