"""Known critical exponents of percolation, and exponents of corrections to scaling.

1/nu is a prior of p_c (:mod:`percolab.analysis.threshold`); the others are only compared.  Two
dimensions are exact: B. Nienhuis, J. Stat. Phys. 34, 731 (1984); S. Smirnov and W. Werner, Math.
Res. Lett. 8, 729 (2001).  Three: J. Wang et al., Phys. Rev. E 87, 052107 (2013).  Four and five: Z.
Zhang et al., Physica A 580, 126124 (2021).

Flows: the backbone in two dimensions, 2 - x with the root x of sqrt(36 x + 3) / 4 +
sin(2 pi sqrt(12 x + 1) / 3) between 1/4 and 2/3, P. Nolin, W. Qian, X. Sun and Z. Zhuang,
arXiv:2410.06419; shortest paths there, Z. Zhou, J. Yang, Y. Deng and R. M. Ziff, arXiv:1112.3428;
conductivity in three, G. G. Batrouni, A. Hansen and B. Larson, arXiv:cond-mat/9508041.
"""

from dataclasses import dataclass
from fractions import Fraction

Exact = float | Fraction


@dataclass(frozen=True)
class Known:
    """A known value, its error (0: exact), its formula, and its source."""

    value: float
    error: float
    expression: str
    reference: str


_CUBE, _HIGHER = "Wang et al. 2013", "Zhang et al. 2021"

#: 1/nu, d_f, their errors, and the source, by dimension.
_EXPONENTS: dict[int, tuple[Exact, Exact, float, float, str]] = {
    2: (Fraction(3, 4), Fraction(91, 48), 0.0, 0.0, "exact, Nienhuis 1984"),
    3: (1.1410, 3 - 0.47705, 0.0015, 0.00015, _CUBE),
    4: (1.461, 3.0446, 0.005, 0.0007, _HIGHER),
    5: (1.743, 3.5260, 0.010, 0.0014, _HIGHER),
}

#: The dimensions of backbones and of shortest paths, and the exponent of conductivity.
_FLOWS = {
    2: {
        "D_B": Known(1.6433331633, 0.0, "1.6433331633", "exact, Nolin et al. 2024"),
        "d_min": Known(1.13077, 0.00002, "", "Zhou et al. 2012"),
    },
    3: {
        "d_min": Known(1.3756, 0.0003, "", _CUBE),
        "t/nu": Known(2.282, 0.005, "", "Batrouni et al. 1996"),
    },
    4: {"D_B": Known(1.9844, 0.0011, "", _HIGHER), "d_min": Known(1.6042, 0.0005, "", _HIGHER)},
    5: {"D_B": Known(2.0226, 0.0027, "", _HIGHER), "d_min": Known(1.8137, 0.0016, "", _HIGHER)},
}

#: The leading correction of the bulk, L^-omega, its error and source, by dimension.  Two: of
#: wrapping probabilities (cluster sizes have 3/2: R. M. Ziff, Phys. Rev. E 83, 020107 (2011)).
#: Three: of moment ratios; those of wrapping are smaller.
_CORRECTIONS = {
    2: (2.0, 0.0, "Newman and Ziff 2001"),
    3: (1.2, 0.2, _CUBE),
    4: (1.13, 0.10, "Ballesteros et al. 1997"),
    5: (0.72, 0.0, "Gracey 2015"),
}
_SURFACE = Known(1.0, 0.0, "open boundary", "Ziff 1992; Hovi and Aharony 1996")


def known_exponents(dimension: int) -> dict[str, Known]:
    """Return the known exponents by name: 1/nu, beta/nu, gamma/nu, d_f, tau; empty if unknown.

    The exponents of flows, D_B, d_min and t/nu, are included where they are known.

    >>> [known.expression for known in known_exponents(2).values()][:6]
    ['3/4', '5/48', '43/24', '91/48', '187/91', '1.6433331633']
    >>> known_exponents(7)
    {}
    """
    if dimension not in _EXPONENTS:
        return {}
    return derive_exponents(dimension, *_EXPONENTS[dimension]) | _FLOWS[dimension]


def derive_exponents(
    dimension: int, y_t: Exact, d_f: Exact, y_t_error: float, error: float, reference: str
) -> dict[str, Known]:
    """Return the exponents that follow from 1/nu and d_f by hyperscaling; Fractions are exact."""
    values = {
        "1/nu": (y_t, y_t_error),
        "beta/nu": (dimension - d_f, error),
        "gamma/nu": (2 * d_f - dimension, 2 * error),
        "d_f": (d_f, error),
        "tau": (1 + dimension / d_f, float(dimension / d_f**2) * error),
    }
    return {
        name: Known(float(x), e, str(x) if isinstance(x, Fraction) else "", reference)
        for name, (x, e) in values.items()
    }


def correction_exponent(dimension: int, *, periodic: bool) -> Known:
    """Return omega of the leading correction L^-omega to a spanning or wrapping probability.

    periodic: along every axis.  An open side shifts L by a constant, a correction of relative size
    1 / L in every dimension, which leads unless that of the bulk falls more slowly.

    Sources: R. M. Ziff, Phys. Rev. Lett. 69, 2670 (1992); J.-P. Hovi and A. Aharony, Phys. Rev. E
    53, 235 (1996); M. E. J. Newman and R. M. Ziff, Phys. Rev. E 64, 016706 (2001); H. G.
    Ballesteros et al., Phys. Lett. B 400, 346 (1997); J. A. Gracey, Phys. Rev. D 92, 025012 (2015).

    >>> correction_exponent(2, periodic=True).value, correction_exponent(3, periodic=False).value
    (2.0, 1.0)
    """
    if dimension not in _CORRECTIONS:
        return Known(1.0, 0.0, "by default", "none is known")
    value, error, reference = _CORRECTIONS[dimension]
    if not periodic and value > _SURFACE.value:
        return _SURFACE
    return Known(value, error, "torus" if periodic else "bulk", reference)


def find_size_correction(dimension: int) -> Known:
    """Return Omega of n_s = s^-tau (a + b s^-Omega), its error, and its source.

    Two dimensions: 72/91, A. Aharony and J. Asikainen, Fractals 11, 3 (2003); R. M. Ziff, Phys.
    Rev. E 83, 020107 (2011).  Three: C. D. Lorenz and R. M. Ziff, Phys. Rev. E 57, 230 (1998).
    Four and five: omega / d_f.  Elsewhere 1/2.

    >>> find_size_correction(2).expression
    '72/91'
    """
    if dimension == 2:
        return Known(72 / 91, 0.0, "72/91", "Aharony and Asikainen 2003; Ziff 2011")
    if dimension == 3:
        return Known(0.64, 0.02, "", "Lorenz and Ziff 1998")
    known = known_exponents(dimension)
    if "d_f" not in known:
        return Known(0.5, 0.0, "", "by default: none is known")
    omega, d_f = correction_exponent(dimension, periodic=True), known["d_f"].value
    return Known(omega.value / d_f, omega.error / d_f, "omega/d_f", omega.reference)
