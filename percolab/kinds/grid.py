"""Percolation on a grid of p: every sample is measured at all p at once."""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, cast

import numpy as np

from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import Coupling, SampleBlocks, compute_memory, new_coupling, sums_blocks
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds.algorithms import Labelers
from percolab.kinds.workplace import IsStopped, TaskSampler, Workplace, number_samples, steps
from percolab.labelers import new_labeler, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.extent import Extent
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.block_sums import MOST_SUMS
from percolab.measure.clusters import Clusters
from percolab.measure.columns import WRAPPING
from percolab.measure.measurements import Reader, list_measurements
from percolab.measure.rows import OPENINGS
from percolab.tasks import blocks
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.groups import add_groups, find_groups, group_arrays, number_array
from percolab.tasks.kind import Kind, PilotConditions
from percolab.tasks.study import Study, Task

#: Site labelings in a call whose rows stay on a GPU, which then works for some 150 ms, while the
#: host makes the blocks of the call before.
_LABELINGS_PER_CALL = 2**35
#: Generator, seed, blocks and grid of thresholds.
_GivenBlocks = tuple[int, int, SampleBlocks, np.ndarray]


class Grid(Kind):
    """Percolation on a grid of p."""

    name = "grid"
    settings = frozenset({"source", "target"})
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("series", "correlation"), "only chains of spins have one (--model ising)"
    )
    algorithms = Labelers()
    sampler = "kinds.grid:GridSampler"

    def check(self, sampling: Task | Study) -> None:
        readers = [each.reader_class for each in list_measurements(sampling.measure)]
        given = [f"{key} = {text}" for key, text in sampling.ends.items()]
        flows = [each.with_terminals for each in readers]
        if given and not (isinstance(sampling.structure, Lattice) and any(flows)):
            raise InputError(
                f"{given[0]}: source and target need a graph (--graph), or on a lattice measure "
                "path, backbone or conductance"
            )
        if WRAPPING in sampling.measure and {*sampling.boundary} != {"periodic"}:
            raise InputError(
                "measure wrapping: only wrapping is measured, so every axis must be periodic "
                "(--boundary periodic)"
            )
        unread = {"sizes", "gyration"}.intersection(sampling.measure)
        if WRAPPING in sampling.measure and unread:
            raise InputError(
                f"measure {', '.join(sorted(unread))}: with measure wrapping no clusters are "
                "measured; leave out wrapping, whose probabilities are measured in any case"
            )
        for reader, has_ends in zip(readers, flows, strict=True):
            ends = sampling.ends if has_ends else {}
            reader.check(sampling.structure, sampling.boundary, **ends)

    def identity(self, task: Task) -> dict[str, Any]:
        return super().identity(task) | task.ends

    def place_p(self, study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
        return dict(load("kinds.pilots.percolation:place_p")(study, pilot))

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        counted = OPENINGS in task.measure
        needs = Needs("sizes" in task.measure, max(len(task.p), 1), openings=counted)
        readers = [each.reader_class for each in list_measurements(task.measure)]
        for reader in readers:
            needs = reader.add_needs(task.structure, needs)
        memory = compute_memory(name, device, extent, task.draw, needs, items)
        for reader in readers:
            own = reader.memory(extent)
            memory = memory.plus(own if device == "cuda" else Memory(own.host))
        if sums_blocks(name, device, task.draw, extent, openings=counted):
            columns = len(task.observables) + int(blocks.pick_squared(task.observables).sum())
            # Sums of blocks, of their parts, and of groups (half as many), made in two steps.
            memory = memory.plus(Memory(device=3 * 8 * columns * MOST_SUMS))
        return memory


class CoupledSampler(TaskSampler):
    """Measures samples by a labeler that serves all p of a sample."""

    @property
    def coupling(self) -> Coupling:
        """This thread's labeler and coupling; on a GPU those that all its threads share."""
        return self._place.own(self._new_coupling)

    def _new_coupling(self) -> Coupling:
        task, place, kind = self.task, self._place, self.device.kind
        name = serving_labeler(self._labeler, kind, place.topology)
        reads = {"tally": task.has_tally, "openings": OPENINGS in task.measure}
        reads["wraps_alone"] = WRAPPING in task.measure
        capacity = place.capacity(name)
        return new_coupling(name, kind, place.topology, task.draw, capacity=capacity, **reads)

    def rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of items (sample, threshold), uint64 (n,) each, int64 (n, row width)."""
        return self.coupling.rows(*self._key, samples, thresholds)

    def first_calls(self, *, with_pilot: bool) -> list[Callable[[], object]]:
        item = np.zeros(1, np.uint64), np.array([p_to_threshold(0.5)], np.uint64)
        pilot = [partial(self.rows, *item)] if with_pilot else []
        return [*pilot, *super().first_calls(with_pilot=with_pilot)]


class GridSampler(CoupledSampler):
    """Measures blocks of samples at all p."""

    def __init__(
        self, task: Task, *, device: Device, labeler: str | None = None, share: float = 0.9
    ) -> None:
        super().__init__(task, device=device, labeler=labeler, share=share)
        self._thresholds = np.array([p_to_threshold(p) for p in task.p], np.uint64)
        self._functions = UserFunctions(self._place, self._thresholds)
        readers = [each.reader_class for each in list_measurements(task.measure)]
        self._readers = [
            each(task.structure, task.shape, **(task.ends if each.with_terminals else {}))
            for each in readers
        ]

    @property
    def topology(self) -> Topology:
        return self._place.topology

    @property
    def blocks_per_call(self) -> int:
        if not self.device.is_shared and (self._readers or self.task.functions):
            return 1  # they take longer than labeling, by far
        if not self._sums_on_device:
            return super().blocks_per_call
        steps = max(len(self.task.p), 1)
        labelings = self.task.num_points * self.task.block_size * steps
        fitting = super().blocks_per_call if self._readers else _LABELINGS_PER_CALL // labelings
        return max(min(fitting, MOST_SUMS // steps), 1)

    @property
    def calls_per_job(self) -> int:
        return 1 if self._readers or self.task.functions else super().calls_per_job

    @cached_property
    def _sums_on_device(self) -> bool:
        """Whether block sums are made on the device of the rows; not if readers need samples."""
        task, kind = self.task, self.device.kind
        if task.functions or task.has_tally or not self.device.is_shared:
            return False
        topology = self._place.topology
        name = serving_labeler(self._labeler, kind, topology)
        counted = OPENINGS in task.measure
        return sums_blocks(name, kind, task.draw, Extent.of_topology(topology), openings=counted)

    def grid_rows(self, samples: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Return the rows of samples at ascending thresholds, int64 (n, m, row width)."""
        rows = self.coupling.grid_rows(*self._key, samples, thresholds)
        return rows.reshape(len(samples), len(thresholds), -1)

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        return self.sample_groups(numbers, stopped, 1)

    def sample_groups(
        self, numbers: Sequence[int], stopped: IsStopped | None, largest: int
    ) -> list[AnyBlock]:
        """Return the blocks, neighbours added up in groups of at most ``largest``."""
        size = self.task.block_size
        starts = number_array(numbers).astype(np.uint64) * np.uint64(size)
        given = *self._key, SampleBlocks(starts, size), self._thresholds
        with self.device.driven():
            extras, readers = self._sum_readings(given)
            is_summed = self._sums_on_device and not readers
            if is_summed:
                groups = self._sum_on_device(given, numbers, extras, largest)
            else:
                pieces = self._read_samples(numbers, readers, stopped)
        # From here on other threads may drive the device.
        if is_summed:
            return list(blocks.make_grouped_blocks(numbers, *groups))
        measured, *read = (
            by_sample.reshape(len(numbers), -1, *by_sample.shape[1:])
            for parts in zip(*pieces, strict=True)
            for by_sample in [parts[0] if len(parts) == 1 else np.concatenate(parts)]
        )
        task = self.task
        for reader, by_sample in zip(readers, read, strict=True):
            extras |= reader.sums(by_sample)
        if task.functions:
            samples = number_samples(numbers, task.block_size)
            extras |= self._functions.sums(len(numbers), samples, stopped)
        counted = None
        if OPENINGS in task.measure:
            measured, counted = measured[..., :-1], measured[..., -1:]
        more = extras, counted, largest
        return list(blocks.make_sample_blocks(numbers, measured, task.observables, *more))

    def _read_samples(
        self, numbers: Sequence[int], readers: Sequence[Reader], stopped: IsStopped | None
    ) -> list[list[np.ndarray]]:
        """Return for every piece of the samples its rows, and what each reader reads."""
        pieces: list[list[np.ndarray]] = []
        for part in self._place.pieces(number_samples(numbers, self.task.block_size), stopped):
            given = *self._key, part, self._thresholds
            rows = self.coupling.grid_rows(*given)
            pieces.append([rows, *(each.rows(self.coupling, *given) for each in readers)])
        return pieces

    def _sum_readings(self, given: _GivenBlocks) -> tuple[dict[str, np.ndarray], list[Reader]]:
        """Return sums of blocks that are made on the device, and the readers that give none."""
        sums: dict[str, np.ndarray] = {}
        readers = []
        for reader in self._readers:
            own = reader.block_sums(self.coupling, *given)
            if own is None:
                readers.append(reader)
            sums |= own or {}
        return sums, readers

    def _sum_on_device(
        self,
        given: _GivenBlocks,
        numbers: Sequence[int],
        extras: dict[str, np.ndarray],
        largest: int,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return where groups of blocks begin, and their arrays; rows never leave the device."""
        own, coupling = self.task.observables, cast(Any, self.coupling)
        picks = blocks.pick_observables(own), blocks.pick_squared(own)
        begins, names = find_groups(numbers, largest), ("sums", "squares")
        try:
            sums = dict(zip(names, coupling.block_sums(*given, *picks, begins), strict=True))
            return begins, sums | {name: add_groups(each, begins) for name, each in extras.items()}
        except OverflowError:
            sums = dict(zip(names, coupling.block_sums(*given, *picks), strict=True))
            return group_arrays(numbers, sums | extras, largest)


class UserFunctions:
    """The functions of a task, called with labels, or bonds, of each sample at each threshold."""

    def __init__(self, place: Workplace, thresholds: np.ndarray) -> None:
        self._place, self._task, self._thresholds = place, place.task, thresholds
        self._reads = {name for function in self._task.functions for name in function.reads}
        self._local = threading.local()

    def sums(
        self, blocks: int, samples: np.ndarray, stopped: IsStopped | None
    ) -> dict[str, np.ndarray]:
        """Return the sums of the functions by name, float64 (blocks, m, 1)."""
        task = self._task
        sums = {function.name: np.zeros((blocks, len(task.p), 1)) for function in task.functions}
        labeler = self._own_labeler()
        for part in steps(len(samples), 1, stopped):
            (sample,), block = samples[part], part.start // task.block_size
            for k, threshold in enumerate(self._thresholds):
                read = self._read(labeler, sample, threshold)
                for function in task.functions:
                    own = {name: read[name].copy() for name in function.reads}
                    total = float(sums[function.name][block, k, 0]) + function.call_function(own)
                    if not math.isfinite(total):
                        raise InputError(
                            f"observable {function}: its sum over a block is {total}, but it "
                            "must be finite"
                        )
                    sums[function.name][block, k, 0] = total
        return sums

    def _own_labeler(self) -> Any:
        if not hasattr(self._local, "labeler"):
            topology = self._place.topology
            name = serving_labeler(None, "cpu", topology)
            self._local.labeler = new_labeler(name, "cpu", topology, self._task.draw)
        return self._local.labeler

    def _read(self, labeler: Any, sample: np.uint64, threshold: np.uint64) -> dict[str, np.ndarray]:
        """Return the arguments of the functions for a sample at one threshold, by name."""
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        items = labeler.batch.fill(GENERATORS[self._task.rng], self._task.stream_seed, *one)
        read = {"bonds": self._bonds(labeler, items)} if "bonds" in self._reads else {}
        if "labels" in self._reads:
            read["labels"] = self._labels(labeler, items)
        return read

    def _bonds(self, labeler: Any, items: int) -> np.ndarray:
        """Return the sites of all open bonds, int64 (m, 2), as indices of flat labels."""
        topology = self._place.topology
        k, owner, _ = self._all_bonds.T
        words = labeler.batch.copy_open_words(items)[0]
        is_open = unpack_bits(words, 32 * words.size)[32 * topology.num_words * k + owner]
        ends: np.ndarray = self._all_bonds[is_open, 1:]
        numbers = self._inner_numbers
        return ends if numbers is None else np.argsort(numbers)[ends]

    @cached_property
    def _all_bonds(self) -> np.ndarray:
        return self._place.topology.bonds()

    @property
    def _inner_numbers(self) -> np.ndarray | None:
        """The internal number of every site of a graph; None where sites have their own numbers."""
        structure = self._task.structure
        return structure.inner_numbers if isinstance(structure, Graph) else None

    def _labels(self, labeler: Any, items: int) -> np.ndarray:
        """Return the labels of the drawn entry of a batch, int32, like those of percolab.label."""
        task, topology = self._task, self._place.topology
        labels = labeler.join(items, Reading.LABELS).labels()[0].copy()
        points = topology.num_points
        labels[~unpack_bits(topology.occupied, points)] = -1
        if task.draw.draws_sites:
            labels[~unpack_bits(labeler.batch.copy_occupied(items)[0], points)] = -1
        if self._inner_numbers is not None:
            labels = Clusters.of_any_labels(labels[self._inner_numbers], topology).labels
        return np.asarray(labels).reshape(topology.shape[::-1] or (points,))


KIND = Grid()
