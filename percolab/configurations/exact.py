"""exact: the probability that source and target of a small graph are connected, as a polynomial.

Sites are added one after the other, each with its bonds to earlier sites.  The *frontier* is the
set of added sites that still have bonds to come.  A state says which sites of the frontier are
connected, and which of their clusters contain a source or a target; with it is stored how many
configurations with n open elements lead to it.  So the work grows with the number of states, not
of configurations: narrow graphs of some hundred bonds are as easy as dense ones of twenty.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph import Graph, make_graph
from percolab.lattices.shown import Shown
from percolab.tasks.values import check_choice

#: The largest number of states of a frontier: they take about ten seconds, and 1 kB each.
MOST_STATES = 100_000
_VACANT = -1
_SOURCE, _TARGET = 1, 2

#: The cluster number of every site of the frontier, and the terminals that each cluster contains.
_State = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, repr=False)
class ExactConnection(Shown):
    """The numbers of configurations of a graph that connect its source and its target.

    model:  "bond" or "site": what is open with probability p
    counts: for n = 0 ... M open elements, how many of the binomial(M, n) configurations connect
    """

    model: str
    counts: tuple[int, ...]

    @property
    def coefficients(self) -> tuple[int, ...]:
        """Integers a_k of the probability P(p) = sum of a_k p^k, k = 0 ... M."""
        most = len(self.counts) - 1
        found = [0] * (most + 1)
        for n, count in enumerate(self.counts):
            for k in range(most - n + 1 if count else 0):
                found[n + k] += (-1) ** k * count * comb(most - n, k)
        return tuple(found)

    def probability(self, p: Any) -> Any:
        """Return P(p): exactly as a Fraction if p is a Fraction or an integer, else as a float.

        InputError: p outside 0 to 1

        >>> exact([(0, 1), (1, 2)], source=0, target=2).probability(0.5)
        0.25
        """
        try:
            share = Fraction(p.item() if isinstance(p, np.generic) else p)
        except (TypeError, ValueError, OverflowError):
            share = Fraction(-1)
        if not 0 <= share <= 1:
            raise InputError(f"p = {p!r}, but it must be a number from 0 to 1")
        most = len(self.counts) - 1
        terms = (c * share**n * (1 - share) ** (most - n) for n, c in enumerate(self.counts) if c)
        total = sum(terms, Fraction(0))
        return total if isinstance(p, int | Fraction) else float(total)

    @property
    def polynomial(self) -> str:
        """P(p) as text.

        >>> exact([(0, 1), (0, 1)], source=0, target=1, multi=True).polynomial
        '2 p - p^2'
        """
        text = ""
        for k, a in enumerate(self.coefficients):
            if a:
                power = "" if k == 0 else "p" if k == 1 else f"p^{k}"
                size = " ".join(([str(abs(a))] if abs(a) > 1 or not power else []) + [power])
                sign = ("-" if a < 0 else "") if not text else (" - " if a < 0 else " + ")
                text += sign + size.strip()
        return text or "0"

    def _facts(self) -> dict[str, Any]:
        return {"model": self.model, "P(p)": self.polynomial}


def exact(
    graph: Any,
    *,
    source: Any = None,
    target: Any = None,
    model: str = "bond",
    multi: bool = False,
    columns: Any = None,
) -> ExactConnection:
    """Return the exact probability that a cluster contains a site of both source and target.

    graph, source, target, multi, columns: as :func:`percolab.sweep` takes them.  model: "bond", or
    "site", where sources and targets are open with probability p, too.

    InputError (one line): a graph or terminals that cannot be used, or a graph whose frontier has
    more than MOST_STATES states.

    >>> exact([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], source=0, target=3).polynomial
    '2 p^2 + 2 p^3 - 5 p^4 + 2 p^5'
    """
    check_choice("model", model, ("bond", "site"))
    found = make_graph(graph, source=source, target=target, multi=multi, columns=columns)
    if not found.num_targets:
        raise InputError("exact: give a source and a target")
    sites = model == "site"
    count = found.num_sites if sites else found.num_bonds
    total, width = _count_connected(found, sites, count + 1), count + 1
    counts = tuple(total >> (n * width) & ((1 << width) - 1) for n in range(count + 1))
    return ExactConnection(model, counts)


def _count_connected(graph: Graph, sites: bool, width: int) -> int:
    """Count the connecting configurations: those with n open elements start at bit n * width."""
    marks = np.zeros(graph.num_sites, np.int64)
    marks[graph.bonds.source], marks[graph.bonds.target] = _SOURCE, _TARGET
    # Numbers of terminals that are not added yet.
    missing = {_SOURCE: graph.num_sources, _TARGET: graph.num_targets}
    states: Counter[_State] = Counter({((), ()): 1})
    frontier: list[int] = []
    done = 0
    for site, before, leaving in _list_steps(graph):
        mark = int(marks[site])
        if mark:
            missing[mark] -= 1
        entered: Counter[_State] = Counter()
        for (clusters, has), value in states.items():
            if sites:
                entered[(*clusters, _VACANT), has] += value
            entered[(*clusters, len(has)), (*has, mark)] += value << (width if sites else 0)
        frontier.append(site)
        if sites:
            done += done << width
        states = entered
        for other in before:
            if len(states) > MOST_STATES:
                raise InputError(
                    f"{graph.name}: its exact probability needs more than {MOST_STATES} states; "
                    "percolab sweep samples it"
                )
            done, states = _add_bond(states, done, frontier.index(other), sites, width)
        kept = [n for n, each in enumerate(frontier) if each not in leaving]
        states = _leave(states, kept, missing)
        frontier = [frontier[n] for n in kept]
    return done


def _add_bond(
    states: Counter[_State], done: int, other: int, sites: bool, width: int
) -> tuple[int, Counter[_State]]:
    """Return the connected count, and the states, after a bond from the last site to another."""
    found: Counter[_State] = Counter()
    if not sites:
        done += done << width
    for state, value in states.items():
        clusters, has = state
        one, last = clusters[other], clusters[-1]
        if not sites:
            found[state] += value
            value <<= width
        if one == last or _VACANT in (one, last):
            found[state] += value
        elif has[one] | has[last] == _SOURCE | _TARGET:
            done += value
        else:
            marks = list(has)
            marks[one] |= has[last]
            joined = tuple(one if each == last else each for each in clusters)
            found[joined, tuple(marks)] += value
    return done, found


def _leave(
    states: Counter[_State], kept: Sequence[int], missing: dict[int, int]
) -> Counter[_State]:
    """Reduce states to the kept sites, and drop those that can no longer connect the terminals."""
    found: Counter[_State] = Counter()
    for (clusters, has), value in states.items():
        numbers: dict[int, int] = {_VACANT: _VACANT}
        left = [clusters[n] for n in kept]
        for each in left:
            numbers.setdefault(each, len(numbers) - 1)
        marks = tuple(has[each] for each in numbers if each != _VACANT)
        if all(missing[mark] or mark in marks for mark in (_SOURCE, _TARGET)):
            found[tuple(numbers[each] for each in left), marks] += value
    return found


def _list_steps(graph: Graph) -> Iterator[tuple[int, list[int], set[int]]]:
    """Yield each site, its earlier neighbours, and the sites that have no bonds to come after it.

    The order keeps neighbours close to each other (reverse Cuthill and McKee, by SciPy).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    count, pairs = graph.num_sites, graph.bonds.pairs.astype(np.int64)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    matrix = coo_array((np.ones(len(both)), both.T), (count, count)).tocsr()
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    before: list[list[int]] = [[] for _ in range(count)]
    last = place.copy()
    for i, j in pairs.tolist():
        early, late = (i, j) if place[i] < place[j] else (j, i)
        before[late].append(early)
        last[early] = max(last[early], place[late])
    leaving: list[set[int]] = [set() for _ in range(count)]
    for site in range(count):
        leaving[last[site]].add(site)
    for n, site in enumerate(order.tolist()):
        yield site, before[site], leaving[n]
