"""Analysis of stored results: p_c, critical exponents and their errors.

Threshold: curves, likelihood, scaling, averaging, crossings, threshold, sample_thresholds, and
maxima (of a single size).  Several quantities at once: quantities, quantity_model, quantity_fits,
wrapping_fit.  Roots on tori: roots.  At the threshold: power_law, exponents, tau, radii, collapse,
and theory for comparison.  Chains of spins: autocorrelation, reweighting, transition_order,
spin_fit.  Trees and invasions: trees.  Other tables: table_fit.  Shared: value, statistics,
json_values, text.  Stored results: study_kinds, stored_data, stored_spins, stored_fits.
"""
