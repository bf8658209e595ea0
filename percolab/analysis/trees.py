"""Means of stored minimum spanning trees and of invasions, and their limits.

Means of one size, and their errors, are over independent samples.  Over the sizes:

* the weight per site of the infinite lattice, e.  On a torus a tree has weight e N + a, a being
  constant up to powers of 1 / L; an open side adds a surface term, e N + b N / L + ...: N. Read,
  Phys. Rev. E 72, 036114 (2005).  So e is fitted with the leading power of 1 / L and two more,
  whose amplitudes are 0 +- 3 and 0 +- 9, weights being of order one;
* the exponent of the path between two sides, l ~ L^D, as a power law with its corrections;
* sites invaded at breakthrough, which grow as L^D, and those within a distance r of a source, as
  r^D, both with corrections.  Without trapping, and in three dimensions with it, D is the d_f of
  percolation (D. Wilkinson and J. F. Willemsen, J. Phys. A 16, 3365 (1983)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from percolab.analysis.json_values import Record
from percolab.analysis.power_law import (
    PRIORS,
    PowerLaw,
    average,
    average_over_sizes,
    fit_member,
    fit_power_law,
)
from percolab.analysis.statistics import MIN_BLOCKS, Floats, mean_of_blocks, standard_error
from percolab.analysis.value import Value, list_rejections
from percolab.errors import AnalysisError, InputError
from percolab.lattices.extent import count_bonds
from percolab.measure.columns import axis_names
from percolab.measure.trees import WEIGHT_BINS, WEIGHT_BITS
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: Prefixes of the names of the columns of T and of the length of the path.
THRESHOLD, PATH = "tree_threshold", "tree_path"
#: Sites are counted within radii up to this part of the distance that an invasion reaches.
INNER = 1 / 4


@dataclass(frozen=True, eq=False)
class TreeMeans(Record):
    """The trees of one size.

    sites, bonds: of the lattice.  weight: sum of u over the tree, per site.  parts: trees of the
    forest, 1 where the lattice is connected.  thresholds, paths: by the letter of each open axis.
    degrees: fraction of the sites with k bonds of the tree, float64 (DEGREE_BINS,).  accepted,
    accepted_errors: f(w), the fraction of the bonds in every bin of weights that are in the tree,
    float64 (WEIGHT_BINS,).
    """

    L: int
    sites: int
    bonds: int
    samples: int
    weight: Value
    parts: float
    thresholds: dict[str, Value]
    paths: dict[str, Value]
    degrees: Floats
    accepted: Floats
    accepted_errors: Floats


@dataclass(frozen=True, eq=False)
class TreeFit(Record):
    """The means of all sizes, ascending, and their limits; None where there are too few sizes."""

    renamed: ClassVar = {"means": "sizes", "exponents": "path_exponents"}

    means: tuple[TreeMeans, ...]
    limit: Value | None
    exponents: dict[str, PowerLaw]
    notes: tuple[str, ...]


def fit_trees(results: StoredResults) -> TreeFit:
    """Return the means and limits of the trees of a study; InputError where it has none."""
    items = joined(results).measured
    items = [result for result in items if result.has("tree_weight") or result.has("tree_bonds")]
    if not items:
        raise InputError("no trees in these results: sample them by percolab sweep --method tree")
    means = tuple(map(compute_means, sorted(items, key=lambda result: result.task.size)))
    if not results.study.structure.is_scalable:
        return TreeFit(means, None, {}, ())
    notes: list[str] = []
    boundary = results.study.boundary
    limit: Value | None = None
    try:
        limit = weight_limit(means, leading=len(boundary) if set(boundary) == {"periodic"} else 1)
    except AnalysisError as error:
        notes.append(f"weight of the infinite lattice: {error}")
    exponents = {}
    for letter in axis_names(boundary):
        paths = [(own.L, own.paths[letter].value, own.paths[letter].error) for own in means]
        rows = [row for row in paths if row[1] > 0 and row[2] > 0]
        L, lengths, errors = np.array(rows).reshape(-1, 3).T
        try:
            exponents[letter] = fit_power_law(L, lengths, (errors / lengths) ** 2)
        except AnalysisError as error:
            notes.append(f"exponent of the path along {letter}: {error}")
    named = [("weight of the infinite lattice", limit)]
    named += [(f"exponent of the path along {x}", law.exponent) for x, law in exponents.items()]
    return TreeFit(means, limit, exponents, (*list_rejections(named, "the best fit"), *notes))


def compute_means(result: TaskResult) -> TreeMeans:
    task, scale, samples = result.task, 2.0**-WEIGHT_BITS, result.num_samples
    bonds = count_bonds(task.structure, task.shape, task.boundary)
    letters = axis_names(task.boundary)
    # A lattice without bonds has no fractions.
    in_bin = bonds / WEIGHT_BINS or math.nan
    shares = result.extra("tree_weights")[:, 0].astype(float) / (result.samples[:, None] * in_bin)
    return TreeMeans(
        L=task.size,
        sites=task.num_sites,
        bonds=bonds,
        samples=samples,
        weight=_mean(result, "tree_weight", scale / task.num_sites),
        parts=task.num_sites - _mean(result, "tree_bonds").value,
        thresholds={x: _mean(result, f"{THRESHOLD}_{x}", scale) for x in letters},
        paths={x: _mean(result, f"{PATH}_{x}") for x in letters},
        degrees=result.extra("tree_degrees")[:, 0].sum(axis=0) / (samples * task.num_sites),
        accepted=mean_of_blocks(shares, result.samples),
        accepted_errors=standard_error(shares, result.samples),
    )


def _mean(result: TaskResult, name: str, scale: float = 1.0) -> Value:
    # As Python integers: the sum over a study may exceed 64 bits.
    total = sum(int(value) for value in result.column(name)[:, 0])
    samples, squares = result.num_samples, result.squares(name)[:, 0].sum()
    value = total / samples
    if samples < 2:
        return Value(scale * value, math.nan)
    variance = max(squares / samples - value**2, 0.0) * samples / (samples - 1)
    return Value(scale * value, scale * math.sqrt(variance / samples))


def weight_limit(means: Sequence[TreeMeans], *, leading: int) -> Value:
    """Return the weight per site of the infinite lattice; leading: the first power of 1 / L."""
    rows = [(own.L, own.weight.value, own.weight.error) for own in means if own.weight.error > 0]
    sizes, values, errors = np.array(rows).reshape(-1, 3).T
    if np.unique(sizes).size < 2:
        raise AnalysisError("a fit needs two sizes with errors")
    powers = (0, leading, leading + 1, leading + 2)
    design = np.stack([sizes**-power for power in powers], axis=1)
    widths = (np.inf, np.inf, *PRIORS[:2])
    return average_over_sizes(sizes, design, values, errors**2, widths).value(0)


#: Names of the averaged numbers.
AVERAGED = ("invaded", "threshold", "front", "largest_burst")


@dataclass(frozen=True)
class InvasionMeans:
    """Means and errors by AVERAGED over the invasions of one size; reached: of the samples."""

    L: int
    samples: int
    reached: int
    means: dict[str, float]
    errors: dict[str, float]

    @classmethod
    def of(cls, L: int, rows: Sequence[dict[str, Any]]) -> InvasionMeans:
        """Return the means of rows, one a sample, with the averaged numbers and "reached"."""
        table = np.array([[row[name] for name in AVERAGED] for row in rows], np.float64)
        numbers = table.mean(axis=0), standard_error(table)
        means, errors = (dict(zip(AVERAGED, each.tolist())) for each in numbers)
        return cls(L, len(rows), sum(bool(row["reached"]) for row in rows), means, errors)

    @property
    def notes(self) -> list[str]:
        """A warning where errors from few samples are uncertain and often too small."""
        if not 2 <= self.samples < MIN_BLOCKS:
            return []
        unsure = round(100 / math.sqrt(2 * (self.samples - 1)))
        return [
            f"errors of {self.samples} samples are themselves uncertain by {unsure} %, and often "
            f"too small: give --samples {MIN_BLOCKS} or more"
        ]


def fit_size_dimension(means: Sequence[InvasionMeans]) -> Value | None:
    """Return D of <invaded sites> ~ L^D; None unless the means of two sizes have errors."""
    used = [own for own in means if own.reached == own.samples and own.means["invaded"] > 0]
    masses = np.array([own.means["invaded"] for own in used])
    errors = np.array([own.errors["invaded"] for own in used])
    with suppress(AnalysisError):
        return fit_power_law([own.L for own in used], masses, (errors / masses) ** 2).exponent
    return None


def fit_mass_dimension(radii: Floats, masses: Floats) -> Value | None:
    """Return D of the masses > 0, (samples, radii), ~ r^D exp(b / r + c / r^2 + e x + f x^2).

    x: r as a part of the distance that invasions reach, near which they are not yet complete.
    Priors: b and e 0 +- 3, c and f 0 +- 9.  None with fewer than two different samples, or radii.
    """
    if len(masses) < 2 or len(radii) < 2:
        return None
    without = np.log((masses.sum(axis=0) - masses) / (len(masses) - 1))
    covariance = (len(masses) - 1) * np.cov(without.T, ddof=0)
    # Weights are all alike: masses of neighbouring radii have most of their sites in common.
    variances = np.full(radii.size, np.diag(covariance).mean())
    if not variances[0] > 0:
        return None
    x = INNER * radii / radii[-1]
    powers = [radii**0, np.log(radii), 1 / radii, radii**-2, x, x**2]
    widths = (np.inf, np.inf, *PRIORS[:2], *PRIORS[:2])
    logarithms = np.log(masses.mean(axis=0))
    member = fit_member(np.stack(powers, axis=1), logarithms, variances, widths)
    return replace(average([member], covariance).value(1), chi_square=None)
