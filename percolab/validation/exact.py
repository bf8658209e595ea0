"""Comparison with exact enumerations of tiny graphs: of all configurations, and of samples."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import TOP, XORWOW
from percolab.coupled import fit_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.measure.rows import CLUSTERS, SPANNING, SUM_SQUARES
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    compare_means,
    differing,
    list_labelers,
    measure_words,
    sampled_rows,
)
from percolab.validation.enumeration import (
    Counts,
    count_configurations,
    evaluate_counts,
    mean_threshold,
)

#: Tiny lattices by name: lattice, shape, boundary of every axis.
_TINY = {
    "square 3 x 3": ("square", (3, 3), "open"),
    "square torus 2 x 2": ("square", (2, 2), "periodic"),
    "triangular 2 x 3": ("triangular", (2, 3), "open"),
    "triangular torus 2 x 2": ("triangular", (2, 2), "periodic"),
    "honeycomb 4 x 3": ("honeycomb", (4, 3), "open"),
    "cubic 2 x 2 x 2": ("cubic", (2, 2, 2), "open"),
}
_BETHE = "Bethe lattice, 2 shells"


#: A quantity's name, the function that reads it from rows, and exact sums by number of open bonds.
_Quantity = tuple[str, Callable[[NDArray[np.int64]], NDArray[np.int64]], Counts]


def _topology(name: str) -> Topology:
    if name == _BETHE:
        return bethe_topology(2)
    lattice_name, shape, boundary = _TINY[name]
    return load_lattice(lattice_name).topology(shape, (boundary,) * len(shape))


def _list_quantities(name: str, topology: Topology) -> list[_Quantity]:
    """Return clusters, spanning along every open axis, and squared sizes."""
    bonds = [(int(owner), int(other)) for _, owner, other in topology.bonds()]
    ends = [topology.end_layers[axis] for axis in topology.open_axes]
    clusters, squares, *spanning = count_configurations(topology.num_points, bonds, ends)
    return [
        (f"clusters of {name}", lambda rows: rows[:, CLUSTERS], clusters),
        *(
            (f"{name} spans along axis {axis}", partial(_spans, axis), counts)
            for axis, counts in zip(topology.open_axes, spanning)
        ),
        (f"squared sizes of {name}", lambda rows: rows[:, SUM_SQUARES], squares),
    ]


def _spans(axis: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(rows[:, SPANNING] >> axis & 1)


def _all_configurations(name: str, conditions: Conditions) -> Iterator[Outcome]:
    topology, device = _topology(name), conditions.device
    quantities, count = _list_quantities(name, topology), topology.num_bonds
    is_open = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)
    words = np.zeros((len(is_open), topology.num_classes), np.uint32)
    for bond, (k, owner) in enumerate(topology.bonds()[:, :2].tolist()):
        words[:, k] |= is_open[:, bond].astype(np.uint32) << np.uint32(owner)
    for each in list_labelers(device.kind, topology):
        labeler = fit_coupling(device, topology, name=each, most=len(words)).labeler
        rows = measure_words(labeler, words)
        wrong = 0
        for _, read, counts in quantities:
            summed = np.zeros(len(counts), np.int64)
            np.add.at(summed, is_open.sum(axis=1), read(rows))
            wrong += int(np.sum(summed != np.array(counts)))
        note = f"sums over {len(rows)} configurations"
        yield differing(f"{each}, {name}: sums unlike the exact", wrong, note)


def _sampled(name: str, conditions: Conditions) -> Iterator[Outcome]:
    topology, p = _topology(name), 0.4
    samples = conditions.count(quick=100_000, full=2_000_000)
    rows = sampled_rows(conditions, topology, p, samples, stream=("exact", name))
    values = {
        f"{text}, p = {p}": (read(rows), evaluate_counts(counts, p))
        for text, read, counts in _list_quantities(name, topology)
    }
    yield from compare_means(f"{name}, p = {p}", values)


def _thresholds(conditions: Conditions) -> Iterator[Outcome]:
    name = "square 3 x 3"
    topology = _topology(name)
    numbers = np.arange(conditions.count(quick=20_000, full=1_000_000), dtype=np.uint64)
    coupling = fit_coupling(conditions.device, topology, most=numbers.size)
    seed = conditions.stream_seed("exact threshold")
    thresholds = find_thresholds(coupling, XORWOW, seed, numbers, (0, TOP)) / TOP
    spanning = _list_quantities(name, topology)[1:-1]
    values = {
        f"mean threshold, {text}": (each, mean_threshold(counts))
        for (text, _, counts), each in zip(spanning, thresholds.T, strict=True)
    }
    yield from compare_means(f"thresholds of {name}", values)


CHECKS = (
    *(
        Check("enumerations", f"{words} of {name}", partial(run, name))
        for words, run in (("all", _all_configurations), ("samples", _sampled))
        for name in (*_TINY, _BETHE)
    ),
    Check("enumerations", "thresholds", _thresholds),
)
