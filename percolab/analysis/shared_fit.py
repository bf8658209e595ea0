"""p_c of several models whose wrapping probabilities at p_c are the same numbers, in one fit.

At p_c the probabilities R that clusters wrap around a torus are universal: those of bonds and sites
of one lattice, and of all lattices whose tori have the same shape, are equal for large L.  That
requires that the symmetry of a lattice singles out no direction; elsewhere the relative extent of
clusters along the axes depends on the model.

Each file is fitted by itself (:mod:`percolab.analysis.wrapping_fit`), which gives p_c and three R
with their covariance.  Generalised least squares combine them, with one R for all; published R are
one more observation, whatever the number of files.  One likelihood of all samples agrees within
0.05 errors (results/thresholds/README.md).  The errors of 1/nu and omega, which are the same known
numbers in every fit, count as independent: next to p_c they hardly matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from percolab.analysis.averaging import assess_threshold
from percolab.analysis.json_values import Record
from percolab.analysis.quantity_model import LEAST_ERROR
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_fits import Prior, choose_critical, known_value
from percolab.analysis.theory.critical import is_isotropic, torus_shape
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import ChiSquare, Value
from percolab.analysis.wrapping_fit import (
    QUANTITIES,
    WrappingEstimate,
    asks_for_wrapping,
    list_fitted,
    read_universal,
)
from percolab.bonds.model import Model
from percolab.errors import AnalysisError, InputError
from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import Shown
from percolab.store.results import StoredResults

#: Results, and a name of each for messages.
Named = Sequence[tuple[str, StoredResults]]
#: p_c and R, float64 (4,), their covariance, and the part of it that other samples would change.
Estimate = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class SharedThreshold(Record):
    """p_c of one of several files.

    alone: p_c from this file alone, without published R.  prior_shift: the change of p_c if all
    priors are twice as wide.  sizes: L, ascending.
    """

    name: str
    lattice: str
    model: str
    sizes: tuple[int, ...]
    p_c: Value
    alone: Value
    prior_shift: float


@dataclass(frozen=True, repr=False)
class SharedFit(Record, Shown):
    """p_c of several files that share their wrapping probabilities at p_c.

    files: in the given order.  at_p_c: the shared values for large L, by name; known: published
    ones.  agreement: chi^2 of the values of each file, and of published values used as priors, with
    respect to the shared ones.  problem: why there is no p_c, in one line, or None.  notes:
    warnings.
    """

    files: tuple[SharedThreshold, ...]
    at_p_c: dict[str, Value]
    known: dict[str, Known | None]
    agreement: ChiSquare
    problem: str | None
    notes: tuple[str, ...]

    def _facts(self) -> dict[str, Any]:
        if self.problem:
            return {"problem": self.problem}
        return {f"p_c of {file.name}": file.p_c for file in self.files} | self.at_p_c


def fit_shared(
    named: Named, universal: Prior | None = None, min_size: int | None = None
) -> SharedFit:
    """Return p_c of several results of ``percolab threshold`` that share R.

    universal: whether published R are priors; by default they are if they were in any search.
    min_size: the smallest L of each file to use.

    InputError: the results do not share R (:func:`check_shared`).  AnalysisError: too few samples.
    """
    check_shared(named)
    if universal is None:
        universal = "known" if "known" in [read_universal(own) for _, own in named] else "free"
    first, quantities = named[0][1], list_fitted(named[0][1].study)
    critical, sources = choose_critical(first, quantities, universal)
    fits, wider = [], []
    for name, results in named:
        try:
            fit = WrappingEstimate.of(results, "free", min_size)
            wider.append(replace(fit, average=replace(fit.fitter, priors=2.0).average(fit.known)))
        except AnalysisError as error:
            raise AnalysisError(f"{name}: {error}") from error
        fits.append(fit)
    values, agreement = combine([fit.joint() for fit in fits], critical)
    wide, _ = combine([fit.joint() for fit in wider], critical)
    files, notes, problems = [], list(sources), []
    if agreement.rejects:
        reason = f"the wrapping probabilities of the files contradict each other ({agreement})"
        problems.append(f"no p_c: {reason}")
    for n, (name, results) in enumerate(named):
        alone = fits[n].threshold
        chi_square = agreement if agreement.rejects else alone.chi_square
        p_c = replace(values[n], chi_square=chi_square, members=alone.members)
        found = assess_threshold(p_c, wide[n], fits[n].sampled, fits[n].notes)
        notes += [f"{name}: {note}" for note in found["notes"]]
        problems += [f"{name}: {found['problem']}"] if found["problem"] else []
        facts = name, results.study.structure.name, results.study.model, tuple(fits[n].fitter.sizes)
        files.append(SharedThreshold(*facts, p_c, alone, found["prior_shift"]))
    known = {quantity.name: known_value(first, quantity) for quantity in quantities}
    shared = dict(zip(QUANTITIES, values[len(named) :], strict=True))
    # A problem of one file affects the shared R, and so every p_c.
    problem = next(iter(problems), None)
    return SharedFit(tuple(files), shared, known, agreement, problem, tuple(notes))


def combine(
    estimates: Sequence[Estimate], critical: Sequence[Known | None] = ()
) -> tuple[list[Value], ChiSquare]:
    """Return p_c of each estimate and the R that all share, and the chi^2 of their agreement.

    critical: published R, one more observation of each; () for none.
    """
    from scipy.linalg import block_diag

    count, size = len(estimates), len(estimates) + len(QUANTITIES)
    unit = np.eye(size)
    # For every observation: the rows of its parameters, and its Estimate.
    seen = [(unit[[n, *range(count, size)]], *own) for n, own in enumerate(estimates)]
    for row, known in zip(unit[count:], critical, strict=False):
        if known is not None:
            variance = np.full((1, 1), max(known.error, LEAST_ERROR) ** 2)
            seen.append((row[None], np.array([known.value]), variance, 0 * variance))
    design, mean = np.vstack([one[0] for one in seen]), np.concatenate([one[1] for one in seen])
    whole, statistical = (block_diag(*(one[n] for one in seen)) for n in (2, 3))
    precision = np.linalg.inv(whole)
    covariance = np.linalg.inv(design.T @ precision @ design)
    weights = covariance @ design.T @ precision
    found = weights @ mean
    rest = mean - design @ found
    agreement = ChiSquare.of(float(rest @ precision @ rest), mean.size - size)
    own = np.maximum(np.diag(weights @ statistical @ weights.T), 0.0)
    errors = zip(found.tolist(), np.sqrt(np.diag(covariance)).tolist(), np.sqrt(own).tolist())
    return [Value(x, error, part, agreement, count) for x, error, part in errors], agreement


def check_shared(named: Named) -> None:
    """Raise InputError, in one line, unless all results share R and each has a p_c of its own."""
    if len(named) < 2:
        raise InputError("give two files or more of percolab threshold, or one file alone")
    lattices: list[Lattice] = []
    for name, results in named:
        study, lattice = results.study, results.study.structure
        if not asks_for_wrapping(results) or not isinstance(lattice, Lattice):
            what = "percolab threshold in three dimensions and more"
            raise InputError(f"{name}: files that are fitted together must be of {what}")
        if not (Model.parse(study.model).keeps_symmetry and is_isotropic(lattice)):
            raise InputError(
                f"{name}: directions of {lattice.name}, {study.model}, are not equivalent by "
                "symmetry, so its wrapping probabilities are not those of others: fit it alone"
            )
        lattices.append(lattice)
    for n, k in combinations(range(len(named)), 2):
        both = f"{named[n][0]} and {named[k][0]}"
        sides, others = torus_shape(lattices[n]), torus_shape(lattices[k])
        if sides.shape != others.shape or not np.allclose(sides, others):
            raise InputError(
                f"{both} have tori of different shapes, whose wrapping probabilities at p_c may "
                "differ: fit each alone"
            )
        models = [named[at][1].study.model for at in (n, k)]
        if lattices[n].digest == lattices[k].digest and models[0] == models[1]:
            raise InputError(
                f"{both} are of one lattice and model, which have one p_c: put their samples "
                "together first (percolab merge)"
            )
