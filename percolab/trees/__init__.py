"""Minimum spanning trees and invasion percolation.  Here: the registry of ways to find a tree."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from percolab.errors import InputError, nearest

if TYPE_CHECKING:
    from percolab.lattices.topology import Topology
    from percolab.trees.tree import Trees


@dataclass(frozen=True)
class TreeEntry:
    """A way to find trees: its name, what it is, and its class for each kind of device."""

    name: str
    summary: str
    classes: dict[str, str]


TREE_METHODS = {
    entry.name: entry
    for entry in (
        TreeEntry(
            "kruskal",
            "bonds in ascending order, joined by union-find",
            {"cpu": "kruskal:Kruskal"},
        ),
        TreeEntry(
            "boruvka",
            "every cluster takes its least bond outwards, in tiles first, then over their borders",
            {"cpu": "boruvka:Boruvka", "cuda": "boruvka_cuda:BoruvkaCuda"},
        ),
        TreeEntry(
            "prim",
            "Guo 2011: a site after another, each round a minimum of all candidates",
            {"cpu": "prim:Prim", "cuda": "prim_cuda:PrimCuda"},
        ),
        TreeEntry(
            "prim:persistent",
            "the same in one launch, many graphs at once",
            {"cuda": "prim_cuda:PersistentPrim"},
        ),
        TreeEntry(
            "heap",
            "Prim with a binary heap, the judge",
            {"cpu": "heap:Heap"},
        ),
    )
}

#: What runs when none is named: the fastest of each kind of device.
DEFAULT_TREE_METHOD = {"cpu": "kruskal", "cuda": "boruvka"}


def tree_class(name: str | None, kind: str) -> Any:
    """Return the class of a way to find trees on a kind of device, "cpu" or "cuda".

    None names the default.  InputError: unknown, or not available on that kind of device.
    """
    name = name or DEFAULT_TREE_METHOD[kind]
    if name not in TREE_METHODS:
        raise InputError(f"unknown tree method {name!r}; {nearest(name, TREE_METHODS)}")
    classes = TREE_METHODS[name].classes
    if kind not in classes:
        able = ", ".join(entry.name for entry in TREE_METHODS.values() if kind in entry.classes)
        raise InputError(f"tree method {name!r} does not run on {kind}; there: {able}")
    module, _, attribute = classes[kind].partition(":")
    return getattr(importlib.import_module(f"percolab.trees.{module}"), attribute)


def new_trees(name: str | None, kind: str, topology: Topology, *, capacity: int = 1) -> Trees:
    """Return what finds trees of a topology on a kind of device, "cpu" or "cuda".

    name: one of :data:`TREE_METHODS`, or None for the fastest.  capacity: the samples wanted side
    by side; its own ``capacity`` may be smaller.  InputError as for :func:`tree_class`; ValueError:
    more bonds than :data:`percolab.trees.weights.MOST_BONDS`.
    """
    from percolab.trees.weights import MOST_BONDS

    if 32 * topology.exists.size > MOST_BONDS:
        raise ValueError(f"{32 * topology.exists.size} bond numbers do not fit in 32 bits")
    found: Trees = tree_class(name, kind)(topology, capacity)
    return found
