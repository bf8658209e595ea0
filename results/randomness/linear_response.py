"""By how much p_c moves where bonds of a word are correlated, by linear response.

A word holds 32 consecutive owners of one class.  Let all pairs of bonds of one class whose owners
are d sites apart in a row have correlation c.  To first order the probability R of wrapping
changes by c times the covariance of R with the sum of z_a z_b over those pairs,
z = (x - p) / sqrt(p (1 - p)), and by dp times its covariance with the score of p.
So p_c moves by -c times their ratio, S(d) c.  A pair of lanes d apart is one of 32 positions in a
word: it moves p_c by S(d) c / 32, summed over classes.  All d come from the same samples, at c = 0:
exactly linear, no extrapolation.

Periodic lattices of L^3 sites; rows along all three axes count (the lattices' symmetry makes them
equal).  Own random numbers and own union-find: nothing is shared with what is judged but the bond
classes' offsets.  The errors are those of 20 batches.
"""

from __future__ import annotations

import time

import click
import numba
import numpy as np
from numba import njit, uint64

from percolab.lattices.lattice import load_lattice

CRITICAL = {"cubic": 0.24881185, "fcc": 0.12016377}
BATCHES = 20
#: Version 1: (distance, correlation at p_c) of lanes 0 and 2, by the exact law.
VERSION_1 = {"cubic": ((2, -3.88e-4),), "fcc": ((2, -2.24e-3),)}


@njit
def _root(parent, shift, site):
    """Return (root, displacement to it), with the whole path compressed."""
    moved = np.int64(0)
    top = site
    while parent[top] != top:
        moved += shift[top]
        top = parent[top]
    left = moved
    while parent[site] != top and site != top:
        following, step = parent[site], shift[site]
        parent[site], shift[site] = top, left
        left -= step
        site = following
    return top, moved


@njit
def _wraps(opened, offsets, size, parent, shift):
    """Return whether a cluster of open bonds (uint8[class, z, y, x]) closes around the torus."""
    for site in range(size**3):
        parent[site], shift[site] = site, 0
    for z in range(size):
        for y in range(size):
            for x in range(size):
                for k in range(len(offsets)):
                    if not opened[k, z, y, x]:
                        continue
                    dx, dy, dz = offsets[k]
                    there = ((z + dz) % size * size + (y + dy) % size) * size + (x + dx) % size
                    # A displacement of three coordinates in one integer.
                    step = np.int64(dx) + (np.int64(dy) << 20) + (np.int64(dz) << 40)
                    a, to_a = _root(parent, shift, (z * size + y) * size + x)
                    b, to_b = _root(parent, shift, there)
                    if a == b:
                        if to_a != step + to_b:
                            return True
                    elif a < b:
                        parent[b], shift[b] = a, to_a - step - to_b
                    else:
                        parent[a], shift[a] = b, step + to_b - to_a
    return False


@njit
def _pairs_in_rows(opened, size, both):
    """Count in both[d] the pairs of open bonds d apart in periodic rows along the three axes."""
    both[:] = 0
    for k in range(opened.shape[0]):
        for a in range(size):
            for b in range(size):
                for axis in range(3):
                    row = uint64(0)
                    for i in range(size):
                        if axis == 0:
                            bit = opened[k, a, b, i]
                        elif axis == 1:
                            bit = opened[k, a, i, b]
                        else:
                            bit = opened[k, i, a, b]
                        row |= uint64(bit) << uint64(i)
                    doubled = row | (row << uint64(size))
                    for d in range(1, len(both)):
                        x = row & (doubled >> uint64(d))
                        while x:
                            x &= x - uint64(1)
                            both[d] += 1


@njit
def sample(size, offsets, p, samples, seed):
    """Return float64[samples, 2 + size // 2]: wraps, open bonds - mean, then sums of z z at d."""
    classes = len(offsets)
    sites = size**3
    parent, shift = np.empty(sites, np.int64), np.empty(sites, np.int64)
    opened = np.empty((classes, size, size, size), np.uint8)
    flat = opened.reshape(-1)
    both = np.zeros(size // 2 + 1, np.int64)
    found = np.empty((samples, size // 2 + 2))
    np.random.seed(seed)
    for n in range(samples):
        count = 0
        for i in range(flat.size):
            flat[i] = np.random.random() < p
            count += flat[i]
        found[n, 0] = _wraps(opened, offsets, size, parent, shift)
        found[n, 1] = count - p * flat.size
        _pairs_in_rows(opened, size, both)
        for d in range(1, size // 2 + 1):
            # Each bond is in two pairs of its row; the mean over the three axes.
            total = both[d] / 3 - 2 * p * count + p * p * flat.size
            found[n, d + 1] = total / (p * (1 - p))
    return found


def response(name: str, size: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Return (S(d), its errors, note) for d = 1 ... size // 2, per unit of correlation."""
    offsets = np.array([bond.offset for bond in load_lattice(name).bonds], np.int64)
    p = CRITICAL[name]
    sums = []
    for batch in range(BATCHES):
        rows = sample(size, offsets, p, samples // BATCHES, seed * 1000 + batch)
        wraps = rows[:, 0] - rows[:, 0].mean()
        sums.append(np.append(wraps @ rows[:, 1:] / len(rows), rows[:, 0].mean()))
    cells = np.array(sums)
    slope = cells[:, 0] / (p * (1 - p))
    shifts = -cells[:, 1:-1].mean(axis=0) / slope.mean()
    spread = (cells[:, 1:-1] + shifts * slope[:, None]).std(axis=0, ddof=1) / BATCHES**0.5
    note = f"R = {cells[:, -1].mean():.4f}, dR/dp = {slope.mean():.2f}"
    return shifts, spread / slope.mean(), note


@click.command(help=__doc__)
@click.option("--lattice", "names", multiple=True, default=("cubic", "fcc"), show_default=True)
@click.option("-L", "sizes", multiple=True, type=int, default=(8, 12, 16), show_default=True)
@click.option("--samples", default=200_000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--bound", default=1e-9, show_default=True, help="Largest |correlation| of a pair.")
def main(
    names: tuple[str, ...], sizes: tuple[int, ...], samples: int, seed: int, bound: float
) -> None:
    """Sample and print."""
    click.echo(f"numpy {np.__version__}, numba {numba.__version__}; {samples} samples, seed {seed}")
    for name in names:
        for size in sizes:
            begin = time.process_time()
            shifts, errors, note = response(name, size, samples, seed)
            click.echo(f"{name}, L = {size}: {note}, {time.process_time() - begin:.0f} s")
            for d, (shift, error) in enumerate(zip(shifts, errors), 1):
                click.echo(f"  S({d}) = {shift:+.4f}({error:.4f})")
            first = sum(c * shifts[d - 1] for d, c in VERSION_1[name]) / 32
            wide = sum(abs(c) * errors[d - 1] for d, c in VERSION_1[name]) / 32
            click.echo(f"  version 1, lanes (0, 2): p_c moves by {first:+.2e}({wide:.0e})")
            # Beyond half a row the last distance stands for all farther ones (S falls with d).
            reach = np.append(np.abs(shifts) + 2 * errors, [0.0] * 31)[:31]
            reach[len(shifts) :] = abs(shifts[-1]) + 2 * errors[-1]
            worst = sum((32 - d) / 32 * reach[d - 1] for d in range(1, 32))
            click.echo(f"  all 496 pairs at most {bound:.1e}: p_c moves by < {worst * bound:.1e}")


if __name__ == "__main__":
    main()
