"""Random numbers: known outputs, the definition of an open bond, uniformity, independence."""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.keys import GOLDEN, mix64
from percolab.bonds.philox import philox_block
from percolab.bonds.words import GENERATORS, p_to_threshold, uniform_number
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.bonds.xorwow import xorwow_next
from percolab.lattices.topology import pack_bits, unpack_bits
from percolab.run.executors import usable_cores
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    as_normal,
    differing,
    in_threads,
    largest_as_normal,
)
from percolab.validation.lane_counts import count_lanes

#: cuRAND 13.0's XORWOW: the state after curand_init, v and d, and the next outputs of curand();
#: by (seed, subsequence, offset), as computed by an NVIDIA H200.
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
#: For pairs and triples: 1/3, and p of many digits close to p_c of the triangular and the honeycomb
#: lattice; and the number of words of a sample.
P_OF_LANES, _LANE_WORDS = (0.120164, 1 / 3, 0.652704), 2**14


#: A function that writes the words of a sample, uint32 (words,).
Fill = Callable[[int, NDArray[np.uint32]], None]


def make_fill(rng: str, seed: int, p: float, words: int) -> Fill:
    """Return a function that draws a sample of this number of words of open bonds."""
    exists, limit = np.full(words, 2**32 - 1, np.uint32), np.uint64(p_to_threshold(p))

    def fill(sample: int, opened: NDArray[np.uint32]) -> None:
        key = np.uint64(seed), np.uint64(sample)
        fill_open_bonds(GENERATORS[rng], *key, limit, np.uint64(0), exists, opened)

    return fill


def _xorwow_outputs(state: tuple[int, ...], count: int) -> list[int]:
    outputs, words = [], tuple(np.uint32(word) for word in state)
    for _ in range(count):
        drawn, *rest = xorwow_next(*words)
        words = tuple(np.uint32(word) for word in rest)
        outputs.append(int(drawn))
    return outputs


def _known_outputs(conditions: Conditions) -> Iterator[Outcome]:
    starts = [(SPLITMIX64_SEED + n * GOLDEN) % 2**64 for n in (1, 2, 3)]
    compared: dict[str, list[tuple[Any, Any]]] = {
        "XORWOW outputs unlike cuRAND's": [
            (_xorwow_outputs(state, len(known)), known) for state, known in CURAND_XORWOW.values()
        ],
        "SplitMix64 outputs unlike the reference's": [
            ([int(mix64(np.uint64(z))) for z in starts], SPLITMIX64)
        ],
        "Philox outputs unlike Random123's": [
            (philox_block(*(np.uint32(word) for word in (*counter, *key))), known)
            for counter, key, known in PHILOX
        ],
    }
    for name, pairs in compared.items():
        yield differing(name, sum(int(np.sum(np.not_equal(*pair))) for pair in pairs))


def _definition(conditions: Conditions) -> Iterator[Outcome]:
    """Check that a bond is open if its uniform number, made digit by digit, is below p."""
    count, sample = 40, 3
    seed, opened = conditions.stream_seed("definition"), np.empty(40, np.uint32)
    for rng, generator in GENERATORS.items():
        bits = ((np.uint32(word), np.uint32(bit)) for word in range(count) for bit in range(32))
        key = generator, np.uint64(seed), np.uint64(sample)
        numbers = np.array([uniform_number(*key, *bit) for bit in bits], np.uint64)
        wrong = 0
        for p in (0.0, *_P, float(numbers[7]) / 2**63, 1.0):
            make_fill(rng, seed, p, count)(sample, opened)
            are_below = numbers < np.uint64(p_to_threshold(p))
            wrong += int(np.sum(unpack_bits(opened, 32 * count) != are_below))
        yield differing(f"open bonds unlike u < p, {rng}", wrong)


def _count(pair: NDArray[np.uint32]) -> tuple[Any, ...]:
    """Return counts for the words of two successive samples, uint32 (2, words).

    They are: words by number of open bonds; open bonds by place in the word; bonds open in both of
    two neighbouring words; and bonds open in the same word of both samples.
    """
    is_open = unpack_bits(pair.ravel(), 32 * pair.size).reshape(-1, 32)
    neighbours, in_next = pair[:, 0::2] & pair[:, 1::2], pair[0] & pair[1]
    both = (int(np.bitwise_count(each).sum(dtype=np.int64)) for each in (neighbours, in_next))
    return np.bincount(is_open.sum(axis=1), minlength=33), is_open.sum(axis=0), *both


def _uniformity(conditions: Conditions) -> Iterator[Outcome]:
    from scipy.stats import binom

    for rng, p in product(GENERATORS, _P):
        seed = conditions.stream_seed("uniformity", rng, p)
        fill, pair = make_fill(rng, seed, p, _WORDS), np.empty((2, _WORDS), np.uint32)
        parts = []
        for sample in range(conditions.count(quick=16, full=512)):
            fill(sample, pair[sample % 2])
            if sample % 2:
                parts.append(_count(pair))
        by_open, by_place, *in_both = (sum(counts) for counts in zip(*parts))
        words, case = _WORDS * 2 * len(parts), f"p = {p:.4g}, {rng}"
        expected = words * binom.pmf(np.arange(33), 32, p)
        # Cells in both tails are merged so that at least ten words are expected in each.
        inner = np.flatnonzero(expected >= 10)
        cells = np.clip(np.arange(33), inner[0], inner[-1]) - inner[0]
        counted, expected = (np.bincount(cells, each) for each in (by_open, expected))
        chi_square = float(np.sum((counted - expected) ** 2 / expected))
        yield as_normal(f"open bonds a word, {case}", chi_square, counted.size - 1)
        # A bit has two cells, open and closed.
        chi_square = float(np.sum((by_place - words * p) ** 2) / (words * p * (1 - p)))
        yield as_normal(f"each bond of a word, {case}", chi_square, 32)
        pairs, both = 16 * words, p * p
        sigma = float(np.sqrt(both * (1 - both) / pairs))
        for name, count in zip(("words", "samples"), in_both, strict=True):
            yield Outcome(f"open in both of two {name}, {case}", count / pairs, both, sigma)


# The 32 bonds of a word must be independent.  Correlations between them are seen only in pairs and
# triples: sample version 1 had correlations of 2e-3, which 2^26 words show at 17 sigma
# (docs/randomness.md).


def _count_lanes(fill: Fill, samples: range) -> list[NDArray[np.int64]]:
    """Return how often single bonds, pairs and triples are open in the words of some samples."""
    words = np.empty(_LANE_WORDS, np.uint32)
    counts = [np.zeros((32,) * bonds, np.int64) for bonds in (1, 2, 3)]
    for sample in samples:
        fill(sample, words)
        columns = pack_bits(unpack_bits(words, 32 * words.size).reshape(-1, 32).T)
        count_lanes(columns, *counts)
    return counts


def lane_deviates(
    fill: Fill, num_words: int, p: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return z of all pairs and triples of bonds; fill: writes the words of a sample."""
    workers, samples = usable_cores(), range(math.ceil(num_words / _LANE_WORDS))
    parts = [samples[n::workers] for n in range(workers)]
    counts = in_threads(lambda part: _count_lanes(fill, part), parts)
    one, two, three = (sum(arrays) / 1.0 for arrays in zip(*counts, strict=True))
    n, q = len(samples) * _LANE_WORDS, 1 - p
    i, j = np.triu_indices(32, 1)
    pairs = (two[i, j] - p * (one[i] + one[j]) + n * p * p) / (math.sqrt(n) * p * q)
    i, j, m = np.array([(i, j, m) for i in range(32) for j in range(i) for m in range(j)]).T
    twos = two[j, i] + two[m, i] + two[m, j]
    moments = three[m, j, i] - p * twos + p * p * (one[i] + one[j] + one[m]) - n * p**3
    return pairs, moments / (math.sqrt(n) * (p * q) ** 1.5)


def lane_outcomes(fill: Fill, num_words: int, p: float, case: str) -> Iterator[Outcome]:
    for name, z in zip(("pairs", "triples"), lane_deviates(fill, num_words, p), strict=True):
        yield as_normal(f"{name} of bonds, {case}", float(np.sum(z * z)), z.size)
        yield largest_as_normal(f"largest of {name} of bonds, {case}", z)


def _lanes(conditions: Conditions) -> Iterator[Outcome]:
    count = conditions.count(quick=2**26, full=2**27)
    for rng, p in product(GENERATORS, P_OF_LANES):
        fill = make_fill(rng, conditions.stream_seed("lanes", rng, p), p, _LANE_WORDS)
        yield from lane_outcomes(fill, count, p, f"p = {p:.4g}, {rng}")


CHECKS = (
    Check("generator", "known outputs", _known_outputs),
    Check("generator", "open bonds by definition", _definition),
    Check("generator", "uniformity", _uniformity),
    Check("generator", "pairs and triples of bonds", _lanes),
)
