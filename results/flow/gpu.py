"""Bridges, backbones and paths on a GPU: the CPU's numbers, and times beside one core.

    python results/flow/gpu.py [SECONDS] [compare] [times] [planar] [large]

First all numbers of samples of many lattices are compared with the CPU's.  Then batches of samples
at p_c are read twice each, their bonds being known: labels, which bridges need, are part of the
time.  Lines have milliseconds of the batch and of one sample alone, and nanoseconds a site of the
batch and of one core.  What would begin after SECONDS, 130 unless given, is left out, with a line.
``planar`` compares bridges and backbones of planar lattices by labels of the dual with those by
words, and times both beside rows, and the kernels of the largest samples.  ``large`` times single
large samples whose sides are connected, read by all blocks, and compares them with those of one
block.  Stages that are named are done alone.
"""

from __future__ import annotations

import platform
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np

import percolab
from percolab.bonds.model import Model
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.flows import dual_flow_cuda
from percolab.flows.flow import Flow
from percolab.flows.flow_batch import FlowBatch, copy_net
from percolab.flows.large_flow import LargeFlow
from percolab.flows.large_paths import LargePaths
from percolab.flows.net import unpack_open
from percolab.flows.readers import Backbone, Bridges, Path
from percolab.flows.tile_net import make_tiles
from percolab.kernels.device import device_name, load_cuda
from percolab.labelers import new_labeler
from percolab.lattices.graph import graph_topology
from percolab.lattices.lattice import load_lattice

#: Lattice, cells along an axis, boundary, model, p, samples.
CASES = (
    ("square", 64, "oo", "bond", (0.45, 0.5, 0.6), 300),
    ("square", 37, "po", "site", (0.55, 0.6, 0.7), 300),
    ("square", 50, "pp", "bond", (0.5,), 300),
    ("square", 600, "po", "bond", (0.5, 0.51), 4),
    ("square", 2, "po", "bond", (0.5,), 100),
    ("triangular", 40, "po", "bond", (0.35, 0.5), 100),
    ("honeycomb", 24, "oo", "bond", (0.66, 0.8), 100),
    ("kagome", 20, "po", "site", (0.66, 0.9), 100),
    ("cubic", 16, "ooo", "bond", (0.25, 0.3), 100),
    ("cubic", 2, "ppo", "bond", (0.3,), 100),
    ("cubic", 40, "ppo", "site", (0.32,), 5),
    ("hypercubic-4d", 6, "pppo", "bond", (0.17,), 50),
)
#: Lattice, p_c, sizes, and the sites of a batch.
TIMED = (
    ("square", 0.5, (16, 64, 256, 1024), 2**28),
    ("cubic", 0.24881182, (16, 64), 2**28),
    ("square", 0.5, (4096,), 2**30),
)
READERS = (Bridges, Backbone, Path)
#: Planar lattices: boundary, p, and (size, samples, whether words are read, too).
PLANAR = (
    (
        ("square", "oo", 0.5),
        (
            (64, 2**14, True),
            (64, 1, True),
            (16, 65535, True),
            (256, 1024, True),
            (1024, 1, True),
            (1024, 64, True),
            (4096, 1, True),
        ),
    ),
    (("square", "po", 0.5), ((64, 2**14, True), (1024, 1, True), (4096, 1, False))),
    (("triangular", "oo", 0.34729636), ((64, 2**14, True), (1024, 1, True), (4096, 1, False))),
    (("honeycomb", "oo", 0.65270364), ((64, 2**14, True), (1024, 1, True), (4096, 1, False))),
    (("square", "oo", 0.6), ((64, 2**14, True), (1024, 1, True), (4096, 1, False))),
)
#: Single large samples.
LARGE = (
    ("square", 0.5, (256, 512, 1024, 2048, 4096)),
    ("cubic", 0.24881182, (32, 64, 128, 256)),
)
STAGES = ("compare", "times", "planar", "large")
START = time.perf_counter()


def elapsed() -> float:
    """Return the seconds since the start."""
    return time.perf_counter() - START


def compare(what: str, structure: Any, topology: Any, model: str, ps: Any, samples: int) -> bool:
    """Compare numbers of samples with the CPU's; print whether they are equal, and return it."""
    key = XORWOW, 2**63 + 9, np.arange(samples, dtype=np.uint64)
    thresholds = np.array([p_to_threshold(p) for p in ps], np.uint64)
    # Labels are those of any labeler; the kernels of tiles, one for each lattice, take long.
    name = None if "square" in what else "four_step"
    device, host = (
        new_coupling(labeler, kind, topology, Model.parse(model), capacity=capacity)
        for labeler, kind, capacity in ((name, "cuda", 128), (None, "cpu", 1))
    )
    good = True
    for reader in READERS if topology.open_axes else READERS[:1]:
        found, expected = (
            reader(structure, ()).rows(coupling, *key, thresholds) for coupling in (device, host)
        )
        different = np.argwhere(found != expected)
        if different.size:
            where = tuple(different[0].tolist())
            good = False
            print(
                f"  DIFFERENT {reader.word}: {len(different)} of {found.size} numbers, first "
                f"of (sample, p, number) {where}: GPU {found[where[:2]]}, CPU {expected[where[:2]]}"
            )
        elif not expected.any():
            print(f"  nothing to compare: {reader.word}")
    print(
        f"{'OK' if good else 'NOT EQUAL'} {what} {model} p = {ps}  [{elapsed():.0f} s]", flush=True
    )
    return good


def compare_all() -> bool:
    """Compare all cases, and a graph with hubs, loops and parallel bonds."""
    good = True
    for name, size, letters, model, ps, samples in CASES:
        lattice = load_lattice(name)
        boundary = tuple({"o": "open", "p": "periodic"}[letter] for letter in letters)
        topology = lattice.topology(lattice.shape(size), boundary)
        what = f"{name} {size} {letters}"
        good &= compare(what, lattice, topology, model, ps, samples)
    rng = np.random.default_rng(1)
    pairs = np.concatenate([rng.integers(0, 3000, (4000, 2)), [(0, i) for i in range(1, 900)]])
    graph = graph_topology(3000, pairs, source=[5, 6, 7], target=range(100, 140))
    for model in ("bond", "site"):
        good &= compare("graph", None, graph, model, (0.4, 0.7), 100)
    return good


def least_ms(work: Any, repeats: int) -> float:
    """Return the time of the fastest call, which waits for the device, in ms."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def core_ns(reader: Any, topology: Any, words: Any, seed: int, sites: int) -> tuple[float, Any]:
    """Return the time of one core in ns a site, and the numbers of a sample."""
    host = reader(None, ())
    circuit = host._of_topology(topology)
    is_open = np.empty(len(circuit.bonds.places), np.uint8)
    times = []
    for sample, own in enumerate(words):
        unpack_open(own, circuit.bonds.places, is_open)
        flow = Flow(circuit, is_open.copy(), seed, sample)
        start = time.process_time()
        found = host.read(flow)
        times.append(time.process_time() - start)
        if sample == 0:
            first = found
    return 1e9 * sum(times) / len(times) / sites, first


def time_reading(what: str, reading: Any, items: int, sites: int, *, many: bool) -> None:
    """Print the times of one reading; many: for several numbers of threads."""
    reading.rows(items)  # compiles
    chosen = reading.threads
    for threads in sorted({32, 64, 128, 256, 512, chosen}) if many else (chosen,):
        reading.threads = threads
        whole = least_ms(lambda: reading.rows(items), 2)
        blocks = min(reading.blocks, items)
        print(
            f"{what} {items:6} samples, {threads:3} threads, {blocks:5} blocks "
            f"{whole:9.3f} ms {1e6 * whole / items / sites:8.4f} ns a site"
            f"{' <- chosen' if threads == chosen else ''}",
            flush=True,
        )
    reading.threads = chosen
    alone = least_ms(lambda: reading.rows(1), 2)
    print(f"{what} one sample alone {alone:9.3f} ms", flush=True)


def time_size(name: str, p: float, size: int, batch_sites: int, last: float) -> None:
    """Print the times of one size."""
    lattice = load_lattice(name)
    topology = lattice.topology(lattice.shape(size), ("open",) * lattice.dimension)
    sites = topology.num_points
    labeler = new_labeler(None, "cuda", topology, capacity=max(batch_sites // sites, 1))
    batch, seed = labeler.batch, 3
    items = batch.capacity
    samples = np.arange(items, dtype=np.uint64)
    batch.fill(XORWOW, seed, samples, np.full_like(samples, p_to_threshold(p)))
    words = batch.copy_open_words(min(items, 20, max(2**21 // sites, 1)))
    for reader in READERS:
        what = f"{name:7}{size:5} {reader.word:9}"
        if elapsed() > last:
            print(f"{what} left out after {elapsed():.0f} s")
            continue
        net = copy_net(reader(None, ())._make_circuit(topology), reader.word)
        reading = FlowBatch(labeler, net, reader.word, len(reader.numbers))
        time_reading(what, reading, items, sites, many=size in (64, 1024, 4096))
        if sites <= 2**20:
            core, expected = core_ns(reader, topology, words, seed, sites)
            found = reading.rows(1)[0].tolist()
            equal = "OK" if found == list(expected) else f"NOT EQUAL {found} {expected}"
            print(f"{what} one core {core:9.1f} ns a site, {equal} [{elapsed():.0f} s]", flush=True)
        # Its memory goes before that of the next is made.
        del reading


def kernel_times(reading: Any, launches: Any) -> str:
    """Return the times of the kernels that read one sample, those of labelers together, as text."""
    events = []

    def timed(launch: Any) -> Any:
        def launched(kernel: Any, *arguments: Any, **more: Any) -> None:
            pair = [cuda.event(timing=True) for _ in range(2)]
            pair[0].record(launches.stream)
            launch(kernel, *arguments, **more)
            pair[1].record(launches.stream)
            name = kernel.py_func.__name__ if hasattr(kernel, "py_func") else str(kernel)
            events.append((name, pair))

        return launched

    cuda, own = load_cuda(), ("each", "one", "blocks")
    names = [name for name in vars(dual_flow_cuda) if name.endswith("_kernel")]
    for name in own:
        setattr(launches, name, timed(getattr(launches, name)))
    for _ in range(2):
        events.clear()
        reading._read(0, 1)
        launches.wait()
    for name in own:
        delattr(launches, name)
    times: dict[str, float] = {}
    labels = 0
    for name, pair in events:
        if name == "dual_words_kernel" or name == "keep_trails_kernel":
            labels += 1
        key = name if name in (*names, "dual_words_kernel") else f"labels {labels}"
        times[key] = times.get(key, 0.0) + cuda.event_elapsed_time(*pair)
    return ", ".join(f"{key} {ms:.3f}" for key, ms in times.items())


def time_planar(case: tuple[str, str, float], size: int, items: int, *, by_words: bool) -> bool:
    """Print times of rows, bridges and backbones; return whether words give the same."""
    name, letters, p = case
    lattice = load_lattice(name)
    boundary = tuple({"o": "open", "p": "periodic"}[letter] for letter in letters)
    topology = lattice.topology((size, size), boundary)
    labeler = new_labeler(None, "cuda", topology, capacity=items)
    batch, items = labeler.batch, labeler.batch.capacity
    samples, good = np.arange(items, dtype=np.uint64), True

    def fill() -> None:
        batch.fill(XORWOW, 3, samples, np.full(items, p_to_threshold(p), np.uint64))

    def row() -> None:
        batch.launches.call(("row", items), lambda: labeler.join(items).enqueue_rows())
        batch.launches.wait()

    fill()
    row()
    each, what = 1e9 / items / size**2, f"planar {name} {letters} {p:.2f} {size:5} {items:6}"
    print(f"{what} row {least_ms(row, 6):9.3f} ms [{elapsed():.0f} s]", flush=True)
    for reader in (Backbone, Bridges):
        start, host = time.perf_counter(), ""
        reading = reader(lattice, topology.shape)._make_on_device(labeler)
        made = time.perf_counter() - start
        # A single sample whose sides are connected.
        while items == 1 and reader is Backbone and not reading.rows(1).any():
            samples += np.uint64(1)
            fill()
        found = reading.rows(items)
        ms = least_ms(lambda each=reading: each.rows(items), 6)
        if by_words:
            words = reader(None, topology.shape)._make_on_device(labeler)
            equal = np.array_equal(found, words.rows(items))
            before = least_ms(lambda each=words: each.rows(items), 3)
            good &= equal
            kind = type(words).__name__
            host = f"words {before:9.3f} ms ({kind}), {'OK' if equal else 'NOT EQUAL'} "
            del words
        print(
            f"{what} {reader.word:8} {ms:9.3f} ms {each * ms:8.2f} ps a site, {host}"
            f"{type(reading).__name__}, made in {made:.1f} s, sum {found.sum(axis=0).tolist()} "
            f"[{elapsed():.0f} s]",
            flush=True,
        )
        if reader is Backbone and size >= 1024 and items == 1:
            print(f"{what} kernels {kernel_times(reading, batch.launches)}", flush=True)
        # Its memory goes before that of the next is made.
        del reading
        batch.launches.forget()
    return good


def time_large(name: str, p: float, size: int) -> bool:
    """Print times of one sample read by all blocks, and by one; return whether both are equal."""
    lattice = load_lattice(name)
    topology = lattice.topology(lattice.shape(size), ("open",) * lattice.dimension)
    labeler = new_labeler(None, "cuda", topology, capacity=1)
    batch, sample, good = labeler.batch, np.zeros(1, np.uint64), True
    batch.fill(XORWOW, 3, sample, np.full(1, p_to_threshold(p), np.uint64))
    for reader in (Backbone, Bridges):
        circuit, word = reader(None, ())._make_circuit(topology), reader.word
        reading = LargeFlow(labeler, make_tiles(circuit, topology.shape), word, len(reader.numbers))
        while reader is Backbone and not reading.rows(1).any():
            sample += np.uint64(1)
            batch.fill(XORWOW, 3, sample, np.full(1, p_to_threshold(p), np.uint64))
        found = reading.rows(1)
        alone = least_ms(lambda each=reading: each.rows(1), 5)
        blocks = FlowBatch(labeler, copy_net(circuit, word), word, len(reader.numbers))
        equal = np.array_equal(found, blocks.rows(1))
        before = least_ms(lambda each=blocks: each.rows(1), 2)
        good &= equal
        print(
            f"large {name:7}{size:5} {word:9} sample {sample[0]}: all blocks {alone:8.3f} ms, one "
            f"{before:8.3f} ms, {'OK' if equal else 'NOT EQUAL'} [{elapsed():.0f} s]",
            flush=True,
        )
        # Their memory goes before that of the next is made.
        del reading, blocks
        batch.launches.forget()
    circuit, numbers = Path(None, ())._make_circuit(topology), len(Path.numbers)
    paths = LargePaths(batch, circuit, numbers)
    blocks = FlowBatch(labeler, copy_net(circuit, "path"), "path", numbers)
    equal = np.array_equal(paths.rows(1), blocks.rows(1))
    alone, before = (least_ms(lambda each=each: each.rows(1), 4) for each in (paths, blocks))
    good &= equal
    print(
        f"large {name:7}{size:5} path      sample {sample[0]}: both ends {alone:8.3f} ms, one "
        f"{before:8.3f} ms, {'OK' if equal else 'NOT EQUAL'} [{elapsed():.0f} s]",
        flush=True,
    )
    return good


def main() -> None:
    """Compare, and print times."""
    named = [word for word in sys.argv[1:] if word in STAGES] or STAGES
    numbers = [word for word in sys.argv[1:] if word not in STAGES]
    last = float(numbers[0]) if numbers else 130.0
    print(f"percolab {percolab.__version__}, numba-cuda {version('numba-cuda')}", end=", ")
    print(f"Python {platform.python_version()}, {device_name(load_cuda())}", flush=True)
    good = compare_all() if "compare" in named else True
    for name, p, sizes, batch_sites in TIMED if "times" in named else ():
        for size in sizes:
            if elapsed() > last:
                print(f"{name} {size}: left out after {elapsed():.0f} s")
            else:
                time_size(name, p, size, batch_sites, last)
    for case, sizes in PLANAR if "planar" in named else ():
        for size, items, by_words in sizes:
            if elapsed() > last:
                print(f"planar {case} {size} {items}: left out after {elapsed():.0f} s")
            else:
                good &= time_planar(case, size, items, by_words=by_words)
    for name, p, sizes in LARGE if "large" in named else ():
        for size in sizes:
            if elapsed() > last:
                print(f"large {name} {size}: left out after {elapsed():.0f} s")
            else:
                good &= time_large(name, p, size)
    print("all equal" if good else "NOT ALL EQUAL")


if __name__ == "__main__":
    main()
