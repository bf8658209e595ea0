"""Where a study is sampled: its tasks with their p, placed by pilots unless they are given."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from percolab.run.engine import Engine, memory_share
from percolab.run.request import Observer, Opened
from percolab.store.results import StoredResults
from percolab.tasks.kind import BlockSampler, PilotConditions
from percolab.tasks.study import StopRule, Study, Task


@dataclass(frozen=True, eq=False)
class Placed:
    """The requested tasks, and results: of these, empty where they are new, and of other tasks."""

    results: StoredResults
    tasks: tuple[Task, ...]


def place(opened: Opened, engine: Engine, observer: Observer) -> Placed:
    """Return the tasks that are requested, old and new; InputError: the lattice does not span."""
    results, rule = opened.results, opened.rule
    grids = _missing_grids(opened, engine, observer)
    place_task, pilot = results.study.kind.place_task, pilot_conditions(engine, observer)
    new = []
    for size, p in opened.missing.items():
        if p and results.of_size(size):
            observer.noted(f"L = {size}: {len(p)} more p, of the same samples as those of the file")
        values = grids[size] if p is None else p
        task = new_task(results.study, opened.results.own_tasks, rule, size, values)
        new.append(place_task(results.study, task, rule.requested(size), pilot))
    results = with_tasks(results, new)
    requested = opened.requested.sizes
    requested_tasks = [task for task in results.own_tasks if task.size in requested]
    for line in rounded_up(requested_tasks, results, rule):
        observer.noted(line)
    return Placed(results, tuple(requested_tasks))


def with_tasks(results: StoredResults, tasks: Iterable[Task]) -> StoredResults:
    more = replace(results, tasks=dict(results.tasks))
    for task in tasks:
        more.add_task(task)
    return more


def new_task(
    study: Study, own: Iterable[Task], rule: StopRule, size: int, p: tuple[float, ...]
) -> Task:
    """Return a new task of a size, with the block size and burn-in of the study's tasks of it.

    Where there are none, the block size is chosen so that blocks make up the requested samples.
    """
    task = study.task(size, p)
    existing = [each for each in own if each.size == size]
    if existing:
        return replace(task, block_size=existing[0].block_size, burn_in=existing[0].burn_in)
    chosen: Task = study.kind.choose_blocks(study, task, rule.requested(size))
    return chosen


def pilot_conditions(engine: Engine, observer: Observer) -> PilotConditions:
    return PilotConditions(engine.labeler, engine.device, observer.placed, observer.noted)


def rounded_up(tasks: Sequence[Task], results: StoredResults, rule: StopRule) -> list[str]:
    """Return a line for every unfinished size whose blocks make up more than its samples."""
    lines = []
    for size, requested in (rule.samples or {}).items() if rule.target_error is None else ():
        own = [task for task in tasks if task.size == size]
        made = max(-(-requested // task.block_size) * task.block_size for task in own)
        present = [results.tasks[task.id].num_samples for task in own if task.id in results.tasks]
        if made != requested and min(present, default=0) < made:
            block_size = max(task.block_size for task in own)
            lines.append(
                f"L = {size}: {made} samples are made, not {requested}: a block has {block_size}"
            )
    return lines


def _missing_grids(
    opened: Opened, engine: Engine, observer: Observer
) -> dict[int, tuple[float, ...]]:
    """Return the p of the sizes that need a pilot."""
    unplaced = [size for size, p in opened.missing.items() if p is None]
    if not unplaced:
        return {}
    # Smaller sizes help to find the p of larger ones, which must not depend on the order in which
    # sizes were requested.
    sizes = tuple(size for size in opened.results.study.sizes if size <= max(unplaced))
    study = replace(opened.requested, sizes=sizes, p=None)

    def on_p(size: int, p: tuple[float, ...]) -> None:
        if size in unplaced:
            observer.placed(size, p)

    pilot = replace(pilot_conditions(engine, observer), on_p=on_p)
    return dict(study.kind.place_p(study, pilot))


def make_samplers(placed: Placed, engine: Engine, observer: Observer) -> dict[str, BlockSampler]:
    study, share = placed.results.study, memory_share(len(placed.tasks))
    sizes = {task.size for task in placed.tasks}
    stored = {key: each for key, each in placed.results.tasks.items() if each.task.size in sizes}
    hints = study.kind.hints(study, stored, pilot_conditions(engine, observer))
    return {
        task.id: engine.sampler(task, share=share, **hints.get(task.id, {}))
        for task in placed.tasks
    }
