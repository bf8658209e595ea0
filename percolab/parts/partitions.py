"""Partitions: the ways to cut a lattice into parts that ranks measure together, by name.

A partition is loaded when its options are given; slabs are the default.  It makes a
:class:`Division` of the lattices of a study, which determines the work of the ranks.
``percolab.papers`` has other partitions, which only serve to reproduce a paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import psutil

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory
from percolab.kernels.registry import load
from percolab.parts.interface import Interface
from percolab.parts.parts import Whole
from percolab.parts.ranks import AnyJob
from percolab.parts.raster import SampleKey

# The most ranks of one host: each is a thread or a process.
_MOST_RANKS = 1024
# The fraction of a GPU's free memory that a rank may use.
_SHARE = 0.9


@dataclass(frozen=True)
class Entry:
    """A partition: its place, and the settings that select it."""

    place: str  # place of its object, as :func:`percolab.kernels.registry.load` takes it
    # By the names of settings, the values that do not select it
    settings: Mapping[str, Any] = field(default_factory=dict)


PARTITIONS = {
    "boxes": Entry("papers.fink1997.partition:BOXES", {"blocks": None, "merge": "tree"}),
    "slabs": Entry("parts.slab_partition:SLABS"),
}


@dataclass(frozen=True)
class StudyLattices:
    """The lattices of a study, by their sizes L."""

    wholes: Mapping[int, Whole]
    p: Mapping[int, float]  # the largest probability of bonds or of sites, the smaller of the two


@dataclass(frozen=True)
class Available:
    """The ranks that are possible, and their devices."""

    ranks: int | None  # the number that a user or an executor gives; None to choose it
    usual: int  # the number of processors, or of GPUs
    local: int | None  # how many of the given ranks are on this host; None for all
    devices: tuple[Device, ...]  # devices of this host, one for each rank; the CPU is for all

    @property
    def device(self) -> Device:
        return self.devices[0]

    def free_memory(self) -> Memory:
        """Return the free memory of this host, and the memory that a rank may use on a GPU."""
        free = Memory(psutil.virtual_memory().available)
        if not self.device.is_shared:
            return free
        return Memory(free.host, int(_SHARE * self.device.free_memory()))

    def check_local(self, ranks: int) -> None:
        """Raise InputError if this host would have more ranks than are allowed."""
        if self.local is None and ranks > _MOST_RANKS:
            raise InputError(
                f"{ranks} ranks on one host, but at most {_MOST_RANKS} are possible; --workers 1 "
                "uses a single one"
            )

    def count_local(self, ranks: int) -> int:
        """Return how many of these ranks are on this host."""
        return ranks if self.local is None else self.local


class Division(Protocol):
    """The division of every lattice of a study into the parts of ranks."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""

    @property
    def stages(self) -> int:
        """The number of stages of joining."""

    @property
    def extra_stages(self) -> Mapping[int, str]:
        """The names of other stages of a :class:`percolab.parts.ranks.RankStep`."""

    def job(self, size: int, whole: Whole, *, tally: bool, p: float) -> AnyJob:
        """Return the job of the ranks for the lattice of a size."""

    def parts_of_first(self, size: int) -> int:
        """Return the number of layers, or other parts, of a sample that rank 0 measures."""

    def continues(self, size: int, rank: int, interface: Interface) -> bool:
        """Return whether a rank can continue from an interface saved by a rank of this number."""

    def run_record(self) -> dict[str, Any]:
        """Return its entries in the record of a run."""

    def split_record(self) -> dict[str, Any]:
        """Return its entries in the part on ranks of a run's record."""

    def warm_up(self, whole: Whole, draw: SampleKey, *, tally: bool) -> None:
        """Measure a sample of a small lattice, so that all functions are compiled."""


class Partition(Protocol):
    """One way to cut a lattice into parts; it reads those of a user's options that belong to it."""

    def count_ranks(
        self, lattices: StudyLattices, options: Mapping[str, Any], available: Available
    ) -> int:
        """Return the number of ranks; InputError if it is not possible."""

    def divide(
        self, lattices: StudyLattices, options: Mapping[str, Any], ranks: int, available: Available
    ) -> Division:
        """Return the division for ``ranks`` ranks; InputError if it cannot be made."""

    def job(self, record: dict[str, Any]) -> AnyJob:
        """Return the job whose record names this partition."""


def choose_partition(options: Mapping[str, Any]) -> Partition:
    """Return the partition that a user's options select.

    >>> type(choose_partition({"slabs": 4, "blocks": None})).__name__
    'SlabPartition'
    """
    for entry in PARTITIONS.values():
        given = {name: options.get(name) for name in entry.settings}
        if any(value not in (None, entry.settings[name]) for name, value in given.items()):
            return _load(entry)
    return _load(PARTITIONS["slabs"])


def make_job(record: dict[str, Any]) -> AnyJob:
    return _load(PARTITIONS[record["partition"]]).job(record)


def _load(entry: Entry) -> Partition:
    partition: Partition = load(entry.place)
    return partition
