"""A user's own observables: Python functions of the labels or open bonds of a sample.

The names of a function's parameters say what it reads: labels, bonds, or both; a single parameter
of another name gets the labels.  Functions are slow: every sample at every p is drawn (and labeled,
if labels are read) once more on the CPU for a call of Python.  They are exact: these are the same
samples from which everything else is measured.

Other packages declare functions as entry points.  Their names and versions come from the packages'
metadata; a package's code is only loaded when one of its names is used.
"""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.measure.columns import FUNCTION, Column, SumColumn

#: A function of labels, int32, -1 where there is no site, or of bonds, int64 (m, 2), the sites of
#: every open bond, or of both.  It returns a number.
Function = Callable[..., float]
#: The names of parameters that say what functions read.
READS = ("labels", "bonds")
#: The group of entry points under which packages declare functions of a sample.
_GROUP = "percolab.observables"


@dataclass(frozen=True)
class LabelFunction:
    """An observable whose name identifies the function: a changed function needs a new name.

    call: None if the function is not available, as in stored results.  package: the package that
    declares it, with the version, "percolab-holes 0.3"; "" if it was given in Python.
    """

    name: str
    call: Function | None = field(default=None, compare=False, repr=False)
    package: str = ""

    @classmethod
    def parse(cls, text: str) -> LabelFunction:
        """Return the observable of a text from a file, without its function."""
        name, _, package = text.partition(" of ")
        return cls(name, package=package)

    def __str__(self) -> str:
        return f"{self.name} of {self.package}" if self.package else self.name

    @property
    def column(self) -> Column:
        """The column of its sums over the samples of a block."""
        made_by = self.package or "Python"
        meaning = f"a function of the labels of a sample, from {made_by}: {self.name}"
        how = SumColumn(FUNCTION, np.float64)
        return Column(self.name, self.name, meaning, "1", how, source=self.package)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Those of :data:`READS` that its function is given."""
        try:
            names = inspect.signature(self.call).parameters if self.call else {}
        except (TypeError, ValueError):  # some functions written in C have no signature
            return READS[:1]
        return tuple(name for name in READS if name in names) or READS[:1]

    def call_function(self, sample: Mapping[str, NDArray[Any]]) -> float:
        """Return the function's value for a sample's arrays; InputError unless it is finite."""
        if self.call is None:
            raise InputError(
                f"{_origin(self)}: a results file does not store its function: give it in Python "
                "(percolab.sweep(..., observables={...}))"
            )
        try:
            # A single parameter for labels may have another name.
            is_plain = self.reads == ("labels",)
            result = self.call(sample["labels"]) if is_plain else self.call(**sample)
            value = float(result)
        except Exception as error:  # a user's function may raise any exception
            raise InputError(f"{_origin(self)}: {_one_line(error)}") from error
        if not math.isfinite(value):
            raise InputError(
                f"{_origin(self)}: its value in a sample is {value}, but it must be finite"
            )
        return value


@dataclass(frozen=True)
class Plugin:
    """A name that a package declares; package: the package's name and version."""

    name: str
    package: str
    entry: EntryPoint

    def load(self) -> Any:
        """Load the package's code and return what the name stands for; InputError if it fails."""
        try:
            function = self.entry.load()
        except Exception as error:  # another package's code may raise any exception
            raise InputError(f"{_origin(self)}: {_one_line(error)}") from error
        if not callable(function):
            raise InputError(f"{_origin(self)}: {self.entry.value} is not a function")
        return function


def _origin(observable: LabelFunction | Plugin) -> str:
    package = observable.package
    return f"observable {observable.name}{f' of package {package}' if package else ''}"


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def list_plugins() -> list[Plugin]:
    """Return all functions that installed packages declare, by name, without loading any."""
    plugins = [
        Plugin(entry.name, f"{entry.dist.name} {entry.dist.version}", entry)
        for entry in entry_points(group=_GROUP)
        if entry.dist is not None
    ]
    return sorted(plugins, key=lambda plugin: (plugin.name, plugin.package))


def _find_plugin(name: str) -> Plugin:
    """Return the plugin of a name; InputError if no package declares it, or several do."""
    known = list_plugins()
    own = [plugin for plugin in known if plugin.name == name]
    if len(own) == 1:
        return own[0]
    if own:
        packages = " and ".join(plugin.package for plugin in own)
        raise InputError(f"observable {name}: both {packages} have one; uninstall one of them")
    listed = ", ".join(f"{plugin.name} (of {plugin.package})" for plugin in known)
    text = f"known: {listed}" if listed else "no installed package declares observables"
    raise InputError(f"unknown observable {name!r}; {text}")


#: Names that tables and files use for other columns; names that end in _error are also taken.
_TAKEN = frozenset(
    {"lattice", "model", "boundary", "L", "sites", "seed", "p", "samples", "observable", "unit",
     "mean", "error", "task", "point", "bin", "s_low", "s_high", "n_s", "study", "block", "sums",
     "squares", "products", "block_count", "size_edges", "spins", "thresholds"}
)  # fmt: skip


def take_functions(
    given: Mapping[str, Function] | str | Sequence[str] | None,
) -> tuple[LabelFunction, ...]:
    """Return observables, sorted by name; InputError for anything that is not one.

    given: functions by name, or names that installed packages declare, whose code is loaded here.
    """
    if isinstance(given, Mapping):
        for name, call in given.items():
            if not callable(call):
                raise InputError(f"observable {name}: {call!r} is not a function of labels")
        named = sorted(given.items(), key=lambda setting: str(setting[0]))
        return tuple(LabelFunction(name, call) for name, call in named)
    names = [given] if isinstance(given, str) else () if given is None else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"observables: {type(given).__name__} given, but they must be functions by name, "
            '{"name": function}, or names that a package declares'
        )
    if "" in (name.strip(" ,") for name in names):
        raise InputError("observables: one of the names is empty")
    words = {word.strip() for name in names for word in name.split(",")} - {""}
    plugins = [_find_plugin(word) for word in sorted(words)]
    return tuple(LabelFunction(each.name, each.load(), each.package) for each in plugins)


def check_functions(functions: Sequence[Any], others: Sequence[Column]) -> None:
    """Raise InputError unless functions have distinct names that no other column has."""
    taken = {column.name for column in others} | _TAKEN
    taken |= {column.dataset.name for column in others if column.dataset is not None}
    for function in functions:
        name = function.name
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise InputError(
                f"observable {name!r}: a name has letters, digits and underscores, no digit first"
            )
        if name in taken or name.endswith("_error"):
            why = "tables use this name" if name in _TAKEN else "it is measured already"
            why = "names of errors end in _error" if name.endswith("_error") else why
            raise InputError(f"observable {name}: {why}; choose another name")
        taken.add(name)
