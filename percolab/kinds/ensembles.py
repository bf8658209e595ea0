"""Ensembles: every block of samples is measured on another graph, as if that came from a file.

Graphs follow from the seed of the task's samples and the number of the block, so that results do
not depend on who makes which block.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from percolab.kernels.registry import load
from percolab.kinds.workplace import IsStopped, TaskSampler
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.removal import order_graph
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.study import Task


def fix_graph(task: Task, number: int) -> Task:
    """Return a task with the graph of a block, ordered, in place of its ensemble, if it has one."""
    structure = task.structure
    if not isinstance(structure, Ensemble):
        return task
    graph = structure.graph(task.size, seed=task.stream_seed, number=number)
    graph = order_graph(graph, task.order, sites=task.draw.draws_sites)[1]
    return replace(task, structure=graph)


class EnsembleSampler(TaskSampler):
    """Makes each block by the sampler of the task's kind, for the block's graph."""

    @property
    def blocks_per_call(self) -> int:
        return 1

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        return [block for n in numbers for block in self._on(n).sample([n], stopped)]

    def first_calls(self, *, with_pilot: bool) -> list[Callable[[], object]]:
        return self._on(0).first_calls(with_pilot=with_pilot)

    def _on(self, number: int) -> TaskSampler:
        task = fix_graph(self.task, number)
        sampler: TaskSampler = load(self.task.kind.sampler)(
            task, device=self.device, **self._arguments()
        )
        return sampler
