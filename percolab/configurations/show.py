"""The picture of one sample, as `percolab show` draws it, for Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.configurations.label import refuse_spins
from percolab.configurations.picture import (
    draw_flow_picture,
    draw_labels_picture,
    draw_sample_picture,
    draw_tree_picture,
)
from percolab.configurations.sample_page import sample_page
from percolab.errors import InputError
from percolab.figures import save_figure
from percolab.lattices.graph import make_graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure, take_structure
from percolab.store.output_files import check_output, check_suffix, write_output
from percolab.tasks.settings import SHOWN_SWEEPS
from percolab.tasks.shapes import take_shape
from percolab.tasks.study import axis_boundaries
from percolab.tasks.values import (
    refuse_given,
    refuse_sample_settings,
    take_flag,
    take_path,
    take_sample_key,
)


def show(
    lattice: str | Path | Structure | None = None,
    L: int | str | tuple[int, ...] | None = None,
    p: float | None = None,
    *,
    sample: int = 0,
    seed: int = 1,
    rng: str = "xorwow",
    model: str = "bond",
    boundary: str | Sequence[str] | None = None,
    T: float | None = None,
    K: float | None = None,
    beta: float | None = None,
    sweeps: int | None = None,
    update: str | None = None,
    labels: str | Path | None = None,
    tree: bool = False,
    backbone: bool = False,
    weights: str | Path | np.ndarray | None = None,
    graph: Any = None,
    html: str | Path | None = None,
    out: str | Path | None = None,
) -> Any:
    """Draw the clusters of one sample and return the figure, as ``percolab show`` does.

    lattice: a name, a path to a .toml file, a :class:`Lattice`, or "bethe:z"; L its size, or its
    sides as (64, 128), of a Bethe lattice its shells.  (seed, sample) names the sample that a sweep
    with this seed measures, at p; of spins (``model="ising"``, "potts:q=3") it is chain ``sample``
    at T, K, beta or p, after so many sweeps (100) of ``update``.

    labels: in place of a sample a file that ``percolab label`` wrote.  tree: draw the minimum
    spanning tree of the sample, or of weights, an array as :func:`percolab.tree` takes it or the
    file of one; no p.  backbone: draw what flows between the sides of the last open axis.  graph: a
    sample of a graph of up to 1000 sites, in any form that :func:`percolab.label` takes.  html: in
    place of a figure write a page for a browser, with a slider for p, to this file, and return its
    path.  out: a .png, .pdf or .svg file to write the figure to as well.

    Every number drawn is in ``numbers`` of the figure (dict of plain JSON values).

    InputError: a lattice that has no picture or too many sites for one, a sample that does not
    exist, arguments that exclude each other.

    >>> show("square", 16, 0.5, seed=3).numbers["title"]
    'square, $L = 16$, $p = 0.5$, seed 3'
    """
    given: dict[str, Any] = {"T": T, "K": K, "beta": beta, "sweeps": sweeps, "update": update}
    tree, backbone = take_flag("tree", tree), take_flag("backbone", backbone)
    if not tree:
        refuse_given("only a tree (tree=True) has it", weights=weights)
    if graph is not None:
        reason = "a graph is drawn with its clusters alone"
        refuse_given(reason, lattice=lattice, L=L, boundary=boundary, labels=labels, html=html)
        refuse_given(reason, tree=tree or None, backbone=backbone or None, **given)
        refuse_spins(Model.parse(model))
        lattice = make_graph(graph, weights=Model.parse(model).needs_weights)
        L = lattice.num_sites
    structure = None if lattice is None else take_structure(lattice, "show")
    if structure is not None and L is not None:
        structure, L = take_shape(structure, L)
    keys: dict[str, Any] = {
        "seed": take_sample_key("seed", seed),
        "sample": take_sample_key("sample", sample),
        "rng": rng,
    }
    if html is not None:
        reason = "a page (html) shows percolation on a lattice"
        refuse_given(reason, labels=labels, tree=tree or None, backbone=backbone or None, out=out)
        refuse_given(reason, **given)
        if structure is None:
            raise InputError("show: give a lattice with its size L")
        path = take_path("html", html)
        check_suffix(path, (".html", ".htm"), "a page")
        check_output(path)
        keys |= {"model": model, "boundary": boundary}
        page, _ = sample_page(structure, _check_size(L), p, **keys)
        write_output(path, page.encode())
        return path
    if labels is not None:
        refuse_given("labels are a configuration already", L=L, p=p, **given)
        refuse_sample_settings("labels are a configuration already", seed, sample, rng)
        refuse_given("labels are given", tree=tree or None, backbone=backbone or None)
        kinds = boundary if boundary is None or isinstance(boundary, str) else ",".join(boundary)
        drawn = draw_labels_picture(str(labels), _as_lattice(structure), kinds)
    elif structure is None:
        raise InputError("show: give a lattice with its size L, or labels=")
    elif tree:
        refuse_given("a tree is of all bonds of a lattice", p=p, backbone=backbone or None, **given)
        if weights is not None:
            refuse_sample_settings("weights are given", seed, sample, rng)
            keys = {"weights": weights if isinstance(weights, np.ndarray) else str(weights)}
        size = None if L is None and weights is not None else _check_size(L)
        drawn = draw_tree_picture(_as_lattice(structure), size, boundary=boundary, **keys)
    else:
        keys["model"] = model
        if boundary is not None:
            keys["boundary"] = axis_boundaries(structure, boundary)
        keys |= {name: value for name, value in given.items() if value is not None}
        if Model.parse(model).chains:
            keys.setdefault("sweeps", SHOWN_SWEEPS)
        if p is None and T is K is beta is None:
            raise InputError("show: give p" + (", T, K or beta" if "sweeps" in keys else ""))
        if not backbone:
            drawn = draw_sample_picture(structure, _check_size(L), p, **keys)
        elif "sweeps" in keys:
            raise InputError(f"model {model}: what flows is drawn of percolation, not of spins")
        else:
            drawn = draw_flow_picture(_as_lattice(structure), _check_size(L), p=p, **keys)
    figure, numbers = drawn
    figure.numbers = numbers  # type: ignore[attr-defined]
    if out is not None:
        save_figure(figure, take_path("out", out))
    return figure


def _check_size(L: Any) -> int:
    if L is None:
        raise InputError("show: give the size L of the lattice")
    return int(L)


def _as_lattice(structure: Structure | None) -> Any:
    """Return a lattice; InputError for what has no axes."""
    if structure is not None and not isinstance(structure, Lattice):
        raise InputError(f"{structure.name}: such a picture is of a lattice with sides")
    return structure
