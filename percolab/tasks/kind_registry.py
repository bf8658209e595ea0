"""Which kinds of study there are, and where each is found; a kind is loaded at first use."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from percolab.kernels.registry import load


@dataclass(frozen=True)
class KindEntry:
    """A kind of study: its name, the method that selects it, and the place of its object.

    method: as a user gives it and a file stores it.  chains: of kinds that share a method, what the
    chains of its models are of (:class:`percolab.bonds.models.base.Model`).
    """

    name: str
    method: str
    place: str
    chains: str = ""


KINDS = {
    entry.name: entry
    for entry in (
        KindEntry("grid", "grid", "kinds.grid:KIND"),
        KindEntry("chains", "grid", "kinds.chains:KIND", "spins"),
        KindEntry("clusters", "grid", "kinds.clusters:KIND", "clusters"),
        KindEntry("threshold", "threshold", "kinds.threshold:KIND"),
        KindEntry("trees", "tree", "kinds.trees:KIND"),
        KindEntry("microcanonical", "microcanonical", "kinds.microcanonical:KIND"),
    )
}
#: How a task is sampled: every observable on a grid of p, every sample's exact threshold, every
#: sample's minimum spanning tree, or every observable after every opening of a bond or site.
METHODS = tuple(dict.fromkeys(entry.method for entry in KINDS.values()))


def has_kind(method: str, chains: str) -> bool:
    """Return whether a method takes a model with such chains, or with none, ""."""
    return any(entry.method == method and entry.chains == chains for entry in KINDS.values())


@cache
def find_kind(method: str, chains: str) -> Any:
    """Return the kind of a study by a known method, of a model with such chains, or with none, "".

    Where a method has no kind for such a model (:func:`has_kind`), its one kind is returned.
    """
    entries = [entry for entry in KINDS.values() if entry.method == method]
    matching = [entry for entry in entries if entry.chains == chains]
    return load((matching or entries)[0].place)
