"""Study files: TOML to a study, its stop rule and where it is stored."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from percolab.errors import InputError
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.graph import Graph, load_graph
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.toml_table import Table, parse_toml, read_text, shown
from percolab.lattices.topology import MAX_POINTS
from percolab.measure.columns import MEASURES
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import MAX_SEED, Study, check_boundary

DEFAULT_LATTICE = "honeycomb"
DEFAULT_SIZES = (32, 64, 128, 256)
#: Shells of a Bethe lattice: 94 to 24 574 sites at z = 3.
DEFAULT_SHELLS = (5, 7, 9, 11, 13)
DEFAULT_SAMPLES = 10_000

_SUFFIXES = (".h5", ".hdf5")
_MAX_POINTS = 10_000
_KEYS = {"lattice", "L", "p", "boundary", "samples", "target_error", "seed", "rng", "block_size"}
_KEYS |= {"method", "model", "measure", "out", "graph", "source", "target", "multi"}


@dataclass(frozen=True)
class SweepRequest:
    """A study with its stop rule and the file it goes to.

    left_open: what was not given and has its default, unless the file says otherwise
    (:data:`percolab.run.continuing.LEFT_OPEN`).
    """

    study: Study
    rule: StopRule
    out: Path
    left_open: frozenset[str] = frozenset()


def parse_probabilities(text: str) -> tuple[float, ...]:
    """Read p values: "0.5", "0.4,0.5,0.6" or "from:to:count" (both ends included).

    InputError: not numbers, an empty or descending range, or one outside [0, 1].

    >>> parse_probabilities("0.5:0.6:3")
    (0.5, 0.55, 0.6)
    """
    if ":" not in text:
        values = [_number(part, text) for part in text.split(",") if part.strip()]
        if not values:
            raise InputError(f"p = {text!r}: the list is empty")
        return tuple(float(value) for value in values)
    parts = text.split(":")
    if len(parts) != 3 or not parts[2].strip().isdecimal():
        raise InputError(f"p = {shown(text)}, but a range is from:to:count, as in 0.50:0.55:21")
    low, high, count = _number(parts[0], text), _number(parts[1], text), int(parts[2])
    if not 2 <= count <= _MAX_POINTS or high <= low:
        raise InputError(
            f"p = {shown(text)} is empty: from must be below to, and count from 2 to {_MAX_POINTS}"
        )
    # In decimal arithmetic 0.5:0.6:3 holds 0.55, not 0.55000000000000004.
    return tuple(float(low + (high - low) * n / (count - 1)) for n in range(count))


def _number(text: str, whole: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation as error:
        raise InputError(f"p = {shown(whole)}: {shown(text.strip())} is not a number") from error
    if not value.is_finite() or not 0 <= value <= 1:
        raise InputError(f"p = {text.strip()}, but it must be a number from 0 to 1")
    return value


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read linear sizes, "64" or "64,128,256"; InputError unless all are positive integers."""
    sizes = []
    for part in text.split(","):
        digits = part.strip()
        if not digits.isdecimal() or not digits.strip("0"):
            raise InputError(f"L = {digits or text!r}, but it must be an integer of at least 1")
        if len(digits) > 18:
            raise InputError(f"L = {digits[:18]}...: no lattice of that size can be labeled")
        sizes.append(int(part))
    return tuple(sizes)


def make_request(
    lattice: str | Structure | None = None,
    *,
    graph: str | Path | Graph | None = None,
    source: str | Path | Sequence[int] | None = None,
    target: str | Path | Sequence[int] | None = None,
    multi: bool = False,
    L: Sequence[int] | None = None,
    p: Sequence[float] | None = None,
    boundary: str | Sequence[str] | None = None,
    samples: int | Sequence[int] | None = None,
    target_error: float | None = None,
    seed: int = 1,
    rng: str = "xorwow",
    block_size: int = 0,
    method: str = "grid",
    model: str = "bond",
    measure: str | Sequence[str] = (),
    out: str | Path = "results.h5",
) -> SweepRequest:
    """Return the request for these settings, defaults filled in; InputError if they are wrong."""
    given = {"lattice": lattice, "L": L, "boundary": boundary}
    if graph is not None:
        lattice = _graph_of(graph, source, target, multi, given)
    elif source is not None or target is not None or multi:
        raise InputError("source, target and multi belong to a graph: give it (--graph FILE)")
    elif lattice is None or isinstance(lattice, str):
        lattice = load_structure(DEFAULT_LATTICE if lattice is None else lattice)
    sizes = default_sizes(lattice) if L is None else _whole("L", L)
    kinds = boundary if boundary is not None else lattice.boundaries[0]
    if isinstance(kinds, str):
        kinds = tuple(kind.strip() for kind in kinds.split(","))
    if len(kinds) == 1:
        kinds = tuple(kinds) * lattice.dimension
    check_boundary(lattice, tuple(kinds))
    study = Study(
        lattice=lattice,
        sizes=sizes,
        boundary=tuple(kinds),
        p=None if p is None else _floats(p),
        seed=_whole("seed", seed)[0],
        rng=rng,
        block_size=_whole("block_size", block_size)[0],
        method=method,
        model=model,
        measure=parse_measure(measure),
    )
    left_open = {"L"} if L is None else set()
    if samples is None and target_error is None:
        samples = DEFAULT_SAMPLES
        left_open.add("samples")
    rule = StopRule(_per_size(samples, sizes), target_error)
    return SweepRequest(study, rule, _results_path(out), frozenset(left_open))


def _results_path(out: str | Path) -> Path:
    """Return the path of a results file; InputError if it ends as something else does."""
    path = Path(out)
    if path.suffix not in _SUFFIXES and not path.is_dir():
        ending = f"ends in {path.suffix}" if path.suffix else "has no suffix"
        allowed = " or ".join(_SUFFIXES)
        raise InputError(f"out = {path} {ending}, but a results file ends in {allowed}")
    return path


def parse_measure(measure: str | Sequence[str]) -> tuple[str, ...]:
    """Return what is measured beside the observables, from words or from "one,other".

    >>> parse_measure("sizes")
    ('sizes',)
    """
    parts = [measure] if isinstance(measure, str) else list(measure)
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"measure = {measure!r}, but only words are allowed")
    found = tuple(word.strip() for part in parts for word in part.split(",") if word.strip())
    if parts and not found:
        raise InputError(f"measure = {measure!r}, but it must name some of {', '.join(MEASURES)}")
    return found


def default_sizes(structure: Structure) -> tuple[int, ...]:
    """Return the sizes that a study of a structure has unless they are given."""
    if isinstance(structure, Graph):
        return (structure.num_sites,)
    return DEFAULT_SHELLS if isinstance(structure, BetheLattice) else DEFAULT_SIZES


def _graph_of(
    graph: str | Path | Graph,
    source: str | Path | Sequence[int] | None,
    target: str | Path | Sequence[int] | None,
    multi: bool,
    given: dict[str, Any],
) -> Graph:
    """Return a graph or read it; InputError if it is given what only a lattice has."""
    for key, value in given.items():
        if value is not None:
            shown = list(value) if isinstance(value, tuple) else value
            raise InputError(f"{key} = {shown!r}, but a graph has its own: leave it out")
    if not isinstance(graph, Graph):
        return load_graph(graph, source=source, target=target, multi=multi)
    if source is not None or target is not None or multi:
        raise InputError("source, target and multi are read with a graph's file: this one is read")
    return graph


def _whole(key: str, value: Any) -> tuple[int, ...]:
    """Return an integer or a sequence of them as a tuple of ints, NumPy's included."""
    try:
        return tuple(operator.index(item) for item in (value if np.ndim(value) else [value]))
    except TypeError as error:
        raise InputError(f"{key} = {shown(value)}, but only integers are allowed") from error


def _floats(value: Any) -> tuple[float, ...]:
    """Return a number, a sequence of them, or a range as text as a tuple of floats."""
    if isinstance(value, str):
        return parse_probabilities(value)
    try:
        return tuple(float(item) for item in (value if np.ndim(value) else [value]))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"p = {shown(value)}, but only numbers from 0 to 1 are allowed") from error


def _per_size(samples: int | Sequence[int] | None, sizes: tuple[int, ...]) -> dict[int, int] | None:
    if samples is None:
        return None
    counts = _whole("samples", samples)
    if np.ndim(samples) == 0:
        counts *= len(sizes)
    if len(counts) != len(sizes):
        raise InputError(f"samples: {len(counts)} numbers given for {len(sizes)} sizes L")
    return dict(zip(sizes, counts))


def read_request(path: Path, overrides: dict[str, Any]) -> SweepRequest:
    """Return the request in a study file, with options of the command line put over its keys.

    InputError names the file and the key at fault.
    """
    table = Table(parse_toml(read_text(path), where=str(path)), _KEYS, str(path))
    if not table.data:
        raise InputError(f"{path}: is empty, so it asks for nothing; its keys are {_key_list()}")
    settings = {**_settings(table), **overrides}
    try:
        request = make_request(**settings)
        request.rule.check(request.study)
        return request
    except InputError as error:
        given = f" with {', '.join(overrides)} given" if overrides else ""
        raise InputError(f"{path}{given}: {error}") from error


def _key_list() -> str:
    return ", ".join(sorted(_KEYS))


def _settings(table: Table) -> dict[str, Any]:
    data = table.data
    found: dict[str, Any] = {}
    for key in ("lattice", "graph", "rng", "method", "model", "out"):
        if key in data:
            found[key] = table.text(key)
    folder = Path(table.where).parent
    if found.get("lattice", "").endswith(".toml"):
        found["lattice"] = str(folder / found["lattice"])
    if "graph" in found:
        found["graph"] = folder / found["graph"]
    for key in ("source", "target"):
        if key in data:
            found[key] = _terminals(table, key, folder)
    if "multi" in data:
        found["multi"] = data["multi"]
        if type(data["multi"]) is not bool:
            raise table.error("multi", "true or false")
    if "L" in data:
        found["L"] = _integers(table, "L")
    if "samples" in data:
        found["samples"] = _integers(table, "samples", alone=True)
    if "p" in data:
        found["p"] = _probabilities(table)
    if "boundary" in data:
        found["boundary"] = data["boundary"]
        if not _is_text_list(data["boundary"]):
            raise table.error("boundary", '"open", "periodic", or a list with one of them an axis')
    if "measure" in data:
        found["measure"] = data["measure"]
        if not _is_text_list(data["measure"]):
            words = ", ".join(f'"{word}"' for word in MEASURES)
            raise table.error("measure", f"{words}, or a list with some of them")
    if "target_error" in data:
        found["target_error"] = table.number("target_error")
    if "seed" in data:
        found["seed"] = table.integer("seed", low=0, high=MAX_SEED)
    if "block_size" in data:
        found["block_size"] = table.integer("block_size", low=1, high=10**6)
    return found


def _terminals(table: Table, key: str, folder: Path) -> list[int] | str | Path:
    """Return sites, a text that lists them, or the file that does, found beside the study file."""
    from percolab.lattices.graph_files import names_file

    value = table.data[key]
    if isinstance(value, str):
        return folder / value if names_file(value) else value
    items = value if isinstance(value, list) else [value]
    if not items or not all(type(item) is int and 0 <= item < MAX_POINTS for item in items):
        raise table.error(key, "a site, a list of sites, or the name of a file with one a line")
    return items


def _is_text_list(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, str) for item in items)


def _integers(table: Table, key: str, *, alone: bool = False) -> Any:
    value = table.data[key]
    items = value if isinstance(value, list) else [value]
    if not items or not all(type(item) is int and item >= 1 for item in items):
        raise table.error(key, "an integer of at least 1, or a list of such")
    return value if alone else tuple(items)


def _probabilities(table: Table) -> tuple[float, ...]:
    value = table.data["p"]
    try:
        if isinstance(value, str):
            return parse_probabilities(value)
        items = value if isinstance(value, list) else [value]
        if not items or not all(type(item) in (int, float) for item in items):
            raise InputError("")
        return tuple(float(item) for item in items)
    except InputError as error:
        if str(error):
            raise InputError(f"{table.where}: {error}") from error
        raise table.error("p", 'a list of numbers from 0 to 1, or "from:to:count"') from error
