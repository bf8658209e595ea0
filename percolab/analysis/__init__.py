"""From stored results to p_c, exponents and their errors, in the order a reader needs it.

The threshold
  curves              the input: how many samples of a task span at each p, how large clusters are
  likelihood          the exact multinomial likelihood of coupled samples, its maximum, its chi^2
  scaling             the finite-size-scaling function with every known correction, and its priors
  averaging           the average over degrees and smallest sizes, in place of choosing one fit
  size_fit            one size alone, as a polynomial
  crossings           where neighbouring sizes cross, by R_L or Q_1, and the drift of the crossings
  threshold           the fit of p_c, which ties these together
  fisher_information  how much a sample of every task tells about p_c
  sample_thresholds   p_c from mean, median and width of single T, and cell to cell
  maxima              the threshold of one size alone: where its clusters are most critical

Several quantities at once
  quantities          dimensionless quantities in one table, their values and covariance
  quantity_model      their scaling with one p_c and one 1/nu, and one fit of it
  quantity_fits       the averaged joint fit, and each quantity alone

At the threshold
  power_law           power laws with their corrections, averaged over smallest sizes
  exponents           1/nu, beta/nu, gamma/nu, d_f and tau at the fitted p_c, as power laws in L
  cluster_numbers     n_s, clusters of s sites per site, in bins of sizes
  tau                 the Fisher exponent from n_s at p_c
  radii               radii of clusters, d_f from them, and the correlation length
  collapse            data collapse, its quality and the exponents that give it
  theory              what is known of critical percolation, to compare with

Markov chains of spins
  autocorrelation     integrated autocorrelation times, ordered against random starts, z
  reweighting         other temperatures; two phases in energy histograms
  transition_order    whether a transition is of first order

What all of them use
  value               a number with its error; chi^2, and when it rejects a fit
  statistics          bootstrap, jackknife, intervals, covariances
  json_values, text   results as JSON and as tables
  stored_data         what the analysis takes from a results file
  stored_fits         every fit of a results file
"""

from percolab.analysis.collapse import (
    CLUSTER_QUANTITIES,
    POOR_COLLAPSE,
    Collapse,
    Measured,
    collapse_curves,
)
from percolab.analysis.crossings import CurveCrossing, Drift, RatioCrossings, ratio_crossings
from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.exponents import Exponent, ExponentFit, fit_exponents
from percolab.analysis.fisher_information import Information, compute_information
from percolab.analysis.maxima import Estimate, SizeEstimates, estimate_size
from percolab.analysis.sample_thresholds import SampleThresholds, analyse_samples, moments_of
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.size_fit import SizeFit, fit_size
from percolab.analysis.text import (
    collapse_table,
    estimate_table,
    exponent_table,
    fit_table,
    format_with_error,
    ratio_table,
    sample_table,
)
from percolab.analysis.theory.known_exponents import Known, known_exponents
from percolab.analysis.threshold import SizeAnalysis, ThresholdFit, fit_threshold
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError

__all__ = [
    "CLUSTER_QUANTITIES",
    "POOR_COLLAPSE",
    "AnalysisError",
    "ChiSquare",
    "ClusterCurve",
    "Collapse",
    "CurveCrossing",
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
    "analyse_samples",
    "collapse_curves",
    "collapse_table",
    "compute_information",
    "estimate_size",
    "estimate_table",
    "exponent_table",
    "fit_exponents",
    "fit_size",
    "fit_table",
    "fit_threshold",
    "format_with_error",
    "known_exponents",
    "moments_of",
    "ratio_crossings",
    "ratio_table",
    "sample_table",
]
