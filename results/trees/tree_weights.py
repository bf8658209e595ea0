"""Mean weight a site of minimum spanning trees of tori, beside the integral of cluster numbers.

    python results/trees/tree_weights.py --out weights.txt [--device cuda] [--samples 1000]

The tree of a sample has the weight W = integral over p from 0 to 1 of (clusters at p - 1), since
every bond of the tree joins two clusters at its own u.  Both sides are measured on the same samples
by code that has nothing in common but the samples: trees, and rows at the nodes of a quadrature.
Their difference has no error of sampling beyond the quadrature's; its own error is that of the
blocks.
"""

from __future__ import annotations

import argparse
import math
import platform
import time
from pathlib import Path

import numpy as np

import percolab
from percolab.analysis.text import format_with_error
from percolab.analysis.trees import fit_trees
from percolab.measure.trees import WEIGHT_BITS
from percolab.store.results import StoredResults

#: Linear sizes of every lattice; the last has 2^20 sites and more.
SIZES = {
    "square": (64, 128, 256, 512, 1024),
    "triangular": (64, 128, 256, 512, 1024),
    "honeycomb": (64, 128, 256, 512, 1024),
    "cubic": (16, 32, 64, 96, 128),
}
#: Nodes of the Gauss-Legendre quadrature over p.
NODES = 96


def main() -> None:
    """Measure, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--lattices", default=",".join(SIZES))
    parser.add_argument("--sizes", help="in place of those of the list")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", encoding="utf-8") as out:

        def say(line: str) -> None:
            print(line, flush=True)
            print(line, file=out, flush=True)

        say(f"Python {platform.python_version()}, NumPy "
            f"{np.__version__}: --device {given.device} --samples "
            f"{given.samples}; tori, xorwow, seed 1")  # fmt: skip
        for lattice in given.lattices.split(","):
            sizes = SIZES[lattice]
            if given.sizes:
                sizes = tuple(int(size) for size in given.sizes.split(","))
            for line in study(lattice, sizes, given.samples, given.device):
                say(line)


def study(lattice: str, sizes: tuple[int, ...], samples: int, device: str) -> list[str]:
    """Return the lines of one lattice."""
    common = {"L": sizes, "boundary": "periodic", "samples": samples, "device": device}
    begin = time.perf_counter()
    trees = percolab.sweep(lattice, method="tree", **common)
    seconds = time.perf_counter() - begin
    x, weights = np.polynomial.legendre.leggauss(NODES)
    order = np.argsort(x)
    rows = percolab.sweep(lattice, p=((x + 1) / 2)[order].tolist(), **common)
    found = fit_trees(trees)
    lines = ["", f"{lattice}: trees in {seconds:.1f} s"]
    for item in found.means:
        difference, error = compared(trees, rows, item.L, weights[order] / 2)
        weight = format_with_error(item.weight.value, item.weight.error)
        lines.append(
            f"  L = {item.L:5}  weight/site {weight:18}  less the integral {difference:+.1e} "
            f"+- {error:.1e}"
        )
    limit = found.limit
    if limit is not None:
        lines.append(
            f"  infinite lattice  {limit}   chi2/dof "
            f"{limit.chi_square.value:.1f}/{limit.chi_square.dof}"
        )
    return lines


def compared(
    trees: StoredResults, rows: StoredResults, size: int, weights: np.ndarray
) -> tuple[float, float]:
    """Return tree weight less integral of (clusters - 1), a site, and the error of blocks."""
    (tree,) = (item for item in trees.tasks.values() if item.task.size == size)
    (row,) = (item for item in rows.tasks.values() if item.task.size == size)
    assert tree.task.block_size == row.task.block_size
    assert tree.numbers.tolist() == row.numbers.tolist()
    per_block = tree.task.block_size * tree.task.num_sites
    own = tree.column("tree_weight")[:, 0] * 2.0**-WEIGHT_BITS / per_block
    integral = (row.column("clusters") - row.task.block_size) @ weights / per_block
    difference = own - integral
    error = difference.std(ddof=1) / math.sqrt(difference.size) if difference.size > 1 else math.nan
    return float(difference.mean()), float(error)


if __name__ == "__main__":
    main()
