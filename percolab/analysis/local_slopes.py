"""The local slope of a power law, which a straight line on logarithmic axes would hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from percolab.analysis.statistics import Floats, jackknife_error


@dataclass(frozen=True, eq=False)
class LocalSlopes:
    """d ln y / d ln x between points, with its standard error or NaN: float64 (m,) each.

    x: the geometric mean of both ends.
    """

    x: Floats
    slope: Floats
    error: Floats


def local_slopes(x: Floats, y: Floats, without: Floats, *, ratio: float = 2.0) -> LocalSlopes:
    """Return the slopes between points whose x differ by this factor or a little more.

    x: (n,), ascending and positive.  y: (n,); points that are not positive are left out.
    without: (blocks, n), y without one block each, for the jackknife; (0, n) for no errors.
    """
    kept = np.flatnonzero((y > 0) & (without > 0).all(axis=0))
    x, logarithms = x[kept], np.log(x[kept])
    ends = np.searchsorted(x, ratio * x * (1 - 1e-9))
    first = np.flatnonzero(ends < x.size)
    last = ends[first]
    steps = logarithms[last] - logarithms[first]

    def slopes(values: Floats) -> Floats:
        found = np.log(values[..., kept])
        return np.asarray((found[..., last] - found[..., first]) / steps)

    errors = jackknife_error(slopes(without))
    return LocalSlopes(np.sqrt(x[last] * x[first]), slopes(y), errors)
