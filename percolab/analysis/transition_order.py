"""Whether a transition of spins is of first order, from stored chains of several sizes and p.

It is of first order where two phases are seen that slow relaxation cannot explain:

* *mixed*, by stored energies: two peaks whose valley is a factor e deep at the beta where both
  phases have their equilibrium weights, this beta inside the sampled range, and another p or size
  with peaks on both sides of the same valley;
* *apart*, by the means of chains: at two p or more every chain that started ordered has more
  satisfied bonds than any that started at random, by six standard deviations of a single sweep,
  after a burn-in of 4 L sweeps of Swendsen and Wang.

Anything else is undecided.  A lattice smaller than the correlation length, which is 10.6 for
q = 10, 48 for q = 7 and 2512 for q = 5 on the square lattice, cannot distinguish a weak transition
of first order from a continuous one.

Sources: J. Lee and J. M. Kosterlitz, Phys. Rev. Lett. 65, 137 (1990); E. Buffenoir and S. Wallon,
J. Phys. A 26, 3045 (1993) for the correlation lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from percolab.analysis.reweighting import FirstOrder, find_first_order
from percolab.analysis.statistics import Floats
from percolab.analysis.theory.potts import potts_exponents
from percolab.analysis.value import format_with_error
from percolab.bonds.model import Model
from percolab.measure.spins import SERIES
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Task

#: The least depth of the valley, as a logarithm, at a transition of first order.
DEEP = 1.0
#: Sweeps of a burn-in in units of L, after which chains remember only the phase of their start.
RELAXED = 4
#: *Apart* needs: deviations of a sweep between phases, chains of each start, pairs of size and p.
_APART, _LEAST_CHAINS, _LEAST_POINTS = 6.0, 2, 2


@dataclass(frozen=True)
class Point:
    """Two peaks of the energy at one size and p."""

    L: int
    p: float
    num_sites: int
    order: FirstOrder

    def agrees(self, other: Point) -> bool:
        """Whether both have the same two phases, and beta_c if both know it."""
        for one, two in ((self, other), (other, self)):
            low, high = (peak / one.num_sites for peak in one.order.peaks)
            if not low < two.order.cut / two.num_sites < high:
                return False
        if not (self.order.mixed and other.order.mixed):
            return True
        apart = abs(self.order.beta - other.order.beta)
        return apart <= 4 * math.hypot(self.order.beta_error, other.order.beta_error)


@dataclass(frozen=True)
class PhasesApart:
    """Chains that stay in the phase in which they began; gap: of the mean of `name` per site."""

    L: int
    p: float
    gap: float
    gap_error: float
    name: str


def classify_order(
    items: Sequence[TaskResult], model: Model
) -> tuple[tuple[int, float, FirstOrder] | None, str | None]:
    """Return (L, p, transition) of first order or None, and a sentence on the order or None."""
    points = [point for result in items for point in two_peaks(result, model)]
    deep = [point for point in points if point.order.depth >= DEEP]
    sure = [one for one in deep if any(one.agrees(other) for other in points if other is not one)]
    if sure:
        # Of the largest size: where both phases are known best, and then the nearest p.
        best = min(
            sure, key=lambda x: (-x.L, not x.order.mixed, abs(x.order.beta + math.log1p(-x.p)))
        )
        return (best.L, best.p, best.order), None
    apart = [gap for result in items for gap in phases_apart(result)]
    if len(apart) >= _LEAST_POINTS:
        return None, _describe_apart(apart)
    dimension, q = len(items[0].task.boundary), model.states
    if not model.has_spins or (not points and (q < 3 or potts_exponents(dimension, q))):
        return None, None
    return None, _describe_undecided(points, items)


def two_peaks(result: TaskResult, model: Model) -> list[Point]:
    """Return where the energies of a task show two phases, with beta in the sampled range."""
    if "series" not in result.task.measure or len(result.blocks) < 2 or not model.has_spins:
        return []
    task, points, chains = result.task, [], len(result.blocks)
    series = result.extra("series").reshape(chains, len(task.p), len(SERIES), -1)[:, :, 0]
    betas = [-math.log1p(-p) if p < 1 else math.inf for p in task.p]
    q, sites, serial = model.states, task.num_sites, task.is_serial
    for n, (p, beta) in enumerate(zip(task.p, betas, strict=True)):
        if beta == math.inf:
            continue
        one = find_first_order(series[:, n], beta=beta, q=q, num_sites=sites, one_chain=serial)
        if one is None or (len(betas) > 1 and not min(betas) <= one.beta <= max(betas)):
            continue
        if one.mixed or (not serial and is_relaxed(task) and _both_stay(series[:, n], one)):
            points.append(Point(task.size, p, task.num_sites, one))
    return points


def phases_apart(result: TaskResult) -> list[PhasesApart]:
    """Return the p of a task at which chains stay in the phase in which they began."""
    odd = result.numbers % 2 == 1
    few = min(odd.sum(), (~odd).sum()) < _LEAST_CHAINS
    if result.task.is_serial or few or not is_relaxed(result.task):
        return []
    sweeps = result.task.block_size
    name = "satisfied" if result.has("satisfied") else "open_bonds"
    means, squares = result.column(name) / sweeps, result.squares(name) / sweeps
    deviations = np.sqrt(np.maximum(squares - means**2, 0.0)).max(axis=0)
    gaps = means[~odd].min(axis=0) - means[odd].max(axis=0)
    apart = []
    for n in np.flatnonzero((gaps > _APART * deviations) & (deviations > 0)):
        starts = [means[own, n] / result.task.num_sites for own in (~odd, odd)]
        error = math.sqrt(sum(float(each.var(ddof=1)) / each.size for each in starts))
        gap = float(starts[0].mean() - starts[1].mean())
        apart.append(PhasesApart(result.task.size, result.task.p[n], gap, error, name))
    return apart


def _both_stay(energies: Floats, transition: FirstOrder) -> bool:
    """Return whether some chains of either phase never reach the peak of the other."""
    low, high = transition.peaks
    least, most = energies.min(axis=1), energies.max(axis=1)
    phases = (least > low) & (most >= high), (most < high) & (least <= low)
    return all(int(own.sum()) >= _LEAST_CHAINS for own in phases)


def is_relaxed(task: Task) -> bool:
    """Return whether chains of a continuous transition forget their start in the burn-in.

    Updates of all clusters take about L sweeps at the critical point of q = 4, the slowest.
    """
    return task.update == "sw" and task.burn_in >= RELAXED * task.size


def _describe_apart(apart: Sequence[PhasesApart]) -> str:
    largest = max(each.L for each in apart)
    best = min((each for each in apart if largest == each.L), key=lambda each: each.gap_error)
    heat = format_with_error(best.gap, best.gap_error)
    return (
        "first order: chains that started ordered and at random stay in two phases (at "
        f"{len(apart)} sizes and p), {heat} {best.name.removesuffix('_bonds')} bonds a site apart "
        f"at L = {best.L}, p = {best.p:.6g}; between p = {min(each.p for each in apart):.6g} and "
        f"{max(each.p for each in apart):.6g} both are long-lived"
    )


def _describe_undecided(points: Sequence[Point], items: Sequence[TaskResult]) -> str:
    sizes = ", ".join(str(size) for size in sorted({result.task.size for result in items}))
    seen = "no two phases are seen"
    if not any("series" in result.task.measure for result in items):
        seen += " in the means of chains (--measure series keeps single energies)"
    elif points:
        best = max(points, key=lambda each: each.order.depth)
        seen = (
            f"the deepest valley between two peaks of the energy is exp(-{best.order.depth:.2g}), "
            f"at L = {best.L}, p = {best.p:.6g}"
        )
    return (
        f"order of the transition undecided: at L = {sizes} {seen}; a weak transition of first "
        "order looks continuous on lattices smaller than its correlation length"
    )
