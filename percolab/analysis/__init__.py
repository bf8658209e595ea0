"""From stored results to p_c, exponents and their errors.

The threshold: curves, likelihood, scaling, averaging, crossings, threshold, sample_thresholds, and
maxima of one size alone.  Several quantities at once: quantities, quantity_model, quantity_fits,
wrapping_fit.  Roots on tori: roots.  At the threshold: power_law, exponents, tau, radii, collapse,
and theory to compare with.  Chains of spins: autocorrelation, reweighting, transition_order,
spin_fit.  Trees and invasions: trees.  Tables of others: table_fit.  Common: value, statistics,
json_values, text.  Stored results: study_kinds, stored_data, stored_spins, stored_fits.
"""

from percolab.analysis.collapse import Collapse, Measured, collapse_curves
from percolab.analysis.crossings import CurveCrossing, ratio_crossings
from percolab.analysis.curves import ClusterCurve, SpanningCurve
from percolab.analysis.exponents import ExponentFit, fit_exponents
from percolab.analysis.likelihood import SizeFit, fit_size
from percolab.analysis.maxima import Estimate, SizeEstimates, estimate_size
from percolab.analysis.sample_thresholds import analyse_samples, compute_sample_moments
from percolab.analysis.scaling import ScalingFunction
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
from percolab.analysis.threshold import (
    Information,
    ThresholdFit,
    compute_information,
    fit_threshold,
)
from percolab.analysis.value import ChiSquare
from percolab.errors import AnalysisError

__all__ = [
    "AnalysisError",
    "ChiSquare",
    "ClusterCurve",
    "Collapse",
    "CurveCrossing",
    "Estimate",
    "ExponentFit",
    "Information",
    "Known",
    "Measured",
    "ScalingFunction",
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
