"""Merging results: blocks add, whatever run made them, as long as no sample comes in twice."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.store.joined import can_join
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult, not_in_all
from percolab.tasks.blocks import same_block
from percolab.tasks.study import ADDED, Study
from percolab.tasks.values import AUTO


def merge(
    parts: Iterable[tuple[str, StoredResults]], report: Callable[[str], None] = lambda line: None
) -> StoredResults:
    """Return the union of results; InputError: samples come twice.  report: takes a line."""
    merged: StoredResults | None = None
    owners: dict[int, list[tuple[str, TaskResult]]] = {}
    items: list[TaskResult] = []
    runs: list[list[dict[str, Any]]] = []
    # For a long chain that several parts have, the part with most of it.
    longest: dict[str, int] = {}
    for name, part in parts:
        if merged is None:
            merged = StoredResults(part.study)
        else:
            _check_alike(name, part.study, merged.study)
        for result in part.tasks.values():
            earlier = owners.setdefault(result.task.stream_seed, [])
            for other_name, other in earlier:
                if result.task.is_serial and result.task.id == other.task.id:
                    _check_same_chain(name, result, other_name, other)
                elif not can_join(result.task, other.task):
                    # Where they can be joined the analysis does so: the same samples at other p.
                    _refuse_overlap(name, result, other_name, other)
            if result.task.is_serial:
                _check_whole(name, result)
                own = (other for _, other in earlier if other.task.id == result.task.id)
                if len(result.blocks) > max((len(other.blocks) for other in own), default=-1):
                    longest[result.task.id] = len(runs)
            earlier.append((name, result))
            items.append(result)
        runs.append(part.runs)
    if merged is None:
        raise InputError("merge: give at least one file")
    without = not_in_all(items)
    if without:
        report(f"left out, since not all of the files have it: {', '.join(without)}")
    _unite(merged, items, without)
    merged.runs = _merge_runs(runs, longest)
    return merged


def _merge_runs(parts: list[list[dict[str, Any]]], longest: dict[str, int]) -> list[dict[str, Any]]:
    """Return the records of the runs of all parts; longest: the part that a chain is taken from."""
    merged = []
    for number, run in ((number, run) for number, runs in enumerate(parts) for run in runs):
        made = run["blocks"]
        own = {key: count for key, count in made.items() if longest.get(key, number) == number}
        if own or not made:
            merged.append(run | {"blocks": own})
    return merged


def _unite(merged: StoredResults, items: Iterable[TaskResult], without: Collection[str]) -> None:
    """Add tasks and their blocks to results, without the columns of these names."""
    for result in items:
        own = tuple(column for column in result.columns if column.name not in without)
        empty = TaskResult(result.task, columns=own)
        united = merged.tasks.setdefault(result.task.id, empty)
        more = result.of_columns(united.columns)
        if not result.task.is_serial:
            united.unite(more.blocks)
        elif len(more.blocks) > len(united.blocks):
            united.blocks, united.end = dict(more.blocks), more.end


def _check_whole(name: str, result: TaskResult) -> None:
    """Raise InputError unless a long chain is there from its first block on."""
    missing = np.setdiff1d(np.arange(len(result.blocks)), result.numbers)
    if missing.size:
        raise InputError(
            f"{name}: block {missing[0]} of the chain of L = {result.task.size} is missing; "
            "without it later blocks cannot be joined"
        )


def _check_same_chain(name: str, result: TaskResult, other_name: str, other: TaskResult) -> None:
    """Raise InputError unless two parts of a long chain are equal where they overlap."""
    columns = [column for column in result.columns if other.has(column.name)]
    own, others = (each.of_columns(columns).blocks for each in (result, other))
    for number in sorted(own.keys() & others.keys()):
        if not same_block(own[number], others[number]):
            raise InputError(
                f"{name} and {other_name} differ in block {number} of the same chain of L = "
                f"{result.task.size}, seed {result.task.seed}: one of them is wrong"
            )


def _check_alike(name: str, study: Study, others: Study) -> None:
    """Raise InputError unless the part with this name is of the same lattice as the others."""
    lattice, known = study.structure, others.structure
    if lattice.digest != known.digest and lattice.name != known.name:
        raise InputError(f"{name}: holds lattice {lattice.name}, not {known.name} like the others")
    settings = [name for name in ADDED if name in study.kind.settings]
    pairs = [
        ("boundary", ", ".join(study.boundary), ", ".join(others.boundary)),
        ("model", study.model, others.model),
        *((name, *(_shown(each, name) for each in (study, others))) for name in settings),
    ]
    theirs_by_name = {function.name: str(function) for function in others.functions}
    for function in study.functions:
        # Another package, or another version of it, may measure something else by this name.
        own = str(function)
        pairs.append(("observable", own, theirs_by_name.get(function.name, own)))
    for what, own, theirs in pairs:
        if own != theirs:
            raise InputError(f"{name}: has {what} {own}, not {theirs} like the others")
    own_names, names = (getattr(each.structure, "names", None) for each in (study, others))
    if own_names is not None and names is not None and own_names != names:
        raise InputError(f"{name}: its site names differ from those of the others")
    if lattice.digest != known.digest:
        raise InputError(
            f"{name}: its {lattice.name} differs in content from that of the others "
            f"({lattice.digest}, {known.digest})"
        )


def _shown(study: Study, name: str) -> str:
    value = getattr(study, name)
    return "auto" if value == AUTO else str(value)


def _refuse_overlap(name: str, one: TaskResult, other_name: str, other: TaskResult) -> None:
    # A chain of spins begins with its number alone, however long it is.
    what = one.task.kind.number_is

    def first_and_end(result: TaskResult) -> np.ndarray:
        length = result.task.block_size if what == "samples" else 1
        # One long chain is chain 0, whatever its blocks.
        own = slice(1) if result.task.is_serial else slice(None)
        starts = result.numbers[own] * length
        return np.stack([starts, starts + result.counts[own] * length], axis=1)

    for start, end in first_and_end(one).tolist():
        theirs = first_and_end(other)
        clash = theirs[(theirs[:, 0] < end) & (theirs[:, 1] > start)]
        if clash.size:
            raise InputError(
                f"{name} and {other_name} both hold {what} {max(start, clash[0, 0])} to "
                f"{min(end, clash[0, 1]) - 1} of L = {one.task.size}, seed {one.task.seed}; "
                f"independent runs need different seeds"
            )
