"""The weighted mean of p_c from several quantities, each fitted alone from its own L_min on.

Quantities of the same samples are strongly correlated.  Fitted together, what they have in common
cancels, and the small differences that are left show corrections at sizes where none of them shows
any alone, so that a joint fit must leave much of the data out.  The mean needs each quantity's own
fit to hold, no more.  Its weights are those of the least variance among all that are not negative:
negative ones would make p_c of small differences again.  That is the best linear unbiased estimate
(L. Lyons, D. Gibaut and P. Clifford, Nucl. Instrum. Methods A 270, 110 (1988)) wherever it has no
negative weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from percolab.analysis.quantities import Floats
from percolab.analysis.quantity_fit import QuantityFit
from percolab.analysis.quantity_trials import Fitter


@dataclass(frozen=True)
class QuantityMean:
    """A weighted mean of p_c and its statistical error, one sigma.

    weights: of each quantity, at least 0, their sum 1.  spread: of the quantities' p_c about the
    mean, root mean square with weights 1 / error^2; chance is in it, too.  correlations: of the
    quantities' p_c.  Of quantities whose fit is not accepted, weights and correlations are 0.
    """

    threshold: float
    error: float
    spread: float
    weights: tuple[float, ...]
    correlations: tuple[tuple[float, ...], ...]


def mean_threshold(fitter: Fitter, alone: Sequence[QuantityFit | None]) -> QuantityMean | None:
    """Return the mean of the fits of single quantities, None where a fit does not count.

    fitter: that of all quantities together.  None if fewer than two fits count.
    """
    used = [index for index, fit in enumerate(alone) if fit is not None]
    fits = [fit for fit in alone if fit is not None]
    if len(fits) < 2:
        return None
    p_c = np.array([fit.threshold for fit in fits])
    errors = np.array([fit.threshold_error for fit in fits])
    correlation = _correlation(fitter, used, fits)
    covariance = correlation * np.outer(errors, errors)
    weights = least_variance(covariance)
    threshold = float(weights @ p_c)
    squares = (p_c - threshold) ** 2
    every = np.zeros(len(alone))
    every[used] = weights
    correlations = np.zeros((len(alone), len(alone)))
    correlations[np.ix_(used, used)] = correlation
    return QuantityMean(
        threshold=threshold,
        error=float(np.sqrt(weights @ covariance @ weights)),
        spread=float(np.sqrt(np.average(squares, weights=errors**-2))),
        weights=tuple(every.tolist()),
        correlations=tuple(tuple(row) for row in correlations.tolist()),
    )


def least_variance(covariance: Floats) -> Floats:
    """Return the weights >= 0 of sum 1 with the least variance; covariance: float64 (k, k).

    Of all weights with a given sum those of the least variance are the same but for a factor; so a
    sum that is only drawn towards 1 does not change them, once they are divided by it.
    """
    scale = float(np.mean(np.diag(covariance)))
    root = np.linalg.cholesky(covariance / scale)
    target = np.append(np.zeros(len(root)), 1.0)
    weights, _ = nnls(np.vstack([root.T, np.ones(len(root))]), target)
    return np.asarray(weights / weights.sum(), np.float64)


def _correlation(fitter: Fitter, used: Sequence[int], fits: Sequence[QuantityFit]) -> Floats:
    """Return the correlations of p_c from quantities that are fitted alone, float64 (k, k).

    To first order the p_c of a fit is a linear function of its values, and the values of all
    quantities have one covariance.
    """
    parts = [_derivatives(fitter, index, fit) for index, fit in zip(used, fits, strict=True)]
    covariance = np.zeros((len(used), len(used)))
    for number, item in enumerate(fitter.observations):
        of_values = np.zeros((len(used), item.values.size))
        for row, (index, own) in enumerate(zip(used, parts, strict=True)):
            if number in own:
                of_values[row, item.quantity == index] = own[number]
        of_combined = of_values @ np.linalg.pinv(item.combine)
        covariance += of_combined @ item.covariance @ of_combined.T
    scale = 1.0 / np.sqrt(np.diag(covariance))
    return np.asarray(covariance * np.outer(scale, scale), np.float64)


def _derivatives(fitter: Fitter, index: int, fit: QuantityFit) -> dict[int, Floats]:
    """Return what p_c of a quantity alone changes with each of its values, by observation."""
    model = fitter.only(index).model(fit.min_size, fit.choice)
    theta = model.linear_fit(np.array(fit.outer))
    of_residuals = np.linalg.pinv(model.jacobian(theta))[0]
    numbers = [
        number
        for number, item in enumerate(fitter.observations)
        if fit.min_size <= item.L and np.any(item.quantity == index)
    ]
    ends = np.cumsum([item.dimension for item in model.observations])[:-1]
    pieces = np.split(of_residuals, ends)
    return {
        number: piece @ item.whiten
        for number, piece, item in zip(numbers, pieces, model.observations, strict=True)
    }
