"""Clusters of a torus and of its dual: an identity that holds in every sample, without an error.

A bond of the dual is open where the bond that it crosses is closed.  With V sites, E open bonds, C
clusters, and C* clusters of the dual, C - C* - V + E is 1 where a cluster winds in two independent
directions, -1 where none winds, and 0 else.

Source: S. Mertens and R. M. Ziff, Phys. Rev. E 94, 062152 (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import pack_bits, unpack_bits
from percolab.measure.rows import CLUSTERS, SPANNING
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS
from percolab.validation.check import Check, Conditions, Outcome, differing
from percolab.validation.parity import list_labelers
from percolab.validation.sampling import coupling_for

#: Grid points along x and y, below and across the edges of words and tiles.
_SHAPES = ((2, 3), (7, 5), (33, 34), (130, 70))
_PROBABILITIES = (0.3, 0.5, 0.55)


def make_dual_words(words: NDArray[np.uint32], shape: tuple[int, int]) -> NDArray[np.uint32]:
    """Return the open bonds of the dual of a square torus, uint32 like words (items, 2 * words).

    shape: (columns, rows).  Bonds lead to the site at the left, and to the one below.  Site (x, y)
    of the dual is the face to the lower left of site (x, y).
    """
    columns, rows = shape
    flags = unpack_bits(words.reshape(len(words), 2, -1), columns * rows)
    along_x, along_y = np.moveaxis(flags.reshape(-1, 2, rows, columns), 1, 0)
    dual = np.stack([~np.roll(along_y, 1, axis=2), ~np.roll(along_x, 1, axis=1)], axis=1)
    return pack_bits(dual.reshape(len(words), 2, -1)).reshape(words.shape)


def count_violations(
    labeler: Any, shape: tuple[int, int], seed: int, samples: NDArray[np.uint64], p: float
) -> int:
    """Return in how many samples of a square torus the identity does not hold.

    labeler: one of :mod:`percolab.labelers`, for this torus.
    """
    batch, wrong = labeler.batch, 0
    for first in range(0, samples.size, batch.capacity):
        part = samples[first : first + batch.capacity]
        items = batch.fill(XORWOW, seed, part, np.full(part.size, p_to_threshold(p), np.uint64))
        words = batch.copy_open_words(items)
        rows = labeler.join(items).rows().copy()
        batch.load(make_dual_words(words, shape))
        dual = labeler.join(items).rows()
        opened = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        flags = rows[:, SPANNING]
        in_two, in_any = flags >> TWO_DIRECTIONS & 1, flags >> FIRST_WRAPPING & 3
        winds = np.where(in_two, 1, np.where(in_any, 0, -1))
        found = rows[:, CLUSTERS] - dual[:, CLUSTERS] - shape[0] * shape[1] + opened
        wrong += int((found != winds).sum())
    return wrong


def _identity(conditions: Conditions) -> Iterator[Outcome]:
    lattice, device = load_lattice("square"), conditions.device
    count = conditions.count(30, 3000)
    samples = np.arange(count, dtype=np.uint64)
    # The reference takes a hundred times as long; parity compares the others with it.
    for name in sorted({*list_labelers(device.kind, lattice)} - {"reference"}):
        wrong = 0
        for shape in _SHAPES:
            topology = lattice.topology(shape, ("periodic", "periodic"))
            labeler = coupling_for(device, topology, items=count, name=name).labeler
            for p in _PROBABILITIES:
                seed = conditions.stream_seed("duals", shape, p)
                wrong += count_violations(labeler, shape, seed, samples, p)
        total = count * len(_SHAPES) * len(_PROBABILITIES)
        yield differing(f"C - C* - V + E, {name}, {total} samples", wrong)


CHECKS = (Check("dual clusters", "square", _identity),)
