"""Pilots of spins: where to place p, and how long chains take to forget their start.

**Where.**  First *invaded clusters*: in every sweep the satisfied bonds are opened in the order of
their uniform numbers until a cluster spans (wraps, on a torus; holds half of the sites, on a
graph), and the clusters of that moment get new spins.  Sweeps of this kind drive themselves to the
transition (J. Machta et al., Phys. Rev. Lett. 75, 2792 (1995)), but fluctuate over several times
its width.  So chains at fixed p over that window follow, and again, longer ones, over the p between
which their samples begin to span.

**How long.**  A burn-in is 20 times the longest autocorrelation time of energy, M^2 and S_2 at some
of the p, from chains that are 20 times as long as well.  Where only some clusters get new spins, a
random start takes longer: its clusters are small, and the first are flipped one by one.  So the
pilot's chains get longer burn-ins until those that started ordered and at random agree, and this
time is added; of long chains only every n-th update is measured.  At a transition of first order
chains of a large lattice stay in their phase; the burn-in is that within it, and a note says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.autocorrelation import autocorrelation
from percolab.analysis.transition_order import RELAXED, is_relaxed
from percolab.bonds.words import GENERATORS
from percolab.errors import AnalysisError, InputError
from percolab.kinds.chains import ChainSampler
from percolab.kinds.pilots.percolation import POINTS, covering
from percolab.measure.columns import open_axes
from percolab.measure.rows import LARGEST, SPANNING
from percolab.measure.spins import SERIES
from percolab.measure.wrapping import FIRST_WRAPPING
from percolab.tasks.blocks import Block
from percolab.tasks.kind import PilotConditions
from percolab.tasks.study import Study, Task

#: Sweeps of invaded clusters that are left out, and that are used; p is found to 2^-_STEPS.
_LOST, _USED, _STEPS = 6, 12, 9
_HALVINGS = 5
_MOST_CHAINS, _LEAST_CHAINS, _SITES = 16, 2, 2**20
#: Standard deviations of the invaded clusters' p that are looked at first.
_REACH = 1.5
#: Chains at each p of a window, their burn-in, and their measured sweeps.
_CHAINS, _BURN_IN, _SWEEPS = 4, 24, 48
#: How often a window is narrowed: once with chains as short as these, then with longer ones.
_ROUNDS = 3
#: p are placed between these probabilities, and further by this many widths at both ends.
_LOW, _HIGH, _BEYOND = 0.2, 0.8, 0.1
#: Autocorrelation times in a burn-in, and in a chain by which one is measured.
_TIMES = 20
_LEAST_BURN_IN, _MOST_SWEEPS = 20, 2**14
#: Measured updates of a chain, from which on further ones are skipped; and the most updates of a
#: chain, for each grid point, where only some clusters get new spins.
_MOST_MEASURED, _UPDATES_PER_POINT = 2**10, 64
#: Least measured updates in which chains of two phases have not left them.
_LEAST_APART = 8 * _SWEEPS
_PHASES = "chains that start ordered and at random stay in different phases"
#: The burn-in where the pilot does not find it.
_UNKNOWN_BURN_IN = 2**10
#: Standard errors within which chains of both starts agree.
_AGREEING = 3.0

Floats = NDArray[np.float64]


def place_p(study: Study, pilot: PilotConditions) -> dict[int, tuple[float, ...]]:
    grids = {}
    for size in study.sizes:
        grids[size] = place_spins(study.tasks[size], pilot)
        pilot.on_p(size, grids[size])
    return grids


def place_spins(task: Task, pilot: PilotConditions) -> tuple[float, ...]:
    """Return the p values of a task of spins, in ascending order, whatever its update is."""
    task = replace(task, update="sw")
    begin = invaded(task, pilot) if task.draw.has_spins else halved(task, pilot)
    reach = max(_REACH * float(begin.std()), 2.0**-_STEPS)
    low, high = float(begin.mean()) - reach, float(begin.mean()) + reach
    edges = np.array([[max(low, 0.0)], [min(high, 1.0)]])
    burn_in, sweeps = _BURN_IN, _SWEEPS
    for around in range(_ROUNDS):
        p = covering(edges[0], edges[1], POINTS)
        seen = _probabilities(task, p, burn_in, sweeps, pilot)
        edges = _transitions(seen, np.array(p))
        if around == 0:
            # Chains that still remember their start make the transition look wider than it is.
            middle = (float(edges[0].mean() + edges[1].mean()) / 2,)
            search = find_burn_in(replace(task, p=middle), pilot)
            sweeps = _SWEEPS if search.warning else max(search.updates, _SWEEPS)
            burn_in = sweeps // 2
    return covering(edges[0], edges[1], POINTS)


def halved(task: Task, pilot: PilotConditions) -> Floats:
    """Return the ends of a short interval between which chains begin to span, float64 (2,).

    For random clusters: those of Chayes and Machta keep bonds, which cannot be invaded.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        seen = float(_probabilities(task, (middle,), _BURN_IN, _SWEEPS, pilot).mean())
        low, high = (low, middle) if seen > 0.5 else (middle, high)
    return np.array([low, high])


def invaded(task: Task, pilot: PilotConditions) -> Floats:
    """Return the p at which invaded clusters begin to span, float64 (chains * sweeps,)."""
    sampler = _make_sampler(_pilot(task, (0.5,), 0, 1), pilot)
    count = min(max(_SITES // task.num_points, _LEAST_CHAINS), _MOST_CHAINS)
    mask = sum(1 << axis for axis in open_axes(task.boundary))
    if not mask:
        mask = sum(1 << (FIRST_WRAPPING + axis) for axis in range(len(task.boundary)))

    def begins(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        if mask:
            return np.asarray(rows[:, SPANNING] & mask != 0)
        return np.asarray(2 * rows[:, LARGEST] >= task.num_sites)

    invaded_p: list[Floats] = []
    step = sampler.chains.capacity
    for first in range(0, count, step):
        numbers = range(first, min(first + step, count))
        keys = [sampler.task.chain(number, 0.5) for number in numbers]
        # Where all spins are equal anything that can be connected is.
        sampler.chains.begin(GENERATORS[task.rng], keys, [False] * len(keys))
        for sweep in range(_LOST + _USED):
            low, high = np.zeros(len(keys)), np.ones(len(keys))
            for _ in range(_STEPS):
                middle = (low + high) / 2
                below = begins(sampler.chains.rows_at(_thresholds(middle)))
                high, low = np.where(below, middle, high), np.where(below, low, middle)
            sampler.chains.advance_at(_thresholds(high))
            if sweep >= _LOST:
                invaded_p.append(high)
    # In an order that does not depend on how many chains a device sweeps together.
    values = np.sort(np.concatenate(invaded_p))
    if values.min() > 1 - 2.0 ** (1 - _STEPS):
        raise InputError(
            f"L = {task.size}: {task.structure.name} does not span with all bonds open: give the p "
            "values (-p, --beta, -T)"
        )
    return values


def _thresholds(p: Floats) -> NDArray[np.uint64]:
    return np.array([int(math.ldexp(float(value), 63)) for value in p], np.uint64)


def _pilot(
    task: Task,
    p: Sequence[float],
    burn_in: int,
    sweeps: int,
    measure: tuple[str, ...] = (),
    every: int = 1,
) -> Task:
    """Return a pilot's task, which has its own chains."""
    given: dict[str, Any] = {"burn_in": burn_in, "block_size": sweeps, "every": every}
    return replace(task, purpose="pilot", p=tuple(p), measure=measure, chains=0, **given)


def _make_sampler(task: Task, pilot: PilotConditions) -> ChainSampler:
    return ChainSampler(task, labeler=pilot.labeler, device=pilot.device)


def _blocks(task: Task, numbers: Sequence[int], pilot: PilotConditions) -> list[Block]:
    sampler = _make_sampler(task, pilot)
    items = [(number, p) for number in numbers for p in task.p]
    return sampler.make_blocks(numbers, sampler.measure(items))


def _probabilities(
    task: Task, p: Sequence[float], burn_in: int, sweeps: int, pilot: PilotConditions
) -> Floats:
    """Return how often samples span, along every axis looked at, at each p: (axes, points).

    On a graph without a source and a target, return the share of the largest cluster.
    """
    own = _pilot(task, p, burn_in, sweeps)
    # Chains with other numbers than those of the invaded clusters.
    first = _MOST_CHAINS + 2 * round(1e3 * p[0])
    blocks = _blocks(own, range(first, first + _CHAINS), pilot)
    sums = np.sum([block.sums for block in blocks], axis=0) / (_CHAINS * sweeps)
    names = [column.name for column in own.observables]
    what = "spanning" if open_axes(task.boundary) else "wrapping"
    words = [name for name in names if name in (what, *(f"{what}_{axis}" for axis in "xyzw"))]
    if not words:
        return np.asarray(sums[:, [names.index("largest")]].T / task.num_sites)
    return np.asarray(sums[:, [names.index(name) for name in words]].T)


def _transitions(probabilities: Floats, p: Floats) -> Floats:
    """Return p below and above the transition along every axis, (2, axes)."""
    edges = []
    for row in probabilities:
        # Chance alone makes it fall.
        rising = np.maximum.accumulate(row)
        low, high = (_crossing(rising, p, value) for value in (_LOW, _HIGH))
        beyond = max(_BEYOND * (high - low), float(np.ptp(p)) / 100)
        edges.append((max(low - beyond, 0.0), min(high + beyond, 1.0)))
    return np.array(edges).T


def _crossing(rising: Floats, p: Floats, value: float) -> float:
    """Return where a rising function has a value, by interpolation; else the nearer end."""
    above = np.flatnonzero(rising >= value)
    if not above.size:
        return float(p[-1])
    n = int(above[0])
    if n == 0:
        return float(p[0])
    share = (value - rising[n - 1]) / (rising[n] - rising[n - 1])
    return float(p[n - 1] + share * (p[n] - p[n - 1]))


@dataclass(frozen=True)
class BurnIn:
    """Updates at the start of a chain that are not measured, and a warning about them."""

    updates: int
    warning: str = ""


def find_burn_in(task: Task, pilot: PilotConditions) -> BurnIn:
    """Return 20 autocorrelation times of the slowest of three series, at up to five of the p.

    With updates wolff and few, the time in which a pilot's chains forget their start is added.
    Where chains stay in two phases, or are correlated for longer than any pilot's chain, there is a
    warning.  InputError: the latter with updates of some clusters.
    """
    p = [task.p[n] for n in np.unique(np.linspace(0, len(task.p) - 1, 5).round().astype(int))]
    is_partial = task.update != "sw"
    most = max(_MOST_SWEEPS, _UPDATES_PER_POINT * task.num_points if is_partial else 0)
    sweeps, every, needed, start = _SWEEPS, 1, 0.0, 0
    while sweeps * every <= most:
        burn_in = max(round(needed), _BURN_IN, start)
        own = _pilot(task, p, burn_in, sweeps, ("series",), every)
        blocks = _blocks(own, range(1000, 1000 + _CHAINS), pilot)
        stored = np.array([block.extras["series"] for block in blocks], np.float64)
        series = stored.reshape(len(blocks), len(p), len(SERIES), -1)
        tau, is_complete = _longest(series)
        needed = _TIMES * tau * every
        if is_complete and sweeps >= _TIMES * tau:
            if not is_partial:
                return BurnIn(max(10 * math.ceil(needed / 10), _LEAST_BURN_IN))
            if _have_met(series, tau):
                return BurnIn(10 * math.ceil((burn_in + needed) / 10))
        # At these p ordered and random chains have no energy in common.
        energies = series[:, :, 0]
        apart = energies[::2].min(axis=(0, -1)) > energies[1::2].max(axis=(0, -1))
        if apart.any() and sweeps >= _LEAST_APART and is_relaxed(own):
            at = ", ".join(f"{each:.6g}" for each in np.array(p)[apart])
            updates = max(RELAXED * task.size, _LEAST_APART)
            return BurnIn(updates, f"{_PHASES} at p = {at}: a transition of first order")
        if is_partial:
            start = 2 * burn_in
        if is_partial and sweeps >= _MOST_MEASURED:
            every *= 2
        else:
            sweeps *= 2
    reason = f"spins are correlated over more than {needed / _TIMES:.0f} updates"
    if is_partial:
        raise InputError(f"L = {task.size}: {reason}; give the burn-in (--burn-in)")
    warning = "so this burn-in is too short (--burn-in): errors are quoted only where ordered and"
    return BurnIn(_UNKNOWN_BURN_IN, f"{reason}, {warning} random starts agree")


def _longest(parts: Floats) -> tuple[float, bool]:
    """Return the longest autocorrelation time of series, and whether all are known."""
    tau, is_complete = 0.5, True
    for point in range(parts.shape[1]):
        for n in range(len(SERIES)):
            series = parts[:, point, n]
            try:
                time = autocorrelation(*_lagged(series - series.mean()), series.shape[1])
            except AnalysisError:
                # A constant series has no autocorrelation time.
                continue
            tau, is_complete = max(tau, time.tau), is_complete and time.complete
    return tau, is_complete


def _have_met(parts: Floats, tau: float) -> bool:
    """Return whether chains that started ordered have the means of those that started at random.

    Within _AGREEING standard errors; the variance of a chain's mean is 2 tau / n of the series'.
    """
    chains, sweeps = parts.shape[0], parts.shape[-1]
    ordered, random = parts[::2].mean(axis=(0, -1)), parts[1::2].mean(axis=(0, -1))
    variance = parts.var(axis=-1).mean(axis=0) * 2 * tau / sweeps * 4 / chains
    return bool((np.abs(ordered - random) <= _AGREEING * np.sqrt(variance)).all())


def _lagged(series: Floats) -> tuple[Floats, Floats]:
    """Return lagged products and edges of series, (chains, n), as files have them, up to n / 4."""
    chains, n = series.shape
    lags = n // 4
    spectrum = np.abs(np.fft.rfft(series, 2 * n)) ** 2
    products = np.fft.irfft(spectrum, 2 * n)[:, : lags + 1]
    sums = np.concatenate([np.zeros((chains, 1)), np.cumsum(series, axis=1)], axis=1)
    at = np.arange(lags + 1)
    return products, sums[:, n - at] + sums[:, -1:] - sums[:, at]
