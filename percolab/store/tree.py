"""An HDF5 file as a tree of plain values, with checksums over all of it (docs/hdf5-format.md).

Everything in a file is read at once, by listing its members: a damaged member is then an error.
Text is written as bytes of fixed length, since text of variable length lies in heaps, in which
damage can make the HDF5 library loop for ever.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from typing import Any

import h5py
import numpy as np

#: What an attribute is: a text, a list of texts, or numbers, an array of any shape.
Value = str | list[str] | np.ndarray
#: HDF5's version of files in which all but the data has checksums of the library's own.
_LIBRARY_VERSION = ("v110", "v110")
#: How numbers and texts are packed: gzip's default level, which is 4.
_PACKED: dict[str, Any] = {"compression": "gzip", "shuffle": True}
#: File, its groups, and theirs: no percolab file is deeper.
_MOST_LEVELS = 3
#: Deflate packs 1032 to 1 at best: a file that claims more would fill the memory with nothing.
_MOST_PACKED = 1032
#: Bytes that are read without a check; a single chunk of data may not be larger.
AT_ONCE = 2**26


@dataclass
class Data:
    """A dataset: its numbers, or texts as bytes in UTF-8, what they mean and in which unit."""

    values: np.ndarray
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass
class Node:
    """A group; ValueError where something is missing, or of another type."""

    attributes: dict[str, Value] = field(default_factory=dict)
    datasets: dict[str, Data] = field(default_factory=dict)
    groups: dict[str, Node] = field(default_factory=dict)

    def text(self, name: str, default: str | None = None) -> str:
        value = self.attributes.get(name, default)
        if not isinstance(value, str):
            raise self._error(name, "a text")
        return value

    def texts(self, name: str, default: list[str] | None = None) -> list[str]:
        value = self.attributes.get(name, default)
        if not isinstance(value, list):
            raise self._error(name, "a list of texts")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        if name not in self.attributes and default is not None:
            return default
        value = self.attributes.get(name)
        if not isinstance(value, np.ndarray) or value.shape or value.dtype.kind not in "iu":
            raise self._error(name, "an integer")
        return int(value)

    def array(self, name: str, kind: type, shape: Sequence[int] = ()) -> np.ndarray:
        """Return a dataset of this type, whose entries have this shape; floats must be finite."""
        if name not in self.datasets:
            raise ValueError(f"dataset {name} is missing")
        values = self.datasets[name].values
        if values.dtype != kind:
            raise ValueError(f"{name} holds {values.dtype}, not {np.dtype(kind)}")
        if values.ndim != 1 + len(shape) or values.shape[1:] != tuple(shape):
            expected = " x ".join(["n", *map(str, shape)])
            raise ValueError(
                f"the shapes of its datasets do not fit together: {name} is {values.shape}, "
                f"not {expected}"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} holds a value that is no finite number")
        return values

    def names(self, name: str) -> tuple[str, ...]:
        """Return a dataset that is a list of texts in UTF-8."""
        if name not in self.datasets:
            raise ValueError(f"dataset {name} is missing")
        texts = self.datasets[name].values
        if texts.dtype.kind != "S" or texts.ndim != 1:
            raise ValueError(f"{name} holds {texts.dtype} {texts.shape}, not a list of texts")
        return tuple(_text(text) for text in texts.tolist())

    def _error(self, name: str, expected: str) -> ValueError:
        if name not in self.attributes:
            return ValueError(f"attribute {name} is missing")
        return ValueError(f"attribute {name} is not {expected}")


def seal(node: Node) -> None:
    """Give a group and all below it the attribute ``checksum``, over everything in it."""
    for group in node.groups.values():
        seal(group)
    node.attributes["checksum"] = hash_group(node)


def check_seal(node: Node, name: str = "") -> None:
    """Raise ValueError unless a group, "" the file, and all below it match their checksums."""
    for key, group in node.groups.items():
        check_seal(group, f"{name}/{key}" if name else key)
    what = f"{name}:" if name else "its description:"
    if "checksum" not in node.attributes:
        raise ValueError(f"{what} the checksum is missing")
    if node.attributes["checksum"] != hash_group(node):
        raise ValueError(f"{what} does not match its checksum")


def hash_group(node: Node) -> str:
    """Return the SHA-256 of a group; groups in it count by their own attribute ``checksum``."""
    digest = hashlib.sha256()
    for name in sorted(node.attributes):
        if name != "checksum":
            _add(digest, f"@{name}", node.attributes[name])
    for name in sorted(node.datasets):
        dataset = node.datasets[name]
        _add(digest, name, dataset.values)
        for key in sorted(dataset.attributes):
            _add(digest, f"{name}@{key}", dataset.attributes[key])
    for name in sorted(node.groups):
        _add(digest, f"{name}/", node.groups[name].attributes.get("checksum", ""))
    return digest.hexdigest()


def _add(digest: Any, name: str, value: Value) -> None:
    if isinstance(value, np.ndarray):
        plain = value.astype(value.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {plain.dtype.str} {list(plain.shape)}\n".encode())
        digest.update(np.ascontiguousarray(plain))
    else:
        digest.update(f"{name} {json.dumps(value)}\n".encode())


def encode_texts(names: Sequence[str]) -> np.ndarray:
    """Return texts as a dataset has them: bytes in UTF-8, of fixed length."""
    written = [name.encode() for name in names]
    return np.array(written, f"S{max([1, *map(len, written)])}")


def encode_tree(root: Node) -> bytes:
    """Return a tree as a sealed HDF5 file; equal trees give equal bytes."""
    seal(root)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=_LIBRARY_VERSION) as file:
        _write_group(file, root)
    return buffer.getvalue()


def _write_group(group: h5py.Group, node: Node) -> None:
    for name, value in node.attributes.items():
        _write_attribute(group, name, value)
    for name, dataset in node.datasets.items():
        values = dataset.values
        if values.dtype.kind == "S":
            values = values.astype(h5py.string_dtype("utf-8", values.dtype.itemsize))
            written = group.create_dataset(name, data=values, **_PACKED)
        elif values.ndim > 1 and values.size:
            # Sums and labels repeat, so they pack well; small lists are not packed.
            written = _write_packed(group, name, values)
        else:
            written = group.create_dataset(name, data=values)
        for key, value in dataset.attributes.items():
            _write_attribute(written, key, value)
    for name, below in node.groups.items():
        _write_group(group.create_group(name), below)


def _write_packed(group: h5py.Group, name: str, values: np.ndarray) -> h5py.Dataset:
    """Write numbers in chunks that several threads pack; HDF5 itself uses one, which takes long."""
    written = group.create_dataset(name, values.shape, values.dtype, **_PACKED)
    shape, places = written.chunks, list(written.iter_chunks())

    def pack(place: tuple[slice, ...]) -> bytes:
        chunk = np.zeros(shape, values.dtype)
        part = values[place]
        chunk[tuple(map(slice, part.shape))] = part
        # HDF5's shuffle: the first bytes of all numbers, then the second ones, ...
        planes = chunk.reshape(-1, 1).view(np.uint8).T
        return zlib.compress(planes.tobytes(), written.compression_opts)

    with ThreadPoolExecutor() as threads:
        # Threads wait for work that exists: none are started for the one chunk of few numbers.
        packed = threads.map(pack, places) if len(places) > 1 else map(pack, places)
        for place, chunk in zip(places, packed, strict=True):
            written.id.write_direct_chunk(tuple(axis.start for axis in place), chunk)
    return written


def _write_attribute(owner: Any, name: str, value: Value) -> None:
    if isinstance(value, np.ndarray):
        owner.attrs.create(name, value)
        return
    data = encode_texts([value] if isinstance(value, str) else value)
    kind = h5py.string_dtype("utf-8", data.dtype.itemsize)
    owner.attrs.create(name, data[0] if isinstance(value, str) else data, dtype=kind)


def read_tree(file: h5py.File, check: Check | None = None) -> Node:
    """Return everything in an HDF5 file.

    check: receives the tree while large datasets are zeros that take no memory, and raises an error
    if one of them does not belong there.

    ValueError, or what h5py raises: damage; links; data that is elsewhere or more than the file can
    hold; text that is not UTF-8; anything that is neither text nor numbers.
    """
    later: list[tuple[Data, h5py.Dataset]] = []
    root = _read_group(file, Allowance(file), _MOST_LEVELS, later)
    if check is not None and later:
        check(root)
    for data, dataset in later:
        data.values = np.asarray(dataset[...])
    return root


#: Raises an error of a tree whose large datasets are not read yet.
Check = Callable[[Node], None]


def check_tables(node: Node, *known: str) -> None:
    """Raise ValueError for a dataset of several axes, or of texts, that is none of these."""
    for name, data in node.datasets.items():
        if name not in known and (data.values.ndim > 1 or data.values.dtype.kind == "S"):
            raise ValueError(f"{name} is a dataset that percolab does not write")


def _read_group(
    group: h5py.Group, allowance: Allowance, levels: int, later: list[tuple[Data, h5py.Dataset]]
) -> Node:
    if not levels:
        raise ValueError(f"{group.name} is a group, but must be a dataset")
    check_links(group)
    node = Node(dict(_attributes(group, allowance)))
    for name in group:
        _check_text(name)
        member = group[name]
        if isinstance(member, h5py.Group):
            node.groups[name] = _read_group(member, allowance, levels - 1, later)
        elif isinstance(member, h5py.Dataset):
            node.datasets[name] = _read_dataset(member, allowance, later)
        else:
            raise ValueError(f"{group.name}/{name} is neither data nor a group")
    return node


def _read_dataset(
    dataset: h5py.Dataset, allowance: Allowance, later: list[tuple[Data, h5py.Dataset]]
) -> Data:
    if dataset.shape is None or dataset.dtype.kind not in "iufS":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, not numbers or plain text")
    check_dataset(dataset)
    allowance.take(dataset.name, dataset.nbytes)
    allowance.at_once -= dataset.nbytes
    if allowance.at_once < 0 and dataset.ndim == 1 and dataset.dtype.kind != "S":
        # Lists of numbers are written as they are, so that they are no larger than the file.
        if dataset.nbytes > dataset.file.id.get_filesize():
            raise ValueError(f"{dataset.name} claims more data than its file holds")
    elif allowance.at_once < 0 and dataset.dtype.itemsize > AT_ONCE:
        raise ValueError(f"{dataset.name} has texts of {dataset.dtype.itemsize} bytes")
    elif allowance.at_once < 0:
        zeros = np.broadcast_to(np.zeros((), dataset.dtype), dataset.shape)
        later.append((Data(zeros, dict(_attributes(dataset, allowance))), dataset))
        return later[-1][0]
    return Data(np.asarray(dataset[...]), dict(_attributes(dataset, allowance)))


def _attributes(owner: Any, allowance: Allowance) -> Iterator[tuple[str, Value]]:
    for name in owner.attrs:
        _check_text(name)
        opened = owner.attrs.get_id(name)
        kind = opened.get_type()
        where = f"{owner.name}: attribute {name}"
        if opened.get_space().get_simple_extent_type() == h5py.h5s.NULL:
            raise ValueError(f"{where} is empty")
        if kind.get_class() not in (h5py.h5t.STRING, h5py.h5t.INTEGER, h5py.h5t.FLOAT):
            raise ValueError(f"{where} is neither text nor numbers")
        if kind.get_class() == h5py.h5t.STRING and kind.is_variable_str():
            raise ValueError(f"{where} is a text of variable length, which percolab does not write")
        allowance.take(where, kind.get_size() * prod(opened.shape))
        yield name, _value(owner.attrs[name], where)


def _value(value: Any, where: str) -> Value:
    array = np.asarray(value)
    if array.dtype.kind in "iuf":
        return array
    if array.ndim > 1:
        raise ValueError(f"{where} is a table of texts")
    texts = [_text(text) for text in array.ravel().tolist()]
    return texts if array.ndim else texts[0]


def _text(raw: Any) -> str:
    text = raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else raw
    _check_text(text)
    return text


def _check_text(text: str) -> None:
    """Raise ValueError where a text was made of bytes that are not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError("it holds text that is not UTF-8") from error


# HDF5 follows links, takes data from other files, and promises data of any size.  A file of unknown
# origin is checked before anything in it is followed.


class Allowance:
    """How much data a file can hold in all, and how much of it may be read without a check."""

    def __init__(self, file: h5py.File) -> None:
        self._left = _MOST_PACKED * file.id.get_filesize()
        self.at_once = AT_ONCE

    def take(self, name: str, claimed: int) -> None:
        """Raise ValueError if this part, with those before it, is more than the file can hold."""
        self._left -= claimed
        if self._left < 0:
            raise ValueError(f"{name} claims more data than its file can hold")


def check_links(group: h5py.Group) -> None:
    """Raise ValueError if a member of a group is a link to elsewhere; none of them is followed."""
    for name in group:
        link, where = group.get(name, getlink=True), f"{group.name.rstrip('/')}/{name}"
        if link is None:
            raise ValueError(f"{where} cannot be read")
        if not isinstance(link, h5py.HardLink):
            kind = "an external" if isinstance(link, h5py.ExternalLink) else "a soft"
            raise ValueError(f"{where} is {kind} link, and links are not followed")


def check_dataset(dataset: h5py.Dataset) -> None:
    """Raise ValueError if a dataset lies in another file, or is larger than its file can hold."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{dataset.name} takes its data from another file")
    Allowance(dataset.file).take(dataset.name, dataset.nbytes)
    if dataset.chunks is None:
        if dataset.nbytes > max(AT_ONCE, dataset.file.id.get_filesize()):
            raise ValueError(f"{dataset.name} claims more data than its file holds")
    elif prod(dataset.chunks) * dataset.dtype.itemsize > AT_ONCE:
        raise ValueError(f"{dataset.name} has chunks of more than {AT_ONCE} bytes")
