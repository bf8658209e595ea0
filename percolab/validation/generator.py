"""The random numbers: known outputs, the definition of an open bond, and uniformity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.keys import GOLDEN, mix64
from percolab.bonds.philox import philox_block
from percolab.bonds.words import GENERATORS, p_to_threshold, uniform_number
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.bonds.xorwow import xorwow_next
from percolab.lattices.topology import unpack_bits
from percolab.validation.check import Check, Conditions, Outcome, as_normal, differing

#: cuRAND 13.0's XORWOW: the state after curand_init, v and d, and the next outputs of curand();
#: by (seed, subsequence, offset), read off an NVIDIA H200.
CURAND_XORWOW = {
    (0, 0, 0): (
        (1478573778, 1163863128, 4171507460, 3705206908, 1360900310, 716983765),
        (3179217846, 1883133293, 2220552389, 674260989),
    ),
    (0, 0, 1000003): (
        (1136773509, 121298949, 837046388, 3390407312, 1425274207, 2377818212),
        (2086573228, 2586442925, 441615271, 3675492960),
    ),
}

#: SplitMix64 from seed 1234567, the first outputs of its reference implementation (Vigna 2015).
SPLITMIX64_SEED = 1234567
SPLITMIX64 = (6457827717110365317, 3203168211198807973, 9817491932198370423)

#: Random123's known answers (kat_vectors) for Philox 4x32-10: counter, key, output.
PHILOX = (
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)

#: Short and long binary expansions: one digit decides at 1/2, many elsewhere.
_P = (0.5, 0.3472963553338607, 0.9)
_WORDS = 2**16


def _known_outputs(conditions: Conditions) -> Iterator[Outcome]:
    wrong = 0
    for state, outputs in CURAND_XORWOW.values():
        words = tuple(np.uint32(word) for word in state)
        for output in outputs:
            drawn, *rest = xorwow_next(*words)
            words = tuple(np.uint32(word) for word in rest)
            wrong += int(drawn) != output
    yield differing("XORWOW outputs unlike cuRAND's", wrong)
    starts = [(SPLITMIX64_SEED + n * GOLDEN) % 2**64 for n in (1, 2, 3)]
    wrong = sum(int(mix64(np.uint64(z))) != known for z, known in zip(starts, SPLITMIX64))
    yield differing("SplitMix64 outputs unlike the reference's", wrong)
    wrong = 0
    for counter, key, known in PHILOX:
        outputs = philox_block(*(np.uint32(word) for word in (*counter, *key)))
        wrong += sum(int(output) != word for output, word in zip(outputs, known))
    yield differing("Philox outputs unlike Random123's", wrong)


def _definition(conditions: Conditions) -> Iterator[Outcome]:
    """A bond is open where its uniform number, made digit by digit, is below p."""
    count, sample = 40, np.uint64(3)
    seed = np.uint64(conditions.stream_seed("definition"))
    exists, opened = np.full(count, 2**32 - 1, np.uint32), np.empty(count, np.uint32)
    for rng, generator in GENERATORS.items():
        bits = ((np.uint32(word), np.uint32(bit)) for word in range(count) for bit in range(32))
        numbers = np.array(
            [uniform_number(generator, seed, sample, *bit) for bit in bits], np.uint64
        )
        wrong = 0
        for p in (0.0, *_P, float(numbers[7]) / 2**63, 1.0):
            limit = np.uint64(p_to_threshold(p))
            fill_open_bonds(generator, seed, sample, limit, np.uint64(0), exists, opened)
            wrong += int(np.sum(unpack_bits(opened, 32 * count) != (numbers < limit)))
        yield differing(f"open bonds unlike u < p, {rng}", wrong)


@dataclass
class _Counts:
    """Open bonds of many words, counted in all ways that are tested.

    of_word: words by the number of their open bonds.  of_bit: open bonds by place in the word.
    neighbours: bonds open in both of two neighbouring words; in_next: in the same word of two
    successive samples.
    """

    words: int = 0
    of_word: NDArray[np.int64] = field(default_factory=lambda: np.zeros(33, np.int64))
    of_bit: NDArray[np.int64] = field(default_factory=lambda: np.zeros(32, np.int64))
    neighbours: int = 0
    in_next: int = 0

    def add(self, pair: NDArray[np.uint32]) -> None:
        is_open = unpack_bits(pair.ravel(), 32 * pair.size).reshape(-1, 32)
        self.words += pair.size
        self.of_word += np.bincount(is_open.sum(axis=1), minlength=33)
        self.of_bit += is_open.sum(axis=0)
        self.neighbours += int(np.bitwise_count(pair[:, 0::2] & pair[:, 1::2]).sum(dtype=np.int64))
        self.in_next += int(np.bitwise_count(pair[0] & pair[1]).sum(dtype=np.int64))


def _uniformity(conditions: Conditions) -> Iterator[Outcome]:
    for rng, p in product(GENERATORS, _P):
        yield from _list_tests(_count(conditions, rng, p), f"p = {p:.4g}, {rng}", p)


def _count(conditions: Conditions, rng: str, p: float) -> _Counts:
    counts, seed = _Counts(), np.uint64(conditions.stream_seed("uniformity", rng, p))
    exists, limit = np.full(_WORDS, 2**32 - 1, np.uint32), np.uint64(p_to_threshold(p))
    pair = np.empty((2, _WORDS), np.uint32)
    for first in range(0, conditions.count(quick=16, full=512), 2):
        for n, opened in enumerate(pair):
            sample = np.uint64(first + n)
            fill_open_bonds(GENERATORS[rng], seed, sample, limit, np.uint64(0), exists, opened)
        counts.add(pair)
    return counts


def _list_tests(counts: _Counts, case: str, p: float) -> Iterator[Outcome]:
    from scipy.stats import binom

    every = counts.words * binom.pmf(np.arange(33), 32, p)
    counted, expected = _merged(counts.of_word, every)
    chi_square = float(np.sum((counted - expected) ** 2 / expected))
    yield as_normal(f"open bonds a word, {case}", chi_square, counted.size - 1)
    # A bit has two cells, open and not.
    spread = counts.words * p * (1 - p)
    of_bit = np.sum((counts.of_bit - counts.words * p) ** 2) / spread
    yield as_normal(f"each bond of a word, {case}", float(of_bit), 32)
    pairs, both = 16 * counts.words, p * p
    sigma = float(np.sqrt(both * (1 - both) / pairs))
    for name, count in (("words", counts.neighbours), ("samples", counts.in_next)):
        yield Outcome(f"open in both of two {name}, {case}", count / pairs, both, sigma)


def _merged(
    counted: NDArray[np.int64], expected: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return counts with the cells of both tails merged until each expects at least ten."""
    inner = np.flatnonzero(expected >= 10)
    cells = np.clip(np.arange(expected.size), inner[0], inner[-1]) - inner[0]
    sums = np.bincount(cells, counted.astype(float)), np.bincount(cells, expected)
    return np.asarray(sums[0], np.float64), np.asarray(sums[1], np.float64)


CHECKS = (
    Check("generator", "known outputs", _known_outputs),
    Check("generator", "open bonds by definition", _definition),
    Check("generator", "uniformity", _uniformity),
)
