"""The reference: breadth-first search in plain Python on an adjacency list.

It shares only the bond words with the other labelers, and is slow: about 1 us per bond.
"""

from collections import deque
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.one_sample import LabelingOneSample
from percolab.lattices.extent import Extent
from percolab.lattices.topology import unpack_bits
from percolab.measure.wrapping import FIRST_WRAPPING, TWO_DIRECTIONS


class Reference(LabelingOneSample):
    """Labels by breadth-first search from every unvisited site in ascending order."""

    name: ClassVar[str] = "reference"

    def __init__(self, batch: CpuBatch, *, tally: bool = False) -> None:
        super().__init__(batch, tally=tally)
        self._bonds: list[list[int]] = batch.topology.bonds().tolist()

    @staticmethod
    def memory(extent: Extent, needs: Needs, entries: int = 1) -> Memory:
        """Return a rough estimate of the memory of lists of Python integers."""
        lists = (200 + 100 * extent.num_classes) * extent.num_points
        return LabelingOneSample.memory(extent, needs).plus(Memory(host=lists))

    def label(self) -> NDArray[np.int32]:
        top = self.batch.topology
        points = top.num_points
        is_open = unpack_bits(self.batch.opened.reshape(top.num_classes, -1), points)
        neighbours: list[list[int]] = [[] for _ in range(points)]
        for k, owner, other in self._bonds:
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

    def wrapping(self) -> int:
        """Return the wrapping bits: walk every cluster, and find sites that have two places.

        A site's place is its number of periods from the start along every axis.  If a site has two
        places, the path between them winds around the torus.
        """
        top = self.batch.topology
        is_open = unpack_bits(self.batch.opened.reshape(top.num_classes, -1), top.num_points)
        coordinates = np.unravel_index(np.arange(top.num_points), top.shape[::-1])[::-1]
        steps: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(top.num_points)]
        for k, owner, other in self._bonds:
            if is_open[k, owner]:
                at = [int(axis[owner]) + d for axis, d in zip(coordinates, top.offsets[k])]
                periods = tuple(x // n for x, n in zip(at, top.shape, strict=True))
                steps[owner].append((other, periods))
                steps[other].append((owner, tuple(-count for count in periods)))
        loops: list[tuple[int, ...]] = []
        place: dict[int, tuple[int, ...]] = {}
        for start in range(top.num_points):
            if start in place:
                continue
            place[start] = (0,) * top.num_axes
            queue = deque([start])
            while queue:
                site = queue.popleft()
                for following, periods in steps[site]:
                    there = tuple(x + d for x, d in zip(place[site], periods))
                    if following not in place:
                        place[following] = there
                        queue.append(following)
                    loops.append(tuple(x - y for x, y in zip(there, place[following])))
        # A zero loop is added, as NumPy before 2.4 cannot compute the rank of an empty array.
        windings = np.array([(0,) * top.num_axes, *loops], np.int64)
        axes = np.flatnonzero(windings.any(axis=0)).tolist()
        bits = sum(1 << FIRST_WRAPPING + axis for axis in axes)
        return int(bits | (np.linalg.matrix_rank(windings) > 1) << TWO_DIRECTIONS)
