"""A check: a function from conditions to outcomes, values next to their expectations.

Statistics are outcomes as normal deviates, to which one limit applies.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
from percolab.run.stored import Interrupted

#: The largest deviation, in standard deviations, that is attributed to chance.
LIMIT = 4.0
#: Eigenvalues of a correlation matrix below this are those of values that determine each other.
_DEPENDENT = 1e-8


@dataclass(frozen=True)
class Conditions:
    """Where and how thoroughly the checks run.

    device: a resolved one.  seed: every check draws its streams from it.  full: more samples and
    larger lattices, for a GPU.
    """

    device: Device
    seed: int = 1
    full: bool = False

    def count(self, quick: int, full: int) -> int:
        return full if self.full else quick

    def stream_seed(self, *name: object) -> int:
        """Return the seed, in [0, 2^63), of a name; different names have independent seeds."""
        text = json.dumps([self.seed, *map(str, name)])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


@dataclass(frozen=True)
class Outcome:
    """One row of the table: a value, its expectation, and its standard deviation.

    sigma: None where value and expectation must be equal.  note: a hint for failures, or the source
    of the expectation.  correlated: whether it is of the same samples as its neighbours; a row of
    all of them together follows, which replaces them where deviations are counted.
    """

    name: str
    value: float
    expected: float
    sigma: float | None = None
    note: str = ""
    correlated: bool = False

    @property
    def z(self) -> float | None:
        """Deviation in units of sigma; None if exact, NaN for a sigma that is 0 or infinite."""
        if self.sigma is None:
            return None
        usable = 0 < self.sigma < math.inf
        return (self.value - self.expected) / self.sigma if usable else math.nan

    @property
    def holds(self) -> bool:
        """Whether the value equals its expectation, or is within LIMIT sigma of it."""
        if self.z is None:
            return self.value == self.expected
        # A comparison with NaN is False.
        return abs(self.z) <= LIMIT


@dataclass(frozen=True)
class Check:
    """A function that yields outcomes; name: its subject, group: its heading."""

    group: str
    name: str
    run: Callable[[Conditions], Iterator[Outcome]]


def run_check(check: Check, conditions: Conditions) -> Iterator[Outcome]:
    """Yield the outcomes of a check; an exception, Interrupted apart, is one that does not hold."""
    try:
        yield from check.run(conditions)
    except Interrupted:
        raise
    except Exception as error:  # checks look for anything that breaks on this installation
        text = " ".join(str(error).split())
        yield Outcome(check.name, math.nan, 0.0, note=f"{type(error).__name__}: {text}")


def differing(name: str, count: int, note: str = "") -> Outcome:
    """Return the outcome of a comparison in which nothing may differ."""
    return Outcome(name, count, 0, note=note)


def _deviate(exceeded: float) -> float:
    """Return the normal deviate that is exceeded with this probability."""
    from scipy.stats import norm

    # Where a probability underflows, the deviate is tens of sigma either way.
    return float(norm.isf(np.clip(exceeded, 1e-300, 1 - 1e-16)))


def as_normal(name: str, chi_square: float, dof: int) -> Outcome:
    """Return chi^2 as the normal deviate with the same probability to be exceeded."""
    from scipy.stats import chi2

    deviate = _deviate(float(chi2.sf(chi_square, dof)))
    return Outcome(f"chi^2: {name}", deviate, 0.0, 1.0, f"chi^2 {chi_square:.1f}, {dof} dof")


def largest_as_normal(name: str, z: NDArray[np.float64]) -> Outcome:
    """Return the largest of many |z| as the normal deviate of the same probability."""
    from scipy.stats import norm

    largest = float(np.max(np.abs(z)))
    # The probability that one of them at least is as large.
    exceeded = -np.expm1(z.size * np.log1p(-2 * norm.sf(largest)))
    return Outcome(name, _deviate(float(exceeded)), 0.0, 1.0, f"|z| {largest:.2f} of {z.size}")


def with_joint(name: str, compared: Iterable[tuple[Outcome, NDArray[Any]]]) -> Iterator[Outcome]:
    """Yield outcomes of the same samples, and one of all of them together, by their covariance.

    compared: each outcome with the deviations of samples from its expectation, float64 (samples,).
    Hotelling's T^2 of their means, as the normal deviate of the same probability: H. Hotelling,
    Ann. Math. Stat. 2, 360 (1931).
    """
    from scipy.stats import f

    outcomes, columns = zip(*compared, strict=True)
    yield from (replace(outcome, correlated=True) for outcome in outcomes)
    deviations = np.stack(columns, axis=1)
    count = len(deviations)
    spread = deviations.std(axis=0, ddof=1)
    varies = spread > _DEPENDENT * spread.max()
    scaled = deviations[:, varies] / spread[varies]
    eigenvalues, vectors = np.linalg.eigh(np.atleast_2d(np.cov(scaled, rowvar=False)))
    kept = eigenvalues > _DEPENDENT
    along = scaled.mean(axis=0) @ vectors[:, kept]
    rank = int(kept.sum())
    t_square = count * float(np.sum(along**2 / eigenvalues[kept]))
    ratio = (count - rank) / (rank * (count - 1)) * t_square
    deviate = _deviate(float(f.sf(ratio, rank, count - rank)))
    note = f"T^2 {t_square:.1f} of {rank} values, {count} samples"
    yield Outcome(f"together: {name}", deviate, 0.0, 1.0, note)


# Sites of a CUDA batch, the fraction of the free memory it may take, and samples of a call on the
# CPU.
_SITES_PER_BATCH, _FRACTION, _SAMPLES_PER_CALL = 2**28, 0.5, 2048


def coupling_for(
    device: Device, topology: Topology, model: Model = BOND, *, most: int, name: str | None = None
) -> Coupling:
    """Return a coupling, by default of the fastest labeler, for at most so many batch entries."""
    device.open()
    serving = serving_labeler(name, device.kind, topology)
    extent = Extent.of_topology(topology)

    def memory(count: int) -> Memory:
        return compute_memory(serving, device.kind, extent, model, Needs(labels=True), count)

    fitting = entries_that_fit(memory, int(_FRACTION * device.free_memory()))
    fitting = min(fitting, _SITES_PER_BATCH // topology.num_points)
    return new_coupling(serving, device.kind, topology, model, capacity=max(min(most, fitting), 1))


def list_labelers(kind: str, topology: Topology) -> list[str]:
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
        coupling = coupling_for(conditions.device, topology, model, most=samples)
        return sample_rows(coupling, numbers)

    def sample_share(share: NDArray[np.uint64]) -> NDArray[np.int64]:
        coupling = coupling_for(conditions.device, topology, model, most=share.size)
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
