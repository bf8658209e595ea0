"""Partitions: the ways to cut a lattice into parts that ranks measure together, by name.

A partition is loaded when its options are given; slabs are the default.  It makes a
:class:`Division` of the lattices of a study, which decides what the ranks do.  ``percolab.papers``
has others, which reproduce what a paper does: nothing else knows them.
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

# Ranks of one host at most: each is a thread or a process.
_MOST_RANKS = 1024
# The part of a GPU's free memory that a rank may take.
_SHARE = 0.9


@dataclass(frozen=True)
class Entry:
    """A partition: its place, and the settings that select it."""

    place: str  # of its object, as :func:`percolab.kernels.registry.load` takes it
    # The values that do not select it, by the names of the settings
    settings: Mapping[str, Any] = field(default_factory=dict)


PARTITIONS = {
    "boxes": Entry("papers.fink1997.partition:BOXES", {"blocks": None, "merge": "tree"}),
    "slabs": Entry("parts.slab_partition:SLABS"),
}


@dataclass(frozen=True)
class StudyLattices:
    """The lattices of a study, by their sizes L."""

    wholes: Mapping[int, Whole]
    p: Mapping[int, float]  # the largest of bonds or of sites, of whichever is smaller


@dataclass(frozen=True)
class Available:
    """Which ranks there can be, and what they have."""

    ranks: int | None  # the number that a user or an executor gives; None to choose it
    usual: int  # as many as there are processors, or GPUs
    local: int | None  # of the given ranks, those of this host; None for all
    devices: tuple[Device, ...]  # of this host, one for each rank; the CPU is for all

    @property
    def device(self) -> Device:
        return self.devices[0]

    def free_memory(self) -> Memory:
        """Return what is free on this host, and what a rank may take on a GPU."""
        free = Memory(psutil.virtual_memory().available)
        if not self.device.is_shared:
            return free
        return Memory(free.host, int(_SHARE * self.device.free_memory()))

    def check_local(self, ranks: int) -> None:
        """Raise InputError if there were more ranks of this host than it can have."""
        if self.local is None and ranks > _MOST_RANKS:
            raise InputError(
                f"{ranks} ranks on one host, but at most {_MOST_RANKS}; --workers 1 measures all "
                "in one"
            )

    def count_local(self, ranks: int) -> int:
        """Return how many of so many ranks are on this host."""
        return ranks if self.local is None else self.local


class Division(Protocol):
    """How every lattice of a study is cut for ranks."""

    @property
    def ranks(self) -> int:
        """How many ranks there are."""

    @property
    def stages(self) -> int:
        """How many stages of joining."""

    @property
    def extra_stages(self) -> Mapping[int, str]:
        """The names of other stages of a :class:`percolab.parts.ranks.RankStep`."""

    def job(self, size: int, whole: Whole, *, tally: bool, p: float) -> AnyJob:
        """Return what the ranks measure samples of, of the lattice of a size."""

    def parts_of_first(self, size: int) -> int:
        """Return how many layers, or other parts, rank 0 measures of a sample."""

    def continues(self, size: int, rank: int, interface: Interface) -> bool:
        """Return whether a rank continues from an interface saved for a rank of its number."""

    def run_record(self) -> dict[str, Any]:
        """Return what a run's record has on it."""

    def split_record(self) -> dict[str, Any]:
        """Return what the part on ranks of a run's record has on it."""

    def warm_up(self, whole: Whole, draw: SampleKey, *, tally: bool) -> None:
        """Call once, for a small lattice, what measures samples, so that it is compiled."""


class Partition(Protocol):
    """One way to cut a lattice into parts; it reads its own of a user's options."""

    def count_ranks(
        self, lattices: StudyLattices, options: Mapping[str, Any], available: Available
    ) -> int:
        """Return how many ranks there will be; InputError if they cannot be."""

    def divide(
        self, lattices: StudyLattices, options: Mapping[str, Any], ranks: int, available: Available
    ) -> Division:
        """Return the division for so many ranks; InputError if it cannot be made."""

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
