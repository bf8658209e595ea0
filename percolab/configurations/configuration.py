"""Configuration: the sites and open bonds of one sample or image, and where they come from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from percolab.bonds.batch import new_batch
from percolab.bonds.model import BOND, Model
from percolab.bonds.words import GENERATORS, p_to_threshold
from percolab.configurations.array_files import (
    Slices,
    find_slices,
    open_array,
    read_array,
    split_name,
)
from percolab.configurations.phases import SiteRule, connectivity_lattice
from percolab.errors import InputError, refuse_mask
from percolab.kernels.device import Device
from percolab.kernels.memory import check_free, explain_lack
from percolab.kinds.memory import check_memory
from percolab.labelers import fitting_labeler, labeler_class, new_labeler, serving_labeler
from percolab.labelers.forest import Reading
from percolab.lattices.bethe import BetheLattice
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.lattices.shown import Shown, counted
from percolab.lattices.structure import Structure
from percolab.lattices.topology import MAX_POINTS, Topology, bonds_between, pack_bits, unpack_bits
from percolab.measure.clusters import Clusters
from percolab.run.request import Observer
from percolab.tasks.settings import SHOWN_SWEEPS
from percolab.tasks.study import Task, axis_boundaries
from percolab.tasks.study_file import make_request
from percolab.tasks.values import check_choice, take_integer, take_integer_in, take_sample_key

#: The largest number of sweeps of a spin model before a configuration.
MOST_SWEEPS = 10**9
#: Arguments that only a sample of spins has, that name a sample, that only a graph or image has.
OF_SPINS = ("T", "K", "beta", "sweeps", "update")
OF_SAMPLE = ("seed", "sample", "rng", "model")
OF_GRAPH = ("source", "target", "multi", "columns")
OF_IMAGE = ("threshold", "below", "phase", "connectivity")
#: The name in messages of an array that comes from no file.
AN_ARRAY = "the array"
# Number of sweeps whose rows are in memory at a time.
_SWEEPS_A_CALL = 1000
#: The lattice of a site configuration for which none is given, by the number of axes.
DEFAULT_LATTICES = {2: "square", 3: "cubic"}
# Peak memory of making a Bethe lattice's list of neighbours, in bytes per site.
_BETHE_BYTES = 80


@dataclass(frozen=True, eq=False, repr=False)
class Configuration(Shown):
    """Sites and open bonds of one sample, or of a user's file.

    topology:  of the whole lattice or graph, before sites are removed
    opened:    uint32 (num_classes, num_words), the open bonds
    sites:     bool (num_points,), whether a grid point has a site
    lattice:   the lattice or graph
    boundary:  per axis
    record:    where it comes from, as plain JSON values: "kind" ("sites", "bonds" or "sample") ...
    spins:     uint8 (num_points,), the spins between which the open bonds were drawn; None for
               percolation
    phases:    uint8 (num_points,), of an image: the number of every site's phase, 1 for the first
    phase_names:  of an image: the name of every phase

    Labels of a graph use the graph's own site numbers, which may differ from its topology's.
    """

    topology: Topology
    opened: np.ndarray
    sites: np.ndarray
    lattice: Structure
    boundary: tuple[str, ...]
    record: dict[str, Any]
    spins: np.ndarray | None = None
    phases: np.ndarray | None = None
    phase_names: tuple[str, ...] = ()

    def _facts(self) -> dict[str, Any]:
        opened = int(np.bitwise_count(self.opened).sum(dtype=np.int64))
        sites = int(np.count_nonzero(self.sites))
        return {**self.record, "sites": sites, "open bonds": opened}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an array with one entry a grid point: last axis first, or flat on a tree."""
        return self.topology.shape[::-1] or (self.topology.num_points,)

    def label(
        self, labeler: str | None = None, device: str = "cpu", *, observer: Observer | None = None
    ) -> Clusters:
        """Return the clusters; InputError for an unknown labeler or device.

        observer: notified if another labeler is used in place of this one
        """
        if isinstance(self.lattice, Lattice):
            kind = Device.parse(device).resolve().kind
            labeler, note = fitting_labeler(labeler, kind, self.lattice)
            if note and observer is not None:
                observer.noted(note)
        labels = compute_labels(self.topology, self.opened, self.sites, labeler, device)
        inner = self.lattice.inner_numbers if isinstance(self.lattice, Graph) else None
        if inner is None:
            return Clusters(labels, self.topology, self.opened)
        outer = np.argsort(inner).astype(np.int32)
        layers = tuple((outer[a], outer[b]) for a, b in self.topology.end_layers)
        return Clusters.of_any_labels(labels[inner], replace(self.topology, end_layers=layers))


def compute_labels(
    topology: Topology, opened: np.ndarray, sites: np.ndarray, labeler: str | None, device: str
) -> np.ndarray:
    """Return the cluster labels of a configuration, int32 (num_points,), -1 where no site is.

    opened: uint32 (num_classes, num_words).  sites: bool (num_points,).
    InputError: an unknown labeler or device, or one that cannot label so many sites.
    """
    kind = Device.parse(device).resolve().kind
    labeler_class(labeler, kind)
    try:
        chosen = new_labeler(labeler, kind, topology, BOND)
    except ValueError as error:
        raise InputError(f"{topology.num_points} sites on {device}: {error}") from error
    items = chosen.batch.load(opened.reshape(1, -1))
    labels: np.ndarray
    (labels,) = chosen.join(items, Reading.LABELS).labels()
    labels[~sites] = -1
    return labels


def draw_sample(
    topology: Topology, draw: Model, key: tuple[int, int, int], p: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the open bonds of a sample, uint32 (num_classes, num_words), and its sites, bool.

    key: generator, seed of the streams and number of the sample.
    """
    generator, seed, sample = key
    batch = new_batch("cpu", topology, draw)
    one = np.array([sample], np.uint64), np.array([p_to_threshold(p)], np.uint64)
    items = batch.fill(generator, seed, *one)
    opened = batch.copy_open_words(items).reshape(topology.exists.shape)
    return opened, unpack_bits(batch.copy_occupied(items)[0], topology.num_points)


def take_open_bonds(
    topology: Topology, opened: Any, what: str, *, where: str = "opened"
) -> tuple[np.ndarray, np.ndarray]:
    """Return given open bonds as words, uint32 (num_classes, num_words), and the sites, bool.

    opened: such words, or bool (num_classes, ..., y, x).  what: the lattice's name, for messages.
    InputError: another shape or type, or an open bond that does not exist.
    """
    refuse_mask("opened", opened)
    given, packed = np.asarray(opened), topology.exists.shape
    flags = (topology.num_classes, *(topology.shape[::-1] or (topology.num_points,)))
    if given.dtype == bool and given.shape == flags:
        words = pack_bits(given.reshape(topology.num_classes, -1))
    elif given.dtype == np.uint32 and given.shape == packed:
        words = given
    else:
        raise InputError(
            f"opened is {given.dtype} {given.shape}, but open bonds of {what} must be bool "
            f"{flags}, or packed uint32 {packed}"
        )
    strange = np.argwhere(words & ~topology.exists)
    if strange.size:
        k, word = strange[0].tolist()
        raise InputError(f"{where}: word {word} of class {k} opens a bond that does not exist")
    return words, unpack_bits(topology.occupied, topology.num_points)


def given_configuration(
    structure: Structure, L: int, boundary: str | Sequence[str] | None, opened: Any
) -> Configuration:
    """Return the configuration of given open bonds.

    opened: as :func:`take_open_bonds` takes them, or a .npy file of words, uint32
    (num_classes, num_words): bit i % 32 of word i // 32 of class k is bond (k, i).
    InputError: another shape or dtype, or an open bond that does not exist.
    """
    task = _task(structure, L, 0.5, axis_boundaries(structure, boundary))
    topology = structure.topology(task.shape, task.boundary)
    what, where = f"{structure.name} at L = {L}", "opened"
    record = {"kind": "bonds", **_on(structure, task.boundary), "L": L}

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        if dtype == np.uint32 and shape == topology.exists.shape:
            return ""
        return (
            f"{dtype} {shape}, but the open bonds of {what} are uint32 {topology.exists.shape}; "
            "leave out -L for a configuration of sites"
        )

    if isinstance(opened, str | Path):
        record["input"], where = _file_name(str(opened)), str(opened)
        opened = read_array(where, wrong).astype(np.uint32, copy=False)
    words, sites = take_open_bonds(topology, opened, what, where=where)
    return Configuration(topology, words, sites, structure, task.boundary, record)


def site_configuration(
    name: str | Path | np.ndarray | Sequence[str | Path],
    lattice: Lattice | None = None,
    boundary: str | Sequence[str] = "open",
    *,
    connectivity: int | None = None,
    **rule: Any,
) -> Configuration:
    """Return the configuration of an array of sites: bonds between neighbours of a phase are open.

    name: an array, or a .png, .tif, .npy or FILE.h5:/DATASET, or a stack of slices
    (:func:`percolab.configurations.array_files.find_slices`); array[y, x] is the grid point (x, y).
    Values at points where the lattice has no site are not used.  lattice: None selects that of
    ``connectivity`` or else the square lattice in two dimensions, the cubic lattice in three.

    rule: ``threshold``, ``below`` and ``phase``, as :class:`SiteRule`; without them the array holds
    0 and one positive value, which marks the occupied sites.

    InputError: an unreadable file; without a rule, more than two values or a negative one; NaN; a
    lattice of another dimension; a boundary that the lattice cannot have.
    """
    given, text, sites = read_image(name, lattice, connectivity, **rule)
    sites.read(given)
    phases = sites.number(given)
    if not phases.any():
        sites.check_absent(np.unique(given))
    lattice = lattice or image_lattice(connectivity, given.ndim)
    kinds = axis_boundaries(lattice, boundary)
    record = {"kind": "sites", **text, **sites.record, **_on(lattice, kinds)}
    return configuration_of_phases(phases, lattice, kinds, record, tuple(sites.names))


def configuration_of_phases(
    phases: np.ndarray,
    lattice: Lattice,
    boundary: tuple[str, ...],
    record: dict[str, Any],
    names: tuple[str, ...],
) -> Configuration:
    """Return the configuration of an image whose phases are given: uint8, 0 where no site is.

    names: the names of the phases 1, 2 ...
    """
    topology = lattice.topology(phases.shape[::-1], boundary)
    phases = phases.ravel() * unpack_bits(topology.occupied, topology.num_points)
    opened = bonds_between(topology, phases)
    extra: dict[str, Any] = {"phases": phases, "phase_names": names}
    return Configuration(topology, opened, phases != 0, lattice, boundary, record, **extra)


def read_image(
    name: Any,
    lattice: Lattice | None,
    connectivity: int | None,
    *,
    threshold: float | str | None = None,
    below: bool = False,
    phase: Any = None,
    in_parts: bool = False,
) -> tuple[Any, dict[str, str], SiteRule]:
    """Return an image, its name for a record ({} for an array), and which values are sites.

    The arguments are those of :func:`site_configuration`.  in_parts: return an object of the
    image's shape and dtype that reads ranges of the first axis when they are needed.
    """
    is_array = not isinstance(name, str | Path | list | tuple)
    files = None if is_array else find_slices(name)
    text = AN_ARRAY if is_array else str(name)
    if files is not None:
        ends = f"{Path(files[0]).name} ... {Path(files[-1]).name}"
        text = f"{ends} ({counted(len(files), 'slice')})"
    rule = SiteRule.make(text, threshold, below, phase)

    def wrong(shape: tuple[int, ...], dtype: np.dtype) -> str:
        if dtype.kind not in "biuf":
            return f"holds {dtype}; a site configuration holds booleans, integers or floats"
        option = "lattice=" if is_array else "--lattice"
        if problem := lattice_problem(lattice, connectivity, len(shape), option):
            return problem
        used = lattice or image_lattice(connectivity, len(shape))
        if in_parts:
            return "" if prod(shape) else "it has no sites"
        if not 1 <= prod(shape) <= MAX_POINTS:
            return f"{prod(shape)} sites, but 1 to {MAX_POINTS} can be labeled"
        needed = prod(shape) * (dtype.itemsize + 2 * len(used.bonds) + 40)
        problem = explain_lack(f"{prod(shape)} sites need", needed)
        return problem and f"{problem}; percolab label --slabs auto labels it in parts"

    as_grey = threshold is not None
    if is_array:
        if hasattr(name, "__cuda_array_interface__"):
            raise InputError(f"{text}: is in the memory of a GPU; copy it to the host first")
        if not (hasattr(name, "shape") and hasattr(name, "dtype")):
            raise InputError(f"an image must be an array or a file, not {type(name).__name__}")
        refuse_mask(text, name)
        if problem := wrong(name.shape, np.dtype(name.dtype)):
            raise InputError(f"{text}: {problem}")
        return (name if in_parts else np.asarray(name[...])), {}, rule
    if files is not None:
        slices = Slices(files, wrong, as_grey=as_grey)
        return (slices if in_parts else slices[:]), {"input": text}, rule
    read = open_array if in_parts else read_array
    return read(text, wrong, as_grey=as_grey), {"input": _file_name(text)}, rule


def lattice_problem(
    lattice: Lattice | None, connectivity: int | None, dimension: int, option: str = "lattice="
) -> str:
    """Return what is wrong with a lattice for an image of this dimension, or ""."""
    if lattice is None and connectivity is None and dimension not in DEFAULT_LATTICES:
        return f"an array of {dimension} dimensions; name its lattice with {option}"
    used = lattice or image_lattice(connectivity, dimension)
    if lattice is not None and connectivity is not None:
        raise InputError(f"connectivity: {lattice.name} has its own neighbours; leave one out")
    if dimension != used.dimension:
        return f"{dimension} dimensions, but {used.name} has {used.dimension}"
    return ""


def image_lattice(connectivity: int | None, dimension: int) -> Lattice:
    """Return the lattice of an image for which no lattice is given."""
    if connectivity is not None:
        return connectivity_lattice(connectivity, dimension)
    return load_lattice(DEFAULT_LATTICES[dimension])


def random_configuration(
    lattice: Structure,
    L: int,
    p: float | None = None,
    *,
    sample: int = 0,
    boundary: str | Sequence[str] | None = None,
    sweeps: int | None = None,
    **settings: Any,
) -> Configuration:
    """Return a sample: the one that a sweep with this seed measures.

    lattice: a lattice; with its shells as L, a Bethe lattice; with its sites as L, a graph.
    boundary: None is the default.  settings: ``seed``, ``rng``, ``model`` as a sweep has them.

    Of spins it is chain number ``sample``, ordered at its start if the number is even, after so
    many ``sweeps`` (100) by ``update``: the spins, and the open bonds of the sweep that comes next.
    In place of p there may be T, K or beta.

    InputError for values that a sweep refuses, and for more sites than fit into memory.
    """
    usual = ",".join(lattice.boundaries[:1] * lattice.dimension)
    boundary = usual if boundary is None else boundary
    kinds = axis_boundaries(lattice, boundary) if lattice.dimension else ()
    if isinstance(lattice, BetheLattice):
        (points,) = lattice.shape(L)
        check_free(f"{L} shells: {points} sites need", _BETHE_BYTES * points)
    check_choice("rng", settings.get("rng", "xorwow"), GENERATORS)
    sample = take_sample_key("sample", sample)
    task = _task(lattice, L, p, kinds, **settings)
    topology = lattice.topology(task.shape, task.boundary)
    (p,) = task.p
    record = {
        "kind": "sample",
        **_on(lattice, task.boundary),
        **{"L": L, "p": p, "seed": task.seed, "sample": sample, "rng": task.rng},
    }
    if task.draw.draws_sites or task.draw.chains:
        record["model"] = task.model
    if isinstance(lattice, Graph):
        record["graph"] = True
    if task.draw.chains:
        sweeps = SHOWN_SWEEPS if sweeps is None else sweeps
        return _chain_configuration(task, topology, sample, sweeps, record)
    if sweeps is not None and take_integer("sweeps", sweeps):
        raise InputError(f"sweeps: {task.model} percolation has no spins (--model ising)")
    key = GENERATORS[task.rng], task.stream_seed, sample
    opened, sites = draw_sample(topology, task.draw, key, p)
    return Configuration(topology, opened, sites, lattice, task.boundary, record)


def _chain_configuration(
    task: Task, topology: Topology, number: int, sweeps: int, record: dict[str, Any]
) -> Configuration:
    """Return the spins of a chain after some sweeps, and the open bonds of the next one."""
    sweeps = take_integer_in(0, MOST_SWEEPS, "sweeps", sweeps)
    (p,) = task.p
    name = serving_labeler(None, "cpu", topology)
    chains = task.kind.new_chains(task, name, topology, kind="cpu")
    chains.begin(GENERATORS[task.rng], [task.chain(number, p)], [number % 2 == 1])
    for first in range(0, sweeps, _SWEEPS_A_CALL):
        chains.advance(min(_SWEEPS_A_CALL, sweeps - first))
    chains.rows_at(np.array([p_to_threshold(p)], np.uint64))
    opened = chains.labeler.batch.opened.reshape(topology.exists.shape).copy()
    spins = None
    if task.draw.has_spins:
        digits = unpack_bits(chains.copy_planes()[0], topology.num_points)
        spins = np.asarray((digits << np.arange(len(digits))[:, None]).sum(axis=0), np.uint8)
    sites = unpack_bits(topology.occupied, topology.num_points)
    record |= {"sweeps": sweeps, **task.kind.samples_identity(task)}
    return Configuration(topology, opened, sites, task.structure, task.boundary, record, spins)


def _task(
    lattice: Structure, L: int, p: float | None, boundary: tuple[str, ...], **keys: Any
) -> Task:
    """Return the checked task of a sweep; InputError if it does not fit into memory."""
    point: dict[str, Any] = {} if p is None else {"p": [p]}
    task = make_request(lattice, L=[L], boundary=boundary, **point, **keys).study.tasks[L]
    task.structure.check_size(task.size, task.boundary)
    check_memory(task, None, Device("cpu"), 1, in_use=13 * task.num_points)
    return task


def _on(lattice: Structure, boundary: tuple[str, ...]) -> dict[str, Any]:
    return {"lattice": lattice.name, "boundary": list(boundary)}


def _file_name(name: str) -> str:
    """Return a file's name with its dataset, but without its folder."""
    path, dataset = split_name(name)
    return path.name if dataset is None else f"{path.name}:{dataset}"
