"""The registry of labelers.  All label a cluster by its smallest site, so they check each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from percolab.errors import InputError, nearest
from percolab.kernels.registry import load, load_class
from percolab.lattices.lattice import Lattice
from percolab.lattices.structure import Structure

if TYPE_CHECKING:
    from percolab.bonds.model import Model
    from percolab.labelers.forest import Labeler
    from percolab.lattices.topology import Topology


@dataclass(frozen=True)
class LabelerEntry:
    """A labeler's name, a summary, and the place of its class for each kind of device.

    refusal: the place of a function that returns why the labeler cannot serve a topology; or ""
    bonds:   the place of such a function of the offsets of the bonds alone, () for a graph, which
             are known before the topology is made; or ""
    paper:   the paper whose comparison needs the labeler (:mod:`percolab.papers`), or ""
    """

    name: str
    summary: str
    classes: dict[str, str]
    refusal: str = ""
    bonds: str = ""
    paper: str = ""


# Weigel's algorithms for labeling within tiles, and for consolidating the tiles' labels.
_LOCAL = {
    "bfs": "breadth-first search in tiles",
    "union": "union-find in tiles",
    "self": "self-labeling in tiles",
}
_CONSOLIDATIONS = {
    "sewing": "joined 2 x 2, 4 x 4, ...",
    "relaxation": "whose labels relax over their borders",
}

LABELERS = {
    entry.name: entry
    for entry in (
        LabelerEntry(
            "reference",
            "breadth-first search in plain Python, the reference",
            {"cpu": "labelers.reference:Reference"},
        ),
        LabelerEntry(
            "raster", "one scan, union-find with runs as nodes", {"cpu": "labelers.raster:Raster"}
        ),
        LabelerEntry(
            "four_step",
            "Komura 2016: initialization, analysis, label reduction, analysis",
            {"cpu": "labelers.four_step:FourStep", "cuda": "labelers.four_step_cuda:FourStepCuda"},
        ),
        LabelerEntry(
            "label_equivalence",
            "Hawick 2010, Kalentev 2011: scan and analysis until no label changes",
            {
                "cpu": "papers.komura2016.label_equivalence:LabelEquivalence",
                "cuda": "papers.komura2016.label_equivalence_cuda:LabelEquivalenceCuda",
            },
            paper="komura2016",
        ),
        LabelerEntry(
            "tiled",
            "tiles in shared memory, then the graph of what crosses their borders",
            {"cuda": "labelers.tiled.labeler:Tiled"},
            refusal="labelers.tiled.labeler:refusal",
        ),
        LabelerEntry(
            "komura_2015",
            "Komura 2015: the four steps for square and cubic lattices alone",
            {"cuda": "papers.komura2016.komura_2015:Komura2015"},
            bonds="papers.komura2016.komura_2015:why_not",
            paper="komura2016",
        ),
        *(
            LabelerEntry(
                f"tiles:{local}+{joined}",
                f"Weigel 2011: {_LOCAL[local]} {_CONSOLIDATIONS[joined]}",
                {"cuda": f"papers.weigel2011.labeler:{local.title()}{joined.title()}"},
                bonds="papers.weigel2011.tiles:why_not",
                paper="weigel2011",
            )
            for local in _LOCAL
            for joined in _CONSOLIDATIONS
        ),
    )
}

#: The labelers that run when none is named: the fastest on each kind of device.
DEFAULT_LABELER = {"cpu": "raster", "cuda": "tiled"}


def fitting_labeler(name: str | None, kind: str, lattice: Structure) -> tuple[str, str]:
    """Return the labeler to use for a lattice or a graph, and why it is not the one named, or "".

    This decides before the topology is made; :func:`serving_labeler` also checks the topology.
    InputError: there is no labeler of this name.
    """
    if name is not None:
        check_labeler(name)
    offsets = tuple(bond.offset for bond in lattice.bonds) if isinstance(lattice, Lattice) else ()
    problem = _check_bonds(name, kind, offsets)
    if problem:
        return "four_step", f"{name} {problem}; four_step is used instead"
    if not isinstance(lattice, Lattice):
        chosen = name or DEFAULT_LABELER[kind]
        if chosen != "tiled" or kind not in LABELERS["tiled"].classes:
            return chosen, ""
        return "four_step", "tiled needs a lattice; four_step is used instead" if name else ""
    name = name or DEFAULT_LABELER[kind]
    chain = (-1,) + (0,) * (lattice.dimension - 1)
    if name == "tiled" and all(bond.offset == chain for bond in lattice.bonds):
        return "four_step", "tiled needs bonds along two axes; four_step is used instead"
    return name, ""


def _check_bonds(name: str | None, kind: str, offsets: tuple[tuple[int, ...], ...]) -> str:
    """Return why a labeler cannot serve bonds with these offsets, or ""."""
    entry = LABELERS.get(name or DEFAULT_LABELER[kind])
    if entry is None or not entry.bonds or kind not in entry.classes:
        return ""
    problem: str = load(entry.bonds)(offsets)
    return problem


def check_labeler(name: str) -> None:
    """Raise InputError unless there is a labeler of this name, without importing it."""
    if not isinstance(name, str) or name not in LABELERS:
        raise InputError(f"unknown labeler {name!r}; {nearest(name, LABELERS)}")


def labeler_class(name: str | None, kind: str) -> Any:
    """Return the class of a labeler on a kind of device, "cpu" or "cuda".

    None names the default.  InputError: unknown, or not available on that kind of device.
    """
    return load_class("labeler", LABELERS, name or DEFAULT_LABELER[kind], kind)


def serving_labeler(name: str | None, kind: str, topology: Topology) -> str:
    """Return the name of the labeler for a topology: the one named, if it can label it.

    None names the default.  InputError as for :func:`labeler_class`.
    """
    name = name or DEFAULT_LABELER[kind]
    labeler_class(name, kind)
    place = LABELERS[name].refusal
    if _check_bonds(name, kind, topology.offsets):
        return "four_step"
    return "four_step" if place and load(place)(topology) else name


def new_labeler(
    name: str | None,
    kind: str,
    topology: Topology,
    model: Model | None = None,
    *,
    capacity: int = 1,
    tally: bool = False,
) -> Labeler:
    """Return a labeler with an empty batch on a kind of device, "cpu" or "cuda".

    name: the labeler to use if it can label the topology (:func:`serving_labeler`).  model: bond
    percolation unless given.  capacity: the entries of a batch.  tally: whether rows have a
    tally of sizes.  InputError: unknown labeler; ValueError: too many sites for the labeler.
    """
    from percolab.bonds.batch import new_batch
    from percolab.bonds.model import BOND

    chosen = labeler_class(serving_labeler(name, kind, topology), kind)
    if topology.num_points > chosen.most_points(topology.num_axes):
        axes = topology.num_axes
        raise ValueError(
            f"{topology.num_points} sites do not fit in a word that has {axes} axis bits"
        )
    batch = new_batch(kind, topology, model or BOND, capacity=capacity)
    labeler: Labeler = chosen(batch, tally=tally)
    return labeler
