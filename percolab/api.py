"""The Python interface: what the command line does, for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from percolab.analysis import SizeEstimates, ThresholdFit
from percolab.config import make_request
from percolab.graph_structure import Graph
from percolab.kernels.clusters import renumber
from percolab.kernels.open_bonds import GENERATORS, threshold_of
from percolab.labelers import fitting_labeler, labeler_class
from percolab.lattice import Lattice
from percolab.model import Model
from percolab.plots import save_figure
from percolab.report import study_figure
from percolab.runner import Watcher, run_study
from percolab.sampler import Device
from percolab.spanning import estimates_of, fit_results
from percolab.storage import Results, ResultsWriter, read_results
from percolab.structure import Structure, load_structure
from percolab.study import Task, check_boundary, check_choice, check_probabilities
from percolab.toml_input import InputError
from percolab.topology import Topology, unpack_bits


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
    percolab.toml_input.InputError: nowhere.h5: no such file
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


def label(
    lattice: str | Structure | Topology,
    L: int | None = None,
    p: float = 0.5,
    *,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    model: str = "bond",
    boundary: Sequence[str] | None = None,
    opened: np.ndarray | None = None,
    labeler: str | None = None,
    device: str = "cpu",
    serial: bool = False,
    watcher: Watcher | None = None,
) -> np.ndarray:
    """Return the cluster labels of one configuration, int32, one a grid point.

    A label is the smallest site index of the cluster, and -1 where the model left the site vacant;
    with ``serial`` the clusters are renumbered
    0 ... n - 1 in the same order.  On a lattice the array has the lattice's shape, last axis
    first; on a :class:`Topology` it is flat.

    On a lattice (seed, sample) names the sample that a sweep with this seed measures; on a topology
    the seed is that of the random streams themselves.

    opened: the configuration, packed uint32 bond words (num_classes, num_words), in place of the
    random one that (seed, sample, p) name.  Bonds that do not exist must be 0.  watcher: hears if
    another labeler takes the place of one that the lattice cannot have.

    Raises InputError for an unknown name or size, and for bond words of another shape.

    >>> label("square", 4, p=1.0).tolist()[3]
    [0, 0, 0, 0]
    >>> label("square", 2, p=0.0, serial=True).tolist()
    [[0, 1], [2, 3]]
    """
    shape: tuple[int, ...] = (-1,)
    stream = seed
    if isinstance(lattice, Topology):
        topology = lattice
    else:
        lattice = load_structure(lattice) if isinstance(lattice, str) else lattice
        if L is None:
            raise InputError("label: give the size L of the lattice")
        if not isinstance(L, int):
            raise InputError(f"L = {L!r}, but it must be an integer of at least 1")
        usual = lattice.boundaries[:1] * lattice.dimension
        kinds = tuple(boundary) if boundary is not None else usual
        check_boundary(lattice, kinds)
        lattice.check_size(L, kinds)
        shape = lattice.shape(L)[::-1]
        topology = lattice.topology(lattice.shape(L), kinds)
        if opened is None:
            # The very sample that a sweep with this seed measures.
            stream = Task(lattice, L, kinds, (p,), seed=seed, rng=rng, model=model).stream_seed
    if opened is not None and np.shape(opened) != topology.exists.shape:
        raise InputError(f"opened has shape {np.shape(opened)}, not {topology.exists.shape}")
    check_choice("rng", rng, GENERATORS)
    check_probabilities((p,))
    for key, value in (("seed", seed), ("sample", sample)):
        if not isinstance(value, int) or not 0 <= value < 2**64:
            raise InputError(f"{key} = {value!r}, but it must be an integer from 0 to 2^64 - 1")
    if isinstance(lattice, Lattice):
        kind = Device.parse(device).resolve().kind
        labeler, note = fitting_labeler(labeler, kind, lattice)
        if note and watcher is not None:
            watcher.noted(note)
    draw = Model.parse(model)
    if opened is not None and draw.draws_sites:
        raise InputError(f"model {model}: opened is a configuration already; leave the model out")
    of_sample = GENERATORS[rng], stream, sample, threshold_of(p)
    labels = _labels(topology, draw, opened, of_sample, labeler, device)
    if serial:
        labels[labels >= 0] = renumber(labels[labels >= 0])[0]
    return labels.reshape(shape)


def _labels(
    topology: Topology,
    draw: Model,
    opened: np.ndarray | None,
    key: tuple[int, int, int, int],
    labeler: str | None,
    device: str,
) -> np.ndarray:
    target = Device.parse(device).resolve()
    chosen = labeler_class(labeler, target.kind)
    generator, seed, sample, threshold = key
    if target.kind == "cuda":
        try:
            batch = chosen(topology, draw, capacity=1)
        except ValueError as error:
            raise InputError(f"{topology.num_points} sites on {device}: {error}") from error
        if opened is None:
            items = batch.open_bonds(generator, seed, [sample], [threshold])
        else:
            items = batch.load_bonds(np.asarray(opened, np.uint32)[None])
        batch.label_items(items)
        labels = batch.labels_of(items)[0]
        return _without_vacant(labels, batch.occupied_of(items)[0]) if draw.draws_sites else labels
    single = chosen(topology, draw)
    if opened is None:
        single.open_bonds(generator, seed, sample, threshold)
    else:
        single.opened[:] = np.asarray(opened, np.uint32).ravel()
    labels = single.label()
    return _without_vacant(labels, single.occupied) if draw.draws_sites else labels


def _without_vacant(labels: np.ndarray, occupied: np.ndarray) -> np.ndarray:
    """Return labels with -1 where a site is vacant; occupied: uint32 words, one bit a site."""
    return np.where(unpack_bits(occupied, labels.size), labels, np.int32(-1))
