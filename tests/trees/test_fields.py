"""Gaussian fields: the correlations that are requested, equal fields for equal seeds."""

import numpy as np
import pytest
from helpers import slow

import percolab
from percolab.errors import InputError


def chords(shape):
    """Return the distance from the first site to every site of a torus."""
    squares = np.zeros(shape)
    for axis, n in enumerate(shape):
        along = (n / np.pi * np.sin(np.pi * np.arange(n) / n)) ** 2
        squares += np.expand_dims(along, [k for k in range(len(shape)) if k != axis])
    return np.sqrt(squares)


@pytest.mark.parametrize(
    ("shape", "correlation"),
    [
        slow((9, 16), 0.5),
        slow((4, 5, 6), 1.0),
        ((31,), 2.0),
        slow((12, 12), lambda r: np.exp(-((r / 2) ** 2))),
    ],
)
def test_fields_have_the_correlation_that_is_requested(shape, correlation):
    count = 1000
    given = {"correlation" if callable(correlation) else "exponent": correlation}
    fields = np.array([percolab.gaussian_field(shape, **given, seed=n) for n in range(count)])
    r = chords(shape)
    expected = correlation(r) if callable(correlation) else (1 + r**2) ** (-correlation / 2)
    origin = fields.reshape(count, -1)[:, 0].reshape(-1, *[1] * len(shape))
    products = origin * fields
    # The variance of a product of two Gaussian numbers of variance 1 is 1 + C^2.
    z = (products.mean(axis=0) - expected) / np.sqrt((1 + expected**2) / count)
    assert np.abs(z).max() < 4
    # All modes, independent of one another: their sum has the variance of that of squares.
    axes = range(1, fields.ndim)
    modes = np.abs(np.fft.fftn(fields, axes=axes)) ** 2 / np.fft.fftn(expected).real / expected.size
    assert abs(modes.mean() - 1) * np.sqrt(modes.size / 2) < 4
    assert np.abs(fields.mean(axis=0) * np.sqrt(count)).max() < 4


def test_a_field_is_a_function_of_its_arguments():
    field = percolab.gaussian_field((8, 6), 1.5, seed=3)
    assert (field.shape, field.dtype) == ((8, 6), np.float64)
    assert np.array_equal(field, percolab.gaussian_field((8, 6), 1.5, seed=3))
    assert not np.array_equal(field, percolab.gaussian_field((8, 6), 1.5, seed=4))
    by_function = percolab.gaussian_field((8, 6), correlation=lambda r: (1 + r**2) ** -0.75, seed=3)
    assert np.allclose(field, by_function)
    # NumPy promises the same stream of Philox for ever.
    assert field[0, 0] == pytest.approx(-0.004823910112475405, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((8, 1.0), "shape = 8, but it is a length an axis"),
        (((8, 0), 1.0), "shape = .8, 0."),
        (((8, 2**40), 1.0), "at most"),
        (((8, 8), 0), "exponent = 0, but it must be a finite number above 0"),
        (((8, 8), np.nan), "exponent = nan"),
        (((8, 8),), "give exponent or correlation, one of them"),
        (((8, 8), None, lambda r: 1.0 * (r < 2)), "spectrum on this torus is negative"),
        (((8, 8), None, lambda r: np.nan * r), "spectrum"),
    ],
)
def test_what_is_no_correlation_is_refused(arguments, message):
    shape, exponent, correlation = (*arguments, None, None)[:3]
    with pytest.raises(InputError, match=message):
        percolab.gaussian_field(shape, exponent, correlation=correlation)
