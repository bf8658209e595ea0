"""Compare the speed of two source trees of percolab on one GPU, call by call in turn.

    python results/h200/before_after.py BEFORE AFTER

BEFORE and AFTER are directories that hold a folder percolab each, for instance two worktrees:
``git worktree add ../before main``.  One process for each tree makes the objects of a case; then
both time the same work in turns, A B A B ..., so that clocks and temperature change for both alike.
A time is that of the host from one synchronization of the device to the next, the best of some
calls.  Printed are the medians of these times, their ratio, and the spread of the ratio over the
turns.  It ends after --budget seconds; --tiny has sizes for CUDA's simulator (tests/simulator.py is
not needed: NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1), --cases a part of the names.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Work = Callable[[], object]


def of_room(names: tuple[str, ...], module: str, *attributes: str) -> Any:
    """Return what a module of the first of these rooms has, which one tree may call otherwise."""
    for name in names:
        try:
            found = import_module(f"percolab.{name}.{module}")
            return next(getattr(found, each) for each in attributes if hasattr(found, each))
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError(f"percolab has no {module} in {', '.join(names)}")


def make_work(case: str, tiny: bool) -> Work:
    """Return the work of a case, its objects made."""
    return CASES[case](tiny)


def _threshold(p: float) -> int:
    """Return the threshold of p, by the function of either name."""
    words = import_module("percolab.bonds.words")
    return (getattr(words, "p_to_threshold", None) or words.threshold_of)(p)


def _topology(name: str, size: int, boundary: str = "open") -> Any:
    from percolab.lattices.lattice import load_lattice

    lattice = load_lattice(name)
    return lattice.topology(lattice.shape(size), (boundary,) * lattice.dimension)


def _p_c(name: str) -> float:
    from percolab.lattices.lattice import load_lattice

    known = load_lattice(name).threshold()
    assert known is not None
    return known.value


def _rows(
    name: str,
    size: int,
    *,
    samples: int = 1,
    steps: int = 1,
    labeler: str | None = None,
    model: str = "bond",
    p: float | None = None,
) -> Callable[[bool], Work]:
    def make(tiny: bool) -> Work:
        from percolab.bonds.model import Model
        from percolab.bonds.words import XORWOW
        from percolab.coupled import new_coupling

        count = 2 if tiny else samples
        topology = _topology(name, 12 if tiny else size)
        coupling = new_coupling(labeler, "cuda", topology, Model.parse(model), capacity=count)
        middle = _p_c(name) if p is None else p
        offsets = np.linspace(-0.02, 0.02, steps) if steps > 1 else [0.0]
        grid = np.array([_threshold(middle + x) for x in offsets], np.uint64)
        numbers = np.arange(count, dtype=np.uint64)
        if steps == 1:
            return lambda: coupling.rows(XORWOW, 1, numbers, np.repeat(grid, count))
        return lambda: coupling.grid_rows(XORWOW, 1, numbers, grid)

    return make


def _labels(tiny: bool) -> Work:
    from percolab.bonds.words import XORWOW
    from percolab.labelers import new_labeler
    from percolab.labelers.forest import Reading

    labeler = new_labeler(None, "cuda", _topology("honeycomb", 12 if tiny else 4096))
    one, at_p = np.zeros(1, np.uint64), np.array([_threshold(_p_c("honeycomb"))], np.uint64)

    def work() -> None:
        items = labeler.batch.fill(XORWOW, 1, one, at_p)
        labeler.join(items, Reading.LABELS).make_labels()

    return work


def _spins(name: str, size: int, p: float, *, chains: int, sweeps: int) -> Callable[[bool], Work]:
    def make(tiny: bool) -> Work:
        from percolab.bonds.words import XORWOW
        from percolab.spins.chains import new_chains
        from percolab.spins.update import Update
        from percolab.spins.words import Chain

        count, topology = 2 if tiny else chains, _topology(name, 8 if tiny else size, "periodic")
        swept = new_chains(None, "cuda", topology, Update.parse("sw").rule(2), capacity=count)
        count = min(count, swept.capacity)
        seeds, threshold = (np.uint64(1), np.uint64(2), np.uint64(3)), np.uint64(_threshold(p))
        keys = [Chain(*seeds, np.uint64(number), threshold) for number in range(count)]
        swept.begin(XORWOW, keys, [True] * count)
        swept.advance(1 if tiny else 16)
        return lambda: swept.advance(1 if tiny else sweeps)

    return make


def _trees(tiny: bool) -> Work:
    from percolab.bonds.words import XORWOW
    from percolab.trees import new_trees

    trees = new_trees(None, "cuda", _topology("square", 12 if tiny else 4096))
    return lambda: trees.build(XORWOW, 1, np.zeros(1, np.uint64))


def _slabs(tiny: bool) -> Work:
    from percolab.bonds.words import XORWOW
    from percolab.lattices.lattice import load_lattice

    rooms, size = ("domains", "parts"), 12 if tiny else 2**14
    whole = of_room(rooms, "parts", "Whole") if _has(rooms, "parts") else None
    if whole is None:
        whole = of_room(rooms, "slab", "Whole")
    draw = of_room(rooms, "raster", "SampleKey", "Draw")(XORWOW, 1, 0, _threshold(0.5))
    lattice = whole(load_lattice("square"), (size, size), ("open", "open"))
    slabs = of_room(rooms, "slabs", "Slabs")(lattice, (size // 4,) * 4, kind="cuda")
    return lambda: slabs.row(draw)


def _has(rooms: tuple[str, ...], module: str) -> bool:
    try:
        of_room(rooms, module, "Whole")
    except (ModuleNotFoundError, AttributeError):
        return False
    return True


def _thresholds(tiny: bool) -> Work:
    from percolab.bonds.words import TOP, XORWOW
    from percolab.coupled import new_coupling
    from percolab.coupled.thresholds import find_thresholds

    count = 2 if tiny else 4096
    coupling = new_coupling(None, "cuda", _topology("square", 8 if tiny else 64), capacity=count)
    numbers = np.arange(count, dtype=np.uint64)
    return lambda: find_thresholds(coupling, XORWOW, 1, numbers, (0, TOP))


CASES: dict[str, Callable[[bool], Work]] = {
    "rows honeycomb 2^24": _rows("honeycomb", 4096),
    "rows square 2^24": _rows("square", 4096),
    "rows cubic 2^24": _rows("cubic", 256),
    "rows square, 4096 of L = 64": _rows("square", 64, samples=4096),
    "grid of 9 p, 4096 of L = 64": _rows("square", 64, samples=4096, steps=9),
    "grid of 9 p, 16 of L = 1024": _rows("square", 1024, samples=16, steps=9),
    "labels honeycomb 2^24": _labels,
    "rows four_step honeycomb 2^24": _rows("honeycomb", 4096, labeler="four_step"),
    "rows of sites, square 2^24": _rows("square", 4096, model="site", p=0.59274605),
    "1000 Ising chains of L = 64": _spins("square", 64, 0.5858, chains=1000, sweeps=64),
    "Ising 4096^2": _spins("square", 4096, 0.5858, chains=1, sweeps=4),
    "Ising 128^3": _spins("cubic", 128, 0.3581, chains=1, sweeps=8),
    "trees square 2^24": _trees,
    "4 slabs of 2^14 x 2^14": _slabs,
    "T, 4096 of L = 64": _thresholds,
}


def serve(tiny: bool) -> None:
    """Time the cases whose names come in, a line each; say what came of it in JSON."""
    # NumPy warns where CUDA wraps around.
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
    import percolab
    from percolab.kernels.device import load_cuda

    cuda, work, made = load_cuda(), None, ""
    print(json.dumps({"tree": os.path.dirname(percolab.__file__)}), flush=True)
    for line in sys.stdin:
        case, calls = json.loads(line)
        try:
            if case != made:
                work = None
                work, made = make_work(case, tiny), case
                work()
            times = []
            for _ in range(calls):
                cuda.synchronize()
                begin = time.perf_counter()
                work()
                cuda.synchronize()
                times.append(time.perf_counter() - begin)
            print(json.dumps({"best": min(times)}), flush=True)
        except Exception as error:  # one case alone fails
            work, made = None, ""
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), flush=True)


class Worker:
    """A process that has imported one tree."""

    def __init__(self, tree: str, tiny: bool) -> None:
        command = [sys.executable, os.path.abspath(__file__), "--serve", *["--tiny"] * tiny]
        paths = filter(None, (os.path.abspath(tree), os.environ.get("PYTHONPATH")))
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.tree = self.read()["tree"]
        if not self.tree.startswith(os.path.abspath(tree)):
            raise SystemExit(f"{tree}: percolab was imported from {self.tree}")

    def read(self) -> dict[str, Any]:
        """Return what came of the last request."""
        while True:
            line = self._process.stdout.readline()  # type: ignore[union-attr]
            if not line:
                raise SystemExit("a worker has ended")
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found

    def begin(self, case: str, calls: int) -> None:
        """Ask for the best of some calls of a case."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([case, calls]) + "\n")
        self._process.stdin.flush()

    def time(self, case: str, calls: int) -> dict[str, Any]:
        """Return the best of some calls of a case."""
        self.begin(case, calls)
        return self.read()

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(workers: list[Worker], case: str, seconds: float, turns: int) -> str:
    """Return the line of a case."""
    end = time.monotonic() + seconds
    # The first turn makes the objects and compiles, in both at a time.
    for worker in workers:
        worker.begin(case, 1)
    first = [worker.read() for worker in workers]
    errors = [found["error"] for found in first if "error" in found]
    if errors:
        return f"{case:32} {'; '.join(errors)}"
    calls = max(1, min(20, int(0.05 / max(found["best"] for found in first))))
    times: list[list[float]] = [[], []]
    while len(times[1]) < turns and (time.monotonic() < end or len(times[1]) < 3):
        for own, worker in zip(times, workers):
            own.append(worker.time(case, calls)["best"])
    before, after = (statistics.median(own) for own in times)
    ratios = [b / a for a, b in zip(*times)]
    spread = statistics.pstdev(ratios)
    return (
        f"{case:32} {1e3 * before:10.3f} {1e3 * after:10.3f} {after / before:7.3f} {spread:7.3f} "
        f"{len(ratios):5}"
    )


def main() -> None:
    """Compare two trees, case by case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="*", metavar="TREE", help="BEFORE and AFTER")
    parser.add_argument("--budget", type=float, default=220.0, help="seconds of all cases")
    parser.add_argument("--turns", type=int, default=40, help="turns of a case, at most")
    parser.add_argument("--cases", default="", help="part of the names of the cases")
    parser.add_argument("--tiny", action="store_true", help="sizes for CUDA's simulator")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.tiny)
        return
    if len(given.trees) != 2:
        parser.error("give two trees")
    begin = time.monotonic()
    workers = [Worker(tree, given.tiny) for tree in given.trees]
    for name, worker in zip(("before", "after"), workers):
        print(f"{name}: {worker.tree}")
    print(f"{'case':32} {'before ms':>10} {'after ms':>10} {'ratio':>7} {'spread':>7} {'turns':>5}")
    cases = [case for case in CASES if given.cases in case]
    for n, case in enumerate(cases):
        left = given.budget - (time.monotonic() - begin)
        print(compare(workers, case, left / (len(cases) - n), given.turns), flush=True)
    for worker in workers:
        worker.end()


if __name__ == "__main__":
    main()
