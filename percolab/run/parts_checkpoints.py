"""Which checkpoints of samples in parts a study continues from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from percolab.run.parts_sampler import PartsSampler
from percolab.run.request import Watcher
from percolab.store.checkpoints import Checkpoints, read_checkpoint
from percolab.store.results import StoredResults
from percolab.tasks.kind import BlockSampler


def begin_checkpoints(
    samplers: Mapping[str, BlockSampler], path: Path, results: StoredResults, watcher: Watcher
) -> Callable[[StoredResults], None]:
    """Let samplers save checkpoints next to a results file, and continue from those there are.

    Notes say which are used and which are not.  InputError: one is damaged.  Returns what removes
    those of blocks that are stored; call it after every save.
    """
    own = {key: item for key, item in samplers.items() if isinstance(item, PartsSampler)}
    if not own:
        return lambda results: None
    checkpoints = Checkpoints(path)

    def forget(stored: StoredResults) -> None:
        for key in own:
            checkpoints.remove(key, stored.tasks[key].has_block)

    forget(results)
    for sampler in own.values():
        sampler.checkpoints = checkpoints
    rows: dict[tuple[str, int], int] = defaultdict(int)
    layers: dict[tuple[str, int], list[int]] = defaultdict(list)
    others: dict[tuple[str, int], list[Path]] = defaultdict(list)
    for file, key in checkpoints.list_files():
        task_id, number, _ = key
        checkpoint, block = read_checkpoint(file), (task_id, number)
        if checkpoint is None:
            watcher.noted(f"{file}: is of another version of percolab, and is measured anew")
            continue
        if task_id not in own or checkpoint.key != key:
            watcher.noted(f"{file}: is a checkpoint of another task, and is left as it is")
            continue
        sampler = own[task_id]
        sampler.check_fits(checkpoint)
        if checkpoint.rank_row is None:
            rows[block] = len(checkpoint.rows)
            watcher.noted(
                f"L = {sampler.task.size}: block {number} goes on after {rows[block]} rows "
                f"(from {file.name})"
            )
        elif checkpoint.rank_row[1:] in sampler.items(number)[: rows[block]]:
            # Its row is done.
            continue
        elif sampler.uses_interface(checkpoint, rows[block]) and checkpoint.interface is not None:
            layers[block].append(checkpoint.interface.layers)
        else:
            others[block].append(file)
    for (task_id, number), counts in layers.items():
        task, whole = own[task_id].task, own[task_id].whole
        watcher.noted(
            f"L = {task.size}: block {number} goes on with {sum(counts)} of {whole.num_layers} "
            f"layers (from checkpoints of ranks: {len(counts)})"
        )
    for first, *more in others.values():
        names, verb, whose = f"{first}", "is", "its"
        if more:
            names, verb, whose = f"{first} and {len(more)} more", "are", "their"
        watcher.noted(
            f"{names}: {verb} of other ranks, slabs or rows; {whose} layers are measured anew"
        )
    return forget
