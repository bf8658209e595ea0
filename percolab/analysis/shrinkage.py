"""Correlations from few samples, as much of them as their noise leaves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def shrunk_correlation(rows: Floats) -> Floats:
    """Return the correlations of columns, those of two columns times one factor from 0 to 1.

    rows: float64 (n, k), n > 1 independent ones; k may exceed n.  The factor is that which brings
    them nearest to the true ones in the mean, estimated from the rows.  Returns float64 (k, k).

    Source: J. Schaefer and K. Strimmer, Stat. Appl. Genet. Mol. Biol. 4, 32 (2005), target D.
    """
    count = len(rows)
    deviation = rows.std(axis=0, ddof=1)
    centred = rows - rows.mean(axis=0)
    scaled = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)
    # A correlation is the mean of these products, and its variance follows from their scatter.
    mean = scaled.T @ scaled / count
    spread = (scaled**2).T @ scaled**2 / count - mean**2
    off = ~np.eye(len(mean), dtype=bool)
    signal, noise = float(np.sum(mean[off] ** 2)), float(np.sum(spread[off])) / (count - 1)
    kept = max(1 - noise / signal, 0.0) if signal > 0 else 0.0
    return np.where(off, kept * mean * count / (count - 1), 1.0)
