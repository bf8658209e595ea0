"""Local slopes are those of a power law, with errors of a jackknife."""

import numpy as np

from percolab.analysis.local_slopes import local_slopes


def test_a_power_has_its_exponent_everywhere():
    x = np.geomspace(1, 1000, 41)
    y = 3 * x**-2.05
    found = local_slopes(x, y, np.stack([y, y]))
    np.testing.assert_allclose(found.slope, -2.05)
    np.testing.assert_allclose(found.error, 0, atol=1e-12)
    assert found.x[0] > 1
    assert found.x[-1] < 1000
    # Ends differ by a factor 2 at least, so that neighbours do not tell of noise alone.
    assert (found.x >= 2**0.5 * x[: found.x.size] * (1 - 1e-9)).all()


def test_errors_are_those_of_the_jackknife():
    x, rng, blocks = np.array([1.0, 2.0, 4.0]), np.random.default_rng(0), 400
    parts = 1 + 0.1 * rng.standard_normal((blocks, 3))
    mean = parts.mean(axis=0)
    without = (parts.sum(axis=0) - parts) / (blocks - 1)
    found = local_slopes(x, mean, without)
    # Of two means with relative error 0.1 / sqrt(400).
    np.testing.assert_allclose(found.error, 2**0.5 * 0.005 / np.log(2), rtol=0.15)


def test_what_is_not_positive_is_left_out():
    x, y = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 0.0, 4.0, 8.0])
    found = local_slopes(x, y, np.empty((0, 4)))
    np.testing.assert_allclose(found.slope, [1.0, 1.0])
    assert np.isnan(found.error).all()
