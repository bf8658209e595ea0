"""Are digits of two bonds of a word related?  Parities of raw digits, and what they do to p_c.

The relations of XORWOW's recurrence that a pair of bonds i, j can feel are those of planes 0, 4, 5
and of planes 0, 1, 4, 6 (randomness_relations.py): some of these digits are taken from bond
i and the others from bond j.  For every such split and every (i, j) the bias of the parity of the
digits is counted on a GPU.  The correlation of the two bonds at p is the sum over splits of the
bias times the product of Walsh coefficients of u < p, 2^-8 or less: a bias that is known to 3e-6 is
a correlation known to 6e-8, where counting open bonds of as many words gives 3e-6.

From these correlations and the linear response of p_c (linear_response.py) follows by how
much these relations move p_c, with its error.

    python results/randomness/randomness_digits.py --out results/randomness
"""

import itertools
import math
import platform
from pathlib import Path

import click
import cupy
import numba
import numpy as np
from numba import uint32, uint64
from randomness_lanes import Line, lane_module
from randomness_relations import walsh_amplitude

from percolab.bonds.xorwow import next_digits, xorwow_state
from percolab.kernels.cuda import cuda

SETS = ((0, 4, 5), (0, 1, 4, 6))
#: S(d) of linear-response.txt, L = 8: p_c moves by S(d) times the mean correlation of bonds whose
#: owners are d apart; the last stands for all larger d.
RESPONSE = {
    "cubic": (0.248813, (-0.0419, -0.0142, -0.0056, -0.0032)),
    "fcc": (0.120164, (-0.0134, -0.0030, -0.0013, 0.0003)),
}
BATCH = 2**27
_PLANES = 7
_BLOCKS, _BLOCK = 132 * 8, 256


@cuda.jit
def _planes_kernel(seed, sample, planes):
    """Write the first digit planes of words 0, 1, ... of a sample: uint32 (7, words)."""
    word = uint64(cuda.blockIdx.x) * uint64(cuda.blockDim.x) + uint64(cuda.threadIdx.x)
    if word < planes.shape[1]:
        v0, v1, v2, v3, v4, d = xorwow_state(seed, sample, word)
        for plane in range(_PLANES):
            digits, v0, v1, v2, v3, v4, d = next_digits(uint32(plane), v0, v1, v2, v3, v4, d)
            planes[plane, word] = digits


def splits():
    """Return (planes of bond i, planes of bond j) for every way to share a set of planes."""
    found = []
    for planes in SETS:
        for count in range(1, len(planes)):
            for own in itertools.combinations(planes, count):
                found.append((own, tuple(plane for plane in planes if plane not in own)))
    # (i, j) runs over all ordered pairs, so that a split and its mirror image are one.
    return [split for split in found if min(split[0]) < min(split[1])]


def biases(words: float, seed: int) -> tuple[int, dict]:
    """Return (words, {split: biases float64 (32, 32)}): of parities of bonds i and j."""
    kernel = lane_module().get_function("digit_parities")
    planes = cuda.device_array((_PLANES, BATCH), np.uint32)
    view = cupy.asarray(planes)
    odd = {split: cupy.zeros((32, 32), np.uint64) for split in splits()}
    batches = max(math.ceil(words / BATCH), 1)
    for n in range(batches):
        _planes_kernel[BATCH // 256, 256](np.uint64(seed), np.uint64(n), planes)
        for (own, others), found in odd.items():
            masks = [np.uint32(sum(1 << plane for plane in part)) for part in (own, others)]
            arguments = (view, np.uint64(BATCH), *masks, np.uint64(BATCH // 32), found)
            kernel((_BLOCKS,), (_BLOCK,), arguments)
    total = batches * BATCH
    rolled = {}
    for split, found in odd.items():
        counts = cupy.asnumpy(found).astype(float)
        # Row d, column l: bonds l and l + d.
        table = np.empty((32, 32))
        for d in range(32):
            table[np.arange(32), (np.arange(32) + d) % 32] = 1 - 2 * counts[d] / total
        rolled[split] = table
    return total, rolled


def shift_of(lattice: str, total: int, found: dict) -> tuple[float, float]:
    """Return by how much the counted biases move p_c, with its standard error."""
    p, response = RESPONSE[lattice]
    shift, variance = 0.0, 0.0
    for (own, others), table in found.items():
        amplitude = walsh_amplitude({0: own, 1: others}, p)
        for i, j in itertools.permutations(range(32), 2):
            weight = response[min(abs(i - j), len(response)) - 1] / 32 * amplitude
            shift += weight * table[i, j]
            variance += weight**2 / total
    return shift, math.sqrt(variance)


@click.command()
@click.option("--words", default=1e11, show_default=True, help="Words counted.")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=click.Path(file_okay=False), help="Folder of digits-xorwow.txt.")
def main(words, seed, out):
    """Count parities of digits of pairs of bonds, and bound what they do to p_c."""
    total, found = biases(words, seed)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    versions = f"Python {platform.python_version()}, numba {numba.__version__}"
    lines = [f"xorwow, seed {seed}, {total:.2e} words; {device}, {versions}"]
    for (own, others), table in found.items():
        z = table * math.sqrt(total)
        name = f"{','.join(map(str, own))} | {','.join(map(str, others))}"
        places = [f"{i},{j}" for i in range(32) for j in range(32)]
        lines.append(str(Line(name, 0.5, total, z.ravel(), places, 1 / math.sqrt(total))))
    for lattice in RESPONSE:
        shift, error = shift_of(lattice, total, found)
        lines.append(f"{lattice}: the biases as counted move p_c by {shift:+.1e} +- {error:.1e}")
    text = "\n".join(lines)
    click.echo(text)
    if out:
        Path(out).mkdir(parents=True, exist_ok=True)
        (Path(out) / "digits-xorwow.txt").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
