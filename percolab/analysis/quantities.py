"""Dimensionless quantities: the numbers that tend to a constant at p_c as L grows, in one table.

A quantity is a function of means over samples, its *moments*, by name: "largest" is <s_1>,
"largest*largest" <s_1^2>, and "s^4" the mean of the sum of s^4 over all clusters.  Probabilities
are moments themselves.  S_2 is the sum of s^2 over all clusters.  Such ratios, or their
reciprocals, are used by J. Wang et al., Phys. Rev. E 87, 052107 (2013).  Q_B is Binder's <m^2>^2 /
<m^4> when every cluster has one spin of +1 or -1, drawn at random, and m is their sum over all
sites: Y. Deng and H. W. J. Bloete, Phys. Rev. E 71, 016117 (2005).

The values of one task, at all its p and of all quantities, have the covariance of a jackknife over
blocks (B. Efron, SIAM, 1982).  To be inverted it needs MIN_BLOCKS_PER_VALUE blocks for each value.
With fewer blocks, the values of a quantity at all p are replaced by linear combinations of them,
polynomials in p that are orthogonal on the grid, lowest first.  A model is combined in the same
way, so nothing is biased; and because values and noise vary smoothly with p, little is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.averaging import LEAST_SIZES
from percolab.analysis.statistics import Floats, jackknife_value, unit_diagonal, whitening
from percolab.analysis.theory.known_exponents import correction_exponent
from percolab.errors import AnalysisError, InputError, nearest
from percolab.lattices.lattice import AXIS_NAMES
from percolab.measure.columns import list_observables

Moments = Mapping[str, Floats]

PROBABILITY, RATIO = "probability", "ratio"

_WANG = "J. Wang et al., Phys. Rev. E 87, 052107 (2013)"
_DENG = "Y. Deng and H. W. J. Bloete, Phys. Rev. E 71, 016117 (2005)"
_SILVA = "M. S. S. da Silva et al., Phys. Rev. E 66, 056107 (2002)"
_BINDER = "K. Binder, Z. Phys. B 43, 119 (1981)"

#: Moments of cluster sizes on a two-dimensional torus: R. M. Ziff, Phys. Rev. E 83, 020107 (2011).
_PLANE_RATIO = 1.5

#: Least number of blocks for each value; most combinations of the values of one quantity.
MIN_BLOCKS_PER_VALUE, MAX_COMBINATIONS = 5, 6

#: Least number of sizes in a fit; number of groups into which the blocks of long runs are joined.
MIN_SIZES, MAX_GROUPS = 2, 4000

# Smaller variances, relative to the squared values, are rounding errors; smaller eigenvalues of the
# correlations show that one value follows from the others.
_ROUNDING, _SINGULAR = 1e-24, 1e-11


@dataclass(frozen=True)
class Quantity:
    """A dimensionless quantity: name, symbol, meaning and source, and `value`, from its moments.

    kind: PROBABILITY or RATIO (of moments of cluster sizes), which differ in their corrections.
    needs: names of the moments that `value` takes, arrays of one shape, which it returns too.
    span: approximate slope at p_c over that of a probability.
    """

    name: str
    symbol: str
    meaning: str
    source: str
    kind: str
    needs: tuple[str, ...]
    value: Callable[[Moments], Floats]
    span: float = 1.0


_S_2 = ("sum_squares", "sum_squares*sum_squares")

#: The ratio whose crossings are computed separately (:mod:`percolab.analysis.crossings`).
Q_1 = Quantity(
    "Q_1", "<s_1>^2/<s_1^2>", "how sharp the largest cluster is", _WANG, RATIO,
    ("largest", "largest*largest"), lambda of: of["largest"] ** 2 / of["largest*largest"],
    span=0.25,
)  # fmt: skip
#: The moment ratios, on every lattice and boundary.
RATIOS = (
    Q_1,
    Quantity(
        "Q_2", "<S_2>^2/<S_2^2>", "how sharp the sum of squared cluster sizes is", _WANG, RATIO,
        _S_2, lambda of: of["sum_squares"] ** 2 / of["sum_squares*sum_squares"], span=0.35,
    ),
    Quantity(
        "Q_B", "<S_2>^2/<3 S_2^2 - 2 S_4>",
        "Binder's ratio of spins, one drawn at random for every cluster", _DENG, RATIO,
        (*_S_2, "s^4"),
        lambda of: of["sum_squares"] ** 2 / (3 * of["sum_squares*sum_squares"] - 2 * of["s^4"]),
        span=0.6,
    ),
    Quantity(
        "s_2/s_1", "<s_2>/<s_1>", "second largest cluster over the largest", _SILVA, RATIO,
        ("largest", "second_largest"), lambda of: of["second_largest"] / of["largest"],
        span=0.5,
    ),
)  # fmt: skip
#: The ratio that only spins have; its moments are made of the numbers of sites in every state.
Q_M = Quantity(
    "Q_m", "<M^2>^2/<M^4>", "Binder's ratio: how sharp the order parameter of spins is", _BINDER,
    RATIO, ("m^2", "m^4"), lambda of: of["m^2"] ** 2 / of["m^4"],
)  # fmt: skip


def list_quantities(boundary: Sequence[str], *, spins: bool = False) -> tuple[Quantity, ...]:
    """Return the dimensionless quantities of a lattice with this boundary, probabilities first.

    >>> [quantity.name for quantity in list_quantities(["periodic"])]
    ['wrapping_x', 'Q_1', 'Q_2', 'Q_B', 's_2/s_1']
    """
    columns = {c.name: c for c in list_observables(boundary) if c.is_probability}
    probabilities = [
        Quantity(name, c.symbol, c.meaning, c.source, PROBABILITY, (name,), itemgetter(name))
        for name, c in columns.items()
    ]
    for word, symbol in (("spanning", "R"), ("wrapping", "W")):
        own = tuple(f"{word}_{axis}" for axis in AXIS_NAMES if f"{word}_{axis}" in columns)
        # Where the axes are alike, the mean over them has a smaller error.
        if len(own) > 1:
            words = f"{word}_axis", f"{symbol}_axis", f"mean of {', '.join(own)}", _WANG
            mean = partial(lambda names, of: sum(of[name] for name in names) / len(names), own)
            probabilities.append(Quantity(*words, PROBABILITY, own, mean))
    return (*probabilities, *RATIOS, *((Q_M,) if spins else ()))


def default_quantities(boundary: Sequence[str], available: Sequence[str]) -> list[str]:
    """Return the quantities that "all" means: available ones, none of which follows from others.

    Along two axes any + all = x + y exactly, so there any and all are enough.

    >>> default_quantities(["periodic"] * 2, ["wrapping_any", "wrapping_all", "wrapping_axis"])
    ['wrapping_any', 'wrapping_all']
    """
    word = "spanning" if "open" in boundary else "wrapping"
    kinds = ("any", "all") if len(boundary) == 2 else ("any", "axis", "all")
    names = [f"{word}_{kind}" for kind in kinds if f"{word}_{kind}" in available]
    if not names:
        # One open axis alone, or a source and a target.
        names = [name for name in available if name.partition("_")[0] == word][:1]
    if Q_M.name in available:
        # The others follow the same transition less precisely.
        return [*([f"{word}_any"] if f"{word}_any" in names else names[:1]), Q_M.name]
    return names + [ratio.name for ratio in RATIOS if ratio.name in available]


def choose_quantities(
    requested: Sequence[str], boundary: Sequence[str], available: Sequence[str]
) -> tuple[Quantity, ...]:
    """Return quantities by name, "all" for the default ones; InputError for others and repeats."""
    if not all(isinstance(name, str) for name in requested):
        raise InputError(f"names = {requested!r}, but they are names of quantities")
    default = default_quantities(boundary, available)
    names = default if list(requested) == ["all"] else list(requested)
    known = {each.name: each for each in list_quantities(boundary, spins=Q_M.name in available)}
    for name in names:
        problem = ""
        if name == "all":
            problem = f"means {', '.join(default)}: leave out the other names"
        elif name not in known:
            raise InputError(f"unknown quantity {name!r}; {nearest(name, [*known, 'all'])}")
        elif name not in available:
            sweep = " (sweep with --measure sizes)" * ("s^4" in known[name].needs)
            needs = ", ".join(known[name].needs)
            problem = f"is not in this file: {needs} was not measured{sweep}"
        elif names.count(name) > 1:
            problem = "is given twice"
        if problem:
            raise InputError(f"quantity {name!r} {problem}")
    if not names:
        raise InputError("there is no dimensionless quantity in this file")
    return tuple(known[name] for name in names)


def correction_exponents(quantities: Sequence[Quantity], boundary: Sequence[str]) -> list[float]:
    """Return the exponent omega of the leading correction of each quantity.

    >>> from percolab.analysis.quantities import RATIOS
    >>> correction_exponents(RATIOS[:1], ["periodic"] * 2)
    [1.5]
    """
    periodic, dimension = set(boundary) == {"periodic"}, len(boundary)
    base = correction_exponent(dimension, periodic=periodic).value
    ratio = _PLANE_RATIO if periodic and dimension == 2 else base
    return [ratio if quantity.kind == RATIO else base for quantity in quantities]


@dataclass(frozen=True, eq=False)
class BlockMoments:
    """Block sums of the moments of one task, or of tasks that differ by seed.

    p: float64 (m,), ascending.  samples: int64 (n_blocks,).  moments: by name, the sums over each
    block's samples, float64 (n_blocks, m).  label: for messages.
    """

    L: int
    p: Floats
    samples: NDArray[np.int64]
    moments: Mapping[str, Floats]
    label: str = ""

    def has(self, quantity: Quantity) -> bool:
        return set(quantity.needs) <= set(self.moments)

    def grouped(self, groups: int = MAX_GROUPS) -> BlockMoments:
        """Return neighbouring blocks joined to at most about `groups` groups."""
        starts = np.arange(0, self.samples.size, -(-self.samples.size // groups))
        sums = {name: np.add.reduceat(own, starts) for name, own in self.moments.items()}
        return replace(self, samples=np.add.reduceat(self.samples, starts), moments=sums)

    def at(self, keep: NDArray[np.bool_]) -> BlockMoments:
        """Return the moments at some of the p, bool (m,)."""
        sums = {name: one[:, keep] for name, one in self.moments.items()}
        return replace(self, p=self.p[keep], moments=sums)

    def values(self, quantities: Sequence[Quantity]) -> tuple[Floats, Floats]:
        """Return the quantities and their jackknife replicas.

        Values, float64 (quantities, m), are corrected for their bias of order 1 / samples;
        replicas, float64 (n_blocks, quantities, m), have one block left out.
        """
        return self.evaluate([quantity.value for quantity in quantities])

    def evaluate(self, functions: Sequence[Callable[[Moments], Floats]]) -> tuple[Floats, Floats]:
        """Return functions of the moments as :meth:`values` does; replicas of one block are NaN."""
        left, whole = {}, {}
        total = int(self.samples.sum())
        # A function may be infinite, and without the only block nothing is left.
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, sums in self.moments.items():
                whole[name] = sums.sum(axis=0) / total
                left[name] = (sums.sum(axis=0) - sums) / (total - self.samples)[:, None]
            plain = np.stack([function(whole) for function in functions])
            replicas = np.stack([function(left) for function in functions], axis=1)
        return jackknife_value(plain, replicas), replicas


@dataclass(frozen=True, eq=False)
class Observations:
    """Values of one independent task that enter a fit, and their covariance.

    p: float64 (n,), and quantity: int64 (n,), index of its quantity, of every value.  values:
    float64 (n,).  combine: float64 (d, n), the combinations of values that are used, each of one
    quantity. covariance: float64 (d, d), estimated for these combinations.  degrees: degrees of
    freedom of that estimate, blocks - 1.
    """

    L: int
    p: Floats
    quantity: NDArray[np.int64]
    values: Floats
    combine: Floats
    covariance: Floats
    degrees: int
    samples: int

    @property
    def dimension(self) -> int:
        """Number of combinations d."""
        return len(self.combine)

    @cached_property
    def whiten(self) -> Floats:
        """Float64 (d, n): whiten @ (values - model) are d independent numbers of unit variance.

        The inverse of an estimated covariance is too large by degrees / (degrees - d - 1) on
        average: J. Hartlap et al., Astron. Astrophys. 464, 399 (2007).
        """
        shrink = np.sqrt((self.degrees - self.dimension - 1) / self.degrees)
        correlation, scale = unit_diagonal(self.covariance)
        return np.asarray(shrink * whitening(correlation) * scale @ self.combine, np.float64)

    def only(self, index: int) -> Observations:
        """Return the values of one quantity, which becomes the first."""
        mine = self.quantity == index
        rows = np.any(self.combine[:, mine] != 0, axis=1)
        return replace(
            self,
            p=self.p[mine],
            quantity=np.zeros(int(mine.sum()), np.int64),
            values=self.values[mine],
            combine=self.combine[np.ix_(rows, mine)],
            covariance=self.covariance[np.ix_(rows, rows)],
        )


class RedundantQuantityError(AnalysisError):
    """One of the quantities follows from the others in all samples."""


def observe(moments: BlockMoments, quantities: Sequence[Quantity]) -> Observations:
    """Return a task's values and covariance; AnalysisError: few blocks, or one value redundant."""
    index = [i for i, quantity in enumerate(quantities) if moments.has(quantity)]
    own = [quantities[i] for i in index]
    moments = moments.grouped()
    blocks, points = moments.samples.size, moments.p.size
    if lack := find_block_lack(moments, len(own)):
        fewer = "fit fewer quantities, or " if blocks >= 2 * MIN_BLOCKS_PER_VALUE else ""
        raise AnalysisError(f"{lack}: {fewer}add samples")
    # The most combinations that the blocks suffice for: orthonormal polynomials on the grid.
    count = min(blocks // (MIN_BLOCKS_PER_VALUE * len(own)), MAX_COMBINATIONS, points)
    of_p = np.eye(points)
    if count < points:
        x = (moments.p - moments.p.mean()) / np.ptp(moments.p)
        of_p = np.linalg.qr(np.vander(x, count, increasing=True))[0].T
    combine: Floats = np.kron(np.eye(len(own)), of_p).astype(np.float64)
    values, replicas = moments.values(own)
    away = (replicas - replicas.mean(axis=0)).reshape(blocks, -1) @ combine.T
    covariance = (blocks - 1) / blocks * away.T @ away
    varies = np.diag(covariance) > _ROUNDING * (combine**2 @ values.ravel() ** 2)
    if not varies.any():
        raise AnalysisError(f"L = {moments.L}: none of the quantities varies; add samples")
    covariance = covariance[np.ix_(varies, varies)]
    if np.linalg.eigvalsh(unit_diagonal(covariance)[0])[0] < _SINGULAR:
        raise RedundantQuantityError(
            f"L = {moments.L}: one of the quantities follows exactly from the others (as along two "
            "axes any + all = x + y): leave it out"
        )
    return Observations(
        L=moments.L,
        p=np.tile(moments.p, len(own)),
        quantity=np.repeat(np.array(index, np.int64), points),
        values=values.ravel(),
        combine=combine[varies],
        covariance=covariance,
        degrees=blocks - 1,
        samples=int(moments.samples.sum()),
    )


def least_sizes(moments: Sequence[BlockMoments]) -> int:
    """Return the least number of sizes with a quantity: three, or all if there are fewer."""
    return max(MIN_SIZES, min(LEAST_SIZES, len({each.L for each in moments})))


def find_lack(quantity: Quantity, moments: Sequence[BlockMoments]) -> str | None:
    """Return one line on why a quantity cannot be fitted, too few sizes or p, or None."""
    own = [each for each in moments if each.has(quantity)]
    sizes = sorted({each.L for each in own})
    if len(sizes) < least_sizes(moments):
        shown = ", ".join(f"L = {size}" for size in sizes) or "no size"
        return f"quantity {quantity.name!r} is measured at too few sizes ({shown})"
    if max(len({p for m in own if size == m.L for p in m.p.tolist()}) for size in sizes) < 2:
        return f"quantity {quantity.name!r} is measured at one p per size, so its slope is unknown"
    return None


def find_block_lack(moments: BlockMoments, quantities: int) -> str | None:
    """Return one line on why a task's blocks do not give a covariance, or None."""
    blocks = moments.samples.size
    least = min(moments.p.size, 2) * MIN_BLOCKS_PER_VALUE * quantities
    if blocks >= least:
        return None
    # With fewer quantities more p may be near p_c, so two values of each quantity are counted.
    enough = blocks // (2 * MIN_BLOCKS_PER_VALUE)
    are = "block is" if blocks == 1 else "blocks are"
    return (
        f"L = {moments.L}: {blocks} {are} too few for the covariance of "
        f"{quantities} quantit{'y' if quantities == 1 else 'ies'} "
        f"(at least {least}{f'; they are enough for {enough}' if enough else ''})"
    )
