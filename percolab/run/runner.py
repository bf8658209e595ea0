"""A study from request to stored blocks: each step makes a value of the one before.

request -> placed tasks -> target blocks -> measured blocks -> results
"""

import logging
from contextlib import ExitStack
from typing import Unpack

from percolab.lattices.shown import counted, few
from percolab.run.engine import Engine, choose_engine, warm_up
from percolab.run.executors import connected
from percolab.run.measured import WorkerPool
from percolab.run.parts_sampler import begin_checkpoints
from percolab.run.placement import Placed, make_samplers, place
from percolab.run.request import Observer, Opened, SweepOptions, open_study, request_record
from percolab.run.stored import Saver, with_blocks
from percolab.run.targets import target_blocks, unfinished_round
from percolab.store.results import ResultsWriter, StoredResults
from percolab.tasks.part import WHOLE, JobPart
from percolab.tasks.study import StopRule, Study

_LOGGER = logging.getLogger("percolab")


def run_study(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> StoredResults:
    """Run a study until its stop rule is met, continuing the writer's file.

    InputError: the file is of another study, or a size does not fit in memory.
    Interrupted: Ctrl-C, SIGTERM, or workers that were lost; finished blocks are saved.
    """
    writer, observer = options.get("writer"), options.get("observer") or Observer()
    part = options.get("part", WHOLE)
    opened = open_study(study, rule, options)
    rule = opened.rule
    results, own = opened.results, opened.results.own_tasks
    if not opened.missing and not unfinished_round(results, own, rule, part):
        if writer is not None and not opened.is_described:
            writer.save(results)
        return results
    with ExitStack() as stack:
        options["executor"] = stack.enter_context(connected(options.get("executor")))
        engine = choose_engine(opened, options, observer)
        start = _describe_start(opened.requested, rule, engine, writer)
        observer.described(start)
        executor = stack.enter_context(engine.opened(opened.requested.structure))
        placed = _placed(opened, engine, writer, observer)
        if writer is not None and not writer.path.exists():
            writer.save(placed.results)
        samplers = make_samplers(placed, engine, observer)
        forget = None
        if writer is not None:
            forget = begin_checkpoints(samplers, writer.path, placed.results, observer)
        # A target error makes many rounds, not all of which are worth a save.
        saver = Saver(writer, every_run=rule.target_error is None, saved=forget)
        pool = engine.make_pool(samplers, executor)
        try:
            return _sampled(placed, rule, part, pool, engine, saver, observer)
        finally:
            saver.end()


def _describe_start(
    study: Study, rule: StopRule, engine: Engine, writer: ResultsWriter | None
) -> str:
    """Return in one line what is about to be sampled, how much of it, where, and into which file.

    For example: square, bond, boundary open: L = 8, 16; p by a pilot; 100 samples of each; on cpu
    """
    what = [study.structure.name, study.model]
    if study.structure.is_scalable:
        kinds = study.boundary[:1] if len(set(study.boundary)) == 1 else study.boundary
        what.append(f"boundary {', '.join(kinds)}")
    parts = [", ".join(what), f"L = {few(study.sizes)}"]
    if study.kind.fixed_p is None:
        parts.append(f"p = {few(study.p)}" if study.p else "p by a pilot")
    until = []
    if counts := list((rule.samples or {}).values()):
        equal = len(set(counts)) == 1
        each = f"{counted(counts[0], 'sample')} of each"
        until.append(each if equal else f"{few(counts)} samples")
    if rule.target_error:
        until.append(f"until the error of p_c is {rule.target_error:g}")
    devices, workers = map(str, engine.devices), counted(engine.workers, "worker")
    parts += [", ".join(until), f"on {', '.join(devices)} by {engine.labeler}, {workers}"]
    return "; ".join(parts + ([f"file {writer.path}"] if writer is not None else []))


def prepare_study(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> StoredResults:
    """Place the p and burn-in that a study leaves open, and store its tasks without sampling them.

    Copies of the file are what parts start from.  InputError: as for :func:`run_study`.
    """
    writer, observer = options.get("writer"), options.get("observer") or Observer()
    opened = open_study(study, rule, options)
    if not opened.missing and opened.is_described:
        return opened.results
    placed = _placed(opened, choose_engine(opened, options, observer), writer, observer)
    if writer is not None:
        writer.save(placed.results)
    return placed.results


def _placed(
    opened: Opened, engine: Engine, writer: ResultsWriter | None, observer: Observer
) -> Placed:
    """Return the placed tasks of a study, after the first calls of its samplers."""
    warm_up(opened.requested, engine, observer, with_pilot=opened.needs_pilot)
    if writer is not None and (names := ", ".join(opened.results.lacking())):
        observer.noted(f"{writer.path} lacks {names}, and so does what is added to it")
    return place(opened, engine, observer)


def _sampled(
    placed: Placed,
    rule: StopRule,
    part: JobPart,
    pool: WorkerPool,
    engine: Engine,
    saver: Saver,
    observer: Observer,
) -> StoredResults:
    """Return results with all blocks of a part that a rule requires, round by round."""
    results, request = placed.results, request_record(placed.tasks, rule, part)
    targets: dict[int, int] | None = None
    while targets := unfinished_round(results, placed.tasks, rule, part, targets):
        if rule.target_error is not None:
            request = request | {"round": {str(size): count for size, count in targets.items()}}
        blocks = target_blocks(placed.tasks, targets)
        _LOGGER.debug("round of %d blocks in all: %s", sum(blocks.values()), dict(blocks))
        record = engine.record() | {"asked": request}
        results = with_blocks(results, blocks, record, pool, saver, observer, part)
    return results
