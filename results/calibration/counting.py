"""Fits of many studies, their pulls, and what is asked of them.

A pull is (value - known value) / error, the error of the known value included.  Of a set of
studies its mean says whether values are biased, its width (standard deviation) whether errors have
the right size; within is the share of studies within two errors.
"""

from __future__ import annotations

import json
import timeit
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import sampling
from sampling import Counts, System

from percolab.analysis import scaling
from percolab.analysis.averaging import FittedThreshold
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.quantities import BlockMoments, choose_quantities, list_quantities
from percolab.analysis.quantity_fits import JointInput, analyse_quantities
from percolab.analysis.theory.known_exponents import correction_exponent
from percolab.analysis.theory.potts import (
    critical_bond_probability,
    potts_exponents,
    spin_correction,
)
from percolab.analysis.threshold import fit_threshold
from percolab.errors import AnalysisError
from percolab.lattices.lattice import load_lattice

#: Samples of each size of a study, and how many studies at most.
STUDIES = ((4_000, 200), (100_000, 50), (3_000_000, 10))
#: A known value judges errors that are so many times its own, or larger.
_SHARPER = 3.0
#: What is asked: of means over all sets and of each, of the width over all, of the share within two
#: errors over all, and of the share of studies without an answer.
MEAN, MEAN_EACH, WIDTH, WITHIN, UNANSWERED = 0.3, 0.7, (0.7, 1.1), 0.94, 0.01
#: Studies of a set whose width says something by itself: it is known to 13 % then.
_ENOUGH = 30
#: A fit that is broken on purpose: without the nonlinear scaling field, or with narrow priors.
BROKEN = ("field", "priors")


@dataclass
class Pulls:
    """Values of one quantity in many studies with their errors, and what is known of it."""

    known: float
    known_error: float
    values: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    statistical: list[float] = field(default_factory=list)

    def add(self, value: float, error: float, statistical: float = np.nan) -> None:
        """Add a study."""
        self.values.append(value)
        self.errors.append(error)
        self.statistical.append(statistical)

    @property
    def pulls(self) -> np.ndarray:
        """The pulls of the studies that have an answer."""
        values, errors = np.array(self.values), np.array(self.errors)
        found = (values - self.known) / np.hypot(errors, self.known_error)
        return found[np.isfinite(found)]

    @property
    def is_judged(self) -> bool:
        """Whether the value is known well enough, and there is more than one study."""
        if self.pulls.size < 2:
            return False
        return bool(median(self.errors) >= _SHARPER * self.known_error)

    def cells(self) -> list[str]:
        """Return mean, width and share within two errors as text."""
        if self.pulls.size < 2:
            return ["", "", ""]
        mean, width, within = moments(self.pulls)
        mark = "" if self.is_judged else " *"
        return [f"{mean:+.2f}{mark}", f"{width:.2f}", f"{within:.0%}"]


def median(values: Sequence[float]) -> float:
    """Return the median of the values that are there, NaN of none."""
    found = np.array(values, float)
    found = found[np.isfinite(found)]
    return float(np.median(found)) if found.size else float("nan")


def moments(pulls: np.ndarray) -> tuple[float, float, float]:
    """Return mean, width and the share within two errors."""
    return float(pulls.mean()), float(pulls.std(ddof=1)), float(np.mean(np.abs(pulls) <= 2))


@dataclass
class StudySet:
    """Studies of one system with one number of samples, and the pulls of what they were read for.

    aside: why it judges nothing, or "".  quantities: by name.  problems: studies without an answer.
    p_values: of the fits.  shifts: by how many errors p_c moves with priors twice as wide.
    """

    name: str
    aside: str
    samples: int
    quantities: dict[str, Pulls]
    problems: int = 0
    p_values: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)

    @property
    def studies(self) -> int:
        """How many studies there are."""
        return max((len(pulls.values) for pulls in self.quantities.values()), default=0)

    def add(self, fit: FittedThreshold) -> None:
        """Add the fit of a study for p_c."""
        self.problems += fit.problem is not None
        self.quantities["p_c"].add(fit.threshold, fit.threshold_error, fit.statistical_error)
        self.quantities["1/nu"].add(fit.y_t, fit.y_t_error)
        self.p_values.append(fit.chi_square.p_value)
        self.shifts.append(abs(fit.prior_shift) / fit.threshold_error)


def curves_of_study(counts: Counts, study: np.ndarray, samples: int) -> list[SpanningCurve]:
    """Return the curves of a study, int64 (n, m): of all its sizes."""
    found = []
    for size, row, spanning in zip(counts.sizes, counts.p, study, strict=True):
        held = ~np.isnan(row)
        samples_of = np.array([samples])
        found.append(SpanningCurve(int(size), row[held], samples_of, spanning[None, held]))
    return found


def fit_options(boundary: Sequence[str]) -> dict[str, Any]:
    """Return omega and 1/nu of a default fit."""
    periodic = set(boundary) == {"periodic"}
    omega = correction_exponent(len(boundary), periodic=periodic).value
    return {"omega": omega, "y_t": potts_exponents(len(boundary), 1).get("1/nu")}


def threshold_sets(
    systems: Sequence[System], data: Path, *, broken: str | None, most: int
) -> Iterator[StudySet]:
    """Yield the fitted studies of every system that has a file."""
    for system in systems:
        path = data / f"{system.name}.npz"
        if path.exists():
            counts = Counts.read(path)
            for samples, number in STUDIES:
                studies = counts.studies(samples, min(number, most))
                if len(studies) > 1:
                    yield threshold_set(system, counts, studies, samples, broken)


def threshold_set(
    system: System, counts: Counts, studies: np.ndarray, samples: int, broken: str | None
) -> StudySet:
    """Fit studies, int64 (studies, n, m)."""
    options = fit_options(system.boundary)
    y_t = options["y_t"]
    assert y_t is not None
    quantities = {"p_c": Pulls(*system.known()), "1/nu": Pulls(y_t.value, y_t.error)}
    found = StudySet(system.name, system.aside, samples, quantities)
    with broken_on_purpose(broken):
        for study in studies:
            curves = curves_of_study(counts, study, samples)
            try:
                fit = fit_threshold(curves, priors=0.1 if broken == "priors" else 1.0, **options)
            except AnalysisError:
                found.problems += 1
                continue
            found.add(fit)
    return found


def broken_on_purpose(broken: str | None) -> ExitStack:
    """Return a context in which n and m have no room, if the field is to be left out."""
    stack = ExitStack()
    if broken == "field":
        stack.enter_context(mock.patch.object(scaling, "FIELD_WIDTH", 1e-6))
    return stack


def spin_sets(data: Path, most: int) -> Iterator[StudySet]:
    """Yield the fitted studies of spins that have a file: p_c, of which K_c is a function."""
    for name in sampling.SPINS:
        path = data / f"spins-{name}.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                yield spin_set(name, dict(file), most)


def spin_set(name: str, stored: dict[str, np.ndarray], most: int) -> StudySet:
    """Fit the studies of one model of spins by all their quantities, as `percolab fit` does."""
    study = sampling.spin_study(name)
    dimension, states = len(study.boundary), study.states
    p_c = critical_bond_probability(study.structure.name, states)
    y_t = potts_exponents(dimension, states)["1/nu"]
    assert p_c is not None
    quantities = {"p_c": Pulls(p_c.value, p_c.error), "1/nu": Pulls(y_t.value, y_t.error)}
    found = StudySet(f"spins, {name}", "", sampling.SPIN_SAMPLES, quantities)
    held = [
        item.name
        for item in list_quantities(study.boundary, spins=True)
        if all(f"{size} {name}" in stored for name in item.needs for size in study.sizes)
    ]
    chosen = choose_quantities(["all"], study.boundary, held)
    omegas = [spin_correction(dimension, states, periodic=True).value] * len(chosen)
    for number in range(most):
        moments_of_study = [_chains(stored, size, number) for size in study.sizes]
        if moments_of_study[0].samples.size == 0:
            break
        try:
            fit = analyse_quantities(JointInput(moments_of_study, chosen, omegas, y_t))
        except AnalysisError:
            found.problems += 1
            continue
        found.add(fit)
    return found


def _chains(stored: dict[str, np.ndarray], size: int, number: int) -> BlockMoments:
    """Return the chains of one study and size."""
    each, sweeps = int(stored[f"chains_{size}"]), int(stored[f"sweeps_{size}"])
    own, begin = slice(number * each, (number + 1) * each), f"{size} "
    sums = {
        key.removeprefix(begin): array[own].astype(float)
        for key, array in stored.items()
        if key.startswith(begin)
    }
    chains = len(next(iter(sums.values())))
    return BlockMoments(size, stored[f"p_{size}"], np.full(chains, sweeps), sums)


#: Small studies of cluster sizes and of trees: lattice, model, boundary, sizes, method.
LAWS = {
    "square-bond-open": ("square", "bond", "open", (8, 16, 32, 64), "grid"),
    "square-bond-periodic": ("square", "bond", "periodic", (8, 16, 32, 64), "grid"),
    "triangular-site-open": ("triangular", "site", "open", (8, 16, 32, 64), "grid"),
    "cubic-bond-open": ("cubic", "bond", "open", (6, 8, 12, 16), "grid"),
    "cubic-bond-periodic": ("cubic", "bond", "periodic", (6, 8, 12, 16), "grid"),
    "bcc-site-open": ("bcc", "site", "open", (6, 8, 12, 16), "grid"),
    "square-tree": ("square", "bond", "open", (8, 16, 32, 64), "tree"),
    "triangular-tree": ("triangular", "bond", "open", (8, 16, 32, 64), "tree"),
    "cubic-tree": ("cubic", "bond", "open", (6, 8, 12, 16), "tree"),
}


def law_values(name: str, number: int) -> dict[str, list[float]]:
    """Sample a study of 4000 samples of each size; return value and error of every exponent.

    AnalysisError: there is no fit.
    """
    import percolab
    from percolab.analysis.stored_fits import compute_exponents, fit_results
    from percolab.analysis.trees import fit_trees

    lattice, model, boundary, sizes, method = LAWS[name]
    seed = zlib.crc32(f"{name} {number}".encode())
    options: dict[str, Any] = {"samples": 4_000, "seed": seed, "device": "cpu", "workers": 1}
    if method == "tree":
        trees = percolab.sweep(lattice, L=sizes, method="tree", boundary=boundary, **options)
        found = fit_trees(trees).exponents
        return {
            f"D along {x}": [law.exponent.value, law.exponent.error] for x, law in found.items()
        }
    results = percolab.sweep(
        lattice, L=sizes, model=model, boundary=boundary, measure="sizes", **options
    )
    items = compute_exponents(results, fit_results(results)).exponents
    return {f"{item.name}, {item.source.split(', s from')[0]}": [item.value, item.error]
            for item in items}  # fmt: skip


def read_laws(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of studies, [] where there is none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


#: D of the path from side to side in two dimensions, that of watersheds: E. Fehr et al., Phys. Rev.
#: E 86, 011117 (2012).
_PATH = {2: (1.2168, 0.0005)}


def law_sets(path: Path) -> Iterator[StudySet]:
    """Yield the exponents of all stored studies, by system."""
    lines = read_laws(path)
    for name, (lattice, _, _, _, method) in LAWS.items():
        own = [line for line in lines if line["name"] == name]
        dimension = load_lattice(lattice).dimension
        known = potts_exponents(dimension, 1)
        quantities: dict[str, Pulls] = {}
        problems = 0
        for line in own:
            problems += "failed" in line
            for key, (value, error) in line.get("values", {}).items():
                short = key.partition(",")[0].partition(" along")[0]
                of = _PATH.get(dimension) if short == "D" else _pair(known.get(short))
                if of is not None:
                    error = np.nan if error is None else error
                    quantities.setdefault(key, Pulls(*of)).add(value, error)
        if own:
            yield StudySet(f"{name} ({method})", "", 4_000, quantities, problems)


def _pair(known: Any) -> tuple[float, float] | None:
    return None if known is None else (known.value, known.error)


def verdict(sets: Sequence[StudySet], names: Sequence[str]) -> list[str]:
    """Return a line for everything that is asked, whether it holds."""
    lines = []
    problems, studies = sum(item.problems for item in sets), sum(item.studies for item in sets)
    if studies:
        said = f"{problems} of {studies} studies without an answer (1 %)"
        lines.append(_said(problems <= UNANSWERED * studies, said))
    for name in names:
        own = [(item, item.quantities[name]) for item in sets if name in item.quantities]
        own = [(item, pulls) for item, pulls in own if pulls.is_judged]
        if own:
            lines += _verdict_of(name, own)
    return lines


def _verdict_of(name: str, own: Sequence[tuple[StudySet, Pulls]]) -> Iterator[str]:
    """Yield a line for everything that is asked of one quantity."""
    every = np.concatenate([pulls.pulls for _, pulls in own])
    mean, width, within = moments(every)
    worst_set, worst = max(own, key=lambda pair: abs(pair[1].pulls.mean()))
    far = [item for item, pulls in own if abs(pulls.pulls.mean()) > MEAN_EACH]
    yield _said(abs(mean) <= MEAN, f"{name}: mean of {every.size} pulls {mean:+.3f} (0.3)")
    yield _said(
        not far,
        f"{name}: {len(far)} of {len(own)} sets with a mean beyond 0.7; the largest "
        f"{worst.pulls.mean():+.2f} of {worst.pulls.size}, {worst_set.name}, "
        f"{worst_set.samples:.0e} samples",
    )
    yield _said(WIDTH[0] <= width <= WIDTH[1], f"{name}: width over all {width:.3f} (0.7 to 1.1)")
    yield _said(within >= WITHIN, f"{name}: {within:.1%} within two errors over all (94 %)")
    large = [moments(pulls.pulls) for _, pulls in own if pulls.pulls.size >= _ENOUGH]
    if large:
        widths, least = np.array([width for _, width, _ in large]), min(item[2] for item in large)
        wide, narrow = np.sum(widths > WIDTH[1]), np.sum(widths < WIDTH[0])
        yield (
            f"* {name}: of {len(large)} sets with {_ENOUGH} studies or more {wide} have a width "
            f"above 1.1 and {narrow} below 0.7 (from {widths.min():.2f} to {widths.max():.2f}, "
            f"median {np.median(widths):.2f}); the least share within two errors is {least:.0%}"
        )


def _said(holds: bool, what: str) -> str:
    return f"* {'holds' if holds else 'DOES NOT HOLD'}: {what}"


def table(sets: Sequence[StudySet], names: Sequence[str]) -> list[str]:
    """Return one line a set as Markdown, for quantities with these names."""
    head = ["set", "samples", "studies"]
    head += [cell for name in names for cell in (f"{name}: mean", "width", "within 2")]
    head += ["error of p_c", "statistical", "problems", "least p-value", "prior shift"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for item in sets:
        p_c = item.quantities[names[0]]
        cells = [item.name + (f" ({item.aside})" if item.aside else ""), f"{item.samples:.0e}"]
        cells.append(str(len(p_c.values)))
        cells += [cell for name in names for cell in item.quantities[name].cells()]
        cells += [f"{median(kind):.1e}" for kind in (p_c.errors, p_c.statistical)]
        cells.append(str(item.problems))
        cells.append(f"{min(item.p_values, default=np.nan):.1e}")
        cells.append(f"{median(item.shifts):.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def law_table(sets: Sequence[StudySet]) -> list[str]:
    """Return one line for every exponent of every system as Markdown."""
    lines = ["| system | exponent | studies | mean | width | within 2 | error |", "|---" * 7 + "|"]
    for item in sets:
        for name, pulls in item.quantities.items():
            cells = [item.name, name, str(len(pulls.values)), *pulls.cells()]
            lines.append("| " + " | ".join([*cells, f"{median(pulls.errors):.1e}"]) + " |")
    return lines


def seconds_of_fit(system: System, data: Path) -> float:
    """Return the seconds that a default fit of one study takes, the least of several."""
    counts, samples = Counts.read(data / f"{system.name}.npz"), STUDIES[0][0]
    curves = curves_of_study(counts, counts.studies(samples, 1)[0], samples)
    options = fit_options(system.boundary)
    return min(timeit.repeat(lambda: fit_threshold(curves, **options), number=1, repeat=7))
