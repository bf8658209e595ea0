"""From settings to a study, its stop rule, and where it is stored.

They come from Python, from the command line, or from a study file (TOML).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import lcm
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from percolab.bonds.model import Model
from percolab.errors import InputError, refuse_given
from percolab.kernels.device import Device
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.ensemble import Ensemble, names_ensemble
from percolab.lattices.graph import Graph, make_graph
from percolab.lattices.lattice import Lattice
from percolab.lattices.removal import ORDERS, RANDOM, needs_weights, order_graph
from percolab.lattices.structure import Structure, load_structure
from percolab.lattices.toml_table import Table, parse_toml, read_text
from percolab.measure.functions import take_functions
from percolab.tasks import values
from percolab.tasks.kind_registry import METHODS, find_kind
from percolab.tasks.settings import (
    DEFAULT_LATTICE,
    DEFAULT_OUT,
    DEFAULT_SAMPLES,
    DEFAULT_SIZES,
    FILE_KEYS,
    SETTINGS,
    Settings,
    takes_settings,
)
from percolab.tasks.study import StopRule, Study, axis_boundaries, explain_refusal
from percolab.tasks.values import take_shapes

#: Shells of a Bethe lattice: 94 to 24 574 sites at z = 3.
DEFAULT_SHELLS = (5, 7, 9, 11, 13)
#: Sites of the graphs of an ensemble.
DEFAULT_SITES = (1000, 4000, 16000)

#: Settings of a request that no study has.
_TAKEN = ("labeler", "workers", "executor", "slabs", "split", "blocks", "merge", "part")
#: Settings that a study takes as they are, whatever its lattice is.
_OF_STUDY = tuple(
    field.name
    for field in fields(Study)
    if field.name in SETTINGS and field.name not in ("lattice", "boundary")
)


@dataclass(frozen=True)
class SweepRequest:
    """A study with its stop rule, what to sample it with, and the file it goes to.

    options: as :class:`percolab.run.request.SweepOptions` has them, but for writer and observer.
    """

    study: Study
    rule: StopRule
    out: Path
    options: Mapping[str, Any]


@takes_settings
def make_request(
    lattice: str | Path | Structure | None = None, **given: Unpack[Settings]
) -> SweepRequest:
    # NumPy's numbers become Python's.
    plain = {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in given.items()
    }
    settings = {name: setting.default for name, setting in SETTINGS.items()} | plain
    settings["p"] = _read_p(settings)
    structure = _choose_structure(lattice, settings)
    settings["order"], structure = _order_structure(structure, settings)
    if settings["order"] != RANDOM:
        settings["method"] = plain.get("method", "microcanonical")
    if isinstance(structure, Graph):
        settings |= {"source": None, "target": None}
    sizes = default_sizes(structure)
    if settings["L"] is not None:
        structure, sizes = take_shapes(structure, settings["L"])
    study = Study(
        structure=structure,
        sizes=sizes,
        boundary=axis_boundaries(structure, settings["boundary"]),
        functions=take_functions(settings["observables"]),
        **{name: SETTINGS[name].take(name, settings[name]) for name in _OF_STUDY},
    )
    for name in ("blocks", "merge"):
        if settings[name] is not None and settings["split"] is None:
            raise InputError(f"{name} = {settings[name]}: only with --split lattice")
    left_open = {"L"} if settings["L"] is None else set()
    samples, target_error = (
        SETTINGS[name].take(name, settings[name]) for name in ("samples", "target_error")
    )
    if samples is None and target_error is None:
        samples = DEFAULT_SAMPLES
        left_open.add("samples")
    options = {name: SETTINGS[name].take(name, settings[name]) for name in _TAKEN}
    options |= {"left_open": left_open, "device": _take_device(settings, options["executor"])}
    rule = StopRule(_per_size(samples, sizes), target_error)
    out = DEFAULT_OUT if settings["out"] is None else settings["out"]
    return SweepRequest(study, rule, values.take_results_path("out", out), options)


def _take_device(settings: Mapping[str, Any], executor: Any) -> Device:
    device = Device.parse_all(settings["device"])
    if executor != "threads" or not device.others:
        return device
    if settings["device"] != "cuda":
        raise InputError(
            f"--device {settings['device']}: threads can use only one GPU; leave out --executor to "
            "use one process per GPU"
        )
    return Device("cuda")


#: What may be given in place of p.
_COUPLINGS = ("beta", "T", "K")


def _read_p(settings: Mapping[str, Any]) -> Any:
    """Return p as it is given, or from beta, T or K; InputError for two of them."""
    name, *others = [name for name in ("p", *_COUPLINGS) if settings[name] is not None] or ["p"]
    if others:
        raise InputError(f"{name} and {others[0]} are both given: give only one of them")
    if name == "p":
        given = values.take_probabilities("p", settings["p"])
        return None if given is None else values.ascending(given)
    model = Model.parse(settings["model"])
    values.check_choice("method", settings["method"], METHODS)
    if name not in find_kind(settings["method"], model.chains).settings:
        raise InputError(explain_refusal(name, str(model)))
    if name == "K" and model.name != "ising":
        raise InputError(f"K is the coupling of the Ising model; give beta for {model}")
    couplings = values.take_couplings(name, settings[name]) or ()
    if name == "T":
        couplings = tuple(1 / value for value in couplings)
    # Rounded, so that no last digit of a machine's exponential gets into a task's id.
    return values.ascending([float(f"{model.coupling_to_p(value):.14g}") for value in couplings])


def _choose_structure(
    lattice: str | Path | Structure | None, settings: Mapping[str, Any]
) -> Structure:
    of_graph = {name: settings[name] for name in ("source", "target", "multi", "columns")}
    of_graph["multi"] = SETTINGS["multi"].take("multi", settings["multi"])
    if settings["graph"] is not None:
        given = {"lattice": lattice, "L": settings["L"], "boundary": settings["boundary"]}
        own = {name: value is not None for name, value in given.items()}
        refuse_given("a graph has its own", **own)
        model, source = Model.parse(settings["model"]), of_graph["source"]
        of_graph["weights"] = model.needs_weights or needs_weights(settings["order"])
        measure = SETTINGS["measure"].take("measure", settings["measure"])
        if "source" in measure and source is not None and of_graph["target"] is None:
            return make_graph(settings["graph"], **of_graph | {"source": None}).with_source(source)
        return make_graph(settings["graph"], **of_graph)
    if of_graph["multi"] or of_graph["columns"] is not None:
        raise InputError("multi and columns belong to a graph: give --graph")
    if isinstance(lattice, str) and names_ensemble(lattice):
        lattice = Ensemble(lattice)
    if isinstance(lattice, Ensemble) and settings["boundary"] is not None:
        raise InputError(f"boundary = {settings['boundary']}, but {lattice.name} has none")
    if lattice is None or isinstance(lattice, str | Path):
        return load_structure(DEFAULT_LATTICE if lattice is None else str(lattice))
    if not isinstance(lattice, Structure):
        raise InputError(
            f"lattice: {type(lattice).__name__} given, but it must be a name, a file or a Lattice"
            "; give a graph as graph="
        )
    return lattice


def _order_structure(structure: Structure, settings: Mapping[str, Any]) -> tuple[str, Structure]:
    """Return the name of the order of removal, and the graph with the ranks that it gives."""
    order = settings["order"]
    if isinstance(order, str) and order == RANDOM:
        return order, structure
    if isinstance(structure, Ensemble):
        if order not in ORDERS or needs_weights(order):
            raise InputError(
                f"order = {order}, but {structure.name} allows only degree or betweenness"
            )
        return str(order), structure
    if not isinstance(structure, Graph):
        raise InputError(f"order = {order}, but only a graph has one: give --graph")
    model = Model.parse(settings["model"])
    if model.needs_weights:
        raise InputError(f"order = {order} needs model bond or site, not {model}")
    return order_graph(structure, order, sites=model.draws_sites)


def default_sizes(structure: Structure) -> tuple[int, ...]:
    """Return the usual sizes: for a lattice, multiples of its cell, so that all end alike."""
    if isinstance(structure, Graph):
        return (structure.num_sites,)
    if isinstance(structure, BetheLattice):
        return DEFAULT_SHELLS
    if isinstance(structure, Ensemble):
        return (len(structure.degrees),) if structure.degrees else DEFAULT_SITES
    assert isinstance(structure, Lattice)
    cell, usual = lcm(*structure.cell), DEFAULT_SIZES[min(structure.dimension, max(DEFAULT_SIZES))]
    cells = [max(round(usual[0] / cell), 1)]
    for size in usual[1:]:
        cells.append(max(round(cells[0] * size / usual[0]), cells[-1] + 1))
    return tuple(cell * count for count in cells)


def _per_size(samples: int | Sequence[int] | None, sizes: tuple[int, ...]) -> dict[int, int] | None:
    if samples is None:
        return None
    counts = values.take_counts("samples", samples)
    if len(counts) == 1:
        counts *= len(sizes)
    if len(counts) != len(sizes):
        raise InputError(f"samples: {len(counts)} numbers given for {len(sizes)} sizes L")
    return dict(zip(sizes, counts))


def read_request(path: Path, overrides: Mapping[str, Any]) -> SweepRequest:
    """Return the request in a study file, with options put over its keys."""
    table = Table(parse_toml(read_text(path), where=str(path)), FILE_KEYS, str(path))
    if not table.data:
        keys = ", ".join(sorted(FILE_KEYS))
        raise InputError(f"{path}: is empty; give some of the keys {keys}")
    settings: dict[str, Any] = {
        name: SETTINGS[name].resolve(path.parent, value) for name, value in table.data.items()
    }
    try:
        request = make_request(**{**settings, **overrides})
        request.rule.check(request.study)
        return request
    except InputError as error:
        named = [name for name in overrides if name in FILE_KEYS]
        given = f" with {', '.join(named)} given" if named else ""
        raise InputError(f"{path}{given}: {error}") from error
