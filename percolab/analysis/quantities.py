"""Dimensionless quantities: every number that tends to a constant at p_c as L grows, in one table.

A quantity is a function of means over samples, its *moments*, by name: "largest" is <s_1>,
"largest*largest" <s_1^2>, and "s^4" the mean of the sum of s^4 over all clusters.  Probabilities
are moments themselves.  S_2 is the sum of s^2 over all clusters.

Such ratios, or their reciprocals, are used by J. Wang et al., Phys. Rev. E 87, 052107 (2013).  Q_B
is Binder's <m^2>^2 / <m^4> when every cluster has one spin of +1 or -1, drawn at random, and m is
their sum over all sites: Y. Deng and H. W. J. Bloete, Phys. Rev. E 71, 016117 (2005).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.known_exponents import correction_exponent
from percolab.errors import InputError, nearest
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.columns import observables_of

Floats = NDArray[np.float64]
Moments = Mapping[str, Floats]

PROBABILITY, RATIO = "probability", "ratio"

_WANG = "J. Wang et al., Phys. Rev. E 87, 052107 (2013)"
_DENG = "Y. Deng and H. W. J. Bloete, Phys. Rev. E 71, 016117 (2005)"


@dataclass(frozen=True)
class Quantity:
    """A dimensionless quantity: name, symbol, meaning and source, and its value of moments.

    kind: PROBABILITY or RATIO (of moments of cluster sizes), which differ in their corrections.
    needs: the moments that `value` is a function of, arrays of one shape, which it has too.
    """

    name: str
    symbol: str
    meaning: str
    source: str
    kind: str
    needs: tuple[str, ...]
    value: Callable[[Moments], Floats]


def _moment(name: str) -> Callable[[Moments], Floats]:
    """Return <x>."""
    return lambda of: of[name]


def _squared_over(first: str) -> Callable[[Moments], Floats]:
    """Return <x>^2 / <x^2>."""
    return lambda of: of[first] ** 2 / of[f"{first}*{first}"]


def _binder(of: Moments) -> Floats:
    return of["sum_squares"] ** 2 / (3 * of["sum_squares*sum_squares"] - 2 * of["s^4"])


#: The ratio whose crossings are looked for, too (:mod:`percolab.analysis.ratio_crossings`).
Q_1 = Quantity(
    "Q_1",
    "<s_1>^2/<s_1^2>",
    "how sharp the largest cluster is",
    _WANG,
    RATIO,
    ("largest", "largest*largest"),
    _squared_over("largest"),
)

#: The moment ratios, on every lattice and boundary.
RATIOS = (
    Q_1,
    Quantity(
        "Q_2",
        "<S_2>^2/<S_2^2>",
        "how sharp the sum of squared cluster sizes is",
        _WANG,
        RATIO,
        ("sum_squares", "sum_squares*sum_squares"),
        _squared_over("sum_squares"),
    ),
    Quantity(
        "Q_B",
        "<S_2>^2/<3 S_2^2 - 2 S_4>",
        "Binder's ratio of spins, one drawn at random for every cluster",
        _DENG,
        RATIO,
        ("sum_squares", "sum_squares*sum_squares", "s^4"),
        _binder,
    ),
    Quantity(
        "s_2/s_1",
        "<s_2>/<s_1>",
        "second largest cluster over the largest",
        "M. S. S. da Silva et al., Phys. Rev. E 66, 056107 (2002)",
        RATIO,
        ("largest", "second_largest"),
        lambda of: of["second_largest"] / of["largest"],
    ),
)


def quantities_of(boundary: Sequence[str]) -> tuple[Quantity, ...]:
    """Return the dimensionless quantities of a lattice with this boundary, probabilities first.

    >>> [item.name for item in quantities_of(["periodic"])]
    ['wrapping_x', 'Q_1', 'Q_2', 'Q_B', 's_2/s_1']
    """
    found = [
        Quantity(
            item.name,
            item.symbol,
            item.meaning,
            item.source,
            PROBABILITY,
            (item.name,),
            _moment(item.name),
        )
        for item in observables_of(boundary)
        if item.is_probability
    ]
    names = [item.name for item in found]
    for word, symbol in (("spanning", "R"), ("wrapping", "W")):
        own = tuple(f"{word}_{axis}" for axis in AXIS_NAMES if f"{word}_{axis}" in names)
        if len(own) > 1:
            found.append(_mean_of_axes(word, symbol, own))
    return (*found, *RATIOS)


def _mean_of_axes(word: str, symbol: str, own: tuple[str, ...]) -> Quantity:
    """Return the mean over the axes, which has the smaller error where they are alike."""
    return Quantity(
        f"{word}_axis",
        f"{symbol}_axis",
        f"mean of {', '.join(own)}",
        _WANG,
        PROBABILITY,
        own,
        lambda of: sum((of[name] for name in own[1:]), of[own[0]]) / len(own),
    )


def default_quantities(boundary: Sequence[str], available: Sequence[str]) -> list[str]:
    """Return the quantities that "all" stands for: of those available, none follows from others.

    Along two axes any + all = x + y exactly, so there any and all stand for their sum as well.

    >>> default_quantities(["periodic"] * 2, ["wrapping_any", "wrapping_all", "wrapping_axis"])
    ['wrapping_any', 'wrapping_all']
    """
    words = ["spanning"] if "open" in boundary else ["wrapping"]
    kinds = ("any", "all") if len(boundary) == 2 else ("any", "axis", "all")
    wanted = [f"{word}_{kind}" for word in words for kind in kinds]
    found = [name for name in wanted if name in available]
    if not found:
        # One open axis alone, or a source and a target.
        found = [name for name in available if name.partition("_")[0] in words][:1]
    return found + [item.name for item in RATIOS if item.name in available]


def choose_quantities(
    wanted: Sequence[str], boundary: Sequence[str], available: Sequence[str]
) -> tuple[Quantity, ...]:
    """Return quantities by name, "all" for the default ones; InputError for others and repeats."""
    default = default_quantities(boundary, available)
    names = default if list(wanted) == ["all"] else list(wanted)
    known = {item.name: item for item in quantities_of(boundary)}
    for name in names:
        if name == "all":
            raise InputError(
                f"quantity 'all' stands alone, for {', '.join(default)}: leave out the others"
            )
        if name not in known:
            raise InputError(f"unknown quantity {name!r}; {nearest(name, [*known, 'all'])}")
        if name not in available:
            raise InputError(
                f"quantity {name!r} is not in this file: {', '.join(known[name].needs)} "
                "was not measured"
                + (" (percolab sweep --measure sizes)" if "s^4" in known[name].needs else "")
            )
        if names.count(name) > 1:
            raise InputError(f"quantity {name!r} is given twice")
    if not names:
        raise InputError("there is no dimensionless quantity in this file")
    return tuple(known[name] for name in names)


#: Moments of cluster sizes on a two-dimensional torus: R. M. Ziff, Phys. Rev. E 83, 020107 (2011).
_PLANE_RATIO = 1.5

#: Beside 1.2 on a three-dimensional torus: that of some wrapping probabilities, and b_2 (Wang).
_CUBE_SECOND = 2.0


def correction_exponents(
    quantities: Sequence[Quantity], boundary: Sequence[str]
) -> tuple[list[tuple[float, ...]], float]:
    """Return the omegas of each quantity, several sets where it is open which are right; omega_2.

    On a three-dimensional torus the leading correction of probabilities may be too small to be
    seen, so that 2 stands in its place.  omega_2 is 2 there, else twice the smallest omega.

    >>> from percolab.analysis.quantities import RATIOS
    >>> correction_exponents(RATIOS[:1], ["periodic"] * 2)
    ([(1.5,)], 3.0)
    """
    periodic, dimension = set(boundary) == {"periodic"}, len(boundary)
    base = correction_exponent(dimension, periodic=periodic).value
    own = {PROBABILITY: base, RATIO: base}
    sets = [own]
    if periodic and dimension == 2:
        own[RATIO] = _PLANE_RATIO
    if periodic and dimension == 3:
        sets.append({PROBABILITY: _CUBE_SECOND, RATIO: base})
    # Without a probability the sets are one.
    found = dict.fromkeys(tuple(each[item.kind] for item in quantities) for each in sets)
    second = _CUBE_SECOND if len(sets) > 1 else 2 * min(min(found))
    return list(found), second
