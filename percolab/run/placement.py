"""Where a study is sampled: its tasks with their p, placed by pilots unless they are given.

What is placed is a value: the results that there were, and beside them empty ones of the tasks that
are new.  With method "threshold" a task has no p, and what is placed is the window in which its
samples' thresholds are looked for first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import TOP
from percolab.run.engine import Engine, share_of
from percolab.run.parts_sampler import AnySampler
from percolab.run.pilot import place_over_maxima, place_probabilities, place_window, reach_of
from percolab.run.request import Opened, Watcher
from percolab.run.spin_pilot import find_burn_in, place_spins
from percolab.store.results import Results
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import ThresholdBlock
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study, Task, block_size_for
from percolab.tasks.values import AUTO

#: Chains of a task of spins, about, and at least; and the fewest sweeps that one measures.
_CHAINS, _LEAST_CHAINS, _LEAST_SWEEPS = 64, 44, 20


@dataclass(frozen=True, eq=False)
class Placed:
    """Every task that is asked for.

    results: with what is there of them, and of others.  tasks: those that are asked for this time.
    """

    results: Results
    tasks: tuple[Task, ...]


def place(opened: Opened, engine: Engine, watcher: Watcher) -> Placed:
    """Return the tasks that what is asked needs, those of the file and new ones.

    InputError: the lattice does not span.
    """
    results, rule = opened.results, opened.rule
    grids = _missing_grids(opened, engine, watcher)
    new = []
    for size, p in opened.missing.items():
        if p and results.of_size(size):
            watcher.noted(f"L = {size}: {len(p)} more p, of the same samples as those of the file")
        values = grids[size] if p is None else p
        task = new_task(results.study, opened.own, rule, size, values)
        if task.burn_in == AUTO and task.has_spins:
            task = _with_burn_in(results.study, task, rule, engine, watcher)
        new.append(task)
    results = with_tasks(results, new)
    asked = [task for task in [*opened.own, *new] if task.size in opened.asked.sizes]
    for line in rounded_up(asked, results, rule):
        watcher.noted(line)
    return Placed(results, tuple(asked))


def with_tasks(results: Results, tasks: Iterable[Task]) -> Results:
    """Return results with further tasks, of which nothing is sampled yet."""
    found = Results(results.study, dict(results.tasks), results.runs)
    for task in tasks:
        found.add_task(task)
    return found


def new_task(
    study: Study, own: Iterable[Task], rule: StopRule, size: int, p: tuple[float, ...]
) -> Task:
    """Return a task to be added for a size, in blocks as the study's own tasks have it.

    Where there are none, the blocks are such that they make up the samples that are asked for.
    """
    task = study.task(size, p)
    held = [item for item in own if item.size == size]
    if held:
        return replace(task, block_size=held[0].block_size, burn_in=held[0].burn_in)
    if task.has_spins:
        return task if task.burn_in == AUTO else with_chains(study, task, rule)
    if study.block_size or rule.samples is None:
        return task
    return replace(task, block_size=block_size_for(rule.samples[size], task.block_size))


def with_chains(study: Study, task: Task, rule: StopRule) -> Task:
    """Return a task of spins in chains of the length that is asked for, or in _CHAINS of them.

    They are not made shorter than the burn-in, unless fewer than _LEAST_CHAINS were left; nor,
    where there are many samples, longer than ten times the burn-in: a chain is what an interrupted
    run loses at most.  Blocks of one long chain are never shorter than the burn-in, that is 20
    autocorrelation times if a pilot found it, so that hardly anything connects their means.
    """
    if study.sweeps or study.block_size or rule.samples is None:
        return task
    samples, burn_in = rule.samples[task.size], -(-task.burn_in // task.every)
    if task.chains:
        wanted = min(-(-samples // _CHAINS), 10 * burn_in)
        return replace(task, block_size=max(wanted, burn_in, _LEAST_SWEEPS))
    longest = min(max(10 * burn_in, 10 * _LEAST_SWEEPS), -(-samples // _LEAST_CHAINS))
    wanted = max(-(-samples // _CHAINS), burn_in)
    return replace(task, block_size=max(min(wanted, longest), _LEAST_SWEEPS))


def _with_burn_in(
    study: Study, task: Task, rule: StopRule, engine: Engine, watcher: Watcher
) -> Task:
    """Return a task of spins with the burn-in that a pilot finds, and chains that go with it."""
    found = find_burn_in(task, engine.labeler, engine.device)
    watcher.noted(f"pilot: L = {task.size}: a burn-in of {found.updates} sweeps")
    if found.warning:
        watcher.noted(f"pilot: L = {task.size}: {found.warning}")
    return with_chains(study, study.with_burn_in(task, found.updates), rule)


def rounded_up(tasks: Sequence[Task], results: Results, rule: StopRule) -> list[str]:
    """Return one line for every size whose blocks do not make up the samples asked for.

    Nothing is said of one that has them already.
    """
    lines = []
    for size, asked in (rule.samples or {}).items() if rule.target_error is None else ():
        own = [task for task in tasks if task.size == size]
        made = max(-(-asked // task.block_size) * task.block_size for task in own)
        held = [results.tasks[task.id].num_samples for task in own if task.id in results.tasks]
        if made != asked and min(held, default=0) < made:
            block_size = max(task.block_size for task in own)
            lines.append(
                f"L = {size}: {made} samples are made, not {asked}: a block has {block_size}"
            )
    return lines


def _missing_grids(
    opened: Opened, engine: Engine, watcher: Watcher
) -> dict[int, tuple[float, ...]]:
    """Return the p of the sizes that ask for a pilot."""
    unplaced = [size for size, p in opened.missing.items() if p is None]
    if not unplaced:
        return {}
    # Smaller sizes help to find the p of larger ones, and they shall not depend on the order in
    # which sizes were asked for.
    sizes = tuple(size for size in opened.results.study.sizes if size <= max(unplaced))
    study = replace(opened.asked, sizes=sizes, p=None)
    return grids_of(study, engine, _OfSizes(watcher, unplaced))


class _OfSizes(Watcher):
    """Passes on the p of some sizes alone."""

    def __init__(self, watcher: Watcher, sizes: Sequence[int]) -> None:
        self._watcher, self._sizes = watcher, sizes

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Take the p values that the pilot placed for a size."""
        if size in self._sizes:
            self._watcher.placed(size, p)


def grids_of(study: Study, engine: Engine, watcher: Watcher) -> dict[int, tuple[float, ...]]:
    """Return the p of every size, placed by a pilot unless they are given or not needed."""
    if study.method == "threshold" or study.p is not None:
        return dict.fromkeys(study.sizes, study.p or ())
    if study.has_spins:
        grids = {}
        for size in study.sizes:
            grids[size] = place_spins(study.task(size), engine.labeler, engine.device)
            watcher.placed(size, grids[size])
        return grids
    place = place_probabilities if study.structure.is_scalable else place_over_maxima
    return place(study, labeler=engine.labeler, device=engine.device, report=watcher.placed)


def place_windows(
    results: Results, sizes: Sequence[int], engine: Engine, watcher: Watcher
) -> dict[int, tuple[float, float]]:
    """Return where the thresholds of these sizes are looked for first; empty for a grid of p."""
    study = results.study
    windows: dict[int, tuple[float, float]] = {}
    for size in sizes if study.method == "threshold" else ():
        found = _stored_thresholds(results.of_size(size))
        if len(found) > 1:
            windows[size] = reach_of(found)
            continue
        before = windows[max(windows)] if windows else None
        windows[size] = place_window(study.task(size), before, engine.labeler, engine.device)
        low, high = windows[size]
        watcher.noted(f"pilot: L = {size}: samples begin to span from {low:.4g} to {high:.4g}")
    return windows


def _stored_thresholds(items: list[TaskResult]) -> NDArray[np.float64]:
    """Return T of the samples that are there and span at some p, float64 (n, open axes)."""
    parts = [
        block.thresholds
        for item in items
        for block in item.blocks.values()
        if isinstance(block, ThresholdBlock)
    ]
    found = np.concatenate(parts) if parts else np.empty((0, 1), np.uint64)
    spans: NDArray[np.float64] = found[(found <= np.uint64(TOP)).all(axis=1)] / TOP
    return spans


def samplers_of(placed: Placed, engine: Engine, watcher: Watcher) -> dict[str, AnySampler]:
    """Return the samplers of all tasks that are asked for, by the tasks' ids."""
    sizes = sorted({task.size for task in placed.tasks})
    windows = place_windows(placed.results, sizes, engine, watcher)
    share = share_of(len(placed.tasks))
    return {
        task.id: engine.sampler(
            task,
            share=share,
            window=windows.get(task.size, (0.0, 1.0)),
            end=placed.results.tasks[task.id].end,
        )
        for task in placed.tasks
    }
