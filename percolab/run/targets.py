"""Which blocks a study needs, and when it has them all.

With a target error of p_c there are as many rounds as it takes: each costs a fifth of all before
it, spent on the sizes where it lowers the error most by the fit so far.  Cost is counted in sites,
and a round is assessed by its own blocks and none beyond: so the rounds are the same on every
machine, however often a study is interrupted, and a smaller target continues after a larger one.

The variance of p_c is convex in the numbers of samples, so adding a little where it falls fastest
for the cost ends near the best division: the c-optimal design of G. Elfving, Ann. Math. Stat. 23,
255 (1952).  That leaves out sizes that could contradict the fit: a part of the cost goes to all.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.stored_fits import fit_results
from percolab.analysis.threshold import Information, compute_information
from percolab.errors import AnalysisError, InputError
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.part import WHOLE, JobPart
from percolab.tasks.study import StopRule, Study, Task

#: Samples of the smallest size in the first round; others have fewer, but at least the second.
_FIRST_ROUND, _LEAST_FIRST = 1000, 300
#: Cost of all rounds so far, the next included, over that without it.
_GROWTH = 1.2
#: Part of the cost that goes to all sizes equally, whatever their information about p_c.
EQUAL_SHARE = 0.25
# Expected counts are integers; with this number of samples rounding is negligible.
_EXPECTED_SAMPLES = 10**9
# A lower p-value of a fit is no chance, even in many rounds: more samples do not help.
_HOPELESS = 1e-6
# A round's cost is allocated in about this number of pieces.
_PIECES = 50

Floats = NDArray[np.float64]


def first_targets(study: Study, rule: StopRule) -> dict[int, int]:
    """Return the samples of every size at the end of the first round.

    The cost of a size is its samples times its sites, so larger sizes have fewer samples.
    """
    if rule.target_error is None:
        return dict(rule.samples or {})
    tasks = study.tasks.values()
    least = min(task.num_points for task in tasks)
    targets = {}
    for task in tasks:
        enough = max(_FIRST_ROUND * (least / task.num_points) ** 0.5, _LEAST_FIRST)
        blocks = ceil(enough / task.block_size)
        targets[task.size] = int(min(blocks * task.block_size, rule.limit(task.size)))
    return targets


def current_targets(results: StoredResults, rule: StopRule) -> dict[int, int]:
    """Return the samples of every size at the end of the round that a study is in.

    That is the first round, from which all others follow.  Where blocks are in groups, earlier
    rounds can no longer be distinguished, and it is the round that the last runs record.
    """
    targets = first_targets(results.study, rule)
    own = [results.tasks[task.id] for task in results.own_tasks]
    if rule.target_error is None or all(each.num_blocks <= len(each.blocks) for each in own):
        return targets
    for run in results.runs:
        request = run.get("asked")
        reached: Any = request.get("round") if isinstance(request, Mapping) else None
        for size in targets if isinstance(reached, Mapping) else ():
            count = reached.get(str(size))
            if type(count) is int:
                targets[size] = max(targets[size], min(count, 2**63 - 1))
    return {size: int(min(count, rule.limit(size))) for size, count in targets.items()}


def next_targets(
    results: StoredResults, rule: StopRule, targets: Mapping[int, int]
) -> dict[int, int] | None:
    """Return the samples of every size at the end of the round after one, or None after the last.

    results: have the blocks of the round that ends at ``targets``.
    """
    if rule.target_error is None or all(n >= rule.limit(size) for size, n in targets.items()):
        return None
    # At the end of a round all tasks of a size have the same blocks, so that they join to one.
    stored = joined(blocks_of_round(results, target_blocks(results.own_tasks, targets)))
    samples = {key: result.num_samples for key, result in stored.tasks.items()}
    information: Information | None = None
    with suppress(AnalysisError):
        fit = fit_results(stored)
        if fit.threshold_error <= rule.target_error or fit.chi_square.p_value < _HOPELESS:
            return None
        information = fit.information
    if information is not None:
        # Far from the target the forecast is rough: whether it is just missed is decided near it.
        target = rule.target_error
        most = target if information.parts(samples)[0] <= 2 * target else 3 * target
        if information.remaining_systematic(samples, target) > most:
            return None
    own = stored.own_tasks
    others = {key: n for key, n in samples.items() if key not in {task.id for task in own}}
    return allocate_round(own, information, others, targets, rule)


def forecast_targets(
    results: StoredResults,
    rule: StopRule,
    tasks: Sequence[Task],
    information: Information,
    others: Mapping[str, int],
) -> tuple[dict[int, int], int]:
    """Return the samples of every size when a target error is met, and the rounds until then.

    Rounds that are in the results are assessed by these, others by the information of one sample of
    every task.  others: as for :func:`allocate_round`.  InputError: no number of samples is enough.
    """
    targets, rounds = current_targets(results, rule), 1
    own, target = results.own_tasks, rule.target_error or 0.0
    while not all(n >= rule.limit(size) for size, n in targets.items()):
        if has_blocks(results, target_blocks(own, targets)):
            following = next_targets(results, rule, targets)
            if following is None:
                break
            targets, rounds = following, rounds + 1
            continue
        samples = {
            task.id: ceil(targets[task.size] / task.block_size) * task.block_size for task in tasks
        }
        if information.error(samples | dict(others)) <= target:
            break
        targets = allocate_round(tasks, information, others, targets, rule)
        rounds += 1
        if max(targets.values()) >= 2**62:
            raise InputError(f"--plan: no number of samples reaches {target}")
    return targets, rounds


def why_unmet(results: StoredResults, target: float) -> str | None:
    """Return why samples of these sizes miss a target error, and which would reach it, or None."""
    stored = joined(results)
    samples = {key: float(each.num_samples) for key, each in stored.tasks.items() if each.blocks}
    try:
        fit = fit_results(stored)
    except AnalysisError:
        return None
    known = fit.information
    if known is None or known.remaining_systematic(samples, target) <= target:
        return None
    curves, function = list(fit.curves), fit.scaling
    largest = max(curves, key=lambda curve: curve.L)
    line = (
        f"more samples of these sizes do not bring the error to {target:g}, as its systematic part "
        "stays above that"
    )
    for factor in (2, 4, 8, 16):
        size = factor * largest.L
        p = function.threshold + (largest.p - function.threshold) * factor**-function.y_t
        samples |= {f"L = {size}": samples[largest.label]}
        try:
            curves.append(expected_curve(function, size, p, f"L = {size}"))
            information = compute_information(curves, omega=fit.omega, y_t=fit.known_y_t)
        except (AnalysisError, ValueError):
            # The fit is too rough to foresee larger sizes.
            return f"{line}; add larger sizes"
        if information.remaining_systematic(samples, target) <= target:
            return f"{line}; add larger sizes, up to L = {size}"
    return f"{line}, even at sizes sixteen times as large"


def expected_curve(function: ScalingFunction, size: int, p: Floats, label: str) -> SpanningCurve:
    counts = np.round(_EXPECTED_SAMPLES * function.probability(p, size))
    # A polynomial may fall in the tails, which counts never do.
    rising = np.maximum.accumulate(counts).astype(np.int64)
    return SpanningCurve(size, p, np.array([_EXPECTED_SAMPLES]), rising[None], label)


def allocate_round(
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
    allocated = allocate(choices, information.total(others), _GROWTH * spent)
    return dict(zip(targets, allocated, strict=True))


def target_blocks(tasks: Iterable[Task], targets: Mapping[int, int]) -> dict[str, int]:
    """Return the blocks that tasks should have; none where their size was not requested."""
    own = (task for task in tasks if task.size in targets)
    return {task.id: ceil(targets[task.size] / task.block_size) for task in own}


def has_blocks(results: StoredResults, blocks: Mapping[str, int], part: JobPart = WHOLE) -> bool:
    """Return whether all blocks of a round, or those of a part of it, are there."""
    return all(
        results.tasks[key].count_below(count, part) == part.count(count)
        for key, count in blocks.items()
    )


def unfinished_round(
    results: StoredResults,
    own: Sequence[Task],
    rule: StopRule,
    part: JobPart = WHOLE,
    targets: dict[int, int] | None = None,
) -> dict[int, int] | None:
    """Return the targets of the first round of which blocks of a part are missing, or None.

    own: tasks of a study.  targets: of the round to begin with, by default the current one.
    """
    targets = targets or current_targets(results, rule)
    while targets is not None and has_blocks(results, target_blocks(own, targets), part):
        targets = next_targets(results, rule, targets)
    return targets


def blocks_of_round(results: StoredResults, counts: Mapping[str, int]) -> StoredResults:
    """Return the blocks of a round and all of merged tasks, and none beyond.

    An interrupted run may have some blocks of the next round, with which it would end elsewhere
    than an uninterrupted one.  A group in which the round ends is taken whole.
    """
    chosen = StoredResults(results.study)
    for key, result in results.tasks.items():
        end = counts.get(key, inf)
        blocks = {n: block for n, block in result.blocks.items() if n < end}
        chosen.tasks[key] = TaskResult(result.task, blocks, result.columns)
    return chosen


@dataclass(frozen=True, eq=False)
class Choice:
    """A size that more samples can be spent on.

    information: of one sample, float64 (k, k).  cost: of one sample.  block: samples in a block.
    samples: those it has.  limit: the most it may have.
    """

    information: Floats
    cost: float
    block: int
    samples: int
    limit: float = inf


def allocate(choices: list[Choice], fixed: Floats, total_cost: float) -> list[int]:
    """Return the samples that each size should have once all have cost ``total_cost``.

    No size gets fewer samples than before, or more than its limit; whole blocks are added, and
    the cost is exceeded by less than a piece of it.  fixed: information of samples that are there
    and cost nothing, float64 (k, k).  At least one block is added where the limits allow.
    """
    samples = [choice.samples for choice in choices]
    spent = sum(choice.cost * n for choice, n in zip(choices, samples))
    piece = max(total_cost - spent, 0.0) / _PIECES
    while True:
        among = [i for i, choice in enumerate(choices) if samples[i] < choice.limit]
        if not among:
            return samples
        chosen = min(among, key=lambda i: choices[i].cost * samples[i])
        if choices[chosen].cost * samples[chosen] >= EQUAL_SHARE * spent / len(choices):
            chosen = _steepest(choices, samples, among, fixed)
        choice = choices[chosen]
        blocks = max(round(piece / (choice.cost * choice.block)), 1)
        more = int(min(samples[chosen] + blocks * choice.block, choice.limit))
        spent += choice.cost * (more - samples[chosen])
        samples[chosen] = more
        if spent >= total_cost:
            return samples


def _steepest(choices: list[Choice], samples: list[int], among: list[int], fixed: Floats) -> int:
    """Return the size where the variance of p_c falls fastest for the cost."""
    total = fixed + sum(choice.information * n for choice, n in zip(choices, samples))
    # d variance / d samples = - v' I v with v the first column of the covariance.
    first = np.linalg.pinv(total, hermitian=True)[0]
    falls = [first @ choices[i].information @ first / choices[i].cost for i in among]
    return among[int(np.argmax(falls))]
