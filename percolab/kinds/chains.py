"""Spins: samples are the sweeps of Markov chains, which differ at every p."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds import workplace
from percolab.kinds.algorithms import Labelers
from percolab.kinds.workplace import IsStopped, TaskSampler
from percolab.labelers import serving_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.columns import WRAPPING, Column, list_columns
from percolab.measure.measurements import MEASUREMENTS
from percolab.measure.spins import MOST_AXES, SERIES, SPIN_ROW_WIDTH, structure_factors
from percolab.spins import chains as spin_chains
from percolab.spins.chains import Chains
from percolab.spins.update import Update, count_planes
from percolab.tasks.blocks import AnyBlock, Block, ChainEnd, make_chain_blocks
from percolab.tasks.kind import Kind, PilotConditions
from percolab.tasks.study import Study, Task
from percolab.tasks.values import AUTO

#: Spins of the chains that are swept together: more than enough to fill a GPU.
_SPINS_PER_LAUNCH = 2**27
#: Chains of a task, approximately and at least; the fewest sweeps that a chain measures.
_CHAINS, _LEAST_CHAINS, _LEAST_SWEEPS = 64, 44, 20


class ChainsOfSpins(Kind):
    """Chains of spins at given p: a block is a chain, or a part of one long chain."""

    name = "chains"
    settings = frozenset({"update", "burn_in", "every", "chains", "sweeps", "beta", "T", "K"})
    refused_measures: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(MEASUREMENTS, "it is measured for percolation, not for chains"),
        WRAPPING: "cluster sizes can be left out only for percolation, not for chains",
    }
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "a sweep of {model} needs all spins at once",
        "functions": "functions of labels are measured by method grid for percolation, not for "
        "{model}",
        "target_error": "a target error needs samples that are coupled at all p, and those of "
        "spins are not",
        "ensembles": "the spins of {model} are on one graph",
    }
    number_is = "chains"
    independent = False
    most_placed: ClassVar[Mapping[str, int]] = {"cpu": 2**12, "cuda": 2**16}
    algorithms = Labelers()
    sampler = "kinds.chains:new_sampler"
    #: Places in a row of the series whose autocorrelations are stored.
    series: ClassVar[Sequence[int]] = SERIES
    #: Description of the planes from which a long chain continues.
    planes_are = "spins after the last block, 32 sites a word [p, digit, word]"

    def check(self, sampling: Task | Study) -> None:
        if "correlation" in sampling.measure and "periodic" not in sampling.boundary:
            raise InputError("measure correlation needs a periodic axis (--boundary)")
        if sampling.burn_in < AUTO:
            raise InputError(f"burn_in = {sampling.burn_in}, but it must be at least 0")

    def samples_identity(self, task: Task) -> dict[str, Any]:
        return {"update": task.update}

    def identity(self, task: Task) -> dict[str, Any]:
        """Return p and what is measured of the chains; later settings only where they are given."""
        content = {"p": [p.hex() for p in task.p], "burn_in": task.burn_in}
        content |= {"every": task.every} if task.every != 1 else {}
        return content | ({"chains": task.chains} if task.chains else {})

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        return list_columns(boundary, measure, chains="spins", wide=wide)

    def unplaced(self, study: Study) -> str:
        return "the burn-in" if study.burn_in == AUTO else ""

    def shorten(self, task: Task) -> Task:
        return replace(task, burn_in=0)

    def place_p(self, study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
        return dict(load("kinds.pilots.spins:place_p")(study, pilot))

    def place_task(
        self, study: Study, task: Task, samples: int | None, pilot: PilotConditions
    ) -> Task:
        if task.burn_in != AUTO:
            return task
        burn_in = load("kinds.pilots.spins:find_burn_in")(task, pilot)
        pilot.on_note(f"pilot: L = {task.size}: a burn-in of {burn_in.updates} sweeps")
        if burn_in.warning:
            pilot.on_note(f"pilot: L = {task.size}: {burn_in.warning}")
        return self.choose_blocks(study, study.with_burn_in(task, burn_in.updates), samples)

    def choose_blocks(self, study: Study, task: Task, samples: int | None) -> Task:
        """Return a task in chains of the length that is requested, or in _CHAINS of them.

        Chains are not shorter than the burn-in, unless fewer than _LEAST_CHAINS would be left; nor,
        where there are many samples, longer than ten times the burn-in, because an interrupted run
        may lose a chain.  Blocks of one long chain are never shorter than the burn-in, that is 20
        autocorrelation times if a pilot found it, so that their means are hardly correlated.
        """
        if study.sweeps or study.block_size or samples is None or task.burn_in == AUTO:
            return task
        burn_in = -(-task.burn_in // task.every)
        if task.is_serial:
            length = min(-(-samples // _CHAINS), 10 * burn_in)
            return replace(task, block_size=max(length, burn_in, _LEAST_SWEEPS))
        longest = min(max(10 * burn_in, 10 * _LEAST_SWEEPS), -(-samples // _LEAST_CHAINS))
        length = max(-(-samples // _CHAINS), burn_in)
        return replace(task, block_size=max(min(length, longest), _LEAST_SWEEPS))

    def hints(
        self, study: Study, stored: Mapping[str, Any], pilot: PilotConditions
    ) -> dict[str, dict[str, Any]]:
        return {key: {"end": result.end} for key, result in stored.items() if result.task.is_serial}

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        needs = Needs("sizes" in task.measure, len(task.p))
        return spin_chains.compute_memory(name, device, extent, task.draw.states, needs, items)

    def num_planes(self, task: Task) -> int:
        """Return the number of planes, of one bit for each site, in the state of a chain."""
        return count_planes(task.draw.states)

    def check_planes(self, task: Task, planes: np.ndarray) -> None:
        """Raise ValueError unless planes are the state of a chain, uint32 (m, planes, words)."""
        digits = np.moveaxis(unpack_bits(planes, task.num_points), 1, 2)
        if (digits @ (1 << np.arange(planes.shape[1]))).max() >= task.draw.states:
            raise ValueError(
                f"task {task.id}: a stored spin is not one of {task.draw.states} states"
            )

    def new_chains(self, task: Task, name: str, topology: Topology, **room: Any) -> Chains:
        """Return chains of a task.  name, and the rest: as :func:`new_chains` takes them."""
        rule = Update.parse(task.update).rule(task.draw.states)
        return spin_chains.new_chains(name, topology=topology, rule=rule, **room)

    def is_serial(self, sampling: Task | Study) -> bool:
        return bool(sampling.chains)


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of several chains: their rows, their spins, and structure factors.

    planes: the spins after the last sweep, uint32 (chains, planes, num_words), if requested
    """

    rows: np.ndarray
    spins: np.ndarray
    factors: np.ndarray
    planes: list[np.ndarray] = field(default_factory=list)


class ChainSampler(TaskSampler):
    """Measures blocks that are one chain each; even ones start ordered, the others at random."""

    @property
    def chains(self) -> Chains:
        return self._place.own(self._new_chains)

    def _new_chains(self) -> Chains:
        place, kind = self._place, self.device.kind
        name = serving_labeler(self._labeler, kind, place.topology)
        room = {"kind": kind, "capacity": place.capacity(name, _SPINS_PER_LAUNCH)}
        tally = self.task.has_tally
        own: Chains = self.task.kind.new_chains(
            self.task, name, place.topology, tally=tally, **room
        )
        return own

    @property
    def _blocks_that_fill(self) -> int:
        return _SPINS_PER_LAUNCH // (self.task.num_points * len(self.task.p))

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        items = [(number, p) for number in numbers for p in self.task.p]
        return list(self.make_blocks(numbers, self.measure(items, stopped)))

    def measure(
        self,
        items: Sequence[tuple[int, float]],
        stopped: IsStopped | None = None,
        *,
        end: ChainEnd | None = None,
        with_planes: bool = False,
    ) -> Measured:
        """Return the results of chains (number, p), from a block of sweeps of each.

        end: the state from which they continue; by default they begin.  with_planes: whether the
        spins after the last sweep are returned.
        """
        task, shape = self.task, (len(items), self.task.block_size)
        measured = Measured(
            np.empty((*shape, workplace.row_width(task)), np.int64),
            np.empty((*shape, SPIN_ROW_WIDTH), np.int64),
            np.zeros((len(items), MOST_AXES)),
        )
        with self.device.driven():
            for part in workplace.steps(len(items), self.chains.capacity, None):
                self._begin(items[part], end, part, stopped)
                self._sweep(measured, part, stopped)
                if with_planes:
                    measured.planes.append(self.chains.copy_planes())
        return measured

    def make_blocks(self, numbers: Sequence[int], measured: Measured) -> list[Block]:
        """Return the blocks of these results of their chains, p by p."""
        task, shape = self.task, (len(numbers), len(self.task.p))

        def by_block(by_chain: np.ndarray) -> np.ndarray:
            return np.moveaxis(by_chain.reshape(*shape, task.block_size, -1), 1, 2)

        extras = {}
        if "correlation" in task.measure:
            extras["structure_factor"] = measured.factors.reshape(*shape, MOST_AXES)
        rows, spins = by_block(measured.rows), by_block(measured.spins)
        words, series = (task.observables, task.measure, extras), task.kind.series
        return make_chain_blocks(numbers, rows, spins, *words, series)

    def _begin(
        self,
        items: Sequence[tuple[int, float]],
        end: ChainEnd | None,
        part: slice,
        stopped: IsStopped | None,
    ) -> None:
        """Begin chains, with their burn-in, or continue them; part: which of all they are."""
        keys = [self.task.chain(number, p) for number, p in items]
        random = [number % 2 == 1 for number, _ in items]
        self.chains.begin(self._key[0], keys, random)
        if end is not None:
            self.chains.resume(end.planes[part], end.sweeps)
            return
        for step in self._steps(self.task.burn_in, len(items), stopped):
            self.chains.skip(step.stop - step.start)

    def _sweep(self, block: Measured, part: slice, stopped: IsStopped | None) -> None:
        """Do the sweeps of a block; for structure factors one at a time, with spins on the host."""
        task, chains = self.task, self.chains
        has_factors = "correlation" in task.measure
        periodic = [kind == "periodic" for kind in task.boundary]
        most = 1 if has_factors or task.every > 1 else None
        for step in self._steps(task.block_size, part.stop - part.start, stopped, most):
            if has_factors:
                drawn = chains.copy_planes(), task.draw.states, task.shape
                block.factors[part] += structure_factors(*drawn, periodic)
            block.rows[part, step], block.spins[part, step] = chains.advance(step.stop - step.start)
            if task.every > 1:
                chains.skip(task.every - 1)

    def _steps(
        self, sweeps: int, chains: int, stopped: IsStopped | None, most: int | None = None
    ) -> Iterator[slice]:
        """Cut the sweeps of chains into steps between which sampling can be stopped."""
        is_shared = self.device.is_shared
        sites = workplace.SITES_PER_LAUNCH if is_shared else workplace.SITES_PER_CALL
        return workplace.steps(sweeps, most or sites // (self.task.num_points * chains), stopped)

    def first_calls(self, *, with_pilot: bool) -> list[Callable[[], object]]:
        # Each call starts from scratch, so that another process can compile what one of them needs.
        return [self._call_rows, self._call_skip, partial(ChainSampler.sample, self, [0])]

    def _call_rows(self) -> None:
        self._begin([(0, 0.5)], None, slice(1), None)
        self.chains.rows_at(np.array([p_to_threshold(0.5)], np.uint64))

    def _call_skip(self) -> None:
        self._begin([(0, 0.5)], None, slice(1), None)
        self.chains.skip(1)
        self.chains.resume(self.chains.copy_planes(), 1)


class LongChainSampler(ChainSampler):
    """Measures blocks that are the parts of one long chain at each p, from an ``end`` on."""

    is_serial = True

    def __init__(self, task: Task, *, end: ChainEnd | None = None, **options: Any) -> None:
        super().__init__(task, **options)
        self.end = end

    @property
    def blocks_per_call(self) -> int:
        return 1

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        return [self._next_block(number, stopped) for number in numbers]

    def _next_block(self, number: int, stopped: IsStopped | None) -> Block:
        """Return the block that comes next; ValueError for the number of another one."""
        task, end = self.task, self.end
        if (task.burn_in if end is None else end.sweeps) != task.sweeps_after(number):
            raise ValueError(f"block {number} of one chain is not the one that comes next")
        items = [(0, p) for p in task.p]
        measured = self.measure(items, stopped, end=end, with_planes=True)
        (block,) = self.make_blocks([number], measured)
        self.end = ChainEnd(task.sweeps_after(number + 1), np.concatenate(measured.planes))
        return replace(block, end=self.end)

    def continue_from(self, end: ChainEnd | None) -> None:
        self.end = end

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"end": self.end}


def new_sampler(task: Task, **options: Any) -> ChainSampler:
    return (LongChainSampler if task.is_serial else ChainSampler)(task, **options)


KIND = ChainsOfSpins()
