"""Tasks of the same samples at different p, joined into one task.

Further p of a study are measured on its existing samples, by another task, whose rows are not
independent of those of the first.  The two are joined along p, block by block: the result is,
number for number, what one task at all these p measures.  Samples of one task alone stay apart.

Where blocks are added up to groups, tasks are joined in the larger groups.  A group cannot be
divided: if one contains only a part of another's samples, either all larger groups or all parts of
them are left out, whichever are less of their tasks: less than a hundredth, for tasks of one run.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np

from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult, not_in_all
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.groups import group_neighbours
from percolab.tasks.study import ADDED, Task

#: What tasks that can be joined have in common: stream seed, block size, method, and ADDED.
_Kind = tuple[Any, ...]


def can_join(first: Task, second: Task) -> bool:
    """Return whether two tasks measure the same in blocks of the same samples, at other p.

    Tasks without p, which measure all p of a sample, are never at other p.
    """
    are_apart = bool(first.p and second.p) and not set(first.p) & set(second.p)
    return are_apart and _kind(first) == _kind(second)


def joined_task(tasks: Sequence[Task]) -> Task:
    """Return the task at the p of all these, which must differ in their p alone."""
    return replace(tasks[0], p=tuple(sorted(p for task in tasks for p in task.p)))


def joined_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Return these tasks, those that can be joined as one, in the order of the first of each."""
    groups: list[list[Task]] = []
    for task in tasks:
        group = next((g for g in groups if all(can_join(task, other) for other in g)), None)
        if group is None:
            groups.append([task])
        else:
            group.append(task)
    return [joined_task(group) if len(group) > 1 else group[0] for group in groups]


def joined(results: StoredResults) -> StoredResults:
    """Return results in which no two tasks hold the same samples at different p."""
    groups: dict[_Kind, list[TaskResult]] = {}
    for result in results.tasks.values():
        members = groups.setdefault(_kind(result.task), [])
        if not result.blocks or not result.holds_columns:
            continue
        if all(can_join(result.task, other.task) for other in members):
            members.append(result)
    if all(len(members) < 2 for members in groups.values()):
        return results
    parts = [part for members in groups.values() for part in _parts(members)]
    taken = {result.task.id for members in groups.values() for result in members}
    left = [result for result in results.tasks.values() if result.task.id not in taken]
    tasks = {result.task.id: result for result in [*left, *parts]}
    return StoredResults(results.study, tasks, results.runs)


def joined_if_whole(results: StoredResults) -> StoredResults:
    """Return results for tables: tasks of the same samples joined where no blocks are lost."""
    groups: dict[_Kind, list[TaskResult]] = {}
    for result in results.tasks.values():
        groups.setdefault(_kind(result.task), []).append(result)
    tasks: dict[str, TaskResult] = {}
    for members in groups.values():
        own = StoredResults(results.study, {result.task.id: result for result in members})
        blocks = {tuple(zip(result.numbers, result.counts, strict=True)) for result in members}
        tasks |= (joined(own) if len(blocks) == 1 else own).tasks
    return StoredResults(results.study, tasks, results.runs)


def _kind(task: Task) -> _Kind:
    own = (getattr(task, name) for name in ADDED)
    return task.stream_seed, task.block_size, task.method, *own


def _parts(members: Sequence[TaskResult]) -> list[TaskResult]:
    """Return one task for each set of members that hold the same blocks."""
    if len(members) < 2:
        return list(members)
    members = _in_common_groups(members)
    holders: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(set().union(*(result.blocks for result in members))):
        own = tuple(n for n, result in enumerate(members) if number in result.blocks)
        holders.setdefault(own, []).append(number)
    return [_joined([members[n] for n in own], numbers) for own, numbers in holders.items()]


def _joined(members: Sequence[TaskResult], numbers: Sequence[int]) -> TaskResult:
    """Return blocks that all members hold, with the columns of all, at the p of all of them."""
    without = not_in_all(members)
    columns = tuple(each for each in members[0].columns if each.name not in without)
    members = [result.of_columns(columns) for result in members]
    order = np.argsort([p for result in members for p in result.task.p])

    merged = TaskResult(joined_task([result.task for result in members]), columns=columns)
    for number in numbers:
        arrays = [result.blocks[number].arrays for result in members]
        along_p = {key: np.concatenate([own[key] for own in arrays])[order] for key in arrays[0]}
        count = members[0].blocks[number].count
        merged.blocks[number] = merged.task.kind.codec.block(number, along_p, count)
    return merged


def _in_common_groups(members: Sequence[TaskResult]) -> list[TaskResult]:
    """Return members without groups that contain only a part of another member's group."""
    blocks = [[result.blocks[number] for number in sorted(result.blocks)] for result in members]
    if all(block.count == 1 for own in blocks for block in own):
        return list(members)

    def lost(groups: Iterable[list[AnyBlock]]) -> tuple[float, int]:
        pairs = [
            (sum(block.count for block in before), sum(block.count for block in after))
            for before, after in zip(blocks, groups, strict=True)
        ]
        return max(1 - after / before for before, after in pairs), -sum(n for _, n in pairs)

    choices = [_align(blocks, without_large=True)]
    if lost(choices[0])[0] > 0:
        choices.append(_align(blocks, without_large=False))
    return [
        TaskResult(result.task, {block.number: block for block in own}, result.columns, result.end)
        for result, own in zip(members, min(choices, key=lost), strict=True)
    ]


def _align(blocks: Sequence[list[AnyBlock]], *, without_large: bool) -> list[list[AnyBlock]]:
    """Return the blocks of members in groups that are the same, or have nothing in common.

    blocks: of each member, ascending.  Where a group has the samples of a part of another one, the
    larger is left out, or else the part.
    """
    groups: list[list[AnyBlock]] = [[] for _ in blocks]
    for first, count in _outermost(blocks):
        inside = [_within(own, first, first + count) for own in blocks]
        sums = [sum(block.count for block in own) for own in inside]
        if set(sums) <= {0, count}:
            parts = [_as_one(own, count) for own in inside]
        elif without_large:
            smaller = [[block for block in own if block.count < count] for own in inside]
            parts = _align(smaller, without_large=True)
        else:
            parts = [
                _as_one(own, count) if n == count else []
                for n, own in zip(sums, inside, strict=True)
            ]
        for own, part in zip(groups, parts, strict=True):
            own += part
    return groups


def _outermost(blocks: Sequence[list[AnyBlock]]) -> list[tuple[int, int]]:
    """Return first number and blocks of every group that is no part of a larger one."""
    largest: dict[int, int] = {}
    for block in (block for own in blocks for block in own):
        largest[block.number] = max(largest.get(block.number, 0), block.count)
    groups: list[tuple[int, int]] = []
    for number in sorted(largest):
        if not groups or number >= sum(groups[-1]):
            groups.append((number, largest[number]))
    return groups


def _within(blocks: list[AnyBlock], first: int, end: int) -> list[AnyBlock]:
    at = bisect_left(blocks, first, key=attrgetter("number"))
    return blocks[at : bisect_left(blocks, end, key=attrgetter("number"))]


def _as_one(blocks: list[AnyBlock], count: int) -> list[AnyBlock]:
    """Return all blocks of a group as one; none where a sum of them is no integer of 64 bits."""
    if len(blocks) < 2:
        return list(blocks)
    by_number = {block.number: block for block in blocks}
    group_neighbours(by_number, sorted(by_number), count)
    return list(by_number.values()) if len(by_number) == 1 else []
