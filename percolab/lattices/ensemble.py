"""Ensembles of random graphs: every block of samples has a graph of its own.

er:k=4          Erdos and Renyi's G(n, p): each of the n (n - 1) / 2 bonds with p = k/(n - 1)
gnm:k=4         their G(n, m): m = k n / 2 of these bonds, rounded, each such set equally likely
config:k=3      the configuration model: every site has k stubs, which are paired at random
config:gamma=2.5,min=2,max=100
                the same, with degrees drawn from P(k) ~ k^-gamma, min <= k <= max; where their sum
                is odd all are drawn again.  max is by default the integer part of sqrt(n)
config:FILE     the same, with exactly the degrees in a file
ba:m=2          preferential attachment as Bollobas et al. (2001) define it: the m bonds of each new
                site are made one by one, to a site with a probability proportional to its degree,
                in which the new bond's own end is counted
ws:k=4,beta=0.1 Watts and Strogatz: a ring of sites, each bonded to the k nearest; one end of every
                bond is moved to a random other site with probability beta

Self-loops, which join nothing, are left out, and parallel bonds are merged into one ("erased"),
unless ",multi" follows the name.  L is the number of sites.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, isqrt, log1p
from operator import index
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, nearest
from percolab.lattices.graph import TERMINALS, Graph
from percolab.lattices.lattice import Threshold
from percolab.lattices.topology import Topology

Pairs = NDArray[np.int64]

#: Sites of the largest graph: one of n (n - 1) / 2 bonds is drawn as an integer of 53 bits.
MOST_SITES = 2**26
_MODELS: dict[str, tuple[tuple[str, ...], ...]] = {
    "er": (("k",),),
    "gnm": (("k",),),
    "config": (("k",), ("gamma", "min"), ("gamma", "min", "max")),
    "ba": (("m",),),
    "ws": (("k", "beta"),),
}
_EXAMPLES = (
    "er:k=4, gnm:k=4, config:k=3, config:gamma=2.5,min=2, config:FILE, ba:m=2 or ws:k=4,beta=0.1"
)
_INTEGERS = frozenset({"min", "max", "m"})
_MULTI = "multi"
#: What a message says where one graph is needed.
MANY = (
    "an ensemble of graphs, which percolab sweep samples; percolab.Ensemble(...).graph(L) is one "
    "of them"
)


def names_ensemble(name: str) -> bool:
    """Return whether a name names an ensemble; what follows the colon is not checked."""
    return name.partition(":")[0] in _MODELS


@dataclass(frozen=True)
class Ensemble:
    """An ensemble of random graphs, of any number of sites L.

    degrees: ascending, in place of those in a file; also of an ensemble from a results file.

    InputError: no such ensemble

    >>> Ensemble("er:k=4.0").name
    'er:k=4'
    >>> Ensemble("config", degrees=(1, 2, 1)).graph(3).num_bonds
    2
    """

    #: Nothing spans a graph without a source and a target.
    dimension: ClassVar[int] = 0
    boundaries: ClassVar[tuple[str, ...]] = (TERMINALS,)
    is_scalable: ClassVar[bool] = False

    name: str
    degrees: tuple[int, ...] = ()
    _values: dict[str, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"ensemble {self.name!r}: give its name, one like {_EXAMPLES}")
        model, _, text = self.name.partition(":")
        if model not in _MODELS:
            raise InputError(f"unknown ensemble {self.name}; {nearest(model, _MODELS)}")
        cells = [cell.strip() for cell in text.split(",") if cell.strip()]
        is_multi = _MULTI in cells
        cells = [cell for cell in cells if cell != _MULTI]
        degrees = tuple(self.degrees) if np.iterable(self.degrees) else self.degrees
        if not isinstance(degrees, tuple):
            raise InputError(f"degrees = {degrees!r}, but they must be a list of integers")
        values: dict[str, float] = {}
        if model == "config" and len(cells) == 1 and "=" not in cells[0] and not len(degrees):
            degrees = _read_degrees(Path(cells[0]))
        if not len(degrees):
            values = self._read_values(model, cells)
        elif model != "config":
            raise InputError(f"ensemble {self.name}: only config takes degrees")
        found = [f"{key}={value:.12g}" for key, value in values.items()]
        # The file's name is only a name: ids depend on the degrees.
        found = found or ([] if not cells else cells[:1])
        name = model + (":" if found or is_multi else "") + ",".join(found + [_MULTI] * is_multi)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "degrees", _check_degrees(degrees))
        object.__setattr__(self, "_values", values)

    def _read_values(self, model: str, cells: Sequence[str]) -> dict[str, float]:
        pairs = [cell.partition("=")[::2] for cell in cells]
        given = {key: _read_number(self.name, key, value) for key, value in pairs}
        if tuple(given) not in _MODELS[model] or len(pairs) != len(given):
            raise InputError(f"ensemble {self.name}: it must be one like {_EXAMPLES}")
        least = given.get("min", 1)
        if least < 1 or given.get("max", least) < least or given.get("m", 1) < 1:
            raise InputError(f"ensemble {self.name}: m, min must be at least 1, max at least min")
        if not 0 <= given.get("beta", 0) <= 1:
            raise InputError(f"ensemble {self.name}: beta must be from 0 to 1")
        k = given.get("k", 1)
        if k <= 0 or (model in ("config", "ws") and k % (1 if model == "config" else 2)):
            allowed = {"config": "an integer above 0", "ws": "an even number above 0"}
            raise InputError(f"ensemble {self.name}: k must be {allowed.get(model, 'above 0')}")
        return given

    @property
    def model(self) -> str:
        """The part of the name before the colon."""
        return self.name.partition(":")[0]

    @property
    def is_multi(self) -> bool:
        return self.name.endswith(_MULTI)

    @property
    def title(self) -> str:
        return self.name

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self._identity()).encode()).hexdigest()[:16]

    def _identity(self) -> dict[str, object]:
        return self.record() | ({"name": "config", "multi": self.is_multi} if self.degrees else {})

    def record(self) -> dict[str, object]:
        counts = [[k, n] for k, n in sorted(Counter(self.degrees).items())]
        return {"kind": "ensemble", "name": self.name, "degrees": counts}

    @classmethod
    def from_record(cls, *, name: str, degrees: list[list[int]]) -> Ensemble:
        return cls(name, tuple(k for k, n in degrees for _ in range(n)))

    def shape(self, size: int) -> tuple[int, ...]:
        return (size,)

    def check_size(self, size: int, boundary: tuple[str, ...] = ()) -> None:
        """Raise InputError unless the ensemble has graphs with this many sites."""
        if not 1 <= size <= MOST_SITES:
            raise InputError(f"L = {size}: {self.name} has from 1 to {MOST_SITES} sites")
        if self.degrees and size != len(self.degrees):
            raise InputError(f"L = {size}, but {self.name} has {len(self.degrees)} degrees")
        k = self._values.get("k", 0)
        if k > size - 1 and self.model != "config":
            raise InputError(f"L = {size}: {self.name} needs more than {k:g} sites")
        if self.model == "config" and k * size % 2:
            raise InputError(f"L = {size}: degrees of {self.name} have an odd sum; give an even L")
        if (self._values.get("max", 0) or self._values.get("min", 0)) > size:
            raise InputError(f"L = {size}: {self.name} has a degree larger than L")

    @property
    def num_classes(self) -> int:
        raise InputError(f"{self.name}: {MANY}")

    def topology(self, shape: tuple[int, ...], boundary: tuple[str, ...] = ()) -> Topology:
        raise InputError(f"{self.name}: {MANY}")

    def num_bonds(self, size: int) -> int | None:
        """Return how many bonds every graph of this size has, None where that is random."""
        return round(self._values["k"] * size / 2) if self.model == "gnm" else None

    def threshold(self, model: str = "bond") -> Threshold | None:
        """Return <k>/(<k^2> - <k>), the threshold of infinitely many sites for bonds and for sites.

        None where it is not known: for ba, whose threshold is 0, for ws, and for a power law whose
        largest degree depends on the number of sites.
        """
        if model not in ("bond", "site") or self.model in ("ba", "ws"):
            return None
        expression = "<k>/(<k^2> - <k>)"
        if self.model in ("er", "gnm"):
            value, expression = 1 / self._values["k"], f"1/{self._values['k']:g}"
        else:
            if "gamma" in self._values and "max" not in self._values:
                return None
            k, weights = self._distribution(0)
            branching = float((weights * k * (k - 1)).sum())
            value = float((weights * k).sum()) / branching if branching else np.inf
        if not value < 1:
            return None
        reference = "G. Paul, S. Sreenivasan and H. E. Stanley, arXiv:cond-mat/0507202"
        return Threshold(
            model=model,
            value=value,
            error=0.0,
            expression=expression,
            reference=reference,
            cite="Paul, Sreenivasan and Stanley 2005",
        )

    def _distribution(self, size: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the degrees of the configuration model, and their weights, which add up to 1."""
        if self.degrees:
            k, counts = np.unique(self.degrees, return_counts=True)
            weights = counts.astype(np.float64)
        elif "gamma" in self._values:
            least = int(self._values["min"])
            most = int(self._values.get("max", max(isqrt(size), least)))
            k = np.arange(least, most + 1)
            weights = np.asarray(k ** -self._values["gamma"], np.float64)
        else:
            k, weights = np.array([int(self._values["k"])]), np.ones(1)
        return k.astype(np.int64), weights / weights.sum()

    def graph(self, size: int, *, seed: int = 0, number: int = 0) -> Graph:
        """Return one graph of the ensemble, the same for the same seed and number.

        The random numbers are those of Philox 4x64 with the key (seed, number).
        InputError: the ensemble has no graph with this many sites

        >>> Ensemble("gnm:k=2").graph(100, seed=1, number=7).num_bonds
        100
        """
        try:
            size, seed, number = map(index, (size, seed, number))
        except TypeError as error:
            given = f"size = {size!r}, seed = {seed!r}, number = {number!r}"
            raise InputError(f"{given}, but all are integers") from error
        self.check_size(size)
        if not 0 <= seed < 2**64 or not 0 <= number < 2**64:
            raise InputError(f"seed = {seed}, number = {number}: each is from 0 to 2^64 - 1")
        words = np.random.Philox(key=seed + (number << 64))
        pairs = _DRAW[self.model](self, size, words)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        if not self.is_multi and self.model not in ("er", "gnm"):
            pairs = _merge_parallel(pairs, size)
        return Graph.of_bonds(size, pairs.astype(np.int32), name=self.name)

    def _draw_er(self, n: int, words: np.random.Philox) -> Pairs:
        """Return each bond with probability p: the gaps between bonds are geometric."""
        total, p = n * (n - 1) // 2, self._values["k"] / max(n - 1, 1)
        if p >= 1:
            return _bond_of_number(np.arange(total), n)
        found, last = [np.empty(0, np.int64)], -1
        while last < total:
            expected = (total - last) * p
            u = _uniform(words, int(expected + 4 * expected**0.5) + 16)
            gaps = 1 + np.floor(np.log1p(-u) / log1p(-p))
            # Sums of floats are exact below 2^53; beyond the end, only the first one matters.
            found.append((last + np.cumsum(np.minimum(gaps, total + 1))).astype(np.int64))
            last = int(found[-1][-1])
        numbers = np.concatenate(found)
        return _bond_of_number(numbers[numbers < total], n)

    def _draw_gnm(self, n: int, words: np.random.Philox) -> Pairs:
        """Draw bonds one by one, and return the first m different ones."""
        total, m = n * (n - 1) // 2, self.num_bonds(n) or 0
        if 2 * m > total:
            left_out = _draw_different(total - m, total, words)
            return _bond_of_number(np.delete(np.arange(total), left_out), n)
        return _bond_of_number(_draw_different(m, total, words), n)

    def _draw_config(self, n: int, words: np.random.Philox) -> Pairs:
        """Pair the stubs in a random order."""
        k, weights = self._distribution(n)
        degrees = np.array(self.degrees or k[:1].repeat(n), np.int64)
        if "gamma" in self._values:
            bounds, drawn = np.cumsum(weights), False
            while not drawn or degrees.sum() % 2:
                at = np.searchsorted(bounds, _uniform(words, n), side="right")
                degrees, drawn = k[np.minimum(at, k.size - 1)], True
        stubs = np.repeat(np.arange(n), degrees)
        order = np.argsort(words.random_raw(stubs.size), kind="stable")
        return stubs[order].reshape(-1, 2)

    def _draw_ba(self, n: int, words: np.random.Philox) -> Pairs:
        """Return the bonds of the linearized chord diagram.

        End 2 j of bond j is site j // m; end 2 j + 1 is the site of one of the ends 0 ... 2 j,
        drawn at random, which refers to an earlier end if it is odd.
        """
        m = int(self._values["m"])
        j = np.arange(n * m)
        chosen = _integers(words, 2 * j + 1)
        end = chosen
        while (odd := end % 2 == 1).any():
            end = np.where(odd, chosen[end // 2], end)
        return np.column_stack([j // m, end // 2 // m])

    def _draw_ws(self, n: int, words: np.random.Philox) -> Pairs:
        half = int(self._values["k"]) // 2
        first = np.tile(np.arange(n), half)
        second = (first + np.repeat(np.arange(1, half + 1), n)) % n
        moves = _uniform(words, first.size) < self._values["beta"]
        elsewhere = (first + 1 + _integers(words, np.full(first.size, n - 1))) % n
        return np.column_stack([first, np.where(moves, elsewhere, second)])


_DRAW = {
    "er": Ensemble._draw_er,
    "gnm": Ensemble._draw_gnm,
    "config": Ensemble._draw_config,
    "ba": Ensemble._draw_ba,
    "ws": Ensemble._draw_ws,
}


def _uniform(words: np.random.Philox, count: int) -> NDArray[np.float64]:
    """Return random numbers in [0, 1), multiples of 2^-53."""
    return np.asarray((words.random_raw(count) >> np.uint64(11)) * 2.0**-53, np.float64)


def _integers(words: np.random.Philox, below: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return random integers, each at least 0 and below its bound."""
    return np.asarray(_uniform(words, below.size) * below).astype(np.int64)


def _draw_different(count: int, below: int, words: np.random.Philox) -> NDArray[np.int64]:
    """Return ``count`` different integers, from 0 to ``below`` - 1, in the order drawn."""
    found = np.empty(0, np.int64)
    while found.size < count:
        more = _integers(words, np.full(count - found.size + 16, below))
        found = np.concatenate([found, more])
        found = found[np.sort(np.unique(found, return_index=True)[1])]
    return found[:count]


def _bond_of_number(numbers: NDArray[np.int64], n: int) -> Pairs:
    """Return the sites (i, i + d modulo n) of bonds i + (d - 1) n among n sites."""
    first = numbers % n
    return np.column_stack([first, (first + 1 + numbers // n) % n])


def _merge_parallel(pairs: Pairs, n: int) -> Pairs:
    return np.column_stack(np.divmod(np.unique(pairs.min(axis=1) * n + pairs.max(axis=1)), n))


def _read_number(name: str, key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not isfinite(value) or (key in _INTEGERS and value != int(value)):
        raise InputError(f"ensemble {name}: it must be one like {_EXAMPLES}")
    return value


def _read_degrees(path: Path) -> tuple[int, ...]:
    """Return the degrees in a file, which has the degree of one site on each line."""
    from percolab.lattices.graph_files.site_list import places_and_lines

    if not os.path.isfile(path):
        raise InputError(f"ensemble config:{path}: no such file; an ensemble is {_EXAMPLES}")
    degrees = []
    for place, text in places_and_lines(path):
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise InputError(f"{place}: {text[:40]!r}, but a degree is an integer of at least 0")
        degrees.append(int(text))
    return tuple(degrees)


def _check_degrees(degrees: Any) -> tuple[int, ...]:
    values = np.asarray(degrees)
    if values.size and (values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 0):
        raise InputError("degrees: a list of integers, each at least 0")
    if values.size > MOST_SITES or int(values.sum()) >= 2**31 or values.sum() % 2:
        raise InputError(
            f"degrees: their sum is {int(values.sum())}, but it must be even and below 2^31"
        )
    return tuple(np.sort(values).tolist())
