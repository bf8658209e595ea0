"""A sample's grid of p by runs: label at the lowest p, then join newly open bonds, in one call.

Successive entries of the same sample share its labeling.  Many samples are drawn, joined and
measured in a single call, since on small lattices a call from Python costs more than a sample.
"""

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import TOP
from percolab.coupled import Rows, Samples
from percolab.coupled import raster_kernels as kernels
from percolab.coupled.bond_order import count_compared_digits
from percolab.coupled.points import PointByPoint
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Reading
from percolab.labelers.raster import Raster
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import Topology
from percolab.measure.radii import radii_row_width
from percolab.measure.rows import without_vacant

#: A bond's number is a uint32; lattices with more words are measured p by p.
_MOST_WORDS = 2**27
# The bonds that can be put in order: a fourth of all, or at least this many.
_ORDERED_SHARE, _ORDERED_LEAST = 4, 4096


def _most_ordered(topology: Topology) -> int:
    """Return how many bonds of a sample can be put in order: all those of a small lattice."""
    bonds = topology.num_bonds
    return max(bonds // _ORDERED_SHARE, min(bonds, _ORDERED_LEAST))


class RasterCoupling(PointByPoint):
    """The coupling of a sample's runs (:class:`percolab.coupled.Coupling`).

    A grid is shared while at most a third of the bonds open in it; a wider one is measured p by p.
    """

    labeler: Raster

    def __init__(self, labeler: Raster, *, openings: bool = False) -> None:
        super().__init__(labeler, openings=openings)
        batch, top = labeler.batch, labeler.batch.topology
        bonds = batch.exists, batch.drawn, batch.opened, batch.adjacency, top.occupied
        forest = labeler.end_flags, labeler.runs, labeler.windings
        self._sample = kernels.Sample(*bonds, *forest)
        countable = top.num_bond_words <= _MOST_WORDS
        listed = top.num_classes * top.num_points // 3 if countable else 0
        self._lists = kernels.GridLists(
            bonds=np.empty(listed, np.uint32),
            steps=np.empty(listed, np.uint8),
            order=np.empty(listed, np.uint32),
            ends=np.empty(kernels.MAX_STEPS + 2, np.int64),
            planes=np.empty(63, np.uint32),
            later=np.empty(top.num_bond_words, np.uint32),
        )
        self._order: kernels.BondOrder | None = None

    @staticmethod
    def memory(extent: Extent, model: Model, needs: Needs, entries: int = 1) -> Memory:
        """Return the memory of the lists for a grid of p and, if requested, for thresholds."""
        sites = extent.num_classes * extent.num_points
        listed = 9 * (sites // 3) + 4 * extent.num_words
        ordered = 20 * max(sites // _ORDERED_SHARE, min(sites, _ORDERED_LEAST))
        return Memory(host=listed + (ordered if needs.thresholds else 0))

    def rows(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        batch = self.labeler.batch
        rows = np.zeros((len(samples), self.labeler.row_width), np.int64)
        draws_sites = batch.model.draws_sites
        counts = np.empty(len(samples) if self.openings or draws_sites else 0, np.int64)
        drawn = generator, np.uint64(seed), samples, thresholds
        wraps_alone = self.reading is Reading.WRAPPING
        called = batch.record, self._sample, self._lists, wraps_alone
        kernels.write_entry_rows(*drawn, *called, rows, counts)
        if draws_sites:
            without_vacant(rows, counts)
        return self.with_openings(rows, counts)

    def radii_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
    ) -> Rows:
        batch = self.labeler.batch
        if batch.model.draws_sites:
            return super().radii_rows(generator, seed, samples, grid, geometry)
        rows = np.empty(
            (len(samples), grid.size, radii_row_width(batch.topology.num_points)), np.int64
        )
        drawn = generator, np.uint64(seed), samples, grid
        places = self.labeler.radii_scratch(geometry)
        kernels.write_radii_rows(*drawn, batch.record, self._sample, *places, rows)
        return rows

    @property
    def widest_window(self) -> int:
        """The widest window in which a sample's opening bonds fit into their list."""
        topology, model = self.labeler.batch.topology, self.labeler.batch.model
        bonds, listed = topology.num_bonds, _most_ordered(topology)
        if listed >= bonds:
            return TOP
        # Three quarters of the list, to allow for fluctuations of their number.
        return 3 * TOP // 4 * listed // bonds // model.steepest_share

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        batch = self.labeler.batch
        open_axes = batch.topology.open_axes
        if self._order is None:
            top = batch.topology
            listed = _most_ordered(top) if top.num_bond_words <= _MOST_WORDS else 0
            self._order = kernels.BondOrder(
                later=self._lists.later,
                bonds=np.empty(listed, np.uint32),
                numbers=np.empty(listed, np.uint64),
                order=np.empty(listed, np.uint32),
                heads=np.empty(listed + 1, np.uint32),
                planes=np.empty(count_compared_digits(top.num_bonds), np.uint32),
            )
        thresholds = np.empty((len(samples), len(open_axes)), np.uint64)
        axes = np.array(open_axes, np.int64)
        windows = generator, np.uint64(seed), (samples, low, high)
        called = batch.record, self._sample, axes, self._order, thresholds
        if kernels.write_sample_thresholds(*windows, *called):
            return thresholds
        return super().scan_windows(generator, seed, samples, low, high)
