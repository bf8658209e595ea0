"""A check: a function from conditions to outcomes, which compare values with expectations.

Statistics are converted to normal deviates, to which a single limit applies.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import Samples, fit_coupling
from percolab.coupled.points import measure_by_batches
from percolab.kernels.device import Device
from percolab.labelers import LABELERS, fitting_labeler, serving_labeler
from percolab.labelers.forest import Labeler
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology
from percolab.run.executors import default_workers
from percolab.run.stored import Interrupted

#: The largest deviation, in standard deviations, that is attributed to chance.
LIMIT = 4.0
#: Smaller eigenvalues of a correlation matrix mean that values determine each other.
_DEPENDENT = 1e-8


@dataclass(frozen=True)
class Conditions:
    """Where and how thoroughly the checks run.

    device: resolved.  seed: the source of the streams of every check.  full: more samples and
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

    sigma: None if value and expectation must be equal.  note: a hint for failures, or the source
    of the expectation.  correlated: whether it has the same samples as its neighbours; then a row
    for all of them together follows, which replaces them when deviations are counted.
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
    """Yield the outcomes of a check; an exception, except Interrupted, is one that fails."""
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

    # If a probability underflows, the deviate is tens of sigma anyway.
    return float(norm.isf(np.clip(exceeded, 1e-300, 1 - 1e-16)))


def as_normal(name: str, chi_square: float, dof: int) -> Outcome:
    """Return chi^2 as the normal deviate that is exceeded with the same probability."""
    from scipy.stats import chi2

    deviate = _deviate(float(chi2.sf(chi_square, dof)))
    return Outcome(f"chi^2: {name}", deviate, 0.0, 1.0, f"chi^2 {chi_square:.1f}, {dof} dof")


def largest_as_normal(name: str, z: NDArray[np.float64]) -> Outcome:
    """Return the largest of many |z| as the normal deviate of the same probability."""
    from scipy.stats import norm

    largest = float(np.max(np.abs(z)))
    # The probability that at least one of them is as large.
    exceeded = -np.expm1(z.size * np.log1p(-2 * norm.sf(largest)))
    return Outcome(name, _deviate(float(exceeded)), 0.0, 1.0, f"|z| {largest:.2f} of {z.size}")


def compare_means(
    name: str, values: Mapping[str, tuple[NDArray[Any], float]], note: str = ""
) -> Iterator[Outcome]:
    """Yield outcomes of means over the same samples, and one of all together, by their covariance.

    values: by name of the outcome, the values of all samples, and the expected mean.  The last
    outcome is Hotelling's T^2 of the mean deviations, as the normal deviate of the same
    probability: H. Hotelling, Ann. Math. Stat. 2, 360 (1931).
    """
    from scipy.stats import f

    for text, (each, expected) in values.items():
        yield replace(mean_outcome(text, each, expected, note=note), correlated=True)
    deviations = np.stack([each - expected for each, expected in values.values()], axis=1)
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
    text = f"T^2 {t_square:.1f} of {rank} values, {count} samples"
    yield Outcome(f"together: {name}", deviate, 0.0, 1.0, text)


def sum_differing(
    text: str, counted: Iterable[tuple[str, str, int]], note: str = ""
) -> Iterator[Outcome]:
    """Yield for every labeler the number of entries, over all cases, that are not as expected.

    counted: (labeler, case, number of differences).  text: the name of a row, {} is the labeler.
    note: for labelers without differences; for others it is the first case that differs.
    """
    wrong, notes = dict[str, int](), dict[str, str]()
    for name, case, count in counted:
        wrong[name] = wrong.get(name, 0) + count
        if count:
            notes.setdefault(name, f"first on {case}")
    for name, count in wrong.items():
        yield differing(text.format(name), count, notes.get(name, note))


def list_labelers(kind: str, structure: Lattice | Topology) -> list[str]:
    """Return the labelers that serve a lattice, or a topology, on a kind of device."""
    able = [name for name, entry in LABELERS.items() if kind in entry.classes]
    if isinstance(structure, Topology):
        return [name for name in able if serving_labeler(name, kind, structure) == name]
    return [name for name in able if fitting_labeler(name, kind, structure)[0] == name]


def read_samples(
    labeler: Labeler, drawn: tuple[int, int, Samples, Samples], read: Callable[[int], NDArray[Any]]
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Return the open bonds of batch entries, and the result of ``read``, one entry per row.

    drawn: generator, seed, samples and thresholds.  read: called with the number of entries.
    """
    batch, opened, found = labeler.batch, [], []
    generator, seed, samples, limits = drawn
    for first in range(0, len(samples), batch.capacity):
        part = slice(first, first + batch.capacity)
        entries = batch.fill(generator, seed, samples[part], limits[part])
        opened.append(batch.copy_open_words(entries).reshape(entries, -1))
        found.append(read(entries).copy())
    return np.concatenate(opened), np.concatenate(found)


def measure_words(labeler: Labeler, words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the rows of samples with these open bonds, int64 (n, ROW_WIDTH); words: (n, words)."""

    def measure(part: NDArray[np.uint32]) -> NDArray[np.int64]:
        return labeler.join(labeler.batch.load(part)).rows().copy()

    rows: NDArray[np.int64] = measure_by_batches(measure, labeler.batch.capacity, words)
    return rows


def in_threads(work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
    """Return the results of work for each part, with a thread for every part."""
    with ThreadPoolExecutor(len(parts)) as executor:
        return list(executor.map(work, parts))


#: The largest number of sites in a batch of samples.
_SITES_PER_BATCH = 2**28


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
    device, seed = conditions.device, conditions.stream_seed(*stream)
    threshold = p_to_threshold(p)

    def sample_rows(numbers: Samples) -> NDArray[np.int64]:
        most = min(numbers.size, _SITES_PER_BATCH // topology.num_points)
        coupling = fit_coupling(device, topology, model, most=most)
        limits = np.full(numbers.size, threshold, np.uint64)
        return coupling.rows(GENERATORS[rng], seed, numbers, limits)

    workers = 1 if device.is_shared else min(default_workers(device), samples)
    numbers = np.arange(samples, dtype=np.uint64)
    return np.concatenate(in_threads(sample_rows, np.array_split(numbers, workers)))


def mean_outcome(
    name: str, values: NDArray[Any], expected: float, *, scale: float = 1.0, note: str = ""
) -> Outcome:
    """Return the outcome of a mean of independent values (n,), divided by ``scale``.

    The scatter of few values is uncertain, so the standard error is widened: a deviation in units
    of it is the normal deviate with the same probability as Student's t.
    """
    from scipy.stats import norm, t

    values = np.asarray(values) / scale
    mean, sigma = float(values.mean()), float(values.std(ddof=1)) / values.size**0.5
    if sigma > 0:
        deviation = max(abs(mean - expected) / sigma, 1.0)
        exceeded = float(np.exp(t.logsf(deviation, values.size - 1)))
        # If the probability is too small to compute a normal deviate, the ratio hardly matters.
        sigma *= deviation / float(norm.isf(max(exceeded, 1e-300)))
    return Outcome(name, mean, expected, sigma, note)
