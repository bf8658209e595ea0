"""A study from request to stored blocks: pilot, rounds of sampling, stop rule, progress."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np

from percolab.analysis import AnalysisError
from percolab.cluster_pilot import place_over_maxima
from percolab.executors import default_workers, make_executor
from percolab.graph_structure import Graph
from percolab.kernels.open_bonds import TOP
from percolab.labelers import DEFAULT_LABELER, LABELERS, fitting_labeler, labeler_class
from percolab.lattice import Lattice
from percolab.model import Model
from percolab.observables import observables_of
from percolab.pilot import place_probabilities, place_window, reach_of
from percolab.provenance import processor_name, run_record
from percolab.sampler import Device, Sampler, check_memory, required_memory
from percolab.scheduler import missing_jobs, run_jobs
from percolab.spanning import fit_results
from percolab.statistics import AnyBlock, ThresholdBlock
from percolab.storage import Results, ResultsWriter
from percolab.stored_tasks import TaskResult
from percolab.study import Study, Task, check_choice
from percolab.toml_input import InputError

#: With a target error, the rule is tried at these multiples of the first number of samples.
_FIRST_ROUND, _ROUND_FACTOR = 1000, 1.4
_MAX_ROUNDS = 60


@dataclass(frozen=True)
class StopRule:
    """When a study is finished: samples a size, or the error of p_c, whichever comes first."""

    samples: Mapping[int, int] | None = None
    target_error: float | None = None

    def rounds(self, sizes: tuple[int, ...]) -> list[dict[int, int]]:
        """Return the samples of every size at the end of each round, the same in every run."""
        if self.target_error is None:
            return [dict(self.samples or {})]
        counts = [ceil(_FIRST_ROUND * _ROUND_FACTOR**n) for n in range(_MAX_ROUNDS)]
        if self.samples is None:
            return [dict.fromkeys(sizes, count) for count in counts]
        limit = max(self.samples.values())
        below = [count for count in counts if count < limit]
        shares = {size: self.samples[size] / limit for size in sizes}
        return [{s: ceil(n * shares[s]) for s in sizes} for n in below] + [dict(self.samples)]


class Watcher:
    """Hears of a sweep's progress; this one keeps silent.  The command line has one that draws."""

    def noted(self, text: str) -> None:
        """Hear what differs from what was asked for."""

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Hear the p values that the pilot placed for a size."""

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
) -> Results:
    """Run a study until its stop rule is met, continuing what the writer's file holds.

    InputError: the file holds another study, or a size does not fit in memory.
    """
    watcher = watcher or Watcher()
    _check_rule(study, rule)
    _check_layers(study)
    if labeler is not None:
        check_choice("labeler", labeler, LABELERS)
    results = _continued(study, writer)
    if isinstance(study.lattice, Graph):
        for line in study.lattice.notes:
            watcher.noted(f"{study.lattice.name}: {line}")
    if _is_finished(results, rule):
        return results
    device = device.resolve()
    labeler, note = _labeler_of(study, labeler, device.kind)
    labeler_class(labeler, device.kind)
    if note:
        watcher.noted(note)
    workers = default_workers(device) if workers is None else workers
    held, share = 0, _share_of(len(study.sizes))
    for size in sorted(study.sizes):
        task = study.task(size)
        check_memory(task, labeler, device, workers, held=held, share=share)
        held += required_memory(task, labeler, device, workers)
    _place_tasks(results, labeler, device, watcher)
    if writer is not None and not writer.path.exists():
        writer.save(results)
    windows = _place_windows(results, labeler, device, watcher)
    for targets in rule.rounds(study.sizes):
        _run_round(results, targets, windows, writer, device, labeler, workers, watcher)
        if _is_precise(results, rule, targets):
            break
    return results


def _labeler_of(study: Study, name: str | None, kind: str) -> tuple[str, str]:
    """Return the labeler to use, and why it is not the one named, or ""."""
    if isinstance(study.lattice, Lattice):
        return fitting_labeler(name, kind, study.lattice)
    if kind == "cuda" and name in (None, "tiled"):
        note = "tiled needs a lattice; four_step takes its place"
        return "four_step", note if name else ""
    return name or DEFAULT_LABELER[kind], ""


def _share_of(tasks: int) -> float:
    """Return the part of a CUDA device's free memory that each of several tasks may take."""
    return 0.9 / max(tasks, 1)


def _is_finished(results: Results, rule: StopRule) -> bool:
    """Return whether a study's stop rule is met by what is there."""
    if not all(results.of_size(size) for size in results.study.sizes):
        return False
    for targets in rule.rounds(results.study.sizes):
        for task_id, count in _wanted_blocks(results, targets).items():
            if not all(n in results.tasks[task_id].blocks for n in range(count)):
                return False
        if _is_precise(results, rule, targets):
            break
    return True


def _is_precise(results: Results, rule: StopRule, targets: Mapping[int, int]) -> bool:
    """Return whether the blocks of a round, and none beyond, reach the target error.

    An interrupted run may hold some blocks of the next round; judging them would end it elsewhere
    than an undisturbed one.
    """
    if rule.target_error is None:
        return False
    wanted = _wanted_blocks(results, targets)
    judged = Results(results.study)
    for key, item in results.tasks.items():
        end = wanted.get(key)
        blocks = {n: block for n, block in item.blocks.items() if end is None or n < end}
        judged.tasks[key] = TaskResult(item.task, blocks)
    return _error_of(judged) <= rule.target_error


def _wanted_blocks(results: Results, targets: Mapping[int, int]) -> dict[str, int]:
    """Return the blocks each of the study's own tasks should have; merged ones want none."""
    return {
        item.task.id: ceil(targets[item.task.size] / item.task.block_size)
        for item in results.tasks.values()
        if item.task.seed == results.study.seed and item.task.size in targets
    }


def _check_layers(study: Study) -> None:
    """Raise InputError if a graph's source and target share a site that may be vacant."""
    if isinstance(study.lattice, Graph) and Model.parse(study.model).draws_sites:
        study.lattice.topology(study.lattice.shape(study.sizes[0])).site_lattice(None)


def _check_rule(study: Study, rule: StopRule) -> None:
    if rule.samples is None and rule.target_error is None:
        raise InputError("give --samples or --target-error")
    if rule.samples is not None and min(rule.samples.values()) < 1:
        raise InputError("samples must be at least 1 for every size")
    if rule.samples is not None and max(rule.samples.values()) >= 2**63:
        raise InputError("samples must be below 2^63 for every size: samples are numbered so far")
    if rule.target_error is not None:
        if not 0 < rule.target_error < 1:
            raise InputError(f"target error {rule.target_error} must be above 0 and below 1")
        if not study.lattice.is_scalable:
            raise InputError(
                f"a target error is that of a p_c from the crossings of several sizes, which "
                f"{study.lattice.name} does not have: give the number of samples"
            )
        if len(study.sizes) < 2:
            raise InputError("a target error on p_c needs at least two sizes L")


def _continued(study: Study, writer: ResultsWriter | None) -> Results:
    stored = writer.load() if writer is not None else None
    if stored is None:
        return Results(study)
    if isinstance(study.lattice, Graph) and writer is not None:
        stored = _with_bonds(stored, study.lattice, writer.path)
    for item in stored.tasks.values():
        if len(item.observables) < len(observables_of(item.task.boundary)):
            raise InputError(
                f"{writer.path if writer else ''}: was written before wrapping was measured; "
                "choose another --out"
            )
    asked, found = study.description(), stored.study.description()
    differing = [key for key in asked if asked[key] != found.get(key)]
    if differing:
        key = differing[0]
        raise InputError(
            f"{writer.path if writer else ''}: holds another study "
            f"({key} is {found.get(key)} there, {asked[key]} here); choose another --out"
        )
    return stored


def _with_bonds(stored: Results, graph: Graph, path: Path) -> Results:
    """Return results with the graph they were made from, which a results file does not hold.

    A file may have another name than it had before.  InputError: the results are of another graph.
    """
    before = stored.study.lattice
    if before.digest != graph.digest:
        raise InputError(
            f"{path}: was sampled on {before.name} (digest {before.digest}), and {graph.name} has "
            f"other sites, bonds, source or target (digest {graph.digest}); choose another --out"
        )
    known = Results(replace(stored.study, lattice=graph), runs=stored.runs)
    for key, item in stored.tasks.items():
        known.tasks[key] = TaskResult(replace(item.task, lattice=graph), item.blocks)
    return known


def _place_tasks(results: Results, labeler: str | None, device: Device, watcher: Watcher) -> None:
    study = results.study
    missing = [size for size in study.sizes if not results.of_size(size)]
    if not missing:
        return
    if study.method == "threshold" or study.p is not None:
        grids: dict[int, tuple[float, ...]] = dict.fromkeys(study.sizes, study.p or ())
    else:
        place = place_probabilities if study.boundary else place_over_maxima
        grids = place(study, labeler=labeler, device=device, report=watcher.placed)
    for size in missing:
        results.add_task(study.task(size, grids[size]))


def _place_windows(
    results: Results, labeler: str | None, device: Device, watcher: Watcher
) -> dict[int, tuple[float, float]]:
    """Return where the thresholds of every size are looked for first; empty for a grid of p."""
    study = results.study
    windows: dict[int, tuple[float, float]] = {}
    if study.method == "threshold":
        for size in study.sizes:
            found = _stored_thresholds(results.of_size(size))
            if len(found) > 1:
                windows[size] = reach_of(found)
                continue
            before = windows[max(windows)] if windows else None
            windows[size] = place_window(study.task(size), before, labeler, device)
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


def _sampler_of(
    task: Task,
    windows: Mapping[int, tuple[float, float]],
    labeler: str,
    device: Device,
    share: float,
) -> Sampler:
    window = windows.get(task.size, (0.0, 1.0))
    return Sampler(task, labeler=labeler, device=device, share=share, window=window)


def _run_round(
    results: Results,
    targets: Mapping[int, int],
    windows: Mapping[int, tuple[float, float]],
    writer: ResultsWriter | None,
    device: Device,
    labeler: str,
    workers: int,
    watcher: Watcher,
) -> None:
    wanted = _wanted_blocks(results, targets)
    share = _share_of(len(wanted))
    samplers = {
        key: _sampler_of(results.tasks[key].task, windows, labeler, device, share) for key in wanted
    }
    todo = {
        key: count - sum(number < count for number in results.tasks[key].blocks)
        for key, count in wanted.items()
    }
    if not any(todo.values()):
        return
    record = run_record(
        device=str(device),
        device_label=device_label(device),
        labeler=labeler,
        workers=workers,
    )
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
        with make_executor(device, workers) as executor:
            run_jobs(
                missing_jobs(results, wanted, samplers),
                results=results,
                samplers=samplers,
                executor=executor,
                workers=workers,
                save=save,
                report=report,
            )
    finally:
        watcher.finished()


def work_of(item: TaskResult, blocks: int) -> int:
    """Return the site labelings that so many blocks of a task take."""
    task = item.task
    return blocks * task.block_size * max(len(task.p), 1) * task.num_points


def device_label(device: Device) -> str:
    """Return the model name of the processor or GPU behind a device."""
    if device.kind == "cpu":
        return processor_name()
    from percolab.device import device_name, open_device

    return device_name(open_device(str(device)))


def _error_of(results: Results) -> float:
    """Return the error of p_c that a target error is compared with: that of the curvature.

    The bootstrap's own scatter would stop some studies early, at a lucky round.
    """
    try:
        return fit_results(results, bootstrap=0).fisher_error
    except AnalysisError:
        return float("inf")
