"""How blocks are stored: as arrays by name, one entry for every block.

A codec says which arrays there are, of which type and shape, and makes blocks of them.  Where they
are in a file is decided in :mod:`percolab.store`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER, TOP
from percolab.measure.columns import Column, axis_names, list_datasets, open_axes
from percolab.measure.openings import LARGEST_SQUARES, bin_counts, bin_width
from percolab.measure.rows import OPENINGS
from percolab.tasks.blocks import AnyBlock, Block, OpeningsBlock, ThresholdBlock, squared_names
from percolab.tasks.study import Task

Arrays = Mapping[str, NDArray[Any]]
Counts = NDArray[np.int64]

#: What follows the meaning of a dataset of sums.
SUM_AXES = " [block, p, column]"


@dataclass(frozen=True)
class StoredArray:
    """An array of every block: its type, its shape in one block, what it is, and its unit."""

    dtype: type
    shape: tuple[int, ...]
    meaning: str
    unit: str


class Codec(Protocol):
    """How the blocks of a kind of study are stored.

    holds_columns:    whether they hold sums of the columns at every p, by which they can be joined
    holds_thresholds: whether they hold thresholds of single samples
    least_groups:     how few groups many blocks may be added up to; None where neighbouring blocks
                      cannot be added up
    """

    holds_columns: bool = False
    holds_thresholds: bool = False
    least_groups: int | None = None

    def layout(self, task: Task, columns: Sequence[Column]) -> dict[str, StoredArray]:
        """Return the arrays of a task with these columns, by the names of their datasets."""

    def stored_columns(self, task: Task, datasets: Collection[str]) -> tuple[Column, ...]:
        """Return the columns of stored arrays; only where blocks hold no sums at every p."""
        return ()

    def attributes(self, task: Task) -> dict[str, list[str]]:
        """Return what the arrays have in common, as texts by name."""
        return {}

    def block(self, number: int, arrays: Arrays, count: int = 1) -> AnyBlock:
        """Return the block, or the group of ``count`` blocks, of these arrays."""

    def check(self, task: Task, columns: Sequence[Column], arrays: Arrays, samples: Counts) -> None:
        """Raise ValueError where arrays of blocks with these numbers of samples cannot be right."""


class SumsCodec(Codec):
    """Blocks of sums of the columns at every p (:class:`percolab.tasks.blocks.Block`)."""

    holds_columns = True
    least_groups = 512

    def layout(self, task: Task, columns: Sequence[Column]) -> dict[str, StoredArray]:
        observables = [column for column in columns if column.is_observable]
        points, names = len(task.p), squared_names(observables)
        sums = "sum over the block's samples [block, p, observable]"
        squares = (
            "sum of squares of the observables that are no probabilities, in their order "
            "[block, p, observable]"
        )
        arrays = {
            "sums": StoredArray(np.int64, (points, len(observables)), sums, "mixed"),
            "squares": StoredArray(np.float64, (points, len(names)), squares, "mixed"),
        }
        for name, stored in list_datasets(columns, task.num_points, task.block_size).items():
            meaning, unit = f"{stored.dataset.meaning}{SUM_AXES}", stored.dataset.unit
            arrays[name] = StoredArray(stored.kind, (points, stored.width), meaning, unit)
        return arrays

    def block(self, number: int, arrays: Arrays, count: int = 1) -> AnyBlock:
        extras = dict(arrays)
        return Block(number, extras.pop("sums"), extras.pop("squares"), extras, count=count)

    def check(self, task: Task, columns: Sequence[Column], arrays: Arrays, samples: Counts) -> None:
        if not all(column.is_known for column in columns):
            # Columns of another version may be negative, and so may their products with others.
            return
        own = {each.name for each in task.functions}
        for name, array in arrays.items():
            if array.size and name not in own and array.min() < 0:
                raise ValueError(f"task {task.id}: {name} holds a negative number")
        largest = max(task.num_points**2, task.kind.largest_sum(task.num_points))
        if task.is_wide:
            # There is no observable of more than its sites.
            largest = task.num_points
        if OPENINGS in task.measure:
            # Of few sites, and of a wide task, there may be more bonds.
            largest = max(largest, task.num_openings)
        most = [
            1 if column.is_probability else largest for column in columns if column.is_observable
        ]
        # In floats, as they may be more than 64 bits.
        limits = samples[:, None, None] * np.array(most, np.float64)
        if np.any(arrays["sums"] > limits):
            raise ValueError(f"task {task.id}: sums holds more than its samples can have")


class ThresholdCodec(Codec):
    """Blocks of exact thresholds (:class:`percolab.tasks.blocks.ThresholdBlock`)."""

    holds_thresholds = True

    def layout(self, task: Task, columns: Sequence[Column]) -> dict[str, StoredArray]:
        shape = task.block_size, len(open_axes(task.boundary))
        meaning = "T, the p at which a sample begins to span, 2^64 - 1: never [block, sample, axis]"
        return {"thresholds": StoredArray(np.uint64, shape, meaning, "2^-63")}

    def attributes(self, task: Task) -> dict[str, list[str]]:
        return {"axes": list(axis_names(task.boundary))}

    def block(self, number: int, arrays: Arrays, count: int = 1) -> AnyBlock:
        return ThresholdBlock(number, arrays["thresholds"])

    def check(self, task: Task, columns: Sequence[Column], arrays: Arrays, samples: Counts) -> None:
        thresholds = arrays["thresholds"]
        if np.any((thresholds > np.uint64(TOP)) & (thresholds != np.uint64(NEVER))):
            raise ValueError(f"task {task.id}: a threshold is above 1")


class OpeningsCodec(Codec):
    """Blocks of sums by the number of openings (:class:`percolab.tasks.blocks.OpeningsBlock`).

    Every observable has a dataset, so that a file without one of them can still be read.
    """

    least_groups = 64

    def layout(self, task: Task, columns: Sequence[Column]) -> dict[str, StoredArray]:
        shape = (len(bin_counts(task.num_openings)),)
        own = [(each.name, each.meaning, each.unit) for each in columns if each.is_observable]
        own.append((LARGEST_SQUARES, "squared size of the largest cluster", "site^2"))
        over = "sum over the block's samples and the openings of a bin [block, bin]"
        return {
            name: StoredArray(np.int64, shape, f"{meaning}: {over}", unit)
            for name, meaning, unit in own
        }

    def stored_columns(self, task: Task, datasets: Collection[str]) -> tuple[Column, ...]:
        return tuple(column for column in task.observables if column.name in datasets)

    def attributes(self, task: Task) -> dict[str, list[str]]:
        numbers = task.num_openings, bin_width(task.num_openings)
        return {"openings": [str(number) for number in numbers]}

    def block(self, number: int, arrays: Arrays, count: int = 1) -> AnyBlock:
        return OpeningsBlock(number, dict(arrays), count)

    def check(self, task: Task, columns: Sequence[Column], arrays: Arrays, samples: Counts) -> None:
        counts = bin_counts(task.num_openings) * samples[:, None].astype(float)
        probabilities = {column.name for column in columns if column.is_probability}
        for name, sums in arrays.items():
            most = counts * (1 if name in probabilities else task.num_points**2)
            if np.any(sums < 0) or np.any(sums > most):
                raise ValueError(f"task {task.id}: {name} holds what its samples cannot have")
