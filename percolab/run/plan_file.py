"""How large a results file will be: the file of likely blocks, written by the writer itself.

A likely block is the sum of single samples of a pilot, drawn with replacement.  It compresses as
one that is measured, and whatever else the writer stores is counted as it stores it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from percolab.store.results import Results, encode
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock, Block, ThresholdBlock
from percolab.tasks.study import Study, Task

# Beyond so many blocks the file grows in proportion.
_MOST_BLOCKS = 256
#: Single samples that likely blocks need: sums of fewer would repeat themselves.
ENOUGH = 24
# The lower digits of T are as good as random, and must not repeat those of the pilot.
_RANDOM_BITS = 44


def file_bytes(
    results: Results,
    tasks: Sequence[Task],
    blocks: Mapping[str, int],
    kept: Mapping[str, list[AnyBlock]],
    runs: Sequence[dict[str, Any]],
) -> tuple[int, dict[str, int], float]:
    """Return the bytes of a study's results file, those of each task, and the seconds of a save.

    results: what there is, of which merged tasks count as they are.  blocks: how many each task
    will have.  kept: single samples of each task's pilot.  runs: records of the runs to come.
    """
    own = {task.id for task in tasks}
    rest = Results(results.study, runs=[*results.runs, *runs])
    rest.tasks.update({key: item for key, item in results.tasks.items() if key not in own})
    total, by_task, rate, pace = len(encode(rest)), {}, 0.0, 0.0
    for task in tasks:
        if len(kept[task.id]) >= ENOUGH or not rate:
            rate, fixed, pace = _growth(results.study, task, kept[task.id])
        by_task[task.id] = round(fixed + rate * blocks[task.id])
        if blocks[task.id] <= _MOST_BLOCKS and len(kept[task.id]) >= ENOUGH:
            by_task[task.id] = _bytes_of(results.study, task, kept[task.id], blocks[task.id])
    total += sum(by_task.values())
    return total, by_task, pace * total


def _growth(study: Study, task: Task, kept: list[AnyBlock]) -> tuple[float, float, float]:
    """Return the bytes of a further block, those that do not grow, and the seconds of a byte."""
    half = _bytes_of(study, task, kept, _MOST_BLOCKS // 2)
    results = _filled(study, task, kept, _MOST_BLOCKS)
    begin = time.perf_counter()
    whole = len(encode(results))
    pace = (time.perf_counter() - begin) / whole
    whole -= len(encode(Results(study)))
    rate = (whole - half) / (_MOST_BLOCKS - _MOST_BLOCKS // 2)
    return rate, whole - rate * _MOST_BLOCKS, pace


def _bytes_of(study: Study, task: Task, kept: list[AnyBlock], count: int) -> int:
    """Return the bytes that a task with so many likely blocks adds to a file."""
    return len(encode(_filled(study, task, kept, count))) - len(encode(Results(study)))


def _filled(study: Study, task: Task, kept: list[AnyBlock], count: int) -> Results:
    """Return results of a task with so many likely blocks."""
    rng = np.random.default_rng(0)
    blocks = {n: likely_block(n, kept, task.block_size, rng) for n in range(count)}
    return Results(study, {task.id: TaskResult(task, blocks)})


def likely_block(
    number: int, kept: list[AnyBlock], block_size: int, rng: np.random.Generator
) -> AnyBlock:
    """Return a block of single samples drawn with replacement; kept: blocks of one sample each."""
    chosen = [kept[i] for i in rng.integers(len(kept), size=block_size)]
    if isinstance(chosen[0], ThresholdBlock):
        found = np.concatenate([block.thresholds for block in chosen])
        low = np.uint64(2**_RANDOM_BITS)
        found = found - found % low + rng.integers(int(low), size=found.shape, dtype=np.uint64)
        return ThresholdBlock(number, found)
    return Block(
        number,
        _summed([block.sums for block in chosen]),
        _summed([block.products for block in chosen]),
        {name: _summed([block.extras[name] for block in chosen]) for name in chosen[0].extras},
    )


def at_points(kept: list[AnyBlock], points: int) -> list[AnyBlock]:
    """Return single samples at another number of p, as a task at further p has it.

    For the size of a file any rows do, so those that are there are repeated or left out.
    """
    found: list[AnyBlock] = []
    for block in kept:
        if isinstance(block, ThresholdBlock) or len(block.sums) == points:
            found.append(block)
            continue
        rows = np.arange(points) % len(block.sums)
        extras = {name: array[rows] for name, array in block.extras.items()}
        found.append(Block(block.number, block.sums[rows], block.products[rows], extras))
    return found


def _summed(arrays: list[np.ndarray]) -> np.ndarray:
    return np.asarray(np.sum(arrays, axis=0, dtype=arrays[0].dtype))
