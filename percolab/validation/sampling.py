"""Samples for the checks: rows of any topology on any device, and means with their errors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import Coupling, compute_memory, new_coupling
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs, entries_that_fit
from percolab.labelers import LABELERS, serving_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.topology import Topology
from percolab.run.executors import default_workers
from percolab.validation.check import Conditions, Outcome

# Sites of a CUDA batch, the fraction of the free memory it may take, and samples of a call on the
# CPU.
_SITES_PER_BATCH, _FRACTION, _SAMPLES_PER_CALL = 2**28, 0.5, 2048


def coupling_for(
    device: Device,
    topology: Topology,
    model: Model = BOND,
    *,
    entries: int,
    name: str | None = None,
) -> Coupling:
    """Return a labeler, by default the fastest, with its coupling for `entries` batch entries."""
    device.open()
    serving = serving_labeler(name, device.kind, topology)
    extent = Extent.of_topology(topology)

    def memory(count: int) -> Memory:
        return compute_memory(serving, device.kind, extent, model, Needs(labels=True), count)

    fitting = entries_that_fit(memory, int(_FRACTION * device.free_memory()))
    most = min(fitting, _SITES_PER_BATCH // topology.num_points)
    return new_coupling(serving, device.kind, topology, model, capacity=max(min(entries, most), 1))


def list_labelers(kind: str, topology: Topology) -> list[str]:
    """Return the labelers of a kind of device that support a topology."""
    able = [name for name, entry in LABELERS.items() if kind in entry.classes]
    return [name for name in able if serving_labeler(name, kind, topology) == name]


def sampled_rows(
    conditions: Conditions,
    topology: Topology,
    p: float,
    samples: int,
    *,
    stream: Sequence[object],
    model: Model = BOND,
    rng: str = "xorwow",
) -> NDArray[np.int64]:
    """Return the rows, int64 (samples, ROW_WIDTH), of samples at p; stream: names their seed."""
    seed = conditions.stream_seed(*stream)
    numbers = np.arange(samples, dtype=np.uint64)
    threshold = p_to_threshold(p)

    def sample_rows(coupling: Coupling, part: NDArray[np.uint64]) -> NDArray[np.int64]:
        limits = np.full(part.size, threshold, np.uint64)
        return coupling.rows(GENERATORS[rng], seed, part, limits)

    if conditions.device.is_shared:
        return sample_rows(
            coupling_for(conditions.device, topology, model, entries=samples), numbers
        )

    def sample_share(share: NDArray[np.uint64]) -> NDArray[np.int64]:
        coupling = coupling_for(conditions.device, topology, model, entries=share.size)
        pieces = np.array_split(share, -(-share.size // _SAMPLES_PER_CALL))
        return np.concatenate([sample_rows(coupling, piece) for piece in pieces])

    workers = min(default_workers(conditions.device), samples)
    with ThreadPoolExecutor(workers) as executor:
        return np.concatenate(list(executor.map(sample_share, np.array_split(numbers, workers))))


def mean_outcome(
    name: str, values: NDArray[Any], expected: float, *, scale: float = 1.0, note: str = ""
) -> Outcome:
    """Return the outcome of a mean of independent values (n,), divided by ``scale``."""
    sigma = float(values.std(ddof=1)) / np.sqrt(values.size)
    return Outcome(name, float(values.mean()) / scale, expected, sigma / scale, note)


def fraction_outcome(name: str, values: NDArray[Any], expected: float, note: str = "") -> Outcome:
    """Return the outcome of a fraction of samples, 0 or 1 each, with the error of the expected."""
    sigma = np.sqrt(expected * (1 - expected) / values.size)
    return Outcome(name, float(np.mean(values != 0)), expected, float(sigma), note)
