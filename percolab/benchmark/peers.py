"""The same samples through other programs: scipy on the CPU, cupyx where it is installed."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from percolab.benchmark.stages import SEED
from percolab.benchmark.timer import CpuTimer, CudaTimer, Work, time_runs
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.bonds.words_cpu import fill_open_bonds
from percolab.lattices.topology import Topology, unpack_bits

#: Larger samples are not given to scipy: it takes 50 bytes a site.
MAX_SCIPY_SITES = 2**24
#: A peer is run until it took so long in all, or so often.
_PEER_SECONDS, _PEER_RUNS = 0.5, 5
#: Threshold of site percolation on the square lattice (Newman and Ziff 2000).
_SITE_THRESHOLD = 0.592746


@dataclass(frozen=True)
class PeerTime:
    """The time of one part of a peer's work on one sample, median over ``runs`` runs.

    work: what was timed, in words.  part: "build" or "labels".  clusters: how many it found.
    """

    lattice: str
    L: int
    num_sites: int
    p: float
    ratio: float | None
    peer: str
    part: str
    work: str
    runs: int
    seconds_per_sample: float
    clusters: int

    @property
    def nanoseconds_per_site(self) -> float:
        """Time of a sample over its sites."""
        return 1e9 * self.seconds_per_sample / self.num_sites

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self) | {"nanoseconds_per_site": self.nanoseconds_per_site}


def open_bond_list(topology: Topology, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Return owner and other end, int32 each, of sample 0's open bonds; nothing is periodic."""
    opened = np.zeros(topology.num_bond_words, np.uint32)
    key = (np.uint64(SEED), np.uint64(0), np.uint64(p_to_threshold(p)))
    fill_open_bonds(XORWOW, *key, np.uint64(0), topology.exists.ravel(), opened)
    words = opened.reshape(topology.exists.shape)
    flags = (unpack_bits(row, topology.num_points) for row in words)
    owners = [np.flatnonzero(row).astype(np.int32) for row in flags]
    listed, deltas = topology.neighbours, topology.deltas.astype(np.int32)
    others = [
        owner + deltas[k] if listed is None else listed[k, owner] for k, owner in enumerate(owners)
    ]
    return np.concatenate(owners), np.concatenate(others)


def scipy_times(
    lattice: str, size: int, topology: Topology, p: float, ratio: float | None
) -> list[PeerTime]:
    """Time scipy.sparse.csgraph.connected_components on sample 0, on one thread.

    Two records: building its matrix from the arrays of the open bonds' ends, and labeling it.
    Nothing for more than MAX_SCIPY_SITES grid points.
    """
    if topology.num_points > MAX_SCIPY_SITES:
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    owner, other = open_bond_list(topology, p)
    # float64 is what connected_components would convert to.
    ones, shape = np.ones(owner.size), (topology.num_points,) * 2

    def build() -> Any:
        return csr_array((ones, (owner, other)), shape=shape)

    matrix = build()

    def label() -> Any:
        return connected_components(matrix, directed=False)

    vacant = topology.num_points - topology.num_sites
    clusters = int(label()[0]) - vacant
    place = (lattice, size, topology.num_sites, p, ratio)
    parts = (
        ("build", build, "scipy.sparse.csr_array of the open bonds' ends"),
        ("labels", label, "scipy.sparse.csgraph.connected_components of that matrix"),
    )
    records = []
    for part, work, text in parts:
        times = _few_times(work)
        median = float(np.median(times))
        records.append(PeerTime(*place, "scipy", part, text, len(times), median, clusters))
    return records


def _few_times(work: Work) -> list[float]:
    times: list[float] = []
    while len(times) < _PEER_RUNS and sum(times) < _PEER_SECONDS:
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return times


def site_image_time(timer: CpuTimer | CudaTimer, size: int, runs: int) -> PeerTime | None:
    """Time cupyx.scipy.ndimage.label on a square image of L * L sites, site percolation at p_c.

    Another problem than bond percolation, and an easier one: no bonds to draw or to read.  None
    without CUDA or cupy.
    """
    if not isinstance(timer, CudaTimer) or importlib.util.find_spec("cupy") is None:
        return None
    import cupy
    from cupyx.scipy import ndimage

    cupy.cuda.Device(timer.device.number).use()
    uniform = np.random.default_rng(SEED).random((size, size), np.float32)
    image = cupy.asarray(uniform < _SITE_THRESHOLD)
    labels = cupy.empty(image.shape, cupy.int32)
    times = time_runs(timer, lambda: ndimage.label(image, output=labels), runs)
    place = ("site image", size, size * size, _SITE_THRESHOLD, 1.0)
    text = "cupyx.scipy.ndimage.label of a given square site image at p_c"
    clusters, median = int(labels.max()), float(np.median(times))
    return PeerTime(*place, "cupyx", "labels", text, runs, median, clusters)
