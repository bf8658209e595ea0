"""Critical exponents from quantities at the fitted p_c, as power laws in L.

    R'_L(p_c) ~ L^(1/nu)                            slope of the spanning probability
    P_inf = <s_1> / N ~ L^(-beta/nu)                percolation strength
    chi = (<sum s^2> - <s_1^2>) / N ~ L^(gamma/nu)  mean cluster size without the largest cluster
    <s_1^2> / N ~ L^(gamma/nu)                      and of the largest cluster alone

d_f = d - beta/nu, and tau = 1 + d / d_f by hyperscaling (D. Stauffer and A. Aharony, Introduction
to Percolation Theory, 1994). Between the p of a grid a quantity is the polynomial through the
nearest points. A power law is fitted as

    ln y_L = ln A + k ln L + b L^-omega

by generalised least squares, because numbers taken at one estimated p_c share its error; the last
term is the first of ln(1 + b L^-omega).

Errors are those of one bootstrap over blocks in which the same blocks give p_c and the quantities,
so that every error contains that of p_c and the correlation with it. Each exponent is fitted from
a range of L_min with and without a correction to scaling; that with a correction and the smallest
L_min which chi^2 does not reject is taken. The covariance of the sizes is that of the replicas,
times the factor of J. Hartlap, P. Simon and P. Schneider, Astron. Astrophys. 464, 399 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from percolab.analysis.cluster_numbers import SizeCounts
from percolab.analysis.curves import (
    ClusterCurve,
    curves_of_size,
    linear_sizes,
    nearest_nodes,
    node_weights,
)
from percolab.analysis.fit_quality import ChiSquare, cutoffs_of, first_accepted, is_poor
from percolab.analysis.json_values import plain
from percolab.analysis.likelihood import ThresholdCells, maximise, resample_curve
from percolab.analysis.scaling import ScalingModel
from percolab.analysis.size_fit import fit_size, refit
from percolab.analysis.statistics import (
    MIN_BLOCKS,
    Floats,
    draw_blocks,
    geometric_mean,
    least_squares,
    with_data_first,
)
from percolab.analysis.tau import TauFit, TauReplicas, fit_tau
from percolab.analysis.theory.known_exponents import Known, known_exponents
from percolab.analysis.threshold import ThresholdFit
from percolab.errors import AnalysisError

#: TauReplicas that a covariance of several sizes needs at least.
MIN_REPLICAS = 50

# What scatters by less, relative to itself, scatters by the rounding of an interpolation.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CriticalQuantity:
    """What is a power of L at p_c: its name, its exponent's name and sign, and in words."""

    name: str
    exponent: str
    sign: int
    meaning: str


#: In the order in which exponents are shown.
QUANTITIES = (
    CriticalQuantity("slope", "1/nu", 1, "dR_L/dp at p_c"),
    CriticalQuantity("P_inf", "beta/nu", -1, "P_inf = <s_1>/N at p_c"),
    CriticalQuantity("chi", "gamma/nu", 1, "chi = (<sum s^2> - <s_1^2>)/N at p_c"),
    CriticalQuantity("s1_squared", "gamma/nu", 1, "<s_1^2>/N at p_c"),
)


@dataclass(frozen=True, eq=False)
class Values:
    """One quantity at p_c, size by size.

    values: float64 (n,). replicas: float64 (replicas, n), of the same bootstrap for all quantities.
    """

    quantity: CriticalQuantity
    sizes: tuple[int, ...]
    values: Floats
    replicas: Floats

    @property
    def errors(self) -> Floats:
        """One-sigma errors, that of p_c included, float64 (n,)."""
        return np.asarray(self.replicas.std(axis=0, ddof=1), np.float64)

    def to_dict(self) -> dict[str, object]:
        """Return the values with their errors as plain JSON values."""
        record: dict[str, object] = {
            "quantity": self.quantity.name,
            "meaning": self.quantity.meaning,
            "sizes": self.sizes,
            "values": self.values,
            "errors": self.errors,
        }
        return plain(record)


@dataclass(frozen=True)
class PowerLaw:
    """A fitted power law: exponent k and amplitude A with one-sigma errors, from L_min on."""

    min_size: int
    with_correction: bool
    exponent: float
    error: float
    amplitude: float
    chi_square: ChiSquare

    @property
    def accepted(self) -> bool:
        """Whether chi^2 does not reject the power law."""
        return not is_poor(self.chi_square)


def fit_power_law(
    sizes: Sequence[int],
    values: Floats,
    covariance: Floats,
    *,
    with_correction: bool,
    omega: float,
) -> PowerLaw:
    """Fit ln y_L.

    sizes: ascending. values: float64 (n,), y_L > 0. covariance: float64 (n, n), of ln y_L.
    Raises AnalysisError with fewer sizes than parameters, or a covariance that is singular.
    """
    L = np.array(sizes, float)
    # In units of the geometric mean size the columns are nearly orthogonal.
    middle = geometric_mean(L)
    columns = [np.ones_like(L), np.log(L / middle)]
    if with_correction:
        columns.append((L / middle) ** -omega)
    design = np.stack(columns, axis=1)
    if L.size < design.shape[1]:
        raise AnalysisError(f"{L.size} sizes are too few for a power law in L")
    theta, errors, quality = least_squares(design, np.log(values), covariance)
    return PowerLaw(
        min_size=int(sizes[0]),
        with_correction=with_correction,
        exponent=float(theta[1]),
        error=float(errors[1, 1] ** 0.5),
        amplitude=float(np.exp(theta[0]) * middle ** -theta[1]),
        chi_square=quality,
    )


@dataclass(frozen=True)
class Exponent:
    """An exponent with its one-sigma error, where it is from, and its known value if there is one.

    law, fits: the power law it was read off, and all that were tried; None and () for one that
    comes of another fit or of another exponent.
    """

    name: str
    value: float
    error: float
    source: str
    known: Known | None = None
    law: PowerLaw | None = None
    fits: tuple[PowerLaw, ...] = ()

    @property
    def difference(self) -> float:
        """Distance from the known value in combined errors; NaN where none is known."""
        if self.known is None:
            return nan
        return (self.value - self.known.value) / float(np.hypot(self.error, self.known.error))


@dataclass(frozen=True)
class ExponentFit:
    """All exponents of a study, what they were read off, and what a reader must know.

    tau_fit: the fit of tau to the cluster numbers, where sizes were counted.
    """

    exponents: tuple[Exponent, ...]
    values: tuple[Values, ...]
    notes: tuple[str, ...]
    tau_fit: TauFit | None = None

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return {
            "exponents": [
                plain(exponent) | {"difference": plain(exponent.difference)}
                for exponent in self.exponents
            ],
            "values": [values.to_dict() for values in self.values],
            "notes": list(self.notes),
            "cluster_numbers": None if self.tau_fit is None else self.tau_fit.to_dict(),
        }


def fit_exponents(
    fit: ThresholdFit,
    clusters: Sequence[ClusterCurve],
    *,
    dimension: int,
    numbers: Sequence[SizeCounts] = (),
    is_open: bool = True,
    bootstrap: int = 200,
    seed: int = 0,
) -> ExponentFit:
    """Read the exponents off the quantities at `fit.threshold`.

    clusters: of the tasks of the fit, matched by label; () leaves 1/nu alone. numbers: of the same
    tasks, for tau; is_open: whether any axis is. bootstrap: replicas, at least MIN_REPLICAS. seed:
    of the bootstrap. Raises AnalysisError when there are too few replicas, or too few converge.
    """
    if bootstrap < MIN_REPLICAS:
        raise AnalysisError(
            f"exponents need at least {MIN_REPLICAS} bootstrap replicas, got {bootstrap}"
        )
    usable, notes = _usable(clusters, fit.threshold)
    replicas = CriticalReplicas.of(fit, usable, bootstrap, np.random.default_rng(seed))
    values = [slopes_at_threshold(fit, replicas), *cluster_values(fit.threshold, usable, replicas)]
    known = known_exponents(dimension)
    found = [Exponent("1/nu", fit.y_t, fit.y_t_error, "the fit of all curves", known.get("1/nu"))]
    for item in values:
        exponent, own_notes = _read_off(item, fit.scaling.omega, known)
        found += [] if exponent is None else [exponent]
        notes += own_notes
    found += _derived(found, dimension, known)
    drawn = TauReplicas(replicas.thresholds, replicas.drawn(usable))
    tau_fit, tau_notes = _tau_from_numbers(
        numbers, fit.threshold, dimension=dimension, is_open=is_open, replicas=drawn
    )
    if tau_fit is not None:
        found.append(Exponent("tau", tau_fit.tau, tau_fit.error, tau_fit.source, tau_fit.known))
    return ExponentFit(tuple(found), tuple(values), (*notes, *tau_notes), tau_fit)


def _usable(
    clusters: Sequence[ClusterCurve], p_c: float
) -> tuple[tuple[ClusterCurve, ...], list[str]]:
    """Return the curves that hold p_c between their p and have blocks enough, and notes."""
    notes = []
    if not clusters:
        notes.append("no cluster sizes are stored by method threshold: 1/nu alone")
    used = []
    for curve in clusters:
        if curve.samples.size < MIN_BLOCKS:
            notes.append(f"L = {curve.L} left out of the exponents: fewer than {MIN_BLOCKS} blocks")
        elif not curve.p[0] <= p_c <= curve.p[-1] or curve.p.size < 3:
            notes.append(f"L = {curve.L} left out of the exponents: p_c is not inside its p grid")
        else:
            used.append(curve)
    return tuple(used), notes


def _read_off(
    values: Values, omega: float, known: dict[str, Known]
) -> tuple[Exponent | None, list[str]]:
    """Return the exponent of a quantity, None where too little is left of it, and notes."""
    kept, notes = with_logarithm(values)
    quantity = values.quantity
    if len(kept.sizes) < 2 or len(kept.replicas) < MIN_REPLICAS:
        few = "two sizes" if len(kept.sizes) < 2 else f"{MIN_REPLICAS} replicas"
        return None, [*notes, f"{quantity.meaning}: fewer than {few}, so no exponent"]
    fits = _power_laws(kept, omega)
    law = _choose(fits, kept.sizes)
    if not law.accepted:
        notes.append(
            f"{quantity.exponent} from {quantity.meaning}: its power law is poor "
            f"(p-value {law.chi_square.p_value:.1e}), so its error is too small"
        )
    name, value = quantity.exponent, quantity.sign * law.exponent
    return Exponent(name, value, law.error, quantity.meaning, known.get(name), law, fits), notes


def _power_laws(values: Values, omega: float) -> tuple[PowerLaw, ...]:
    """Return the power laws from every L_min on, without and with a correction to scaling."""
    covariance = np.atleast_2d(np.cov(np.log(values.replicas), rowvar=False))
    count, number = values.replicas.shape
    return tuple(
        fit_power_law(
            values.sizes[first:],
            values.values[first:],
            # The inverse of an estimated covariance is too large by this (Hartlap et al. 2007).
            covariance[first:, first:] * (count - 1) / (count - (number - first) - 2),
            with_correction=with_correction,
            omega=omega,
        )
        for with_correction in (False, True)
        for first in range(len(values.sizes) - 1 - with_correction)
    )


def _choose(fits: Sequence[PowerLaw], sizes: Sequence[int]) -> PowerLaw:
    """Return the fit that an exponent is taken from; two sizes cannot determine a correction."""
    corrected = [law for law in fits if law.with_correction] or list(fits)
    return first_accepted(law for law in corrected if law.min_size in cutoffs_of(sizes))


def _tau_from_numbers(
    numbers: Sequence[SizeCounts],
    threshold: float,
    *,
    dimension: int,
    is_open: bool,
    replicas: TauReplicas,
) -> tuple[TauFit | None, tuple[str, ...]]:
    """Return the fit of tau to n_s, None where sizes were not counted or do not give it; notes."""
    if not numbers:
        return None, ()
    try:
        found = fit_tau(
            numbers,
            threshold=threshold,
            threshold_error=float(replicas.thresholds.std(ddof=1)),
            dimension=dimension,
            is_open=is_open,
            replicas=replicas,
        )
    except AnalysisError as error:
        return None, (str(error),)
    return found, found.notes


def _derived(found: Sequence[Exponent], dimension: int, known: dict[str, Known]) -> list[Exponent]:
    """Return d_f and tau, which follow from beta/nu."""
    strength = next((item for item in found if item.name == "beta/nu"), None)
    if strength is None:
        return []
    d_f, error = dimension - strength.value, strength.error
    tau, tau_error = 1 + dimension / d_f, dimension / d_f**2 * error
    return [
        Exponent("d_f", d_f, error, "d - beta/nu", known.get("d_f")),
        Exponent("tau", tau, tau_error, "1 + d/d_f", known.get("tau")),
    ]


@dataclass(frozen=True, eq=False)
class CriticalReplicas:
    """The replicas that converged: their p_c, their counts, and how often they took each block.

    cells: of the fit. thresholds: float64 (r,). counts: float64 (r, cells). weights: float64
    (r, n_blocks) of every curve of clusters, in order.
    """

    cells: ThresholdCells
    thresholds: Floats
    counts: Floats
    weights: list[Floats]

    def drawn(self, clusters: Sequence[ClusterCurve]) -> dict[str, Floats]:
        """Return the weights of every curve's blocks by its label."""
        return {curve.label: own for curve, own in zip(clusters, self.weights) if curve.label}

    @classmethod
    def of(
        cls,
        fit: ThresholdFit,
        clusters: Sequence[ClusterCurve],
        replicas: int,
        rng: np.random.Generator,
    ) -> CriticalReplicas:
        """Return so many replicas of a fit; AnalysisError if fewer than MIN_REPLICAS converge."""
        cells = ThresholdCells.from_curves(fit.used)
        model = ScalingModel.of(
            cells,
            degree=fit.degree,
            with_correction=fit.with_correction,
            with_mixed=fit.with_mixed,
            omega=fit.scaling.omega,
        )
        start = maximise(model, cells, cells.counts, model.start).theta
        weights = [draw_blocks(curve.samples.size, rng, replicas) for curve in clusters]
        # A task's spanning counts and its cluster sizes are of the same blocks.
        drawn = {curve.label: own for curve, own in zip(clusters, weights) if curve.label}
        counts = np.hstack(
            [
                drawn[curve.label] @ curve.threshold_counts
                if curve.label in drawn
                else resample_curve(curve, rng, replicas)
                for curve in fit.used
            ]
        )
        thresholds = np.full(replicas, nan)
        for index, own in enumerate(counts):
            try:
                theta = maximise(model, cells, own, start).theta
            except AnalysisError:
                continue
            thresholds[index] = model.scaling_function(theta).threshold
        kept = np.isfinite(thresholds)
        if kept.sum() < MIN_REPLICAS:
            raise AnalysisError(
                f"only {kept.sum()} of {replicas} bootstrap replicas could be fitted: add samples"
            )
        return cls(cells, thresholds[kept], counts[kept], [own[kept] for own in weights])


def slopes_at_threshold(fit: ThresholdFit, replicas: CriticalReplicas) -> Values:
    """Return dR_L/dp at p_c of every size of the fit, each from its own polynomial."""
    sizes = linear_sizes(fit.used)
    values = np.empty(len(sizes))
    resampled = np.full((replicas.thresholds.size, len(sizes)), nan)
    for column, size in enumerate(sizes):
        own, mask = replicas.cells.of_size(size)
        line = fit_size(curves_of_size(fit.used, size), degree=fit.degree)
        values[column] = line.slope(fit.threshold)
        for row, (counts, p_c) in enumerate(
            zip(replicas.counts[:, mask], replicas.thresholds, strict=True)
        ):
            try:
                again = refit(line, own, counts)
            except AnalysisError:
                continue
            resampled[row, column] = again.slope(float(p_c))
    whole = np.isfinite(resampled).all(axis=1)
    return Values(QUANTITIES[0], sizes, values, resampled[whole])


def cluster_values(
    p_c: float, clusters: Sequence[ClusterCurve], replicas: CriticalReplicas
) -> list[Values]:
    """Return P_inf, chi and <s_1^2>/N at p_c of every size; several seeds are one size."""
    sizes = tuple(sorted({curve.L for curve in clusters}))
    if not sizes:
        return []
    every = np.array([p_c, *replicas.thresholds])
    at_p_c = np.zeros((3, every.size, len(sizes)))
    totals = np.zeros(len(sizes))
    for curve, weights in zip(clusters, replicas.weights):
        column, samples = sizes.index(curve.L), float(curve.samples.sum())
        first, _, squares, own = curve.moments(with_data_first(weights))
        found = np.stack([first, squares - own, own]) / curve.num_sites
        at_p_c[:, :, column] += samples * _interpolated(curve.p, found, every, p_c)
        totals[column] += samples
    at_p_c /= totals
    return [
        Values(quantity, sizes, own[0], own[1:])
        for quantity, own in zip(QUANTITIES[1:], at_p_c, strict=True)
    ]


def _interpolated(p: Floats, values: Floats, wanted: Floats, centre: float) -> Floats:
    """Return values (..., r, m), one row a wanted p (r,), each at its p: float64 (..., r).

    The polynomial passes through the points nearest to `centre`, the same for all rows.
    """
    nearest = nearest_nodes(p, centre)
    at_p = values[..., nearest] * node_weights(p[nearest], wanted)
    return np.asarray(np.sum(at_p, axis=-1), np.float64)


def with_logarithm(values: Values) -> tuple[Values, list[str]]:
    """Return the sizes and replicas whose quantity has a logarithm with an error, and notes.

    A slope read off few samples can be negative in a replica; of one site P_inf is always 1.
    """
    meaning, notes = values.quantity.meaning, []
    usable = (values.values > 0) & (values.errors > _ROUNDING * np.abs(values.values))
    sizes = np.array(values.sizes)
    if not usable.all():
        lost = ", ".join(map(str, sizes[~usable]))
        notes.append(f"{meaning}: not positive, or without an error, for L = {lost}: left out")
    replicas = values.replicas[:, usable]
    whole = (replicas > 0).all(axis=1)
    if not whole.all():
        notes.append(
            f"{meaning}: not positive in {np.sum(~whole)} of {whole.size} bootstrap replicas, "
            "which its exponent leaves out, so that its error is too small"
        )
    kept = tuple(sizes[usable].tolist())
    return Values(values.quantity, kept, values.values[usable], replicas[whole]), notes
