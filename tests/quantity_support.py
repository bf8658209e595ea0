"""Synthetic moments of three quantities of a cubic torus: a probability, Q_1 and Q_2.

They have normal errors with the covariance that was measured at L = 16; those at neighbouring p are
correlated, too.
"""

import numpy as np

from percolab.analysis.quantities import BlockMoments, list_quantities
from percolab.analysis.quantity_fits import JointInput, analyse_quantities
from percolab.analysis.theory.known_exponents import Known

P_C, Y_T, OMEGA = 0.2488, 1.14, 1.2

#: Q_c, a_1, a_2 and b of each quantity.
TRUTH = {
    "wrapping_any": (0.46, 1.5, 0.3, 0.15),
    "Q_1": (0.865, 0.3, -0.4, 0.05),
    "Q_2": (0.74, 0.5, -0.3, 0.1),
}

#: Standard deviations of W_any, s_1, s_1^2, S_2, S_2^2 of a sample, and their correlation.
SPREAD = np.array([0.474, 0.392, 0.825, 0.593, 1.53])
CORRELATION = np.array(
    [
        [1.000, 0.511, 0.489, 0.487, 0.429],
        [0.511, 1.000, 0.983, 0.975, 0.901],
        [0.489, 0.983, 1.000, 0.995, 0.961],
        [0.487, 0.975, 0.995, 1.000, 0.968],
        [0.429, 0.901, 0.961, 0.968, 1.000],
    ]
)
QUANTITIES = [item for item in list_quantities(["periodic"] * 3) if item.name in TRUTH]
SIZES = (8, 12, 16, 24, 32, 64)


def value(name, p, L):
    Q_c, a_1, a_2, b = TRUTH[name]
    x = (p - P_C) * L**Y_T
    return Q_c + a_1 * x + a_2 * x**2 + b * L**-OMEGA


def task(rng, L, *, points, samples, blocks, reach=0.03):
    """Return blocks of one task at p about p_c, <s_1> and <S_2> being 1."""
    x = reach * np.linspace(-1, 1, points) + 0.002 if points > 1 else np.array([0.002])
    p = P_C + x * L**-Y_T
    one = np.ones_like(p)
    means = {
        "wrapping_any": value("wrapping_any", p, L),
        "largest": one,
        "largest*largest": 1 / value("Q_1", p, L),
        "sum_squares": one,
        "sum_squares*sum_squares": 1 / value("Q_2", p, L),
    }
    # Samples at two p differ where bonds between them matter, in proportion to their distance.
    along = 1 - 0.9 * np.abs(x[:, None] - x)
    root = np.linalg.cholesky(np.kron(CORRELATION * np.outer(SPREAD, SPREAD), along))
    each = samples // blocks
    noise = rng.standard_normal((blocks, len(root))) @ root.T / np.sqrt(each)
    noise = noise.reshape(blocks, len(means), points)
    sums = {name: each * (means[name] + noise[:, i]) for i, name in enumerate(means)}
    return BlockMoments(L, p, np.full(blocks, each), sums)


def three_p(rng, *, samples=10**6, blocks=100):
    return [task(rng, L, points=3, samples=samples, blocks=blocks) for L in SIZES]


def one_p(rng):
    """Return a study with nearly all of its samples at one p, and a few at three for slopes."""
    most = [task(rng, L, points=1, samples=10**6, blocks=100) for L in SIZES]
    few = [task(rng, L, points=3, samples=30_000, blocks=60, reach=0.1) for L in (16, 64)]
    return most + few


def analysed(moments, **options):
    own = {"omegas": (OMEGA,) * len(QUANTITIES), "y_t": Known(Y_T, 0.0, "", "")}
    own |= {name: options.pop(name) for name in ("omegas", "y_t", "critical") if name in options}
    return analyse_quantities(JointInput(moments, QUANTITIES, **own), **options)
