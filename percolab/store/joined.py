"""Tasks of the same samples at different p, joined into one task.

More p of a study are measured on the samples that it has already, by a task of their own.  Its
rows are not independent of those of the first task, and an analysis that treated them as
independent would give errors that are too small.  As the samples are the same, block for block, the
two are joined along p instead: the result is, number for number, what one task at all these p
measures.  Samples that only one of them has stay a task by themselves, which is independent of the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult, not_in_all
from percolab.tasks.study import Task

#: What tasks that can be joined have in common: stream seed, block size, method, measure, burn-in,
#: every, chains.
_Kind = tuple[int, int, str, tuple[str, ...], int, int, int]


def can_join(first: Task, second: Task) -> bool:
    """Return whether two tasks measure the same in blocks of the same samples, at other p."""
    return _kind(first) == _kind(second) and not set(first.p) & set(second.p)


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
    """Return results in which no two tasks hold the same samples at different p.

    They are these results themselves where there is nothing to join.
    """
    groups: dict[_Kind, list[TaskResult]] = {}
    for item in results.tasks.values():
        members = groups.setdefault(_kind(item.task), [])
        if not item.blocks or not item.holds_columns:
            continue
        if all(can_join(item.task, other.task) for other in members):
            members.append(item)
    if all(len(members) < 2 for members in groups.values()):
        return results
    parts = [part for members in groups.values() for part in _parts(members)]
    taken = {item.task.id for members in groups.values() for item in members}
    left = [item for item in results.tasks.values() if item.task.id not in taken]
    tasks = {item.task.id: item for item in [*left, *parts]}
    return StoredResults(results.study, tasks, results.runs)


def _kind(task: Task) -> _Kind:
    own = task.burn_in, task.every, task.chains
    return task.stream_seed, task.block_size, task.method, task.measure, *own


def _parts(members: Sequence[TaskResult]) -> list[TaskResult]:
    """Return one task for each set of members that hold the same blocks."""
    if len(members) < 2:
        return list(members)
    holders: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(set().union(*(item.blocks for item in members))):
        own = tuple(n for n, item in enumerate(members) if number in item.blocks)
        holders.setdefault(own, []).append(number)
    return [_joined([members[n] for n in own], numbers) for own, numbers in holders.items()]


def _joined(members: Sequence[TaskResult], numbers: Sequence[int]) -> TaskResult:
    """Return blocks that all members hold, with the columns of all, at the p of all of them."""
    without = not_in_all(members)
    columns = tuple(each for each in members[0].columns if each.name not in without)
    members = [item.of_columns(columns) for item in members]
    order = np.argsort([p for item in members for p in item.task.p])

    def along_p(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(arrays)[order]

    found = TaskResult(joined_task([item.task for item in members]), columns=columns)
    for number in numbers:
        arrays = [item.blocks[number].arrays for item in members]
        joined_arrays = {name: along_p([each[name] for each in arrays]) for name in arrays[0]}
        found.blocks[number] = found.task.kind.codec.block(number, joined_arrays)
    return found
