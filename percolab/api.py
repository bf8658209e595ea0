"""The Python interface: the functions of the command line, for scripts and notebooks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from percolab.analysis.maxima import SizeEstimates
from percolab.analysis.quantity_fits import QuantityAnalysis
from percolab.analysis.roots import (
    RootFit,
    SizeRoot,
    coupling_rows,
    fit_roots,
    known_threshold,
    threshold_record,
    why_no_roots,
)
from percolab.analysis.shared_fit import fit_shared
from percolab.analysis.spin_fit import SpinFit, fit_spins
from percolab.analysis.statistics import Floats
from percolab.analysis.stored_data import choose_observable
from percolab.analysis.stored_fits import Prior, fit_results, read_estimates
from percolab.analysis.table_fit import TableFit, fit_series
from percolab.analysis.text import describe_fit, estimate_table
from percolab.analysis.threshold import ThresholdFit
from percolab.analysis.trees import TreeFit, fit_trees
from percolab.analysis.value import NO_VALUE, Value
from percolab.analysis.wrapping_fit import (
    FIXED_FIT,
    fit_searched,
    fit_wrapping,
    search_options,
)
from percolab.cli.export import FORMATS, find_format, write_table
from percolab.cli.progress import LoggedProgress, root_text
from percolab.cli.report import PAGES, write_report
from percolab.cli.status import status_record
from percolab.configurations.levels import find_given_levels
from percolab.errors import InputError, nearest, refuse_given
from percolab.figures import save_figure
from percolab.figures.kinds import study_figure
from percolab.figures.sheet import Target
from percolab.figures.study_view import Drawn
from percolab.figures.table import draw_table
from percolab.lattices.shown import Shown, Table, few
from percolab.lattices.structure import Structure
from percolab.run.request import Observer, take_observer
from percolab.run.runner import run_study
from percolab.run.search_steps import Goal
from percolab.run.threshold import find_threshold, refuse_graph, request_threshold
from percolab.store.merging import merge as merge_results
from percolab.store.output_files import check_output, check_suffix
from percolab.store.results import ResultsWriter, StoredResults, encode, read_results, take_results
from percolab.tables.flat import long_table
from percolab.tables.frames import to_pandas, to_xarray
from percolab.tables.given import GivenTable, read_table
from percolab.tasks.settings import MAX_SEED, Settings, takes_settings, takes_some_settings
from percolab.tasks.study import check_probabilities
from percolab.tasks.study_file import make_request
from percolab.tasks.values import (
    ascending,
    check_choice,
    take_flag,
    take_integer,
    take_integer_in,
    take_number,
    take_path,
    take_probabilities,
    take_results_path,
)

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from percolab.trees.levels import Levels

_LOGGER = logging.getLogger("percolab")


class Results(StoredResults):
    """The results of :func:`sweep` and :func:`open_results`: the study, its samples, and the runs.

    study: what was sampled.  tasks: the stored numbers of each size and p grid, by task id
    (:class:`percolab.store.task_result.TaskResult`).  runs: one record for each round of sampling.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
    >>> results
    <Results of square, L = 8, 16: 200 samples in 2 tasks>
    """

    def _repr_html_(self) -> str:
        """Return the study and the samples of every size as small tables."""
        study = self.study
        p = "placed by a pilot" if study.p is None else few(study.p)
        facts = {
            "of": study.structure.title,
            "model": study.model,
            "boundary": ", ".join(study.boundary) or "none",
            "method": study.method,
            **({"p": p} if study.kind.fixed_p != () else {}),
            "seed": ", ".join(map(str, self.seeds)),
        }
        rows = [
            (each.task.size, each.task.num_sites, len(each.task.p) or "all", each.num_samples)
            for each in self.tasks.values()
        ]
        head = Table((), list(facts.items())).to_html(f"Results of {study.structure.name}")
        if not rows:
            return f"{head}<p>no samples yet</p>"
        return head + Table(("L", "sites", "p values", "samples"), rows).to_html("Samples")

    def fit(self, observable: str | None = None, **options: Any) -> ThresholdFit | Any:
        """Estimate the threshold, as :func:`percolab.fit` does, and return the same objects."""
        return fit(self, observable, **options)

    def estimates(self, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
        """Return the thresholds of each single size, as :func:`percolab.estimates` does."""
        return estimates(self, bootstrap=bootstrap)

    def plot(
        self,
        out: str | Path | None = None,
        observable: str | None = None,
        *,
        kind: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Figure:
        """Draw the study and return the figure, as :func:`percolab.plot` does."""
        return plot(self, out, observable, kind=kind, ax=ax, **options)

    def to_pandas(self, *, sizes: bool = False) -> pandas.DataFrame:
        """Return means and standard errors, as :func:`percolab.to_pandas` does."""
        return to_pandas(self, sizes=sizes)

    def to_xarray(self) -> xarray.Dataset:
        """Return means and standard errors, as :func:`percolab.to_xarray` does."""
        return to_xarray(self)

    def means(
        self,
        observable: str,
        L: int | None = None,
        *,
        p: float | str | Sequence[float] | None = None,
        seed: int | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Return p, means and standard errors of an observable at one size, float64 (points,).

        observable: a name of ``percolab observables``.  L: one of the sizes, needed if there are
        several.  p: for methods "threshold", which only has R_L(p), and "microcanonical"; by
        default values across the transition.  seed: needed if merged results have several.  An
        error is NaN where there is only one block or chain.

        InputError: an observable, a size or a seed that the results do not have.

        >>> results = sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
        >>> p, mean, error = results.means("spanning_y", 16)
        >>> p.tolist()
        [0.4, 0.6]
        """
        _check_named(observable)
        if p is not None:
            p = ascending(take_probabilities("p", p) or ())
            check_probabilities(p)
        header, rows = long_table(self, p)
        at = {name: header.index(name) for name in header}
        target = {
            "observable": observable,
            "L": None if L is None else take_integer("L", L),
            "seed": None if seed is None else take_integer("seed", seed),
        }
        for key, value in target.items():
            known = sorted({row[at[key]] for row in rows})
            if value is None and len(known) > 1:
                raise InputError(f"{key}: give one of {', '.join(map(str, known))}")
            if value is not None and value not in known:
                hint = nearest(observable, known) if key == "observable" else ""
                there = hint or f"there: {', '.join(map(str, known)) or 'no samples'}"
                raise InputError(f"{key} = {value!r} is not in these results; {there}")
            rows = [row for row in rows if value is None or row[at[key]] == value]
        rows.sort(key=lambda row: row[at["p"]])
        mean, error = (
            np.array([row[at[name]] for row in rows], float) for name in ("mean", "error")
        )
        return np.array([row[at["p"]] for row in rows]), mean, error

    def save(self, path: str | Path) -> None:
        """Write the results to a new file, as ``sweep(..., out=path)`` would have.

        InputError: there is a file of this name, or it cannot be written.
        """
        with ResultsWriter(take_results_path("out", path)) as writer:
            if writer.path.exists():
                raise InputError(f"{path}: exists already; save writes a new file")
            writer.save(self)

    def summary(self, *, bootstrap: int = 200) -> str:
        """Return what ``percolab fit`` prints: the fit of all sizes as a table in text.

        For a graph or a Bethe lattice: the thresholds of each single size.  bootstrap: the number
        of replicas from which their errors come.  AnalysisError: the samples give no threshold.
        """
        _take_replicas(bootstrap)
        if not (self.study.structure.is_scalable or self.study.kind.name == "trees"):
            return estimate_table(self.estimates(bootstrap=bootstrap))
        return describe_fit(self.fit(), self.study)

    def show(
        self, L: int | None = None, p: float | None = None, *, sample: int = 0, **options: Any
    ) -> Figure:
        """Draw the clusters of one sample of the study, as ``percolab show`` does.

        L: one of the sizes, by default the smallest.  p: by default the middle one of that size's
        grid; required for method "threshold".  sample: number of the sample, for spins of the
        chain.  options: ``out``, a file to write the figure to as well; for spins ``sweeps``, the
        updates since the start of the chain.

        ``numbers`` of the figure has what is drawn, and the clusters that span or wrap.
        InputError: a graph, a size that is too large to be drawn, or no p.

        >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=100, device="cpu")
        >>> results.show(16).numbers["title"]
        'square, $L = 16$, $p = 0.5$, seed 1'
        """
        from percolab.configurations.show import show

        study = self.study
        size = study.sizes[0] if L is None else take_integer("L", L)
        taken = sorted(options.keys() - {"sweeps", "out"})
        if taken:
            takes = "show takes L, p, sample, sweeps, out"
            raise InputError(f"{taken[0]}: the study has its own; {takes}")
        if p is None:
            grids = [result.task.p for result in self.of_size(size) if result.task.p]
            if not grids:
                raise InputError(f"p: give it, as there is no p of L = {size} here")
            p = grids[0][len(grids[0]) // 2]
        if "update" in study.kind.settings:
            options["update"] = study.update
        figure: Figure = show(
            study.structure, size, take_number("p", p), sample=sample, seed=study.seed,
            rng=study.rng, model=study.model, boundary=study.boundary or None, **options,
        )  # fmt: skip
        return figure

    def status(self) -> dict[str, Any]:
        """Return the study, the samples of every size, and the runs: ``percolab status --json``.

        >>> results = sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
        >>> [(task["L"], task["samples"]) for task in results.status()["tasks"]]
        [(8, 100), (16, 100)]
        """
        return status_record(self)

    def report(
        self,
        out: str | Path,
        observable: str | None = None,
        *,
        bootstrap: int = 200,
        **options: Any,
    ) -> dict[str, Any]:
        """Write one page with figures, fits and provenance, as ``percolab report`` does.

        out: .html or .htm file.  observable, options: of the fit, as for :func:`percolab.fit`.
        Returns the numbers of all fits and figures, as plain JSON values.

        InputError: ``out`` cannot be written, or exists and is not a file of percolab.
        """
        _check_named(observable)
        if observable is not None:
            choose_observable(self, observable)
        path = take_path("out", out)
        check_suffix(path, PAGES, "a page")
        check_output(path)
        chosen = _options_of_figures(self, options, ("omega", "window"))
        return write_report(
            self, path, name="results in memory", content=encode(self), observable=observable,
            bootstrap=_take_replicas(bootstrap), **chosen,
        )  # fmt: skip

    def export(
        self,
        out: str | Path,
        *,
        p: float | str | Sequence[float] | None = None,
        tidy: bool = False,
        thresholds: bool = False,
        sizes: bool = False,
        format: str | None = None,
    ) -> None:
        """Write means with their errors, as ``percolab export`` does (docs/export.md).

        out: .csv, .txt, .parquet, .nc or .npz file.  format: "csv", "parquet", "netcdf" or "npz";
        by default the suffix decides.  p: for methods "threshold" and "microcanonical".  tidy: one
        line per observable, size and p.  thresholds: one line per sample.  sizes: one line per bin
        of cluster sizes.

        InputError: more than one of these tables, or a file that cannot be written.
        """
        path = str(take_path("out", out))
        if format is not None:
            check_choice("format", format, FORMATS)
        form, _ = find_format("", format, path)
        values = None if p is None else ascending(take_probabilities("p", p) or ())
        tables = {"tidy": tidy, "thresholds": thresholds, "sizes": sizes}
        tables = {name: take_flag(name, value) for name, value in tables.items()}
        write_table(self, path, form, values, **tables)


def _shown_results(stored: StoredResults) -> Results:
    """Return stored results with the methods of :class:`Results`."""
    return Results(stored.study, stored.tasks, stored.runs)


@takes_settings
def sweep(
    lattice: str | Structure | None = None,
    *,
    observer: Observer | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> Results:
    """Sample a lattice at several L and p, or a graph, and return the results.

    {settings}
    progress: draw a bar (tqdm.auto) with the current p_c.
    observer: receives the progress in place of the bar and of the logger "percolab".  Without it
        this logger reports deviations from the request and slow steps (level INFO).

    Raises InputError (one line) for invalid arguments.  Ctrl-C raises an exception that says if
    finished blocks are saved: with ``out`` they are, and the same call resumes.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=200, device="cpu")
    >>> [result.num_samples for result in results.tasks.values()]
    [200, 200]
    """
    request = make_request(lattice, **settings)
    observer = take_observer(observer, LoggedProgress(bar=take_flag("progress", progress)))
    with _writer(request.out if settings.get("out") is not None else None) as writer:
        ways = {**request.options, "writer": writer, "observer": observer}
        return _shown_results(run_study(request.study, request.rule, **ways))


def _writer(out: Path | None) -> AbstractContextManager[ResultsWriter | None]:
    return nullcontext() if out is None else ResultsWriter(out)


@dataclass(frozen=True, repr=False)
class Threshold(Shown):
    """The result of :func:`threshold`: p_c with its error, and the samples that it comes from.

    results: the samples.  fit: in two dimensions p_c and, for each size, the root of P(two
    directions) - P(none wraps) (:class:`RootFit`); in three and more dimensions the fit of the
    wrapping probabilities of all sizes (:class:`QuantityAnalysis`).

    >>> found = threshold("square", error=0.01, device="cpu")
    >>> abs(found.p_c - 0.5) < 5 * found.error <= 0.05
    True
    """

    results: Results
    fit: RootFit | QuantityAnalysis

    @property
    def _value(self) -> Value:
        return NO_VALUE if self.problem else self.fit.p_c

    @property
    def p_c(self) -> float:
        """The threshold; NaN where there is none (``problem``)."""
        return self._value.value

    @property
    def error(self) -> float:
        """The total error of p_c, one sigma."""
        return self._value.error

    @property
    def statistical_error(self) -> float:
        """The part of the error that more samples reduce."""
        return self._value.statistical_error

    @property
    def systematic_error(self) -> float:
        """The part of the error that larger sizes reduce: corrections to scaling."""
        return self._value.systematic_error

    @property
    def roots(self) -> tuple[SizeRoot, ...]:
        """The root of each size with its statistical error, ascending in L; may be ()."""
        return self.fit.roots if isinstance(self.fit, RootFit) else ()

    @property
    def problem(self) -> str | None:
        """Why there is no p_c, in one line, or None."""
        return self.fit.problem

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the result, one sentence each."""
        return tuple(self.fit.notes)

    def _facts(self) -> dict[str, Any]:
        study, fit = self.results.study, self.fit
        known = known_threshold(study.structure, study.model)
        couplings = [] if fit.problem else coupling_rows(self._value, study.model)
        return {
            "of": f"{study.structure.name}, {study.model}",
            **fit._facts(),
            **{name: text for name, text, _ in couplings},
            **({"published": f"{known.value:.12g}"} if known else {}),
        }

    def plot(self, out: str | Path | None = None, *, ax: Axes | None = None) -> Figure:
        """Draw roots or crossings against L with p_c, as :func:`percolab.plot` does."""
        kind = "roots" if isinstance(self.fit, RootFit) else "crossings"
        return plot(self.results, out, kind=kind, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain JSON values, as ``percolab threshold --json`` does."""
        return threshold_record(self.results.study, self.fit)


#: Settings of :func:`threshold` that only given weights have.
_OF_WEIGHTS = ("boundary", "graph", "source", "target", "multi", "columns")


@overload
def threshold(
    lattice: str | Path | Structure,
    *,
    error: float | None = None,
    time: float | str | None = None,
    universal: Prior = "free",
    observer: Observer | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> Threshold: ...


@overload
def threshold(
    lattice: str | Path | Structure | None = None,
    *,
    weights: Any,
    above: bool = False,
    **settings: Unpack[Settings],
) -> Levels: ...


@takes_some_settings("model", "L", "seed", "rng", "device", "labeler", "workers", "executor", "out",
                     *_OF_WEIGHTS)  # fmt: skip
def threshold(
    lattice: str | Path | Structure | None = None,
    *,
    error: float | None = None,
    time: float | str | None = None,
    universal: Prior = "free",
    weights: Any = None,
    above: bool = False,
    observer: Observer | None = None,
    progress: bool = False,
    **settings: Unpack[Settings],
) -> Threshold | Levels:
    """Find p_c of a lattice to the requested precision, or the levels at which weights percolate.

    lattice: a name, a path to a .toml file, or a :class:`Lattice`.
    {settings}
    error: target for the error of p_c, statistical and systematic together, one sigma; 1e-4 unless
    a time is given.
    time: in place of an error: seconds, or a text such as "60s", "5m" or "2h".
    universal: "known" takes the published wrapping probabilities of a cubic torus at p_c as priors,
    in three dimensions.
    progress, observer: as for :func:`percolab.sweep`.

    With ``weights`` the result is :class:`percolab.Levels` (docs/fields.md).  weights: an array, or
    a file of one, of sites (..., y, x) or bonds (classes, ..., y, x), by default on the square or
    the cubic lattice; for a ``graph`` with source and target one for each bond, or "file", those in
    its file.  An array on a GPU (``__cuda_array_interface__``) is not copied to the host.  above:
    large values open first.  Of the settings, weights only allow ``device`` (by default the CPU)
    and those from ``boundary`` on.

    Raises InputError (one line) for invalid arguments, and where ``out`` is the file of another
    study; AnalysisError where the time is too short for a result.

    >>> threshold("square", error=0.01, device="cpu").results
    <Results of square, L = 8, 12: 16384 samples in 2 tasks>
    >>> threshold(weights=np.array([[3, 1, 2], [9, 9, 4], [0, 0, 8]]))
    <Levels of square; x 3; y 8>
    """
    above, progress = take_flag("above", above), take_flag("progress", progress)
    check_choice("universal", universal, ("known", "free"))
    shown = LoggedProgress(bar=progress, estimate=root_text)
    observer = take_observer(observer, shown)
    given = {name: value for name, value in settings.items() if value is not None}
    of_weights: dict[str, Any] = {name: given.pop(name) for name in _OF_WEIGHTS if name in given}
    if weights is not None:
        own = None if universal == "free" else universal
        device = str(given.pop("device", "cpu"))
        refuse_given("weights have no samples", error=error, time=time, universal=own, **given)
        return find_given_levels(weights, lattice, above=above, device=device, **of_weights)
    if of_weights.get("graph") is not None:
        refuse_graph(of_weights["graph"])
    refuse_given("only weights have it", above=above or None, **of_weights)
    if lattice is None:
        raise InputError("threshold: give a lattice, or weights")
    goal = Goal.of(error, time, universal)
    request = request_threshold(lattice, goal, **given)
    with _writer(request.out if "out" in given else None) as writer:
        ways = {**request.options, "writer": writer, "observer": observer}
        results = find_threshold(request.study, goal, **ways)
    fit = fit_wrapping(results) if why_no_roots(results.study) else fit_roots(results)
    return Threshold(_shown_results(results), fit)


#: Results as arguments: those of a sweep or of percolab.threshold, or the name of their file.
Given = StoredResults | Threshold | str | Path


def open_results(path: str | Path) -> Results:
    """Return the results stored in an HDF5 file; InputError if it is not a results file.

    >>> open_results("nowhere.h5")
    Traceback (most recent call last):
    ...
    percolab.errors.InputError: nowhere.h5: no such file
    """
    return _shown_results(read_results(take_path("results", path)))


class DataTable(GivenTable):
    """The result of :func:`open_table`: the series of a table, each of which can be fitted.

    series: by name.  notes: remarks on how the table was read.
    """

    def fit(self, series: str | None = None, **options: Any) -> TableFit:
        """Estimate x_c and 1/nu of a series, as ``percolab fit`` does; docs/tables.md says how.

        series: its name, where there are several.  options: ``omega`` of the leading correction (by
        default 0.75, 1 and 1.5, averaged), ``kappa=True`` to fit kappa in y = L^kappa f, too,
        ``min_size``, ``degree`` and ``priors`` as for :func:`percolab.fit`.  InputError: no such
        series, or an invalid option.  AnalysisError: the data do not give x_c.
        """
        return fit_series(self.choose(series), **_fit_options(options, ("omega", "kappa")))

    def plot(
        self,
        out: str | Path | None = None,
        *,
        series: str | None = None,
        kind: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Figure:
        """Draw the fit of a series and return the figure; ``numbers`` of it has all that is drawn.

        out: a .png, .pdf or .svg file to write it to as well.  kind: "curves" (the default),
        "crossings" or "collapse".  ax: axes to draw into, for a kind with one panel.  options: as
        for ``fit``.
        """
        into = Target(ax, f"kind {'curves' if kind is None else kind}")
        return _finish_figure(draw_table(self.fit(series, **options), kind, into), out, ax)


def open_table(table: Any, columns: str | Mapping[str, str] | None = None) -> DataTable:
    """Return a table of your own data, to be fitted as ``percolab fit`` does (docs/tables.md).

    table: a .csv, .tsv or other text file with a header, a pandas.DataFrame, or a mapping of names
        to sequences; its columns are a size L, x, and counts k of n trials, or a mean and its
        error.
    columns: which column is which, if not clear from the names, as a mapping or text,
        "size=d,x=p,count=errors,total=shots"; series=NAME+NAME or series=none selects the columns
        that split the table into series.

    InputError (one line): invalid arguments or data.

    >>> rows = {"L": [8, 8, 16, 16], "p": [0.4, 0.6, 0.4, 0.6]}
    >>> open_table(rows | {"k": [20, 80, 5, 95], "n": [100, 100, 100, 100]})
    <DataTable of the table; L 8, 16; p 0.4, 0.6>
    """
    data = read_table(table, columns)
    return DataTable(data.source, data.series, data.notes)


def merge(parts: Iterable[Given], out: str | Path | None = None) -> Results:
    """Merge several results of one lattice, as ``percolab merge`` does.

    parts: results, or their files, with different sizes, seeds, p or blocks.  out: a new file to
    write the merged results to as well.

    InputError: two parts have the same samples (independent runs need different seeds), parts have
    different lattices or models, or ``out`` exists already.

    >>> options = {"L": [8], "p": [0.5], "samples": 100, "device": "cpu"}
    >>> merge([sweep("square", seed=1, **options), sweep("square", seed=2, **options)])
    <Results of square, L = 8: 200 samples in 2 tasks>
    """
    if isinstance(parts, StoredResults | str | Path) or not isinstance(parts, Iterable):
        raise InputError("merge: give a list of results or of files")
    merged = _shown_results(merge_results(_named(parts), report=_LOGGER.info))
    if out is not None:
        merged.save(out)
    return merged


def _named(parts: Iterable[Given]) -> list[tuple[str, StoredResults]]:
    """Return results, and those of files, with names for messages."""
    return [
        (str(part) if isinstance(part, str | Path) else f"part {number}", take_results(part))
        for number, part in enumerate(parts, 1)
    ]


def fit(
    results: Given | Sequence[Given],
    observable: str | None = None,
    **options: Any,
) -> ThresholdFit | Any:
    """Estimate the threshold, as ``percolab fit`` does; docs/analysis.md explains the method.

    Returns a ThresholdFit, for spins a SpinFit, and for trees a TreeFit.

    results: of :func:`sweep` or :func:`threshold`, or the name of their file.
    observable: the probability to fit, by default spanning along the last open axis, or on a torus
        wrapping around the last axis.
    options: ``min_size``, the smallest L to use; ``degree`` of the scaling polynomial, by default
        3, 4 and 5; ``omega`` of the leading correction, by default that of the dimension and the
        boundary; ``window``, the range of R that is fitted, (0.1, 0.9); ``nu``, "known" to take
        1/nu of the universality class as a prior of p_c, or "free"; ``priors`` (1), a factor on the
        widths of all other priors.

    For spins the fit is that of the transition, from several quantities at once, so that it takes
    no observable (options: :func:`percolab.analysis.spin_fit.fit_spins`).

    For trees it has their means, and the limits that several sizes give; it takes no options.

    For results of :func:`threshold` p_c comes from the roots (:class:`RootFit`), with the options
    ``min_size`` and ``priors``.  In three dimensions and more it comes from the wrapping
    probabilities of all sizes (:class:`percolab.analysis.quantity_fits.QuantityAnalysis`), also
    with the options ``nu``, ``omega``, ``degree`` and ``universal`` ("known" or "free", by default
    as given to :func:`threshold`).  With an observable, or any other option, the result is a
    ThresholdFit of the same samples.

    A list of such results or files in three dimensions and more, such as bonds and sites of one
    lattice, is fitted with common wrapping probabilities at p_c, and gives p_c of each
    (:class:`percolab.analysis.shared_fit.SharedFit`).  Its options are ``universal`` and
    ``min_size``.

    AnalysisError: the samples do not give a threshold.  InputError: an observable that the results
    do not have, or an invalid option.

    >>> results = sweep("square", L=[8, 16, 32], samples=300, device="cpu")
    >>> estimate = fit(results)
    >>> abs(estimate.threshold - 0.5) < 5 * estimate.threshold_error
    True
    """
    if isinstance(results, list | tuple):
        own = ("universal", "min_size")
        others = {name: value for name, value in options.items() if name not in own}
        refuse_given("of several results only universal, min_size", observable=observable, **others)
        return fit_shared(_named(results), **_fit_options(options, own))
    results = take_results(results)
    of_search = search_options(results)
    if of_search and observable is None and options.keys() <= set(of_search):
        return fit_searched(results, **_fit_options(options, of_search))
    make: Callable[..., Any] = _FITS.get(results.study.kind.name, _fit_threshold)
    result: ThresholdFit | SpinFit | TreeFit = make(results, observable, options)
    return result


def _fit_threshold(
    results: StoredResults, observable: str | None, options: dict[str, Any]
) -> ThresholdFit:
    _check_named(observable)
    return fit_results(results, observable, **_fit_options(options, ("nu", "omega", "window")))


def _fit_transition(
    results: StoredResults, observable: str | None, options: dict[str, Any]
) -> SpinFit:
    if observable is not None:
        reason = "of spins several quantities are fitted at once (names=[...])"
        raise InputError(f"observable = {observable!r}: {reason}")
    chosen = _fit_options(options, ("nu", "names", "omega"))
    if isinstance(names := chosen.get("names", ()), str):
        chosen["names"] = [name.strip() for name in names.split(",")]
    elif not isinstance(names, Sequence):
        raise InputError(f"names = {names!r}, but they are names of quantities")
    return fit_spins(results, **chosen)


def _fit_trees(results: StoredResults, observable: str | None, options: dict[str, Any]) -> TreeFit:
    if observable is not None:
        raise InputError(f"observable = {observable!r}: of trees all means are fitted")
    _fit_options(options, ())
    if options:
        raise InputError(f"{next(iter(options))}: trees have no such fit; leave it out")
    return fit_trees(results)


#: The fit of a kind of study by its name, where it is not that of a probability.
_FITS: dict[str, Callable[..., Any]] = {
    "chains": _fit_transition,
    "clusters": _fit_transition,
    "trees": _fit_trees,
}


#: Integers and numbers that a fit takes, with the least and the largest.
_FIT_INTEGERS = {"min_size": (1, MAX_SEED), "degree": (1, 8)}
_FIT_NUMBERS = {"omega": (1e-6, 10.0), "priors": (1e-6, 1e6)}


def _fit_options(given: Mapping[str, Any], own: Sequence[str]) -> dict[str, Any]:
    """Return the options of a fit in their usual form; InputError for one that makes no sense.

    own: options besides those that every fit has.
    """
    known = (*_FIT_INTEGERS, "priors", *own)
    for name in given:
        if name not in known:
            raise InputError(f"{name}: a fit has no such option; {nearest(name, known)}")
    options = {name: value for name, value in given.items() if value is not None}
    for name in filter(options.__contains__, _FIT_INTEGERS):
        options[name] = take_integer_in(*_FIT_INTEGERS[name], name, options[name])
    for name in filter(options.__contains__, _FIT_NUMBERS):
        number = options[name] = take_number(name, options[name])
        least, most = _FIT_NUMBERS[name]
        if not least <= number <= most:
            raise InputError(f"{name} = {number}, but it must be from {least:g} to {most:g}")
    if "window" in options:
        window = options["window"]
        if isinstance(window, str) or not np.iterable(window) or len(list(window)) != 2:
            raise InputError(f"window = {window!r}, but it must be two numbers")
        options["window"] = tuple(take_number("window", end) for end in options["window"])
    return options


def _options_of_figures(
    results: StoredResults, given: Mapping[str, Any], own: Sequence[str]
) -> dict[str, Any]:
    """Return the options of the fit that figures show; InputError where they show another one."""
    options = _fit_options(given, own)
    if search_options(results):
        refuse_given(FIXED_FIT, **options)
    return options


def _take_replicas(bootstrap: Any) -> int:
    return take_integer_in(0, 10**6, "bootstrap", bootstrap)


def _check_named(observable: Any) -> None:
    """Raise InputError for an observable that is no name."""
    if observable is not None and (not isinstance(observable, str) or not observable.strip()):
        raise InputError(f"observable = {observable!r}, but it must be the name of an observable")


def estimates(results: Given, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of each single size: the p at which its clusters are most critical.

    A graph has these in place of a fit; :mod:`percolab.analysis.maxima` defines them.

    >>> from percolab.lattices.graph import Graph
    >>> results = sweep(graph=Graph.of_bonds(3, [(0, 1), (1, 2)]), samples=2000, device="cpu")
    >>> [estimate.name for estimate in estimates(results)[0].estimates]
    ['second', 'chi', 'ratio']
    """
    results = take_results(results)
    return read_estimates(results, bootstrap=_take_replicas(bootstrap))


def plot(
    results: Given,
    out: str | Path | None = None,
    observable: str | None = None,
    *,
    kind: str | None = None,
    bootstrap: int = 200,
    ax: Axes | None = None,
    **options: Any,
) -> Figure:
    """Draw a study and return the figure, which a notebook shows.

    out: a .png, .pdf or .svg file to write it to as well; None writes none.  observable, options:
    of the fit, as for :func:`percolab.fit`.  bootstrap: replicas for bootstrap errors.

    kind: a single figure: "curves", "drift", "collapse", "clusters", "maxima", "thresholds" or
    another of docs/plots.md, for spins of docs/spins.md; None draws the overview.

    ax: matplotlib axes to draw into, for a kind with one panel ("curves" if no kind is given).  The
    function then returns the figure of these axes.

    ``numbers`` of the returned figure has every number drawn (a dict of plain JSON values), unless
    ax is given.

    InputError: the results do not give this kind; the kind has several panels, but ax is one; or
    the file cannot be written.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=200, device="cpu")
    >>> figure = plot(results, kind="clusters")
    >>> len(figure.axes)
    4
    """
    results = take_results(results)
    _check_named(observable)
    chosen = _options_of_figures(results, options, ("nu", "omega", "window"))
    fitted = partial(fit_results, results, observable, **chosen)
    keys: dict[str, Any] = {
        "observable": observable,
        "bootstrap": _take_replicas(bootstrap),
    }
    return _finish_figure(study_figure(results, fitted=fitted, kind=kind, ax=ax, **keys), out, ax)


def _finish_figure(drawn: Drawn, out: str | Path | None, ax: Axes | None) -> Figure:
    """Return a figure, which has its numbers unless ax is given; write it to a file on request."""
    figure: Figure = drawn[0]
    if ax is None:
        figure.numbers = drawn[1]  # type: ignore[attr-defined]
    if out is not None:
        save_figure(figure, take_path("out", out))
    return figure
