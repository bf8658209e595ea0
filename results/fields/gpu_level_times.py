"""Times the levels of fields of normal numbers on a GPU, phase by phase, and compares the answers.

    python results/fields/gpu_level_times.py [sizes ...] [--compare 256 512] [--tiled 512]

Every size is one field as in level_times.py, float32 (n, n, n), on a torus and with open axes.  Of
each the second call of two, in seconds by the host's clock: with the array on the host, and on the
GPU already.  Phases leave out those that they contain.  Of the sizes to compare, levels, shares,
saddles and paths must be those of the CPU.  --tiled: what the tiled labeler takes for the labels
of the same open bonds.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from platform import python_version
from typing import Any
from unittest import mock

import numpy as np
from numba import cuda

import percolab
from percolab.bonds.model import BOND
from percolab.kernels.device import device_name
from percolab.labelers import new_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.lattice import load_lattice
from percolab.trees import level_labeler_cuda, levels
from percolab.trees.level_labeler_cuda import CudaLevelLabeler

BOUNDARIES = "periodic", "open"
#: What is timed, by the name of its phase.
PHASES = {
    "topology, rest": (percolab, "threshold"),
    "copy of values": (level_labeler_cuda, "_on_device"),
    "arrays": (CudaLevelLabeler, "__init__"),
    "extremes, sample": (CudaLevelLabeler, "candidates"),
    "open bonds": (CudaLevelLabeler, "_open"),
    "labels": (CudaLevelLabeler, "_join"),
    "nodes": (CudaLevelLabeler, "_number"),
    "joins on the host": (levels.LevelSearch, "_read"),
    "list of openings": (CudaLevelLabeler, "label_between"),
    "openings in order": (levels.LevelSearch, "_look"),
    "shares": (CudaLevelLabeler, "count_open"),
    "path": (CudaLevelLabeler, "find_path"),
    "loop": (CudaLevelLabeler, "find_loop"),
}


def make_field(n: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([rng.standard_normal((n, n), dtype="f4") for _ in range(n)])


@contextmanager
def timed(seconds: Counter[str], calls: Counter[str]) -> Iterator[None]:
    """Add up the seconds of all phases."""
    running: list[str] = []
    since = [0.0]

    def change() -> None:
        cuda.synchronize()
        now = time.perf_counter()
        if running:
            seconds[running[-1]] += now - since[0]
        since[0] = now

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            change()
            running.append(name)
            calls[name] += 1
            try:
                return function(*given, **options)
            finally:
                change()
                running.pop()

        return call

    with ExitStack() as stack:
        for name, (owner, attribute) in PHASES.items():
            function = wrapped(name, getattr(owner, attribute))
            stack.enter_context(mock.patch.object(owner, attribute, function))
        yield


def record(found: percolab.Levels) -> dict[str, Any]:
    """Return all that is found."""
    places = [item and item.path.places.tolist() for item in found.axes.values()]
    return found.to_dict() | {"places": places}


def time_field(values: Any, boundary: str, what: str) -> percolab.Levels:
    """Print the times of the second call, and return the answer."""
    for turn in range(2):
        seconds: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        with timed(seconds, calls):
            found = percolab.threshold(weights=values, boundary=boundary, device="cuda")
        if turn == 0:
            first = sum(seconds.values())
    total = sum(seconds.values())
    size = f"{values.shape[0]}^3 {boundary}"
    print(f"{size}, array on the {what}: {total:.3f} s (first call {first:.1f})")
    for name in PHASES:
        if calls[name]:
            each = f"{seconds[name] / calls[name] * 1e3:.1f} ms each" if calls[name] > 1 else ""
            print(
                f"    {name:<18} {seconds[name]:8.3f} s  {calls[name]:>3} {each}".rstrip(),
                flush=True,
            )
    return found


def describe(found: percolab.Levels) -> str:
    items = {name: item for name, item in found.axes.items() if item is not None}
    levels_ = ", ".join(f"{name} {item.level:.6f}" for name, item in items.items())
    steps = ", ".join(str(item.path.sites.size - 1) for item in items.values())
    return f"    levels {levels_}; steps {steps}"


def time_tiled(n: int, level: float) -> None:
    """Print what labels of the bonds open at a level take: here, and of the tiled labeler."""
    values, topology = (
        make_field(n).ravel(),
        load_lattice("cubic").topology((n,) * 3, ("open",) * 3),
    )
    own = CudaLevelLabeler(topology, values, above=False)
    start = time.perf_counter()
    tiled = new_labeler("tiled", "cuda", topology, BOND)
    made = time.perf_counter() - start
    own._open(np.float32(level), own._opened)
    tiled.batch.load(own._read(own._opened).reshape(1, -1))

    def labels() -> None:
        tiled.join(1, Reading.LABELS).make_labels()
        tiled.batch.launches.wait()

    def own_labels() -> None:
        own._join()
        own.launches.wait()

    for name, call in (("tiles", labels), ("here", own_labels)):
        times = []
        for _ in range(6):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        best = min(times[1:])
        a_site = f"{best / n**3 * 1e12:.1f} ps a site"
        print(f"{n}^3 labels at {level:.4f}, {name}: {best * 1e3:.2f} ms, {a_site}")
    print(f"    to make the tiled labeler: {made:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", type=int, nargs="*", default=[256, 512, 1024])
    parser.add_argument("--compare", type=int, nargs="*", default=[256, 512])
    parser.add_argument("--tiled", type=int, nargs="*", default=[512])
    chosen = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "numba-cuda"))
    python = f"Python {python_version()}, percolab {version('percolab')}"
    print(f"{device_name(cuda)}; {python}, {packages}")
    for n in chosen.sizes:
        values = make_field(n)
        for boundary in BOUNDARIES:
            found = time_field(values, boundary, "host")
            print(describe(found), flush=True)
            if n in chosen.compare:
                expected = percolab.threshold(weights=values, boundary=boundary)
                equal = record(found) == record(expected)
                print(f"    equal to the CPU: {equal}", flush=True)
                assert equal
        on_device = cuda.to_device(values)
        same = time_field(on_device, BOUNDARIES[-1], "GPU")
        assert record(same) == record(found)
        del on_device
    for n in chosen.tiled:
        time_tiled(n, -0.492)


if __name__ == "__main__":
    main()
