"""percolab tree: minimum spanning trees of samples, and what they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from percolab.cli import options as shared
from percolab.cli.groups import GroupedCommand, grouped, quiet_option
from percolab.cli.progress import ProgressBar
from percolab.cli.setting_options import given_settings, settings_named
from percolab.errors import InputError
from percolab.kernels.registry import list_names
from percolab.lattices.lattice import AXIS_NAMES
from percolab.run.runner import run_study
from percolab.store.results import ResultsWriter
from percolab.tasks.setting_groups import MACHINE, WHAT
from percolab.tasks.study_file import make_request
from percolab.trees import DEFAULT_TREE_METHOD, TREE_METHODS

if TYPE_CHECKING:
    from percolab.trees.given import SpanningTree

#: Settings of a study of samples.
_OF_SAMPLES = ("samples", "seed", "rng", "workers", "executor", "part")
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


@click.command(cls=GroupedCommand)
@settings_named(*_SETTINGS, **_CHANGED)
@grouped(
    WHAT,
    "--weights",
    help="Find the tree of these weights: the word file (weights in the graph's file), or an array "
    "in .npy or file.h5:/dataset, for a lattice (classes, ..., y, x).",
)
@grouped(
    MACHINE,
    "--method",
    help=f"Algorithm; all give the same trees: {list_names(TREE_METHODS)}.  "
    f"[default: the fastest, {_FASTEST}]",
)
@shared.as_json
@quiet_option()
def command(
    weights: str | None, method: str | None, as_json: bool, quiet: bool, **given: Any
) -> None:
    """Find the minimum spanning trees of samples, and print their means.

    The weight of a bond is its uniform number u, so that the tree's bonds with u < p form the
    clusters of the sample at p.  For every size the weight of the tree per site is printed, and for
    every open axis T, the p at which samples begin to span, and the length of the path through the
    tree from side to side; several sizes also give their limits.  Sums over the samples are stored
    in a results file, which the same command continues, and which percolab merge, fit, status,
    export and plot --kind tree read.

    With --weights, find the one tree of the given weights (docs/trees.md), and write it to --out
    (.csv, .npz, .npy or .h5) if given.

    A graph that is not connected has a forest: one tree per component.
    """
    if weights is not None:
        shared.write_answer(
            *_find_given_tree(weights, given_settings(given), method), as_json=as_json
        )
        return
    settings: dict[str, Any] = {"samples": _SAMPLES, "out": _OUT} | given_settings(given)
    request = make_request(method="tree", labeler=method, **settings)
    with ResultsWriter(request.out) as writer, shared.exit_if_interrupted(request.out):
        ways = {**request.options, "writer": writer, "observer": ProgressBar(silent=quiet)}
        results = run_study(request.study, request.rule, **ways)
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees

    trees = fit_trees(results)
    text = f"{shared.described(results.study)}; results in {request.out}\n{tree_table(trees)}"
    shared.write_answer(trees.to_dict(), text, as_json=as_json)


# The tree of given weights


def _find_given_tree(
    weights: str, settings: dict[str, Any], method: str | None
) -> tuple[dict[str, Any], str]:
    """Find the tree of given weights, write it to a file if requested; return record and text.

    settings: those that are given.  InputError: what does not go together, or cannot be used.
    """
    from percolab.configurations.tree import tree
    from percolab.configurations.tree_files import check_tree_file, write_tree_file
    from percolab.lattices.structure import load_structure
    from percolab.tasks.values import parse_sizes

    shared.refuse(settings, "given weights (--weights) have no samples", *_OF_SAMPLES)
    out = settings.pop("out", None)
    sizes = parse_sizes(settings.pop("L")) if "L" in settings else (None,)
    if out is not None:
        check_tree_file(out, of_graph="graph" in settings, inputs=shared.input_files())
    if len(sizes) > 1:
        raise InputError(f"-L: weights have one size, but {len(sizes)} sizes are given")
    if "lattice" in settings:
        settings["lattice"] = load_structure(settings["lattice"])
    ways = {"weights": weights, "method": method, "device": "auto"}
    given_tree = tree(L=sizes[0], **ways | settings)
    if out is not None:
        write_tree_file(out, given_tree)
    paths = _find_paths(given_tree)
    record = {"of": _name_structure(given_tree)} | given_tree.to_dict() | {"paths": paths}
    text = _describe_tree(given_tree, paths)
    if out is not None:
        record, text = {"tree": str(out)} | record, f"{text}\ntree in {out}"
    return record, text


def _find_paths(tree: SpanningTree) -> dict[str, dict[str, Any] | None]:
    """Return length and largest weight of the path between the sides of every open axis by name.

    None where they are not connected, or where a site is in both.
    """
    paths: dict[str, dict[str, Any] | None] = {}
    for axis in tree.topology.open_axes:
        name = AXIS_NAMES[axis] if tree.topology.shape else "source-target"
        trunk = tree.trunk(axis)
        paths[name] = None
        if trunk.size:
            largest = tree.weights[trunk[-1]].item()
            paths[name] = {"length": int(trunk.size), "largest": largest}
    return paths


def _describe_tree(tree: SpanningTree, paths: dict[str, dict[str, Any] | None]) -> str:
    name = _name_structure(tree)
    what = f"minimum spanning tree of {name}"
    if tree.parts > 1:
        parts = shared.counted(tree.parts, "tree")
        why = "its bonds of finite weight do not connect" if tree.has_solid else "is not connected"
        what = f"minimum spanning forest of {name}, which {why}: {parts}"
    bonds = f"{shared.counted(len(tree.bonds), 'bond')} of {tree.topology.num_bonds}"
    first = f"{what}; {shared.counted(tree.num_sites, 'site')}, {bonds} ({tree.method})"
    lines = [first, f"weight {tree.weight}"]
    for name, path in paths.items():
        shown = "none"
        if path is not None:
            shown = f"{shared.counted(path['length'], 'bond')}, largest weight {path['largest']}"
        lines.append(f"path {name}: {shown}")
    return "\n".join(lines)


def _name_structure(tree: SpanningTree) -> str:
    return "" if tree.structure is None else tree.structure.name
