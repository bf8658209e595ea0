"""Time percolab against Newman and Ziff's algorithm: all p of a sample, serial, on the same core.

Bonds are opened one by one in random order and joined by union-find, as in Newman and Ziff, Phys.
Rev. E 64, 016706 (2001); after each bond the number of clusters, the largest one and the sum of
squared sizes are noted, and where the sample begins to span.  What they find with the bonds in the
order of percolab's own uniform numbers is compared with percolab's rows first, and the bond at
which it begins to span with percolab's exact threshold T: they are equal.

Times are medians, in turns, in one process: shuffling the bonds as Newman and Ziff do, opening all
of them, and percolab's rows of a sample, bonds included, at one p and at a grid of p, and its T.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numba import int64, njit, uint32

from percolab.benchmark.records import compute_p, make_grid
from percolab.benchmark.timer import make_timer
from percolab.bonds.digits import fill_planes, leading_digits
from percolab.bonds.words import XORWOW, p_to_threshold
from percolab.coupled import new_coupling
from percolab.coupled.thresholds import find_thresholds
from percolab.kernels.device import Device
from percolab.kernels.neighbours import has_bit
from percolab.labelers import DEFAULT_LABELER
from percolab.lattices.lattice import load_lattice
from percolab.lattices.topology import Topology
from percolab.measure.rows import CLUSTERS, LARGEST, SPANNING, SUM_SQUARES
from percolab.store.provenance import package_versions
from percolab.tasks.values import parse_sizes

#: Columns of percolab's row that the algorithm finds; the second largest cluster it does not.
COLUMNS = (CLUSTERS, LARGEST, SUM_SQUARES, SPANNING)
SEED = 1
_PLANES = 63


@dataclass(frozen=True, eq=False)
class Curve:
    """What a sample is like with 0, 1, ... M of its bonds open.

    clusters, largest: int32 (M + 1,); squares: int64 (M + 1,), the sum of squared sizes;
    spans: int64 (16,), per axis the number of open bonds at which it begins to span, -1 for never.
    """

    clusters: np.ndarray
    largest: np.ndarray
    squares: np.ndarray
    spans: np.ndarray

    def row(self, count: int) -> list[int]:
        """Return COLUMNS of percolab's row with ``count`` bonds open."""
        axes = [axis for axis, first in enumerate(self.spans) if 0 <= first <= count]
        found = (self.clusters[count], self.largest[count], self.squares[count])
        return [*map(int, found), sum(1 << axis for axis in axes)]


class NewmanZiff:
    """The bonds of a topology, to be opened one by one, and the arrays this takes."""

    def __init__(self, topology: Topology) -> None:
        _, owner, other = topology.bonds().T
        self.owner, self.other = owner.astype(np.int32), other.astype(np.int32)
        self.order = np.arange(owner.size, dtype=np.int32)
        self.num_sites = topology.num_sites
        self._touched = np.zeros(topology.num_points, np.uint32)
        np.bitwise_or.at(self._touched, *topology.end_flags())
        self._forest = np.empty(topology.num_points, np.int32)
        self._reach = np.empty(topology.num_points, np.uint32)
        counts = owner.size + 1
        sums = np.empty(counts, np.int64)
        self.curve = Curve(
            np.empty(counts, np.int32), np.empty(counts, np.int32), sums, np.empty(16, np.int64)
        )

    def shuffle(self) -> None:
        """Bring the bonds into random order."""
        shuffle(self.order)

    def open_all(self) -> Curve:
        """Open the bonds in their order; return the curve, which the next call overwrites."""
        self._forest[:] = -1
        self._reach[:] = self._touched
        curve = self.curve
        notes = (curve.clusters, curve.largest, curve.squares, curve.spans)
        bonds = (self.owner, self.other, self.order)
        open_bonds_in_order(*bonds, self.num_sites, self._forest, self._reach, *notes)
        return curve


@njit(nogil=True, cache=True)
def shuffle(order):
    """Permute in place, as Newman and Ziff's program does (Fisher and Yates)."""
    for i in range(order.size):
        j = i + int64((order.size - i) * np.random.random())
        order[i], order[j] = order[j], order[i]


@njit
def _root(forest, i):
    """Return the root of i, halving the path; a root holds minus its size."""
    above = forest[i]
    while above >= 0:
        higher = forest[above]
        if higher < 0:
            return above
        forest[i] = higher
        i = higher
        above = forest[i]
    return i


@njit
def _note_spanning(reach, count, spans):
    """Note the axes that this reach is the first to span; bits 2a and 2a + 1 are axis a's ends."""
    both = uint32(reach & uint32(reach >> uint32(1)) & uint32(0x55555555))
    if both != uint32(0):
        for axis in range(spans.size):
            if spans[axis] < 0 and has_bit(both, 2 * axis):
                spans[axis] = count


@njit(nogil=True, cache=True)
def open_bonds_in_order(
    owner, other, order, num_sites, forest, reach, clusters, largest, squares, spans
):
    """Open the bonds one by one, noting the state after each, by weighted union-find."""
    spans[:] = -1
    for i in range(reach.size):
        _note_spanning(reach[i], 0, spans)
    count, top, total = num_sites, min(num_sites, 1), num_sites
    clusters[0], largest[0], squares[0] = count, top, total
    for n in range(order.size):
        bond = order[n]
        i, j = _root(forest, owner[bond]), _root(forest, other[bond])
        if i != j:
            if forest[i] > forest[j]:
                i, j = j, i
            total += 2 * int64(forest[i]) * int64(forest[j])
            forest[i] += forest[j]
            forest[j] = i
            count -= 1
            top = max(top, -int64(forest[i]))
            reached = uint32(reach[i] | reach[j])
            if reached != reach[i]:
                reach[i] = reached
                _note_spanning(reached, n + 1, spans)
        clusters[n + 1], largest[n + 1], squares[n + 1] = count, top, total


@njit(nogil=True, cache=True)
def _fill_digits(seed, sample, exists, digits):
    planes = np.empty(_PLANES, np.uint32)
    n = 0
    for word in range(exists.size):
        if exists[word] != uint32(0):
            fill_planes(XORWOW, seed, sample, word, planes)
        for bit in range(32):
            if has_bit(exists[word], bit):
                digits[n] = leading_digits(planes, _PLANES, bit)
                n += 1


def uniform_digits(topology: Topology, sample: int, *, seed: int = SEED) -> np.ndarray:
    """Return the first 63 binary digits of every bond's uniform number, uint64 (num_bonds,).

    In canonical order.  A bond is open at p when its digits are below ``p_to_threshold(p)``.
    """
    digits = np.empty(topology.num_bonds, np.uint64)
    _fill_digits(np.uint64(seed), np.uint64(sample), topology.exists.ravel(), digits)
    return digits


def rows_in_order(topology: Topology, sample: int, probabilities: np.ndarray) -> np.ndarray:
    """Return COLUMNS of a sample's rows, int64 (m, 4), found by opening its bonds in order of u."""
    program, digits = NewmanZiff(topology), uniform_digits(topology, sample)
    program.order = np.argsort(digits, kind="stable").astype(np.int32)
    thresholds = np.array([p_to_threshold(p) for p in probabilities], np.uint64)
    counts = np.searchsorted(digits[program.order], thresholds)
    curve = program.open_all()
    return np.array([curve.row(int(count)) for count in counts])


def thresholds_in_order(topology: Topology, sample: int) -> list[int]:
    """Return T of a sample along every axis, found by opening its bonds in order of u."""
    program, digits = NewmanZiff(topology), uniform_digits(topology, sample)
    program.order = np.argsort(digits, kind="stable").astype(np.int32)
    spans = program.open_all().spans[list(topology.open_axes)]
    return [int(digits[program.order[count - 1]]) + 1 if count else 0 for count in spans]


def in_turns(works: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """Return the median seconds of each work; the first run of each compiles and is left out."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for run in range(runs + 1):
        for name, work in works.items():
            begin = time.perf_counter()
            work()
            if run:
                times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(values)) for name, values in times.items()}


def compare(name: str, size: int, runs: int) -> dict[str, Any]:
    """Return the record of one lattice and size; SystemExit if the two disagree on a sample."""
    lattice = load_lattice(name)
    topology = lattice.topology(lattice.shape(size))
    labeler, program = new_coupling(None, "cpu", topology), NewmanZiff(topology)
    grid = make_grid(compute_p(lattice, 1.0), topology)
    thresholds = np.array([p_to_threshold(p) for p in grid], np.uint64)
    samples = np.zeros(grid.size, np.uint64)
    rows = labeler.rows(XORWOW, SEED, samples, thresholds)[:, COLUMNS]
    if not np.array_equal(rows, rows_in_order(topology, 0, grid)):
        sys.exit(f"{name}, L = {size}: Newman-Ziff and {DEFAULT_LABELER['cpu']} disagree")
    window = (int(thresholds[0]), int(thresholds[-1]))

    def find() -> np.ndarray:
        return find_thresholds(labeler, XORWOW, SEED, samples[:1], window)

    if find()[0].tolist() != thresholds_in_order(topology, 0):
        sys.exit(f"{name}, L = {size}: Newman-Ziff and percolab disagree on T")
    middle = slice(grid.size // 2, grid.size // 2 + 1)
    seconds = in_turns(
        {
            "shuffle": program.shuffle,
            "open_all": program.open_all,
            "rows_at_one_p": lambda: labeler.rows(
                XORWOW, SEED, samples[middle], thresholds[middle]
            ),
            "rows_at_grid": lambda: labeler.rows(XORWOW, SEED, samples, thresholds),
            "threshold": find,
        },
        runs,
    )
    whole = seconds["shuffle"] + seconds["open_all"]
    return {
        "lattice": name,
        "L": size,
        "num_sites": topology.num_sites,
        "num_bonds": topology.num_bonds,
        "p": grid.tolist(),
        "labeler": DEFAULT_LABELER["cpu"],
        "runs": runs,
        **{f"{part}_seconds": value for part, value in seconds.items()},
        "newman_ziff_over_one_p": whole / seconds["rows_at_one_p"],
        "newman_ziff_over_grid": whole / seconds["rows_at_grid"],
        "newman_ziff_over_threshold": whole / seconds["threshold"],
    }


@click.command(help=__doc__)
@click.option("--lattice", default="square", show_default=True)
@click.option("-L", "--size", "sizes", default="64,256,1024", show_default=True)
@click.option("--runs", type=click.IntRange(min=1), default=11, show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write records here.")
def main(lattice: str, sizes: str, runs: int, json_file: Path | None) -> None:
    """Compare, print and write."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    machine = make_timer(Device("cpu")).machine()
    click.echo(f"{machine['device_name']}, one core; ms a sample, {lattice} around p_c")
    click.echo(
        f"{'L':>6}{'shuffle':>10}{'open all':>10}{'one p':>10}{'21 p':>10}{'T':>10}"
        f"{'N-Z / one p':>13}{'N-Z / 21 p':>12}{'N-Z / T':>9}"
    )
    records = []
    for size in parse_sizes(sizes):
        record = compare(lattice, size, runs)
        records.append(record)
        parts = ("shuffle", "open_all", "rows_at_one_p", "rows_at_grid", "threshold")
        shown = "".join(f"{1e3 * record[f'{part}_seconds']:>10.3f}" for part in parts)
        ratios = (record[f"newman_ziff_over_{part}"] for part in ("one_p", "grid", "threshold"))
        click.echo(
            f"{size:>6}{shown}{next(ratios):>13.1f}{next(ratios):>12.1f}{next(ratios):>9.1f}"
        )
    if json_file is not None:
        document = {
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "machine": machine,
            "versions": package_versions(),
            "records": records,
        }
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
