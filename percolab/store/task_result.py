"""The results of one task: its blocks, and which columns they hold.

Every task has its own columns: a file of an earlier version may lack one of today's, and one of a
later version may have more.  Everything here goes by their names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.shown import Shown, counted, few
from percolab.measure.columns import (
    LOW_BITS,
    WIDE_COLUMNS,
    WORDS_WITH_COLUMNS,
    Column,
    Stored,
    axis_observables,
    list_datasets,
    open_axes,
    spanning_names,
)
from percolab.tasks.blocks import AnyBlock, ChainEnd, squared_names, with_columns
from percolab.tasks.codecs import StoredArray
from percolab.tasks.groups import group_neighbours
from percolab.tasks.part import WHOLE, JobPart
from percolab.tasks.study import Task


@dataclass(eq=False, repr=False)
class TaskResult(Shown):
    """A task and its blocks by number, neighbouring ones in groups where there are many.

    blocks: by the number of the first block of each group (:mod:`percolab.tasks.groups`); where
    there are few blocks each is a group by itself.  columns: what the blocks hold, observables in
    the order of their sums; by default what this version measures.  With method "threshold" blocks
    hold T alone, whatever the columns.  end: the state of one long chain (``chains`` 1) after its
    blocks; else None.
    """

    task: Task
    blocks: dict[int, AnyBlock] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    end: ChainEnd | None = None

    def __post_init__(self) -> None:
        self.columns = self.columns or self.task.columns
        self._largest = max((block.count for block in self.blocks.values()), default=1)
        # Number of blocks, once some were added; from then on only :meth:`unite` adds others.
        self._num_blocks: int | None = None

    def _facts(self) -> dict[str, Any]:
        task = self.task
        return {
            "task": task.id,
            "of": task.structure.name,
            "L": task.size,
            **({"p": few(task.p)} if task.p else {}),
            "samples": f"{self.num_samples} in {counted(self.num_blocks, 'block')}",
        }

    @property
    def num_blocks(self) -> int:
        return sum(block.count for block in self.blocks.values())

    @property
    def num_samples(self) -> int:
        return self.num_blocks * self.task.block_size

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the first blocks of the groups, ascending, int64 (n_blocks,)."""
        return np.array(sorted(self.blocks), np.int64)

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.array([self.blocks[number].count for number in sorted(self.blocks)], np.int64)

    @property
    def samples(self) -> NDArray[np.int64]:
        return self.counts * self.task.block_size

    def has_block(self, number: int) -> bool:
        """Return whether a block is there, alone or in a group."""
        count = 1
        while count <= self._largest:
            block = self.blocks.get(number & -count)
            if block is not None:
                return number - block.number < block.count
            count *= 2
        return False

    def missing_runs(self, runs: Iterable[range]) -> Iterator[range]:
        """Yield the runs of missing blocks, some empty, in ascending runs of blocks."""
        firsts, ends = self.numbers.tolist(), (self.numbers + self.counts).tolist()
        for run in runs:
            start = run.start
            for n in range(bisect_right(ends, start), bisect_left(firsts, run.stop)):
                yield range(start, firsts[n])
                start = ends[n]
            yield range(start, run.stop)

    def count_below(self, end: int, part: JobPart = WHOLE) -> int:
        """Return how many blocks of a part are there with numbers below ``end``."""
        there = (range(n, min(n + block.count, end)) for n, block in self.blocks.items())
        return sum(len(own) if part == WHOLE else sum(map(part.has, own)) for own in there)

    @property
    def holds_columns(self) -> bool:
        """Whether its blocks hold sums of columns at every p."""
        return bool(self.task.kind.codec.holds_columns)

    @property
    def holds_thresholds(self) -> bool:
        return bool(self.task.kind.codec.holds_thresholds)

    @property
    def observables(self) -> tuple[Column, ...]:
        """The columns that are one integer for each sample, in the order of the sums of blocks."""
        return tuple(column for column in self.columns if column.is_observable)

    def has(self, *names: str) -> bool:
        return set(names) <= {column.name for column in self.columns}

    def add(self, blocks: Iterable[AnyBlock]) -> None:
        """Add newly measured blocks, with the columns of this result."""
        measured = TaskResult(self.task)
        block: Any
        for block in blocks:
            if getattr(block, "end", None) is not None:
                self.end, block = block.end, replace(block, end=None)
            measured.blocks[block.number] = block
        self.unite(measured.of_columns(self.columns).blocks)

    def unite(self, blocks: Mapping[int, AnyBlock]) -> None:
        """Add blocks of the same columns that are not there yet, and form groups."""
        counts = [block.count for block in blocks.values()]
        before = self.num_blocks if self._num_blocks is None else self._num_blocks
        self._num_blocks = before + sum(counts)
        self.blocks.update(blocks)
        if self.task.most_groups is None:
            return
        before = self._largest
        self._largest = max(before, *counts, self.task.largest_group(self._num_blocks))
        numbers = self.blocks if self._largest > before else blocks
        group_neighbours(self.blocks, sorted(numbers), self._largest)

    def of_columns(self, columns: Sequence[Column]) -> TaskResult:
        """Return the same blocks with these columns alone, in this order; all must be there."""
        names = [column.name for column in self.columns]
        if not self.holds_columns or names == [column.name for column in columns]:
            return TaskResult(self.task, dict(self.blocks), tuple(columns), self.end)
        kept = [column for column in columns if column.is_observable]
        choice = self.observables, kept, self._datasets(columns).keys()
        grids: dict[int, Any] = self.blocks
        blocks: dict[int, AnyBlock] = {n: with_columns(grids[n], *choice) for n in grids}
        return TaskResult(self.task, blocks, tuple(columns), self.end)

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one observable's block sums, int64 (n_blocks, m); InputError if not measured."""
        names = [column.name for column in self.observables]
        if name not in names:
            raise InputError(f"observable {name!r} is not in this file; there: {', '.join(names)}")
        return self.sums()[:, :, names.index(name)]

    def sums(self) -> NDArray[np.int64]:
        """Return the block sums of all observables, int64 (n_blocks, m, observables)."""
        return self._of_columns("sums", len(self.observables))

    def squares(self, name: str) -> NDArray[np.float64]:
        """Return block sums of squares, float64 (n_blocks, m); InputError if not measured."""
        names = squared_names(self.observables)
        if name not in names:
            return self.column(name).astype(float)
        return self._of_columns("squares", len(names))[:, :, names.index(name)]

    def _of_columns(self, name: str, width: int) -> NDArray[Any]:
        """Return sums of ``width`` numbers at each p; no blocks where these hold no sums."""
        if self.holds_columns:
            return self.stacked(name)
        return np.empty((0, len(self.task.p), width))

    def stacked(self, name: str) -> NDArray[Any]:
        """Return an array of all blocks, (n_blocks, ...), by the name of its dataset."""
        stored = self.layout()[name]
        arrays = [self.blocks[number].arrays[name] for number in sorted(self.blocks)]
        return np.array(arrays, stored.dtype).reshape(len(arrays), *stored.shape)

    def layout(self) -> dict[str, StoredArray]:
        return dict(self.task.kind.codec.layout(self.task, self.columns))

    def extra(self, name: str) -> NDArray[Any]:
        """Return block sums of a dataset, (n_blocks, m, numbers); InputError if not measured."""
        there = self._datasets(self.columns)
        if name not in there:
            known = self._datasets(_declared(self, self.task.measure))
            reason = "" if name in known else ": it was not requested"
            raise InputError(f"{name} of L = {self.task.size} is not in this file{reason}")
        return self.stacked(name)

    def single_sum(self, column: Column) -> NDArray[np.float64]:
        """Return the block sums of a column that is one sum for each p, float64 (n_blocks, m)."""
        same = [each for each in self.columns if each.dataset == column.dataset]
        sums = self.extra(column.dataset.name if column.dataset else column.name)
        return np.asarray(sums[:, :, same.index(column)], np.float64)

    def lacking(self) -> list[str]:
        """Return the names of columns that this version measures and that are not here."""
        declared = _declared(self, self.task.measure) if self.holds_columns else ()
        return [column.name for column in declared if not self.has(column.name)]

    @property
    def has_cluster_sizes(self) -> bool:
        wide = "sum_squares_low", "sum_squares_high"
        squares = wide if self.task.is_wide else ("sum_squares",)
        return self.has("clusters", "largest", "second_largest", *squares)

    def sum_squares(self) -> NDArray[np.float64]:
        """Return the block sums of sum s^2, of a lattice of any size, float64 (n_blocks, m)."""
        if not self.task.is_wide:
            return self.column("sum_squares").astype(float)
        low, high = np.moveaxis(self.extra("wide_squares"), 2, 0)
        return np.asarray(low + high * 2.0**LOW_BITS)

    def all_thresholds(self) -> NDArray[np.uint64]:
        """Return T of samples along open axes, uint64 (n_blocks, block_size, axes), or none."""
        if not self.holds_thresholds:
            axes = len(open_axes(self.task.boundary))
            return np.empty((0, self.task.block_size, axes), np.uint64)
        return self.stacked("thresholds")

    def thresholds(self, name: str) -> NDArray[np.uint64]:
        """Return T of samples for a spanning observable, uint64 (n_blocks, block_size)."""
        by_axis = self.all_thresholds()
        known = spanning_names(self.task.boundary)
        if name not in known:
            raise InputError(f"observable {name!r} is not in this file; there: {', '.join(known)}")
        if name in ("spanning_any", "spanning_all"):
            return np.asarray((np.min if name == "spanning_any" else np.max)(by_axis, axis=2))
        return by_axis[:, :, axis_observables(self.task.boundary).index(name)]

    def datasets(self) -> dict[str, Stored]:
        return self._datasets(self.columns)

    def _datasets(self, columns: Iterable[Column]) -> dict[str, Stored]:
        return list_datasets(columns, self.task.num_points, self.task.block_size)


def columns_in(items: Iterable[TaskResult]) -> tuple[Column, ...]:
    """Return the columns of tasks whose blocks are sums, in the order of their declarations."""
    grids = _grids(items)
    named = {column.name: column for result in grids for column in result.columns}
    known = [
        column.name for result in grids[:1] for column in _declared(result, WORDS_WITH_COLUMNS)
    ]
    order = [name for name in known if name in named]
    return tuple(named[name] for name in [*order, *(name for name in named if name not in known)])


def not_in_all(items: Iterable[TaskResult]) -> list[str]:
    """Return the names of columns that one of these tasks has and another lacks, but requested."""
    grids = _grids(items)
    return [
        column.name
        for column in columns_in(grids)
        if not all(result.has(column.name) for result in grids if _requests(result, column))
    ]


def _grids(items: Iterable[TaskResult]) -> list[TaskResult]:
    return [result for result in items if result.holds_columns]


def _declared(result: TaskResult, measure: Sequence[str]) -> tuple[Column, ...]:
    task = result.task
    return tuple(task.kind.columns(task.boundary, measure, wide=task.is_wide))


def _requests(result: TaskResult, column: Column) -> bool:
    if column.name in _BY_WIDTH:
        return column in _declared(result, ())
    return not column.measure or column.measure in result.task.measure


#: Every task has one of these or more, depending on the number of its sites.
_BY_WIDTH = ("sum_squares", *(column.name for column in WIDE_COLUMNS))
