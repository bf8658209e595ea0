"""Phases of a segmented image: the values that form them, and measurements of each phase.

A phase is a set of values of the image.  Neighbours are joined if they are in the same phase, so
clusters of several phases are labeled at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from percolab.configurations.array_files import otsu_threshold
from percolab.errors import InputError
from percolab.lattices.lattice import Lattice, lattice_from_text, load_lattice
from percolab.lattices.shown import Table, few
from percolab.measure.clusters import Clusters
from percolab.tasks.values import take_flag

#: Phases have the numbers 1, 2 ... in uint8; 0 means no phase.
MOST_PHASES = 254
#: By the image's dimension: the possible numbers of neighbours, and the shells that contain them.
CONNECTIVITIES = {2: {4: 1, 8: 2}, 3: {6: 1, 18: 2, 26: 3}}
_IN_LIBRARY = {4: "square", 8: "square-nnn", 6: "cubic"}


def connectivity_lattice(connectivity: int, dimension: int) -> Lattice:
    """Return the lattice on which a pixel or voxel has this number of neighbours.

    4 (common side) and 8 (side or corner) in two dimensions; 6 (common face), 18 (face or edge) and
    26 (face, edge or corner) in three.  InputError for another number.
    """
    known = CONNECTIVITIES.get(dimension, {})
    is_number = not isinstance(connectivity, bool) and not np.iterable(connectivity)
    if not is_number or connectivity not in list(known):
        choices = ", ".join(map(str, known)) or "that of a lattice"
        raise InputError(
            f"connectivity = {connectivity!r}, but in {dimension} dimensions it is {choices}"
        )
    if connectivity in _IN_LIBRARY:
        return load_lattice(_IN_LIBRARY[connectivity])
    shells = f"1-{known[connectivity]}"
    text = load_lattice(f"cubic:{shells}").source
    text = text.replace(f"cubic:{shells}", f"cubic-{connectivity}")
    text = text.replace(f"simple cubic, shells {shells}", f"cubic, {connectivity} neighbours")
    return lattice_from_text(text, where=f"connectivity {connectivity}")


def has_faces(lattice: Lattice) -> bool:
    """Return whether the lattice's points are pixels or voxels, which have faces."""
    is_built = any(lattice.name == f"cubic-{n}" for n in CONNECTIVITIES[3])
    return is_built or lattice.name in _IN_LIBRARY.values()


@dataclass(frozen=True)
class Phases:
    """Phases of an image, each a tuple of its values.

    every: each value of the image is one phase, whatever the values are
    """

    values: tuple[tuple[float, ...], ...]
    every: bool = False

    @classmethod
    def parse(cls, given: Any) -> Phases:
        """Return phases from "2", "1,2", "1,2+3" or "all", a number, or a list of these.

        A comma separates phases; a plus sign, or a tuple in a list, joins values to one phase.
        InputError: not a number, or a value that is in two phases.

        >>> Phases.parse("1,2+3").values == Phases.parse([1, (2, 3)]).values
        True
        """
        if isinstance(given, str) and given.strip() == "all":
            return cls((), every=True)
        words = given.split(",") if isinstance(given, str) else given
        words = words if isinstance(words, list | tuple | np.ndarray) else [words]
        parts = (word.split("+") if isinstance(word, str) else word for word in words)
        lists = (each if isinstance(each, list | tuple) else [each] for each in parts)
        phases = tuple(tuple(map(_take_value, values)) for values in lists)
        flat = [value for values in phases for value in values]
        if not flat or len(set(flat)) < len(flat):
            twice = [value for value in flat if flat.count(value) > 1]
            what = f"{_value_text(twice[0])} is given twice" if twice else "it has no value"
            raise InputError(f"phase = {given}: {what}")
        if len(phases) > MOST_PHASES:
            raise InputError(
                f"phase: {len(phases)} phases are given, but at most {MOST_PHASES} are possible"
            )
        return cls(phases)

    @classmethod
    def of_values(cls, values: np.ndarray, name: str) -> Phases:
        """Return a phase for each value; InputError if there are too many or one is not finite."""
        if values.size > MOST_PHASES or not np.isfinite(values.astype(np.float64)).all():
            raise InputError(
                f"{name}: {values.size} values, but phase all takes at most {MOST_PHASES}, all "
                "finite; name the phases, or use a threshold"
            )
        return cls(tuple((_number(value),) for value in values.tolist()))

    @property
    def names(self) -> list[str]:
        """The names of the phases: their values, joined by a plus sign."""
        return ["+".join(map(_value_text, values)) for values in self.values]

    def number(self, image: np.ndarray) -> np.ndarray:
        """Return the number of every point's phase, uint8: 1 for the first, 0 for none."""
        numbers = np.zeros(image.shape, np.uint8)
        for number, values in enumerate(self.values, 1):
            for value in values:
                # Integers are compared with integers, exactly and without a copy as floats.
                numbers[image == (int(value) if float(value).is_integer() else value)] = number
        return numbers


def _take_value(given: Any) -> float:
    try:
        value = _number(given)
        is_finite = math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        is_finite = False
    if not is_finite:
        raise InputError(
            f"phase: {given!r}, but a phase is a number, the value of its points in the image; "
            "several are written as 1,2 (two phases) or 1+2 (one phase), or all"
        )
    return value


def _number(given: Any) -> float:
    """Return an integer with all of its digits, anything else as a float."""
    if isinstance(given, int | np.integer):
        return int(given)
    if isinstance(given, str):
        with suppress(ValueError):
            return int(given)
    return float(given)


def _value_text(value: float) -> str:
    text = str(value) if isinstance(value, int) else f"{value:.12g}"
    # A plus sign is between values alone: 1e20, not 1e+20.
    return (text if float(text) == value else repr(value)).replace("e+", "e")


@dataclass
class SiteRule:
    """The rule that says which values of an image are sites, and of which phase.

    name:       the image's name, for messages
    threshold:  sites are above it, or with ``below`` not above it; "otsu" until :meth:`read`
    phases:     the phases; None if all sites are one phase
    value:      without threshold and phases, the positive value of sites; None until it is seen
    """

    name: str
    threshold: float | str | None = None
    below: bool = False
    phases: Phases | None = None
    value: float | None = None

    @classmethod
    def make(cls, name: str, threshold: Any, below: bool, phase: Any) -> SiteRule:
        """Return the rule of these options; InputError where they exclude each other."""
        below = take_flag("below", below)
        if below and threshold is None:
            raise InputError(
                f"{name}: below says which side of a threshold is occupied: give a threshold"
            )
        if phase is not None and threshold is not None:
            raise InputError(f"{name}: phase and threshold both say what is occupied; give one")
        if threshold is not None and not (isinstance(threshold, str) and threshold == "otsu"):
            threshold = _take_threshold(threshold)
        return cls(name, threshold, below, None if phase is None else Phases.parse(phase))

    def read(self, image: np.ndarray) -> None:
        """Find Otsu's threshold, or the phases of "all", from the whole image."""
        if self.threshold is not None:
            self._check_finite(image)
        if self.threshold == "otsu":
            self.threshold = otsu_threshold(image)
        if self.phases is not None and self.phases.every:
            self.phases = Phases.of_values(np.unique(image), self.name)

    def number(self, image: np.ndarray) -> np.ndarray:
        """Return the number of every point's phase, uint8, 0 where no site is.

        image: all of it, or a part.  InputError: values that the rule does not cover.
        """
        if self.phases is not None:
            return self.phases.number(image)
        if self.threshold is not None:
            self._check_finite(image)
            above = image > self.threshold
            return (~above if self.below else above).astype(np.uint8)
        return self._one_value(image).astype(np.uint8)

    def check_absent(self, values: np.ndarray) -> None:
        """Raise InputError if the image has no value of any phase that was given."""
        if self.phases is None:
            return
        names = " and no phase ".join(self.phases.names)
        plain = [int(value) if float(value).is_integer() else float(value) for value in values]
        raise InputError(f"{self.name}: no phase {names} in it; its values are {few(plain)}")

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> SiteRule:
        """Return the rule in a configuration's record; errors as for :meth:`make`."""
        options = record.get("threshold"), record.get("below", False), record.get("phase")
        return cls.make("record", *options)

    @property
    def names(self) -> list[str]:
        """The names of the phases, in the order of their numbers."""
        if self.phases is not None:
            return self.phases.names
        if self.threshold is not None:
            return [f"{'<=' if self.below else '>'} {self.threshold:.8g}"]
        return ["occupied"]

    @property
    def record(self) -> dict[str, Any]:
        """The rule as plain JSON values, for the record of a configuration."""
        if self.phases is not None:
            return {"phase": ",".join(self.names)}
        if self.threshold is None:
            return {}
        return {"threshold": self.threshold} | ({"below": True} if self.below else {})

    def _check_finite(self, image: np.ndarray) -> None:
        if image.dtype.kind == "f" and not np.isfinite(image).all():
            wrong = image[~np.isfinite(image)].ravel()[0]
            raise InputError(
                f"{self.name}: holds {wrong}, which is neither above nor below a threshold"
            )

    def _one_value(self, image: np.ndarray) -> np.ndarray:
        """Return which entries have the only value other than 0; InputError if there are more."""
        if image.dtype == bool:
            return image
        value = image.max()
        if self.value is not None and np.isfinite(value) and value > 0:
            value = image.dtype.type(self.value)
        occupied = image == value if value != 0 else np.zeros(image.shape, bool)
        strange = image[~occupied & (image != 0)]
        if strange.size or not np.isfinite(value) or value < 0:
            shown = strange[0] if strange.size and np.isfinite(value) else value
            advice = ""
            if image.dtype.kind != "f" or np.isfinite(image).all():
                best = otsu_threshold(image)
                advice = f"; --threshold {best:g} (Otsu's value) takes what is above it"
                if image.dtype.kind in "iu":
                    advice += f", --phase {shown} what has the value {shown}"
            both = f"{shown} and {value}" if 0 < shown < value else shown
            raise InputError(
                f"{self.name}: holds {both}, but a site configuration holds 0 (vacant) and one "
                f"positive value (occupied){advice}"
            )
        if value != 0:
            self.value = value.item()
        return occupied


def _take_threshold(threshold: Any) -> float:
    """Return a threshold as a number; InputError unless it is a finite one."""
    try:
        number = float(threshold)
    except (TypeError, ValueError) as error:
        raise InputError(f'threshold = {threshold!r}, but it must be a number or "otsu"') from error
    if not np.isfinite(number):
        raise InputError(f'threshold = {threshold!r}, but it must be a finite number or "otsu"')
    return number


@dataclass(frozen=True)
class Phase:
    """The measured properties of one phase.

    name:      its values, as in "2" or "1+2", or its side of a threshold
    sites:     number of pixels or voxels of the phase
    share:     its fraction of all points of the image, from 0 to 1; for pores the porosity
    clusters:  their number
    largest:   sites of the largest cluster
    spanning:  for each open axis the fraction of the phase in clusters that touch both sides
    wrapping:  for each periodic axis the fraction in clusters that close on themselves around it
    surface:   number of faces (in two dimensions sides) between the phase and everything else, also
               across periodic axes, without the sides of the image; None where points have no faces
    """

    name: str
    sites: int
    share: float
    clusters: int
    largest: int
    spanning: dict[str, float]
    wrapping: dict[str, float]
    surface: int | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class PhaseSums:
    """Sums over clusters, by the number of their phase, 0 for none.

    count: the number of phases, including 0
    """

    def __init__(self, count: int) -> None:
        self.clusters, self.sites, self.largest = np.zeros((3, count), np.int64)
        self._crossing: tuple[dict[str, np.ndarray], ...] = ({}, {})

    def add(
        self,
        phases: np.ndarray,
        sizes: np.ndarray,
        spanning: dict[str, np.ndarray],
        wrapping: dict[str, np.ndarray],
    ) -> None:
        """Add clusters with their phases and sizes.  spanning, wrapping: by axis, bool arrays."""
        count = self.sites.size
        self.clusters += np.bincount(phases, minlength=count)
        self.sites += sum_by(phases, sizes, count)
        np.maximum.at(self.largest, phases, sizes)
        for sums, axes in zip(self._crossing, (spanning, wrapping), strict=True):
            for axis, chosen in axes.items():
                sites = sum_by(phases[chosen], sizes[chosen], count)
                sums[axis] = sums.get(axis, 0) + sites

    def measure(
        self, names: Sequence[str], num_sites: int, surface: np.ndarray | None
    ) -> list[Phase]:
        """Return properties of every phase.  num_sites: in the whole image.  surface: by phase."""
        phases = []
        for n, name in enumerate(names, 1):
            sites = int(self.sites[n])
            spanning, wrapping = (
                {axis: int(part[n]) / max(sites, 1) for axis, part in sums.items()}
                for sums in self._crossing
            )
            counts = sites, sites / num_sites, int(self.clusters[n]), int(self.largest[n])
            faces = None if surface is None else int(surface[n])
            phases.append(Phase(name, *counts, spanning, wrapping, faces))
        return phases


def measure_phases(
    names: Sequence[str], numbers: np.ndarray, clusters: Clusters, lattice: Lattice
) -> list[Phase]:
    """Return the measured properties of every phase.

    numbers: uint8, in the image's shape, the number of every site's phase, 0 for none.
    """
    count = len(names) + 1
    sums = PhaseSums(count)
    phases = numbers.ravel()[clusters.roots]
    sums.add(phases, clusters.sizes, clusters.spanning, clusters.wrapping)
    axes = clusters.topology.open_axes
    surface = count_faces(numbers, axes, count) if has_faces(lattice) else None
    return sums.measure(names, clusters.topology.num_sites, surface)


def sum_by(keys: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return the exact sums of integers for the keys 0 ... count - 1, int64 (count,)."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, keys, values)
    return sums


def count_faces(numbers: np.ndarray, open_axes: Sequence[int], count: int) -> np.ndarray:
    """Return the number of faces between every phase and its complement, int64 (count,).

    numbers: the phase of every site; the array's last axis is the lattice's first.  open_axes: axes
    of the lattice; all others are periodic.

    >>> count_faces(np.array([[1, 1, 0]]), (0, 1), 2).tolist(), count_faces(
    ...     np.array([[1, 1, 0]]), (1,), 2
    ... ).tolist()
    ([1, 1], [2, 2])
    """
    faces = np.zeros(count, np.int64)
    for axis in range(numbers.ndim):
        layers = np.moveaxis(numbers, axis, 0)
        count_faces_between(layers[:-1], layers[1:], faces)
        if numbers.ndim - 1 - axis not in open_axes:
            count_faces_between(layers[-1:], layers[:1], faces)
    return faces


def count_faces_between(one: np.ndarray, other: np.ndarray, faces: np.ndarray) -> None:
    """Add to ``faces``, by phase, the faces between neighbouring layers whose phases differ."""
    differ = one != other
    for side in (one, other):
        faces += np.bincount(side[differ], minlength=faces.size)


def phase_table(phases: Sequence[Phase]) -> Table:
    """Return a table with a row for each phase, with shares rounded to four digits."""
    first = phases[0]
    axes = [(f"share spanning {axis}", "spanning", axis) for axis in first.spanning]
    axes += [(f"share wrapping {axis}", "wrapping", axis) for axis in first.wrapping]
    faces = [] if first.surface is None else ["surface"]
    rows = [
        [phase.name, phase.sites, f"{phase.share:.4g}", phase.clusters, phase.largest]
        + [f"{getattr(phase, kind)[axis]:.4g}" for _, kind, axis in axes]
        + ([] if phase.surface is None else [phase.surface])
        for phase in phases
    ]
    headings = ["phase", "sites", "share", "clusters", "largest", *(text for text, *_ in axes)]
    return Table([*headings, *faces], rows)
