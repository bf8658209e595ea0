"""percolab tree: minimum spanning trees of samples, and what they tell."""

from __future__ import annotations

from typing import Any

import click

from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.options import as_json, described, exit_if_interrupted, write_answer
from percolab.cli.progress import ProgressWatcher
from percolab.cli.setting_options import given_settings, setting_option
from percolab.kernels.registry import list_names
from percolab.run.request import make_options
from percolab.run.runner import run_study
from percolab.store.results import ResultsWriter
from percolab.tasks.setting_groups import MACHINE, WHAT
from percolab.tasks.study_file import make_request
from percolab.trees import DEFAULT_TREE_METHOD, TREE_METHODS

#: Samples a size and the results file, where they are not given.
_SAMPLES, _OUT = 1000, "tree.h5"
#: Settings of a sweep that trees have, too.
_SETTINGS = (
    "lattice", "graph", "source", "target", "multi", "columns", "L", "boundary", "samples", "seed",
    "rng", "device", "workers", "executor", "part", "out",
)  # fmt: skip
_CHANGED: dict[str, dict[str, Any]] = {
    "samples": {"help": "Samples of each size.", "shown_default": str(_SAMPLES)},
    "out": {"shown_default": _OUT},
}
_FASTEST = ", ".join(f"{name} on {kind}" for kind, name in DEFAULT_TREE_METHOD.items())


def _options(function: Any) -> Any:
    for name in reversed(_SETTINGS):
        function = setting_option(name, **_CHANGED.get(name, {}))(function)
    return function


@click.command(cls=GroupedCommand)
@_options
@grouped(
    WHAT,
    "--weights",
    help="Find one tree, of these weights: file (those in the graph's file), or an array in .npy "
    "or file.h5:/dataset, of a lattice (classes, ..., y, x).",
)
@grouped(
    MACHINE,
    "--method",
    help=f"How trees are found; all give the same: {list_names(TREE_METHODS)}.  "
    f"[default: the fastest, {_FASTEST}]",
)
@as_json
@quiet_option()
def command(
    weights: str | None, method: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Find the minimum spanning trees of samples, and print what they tell.

    Every bond of a sample has its uniform number u as weight, so that the bonds of the tree with
    u < p join the clusters of the sample at p.  Of every size there are the weight of the tree a
    site, and along every open axis T, where the sample begins to span, and the length of the way
    through the tree from side to side; from several sizes follow their limits.  Sums over the
    samples are kept in a results file, which the same command continues, and percolab merge, fit,
    status, export and plot --kind tree read.

    With --weights it is one tree, of the weights that are given (docs/trees.md).  Its --out is
    .csv, .npz, .npy or .h5, and nothing is written without.

    A graph that is not connected has a forest, a tree for each part.
    """
    if weights is not None:
        from percolab.cli.tree_given import write_given_tree

        write_given_tree(weights, given, method=method, as_json=as_json)
        return
    settings: dict[str, Any] = {"samples": _SAMPLES, "out": _OUT} | given_settings(given)
    request = make_request(method="tree", labeler=method, **settings)
    options = make_options(request, watcher=ProgressWatcher(silent=quiet))
    with ResultsWriter(request.out) as options["writer"], exit_if_interrupted(request.out):
        results = run_study(request.study, request.rule, **options)
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees

    found = fit_trees(results)
    text = f"{described(results.study)}; results in {request.out}\n{tree_table(found)}"
    write_answer(found.to_dict(), text, as_json=as_json)
