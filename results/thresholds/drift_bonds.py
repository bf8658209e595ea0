"""How far roots of the smallest tori are from p_c, for bonds of planar lattices: exact roots.

    python results/thresholds/drift_bonds.py [--device cuda] > results/thresholds/drift_bonds.txt

All sets of open bonds of tori of one cell or a few are counted, so their roots have no error.  They
are compared with the published p_c of the library's lattices, and for lattices with random cells
with p_c by ``percolab threshold``: squares of 2 x 2, 3 x 3 or 4 x 4 sites, some bonds of which are
left out, and some faces of which have a diagonal.  C is (root - p_c) L^4, L in grid points.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

import percolab
from percolab.errors import InputError
from percolab.lattices.lattice import Lattice, lattice_names, load_lattice

#: Most bonds of a torus whose configurations are counted.
MOST_BONDS = 26
CELLS = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 2))
#: Sites along an axis of a random cell, the share of the bonds, and of faces with a diagonal.
RANDOM = ((2, 0.8, 0.5, 10), (3, 0.8, 0.3, 12), (4, 0.65, 0.12, 12))
ERROR = 5e-6


class Torus(NamedTuple):
    """The ends of the bonds of a torus, their displacements, int64 (m,), (m,) and (m, 2)."""

    sites: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    step: NDArray[np.int64]


@njit(nogil=True)
def count_windings(sites, first, second, step):
    """Count sets of k bonds where a cluster wraps in two directions, and where none wraps."""
    bonds = first.size
    counts = np.zeros((bonds + 1, 2), np.int64)
    parent, away = np.empty(sites, np.int64), np.empty((sites, 2), np.int64)
    for chosen in range(1 << bonds):
        for site in range(sites):
            parent[site], away[site, 0], away[site, 1] = site, 0, 0
        opened, rank, x, y = 0, 0, 0, 0
        for bond in range(bonds):
            if not (chosen >> bond) & 1:
                continue
            opened += 1
            a, b = first[bond], second[bond]
            u, v = step[bond]
            while parent[a] != a:
                u, v, a = u + away[a, 0], v + away[a, 1], parent[a]
            while parent[b] != b:
                u, v, b = u - away[b, 0], v - away[b, 1], parent[b]
            if a != b:
                parent[b], away[b, 0], away[b, 1] = a, u, v
            elif rank == 0 and (u != 0 or v != 0):
                rank, x, y = 1, u, v
            elif rank == 1 and x * v != y * u:
                rank = 2
        if rank != 1:
            counts[opened, 1 - rank // 2] += 1
    return counts


def make_torus(lattice: Lattice, cells: tuple[int, int]) -> Torus:
    """Return a torus of so many cells along each axis."""
    shape = np.multiply(lattice.cell, cells)
    moves = [(x * lattice.cell[0], y * lattice.cell[1]) for x in range(cells[0])
             for y in range(cells[1])]  # fmt: skip
    places = {(x + dx, y + dy): None for x, y in sorted(lattice.sites) for dx, dy in moves}
    number = {place: n for n, place in enumerate(places)}
    ends = [
        (np.add(at, move), bond.offset) for bond in lattice.bonds for at in bond.at
        for move in moves
    ]  # fmt: skip
    first = [number[tuple(at.tolist())] for at, _ in ends]
    second = [number[tuple(((at + offset) % shape).tolist())] for at, offset in ends]
    return Torus(len(number), np.array(first), np.array(second), np.array([o for _, o in ends]))


def find_root(counts: NDArray[np.int64]) -> float:
    """Return where the two of :func:`count_windings` are equally probable."""
    opened = np.arange(len(counts))
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        weights = p**opened * (1 - p) ** opened[::-1]
        low, high = (p, high) if weights @ (counts[:, 0] - counts[:, 1]) < 0 else (low, p)
    return (low + high) / 2


def random_lattice(size: int, share: float, diagonals: float, seed: int) -> Lattice:
    """Return a lattice with a random cell, drawn without crossings; InputError: in pieces."""
    random, bonds = np.random.default_rng((size, seed)), []
    for x, y in np.ndindex(size, size):
        steps = [(0, 0, 1, 0), (0, 0, 0, 1)]
        kept = [step for step in steps if random.random() < share]
        if random.random() < diagonals:
            kept.append((0, 0, 1, 1) if random.random() < 0.5 else (1, 0, -1, 1))
        for dx, dy, u, v in kept:
            a, b = (x + dx, y + dy), (x + dx + u, y + dy + v)
            cells = np.floor_divide(b, size) - np.floor_divide(a, size)
            numbers = (xx % size + size * (yy % size) for xx, yy in (a, b))
            bonds.append((*numbers, tuple(cells.tolist())))
    sites = [(x / size, y / size) for y, x in np.ndindex(size, size)]
    name = f"random-{size}-{seed}"
    return Lattice.from_cell([(size, 0.0), (0.0, size)], sites, bonds, name=name)


def show(name: str, cells: tuple[int, int], lattice: Lattice, p_c: float, error: float) -> str:
    """Return a line of the table."""
    torus = make_torus(lattice, cells)
    root = find_root(count_windings(*torus))
    points = prod(np.multiply(lattice.cell, cells).tolist())
    return (
        f"{name:16}{cells[0]} x {cells[1]}{torus.first.size:7}{points**0.5:8.2f}{root:14.9f}"
        f"{root - p_c:+12.2e}{(root - p_c) * points**2:+12.5f}{error * points**2:10.5f}"
    )


def show_random(given: tuple[int, float, float, int]) -> str | None:
    """Return the line of a random lattice, None if it is in pieces or has too many bonds."""
    try:
        lattice = random_lattice(*given)
    except InputError:
        return None
    if len(make_torus(lattice, (1, 1)).first) > MOST_BONDS:
        return None
    device = sys.argv[2] if sys.argv[1:2] == ["--device"] else "cpu"
    found = percolab.threshold(lattice, error=ERROR, seed=1000 + given[3], device=device)
    return show(lattice.name, (1, 1), lattice, found.p_c, found.error)


def main() -> None:
    """Print the table."""
    print(
        f"{'lattice':16}{'cells':5}{'bonds':>7}{'L':>8}{'root':>14}{'off':>12}{'C':>12}{'+-':>10}"
    )
    planar = [name for name in lattice_names() if load_lattice(name).dimension == 2]
    for name in (name for name in planar if name != "square-nnn"):
        lattice = load_lattice(name)
        for cells in CELLS:
            if prod(cells) * sum(len(bond.at) for bond in lattice.bonds) <= MOST_BONDS:
                known = lattice.threshold("bond")
                print(show(name, cells, lattice, known.value, known.error), flush=True)
    given = [(*kind, seed) for *kind, count in RANDOM for seed in range(count)]
    with ThreadPoolExecutor(1 if "cuda" in sys.argv else 2) as pool:
        for line in pool.map(show_random, given):
            if line is not None:
                print(line, flush=True)


if __name__ == "__main__":
    main()
