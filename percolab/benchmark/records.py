"""The settings of a timing, and the record of a time: its settings, and the times of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from percolab.analysis.theory.potts import critical_bond_probability
from percolab.bonds.model import BOND, Model
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.lattice import BOUNDARIES, load_lattice
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology
from percolab.spins.update import Update

#: Sizes without -L, and with --quick.
_SIZES = {"cpu": (64, 256, 1024), "cuda": (64, 256, 1024, 4096)}
_QUICK_SIZES = {"cpu": (64, 256), "cuda": (256, 2048)}
#: Number of p of a sweep.
GRID_POINTS = 21
#: Half a window of p, by dimension: a N^-b, as wide as a study's in two and in three dimensions;
#: other structures have the window of two dimensions.
_WINDOWS = {2: (0.6656, 0.375), 3: (0.3, 1.141 / 3)}


class Place(NamedTuple):
    """A p, and p / p_c if it was given in this form; for spins the ratio is that of couplings."""

    p: float
    ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class TimeRecord:
    """The time of a stage, a call or a kernel, per sample: median, least and most over the runs.

    part: of the stage.  shape: of the lattice.  ratio: as in :class:`Place`.
    program: the labeler, the tree method, another program, or the number of processors.
    samples: number timed together; for spins of chains.  probabilities: number of p per sample.
    memory_bytes_per_sample: memory allocated on the device (CUDA), or of the labeler (CPU).
    clusters: number that another program found.  compared_with, time_ratio: another time, and the
    ratio of this time to it.
    """

    stage: str
    part: str = ""
    lattice: str
    shape: tuple[int, ...]
    num_sites: int
    p: float | None = None
    ratio: float | None = None
    program: str
    device: str
    samples: int = 1
    probabilities: int = 1
    runs: int = 0
    seconds_per_sample: float = 0.0
    seconds_per_sample_min: float = 0.0
    seconds_per_sample_max: float = 0.0
    bytes_moved_per_sample: int | None = None
    memory_bytes_per_sample: int | None = None
    clusters: int | None = None
    compared_with: str = ""
    time_ratio: float | None = None
    note: str = ""

    @property
    def nanoseconds_per_site(self) -> float:
        """Time of a sample divided by its sites; for a sweep, of all its p together."""
        return 1e9 * self.seconds_per_sample / self.num_sites

    def at(self, place: Place, **changes: Any) -> TimeRecord:
        """Return this record at a p, with further changes."""
        return replace(self, p=place.p, ratio=place.ratio, **changes)

    def timed(self, seconds: Sequence[float] | np.ndarray, **changes: Any) -> TimeRecord:
        """Return this record with the seconds of runs, for all samples, and further changes."""
        each = np.asarray(seconds) / changes.get("samples", self.samples)
        return replace(
            self,
            runs=each.size,
            seconds_per_sample=float(np.median(each)),
            seconds_per_sample_min=float(each.min()),
            seconds_per_sample_max=float(each.max()),
            **changes,
        )

    def compared(self, other: TimeRecord, name: str) -> TimeRecord:
        """Return this record with its ratio to another record, if the clock could measure it."""
        if other.seconds_per_sample <= 0:
            return self
        ratio = self.seconds_per_sample / other.seconds_per_sample
        return replace(self, compared_with=name, time_ratio=ratio)

    def copy_share(self, bandwidth: float) -> float | None:
        """Return its least bytes per second relative to a copy's bandwidth (bytes per second)."""
        if self.bytes_moved_per_sample is None or not self.seconds_per_sample:
            return None
        return self.bytes_moved_per_sample / self.seconds_per_sample / bandwidth

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON values."""
        more = {"shape": list(self.shape), "nanoseconds_per_site": self.nanoseconds_per_site}
        return asdict(self) | more


@dataclass(frozen=True)
class Setting:
    """The settings of a timing; each stage has its own default for a setting that is None.

    devices: resolved; only "split" and "study" use more than the first.  points: numbers of p of
    grids.  sites: of all samples of a call; for "slabs" of a slab, for "split" of a sample.
    samples: of a call; for "split" and "study" of a run.  layers: of a slab.  update, chains: for
    spins, whose chains are swept together.  peers: whether scipy and cupyx are timed.  quick: two
    sizes at p_c.
    """

    devices: tuple[Device, ...]
    lattices: tuple[Structure, ...] = ()
    sizes: tuple[int, ...] | None = None
    ratios: tuple[float, ...] | None = None
    probabilities: tuple[float, ...] | None = None
    model: Model = BOND
    labelers: tuple[str | None, ...] = (None,)
    boundary: str | None = None
    points: tuple[int, ...] | None = None
    sites: int | None = None
    samples: int | None = None
    layers: tuple[int, ...] | None = None
    runs: int = 11
    update: Update = field(default_factory=Update)
    chains: int = 1
    peers: bool = False
    quick: bool = False

    @property
    def device(self) -> Device:
        return self.devices[0]

    @property
    def kind(self) -> str:
        return self.device.kind

    def choose_lattices(self, *names: str) -> tuple[Any, ...]:
        """Return the lattices or, if none is given, those of these names."""
        return self.lattices or tuple(map(load_lattice, names))

    def choose_sizes(self) -> tuple[int, ...]:
        """Return the linear sizes or, if none is given, those of this kind of device."""
        return self.sizes or (_QUICK_SIZES if self.quick else _SIZES)[self.kind]

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The boundaries of all axes to be timed; open and periodic without --boundary."""
        return BOUNDARIES if self.boundary is None else (self.boundary,)

    def choose_places(self, lattice: Structure, *ratios: float) -> tuple[Place, ...]:
        """Return the given p; without any, p_c times the given ratios, or else these ratios."""
        if self.probabilities is not None:
            return tuple(Place(p) for p in self.probabilities)
        chosen = self.ratios or ((1.0,) if self.quick else ratios)
        return tuple(Place(compute_p(lattice, ratio, self.model), ratio) for ratio in chosen)

    def make_record(self, stage: str, lattice: str, topology: Topology, **more: Any) -> TimeRecord:
        """Return a record without times for calls on a topology."""
        return TimeRecord(
            stage=stage,
            lattice=lattice,
            shape=topology.shape or (topology.num_points,),
            num_sites=topology.num_sites,
            device=str(self.device),
            **more,
        )


def make_topology(structure: Any, size: int, boundary: str | None = None) -> Topology:
    """Return a structure of linear size L, by default with its usual boundary on all axes.

    InputError: no such size.
    """
    boundaries = (boundary or structure.boundaries[0],) * structure.dimension
    structure.check_size(size, boundaries)
    topology: Topology = structure.topology(structure.shape(size), boundaries)
    return topology


def compute_p(lattice: Structure, ratio: float, model: Model = BOND) -> float:
    """Return p at a multiple of the published p_c; for spins, of the critical coupling.

    InputError: no published value.
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


def make_grid(p: float, topology: Topology, points: int = GRID_POINTS) -> np.ndarray:
    """Return values of p in a window as wide as a study's, float64 (points,), ascending.

    The middle of the window is p, unless it would leave [0, 1]; one point is p itself.
    """
    if points == 1:
        return np.array([p])
    width, exponent = _WINDOWS.get(topology.num_axes, _WINDOWS[2])
    half = width * topology.num_points**-exponent
    return np.linspace(max(p - half, 0.0), min(p + half, 1.0), points)


def compare_with_first(records: Iterable[TimeRecord], name: str) -> Iterator[TimeRecord]:
    """Yield records, all but the first with their ratio to the first."""
    first: TimeRecord | None = None
    for record in records:
        yield record if first is None else record.compared(first, name)
        first = first or record
