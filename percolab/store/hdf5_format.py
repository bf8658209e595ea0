"""The HDF5 format of a results file, as docs/hdf5-format.md describes it.

A file is a tree of groups, datasets and attributes (:mod:`percolab.store.tree`): the root, and
below it one group for each task.  This module converts contents to a tree and back.  Datasets
depend on the study alone; who made them, and when, is kept in attributes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice, lattice_from_text
from percolab.lattices.structure import Structure, structure_from_record
from percolab.lattices.topology import LONGEST_NAME, count_words
from percolab.measure.columns import Column, SumColumn, list_datasets
from percolab.measure.tallies import bin_edges
from percolab.store.reading import RESULTS, FileFormat
from percolab.store.task_result import TaskResult
from percolab.store.tree import Data, Node, check_seal, check_tables, encode_texts
from percolab.tasks.blocks import ChainEnd, squared_names
from percolab.tasks.codecs import SUM_AXES, StoredArray
from percolab.tasks.settings import SETTINGS
from percolab.tasks.study import (
    ADDED,
    SAMPLE_VERSION,
    Study,
    Task,
    check_sample_version,
    functions_named,
)

FORMAT = FileFormat(RESULTS, 6, "no results file of a sweep", earlier=(5,))
#: Description of the names of a graph's sites, where these have names.
SITE_NAMES = "name of every site, by its number"
#: Datasets in a task's group in addition to the sums of columns.
_OTHERS = frozenset(
    {"p", "block", "block_count", "sums", "squares", "products", "size_edges", "spins"}
)
#: Largest ratio of the size of columns that this version does not know to that of their file.
_MOST_UNKNOWN = 64
#: Samples are numbered up to this.
_MOST_SAMPLES = 2**63 - 1
#: The stored facts about an observable, each as a list of texts.
_TEXTS = ("name", "symbol", "meaning", "unit", "source")


def encode_contents(
    study: Study, tasks: Mapping[str, TaskResult], runs: Sequence[dict[str, Any]]
) -> Node:
    lattice = study.structure
    root = Node({"format": FORMAT.name, "schema_version": np.array(FORMAT.version)})
    root.attributes["study"] = json.dumps(study.description())
    if isinstance(lattice, Lattice):
        root.attributes["lattice"] = lattice.source
    else:
        root.attributes["structure"] = json.dumps(lattice.record())
    if isinstance(lattice, Graph) and lattice.names is not None:
        root.datasets["site_names"] = _data(encode_texts(lattice.names), SITE_NAMES, "")
    root.attributes["runs"] = [json.dumps(run) for run in runs]
    if tasks:
        groups = {key: _encode_task(tasks[key]) for key in sorted(tasks)}
        root.groups["tasks"] = Node(groups=groups)
    return root


def decode_contents(
    root: Node, path: object
) -> tuple[Study, dict[str, TaskResult], list[dict[str, Any]]]:
    """Return study, tasks by id and runs of a tree; InputError, or ValueError if it is damaged."""
    check_seal(root)
    lattice = _read_structure(root, path)
    if "site_names" in root.datasets and isinstance(lattice, Graph):
        lattice = replace(lattice, names=root.names("site_names"))
    study = json.loads(root.text("study"))
    runs = [json.loads(run) for run in root.texts("runs")]
    tasks = {key: _decode_task(group, lattice) for key, group in _tasks_in(root).items()}
    for key, result in tasks.items():
        if result.task.id != key:
            raise InputError(f"{path}: task {key} does not match its own description")
    return Study.from_description(study, lattice), tasks, runs


def check_shapes(root: Node, path: Path) -> None:
    """Raise ValueError for a dataset that the study in a file does not need, before it is read."""
    lattice = _read_structure(root, path)
    check_tables(root, "site_names")
    for group in root.groups.values():
        check_tables(group)
    names = root.datasets.get("site_names")
    if names and names.values.shape != (getattr(lattice, "num_sites", 0),):
        raise ValueError("the numbers of names and sites differ")
    if names and names.values.dtype.itemsize > LONGEST_NAME:
        raise ValueError(f"a name of a site has {names.values.dtype.itemsize} bytes")
    unknown = sum(_check_task(group, lattice) for group in _tasks_in(root).values())
    if unknown > _MOST_UNKNOWN * path.stat().st_size:
        raise ValueError(f"its unknown columns claim {unknown} bytes, too many for this file")


def _check_task(node: Node, lattice: Structure) -> int:
    """Raise ValueError for a dataset whose shape is not its task's; return the unknown bytes."""
    task = _find_task(node, lattice)
    columns = _stored_columns(node, task)
    layout = task.kind.codec.layout(task, columns)
    shapes = {name: stored.shape for name, stored in layout.items()}
    if _has_products(node):
        shapes["products"] = _products_shape(shapes.pop("squares"), shapes["sums"])
    blocks = node.array("block", np.int64).size
    for name, shape in shapes.items():
        there = node.datasets[name].values.shape
        if there != (blocks, *shape):
            raise ValueError(
                f"task {task.id}: the shapes of its datasets do not fit together: {name} is {there}"
            )
    check_tables(node, "spins", *shapes)
    if "spins" in node.datasets:
        node.array("spins", np.uint32, _spin_shape(task))
    unknown = [column.name for column in columns if not column.is_known]
    return sum(node.datasets[name].values.nbytes for name in unknown if name in shapes)


def _tasks_in(root: Node) -> dict[str, Node]:
    return root.groups["tasks"].groups if "tasks" in root.groups else {}


def _read_structure(root: Node, path: object) -> Structure:
    if "structure" in root.attributes:
        return structure_from_record(json.loads(root.text("structure")))
    return lattice_from_text(root.text("lattice"), where=f"{path}: lattice")


def _encode_task(result: TaskResult) -> Node:
    task = result.task
    node = Node(
        {
            "L": np.array(task.size),
            "shape": np.array(task.shape, np.int64),
            "boundary": list(task.boundary),
            "model": task.model,
            "rng": task.rng,
            "seed": np.array(task.seed, np.uint64),
            "stream_seed": np.array(task.stream_seed, np.uint64),
            "block_size": np.array(task.block_size),
            "method": task.method,
            "sample_version": np.array(SAMPLE_VERSION),
        }
    )
    identity = task.kind.samples_identity(task) | task.kind.identity(task)
    for name in (name for name in SETTINGS if name in identity and name in task.kind.settings):
        value = identity[name]
        node.attributes[name] = value if isinstance(value, str) else np.array(value)
    if task.functions:
        node.attributes["functions"] = [str(each) for each in task.functions]
    if result.end is not None:
        node.attributes["sweeps"] = np.array(result.end.sweeps)
        node.datasets["spins"] = _data(result.end.planes, task.kind.planes_are, "1")
    node.datasets["block"] = _data(result.numbers, "number of the first block", "1")
    node.datasets["block_count"] = _data(result.counts, "blocks that are added up", "1")
    if task.kind.codec.holds_columns:
        for key in _TEXTS:
            texts = [getattr(each, key) for each in result.observables]
            node.attributes[f"observable_{key}s"] = texts
        node.attributes["squared_names"] = squared_names(result.observables)
        node.datasets["p"] = _data(np.array(task.p, np.float64), task.draw.varying, "1")
        if task.measure:
            node.attributes["measure"] = list(task.measure)
    node.attributes |= task.kind.codec.attributes(task)
    for name, stored in result.layout().items():
        node.datasets[name] = _data(result.stacked(name), stored.meaning, stored.unit)
    if any(isinstance(each.gathered, SumColumn) and each.gathered.per_bin for each in task.columns):
        edges = bin_edges(task.num_points)
        node.datasets["size_edges"] = _data(edges, "smallest size of each bin", "site")
    # Those of further columns come last.
    node.datasets = dict(sorted(node.datasets.items(), key=lambda each: each[0] not in _OTHERS))
    return node


def _data(values: NDArray[Any], meaning: str, unit: str) -> Data:
    return Data(values, {"meaning": meaning, "unit": unit})


def _decode_task(node: Node, lattice: Structure) -> TaskResult:
    """Return the task of a group; ValueError or the like if it is damaged."""
    task = _find_task(node, lattice)
    columns, codec = _stored_columns(node, task), task.kind.codec
    numbers = node.array("block", np.int64)
    has_counts = "block_count" in node.datasets
    counts = node.array("block_count", np.int64) if has_counts else np.ones_like(numbers)
    arrays = {
        name: _read_squares(node, columns, stored)
        if name == "squares" and _has_products(node)
        else node.array(name, stored.dtype, stored.shape)
        for name, stored in codec.layout(task, columns).items()
    }
    if any(len(array) != numbers.size for array in (counts, *arrays.values())):
        raise ValueError(f"task {task.id}: the shapes of its datasets do not fit together")
    _check_groups(task, numbers, counts)
    codec.check(task, columns, arrays, counts * task.block_size)
    end = _find_end(node, task, numbers) if task.is_serial else None
    blocks = {
        number: codec.block(number, {name: array[n] for name, array in arrays.items()}, count)
        for n, (number, count) in enumerate(zip(numbers.tolist(), counts.tolist(), strict=True))
    }
    result = TaskResult(task, columns=columns, end=end)
    result.unite(blocks)
    return result


def _check_groups(task: Task, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Raise ValueError for blocks that are not in order, and for impossible groups."""
    if np.any(np.diff(numbers, prepend=-1) < 1):
        raise ValueError(f"task {task.id}: its block numbers are negative or not ascending")
    most = _MOST_SAMPLES // task.block_size if task.most_groups is not None else 1
    if np.any((counts < 1) | (counts > most) | (numbers > _MOST_SAMPLES)):
        raise ValueError(f"task {task.id}: a group of blocks is empty or too large")
    if np.any(counts & (counts - 1)) or np.any(numbers % counts):
        raise ValueError(f"task {task.id}: its groups are not aligned powers of two of blocks")
    if np.any(numbers[1:] < numbers[:-1] + counts[:-1]):
        raise ValueError(f"task {task.id}: a block is in two groups")


# Schema version 5 has the products of every two observables; squares are some of them.


def _has_products(node: Node) -> bool:
    return "products" in node.datasets and "squares" not in node.datasets


def _products_shape(squares: tuple[int, ...], sums: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the products of observables from those of their squares and sums."""
    return squares[0], sums[1] * (sums[1] + 1) // 2


def _read_squares(
    node: Node, columns: Sequence[Column], stored: StoredArray
) -> NDArray[np.float64]:
    """Return the squares of observables from the products of every two of them."""
    names = [column.name for column in columns if column.is_observable]
    points, width = stored.shape[0], len(names)
    products = node.array("products", np.float64, _products_shape(stored.shape, (points, width)))
    # First with first, first with second, ..., second with second, ...
    own = np.array([n * width - n * (n - 1) // 2 for n in range(width)])
    squared = squared_names(column for column in columns if column.is_observable)
    return np.asarray(products[:, :, own[[names.index(name) for name in squared]]])


def _find_end(node: Node, task: Task, numbers: NDArray[np.int64]) -> ChainEnd | None:
    """Return the state of one long chain; ValueError unless its sweeps are those of its blocks."""
    if not numbers.size:
        return None
    sweeps, shape = node.integer("sweeps"), _spin_shape(task)
    planes = node.array("spins", np.uint32, shape)
    is_whole = numbers.tolist() == list(range(numbers.size)) and len(planes) == len(task.p)
    if not is_whole or sweeps != task.sweeps_after(numbers.size):
        raise ValueError(
            f"task {task.id}: the end of its chain does not fit blocks 0 to {numbers.size - 1}"
        )
    task.kind.check_planes(task, planes)
    return ChainEnd(sweeps, planes)


def _spin_shape(task: Task) -> tuple[int, int]:
    return task.kind.num_planes(task), count_words(task.num_points)


def _find_task(node: Node, lattice: Structure) -> Task:
    check_sample_version(node.integer("sample_version", 1))
    task = Task(
        structure=lattice,
        size=node.integer("L"),
        boundary=tuple(node.texts("boundary")),
        p=tuple(node.array("p", np.float64).tolist()) if "p" in node.datasets else (),
        seed=node.integer("seed"),
        rng=node.text("rng"),
        model=node.text("model"),
        block_size=node.integer("block_size"),
        method=node.text("method"),
        functions=functions_named(node.texts("functions", [])),
        **{name: _read_added(node, name) for name in ADDED if name in node.attributes},
    )
    shape = node.attributes.get("shape")
    is_own = isinstance(shape, np.ndarray) and shape.tolist() == list(task.shape)
    if not is_own or node.integer("stream_seed") != task.stream_seed:
        raise ValueError(f"task {task.id}: its shape or stream seed does not fit its settings")
    return task


def _read_added(node: Node, name: str) -> Any:
    """Return a setting of a task, by the type of its default."""
    default = SETTINGS[name].default
    if isinstance(default, tuple):
        return tuple(node.texts(name))
    return node.integer(name) if isinstance(default, int) else node.text(name)


def _stored_columns(node: Node, task: Task) -> tuple[Column, ...]:
    """Return the columns that a group holds; unknown ones have the texts of the file."""
    if not task.kind.codec.holds_columns:
        return tuple(task.kind.codec.stored_columns(task, node.datasets))
    own = {column.name: column for column in task.observables}
    names = node.texts("observable_names")
    if not names:
        raise ValueError(f"task {task.id}: it has no observables")
    for name in (name for name in names if names.count(name) > 1):
        raise ValueError(f"task {task.id}: {name} is there twice")
    observables = [own.get(name) or _unknown_observable(node, n) for n, name in enumerate(names)]
    declared = task.columns
    known = list_datasets(declared, task.num_points, task.block_size)
    missing = [name for name in known if name not in node.datasets]
    extras = [each for each in declared if each.dataset and each.dataset.name not in missing]
    unknown = [name for name in node.datasets if name not in known and name not in _OTHERS]
    return (*observables, *extras, *(_unknown_sums(node, name, task) for name in unknown))


def _unknown_observable(node: Node, n: int) -> Column:
    """Return the n-th observable of a group, with the texts of the file."""
    texts = {key: node.texts(f"observable_{key}s")[n] for key in _TEXTS}
    squared = node.texts("squared_names", [texts["name"]])
    return Column(**texts, gathered=None, is_flag=texts["name"] not in squared)


def _unknown_sums(node: Node, name: str, task: Task) -> Column:
    """Return the column of a dataset of sums that this version does not know."""
    data = node.datasets[name]
    shape, kind = data.values.shape, data.values.dtype.type
    if len(shape) != 3 or shape[1] != len(task.p) or kind not in (np.int64, np.float64):
        raise ValueError(f"task {task.id}: {name} is unknown and has no sums at each p")
    texts = Node(data.attributes)
    meaning = texts.text("meaning").removesuffix(SUM_AXES)
    how = SumColumn("", kind, shape[2])
    return Column(name, name, meaning, texts.text("unit"), how, source="")
