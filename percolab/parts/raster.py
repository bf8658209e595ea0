"""The interface of a slab on the CPU: its runs joined as by the labeler raster, its faces read."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.kernels.memory import Memory
from percolab.labelers.raster_runs import Runs, Windings, find_clusters, make_runs
from percolab.lattices.topology import count_words
from percolab.measure import rows
from percolab.measure.sums import NUMBERS, ClusterSums
from percolab.measure.tallies import compute_row_width
from percolab.parts.interface import Face, Interface, InterfaceSums, join_digits, no_face
from percolab.parts.kernels import SlabKeys, fill_cut, fill_slab, measure_slab, read_face
from percolab.parts.parts import Slab, Whole


@dataclass(frozen=True)
class SampleKey:
    """The key of a sample: its number, its seed and its p.

    generator: one of :data:`percolab.bonds.words.GENERATORS`' values
    threshold: :func:`percolab.bonds.words.p_to_threshold` p
    """

    generator: int
    seed: int
    sample: int
    threshold: int

    def keys(self, whole: Whole) -> SlabKeys:
        key = np.uint64(self.seed), np.uint64(self.sample), np.uint64(self.threshold)
        limits = whole.model.rule, whole.model.class_limits(whole.lattice.class_names)
        sizes = np.uint64(whole.num_words), np.uint64(whole.lattice.num_classes)
        return SlabKeys(np.int64(self.generator), *key, *limits, *sizes)


class SlabRaster:
    """Finds the interfaces of the parts of one lattice, one after the other, in reused memory.

    whole:      the lattice
    most_layers: layers of the thickest part
    tally:      whether sizes are tallied
    """

    def __init__(self, whole: Whole, most_layers: int, *, tally: bool = False) -> None:
        points = most_layers * whole.layer_points
        words = count_words(points)
        self.whole = whole
        self.row_width = compute_row_width(whole.num_points) if tally else rows.ROW_WIDTH
        self.opened = np.empty(whole.lattice.num_classes * words, np.uint32)
        self.occupied = np.empty(words if whole.model.draws_sites else 0, np.uint32)
        self.runs = make_runs(points)
        aside = "periodic" in whole.boundary[:-1]
        self.periods = np.empty(points if aside else 0, np.int64)

    @staticmethod
    def memory(whole: Whole, most_layers: int) -> Memory:
        """Return the memory of its arrays: the words of a slab and its forest."""
        points = most_layers * whole.layer_points
        words = count_words(points)
        drawn = whole.lattice.num_classes + whole.model.draws_sites
        periods = 8 * points if "periodic" in whole.boundary[:-1] else 0
        # Sites of the last axis' end layers and their flags, while an interface is found.
        ends = 0 if whole.is_closed else 32 * whole.depth * whole.layer_points
        return Memory(host=4 * words * drawn + 8 * words + 12 * points + periods + ends)

    def make_interface(
        self, part: Slab, draw: SampleKey, following: Slab | None = None
    ) -> Interface:
        """Return the interface of a part of a sample, with its arrays on the same device.

        following: the part that is requested next; other classes may begin it early, not this one.
        """
        top, keys = part.tables.topology, draw.keys(self.whole)
        words, points = top.num_words, top.num_points
        opened = self.opened[: top.num_bond_words].reshape(top.exists.shape)
        drawn = self.occupied[:words]
        first = np.uint64(part.first_site)
        adjacency = part.tables.adjacency
        fill_slab(keys, first, top.exists, top.occupied, adjacency, opened, drawn)
        occupied = drawn if drawn.size else top.occupied
        runs = Runs(self.runs.starts[:words], self.runs.first[:words], *self.runs[2:])
        periods = self.periods[:points] if top.num_periodic_bonds else self.periods[:0]
        windings = Windings(periods, np.zeros(1, np.int64), top.num_axes)
        count, wrapping = find_clusters(opened.ravel(), adjacency, occupied, runs, windings)
        forest = runs, periods
        low = self._face(part, keys, forest, True)
        high = self._face(part, keys, forest, False)
        row = np.zeros(self.row_width, np.int64)
        ends = part.end_flags()
        sizes, flags, spanning = measure_slab(count, low.clusters, high.clusters, ends, runs, row)
        sums = sums_from_row(row, int(spanning) | int(wrapping), int(windings.loop[0]))
        layers = part.first_layer, part.layers, self.whole.num_layers
        return Interface(*layers, top.num_axes, low, high, sizes, flags, sums)

    def _face(self, part: Slab, keys: SlabKeys, forest: tuple[Runs, Any], is_upper: bool) -> Face:
        """Return the lower face of a part, or the upper one, as roots of its clusters."""
        cut = part.low if is_upper else part.high
        if cut is None:
            return no_face()
        # The first sites on both sides; on a torus, the last layers are below the first ones.
        above = part.first_site if is_upper else part.first_site + part.num_points
        total = self.whole.num_points
        sides = np.uint64(above % total), np.uint64((above - cut.num_points) % total)
        opened = np.empty(cut.exists.size, np.uint32)
        bonds = fill_cut(keys, self.whole.model.draws_sites, *sides, cut, opened)
        roots = np.empty(bonds, np.uint32)
        codes = np.empty(bonds if self.whole.has_periods else 0, np.int64)
        shift = 0 if is_upper else part.num_points - cut.num_points
        read_face(opened, cut, is_upper, shift, part.crossing_code, *forest, roots, codes)
        return Face(roots, codes)


def sums_from_row(row: NDArray[np.int64], flags: int, loop: int) -> InterfaceSums:
    """Return the sums of the finished clusters of a slab from their row."""
    clusters, powers, bins = ClusterSums(*row[:NUMBERS].tolist()), (0, 0), ()
    if row.size > rows.ROW_WIDTH:
        digits = row[rows.CUBES : rows.BINS].view(np.uint64)
        powers = join_digits(digits[:2]), join_digits(digits[2:])
        bins = tuple(row[rows.BINS :].tolist())
    return InterfaceSums(clusters, *powers, bins, flags, loop)
