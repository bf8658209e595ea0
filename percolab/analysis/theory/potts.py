"""Critical points and exponents of the Potts model, with q = 2, the Ising model, among them.

H = - sum of delta(s, s') over the bonds, spins s = 1 ... q, and beta in units of 1 / J.  A bond
between equal spins is open with p = 1 - exp(-beta), and q = 1 is bond percolation.  As a model with
H = - sum of s s', s = +1 or -1, the coupling of q = 2 is K = beta / 2.

With v = exp(beta) - 1 the critical point is the positive root of

    square      v^2 = q             triangular  v^3 + 3 v^2 = q       honeycomb  v^3 - 3 q v = q^2;

the last two are each other's duals, v v* = q.  For q = 2 it is known on every planar lattice:
x = tanh K is the root in (0, 1) of a polynomial, the sum of x^(bonds) over the even subgraphs of
one cell on a torus, those that wind around it an odd number of times in some direction being
negative.  Above q = 4 in two dimensions, and q = 2 in three, the transition is of first order, and
the point is where both phases have the same free energy.

Sources: R. J. Baxter, J. Phys. C 6, L445 (1973); R. J. Baxter, H. N. V. Temperley and S. E. Ashley,
Proc. R. Soc. A 358, 535 (1978); V. Beffara and H. Duminil-Copin, Probab. Theory Relat. Fields 153,
511 (2012) for the proof on the square lattice; D. Cimasoni and H. Duminil-Copin, Electron. J.
Probab. 18, 44 (2013) for q = 2; M. den Nijs, J. Phys. A 12, 1857 (1979) and B. Nienhuis, J. Stat.
Phys. 34, 731 (1984) for the exponents.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from percolab.analysis.theory.known_exponents import Exact, Known, derive_exponents, known_exponents

_BAXTER = "Baxter 1973"
_TRIANGULAR = "Baxter, Temperley and Ashley 1978"
_PLANAR_ISING = "Cimasoni and Duminil-Copin 2013"

#: Coefficients of x^0, x^1 ... of the polynomial of q = 2, where no formula for all q is known.
EVEN_SUBGRAPHS = {
    "kagome": (1, 0, -3, -4, -3, 0, 1),
    "four-eight": (1, 0, 0, 0, -2, 0, -16, 0, 1),
    "four-six-twelve": (1, 0, 0, 0, 3, 0, -16, 0, -9, 0, -48, 0, 5),
    "maple-leaf": (1, 0, 0, -4, -27, -48, -80, -120, -93, -48, -48, -36, -9),
    "ruby": (1, 0, 0, -4, -9, -12, -16, -12, -9, -4, 0, 0, 1),
    "snub-square": (1, 0, -4, -8, -18, -16, -4, -8, -7),
    "three-twelve": (1, 0, 0, 2, -3, -6, -2),
    "trellis": (1, -2, -2, -2, -3),
}

#: beta_c in closed form, where the root has a short one.
_CLOSED_FORMS = {
    "kagome": "ln(3 + 2 sqrt(3)) / 2",
    "ruby": "ln(3 + 2 sqrt(3)) / 2",
    "trellis": "ln(2)",
}

#: beta_c found numerically, by lattice and q.  Of q = 2: A. M. Ferrenberg, J. Xu and D. P. Landau,
#: Phys. Rev. E 97, 043301 (2018), K_c = 0.221654626(5); P. Butera and M. Comi, Phys. Rev. B 65,
#: 144431 (2002), K_c = 0.1573725(10) of bcc, by series.  Of q = 3, a transition of first order: W.
#: Janke and R. Villanova, Nucl. Phys. B 489, 679 (1997).
_NUMERICAL: dict[tuple[str, float], Known] = {
    ("cubic", 2): Known(0.443309252, 1.0e-8, "", "Ferrenberg, Xu and Landau 2018"),
    ("bcc", 2): Known(0.314745, 2.0e-6, "", "Butera and Comi 2002"),
    ("cubic", 3): Known(0.550565, 1.0e-5, "first order", "Janke and Villanova 1997"),
}

#: y_t, y_h, their errors and the source by dimension and q: with sqrt(q) = -2 cos(pi g), 1/2 <= g
#: <= 1, y_t = 3 - 3 / (2g) and y_h = (2g + 1)(2g + 3) / (8g); of the Ising model in space C.-H.
#: Chang et al., arXiv:2411.15300 (2024).
_PLANAR = "exact, den Nijs 1979 and Nienhuis 1984"
_EXPONENTS: dict[tuple[int, float], tuple[Exact, Exact, float, float, str]] = {
    (2, q): (3 - 3 / (2 * g), (2 * g + 1) * (2 * g + 3) / (8 * g), 0.0, 0.0, _PLANAR)
    for q, g in ((2, Fraction(3, 4)), (3, Fraction(5, 6)), (4, Fraction(1)))
} | {(3, 2): (1.58737472, 2.481851194, 2.9e-7, 2.4e-8, "Chang et al. 2024")}

#: Above this q the transition in two dimensions is of first order.
_LARGEST_CONTINUOUS = 4


def critical_point(lattice: str, q: float) -> Known | None:
    """Return beta_c of the q-state Potts model on a lattice of the library, or None if unknown.

    The coupling of the Ising model is half of it at q = 2.  An error of 0 means exact.  The
    expression contains "first order" where the transition is.  ValueError if q is below 1.

    >>> round(critical_point("square", 2).value / 2, 8), critical_point("square", 3).expression
    (0.44068679, 'ln(1 + sqrt(q))')
    >>> critical_point("bcc", 4) is None
    True
    """
    if q < 1:
        raise ValueError(f"q = {q}: must be at least 1")
    if q == 2 and lattice in EVEN_SUBGRAPHS:
        x = _root(EVEN_SUBGRAPHS[lattice], 1.0)
        return Known(2 * math.atanh(x), 0.0, _CLOSED_FORMS.get(lattice, ""), _PLANAR_ISING)
    if lattice == "square":
        v, law, reference = math.sqrt(q), "ln(1 + sqrt(q))", "Onsager 1944" if q == 2 else _BAXTER
    elif lattice == "triangular":
        v, law, reference = _root((-q, 0, 3, 1), q + 1.0), "v^3 + 3 v^2 = q", _TRIANGULAR
    elif lattice == "honeycomb":
        v = _root((-(q**2), -3 * q, 0, 1), 3 * q + 1.0)
        law, reference = "v^3 - 3 q v = q^2", _TRIANGULAR
    else:
        return _NUMERICAL.get((lattice, q))
    order = ", first order" if q > _LARGEST_CONTINUOUS else ""
    return Known(math.log1p(v), 0.0, law + order, reference)


def critical_bond_probability(lattice: str, q: float) -> Known | None:
    """Return p_c = 1 - exp(-beta_c), with which bonds between equal spins open, or None.

    ValueError if q is below 1.

    >>> critical_bond_probability("square", 1).value
    0.5
    """
    known = critical_point(lattice, q)
    if known is None:
        return None
    closed = math.exp(-known.value)
    return Known(1 - closed, closed * known.error, known.expression, known.reference)


def potts_exponents(dimension: int, q: float) -> dict[str, Known]:
    """Return the known critical exponents of the q-state Potts model by name; empty if unknown.

    1/nu (that is, y_t), beta/nu (d - y_h), gamma/nu (2 y_h - d), d_f (y_h, the dimension of the
    clusters of open bonds), tau of their sizes (1 + d / d_f) and alpha/nu (2 y_t - d).  Empty too
    where the transition is of first order.  In two dimensions q need not be an integer; at q = 4
    all of them come with logarithms, which change estimates at any size.  ValueError if q is
    below 1.

    >>> [known.expression for known in potts_exponents(2, 3).values()]
    ['6/5', '2/15', '26/15', '28/15', '29/14', '2/5']
    """
    if q < 1:
        raise ValueError(f"q = {q}: must be at least 1")
    if q == 1:
        return known_exponents(dimension)
    own = _EXPONENTS.get((dimension, q))
    if own is None and dimension == 2 and q < _LARGEST_CONTINUOUS:
        g = math.acos(-math.sqrt(q) / 2) / math.pi
        own = 3 - 3 / (2 * g), (2 * g + 1) * (2 * g + 3) / (8 * g), 0.0, 0.0, _PLANAR
    if own is None:
        return {}
    y_t, _, error, _, reference = own
    alpha = 2 * y_t - dimension
    written = str(alpha) if isinstance(alpha, Fraction) else ""
    known = derive_exponents(dimension, *own)
    return known | {"alpha/nu": Known(float(alpha), 2 * error, written, reference)}


def _root(coefficients: Sequence[float], upper: float) -> float:
    """Return the root in (0, upper) of a polynomial that changes sign once there."""
    from numpy.polynomial.polynomial import polyval
    from scipy.optimize import brentq

    return float(brentq(polyval, 0.0, upper, (coefficients,), xtol=1e-15, rtol=1e-15))


#: The reference of a value that nobody has proved.
CONJECTURE = "a conjecture: docs/analysis.md"


def spin_correction(dimension: int, q: float, *, periodic: bool, spans: bool = False) -> Known:
    """Return omega of the leading correction L^-omega to dimensionless quantities at a transition.

    periodic: along every axis.  An open side shifts L by a constant, as in percolation.  spans:
    whether it is a probability to span, which in the plane at q > 1 falls more slowly with open
    sides: by h(3,1) - 1 = 2 / m with sqrt(q) = 2 cos(pi / (m + 1)), if the irrelevant field of a
    side whose clusters are marked is that of loops that touch a side, J. L. Jacobsen and H. Saleur,
    Nucl. Phys. B 788, 137 (2008).  That is our conjecture, not theirs; exact probabilities of L up
    to 10 are not far from it (results/spins).  Above q = 3 no fit tells so small a power from a
    constant, and 2/5 is kept.

    Sources: in the plane, the irrelevant field of the Ising model, J. Salas and A. D. Sokal, J.
    Stat. Phys. 98, 551 (2000), and the next thermal exponent at q = 3, B. Nienhuis, J. Phys. A 15,
    199 (1982); at q = 4 corrections are logarithms.  In space, at q = 2, F. Kos et al., JHEP 2016,
    36 (2016).

    >>> spin_correction(2, 3, periodic=True).value, spin_correction(3, 2, periodic=False).value
    (0.8, 0.82968)
    >>> [round(spin_correction(2, q, periodic=False, spans=True).value, 6) for q in (1, 2, 3, 4)]
    [1.0, 0.666667, 0.4, 0.4]
    """
    exact: dict[tuple[int, float], Known] = {
        (2, 2): Known(2.0, 0.0, "2", "Salas and Sokal 2000"),
        (2, 3): Known(0.8, 0.0, "4/5", "Nienhuis 1982"),
        (3, 2): Known(0.82968, 0.00023, "", "Kos et al. 2016"),
    }
    known = exact.get((dimension, q), Known(1.0, 0.0, "by default", "none is known"))
    if spans and not periodic and dimension == 2 and q > 1:
        m = math.pi / math.acos(math.sqrt(min(q, 3.0)) / 2) - 1
        return Known(2 / m, 0.0, "2/m", CONJECTURE)
    if periodic or known.value < 1.0:
        return known
    return Known(1.0, 0.0, "1", "an open side")
