"""A study and its file: the contents, the request, and what the request adds.

A file is extended in place by more sizes, p, and samples; what was requested before adds nothing.
What contradicts the file is refused.  The study of the file is then the union of all requests.
What a request leaves open (sizes, p, and samples or target error) is taken from the records of the
file's runs.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Required, TypedDict

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.graph import Graph
from percolab.run.executors import check_executor
from percolab.store.results import ResultsWriter, StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.part import WHOLE, JobPart
from percolab.tasks.settings import SETTINGS
from percolab.tasks.study import ADDED, StopRule, Study, Task
from percolab.tasks.values import AUTO, is_same

# What contradicts a file, in the order in which it is reported; files of other seeds can be merged.
_MERGED = ("seed", "rng")
_FIXED = ("lattice", "boundary", "method", *ADDED, "functions", "model", *_MERGED)


class Observer:
    """Observes a sweep's progress; this one does nothing, that of the command line shows it."""

    def described(self, text: str) -> None:
        """Receive one line on what is about to be sampled."""

    def noted(self, text: str) -> None:
        """Receive a note on what differs from the request."""

    def placed(self, size: int, p: tuple[float, ...]) -> None:
        """Receive the p values that the pilot placed for a size."""

    def compiling(self) -> None:
        """Take note that kernels are compiled, once after an installation."""

    def started(self, sites: int, done: int) -> None:
        """Receive the number of site labelings in a round, and of those that are done already."""

    def advanced(self, results: StoredResults, result: TaskResult, blocks: list[AnyBlock]) -> None:
        """Receive finished blocks."""

    def labeled(self, sites: int) -> None:
        """Receive the number of site labelings just done in a block, as those of a slab."""

    def finished(self) -> None:
        """Take note that a round has ended."""


def take_observer(given: Any, usual: Observer | None = None) -> Any:
    """Return what observes a run, the usual one for None; InputError unless it is an Observer."""
    if given is not None and not isinstance(given, Observer):
        allowed = "it must be a percolab.run.request.Observer"
        raise InputError(f"observer: {type(given).__name__} given, but {allowed}")
    return usual if given is None else given


class SweepOptions(TypedDict, total=False):
    """What running or planning a study takes in addition to the study and its stop rule.

    writer: of the results file, which is continued; a plan need not lock it and does not write it.
    observer: observes the progress.  labeler, workers, executor: None lets percolab choose.  part:
    the blocks that are made here.  slabs: of a sample, "auto", or None, which measures it as a
    whole.  split: "lattice" has the workers measure every sample together; blocks, merge: boxes
    along each axis, and how these are merged.  left_open: those of "L" and "samples" that were not
    given and have their default, unless the file says otherwise.
    """

    writer: ResultsWriter | None
    device: Required[Device]
    labeler: str | None
    workers: int | None
    slabs: int | str | None
    split: str | None
    blocks: str | None
    merge: str | None
    observer: Observer | None
    left_open: Collection[str]
    executor: str | Executor | None
    part: JobPart


@dataclass(frozen=True, eq=False)
class Opened:
    """The contents of a file, and a request to extend it.

    results: of the file, or empty ones; their study is the union of the file's and the requested
    one.  requested: the study of this request.  rule: with the samples of its sizes.
    is_described: whether the file says all that already.
    """

    results: StoredResults
    requested: Study
    rule: StopRule
    is_described: bool = True

    @cached_property
    def missing(self) -> dict[int, tuple[float, ...] | None]:
        """The p that sizes are to be sampled at and have no task for; None asks for a pilot."""
        missing: dict[int, tuple[float, ...] | None] = {}
        fixed, p = self.requested.kind.fixed_p, self.requested.p
        for size in self.requested.sizes:
            existing = [task for task in self.results.own_tasks if task.size == size]
            if not existing:
                missing[size] = p or self.results.study.p if fixed is None else fixed
            elif more := set(p or ()) - {p for task in existing for p in task.p}:
                missing[size] = tuple(sorted(more))
        return missing

    @property
    def needs_placing(self) -> bool:
        """Whether p, or the burn-in of spins, must be looked for."""
        is_unknown = bool(self.requested.kind.unplaced(self.requested))
        return None in self.missing.values() or (is_unknown and bool(self.missing))

    @property
    def needs_pilot(self) -> bool:
        """Whether a pilot measures samples before the sweep."""
        kind = self.requested.kind
        return bool(kind.always_has_pilot) or None in self.missing.values()


def open_study(study: Study, rule: StopRule, options: SweepOptions) -> Opened:
    """Return the contents of a study's file, or empty results, and the request."""
    writer = options.get("writer")
    rule.check(study)
    study.check_layers()
    check_executor(options.get("executor"), slabs=options.get("slabs"), split=options.get("split"))
    if options.get("labeler") is not None:
        study.kind.algorithms.check(str(options["labeler"]))
    stored, path = (None, None) if writer is None else (writer.load(), writer.path)
    opened = continue_results(study, rule, stored, path, options.get("left_open", ()))
    opened.rule.check(opened.results.study)
    _check_part(opened, options.get("part", WHOLE))
    return opened


def _check_part(opened: Opened, part: JobPart) -> None:
    """Raise InputError if a study cannot be divided, or each part would look for p by itself."""
    if part == WHOLE:
        return
    if opened.rule.target_error is not None:
        raise InputError(
            f"part {part}: a target error needs all blocks of the study: give the number of samples"
        )
    if opened.results.study.is_serial:
        raise InputError(f"part {part}: one long chain (chains 1) has no parts")
    if opened.needs_placing:
        is_p = None in opened.missing.values()
        what = "p" if is_p else opened.requested.kind.unplaced(opened.requested)
        raise InputError(
            f"part {part}: {what} must be the same in all parts: give it, or find it once with "
            "--prepare and start each part from a copy of that file"
        )


def continue_results(
    study: Study,
    rule: StopRule,
    stored: StoredResults | None,
    path: Path | None,
    left_open: Collection[str] = (),
) -> Opened:
    """Return stored results with the request; InputError if they are of another study."""
    if stored is None:
        return Opened(StoredResults(study), study, rule)
    if isinstance(study.structure, Graph):
        _check_graph(stored, study.structure, path)
    if unknown := [column.name for column in stored.columns() if not column.is_known]:
        raise InputError(
            f"{path}: has {', '.join(unknown)}, which this version does not measure; choose "
            "another --out"
        )
    _check_same(study, stored, path)
    if study.p is not None:
        # A p that differs from that of a stored task in the last digits alone means the stored one.
        there = {p for task in stored.own_tasks for p in task.p} | set(stored.study.p or ())
        known = sorted(there)
        same = (next((own for own in known if is_same(own, p)), p) for p in study.p)
        study = replace(study, p=tuple(same))
    results = _described(stored, _union(study, stored.study, left_open))
    sizes = stored.study.sizes if "L" in left_open else study.sizes
    if "samples" in left_open:
        rule = _stored_stop_rule(results, sizes, rule)
    elif rule.samples is not None and sizes != study.sizes:
        rule = replace(rule, samples=_for_sizes(list(rule.samples.values()), sizes))
    if rule.target_error is not None:
        # The error is that of all sizes together.
        sizes = results.study.sizes
        if rule.samples is not None:
            most = max(rule.samples.values())
            rule = replace(rule, samples={size: rule.samples.get(size, most) for size in sizes})
    requested = replace(results.study, sizes=sizes, p=study.p)
    texts = [getattr(each.structure, "source", "") for each in (stored.study, results.study)]
    is_described = stored.study.description() == results.study.description()
    return Opened(results, requested, rule, is_described and texts[0] == texts[1])


def _check_graph(stored: StoredResults, graph: Graph, path: Path | None) -> None:
    """Raise InputError if results are of another graph, whatever the name of its file is."""
    before = stored.study.structure
    if before.digest != graph.digest:
        raise InputError(
            f"{path}: was sampled on {before.name} (digest {before.digest}), and {graph.name} has "
            f"other sites, bonds, source or target (digest {graph.digest}); choose another --out"
        )
    names = before.names if isinstance(before, Graph) else None
    if names is not None and graph.names is not None and names != graph.names:
        raise InputError(
            f"{path}: its site names differ from those of {graph.name}; choose another --out"
        )


def _check_same(study: Study, stored: StoredResults, path: Path | None) -> None:
    here, there = _identity(study), _identity(stored.study)
    if study.structure.digest == stored.study.structure.digest:
        there["lattice"] = here["lattice"]  # a name decides nothing
    elif here["lattice"] == there["lattice"]:
        for description, lattice in ((here, study.structure), (there, stored.study.structure)):
            description["lattice"] = f"{lattice.name} (digest {lattice.digest})"
    sizes = {task.block_size for task in stored.own_tasks}
    if study.block_size and sizes - {study.block_size}:
        there["block_size"], here["block_size"] = max(sizes), study.block_size
    # Sweeps after the last measured one make no difference.
    lengths = {
        task.sweeps_after(1)
        for task in stored.own_tasks
        if (study.sweeps - task.burn_in) // task.every != task.block_size
    }
    if study.sweeps and lengths:
        there["sweeps"], here["sweeps"] = max(lengths), study.sweeps
    for key in (key for key in here if here[key] != there[key]):
        advice = " and join the files with percolab merge" if key in _MERGED else ""
        name = "observables" if key == "functions" else key
        raise InputError(
            f"{path}: holds another study ({name} is {there[key]} there, {here[key]} here); "
            f"choose another --out{advice}"
        )


def _identity(study: Study) -> dict[str, Any]:
    """Return what all tasks of a study have in common, as a message shows it."""
    defaults = {key: SETTINGS[key].default if key in SETTINGS else () for key in _FIXED}
    shown = {key: list(own) if own == () else own for key, own in defaults.items()}
    shown |= {key: own for key, own in study.description().items() if key in _FIXED}
    return shown | ({"burn_in": "auto"} if shown["burn_in"] == AUTO else {})


def _union(study: Study, stored: Study, left_open: Collection[str]) -> Study:
    p = stored.p
    if study.p is not None and stored.p is not None:
        p = tuple(sorted({*study.p, *stored.p}))
    sizes = stored.sizes if "L" in left_open else tuple({*study.sizes, *stored.sizes})
    block_size, sweeps = study.block_size or stored.block_size, study.sweeps or stored.sweeps
    union = replace(study, sizes=sizes, p=p, block_size=block_size, sweeps=sweeps)
    graph, before = study.structure, stored.structure
    if isinstance(graph, Graph) and isinstance(before, Graph) and graph.names is None:
        # The same graph, given by numbers alone this time.
        return replace(union, structure=replace(graph, names=before.names))
    return union


def _described(stored: StoredResults, study: Study) -> StoredResults:
    """Return results with another description of their study, and of its lattice or graph.

    The published facts about a lattice may have changed; a graph's bonds and a user's functions are
    not in the file.
    """
    calls = {function.name: function for function in study.functions}
    described = StoredResults(study, runs=stored.runs)
    for key, result in stored.tasks.items():
        functions = tuple(calls.get(own.name, own) for own in result.task.functions)
        task = replace(result.task, structure=study.structure, functions=functions)
        described.tasks[key] = replace(result, task=task)
    return described


def _for_sizes(counts: list[int], sizes: tuple[int, ...]) -> dict[int, int]:
    """Return samples by size for the sizes of a file; one number stands for all."""
    if len(set(counts)) == 1:
        counts = counts[:1] * len(sizes)
    if len(counts) != len(sizes):
        raise InputError(
            f"samples: {len(counts)} numbers given for the {len(sizes)} sizes L of the file"
        )
    return dict(zip(sizes, counts))


def request_record(tasks: Iterable[Task], rule: StopRule, part: JobPart = WHOLE) -> dict[str, Any]:
    """Return the request of a run as plain JSON values: samples by task, error, and part."""
    record: dict[str, Any] = {}
    if rule.samples is not None:
        counts = rule.samples
        record["samples"] = {task.id: counts[task.size] for task in tasks if task.size in counts}
    if rule.target_error is not None:
        record["target_error"] = rule.target_error
    if part != WHOLE:
        record["part"] = str(part)
    return record


def _stored_stop_rule(
    results: StoredResults, sizes: tuple[int, ...], default: StopRule
) -> StopRule:
    """Return the rule that results were last made with, as far as their runs record it.

    Otherwise a size keeps its number of samples, and a new one gets that of the others.
    """
    size_of = {task.id: task.size for task in results.own_tasks}
    samples: dict[int, int] = {}
    for key, size in size_of.items():
        if results.tasks[key].blocks:
            samples[size] = max(samples.get(size, 0), results.tasks[key].num_samples)
    target = None
    for run in results.runs:
        record = run.get("asked")
        if not isinstance(record, Mapping) or not size_of.keys() & run["blocks"].keys():
            continue
        error = record.get("target_error")
        target = error if type(error) is float and 0 < error < 1 else None
        counts = record.get("samples", {})
        if target is not None and not counts:
            samples = {}
        for key, count in counts.items() if isinstance(counts, Mapping) else ():
            if key in size_of and type(count) is int and 1 <= count < 2**63:
                samples[size_of[key]] = count
    if target is not None and not samples:
        return StopRule(target_error=target)
    most = max(samples.values(), default=0)
    usual = max((default.samples or {}).values(), default=0)
    return StopRule({size: samples.get(size, most) or usual for size in sizes}, target)
