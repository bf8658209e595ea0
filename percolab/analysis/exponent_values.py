"""Quantities at the fitted p_c, size by size, with the replicas of one bootstrap over blocks.

The same blocks give p_c and the quantities, so that every error contains that of p_c and the
correlation with it.  Between the p of a grid a quantity is the polynomial through the nearest
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.curve import curves_of_size, linear_sizes
from percolab.analysis.interpolation import nearest_nodes, node_weights
from percolab.analysis.likelihood import ThresholdCells, draw_blocks, maximise, resample_curve
from percolab.analysis.maxima import ClusterCurve
from percolab.analysis.record import plain
from percolab.analysis.result import ThresholdFit
from percolab.analysis.scaling import ScalingModel
from percolab.analysis.size_fit import fit_cells, fit_size
from percolab.errors import AnalysisError

Floats = NDArray[np.float64]
NAN = float("nan")

#: Replicas that a covariance of several sizes needs at least.
MIN_REPLICAS = 50
# What scatters by less, relative to itself, scatters by the rounding of an interpolation.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Quantity:
    """What is a power of L at p_c: its name, its exponent's name and sign, and in words."""

    name: str
    exponent: str
    sign: int
    meaning: str


#: In the order in which exponents are shown.
QUANTITIES = (
    Quantity("slope", "1/nu", 1, "dR_L/dp at p_c"),
    Quantity("P_inf", "beta/nu", -1, "P_inf = <s_1>/N at p_c"),
    Quantity("chi", "gamma/nu", 1, "chi = (<sum s^2> - <s_1^2>)/N at p_c"),
    Quantity("s1_squared", "gamma/nu", 1, "<s_1^2>/N at p_c"),
)


@dataclass(frozen=True, eq=False)
class Values:
    """One quantity at p_c, size by size.

    values: float64 (n,). replicas: float64 (replicas, n), of the same bootstrap for all quantities.
    """

    quantity: Quantity
    sizes: tuple[int, ...]
    values: Floats
    replicas: Floats

    @property
    def errors(self) -> Floats:
        """One-sigma errors, that of p_c included, float64 (n,)."""
        return self.replicas.std(axis=0, ddof=1)

    def to_dict(self) -> dict[str, object]:
        """Return the values with their errors as plain JSON values."""
        return plain(
            {
                "quantity": self.quantity.name,
                "meaning": self.quantity.meaning,
                "sizes": self.sizes,
                "values": self.values,
                "errors": self.errors,
            }
        )


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
        thresholds = np.full(replicas, NAN)
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
    resampled = np.full((replicas.thresholds.size, len(sizes)), NAN)
    for column, size in enumerate(sizes):
        own, mask = replicas.cells.of_size(size)
        line = fit_size(curves_of_size(fit.used, size), degree=fit.degree)
        values[column] = line.slope(fit.threshold)
        for row, (counts, p_c) in enumerate(
            zip(replicas.counts[:, mask], replicas.thresholds, strict=True)
        ):
            try:
                again = fit_cells(own, counts, degree=fit.degree, start=line)
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
        rows = np.concatenate([np.ones((1, curve.samples.size)), weights])
        first, _, squares, own = curve.moments(rows)
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
    return np.sum(values[..., nearest] * node_weights(p[nearest], wanted), axis=-1)


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
