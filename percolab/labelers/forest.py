"""The protocol of a labeler, from words of open bonds to a forest of clusters.

A labeler joins the open bonds of a batch (:mod:`percolab.bonds.batch`) into a *forest*: the
clusters of every entry, each identified by its root.  Rows, labels and radii are read off it.  The
protocol is the same on CPU and CUDA, where a batch holds one entry or many.
"""

from enum import Enum
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.geometry import Geometry


class Reading(Enum):
    """The quantity that will be read off a forest; a labeler keeps only what it needs."""

    ROWS = "rows"
    #: Rows of tori, of which only the wrapping is read; the other numbers are undefined.
    WRAPPING = "wrapping"
    LABELS = "labels"
    RADII = "radii"


class Forest(Protocol):
    """The clusters of the entries of a batch, valid until the batch is joined again."""

    def rows(self) -> NDArray[np.int64]:
        """Return the rows (entries, row width); vacant sites count as clusters of one site.

        Row width: ROW_WIDTH columns (:mod:`percolab.measure.rows`), followed by those of the tally
        if the labeler keeps one.
        """

    def make_labels(self) -> None:
        """Write the labels into the memory of the device."""

    def labels(self) -> NDArray[np.int32]:
        """Return the labels (entries, num_points): the smallest site of every site's cluster."""

    def radii(self, geometry: Geometry) -> NDArray[np.int64]:
        """Return the radii of clusters (`percolab.measure.radii`), (entries, PER_BIN * bins)."""


class DeviceForest:
    """The clusters of the first entries of a batch on a CUDA device, as a labeler joined them."""

    def __init__(self, labeler: Any, entries: int) -> None:
        self._labeler, self._entries = labeler, entries

    def enqueue_rows(self) -> None:
        """Measure the clusters on the device; ``labeler.read.fetch`` waits for the rows."""
        raise NotImplementedError

    def make_labels(self) -> None:
        """Write the labels; by default they are on the device already."""

    def rows(self) -> NDArray[np.int64]:
        self.enqueue_rows()
        rows: NDArray[np.int64] = self._labeler.read.fetch(self._entries)
        return rows

    def labels(self) -> NDArray[np.int32]:
        self.make_labels()
        batch = self._labeler.batch
        batch.launches.wait()
        points = batch.topology.num_points
        flat = self._labeler.labels[: self._entries * points].copy_to_host()
        labels: NDArray[np.int32] = flat.view(np.int32).reshape(self._entries, points)
        return labels


class Labeler(Protocol):
    """Joins the open bonds of a batch.

    name:      as in the registry
    row_width: columns of a row
    """

    name: ClassVar[str]
    batch: Any
    row_width: int

    def join(self, entries: int, reading: Reading = Reading.ROWS) -> Forest:
        """Return the forest of the first entries of the batch."""

    def entries_with_radii(self, geometry: Geometry) -> int:
        """Return the number of entries whose radii can be read at a time."""
