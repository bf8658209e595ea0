"""The cluster labels of one configuration, as an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, threshold_of
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.labelers import fitting_labeler, labeler_class, new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.rows import renumber
from percolab.run.request import Watcher
from percolab.tasks.study import Task, check_boundary, check_probabilities
from percolab.tasks.values import check_choice


def _refuse_spins(draw: Model) -> None:
    """Raise InputError for a model with spins, whose samples are sweeps of a chain."""
    if draw.has_spins:
        raise InputError(
            f"model {draw}: a single sample is one of percolation; those of spins are sweeps of a "
            "chain (percolab sweep)"
        )


def label(
    lattice: str | Structure | Topology,
    L: int | None = None,
    p: float = 0.5,
    *,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    model: str = "bond",
    boundary: Sequence[str] | None = None,
    opened: np.ndarray | None = None,
    labeler: str | None = None,
    device: str = "cpu",
    serial: bool = False,
    watcher: Watcher | None = None,
) -> np.ndarray:
    """Return the cluster labels of one configuration, int32, one a grid point.

    A label is the smallest site index of the cluster, and -1 where the model left the site vacant;
    with ``serial`` the clusters are renumbered
    0 ... n - 1 in the same order.  On a lattice the array has the lattice's shape, last axis
    first; on a :class:`Topology` it is flat.

    On a lattice (seed, sample) names the sample that a sweep with this seed measures; on a topology
    the seed is that of the random streams themselves.

    opened: the configuration, packed uint32 bond words (num_classes, num_words), in place of the
    random one that (seed, sample, p) name.  Bonds that do not exist must be 0.  watcher: told if
    another labeler takes the place of one that the lattice cannot have.

    Raises InputError for an unknown name or size, and for bond words of another shape.

    >>> label("square", 4, p=1.0).tolist()[3]
    [0, 0, 0, 0]
    >>> label("square", 2, p=0.0, serial=True).tolist()
    [[0, 1], [2, 3]]
    """
    shape: tuple[int, ...] = (-1,)
    stream = seed
    if isinstance(lattice, Topology):
        topology = lattice
    else:
        lattice = load_structure(lattice) if isinstance(lattice, str) else lattice
        if L is None:
            raise InputError("label: give the size L of the lattice")
        if not isinstance(L, int):
            raise InputError(f"L = {L!r}, but it must be an integer of at least 1")
        usual = lattice.boundaries[:1] * lattice.dimension
        kinds = tuple(boundary) if boundary is not None else usual
        check_boundary(lattice, kinds)
        lattice.check_size(L, kinds)
        shape = lattice.shape(L)[::-1]
        topology = lattice.topology(lattice.shape(L), kinds)
        if opened is None:
            # The very sample that a sweep with this seed measures.
            _refuse_spins(Model.parse(model))
            stream = Task(lattice, L, kinds, (p,), seed=seed, rng=rng, model=model).stream_seed
    if opened is not None and np.shape(opened) != topology.exists.shape:
        raise InputError(f"opened has shape {np.shape(opened)}, not {topology.exists.shape}")
    check_choice("rng", rng, GENERATORS)
    check_probabilities((p,))
    for key, value in (("seed", seed), ("sample", sample)):
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise InputError(f"{key} = {value!r}, but it must be an integer from 0 to 2^64 - 1")
    if isinstance(lattice, Lattice):
        kind = Device.parse(device).resolve().kind
        labeler, note = fitting_labeler(labeler, kind, lattice)
        if note and watcher is not None:
            watcher.noted(note)
    draw = Model.parse(model)
    _refuse_spins(draw)
    if opened is not None and draw.draws_sites:
        raise InputError(f"model {model}: opened is a configuration already; leave the model out")
    of_sample = GENERATORS[rng], stream, sample, threshold_of(p)
    labels = _labels(topology, draw, opened, of_sample, labeler, device)
    if serial:
        labels[labels >= 0] = renumber(labels[labels >= 0])[0]
    return labels.reshape(shape)


def _labels(
    topology: Topology,
    draw: Model,
    opened: np.ndarray | None,
    key: tuple[int, int, int, int],
    labeler: str | None,
    device: str,
) -> np.ndarray:
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
    (labels,) = chosen.join(items, Reading.LABELS).labels()
    return _without_vacant(labels, batch.occupied_of(items)[0]) if draw.draws_sites else labels


def _without_vacant(labels: np.ndarray, occupied: np.ndarray) -> np.ndarray:
    """Return labels with -1 where a site is vacant; occupied: uint32 words, one bit a site."""
    return np.where(unpack_bits(occupied, labels.size), labels, np.int32(-1))
