"""Other programs on the same samples: scipy on the CPU, and cupyx where it is installed."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

from percolab.benchmark.records import Place, Setting, TimeRecord
from percolab.benchmark.timer import Timer, make_timer, time_runs
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.lattices.topology import Topology, unpack_bits

_SEED = 1
#: The largest sample for scipy, which takes 50 bytes per site.
MAX_SCIPY_SITES = 2**24
#: Limits of its total time in seconds, and of its number of runs.
_SECONDS, _RUNS = 0.5, 5
#: Threshold of site percolation on the square lattice (Newman and Ziff 2000).
_SITE_THRESHOLD = 0.592746


def open_bond_list(topology: Topology, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Return owner and other end, int32 each, of sample 0's open bonds; no axis may be periodic."""
    opened = np.zeros(topology.num_bond_words, np.uint32)
    key = (np.uint64(_SEED), np.uint64(0), np.uint64(p_to_threshold(p)))
    fill_open_bonds(XORWOW, *key, np.uint64(0), topology.exists.ravel(), opened)
    words = opened.reshape(topology.exists.shape)
    owners = [
        np.flatnonzero(unpack_bits(row, topology.num_points)).astype(np.int32) for row in words
    ]
    listed, deltas = topology.neighbours, topology.deltas.astype(np.int32)
    others = [
        owner + deltas[k] if listed is None else listed[k, owner] for k, owner in enumerate(owners)
    ]
    return np.concatenate(owners), np.concatenate(others)


def time_scipy(
    setting: Setting, lattice: str, topology: Topology, place: Place
) -> Iterator[TimeRecord]:
    """Time scipy.sparse.csgraph.connected_components on sample 0, on one thread.

    Yields two records: building the matrix from the ends of open bonds, and labeling it; none for
    more than MAX_SCIPY_SITES grid points.
    """
    if topology.num_points > MAX_SCIPY_SITES:
        return
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    owner, other = open_bond_list(topology, place.p)
    # connected_components would convert other types to float64.
    ones, shape = np.ones(owner.size), (topology.num_points,) * 2

    def build() -> Any:
        return csr_array((ones, (owner, other)), shape=shape)

    matrix = build()

    def label() -> Any:
        return connected_components(matrix, directed=False)

    clusters = int(label()[0]) - (topology.num_points - topology.num_sites)
    base = setting.make_record("", lattice, topology, program="scipy", clusters=clusters)
    notes = {"build": "csr_array of open bonds", "labels": "connected_components of that"}
    for stage, work in (("build", build), ("labels", label)):
        times: list[float] = []
        while len(times) < _RUNS and sum(times) < _SECONDS:
            times.append(Timer().seconds(work))
        yield base.at(place, stage=stage, note=notes[stage]).timed(times, device="cpu")


def time_site_image(setting: Setting, size: int) -> Iterator[TimeRecord]:
    """Time cupyx.scipy.ndimage.label on a square image of L * L sites, site percolation at p_c.

    This is an easier problem than bond percolation: there are no bonds to draw or to read.  Yields
    nothing without CUDA or cupy.
    """
    if setting.kind != "cuda" or importlib.util.find_spec("cupy") is None:
        return
    import cupy
    from cupyx.scipy import ndimage

    cupy.cuda.Device(setting.device.number).use()
    uniform = np.random.default_rng(_SEED).random((size, size), np.float32)
    image = cupy.asarray(uniform < _SITE_THRESHOLD)
    labels = cupy.empty(image.shape, cupy.int32)

    def label() -> None:
        ndimage.label(image, output=labels)

    times = time_runs(make_timer(setting.device), label, setting.runs)
    yield TimeRecord(
        stage="labels",
        lattice="site image",
        shape=image.shape,
        num_sites=size * size,
        p=_SITE_THRESHOLD,
        ratio=1.0,
        program="cupyx",
        device=str(setting.device),
        clusters=int(labels.max()),
        note="ndimage.label of a given image",
    ).timed(times)
