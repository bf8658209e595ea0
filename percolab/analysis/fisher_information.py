"""The Fisher information of the samples of every task about p_c.

The information of independent samples adds to that of the priors, so that one fit gives the error
of p_c for any numbers of samples: the inverse of the sum contains the variance of p_c with all
other parameters fitted.  It shows where the next samples help most, predicts the error of a sweep,
and the part of the error that more samples do not reduce.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.statistics import Floats, unit_diagonal
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.threshold import MemberFits, select
from percolab.errors import AnalysisError


@dataclass(frozen=True, eq=False)
class Information:
    """Fisher information of one sample of every task at the fitted curve, and of the priors.

    by_task: by the curve's label, float64 (k, k); the first of the k parameters is p_c in units of
    `unit`.  prior: float64 (k, k).
    """

    by_task: Mapping[str, Floats]
    prior: Floats
    unit: float

    def of(self, label: str) -> Floats:
        """Return the information of one sample of a task, float64 (k, k); 0 if it is not used."""
        return self.by_task.get(label, np.zeros_like(self.prior))

    def total(self, samples: Mapping[str, float]) -> Floats:
        """Return the information of the priors and of these numbers of samples, float64 (k, k)."""
        return sum((n * self.of(label) for label, n in samples.items()), self.prior.copy())

    def error(self, samples: Mapping[str, float]) -> float:
        """Return the whole error of p_c with these numbers of samples of every task."""
        return float(np.hypot(*self.parts(samples)))

    def parts(self, samples: Mapping[str, float]) -> tuple[float, float]:
        """Return the statistical and the systematic error of p_c; infinite if undetermined."""
        total = self.total(samples)
        scaled, scale = unit_diagonal(total)
        try:
            row = np.linalg.inv(scaled)[0] * scale[0] * scale
        except np.linalg.LinAlgError:
            return float("inf"), float("inf")
        whole, prior = row[0], row @ self.prior @ row
        if not whole > 0:
            return float("inf"), float("inf")
        statistical = np.sqrt(max(whole - prior, 0.0))
        return float(self.unit * statistical), float(self.unit * np.sqrt(prior))


def compute_information(
    curves: Sequence[SpanningCurve], *, omega: float = 1.0, y_t: Known | None = None
) -> Information:
    """Return the information of the default fit of these curves, labelled by their tasks.

    omega: exponent of the leading correction.  y_t: known 1/nu.  AnalysisError: the curves do not
    give a threshold.
    """
    if len({curve.label for curve in curves}) != len(curves):
        raise ValueError("every curve needs a label of its own")
    used, _ = select(curves, min_size=None)
    best = MemberFits.of(used, omega=omega, y_t=y_t).best
    slope, probability = best.maximum.slope, best.maximum.probability
    found = {}
    for index, curve in enumerate(best.cells.curves):
        own = best.cells.curve == index
        found[curve.label] = slope[own].T @ (slope[own] * probability[own][:, None])
    if not np.all(np.isfinite(list(found.values()))):
        raise AnalysisError("the fit gives no information")
    prior = np.diag(best.model.prior(y_t).precision)
    return Information(found, prior, best.model.units.width)
