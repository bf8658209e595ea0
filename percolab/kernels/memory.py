"""Bytes of memory that a batch, a labeler and a coupling declare to need."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from percolab.errors import InputError


class Needs(NamedTuple):
    """The requirements on a labeler that its memory depends on.

    tally:      whether rows have a tally of sizes
    steps:      values of p of a grid
    thresholds: whether exact thresholds are computed
    radii_axes: coordinates of a site if radii are read, 0 if not
    labels:     whether labels are read
    openings:   whether openings are counted
    """

    tally: bool = False
    steps: int = 1
    thresholds: bool = False
    radii_axes: int = 0
    labels: bool = False
    openings: bool = False


class Memory(NamedTuple):
    """Bytes on the host and on the device; sums add both."""

    host: int = 0
    device: int = 0

    def plus(self, other: Memory) -> Memory:
        """Return the sum."""
        return Memory(self.host + other.host, self.device + other.device)


def explain_lack(what: str, needed: int, free: int | None = None, of: str = " of memory") -> str:
    """Return a message that ``needed`` bytes are not free; "" if they are.

    what: "1000 sites need", "flow needs up to" ...  free: free bytes, None for the host's memory.
    """
    free = psutil.virtual_memory().available if free is None else free
    if needed <= free:
        return ""
    return f"{what} {needed / 1e9:.1f} GB{of}; {free / 1e9:.1f} GB are free"


def check_free(what: str, needed: int, free: int | None = None, of: str = " of memory") -> None:
    """Raise InputError with the message of :func:`explain_lack`, if there is one."""
    if problem := explain_lack(what, needed, free, of):
        raise InputError(problem)


def entries_that_fit(memory_of: Callable[[int], Memory], device_bytes: int) -> int:
    """Return the number of entries for which device memory suffices, possibly 0.

    memory_of: the memory of a number of entries: a constant and an equal share for each entry.
    """
    one, two = memory_of(1).device, memory_of(2).device
    shared = 2 * one - two
    return max((device_bytes - shared) // max(two - one, 1), 0)


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep Python from collecting garbage within this context."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
