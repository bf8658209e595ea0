"""A study from request to stored blocks: each step makes a value of the one before.

request -> placed tasks -> wanted blocks -> measured blocks -> results
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from percolab.run.engine import Engine, choose_engine, warm_up
from percolab.run.in_slabs import begin_checkpoints, check_p
from percolab.run.placement import Placed, place, samplers_of
from percolab.run.request import (
    SweepOptions,
    Watcher,
    kept_columns,
    open_study,
    request_record,
)
from percolab.run.sampler import Sampler
from percolab.run.stored import Saver, with_blocks
from percolab.run.wanted import first_targets, is_finished, next_targets, wanted_blocks
from percolab.store.results import Results
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study


def run_study(study: Study, rule: StopRule, **options: Unpack[SweepOptions]) -> Results:
    """Run a study until its stop rule is met, continuing what the writer's file holds.

    InputError: the file holds another study, or a size does not fit in memory.
    Interrupted: Ctrl-C or SIGTERM; what was finished is saved.
    """
    writer, watcher = options.get("writer"), options.get("watcher") or Watcher()
    opened = open_study(study, rule, options)
    asked, rule = opened.asked, opened.rule
    if not opened.missing and is_finished(opened.results, opened.own, rule):
        if writer is not None and not opened.is_described:
            writer.save(opened.results)
        return opened.results
    engine = choose_engine(asked, options, watcher)
    if engine.slabs:
        check_p(opened.missing.values())
    warm_up(asked, engine, watcher, with_pilot=opened.needs_pilot)
    if writer is not None:
        for line in kept_columns(opened.results, writer.path):
            watcher.noted(line)
    placed = place(opened, engine, watcher)
    if writer is not None and not writer.path.exists():
        writer.save(placed.results)
    samplers = samplers_of(placed, engine, watcher)
    forget = None
    if writer is not None:
        forget = begin_checkpoints(samplers, writer.path, placed.results, watcher)
    # A target error makes many rounds, not all of which are worth a save.
    saver = Saver(writer, every_run=rule.target_error is None, saved=forget)
    try:
        return _sampled(placed, rule, samplers, engine, saver, watcher)
    finally:
        saver.end()


def _sampled(
    placed: Placed,
    rule: StopRule,
    samplers: Mapping[str, Sampler],
    engine: Engine,
    saver: Saver,
    watcher: Watcher,
) -> Results:
    """Return results with all blocks that a rule wants, round by round."""
    results, asked = placed.results, request_record(placed.tasks, rule)
    targets: dict[int, int] | None = first_targets(results.study, rule)
    while targets is not None:
        wanted = wanted_blocks(placed.tasks, targets)
        results = with_blocks(results, wanted, asked, samplers, engine, saver, watcher)
        targets = next_targets(results, rule, targets)
    return results
