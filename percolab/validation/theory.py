"""Exact results for two-dimensional percolation: thresholds, clusters per site, Cardy's formula.

Clusters per site at p_c follow from the critical free energy f(q) of the q-state Potts model, since
Z = sum over bond sets of v^bonds q^clusters with v = p / (1 - p).  On the critical line v(q),

    n_c = df/dq - (B / (1 + v)) dv/dq   at q = 1,   B bonds a site,

because the mean number of open bonds is B v / (1 + v) at q = 1.  Baxter's f(q) (square: J. Phys. C
6, L445 (1973); triangular: Baxter, Temperley and Ashley, Proc. R. Soc. A 358, 535 (1978)) then
gives the closed forms below, which tests/test_theory.py finds again by numerical integration.
"""

from __future__ import annotations

import math

import numpy as np

#: p_c of bond percolation on the triangular lattice, the root of 1 - 3 p + p^3 in (0, 1).
_TRIANGULAR = 2 * math.sin(math.pi / 18)

#: Exact thresholds by (lattice, model).  Kesten, Commun. Math. Phys. 74, 41 (1980) for the square
#: lattice; Sykes and Essam, J. Math. Phys. 5, 1117 (1964), proved by Wierman, Adv. Appl. Prob. 13,
#: 298 (1981), for the others.
THRESHOLDS = {
    ("square", "bond"): 0.5,
    ("triangular", "bond"): _TRIANGULAR,
    ("honeycomb", "bond"): 1 - _TRIANGULAR,
    ("triangular", "site"): 0.5,
}

#: Clusters per site at p_c of bond percolation, single sites included.
#:
#: square:     Temperley and Lieb, Proc. R. Soc. A 322, 251 (1971), in the closed form of Ziff,
#:             Finch and Adamchik, Phys. Rev. Lett. 79, 3447 (1997)
#: triangular: Baxter, Temperley and Ashley (1978)
#: honeycomb:  by duality.  A planar lattice with N sites has C = N - (open bonds) + (cycles), and
#:             its independent cycles are the clusters of the dual lattice, open where the other is
#:             closed.  Per site of the triangular lattice, 1 - 3 p + 2 n_honeycomb = n_triangular.
CLUSTERS_PER_SITE = {
    "square": (3 * math.sqrt(3) - 5) / 2,
    "triangular": 35 / 4 - 3 / _TRIANGULAR,
    "honeycomb": (31 / 4 - 3 / _TRIANGULAR + 3 * _TRIANGULAR) / 2,
}


def crossing_probability(aspect_ratio: float) -> float:
    """Return Cardy's probability that a critical cluster crosses a rectangle along its length.

    aspect_ratio: the length crossed over the width.  ValueError unless it is from 0.05 to 20.

    P = 3 Gamma(2/3) / Gamma(1/3)^2  eta^(1/3)  2F1(1/3, 2/3; 4/3; eta) with the cross-ratio of the
    four corners, eta = (theta_2 / theta_3)^4 at the nome exp(-pi aspect_ratio).

    Source: J. Cardy, J. Phys. A 25, L201 (1992).

    >>> round(crossing_probability(1.0), 12)
    0.5
    """
    from scipy.special import gamma, hyp2f1

    if not 0.05 <= aspect_ratio <= 20:
        raise ValueError(f"aspect ratio {aspect_ratio}: must be from 0.05 to 20")
    if aspect_ratio < 1:
        # One minus the crossing the other way: the nome stays small.
        return 1 - crossing_probability(1 / aspect_ratio)
    nome, n = math.exp(-math.pi * aspect_ratio), np.arange(12)
    theta_2 = 2 * np.sum(nome ** ((n + 0.5) ** 2))
    theta_3 = 2 * np.sum(nome ** (n**2.0)) - 1
    eta = float((theta_2 / theta_3) ** 4)
    scale = 3 * gamma(2 / 3) / gamma(1 / 3) ** 2
    return float(scale * eta ** (1 / 3) * hyp2f1(1 / 3, 2 / 3, 4 / 3, eta))
