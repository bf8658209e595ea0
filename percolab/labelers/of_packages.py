"""Labelers of other packages: on the CPU, one sample at a time, a function of its open bonds.

A package declares ``label(bonds, num_sites)`` as an entry point of the group "percolab.labelers".
bonds: int64 (m, 2), the two sites of every open bond.  It returns an integer for every site, equal
where and only where open bonds connect two sites.  Sites are numbered from 0; one that is vacant
has no bond.  It is called by several threads at a time.

What it returns is not taken on trust.  Before its first use it labels small samples, which the
reference labels as well.  The first sample of every size and thread is labeled by ``raster``, too.
Of every sample the ends of all bonds are compared: that no bond was missed is sure, that nothing
was joined without one is checked where another labeler labels too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.batch_cpu import CpuBatch
from percolab.bonds.model import BOND
from percolab.bonds.words import GENERATORS, threshold_of
from percolab.errors import InputError
from percolab.kernels.memory import Memory, Needs
from percolab.labelers.forest import Reading
from percolab.labelers.one_sample import LabelingOneSample
from percolab.labelers.raster import Raster
from percolab.labelers.reference import Reference
from percolab.lattices.extent import Extent
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import unpack_bits
from percolab.measure.packages import Brought, one_line

# The small samples: a lattice, its shape and boundary, and p.
_SMALL = (("square", (5, 4), ("periodic", "open")), ("triangular", (7, 6), ("open", "open")))
_SMALL_P = (0.0, 0.3, 0.5, 0.7, 1.0)


class OfPackage(LabelingOneSample):
    """A labeler that calls the function of a package, and checks what it returns.

    It holds the bonds of the topology as a list.
    """

    call: ClassVar[Callable[[NDArray[np.int64], int], Any]]
    told: ClassVar[str]

    def __init__(self, batch: CpuBatch, *, tally: bool = False) -> None:
        super().__init__(batch, tally=tally)
        self._bonds = batch.topology.bonds()
        self._is_compared = False

    @staticmethod
    def memory(extent: Extent, needs: Needs, items: int = 1) -> Memory:
        """Return what the list of bonds and the labels take; the package's own is not known."""
        listed = 64 * extent.num_classes * extent.num_points + 40 * extent.num_points
        return LabelingOneSample.memory(extent, needs).plus(Memory(host=listed))

    def label(self) -> NDArray[np.int32]:
        """Return the labels of the open bonds, int32 (num_points,); InputError: they are wrong."""
        labels = self.checked_labels()
        if not self._is_compared:
            self.compare(labels, Raster(self.batch).join(1, Reading.LABELS).labels()[0], "raster")
            self._is_compared = True
        return labels

    def checked_labels(self) -> NDArray[np.int32]:
        """Return the package's labels, renamed to the smallest site of each cluster."""
        top = self.batch.topology
        points = top.num_points
        is_open = unpack_bits(self.batch.opened.reshape(top.num_classes, -1), points)
        ends = self._bonds[is_open[self._bonds[:, 0], self._bonds[:, 1]], 1:]
        try:
            found = np.asarray(type(self).call(ends.copy(), points))
        except Exception as error:  # another package's code raises anything
            raise InputError(f"{self.told}: {one_line(error)}") from error
        if found.shape != (points,) or not np.issubdtype(found.dtype, np.integer):
            raise InputError(
                f"{self.told}: returns {found.dtype} of shape {found.shape}, but labels are "
                f"integers of shape ({points},)"
            )
        missed = np.flatnonzero(found[ends[:, 0]] != found[ends[:, 1]])
        if missed.size:
            a, b = ends[missed[0]].tolist()
            raise InputError(
                f"{self.told}: sites {a} and {b} have an open bond, but different labels"
            )
        _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
        smallest: NDArray[np.int32] = first.astype(np.int32)[inverse.ravel()]
        return smallest

    def compare(self, labels: NDArray[np.int32], others: NDArray[np.int32], name: str) -> None:
        """Raise InputError unless labels are those of another labeler."""
        if not np.array_equal(labels, others):
            here, there = (np.unique(each).size for each in (labels, others))
            raise InputError(
                f"{self.told}: finds {here} clusters in a sample of {labels.size} sites; labeler "
                f"{name} finds {'other ones' if here == there else there}"
            )


@lru_cache(maxsize=16)
def labeler_of_package(item: Brought) -> type[OfPackage]:
    """Return the class of a package's labeler; InputError if it errs on small samples."""
    members = {"name": item.name, "told": item.told, "call": staticmethod(item.load())}
    found = type("OfPackage", (OfPackage,), members)
    for lattice, shape, boundary in _SMALL:
        batch = CpuBatch(load_lattice(lattice).topology(shape, boundary), BOND)
        labeler, reference = found(batch), Reference(batch)
        for n, p in enumerate(_SMALL_P):
            one = np.array([n], np.uint64), np.array([threshold_of(p)], np.uint64)
            batch.fill(GENERATORS["xorwow"], 1, *one)
            labeler.compare(labeler.checked_labels(), reference.label(), "reference")
    return found
