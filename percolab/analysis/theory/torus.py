"""Critical percolation on a torus: wrapping probabilities and the excess number of clusters.

The boundaries of critical clusters are loops, each of weight 1.  Oriented, they are the steps of a
free field with coupling g = 2/3, and the field's defect (n, m) around the two periods counts the
non-contractible loops, those of one orientation less those of the other.  Their number is even, two
a wrapping cluster, so that only even defects occur; with (n, m) half of it,

    Z(n, m) = sqrt(g / Im tau) / |eta(tau)|^2  exp(-pi g |n tau - m|^2 / Im tau).

The 2k loops of a configuration with k clusters of one winding contribute to the defects l (a, b),
(a, b) being the primitive winding, in binomial(2k, k + l) orientations.  A phase exp(2 i pi e l)
gives every loop the weight 2 cos(pi e): e = 1/3 counts every configuration once, e = 1/2 only those
without such loops.  The difference of both sums is the probability that clusters wind in class
(a, b),

    P(a, b) = sum over l of Z(l a, l b) (cos(2 pi l / 3) - (-1)^l),

in which the term l = 0 is 0.  The remaining probability, of no loop at all, is shared equally by
one cluster that wraps in two independent ways and, its dual, none that wraps.

With random clusters of another q the loops' weight is sqrt(q) = 2 cos(pi e) with e = 1 - g, and one
cluster that wraps in two ways has q times the weight of none that wraps (Arguin 2002).

Sources: P. di Francesco, H. Saleur and J. B. Zuber, J. Stat. Phys. 49, 57 (1987);
H. T. Pinson, J. Stat. Phys. 75, 1167 (1994); M. E. J. Newman and R. M. Ziff, Phys. Rev. Lett. 85,
4104 (2000); L.-P. Arguin, J. Stat. Phys. 109, 301 (2002) for other q; P. Kleban and R. M. Ziff,
Phys. Rev. B 57, R8075 (1998) for the clusters.
"""

import cmath
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: The coupling at q = 1, and its derivative by q there: sqrt(q) = -2 cos(pi g).
_COUPLING, _COUPLING_SLOPE = 2 / 3, 1 / (2 * math.pi * math.sqrt(3))
#: Terms below exp(-40) are left out.
_NEGLECTED = 40.0


@dataclass(frozen=True)
class WrappingProbabilities:
    """Probabilities that a critical torus has a cluster that wraps around it.

    x, y:    along this axis at least
    either:  along at least one axis
    both:    along both, by one cluster or, each winding around both, by several
    x_alone: along x and not along y
    cross:   one cluster wraps in two independent ways
    oblique: clusters wind around both axes at once, and in no other direction
    """

    x: float
    y: float
    either: float
    both: float
    x_alone: float
    cross: float
    oblique: float

    @property
    def one_alone(self) -> float:
        """Along one axis and not along the other."""
        return self.either - self.both

    @property
    def none(self) -> float:
        """Around no axis: the probability of ``cross`` over q."""
        return 1 - self.either


def wrapping_probabilities(tau: complex, q: float = 1.0) -> WrappingProbabilities:
    """Return the wrapping probabilities of a torus with periods 1, along x, and tau, along y.

    tau: i r for a rectangle of height r and width 1.  q: of random clusters, from 1 to 4.
    ValueError unless 0.1 <= Im tau <= 10 and |Re tau| <= 1.  Source: Pinson (1994), as derived
    above, and Arguin (2002).

    >>> round(wrapping_probabilities(1j).x, 9)
    0.521058289
    """
    g = math.acos(-math.sqrt(q) / 2) / math.pi
    none = _loops(tau, g, 1 / 2) / 2
    n, m = _defects(tau, g)
    divisor = np.gcd(n, m)
    weight = np.cos(2 * np.pi * divisor * (1 - g)) - (-1.0) ** divisor
    # The defects l (a, b) and -l (a, b) belong to one winding, and the sum over all has both.
    terms = _weights(tau, g, n, m) * weight
    total = float(terms.sum()) + (1 + q) * none
    terms, cross = terms / total, q * none / total
    x_alone, y_alone = float(terms[n == 0].sum()), float(terms[m == 0].sum())
    oblique = float(terms[(n != 0) & (m != 0)].sum())
    both = cross + oblique
    return WrappingProbabilities(
        x=both + x_alone,
        y=both + y_alone,
        either=both + x_alone + y_alone,
        both=both,
        x_alone=x_alone,
        cross=cross,
        oblique=oblique,
    )


def excess_clusters(tau: complex) -> float:
    """Return b in N n_c + b, the mean number of clusters of a critical torus with N sites.

    b is the derivative by q, at q = 1, of the torus' universal partition function,

        Z(q) = S(g, 1 - g) + (q - 1) S(g, 1/2) / 2,
        S(g, e) = sum over (n, m) of Z(n, m) cos(2 pi e gcd(n, m)),

    whose second term gives the cluster that wraps in two ways its weight q: Euler's relation counts
    it by loops as one less.  tau and errors as for :func:`wrapping_probabilities`.  Source: Kleban
    and Ziff (1998), from the partition function of di Francesco et al. (1987).

    >>> round(excess_clusters(1j), 6)
    0.883576
    """
    step = 1e-5
    slope = sum(
        sign * _loops(tau, _COUPLING + sign * step, 1 / 3 - sign * step) for sign in (1, -1)
    ) / (2 * step)
    return _loops(tau, _COUPLING, 1 / 2) / 2 + _COUPLING_SLOPE * slope


def _loops(tau: complex, coupling: float, e: float) -> float:
    """Return S(g, e): the partition function with weight 2 cos(pi e) a non-contractible loop."""
    n, m = _defects(tau, coupling)
    phases = np.cos(2 * np.pi * e * np.gcd(n, m))
    return float(np.sum(_weights(tau, coupling, n, m) * phases))


def _defects(tau: complex, coupling: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all (n, m) with |n tau - m|^2 small enough to count."""
    if not (0.1 <= tau.imag <= 10 and abs(tau.real) <= 1):
        raise ValueError(f"tau = {tau}: must have 0.1 <= Im tau <= 10 and |Re tau| <= 1")
    reach = _NEGLECTED / (math.pi * coupling)
    rows = math.ceil(math.sqrt(reach / tau.imag))
    columns = math.ceil(math.sqrt(reach * tau.imag) + rows * abs(tau.real))
    n, m = np.mgrid[-rows : rows + 1, -columns : columns + 1].reshape(2, -1)
    return n, m


def _weights(
    tau: complex, coupling: float, n: NDArray[np.int64], m: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return Z(n, m)."""
    nome = cmath.exp(2j * math.pi * tau)
    powers = nome ** np.arange(1, math.ceil(_NEGLECTED / (2 * math.pi * tau.imag)) + 1)
    # Dedekind's eta function.
    eta = cmath.exp(2j * math.pi * tau / 24) * complex(np.prod(1 - powers))
    scale = math.sqrt(coupling / tau.imag) / abs(eta) ** 2
    decay = np.exp(-np.pi * coupling * abs(n * tau - m) ** 2 / tau.imag)
    return np.asarray(scale * decay, np.float64)
