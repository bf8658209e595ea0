"""The labels of one configuration of a topology, by any labeler."""

from __future__ import annotations

import numpy as np

from percolab.bonds.model import Model
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.labelers import fitting_labeler, labeler_class, new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice
from percolab.lattices.topology import Topology, unpack_bits
from percolab.run.request import Watcher


def choose_labeler(
    labeler: str | None, device: str, lattice: Lattice, watcher: Watcher | None
) -> str | None:
    """Return the labeler for a lattice; the watcher is notified if it is another than this one."""
    kind = Device.parse(device).resolve().kind
    chosen, note = fitting_labeler(labeler, kind, lattice)
    if note and watcher is not None:
        watcher.noted(note)
    return chosen


def compute_labels(
    topology: Topology,
    draw: Model,
    opened: np.ndarray | None,
    key: tuple[int, int, int, int],
    labeler: str | None,
    device: str,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the labels of a configuration of a topology, int32 (num_points,), and its open bonds.

    opened: its open bonds, uint32 (num_classes, num_words); None draws them by ``key``: generator,
    seed of the streams, number of the sample, threshold of p; they are returned where some of them
    can cross a periodic boundary, None elsewhere.  -1 is where no site is drawn.
    InputError: an unknown labeler or device, or one that cannot label so many sites.
    """
    target = Device.parse(device).resolve()
    generator, seed, sample, threshold = key
    labeler_class(labeler, target.kind)
    try:
        chosen = new_labeler(labeler, target.kind, topology, draw)
    except ValueError as error:
        raise InputError(f"{topology.num_points} sites on {device}: {error}") from error
    batch = chosen.batch
    if opened is None:
        one = np.array([sample], np.uint64), np.array([threshold], np.uint64)
        items = batch.fill(generator, seed, *one)
    else:
        items = batch.load(np.asarray(opened, np.uint32).reshape(1, -1))
    if opened is None and topology.num_periodic_bonds:
        opened = batch.copy_open_words(items).reshape(topology.exists.shape)
    labels: np.ndarray
    (labels,) = chosen.join(items, Reading.LABELS).labels()
    if not draw.draws_sites:
        return labels, opened
    occupied = unpack_bits(batch.copy_occupied(items)[0], labels.size)
    return np.where(occupied, labels, np.int32(-1)), opened
