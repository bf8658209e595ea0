"""Quantities of the spins of a sweep, in addition to its row; and sums over a chain.

In a combined row, these integers follow the ROW_WIDTH columns: the number of satisfied bonds, that
of open bonds, the sites in the commonest state, and the sum over states of the squared number of
sites in them.  The spins are those at the beginning of the sweep.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from numba import njit

from percolab.lattices.topology import unpack_bits
from percolab.measure.rows import LARGEST, ROW_WIDTH, SUM_SQUARES
from percolab.measure.sums import ROW

#: The names of the numbers of a sweep with spins, including those of its clusters.
SPIN_ROW = (*ROW, "satisfied", "open_bonds", "largest_state", "state_squares")
SPIN_ROW_WIDTH = len(SPIN_ROW)
SATISFIED, OPEN_BONDS, LARGEST_STATE, STATE_SQUARES = range(ROW_WIDTH, SPIN_ROW_WIDTH)
#: The series of autocorrelations: the energy, the order parameter, and its improved estimator.
SERIES = (SATISFIED, STATE_SQUARES, SUM_SQUARES)
#: The same for random clusters, which have no spins.
CLUSTER_SERIES = (OPEN_BONDS, LARGEST, SUM_SQUARES)
#: The largest lag.
LAGS = 64


@njit(nogil=True, cache=True)
def lagged_sums(series, products, edges):
    """Write the sums for an autocorrelation function of consecutive sweeps of a chain.

    series: float64 (n,).  products[l]: sum of x_t x_(t+l) over t < n - l.  edges[l]: sum of x_t
    over t < n - l and of x_t over t >= l.  float64 (LAGS + 1,) each, added sweep after sweep.
    """
    n = series.size
    products[:] = 0.0
    edges[:] = 0.0
    for t in range(n):
        for lag in range(min(LAGS, t) + 1):
            products[lag] += series[t] * series[t - lag]
            edges[lag] += series[t] + series[t - lag]


def sum_chains(rows: np.ndarray, places: Sequence[int] = SERIES) -> np.ndarray:
    """Return lagged products and edges of rows of chains: float64 (chains, m, 6 (LAGS + 1)).

    places: the columns of three series in the rows.
    """
    chains, _, points, _ = rows.shape
    sums = np.empty((chains, points, len(places), 2, LAGS + 1))
    for chain in range(chains):
        for point in range(points):
            for n, place in enumerate(places):
                series = rows[chain, :, point, place].astype(np.float64)
                lagged_sums(series, *sums[chain, point, n])
    return sums.reshape(chains, points, -1)


#: The most axes that have a structure factor; and the binary digits of its sines and cosines.
MOST_AXES, _DIGITS = 5, 20


def structure_factors(
    planes: np.ndarray, states: int, shape: Sequence[int], periodic: Sequence[bool]
) -> np.ndarray:
    """Return sum over states of |sum of exp(2 pi i x_a / L_a) over their sites|^2, by axis a.

    planes: uint32 (chains, planes, num_words).  shape: grid points along the axes, the first
    fastest.  Returns float64 (chains, MOST_AXES), 0 where there is no periodic axis.  Vacant sites
    must repeat along every axis, so that they add nothing.  Sines and cosines have 20 binary
    digits, so that sums are integers and the same on every machine.
    """
    points, factors = prod(shape), np.zeros((len(planes), MOST_AXES))
    bits = unpack_bits(planes, points)
    spins = (bits * (1 << np.arange(bits.shape[1]))[None, :, None]).sum(axis=1)
    grid = spins.reshape(len(planes), *shape[::-1])
    for axis, (length, is_periodic) in enumerate(zip(shape, periodic, strict=True)):
        if not is_periodic:
            continue
        own = len(shape) - axis
        others = tuple(n for n in range(1, len(shape) + 1) if n != own)
        angles = 2 * np.pi * np.arange(length) / length
        waves = [np.rint(np.ldexp(f(angles), _DIGITS)).astype(np.int64) for f in (np.cos, np.sin)]
        # The last state follows from the others, but it is simpler to count it.
        for state in range(states):
            layers = np.sum(grid == state, axis=others, dtype=np.int64)
            for wave in waves:
                factors[:, axis] += np.ldexp((layers @ wave).astype(np.float64), -_DIGITS) ** 2
    return factors


def compute_chain_series(rows: np.ndarray, places: Sequence[int] = SERIES) -> np.ndarray:
    """Return three series of sweeps, int64 (chains, m, 3 * sweeps), one after the other."""
    chains, sweeps, points, _ = rows.shape
    by_point = np.moveaxis(rows[..., list(places)], 1, 3)
    return np.ascontiguousarray(by_point).reshape(chains, points, len(places) * sweeps)
