"""The judge: breadth-first search in plain Python on an adjacency list.

It shares nothing with the other labelers but the bond words, and is slow: about 1 us a bond.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from percolab.labelers.base import CpuLabeler
from percolab.topology import unpack_bits


class Reference(CpuLabeler):
    """Labels by breadth-first search from every unvisited site in ascending order."""

    @staticmethod
    def scratch_bytes(num_points: int, num_classes: int) -> int:
        """Return the bytes that lists of Python integers take, about."""
        return (200 + 100 * num_classes) * num_points

    def label(self) -> np.ndarray:
        """Return the labels of the open bonds, int32 (num_points,)."""
        points = self.topology.num_points
        words = self.opened.reshape(self.topology.num_classes, -1)
        is_open = unpack_bits(words, points)
        neighbours: list[list[int]] = [[] for _ in range(points)]
        for k, owner, other in self.topology.bonds().tolist():
            if is_open[k, owner]:
                neighbours[owner].append(other)
                neighbours[other].append(owner)
        labels = [-1] * points
        for start in range(points):
            if labels[start] >= 0:
                continue
            labels[start] = start
            queue = deque([start])
            while queue:
                for site in neighbours[queue.popleft()]:
                    if labels[site] < 0:
                        labels[site] = start
                        queue.append(site)
        return np.array(labels, np.int32)
