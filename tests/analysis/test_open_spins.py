"""Open sides of the Ising model: p_c of spanning probabilities is not biased by more than noise."""

import numpy as np

from percolab.analysis.quantities import BlockMoments, choose_quantities
from percolab.analysis.quantity_fits import JointInput, analyse_quantities
from percolab.analysis.theory.potts import (
    critical_bond_probability,
    potts_exponents,
    spin_correction,
)

# spanning_any at p_c on open squares, and its slope over p_c -+ 0.05 / L: 8.0e6, 2.6e6 and 7.1e5
# samples a point, errors 0.0003, 0.0005 and 0.0010 (percolab, seed 77).
MEANS = {8: (0.54478, 6.625), 16: (0.47405, 13.324), 32: (0.43365, 25.778)}
BLOCKS, SAMPLES = 64, 157


def draw_study(rng: np.random.Generator, p_c: float) -> list[BlockMoments]:
    tasks = []
    for L, (value, slope) in MEANS.items():
        p = p_c + np.linspace(-0.15, 0.15, 7) / L
        probability = value + slope * (p - p_c)
        sums = rng.binomial(SAMPLES, probability, (BLOCKS, p.size)).astype(float)
        tasks.append(BlockMoments(L, p, np.full(BLOCKS, SAMPLES), {"spanning_any": sums}))
    return tasks


def test_open_ising_lattices_have_unbiased_pulls() -> None:
    known = critical_bond_probability("square", 2)
    assert known is not None
    chosen = choose_quantities(["spanning_any"], ["open"] * 2, ["spanning_any"])
    omega = spin_correction(2, 2, periodic=False, spans=True).value
    rng = np.random.default_rng(7)
    pulls = []
    for _ in range(40):
        moments, y_t = draw_study(rng, known.value), potts_exponents(2, 2)["1/nu"]
        fit = analyse_quantities(JointInput(moments, chosen, [omega], y_t))
        pulls.append((fit.threshold - known.value) / fit.threshold_error)
    assert abs(np.mean(pulls)) <= 4 * max(np.std(pulls, ddof=1), 1.0) / np.sqrt(len(pulls))
