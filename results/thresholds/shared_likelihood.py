"""One likelihood of bonds and sites with one R, against the combination of their own fits.

    python results/thresholds/shared_likelihood.py LATTICE FOLDER FIRST END

FOLDER has the files of shared.py.  All samples of a pair are fitted at once, with one amplitude a_0
of each probability for both, for every pair of smallest sizes and degrees, averaged as ever.  After
its seed a line has, of bonds and sites, how far p_c is from that of ``percolab fit``, over its
error, and the ratio of the errors; then the same with one 1/nu for the two as well.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np

from percolab.analysis.averaging import fit_weights
from percolab.analysis.quantity_model import JointModel
from percolab.analysis.scaling import OUTER, fit_least_squares
from percolab.analysis.shared_fit import combine
from percolab.analysis.wrapping_fit import DEGREES, WrappingEstimate
from percolab.store.results import read_results


def models(estimate):
    """Return the model of each smallest size and degree, and how many values it leaves out."""
    fitter, found = estimate.fitter, []
    units, slopes = fitter.start.units(fitter.sizes)
    for smallest, degree in product(fitter.sizes[: max(1, len(fitter.sizes) - 2)], DEGREES):
        own = tuple(one for one in fitter.observations if smallest <= one.L)
        left_out = sum(one.dimension for one in fitter.observations if smallest > one.L)
        model = JointModel(own, degree, fitter.omegas, slopes, units, estimate.known)
        found.append((model, left_out))
    return found


def fit_both(pair, share_exponent):
    """Return the criterion of a fit of two models with one R, p_c of both, and its covariance."""
    (one, first_out), (other, second_out) = pair
    first, second = one.start(one.known.value), other.start(other.known.value)
    size = first.size
    same = [(OUTER + n * one.terms, OUTER + n * other.terms) for n in range(3)]
    same += [(1, 1)] if share_exponent else []
    own = np.setdiff1d(np.arange(second.size), [k for _, k in same])
    spread = np.zeros((size + second.size, size + own.size))
    spread[:size, :size] = np.eye(size)
    spread[size + own, size + np.arange(own.size)] = 1
    for n, k in same:
        spread[size + k, n] = 1
    # One prior of 1/nu for both, not two.
    kept = np.ones(other.target.size + second.size)
    kept[other.target.size + 1] = not share_exponent

    def residuals(theta):
        whole = spread @ theta
        return np.concatenate([one.residuals(whole[:size]), kept * other.residuals(whole[size:])])

    def jacobian(theta):
        whole = spread @ theta
        second = kept[:, None] * other.jacobian(whole[size:])
        return np.vstack([one.jacobian(whole[:size]) @ spread[:size], second @ spread[size:]])

    theta, cost = fit_least_squares(residuals, np.concatenate([first, second[own]]), jacobian)
    slopes = jacobian(theta)
    scale = np.linalg.norm(slopes, axis=0)
    covariance = np.linalg.inv((slopes / scale).T @ (slopes / scale)) / np.outer(scale, scale)
    at, width = [0, size], np.array([one.units.width, other.units.width])
    p_c = np.array([one.units.p_0, other.units.p_0]) + width * (spread @ theta)[at]
    errors = (spread @ covariance @ spread.T)[np.ix_(at, at)] * np.outer(width, width)
    return cost + 2 * theta.size + 2 * (first_out + second_out), p_c, errors


def main() -> None:
    lattice, folder, first, end = sys.argv[1:]
    for seed in range(int(first), int(end)):
        paths = [Path(folder) / f"{lattice}-{model}-{seed}.h5" for model in ("bond", "site")]
        estimates = [WrappingEstimate.of(read_results(path), "free") for path in paths]
        values, _ = combine([each.joint() for each in estimates])
        p_c = np.array([value.value for value in values[:2]])
        errors = np.array([value.error for value in values[:2]])
        cells = []
        for share_exponent in (False, True):
            fits = [fit_both(p, share_exponent) for p in product(*map(models, estimates))]
            weights = fit_weights([fit[0] for fit in fits])
            every = np.array([fit[1] for fit in fits])
            mean = weights @ every
            covariance = np.tensordot(weights, [fit[2] for fit in fits], 1)
            covariance += (weights * (every - mean).T) @ (every - mean)
            ratios = np.sqrt(np.diag(covariance)) / errors
            cells += [*((mean - p_c) / errors), *ratios]
        print(seed, *(f"{cell:+.3f}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
