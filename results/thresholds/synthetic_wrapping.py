"""How often the errors of a threshold in three dimensions hold, on synthetic samples.

    python results/thresholds/synthetic_wrapping.py [seeds]

Numbers of wrapped axes are drawn from scaling functions like those of the simple cubic lattice, in
the design of ``percolab threshold``, with corrections that the fit does not know: amplitudes b and
c are normal with a width, B and C three times that, a third correction L^-3omega, and omega and
1/nu are off by their published errors, the nonlinear scaling field is of its natural size.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri

from percolab.analysis.quantities import BlockMoments, list_quantities
from percolab.analysis.quantity_fits import JointInput, make_fitter
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.wrapping_fit import DEGREES, QUANTITIES
from percolab.errors import AnalysisError

P_C, OMEGA, KNOWN = 0.2488, 1.2, Known(1.141, 0.0015, "", "")
#: Probits at p_c that one, two and three axes or more are wrapped around, and their slopes.
CRITICAL, SLOPES = ndtri([0.46, 0.233, 0.0804]), np.array([4.22, 4.33, 4.44])
#: Samples at the centres and sides of sizes, at a target of 1e-3 and of 1e-5.
DESIGNS = {
    "1e-3": {8: (2048, 256), 12: (2048, 256), 16: (2048, 256), 24: (2048, 256)},
    "1e-5": {
        8: (5_900_000, 370_000),
        12: (1_700_000, 110_000),
        16: (2_000_000, 120_000),
        24: (220_000, 14_000),
        32: (92_000, 5_800),
        48: (54_000, 3_500),
        64: (46_000, 2_900),
        96: (70_000, 4_400),
    },
}


@dataclass(frozen=True)
class Truth:
    """Widths of the amplitudes of corrections, of omega, and of the third correction."""

    size: float
    omega: float
    third: float

    def draw(self, rng: np.random.Generator) -> Scaling:
        """Return a scaling function of these widths."""
        b, c, B, C, E = (
            width * rng.normal(size=3)
            for width in (self.size, 1.3 * self.size, 3 * self.size, 4 * self.size, self.third)
        )
        n = rng.normal() / (P_C * (1 - P_C))
        omega, y = OMEGA + self.omega * rng.normal(), KNOWN.value + KNOWN.error * rng.normal()
        return Scaling(np.stack([b, c, B, C, E]), float(n), float(omega), float(y))


@dataclass(frozen=True)
class Scaling:
    """A scaling function; amplitudes: b, c, B, C and E of each probability, float64 (5, 3)."""

    amplitudes: np.ndarray
    n: float
    omega: float
    y: float

    def __call__(self, p: float, L: int) -> np.ndarray:
        """Return the probabilities of one, two and three wrapped axes or more."""
        t = p - P_C
        X, first = (t + self.n * t * t) * L**self.y, L**-self.omega
        b, c, B, C, E = self.amplitudes
        corrections = (b + c * X) * first + (B + C * X) * first**2 + E * first**3
        return np.minimum.accumulate(ndtr(CRITICAL + SLOPES * X + corrections))


def draw(rng: np.random.Generator, scaling: Scaling, L: int, p: np.ndarray, size: tuple[int, int]):
    """Return blocks of samples, of which each has the same random numbers at all p.

    size: blocks, and samples of each.
    """
    chances = np.array([scaling(x, L) for x in p])
    given = np.column_stack([chances[:, 0], chances[:, 1:] / chances[:, :-1]])
    given = np.maximum.accumulate(given, axis=0)
    parts = [np.diff([0.0, *given[:, axis], 1.0]) for axis in range(3)]
    cells = list(product(range(p.size + 1), repeat=3))
    weights = np.array([np.prod([parts[n][k] for n, k in enumerate(cell)]) for cell in cells])
    wraps = np.array(
        [[[q >= max(cell[: n + 1]) for n in range(3)] for q in range(p.size)] for cell in cells]
    )
    counts = rng.multinomial(size[1], weights / weights.sum(), size=size[0])
    sums = np.einsum("bc,cmk->bmk", counts, wraps.astype(float))
    found = {f"wrapping_{axis}": sums.sum(axis=2) / 3 for axis in "xyz"}
    found |= {"wrapping_any": sums[..., 0], "wrapping_all": sums[..., 2]}
    return BlockMoments(L, p, np.full(*size), found)


def pull(seed: int, truth: Truth, design: dict[int, tuple[int, int]]) -> tuple[float, float]:
    """Return p_c minus its value over its error, and the error."""
    rng = np.random.default_rng(seed)
    scaling, moments = truth.draw(rng), []
    offset = 0.02 * rng.normal()
    for L, (centre, side) in design.items():
        # P(any axis) changes by 0.12 to a side.
        p = P_C + (offset + np.array([-0.075, 0.0, 0.075])) * L**-KNOWN.value
        each = max(side // 64, 1)
        moments.append(draw(rng, scaling, L, p, (64, each)))
        moments.append(draw(rng, scaling, L, p[1:2], (centre // each - 64, each)))
    known = {item.name: item for item in list_quantities(["periodic"] * 3)}
    chosen = [known[name] for name in QUANTITIES]
    fitter, _, _ = make_fitter(JointInput(moments, chosen, [OMEGA] * 3, KNOWN), degrees=DEGREES)
    value = fitter.average(KNOWN).threshold
    if value.rejected:
        raise AnalysisError("rejected")
    return (value.value - P_C) / value.error, value.error


def main() -> None:
    """Print a row for each target and each width of the corrections."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("target  b  omega  third     n   mean  width   <1   <2    error   refused")
    for target, design in DESIGNS.items():
        for truth in (Truth(0, 0, 0), Truth(0.3, 0.2, 1), Truth(1, 0, 1), Truth(1, 0.2, 1)):
            found = []
            for seed in range(seeds):
                try:
                    found.append(pull(seed, truth, design))
                except AnalysisError:
                    continue
            pulls, errors = np.array(found).T
            print(
                f"{target:6s} {truth.size:3g} {truth.omega:5g} {truth.third:5g}  {pulls.size:5d}"
                f" {pulls.mean():+6.2f} {pulls.std(ddof=1):6.2f} {np.mean(abs(pulls) < 1):4.0%}"
                f" {np.mean(abs(pulls) < 2):4.0%} {np.median(errors):8.1e} {seeds - pulls.size:5d}",
                flush=True,
            )


if __name__ == "__main__":
    main()
