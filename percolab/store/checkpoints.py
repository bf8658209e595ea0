"""Checkpoints of blocks that are measured in slabs: beside the results file, one for each block.

A checkpoint is a sealed HDF5 file (:mod:`percolab.store.tree`) with the rows of a block that are
done and the front of the sample in work.  Like a results file it is written beside its place and
renamed, so that it is whole at any moment; nothing in it is evaluated.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from percolab.domains.front import Face, Front, Row, Sums
from percolab.errors import InputError
from percolab.store.output_files import replace_file
from percolab.store.reading import read_file
from percolab.store.tree import Data, Node, check_seal, write_tree

_FORMAT = "percolab checkpoint 1"
#: Digits of 64 bits of a sum of powers.
_DIGITS = 4
#: Places of the integers of a front's sums that have 64 bits.
_SUMS = ("clusters", "isolated", "largest", "second", "flags", "loop")
_POWERS = ("squares", "cubes", "fourths")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where the measuring of a block has come to.

    task_id, number: of the block
    rows:            of its samples at their p that are done, p by p and sample by sample
    front:           of the first slabs of the next one; None before its first slab
    """

    task_id: str
    number: int
    rows: tuple[Row, ...]
    front: Front | None


class Checkpoints:
    """The checkpoints beside one results file, of which one process at a time is the writer.

    path: of the results file
    """

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))
        self._folder, self._stem = target.parent, target.stem
        self._pattern = re.compile(
            rf"{re.escape(self._stem)}-([0-9a-f]{{16}})-([0-9]+)\.checkpoint"
        )

    def path_of(self, task_id: str, number: int) -> Path:
        """Return where the checkpoint of a block is, if there is one."""
        return self._folder / f"{self._stem}-{task_id}-{number}.checkpoint"

    def found(self) -> Iterator[tuple[Path, str, int]]:
        """Yield (path, task's id, number of the block) of every file with a checkpoint's name."""
        for path in sorted(self._folder.iterdir()):
            match = self._pattern.fullmatch(path.name)
            if match:
                yield path, match[1], int(match[2])

    def save(self, checkpoint: Checkpoint) -> None:
        """Put a checkpoint in place of the one before; InputError, and that stays, if it fails."""
        path = self.path_of(checkpoint.task_id, checkpoint.number)
        replace_file(path, _written(checkpoint))

    def load(self, task_id: str, number: int) -> Checkpoint | None:
        """Return the checkpoint of a block, or None; InputError if it is damaged."""
        path = self.path_of(task_id, number)
        return read_checkpoint(path) if path.exists() else None

    def remove(self, task_id: str, numbers: Collection[int]) -> None:
        """Remove the checkpoints of these blocks, as far as there are any."""
        for path, own_id, number in self.found():
            if own_id == task_id and number in numbers:
                path.unlink(missing_ok=True)


def bytes_of(checkpoint: Checkpoint) -> int:
    """Return the bytes of the file that a checkpoint would be."""
    return len(_written(checkpoint))


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the checkpoint in a file; InputError, in one line, if it is damaged or none."""
    try:
        root = read_file(path)
        if root.text("format", "") != _FORMAT:
            raise ValueError("it is no checkpoint")
        check_seal(root)
        return _decoded(root)
    except InputError as error:
        reason = str(error)
    except (
        KeyError, ValueError, TypeError, AttributeError, IndexError, ArithmeticError, OSError,
        RuntimeError,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
    raise InputError(
        f"{path}: is damaged or no checkpoint; remove it to measure its block anew ({reason})"
    )


def _written(checkpoint: Checkpoint) -> bytes:
    buffer = io.BytesIO()
    write_tree(buffer, _encoded(checkpoint))
    return buffer.getvalue()


def _encoded(checkpoint: Checkpoint) -> Node:
    rows, front = checkpoint.rows, checkpoint.front
    root = Node(
        attributes={"format": _FORMAT, "task": checkpoint.task_id},
        datasets={"block": Data(np.array([checkpoint.number], np.int64))},
    )
    if rows:
        wide = [[_digits(n) for n in (row.sum_squares, row.cubes, row.fourths)] for row in rows]
        root.datasets["rows"] = Data(np.array([row.numbers for row in rows], np.int64))
        root.datasets["powers"] = Data(np.array(wide, np.uint64))
    if front is not None:
        root.groups["front"] = _encoded_front(front)
    return root


def _encoded_front(front: Front) -> Node:
    sums = front.sums
    arrays: dict[str, NDArray[Any]] = {
        "place": np.array(
            [front.first_layer, front.layers, front.num_layers, front.axes], np.int64
        ),
        "low_clusters": front.low.clusters,
        "low_codes": front.low.codes,
        "high_clusters": front.high.clusters,
        "high_codes": front.high.codes,
        "sizes": front.sizes,
        "flags": front.flags,
        "sums": np.array([getattr(sums, name) for name in _SUMS], np.int64),
        "powers": np.array([_digits(getattr(sums, name)) for name in _POWERS], np.uint64),
        "bins": np.array(sums.bins, np.int64),
    }
    return Node(datasets={name: Data(values) for name, values in arrays.items()})


def _decoded(root: Node) -> Checkpoint:
    (number,) = root.array("block", np.int64).tolist()
    rows: tuple[Row, ...] = ()
    if "rows" in root.datasets:
        numbers = root.datasets["rows"].values
        numbers = root.array("rows", np.int64, numbers.shape[1:])
        powers = root.array("powers", np.uint64, (len(_POWERS), _DIGITS))
        rows = tuple(
            Row(own, *map(_integer, digits)) for own, digits in zip(numbers, powers, strict=True)
        )
    front = _decoded_front(root.groups["front"]) if "front" in root.groups else None
    return Checkpoint(root.text("task"), number, rows, front)


def _decoded_front(node: Node) -> Front:
    place = node.array("place", np.int64).tolist()
    sizes, flags = node.array("sizes", np.uint64), node.array("flags", np.uint32)
    low, high = (
        Face(node.array(f"{name}_clusters", np.uint32), node.array(f"{name}_codes", np.int64))
        for name in ("low", "high")
    )
    if sizes.size != flags.size:
        raise ValueError("its clusters have other flags than sizes")
    for face in (low, high):
        if face.codes.size not in (0, face.num_bonds):
            raise ValueError("its bonds have other codes than clusters")
        if face.num_bonds and face.clusters.max() >= sizes.size:
            raise ValueError("a bond leads to a cluster that is not there")
    found: dict[str, Any] = dict(zip(_SUMS, node.array("sums", np.int64).tolist(), strict=True))
    powers = node.array("powers", np.uint64, (_DIGITS,))
    found |= {name: _integer(digits) for name, digits in zip(_POWERS, powers, strict=True)}
    sums = Sums(**found, bins=tuple(node.array("bins", np.int64).tolist()))
    first_layer, layers, num_layers, axes = place
    return Front(first_layer, layers, num_layers, axes, low, high, sizes, flags, sums)


def _digits(number: int) -> list[int]:
    """Return the digits of 64 bits of a number, the lowest first."""
    return [number >> 64 * n & 2**64 - 1 for n in range(_DIGITS)]


def _integer(digits: NDArray[np.uint64]) -> int:
    return sum(int(digit) << 64 * n for n, digit in enumerate(digits))
