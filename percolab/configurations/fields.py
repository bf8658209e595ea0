"""Gaussian fields with given correlations, made with fast Fourier transforms, as site weights.

The method is that of H. A. Makse, S. Havlin, M. Schwartz and H. E. Stanley, arXiv:cond-mat/9512024
(Phys. Rev. E 53, 1996): white noise is multiplied by the square root of the spectrum, which is the
transform of a correlation that is finite at r = 0.  Other than in the paper the spectrum is that of
the finite torus, so the correlation is exact at every distance.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.kernels.memory import check_free
from percolab.lattices.topology import MAX_POINTS
from percolab.tasks.values import take_integer, take_number, take_sample_key

Floats = np.ndarray[Any, np.dtype[np.float64]]


def gaussian_field(
    shape: Sequence[int],
    exponent: float | None = None,
    *,
    correlation: Callable[[Floats], Any] | None = None,
    seed: int = 1,
) -> Floats:
    """Return a periodic Gaussian field of mean 0 and variance 1, float64 of this shape.

    exponent: a > 0 in the correlation C(r) = (1 + r^2)^(-a/2) of the values at two sites.
    correlation: instead of ``exponent``, C itself as a function of distances, float64, C(0) = 1.
    On the torus r is the chord: r^2 = sum over axes of (L/pi)^2 sin^2(pi x/L), which is close to x
    at short distances and smooth half way around.
    seed: of NumPy's Philox generator, so that equal arguments give equal fields.

    InputError: no such shape, a not above 0, or a function whose spectrum is negative somewhere,
    which is no correlation on this torus.

    >>> gaussian_field((2, 3), 1.5).shape
    (2, 3)
    """
    if (exponent is None) == (correlation is None):
        raise InputError("gaussian_field: give either exponent or correlation")
    if not np.iterable(shape):
        raise InputError(f"shape = {shape}, but it must have a length for each axis, as (64, 64)")
    sizes = tuple(take_integer("shape", n) for n in shape)
    if min(sizes, default=0) < 1 or prod(sizes) > MAX_POINTS:
        raise InputError(f"shape = {sizes}, but lengths must be at least 1, and sites at "
                         f"most {MAX_POINTS}")  # fmt: skip
    # Noise, distances and two transforms are in memory at the same time.
    check_free(f"shape = {sizes}: needs", 40 * prod(sizes))
    chords = [(n / np.pi * np.sin(np.pi * np.arange(n) / n)) ** 2 for n in sizes]
    squares: Floats = sum(np.ix_(*chords), np.zeros(()))
    if correlation is not None:
        target = _correlate(correlation, np.sqrt(squares))
    else:
        power = take_number("exponent", exponent)
        if not 0 < power < np.inf:
            raise InputError(f"exponent = {exponent}, but it must be a finite number above 0")
        target = (1 + squares) ** (-power / 2)
    spectrum = np.fft.rfftn(np.broadcast_to(target, sizes)).real
    # Rounding can make small values negative.
    if not spectrum.min() > -1e-9 * spectrum.max():
        raise InputError("correlation: its spectrum on this torus is negative somewhere, so no "
                         "field has this correlation")  # fmt: skip
    noise = np.random.Generator(np.random.Philox(take_sample_key("seed", seed)))
    waves = np.fft.rfftn(noise.standard_normal(sizes))
    waves *= np.sqrt(np.maximum(spectrum, 0.0))
    field: Floats = np.fft.irfftn(waves, sizes, axes=range(len(sizes)))
    return field


def _correlate(correlation: Any, distances: Floats) -> Floats:
    """Return the correlation at distances; InputError if it is not one."""
    if not callable(correlation):
        raise InputError(f"correlation = {correlation!r}, but it must be a function of distances")
    values = np.asarray(correlation(distances), np.float64)
    if values.shape != distances.shape or not np.isfinite(values).all():
        raise InputError("correlation: it must return a finite number for each distance")
    first = float(values.ravel()[0])
    if not np.isclose(first, 1.0):
        raise InputError(f"correlation: it is {first:.6g} at distance 0, but it must be 1 there")
    return values
