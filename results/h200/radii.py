"""Times radii of gyration on a GPU: read off tiles, and site by site as other labelers do.

    python results/h200/radii.py > results/h200/radii.txt

Both give the same sums of blocks, which is checked; tiles make them on the device.  ps a site, the
last of four calls by the host's clock, bonds and labels included; then the kernels of tiles by
CUDA events.
"""

from __future__ import annotations

import platform
import sys
import time
from collections import defaultdict
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from numba import cuda

from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.kernels.launches import Launches
from percolab.labelers.forest import Reading
from percolab.lattices.geometry import make_geometry
from percolab.lattices.lattice import load_lattice
from percolab.measure.radii import sum_gyration
from percolab.measure.radii_batch import RadiiBatch

KEY = GENERATORS["xorwow"], 3
CASES = (
    ("square", "bond", "open", (64, 256, 1024, 4096)),
    ("square", "bond", "periodic", (64, 256, 1024)),
    ("square", "site", "periodic", (64, 1024)),
    ("honeycomb", "bond", "open", (64, 1024)),
    ("triangular", "bond", "open", (64, 1024)),
    ("cubic", "bond", "periodic", (16, 64, 128)),
    ("bcc", "bond", "open", (64,)),
)
#: Sites of a call.
SITES = 2**26
#: Samples of a block, at most.
LENGTH = 1024


def measure(name: str, model: str, kind: str, size: int) -> str:
    """Return a line of the table."""
    lattice = load_lattice(name)
    shape, boundary = lattice.shape(size), (kind,) * lattice.dimension
    topology, draw = lattice.topology(shape, boundary), Model.parse(model)
    geometry = make_geometry(lattice, shape)
    limits = np.array([p_to_threshold(lattice.threshold(model).value)], np.uint64)
    count = max(SITES // topology.num_sites, 1)
    coupling: Any = new_coupling("tiled", "cuda", topology, draw, capacity=count)
    samples = np.arange(count, dtype=np.uint64)

    def by_tiles(blocks: SampleBlocks) -> Any:
        return coupling.radii_sums(*KEY, blocks, limits, geometry)

    length = min(count, LENGTH)
    whole_blocks = SampleBlocks(samples[: count - count % length : length], length)

    spent: dict[str, float] = defaultdict(float)
    times = [clock(lambda: by_tiles(whole_blocks)) for _ in range(4)]
    with timed_kernels(spent), patch.object(Launches, "call", lambda _, key, work: work()):
        by_tiles(whole_blocks)
    labeler: Any = coupling.labeler
    sites = RadiiBatch(labeler.batch, geometry)
    few = min(sites.entries, count)
    own = np.full(few, limits[0], np.uint64)

    def by_sites() -> Any:
        labeler.batch.fill(*KEY, samples[:few], own)
        labeler.join(few, Reading.ROWS)
        return sites.rows(few)

    before = [clock(by_sites) for _ in range(2)][-1] / (few * topology.num_sites)
    expected = sum_gyration(by_sites()[None, :, None], geometry.unit)
    is_equal = np.array_equal(by_tiles(SampleBlocks(samples[:1], few)), expected)
    count = len(whole_blocks.starts) * length
    whole = times[-1] / (count * topology.num_sites)
    kernels = ", ".join(
        f"{kernel} {1e9 * ms / (count * topology.num_sites):.2f}" for kernel, ms in spent.items()
    )
    what = f"{name} {model} {kind} L={size}"
    return f"{what:30s} {1e12 * before:8.1f} {1e12 * whole:7.1f}  {is_equal!s:6s} {kernels}"


def clock(call: Any) -> float:
    """Return the seconds of a call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


class timed_kernels:
    """While active, the ms of every kernel are added to ``spent``."""

    def __init__(self, spent: dict[str, float]) -> None:
        self._spent, self._events = spent, []
        self._patches = [
            patch.object(Launches, name, self._timed(getattr(Launches, name), at))
            for name, at in (("each", 0), ("one", 0), ("blocks", 0))
        ]

    def _timed(self, launch: Any, at: int) -> Any:
        def timed(launches: Launches, kernel: Any, *arguments: Any, **options: Any) -> None:
            begin, end = cuda.event(), cuda.event()
            begin.record(launches.stream)
            launch(launches, kernel, *arguments, **options)
            end.record(launches.stream)
            name = kernel.py_func.__name__.removesuffix("_kernel")
            self._events.append((name, begin, end))

        return timed

    def __enter__(self) -> None:
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()
        cuda.synchronize()
        for name, begin, end in self._events:
            self._spent[name] += cuda.event_elapsed_time(begin, end)


def main() -> None:
    """Print the table."""
    name = cuda.get_current_device().name
    name = name.decode() if isinstance(name, bytes) else name
    versions = f"Python {platform.python_version()}, numba {numba.__version__}"
    print(f"{name}; {versions}, NumPy {np.__version__}")
    print("ps a site: site by site; tiles; equal; kernels of tiles")
    chosen = sys.argv[1:]
    for *case, sizes in CASES:
        for size in sizes:
            if not chosen or case[0] in chosen:
                print(measure(*case, size), flush=True)


if __name__ == "__main__":
    main()
