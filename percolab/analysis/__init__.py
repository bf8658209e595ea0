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
information  how much a sample of every task tells about p_c
cutoff     the table of fits: which sizes and which model, by chi^2
known_exponents  what theory and others found, to print beside
interpolation  the polynomial through the nearest points of a grid
power_law  a power of L with a correction and correlated errors
exponents  1/nu, beta/nu, gamma/nu, d_f and tau at the fitted p_c
quantities dimensionless quantities: probabilities and moment ratios, in one table
ratio_crossings  where Q_1 = <s_1>^2/<s_1^2> of neighbouring sizes cross
observations  values of quantities with the covariance of all that share samples
quantity_model  the scaling of several quantities with one p_c and one 1/nu
quantity_fit  its generalised least squares
quantity_start  where a fit begins, and which p are near enough
quantity_fits  their table of fits, the choice and the systematic error
quantity_table  a joint fit as text
collapse   data collapse, its quality and the exponents that give it
sample_thresholds  mean, median and width of single T, and cell to cell
cluster_numbers  n_s, clusters of s sites per site, in bins of sizes
fisher     tau from n_s at p_c: the window, and what is told of it
fisher_fit one fit of tau in a window of s
shrinkage  correlations from few blocks
gyration   radii of clusters, d_f from them, and the correlation length
maxima     the threshold of one size alone: where clusters are most critical
table      a fit as text
scaling_tables  exponents, collapses and single T as text
synthetic  curves from a known answer, to judge the estimator
"""

from percolab.analysis.collapse import (
    CLUSTER_QUANTITIES,
    POOR_COLLAPSE,
    Collapse,
    Measured,
    collapse_curves,
)
from percolab.analysis.crossings import Crossing, Drift
from percolab.analysis.curve import SpanningCurve
from percolab.analysis.cutoff import Trial, best_by_size, choose_fit, try_fits
from percolab.analysis.exponents import Exponent, ExponentFit, fit_exponents
from percolab.analysis.information import Information, information_of
from percolab.analysis.known_exponents import Known, known_exponents
from percolab.analysis.likelihood import ChiSquare
from percolab.analysis.maxima import ClusterCurve, Estimate, SizeEstimates, estimate_size
from percolab.analysis.ratio_crossings import RatioCrossings, ratio_crossings
from percolab.analysis.result import SizeAnalysis, ThresholdFit
from percolab.analysis.sample_thresholds import SampleThresholds, analyse_samples, moments_of
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.scaling_tables import (
    collapse_table,
    exponent_table,
    ratio_table,
    sample_table,
)
from percolab.analysis.size_fit import SizeFit, fit_size
from percolab.analysis.synthetic import synthetic_curve, synthetic_study
from percolab.analysis.table import estimate_table, fit_table, format_with_error, trial_table
from percolab.analysis.threshold import fit_threshold
from percolab.errors import AnalysisError

__all__ = [
    "CLUSTER_QUANTITIES",
    "POOR_COLLAPSE",
    "AnalysisError",
    "ChiSquare",
    "ClusterCurve",
    "Collapse",
    "Crossing",
    "Drift",
    "Estimate",
    "Exponent",
    "ExponentFit",
    "Information",
    "Known",
    "Measured",
    "RatioCrossings",
    "SampleThresholds",
    "ScalingFunction",
    "SizeAnalysis",
    "SizeEstimates",
    "SizeFit",
    "SpanningCurve",
    "ThresholdFit",
    "Trial",
    "analyse_samples",
    "best_by_size",
    "choose_fit",
    "collapse_curves",
    "collapse_table",
    "estimate_size",
    "estimate_table",
    "exponent_table",
    "fit_exponents",
    "fit_size",
    "fit_table",
    "fit_threshold",
    "format_with_error",
    "information_of",
    "known_exponents",
    "moments_of",
    "ratio_crossings",
    "ratio_table",
    "sample_table",
    "synthetic_curve",
    "synthetic_study",
    "trial_table",
    "try_fits",
]
