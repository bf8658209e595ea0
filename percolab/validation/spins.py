"""Comparison of chains of spins with Kaufman, tiny enumerated graphs, identities, and each other.

Chains are the blocks of a task on the device.  Errors are those of the means of independent chains.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.theory.ising import CRITICAL_COUPLING, ising_torus
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.labelers import serving_labeler
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import load_lattice
from percolab.lattices.structure import Structure
from percolab.lattices.topology import Topology, unpack_bits
from percolab.measure.spins import LAGS, SERIES, STATE_SQUARES
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.spins.words import Chain
from percolab.tasks.blocks import Block, squared_names
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.validation.check import (
    Check,
    Conditions,
    Outcome,
    compare_means,
    list_labelers,
    mean_outcome,
    sum_differing,
)
from percolab.validation.enumeration import Bonds, bond_means

Floats = NDArray[np.float64]

_UPDATES = ("sw", "wolff", "few:8,flip=0.7")
#: Tori for Kaufman's results: L, and K relative to the transition.
_TORI = ((8, 1.1), (16, 0.9), (16, 1.0), (32, 1.0))
_BURN_IN = {"sw": 60, "wolff": 300, "few:8,flip=0.7": 300}
#: Tiny tori of L = 2, which have double bonds, and a graph with parallel bonds and loops.
_TINY = ("square", "triangular", "kagome", "graph")
#: By q, values of p at which the spins of a few sites are neither ordered nor free.
_TINY_P = {2: 0.4, 3: 0.45, 10: 0.6}
_LOOPS: tuple[int, Bonds] = (6, [(0, 3), (3, 0), (1, 3), (2, 2), (2, 4), (4, 1), (1, 4), (5, 5)])
#: Cases of identities: lattice, L, model, p near the transition, and the burn-in.  The last, of
#: first order, needs a long burn-in: while chains relax, M^2 of a sweep differs from its S_2.
_CASES = (
    ("square", 32, "ising", 0.58, 60),
    ("triangular", 24, "potts:q=3", 0.47, 60),
    ("cubic", 10, "potts:q=4", 0.46, 600),
)
#: Cases of parity: lattices whose shapes are not a whole number of words, and updates with q.
_PARITY = (("square", (33, 5)), ("honeycomb", (18, 6)), ("kagome", (18, 6)), ("cubic", (7, 5, 3)))
_RULES = (("sw", 2), ("wolff", 3), ("few:8,flip=0.7", 7), ("sw", 256), ("sw", 7))


@dataclass(frozen=True)
class _Means:
    """Means over the sweeps of every chain of a task with one p."""

    task: Task
    blocks: list[Block]

    def of(self, name: str) -> Floats:
        place = [column.name for column in self.task.observables].index(name)
        return np.array([block.sums[0, place] for block in self.blocks]) / self.task.block_size

    def square(self, name: str) -> Floats:
        place = squared_names(self.task.observables).index(name)
        return np.array([block.squares[0, place] for block in self.blocks]) / self.task.block_size

    def lagged(self, series: int) -> tuple[Floats, Floats]:
        """Return the means of x_t x_(t+1) and of x_t + x_(t+1) of a series."""
        shape = len(self.blocks), len(SERIES), 2, LAGS + 1
        parts = np.array([block.extras["lagged"][0] for block in self.blocks]).reshape(shape)
        products, edges = parts[:, series, :, 1].T / (self.task.block_size - 1)
        return products, edges


def _chains(
    conditions: Conditions,
    structure: Structure,
    size: int,
    *,
    chains: int,
    stream: tuple[object, ...],
    labeler: str | None = None,
    **task: Any,
) -> _Means:
    """Return chains of a periodic lattice or graph; stream: names the seed; task: its settings."""
    defaults = {"model": "ising", "burn_in": 60, "block_size": 100}
    made = Task(
        structure=structure,
        size=size,
        boundary=("periodic",) * structure.dimension,
        seed=conditions.stream_seed("spins", *stream),
        **{**defaults, **task},
    )
    sampler: Any = make_sampler(made, labeler=labeler, device=conditions.device)
    conditions.device.open()
    return _Means(made, sampler.sample(range(chains)))


def _kaufman(update: str, conditions: Conditions) -> Iterator[Outcome]:
    """Check energy and specific heat of Ising tori; slower labelers only on the smallest."""
    lattice = load_lattice("square")
    kind, smallest = conditions.device.kind, lattice.topology((8, 8), ("periodic",) * 2)
    names = [name for name in list_labelers(kind, smallest) if name != "reference"]
    fastest = serving_labeler(None, kind, smallest)
    tori = [*_TORI, (128, 1.0)] if conditions.full else list(_TORI)
    cases = [(fastest, size, scale, rng) for size, scale in tori for rng in GENERATORS]
    cases += [(name, *_TORI[0], "xorwow") for name in names if name != fastest]
    for n, (labeler, size, scale, rng) in enumerate(cases):
        coupling, sites = scale * CRITICAL_COUPLING, size * size
        means = _chains(
            conditions,
            lattice,
            size,
            chains=conditions.count(40, 1000),
            stream=("Kaufman", update, n),
            labeler=labeler,
            p=(-float(np.expm1(-2 * coupling)),),
            update=update,
            rng=rng,
            burn_in=_BURN_IN[update],
            block_size=200,
        )
        exact = ising_torus(size, size, coupling)
        satisfied = sites * (1 - exact.energy / 2)
        energy = 2 - 2 * means.of("satisfied") / sites  # per site: bonds minus twice the satisfied
        # Variance about the exact mean, so that the mean of a chain gives no bias.
        apart = means.square("satisfied") - 2 * satisfied * means.of("satisfied") + satisfied**2
        text = f"{update}, L = {size}, K = {coupling:.4f}, {rng}, {labeler}"
        heat = 4 * coupling**2 * apart / sites
        values = {
            f"energy, {text}": (energy, exact.energy),
            f"specific heat, {text}": (heat, exact.specific_heat),
        }
        yield from compare_means(text, values)


def _list_bonds(structure: Structure, size: int) -> tuple[int, Bonds]:
    """Return the number of sites and the bonds, the sites numbered without vacant points."""
    boundary = ("periodic",) * structure.dimension
    topology = structure.topology(structure.shape(size), boundary)
    occupied = unpack_bits(topology.occupied, topology.num_points)
    ends = (np.cumsum(occupied) - 1)[topology.bonds()[:, 1:]].tolist()
    return int(occupied.sum()), [(i, j) for i, j in ends]


def _enumerated(name: str, conditions: Conditions) -> Iterator[Outcome]:
    """Check means of spins, of open bonds and of clusters on tiny graphs."""
    is_graph = name == "graph"
    structure, size = (Graph.of_bonds(*_LOOPS), _LOOPS[0]) if is_graph else (load_lattice(name), 2)
    sites, bonds = _list_bonds(structure, size)
    for n, (update, q, p) in enumerate((u, q, p) for u in _UPDATES for q, p in _TINY_P.items()):
        exact = bond_means(sites, bonds, q=q, p=p)
        means = _chains(
            conditions,
            structure,
            size,
            chains=conditions.count(300, 5000),
            stream=("enumeration", name, update, q),
            p=(p,),
            model=f"potts:q={q}",
            update=update,
            rng=list(GENERATORS)[n % 2],
            # At q = 10 on the triangular torus chains forget a random start in about 13 sweeps, and
            # means over fewer sweeps are skewed.
            burn_in=120 if update == "sw" else 100,
            block_size=400 if q == 10 else 100,
        )
        squares, fourths = means.of("state_squares"), means.square("state_squares")
        fourths = q**2 * fourths - 2 * q * sites**2 * squares + sites**4
        measured = {
            "satisfied": means.of("satisfied"),
            "satisfied_squared": means.square("satisfied"),
            "open_bonds": means.of("open_bonds"),
            "largest_state": means.of("largest_state"),
            "magnetization_square": (q * squares - sites**2) / (q - 1),
            "magnetization_square_squared": fourths / (q - 1) ** 2,
            "clusters": means.of("clusters"),
            "sum_squares": means.of("sum_squares"),
            "largest_cluster": means.of("largest"),
        }
        text = f"{name}, {update}, q = {q}"
        values = {
            f"{key.replace('_', ' ')}, {text}": (each, exact[key]) for key, each in measured.items()
        }
        yield from compare_means(text, values)


def _identities(conditions: Conditions) -> Iterator[Outcome]:
    """Check identities between spins and clusters, which hold at any size."""
    for name, size, model, p, burn_in in _CASES:
        lattice = load_lattice(name)
        means = _chains(
            conditions,
            lattice,
            size,
            chains=conditions.count(40, 500),
            stream=("identities", name),
            p=(p,),
            model=model,
            block_size=200,
            burn_in=burn_in,
        )
        q, sites = means.task.draw.states, means.task.num_sites
        open_bonds = means.of("open_bonds") - p * means.of("satisfied")
        squares = (q * means.of("state_squares") - sites**2) / (q - 1)
        product, both = means.lagged(SERIES.index(STATE_SQUARES))
        lagged = (q**2 * product - q * sites**2 * both + sites**4) / (q - 1) ** 2
        values = {
            "open less p times satisfied bonds": (open_bonds, 0.0),
            "M^2 less S_2": (squares - means.of("sum_squares"), 0.0),
            "M^2 of two sweeps less S_2^2": (lagged - means.square("sum_squares"), 0.0),
        }
        text = f"{name}, L = {size}, {model}"
        yield from compare_means(text, {f"{key}, {text}": each for key, each in values.items()})
    for q in (2, 3, 4):
        means = _chains(
            conditions,
            load_lattice("square"),
            12,
            chains=conditions.count(80, 1000),
            stream=("self-dual", q),
            p=(q**0.5 / (1 + q**0.5),),
            model=f"potts:q={q}",
        )
        # Weights of a configuration and of its dual (J. L. Jacobsen and C. R. Scullard, J. Phys. A
        # 46, 075001 (2013)).
        two = means.of("wrapping_all") - means.of("wrapping_diagonal")
        apart = two - q * (1 - means.of("wrapping_any"))
        text = f"clusters wind twice less q times never, square, q = {q}"
        yield mean_outcome(text, apart, 0.0)


def _advance(labeler: str, kind: str, topology: Topology, rule: Any, begun: Any) -> list[Any]:
    """Return the rows, numbers and final spins of a chain; begun: its start, number of sweeps."""
    chains = new_chains(labeler, kind, topology, rule)
    *start, sweeps = begun
    chains.begin(*start)
    return [*chains.advance(sweeps), chains.copy_planes()]


def _parity(conditions: Conditions) -> Iterator[Outcome]:
    """Compare chains of every labeler of the device with those of the reference, bit for bit."""
    kind, sweeps = conditions.device.kind, conditions.count(8, 200)
    conditions.device.open()
    for name, shape in _PARITY:
        topology = load_lattice(name).topology(shape, ("periodic",) * len(shape))

        def counted(name: str = name, topology: Topology = topology) -> Iterator[Any]:
            for n, (update, q) in enumerate(_RULES):
                rule, seed = Update.parse(update).rule(q), conditions.stream_seed("parity", name, n)
                threshold = np.uint64(p_to_threshold(q**0.5 / (1 + q**0.5)))
                bonds, new, sites = (np.uint64(seed + place) for place in range(3))
                key = Chain(bonds, new, sites, np.uint64(n), threshold)
                begun = n % 2, [key], [n % 3 == 1], sweeps
                expected = _advance("reference", "cpu", topology, rule, begun)
                for each in list_labelers(kind, topology):
                    found = _advance(each, kind, topology, rule, begun)
                    yield each, f"{update}, q = {q}", not all(map(np.array_equal, found, expected))

        text = f"{{}} on {name}, {' x '.join(map(str, topology.shape))}: chains unlike"
        yield from sum_differing(text, counted())


CHECKS = (
    *(Check("spins", f"Kaufman, {update}", partial(_kaufman, update)) for update in _UPDATES),
    *(Check("spins", f"all states of {name}", partial(_enumerated, name)) for name in _TINY),
    Check("spins", "identities", _identities),
    Check("spins", "parity", _parity),
)
