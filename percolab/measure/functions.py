"""A user's own observables: Python functions of the labels of a sample.

They are slow, since every sample at every p is labeled once more, on the CPU, and a Python function
is called; and exact, since these are the samples that all else is measured of.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.measure.columns import FUNCTION, Column, Sums

#: What a function is given, and what it returns: int32 labels, -1 where there is no site; a number.
Function = Callable[[NDArray[np.int32]], float]


@dataclass(frozen=True)
class LabelFunction:
    """An observable by its name, which stands for the function: a changed one needs another name.

    call: None where it is not at hand, as of stored results
    """

    name: str
    call: Function | None = field(default=None, compare=False, repr=False)

    @property
    def column(self) -> Column:
        """How its sums over the samples of a block are stored."""
        meaning = f"a function of the labels of a sample, from Python: {self.name}"
        return Column(self.name, self.name, meaning, "1", Sums(FUNCTION, np.float64), source="")

    def value_of(self, labels: NDArray[np.int32]) -> float:
        """Return the value of a sample; InputError unless it is a finite number."""
        if self.call is None:
            raise InputError(
                f"observable {self.name}: its function is not in a results file: give it in Python "
                "(percolab.sweep(..., observables={...}))"
            )
        try:
            found = self.call(labels)
            value = float(found)
        except Exception as error:  # a user's function raises anything
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"observable {self.name}: {told}") from error
        if not math.isfinite(value):
            raise InputError(f"observable {self.name}: is {value} of a sample, but sums are finite")
        return value


#: What tables and files have beside observables; a name that ends in _error is an error's.
_TAKEN = frozenset(
    {"lattice", "model", "boundary", "L", "sites", "seed", "p", "samples", "observable", "unit",
     "mean", "error", "task", "point", "bin", "s_low", "s_high", "n_s", "study", "block", "sums",
     "products", "size_edges", "spins", "thresholds"}
)  # fmt: skip


def take_functions(given: Mapping[str, Function] | None) -> tuple[LabelFunction, ...]:
    """Return observables by name, in the order of their names; InputError for what is none."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"observables: {type(given).__name__} given, but they are functions by name: "
            '{"name": function}'
        )
    found = []
    for name, call in sorted((given or {}).items(), key=lambda item: str(item[0])):
        if not callable(call):
            raise InputError(f"observable {name}: {call!r} is no function of labels")
        found.append(LabelFunction(name, call))
    return tuple(found)


def check_functions(functions: Sequence[Any], others: Sequence[Column]) -> None:
    """Raise InputError unless functions have names of their own, which no other column has."""
    taken = {item.name for item in others}
    taken |= {item.dataset.name for item in others if item.dataset is not None}
    taken |= _TAKEN
    for item in functions:
        name = item.name
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise InputError(
                f"observable {name!r}: a name has letters, digits and underscores, no digit first"
            )
        if name in taken or name.endswith("_error"):
            why = "a table has it already" if name in _TAKEN else "is measured already"
            why = "_error ends the name of an error" if name.endswith("_error") else why
            raise InputError(f"observable {name}: {why}; choose another name")
        taken.add(name)
