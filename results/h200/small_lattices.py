"""Times small lattices on a GPU: all of a block's samples measured and summed, whole calls.

    python results/h200/small_lattices.py > results/h200/small-lattices.txt

Each line compares sums of blocks that are made on the device (percolab/coupled/small.py) with the
rows of tiles, summed on the host, which took their place; both give the same numbers, which is
checked on a thousand samples.  Times are of whole calls by the host's clock, the second of two; the
kernels' are those of CUDA events in a further call.
"""

from __future__ import annotations

import platform
import time
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from numba import cuda

from percolab import coupled
from percolab.bonds.model import Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.coupled import SampleBlocks, new_coupling
from percolab.kernels.launches import Launches
from percolab.lattices.lattice import load_lattice
from percolab.measure.block_sums import sum_blocks
from percolab.measure.columns import list_columns
from percolab.tasks.blocks import pick_observables, pick_squared

KEY = GENERATORS["xorwow"], 3
#: Lattice, model, boundary, values of p and sizes.
CASES = (
    ("square", "bond", "periodic", 1, (8, 16, 24, 32, 64)),
    ("square", "bond", "open", 1, (8, 16, 32, 64)),
    ("square", "bond", "open", 9, (16, 32, 64)),
    ("square", "bond", "open", 21, (64,)),
    ("square", "site", "periodic", 1, (16, 64)),
    ("cubic", "bond", "periodic", 1, (8, 16)),
    ("honeycomb", "bond", "open", 1, (8, 16, 32, 64)),
    ("triangular", "bond", "periodic", 1, (16, 64)),
    ("kagome", "bond", "periodic", 1, (16, 64)),
)
#: Site labelings of a call, and of a call of the rows of tiles.
LABELINGS, OF_TILES = 2**32, 2**27
#: Samples of a block, and those that are compared.
LENGTH, COMPARED = 16384, 1000


def measure(name: str, model: str, kind: str, points: int, size: int) -> str:
    """Return a line of the table."""
    lattice = load_lattice(name)
    boundary, draw = (kind,) * lattice.dimension, Model.parse(model)
    topology = lattice.topology(lattice.shape(size), boundary)
    centre = lattice.threshold(model).value
    grid = [centre] if points == 1 else np.linspace(centre - 0.05, centre + 0.05, points)
    limits = np.array([p_to_threshold(p) for p in grid], np.uint64)
    own = [column for column in list_columns(boundary) if column.is_observable]
    picks = pick_observables(own), pick_squared(own)
    device = new_coupling("tiled", "cuda", topology, draw, capacity=64)
    with patch.dict(coupled._SMALL, clear=True):
        tiles = new_coupling("tiled", "cuda", topology, draw, capacity=65535)
    length = LENGTH

    def blocks(labelings: int) -> SampleBlocks:
        count = max(labelings // (topology.num_points * points * length), 1)
        return SampleBlocks(np.arange(count, dtype=np.uint64) * np.uint64(length), length)

    def by_device(given: SampleBlocks) -> Any:
        return device.block_sums(*KEY, given, limits, *picks)

    def by_tiles(given: SampleBlocks) -> Any:
        samples = (given.starts[:, None] + np.arange(given.size, dtype=np.uint64)).ravel()
        rows = tiles.grid_rows(*KEY, samples, limits)
        by_block = rows.reshape(len(given.starts), given.size, points, -1)
        return sum_blocks(by_block, picks[1], *picks[0])

    few = SampleBlocks(np.zeros(1, np.uint64), COMPARED)
    is_equal = all(map(np.array_equal, by_device(few), by_tiles(few)))
    times = []
    for call, labelings in ((by_device, LABELINGS), (by_tiles, OF_TILES)):
        given = blocks(labelings)
        sites = len(given.starts) * length * points * topology.num_sites
        for _ in range(2):
            begin = time.perf_counter()
            call(given)
            elapsed = time.perf_counter() - begin
        times.append(elapsed / sites * 1e12)
    parts = kernel_times(lambda: by_device(blocks(LABELINGS)))
    sites = len(blocks(LABELINGS).starts) * length * points * topology.num_sites
    kernels = ", ".join(f"{name} {1e9 * ms / sites:.2f}" for name, ms in parts.items())
    what = f"{name} {model} {kind} L={size} {points} p"
    return f"{what:38s} {times[1]:8.1f} {times[0]:7.2f}  {is_equal!s:6s} {kernels}"


def kernel_times(call: Any) -> dict[str, float]:
    """Return the ms that every kernel takes in a call."""
    events: list[tuple[str, Any, Any]] = []
    launch = Launches.blocks

    def timed(self: Launches, kernel: Any, *arguments: Any, **options: Any) -> None:
        begin, end = cuda.event(), cuda.event()
        begin.record(self.stream)
        launch(self, kernel, *arguments, **options)
        end.record(self.stream)
        events.append((kernel.py_func.__name__.removesuffix("_kernel"), begin, end))

    with patch.object(Launches, "blocks", timed):
        call()
    cuda.synchronize()
    found: dict[str, float] = {}
    for name, begin, end in events:
        found[name] = found.get(name, 0.0) + cuda.event_elapsed_time(begin, end)
    return found


def main() -> None:
    """Print the table."""
    name = cuda.get_current_device().name
    name = name.decode() if isinstance(name, bytes) else name
    versions = f"Python {platform.python_version()}, numba {numba.__version__}"
    print(f"{name}; {versions}, NumPy {np.__version__}")
    print("ps a site and p: rows of tiles summed on the host; sums made on the device; kernels")
    for *case, sizes in CASES:
        for size in sizes:
            print(measure(*case, size), flush=True)


if __name__ == "__main__":
    main()
