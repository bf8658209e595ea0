"""Pulls of p_c in synthetic studies that are like a stored one, with all choices of fits made anew.

    python scripts/synthetic_quantities.py cubic.h5 --studies 60 --third 0

The truth is the joint fit of the stored results with corrections b and b_2 from --min-size on, at
all sizes; --third adds that many b_2 L^-3.2: with 12.1 it is as large as b_2 L^-2 at L = 8.  Values
are drawn with the covariance of the stored ones.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from percolab.analysis.quantities import choose_quantities, correction_exponents
from percolab.analysis.quantity_fits import Fitter, alone_of, mean_of, models_to_try
from percolab.analysis.quantity_model import ModelChoice, near_threshold
from percolab.analysis.stored_data import available_quantities, moments_of
from percolab.api import open_results

THIRD = 3.2


def fitter_of(path):
    """Return the fitter of all quantities of a file, the models it tries, and the true model."""
    results = open_results(path)
    boundary = results.study.boundary
    chosen = choose_quantities(["all"], boundary, available_quantities(results))
    omegas, omega_2 = correction_exponents(chosen, boundary)
    start, near = near_threshold(moments_of(results, chosen), chosen)
    fitter = Fitter.of(near, chosen, start, omega_2)
    models = models_to_try(None, None, omegas, near)
    truth = ModelChoice(3, tuple(omegas[0]), "b2")
    return fitter, models, truth


def true_values(fitter, truth, min_size, third):
    """Return the true p_c and values, one array an observation."""
    fit = fitter.fit(min_size, truth)
    theta = fitter.model(min_size, truth).linear_fit(np.array(fit.outer))
    model = fitter.model(min(fitter.sizes), truth)
    values = model.values(theta)
    second = np.array([own.second for own in fit.amplitudes])
    parts = np.split(values, np.cumsum([item.p.size for item in fitter.observations])[:-1])
    for item, part in zip(fitter.observations, parts, strict=True):
        part += third * second[item.quantity] * float(item.L) ** -THIRD
    return fit.threshold, parts


def main():
    """Draw studies, fit them, and print pulls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results")
    parser.add_argument("--studies", type=int, default=60)
    parser.add_argument("--third", type=float, default=0.0)
    parser.add_argument("--min-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    fitter, models, truth = fitter_of(given.results)
    p_c, parts = true_values(fitter, truth, given.min_size, given.third)
    rng = np.random.default_rng(given.seed)
    rows = []
    for number in range(given.studies):
        drawn = []
        for item, part in zip(fitter.observations, parts, strict=True):
            noise = rng.multivariate_normal(np.zeros(item.dimension), item.covariance)
            drawn.append(replace(item, values=part + np.linalg.pinv(item.combine) @ noise))
        study = replace(fitter, observations=drawn, made={})
        alone = [alone_of(study, index, models, None) for index in range(len(fitter.names))]
        mean = mean_of(study, alone)
        if mean is None:
            print(number, "no mean")
            continue
        rows.append((mean.threshold - p_c, mean.error, mean.spread))
        sizes = ", ".join(str(trial.fit.min_size) if trial else "-" for trial in alone)
        print(f"{number} away {rows[-1][0]:+.2e} error {mean.error:.2e} L_min {sizes}", flush=True)
    away, error, spread = np.array(rows).T
    for name, width in (("statistical", error), ("with the spread", np.hypot(error, spread))):
        pulls = away / width
        print(f"{name}: pulls of mean {pulls.mean():.2f}, width {pulls.std():.2f}")
    print(f"mean error {error.mean():.2e}, mean spread {spread.mean():.2e}")


if __name__ == "__main__":
    main()
