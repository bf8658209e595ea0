"""Measurements of the clusters of a sample: sizes, spanning, wrapping, tallies, radii."""

from numba.core import caching

from percolab.kernels.cache import stamp_kernels

stamp_kernels(caching)
