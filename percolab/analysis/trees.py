"""Means of stored minimum spanning trees: weight a site, thresholds, paths, degrees, and limits.

The means of one size are over independent samples, and so are their errors.  Over the sizes:

* the weight a site of the infinite lattice, e.  On a torus a tree has the weight e N + a, a being
  constant up to powers of 1 / L; an open side adds a surface term, e N + b N / L + ...: N. Read,
  Phys. Rev. E 72, 036114 (2005).  So e is fitted with the leading power of 1 / L and two more,
  whose amplitudes are 0 +- 3 and 0 +- 9, weights being of order one;
* the exponent of the path between two sides, l ~ L^D, as a power law with its corrections.

Both are averaged over smallest sizes (:mod:`percolab.analysis.power_law`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from percolab.analysis.json_values import Record
from percolab.analysis.power_law import PRIORS, PowerLaw, average_over_sizes, fit_power_law
from percolab.analysis.statistics import Floats, mean_of_blocks, standard_error
from percolab.analysis.value import Value, list_rejections
from percolab.errors import AnalysisError, InputError
from percolab.lattices.extent import count_bonds
from percolab.measure.columns import axis_names
from percolab.measure.trees import WEIGHT_BINS, WEIGHT_BITS
from percolab.store.joined import joined
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult

#: The names of the columns of T and of the length of the path begin so.
THRESHOLD, PATH = "tree_threshold", "tree_path"


@dataclass(frozen=True, eq=False)
class TreeMeans(Record):
    """The trees of one size.

    sites, bonds: of the lattice.  weight: sum of u over the tree, a site.  parts: trees of the
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
    items = [item for item in joined(results).tasks.values() if item.blocks]
    items = [item for item in items if item.has("tree_weight") or item.has("tree_bonds")]
    if not items:
        raise InputError("no trees here: percolab tree, or sweep with --method tree")
    means = tuple(compute_means(item) for item in sorted(items, key=lambda item: item.task.size))
    if not results.study.structure.is_scalable:
        return TreeFit(means, None, {}, ())
    notes: list[str] = []
    dimension = len(results.study.boundary)
    periodic = set(results.study.boundary) == {"periodic"}
    limit: Value | None = None
    try:
        limit = weight_limit(means, leading=dimension if periodic else 1)
    except AnalysisError as error:
        notes.append(f"weight of the infinite lattice: {error}")
    exponents = {}
    for letter in axis_names(results.study.boundary):
        paths = [(item.L, item.paths[letter]) for item in means]
        own = [(L, path) for L, path in paths if path.error > 0 and path.value > 0]
        relative = np.array([(path.error / path.value) ** 2 for _, path in own])
        try:
            exponents[letter] = fit_power_law(
                [L for L, _ in own], [path.value for _, path in own], relative
            )
        except AnalysisError as error:
            notes.append(f"exponent of the path along {letter}: {error}")
    named = [("weight of the infinite lattice", limit)]
    named += [(f"exponent of the path along {x}", law.exponent) for x, law in exponents.items()]
    return TreeFit(means, limit, exponents, (*list_rejections(named, "the best fit"), *notes))


def compute_means(item: TaskResult) -> TreeMeans:
    """Return the means of the trees of one task."""
    task = item.task
    scale = 2.0**-WEIGHT_BITS
    bonds = count_bonds(task.structure, task.shape, task.boundary)
    letters = axis_names(task.boundary)
    samples = item.num_samples
    histogram = item.extra("tree_weights")[:, 0].astype(float)
    # A lattice without bonds has no fractions.
    in_bin = bonds / WEIGHT_BINS or math.nan
    shares = histogram / (item.samples[:, None] * in_bin)
    degrees = item.extra("tree_degrees")[:, 0].sum(axis=0) / (samples * task.num_sites)
    return TreeMeans(
        L=task.size,
        sites=task.num_sites,
        bonds=bonds,
        samples=samples,
        weight=_mean(item, "tree_weight", scale / task.num_sites),
        parts=task.num_sites - _mean(item, "tree_bonds").value,
        thresholds={x: _mean(item, f"{THRESHOLD}_{x}", scale) for x in letters},
        paths={x: _mean(item, f"{PATH}_{x}") for x in letters},
        degrees=degrees,
        accepted=mean_of_blocks(shares, item.samples),
        accepted_errors=standard_error(shares, item.samples),
    )


def _mean(item: TaskResult, name: str, scale: float = 1.0) -> Value:
    """Return the mean of an observable, times a scale; its error is NaN of one sample."""
    # As Python integers: the sum over a study may exceed 64 bits.
    total = sum(int(value) for value in item.column(name)[:, 0])
    samples, squares = item.num_samples, item.squares(name)[:, 0].sum()
    value = total / samples
    if samples < 2:
        return Value(scale * value, math.nan)
    variance = max(squares / samples - value**2, 0.0) * samples / (samples - 1)
    return Value(scale * value, scale * math.sqrt(variance / samples))


def weight_limit(means: Sequence[TreeMeans], *, leading: int) -> Value:
    """Return the weight a site of the infinite lattice; AnalysisError with fewer than two sizes.

    leading: the power of 1 / L of the largest correction.
    """
    own = [item for item in means if item.weight.error > 0]
    sizes = np.array([item.L for item in own], float)
    if np.unique(sizes).size < 2:
        raise AnalysisError("a fit needs two sizes with errors")
    powers = (0, leading, leading + 1, leading + 2)
    design = np.stack([sizes**-power for power in powers], axis=1)
    values = np.array([item.weight.value for item in own])
    variances = np.array([item.weight.error**2 for item in own])
    widths = (np.inf, np.inf, *PRIORS[:2])
    return average_over_sizes(sizes, design, values, variances, widths).value(0)
