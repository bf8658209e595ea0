"""How much a sample of every task tells about p_c: the Fisher information of the threshold fit.

The information of independent samples adds, so that sigma(p_c) of any numbers of samples follows
from one fit: the inverse of the sum has the variance of p_c with all else fitted too.  It is what
`--target-error` is compared with, what tells where the next samples help most, and what predicts
the error of a sweep before it is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.curves import SpanningCurve
from percolab.analysis.likelihood import maximise, sample_information
from percolab.analysis.statistics import Floats, unit_diagonal
from percolab.analysis.threshold import WINDOW, model_of, select
from percolab.errors import AnalysisError


@dataclass(frozen=True, eq=False)
class Information:
    """Fisher information of one sample of every task at the fitted curve.

    by_task: by the curve's label, float64 (k, k); the first of the k parameters is p_c in units of
    `unit`, the others are fitted beside it.
    """

    by_task: Mapping[str, Floats]
    unit: float

    @property
    def num_parameters(self) -> int:
        """Number k of parameters of the fit."""
        return len(next(iter(self.by_task.values())))

    def of(self, label: str) -> Floats:
        """Return the information of one sample of a task, float64 (k, k); 0 if it is not used."""
        k = self.num_parameters
        return self.by_task.get(label, np.zeros((k, k)))

    def total(self, samples: Mapping[str, float]) -> Floats:
        """Return the information of these numbers of samples of every task, float64 (k, k)."""
        k = self.num_parameters
        return sum((n * self.of(label) for label, n in samples.items()), np.zeros((k, k)))

    def error(self, samples: Mapping[str, float]) -> float:
        """Return sigma(p_c) from the curvature, with these numbers of samples of every task."""
        return self.unit * float(np.sqrt(variance_of_first(self.total(samples))))


def variance_of_first(information: Floats) -> float:
    """Return the variance of the first parameter, or infinity where it is not determined.

    information: float64 (k, k), symmetric.
    """
    scaled, scale = unit_diagonal(information)
    try:
        covariance = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return float("inf")
    variance = float(covariance[0, 0] * scale[0] ** 2)
    return variance if variance > 0 else float("inf")


def information_of(curves: Sequence[SpanningCurve], *, omega: float = 1.0) -> Information:
    """Return the information of the default fit of these curves, labelled by their tasks.

    omega: exponent of the leading correction.  AnalysisError: the curves do not give a threshold.
    """
    if len({curve.label for curve in curves}) != len(curves):
        raise ValueError("every curve needs a label of its own")
    used, _ = select(curves, min_size=None, window=WINDOW)
    cells, model = model_of(used, omega=omega, degree=3, correction=True, mixed=False)
    estimate = maximise(model, cells, cells.counts, model.start)
    found = sample_information(model, cells, estimate.theta)
    if not np.all(np.isfinite(found)):
        raise AnalysisError("the fit gives no information")
    labels = (curve.label for curve in used)
    return Information(dict(zip(labels, found, strict=True)), model.width)
