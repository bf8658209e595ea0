"""From stored results to p_c, exponents and their errors.

The threshold: curves, likelihood, scaling, averaging, size_fit, crossings, threshold,
fisher_information, sample_thresholds, and maxima of one size alone.  Several quantities at once:
quantities, quantity_model, quantity_fits.  At the threshold: power_law, exponents, cluster_numbers,
tau, radii, collapse, and theory to compare with.  Chains of spins: autocorrelation,
reweighting, transition_order, thermodynamics, spin_fit.  Trees and invasions.  Common: value,
statistics, json_values, text.  Stored results: study_kinds, stored_data, stored_spins, stored_fits.
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
from percolab.analysis.sample_thresholds import (
    SampleThresholds,
    analyse_samples,
    compute_sample_moments,
)
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
    "compute_sample_moments",
    "estimate_size",
    "estimate_table",
    "exponent_table",
    "fit_exponents",
    "fit_size",
    "fit_table",
    "fit_threshold",
    "format_with_error",
    "known_exponents",
    "ratio_crossings",
    "ratio_table",
    "sample_table",
]
