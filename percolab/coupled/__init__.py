"""One labeling for all p: rows at a whole grid of p, and the exact threshold T of a sample.

A *coupling* draws samples into a labeler's batch, joins them, and updates them from one p to the
next.  The coupling of each labeler is listed here; all give the same numbers.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch import batch_class
from percolab.bonds.model import BOND, Model
from percolab.kernels.device import Device
from percolab.kernels.memory import Memory, Needs, entries_that_fit
from percolab.kernels.registry import load
from percolab.labelers import labeler_class, new_labeler, serving_labeler
from percolab.lattices.extent import Extent
from percolab.lattices.geometry import Geometry
from percolab.lattices.topology import Topology

Samples = NDArray[np.uint64]
Rows = NDArray[np.int64]

_LABELS = Needs(labels=True)


class SampleBlocks(NamedTuple):
    """Blocks of consecutive samples, which are summed on the device that measures them."""

    starts: Samples  # (n,), the first sample of every block
    size: int  # samples of a block


class Coupling(Protocol):
    """Rows, radii and thresholds of samples, on any device.

    generator: XORWOW or PHILOX.  seed: of the streams.  samples: uint64 (n,), their numbers.
    thresholds, grid: uint64 (:func:`percolab.bonds.words.p_to_threshold`), a grid ascending.
    openings: whether rows have an additional last number: how many bonds are open or, if sites are
    drawn, how many sites are occupied.  row_width: including this number.  wraps_alone: whether
    only the wrapping and the openings are read from rows on tori; the rest need not be measured.
    """

    labeler: Any
    openings: bool
    row_width: int
    wraps_alone: bool

    def rows(self, generator: int, seed: int, samples: Samples, thresholds: Samples) -> Rows:
        """Return the rows (n, row width) of n batch entries (sample, threshold)."""

    def grid_rows(self, generator: int, seed: int, samples: Samples, grid: Samples) -> Rows:
        """Return the rows (n, m, row width) of samples at all m thresholds of a grid."""

    def radii_rows(
        self, generator: int, seed: int, samples: Samples, grid: Samples, geometry: Geometry
    ) -> Rows:
        """Return the radii of clusters at all m thresholds, (n, m, PER_BIN * bins)."""

    @property
    def widest_window(self) -> int:
        """The widest window of thresholds that :meth:`scan_windows` can scan."""

    def scan_windows(
        self, generator: int, seed: int, samples: Samples, low: Samples, high: Samples
    ) -> Samples:
        """Return T of samples along every open axis, each in its window, (n, open axes).

        The result is ``low`` if T is not above it, and NEVER if the sample does not span at
        ``high``.  low < high.
        """


#: The coupling of each labeler, by kind of device; any other is measured point by point.
_COUPLINGS = {
    ("cpu", "raster"): "coupled.raster:RasterCoupling",
    ("cuda", "four_step"): "coupled.grown:GrownCoupling",
    ("cuda", "label_equivalence"): "coupled.grown:GrownCoupling",
    ("cuda", "tiled"): "coupled.tiled:TiledCoupling",
}

#: The couplings that measure point by point.
_POINTS = {"cpu": "coupled.points:PointByPoint", "cuda": "coupled.points:CapturedPoints"}

#: The couplings that replace these on small lattices, each with the function that says if it can.
_SMALL = {"coupled.tiled:TiledCoupling": ("coupled.small:SmallCoupling", "coupled.small:is_small")}


def _class_for(name: str, kind: str, model: Model, extent: Extent) -> Any:
    """Return the class that couples a labeler's samples of a model on a kind of device."""
    place = _COUPLINGS.get((kind, name)) if model.has_order else None
    if place in _SMALL:
        small, is_small = _SMALL[place]
        place = small if load(is_small)(extent) else place
    return load(place or _POINTS[kind])


def compute_memory(
    name: str, kind: str, extent: Extent, model: Model, needs: Needs, entries: int = 1
) -> Memory:
    """Return the total memory of a batch, its labeler and its coupling.

    name: the labeler that is used.  The result is an upper bound, and a close one if it is large.
    """
    batch = batch_class(kind).memory(extent, model, entries)
    labels = labeler_class(name, kind).memory(extent, needs, entries)
    coupling = _class_for(name, kind, model, extent).memory(extent, model, needs, entries)
    memory: Memory = batch.plus(labels).plus(coupling)
    return memory


def sums_blocks(name: str, kind: str, model: Model, extent: Extent, *, openings: bool) -> bool:
    """Return whether a coupling sums blocks of samples on the device, where their rows stay.

    It does so by :meth:`percolab.coupled.block_sums.BlockSums.block_sums`.
    """
    chosen = _class_for(name, kind, model, extent)
    if not hasattr(chosen, "sums_blocks"):
        return False
    return bool(chosen.sums_blocks(extent, model, openings=openings))


def new_coupling(
    name: str | None,
    kind: str,
    topology: Topology,
    model: Model = BOND,
    *,
    capacity: int = 1,
    tally: bool = False,
    openings: bool = False,
    wraps_alone: bool = False,
) -> Coupling:
    """Return the coupling of a new labeler on a kind of device.

    openings, wraps_alone: as for :class:`Coupling`; other arguments as for :func:`new_labeler`.
    """
    labeler = new_labeler(name, kind, topology, model, capacity=capacity, tally=tally)
    chosen = _class_for(labeler.name, kind, model, Extent.of_topology(topology))
    coupling: Coupling = chosen(labeler, openings=openings)
    coupling.wraps_alone = wraps_alone
    return coupling


def fit_coupling(
    device: Device,
    topology: Topology,
    model: Model = BOND,
    *,
    most: int,
    name: str | None = None,
    needs: Needs = _LABELS,
    share: float = 0.5,
) -> Coupling:
    """Return a coupling for the most batch entries that fit into memory, at least one.

    most: the most entries.  name: that of the labeler, None for the fastest.  share: the fraction
    of the device's free memory that may be used.  InputError, ValueError: as :func:`new_labeler`.
    """
    device.open()
    kind, extent = device.kind, Extent.of_topology(topology)
    serving = serving_labeler(name, kind, topology)
    fitting = entries_that_fit(
        lambda entries: compute_memory(serving, kind, extent, model, needs, entries),
        int(share * device.free_memory()),
    )
    return new_coupling(serving, kind, topology, model, capacity=max(min(most, fitting), 1))
