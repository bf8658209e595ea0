"""The kind of a study: the one object that knows what its tasks refuse, store and measure.

The kinds themselves are in :mod:`percolab.kinds`, one file each, found by name
(:mod:`percolab.tasks.kind_registry`).  Whoever needs to know something that differs between kinds
asks the kind; nobody else asks which kind a study is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any, ClassVar, Protocol

from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.kernels.registry import load
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.extent import Extent
from percolab.lattices.structure import Structure
from percolab.measure.columns import Column, list_columns
from percolab.tasks.blocks import AnyBlock, ChainEnd
from percolab.tasks.codecs import Codec, SumsCodec
from percolab.tasks.study import Study, Task, block_size_for

#: Bytes that the groups of a task take before they are packed, and how many groups there may be.
_GROUPED_BYTES, _MOST_GROUPS = 2**23, 2**12
#: The sampler of an ensemble of graphs, which uses the sampler of the task's kind.
_ENSEMBLES = "kinds.ensembles:EnsembleSampler"


@dataclass(frozen=True, eq=False)
class SamplerSpec:
    """The description from which a worker process makes a sampler: plain values that can be sent.

    place: of a function or class, as :func:`percolab.kernels.registry.load` takes it, which is
    called with the task, ``device`` and these arguments
    """

    place: str
    task: Task
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def make(self, task: Task, device: Device) -> BlockSampler:
        """Return the sampler of the task, which may have the bonds of a graph, on a device."""
        sampler: BlockSampler = load(self.place)(task, device=device, **self.arguments)
        return sampler


class BlockSampler(Protocol):
    """Makes blocks of one task on one device; several threads of the CPU may use it at a time.

    What is defined here is what most samplers do.
    """

    task: Task
    device: Device
    #: Whether each block begins where the one before has ended, as in one long chain.
    is_serial: bool = False

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        return 1

    @property
    def calls_per_job(self) -> int:
        """Calls of a job where a task has many, since each job costs the host a millisecond."""
        return 1

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""

    def sample_groups(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None, largest: int
    ) -> list[AnyBlock]:
        """Return the same blocks, neighbours perhaps added up already, ``largest`` at most."""
        return self.sample(numbers, stopped)

    def continue_from(self, end: ChainEnd | None) -> None:
        """Continue from the end of another block; only where it is serial."""
        return

    def first_calls(self, *, with_pilot: bool) -> list[Callable[[], object]]:
        """Return calls, of a sample each, that compile what a sweep and its pilot need."""
        return [partial(self.sample, [0])]

    def spec(self) -> SamplerSpec:
        """Return the description from which a worker process makes the same sampler."""


class Algorithms(Protocol):
    """What does the work of a kind's samples, by name: labelers, or ways to find trees."""

    def default(self, kind: str) -> str:
        """Return the name of the fastest on a kind of device, "cpu" or "cuda"."""

    def check(self, name: str) -> None:
        """Raise InputError unless there is one of this name, on any device; nothing is loaded."""

    def choose(self, name: str | None, kind: str, structure: Structure) -> tuple[str, str]:
        """Return the one to use, and why not the one named, or ""; InputError if there is none."""

    def most_points(self, name: str | None, kind: str, axes: int) -> int | None:
        """Return the most grid points that one can have, or None if something else bounds them."""
        return None


@dataclass(frozen=True, eq=False)
class PilotConditions:
    """The conditions in which pilots measure, and functions that are called with their results.

    labeler: or tree method.  on_p: is called with a size and the p that were found for it.
    on_note: is called with a line on what a user should know.
    """

    labeler: str | None
    device: Device
    on_p: Callable[[int, tuple[float, ...]], None] = lambda size, p: None
    on_note: Callable[[str], None] = lambda line: None


class Kind(Protocol):
    """A kind of study.  What is defined here is what most kinds do; a kind overrides the rest.

    name:             as in the registry
    settings:         those that other kinds do not have
    fixed_p:          the p of all its tasks, () for none; None where p is given or found by a pilot
    refused_measures: words of ``measure`` that it does not have, and why
    refusals:         what it cannot do, by the word for it ("parts", "functions",
                      "target_error", "ensembles"), and why; {model} and {method} stand for these
    sums:             what the largest sums of a sample are sums of, in words
    number_is:        what the number of a block numbers: "samples", or "chains"
    tables_on_host:   whether a sample is read on the host, with the bonds there, on any device
    independent:      whether the samples of a block are independent of each other
    most_placed:      the grid points of the largest lattice whose p a plan looks for, by kind of
                      device
    always_has_pilot: whether a pilot measures samples even where nothing is left open
    codec:            how its blocks are stored
    algorithms:       what finds the clusters or the trees
    sampler:          the place of a task's sampler, as in :class:`SamplerSpec`
    """

    name: ClassVar[str]
    settings: ClassVar[frozenset[str]] = frozenset()
    fixed_p: ClassVar[tuple[float, ...] | None] = None
    refused_measures: ClassVar[Mapping[str, str]] = {}
    refusals: ClassVar[Mapping[str, str]] = {}
    sums: ClassVar[str] = "squared cluster sizes"
    number_is: ClassVar[str] = "samples"
    tables_on_host: ClassVar[bool] = False
    independent: ClassVar[bool] = True
    most_placed: ClassVar[Mapping[str, int]] = {"cpu": 2**18, "cuda": 2**24}
    always_has_pilot: ClassVar[bool] = False
    codec: ClassVar[Codec] = SumsCodec()
    algorithms: ClassVar[Algorithms]
    sampler: ClassVar[str]

    def check(self, sampling: Task | Study) -> None:
        """Raise InputError for what this kind refuses: a model, a boundary, p."""

    def samples_identity(self, task: Task) -> dict[str, Any]:
        """Return what changes the samples in addition to what changes those of any kind."""
        return {}

    def identity(self, task: Task) -> dict[str, Any]:
        """Return what else changes the results of these samples: p, or the method that fixes it."""
        if self.fixed_p is not None:
            return {"method": task.method}
        return {"p": [p.hex() for p in task.p]}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns that a task measures, in the order in which they are stored.

        wide: whether the sum of squared sizes of one sample may be more than an int64.
        """
        return list_columns(boundary, measure, wide=wide)

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        """Return the memory for measuring a task, its batch of ``items`` included.

        name: of the labeler or tree method.  device: its kind, "cpu" or "cuda".
        """

    def unplaced(self, study: Study) -> str:
        """Return what a pilot looks for in addition to p, in words, or ""."""
        return ""

    def shorten(self, task: Task) -> Task:
        """Return a task without work other than its samples, such as a burn-in."""
        return task

    def place_p(self, study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
        """Return the p of every size of a study without given p."""
        return dict.fromkeys(study.sizes, study.some_p)

    def place_task(
        self, study: Study, task: Task, samples: int | None, pilot: PilotConditions
    ) -> Task:
        """Return a task with what a pilot looks for in addition to p; samples: requested."""
        return task

    def choose_blocks(self, study: Study, task: Task, samples: int | None) -> Task:
        """Return a task in blocks that make up the samples that are requested."""
        if study.block_size or samples is None:
            return task
        return replace(task, block_size=block_size_for(samples, task.block_size))

    def hints(
        self, study: Study, stored: Mapping[str, Any], pilot: PilotConditions
    ) -> dict[str, dict[str, Any]]:
        """Return further arguments for the samplers of tasks, by the tasks' ids.

        stored: results of the tasks, a :class:`percolab.store.task_result.TaskResult` each, and of
        further tasks of the study.
        """
        return {}

    def count_labelings(self, task: Task) -> int:
        """Return how often the sites of a sample are labeled, about."""
        return len(task.p)

    def is_serial(self, sampling: Task | Study) -> bool:
        """Return whether each block of a task begins where the one before has ended."""
        return False

    def largest_sum(self, num_points: int) -> int:
        """Return the largest number of one sample that is summed over the samples of a block."""
        return num_points**2

    def most_groups(self, task: Task) -> int | None:
        """Return the most groups that the blocks of a task make; None where they stay alone.

        Some thousand are plenty for all errors; fewer where each has many numbers.
        """
        least = self.codec.least_groups
        if least is None or not self.independent:
            return None
        layout = self.codec.layout(task, task.columns)
        numbers = sum(prod(stored.shape) for stored in layout.values())
        most = min(max(_GROUPED_BYTES // (8 * numbers), least), _MOST_GROUPS)
        return 1 << (most.bit_length() - 1)


def make_sampler(task: Task, *, device: Device, **options: Any) -> BlockSampler:
    """Return a sampler of a task on a device.

    options: ``labeler``, the name of a labeler or a tree method, None for the fastest; ``share``,
    the part of a CUDA device's free memory that it may take; and what :meth:`Kind.hints` returns,
    which changes how long sampling takes, or where it continues, never the numbers.
    """
    place = _ENSEMBLES if isinstance(task.structure, Ensemble) else task.kind.sampler
    return SamplerSpec(place, task, options).make(task, device)
