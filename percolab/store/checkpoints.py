"""Checkpoints of blocks that are measured in parts, next to the results file.

A checkpoint is a sealed HDF5 file, whole at any moment.  That of a block has the finished rows;
every rank of slabs has one with the interface of its layers of the row in work.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from percolab.errors import InputError, one_line
from percolab.measure.sums import ROW
from percolab.parts.interface import Face, Interface, InterfaceSums, Row, join_digits, split_digits
from percolab.store.output_files import final_name, replace_file
from percolab.store.reading import DAMAGE, FileFormat, read_file, read_format
from percolab.store.tree import Data, Node, check_seal, check_tables, encode_tree

_FORMAT = FileFormat("percolab checkpoint 2", None, "no checkpoint")
#: Formats of earlier versions, whose blocks are measured again.
_EARLIER = ("percolab checkpoint 1",)
#: The numbers in rows and in sums over clusters, which may differ in another version.
_NUMBERS = " ".join(ROW)
#: Exact sums of s^2, s^3 and s^4 of a row, and their digits of 64 bits.
_POWERS = (3, 4)

#: A task's id, the number of a block, and a rank; None for the checkpoint of the block itself.
Key = tuple[str, int, int | None]


class RankRow(NamedTuple):
    """A rank, and the sample and the threshold of the row that its interface is of."""

    rank: int
    sample: int
    threshold: int


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Finished rows of a block, or the interface of a rank.

    rows: the finished ones, p by p and sample by sample.  interface: of the first slabs of a rank,
    in its own checkpoint.  rank_row: that rank, and the row of the interface.
    """

    task_id: str
    number: int
    rows: tuple[Row, ...] = ()
    interface: Interface | None = None
    rank_row: RankRow | None = None

    @property
    def key(self) -> Key:
        return self.task_id, self.number, None if self.rank_row is None else self.rank_row.rank


class Checkpoints:
    """The checkpoints of the results file at a path, which one process at a time writes."""

    def __init__(self, path: Path) -> None:
        self.path = target = Path(os.path.realpath(path))
        # With its suffix, as a.h5 and a.hdf5 are two studies.
        self._folder, self._name = target.parent, target.name
        self._pattern = re.compile(
            rf"{re.escape(self._name)}-([0-9a-f]{{16}})-([0-9]+)(?:-([0-9]+))?\.checkpoint"
        )

    def find_checkpoint(self, task_id: str, number: int, rank: int | None = None) -> Path:
        """Return the path of the checkpoint of a block, or of one rank for it, if there is one."""
        of_rank = "" if rank is None else f"-{rank}"
        return self._folder / f"{self._name}-{task_id}-{number}{of_rank}.checkpoint"

    def list_files(self) -> list[tuple[Path, Key]]:
        """Return every file with a checkpoint's name, that of a block before those of ranks."""
        keys = {path: self._parse_key(path.name) for path in self._folder.iterdir()}
        files = [(path, key) for path, key in keys.items() if key is not None]
        return sorted(files, key=lambda file: [-1 if part is None else part for part in file[1]])

    def _parse_key(self, name: str) -> Key | None:
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        return match[1], int(match[2]), None if match[3] is None else int(match[3])

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint before; InputError, and that one stays, if this fails."""
        replace_file(self.find_checkpoint(*checkpoint.key), encode_tree(_encoded(checkpoint)))

    def load(self, task_id: str, number: int, rank: int | None = None) -> Checkpoint | None:
        """Return a checkpoint; None without one of this version, InputError if it is damaged."""
        path = self.find_checkpoint(task_id, number, rank)
        return read_checkpoint(path) if path.exists() else None

    def remove(self, task_id: str, is_done: Callable[[int], bool]) -> None:
        """Remove the checkpoints of blocks that are done, by number, and of ranks for them."""
        for path in list(self._folder.iterdir()):
            # A kill may have left one that was being written.
            key = self._parse_key(path.name) or self._parse_key(final_name(path.name))
            if key is not None and key[0] == task_id and is_done(key[1]):
                path.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file; None for an earlier version, InputError if it is damaged."""
    if read_format(path) in _EARLIER:
        return None
    try:
        root = read_file(path, _FORMAT, _check_shapes)
        _check_shapes(root)
        check_seal(root)
        if root.text("numbers", "") != _NUMBERS:
            raise ValueError("another version of percolab wrote it, whose rows have other numbers")
        return _decoded(root)
    except DAMAGE as error:
        raise InputError(
            f"{path}: is damaged or no checkpoint; remove it to measure its rows again "
            f"({one_line(error)})"
        ) from error


def _check_shapes(root: Node) -> None:
    """Raise ValueError for a large dataset that no checkpoint has."""
    check_tables(root, "rows", "powers")
    for group in root.groups.values():
        check_tables(group, "powers")


def _encoded(checkpoint: Checkpoint) -> Node:
    rows, interface = checkpoint.rows, checkpoint.interface
    root = Node(
        attributes={"format": _FORMAT.name, "task": checkpoint.task_id, "numbers": _NUMBERS},
        datasets={"block": Data(np.array([checkpoint.number], np.int64))},
    )
    if rows:
        wide = [[split_digits(number) for number in row[1:]] for row in rows]
        root.datasets["rows"] = Data(np.array([row.numbers for row in rows], np.int64))
        root.datasets["powers"] = Data(np.array(wide, np.uint64))
    if checkpoint.rank_row is not None:
        root.datasets["rank_row"] = Data(np.array(checkpoint.rank_row, np.uint64))
    if interface is not None:
        root.groups["front"] = _encoded_interface(interface)
    return root


def _encoded_interface(interface: Interface) -> Node:
    sums, powers, bins = interface.sums.to_arrays()
    place = interface.first_layer, interface.layers, interface.num_layers, interface.axes
    arrays: dict[str, NDArray[Any]] = {
        "place": np.array(place, np.int64),
        "low_clusters": interface.low.clusters,
        "low_codes": interface.low.codes,
        "high_clusters": interface.high.clusters,
        "high_codes": interface.high.codes,
        "sizes": interface.sizes,
        "flags": interface.flags,
        "sums": sums,
        "powers": powers.reshape(_POWERS[:2]),
        "bins": bins,
    }
    return Node(datasets={name: Data(values) for name, values in arrays.items()})


def _decoded(root: Node) -> Checkpoint:
    (number,) = root.array("block", np.int64).tolist()
    rows: tuple[Row, ...] = ()
    if "rows" in root.datasets:
        numbers = root.datasets["rows"].values
        numbers = root.array("rows", np.int64, numbers.shape[1:])
        powers = root.array("powers", np.uint64, _POWERS)
        rows = tuple(
            Row(own, *map(join_digits, digits)) for own, digits in zip(numbers, powers, strict=True)
        )
    interface = _decoded_interface(root.groups["front"]) if "front" in root.groups else None
    rank_row = None
    if "rank_row" in root.datasets:
        rank_row = RankRow._make(root.array("rank_row", np.uint64).tolist())
    return Checkpoint(root.text("task"), number, rows, interface, rank_row)


def _decoded_interface(node: Node) -> Interface:
    place = node.array("place", np.int64).tolist()
    sizes, flags = node.array("sizes", np.uint64), node.array("flags", np.uint32)
    low, high = (
        Face(node.array(f"{name}_clusters", np.uint32), node.array(f"{name}_codes", np.int64))
        for name in ("low", "high")
    )
    if sizes.size != flags.size:
        raise ValueError("the numbers of its cluster flags and sizes differ")
    for face in (low, high):
        if face.codes.size not in (0, face.num_bonds):
            raise ValueError("the numbers of its bond codes and clusters differ")
        if face.num_bonds and face.clusters.max() >= sizes.size:
            raise ValueError("a bond leads to a cluster that is not there")
    powers = node.array("powers", np.uint64, _POWERS[1:])
    sums = InterfaceSums.from_arrays(
        (node.array("sums", np.int64), powers, node.array("bins", np.int64))
    )
    first_layer, layers, num_layers, axes = place
    return Interface(first_layer, layers, num_layers, axes, low, high, sizes, flags, sums)
