"""Critical exponents from quantities at the fitted p_c, as power laws in L.

    R'_L(p_c) ~ L^(1/nu)                            slope of the spanning probability
    P_inf = <s_1> / N ~ L^(-beta/nu)                percolation strength
    chi = (<sum s^2> - <s_1^2>) / N ~ L^(gamma/nu)  mean cluster size without the largest cluster
    <s_1^2> / N ~ L^(gamma/nu)                      and of the largest cluster alone

d_f = d - beta/nu, and tau = 1 + d / d_f by hyperscaling (D. Stauffer and A. Aharony, Introduction
to Percolation Theory, 1994). Between the p of a grid a quantity is the polynomial through the
nearest points.

Errors are those of one bootstrap over blocks in which the same blocks give p_c and the quantities,
so that every error contains that of p_c and the correlation with it. Each exponent is fitted from
a range of L_min with and without a correction to scaling; that with a correction and the smallest
L_min which chi^2 does not reject is taken. The covariance of the sizes is that of the replicas,
times the factor of J. Hartlap, P. Simon and P. Schneider, Astron. Astrophys. 464, 399 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.cluster_numbers import SizeCounts
from percolab.analysis.cutoff import LEAST_SIZES
from percolab.analysis.exponent_values import (
    MIN_REPLICAS,
    NAN,
    CriticalReplicas,
    Values,
    cluster_values,
    slopes_at_threshold,
    with_logarithm,
)
from percolab.analysis.fisher import FisherFit, fit_fisher
from percolab.analysis.fisher_fit import Replicas
from percolab.analysis.known_exponents import Known, known_exponents
from percolab.analysis.likelihood import MIN_BLOCKS
from percolab.analysis.maxima import ClusterCurve
from percolab.analysis.power_law import PowerLaw, fit_power_law
from percolab.analysis.record import plain
from percolab.analysis.result import ThresholdFit
from percolab.analysis.selection import is_poor
from percolab.errors import AnalysisError


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
            return NAN
        return (self.value - self.known.value) / float(np.hypot(self.error, self.known.error))


@dataclass(frozen=True)
class ExponentFit:
    """All exponents of a study, what they were read off, and what a reader must know.

    fisher: the fit of tau to the cluster numbers, where sizes were counted.
    """

    exponents: tuple[Exponent, ...]
    values: tuple[Values, ...]
    notes: tuple[str, ...]
    fisher: FisherFit | None = None

    def to_dict(self) -> dict[str, object]:
        """Return every number as plain JSON values."""
        return {
            "exponents": [
                plain(exponent) | {"difference": plain(exponent.difference)}
                for exponent in self.exponents
            ],
            "values": [values.to_dict() for values in self.values],
            "notes": list(self.notes),
            "cluster_numbers": None if self.fisher is None else self.fisher.to_dict(),
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
        kept, left_out = with_logarithm(item)
        notes += left_out
        if len(kept.sizes) < 2 or len(kept.replicas) < MIN_REPLICAS:
            few = "two sizes" if len(kept.sizes) < 2 else f"{MIN_REPLICAS} replicas"
            notes.append(f"{item.quantity.meaning}: fewer than {few}, so no exponent")
            continue
        found.append(_exponent(kept, fit.scaling.omega, known))
        law = found[-1].law
        if law is not None and is_poor(law.chi_square):
            notes.append(
                f"{found[-1].name} from {item.quantity.meaning}: its power law is poor "
                f"(p-value {law.chi_square.p_value:.1e}), so its error is too small"
            )
    found += _derived(found, dimension, known)
    fisher = None
    if numbers:
        try:
            fisher = fit_fisher(
                numbers,
                threshold=fit.threshold,
                threshold_error=float(replicas.thresholds.std(ddof=1)),
                dimension=dimension,
                is_open=is_open,
                replicas=Replicas(replicas.thresholds, replicas.drawn(usable)),
            )
        except AnalysisError as error:
            notes.append(str(error))
        else:
            found.append(Exponent("tau", fisher.tau, fisher.error, fisher.source, fisher.known))
            notes += fisher.notes
    return ExponentFit(tuple(found), tuple(values), tuple(notes), fisher)


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


def _exponent(values: Values, omega: float, known: dict[str, Known]) -> Exponent:
    quantity = values.quantity
    fits = _power_laws(values, omega)
    law = _choose(fits)
    return Exponent(
        quantity.exponent,
        quantity.sign * law.exponent,
        law.error,
        quantity.meaning,
        known.get(quantity.exponent),
        law,
        fits,
    )


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


def _choose(fits: Sequence[PowerLaw]) -> PowerLaw:
    """Return the fit that an exponent is taken from; two sizes cannot tell a correction."""
    corrected = [law for law in fits if law.with_correction] or list(fits)
    leaving = corrected[: max(len(corrected) - (LEAST_SIZES - 3), 1)]
    return next((law for law in leaving if not is_poor(law.chi_square)), leaving[-1])


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
