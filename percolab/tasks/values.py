"""The value of one setting: from the text of an option, a key of a study file, or Python.

Every function raises InputError that names the setting, what was given and what is allowed.
"""

import errno
import math
import operator
import os
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import partial
from math import gcd
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from percolab.errors import InputError, nearest, refuse_mask
from percolab.lattices.lattice import Lattice
from percolab.lattices.removal import ORDERS
from percolab.lattices.structure import Structure
from percolab.lattices.toml_table import shown
from percolab.measure.columns import MEASURES

_T = TypeVar("_T")
RESULTS_SUFFIXES = (".h5", ".hdf5")
_MAX_COUNT = 10_000
#: Values of p whose relative difference is smaller are the same.
_SAME = 1e-12
#: A number with a point or a power of ten.
_POWER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE]\+?[0-9]{1,3})?")


# Of an option's text.


def expand_power(text: str) -> str:
    """Return the digits of an integer that has a power of ten or a point; other texts as they are.

    >>> expand_power("1e4"), expand_power("2.5E3"), expand_power("1.5e0"), expand_power("8.0")
    ('10000', '2500', '1.5e0', '8')
    """
    if not _POWER.fullmatch(text):
        return text
    number = Decimal(text)
    # Larger ones are in no range.
    is_whole = number.adjusted() < 20 and number == number.to_integral_value()
    return str(int(number)) if is_whole else text


def parse_probabilities(text: str) -> tuple[float, ...]:
    """Read p values: "0.5", "0.4,0.5,0.6" or "from:to:count" (both ends included).

    InputError: not numbers, an empty or descending range, or one outside [0, 1].

    >>> parse_probabilities("0.5:0.6:3")
    (0.5, 0.55, 0.6)
    """
    values = _parse_numbers("p", text, _probability, "0.50:0.55:21")
    if not values:
        raise InputError(f"p = {text!r}: the list is empty")
    return tuple(map(float, values))


def _parse_numbers(
    key: str, text: str, number: Callable[[str], Decimal], example: str
) -> list[Decimal]:
    """Read "0.5", "0.4,0.5,0.6" or "from:to:count" (both ends included)."""
    if ":" not in text:
        return [number(part) for part in text.split(",") if part.strip()]
    ends = text.split(":")
    digits = ends[2].strip() if len(ends) == 3 else ""
    if not digits.isdecimal():
        raise InputError(f"{key} = {shown(text)}, but a range is from:to:count, as in {example}")
    low, high = number(ends[0]), number(ends[1])
    count = int(digits[:9])
    if not 2 <= count <= _MAX_COUNT or high <= low:
        raise InputError(
            f"{key} = {shown(text)}: from must be below to, and count from 2 to {_MAX_COUNT}"
        )
    # In decimal arithmetic 0.5:0.6:3 has 0.55, not 0.55000000000000004.
    return [low + (high - low) * n / (count - 1) for n in range(count)]


def _number(key: str, text: str) -> Decimal:
    try:
        return Decimal(text.strip())
    except InvalidOperation as error:
        raise InputError(f"{key} = {shown(text.strip())} is not a number") from error


def _probability(text: str) -> Decimal:
    value = _number("p", text)
    if not value.is_finite() or not 0 <= value <= 1:
        percent = value.is_finite() and 1 < value <= 100 and value == int(value)
        hint = f" ({text.strip()} % is {value / 100:f})" if percent else ""
        raise InputError(f"p = {text.strip()}, but it must be a number from 0 to 1{hint}")
    return value


def take_couplings(key: str, value: Any) -> tuple[float, ...] | None:
    """Return J / kT or kT / J, positive numbers that are given as p are, as floats; None as it is.

    >>> take_couplings("T", "2.0:2.5:3")
    (2.0, 2.25, 2.5)
    """
    if value is None:
        return None
    if isinstance(value, str):
        value = _parse_numbers(key, value, partial(_number, key), "2.2:2.4:9")
    couplings = _take_floats(key, value, "only numbers are allowed")
    for coupling in couplings:
        if not 0 < coupling < math.inf:
            reason = "cluster updates need a ferromagnet"
            raise InputError(f"{key} = {coupling:g}, but it must be above 0: {reason}")
    if not couplings:
        raise InputError(f"{key}: the list is empty")
    return couplings


#: The burn-in that a pilot finds.
AUTO = -1


def take_burn_in(key: str, value: Any) -> int:
    """Return a number of sweeps, also from text; "auto" as AUTO.

    >>> take_burn_in("burn_in", "auto"), take_burn_in("burn_in", "200")
    (-1, 200)
    """
    if isinstance(value, str) and value != "auto" and not (value.isdecimal() and len(value) < 10):
        raise InputError(f"{key} = {value!r}, but it must be an integer of at least 0, or auto")
    if isinstance(value, str):
        return AUTO if value == "auto" else int(value)
    sweeps = take_integer(key, value)
    if not AUTO <= sweeps <= 10**9:
        raise InputError(f"{key} = {sweeps}, but it must be an integer from 0 to 10^9, or auto")
    return sweeps


#: A linear size, or the sides of a shape along each axis.
Size = int | tuple[int, ...]


def parse_sizes(text: str) -> tuple[Size, ...]:
    """Read linear sizes: "64", "64,128,256", or "64:512:4", from:to:count in equal ratios.

    A shape, 64x128, has a side along each axis.  InputError unless all are positive integers.

    >>> parse_sizes("64:512:4"), parse_sizes("10:20:3"), parse_sizes("32x64,1e3")
    ((64, 128, 256, 512), (10, 14, 20), ((32, 64), 1000))
    """
    if ":" not in text:
        return tuple(_parse_size(part.strip(), text) for part in text.split(","))
    parts = [expand_power(part.strip()) for part in text.split(":")]
    if len(parts) != 3 or not all(map(str.isdecimal, parts)):
        raise InputError(f"L = {shown(text)}, but a range is from:to:count, as in 64:512:4")
    low, high, count = (int(part[:18]) for part in parts)
    if not (1 <= low < high and 2 <= count <= _MAX_COUNT):
        allowed = f"at least 1 and below to, and count from 2 to {_MAX_COUNT}"
        raise InputError(f"L = {shown(text)}: from must be {allowed}")
    sizes = (low * (high / low) ** (n / (count - 1)) for n in range(count))
    return tuple(dict.fromkeys(map(round, sizes)))


def parse_lengths(text: str) -> tuple[int, ...]:
    """Read linear sizes as :func:`parse_sizes` does; InputError for a shape."""
    sizes = parse_sizes(text)
    lengths = tuple(size for size in sizes if isinstance(size, int))
    if len(lengths) < len(sizes):
        raise InputError(f"L = {shown(text)}, but sides are equal here: give one number per size")
    return lengths


def _parse_size(text: str, whole: str) -> Size:
    """Read one size, 64, or the sides of a shape, 64x128."""
    sides = [expand_power(side.strip()) for side in text.split("x")]
    for digits in sides:
        if not digits.isdecimal() or not digits.strip("0"):
            allowed = "an integer of at least 1, or a shape as 64x128"
            raise InputError(f"L = {text or whole!r}, but it must be {allowed}")
        if len(digits) > 18:
            raise InputError(f"L = {digits[:18]}...: no lattice of that size can be labeled")
    return int(sides[0]) if len(sides) == 1 else tuple(map(int, sides))


def take_sizes(key: str, value: Any) -> tuple[Size, ...]:
    """Return sizes: an integer, a sequence of integers and shapes, or a text with some of them."""
    if isinstance(value, str):
        return parse_sizes(value)
    if not isinstance(value, list | tuple) or not any(map(_is_shape, value)):
        return take_counts(key, value)
    sizes: list[Size] = []
    for size in value:
        if isinstance(size, str):
            sizes += parse_sizes(size)
        else:
            sides = take_counts(key, size)
            if not sides or min(sides) < 1:
                raise InputError(f"{key} = {shown(size)}, but sides are integers of at least 1")
            sizes.append(sides if _is_shape(size) else sides[0])
    return tuple(sizes)


def _is_shape(size: Any) -> bool:
    return isinstance(size, str | list | tuple)


def take_shapes(structure: Structure, L: Any) -> tuple[Structure, tuple[int, ...]]:
    """Return a structure and its sizes; for shapes, the lattice with their ratio of sides.

    L: an integer, a shape "64x128" or (64, 128), or a list of these, in the unit in which the
    lattice counts along each axis.  The size of a shape is what its sides have in common: 64x128 is
    L = 64 of the lattice with axes as 1 to 2.

    InputError: sizes that are none, another number of sides than axes, or shapes of different
    ratios, which one study cannot have.

    >>> from percolab.lattices.lattice import load_lattice
    >>> take_shapes(load_lattice("square"), "32x64,64x128")
    (<Lattice square 1x2; axes 2; cell 1 x 1; bonds at a site 4; published p_c bond 0.5, ...>, \
(32, 64))
    """
    sizes = take_sizes("L", L)
    if all(isinstance(size, int) for size in sizes):
        return structure, sizes  # type: ignore[return-value]
    ratios = [_ratio(structure, size) for size in sizes]
    for size, ratio in zip(sizes, ratios):
        if ratio != ratios[0]:
            raise InputError(
                f"L = {size_text(size)}: all shapes of a study need the same ratio of sides, "
                f"here that of {size_text(sizes[0])}; use separate files for other ratios"
            )
    assert isinstance(structure, Lattice)
    return structure.with_sides(ratios[0]), tuple(
        size if isinstance(size, int) else size[0] // ratios[0][0] for size in sizes
    )


def take_shape(structure: Structure, L: Any) -> tuple[Structure, int]:
    """Return a structure and one size, as :func:`take_shapes` does several; InputError for more."""
    if isinstance(L, list) or (np.ndim(L) == 1 and not isinstance(L, tuple)):
        raise InputError(f"L = {shown(L)}, but it must be one integer, or sides as (64, 128)")
    taken, sizes = take_shapes(structure, [L] if isinstance(L, tuple) else L)
    if len(sizes) != 1:
        raise InputError(f"L = {L}, but it must be one size")
    return taken, sizes[0]


def size_text(size: Size) -> str:
    """Return a size as it is written: 64 or 64x128."""
    return str(size) if isinstance(size, int) else "x".join(map(str, size))


def _ratio(structure: Structure, size: Size) -> Sequence[int]:
    if not isinstance(structure, Lattice):
        raise InputError(f"L = {size_text(size)}: {structure.name} has no sides; give one number")
    sides = (size,) * structure.dimension if isinstance(size, int) else size
    if len(sides) != structure.dimension:
        raise InputError(
            f"L = {size_text(size)} has {len(sides)} sides, but {structure.name} has "
            f"{structure.dimension} axes"
        )
    return tuple(n // gcd(*sides) for n in sides)


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def take_seconds(key: str, value: Any) -> float:
    """Return a time in seconds: a number of them, or a text with s, m, min or h behind it.

    >>> take_seconds("time", "1.5m"), take_seconds("time", 2)
    (90.0, 2.0)
    """
    if not isinstance(value, str):
        return take_number(key, value)
    text = value.strip()
    number = text.rstrip("smihn ")
    try:
        return float(number) * _SECONDS[text[len(number) :].strip()]
    except (KeyError, ValueError) as error:
        allowed = "it must be a time such as 60s, 5m or 2h"
        raise InputError(f"{key} = {shown(value)}, but {allowed}") from error


# Of a key of a study file that may name a file in the same folder.


def resolve_lattice(folder: Path, value: Any) -> Any:
    is_file = isinstance(value, str) and value.endswith(".toml")
    return folder / value if is_file else value


def resolve_graph(folder: Path, value: Any) -> Any:
    return folder / value if isinstance(value, str) else value


def resolve_order(folder: Path, value: Any) -> Any:
    return folder / value if isinstance(value, str) and value not in ORDERS else value


def resolve_terminals(folder: Path, value: Any) -> Any:
    """Return the path of a file of sites, or the value: a text that is no file may be a name."""
    from percolab.lattices.graph_files import names_file

    if not isinstance(value, str) or not names_file(value):
        return value
    # Path.is_file raises for a name of thousands of letters.
    return folder / value if "." in value or os.path.isfile(folder / value) else value


# Of what Python gives, or a key of a study file.


def take_terminal(key: str, value: Any) -> str:
    """Return a terminal of a lattice as text, sites by number with commas."""
    return value if isinstance(value, str) else ",".join(map(str, take_integers(key, value)))


def ascending(values: Sequence[float]) -> tuple[float, ...]:
    """Return values in ascending order, those that differ in their last digits alone as one.

    Of the latter, the one that is written shortest is returned.  -0.0 becomes 0.0.

    >>> ascending([0.6, 0.1 + 0.2, 0.3, 0.6, -0.0])
    (0.0, 0.3, 0.6)
    """
    different: list[float] = []
    for value in sorted(number + 0.0 for number in values):
        if different and is_same(different[-1], value):
            different[-1] = min(different[-1], value, key=lambda one: len(repr(one)))
        else:
            different.append(value)
    return tuple(different)


def is_same(one: float, other: float) -> bool:
    """Return whether two p are the same number, written or computed in two ways."""
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=_SAME**2)


def _take_floats(key: str, value: Any, allowed: str) -> tuple[float, ...]:
    """Return a number or a sequence of them as floats; InputError for anything else."""
    refuse_mask(key, value)
    is_list = np.iterable(value) and not isinstance(value, str)
    value = list(value) if is_list and not isinstance(value, np.ndarray) else value
    _refuse_booleans(key, value, allowed)
    numbers = value if is_list else [value]
    try:
        if is_list and any(isinstance(number, str) for number in numbers):
            raise TypeError
        return tuple(map(float, numbers))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{key} = {shown(value)}, but {allowed}") from error


def _refuse_booleans(key: str, value: Any, allowed: str) -> None:
    """Raise InputError for true and false, which Python takes for numbers."""
    items = value if np.iterable(value) and not isinstance(value, str) else [value]
    if any(isinstance(each, bool | np.bool_) for each in items):
        raise InputError(f"{key} = {shown(value)}, but {allowed}")


def take_integer(key: str, value: Any) -> int:
    """Return an integer, NumPy's included."""
    if np.iterable(value) and not isinstance(value, str):
        raise InputError(f"{key} = {shown(value)}, but it must be one integer")
    return take_integers(key, value)[0]


def take_integer_in(low: int, high: int, key: str, value: Any, shown_high: str = "") -> int:
    """Return an integer, NumPy's included; InputError unless it is in [low, high]."""
    number = take_integer(key, value)
    if not low <= number <= high:
        allowed = f"an integer from {low} to {shown_high or high}"
        raise InputError(f"{key} = {number}, but it must be {allowed}")
    return number


def take_flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{key} = {shown(value)}, but it must be True or False")
    return bool(value)


def take_number(key: str, value: Any) -> float:
    if np.iterable(value) and not isinstance(value, str):
        raise InputError(f"{key} = {shown(value)}, but it must be a number")
    return _take_floats(key, value, "it must be a number")[0]


def take_path(key: str, value: Any) -> Path:
    if not isinstance(value, str | os.PathLike) or "\0" in os.fspath(value):
        raise InputError(f"{key} = {shown(value)}, but it must be the name of a file")
    try:
        os.stat(value)
    except UnicodeEncodeError as error:
        raise InputError(f"{key} = {value!a}, but it must be the name of a file") from error
    except OSError as error:
        # Other errors are reported where the file is opened.
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{key} = {shown(value)}: the file name is too long") from error
    return Path(value)


def take_results_path(key: str, value: Any) -> Path:
    """Return the path of a results file; InputError if it ends as something else does."""
    path = take_path(key, value)
    if path.suffix not in RESULTS_SUFFIXES and not path.is_dir():
        ending = f"ends in {path.suffix}" if path.suffix else "has no suffix"
        allowed = " or ".join(RESULTS_SUFFIXES)
        raise InputError(f"{key} = {path} {ending}, but a results file ends in {allowed}")
    return path


def take_integers(key: str, value: Any) -> tuple[int, ...]:
    """Return an integer or a sequence of them as a tuple of ints, NumPy's included."""
    _refuse_booleans(key, value, "only integers are allowed")
    try:
        return tuple(operator.index(number) for number in (value if np.ndim(value) else [value]))
    except (TypeError, ValueError) as error:
        raise InputError(f"{key} = {shown(value)}, but only integers are allowed") from error


def take_counts(key: str, value: Any) -> tuple[int, ...]:
    """Return an integer, or a sequence of them, as a tuple of ints; 1e4 is one, too.

    >>> take_counts("samples", 1e4), take_counts("samples", [100, 2e3])
    ((10000,), (100, 2000))
    """

    def whole(count: Any) -> Any:
        is_float = isinstance(count, float | np.floating)
        return int(count) if is_float and count.is_integer() else count

    refuse_mask(key, value)
    is_list = isinstance(value, list | tuple) or np.ndim(value) > 0
    return take_integers(key, list(map(whole, value)) if is_list else whole(value))


def take_probabilities(key: str, value: Any) -> tuple[float, ...] | None:
    """Return a number, a sequence, or a range as text as a tuple of floats; None as it is."""
    if isinstance(value, str):
        return parse_probabilities(value)
    allowed = "only numbers from 0 to 1 are allowed"
    return None if value is None else _take_floats(key, value, allowed)


def take_measure(key: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return what is measured in addition to the observables, from words or from "one,other".

    >>> take_measure("measure", "sizes")
    ('sizes',)
    """
    parts = list(value) if np.iterable(value) and not isinstance(value, str) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise InputError(f"{key} = {value!r}, but only words are allowed")
    words = tuple(word.strip() for part in parts for word in part.split(",") if word.strip())
    if parts and not words:
        raise InputError(f"{key} = {value!r}, but it must name some of {', '.join(MEASURES)}")
    return words


def take_sample_key(key: str, value: Any) -> int:
    """Return a seed or the number of a sample; InputError unless it is from 0 to 2^64 - 1."""
    number = -1
    with suppress(InputError):
        number = take_integer(key, value)
    if not 0 <= number < 2**64:
        raise InputError(f"{key} = {value!r}, but it must be an integer from 0 to 2^64 - 1")
    return number


# Of a task, wherever it comes from.


def check_choice(key: str, value: str, known: Collection[str]) -> None:
    """Raise InputError unless ``value`` is one of the known ones."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"unknown {key} {value!r}; {nearest(value, list(known))}")


def check_one_of(known: Collection[str]) -> Callable[[str, str], str]:
    def check(key: str, value: str) -> str:
        check_choice(key, value, known)
        return value

    return check
