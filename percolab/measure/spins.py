"""What is read off the spins of a sweep, beside the row of its clusters; and sums over a chain.

The integers follow a row's ROW_WIDTH columns where both are put together: the number of satisfied
bonds, that of open bonds, the sites in the commonest state, and the sum over states of the squared
number of sites in them.  The spins are those that the sweep began with.
"""

import numpy as np
from numba import njit

from percolab.measure.rows import ROW_WIDTH, SUM_SQUARES

SATISFIED, OPEN_BONDS, LARGEST_STATE, STATE_SQUARES = range(ROW_WIDTH, ROW_WIDTH + 4)
#: Integers of a sweep with spins, those of its clusters among them.
SPIN_ROW_WIDTH = ROW_WIDTH + 4
#: What autocorrelations are of: the energy, the order parameter, and its improved estimator.
SERIES = (SATISFIED, STATE_SQUARES, SUM_SQUARES)
#: The largest lag.
LAGS = 64


@njit(nogil=True, cache=True)
def lagged_sums(series, products, edges):
    """Write what an autocorrelation function is made of, for consecutive sweeps of a chain.

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


def sums_of_chains(rows: np.ndarray) -> np.ndarray:
    """Return the lagged products and edges of chains: float64 (chains, m, 6 (LAGS + 1)).

    rows: int64 (chains, sweeps, m, SPIN_ROW_WIDTH).  Of each of SERIES the products, then the
    edges.
    """
    chains, _, points, _ = rows.shape
    found = np.empty((chains, points, len(SERIES), 2, LAGS + 1))
    for chain in range(chains):
        for point in range(points):
            for n, place in enumerate(SERIES):
                series = rows[chain, :, point, place].astype(np.float64)
                lagged_sums(series, *found[chain, point, n])
    return found.reshape(chains, points, -1)


def series_of_chains(rows: np.ndarray) -> np.ndarray:
    """Return SERIES of every sweep, int64 (chains, m, 3 * sweeps), one series after the other."""
    chains, sweeps, points, _ = rows.shape
    found = np.moveaxis(rows[..., list(SERIES)], 1, 3)
    return np.ascontiguousarray(found).reshape(chains, points, len(SERIES) * sweeps)
