"""Whether roots of many seeds scatter as their errors say: kagome bonds, L = 16, p = 0.5244.

    python results/thresholds/scatter.py [SEEDS] [BLOCKS] [BLOCK] [DEVICE]    # 115 1024 262144 cuda

Prints mean and width of the pulls, root minus the published p_c over its error, and the scatter of
the sums of blocks over what independent samples have: of D and of the open bonds.
"""

import sys

import numpy as np

import percolab
from percolab.analysis.roots import find_root
from percolab.lattices.lattice import load_lattice

LATTICE, SIZE, P, FIRST_SEED = "kagome", 16, 0.5244, 1001


def main() -> None:
    """Print a line."""
    given = [int(word) for word in sys.argv[1:4]]
    seeds, blocks, block = [*given, *(115, 1024, 2**18)[len(given) :]]
    device = sys.argv[4] if len(sys.argv) > 4 else "cuda"
    known = load_lattice(LATTICE).threshold("bond").value
    pulls, scatter = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        results = percolab.sweep(
            LATTICE, L=[SIZE], p=[P], samples=blocks * block, block_size=block, seed=seed,
            boundary="periodic", measure=("openings", "wrapping"), device=device,
        )  # fmt: skip
        (item,) = results.tasks.values()
        root = find_root([item]).value
        pulls.append((root.value - known) / root.error)
        two, none, opened = (
            item.column(name)[:, 0].astype(float)
            for name in ("wrapping_two", "wrapping_none", "openings")
        )
        total, bonds = item.num_samples, item.task.num_openings
        mean = (two - none).sum() / total
        variance = (two + none).sum() / total - mean**2
        of_d = ((two - none - item.samples * mean) ** 2 / (item.samples * variance)).sum()
        away = opened - item.samples * bonds * P
        of_bonds = (away**2 / (item.samples * bonds * P * (1 - P))).mean()
        scatter.append((of_d / (len(two) - 1), of_bonds))
    pull, (of_d, of_bonds) = np.array(pulls), np.mean(scatter, axis=0)
    print(f"{seeds} seeds of {blocks * block} samples: pulls {pull.mean():+.2f}, width "
          f"{pull.std(ddof=1):.2f}; blocks: D {of_d:.3f}, open bonds {of_bonds:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
