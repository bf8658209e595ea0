"""Exact results in the plane: thresholds, clusters per site, crossings of parallelograms.

Clusters per site at p_c follow from the critical free energy f(q) of the q-state Potts model, since
Z = sum over bond sets of v^bonds q^clusters with v = p / (1 - p).  On the critical line v(q),

    n_c = df/dq - (B / (1 + v)) dv/dq   at q = 1,   B bonds a site,

because the mean number of open bonds is B v / (1 + v) at q = 1.  Baxter's f(q) (square: J. Phys. C
6, L445 (1973); triangular: Baxter, Temperley and Ashley, Proc. R. Soc. A 358, 535 (1978)) then
gives the closed forms below, which tests/analysis/test_theory.py confirms by numerical integration.
"""

import math

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


def crossing_probability(aspect_ratio: float, angle: float = math.pi / 2) -> float:
    """Return Cardy's probability that a critical cluster crosses a parallelogram.

    aspect_ratio: the length of the sides crossed along, over that of the two sides connected.
    angle: between the two, in radians; a rectangle unless given.  ValueError unless the ratio is
    from 0.05 to 20 and the angle from 0.1 to pi - 0.1.

    P = 3 Gamma(2/3) / Gamma(1/3)^2  eta^(1/3)  2F1(1/3, 2/3; 4/3; eta), an incomplete beta
    function, with the cross-ratio eta of the four corners: J. Cardy, J. Phys. A 25, L201 (1992).

    >>> round(crossing_probability(1.0), 12)
    0.5
    """
    from scipy.special import betainc

    eta, other = _cross_ratios(aspect_ratio, angle)
    # The smaller of both is the one without a rounding error.
    if eta < other:
        return float(betainc(1 / 3, 1 / 3, eta))
    return 1 - float(betainc(1 / 3, 1 / 3, other))


def double_crossing_probability(aspect_ratio: float, angle: float = math.pi / 2) -> float:
    """Return Watts' probability that a parallelogram is crossed along both of its sides.

    P = Cardy's - sqrt(3) / (2 pi)  eta  3F2(1, 1, 4/3; 2, 5/3; eta): G. M. T. Watts, J. Phys. A 29,
    L363 (1996); proved by J. Dubedat, Ann. Probab. 34, 2176 (2006).  Arguments and errors as for
    :func:`crossing_probability`.

    >>> round(double_crossing_probability(1.0), 8)
    0.32212046
    """
    from scipy.special import betainc

    # Both cross-ratios give the same result; that of the smaller, at most 1/2, is taken.
    eta = min(_cross_ratios(aspect_ratio, angle))
    term, total = 1.0, 0.0
    for n in range(60):
        total += term / (n + 1)
        term *= eta * (n + 4 / 3) / (n + 5 / 3)
    return float(betainc(1 / 3, 1 / 3, eta)) - math.sqrt(3) / (2 * math.pi) * eta * total


def _cross_ratios(aspect_ratio: float, angle: float) -> tuple[float, float]:
    """Return eta of a parallelogram, and 1 - eta, which is that of the crossing the other way.

    By the map of Schwarz and Christoffel the sides are as F(1 - eta) to F(eta), with
    F(x) = 2F1(a, 1 - a; 1; x) and the angle a pi: for a rectangle, complete elliptic integrals.
    Source: G. D. Anderson, S.-L. Qiu, M. K. Vamanamurthy and M. Vuorinen, Pacific J. Math. 192, 1
    (2000).
    """
    from scipy.special import hyp2f1

    if not 0.05 <= aspect_ratio <= 20:
        raise ValueError(f"aspect ratio {aspect_ratio}: must be from 0.05 to 20")
    if not 0.1 <= angle <= math.pi - 0.1:
        raise ValueError(f"angle {angle}: must be from 0.1 to pi - 0.1")
    a = angle / math.pi
    # The smaller cross-ratio is found, by its logarithm: it can be far below a rounding error of 1.
    longer = max(aspect_ratio, 1 / aspect_ratio)

    low, high = -700.0, math.log(0.5)
    # By halves: scipy.optimize takes longer to be imported than a default study to be fitted.
    while (middle := (low + high) / 2) not in (low, high):
        eta = math.exp(middle)
        if _complement(a, eta) / float(hyp2f1(a, 1 - a, 1, eta)) > longer:
            low = middle
        else:
            high = middle
    eta = math.exp(high)
    return (eta, 1 - eta) if aspect_ratio >= 1 else (1 - eta, eta)


def _complement(a: float, eta: float) -> float:
    """Return 2F1(a, 1 - a; 1; 1 - eta), for small eta by its logarithm."""
    from scipy.special import digamma, hyp2f1

    if eta > 1e-8:
        return float(hyp2f1(a, 1 - a, 1, 1 - eta))
    constant = 2 * digamma(1) - digamma(a) - digamma(1 - a)
    return float(math.sin(math.pi * a) / math.pi * (constant - math.log(eta)))
