"""Labels of an image that is larger than the memory: slab by slab along its first axis.

In a first pass every slab is labeled together with as many of the previous slab's last layers as a
bond reaches.  A cluster that contains sites of those layers takes the smallest of their labels, and
their other labels are noted as equal to it.  Then equal labels are joined, across a periodic
boundary too, and a second pass replaces each by the smallest site of the whole cluster.  The number
of periods between sites and their label's origin is tracked, to find clusters that wrap across
slabs.  Memory holds one slab at a time, and a list of the clusters that touch an end of a slab.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from percolab.configurations.configuration import configuration_of_phases, image_lattice, read_image
from percolab.configurations.label import load_labeled_lattice
from percolab.configurations.phases import (
    Phase,
    Phases,
    PhaseSums,
    SiteRule,
    count_faces,
    count_faces_between,
    has_faces,
    sum_by,
)
from percolab.errors import InputError
from percolab.lattices.lattice import AXIS_NAMES, Lattice
from percolab.lattices.shown import Shown
from percolab.lattices.topology import MAX_POINTS, PERIOD_BITS, decode_periods
from percolab.measure.clusters import Clusters, summarize_axes
from percolab.measure.columns import open_axes
from percolab.measure.wrapping import join_pieces
from percolab.store.output_files import array, check_output, large_array
from percolab.tasks.study import axis_boundaries

#: Memory for labeling, in bytes per site of a slab, and the share of free memory for a slab.
_BYTES, _SHARE = 116, 0.25
_KIND = array("labels")
_WRAPS = 16


@dataclass(frozen=True, eq=False, repr=False)
class SlabLabels(Shown):
    """Labels that were written slab by slab, and the properties of their clusters.

    array:     the labels, in the image's shape: a memory map of the .npy file, or the given ``out``
    phases:    the measured properties of every phase
    spanning:  for each open axis the labels of the clusters that touch both sides
    wrapping:  for each periodic axis those of the clusters that close on themselves around it
    record:    origin of the labels, as plain JSON values
    """

    array: Any
    phases: list[Phase]
    spanning: dict[str, np.ndarray]
    wrapping: dict[str, np.ndarray]
    record: dict[str, Any]

    def _facts(self) -> dict[str, Any]:
        return {key: value for key, value in self.summary().items() if not key.endswith("axes")}

    @property
    def num_clusters(self) -> int:
        return sum(phase.clusters for phase in self.phases)

    def summary(self) -> dict[str, Any]:
        """Return a summary of the clusters, as plain JSON values."""
        return {
            "sites": sum(phase.sites for phase in self.phases),
            "clusters": self.num_clusters,
            "largest": max(phase.largest for phase in self.phases),
            **summarize_axes(self.spanning, self.wrapping),
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.array[:], dtype)


@dataclass
class _Pieces:
    """Pieces of clusters, an entry each: label, number of sites, phase, and the sides touched.

    Bit 2a of the sides is the first side of axis a, bit 2a + 1 the last, and bit _WRAPS + a says
    that the piece wraps around axis a.
    """

    labels: np.ndarray
    sizes: np.ndarray
    phases: np.ndarray
    sides: np.ndarray

    def take(self, chosen: np.ndarray) -> _Pieces:
        return _Pieces(*(each[chosen] for each in vars(self).values()))

    def joined(self, roots: np.ndarray) -> _Pieces:
        """Return clusters: pieces with the same root are joined to one."""
        labels, first, number = np.unique(roots, return_index=True, return_inverse=True)
        sides = np.zeros(labels.size, np.int64)
        np.bitwise_or.at(sides, number, self.sides)
        return _Pieces(labels, sum_by(number, self.sizes, labels.size), self.phases[first], sides)


def label_in_slabs(
    name: Any,
    lattice: str | Path | Lattice | None = None,
    boundary: Any = "open",
    *,
    out: Any,
    slabs: int | str = "auto",
    connectivity: int | None = None,
    labeler: str | None = None,
    device: str = "cpu",
    **rule: Any,
) -> SlabLabels:
    """Label an image slab by slab, and write the labels of :func:`percolab.label`.

    name: a file or a stack of slices, or an object with .shape, .dtype and slices of its first
    axis, such as numpy.memmap and arrays of h5py, zarr and dask.  out: a .npy file, or an object of
    the image's shape whose slices can be set and read.  Labels are int32, or int64 if the image has
    more than 2^31 - 64 points.  slabs: their number; "auto" chooses it by the free memory.  rule:
    threshold, below, phase, connectivity and lattice as for :func:`percolab.label`.

    InputError: as :func:`percolab.configurations.configuration.site_configuration`; a lattice that
    is not the same in every layer; Otsu's threshold; ``out`` of another shape or type.
    """
    lattice = load_labeled_lattice(lattice)
    image, text, sites = read_image(name, lattice, connectivity, in_parts=True, **rule)
    lattice = lattice or image_lattice(connectivity, len(image.shape))
    kinds = axis_boundaries(lattice, boundary)
    reach = max(abs(bond.offset[-1]) for bond in lattice.bonds) or 1
    if lattice.cell[-1] != 1 or image.shape[0] < reach:
        raise InputError(
            f"slabs: {lattice.name} with {image.shape[0]} layers cannot be cut; leave slabs out"
        )
    bounds = _cut(image.shape, slabs, reach)
    if sites.threshold == "otsu":
        raise InputError(
            f"{sites.name}: Otsu's threshold needs the whole image, not slabs; give a number"
        )
    if sites.phases is not None and sites.phases.every:
        sites.phases = Phases.of_values(_values(image, bounds), sites.name)
    points = prod(image.shape)
    kind = np.dtype(np.int32 if points <= MAX_POINTS else np.int64)
    record = {"kind": "sites", **text, "lattice": lattice.name, "boundary": list(kinds)}
    with _open_target(out, image.shape, kind) as target:
        job = _Job(lattice, kinds, reach, sites, labeler, device)
        for start, stop in bounds:
            target[start:stop] = job.label(image, start, stop).astype(kind)
        if not (job.sums.sites.any() or any(pieces.labels.size for pieces in job.open)):
            sites.check_absent(_values(image, bounds))
        equal, roots = job.close()
        for start, stop in bounds if equal.size else ():
            labels = _replace(np.asarray(target[start:stop]), equal, roots)
            target[start:stop] = labels.astype(kind)
    written = np.load(out, mmap_mode="r") if isinstance(out, str | Path) else out
    phases = job.sums.measure(sites.names, job.num_sites, job.surface)
    spanning, wrapping = (
        {axis: np.sort(np.concatenate(parts)) for axis, parts in axes.items()}
        for axes in (job.spanning, job.wrapping)
    )
    return SlabLabels(written, phases, spanning, wrapping, record | sites.record)


_Layers = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Job:
    """The first pass over the slabs of an image, with its results so far."""

    def __init__(
        self,
        lattice: Lattice,
        kinds: tuple[str, ...],
        reach: int,
        sites: SiteRule,
        labeler: str | None,
        device: str,
    ) -> None:
        self._lattice, self._kinds, self._reach, self._rule = lattice, kinds, reach, sites
        self._ways: dict[str, Any] = {"labeler": labeler, "device": device}
        self._axes = open_axes(kinds)
        count = (len(sites.names) if sites.phases is not None else 1) + 1
        self.sums = PhaseSums(count)
        self.spanning: dict[str, list[np.ndarray]] = {AXIS_NAMES[axis]: [] for axis in self._axes}
        around = {axis for axis, kind in enumerate(kinds) if kind == "periodic"}
        self.wrapping: dict[str, list[np.ndarray]] = {AXIS_NAMES[axis]: [] for axis in around}
        # Within one slab no cluster can wrap around the last axis.
        self._can_wind = bool(around - {len(kinds) - 1})
        self.num_sites = 0
        self.surface = np.zeros(count, np.int64) if has_faces(lattice) else None
        #: Pieces that are not added up yet.
        self.open: list[_Pieces] = []
        # Rows of two labels of one cluster, and the periods from one to the other.
        self._equal: list[np.ndarray] = []
        # Phases, labels, and periods from the label's origin to every site, of the first layers of
        # the image, and of the last ones so far.
        self._first: _Layers | None = None
        self._last: _Layers | None = None

    def label(self, image: Any, start: int, stop: int) -> np.ndarray:
        """Return the first pass's labels of the layers from start to stop, int64."""
        phases = self._rule.number(np.asarray(image[start:stop]))
        layer, shape = prod(phases.shape[1:]), phases.shape
        if self.surface is not None:
            axes = [*self._axes, len(self._kinds) - 1]
            self.surface += count_faces(phases, axes, self.surface.size)
            if self._last is not None:
                count_faces_between(self._last[0][-1], phases[0], self.surface)
        above = np.empty((0, *shape[1:]), np.uint8), *np.empty((2, 0), np.int64)
        known_phases, known, away = self._last or above
        skipped = known.size
        clusters = self._clusters(np.concatenate([known_phases, phases]))
        bits, periods = self._windings(clusters)
        labels = clusters.roots.astype(np.int64) + (start * layer - skipped)
        if skipped:
            numbers = clusters.numbers[:skipped]
            shifts = self._continue(numbers, known, away, labels, periods[:skipped])
            periods += np.append(shifts, 0)[clusters.numbers]
        numbers = clusters.numbers[skipped:]
        here = numbers >= 0
        result: np.ndarray = np.append(labels, -1)[numbers]
        is_last = stop == image.shape[0]
        sizes = np.bincount(numbers[here], minlength=labels.size)
        self._add(clusters, labels, sizes, bits, start, is_last)
        depth = self._reach * layer
        self._last = phases[-self._reach :].copy(), result[-depth:].copy(), periods[-depth:].copy()
        if self._first is None:
            first = result[:depth].copy(), periods[:depth].copy()
            self._first = phases[: self._reach].copy(), *first
        self.num_sites += clusters.topology.num_sites * shape[0] // clusters.topology.shape[-1]
        return result.reshape(shape)

    def close(self) -> tuple[np.ndarray, np.ndarray]:
        """Join equal labels; return the labels to replace, ascending, and their replacements."""
        if self._kinds[-1] == "periodic" and self._first is not None and self._last is not None:
            if self.surface is not None:
                count_faces_between(self._last[0][-1], self._first[0][0], self.surface)
            # The first layers follow the last ones, shifted by one period.
            self._first[2][:] += 1 << PERIOD_BITS * (len(self._kinds) - 1)
            phases, known, away = map(np.concatenate, zip(self._last, self._first, strict=True))
            both = self._clusters(phases)
            labels = np.zeros(both.roots.size, np.int64)
            bits, periods = self._windings(both)
            self._continue(both.numbers, known, away, labels, periods)
            self._note_winding(labels, bits)
        rows = np.concatenate([np.empty((0, 3), np.int64), *self._equal])
        labels, roots, loops = _smallest_equal(rows)
        around = decode_periods(loops, len(self._kinds)) != 0
        self._note_winding(rows[:, 0], around @ (1 << np.arange(len(self._kinds))))
        parts = zip(*(vars(pieces).values() for pieces in self.open), strict=True)
        every = _Pieces(*map(np.concatenate, parts))
        self._add_up(every.joined(_replace(every.labels, labels, roots)))
        return labels, roots

    def _clusters(self, phases: np.ndarray) -> Any:
        """Return the clusters of some layers by themselves, without a boundary between them."""
        kinds = (*self._kinds[:-1], "open")
        chosen = configuration_of_phases(phases, self._lattice, kinds, {}, ())
        self._phases = chosen.phases
        return chosen.label(**self._ways)

    def _windings(self, clusters: Clusters) -> tuple[np.ndarray, np.ndarray]:
        """Return the axes (bits) that clusters wrap around here, and the periods to their sites."""
        if self._can_wind:
            return clusters.find_windings()
        return np.zeros(clusters.roots.size, np.uint32), np.zeros(clusters.labels.size, np.int64)

    def _note_winding(self, labels: np.ndarray, bits: np.ndarray) -> None:
        """Note that the clusters of these labels wrap around axes, a bit each."""
        labels, bits = labels[bits != 0], bits[bits != 0].astype(np.int64)
        none = np.zeros(labels.size, np.int64)
        self.open.append(_Pieces(labels, none, none, bits << _WRAPS))

    def _continue(
        self,
        numbers: np.ndarray,
        known: np.ndarray,
        away: np.ndarray,
        labels: np.ndarray,
        periods: np.ndarray,
    ) -> np.ndarray:
        """Give clusters the smallest known label of their sites, and note which labels are equal.

        numbers: the cluster of each site that has a known label, -1 for none.  known, away: the
        sites' labels, and the periods from a label's origin to the site.  labels: of all clusters;
        changed for clusters that contain one of these sites.  periods: of the sites within their
        clusters.  Returns the periods from a label's origin to its cluster.
        """
        here = numbers >= 0
        numbers, known, away = numbers[here], known[here], away[here] - periods[here]
        smallest = np.full(labels.size, np.iinfo(np.int64).max)
        np.minimum.at(smallest, numbers, known)
        has_some = smallest < np.iinfo(np.int64).max
        labels[has_some] = smallest[has_some]
        is_same = known == labels[numbers]
        joined, first = np.unique(numbers[is_same], return_index=True)
        shifts = np.zeros(labels.size, np.int64)
        shifts[joined] = away[is_same][first]
        away -= shifts[numbers]
        differ = ~is_same | (away != 0)
        rows = np.column_stack([known, labels[numbers], away])[differ]
        self._equal.append(np.unique(rows, axis=0))
        return shifts

    def _add(
        self,
        clusters: Clusters,
        labels: np.ndarray,
        sizes: np.ndarray,
        bits: np.ndarray,
        start: int,
        is_last: bool,
    ) -> None:
        """Add up the clusters that lie within this slab; keep the pieces of others."""
        topology, last = clusters.topology, len(self._kinds) - 1
        phases = self._phases
        assert phases is not None
        sides = bits.astype(np.int64) << _WRAPS
        for axis, layers in enumerate(topology.end_layers):
            for side, layer in enumerate(layers):
                # A slab's end along the last axis is a side only if the image ends there.
                if axis == last and not (is_last if side else start == 0):
                    continue
                touched = clusters.numbers[layer]
                sides[touched[touched >= 0]] |= 1 << (2 * axis + side)
        pieces = _Pieces(labels, sizes, phases[clusters.roots], sides)
        depth = self._reach * prod(topology.shape[:-1])
        is_open = np.zeros(labels.size, bool)
        for part in (clusters.numbers[:depth], clusters.numbers[-depth:]):
            is_open[part[part >= 0]] = True
        self.open.append(pieces.take(is_open))
        self._add_up(pieces.take(~is_open))

    def _add_up(self, clusters: _Pieces) -> None:
        """Add up clusters that are complete."""
        spanning = {AXIS_NAMES[a]: (clusters.sides >> (2 * a)) & 3 == 3 for a in self._axes}
        wraps = clusters.sides >> _WRAPS
        wrapping = {axis: wraps >> AXIS_NAMES.index(axis) & 1 == 1 for axis in self.wrapping}
        self.sums.add(clusters.phases, clusters.sizes, spanning, wrapping)
        for axes, complete in ((spanning, self.spanning), (wrapping, self.wrapping)):
            for axis, chosen in axes.items():
                complete[axis].append(clusters.labels[chosen])


def _smallest_equal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the labels that equal a smaller one, ascending, and the smallest label of each.

    rows: int64 (n, 3), two labels of one cluster, and the periods from one to the other, as a
    code.  The third array, int64 (n,), has the winding numbers of the loop that a row closes.

    >>> rows = np.array([[9, 5, 0], [5, 2, 1], [7, 6, 0], [9, 2, 0]])
    >>> [each.tolist() for each in _smallest_equal(rows)]
    [[5, 7, 9], [2, 6, 2], [0, 0, 0, -1]]
    """
    labels, number = np.unique(rows[:, :2], return_inverse=True)
    parents, loops = np.arange(labels.size, dtype=np.int32), np.zeros(len(rows), np.int64)
    join_pieces(number.reshape(-1, 2), rows[:, 2].copy(), parents, loops)
    # Labels ascend, so the first piece of a cluster has its smallest label.
    roots = labels[parents]
    changes = roots != labels
    return labels[changes], roots[changes], loops


def _replace(labels: np.ndarray, equal: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Return labels in which those of ``equal``, ascending, are replaced by their roots."""
    if not equal.size:
        return labels
    place = np.minimum(np.searchsorted(equal, labels), equal.size - 1)
    return np.where(equal[place] == labels, roots[place], labels)


def _cut(shape: tuple[int, ...], slabs: int | str, reach: int) -> list[tuple[int, int]]:
    """Return where slabs start and stop; InputError for an impossible number of slabs."""
    depth, layer = shape[0], prod(shape[1:])
    slabs = int(slabs) if isinstance(slabs, np.integer) else slabs
    if isinstance(slabs, str) and slabs == "auto":
        most = min(int(_SHARE * psutil.virtual_memory().available) // _BYTES, MAX_POINTS // 2)
        count = -(-depth // max(most // layer - reach, reach))
    elif isinstance(slabs, int) and not isinstance(slabs, bool) and 1 <= slabs <= depth // reach:
        count = slabs
    else:
        raise InputError(
            f"slabs = {slabs!r}, but it must be auto or an integer from 1 to {depth // reach}"
        )
    count = min(count, depth // reach)
    if (-(-depth // count) + reach) * layer > MAX_POINTS:
        raise InputError(
            f"slabs = {slabs}: a slab can have at most {MAX_POINTS} points; use more slabs"
        )
    ends = [n * depth // count for n in range(count + 1)]
    return list(pairwise(ends))


def _values(image: Any, bounds: list[tuple[int, int]]) -> np.ndarray:
    """Return all values of an image, ascending."""
    values = [np.unique(np.asarray(image[start:stop])) for start, stop in bounds]
    return np.unique(np.concatenate(values))


def _open_target(out: Any, shape: tuple[int, ...], kind: np.dtype) -> AbstractContextManager[Any]:
    """Return the array that labels are written to; InputError if it cannot be used."""
    if isinstance(out, str | Path):
        if Path(out).suffix.lower() != ".npy":
            raise InputError(f"{out}: with slabs labels can only be written as .npy")
        check_output(out, _KIND)
        return large_array(Path(out), shape, kind, _KIND)
    if not hasattr(out, "shape"):
        raise InputError(f"out = {out!r}, but it must be the name of a file, or an array")
    if tuple(out.shape) != tuple(shape) or not np.can_cast(kind, out.dtype):
        raise InputError(
            f"out: {out.dtype} of shape {tuple(out.shape)}, but the labels are {kind} of shape "
            f"{tuple(shape)}"
        )
    return nullcontext(out)
