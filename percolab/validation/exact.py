"""The engine against exact enumerations of tiny graphs: all configurations, and samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from percolab.bonds.words import TOP, XORWOW
from percolab.coupled.thresholds import find_thresholds
from percolab.labelers.forest import Labeler
from percolab.lattices.bethe import bethe_topology
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.measure.rows import CLUSTERS, SPANNING, SUM_SQUARES
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    coupling_for,
    differing,
    fraction_outcome,
    list_labelers,
    mean_outcome,
    sampled_rows,
    with_joint,
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


class _Exact(NamedTuple):
    """Exact sums over the configurations with n open bonds; spanning by open axis."""

    clusters: Counts
    sum_squares: Counts
    spanning: dict[int, Counts]


def _topology(name: str) -> Topology:
    if name == _BETHE:
        return bethe_topology(2)
    lattice_name, shape, boundary = _TINY[name]
    return load_lattice(lattice_name).topology(shape, (boundary,) * len(shape))


def _exact_sums(topology: Topology) -> _Exact:
    bonds = [(int(owner), int(other)) for _, owner, other in topology.bonds()]
    ends = [topology.end_layers[axis] for axis in topology.open_axes]
    clusters, squares, *spanning = count_configurations(topology.num_points, bonds, ends)
    return _Exact(clusters, squares, dict(zip(topology.open_axes, spanning)))


def _all_configurations(name: str, conditions: Conditions) -> Iterator[Outcome]:
    topology, device = _topology(name), conditions.device
    exact = _exact_sums(topology)
    count = topology.num_bonds
    is_open = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(bool)
    words = np.zeros((len(is_open), topology.num_classes), np.uint32)
    for bond, (k, owner) in enumerate(topology.bonds()[:, :2].tolist()):
        words[:, k] |= is_open[:, bond].astype(np.uint32) << np.uint32(owner)
    num_open = is_open.sum(axis=1)
    for labeler in list_labelers(device.kind, topology):
        coupling = coupling_for(device, topology, name=labeler, most=len(words))
        rows = _compute_rows(coupling.labeler, words)
        wrong = _wrong_sums(rows, num_open, exact)
        note = f"sums over {len(rows)} configurations"
        yield differing(f"{labeler}, {name}: sums unlike the exact", wrong, note)


def _compute_rows(labeler: Labeler, words: np.ndarray) -> np.ndarray:
    batch = labeler.batch
    parts = [
        labeler.join(batch.load(words[first : first + batch.capacity])).rows()
        for first in range(0, len(words), batch.capacity)
    ]
    return np.concatenate(parts)


def _wrong_sums(rows: np.ndarray, num_open: np.ndarray, exact: _Exact) -> int:
    """Return how many sums by number of open bonds are not the exact ones."""
    pairs = [(rows[:, CLUSTERS], exact.clusters), (rows[:, SUM_SQUARES], exact.sum_squares)]
    pairs += [(rows[:, SPANNING] >> axis & 1, sums) for axis, sums in exact.spanning.items()]
    wrong = 0
    for values, expected in pairs:
        summed = np.zeros(len(expected), np.int64)
        np.add.at(summed, num_open, values)
        wrong += int(np.sum(summed != np.array(expected)))
    return wrong


def _sampled(name: str, conditions: Conditions) -> Iterator[Outcome]:
    topology, p = _topology(name), 0.4
    exact = _exact_sums(topology)
    samples = conditions.count(quick=100_000, full=2_000_000)
    rows = sampled_rows(conditions, topology, p, samples, stream=("exact", name))
    clusters, expected = rows[:, CLUSTERS], evaluate_counts(exact.clusters, p)
    outcome = mean_outcome(f"clusters of {name}, p = {p}", clusters, expected)
    compared = [(outcome, clusters - expected)]
    for axis, counts in exact.spanning.items():
        spans, expected = rows[:, SPANNING] >> axis & 1, evaluate_counts(counts, p)
        text = f"{name} spans along axis {axis}, p = {p}"
        compared.append((fraction_outcome(text, spans, expected), spans - expected))
    yield from with_joint(f"{name}, p = {p}", compared)


def _thresholds(conditions: Conditions) -> Iterator[Outcome]:
    name = "square 3 x 3"
    topology = _topology(name)
    numbers = np.arange(conditions.count(quick=20_000, full=1_000_000), dtype=np.uint64)
    coupling = coupling_for(conditions.device, topology, most=numbers.size)
    seed = conditions.stream_seed("exact threshold")
    compared, thresholds = [], find_thresholds(coupling, XORWOW, seed, numbers, (0, TOP)) / TOP
    for axis, counts in _exact_sums(topology).spanning.items():
        text, expected = f"mean threshold of {name} along axis {axis}", mean_threshold(counts)
        outcome = mean_outcome(text, thresholds[:, axis], expected)
        compared.append((outcome, thresholds[:, axis] - expected))
    yield from with_joint(f"thresholds of {name}", compared)


CHECKS = (
    *(
        Check("enumerations", f"{words} of {name}", partial(run, name))
        for words, run in (("all", _all_configurations), ("samples", _sampled))
        for name in (*_TINY, _BETHE)
    ),
    Check("enumerations", "thresholds", _thresholds),
)
