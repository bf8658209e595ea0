"""percolab tree --weights: the one tree of a graph or lattice whose bonds have given weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from percolab.cli.options import counted, input_files, refuse, write_answer
from percolab.cli.setting_options import given_settings
from percolab.errors import InputError

if TYPE_CHECKING:
    from percolab.trees.given import SpanningTree

#: What --weights is for the weights in a graph's own file.
IN_FILE = "file"
#: Settings of a study of samples that one tree of given weights has not.
_OF_GRAPHS = ("source", "target", "multi", "columns")
_OF_SAMPLES = ("samples", "seed", "rng", "workers")


def write_given_tree(
    weights: str, given: dict[str, Any], *, method: str | None = None, as_json: bool = False
) -> None:
    """Find the tree of given weights, write it to a file if requested, and print a summary.

    weights: "file", those of a graph's file; or a .npy file or FILE.h5:/DATASET, of a lattice
    (classes, ..., y, x), of a graph one for each bond.
    given: the options of the command by name, as click has them: lattice, graph, source, target,
    multi, columns, L, boundary, device and out, .csv, .npz, .npy or .h5, or None for no file.

    InputError: options that do not go together, weights that cannot be used.
    """
    from percolab.configurations.tree_files import check_tree_file, write_tree_file

    settings = given_settings(given)
    refuse(settings, "given weights (--weights) have no samples", *_OF_SAMPLES)
    out = settings.get("out")
    if out is not None:
        check_tree_file(out, of_graph="graph" in settings, inputs=input_files())
    ways = {"method": method, "device": settings.get("device", "auto")}
    found = _graph_result(weights, settings, ways) if "graph" in settings else None
    found = found or _lattice_result(weights, settings, ways)
    if out is not None:
        write_tree_file(out, found)
    paths = find_paths(found)
    record = {"of": _structure_name(found)} | found.to_dict() | {"paths": paths}
    text = tree_text(found, paths)
    if out is not None:
        record, text = {"tree": str(out)} | record, f"{text}\ntree in {out}"
    write_answer(record, text, as_json=as_json)


def find_paths(tree: SpanningTree) -> dict[str, dict[str, Any] | None]:
    """Return length and largest weight of the path between the sides of every open axis by name.

    None where they are not connected, or where a site is in both.
    """
    from percolab.lattices.lattice import AXIS_NAMES

    found: dict[str, dict[str, Any] | None] = {}
    for axis in tree.topology.open_axes:
        has_terminals = not tree.topology.shape
        name = "source-target" if has_terminals else AXIS_NAMES[axis]
        trunk = tree.trunk(axis)
        found[name] = None
        if trunk.size:
            largest = tree.weights[trunk[-1]].item()
            found[name] = {"length": int(trunk.size), "largest": largest}
    return found


def tree_text(tree: SpanningTree, paths: dict[str, dict[str, Any] | None]) -> str:
    """Return what a tree is in lines of words."""
    what = f"minimum spanning tree of {_structure_name(tree)}"
    if tree.parts > 1:
        what = (
            f"minimum spanning forest of {_structure_name(tree)}, which is not connected: "
            f"{counted(tree.parts, 'tree')}"
        )
    lines = [
        f"{what}; {counted(tree.num_sites, 'site')}, {counted(len(tree.bonds), 'bond')} of "
        f"{tree.topology.num_bonds} ({tree.method})",
        f"weight {tree.weight}",
    ]
    for name, path in paths.items():
        shown = "none"
        if path is not None:
            shown = f"{counted(path['length'], 'bond')}, largest weight {path['largest']}"
        lines.append(f"path {name}: {shown}")
    return "\n".join(lines)


def _structure_name(tree: SpanningTree) -> str:
    return "" if tree.structure is None else tree.structure.name


def _graph_result(weights: str, settings: dict[str, Any], ways: dict[str, Any]) -> SpanningTree:
    from percolab.configurations.tree import read_weight_list, tree
    from percolab.lattices.graph import load_graph

    refuse(settings, "a graph (--graph) has its own", "lattice", "L", "boundary")
    keys = {name: settings[name] for name in _OF_GRAPHS if name in settings}
    if weights == IN_FILE:
        return tree(settings["graph"], **keys, **ways)
    graph = load_graph(settings["graph"], **keys)
    return tree(graph, weights=read_weight_list(weights, graph), **ways)


def _lattice_result(weights: str, settings: dict[str, Any], ways: dict[str, Any]) -> SpanningTree:
    from percolab.configurations.tree import read_weights, tree_from_array
    from percolab.lattices.structure import load_structure

    refuse(settings, "only a graph (--graph) has it", *_OF_GRAPHS)
    if weights == IN_FILE:
        raise InputError(
            "--weights file: only a graph's file (--graph) holds weights; of a lattice they are a "
            ".npy file or file.h5:/dataset"
        )
    if "lattice" not in settings:
        raise InputError(f"--weights {weights}: name the lattice (--lattice) or graph (--graph)")
    lattice = load_structure(settings["lattice"])
    sizes = settings.get("L", (None,))
    if len(sizes) > 1:
        raise InputError(f"-L: weights are those of one size, but {len(sizes)} are given")
    where = sizes[0], settings.get("boundary")
    return tree_from_array(lattice, read_weights(weights, lattice, *where), *where, **ways)
