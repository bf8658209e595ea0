"""Critical exponents from quantities at the fitted p_c, as power laws in L.

    R'_L(p_c) ~ L^(1/nu)                            slope of the spanning probability
    P_inf = <s_1> / N ~ L^(-beta/nu)                percolation strength
    chi = (<sum s^2> - <s_1^2>) / N ~ L^(gamma/nu)  mean cluster size without the largest cluster
    <s_1^2> / N ~ L^(gamma/nu)                      and of the largest cluster alone

and, where flows were measured, over the samples that span,

    sites of the backbone ~ L^D_B                   its mass
    bonds of the shortest path ~ L^d_min
    red bonds ~ L^(1/nu)                            A. Coniglio, J. Phys. A 15, 3829 (1982)
    conductance ~ L^(d - 2 - t/nu)

and over all samples

    largest cluster without bridges ~ L^D_B         X. Xu et al., Phys. Rev. E 89, 012120 (2014)

d_f = d - beta/nu, and tau = 1 + d / d_f by hyperscaling (D. Stauffer and A. Aharony, Introduction
to Percolation Theory, 1994). Between grid points a quantity is the polynomial through the nearest
points. Every power law has its corrections (:mod:`percolab.analysis.power_law`).

Errors come from one bootstrap over blocks, in which the same blocks give p_c and the quantities:
they contain the error of p_c and its correlation with the quantities. Every replica draws a
systematic error of p_c; a p that is given instead has no error. The covariance of the sizes is that
of the replicas, times the factor of J. Hartlap, P. Simon and P. Schneider, Astron. Astrophys. 464,
399 (2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import nan
from typing import ClassVar

import numpy as np

from percolab.analysis.curves import (
    ClusterCurve,
    linear_sizes,
    nearest_nodes,
    node_weights,
    select_curves,
)
from percolab.analysis.json_values import Part, Record
from percolab.analysis.likelihood import ThresholdCells, fit_size, refit, resample_curve
from percolab.analysis.power_law import PowerLaw, fit_power_law
from percolab.analysis.quantities import BlockMoments
from percolab.analysis.statistics import MIN_BLOCKS, Floats, draw_blocks, with_data_first
from percolab.analysis.tau import SizeCounts, TauFit, TauReplicas, fit_tau
from percolab.analysis.theory.known_exponents import Known, known_exponents
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.value import Value, list_rejections
from percolab.errors import AnalysisError

#: The moment of flows that counts the samples whose sides are connected.
SPANNING = "spanning"

#: Replicas that a covariance of several sizes needs at least.
MIN_REPLICAS = 50

# A relative scatter below this is the rounding error of an interpolation.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class CriticalQuantity:
    """A power of L at p_c: its name, its exponent's name and sign, its meaning in words.

    of_squares: whether it is a mean of squared sizes, which decides its corrections.  of_cube:
    whether a homogeneous cube's power, L^(d - 2), is a further factor.  of_all: whether it is a
    mean over all samples, not only over those that span.
    """

    name: str
    exponent: str
    sign: int
    meaning: str
    of_squares: bool = False
    of_cube: bool = False
    of_all: bool = False


#: In the order in which exponents are shown.
QUANTITIES = (
    CriticalQuantity("slope", "1/nu", 1, "dR_L/dp at p_c"),
    CriticalQuantity("P_inf", "beta/nu", -1, "P_inf = <s_1>/N at p_c"),
    CriticalQuantity("chi", "gamma/nu", 1, "chi = (<sum s^2> - <s_1^2>)/N at p_c", True),
    CriticalQuantity("s1_squared", "gamma/nu", 1, "<s_1^2>/N at p_c", True),
)
#: Columns of flows, as means over the samples that span, or over all samples.
FLOW_QUANTITIES = (
    CriticalQuantity(
        "bridge_free_largest", "D_B", 1, "largest cluster without bridges at p_c", of_all=True
    ),
    CriticalQuantity("backbone_sites", "D_B", 1, "sites of the backbone at p_c"),
    CriticalQuantity("path_length", "d_min", 1, "length of the shortest path at p_c"),
    CriticalQuantity("red_bonds", "1/nu", 1, "red bonds at p_c"),
    CriticalQuantity("conductance", "t/nu", -1, "conductance at p_c", of_cube=True),
)
#: The leading correction of flow quantities, assumed on tori too, where none is known.  That of
#: clusters, 3/2 or 2 in two dimensions, shifted D_B by 2 and 3 errors of 1e-4 (results/flow).
FLOW_OMEGA = 1.0


@dataclass(frozen=True, eq=False)
class Values(Record):
    """One quantity at p_c: values, float64 (n,), and replicas (replicas, n) of one bootstrap."""

    renamed: ClassVar = {"quantity": "", "replicas": "", "name": "quantity"}
    added: ClassVar = ("name", "meaning", "errors")

    quantity: CriticalQuantity
    sizes: tuple[int, ...]
    values: Floats
    replicas: Floats

    name, meaning = Part[str]("quantity.name"), Part[str]("quantity.meaning")

    @property
    def errors(self) -> Floats:
        """One-sigma errors, that of p_c included, float64 (n,)."""
        return np.asarray(self.replicas.std(axis=0, ddof=1), np.float64)


@dataclass(frozen=True)
class Exponent(Record):
    """An exponent, its source in words and, if there are any, its known value and power law."""

    renamed: ClassVar = {"law": ""}
    added: ClassVar = ("difference",)

    name: str
    result: Value
    source: str
    known: Known | None = None
    law: PowerLaw | None = None

    value, error = Part[float]("result.value"), Part[float]("result.error")

    @property
    def difference(self) -> float:
        """Distance from the known value in combined errors; NaN without one."""
        return self.result.deviation(self.known)


@dataclass(frozen=True)
class ExponentFit(Record):
    """All exponents, the values that give them, notes, and the fit of tau to counted sizes."""

    renamed: ClassVar = {"tau_fit": "cluster_numbers"}

    exponents: tuple[Exponent, ...]
    values: tuple[Values, ...]
    notes: tuple[str, ...]
    tau_fit: TauFit | None = None


def fit_exponents(
    fit: ThresholdFit | GivenThreshold,
    clusters: Sequence[ClusterCurve],
    *,
    dimension: int,
    numbers: Sequence[SizeCounts] = (),
    flows: Sequence[BlockMoments] = (),
    is_open: bool = True,
    bootstrap: int = 200,
    seed: int = 0,
) -> ExponentFit:
    """Find the exponents from the quantities at `fit.threshold`.

    clusters: of the tasks of the fit, matched by label; without any, 1/nu is the only exponent.
    numbers: cluster numbers of these tasks, for tau; flows: their moments FLOW_QUANTITIES and
    SPANNING. is_open: whether any axis is open. bootstrap: replicas, at least MIN_REPLICAS; seed:
    theirs. Raises AnalysisError when there are too few replicas.
    """
    if bootstrap < MIN_REPLICAS:
        raise AnalysisError(
            f"exponents need at least {MIN_REPLICAS} bootstrap replicas, got {bootstrap}"
        )
    usable, notes = _usable(clusters, fit.threshold)
    replicas = CriticalReplicas.of(fit, usable, bootstrap, np.random.default_rng(seed))
    known = known_exponents(dimension)
    exponents: list[Exponent] = []
    values = cluster_values(fit.threshold, usable, replicas)
    if isinstance(fit, ThresholdFit):
        values.insert(0, slopes_at_threshold(fit, replicas))
        # The fit itself reports the parts of the error of its 1/nu.
        of_fit = Value(fit.y_t, fit.y_t_error, nan, fit.chi_square, 1)
        exponents.append(Exponent("1/nu", of_fit, "the fit of all curves", known.get("1/nu")))
    values += flow_values(fit.threshold, flows, replicas)
    for own in values:
        omega = min(fit.omega, FLOW_OMEGA) if own.quantity in FLOW_QUANTITIES else fit.omega
        exponent, own_notes = _read_off(own, omega, known, dimension)
        exponents += [] if exponent is None else [exponent]
        notes += own_notes
    for strength in [each.result for each in exponents if each.name == "beta/nu"]:
        d_f = dimension - strength.value
        tau = strength.scaled(1 + dimension / d_f, dimension / d_f**2)
        by_d_f = strength.scaled(d_f, -1.0)
        exponents.append(Exponent("d_f", by_d_f, "d - beta/nu", known.get("d_f")))
        exponents.append(Exponent("tau", tau, "1 + d/d_f", known.get("tau")))
    tau_fit = None
    try:
        if numbers:
            tau_fit = fit_tau(
                numbers,
                threshold=fit.threshold,
                threshold_error=fit.threshold_error,
                dimension=dimension,
                is_open=is_open,
                replicas=TauReplicas(replicas.thresholds, replicas.by_label),
            )
            exponents.append(Exponent("tau", tau_fit.result, tau_fit.source, tau_fit.known))
            notes += tau_fit.notes
    except AnalysisError as error:
        notes.append(str(error))
    named = ((f"{each.name} from {each.source}", each.result) for each in exponents)
    notes = [*list_rejections(named, "its best power law with corrections"), *notes]
    return ExponentFit(tuple(exponents), tuple(values), tuple(notes), tau_fit)


def _usable(
    clusters: Sequence[ClusterCurve], p_c: float
) -> tuple[tuple[ClusterCurve, ...], list[str]]:
    """Return the curves with enough blocks whose p enclose p_c, and notes."""
    if not clusters:
        return (), [
            "no cluster sizes are stored (method threshold, or measure wrapping): 1/nu alone"
        ]
    used, notes = [], []
    for curve in clusters:
        inside = curve.p.size > 2 and curve.p[0] <= p_c <= curve.p[-1]
        problem = "" if inside or curve.p.tolist() == [p_c] else "p_c is not inside its p grid"
        if curve.samples.size < MIN_BLOCKS:
            problem = f"fewer than {MIN_BLOCKS} blocks"
        if problem:
            notes.append(f"L = {curve.L} left out of the exponents: {problem}")
        else:
            used.append(curve)
    return tuple(used), notes


def _read_off(
    values: Values, omega: float, known: dict[str, Known], dimension: int
) -> tuple[Exponent | None, list[str]]:
    """Return the exponent of a quantity, None with too few sizes or replicas, and notes."""
    kept, notes = with_logarithm(values)
    quantity = values.quantity
    count, number = kept.replicas.shape
    if number < 2 or count < MIN_REPLICAS:
        few = "two sizes" if number < 2 else f"{MIN_REPLICAS} replicas"
        return None, [*notes, f"{quantity.meaning}: fewer than {few}, so no exponent"]
    covariance = np.atleast_2d(np.cov(np.log(kept.replicas), rowvar=False))
    # The inverse of an estimated covariance is too large by this (Hartlap et al. 2007).
    covariance *= (count - 1) / (count - number - 2)
    law = fit_power_law(
        kept.sizes, kept.values, covariance, omega=omega, of_squares=quantity.of_squares
    )
    name, result = quantity.exponent, law.exponent
    power = result.value - (dimension - 2 if quantity.of_cube else 0)
    result = result.scaled(quantity.sign * power, quantity.sign)
    return Exponent(name, result, quantity.meaning, known.get(name), law), notes


@dataclass(frozen=True)
class GivenThreshold:
    """A p that is used as p_c, without an error, and omega of the corrections there."""

    threshold: float
    omega: float
    threshold_error: ClassVar[float] = 0.0


@dataclass(frozen=True, eq=False)
class CriticalReplicas:
    """Replicas of a study: their p_c, their counts, and how often each contains every block.

    thresholds: float64 (r,). counts: float64 (r, m + 1) of every curve of the fit, in order.
    weights: float64 (r, n_blocks) of every curve of clusters, in order; by_label: by its task.
    """

    thresholds: Floats
    counts: list[Floats]
    weights: list[Floats]
    by_label: dict[str, Floats]

    @classmethod
    def of(
        cls,
        fit: ThresholdFit | GivenThreshold,
        clusters: Sequence[ClusterCurve],
        replicas: int,
        rng: np.random.Generator,
    ) -> CriticalReplicas:
        """Return replicas of a fit, whose p_c responds to the counts to first order."""
        weights = [draw_blocks(curve.samples.size, rng, replicas) for curve in clusters]
        drawn = {curve.label: own for curve, own in zip(clusters, weights) if curve.label}
        if isinstance(fit, GivenThreshold):
            return cls(np.full(replicas, fit.threshold), [], weights, drawn)
        # A task's spanning counts and its cluster sizes are of the same blocks.
        counts = [
            drawn[curve.label] @ curve.threshold_counts
            if curve.label in drawn
            else resample_curve(curve, rng, replicas)
            for curve in fit.used
        ]
        thresholds = fit.threshold + fit.systematic_error * rng.standard_normal(replicas)
        for curve, own, influence in zip(fit.used, counts, fit.influence, strict=True):
            thresholds += (own - curve.threshold_counts.sum(axis=0)) @ influence
        return cls(thresholds, counts, weights, drawn)


def slopes_at_threshold(fit: ThresholdFit, replicas: CriticalReplicas) -> Values:
    """Return dR_L/dp at p_c of every size of the fit, each from its own polynomial."""
    sizes = linear_sizes(fit.used)
    values = np.empty(len(sizes))
    resampled = np.full((replicas.thresholds.size, len(sizes)), nan)
    for column, size in enumerate(sizes):
        curves = select_curves(fit.used, size)
        cells, line = ThresholdCells.from_curves(curves), fit_size(curves)
        values[column] = line.slope(fit.threshold)
        pairs = zip(fit.used, replicas.counts, strict=True)
        drawn = np.hstack([own for curve, own in pairs if size == curve.L])
        for row, (counts, p_c) in enumerate(zip(drawn, replicas.thresholds, strict=True)):
            with suppress(AnalysisError):
                resampled[row, column] = refit(line, cells, counts).slope(float(p_c))
    whole = np.isfinite(resampled).all(axis=1)
    return Values(QUANTITIES[0], sizes, values, resampled[whole])


def cluster_values(
    p_c: float, clusters: Sequence[ClusterCurve], replicas: CriticalReplicas
) -> list[Values]:
    """Return P_inf, chi and <s_1^2>/N at p_c of every size; several seeds are combined."""
    sizes = tuple(sorted({curve.L for curve in clusters}))
    every = np.array([p_c, *replicas.thresholds])
    at_p_c = np.zeros((3, every.size, len(sizes)))
    totals = np.zeros(len(sizes))
    for curve, weights in zip(clusters, replicas.weights):
        column, samples = sizes.index(curve.L), float(curve.samples.sum())
        first, _, squares, own = curve.moments(with_data_first(weights))
        measured = np.stack([first, squares - own, own]) / curve.num_sites
        at_p_c[:, :, column] += samples * _interpolated(curve.p, measured, every, p_c)
        totals[column] += samples
    pairs = zip(QUANTITIES[1:], at_p_c / totals, strict=True)
    return [Values(quantity, sizes, own[0], own[1:]) for quantity, own in pairs if sizes]


def flow_values(
    p_c: float, flows: Sequence[BlockMoments], replicas: CriticalReplicas
) -> list[Values]:
    """Return the means of flow quantities at p_c for every size; 0 where no sample spans."""
    every, drawn, values = np.array([p_c, *replicas.thresholds]), replicas.by_label, []
    for quantity in FLOW_QUANTITIES:
        sums: dict[int, Floats] = {}
        for task in flows:
            if task.label not in drawn or quantity.name not in task.moments:
                continue
            weights = with_data_first(drawn[task.label])
            # Sums, so that several seeds of a size add up, and p where nothing spans do no harm.
            sums_of_blocks = task.moments[quantity.name]
            samples = np.broadcast_to(task.samples[:, None], sums_of_blocks.shape)
            counted = samples.astype(float) if quantity.of_all else task.moments[SPANNING]
            own = np.stack([sums_of_blocks, counted])
            at_p_c = _interpolated(task.p, weights @ own, every, p_c)
            sums[task.L] = sums.get(task.L, 0.0) + at_p_c
        if sums:
            sizes = tuple(sorted(sums))
            total, spanning = np.stack([sums[size] for size in sizes], axis=-1)
            means = np.divide(total, spanning, out=np.zeros_like(total), where=spanning > 0)
            values.append(Values(quantity, sizes, means[0], means[1:]))
    return values


def _interpolated(p: Floats, values: Floats, targets: Floats, centre: float) -> Floats:
    """Interpolate values (..., r, m) at targets (r,) from points near `centre`: (..., r)."""
    nearest = nearest_nodes(p, centre)
    at_p = values[..., nearest] * node_weights(p[nearest], targets)
    return np.asarray(np.sum(at_p, axis=-1), np.float64)


def with_logarithm(values: Values) -> tuple[Values, list[str]]:
    """Return the values of sizes and replicas whose logarithm and error are finite, and notes."""
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
