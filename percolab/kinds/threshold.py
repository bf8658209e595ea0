"""Exact thresholds: the smallest p at which each sample spans, along every open axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import Coupling, memory_of
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds.algorithms import Labelers
from percolab.kinds.grid import make_coupling
from percolab.kinds.workplace import (
    SITES_PER_LAUNCH,
    Workplace,
    choose_blocks_per_call,
    number_samples,
)
from percolab.lattices.extent import Extent
from percolab.measure.columns import MEASURES, Column, list_columns, open_axes
from percolab.tasks.blocks import AnyBlock, ChainEnd, ThresholdBlock
from percolab.tasks.codecs import ThresholdCodec
from percolab.tasks.kind import Kind, PilotConditions, SamplerSpec
from percolab.tasks.study import Study, Task


class Threshold(Kind):
    """The exact threshold T of every sample; there is no p."""

    name = "threshold"
    fixed_p = ()
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method threshold finds T, nothing else"
    )
    refusals: ClassVar[Mapping[str, str]] = {
        "parts": "method threshold opens the bonds of a whole sample in order; give p",
        "functions": "functions of labels are measured in percolation by method grid, not of "
        "method threshold",
    }
    always_has_pilot = True
    codec = ThresholdCodec()
    algorithms = Labelers()

    def check(self, item: Task | Study) -> None:
        """Raise InputError for spins, for p, and where nothing can span."""
        if Model.parse(item.model).has_spins:
            raise InputError(
                "method threshold finds where samples begin to span, but those of "
                f"{item.model} are different at every p: leave it out"
            )
        if item.p:
            raise InputError("method threshold finds the p at which each sample spans: leave out p")
        if not item.boundary:
            raise InputError(
                "method threshold needs a source and a target: without them nothing spans"
            )
        if not open_axes(item.boundary):
            raise InputError("method threshold needs an open axis: without one nothing spans")

    def identity(self, task: Task) -> dict[str, Any]:
        """Return the method, since there is no p."""
        return {"method": task.method}

    def columns(
        self, boundary: Sequence[str], measure: Sequence[str] = (), *, wide: bool = False
    ) -> tuple[Column, ...]:
        """Return the columns of clusters; of the thresholds those of spanning follow at any p."""
        return list_columns(boundary, measure, wide=wide)

    def hints(
        self, study: Study, stored: Mapping[str, Any], pilot: PilotConditions
    ) -> dict[str, dict[str, Any]]:
        """Return the ``window`` of every task, from what is stored or from a pilot."""
        place_windows = load("kinds.pilots.percolation:place_windows")
        sizes = sorted({item.task.size for item in stored.values()})
        windows = place_windows(study, sizes, stored.values(), pilot)
        return {key: {"window": windows[item.task.size]} for key, item in stored.items()}

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        """Return the memory of a batch, its labeler and its coupling."""
        return memory_of(name, device, extent, task.draw, Needs(thresholds=True), items)

    def sampler(
        self,
        task: Task,
        *,
        device: Device,
        labeler: str | None = None,
        share: float = 0.9,
        **hints: Any,
    ) -> ThresholdSampler:
        """Return a task made ready for a device; hints: ``window``, where T is expected."""
        return ThresholdSampler(task, device=device, labeler=labeler, share=share, **hints)


class ThresholdSampler:
    """Finds the thresholds of blocks of samples (:class:`percolab.tasks.kind.BlockSampler`).

    window: two p between which they are looked for first; it changes how long that takes, not what
    is found.
    """

    is_serial = False

    def __init__(
        self,
        task: Task,
        *,
        device: Device,
        labeler: str | None = None,
        share: float = 0.9,
        window: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.task, self.device, self.window = task, device, window
        self._labeler = labeler
        self._place = Workplace(task, device, share)
        self._key = GENERATORS[task.rng], task.stream_seed
        low, high = map(p_to_threshold, window)
        self._window = low, max(high, low + 1)

    @property
    def coupling(self) -> Coupling:
        """This thread's labeler and coupling; or that of all threads, for the one that drives."""
        return self._place.own(lambda: make_coupling(self._place, self._labeler))

    @property
    def blocks_per_call(self) -> int:
        """Blocks that one call should be given to keep the device at work."""
        if not self.device.is_shared:
            return 1
        sites = self.task.num_points * self.task.block_size
        return choose_blocks_per_call(self.task, SITES_PER_LAUNCH // sites)

    def sample(
        self, numbers: Sequence[int], stopped: Callable[[], bool] | None = None
    ) -> list[AnyBlock]:
        """Return the blocks with these numbers; Stopped if ``stopped`` returns True on the way."""
        numbers = list(numbers)
        samples = number_samples(numbers, self.task.block_size)
        with self.device.driven():
            found = [
                find_thresholds(self.coupling, *self._key, part, self._window)
                for part in self._place.pieces(samples, stopped)
            ]
        thresholds = np.concatenate(found).reshape(len(numbers), self.task.block_size, -1)
        return [ThresholdBlock(*block) for block in zip(numbers, thresholds, strict=True)]

    def continue_from(self, end: ChainEnd | None) -> None:
        """Do nothing: samples are independent."""

    def warm_up(self, *, with_pilot: bool) -> None:
        """Call once what a sweep calls, and what its pilot calls, so that it is compiled."""
        if with_pilot:
            thresholds = np.array([p_to_threshold(0.5)], np.uint64)
            self.coupling.rows(*self._key, np.zeros(1, np.uint64), thresholds)
        self.sample([0])

    def spec(self) -> SamplerSpec:
        """Return what a worker process makes the same sampler from."""
        given = {"labeler": self._labeler, "share": self._place.share, "window": self.window}
        return SamplerSpec("kinds.threshold:ThresholdSampler", self.task, given)


KIND = Threshold()
