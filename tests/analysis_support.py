"""Synthetic studies with a known answer, for tests of the analysis."""

from functools import cache

import numpy as np
from synthetic_support import synthetic_study

from percolab.analysis.curves import ClusterCurve
from percolab.analysis.scaling import CORRECTION_WIDTHS, ScalingFunction
from percolab.analysis.tau import SizeCounts
from percolab.api import sweep

TRUTH = ScalingFunction(0.6527, 0.75, (0.1, 1.3, 0.05, -0.06), corrections=(0.8, 0.0, 0.0, 0.0))
SIZES = (64, 128, 256, 512)
#: Of the sums that :func:`clusters_of` makes.
BETA, GAMMA = 5 / 48, 43 / 24


def study(seed=0, sizes=SIZES, truth=TRUTH, **options):
    """Return spanning curves drawn from a scaling function."""
    return synthetic_study(truth, sizes, rng=np.random.default_rng(seed), **options)


def filter_series(noise, a):
    """Return series x' = a x + noise along the last axis, as scipy.signal.lfilter does."""
    series = noise.copy()
    for step in range(1, noise.shape[-1]):
        series[..., step] += a * series[..., step - 1]
    return series


def clusters_of(curve, rng, *, blocks=40, label=""):
    """Return cluster sums with P_inf ~ L^-BETA (1 + x/3) and chi ~ L^GAMMA (1 - x^2/4).

    Every block has a factor of its own, 2 % off, for the noise.
    """
    L, samples = curve.L, 50
    x = (curve.p - TRUTH.threshold) * L**TRUTH.y_t
    noise = 1 + 0.02 * rng.standard_normal((blocks, 1))
    sites = L**2
    largest = samples * sites * noise * L**-BETA * (1 + x / 3)
    squares = samples * sites * noise * L**GAMMA * (2 + x)
    chi = samples * sites * noise * L**GAMMA * (1 - x**2 / 4)
    return ClusterCurve(
        L=L,
        num_sites=sites,
        p=curve.p,
        samples=np.full(blocks, samples),
        largest=largest,
        second_largest=largest / 2,
        sum_squares=squares + chi,
        largest_squares=squares,
        label=label,
    )


def synthetic_task(counts, edges, L=256, label=""):
    """Return counts, int64 (blocks, points, bins), as a task of 100 samples a block about p_c."""
    points = counts.shape[1]
    p = np.array([0.5]) if points == 1 else np.linspace(0.4, 0.6, points)
    largest = np.full(counts.shape[:2], 100 * 0.8 * L ** (91 / 48))
    samples = np.full(len(counts), 100)
    return SizeCounts(L, L * L, p, samples, edges, counts, largest, label)


def drawn_study(seed, *, sizes=(16, 32, 64, 128), samples=100_000, **options):
    """Return curves of a planar system with p_c = 1/2, all of whose other numbers are drawn.

    Its corrections are drawn from the priors of the fit, and its field has n = -0.2 / p (1 - p).
    """
    rng = np.random.default_rng(seed)
    while True:
        a_1 = rng.uniform(1.0, 2.0)
        b, c, B, C = rng.normal(0, CORRECTION_WIDTHS) * (1, a_1, 1, a_1)
        truth = ScalingFunction(
            threshold=0.5,
            y_t=0.75,
            coefficients=(rng.normal(0, 0.3), a_1, rng.normal(0, 0.05), rng.normal(0, 0.05)),
            field=(-0.8, 0.0),
            corrections=(b, c, B, C),
        )
        try:
            return synthetic_study(truth, sizes, samples=samples, blocks=1, rng=rng, **options)
        except ValueError:
            # R would fall along p.
            continue


@cache
def counted():
    """Return a small torus with counted sizes; for reading only."""
    return sweep(
        "square", L=[16, 32, 64], p=[0.46, 0.48, 0.5, 0.52, 0.54], samples=600, block_size=30,
        boundary="periodic", measure="sizes", device="cpu", seed=5,
    )  # fmt: skip


def sorted_tasks():
    return sorted(counted().tasks.values(), key=lambda item: item.task.size)
