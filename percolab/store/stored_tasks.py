"""One task as it is stored: its result, a group of an HDF5 file, and back.

The layout is documented in docs/hdf5-format.md.  Datasets depend on the task alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from percolab.bonds.words import NEVER, TOP
from percolab.errors import InputError
from percolab.lattices.structure import Structure
from percolab.measure.observables import (
    Observable,
    axis_names,
    axis_observables,
    extras_of,
    observables_of,
    open_axes,
    spanning_names,
    wrapping_names,
)
from percolab.measure.tallies import bin_edges
from percolab.store.tree import Data, Node
from percolab.tasks.blocks import AnyBlock, Block, ThresholdBlock
from percolab.tasks.study import Task


@dataclass(eq=False)
class TaskResult:
    """A task and its blocks by number."""

    task: Task
    blocks: dict[int, AnyBlock] = field(default_factory=dict)

    @property
    def num_samples(self) -> int:
        """Samples measured so far."""
        return len(self.blocks) * self.task.block_size

    @property
    def numbers(self) -> np.ndarray:
        """Block numbers in ascending order, int64."""
        return np.array(sorted(self.blocks), np.int64)

    @property
    def observables(self) -> tuple[Observable, ...]:
        """What was measured: less than today on a periodic lattice, in a file from before."""
        known = observables_of(self.task.boundary)
        widths = (block.sums.shape[1] for block in self.blocks.values() if isinstance(block, Block))
        return known[: next(widths, len(known))]

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one observable's block sums, int64 (n_blocks, m); InputError if not measured."""
        names = [item.name for item in self.observables]
        if name not in names:
            raise InputError(f"observable {name!r} is not in this file; there: {', '.join(names)}")
        index = names.index(name)
        return _stacked(self, "sums", np.int64, (len(self.task.p), len(names)))[:, :, index]

    def extra(self, name: str) -> NDArray:
        """Return the block sums of an extra, (n_blocks, m, columns); InputError if not measured."""
        found = extras_of(self.task.measure, self.task.num_points)
        if name not in found:
            raise InputError(
                f"{name} of L = {self.task.size} is not in this file: it was not asked for"
            )
        item, columns = found[name]
        shape = (len(self.task.p), columns)
        blocks = [self.blocks[number] for number in sorted(self.blocks)]
        sums = [block.extras[name] for block in blocks if isinstance(block, Block)]
        return np.array(sums, item.kind).reshape(len(sums), *shape)

    def products(self) -> NDArray[np.float64]:
        """Return the block sums of products of two observables, float64 (n_blocks, m, pairs)."""
        width = len(self.observables)
        shape = (len(self.task.p), width * (width + 1) // 2)
        return _stacked(self, "products", np.float64, shape)

    def thresholds(self, name: str) -> NDArray[np.uint64]:
        """Return T of every sample for a spanning observable, uint64 (n_blocks, block_size).

        For tasks with method "threshold" alone.  InputError: unknown observable.
        """
        axes = open_axes(self.task.boundary)
        found = _stacked(self, "thresholds", np.uint64, (self.task.block_size, len(axes)))
        known = spanning_names(self.task.boundary)
        if name not in known:
            raise InputError(f"observable {name!r} is not in this file; there: {', '.join(known)}")
        if name == "spanning_any":
            return found.min(axis=2)
        if name == "spanning_all":
            return found.max(axis=2)
        return found[:, :, axis_observables(self.task.boundary).index(name)]


def _stacked(item: TaskResult, name: str, kind: type, shape: tuple[int, ...]) -> NDArray:
    """Return an array of every block, ordered by block number, (n_blocks, *shape)."""
    found = [getattr(item.blocks[number], name) for number in sorted(item.blocks)]
    return np.array(found, kind).reshape(len(found), *shape)


def encode_task(item: TaskResult) -> Node:
    """Return the group of a task and its blocks."""
    task = item.task
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
            "sample_version": np.array(task.sample_version),
        }
    )
    node.datasets["block"] = _data(item.numbers, "number of the block", "1")
    if task.method == "grid":
        _encode_sums(node, item)
    else:
        _encode_thresholds(node, item)
    return node


def _encode_sums(node: Node, item: TaskResult) -> None:
    observables = item.observables
    for key in ("name", "symbol", "meaning", "unit", "source"):
        node.attributes[f"observable_{key}s"] = [getattr(each, key) for each in observables]
    width, points = len(observables), len(item.task.p)
    extras = extras_of(item.task.measure, item.task.num_points)
    node.datasets["p"] = _data(np.array(item.task.p, np.float64), item.task.draw.varying, "1")
    node.datasets["sums"] = _data(
        _stacked(item, "sums", np.int64, (points, width)),
        "sum over the block's samples [block, p, observable]",
        "mixed",
    )
    node.datasets["products"] = _data(
        _stacked(item, "products", np.float64, (points, width * (width + 1) // 2)),
        "sum of products of two observables [block, p, pair]; pairs in upper-triangular row order",
        "mixed",
    )
    if extras:
        node.attributes["measure"] = list(item.task.measure)
        edges = bin_edges(item.task.num_points)
        node.datasets["size_edges"] = _data(edges, "smallest size of each bin", "site")
    for name, (extra, _) in extras.items():
        meaning = f"{extra.meaning} [block, p, column]"
        node.datasets[name] = _data(item.extra(name), meaning, extra.unit)


def _encode_thresholds(node: Node, item: TaskResult) -> None:
    axes = axis_names(item.task.boundary)
    node.attributes["axes"] = list(axes)
    node.datasets["thresholds"] = _data(
        _stacked(item, "thresholds", np.uint64, (item.task.block_size, len(axes))),
        "T, the p at which a sample begins to span, 2^64 - 1: never [block, sample, axis]",
        "2^-63",
    )


def _data(values: np.ndarray, meaning: str, unit: str) -> Data:
    return Data(values, {"meaning": meaning, "unit": unit})


def decode_task(node: Node, lattice: Structure, *, sealed: bool) -> TaskResult:
    """Return the task of a group; ValueError or the like if it is damaged.

    sealed: the checksum of everything in the group was compared already; otherwise there may be one
    of its numbers.
    """
    task = _task_of(node, lattice)
    numbers = node.array("block", np.int64)
    arrays = _sums_of(node, task) if task.method == "grid" else _thresholds_of(node, task)
    if any(len(array) != numbers.size for array in arrays.values()):
        raise ValueError(f"task {task.id}: the shapes of its datasets do not fit together")
    if not sealed and "checksum" in node.attributes:
        _check_numbers(node, numbers, *arrays.values())
    if np.any(np.diff(numbers, prepend=-1) < 1):
        raise ValueError(f"task {task.id}: its block numbers do not ascend from 0 or more")
    blocks: dict[int, AnyBlock] = {}
    for n, *parts in zip(numbers.tolist(), *arrays.values(), strict=True):
        if task.method == "grid":
            sums, products, *extras = parts
            blocks[n] = Block(n, sums, products, dict(zip(list(arrays)[2:], extras, strict=True)))
        else:
            blocks[n] = ThresholdBlock(n, *parts)
    return TaskResult(task, blocks)


def _task_of(node: Node, lattice: Structure) -> Task:
    method = node.text("method", "grid")
    task = Task(
        lattice=lattice,
        size=node.integer("L"),
        boundary=tuple(node.texts("boundary")),
        p=tuple(node.array("p", np.float64).tolist()) if method == "grid" else (),
        seed=node.integer("seed"),
        rng=node.text("rng"),
        model=node.text("model"),
        block_size=node.integer("block_size"),
        method=method,
        measure=tuple(node.texts("measure")) if "measure" in node.attributes else (),
        sample_version=node.integer("sample_version", 1),
    )
    shape = node.attributes.get("shape")
    is_own = isinstance(shape, np.ndarray) and shape.tolist() == list(task.shape)
    if not is_own or node.integer("stream_seed") != task.stream_seed:
        raise ValueError(f"task {task.id}: its shape or the seed of its streams is not its own")
    return task


def _check_numbers(node: Node, *arrays: np.ndarray) -> None:
    """Raise ValueError unless arrays match the checksum of a file before schema version 5."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    if node.text("checksum") != digest.hexdigest():
        raise ValueError("the datasets of a task do not match their checksum")


def _sums_of(node: Node, task: Task) -> dict[str, NDArray]:
    points, observables = len(task.p), _observables_of(node, task)
    width = len(observables)
    pairs = width * (width + 1) // 2
    found: dict[str, NDArray] = {
        "sums": node.array("sums", np.int64, (points, width)),
        "products": node.array("products", np.float64, (points, pairs)),
    }
    for name, (extra, columns) in extras_of(task.measure, task.num_points).items():
        found[name] = node.array(name, extra.kind, (points, columns))
    for name, array in found.items():
        if array.size and array.min() < 0:
            raise ValueError(f"task {task.id}: {name} holds a negative number")
    most = [task.block_size * (1 if item.mask else task.num_points**2) for item in observables]
    if np.any(found["sums"] > np.array(most, np.uint64).astype(np.float64)):
        raise ValueError(f"task {task.id}: sums holds more than its samples can have")
    return found


def _observables_of(node: Node, task: Task) -> tuple[Observable, ...]:
    """Return the observables of a group: all, or those of before wrapping was measured."""
    stored = node.texts("observable_names")
    known = observables_of(task.boundary)
    names = [item.name for item in known]
    if stored not in (names, names[: len(names) - len(wrapping_names(task.boundary))]):
        raise ValueError(f"task {task.id}: its observables are {', '.join(stored)}")
    return known[: len(stored)]


def _thresholds_of(node: Node, task: Task) -> dict[str, NDArray]:
    axes = len(open_axes(task.boundary))
    found = node.array("thresholds", np.uint64, (task.block_size, axes))
    if np.any((found > np.uint64(TOP)) & (found != np.uint64(NEVER))):
        raise ValueError(f"task {task.id}: a threshold is above 1")
    return {"thresholds": found}
