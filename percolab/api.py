"""The Python interface: what the command line does, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from percolab.analysis import SizeEstimates, ThresholdFit
from percolab.analysis.stored_fits import estimates_of, fit_results
from percolab.figures import save_figure
from percolab.figures.kinds import study_figure
from percolab.lattices.graph import Graph
from percolab.lattices.structure import Structure
from percolab.run.runner import Watcher, run_study
from percolab.run.sampler import Device
from percolab.store.results import Results, ResultsWriter, read_results
from percolab.tasks.study_file import make_request


def sweep(
    lattice: str | Structure | None = None,
    *,
    graph: str | Path | Graph | None = None,
    source: str | Path | Sequence[int] | None = None,
    target: str | Path | Sequence[int] | None = None,
    multi: bool = False,
    L: Sequence[int] | None = None,
    p: Sequence[float] | None = None,
    samples: int | Sequence[int] | None = None,
    target_error: float | None = None,
    boundary: str | Sequence[str] | None = None,
    seed: int = 1,
    rng: str = "xorwow",
    block_size: int = 0,
    method: str = "grid",
    model: str = "bond",
    measure: str | Sequence[str] = (),
    device: str = "auto",
    labeler: str | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> Results:
    """Sample a lattice at several L and p, or a graph, and return the results.

    lattice: a name, a path to a .toml file, a :class:`Lattice`, or "bethe:z"; "honeycomb" unless
    given.  graph: in place of a lattice, a file of docs/graph-files.md or a :class:`Graph`.
    source, target: sites of the graph, or a file with one a line: a sample spans if one cluster has
    a site of both.  multi: keep parallel edges of the file.  boundary: "open" or "periodic", for
    all axes of a lattice or each; open unless given.  p: None lets a pilot place the
    values of each size.  method: "grid" measures at these p; "threshold" finds the p at which each
    sample begins to span, and p is left out.  model: "bond", "site", "site-bond", or with one of
    the two probabilities fixed "site-bond:site=0.9" or "site-bond:bond=0.7".  measure: "sizes"
    counts the clusters of every size and sums s^3 and s^4; "gyration" sums how far they reach.
    samples: a size, or one number for each.  target_error: stop when the error of p_c is this
    small.  out: a results file to write and to continue; None keeps the results in memory alone.

    Raises InputError (one line) for anything that cannot be used.

    >>> results = sweep("square", L=[8, 16], p=[0.4, 0.5, 0.6], samples=200, device="cpu")
    >>> [item.num_samples for item in results.tasks.values()]
    [200, 200]
    """
    request = make_request(
        lattice,
        graph=graph,
        source=source,
        target=target,
        multi=multi,
        L=L,
        p=p,
        samples=samples,
        target_error=target_error,
        boundary=boundary,
        seed=seed,
        rng=rng,
        block_size=block_size,
        method=method,
        model=model,
        measure=measure,
        out=out or "results.h5",
    )
    options: dict[str, Any] = {
        "device": Device.parse(device),
        "labeler": labeler,
        "workers": workers,
        "watcher": watcher,
        "left_open": request.left_open,
    }
    if out is None:
        return run_study(request.study, request.rule, **options)
    with ResultsWriter(request.out) as writer:
        return run_study(request.study, request.rule, writer=writer, **options)


def open_results(path: str | Path) -> Results:
    """Return the results stored in an HDF5 file; InputError if it cannot be read or is foreign.

    >>> open_results("nowhere.h5")
    Traceback (most recent call last):
    ...
    percolab.errors.InputError: nowhere.h5: no such file
    """
    return read_results(path)


def fit(results: Results, observable: str | None = None, **options: Any) -> ThresholdFit:
    """Estimate the threshold (options: :func:`percolab.analysis.fit_threshold`).

    ``min_size`` "auto" is the smallest size from which on chi^2 does not reject the fit.

    >>> results = sweep("square", L=[8, 16, 32], samples=300, device="cpu")
    >>> estimate = fit(results)
    >>> abs(estimate.threshold - 0.5) < 5 * estimate.threshold_error
    True
    """
    return fit_results(results, observable, **options)


def estimates(results: Results, *, bootstrap: int = 200) -> tuple[SizeEstimates, ...]:
    """Return the thresholds of every size alone: where its clusters are most critical.

    They are what a graph has in place of a fit; :mod:`percolab.analysis.maxima` says what they are.

    >>> results = sweep(graph=Graph.of_bonds(3, [(0, 1), (1, 2)]), samples=2000, device="cpu")
    >>> [item.name for item in estimates(results)[0].estimates]
    ['second', 'chi', 'ratio']
    """
    return estimates_of(results, bootstrap=bootstrap)


def plot(
    results: Results,
    path: str | Path,
    observable: str | None = None,
    *,
    kind: str | None = None,
) -> dict[str, Any]:
    """Draw a study into a .png, .pdf or .svg file; return every number drawn.

    kind: one figure alone, of docs/plots.md: "curves", "drift", "collapse", "clusters", "maxima" or
    "thresholds"; None is the overview.  InputError if the results do not give it.
    """
    figure, numbers = study_figure(
        results, observable=observable, fitted=lambda: fit_results(results, observable), kind=kind
    )
    save_figure(figure, Path(path))
    return numbers
