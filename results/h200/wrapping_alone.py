"""Times sums of blocks of small tori with the sums over clusters, and of what wraps alone.

    python results/h200/wrapping_alone.py > results/h200/wrapping-alone.txt

Whole calls by the host's clock, the last of three, ps a site and p.
"""

from math import prod

from numba import cuda
from targets import last_seconds, make_block_sums

from percolab.lattices.lattice import load_lattice

#: Grid points that a call labels.
LABELINGS = 2**31
#: Lattice, model, values of p and sizes.
CASES = (
    ("square", "bond", 1, (8, 16, 24, 32, 48, 64)),
    ("square", "bond", 9, (32,)),
    ("square", "site", 1, (8, 16, 32, 64)),
    ("honeycomb", "bond", 1, (8, 16, 32, 64)),
    ("triangular", "bond", 1, (16, 64)),
    ("kagome", "bond", 1, (16, 64)),
    ("kagome", "site", 1, (16, 64)),
    ("cubic", "bond", 1, (8, 12, 16)),
    ("cubic", "bond", 3, (8, 12, 16)),
    ("cubic", "site", 1, (8, 16)),
    ("bcc", "bond", 1, (8,)),
    ("diamond", "bond", 1, (8,)),
)


def main() -> None:
    name = cuda.get_current_device().name
    print(name.decode() if isinstance(name, bytes) else name)
    print(f"{'':28}{'with clusters':>16}{'wrapping alone':>16}")
    for lattice, model, points, sizes in CASES:
        for size in sizes:
            length = LABELINGS // (8 * points * prod(load_lattice(lattice).shape(size)))
            times = []
            for words in (("openings",), ("openings", "wrapping")):
                given = lattice, model, "periodic", size, points, length, LABELINGS
                work, sites = make_block_sums(*given, measure=words)
                times.append(1e12 * last_seconds(work) / sites)
            what = f"{lattice} {model} L={size}, {points} p"
            print(f"{what:28}{times[0]:16.2f}{times[1]:16.2f}", flush=True)


if __name__ == "__main__":
    main()
