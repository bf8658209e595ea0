"""Pulls of `percolab fit TABLE` on tables whose x_c and exponents are known exactly.

    python results/tables/count_pulls.py 100

The synthetic tables have corrections of an exponent that the fit does not know.  The repetition
code of n bits under independent flips, decoded by majority, fails with the probability of a
binomial sum: its threshold is 1/2, and 1/nu is 1/2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

from percolab.analysis.table_fit import Series, fit_series
from percolab.errors import AnalysisError

Make = Callable[[np.random.Generator], Series]


def grid(sizes: tuple[int, ...], x_c: float, reach: float, points: int = 11) -> np.ndarray:
    """Return L and x of a table, float64 (2, n): the same x at every size."""
    x = np.linspace(x_c - reach, x_c + reach, points)
    return np.array([(L, each) for L in sizes for each in x], float).T


def means(omega: float, b: float, nu: float, x_c: float, sign: float) -> Make:
    """Return tables of a quantity between 0.3 and 0.9 with corrections b L^-omega (1 + X / 2).

    The x are those at which the largest size goes through most of its transition.
    """

    def make(rng: np.random.Generator) -> Series:
        L, x = grid((8, 16, 32, 64), x_c, 1.5 * abs(x_c) * 64 ** (-1 / nu))
        X = 2 * sign * (x / x_c - 1) * L ** (1 / nu)
        y = 0.6 + 0.3 * np.tanh(X) + b * L**-omega * (1 + 0.5 * X)
        errors = np.full(L.size, 0.002)
        return Series("", "T", "U", L.astype(int), x, rng.normal(y, errors), errors)

    return make


def counts(omega: float, b: float, nu: float, x_c: float) -> Make:
    """Return tables of counts whose probit is a_0 + X + X^2 / 5 with corrections."""

    def make(rng: np.random.Generator) -> Series:
        L, x = grid((5, 9, 13, 17, 21), x_c, 0.2 * x_c)
        X = 2 * (x / x_c - 1) * L ** (1 / nu)
        f = -1.0 + X + 0.2 * X**2 + b * L**-omega * (1 + 0.5 * X)
        n = np.full(L.size, 20_000)
        k = rng.binomial(n, ndtr(f))
        return Series.of_counts(("", "p", "errors/shots"), L, x, k, n)

    return make


def power(kappa: float, omega: float, nu: float) -> Make:
    """Return tables of a quantity that grows as L^kappa at x_c = 4.5."""

    def make(rng: np.random.Generator) -> Series:
        L, x = grid((8, 16, 32, 64), 4.5, 0.2)
        X = (1 - x / 4.5) * L ** (1 / nu)
        y = L**kappa * np.exp(0.3 * X + 0.03 * X**2) * (1 + 0.3 * L**-omega)
        return Series("", "T", "chi", L.astype(int), x, y * rng.normal(1, 0.005, L.size), 0.005 * y)

    return make


def repetition(sizes: tuple[int, ...]) -> Make:
    """Return tables of the repetition code: counts of 20 000 shots."""

    def make(rng: np.random.Generator) -> Series:
        L, p = grid(sizes, 0.5, 0.15)
        n = np.full(L.size, 20_000)
        k = rng.binomial(n, binom.sf((L - 1) // 2, L, p))
        return Series.of_counts(("", "p", "errors/shots"), L, p, k, n)

    return make


#: Name, tables, x_c, 1/nu, kappa or None.
TABLES: tuple[tuple[str, Make, float, float, float | None], ...] = (
    ("means, falling, omega 1", means(1.0, 0.3, 1.5, 2.3, -1), 2.3, 1 / 1.5, None),
    ("means, rising, omega 0.8", means(0.8, 0.3, 1.0, -1.2, 1), -1.2, 1.0, None),
    ("means, falling, omega 2", means(2.0, -1.0, 0.63, 4.5, -1), 4.5, 1 / 0.63, None),
    ("counts, omega 1", counts(1.0, 0.5, 1.5, 0.01), 0.01, 1 / 1.5, None),
    ("counts, omega 1.7", counts(1.7, -1.0, 1.3, 0.11), 0.11, 1 / 1.3, None),
    ("repetition code, 3 to 13 bits", repetition((3, 5, 7, 9, 13)), 0.5, 0.5, None),
    ("repetition code, 15 to 101 bits", repetition((15, 25, 41, 65, 101)), 0.5, 0.5, None),
    ("power, kappa 1.96, omega 0.8", power(1.96, 0.8, 0.63), 4.5, 1 / 0.63, 1.96),
    ("power, kappa -0.125, omega 2", power(-0.125, 2.0, 1.0), 4.5, 1.0, -0.125),
)


def pulls(make: Make, x_c: float, y_t: float, kappa: float | None, seeds: int) -> list[list[float]]:
    """Return the pulls of x_c, 1/nu, kappa and the p-value of every table that has an answer."""
    found = []
    for seed in range(seeds):
        try:
            fit = fit_series(make(np.random.default_rng(seed)), kappa=kappa is not None)
        except AnalysisError:
            continue
        if fit.problem is not None:
            continue
        row = [(fit.threshold - x_c) / fit.threshold_error, (fit.y_t - y_t) / fit.y_t_error]
        if fit.kappa is not None and kappa is not None:
            row.append((fit.kappa.value - kappa) / fit.kappa.error)
        found.append([*row, fit.threshold_error, fit.chi_square.p_value])
    return found


def main() -> None:
    """Print one line a kind of table: mean and width of the pulls."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| table | answers | x_c | 1/nu | kappa | error of x_c | median p-value |")
    print("|---|---|---|---|---|---|---|")
    for name, make, x_c, y_t, kappa in TABLES:
        found = np.array(pulls(make, x_c, y_t, kappa, seeds))
        if not len(found):
            print(f"| {name} | none of {seeds} | | | | | |")
            continue
        texts = [f"{own.mean():+.2f} {own.std(ddof=1):.2f}" for own in found.T[:-2]]
        texts += [""] * (3 - len(texts))
        medians = f"{np.median(found[:, -2]):.1e} | {np.median(found[:, -1]):.2f}"
        print(f"| {name} | {len(found)} of {seeds} | {' | '.join(texts)} | {medians} |", flush=True)


if __name__ == "__main__":
    main()
