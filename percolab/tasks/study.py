"""Task and study: what exactly is requested, and ids that hash exactly what changes the answer.

Labeler, device, number of workers and stop rules are not part of a task: they change when and how
its numbers are found, never the numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.bonds.words import p_to_threshold
from percolab.errors import InputError
from percolab.lattices.ensemble import Ensemble
from percolab.lattices.extent import count_bonds
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.removal import RANDOM
from percolab.lattices.shown import Shown, few
from percolab.lattices.structure import Structure
from percolab.lattices.toml_table import Table
from percolab.measure.columns import (
    CONNECTED,
    TALLY,
    Column,
    check_measure,
    is_gathered_from,
    open_axes,
)
from percolab.measure.functions import LabelFunction, check_functions
from percolab.spins.words import Chain
from percolab.tasks.groups import largest_group
from percolab.tasks.kind_registry import find_kind, has_kind
from percolab.tasks.settings import KIND_SETTINGS, MAX_SEED, SETTINGS
from percolab.tasks.values import AUTO, check_choice

#: Version of the meaning of a task's numbers: generator, keys, canonical order of bonds.
#: docs/randomness.md says what was wrong with version 1.
SAMPLE_VERSION = 2
#: Purposes of random words; each purpose has different words.
PURPOSES = ("percolation", "pilot", "plan", "chain", "spins", "weights", "bootstrap")

_SITES_PER_BLOCK = 2**24
_MIN_BLOCK, _MAX_BLOCK = 10, 100
#: Sums of squares of fewer sites are (low 48 bits, the rest), the rest an int64.
_MOST_POINTS = 2**55
_MOST_SUM = 2**63 - 1
#: Samples of each graph of an ensemble: more say little about other graphs.
_SAMPLES_PER_GRAPH = 10
# A bootstrap needs the first number of blocks; more than the second make a file large.
_ENOUGH_BLOCKS, _MOST_BLOCKS = 10, 1000


def default_block_size(num_points: int, largest_sum: int | None = None) -> int:
    """Return the samples of a block: about 2^24 sites, from 10 to 100 samples.

    Bootstrap needs many blocks, an interrupted run loses at most the block in work, and sums must
    fit in an int64.  largest_sum: of one sample, by default that of squared cluster sizes.
    """
    usual = min(max(_SITES_PER_BLOCK // num_points, _MIN_BLOCK), _MAX_BLOCK)
    return max(min(usual, _MOST_SUM // (largest_sum or num_points**2)), 1)


def block_size_for(samples: int, default: int) -> int:
    """Return the block size with which a task has ``samples`` samples, and enough blocks.

    It is the largest, up to ``default``, that divides the samples into _ENOUGH_BLOCKS or more.  If
    that takes more than _MOST_BLOCKS, it is one that exceeds the samples by the least.

    >>> [block_size_for(samples, 100) for samples in (10_000, 250, 10, 2)]
    [100, 25, 1, 1]
    >>> block_size_for(10_007, 100)  # a prime: 10 008 samples
    72
    """
    largest = max(min(default, samples // _ENOUGH_BLOCKS), 1)
    least = min(-(-samples // _MOST_BLOCKS), (largest + 1) // 2)
    return min(range(largest, least - 1, -1), key=lambda size: -samples % size)


def _digest(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


@dataclass(frozen=True, kw_only=True, repr=False)
class Sampling(Shown):
    """The settings that all tasks of a study share, in addition to the lattice and its boundary.

    ``model`` is the text of a :class:`Model`.  With ``method`` "threshold" there is no p: every
    sample's spanning thresholds are found.  ``measure`` names what is measured in addition to the
    observables.  ``block_size`` 0 is the default of each size.  ``order`` is that in which sites or
    bonds of a graph are removed, "given" where the ranks come from a file.

    Where the model has spins a block is a chain: ``burn_in`` sweeps, by ``update``, that are not
    measured, then ``block_size`` times ``every`` sweeps, the first of each ``every`` of which is
    measured: a sample.  With ``chains`` 1 all blocks are parts of chain 0, one after the other, and
    the burn-in comes before the first.

    ``source`` and ``target`` are the terminals of flows through a lattice, as texts; None is a side
    of the last open axis.  A graph has its own source and target.

    ``functions`` are observables that a user has written, of percolation by method "grid".
    """

    method: str = SETTINGS["method"].default
    order: str = SETTINGS["order"].default
    measure: tuple[str, ...] = SETTINGS["measure"].default
    rng: str = SETTINGS["rng"].default
    model: str = SETTINGS["model"].default
    seed: int = SETTINGS["seed"].default
    block_size: int = SETTINGS["block_size"].default
    update: str = SETTINGS["update"].default
    burn_in: int = SETTINGS["burn_in"].default
    every: int = SETTINGS["every"].default
    chains: int = SETTINGS["chains"].default
    source: str | None = SETTINGS["source"].default
    target: str | None = SETTINGS["target"].default
    functions: tuple[LabelFunction, ...] = ()

    @property
    def kind(self) -> Any:
        """The kind of this study, a :class:`percolab.tasks.kind.Kind`."""
        return find_kind(self.method, self.draw.chains)

    @property
    def draw(self) -> Model:
        """The model that ``model`` names: what is drawn at random."""
        return Model.parse(self.model)

    @property
    def ends(self) -> dict[str, str]:
        """The given terminals of flows through a lattice, by the names source and target."""
        ends = {"source": self.source, "target": self.target}
        return {name: text for name, text in ends.items() if text is not None}

    @property
    def is_serial(self) -> bool:
        return bool(self.kind.is_serial(self))

    @property
    def states(self) -> Any:
        return self.draw.states

    def _check_kind(self) -> None:
        """Raise InputError for what the kind of study refuses, and order ``measure`` as usual."""
        kind, structure = self.kind, getattr(self, "structure", None)
        if isinstance(structure, Ensemble) and self.refusal("ensembles"):
            raise InputError(f"{structure.name}: {self.refusal('ensembles')}, not of an ensemble")
        if not has_kind(self.method, self.draw.chains):
            raise InputError(
                f"method {self.method} needs the same samples at all p, but those of {self.model} "
                "differ at every p: leave it out"
            )
        kind.check(self)
        for name in KIND_SETTINGS:
            value = getattr(self, name, SETTINGS[name].default)
            if name not in kind.settings and value != SETTINGS[name].default:
                raise InputError(explain_refusal(name, self.model))
        # Without the number of samples that are connected no mean over them could be found.
        words = check_measure((*self.measure, CONNECTED) if self.ends else self.measure)
        for word in words:
            if word in kind.refused_measures:
                raise InputError(f"measure {word}: {kind.refused_measures[word]}; leave it out")
        object.__setattr__(self, "measure", words)

    def _settle_model(self, structure: Structure) -> None:
        """Name the model as a structure does; InputError if that has no such model."""
        self._check("model")
        object.__setattr__(self, "model", str(self.draw.on(structure)))

    def refusal(self, what: str) -> str:
        """Return why this kind of study cannot do what a word stands for, or "" if it can."""
        reason = self.kind.refusals.get(what, "")
        return str(reason.format(model=self.model, method=self.method))

    @property
    def sampling(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SAMPLING}

    def _check(self, name: str) -> None:
        """Convert a setting to its usual form; InputError if it has none."""
        object.__setattr__(self, name, SETTINGS[name].check(name, getattr(self, name)))


_SAMPLING = tuple(field.name for field in fields(Sampling))
#: What every description of a study has, as the first files had it.
_DESCRIBED = ("method", "seed", "rng", "model", "block_size")
#: Settings that came later: a description has them where they are not at their default.
ADDED = tuple(name for name in _SAMPLING if name not in (*_DESCRIBED, "functions"))


@dataclass(frozen=True, repr=False)
class Task(Sampling):
    """One size of one lattice or other structure, at a grid of p.

    p ascends; every sample is measured at all p.  ``boundary`` is "open" or "periodic" per axis of
    a lattice, "terminals" of a graph with source and target, and () of one without.  A pilot's task
    has another ``purpose``, and so other samples.
    """

    structure: Structure
    size: int
    boundary: tuple[str, ...]
    p: tuple[float, ...]
    purpose: str = "percolation"

    def __post_init__(self) -> None:
        check_choice("purpose", self.purpose, PURPOSES)
        check_boundary(self.structure, self.boundary)
        self._check_size()
        self._check("method")
        self._settle_model(self.structure)
        if self.kind.fixed_p != ():
            check_probabilities(self.p)
        self._check_kind()
        for name in _SAMPLING:
            if name in SETTINGS and name != "method":
                self._check(name)
        if self.functions and self.refusal("functions"):
            raise InputError(f"observables: {self.refusal('functions')}")
        check_functions(self.functions, self._own_columns)
        lattice = self.structure
        sides = lattice.sides(self.size) if isinstance(lattice, Lattice) else (self.size,) * 3
        if self.draw.draws_sites and any(sides[axis] < 2 for axis in open_axes(self.boundary)):
            raise InputError(f"L = {self.size}: {self.model} percolation needs at least two layers")
        if self.block_size == 0:
            size = default_block_size(self.num_points, self._largest_sum)
            if isinstance(self.structure, Ensemble):
                size = min(size, _SAMPLES_PER_GRAPH)
            object.__setattr__(self, "block_size", size)
        most = _MOST_SUM // self._largest_sum
        if not 1 <= self.block_size <= max(most, 1):
            raise InputError(
                f"block_size = {self.block_size}, but at L = {self.size} it must be from 1 to "
                f"{most}: the sum of {self.kind.sums} is a 64-bit integer"
            )

    def _facts(self) -> dict[str, Any]:
        p = {"p": few(self.p)} if self.p else {}
        own = {"task": self.id, "of": self.structure.name, "L": self.size}
        return own | p | _shared_facts(self)

    def _check_size(self) -> None:
        """Raise InputError unless there is this size; a lattice may be too large for one piece."""
        if not isinstance(self.structure, Lattice):
            self.structure.check_size(self.size, self.boundary)
            return
        self.structure.check_existence(self.size, self.boundary)
        if self.num_points >= _MOST_POINTS:
            raise InputError(
                f"L = {self.size}: {self.num_points} sites, but a study needs fewer than "
                f"{_MOST_POINTS}"
            )

    @property
    def sites_per_block(self) -> int:
        """Site labelings of a block: a site of every sample at every p."""
        return self.block_size * max(len(self.p), 1) * self.num_points

    @property
    def _largest_sum(self) -> int:
        return int(self.kind.largest_sum(self.num_points))

    @property
    def is_wide(self) -> bool:
        """Whether the sum of squared cluster sizes of one sample may be more than an int64."""
        return self.num_points**2 > _MOST_SUM

    @property
    def has_tally(self) -> bool:
        """Whether the clusters of every size are counted."""
        return is_gathered_from(TALLY, self.columns)

    @property
    def observables(self) -> tuple[Column, ...]:
        """The columns with one integer for each sample, in the order in which they are stored."""
        return tuple(column for column in self.columns if column.is_observable)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All that is measured, in the order it is stored."""
        return (*self._own_columns, *(function.column for function in self.functions))

    @property
    def _own_columns(self) -> tuple[Column, ...]:
        return tuple(self.kind.columns(self.boundary, self.measure, wide=self.is_wide))

    def chain(self, number: int, p: float) -> Chain:
        """Return the keys of a chain: different for every p, for every size, and every purpose.

        They do not depend on ``chains``: one long chain begins as chain 0 of many does.
        """
        digest = _digest(self._samples_content | {"p": p.hex()})
        keys = np.frombuffer(digest[:24], "<u8").astype(np.uint64)
        return Chain(keys[0], keys[1], keys[2], np.uint64(number), np.uint64(p_to_threshold(p)))

    def sweeps_after(self, blocks: int) -> int:
        """Return the sweeps of a chain after ``blocks`` blocks, the burn-in included."""
        return self.burn_in + blocks * self.block_size * self.every

    @property
    def has_independent_samples(self) -> bool:
        """Whether samples are independent; those on one graph of an ensemble are not."""
        return bool(self.kind.independent) and not isinstance(self.structure, Ensemble)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.structure.shape(self.size)

    @property
    def num_points(self) -> int:
        """Grid points, vacant ones included."""
        return prod(self.shape)

    @property
    def num_sites(self) -> int:
        """Sites N: grid points without those that the lattice leaves vacant.

        >>> from percolab.lattices.lattice import load_lattice
        >>> Task(load_lattice("kagome"), 16, ("open", "open"), (0.5,), seed=1).num_sites
        192
        """
        lattice = self.structure
        if not isinstance(lattice, Lattice):
            return self.num_points
        # An open boundary may cut a cell, so the points of each residue are counted.
        vacant = 0
        for point in lattice.vacant:
            axes = zip(self.shape, point, lattice.cell)
            vacant += prod((n - at + cell - 1) // cell for n, at, cell in axes)
        return self.num_points - vacant

    @cached_property
    def most_groups(self) -> int | None:
        """The most groups that its blocks make (:mod:`percolab.tasks.groups`); None: no groups."""
        most: int | None = self.kind.most_groups(self)
        return most

    def largest_group(self, blocks: int) -> int:
        """Return the number of blocks in the largest groups of ``blocks`` blocks."""
        return 1 if self.most_groups is None else largest_group(blocks, self.most_groups)

    @cached_property
    def num_openings(self) -> int:
        """Number of bonds, or of sites where sites are drawn, that open between p = 0 and 1."""
        if self.draw.draws_sites:
            return self.num_sites
        if isinstance(self.structure, Graph):
            return self.structure.num_bonds
        return count_bonds(self.structure, self.shape, self.boundary)

    @cached_property
    def _samples_content(self) -> dict[str, Any]:
        samples: dict[str, Any] = self.kind.samples_identity(self)
        return samples | {
            "purpose": self.purpose,
            "version": SAMPLE_VERSION,
            "lattice": self.structure.digest,
            "size": self.size,
            "boundary": self.boundary,
            "model": self.model,
            "seed": self.seed,
            "rng": self.rng,
        }

    @cached_property
    def id(self) -> str:
        """Hash of everything that changes the stored numbers: 16 hexadecimal digits."""
        measured: dict[str, Any] = {"block_size": self.block_size} | self.kind.identity(self)
        if self.measure:
            measured["measure"] = self.measure
        if self.functions:
            measured["functions"] = list(map(str, self.functions))
        return _digest(self._samples_content | measured).hex()[:16]

    @cached_property
    def stream_seed(self) -> int:
        """Seed of the samples' streams: the same for every p grid, different for every size.

        Two tasks with equal stream seeds draw the same samples, so they are not independent.
        """
        return int.from_bytes(_digest(self._samples_content)[:8], "little")


def _shared_facts(sampling: Task | Study) -> dict[str, Any]:
    return {
        "model": sampling.model,
        "boundary": ", ".join(sampling.boundary) or "none",
        "method": sampling.method,
        **({} if sampling.order == RANDOM else {"order": sampling.order}),
        **sampling.ends,
        **({"measure": ", ".join(sampling.measure)} if sampling.measure else {}),
        "seed": sampling.seed,
        "block size": sampling.block_size or "of each size",
    }


def check_sample_version(version: int) -> None:
    """Raise InputError unless stored samples are of the version that is sampled."""
    if version != SAMPLE_VERSION:
        raise InputError(
            f"has samples of version {version}; this percolab reads version {SAMPLE_VERSION} "
            "(docs/randomness.md says why)"
        )


def check_boundary(lattice: Structure, boundary: tuple[str, ...]) -> None:
    has_sides = "open" in lattice.boundaries
    if not has_sides and any(kind not in lattice.boundaries for kind in boundary):
        raise InputError(f"boundary = {','.join(map(str, boundary))}, but {lattice.name} has none")
    for kind in boundary:
        check_choice("boundary", kind, lattice.boundaries)
    if len(boundary) != lattice.dimension:
        raise InputError(
            f"boundary: {len(boundary)} given, but {lattice.name} has {lattice.dimension} axes"
        )


def axis_boundaries(structure: Structure, given: Any = None) -> tuple[str, ...]:
    """Return the boundary of every axis: texts, one text for all or with commas, or the default."""
    kinds = structure.boundaries[0] if given is None else given
    if isinstance(kinds, str):
        kinds = [kind.strip() for kind in kinds.split(",")]
    if not isinstance(kinds, Sequence):
        raise InputError(f"boundary = {kinds!r}, but it must be a text, or a list of texts")
    boundary = tuple(kinds) * (structure.dimension if len(kinds) == 1 else 1)
    check_boundary(structure, boundary)
    return boundary


def check_probabilities(p: tuple[float, ...]) -> None:
    if not p:
        raise InputError("p: the list is empty")
    for value in p:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and 0 <= value <= 1):
            percent = is_number and 1 < value <= 100 and float(value).is_integer()
            hint = f" ({value:g} % is {value / 100:g})" if percent else ""
            raise InputError(f"p = {value!r}, but it must be a number from 0 to 1{hint}")
    if any(high <= low for low, high in pairwise(p)):
        shown = ", ".join(f"{value:g}" for value in p[:6]) + (", ..." if len(p) > 6 else "")
        raise InputError(f"p = {shown}: the values must ascend and differ")


def explain_refusal(name: str, model: str) -> str:
    """Return why studies of a model do not have a setting that other kinds of study have."""
    return f"{name}: {SETTINGS[name].refusal.format(model=model)}"


@dataclass(frozen=True, repr=False)
class Study(Sampling):
    """A user's request: a lattice at several sizes, or a graph, with p given or placed by a pilot.

    ``p`` None lets a pilot place the values of each size, or with ``method`` "threshold" where the
    samples' thresholds are looked for first.  ``sweeps`` are those of a chain of spins, the burn-in
    among them; 0 chooses.  Equal studies continue each other; stop rules are no part of a study.
    """

    structure: Structure
    sizes: tuple[int, ...]
    boundary: tuple[str, ...]
    p: tuple[float, ...] | None = None
    sweeps: int = 0

    def __post_init__(self) -> None:
        self._settle_model(self.structure)
        self._check("method")
        for name in ADDED:
            self._check(name)
        self._check_kind()
        if self.sweeps and self.sweeps <= self.burn_in:
            raise InputError(
                f"sweeps = {self.sweeps}, but the burn-in of {self.burn_in} leaves none to "
                "measure; give more"
            )
        if not self.sizes:
            raise InputError("L: the list is empty")
        if len(set(self.sizes)) != len(self.sizes):
            raise InputError(f"L = {', '.join(map(str, self.sizes))}: a size is given twice")
        # Studies of the same sizes are equal, in whatever order these were given.
        object.__setattr__(self, "sizes", tuple(sorted(self.sizes)))
        if self.kind.fixed_p is not None:
            object.__setattr__(self, "p", self.kind.fixed_p or None)
        _ = self.tasks  # so that they are checked

    def _facts(self) -> dict[str, Any]:
        p = "placed by a pilot" if self.p is None else few(self.p)
        own = {"study": self.structure.name, "L": few(self.sizes)}
        return own | ({} if self.kind.fixed_p == () else {"p": p}) | _shared_facts(self)

    @cached_property
    def tasks(self) -> dict[int, Task]:
        """The task of every size, ascending, at the study's p, or at one p until there are some."""
        p = self.some_p if self.p is None else self.p
        return {size: self.task(size, p) for size in self.sizes}

    def task(self, size: int, p: tuple[float, ...]) -> Task:
        """Return the task of a size at these p."""
        task = Task(
            structure=self.structure, size=size, boundary=self.boundary, p=p, **self.sampling
        )
        return task if self.burn_in == AUTO else self.with_burn_in(task, self.burn_in)

    @property
    def some_p(self) -> tuple[float, ...]:
        fixed: tuple[float, ...] | None = self.kind.fixed_p
        return (0.5,) if fixed is None else fixed

    def with_burn_in(self, task: Task, burn_in: int) -> Task:
        """Return a task of chains with this burn-in; InputError if it leaves no sweep."""
        if not self.sweeps:
            return replace(task, burn_in=burn_in)
        if self.sweeps <= burn_in:
            raise InputError(
                f"sweeps = {self.sweeps}, but at L = {task.size} the burn-in is {burn_in}: "
                "take more"
            )
        measured = (self.sweeps - burn_in) // self.every
        if not measured:
            raise InputError(
                f"sweeps = {self.sweeps}: after a burn-in of {burn_in} too few are left to measure "
                f"one in {self.every}; give more"
            )
        return replace(task, burn_in=burn_in, block_size=measured)

    @property
    def has_published_threshold(self) -> bool:
        """Whether a published threshold may apply: all of them are for random removal."""
        return self.order == RANDOM

    @property
    def observables(self) -> tuple[Column, ...]:
        columns = self.kind.columns(self.boundary)
        return tuple(column for column in columns if column.is_observable)

    def check_layers(self) -> None:
        """Raise InputError if a graph's source and target share a site that may be vacant."""
        if isinstance(self.structure, Graph) and self.draw.draws_sites:
            self.structure.topology(self.structure.shape(self.sizes[0])).check_end_layers()

    def description(self) -> dict[str, Any]:
        """Return what identifies the study, as plain JSON values."""
        p = "pilot" if self.p is None else list(self.p)
        added = {
            name: list(own) if isinstance(own, tuple) else own
            for name in ADDED
            if (own := getattr(self, name)) != SETTINGS[name].default
        }
        added["sample_version"] = SAMPLE_VERSION
        if self.sweeps:
            added["sweeps"] = self.sweeps
        if self.functions:
            added["functions"] = list(map(str, self.functions))
        return added | {
            "lattice": self.structure.name,
            "lattice_digest": self.structure.digest,
            "L": list(self.sizes),
            "boundary": list(self.boundary),
            "method": self.method,
            "p": "all" if self.kind.fixed_p == () else p,
            "seed": self.seed,
            "rng": self.rng,
            "model": self.model,
            "block_size": self.block_size,
        }

    @classmethod
    def from_description(cls, record: dict[str, Any], lattice: Structure) -> Study:
        """Return the study of a description; ValueError or the like if it is of another lattice."""
        known = {"lattice", "lattice_digest", "L", "boundary", "p", "sweeps", *_DESCRIBED, *ADDED}
        table = Table(record, known | {"functions", "sample_version"}, "its study")
        check_sample_version(table.integer("sample_version", low=1, high=MAX_SEED, default=1))
        if table.text("lattice_digest") != lattice.digest:
            raise ValueError(f"its study does not match its lattice {lattice.name}")
        return cls(
            structure=lattice,
            sizes=tuple(table.read_list("L", int)),
            boundary=tuple(table.read_list("boundary", str)),
            p=None if record["p"] in ("pilot", "all") else tuple(table.read_list("p", int, float)),
            seed=table.integer("seed", low=0, high=MAX_SEED),
            rng=table.text("rng"),
            model=table.text("model"),
            block_size=table.integer("block_size", low=0, high=MAX_SEED),
            method=table.text("method", SETTINGS["method"].default),
            sweeps=table.integer("sweeps", low=0, high=MAX_SEED, default=0),
            functions=functions_named(table.read_list("functions", str)),
            **{name: _described(table, name) for name in ADDED},
        )


def functions_named(texts: Sequence[str]) -> tuple[LabelFunction, ...]:
    """Return a user's observables as files describe them, by name alone."""
    return tuple(LabelFunction.parse(text) for text in texts)


def _described(table: Table, name: str) -> Any:
    default = SETTINGS[name].default
    if name not in table.data:
        return default
    if isinstance(default, tuple):
        return tuple(table.read_list(name, str))
    if isinstance(default, int):
        return table.integer(name, low=min(default, 0), high=MAX_SEED)
    return table.text(name)


@dataclass(frozen=True)
class StopRule:
    """When a study is finished: samples a size, or the error of p_c, whichever comes first."""

    samples: Mapping[int, int] | None = None
    target_error: float | None = None

    def check(self, study: Study) -> None:
        if self.samples is None and self.target_error is None:
            raise InputError("give --samples or --target-error")
        if self.samples is not None and min(self.samples.values()) < 1:
            raise InputError("samples must be at least 1 for every size")
        if self.samples is not None and max(self.samples.values()) >= 2**63:
            raise InputError("samples must be below 2^63 for every size")
        if self.target_error is not None:
            _check_target(study, self.target_error)

    def limit(self, size: int) -> float:
        return float("inf") if self.samples is None else self.samples[size]

    def requested(self, size: int) -> int | None:
        return None if self.samples is None else self.samples[size]


def _check_target(study: Study, target: float) -> None:
    if not 0 < target < 1:
        raise InputError(f"target error {target} must be above 0 and below 1")
    if study.refusal("target_error"):
        raise InputError(f"{study.refusal('target_error')}: give the number of samples")
    if not study.structure.is_scalable:
        raise InputError(
            f"a target error needs p_c from crossings of several sizes, which "
            f"{study.structure.name} does not have: give the number of samples"
        )
    if len(study.sizes) < 2:
        raise InputError("a target error on p_c needs at least two sizes L")
