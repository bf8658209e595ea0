"""The view of stored results for figures, and the declaration of a kind of figure."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from percolab.analysis.collapse import Collapse
from percolab.analysis.curves import SpanningCurve
from percolab.analysis.exponents import MIN_REPLICAS, ExponentFit
from percolab.analysis.maxima import Estimate
from percolab.analysis.spin_fit import (
    SpinFit,
    few_chains,
    fit_spins,
    short_blocks,
    start_differences,
)
from percolab.analysis.stored_data import default_observable, read_curves
from percolab.analysis.stored_fits import (
    compute_collapse,
    compute_exponents,
    list_notes,
    only_threshold,
    read_estimates,
)
from percolab.analysis.theory.potts import critical_bond_probability, critical_point
from percolab.analysis.threshold import ThresholdFit
from percolab.bonds.model import Model
from percolab.errors import AnalysisError, InputError, UserError
from percolab.figures import Exact
from percolab.figures.math_text import plain_text, symbol_text
from percolab.figures.sheet import Target
from percolab.figures.study_kinds import KindInFigures, find_in_figures
from percolab.lattices.lattice import AXIS_NAMES, Lattice, library_name
from percolab.lattices.removal import describe_removal
from percolab.store.joined import joined_if_whole
from percolab.store.results import StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.study import Study

#: Every number drawn, as plain JSON values, and a figure with these.
Numbers = Mapping[str, Any]
Drawn = tuple[Any, dict[str, Any]]
Found = TypeVar("Found")
#: Cluster sizes that are collapsed: the name of the exponent, and its sign as a power of L.
_COLLAPSED = {"largest": ("beta/nu", -1), "chi": ("gamma/nu", 1)}


def find_or_problem(find: Callable[[], Found], error: type[UserError]) -> Found | str:
    """Return the result of ``find``, or the message of an error of this type."""
    try:
        return find()
    except error as problem:
        return str(problem)


def found(given: Found | str) -> Found:
    """Return a result of :func:`find_or_problem`; AnalysisError if it is a message."""
    if isinstance(given, str):
        raise AnalysisError(given)
    return given


@dataclass(eq=False)
class StudyView:
    """Stored results with the options that their figures share.

    observable: a spanning observable, None for the default.  fitted: returns the fit, or raises
    AnalysisError; called once at most.  bootstrap: replicas for the thresholds of single sizes.
    """

    results: StoredResults
    fitted: Callable[[], ThresholdFit]
    observable: str | None = None
    bootstrap: int = 200

    @property
    def study(self) -> Study:
        return self.results.study

    @cached_property
    def of_kind(self) -> KindInFigures:
        return find_in_figures(self.results)

    @cached_property
    def name(self) -> str:
        """The probability drawn; InputError if there is none."""
        return self.observable or default_observable(self.results)

    @cached_property
    def symbol(self) -> str:
        """Its symbol in mathematics: R_y of spanning_y, W_y of wrapping_y, R of spanning."""
        symbols = {column.name: column.symbol for column in self.study.observables}
        return symbol_text(symbols[self.name])

    @property
    def model(self) -> Model:
        return self.study.draw

    @cached_property
    def fit_or_problem(self) -> ThresholdFit | str:
        """The fit, or the reason in one line why there is none."""
        return self.of_kind.no_curve or find_or_problem(self.fitted, AnalysisError)

    @cached_property
    def spin_fit_or_problem(self) -> SpinFit | str:
        """The fit of the transition of spins, or the reason in one line why there is none."""
        return find_or_problem(partial(fit_spins, self.results), UserError)

    @property
    def spin_fit(self) -> SpinFit:
        return found(self.spin_fit_or_problem)

    @property
    def fit(self) -> ThresholdFit:
        return found(self.fit_or_problem)

    @cached_property
    def notes(self) -> list[str]:
        """Warnings that every figure of these samples must show."""
        notes = list(list_notes(self.results))
        differ = [] if self.study.kind.independent else start_differences(self.measured())
        if differ:
            worst = max(differ, key=lambda difference: abs(difference.z))
            notes.append(
                f"chains still depend on their start, {worst.series} at L = {worst.L}, p = "
                f"{worst.p:.6g} by {abs(worst.z):.3g} standard errors: the burn-in is too short, "
                "or the transition is of first order, and error bars cannot be trusted"
            )
        if self.study.is_serial:
            notes.append("one long chain at every size and p: errors are the scatter of its blocks")
            notes += filter(None, [short_blocks(self.measured())])
        if not self.study.kind.independent:
            notes += filter(None, [few_chains(self.measured())])
        return notes

    @property
    def title(self) -> str:
        removed = describe_removal(self.study.order)
        return f"{self.model.title}, {self.structure_title}{removed}{self._sides}"

    @property
    def _sides(self) -> str:
        """The boundary in titles of spins, since nothing else in a figure shows it."""
        kinds = self.study.boundary
        if not self.model.chains or not isinstance(self.study.structure, Lattice):
            return ""
        axes = [AXIS_NAMES[axis] for axis, kind in enumerate(kinds) if kind == "periodic"]
        along = f" along {' and '.join(axes)}" if len(axes) < len(kinds) else ""
        return f", periodic{along}" if axes else ", open sides"

    @property
    def structure_title(self) -> str:
        """The name of the lattice or graph in figures."""
        return plain_text(self.study.structure.title)

    @cached_property
    def exact(self) -> Exact | None:
        """The published p_c and its source; None if there is none."""
        if self.model.chains:
            name = library_name(self.study.structure)
            spins = critical_bond_probability(name, self.model.states)
            about = spins and f"at the critical temperature [{spins.reference}]"
            return (spins.value, str(about)) if spins is not None else None
        known = self.study.structure.threshold(self.study.model)
        if known is None or not self.study.has_published_threshold:
            return None
        return known.value, f"{known.expression or 'published'} [{known.cite or known.reference}]"

    @cached_property
    def critical_temperature(self) -> Exact | None:
        """The published k_B T_c / J and its source; None if there is none."""
        known = critical_point(library_name(self.study.structure), self.model.states)
        if known is None:
            return None
        scale = 2 if self.model.name == "ising" else 1
        return scale / known.value, f"[{known.reference}]"

    @cached_property
    def median(self) -> Estimate | None:
        """The p where half of the samples of a graph's only size span; None if there is none."""
        if self.study.structure.is_scalable or len({i.task.size for i in self.measured()}) > 1:
            return None
        try:
            sizes = read_estimates(self.results, bootstrap=self.bootstrap)
        except UserError:
            return None
        medians = [estimate for estimate in sizes[0].estimates if estimate.name == "median"]
        return medians[0] if medians and np.isfinite(medians[0].p) else None

    @cached_property
    def exponents(self) -> ExponentFit | None:
        """The exponents at p_c, or at the only p, if cluster sizes give them."""
        try:
            replicas = max(self.bootstrap, MIN_REPLICAS)
            at = only_threshold(self.results) or self.fit
            return compute_exponents(self.results, at, bootstrap=replicas)
        except AnalysisError:
            return None

    @cached_property
    def collapses(self) -> list[tuple[Collapse, float]]:
        """The collapses with the fit's p_c and 1/nu; AnalysisError if there are none.

        Cluster sizes are collapsed over the same range of x, with the exponents read off at p_c,
        whose errors are the second element of each pair.
        """
        fit = self.fit
        options: dict[str, Any] = {"threshold": fit.threshold, "y_t": fit.y_t, "bootstrap": 0}
        options["min_size"] = min(fit.sizes)
        first = compute_collapse(self.results, self.name, exponent=0.0, **options)
        collapses = [(first, 0.0)]
        options["reach"] = float(np.abs(first.x).max())
        exponents = self.exponents.exponents if self.exponents is not None else ()
        with suppress(AnalysisError):
            for name, (exponent, sign) in _COLLAPSED.items():
                # With few samples an exponent may have no value.
                known = [e for e in exponents if e.name == exponent and np.isfinite(e.value)]
                for each in known[:1]:
                    power = sign * each.value
                    collapse = compute_collapse(self.results, name, exponent=power, **options)
                    collapses.append((collapse, each.error))
        return collapses

    def measured(self, method: str | None = None) -> list[TaskResult]:
        """Return the tasks that have blocks, of one method or all, ascending in L and then p."""
        tasks = [
            task
            for task in joined_if_whole(self.results).tasks.values()
            if task.blocks and task.task.method == (method or task.task.method)
        ]
        return sorted(tasks, key=lambda task: (task.task.size, task.task.seed, task.task.p[:1]))

    @property
    def curves(self) -> list[SpanningCurve]:
        return read_curves(self.results, self.name)

    @property
    def num_sites(self) -> dict[int, int]:
        return {each.task.size: each.task.num_sites for each in self.measured()}

    def no_spins(self) -> str | None:
        """Return why there are no thermal means, or None."""
        return None if self.model.has_spins else "sites have no spins (--model ising)"

    def no_independent_samples(self) -> str | None:
        try:
            default_observable(self.results)
        except InputError as error:
            return self.of_kind.no_curve or str(error)
        return self.of_kind.no_curve or None

    def no_fit(self) -> str | None:
        """Return why there is no fit of all sizes, or None."""
        problem = self.no_independent_samples() or self.fit_or_problem
        return problem if isinstance(problem, str) else None

    def no_grid(self) -> str | None:
        """Return why there are no cluster sizes to draw, or None."""
        tasks = self.measured("grid")
        if not tasks:
            return f"cluster sizes are measured on a grid of p, not by method {self.study.method}"
        whole = all(task.has_cluster_sizes for task in tasks)
        return None if whole else "not all columns of cluster sizes are in the file"

    def no_clusters(self) -> str | None:
        tasks = [task for task in self.measured() if not task.holds_thresholds]
        known_anywhere = tasks and not any(task.holds_columns for task in tasks)
        if known_anywhere and all(task.has_cluster_sizes for task in tasks):
            return None
        return self.no_grid()

    def how_to_measure(self, word: str) -> str:
        """Return the options of a sweep that measure a word of --measure."""
        by_grid = " and --method grid" if not self.study.kind.codec.holds_columns else ""
        return f"sweep with --measure {word}{by_grid}"

    def find_threshold(self) -> tuple[float, str]:
        """Return p_c of the fit, or without a fit the grid point taken for p_c, and its source."""
        try:
            return self.fit.threshold, "the fit of all sizes"
        except UserError:
            return self.taken_for_threshold()

    def taken_for_threshold(self) -> tuple[float, str]:
        """Return the grid point of the largest size that is taken for p_c, and the reason."""
        largest = self.measured("grid")[-1]
        p = np.array(largest.task.p)
        known = self.exact
        if known is not None and p[0] <= known[0] <= p[-1]:
            at = int(np.argmin(np.abs(p - known[0])))
            return float(p[at]), "the p nearest to the published threshold, without an error"
        at = int(np.argmax(largest.column("second_largest").sum(axis=0)))
        source = "the p at which the second largest cluster is largest, without an error"
        return float(p[at]), source


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: its meaning, the origin of its error bars, and how it is drawn.

    help: its line in ``percolab plot --help``.  problems: checks, each of which returns None, or
    the reason in one line why results do not give the figure, or raises it as AnalysisError.  alt:
    returns a description in sentences from the numbers drawn.  A kind uses only stored results, so
    that a figure can be made from a file.
    """

    help: str
    meaning: str
    errors: str
    problems: tuple[Callable[[StudyView], str | None], ...]
    draw: Callable[[StudyView, Target], Drawn]
    alt: Callable[[Mapping[str, Any]], list[str]]

    def alt_text(self, numbers: Mapping[str, Any]) -> str:
        """Return what the figure shows, or else its meaning, for readers who cannot see it."""
        return " ".join(filter(None, self.alt(numbers))) or self.meaning


# Descriptions that several kinds of figures share


def describe_panels(numbers: Numbers) -> list[str]:
    """Return a description of thermal means: the range of each panel's values."""
    panels = numbers["panels"]
    sentences = [sizes_and_range(panels[0]["curves"])]
    for panel in panels:
        largest = panel["curves"][-1]
        values = [value for value in largest["values"] if value is not None]
        if values:
            name = panel["quantity"].replace("_", " ")
            ends = f"from {min(values):.4g} to {max(values):.4g}"
            sentences.append(f"The {name} of L = {largest['L']} is {ends}.")
    return sentences


def sizes_and_range(curves: Sequence[Numbers]) -> str:
    """Return a sentence with the number of sizes and the range of p or temperature."""
    sizes = sorted({curve["L"] for curve in curves})
    if not sizes:
        return ""
    shown = f"L = {sizes[0]}"
    if len(sizes) > 1:
        shown = f"{len(sizes)} sizes, L = {sizes[0]} to {sizes[-1]}"
    key, name = ("temperature", "k_B T / J") if "temperature" in curves[0] else ("p", "p")
    ends = [curve[key] for curve in curves]
    flat = [x for own in ends for x in (own if isinstance(own, list) else [own])]
    if not flat or min(flat) == max(flat):
        return f"{shown}."
    return f"{shown}, {name} from {min(flat):.4g} to {max(flat):.4g}."


def goes_from(what: str, curve: Numbers) -> str:
    values = curve["probability"]
    return f"{what} goes from {values[0]:.3g} to {values[-1]:.3g} at L = {curve['L']}."
