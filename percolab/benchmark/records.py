"""Every stage of every labeler timed at several p: on a lattice, with its peers, or on a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from percolab.benchmark.peers import PeerTime, scipy_times
from percolab.benchmark.stages import GRID_POINTS, STAGES, bytes_moved, prepare
from percolab.benchmark.timer import CpuTimer, CudaTimer, make_timer, time_runs
from percolab.bonds.model import BOND, Model
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.labelers import DEFAULT_LABELER
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology

_SCIPY = ("scipy", "labels")


@dataclass(frozen=True)
class Place:
    """A p to be timed at, and p / p_c where it was given as such."""

    p: float
    ratio: float | None = None


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

    @property
    def nanoseconds_per_site(self) -> float:
        """Time of a sample over its sites; of a sweep, for all of its p together."""
        return 1e9 * self.seconds_per_sample / self.num_sites

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
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
    """Return ratio * p_c of the published threshold; InputError if none is known."""
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
    """Return the places at the given p or, without any, at multiples of the published p_c."""
    if probabilities is not None:
        return tuple(Place(p) for p in probabilities)
    return tuple(Place(compute_p(lattice, ratio, model), ratio) for ratio in ratios)


def time_lattice(
    timer: CpuTimer | CudaTimer,
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
    timer: CpuTimer | CudaTimer,
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
                seconds_per_sample=float(np.median(times)),
                seconds_per_sample_min=float(times.min()),
                seconds_per_sample_max=float(times.max()),
                bytes_moved_per_sample=bytes_moved(
                    stage, topology, needs_labels=ready.needs_labels
                ),
                memory_bytes_per_sample=ready.memory,
            )
