"""Are the 32 bonds of a word independent of one another?  All pairs and triples of them.

A correlation of two bonds of a word is seen only in these two: sample version 1 had correlations of
2e-3, which 2^26 words show at 17 sigma (docs/randomness.md).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.validation.check import Check, Conditions, Outcome, as_normal, largest_as_normal
from percolab.validation.lane_counts import count_lanes

#: 1/3, and p of many digits: of the triangular and the honeycomb lattice nearly p_c.
P = (0.120164, 1 / 3, 0.652704)
_WORDS = 2**14
_PIECES = _WORDS // 32

Fill = Callable[[int, NDArray[np.uint32]], None]


def _count(
    fill: Fill, samples: range
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return how often one, two and three bonds are open in the first words of some samples."""
    words = np.empty(_WORDS, np.uint32)
    columns, both = np.empty((32, _PIECES), np.uint32), np.empty(_PIECES, np.uint32)
    one, two = np.zeros(32, np.int64), np.zeros((32, 32), np.int64)
    three = np.zeros((32, 32, 32), np.int64)
    for sample in samples:
        fill(sample, words)
        count_lanes(words, columns, both, one, two, three)
    return one, two, three


def lane_deviates(
    fill: Fill, num_words: int, p: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return z of all pairs and triples of bonds; fill: writes the words of a sample."""
    workers = os.cpu_count() or 1
    samples = range(math.ceil(num_words / _WORDS))
    parts = [samples[n::workers] for n in range(workers)]
    with ThreadPoolExecutor(workers) as executor:
        counts = list(executor.map(lambda part: _count(fill, part), parts))
    one, two, three = (sum(arrays) / 1.0 for arrays in zip(*counts, strict=True))
    n, q = len(samples) * _WORDS, 1 - p
    i, j = np.triu_indices(32, 1)
    pairs = (two[i, j] - p * (one[i] + one[j]) + n * p * p) / (math.sqrt(n) * p * q)
    i, j, m = np.array([(i, j, m) for i in range(32) for j in range(i) for m in range(j)]).T
    twos = two[j, i] + two[m, i] + two[m, j]
    moments = three[m, j, i] - p * twos + p * p * (one[i] + one[j] + one[m]) - n * p**3
    return pairs, moments / (math.sqrt(n) * (p * q) ** 1.5)


def _filled(generator: int, seed: int, p: float) -> Fill:
    exists, limit = np.full(_WORDS, 2**32 - 1, np.uint32), np.uint64(p_to_threshold(p))

    def fill(sample: int, words: NDArray[np.uint32]) -> None:
        key = np.uint64(seed), np.uint64(sample)
        fill_open_bonds(generator, *key, limit, np.uint64(0), exists, words)

    return fill


def lane_outcomes(fill: Fill, num_words: int, p: float, case: str) -> Iterator[Outcome]:
    for name, z in zip(("pairs", "triples"), lane_deviates(fill, num_words, p), strict=True):
        yield as_normal(f"{name} of bonds, {case}", float(np.sum(z * z)), z.size)
        yield largest_as_normal(f"largest of {name} of bonds, {case}", z)


def _lanes(conditions: Conditions) -> Iterator[Outcome]:
    count = conditions.count(quick=2**26, full=2**27)
    for (rng, generator), p in product(GENERATORS.items(), P):
        fill = _filled(generator, conditions.stream_seed("lanes", rng, p), p)
        yield from lane_outcomes(fill, count, p, f"p = {p:.4g}, {rng}")


CHECKS = (Check("generator", "pairs and triples of bonds", _lanes),)
