"""From stored spanning counts to the percolation threshold, in the order a reader needs it.

curve      the input: how many samples of a task span at each p
likelihood the exact multinomial likelihood of coupled samples, its maximum, its chi^2
scaling    the finite-size-scaling function and the model that fits it
size_fit   one size alone, as a polynomial
crossings  where neighbouring sizes cross, and the drift of the crossings
selection  which points are used, and what a reader must be told
bootstrap  error bars of all of it
result     what a fit holds
threshold  `fit_threshold`, which ties these together
cutoff     which small sizes to leave out, by chi^2
maxima     the threshold of one size alone: where clusters are most critical
table      a fit as text
synthetic  curves from a known answer, to judge the estimator
"""

from percolab.analysis.crossings import Crossing, Drift
from percolab.analysis.curve import AnalysisError, SpanningCurve
from percolab.analysis.cutoff import Cutoff, choose_cutoff, scan_cutoffs
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.maxima import ClusterCurve, Estimate, SizeEstimates, estimate_size
from percolab.analysis.result import SizeAnalysis, ThresholdFit
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.size_fit import SizeFit, fit_size
from percolab.analysis.synthetic import synthetic_curve, synthetic_study
from percolab.analysis.table import (
    cutoff_table,
    estimate_table,
    fit_table,
    format_with_error,
)
from percolab.analysis.threshold import fit_threshold

__all__ = [
    "AnalysisError",
    "ChiSquare",
    "ClusterCurve",
    "Crossing",
    "Cutoff",
    "Drift",
    "Estimate",
    "ScalingFunction",
    "SizeAnalysis",
    "SizeEstimates",
    "SizeFit",
    "SpanningCurve",
    "ThresholdFit",
    "choose_cutoff",
    "cutoff_table",
    "estimate_size",
    "estimate_table",
    "fit_size",
    "fit_table",
    "fit_threshold",
    "format_with_error",
    "scan_cutoffs",
    "synthetic_curve",
    "synthetic_study",
]
