"""From stored results to p_c, exponents and their errors.

The threshold: curves, likelihood, scaling, averaging, crossings, threshold, sample_thresholds, and
maxima of one size alone.  Several quantities at once: quantities, quantity_model, quantity_fits,
wrapping_fit.  Roots on tori: roots.  At the threshold: power_law, exponents, tau, radii, collapse,
and theory to compare with.  Chains of spins: autocorrelation, reweighting, transition_order,
spin_fit.  Trees and invasions: trees.  Tables of others: table_fit.  Common: value, statistics,
json_values, text.  Stored results: study_kinds, stored_data, stored_spins, stored_fits.
"""
