"""Merging results: blocks add, whatever run made them, as long as no sample comes in twice."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from percolab.errors import InputError
from percolab.store.joined import can_join
from percolab.store.results import Results
from percolab.store.stored_tasks import TaskResult
from percolab.tasks.study import Study


def merge(parts: Iterable[tuple[str, Results]]) -> Results:
    """Return the union of results of one lattice; InputError if any samples come in twice."""
    merged: Results | None = None
    owners: dict[int, list[tuple[str, TaskResult]]] = {}
    for name, part in parts:
        if merged is None:
            merged = Results(part.study)
        elif (part.study.boundary, part.study.model) != (
            merged.study.boundary,
            merged.study.model,
        ):
            raise InputError(
                f"{name}: has boundary {', '.join(part.study.boundary)}, "
                f"not {', '.join(merged.study.boundary)} like the others"
            )
        elif part.study.lattice.digest != merged.study.lattice.digest:
            raise InputError(f"{name}: {_other_lattice(part.study, merged.study)}")
        elif part.study.sample_version != merged.study.sample_version:
            raise InputError(
                f"{name}: has samples of version {part.study.sample_version}, not "
                f"{merged.study.sample_version} like the others"
            )
        for item in part.tasks.values():
            earlier = owners.setdefault(item.task.stream_seed, [])
            for other_name, other in earlier:
                # The same samples at other p: the analysis joins the two.
                if can_join(item.task, other.task):
                    continue
                _refuse_overlap(name, item, other_name, other)
            earlier.append((name, item))
            merged.add_task(item.task).blocks.update(item.blocks)
        merged.runs += part.runs
    if merged is None:
        raise InputError("merge: give at least one file")
    return merged


def _other_lattice(study: Study, others: Study) -> str:
    """Return what is different about a study's lattice or graph, in a few words."""
    own, known = study.lattice, others.lattice
    if own.name != known.name:
        return f"holds lattice {own.name}, not {known.name} like the others"
    digests = f"{own.digest}, {known.digest}"
    return f"its {own.name} differs in content from that of the others ({digests})"


def _refuse_overlap(name: str, item: TaskResult, other_name: str, other: TaskResult) -> None:
    def first_and_end(result: TaskResult) -> np.ndarray:
        starts = result.numbers * result.task.block_size
        return np.stack([starts, starts + result.task.block_size], axis=1)

    for start, end in first_and_end(item).tolist():
        theirs = first_and_end(other)
        clash = theirs[(theirs[:, 0] < end) & (theirs[:, 1] > start)]
        if clash.size:
            raise InputError(
                f"{name} and {other_name} both hold samples {max(start, clash[0, 0])} to "
                f"{min(end, clash[0, 1]) - 1} of L = {item.task.size}, seed {item.task.seed}; "
                f"independent runs need different seeds"
            )
