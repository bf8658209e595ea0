"""Invasion percolation: in each step the easiest bond, or site, of the frontier is invaded.

In each step the invader takes the bond of smallest weight among those that lead to a site not
invaded yet (Prim's algorithm); in the site model the site of smallest weight next to an invaded
one.  Weights are the uniform numbers of a sample, or given ones; equal weights are ordered by
number.  So an invasion of everything takes the bonds of the minimum spanning tree, and the largest
weight of an invasion from side to side is the spanning threshold T.

With *trapping*, a region of the defender that is cut off from the target, its outlet, is never
invaded.  Source: D. Wilkinson and J. F. Willemsen, J. Phys. A: Math. Gen. 16, 3365 (1983).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from percolab.lattices.lattice import Lattice
from percolab.lattices.shown import Shown
from percolab.lattices.topology import Topology, count_words
from percolab.trees import invasion_cpu as kernels
from percolab.trees.invasion_cpu import FrontierDraw, Ground, Target

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

#: When an invasion stops: when a target is invaded, when nothing is left, or at a number of sites.
Stop = Literal["spanning", "all"] | int
#: Approximate memory in bytes per invaded site, and per grid point if there is trapping.
SITE_BYTES, TRAPPING_BYTES = 200, 32
#: Approximate memory in bytes per bond while bonds are listed.
LISTED_BYTES = 200
_COUNTERS = 10
# Number of sites for which memory is reserved at the start.
_RESERVED = 1 << 21
#: Up to this number of words of sites each word has its own entry, without a hash table.
WORDS_LISTED = 1 << 17


def lattice_ground(lattice: Lattice, shape: tuple[int, ...], boundary: tuple[str, ...]) -> Ground:
    """Return where the bonds of a lattice lead, in time independent of its size."""
    strides = [prod(shape[:axis]) for axis in range(len(shape))]
    class_size = 32 * count_words(prod(shape))
    first, steps = [0], []
    # Cell points, the first axis fastest.
    for point in product(*(range(n) for n in lattice.cell[::-1])):
        here = point[::-1]
        for klass, bond in enumerate(lattice.bonds):
            before = tuple((x - o) % n for x, o, n in zip(here, bond.offset, lattice.cell))
            for owner, sign in ((here, 1), (before, -1)):
                if owner in bond.at:
                    offset = [sign * step for step in bond.offset]
                    delta = sum(step * stride for step, stride in zip(offset, strides))
                    steps.append([delta, klass * class_size, int(sign > 0), *offset])
        first.append(len(steps))
    periodic = [int(kind == "periodic") for kind in boundary]
    reach = np.abs([bond.offset for bond in lattice.bonds]).max(axis=0)
    return Ground(
        axes=np.array([shape, lattice.cell, periodic, strides, reach], np.int64).T.copy(),
        first=np.array(first, np.int64),
        steps=np.array(steps, np.int64).reshape(-1, 3 + len(shape)),
        degree=int(np.diff(first).max()),
        class_size=class_size,
    )


def topology_ground(topology: Topology, bonds: Integers | None = None) -> Ground:
    """Return where the bonds of any topology lead, as a list for every site.

    bonds: the rows of ``topology.bonds()`` that are used; all of them unless given.
    """
    klass, owner, other = (topology.bonds() if bonds is None else bonds).T
    class_size = 32 * topology.num_words
    number = klass * class_size + owner
    apart = owner != other
    start = np.concatenate([owner[apart], other[apart]])
    end = np.concatenate([other[apart], owner[apart]])
    order = np.argsort(start, kind="stable")
    counts = np.bincount(start, minlength=topology.num_points)
    return Ground(
        axes=np.empty((0, 5), np.int64),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        steps=np.column_stack([end, np.tile(number[apart], 2)])[order].astype(np.int64),
        degree=max(int(counts.max(initial=0)), 1),
        class_size=class_size,
    )


@dataclass(frozen=True, eq=False)
class InvasionWeights:
    """The weights of an invasion: those of a sample, or given ones."""

    model: str  # "bond" or "site": the elements that have weights
    generator: int  # this and the next two: of the random words
    seed: int
    sample: int
    classes: int  # bond classes; the words of sites follow those of bonds
    # float64, by number of bond or site; None for the sample's uniform numbers
    given: Floats | None = None
    keys: NDArray[np.uint64] | None = None  # uint64 like it, ordered as they are

    @property
    def by_site(self) -> bool:
        """Whether sites have weights."""
        return self.model == "site"

    def draw(self, class_size: int) -> FrontierDraw:
        ranks = np.empty(0, np.uint32)
        if self.keys is not None:
            # Equal weights are ordered by number; ranks are spread over the range of 32 digits.
            spread = 32 - max(self.keys.size - 1, 1).bit_length()
            ranks = np.empty(self.keys.size, np.uint32)
            place = np.arange(self.keys.size, dtype=np.uint32) << np.uint32(spread)
            ranks[np.argsort(self.keys, kind="stable")] = place
        first_word = self.classes * (class_size // 32) if self.by_site else 0
        key = np.uint64(self.seed), np.uint64(self.sample)
        return FrontierDraw(self.generator, *key, self.by_site, np.uint32(first_word), ranks)


class State:
    """The arrays of an invasion in progress; their sizes grow with the touched region.

    table:   uint64, hash table of words of 32 sites; empty if each word has its own entry
    entries: uint32, a row for each touched word; digits: uint32, a row for each random word drawn,
             starting at row 1
    candidates: all elements that were ever on the frontier; near, heads: the present frontier
    sites, taken, fronts: an entry per step; count: int64, the counters
    """

    def __init__(self, ground: Ground, classes: int, sources: int, most: int) -> None:
        # Untouched pages take no memory.
        size = max(min(most, _RESERVED), 1 << 16, 2 * sources)
        self.ground = ground
        slots, entries = 1 << (4 * sources + 4096).bit_length(), size // 4 + sources
        if ground.class_size // 32 <= WORDS_LISTED:
            slots, entries = 0, ground.class_size // 32
        self.table = np.full(slots, kernels.NONE, np.uint64)
        self.entries = np.zeros((entries, kernels.DRAWN + classes), np.uint32)
        self.digits = np.empty((size // 4, kernels.PLANES), np.uint32)
        self.candidates = np.empty(4 * size, kernels.CANDIDATE)
        self.near = np.empty(4 * size, np.uint64)
        self.heads = np.full(kernels.BUCKETS, kernels.END, np.int32)
        self.sites, self.taken = np.empty(size, np.int32), np.empty(size, np.int64)
        self.fronts = np.empty(size, np.int64)
        self.count = np.zeros(_COUNTERS, np.int64)
        self.count[kernels.MOST], self.count[kernels.REACHED] = kernels.NEAR, -1

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Hash table and frontier, in the order of the kernels' arguments."""
        return (
            self.table, self.entries, self.digits, self.candidates, self.near,
            self.heads, self.count,
        )  # fmt: skip

    def make_room(self) -> None:
        """Enlarge the arrays so that at least one more step fits."""
        room, count = self.ground.degree + 1, self.count
        if self.table.size:
            self.entries = _longer(self.entries, count[kernels.ENTRIES] + room)
        self.digits = _longer(self.digits, count[kernels.WORDS] + room)
        self.candidates = _longer(self.candidates, count[kernels.CANDIDATES] + room)
        self.near = _longer(self.near, self.candidates.size)
        for name in ("sites", "taken", "fronts"):
            setattr(self, name, _longer(getattr(self, name), count[kernels.STEPS] + 1))
        if self.table.size and 2 * (count[kernels.ENTRIES] + room) > self.table.size:
            size = 4 * max(self.table.size, 1 << int(room).bit_length())
            table = np.full(size, kernels.NONE, np.uint64)
            kernels.fill_table(table, self.table)
            self.table = table


def _longer(values: Any, size: int) -> Any:
    """Return a copy of an array, extended to at least ``size`` rows."""
    if size <= len(values):
        return values
    longer = np.empty((max(int(size), 2 * len(values)), *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer


@dataclass(frozen=True, eq=False)
class _Frontier:
    """All elements that were ever on the frontier, from which other results are derived."""

    candidates: Any  # as the kernels wrote them
    accepted: NDArray[np.bool_]  # for every candidate
    taken: Integers  # the candidate of every step, -1 for a given source
    sites: NDArray[np.int32]  # indexed by a candidate's ``since``
    shown: slice | Integers  # the candidates that count: all, or those not excluded by trapping


@dataclass(frozen=True, eq=False, repr=False)
class Invasion(Shown):
    """An invasion, step by step; the first ``num_sources`` steps are the source sites.

    sites:       int32 (n,), in the order in which they were invaded
    fronts:      int64 (n,), number of bonds (in the site model sites) that could be invaded next,
                 after each step; for source sites, after all of them
    num_sources: number of sites that were invaded from the start
    breakthrough: the step that invaded the first site of the target, or None
    num_sites:   of the whole lattice or graph
    model:       "bond" or "site"
    touched:     number of random words that were drawn
    shape:       grid points along each axis, () for a graph
    has_target:  whether there was a target
    """

    sites: NDArray[np.int32]
    fronts: Integers
    num_sources: int
    breakthrough: int | None
    num_sites: int
    model: str
    touched: int
    shape: tuple[int, ...]
    has_target: bool
    _draw: FrontierDraw
    _given: Floats | None
    _frontier: _Frontier

    def _facts(self) -> dict[str, Any]:
        facts = {"model": self.model, "invaded": self.num_invaded, "of sites": self.num_sites}
        if self.breakthrough is not None:
            facts |= {"breakthrough at step": self.breakthrough, "T": f"{self.threshold:.8g}"}
        return facts

    @property
    def num_invaded(self) -> int:
        """Number of invaded sites, including the sources."""
        return len(self.sites)

    @cached_property
    def bonds(self) -> Integers:
        """The number 32 * word + bit of the bond by which each site was invaded, -1 for a source.

        int64 (n,); in the site model it is the first bond by which the site was reached.
        """
        taken = self._frontier.taken
        # If there are no candidates, all sites are sources.
        bonds = np.full(taken.size, -1, np.int64)
        bonds[self.num_sources :] = self._frontier.candidates["bond"][taken[self.num_sources :]]
        return bonds

    @cached_property
    def origins(self) -> NDArray[np.int32]:
        """The site from which each site was invaded, int32 (n,); -1 for a source."""
        frontier, first = self._frontier, self.num_sources
        origins = np.full(self.num_invaded, -1, np.int32)
        since = frontier.candidates["since"][frontier.taken[first:]]
        origins[first:] = np.where(since < 0, np.int32(-1), frontier.sites[since])
        return origins

    @cached_property
    def tried(self) -> Floats:
        """Weights of all elements ever on the frontier, float64, to 32 digits if drawn."""
        candidates = self._frontier.candidates[self._frontier.shown]
        if self._given is None:
            return np.asarray(np.ldexp(candidates["prefix"] + 0.5, -32))
        return np.asarray(self._given[candidates["to" if self.model == "site" else "bond"]])

    @cached_property
    def accepted(self) -> NDArray[np.bool_]:
        """Which of these were taken; without trapping also bonds between two invaded sites."""
        return self._frontier.accepted[self._frontier.shown]

    @property
    def _numbers(self) -> Integers:
        """The number of the bond or site that each step took, -1 for given sources."""
        numbers = self.sites.astype(np.int64) if self.model == "site" else self.bonds.copy()
        numbers[: self.num_sources] = -1
        return numbers

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """All 63 digits of the weights, or ranks of given weights, uint64 (n,); 0 for sources."""
        keys = np.zeros(self.num_invaded, np.uint64)
        kernels.fill_keys(self._draw, self._numbers, keys)
        return keys

    @cached_property
    def weights(self) -> Floats:
        """Weight of the bond or site that each step took, float64 (n,); NaN for given sources."""
        if self._given is not None:
            weights = self._given[self._numbers]
        else:
            weights = np.ldexp(self.keys.astype(np.float64), -63)
        weights[: self.num_sources] = np.nan
        return weights

    @property
    def last(self) -> int:
        """The step that reached the target, or the last step."""
        return self.num_invaded - 1 if self.breakthrough is None else self.breakthrough

    @property
    def threshold(self) -> float:
        """The largest weight up to breakthrough: T of the sample, from side to side; 0 if none."""
        taken = self.weights[self.num_sources : self.last + 1]
        return float(taken.max()) if taken.size else 0.0

    @property
    def threshold_key(self) -> int:
        """One above the largest key up to breakthrough: the exact T of `--method threshold`."""
        return int(self.keys[: self.last + 1].max(initial=np.uint64(0))) + 1

    def bursts(self, p: float | None = None) -> Integers:
        """Return the sizes of complete bursts, int64, in the order in which they occurred.

        A burst begins with a weight of at least ``p`` and ends before the next such weight; its
        size is the number of sites invaded.  Without p it begins with a weight larger than all
        before.  Sites before the first burst and the unfinished last burst are left out.

        Sources: S. Roux and E. Guyon, J. Phys. A 22, 3693 (1989); S. Maslov, Phys. Rev. Lett. 74,
        562 (1995).
        """
        return burst_sizes(self.weights[self.num_sources :], p)

    def acceptance(self, bins: int = 50) -> tuple[Floats, Integers, Integers]:
        """Return (edges, tried, accepted) for equal bins of weight: float64 (bins + 1,), int64.

        accepted / tried is the acceptance profile a(r) of Wilkinson and Willemsen.
        """
        low, high = 0.0, 1.0
        if self._given is not None and self.tried.size:
            low, high = float(self.tried.min()), float(self.tried.max())
        edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
        tried, _ = np.histogram(self.tried, edges)
        accepted, _ = np.histogram(self.tried[self.accepted], edges)
        return edges, tried.astype(np.int64), accepted.astype(np.int64)

    def pressure_curve(self) -> tuple[Floats, Floats]:
        """Return (pressures, saturations): the fraction of sites invaded up to each pressure.

        The pressure is the largest weight invaded so far; all sites that need no higher pressure
        are invaded.  Every pressure occurs once.  Source sites count at every pressure.
        """
        taken = np.maximum.accumulate(self.weights[self.num_sources :])
        is_last = np.append(taken[1:] > taken[:-1], True)[: taken.size]
        filled = self.num_sources + 1 + np.flatnonzero(is_last)
        return taken[is_last], filled / self.num_sites

    def mass_within(self, distances: Floats, radii: Sequence[float] | Floats) -> Integers:
        """Return the number of invaded sites within each radius, int64.

        distances: float64 (n,), from the source to the invaded sites.
        """
        return np.searchsorted(np.sort(distances), radii, side="right").astype(np.int64)

    def renumbered(self, outer: NDArray[np.int32]) -> Invasion:
        """Return the invasion with its sites renumbered as outer[site]."""
        origins = np.where(self.origins < 0, np.int32(-1), outer[self.origins])
        renumbered = replace(self, sites=outer[self.sites])
        # Keys and weights of sites are found by the old numbers, so compute them before.
        renumbered.__dict__.update(keys=self.keys, weights=self.weights, origins=origins)
        return renumbered


def burst_sizes(weights: Floats, p: float | None = None) -> Integers:
    """Return the sizes of the complete bursts in a sequence of weights taken.

    >>> burst_sizes(np.array([0.3, 0.7, 0.2, 0.4, 0.9, 0.8, 0.1]), 0.6).tolist()
    [3, 1]
    >>> burst_sizes(np.array([0.3, 0.7, 0.2, 0.4, 0.9, 0.8, 0.1])).tolist()
    [1, 3]
    """
    if p is None:
        before = np.maximum.accumulate(weights)[:-1]
        begins = np.append(True, weights[1:] > before)[: weights.size]
    else:
        begins = weights >= p
    return np.diff(np.flatnonzero(begins)).astype(np.int64)


def invade(
    ground: Ground,
    weights: InvasionWeights,
    sources: Integers,
    target: Target,
    *,
    num_sites: int,
    enters: bool = False,
    stop: Stop = "all",
    exits: Integers | None = None,
) -> Invasion:
    """Invade from sources, without a shape as for a graph; the arguments have been checked.

    sources: int64, distinct sites.  enters: the invader enters through them, so in the site model
    they are the first frontier, each with its own weight, and not invaded from the start.
    exits: int64, all sites of the target if there is trapping, else None.
    """
    by_site = weights.by_site
    is_free = not (by_site and enters)
    draw = weights.draw(ground.class_size)
    most = num_sites if isinstance(stop, str) or exits is not None else stop
    state = State(ground, 1 if by_site else max(weights.classes, 1), sources.size, most)
    scratch = np.empty((2, ground.degree), np.int64)
    free = sources.size if is_free else 0
    if is_free:
        kernels.mark_sources(sources, state.table, state.entries, state.count)
        state.sites[:free], state.taken[:free] = sources, -1
        state.count[kernels.STEPS] = free
    while not kernels.advance_invasion(
        ground, draw, sources, is_free, target, *scratch, *state.arrays, state.sites, state.taken,
        state.fronts, stop == "spanning", most,
    ):  # fmt: skip
        state.make_room()
    state.fronts[:free] = state.fronts[free - 1] if free else 0
    count = state.count
    steps, reached = int(count[kernels.STEPS]), int(count[kernels.REACHED])
    candidates, sites = state.candidates[: count[kernels.CANDIDATES]], state.sites[:steps]
    taken, fronts = state.taken[:steps], state.fronts[:steps]
    if exits is None:
        accepted = candidates["following"] == kernels.TAKEN
        frontier = _Frontier(candidates, accepted, taken, sites, slice(None))
    else:
        entrance = sources[:0] if is_free else sources
        kept, cut = _untrapped(ground, by_site, state, free, entrance, exits)
        chosen = np.flatnonzero(kept)
        if isinstance(stop, int):
            chosen = chosen[: max(stop, free)]
        last = int(chosen[-1]) if chosen.size else -1
        accepted = np.zeros(candidates.size, bool)
        accepted[taken[chosen[free:]]] = True
        since = candidates["since"].astype(np.int64)
        # Candidates of a kept step that leads to a site not cut off by then.
        there = (since < 0) | (kept[since] & (since <= last))
        there &= cut[candidates["to"]] > since
        shown = np.flatnonzero(there | accepted)
        reached = int(np.searchsorted(chosen, reached)) if 0 <= reached <= last else -1
        frontier = _Frontier(candidates, accepted, taken[chosen], sites, shown)
        sites, fronts = sites[chosen], fronts[chosen]
    return Invasion(
        sites=sites,
        fronts=fronts,
        num_sources=free,
        breakthrough=reached if reached >= 0 else None,
        num_sites=num_sites,
        model=weights.model,
        touched=int(count[kernels.WORDS]),
        shape=(),
        has_target=bool(target.layers.any() or target.sites.size),
        _draw=draw,
        _given=weights.given,
        _frontier=frontier,
    )


def _untrapped(
    ground: Ground, by_site: bool, state: State, free: int, entrance: Integers, exits: Integers
) -> tuple[NDArray[np.bool_], Integers]:
    """Return (which steps remain with trapping, the step after which each site is cut off)."""
    sites = state.sites[: state.count[kernels.STEPS]]
    lengths = ground.axes[:, 0]
    num_points = int(lengths.prod()) if lengths.size else ground.first.size - 1
    steps = np.full(num_points, -1, np.int32)
    steps[sites] = np.arange(sites.size, dtype=np.int32)
    is_exit = np.zeros(num_points, bool)
    is_exit[exits] = True
    parents, members = np.empty((2, num_points + 1), np.int32)
    contacts, cut = np.empty((2, num_points), np.int32)
    kept = np.ones(sites.size, bool)
    scratch = np.empty((2, ground.degree), np.int64)
    kernels.give_back(
        ground, by_site, sites, free, entrance, is_exit, steps, parents, members, contacts,
        np.empty(num_points + 1, np.int64), cut, *scratch, state.fronts, kept,
    )  # fmt: skip
    return kept, cut.astype(np.int64)
