"""Exact results for the Ising model on the square lattice: any torus, and the infinite lattice.

H = - sum of s s' over the bonds, spins s = +1 or -1, coupling K = J / (k T) > 0.  Energies are in
units of J and specific heats in units of k, both per site.  A bond is satisfied with probability
(1 - energy / 2) / 2.  As a Potts model with q = 2 states, beta = 2 K.

On a torus of n x m sites Kaufman's partition function has four parts, with modes of odd or even
number k and with hyperbolic cosines or sines,

    Z = (2 sinh 2K)^(N/2) / 2  (sum over the parts of  product over k of 2 cosh or sinh(m g_k / 2)),
    cosh g_k = cosh 2K coth 2K - cos(pi k / n),

k being 1, 3 ... 2n-1 or 0, 2 ... 2n-2.  All g_k are positive but g_0 = 2K + ln tanh K, which has
the sign of K - K_c.  It changes the sign of one of the four parts.

Sources: B. Kaufman, Phys. Rev. 76, 1232 (1949); A. E. Ferdinand and M. E. Fisher, Phys. Rev. 185,
832 (1969); L. Onsager, Phys. Rev. 65, 117 (1944); C. N. Yang, Phys. Rev. 85, 808 (1952).

The names of thermal means are those of :data:`percolab.analysis.stored_spins.THERMAL`.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.statistics import Floats
from percolab.bonds.model import Model
from percolab.lattices.lattice import load_lattice
from percolab.lattices.structure import Structure

#: sinh 2K = 1.
CRITICAL_COUPLING = math.log1p(math.sqrt(2)) / 2

#: Bonds of a site of the square lattice, the difference of the two conventions of the energy.
_BONDS = 2

#: Q_m at T_c of the Ising model on a square torus.
BINDER_AT_CRITICALITY = 0.856216
BINDER_SOURCE = "Kamieniarz and Blöte 1993"

#: Couplings beyond these lose all digits of an energy or overflow.
_SMALLEST, _LARGEST = 1e-6, 100.0


@dataclass(frozen=True)
class IsingTorus:
    """Exact means per site of an Ising model on a finite torus.

    log_partition: ln Z / N, of Z summed over all 2^N states.  energy: - d ln Z / dK / N, from 0
    (K = 0) to -2 (K infinite).  specific_heat: K^2 d^2 ln Z / dK^2 / N.
    """

    log_partition: float
    energy: float
    specific_heat: float


@dataclass(frozen=True)
class _IsingPart:
    """One of the four parts as a exp(logarithm), and two derivatives by K of both; a may vanish."""

    logarithm: float
    first: float
    second: float
    a: float = 1.0
    a_first: float = 0.0
    a_second: float = 0.0


def ising_torus(length_x: int, length_y: int, coupling: float) -> IsingTorus:
    """Return the exact energy and specific heat of the Ising model on a torus.

    The two lengths are in sites, at least 1; a length of 2 has every bond along it twice, a length
    of 1 bonds of a site with itself.  Rounding errors are of the order 1e-15 + 1e-16 / K in an
    energy, 1e-14 in a specific heat.  The time grows as the shorter length, 1 ms at 4096.
    ValueError unless the lengths are positive and the coupling is from 1e-6 to 100.

    >>> round(ising_torus(64, 64, CRITICAL_COUPLING).energy, 9)
    -1.42393839
    """
    if length_x < 1 or length_y < 1:
        raise ValueError(f"lengths {length_x}, {length_y}: must be at least 1")
    _check(coupling)
    modes, length = sorted((length_x, length_y))
    parts = _parts(modes, length, coupling)
    largest = max(part.logarithm for part in parts)
    weights = [math.exp(part.logarithm - largest) for part in parts]
    total = sum(weight * part.a for weight, part in zip(weights, parts))
    shares = [(weight / total, part) for weight, part in zip(weights, parts)]
    first = sum(share * (part.a * part.first + part.a_first) for share, part in shares)
    second = 0.0
    # About the mean, so that the squares of large numbers do not cancel.
    for share, part in shares:
        apart = part.first - first
        curved = part.a_second + 2 * part.a_first * apart + part.a * (part.second + apart**2)
        second += share * curved
    sites, sinh = modes * length, math.sinh(2 * coupling)
    log_prefactor = 0.5 * sites * math.log(2 * sinh) - math.log(2)
    first += sites / math.tanh(2 * coupling)
    second -= 2 * sites / sinh**2
    return IsingTorus(
        log_partition=(log_prefactor + largest + math.log(total)) / sites,
        energy=-first / sites,
        specific_heat=coupling**2 * second / sites,
    )


def ising_energy(coupling: float) -> float:
    """Return the energy per site of the infinite square lattice, in units of J.

    ValueError unless the coupling is from 1e-6 to 100.  Source: L. Onsager (1944).

    >>> round(ising_energy(CRITICAL_COUPLING) ** 2, 12)
    2.0
    """
    from scipy.special import ellipkm1

    _check(coupling)
    modulus = _complementary_modulus(coupling)
    # At K_c the integral is infinite and its factor 0.
    product = modulus * float(ellipkm1(modulus**2)) if modulus else 0.0
    return -(1 + 2 / math.pi * product) / math.tanh(2 * coupling)


def ising_specific_heat(coupling: float) -> float:
    """Return the specific heat per site of the infinite square lattice, in units of k.

    Infinite at K_c.  ValueError unless the coupling is from 1e-6 to 100.  Source: L. Onsager
    (1944).

    >>> round(ising_specific_heat(0.4), 10)
    0.8616983568
    """
    from scipy.special import ellipe, ellipkm1

    _check(coupling)
    modulus = _complementary_modulus(coupling)
    if modulus == 0:
        return math.inf
    first, second = float(ellipkm1(modulus**2)), float(ellipe(1 - modulus**2))
    bracket = first - second - (1 - modulus) / 2 * (math.pi / 2 + modulus * first)
    return 4 / math.pi * (coupling / math.tanh(2 * coupling)) ** 2 * bracket


def ising_magnetization(coupling: float) -> float:
    """Return the spontaneous magnetization of the infinite square lattice, 0 at K_c and below.

    ValueError unless the coupling is from 1e-6 to 100.  Source: C. N. Yang (1952).

    >>> ising_magnetization(0.44), round(ising_magnetization(0.5), 10)
    (0.0, 0.9113193779)
    """
    _check(coupling)
    sinh = math.sinh(2 * coupling)
    return (1 - sinh**-4) ** 0.125 if sinh > 1 else 0.0


def _check(coupling: float) -> None:
    if not _SMALLEST <= coupling <= _LARGEST:
        raise ValueError(f"coupling {coupling}: must be from {_SMALLEST} to {_LARGEST}")


def _complementary_modulus(coupling: float) -> float:
    """Return 2 tanh^2 2K - 1, of the sign of K - K_c; 1 less its square is the squared modulus."""
    sinh, cosh = math.sinh(2 * coupling), math.cosh(2 * coupling)
    return (sinh - 1) / cosh * ((sinh + 1) / cosh)


def _modes(numbers: NDArray[np.int64], count: int, coupling: float) -> tuple[Floats, ...]:
    """Return g_k of some k > 0 and two derivatives by K, float64 (modes,) each.

    From cosh g - 1, whose terms are all positive, so that none cancels.
    """
    sinh, cosh = math.sinh(2 * coupling), math.cosh(2 * coupling)
    above = (sinh - 1) ** 2 / sinh + 2 * np.sin(np.pi * numbers / (2 * count)) ** 2
    slope = 2 * cosh * (1 - sinh**-2)
    curvature = 4 * sinh * (1 - sinh**-2) + 8 * cosh**2 / sinh**3
    sinh_g = np.sqrt(above * (above + 2))
    first = slope / sinh_g
    second = (curvature - (1 + above) * first**2) / sinh_g
    return 2 * np.arcsinh(np.sqrt(above / 2)), first, second


def _parts(modes: int, length: int, coupling: float) -> list[_IsingPart]:
    """Return the four parts of the partition function; the last has the sign of K - K_c."""
    odd = _modes(np.arange(1, 2 * modes, 2), modes, coupling)
    even = _modes(np.arange(2, 2 * modes, 2), modes, coupling)
    # The mode k = 0, in closed form: 1 + cos(0) is no longer there to take a root of.
    sinh = math.sinh(2 * coupling)
    zero = 2 * math.asinh((sinh - 1) / math.sqrt(2 * sinh))
    zero_first, zero_second = 2 + 2 / sinh, -4 * math.cosh(2 * coupling) / sinh**2
    half, half_first, half_second = (0.5 * length * x for x in (zero, zero_first, zero_second))
    # 2 cosh and 2 sinh of half, over exp(|half|).
    decay = math.exp(-2 * abs(half))
    cosh, signed = 1 + decay, math.copysign(1 - decay, half)
    parts = [_product(odd, length, sine=False), _product(odd, length, sine=True)]
    for sine, a, slope in ((False, cosh, signed), (True, signed, cosh)):
        part = _product(even, length, sine=sine)
        derivatives = half_first * slope, half_second * slope + half_first**2 * a
        logarithm = part.logarithm + abs(half)
        parts.append(_IsingPart(logarithm, part.first, part.second, a, *derivatives))
    return parts


def _product(modes: tuple[Floats, ...], length: int, *, sine: bool) -> _IsingPart:
    """Return the product of 2 cosh(m g_k / 2), or of sines, by its logarithm."""
    half, first, second = (0.5 * length * x for x in modes)
    decay, sinh = np.exp(-2 * half), -np.expm1(-2 * half)
    # The derivative of ratio, a hyperbolic tangent or cotangent, is rest = 1 - ratio^2.
    if sine:
        logarithm, ratio, rest = half + np.log(sinh), (1 + decay) / sinh, -4 * decay / sinh**2
    else:
        logarithm, ratio = half + np.log1p(decay), sinh / (1 + decay)
        rest = 4 * decay / (1 + decay) ** 2
    slopes, curvatures = first * ratio, second * ratio + first**2 * rest
    return _IsingPart(float(logarithm.sum()), float(slopes.sum()), float(curvatures.sum()))


def is_square_ising(structure: Structure, model: Model) -> bool:
    """Return whether it is the Ising model, or a Potts model of 2 states, on the square lattice."""
    return model.states == 2 and structure.digest == _square_digest()


@cache
def _square_digest() -> str:
    return load_lattice("square").digest


def exact_mean(name: str, model: Model, coupling: float, size: int | None = None) -> float | None:
    """Return the exact mean on a torus of size x size sites, or of the infinite lattice, or None.

    Of a torus Kaufman's energy and specific heat are known; of the infinite lattice Onsager's, and
    Yang's order parameter.  coupling: K, or beta of a Potts model.  ValueError if it is not from
    1e-6 to 100.

    >>> round(exact_mean("energy", Model.parse("ising"), 0.44, 64), 6)
    -1.416121
    """
    own = coupling if model.name == "ising" else coupling / 2
    if name == "specific_heat":
        heat = ising_torus(size, size, own).specific_heat if size else ising_specific_heat(own)
        return heat if math.isfinite(heat) else None
    if name == "energy":
        energy = ising_torus(size, size, own).energy if size else ising_energy(own)
        # In the model's own convention.
        return energy if model.name == "ising" else (energy - _BONDS) / 2
    return ising_magnetization(own) if name == "order" and not size else None
