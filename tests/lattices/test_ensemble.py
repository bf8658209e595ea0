"""Ensembles of random graphs: each graph as likely as it should be, the same for the same seed."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from helpers import slow
from scipy.stats import binom, chi2, norm

from percolab import Ensemble, InputError
from percolab.lattices.ensemble import _bond_of_number
from percolab.lattices.structure import structure_from_record

Bond = tuple[int, int]
Weights = Counter[tuple[Bond, ...]]


def erased(bonds) -> tuple[Bond, ...]:
    return tuple(sorted({(min(b), max(b)) for b in bonds if b[0] != b[1]}))


def kept(bonds) -> tuple[Bond, ...]:
    """Return all but self-loops."""
    return tuple(sorted((min(b), max(b)) for b in bonds if b[0] != b[1]))


def er(n: int, p: Fraction) -> Weights:
    pairs, found = list(combinations(range(n), 2)), Counter()
    for chosen in product((False, True), repeat=len(pairs)):
        weight = p ** sum(chosen) * (1 - p) ** (len(pairs) - sum(chosen))
        found[tuple(b for b, is_there in zip(pairs, chosen) if is_there)] += weight
    return found


def gnm(n: int, m: int) -> Weights:
    chosen = list(combinations(combinations(range(n), 2), m))
    return Counter({bonds: Fraction(1, len(chosen)) for bonds in chosen})


def config(degrees, form=erased) -> Weights:
    stubs = [site for site, k in enumerate(degrees) for _ in range(k)]
    orders = list(permutations(stubs))
    found = Counter(form(list(zip(order[::2], order[1::2]))) for order in orders)
    return Counter({bonds: Fraction(count, len(orders)) for bonds, count in found.items()})


def power_law(n: int, gamma: int, least: int, most: int) -> Weights:
    """Return the configuration model whose degrees have an even sum."""
    weights = {k: Fraction(1, k**gamma) for k in range(least, most + 1)}
    found, total = Counter(), Fraction(0)
    for degrees in product(weights, repeat=n):
        if sum(degrees) % 2:
            continue
        weight = Fraction(1)
        for k in degrees:
            weight *= weights[k]
        total += weight
        for bonds, share in config(degrees).items():
            found[bonds] += weight * share
    return Counter({bonds: weight / total for bonds, weight in found.items()})


def ba(n: int, m: int) -> Weights:
    """Return preferential attachment, bond by bond, by the degrees of the sites so far."""
    grown = {((), (0,) * n): Fraction(1)}
    for bond in range(n * m):
        site, more = bond // m, Counter()
        for (bonds, degrees), weight in grown.items():
            counted = list(degrees)
            counted[site] += 1
            for other, k in enumerate(counted):
                if k:
                    ends = list(counted)
                    ends[other] += 1
                    share = weight * Fraction(k, sum(counted))
                    more[(*bonds, (site, other)), tuple(ends)] += share
        grown = more
    found = Counter()
    for (bonds, _), weight in grown.items():
        found[erased(bonds)] += weight
    return found


def ws(n: int, k: int, beta: Fraction) -> Weights:
    ring = [(i, (i + d) % n) for d in range(1, k // 2 + 1) for i in range(n)]
    found = Counter({(): Fraction(1)})
    for i, j in ring:
        more = Counter()
        for bonds, weight in found.items():
            more[(*bonds, (i, j))] += weight * (1 - beta)
            for other in set(range(n)) - {i}:
                more[(*bonds, (i, other))] += weight * beta / (n - 1)
        found = more
    merged = Counter()
    for bonds, weight in found.items():
        merged[erased(bonds)] += weight
    return merged


HALF = Fraction(1, 2)
#: The name of each ensemble, sites, and how likely each graph is.
TINY = [
    ("er:k=1", 3, er(3, HALF)),
    ("er:k=2.25", 4, er(4, Fraction(3, 4))),
    ("er:k=3", 4, er(4, Fraction(1))),
    ("gnm:k=1", 4, gnm(4, 2)),
    ("gnm:k=2", 4, gnm(4, 4)),
    ("config:k=2", 3, config((2, 2, 2))),
    ("config:k=2,multi", 3, config((2, 2, 2), kept)),
    ("config:k=1", 4, config((1, 1, 1, 1))),
    ("config:gamma=2,min=1,max=2", 3, power_law(3, 2, 1, 2)),
    ("ba:m=1", 4, ba(4, 1)),
    ("ba:m=2", 3, ba(3, 2)),
    ("ws:k=2,beta=0.25", 4, ws(4, 2, Fraction(1, 4))),
]


QUICK = ("er:k=1", "gnm:k=1", "config:k=1", "ba:m=1", "ws:k=2,beta=0.25")


def assert_as_likely(counts: Counter, weights: Weights) -> None:
    """Check counts by chi-square, whose value corresponds to at most four standard deviations."""
    assert set(counts) <= {bonds for bonds, weight in weights.items() if weight}
    total, found, degrees = sum(counts.values()), 0.0, -1
    for bonds, weight in weights.items():
        if weight:
            expected = total * float(weight)
            found += (counts[bonds] - expected) ** 2 / expected
            degrees += 1
    if degrees:
        assert abs(norm.isf(chi2.sf(found, degrees))) <= 4


@pytest.mark.parametrize(
    ("name", "sites", "weights"),
    # One of each ensemble.
    [case if case[0] in QUICK else slow(*case) for case in TINY],
    ids=[f"{a} {b}" for a, b, _ in TINY],
)
def test_every_graph_is_as_likely_as_its_definition_says(name, sites, weights):
    assert sum(weights.values()) == 1
    ensemble = Ensemble(name)
    graphs = (ensemble.graph(sites, seed=5, number=n) for n in range(800))
    assert_as_likely(Counter(kept(g.bonds.pairs.tolist()) for g in graphs), weights)


def test_given_degrees_are_those_of_every_multigraph():
    ensemble = Ensemble("config:multi", degrees=(2, 1, 0, 1, 2))
    assert ensemble.degrees == (0, 1, 1, 2, 2)
    counts = Counter(kept(ensemble.graph(5, number=n).bonds.pairs.tolist()) for n in range(800))
    assert_as_likely(counts, config((0, 1, 1, 2, 2), kept))


def test_degrees_of_a_site_in_larger_graphs_follow_their_distribution():
    """Site 0 of G(n, p), over graphs; all sites of a power law, whose degrees are independent."""
    ensemble, n = Ensemble("er:k=3"), 200
    degrees = [
        int((ensemble.graph(n, seed=2, number=i).bonds.pairs == 0).sum()) for i in range(1000)
    ]
    p = 3 / (n - 1)
    expected = Counter({k: binom.pmf(k, n - 1, p) for k in range(9)}) + Counter(
        {9: binom.sf(8, n - 1, p)}
    )
    assert_as_likely(Counter(min(k, 9) for k in degrees), expected)
    pairs = Ensemble("config:gamma=2.5,min=1,max=6,multi").graph(40_000, seed=3).bonds.pairs
    counts = np.bincount(np.bincount(pairs.ravel(), minlength=40_000))
    weights = np.arange(1, 7) ** -2.5
    law = Counter(dict(zip(range(1, 7), weights / weights.sum())))
    # The few self-loops, which are left out, lower some degrees by two.
    assert counts[0] < 10
    assert_as_likely(Counter(dict(zip(range(1, 7), counts[1:].tolist()))), law)


def test_bond_numbers_cover_every_pair_once():
    for n in (1, 2, 3, 6, 7):
        pairs = _bond_of_number(np.arange(n * (n - 1) // 2), n)
        assert sorted(map(tuple, np.sort(pairs, axis=1).tolist())) == list(
            combinations(range(n), 2)
        )


#: Digests of the graphs of 100 sites with seed 1 and number 2, which never change.
GRAPHS = {
    "er:k=4": "30307643e0052923",
    "gnm:k=4": "708c4cef3d785d53",
    "config:k=3": "5f9ce9bcf4d68f16",
    "config:gamma=2.5,min=2": "0ee3bd6f3907ac1a",
    "config:gamma=2.5,min=2,multi": "8a8a503893cb71ae",
    "ba:m=2": "ff70c3551a80dcde",
    "ws:k=4,beta=0.1": "befb96eef047a1d7",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_never_change(name):
    assert Ensemble(name).graph(100, seed=1, number=2).digest == GRAPHS[name]
    others = {Ensemble(name).graph(100, seed=s, number=n).digest for s, n in [(1, 3), (2, 2)]}
    assert len(others | {GRAPHS[name]}) == 3


def test_thresholds_are_those_of_random_graphs_without_correlations():
    known = {"er:k=4": 1 / 4, "gnm:k=5": 1 / 5, "config:k=3": 1 / 2}
    for name, value in known.items():
        assert Ensemble(name).threshold("site").value == pytest.approx(value, rel=1e-14)
    found = Ensemble("config", degrees=(1, 1, 2, 4)).threshold()
    assert found.value == pytest.approx(8 / (22 - 8), rel=1e-14)
    for name in ("er:k=1", "ba:m=2", "ws:k=4,beta=0.1", "config:k=2", "config:gamma=2.5,min=2"):
        assert Ensemble(name).threshold() is None
    assert Ensemble("er:k=4").threshold("ising") is None


def test_a_record_gives_the_ensemble_and_a_file_its_degrees(tmp_path):
    path = tmp_path / "degrees.txt"
    path.write_text("# of four sites\n3\t\n\t1\n\n1\n1\n")
    found = Ensemble(f"config:{path},multi")
    assert found.degrees == (1, 1, 1, 3)
    path.unlink()
    for ensemble in (found, Ensemble("ws:k=2,beta=0.5")):
        again = structure_from_record(ensemble.record())
        assert again == ensemble
        assert again.digest == ensemble.digest
    # The name of the file decides nothing; whether parallel bonds are kept does.
    assert found.digest == Ensemble("config:multi", degrees=(3, 1, 1, 1)).digest
    assert found.digest != Ensemble("config", degrees=(3, 1, 1, 1)).digest
    assert Ensemble("er:k=4.0").digest == Ensemble("er:k=4").digest


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("er", "ensemble er: it must be one like er:k=4, "),
        ("er:k=x", "ensemble er:k=x: it must be one like "),
        ("er:m=2", "ensemble er:m=2: it must be one like "),
        ("er:k=4,k=4", "ensemble er:k=4,k=4: it must be one like "),
        ("ba:m=1.5", "ensemble ba:m=1.5: it must be one like "),
        ("ba:m=0", "m, min must be at least 1"),
        ("config:gamma=2,min=3,max=2", "max at least min"),
        ("ws:k=3,beta=0.1", "k must be an even number above 0"),
        ("ws:k=2,beta=1.5", "beta must be from 0 to 1"),
        ("er:k=-1", "k must be above 0"),
        ("er:k=nan", "it must be one like"),
        ("config:k=2.5", "k must be an integer above 0"),
        ("config:nowhere.txt", "ensemble config:nowhere.txt: no such file"),
        ("erd:k=4", "did you mean 'er'"),
    ],
)
def test_names_that_are_none_are_rejected(name, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        Ensemble(name)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("er:k=4", 4, "er:k=4 needs more than 4 sites"),
        ("config:k=3", 5, "have an odd sum"),
        ("config:gamma=2,min=1,max=9", 8, "a degree larger than L"),
        ("ba:m=1", 0, "from 1 to"),
        ("ba:m=1", 2**26 + 1, "from 1 to"),
    ],
)
def test_sizes_that_there_are_not_are_rejected(name, size, message):
    with pytest.raises(InputError, match=message):
        Ensemble(name).graph(size)


def test_degrees_and_seeds_that_cannot_be_are_rejected(tmp_path):
    for degrees, message in [((1, 2), "sum is 3"), ((1, -1), "at least 0"), ((1.5, 0.5), "list")]:
        with pytest.raises(InputError, match=message):
            Ensemble("config", degrees=degrees)
    with pytest.raises(InputError, match="only config takes degrees"):
        Ensemble("er:k=4", degrees=(1, 1))
    with pytest.raises(InputError, match="L = 3, but config has 2 degrees"):
        Ensemble("config", degrees=(1, 1)).graph(3)
    with pytest.raises(InputError, match="seed = -1"):
        Ensemble("er:k=4").graph(9, seed=-1)
    path = tmp_path / "degrees.txt"
    path.write_text("1\ntwo\n")
    with pytest.raises(InputError, match=r"degrees\.txt: line 2: 'two', but a degree is"):
        Ensemble(f"config:{path}")
