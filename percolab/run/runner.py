"""A study from request to stored blocks: pilot, rounds of sampling, stop rule, progress."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.labelers import DEFAULT_LABELER, LABELERS, fitting_labeler, labeler_class
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice
from percolab.run.cluster_pilot import place_over_maxima
from percolab.run.continuing import (
    Opened,
    continue_results,
    missing_p,
    new_task,
    request_record,
    rounded_up,
)
from percolab.run.executors import default_workers, make_executor
from percolab.run.pilot import place_probabilities, place_window, reach_of
from percolab.run.rounds import first_targets, is_finished, next_targets, own_tasks, wanted_blocks
from percolab.run.sampler import Device, Sampler, check_memory, required_memory
from percolab.run.scheduler import Pace, missing_jobs, run_jobs
from percolab.run.warm_up import heard_compiling, warm_up
from percolab.store.provenance import processor_name, run_record
from percolab.store.results import Results, ResultsWriter
from percolab.store.stored_tasks import TaskResult
from percolab.tasks.blocks import AnyBlock, ThresholdBlock
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study
from percolab.tasks.values import check_choice


class Watcher:
    """Hears of a sweep's progress; this one keeps silent.  The command line has one that draws."""

    def noted(self, text: str) -> None:
        """Hear what differs from what was asked for."""

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Hear the p values that the pilot placed for a size."""

    def compiling(self) -> None:
        """Hear that kernels are compiled, which they are once after an installation."""

    def started(self, sites: int, done: int) -> None:
        """Hear how many site labelings a round takes in all, and how many are done already."""

    def advanced(self, results: Results, item: TaskResult, blocks: list[AnyBlock]) -> None:
        """Hear of finished blocks."""

    def finished(self) -> None:
        """Hear that a round has ended."""


def run_study(
    study: Study,
    rule: StopRule,
    *,
    writer: ResultsWriter | None = None,
    device: Device,
    labeler: str | None = None,
    workers: int | None = None,
    watcher: Watcher | None = None,
    left_open: Collection[str] = (),
) -> Results:
    """Run a study until its stop rule is met, continuing what the writer's file holds.

    left_open: what was not given and is as the file has it (:mod:`percolab.run.continuing`).
    InputError: the file holds another study, or a size does not fit in memory.
    """
    watcher = watcher or Watcher()
    opened = open_study(study, rule, writer, labeler, watcher, left_open)
    results, asked, rule = opened.results, opened.asked, opened.rule
    if not missing_p(results, asked) and is_finished(results, rule):
        if writer is not None and not opened.is_described:
            writer.save(results)
        return results
    means = choose_means(asked, device, labeler, workers, watcher)
    _warm_up(results, asked, means, watcher)
    _place_tasks(results, asked, rule, means, watcher)
    for line in rounded_up(own_tasks(results), results, rule):
        watcher.noted(line)
    if writer is not None and not writer.path.exists():
        writer.save(results)
    windows = place_windows(results, asked.sizes, means, watcher)
    samplers = _samplers_of(results, asked.sizes, windows, means)
    targets: dict[int, int] | None = first_targets(results.study, rule)
    # A target error makes many rounds, not all of which are worth a save.
    pace = None if rule.target_error is None else Pace()
    try:
        while targets is not None:
            _run_round(results, rule, targets, samplers, writer, means, watcher, pace)
            targets = next_targets(results, rule, targets)
    finally:
        if writer is not None and pace is not None and pace.pending:
            writer.save(results)
    return results


@dataclass(frozen=True)
class Means:
    """What samples a study: a device, the labeler's name, and the threads."""

    device: Device
    labeler: str
    workers: int


def open_study(
    study: Study,
    rule: StopRule,
    writer: ResultsWriter | None,
    labeler: str | None,
    watcher: Watcher,
    left_open: Collection[str] = (),
) -> Opened:
    """Return what a writer's file holds of a study, or empty results, and what is asked of it.

    InputError: the rule cannot end the study, there is no such labeler, or the file holds another
    study.
    """
    rule.check(study)
    _check_layers(study)
    if labeler is not None:
        check_choice("labeler", labeler, LABELERS)
    stored, path = (None, None) if writer is None else (writer.load(), writer.path)
    opened = continue_results(study, rule, stored, path, left_open)
    opened.rule.check(opened.results.study)
    if isinstance(study.lattice, Graph):
        for line in study.lattice.notes:
            watcher.noted(f"{study.lattice.name}: {line}")
    return opened


def choose_means(
    study: Study, device: Device, labeler: str | None, workers: int | None, watcher: Watcher
) -> Means:
    """Return what a study is sampled with; InputError if a size does not fit in memory."""
    device = device.resolve()
    labeler, note = _labeler_of(study, labeler, device.kind)
    labeler_class(labeler, device.kind)
    if note:
        watcher.noted(note)
    workers = default_workers(device) if workers is None else workers
    held, share = 0, share_of(len(study.sizes))
    for size in sorted(study.sizes):
        task = study.task(size)
        check_memory(task, labeler, device, workers, held=held, share=share)
        held += required_memory(task, labeler, device, workers)
    return Means(device, labeler, workers)


def _labeler_of(study: Study, name: str | None, kind: str) -> tuple[str, str]:
    """Return the labeler to use, and why it is not the one named, or ""."""
    if isinstance(study.lattice, Lattice):
        return fitting_labeler(name, kind, study.lattice)
    if kind == "cuda" and name in (None, "tiled"):
        note = "tiled needs a lattice; four_step takes its place"
        return "four_step", note if name else ""
    return name or DEFAULT_LABELER[kind], ""


def share_of(tasks: int) -> float:
    """Return the part of a CUDA device's free memory that each of several tasks may take."""
    return 0.9 / max(tasks, 1)


def _check_layers(study: Study) -> None:
    """Raise InputError if a graph's source and target share a site that may be vacant."""
    if isinstance(study.lattice, Graph) and Model.parse(study.model).draws_sites:
        study.lattice.topology(study.lattice.shape(study.sizes[0])).site_lattice(None)


def _warm_up(results: Results, asked: Study, means: Means, watcher: Watcher) -> None:
    with_pilot = asked.method == "threshold" or None in missing_p(results, asked).values()
    with heard_compiling(watcher.compiling, means.device):
        warm_up(asked, means.device, means.labeler, with_pilot=with_pilot)


def _place_tasks(
    results: Results, asked: Study, rule: StopRule, means: Means, watcher: Watcher
) -> None:
    """Add the tasks that what is asked needs and the file does not have."""
    missing = missing_p(results, asked)
    unplaced = [size for size, p in missing.items() if p is None]
    grids: Mapping[int, tuple[float, ...]] = {}
    if unplaced:
        # Smaller sizes help to find the p of larger ones, and they shall not depend on the order
        # in which sizes were asked for.
        sizes = tuple(size for size in results.study.sizes if size <= max(unplaced))
        grids = grids_of(replace(asked, sizes=sizes, p=None), means, _Only(watcher, unplaced))
    for size, p in missing.items():
        if p and results.of_size(size):
            watcher.noted(f"L = {size}: {len(p)} more p, of the same samples as those of the file")
        results.add_task(new_task(results, rule, size, grids[size] if p is None else p))


class _Only(Watcher):
    """Lets another watcher hear of the p of some sizes alone."""

    def __init__(self, watcher: Watcher, sizes: Sequence[int]) -> None:
        self._watcher, self._sizes = watcher, sizes

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Hear the p values that the pilot placed for a size."""
        if size in self._sizes:
            self._watcher.placed(size, p)


def grids_of(study: Study, means: Means, watcher: Watcher) -> dict[int, tuple[float, ...]]:
    """Return the p of every size, placed by a pilot unless they are given or not needed."""
    if study.method == "threshold" or study.p is not None:
        return dict.fromkeys(study.sizes, study.p or ())
    place = place_probabilities if study.lattice.is_scalable else place_over_maxima
    return place(study, labeler=means.labeler, device=means.device, report=watcher.placed)


def place_windows(
    results: Results, sizes: Sequence[int], means: Means, watcher: Watcher
) -> dict[int, tuple[float, float]]:
    """Return where the thresholds of these sizes are looked for first; empty for a grid of p."""
    study = results.study
    windows: dict[int, tuple[float, float]] = {}
    if study.method == "threshold":
        for size in sizes:
            found = _stored_thresholds(results.of_size(size))
            if len(found) > 1:
                windows[size] = reach_of(found)
                continue
            before = windows[max(windows)] if windows else None
            windows[size] = place_window(study.task(size), before, means.labeler, means.device)
            low, high = windows[size]
            watcher.noted(f"pilot: L = {size}: samples begin to span from {low:.4g} to {high:.4g}")
    return windows


def _stored_thresholds(items: list[TaskResult]) -> np.ndarray:
    """Return T of the samples that are there and span at last, float64 (n, open axes)."""
    parts = [
        block.thresholds
        for item in items
        for block in item.blocks.values()
        if isinstance(block, ThresholdBlock)
    ]
    found = np.concatenate(parts) if parts else np.empty((0, 1), np.uint64)
    return found[(found <= np.uint64(TOP)).all(axis=1)] / TOP


def _samplers_of(
    results: Results,
    sizes: Sequence[int],
    windows: Mapping[int, tuple[float, float]],
    means: Means,
) -> dict[str, Sampler]:
    """Return the samplers of the study's own tasks of these sizes, for all rounds."""
    own = [task for task in own_tasks(results) if task.size in sizes]
    return {
        task.id: Sampler(
            task,
            labeler=means.labeler,
            device=means.device,
            share=share_of(len(own)),
            window=windows.get(task.size, (0.0, 1.0)),
        )
        for task in own
    }


def _run_round(
    results: Results,
    rule: StopRule,
    targets: Mapping[int, int],
    samplers: Mapping[str, Sampler],
    writer: ResultsWriter | None,
    means: Means,
    watcher: Watcher,
    pace: Pace | None,
) -> None:
    wanted = wanted_blocks(results, targets)
    todo = {
        key: count - sum(number < count for number in results.tasks[key].blocks)
        for key, count in wanted.items()
    }
    if not any(todo.values()):
        return
    record = record_of(means) | {"asked": request_record(results, rule)}
    results.runs.append(record)
    begin = time.perf_counter()

    def save() -> None:
        record["seconds"] = round(time.perf_counter() - begin, 3)
        if writer is not None:
            writer.save(results)

    def report(item: TaskResult, blocks: list[AnyBlock]) -> None:
        made = record["blocks"]
        made[item.task.id] = made.get(item.task.id, 0) + len(blocks)
        watcher.advanced(results, item, blocks)

    total = sum(work_of(results.tasks[key], count) for key, count in wanted.items())
    left = sum(work_of(results.tasks[key], count) for key, count in todo.items())
    watcher.started(total, total - left)
    try:
        with make_executor(means.device, means.workers) as executor:
            run_jobs(
                missing_jobs(results, wanted, samplers),
                results=results,
                samplers=samplers,
                executor=executor,
                workers=means.workers,
                save=save,
                report=report,
                pace=pace,
            )
    finally:
        # What is still to be saved says how long it took; what was saved stays as it is.
        if pace is not None and pace.pending:
            record["seconds"] = round(time.perf_counter() - begin, 3)
        watcher.finished()


def record_of(means: Means) -> dict[str, Any]:
    """Return the provenance of a run that starts now."""
    return run_record(
        device=str(means.device),
        device_label=device_label(means.device),
        labeler=means.labeler,
        workers=means.workers,
    )


def work_of(item: TaskResult, blocks: int) -> int:
    """Return the site labelings that so many blocks of a task take."""
    task = item.task
    return blocks * task.block_size * max(len(task.p), 1) * task.num_points


def device_label(device: Device) -> str:
    """Return the model name of the processor or GPU behind a device."""
    if device.kind == "cpu":
        return processor_name()
    from percolab.kernels.device import device_name, open_device

    return device_name(open_device(str(device)))
