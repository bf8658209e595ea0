"""percolab.show: the picture of one sample, as the command `percolab show` draws it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.model import Model
from percolab.configurations.configuration import OF_SAMPLE, OF_SPINS
from percolab.configurations.label import refuse_spins
from percolab.configurations.label_array import Labels
from percolab.configurations.label_files import read_labels, take_labels
from percolab.configurations.picture import (
    draw_configuration,
    draw_flow_picture,
    draw_sample_picture,
    draw_stored_labels,
    draw_tree_picture,
)
from percolab.configurations.sample_page import sample_page
from percolab.errors import InputError, need_given, refuse_given, refuse_together
from percolab.figures import save_figure
from percolab.lattices.graph import Graph, make_graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure, take_structure
from percolab.store.output_files import check_output, check_suffix, write_output
from percolab.tasks.values import take_flag, take_path, take_shape


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
    labels: str | Path | np.ndarray | None = None,
    tree: bool = False,
    backbone: bool = False,
    weights: str | Path | np.ndarray | None = None,
    graph: Any = None,
    html: str | Path | None = None,
    out: str | Path | None = None,
) -> Any:
    """Draw the clusters of one sample and return the figure, as ``percolab show`` does.

    lattice: a name, a path to a .toml file, a :class:`Lattice`, or "bethe:z".  L: its size, or its
    sides as (64, 128), or the shells of a Bethe lattice.  (seed, sample) selects the sample that a
    sweep with this seed measures, at p; for spins (``model="ising"``, "potts:q=3") chain ``sample``
    at T, K, beta or p, after ``sweeps`` (100) updates of type ``update``.

    labels: in place of a sample, the result of :func:`percolab.label`, an array of labels, or a
    file that ``percolab label`` wrote.  tree: draw the minimum spanning tree of the sample, or of
    ``weights``, an array or file as for :func:`percolab.tree`; takes no p.  backbone: draw the flow
    between the sides of the last open axis.  graph: a sample of a graph of up to 1000 sites, in any
    form that :func:`percolab.label` takes.  html: write a page for a browser with a slider for p to
    this file, in place of a figure, and return its path.  out: a .png, .pdf or .svg file to write
    the figure to as well.

    ``numbers`` of the figure has every number drawn (a dict of plain JSON values).

    InputError: a lattice that cannot be drawn or has too many sites, a sample that does not exist,
    arguments that exclude each other.

    >>> show("square", 16, 0.5, seed=3).numbers["title"]
    'square, $L = 16$, $p = 0.5$, seed 3'
    """
    if isinstance(lattice, np.ndarray):
        raise InputError(
            "show: an array of labels is given as labels=..., and an image is labeled first: "
            "percolab.show(labels=percolab.label(image))"
        )
    given = locals()
    if html is not None:
        path = take_path("html", html)
        check_suffix(path, (".html", ".htm"), "a page")
        check_output(path)
        page, _ = draw(**given)
        write_output(path, page.encode())
        return path
    figure, numbers = draw(**given)
    figure.numbers = numbers
    if out is not None:
        save_figure(figure, take_path("out", out))
    return figure


#: For each kind of picture, the reason for refusing arguments, and these arguments.
_REFUSED: dict[str, tuple[str, ...]] = {
    "html": ("a page shows a sample of percolation on a lattice",
             "labels", "tree", "backbone", "graph", "out", *OF_SPINS),
    "graph": ("a graph is drawn with its clusters alone",
              "lattice", "L", "boundary", "labels", "tree", "backbone", *OF_SPINS),
    "backbone": ("a backbone is drawn for a sample of percolation", "labels", "tree", *OF_SPINS),
    "labels": ("labels have none (a lattice goes with --lattice)",
               "L", "p", *OF_SAMPLE, "tree", *OF_SPINS),
    "weights": ("weights are given", *OF_SAMPLE),
    "tree": ("a tree is of all bonds of a lattice", "p", "model", *OF_SPINS),
}  # fmt: skip


def draw(**given: Any) -> tuple[Any, dict[str, Any]]:
    """Return the figure, or the page as text, for the arguments of :func:`show`.

    Also return every number that is drawn in it.  InputError: as for :func:`show`.
    """
    for name in ("tree", "backbone"):
        take_flag(name, given[name])
    refuse_together(_REFUSED, given)
    if not given["tree"]:
        refuse_given("only a tree has it", weights=given["weights"])
    labels, weights, as_page = given["labels"], given["weights"], given["html"] is not None
    lattice, L, p, model = given["lattice"], given["L"], given["p"], given["model"]
    draw_from = Model.parse(model)
    if given["graph"] is not None:
        refuse_spins(draw_from)
        lattice = make_graph(given["graph"], weights=draw_from.needs_weights)
        L = lattice.num_sites
    structure = None if lattice is None else take_structure(lattice, "show")
    keys = {name: given[name] for name in ("seed", "sample", "rng", "boundary")}
    if labels is not None:
        kinds = keys["boundary"]
        kinds = kinds if kinds is None or isinstance(kinds, str) else ",".join(kinds)
        if isinstance(labels, np.ndarray):
            stored = take_labels(labels, _as_lattice(structure), kinds)
            chosen = labels.configuration if isinstance(labels, Labels) else None
            if chosen is not None and isinstance(chosen.lattice, Graph):
                return draw_configuration(chosen)
            return draw_stored_labels(stored, "labels")
        stored = read_labels(str(take_path("labels", labels)), _as_lattice(structure), kinds)
        return draw_stored_labels(stored, str(labels))
    spins = {name: given[name] for name in OF_SPINS if given[name] is not None}
    has_p = given["tree"] or as_page or bool(spins.keys() - {"sweeps", "update"})
    needed = {"lattice": lattice, "L": L if weights is None else 0}
    needed["T" if draw_from.chains else "p"] = 0 if has_p else p
    need_given("a picture of a sample", **needed)
    assert structure is not None
    if L is not None:
        structure, L = take_shape(structure, L)
    if given["tree"]:
        return draw_tree_picture(_as_lattice(structure), L, weights=weights, **keys)
    if as_page:
        return sample_page(structure, L, p, model=model, **keys)
    if given["backbone"]:
        if draw_from.chains:
            raise InputError(f"model {model}: a backbone is drawn for percolation, not for spins")
        return draw_flow_picture(structure, L, p=p, model=model, **keys)
    return draw_sample_picture(structure, L, p, model=model, **keys, **spins)


def _as_lattice(structure: Structure | None) -> Any:
    """Return the structure as a lattice; InputError if it is not one."""
    if structure is not None and not isinstance(structure, Lattice):
        raise InputError(f"{structure.name}: this picture needs a lattice with sides")
    return structure
