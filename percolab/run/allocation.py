"""Where the next samples lower the error of p_c most for what they cost.

The information of a study is the sum over its tasks of samples times the information of one
sample; the variance of p_c is an element of its inverse.  It is convex in the numbers of samples,
so adding a little at a time where it falls fastest for the cost ends near the best division: the
c-optimal design of G. Elfving, Ann. Math. Stat. 23, 255 (1952).

The best division leaves sizes out: as many sizes as the fit has parameters of size are enough for a
fit that is taken for granted.  The others are what can contradict it, so a part of the cost goes to
all sizes in equal shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Part of the cost that goes to all sizes equally, whatever they tell about p_c.
EQUAL_SHARE = 0.25
# A round's cost is handed out in about so many pieces.
_PIECES = 50


@dataclass(frozen=True, eq=False)
class Choice:
    """A size that more samples can be spent on.

    information: of one sample, float64 (k, k).  cost: of one sample.  block: samples that come
    together.  samples: those it has.  limit: those it may have.
    """

    information: Floats
    cost: float
    block: int
    samples: int
    limit: float = float("inf")


def allocate(choices: list[Choice], fixed: Floats, total_cost: float) -> list[int]:
    """Return the samples that each size should have once all have cost ``total_cost``.

    None has fewer than before, none more than its limit; what is added comes in whole blocks, and
    the cost is passed by less than a piece of it.  fixed: information of samples that are there
    and cost nothing, float64 (k, k).  At least one block is added where the limits allow.
    """
    samples = [choice.samples for choice in choices]
    spent = sum(choice.cost * n for choice, n in zip(choices, samples))
    piece = max(total_cost - spent, 0.0) / _PIECES
    while True:
        open_ = [i for i, choice in enumerate(choices) if samples[i] < choice.limit]
        if not open_:
            return samples
        chosen = _poorest(choices, samples, open_, spent)
        if chosen is None:
            chosen = _steepest(choices, samples, open_, fixed)
        choice = choices[chosen]
        blocks = max(round(piece / (choice.cost * choice.block)), 1)
        more = int(min(samples[chosen] + blocks * choice.block, choice.limit))
        spent += choice.cost * (more - samples[chosen])
        samples[chosen] = more
        if spent >= total_cost:
            return samples


def _poorest(
    choices: list[Choice], samples: list[int], among: list[int], spent: float
) -> int | None:
    """Return the size with the least cost so far, if that is below its equal share, or None."""
    costs = [choices[i].cost * samples[i] for i in among]
    least = int(np.argmin(costs))
    return among[least] if costs[least] < EQUAL_SHARE * spent / len(choices) else None


def _steepest(choices: list[Choice], samples: list[int], among: list[int], fixed: Floats) -> int:
    """Return the size where the variance of p_c falls fastest for the cost."""
    total = fixed + sum(choice.information * n for choice, n in zip(choices, samples))
    # d variance / d samples = - v' I v with v the first column of the covariance.
    first = np.linalg.pinv(total, hermitian=True)[0]
    falls = [first @ choices[i].information @ first / choices[i].cost for i in among]
    return among[int(np.argmax(falls))]
