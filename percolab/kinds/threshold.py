"""Exact thresholds: the smallest p at which each sample spans, along every open axis."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from percolab.bonds.words import p_to_threshold
from percolab.coupled import compute_memory
from percolab.coupled.thresholds import find_thresholds
from percolab.errors import InputError
from percolab.kernels.memory import Memory, Needs
from percolab.kernels.registry import load
from percolab.kinds.algorithms import Labelers
from percolab.kinds.grid import CoupledSampler
from percolab.kinds.workplace import NO_FUNCTIONS, OPENS_IN_ORDER, IsStopped, number_samples
from percolab.lattices.extent import Extent
from percolab.measure.columns import MEASURES, open_axes
from percolab.tasks.blocks import AnyBlock, ThresholdBlock
from percolab.tasks.codecs import ThresholdCodec
from percolab.tasks.kind import Kind, PilotConditions
from percolab.tasks.study import Study, Task


class Threshold(Kind):
    """The exact threshold T of every sample; there is no p."""

    name = "threshold"
    fixed_p = ()
    refused_measures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        MEASURES, "method threshold measures only T, the p at which a sample spans"
    )
    refusals: ClassVar[Mapping[str, str]] = {"parts": OPENS_IN_ORDER, "functions": NO_FUNCTIONS}
    always_has_pilot = True
    codec = ThresholdCodec()
    algorithms = Labelers()
    sampler = "kinds.threshold:ThresholdSampler"

    def check(self, sampling: Task | Study) -> None:
        if sampling.p:
            raise InputError("method threshold finds the p at which each sample spans: leave out p")
        if not sampling.boundary:
            raise InputError(
                "method threshold needs a source and a target: without them nothing spans"
            )
        if not open_axes(sampling.boundary):
            raise InputError("method threshold needs an open axis: without one nothing spans")

    def hints(
        self, study: Study, stored: Mapping[str, Any], pilot: PilotConditions
    ) -> dict[str, dict[str, Any]]:
        """Return the ``window`` of every task, from stored thresholds or from a pilot."""
        place_windows = load("kinds.pilots.percolation:place_windows")
        sizes = sorted({result.task.size for result in stored.values()})
        windows = place_windows(study, sizes, stored.values(), pilot)
        return {key: {"window": windows[result.task.size]} for key, result in stored.items()}

    def memory(self, task: Task, name: str, device: str, extent: Extent, items: int = 1) -> Memory:
        return compute_memory(name, device, extent, task.draw, Needs(thresholds=True), items)

    def count_labelings(self, task: Task) -> int:
        """Return the steps of bisection, about."""
        return 32


class ThresholdSampler(CoupledSampler):
    """Finds the thresholds of blocks; the search begins between two p, which only saves time."""

    def __init__(
        self, task: Task, *, window: tuple[float, float] = (0.0, 1.0), **options: Any
    ) -> None:
        super().__init__(task, **options)
        self.window = window
        low, high = map(p_to_threshold, window)
        self._window = low, max(high, low + 1)

    def sample(self, numbers: Sequence[int], stopped: IsStopped | None = None) -> list[AnyBlock]:
        samples = number_samples(numbers, self.task.block_size)
        with self.device.driven():
            coupling = self.coupling
        # Another thread drives a GPU while this one processes what was found.
        parts = [
            find_thresholds(coupling, *self._key, part, self._window, self.device.driven)
            for part in self._place.pieces(samples, stopped)
        ]
        thresholds = np.concatenate(parts).reshape(len(numbers), self.task.block_size, -1)
        return [ThresholdBlock(*block) for block in zip(numbers, thresholds, strict=True)]

    def _arguments(self) -> dict[str, Any]:
        return super()._arguments() | {"window": self.window}


KIND = Threshold()
