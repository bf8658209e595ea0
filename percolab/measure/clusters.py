"""Clusters: the labels of one configuration, and the most common quantities derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from percolab.lattices.lattice import AXIS_NAMES
from percolab.lattices.shown import Shown
from percolab.lattices.topology import Topology


@dataclass(frozen=True, eq=False, repr=False)
class Clusters(Shown):
    """The clusters of a configuration, numbered 0 ... n - 1 by their smallest site.

    labels:    int32 (num_points,), smallest site index of the cluster; -1 where there is no site
    topology:  the topology that was labeled; its end layers determine spanning
    opened:    uint32 (num_classes, num_words), the open bonds, which determine wrapping; None if
               they are not known, and then wrapping is not reported
    """

    labels: np.ndarray
    topology: Topology
    opened: np.ndarray | None = None

    @classmethod
    def of_any_labels(
        cls, labels: np.ndarray, topology: Topology, opened: np.ndarray | None = None
    ) -> Clusters:
        """Return the clusters given by labels with any numbering; -1 means no site."""
        _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        smallest = first.astype(np.int32)[inverse.ravel()]
        smallest[labels < 0] = -1
        return cls(smallest, topology, opened)

    def _facts(self) -> dict[str, Any]:
        summary = self.summary()
        names = ("sites", "clusters", "largest", "second_largest", "spanning")
        return {
            name.replace("_", " "): ", ".join(summary[name]) or "no axis"
            if name == "spanning"
            else summary[name]
            for name in names
        }

    @cached_property
    def roots(self) -> np.ndarray:
        """Smallest site of every cluster, int32, ascending."""
        return np.flatnonzero(self._is_root).astype(np.int32)

    @cached_property
    def numbers(self) -> np.ndarray:
        """Number of every site's cluster, int32; -1 where there is no site."""
        number = np.cumsum(self._is_root, dtype=np.int32) - np.int32(1)
        return np.where(self.labels >= 0, number[self.labels], np.int32(-1))

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.numbers[self.labels >= 0], minlength=self.roots.size)

    @cached_property
    def by_size(self) -> np.ndarray:
        """Numbers of the clusters, the largest first, equal ones in ascending order."""
        return np.argsort(-self.sizes, kind="stable")

    @cached_property
    def spanning(self) -> dict[str, np.ndarray]:
        """Per open axis the numbers of the clusters that touch both of its end layers."""
        by_axis = {}
        for axis in self.topology.open_axes:
            first, last = (self.numbers[layer] for layer in self.topology.end_layers[axis])
            both = np.intersect1d(first, last)
            by_axis[self.axis_name(axis)] = both[both >= 0]
        return by_axis

    @cached_property
    def wrapping(self) -> dict[str, np.ndarray]:
        """Per periodic axis the numbers of clusters that wrap; empty where bonds are not known."""
        top = self.topology
        periodic = [axis for axis in range(top.num_axes) if axis not in top.open_axes]
        if self.opened is None or not top.shape or not periodic:
            return {}
        bits, _ = self.find_windings()
        return {self.axis_name(axis): np.flatnonzero(bits >> axis & 1) for axis in periodic}

    def find_windings(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the axes that clusters wrap around, as bits, and the periods of sites, as codes.

        uint32 (clusters,), bit 0 for x; int64 (num_points,), from the smallest site of the cluster.
        """
        assert self.opened is not None
        from percolab.bonds.batch_cpu import make_adjacency  # imports Numba
        from percolab.measure.wrapping import FIRST_WRAPPING, mark_wrapping_clusters

        top, bits = self.topology, np.zeros(self.sizes.size, np.uint32)
        parents, periods = np.empty(top.num_points, np.int32), np.empty(top.num_points, np.int64)
        bonds = self.opened.ravel(), make_adjacency(top)
        mark_wrapping_clusters(*bonds, parents, periods, self.numbers, top.num_axes, bits)
        return bits >> np.uint32(FIRST_WRAPPING), periods

    def axis_name(self, axis: int) -> str:
        """Return "x", "y" ... on a grid, and "source-target" on a graph."""
        return AXIS_NAMES[axis] if self.topology.shape else "source-target"

    def summary(self) -> dict[str, Any]:
        """Return the summary of a configuration, as plain JSON values.

        sites, clusters, largest and second_largest (sites; 0 if there is none), the open axes, and
        those along which one cluster touches both end layers.  If the open bonds of a periodic
        lattice are known, also the axes around which one cluster wraps.
        """
        first, second = np.append(self.sizes[self.by_size[:2]], [0, 0])[:2]
        return {
            "sites": int(self.sizes.sum()),
            "clusters": int(self.sizes.size),
            "largest": int(first),
            "second_largest": int(second),
            **summarize_axes(self.spanning, self.wrapping),
        }

    def crossing(self) -> list[dict[str, Any]]:
        """Return the clusters that span or wrap, the largest first, as plain JSON values."""
        touched: dict[int, dict[str, list[str]]] = {}
        for key, axes in (("spanning", self.spanning), ("wrapping", self.wrapping)):
            for name, numbers in axes.items():
                for number in numbers.tolist():
                    touched.setdefault(number, {"spanning": [], "wrapping": []})[key].append(name)
        order = sorted(touched, key=lambda number: (-self.sizes[number], number))
        return [
            {"label": int(self.roots[n]), "sites": int(self.sizes[n]), **touched[n]} for n in order
        ]

    @property
    def _is_root(self) -> np.ndarray:
        own: np.ndarray = np.arange(self.labels.size, dtype=np.int32)
        return np.asarray(self.labels == own)


def summarize_axes(
    spanning: Mapping[str, np.ndarray], wrapping: Mapping[str, np.ndarray]
) -> dict[str, list[str]]:
    """Return the axes, and those that clusters span or wrap around, with these clusters."""
    summary = {}
    for kind, verb, axes in (("open", "spanning", spanning), ("periodic", "wrapping", wrapping)):
        if axes or kind == "open":
            summary[f"{kind}_axes"] = list(axes)
            summary[verb] = [name for name, clusters in axes.items() if clusters.size]
    return summary
