"""The Python interface: what the command line does, for a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from percolab.analysis import SizeEstimates, ThresholdFit
from percolab.analysis.spin_fit import SpinFit, fit_spins
from percolab.analysis.stored_fits import estimates_of, fit_results
from percolab.errors import InputError
from percolab.figures import save_figure
from percolab.figures.kinds import study_figure
from percolab.lattices.structure import Structure
from percolab.run.request import Watcher, options_of
from percolab.run.runner import run_study
from percolab.store.results import Results, ResultsWriter, read_results
from percolab.tasks.settings import Settings, takes_settings
from percolab.tasks.study_file import make_request

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@takes_settings
def sweep(
    lattice: str | Structure | None = None,
    *,
    watcher: Watcher | None = None,
    **settings: Unpack[Settings],
) -> Results:
    """Sample a lattice at several L and p, or a graph, and return the results.

    {settings}
    watcher: is told of what is done, as the command line's progress does.

    Raises InputError (one line) for anything that cannot be used.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=200, device="cpu")
    >>> [item.num_samples for item in results.tasks.values()]
    [200, 200]
    """
    request = make_request(lattice, **settings)
    options = options_of(request, watcher=watcher)
    if settings.get("out") is None:
        return run_study(request.study, request.rule, **options)
    with ResultsWriter(request.out) as options["writer"]:
        return run_study(request.study, request.rule, **options)


def open_results(path: str | Path) -> Results:
    """Return the results stored in an HDF5 file; InputError if it cannot be read or is foreign.

    >>> open_results("nowhere.h5")
    Traceback (most recent call last):
    ...
    percolab.errors.InputError: nowhere.h5: no such file
    """
    return read_results(path)


def fit(results: Results, observable: str | None = None, **options: Any) -> ThresholdFit | SpinFit:
    """Estimate the threshold (options: :func:`percolab.analysis.fit_threshold`).

    ``min_size`` "auto" is the smallest size from which on chi^2 does not reject the fit.

    Of spins it is their transition (:func:`percolab.analysis.spin_fit.fit_spins`, whose options are
    taken), from several quantities at once, so that there is no observable to choose: InputError.

    >>> results = sweep("square", L=[8, 16, 32], samples=300, device="cpu")
    >>> estimate = fit(results)
    >>> abs(estimate.threshold - 0.5) < 5 * estimate.threshold_error
    True
    """
    if results.study.has_spins:
        if observable is not None:
            raise InputError(
                f"observable = {observable!r}: of spins several quantities are fitted at once "
                "(names=[...])"
            )
        return fit_spins(results, **options)
    return fit_results(results, observable, **options)


def estimates(results: Results, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of every size alone: where its clusters are most critical.

    They are what a graph has in place of a fit; :mod:`percolab.analysis.maxima` says what they are.

    >>> from percolab.lattices.graph import Graph
    >>> results = sweep(graph=Graph.of_bonds(3, [(0, 1), (1, 2)]), samples=2000, device="cpu")
    >>> [item.name for item in estimates(results)[0].estimates]
    ['second', 'chi', 'ratio']
    """
    return estimates_of(results, bootstrap=bootstrap)


def plot(
    results: Results,
    path: str | Path | None = None,
    observable: str | None = None,
    *,
    kind: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a study and return the figure, which a notebook shows.

    path: a .png, .pdf or .svg file to write it to as well; None writes none.

    kind: one figure alone, of docs/plots.md: "curves", "drift", "collapse", "clusters", "maxima" or
    "thresholds", of spins those of docs/spins.md; None is the overview.

    ax: axes of matplotlib to draw into, for a kind of one panel; what is returned is the figure
    that they are in, and without a kind it is the curves that are drawn.

    Every number drawn is in ``numbers`` of the figure returned (dict of plain JSON values), unless
    ax is given.

    InputError: the results do not give this kind; it has several panels, and ax is one; or the file
    cannot be written.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=200, device="cpu")
    >>> figure = plot(results, kind="clusters")
    >>> len(figure.axes)
    4
    """
    figure, numbers = study_figure(
        results,
        observable=observable,
        fitted=lambda: fit_results(results, observable),
        kind=kind,
        ax=ax,
    )
    if ax is None:
        figure.numbers = numbers
    if path is not None:
        save_figure(figure, Path(path))
    drawn: Figure = figure
    return drawn
