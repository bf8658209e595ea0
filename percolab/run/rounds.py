"""When a study is finished, and which blocks it wants until then.

With numbers of samples there is one round.  With a target error of p_c there are as many as it
takes: each costs a fifth of what all before it cost together, and spends that on the sizes where it
lowers the error most (:mod:`percolab.run.allocation`), as the fit of the rounds before it says.
Cost is counted in sites, not in seconds, and a round is judged by its own blocks and none beyond:
so the rounds of a study are the same on every machine, however often it is interrupted, and a
smaller target goes on where a larger one ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from percolab.analysis import AnalysisError, Information, information_of
from percolab.analysis.stored_data import curves_of
from percolab.analysis.stored_fits import omega_of
from percolab.run.allocation import Choice, allocate
from percolab.store.joined import joined
from percolab.store.results import Results
from percolab.store.task_result import TaskResult
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task

#: Samples of the smallest size in the first round; others have fewer, but so many at least.
_FIRST_ROUND, _LEAST_FIRST = 1000, 300
#: Cost of all rounds so far, the next included, over that without it.
_GROWTH = 1.2


def first_targets(study: Study, rule: StopRule) -> dict[int, int]:
    """Return the samples of every size at the end of the first round.

    A size's cost for the error goes with its samples times its sites, so the larger have fewer.
    """
    if rule.target_error is None:
        return dict(rule.samples or {})
    tasks = [study.task(size) for size in study.sizes]
    least = min(task.num_points for task in tasks)
    targets = {}
    for task in tasks:
        wanted = max(_FIRST_ROUND * (least / task.num_points) ** 0.5, _LEAST_FIRST)
        blocks = ceil(wanted / task.block_size)
        targets[task.size] = int(min(blocks * task.block_size, rule.limit(task.size)))
    return targets


def next_targets(
    results: Results, rule: StopRule, targets: Mapping[int, int]
) -> dict[int, int] | None:
    """Return the samples of every size at the end of the round after one, or None after the last.

    results: hold the blocks of the round that ends at ``targets``.
    """
    if rule.target_error is None or all(n >= rule.limit(size) for size, n in targets.items()):
        return None
    # At the end of a round all tasks of a size have the same blocks, so that they join to one.
    held = joined(judged(results, targets))
    samples = {key: item.num_samples for key, item in held.tasks.items()}
    try:
        information = information_of(curves_of(held), omega=omega_of(held))
    except AnalysisError:
        information = None
    if information is not None and information.error(samples) <= rule.target_error:
        return None
    own = own_tasks(held)
    others = {key: n for key, n in samples.items() if key not in {task.id for task in own}}
    return grown(own, information, others, targets, rule)


def grown(
    own: Sequence[Task],
    information: Information | None,
    others: Mapping[str, int],
    targets: Mapping[int, int],
    rule: StopRule,
) -> dict[int, int]:
    """Return the samples of every size once a round has been added.

    own: the study's tasks.  information: of one sample of every task; None divides evenly.
    others: samples of merged tasks, which stay as they are.
    """
    by_size = {size: [task for task in own if task.size == size] for size in targets}
    cost = {size: sum(task.num_points for task in tasks) for size, tasks in by_size.items()}
    if information is None:
        return {size: int(min(ceil(n * _GROWTH), rule.limit(size))) for size, n in targets.items()}
    choices = [
        Choice(
            information=np.sum([information.of(task.id) for task in by_size[size]], axis=0),
            cost=cost[size],
            block=max(task.block_size for task in by_size[size]),
            samples=n,
            limit=rule.limit(size),
        )
        for size, n in targets.items()
    ]
    spent = sum(choice.cost * choice.samples for choice in choices)
    found = allocate(choices, information.total(others), _GROWTH * spent)
    return dict(zip(targets, found, strict=True))


def own_tasks(results: Results) -> list[Task]:
    """Return the study's own tasks, without those of merged files."""
    study = results.study
    own = study.seed, study.rng, study.method, study.measure
    tasks = [item.task for item in results.tasks.values() if item.task.size in study.sizes]
    return [task for task in tasks if (task.seed, task.rng, task.method, task.measure) == own]


def wanted_blocks(results: Results, targets: Mapping[int, int]) -> dict[str, int]:
    """Return the blocks each of the study's own tasks should have; merged ones want none.

    Nor do tasks of a size that has no target: it was not asked for this time.
    """
    return {
        task.id: ceil(targets[task.size] / task.block_size)
        for task in own_tasks(results)
        if task.size in targets
    }


def is_held(results: Results, targets: Mapping[int, int]) -> bool:
    """Return whether all blocks of a round are there."""
    return all(
        n in results.tasks[key].blocks
        for key, count in wanted_blocks(results, targets).items()
        for n in range(count)
    )


def is_finished(results: Results, rule: StopRule) -> bool:
    """Return whether a study's stop rule is met by what is there."""
    first = first_targets(results.study, rule)
    if not set(first) <= {task.size for task in own_tasks(results)}:
        return False
    targets: dict[int, int] | None = first
    while targets is not None:
        if not is_held(results, targets):
            return False
        targets = next_targets(results, rule, targets)
    return True


def judged(results: Results, targets: Mapping[int, int]) -> Results:
    """Return the blocks of a round and of merged tasks, and none beyond.

    An interrupted run may hold some blocks of the next round; judging them would end it elsewhere
    than an undisturbed one.
    """
    wanted = wanted_blocks(results, targets)
    held = Results(results.study)
    for key, item in results.tasks.items():
        end = wanted.get(key)
        blocks = {n: block for n, block in item.blocks.items() if end is None or n < end}
        held.tasks[key] = TaskResult(item.task, blocks, item.columns)
    return held
