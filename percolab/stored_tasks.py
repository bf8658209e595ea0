"""One task as it is stored: its result, a group of an HDF5 file, and back.

The layout is documented in docs/hdf5-format.md.  Datasets depend on the task alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import h5py
import numpy as np
from numpy.typing import NDArray

from percolab.hdf5_guard import check_datasets
from percolab.kernels.open_bonds import NEVER, TOP
from percolab.kernels.tally import bin_edges
from percolab.observables import (
    Observable,
    axis_names,
    axis_observables,
    extras_of,
    observables_of,
    open_axes,
    spanning_names,
    wrapping_names,
)
from percolab.statistics import AnyBlock, Block, ThresholdBlock
from percolab.structure import Structure
from percolab.study import Task
from percolab.toml_input import InputError


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


def encode_task(group: h5py.Group, item: TaskResult) -> None:
    """Write a task and its blocks into an empty group."""
    task = item.task
    group.attrs["L"] = task.size
    group.attrs["shape"] = task.shape
    group.attrs["boundary"] = list(task.boundary)
    group.attrs["model"] = task.model
    group.attrs["rng"] = task.rng
    group.attrs["seed"] = np.uint64(task.seed)
    group.attrs["stream_seed"] = np.uint64(task.stream_seed)
    group.attrs["block_size"] = task.block_size
    group.attrs["method"] = task.method
    group.attrs["sample_version"] = task.sample_version
    _dataset(group, "block", item.numbers, "number of the block", "1")
    if task.method == "grid":
        _encode_sums(group, item)
    else:
        _encode_thresholds(group, item)


def _encode_sums(group: h5py.Group, item: TaskResult) -> None:
    observables = item.observables
    for key in ("name", "symbol", "meaning", "unit", "source"):
        group.attrs[f"observable_{key}s"] = [getattr(each, key) for each in observables]
    width, points = len(observables), len(item.task.p)
    sums = _stacked(item, "sums", np.int64, (points, width))
    products = _stacked(item, "products", np.float64, (points, width * (width + 1) // 2))
    extras = extras_of(item.task.measure, item.task.num_points)
    arrays = [item.extra(name) for name in extras]
    group.attrs["checksum"] = _checksum(item.numbers, sums, products, *arrays)
    _dataset(group, "p", np.array(item.task.p), item.task.draw.varying, "1")
    _dataset(group, "sums", sums, "sum over the block's samples [block, p, observable]", "mixed")
    _dataset(
        group,
        "products",
        products,
        "sum of products of two observables [block, p, pair]; pairs in upper-triangular row order",
        "mixed",
    )
    if extras:
        group.attrs["measure"] = list(item.task.measure)
        largest = item.task.num_points
        _dataset(group, "size_edges", bin_edges(largest), "smallest size of each bin", "site")
    for (extra, _), array in zip(extras.values(), arrays, strict=True):
        _dataset(group, extra.name, array, f"{extra.meaning} [block, p, column]", extra.unit)


def _encode_thresholds(group: h5py.Group, item: TaskResult) -> None:
    axes = axis_names(item.task.boundary)
    found = _stacked(item, "thresholds", np.uint64, (item.task.block_size, len(axes)))
    group.attrs["axes"] = axes
    group.attrs["checksum"] = _checksum(item.numbers, found)
    _dataset(
        group,
        "thresholds",
        found,
        "T, the p at which a sample begins to span, 2^64 - 1: never [block, sample, axis]",
        "2^-63",
    )


def _checksum(*arrays: np.ndarray) -> str:
    """Return the SHA-256 of the arrays' little-endian bytes, one array after the other."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def _dataset(group: h5py.Group, name: str, data: np.ndarray, meaning: str, unit: str) -> None:
    packing = {"compression": "gzip", "shuffle": True} if data.ndim > 1 and data.size else {}
    dataset = group.create_dataset(name, data=data, **packing)
    dataset.attrs["meaning"] = meaning
    dataset.attrs["unit"] = unit


def decode_task(group: h5py.Group, lattice: Structure) -> TaskResult:
    """Return the task of a group; ValueError or the like if it is damaged."""
    check_datasets(group)
    method = group.attrs.get("method", "grid")
    task = Task(
        lattice=lattice,
        size=int(group.attrs["L"]),
        boundary=tuple(group.attrs["boundary"]),
        p=tuple(group["p"][...].tolist()) if method == "grid" else (),
        seed=int(group.attrs["seed"]),
        rng=group.attrs["rng"],
        model=group.attrs["model"],
        block_size=int(group.attrs["block_size"]),
        method=method,
        measure=tuple(group.attrs.get("measure", ())),
        sample_version=int(group.attrs.get("sample_version", 1)),
    )
    numbers = group["block"][...]
    arrays = _sums_of(group, task) if method == "grid" else _thresholds_of(group, task)
    if any(len(array) != numbers.size for array in arrays):
        raise ValueError(f"task {task.id}: the shapes of its datasets do not fit together")
    checksum = _checksum(numbers, *arrays)
    if group.attrs.get("checksum", checksum) != checksum:
        raise ValueError(f"task {task.id}: its datasets do not match their checksum")
    if np.any(np.diff(numbers, prepend=-1) < 1):
        raise ValueError(f"task {task.id}: its block numbers do not ascend from 0 or more")
    names = list(extras_of(task.measure, task.num_points))
    blocks: dict[int, AnyBlock] = {}
    for n, *parts in zip(numbers.tolist(), *arrays, strict=True):
        if method == "grid":
            sums, products, *extras = parts
            blocks[n] = Block(n, sums, products, dict(zip(names, extras, strict=True)))
        else:
            blocks[n] = ThresholdBlock(n, *parts)
    return TaskResult(task, blocks)


def _sums_of(group: h5py.Group, task: Task) -> tuple[NDArray, ...]:
    sums, products = group["sums"][...], group["products"][...]
    points, width = len(task.p), _width_of(group, task)
    if sums.shape[1:] != (points, width) or products.shape[1:] != (
        points,
        width * (width + 1) // 2,
    ):
        raise ValueError(f"task {task.id}: the shapes of its datasets do not fit together")
    return sums, products, *_extras_of(group, task)


def _extras_of(group: h5py.Group, task: Task) -> list[NDArray]:
    found = []
    for name, (extra, columns) in extras_of(task.measure, task.num_points).items():
        array = group[name][...]
        if array.shape[1:] != (len(task.p), columns) or array.dtype != extra.kind:
            raise ValueError(f"task {task.id}: {name} is {array.dtype} {array.shape}")
        found.append(array)
    return found


def _width_of(group: h5py.Group, task: Task) -> int:
    """Return how many observables a group has: all, or those of before wrapping was measured."""
    stored = list(group.attrs["observable_names"])
    known = [item.name for item in observables_of(task.boundary)]
    wrapping = wrapping_names(task.boundary)
    if stored not in (known, known[: len(known) - len(wrapping)]):
        raise ValueError(f"task {task.id}: its observables are {', '.join(map(str, stored))}")
    return len(stored)


def _thresholds_of(group: h5py.Group, task: Task) -> tuple[NDArray]:
    found = group["thresholds"][...]
    if found.shape[1:] != (task.block_size, len(open_axes(task.boundary))):
        raise ValueError(f"task {task.id}: the shapes of its datasets do not fit together")
    if found.dtype != np.uint64:
        raise ValueError(f"task {task.id}: its thresholds are {found.dtype}, not uint64")
    if np.any((found > np.uint64(TOP)) & (found != np.uint64(NEVER))):
        raise ValueError(f"task {task.id}: a threshold is above 1")
    return (found,)
