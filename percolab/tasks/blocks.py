"""Blocks of samples: their contents, how rows add up to them, and how to select their columns.

Two neighbouring blocks may be added up to one (:mod:`percolab.tasks.groups`), so that a block here
is one block of samples or, with ``count``, a group of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.shown import Shown
from percolab.measure.columns import Column
from percolab.measure.rows import ROW_WIDTH
from percolab.measure.spins import SERIES, compute_chain_series, sum_chains
from percolab.measure.tallies import sum_tallies
from percolab.tasks.groups import group_arrays


@dataclass(frozen=True, eq=False, repr=False)
class ChainEnd(Shown):
    """The state of the one long chain at every p of a task, from which its next block begins.

    sweeps: since the start of the chain, burn-in included.  planes: the spins, uint32
    (m, planes, num_words), as :mod:`percolab.spins.words` has them.
    """

    sweeps: int
    planes: NDArray[np.uint32]

    def _facts(self) -> dict[str, Any]:
        return {"sweeps": self.sweeps}


@dataclass(frozen=True, eq=False, repr=False)
class Block(Shown):
    """Sums over a fixed, numbered range of samples of one task; m values of p, C observables.

    number:  samples number * block_size ... (number + count) * block_size - 1
    sums:    int64 (m, C), exact
    squares: float64 (m, Q), sums of the squares of the Q observables that are no probabilities, in
             their order; each square and each partial sum is rounded
    extras:  by the name of its dataset, what is summed in addition to the observables
             (:class:`percolab.measure.columns.SumColumn`), int64 or float64 (m, numbers)
    end:     state of one long chain after it; None of all others, and where a later one is known
    count:   blocks that are added up here, a power of two
    """

    number: int
    sums: NDArray[np.int64]
    squares: NDArray[np.float64]
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)
    end: ChainEnd | None = None
    count: int = 1

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"sums": self.sums, "squares": self.squares} | self.extras

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]], count: int) -> Block:
        """Return a block of other arrays, which begins with the same sample."""
        own = dict(arrays)
        return Block(self.number, own.pop("sums"), own.pop("squares"), own, count=count)

    def _facts(self) -> dict[str, Any]:
        points, observables = self.sums.shape
        return {"number": self.number, "p values": points, "observables": observables}


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdBlock(Shown):
    """The spanning thresholds of a fixed, numbered range of samples of one task.

    number:     samples number * block_size ... (number + 1) * block_size - 1
    thresholds: uint64 (block_size, open axes), T in units of 2^-63: a sample spans along an axis
                when the bonds with u < T are open, and not when fewer are; 2^64 - 1 is never
    """

    number: int
    thresholds: NDArray[np.uint64]
    count: ClassVar[int] = 1

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"thresholds": self.thresholds}

    def _facts(self) -> dict[str, Any]:
        return {"number": self.number, "samples": len(self.thresholds)}


@dataclass(frozen=True, eq=False, repr=False)
class OpeningsBlock(Shown):
    """Sums of observables over samples whose bonds, or sites, open one by one.

    number: samples number * block_size ... (number + count) * block_size - 1
    sums:   by the observables' names, and of squared sizes of the largest cluster, int64 (bins,),
            exact, over the samples and over the numbers of openings in every bin
            (:mod:`percolab.measure.openings`)
    count:  blocks that are added up here, a power of two
    """

    number: int
    sums: dict[str, NDArray[np.int64]]
    count: int = 1

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return dict(self.sums)

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]], count: int) -> OpeningsBlock:
        return OpeningsBlock(self.number, dict(arrays), count)

    def _facts(self) -> dict[str, Any]:
        return {"number": self.number, "observables": len(self.sums)}


AnyBlock = Block | ThresholdBlock | OpeningsBlock


def make_sample_blocks(
    numbers: Sequence[int],
    rows: NDArray[np.int64],
    observables: Sequence[Column],
    extras: dict[str, NDArray[Any]] | None = None,
    counted: NDArray[np.int64] | None = None,
    largest: int = 1,
) -> list[Block]:
    """Return the blocks of samples with these rows, int64 (blocks, samples, m, row width).

    extras: further sums of the blocks, (blocks, m, numbers) by dataset, in addition to those of
    tallies.  counted: the openings, if they are an observable, (blocks, samples, m, 1).  largest:
    how many neighbouring blocks are added up to one at most.
    """
    sums = sum_tallies(rows) | (extras or {})
    if counted is not None:
        rows = np.concatenate([rows[..., :ROW_WIDTH], counted], axis=-1)
    return _sum_rows(numbers, rows, observables, sums, largest)


def make_chain_blocks(
    numbers: Sequence[int],
    rows: NDArray[np.int64],
    spins: NDArray[np.int64],
    observables: Sequence[Column],
    measure: Collection[str] = (),
    more: dict[str, NDArray[Any]] | None = None,
    series: Sequence[int] = SERIES,
) -> list[Block]:
    """Return the blocks of chains, whose samples are consecutive sweeps.

    rows: int64 (chains, sweeps, m, row width).  spins: numbers read off the spins, int64 (chains,
    sweeps, m, SPIN_ROW_WIDTH), in its last columns.  more: further sums of the blocks, (blocks, m,
    numbers) by dataset.  series: the places of those whose autocorrelations are stored.
    """
    whole = spins.copy()
    whole[..., :ROW_WIDTH] = rows[..., :ROW_WIDTH]
    extras = sum_tallies(rows) | {"lagged": sum_chains(whole, series)} | (more or {})
    if "series" in measure:
        extras["series"] = compute_chain_series(whole, series)
    return _sum_rows(numbers, whole, observables, extras)


def make_tree_blocks(
    numbers: Sequence[int],
    rows: NDArray[np.int64],
    sums: Sequence[dict[str, NDArray[np.int64]]],
    observables: Sequence[Column],
) -> list[Block]:
    """Return the blocks of samples whose trees have these rows and sums, by dataset."""
    blocks = len(numbers)
    extras = {
        name: np.sum(np.reshape([own[name] for own in sums], (blocks, -1, 1, first.size)), axis=1)
        for name, first in sums[0].items()
    }
    return _sum_rows(numbers, rows.reshape(blocks, -1, *rows.shape[1:]), observables, extras)


def _sum_rows(
    numbers: Sequence[int],
    rows: NDArray[np.int64],
    observables: Sequence[Column],
    extras: dict[str, NDArray[Any]],
    largest: int = 1,
) -> list[Block]:
    from percolab.measure.block_sums import sum_blocks

    picks = pick_squared(observables), *pick_observables(observables)
    sums, squares = sum_blocks(np.ascontiguousarray(rows), *picks)
    return make_summed_blocks(numbers, sums, squares, extras, largest)


def pick_observables(observables: Sequence[Column]) -> NDArray[np.int64]:
    """Return how observables are read from a row, int64 (4, C): places, masks, rules, without."""
    return np.ascontiguousarray(np.array([column.of_row for column in observables], np.int64).T)


def pick_squared(observables: Sequence[Column]) -> NDArray[np.bool_]:
    """Return for which observables squares are summed, bool (C,)."""
    return np.array([not column.is_probability for column in observables], bool)


def make_summed_blocks(
    numbers: Sequence[int],
    sums: NDArray[np.int64],
    squares: NDArray[np.float64],
    extras: dict[str, NDArray[Any]] | None = None,
    largest: int = 1,
) -> list[Block]:
    """Return blocks with these sums (blocks, m, C), squares and extras of all of them.

    largest: how many neighbouring blocks are added up to one at most.
    """
    arrays = {"sums": sums, "squares": squares} | (extras or {})
    return make_grouped_blocks(numbers, *group_arrays(numbers, arrays, largest))


def make_grouped_blocks(
    numbers: Sequence[int], begins: NDArray[np.int64], arrays: Mapping[str, NDArray[Any]]
) -> list[Block]:
    """Return groups of blocks as blocks.

    numbers: of all blocks.  begins: of groups (:func:`percolab.tasks.groups.find_groups`).
    arrays: of the groups, (groups, ...) by name: sums, squares, and extras.
    """
    names = [name for name in arrays if name not in ("sums", "squares")]
    sums, squares, counts = arrays["sums"], arrays["squares"], np.diff(begins).tolist()
    return [
        Block(
            numbers[begin],
            sums[n],
            squares[n],
            {name: arrays[name][n] for name in names},
            None,
            counts[n],
        )
        for n, begin in enumerate(begins[:-1].tolist())
    ]


def squared_names(observables: Iterable[Column]) -> list[str]:
    """Return the names of the observables whose squares are summed: not of probabilities."""
    return [column.name for column in observables if not column.is_probability]


def with_columns(
    block: Block, before: Sequence[Column], after: Sequence[Column], extras: Collection[str]
) -> Block:
    """Return a block with some of its columns, in another order, and with these extras alone."""
    names = [column.name for column in before]
    places = [names.index(column.name) for column in after]
    own = squared_names(before)
    squared = [own.index(name) for name in squared_names(after)]
    return replace(
        block,
        sums=block.sums[:, places],
        squares=block.squares[:, squared],
        extras={name: array for name, array in block.extras.items() if name in extras},
    )


def same_block(one: AnyBlock, other: AnyBlock) -> bool:
    own, others = one.arrays, other.arrays
    return (
        one.count == other.count
        and own.keys() == others.keys()
        and all(np.array_equal(array, others[name]) for name, array in own.items())
    )
