"""Every stage of every labeler timed at several p: on a lattice, with its peers, or on a graph.

The peers are other programs with the same samples: scipy on the CPU, cupyx where it is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from percolab.analysis.theory.potts import critical_bond_probability
from percolab.benchmark.stages import GRID_POINTS, SEED, STAGES, bytes_moved, prepare
from percolab.benchmark.timer import CudaTimer, Timer, make_timer, spread, time_runs
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.labelers import DEFAULT_LABELER
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, unpack_bits

_SCIPY = ("scipy", "labels")
#: Larger samples are not given to scipy: it takes 50 bytes a site.
MAX_SCIPY_SITES = 2**24
#: A peer is run until it took so long in all, or so often.
_PEER_SECONDS, _PEER_RUNS = 0.5, 5
#: Threshold of site percolation on the square lattice (Newman and Ziff 2000).
_SITE_THRESHOLD = 0.592746


@dataclass(frozen=True)
class Place:
    """A p to be timed at, and p / p_c where it was given as such."""

    p: float
    ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class CallTime:
    """The time of a call, or of a kernel in it, per sample: median, least and most over the runs.

    part: of the stage.  shape: of the lattice.  probabilities: values of p of a sample.
    compared_with, ratio: another time, and this one divided by it.
    """

    stage: str
    part: str = ""
    lattice: str
    shape: tuple[int, ...]
    num_sites: int
    p: float | None = None
    program: str
    device: str
    samples: int = 1
    probabilities: int = 1
    runs: int = 0
    seconds_per_sample: float = 0.0
    seconds_per_sample_min: float = 0.0
    seconds_per_sample_max: float = 0.0
    bytes_moved_per_sample: int | None = None
    compared_with: str = ""
    ratio: float | None = None
    note: str = ""

    def timed(self, seconds: Sequence[float] | np.ndarray, **changes: Any) -> CallTime:
        each = np.asarray(seconds) / changes.get("samples", self.samples)
        return replace(self, runs=each.size, **spread("seconds_per_sample", each), **changes)

    def compared(self, other: CallTime, name: str) -> CallTime:
        """Return this record with its ratio to another, as far as the clock could measure that."""
        if other.seconds_per_sample <= 0:
            return self
        ratio = self.seconds_per_sample / other.seconds_per_sample
        return replace(self, compared_with=name, ratio=ratio)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"shape": list(self.shape)}


@dataclass(frozen=True)
class StageTime:
    """The time of one stage, per sample: median, least and most over ``runs`` runs.

    lattice, L: what was labeled, and its linear size; of a Bethe lattice, its shells.
    num_sites: its sites.  ratio: p / p_c, None where p was given.
    samples_per_run: samples timed together.  probabilities: values of p of a sample, 1 but for
    a sweep.  memory_bytes_per_sample: what the device allocated (CUDA), or the labeler takes (CPU).
    """

    lattice: str
    L: int
    num_sites: int
    p: float
    ratio: float | None
    labeler: str
    device: str
    stage: str
    samples_per_run: int
    probabilities: int
    runs: int
    seconds_per_sample: float
    seconds_per_sample_min: float
    seconds_per_sample_max: float
    bytes_moved_per_sample: int
    memory_bytes_per_sample: int

    def to_call(self, **changes: Any) -> CallTime:
        """Return it as the time of a call, with these changes."""
        same = CallTime.__annotations__.keys() & vars(self).keys()
        own = {name: getattr(self, name) for name in same} | {"shape": (self.L,)}
        own |= {"program": self.labeler, "samples": self.samples_per_run}
        return CallTime(**own | changes)

    @property
    def nanoseconds_per_site(self) -> float:
        """Time of a sample over its sites; of a sweep, for all of its p together."""
        return 1e9 * self.seconds_per_sample / self.num_sites

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"nanoseconds_per_site": self.nanoseconds_per_site}


@dataclass(frozen=True)
class PeerTime:
    """The time of one part of a peer's work on one sample, median over ``runs`` runs.

    work: what was timed, in words.  part: "build" or "labels".  clusters: how many it found.
    """

    lattice: str
    L: int
    num_sites: int
    p: float
    ratio: float | None
    peer: str
    part: str
    work: str
    runs: int
    seconds_per_sample: float
    clusters: int

    @property
    def nanoseconds_per_site(self) -> float:
        """Time of a sample over its sites."""
        return 1e9 * self.seconds_per_sample / self.num_sites

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"nanoseconds_per_site": self.nanoseconds_per_site}


def compared(
    record: StageTime, records: Sequence[StageTime | PeerTime], copy_bandwidth: float
) -> dict[str, float | None]:
    """Return a stage's time compared with a copy, scipy and one p.

    copy_bandwidth_share: its least bytes a second over those of a copy, in bytes a second.
    scipy_over_this: scipy's labels, their matrix already built, over labels or a row.
    over_one_p: a sweep over the row at one p.  None where there is nothing to compare with.
    """
    scipy, one_p = None, None
    for other in records:
        if (other.lattice, other.L, other.p) != (record.lattice, record.L, record.p):
            continue
        if isinstance(other, PeerTime):
            if record.stage in ("labels", "measure") and (other.peer, other.part) == _SCIPY:
                scipy = other.seconds_per_sample / record.seconds_per_sample
        elif (other.labeler, other.stage) == (record.labeler, "measure"):
            one_p = record.seconds_per_sample / other.seconds_per_sample
    moved = record.bytes_moved_per_sample / record.seconds_per_sample
    return {
        "copy_bandwidth_share": moved / copy_bandwidth,
        "scipy_over_this": scipy,
        "over_one_p": one_p if record.stage == "sweep" else None,
    }


def compute_p(lattice: Structure, ratio: float, model: Model = BOND) -> float:
    """Return p at a multiple of the published p_c, of spins of the critical coupling.

    InputError: none is known.
    """
    if model.has_spins:
        critical = critical_bond_probability(lattice.name, model.states)
        if critical is None:
            raise InputError(f"{lattice.name} has no published transition of {model}: give p (-p)")
        return float(1 - (1 - critical.value) ** ratio)
    known = lattice.threshold(model.name)
    if known is None:
        raise InputError(f"{lattice.name} has no published threshold: give p (-p)")
    return min(ratio * known.value, 1.0)


def choose_places(
    lattice: Structure,
    ratios: Sequence[float],
    probabilities: Sequence[float] | None,
    model: Model = BOND,
) -> tuple[Place, ...]:
    """Return the places at the given p or, without any, at multiples of p_c."""
    if probabilities is not None:
        return tuple(Place(p) for p in probabilities)
    return tuple(Place(compute_p(lattice, ratio, model), ratio) for ratio in ratios)


def time_lattice(
    timer: Timer,
    lattice: Structure,
    size: int,
    places: Sequence[Place],
    *,
    labelers: Sequence[str | None] = (None,),
    stages: Sequence[str] = STAGES,
    runs: int = 11,
    peers: bool = True,
) -> Iterator[StageTime | PeerTime]:
    """Time the labelers, and before them scipy on such samples, on a lattice of size L.

    Boundaries are open.  A Bethe lattice is one as well, with its shells as L.  Every record is
    yielded as soon as it is there.
    InputError: no such size or labeler, or a size too large for its kernels.
    """
    boundary = lattice.boundaries[:1] * lattice.dimension
    lattice.check_size(size, boundary)
    topology = lattice.topology(lattice.shape(size), boundary)
    for place in places if peers else ():
        yield from scipy_times(lattice.name, size, topology, place.p, place.ratio)
    options: Any = {"name": lattice.name, "size": size, "stages": stages, "runs": runs}
    for labeler in labelers:
        yield from time_topology(timer, topology, places, labeler=labeler, **options)


def time_stages(
    lattice: Structure,
    size: int,
    places: Sequence[Place],
    *,
    device: Device,
    labeler: str | None = None,
    stages: Sequence[str] = STAGES,
    runs: int = 11,
) -> list[StageTime]:
    """Return the times of one labeler's stages alone (see :func:`time_lattice`)."""
    options: Any = {"labelers": (labeler,), "stages": stages, "runs": runs, "peers": False}
    records = time_lattice(make_timer(device), lattice, size, places, **options)
    return [record for record in records if isinstance(record, StageTime)]


def time_topology(
    timer: Timer,
    topology: Topology,
    places: Sequence[Place],
    *,
    name: str,
    size: int,
    labeler: str | None = None,
    stages: Sequence[str] = STAGES,
    runs: int = 11,
) -> Iterator[StageTime]:
    """Time one labeler's stages on a topology: a graph, or a lattice as one.

    name, size: what the records call it.  InputError as for :func:`time_lattice`.
    """
    try:
        ready = prepare(timer, topology, labeler)
    except ValueError as error:
        raise InputError(f"{name}, size {size}: {error}") from error
    for place in places:
        works = ready.works(place.p)
        for stage in stages:
            times = time_runs(timer, works[stage], runs) / ready.samples
            moved = bytes_moved(stage, topology, needs_labels=ready.needs_labels)
            yield StageTime(
                lattice=name,
                L=size,
                num_sites=topology.num_sites,
                p=place.p,
                ratio=place.ratio,
                labeler=labeler or DEFAULT_LABELER[timer.device.kind],
                device=str(timer.device),
                stage=stage,
                samples_per_run=ready.samples,
                probabilities=GRID_POINTS if stage == "sweep" else 1,
                runs=runs,
                **spread("seconds_per_sample", times),
                bytes_moved_per_sample=moved,
                memory_bytes_per_sample=ready.memory,
            )


# Peers


def open_bond_list(topology: Topology, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Return owner and other end, int32 each, of sample 0's open bonds; nothing is periodic."""
    opened = np.zeros(topology.num_bond_words, np.uint32)
    key = (np.uint64(SEED), np.uint64(0), np.uint64(p_to_threshold(p)))
    fill_open_bonds(XORWOW, *key, np.uint64(0), topology.exists.ravel(), opened)
    words = opened.reshape(topology.exists.shape)
    flags = (unpack_bits(row, topology.num_points) for row in words)
    owners = [np.flatnonzero(row).astype(np.int32) for row in flags]
    listed, deltas = topology.neighbours, topology.deltas.astype(np.int32)
    others = [
        owner + deltas[k] if listed is None else listed[k, owner] for k, owner in enumerate(owners)
    ]
    return np.concatenate(owners), np.concatenate(others)


def scipy_times(
    lattice: str, size: int, topology: Topology, p: float, ratio: float | None
) -> list[PeerTime]:
    """Time scipy.sparse.csgraph.connected_components on sample 0, on one thread.

    Two records: building its matrix from the arrays of the open bonds' ends, and labeling it.
    Nothing for more than MAX_SCIPY_SITES grid points.
    """
    if topology.num_points > MAX_SCIPY_SITES:
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    owner, other = open_bond_list(topology, p)
    # float64 is what connected_components would convert to.
    ones, shape = np.ones(owner.size), (topology.num_points,) * 2

    def build() -> Any:
        return csr_array((ones, (owner, other)), shape=shape)

    matrix = build()

    def label() -> Any:
        return connected_components(matrix, directed=False)

    vacant = topology.num_points - topology.num_sites
    clusters = int(label()[0]) - vacant
    place = (lattice, size, topology.num_sites, p, ratio)
    parts = (
        ("build", build, "scipy.sparse.csr_array of the open bonds' ends"),
        ("labels", label, "scipy.sparse.csgraph.connected_components of that matrix"),
    )
    records = []
    for part, work, text in parts:
        times: list[float] = []
        while len(times) < _PEER_RUNS and sum(times) < _PEER_SECONDS:
            times.append(Timer().seconds(work))
        median = float(np.median(times))
        records.append(PeerTime(*place, "scipy", part, text, len(times), median, clusters))
    return records


def site_image_time(timer: Timer, size: int, runs: int) -> PeerTime | None:
    """Time cupyx.scipy.ndimage.label on a square image of L * L sites, site percolation at p_c.

    Another problem than bond percolation, and an easier one: no bonds to draw or to read.  None
    without CUDA or cupy.
    """
    if not isinstance(timer, CudaTimer) or importlib.util.find_spec("cupy") is None:
        return None
    import cupy
    from cupyx.scipy import ndimage

    cupy.cuda.Device(timer.device.number).use()
    uniform = np.random.default_rng(SEED).random((size, size), np.float32)
    image = cupy.asarray(uniform < _SITE_THRESHOLD)
    labels = cupy.empty(image.shape, cupy.int32)
    times = time_runs(timer, lambda: ndimage.label(image, output=labels), runs)
    place = ("site image", size, size * size, _SITE_THRESHOLD, 1.0)
    text = "cupyx.scipy.ndimage.label of a given square site image at p_c"
    clusters, median = int(labels.max()), float(np.median(times))
    return PeerTime(*place, "cupyx", "labels", text, runs, median, clusters)
