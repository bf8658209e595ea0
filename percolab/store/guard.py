"""What an HDF5 file must not do: lead to other places, or claim more data than it holds.

HDF5 follows links to other files, takes the data of a dataset from other files, and promises data
of any size.  A file of unknown origin is checked here before anything in it is followed.
"""

from __future__ import annotations

from math import prod

import h5py

# Deflate packs 1032 to 1 at best: a file that claims more would fill the memory with nothing.
_MOST_PACKED = 1032
#: Bytes that are read without a question; of a single chunk of data no more are read ever.
AT_ONCE = 2**26


class Allowance:
    """How much data a file can hold in all, of which every part takes its own.

    at_once: bytes that may still be read before it is known what they are for
    """

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
        link = group.get(name, getlink=True)
        if link is None:
            raise ValueError(f"{group.name.rstrip('/')}/{name} cannot be read")
        if not isinstance(link, h5py.HardLink):
            kind = "an external" if isinstance(link, h5py.ExternalLink) else "a soft"
            where = f"{group.name.rstrip('/')}/{name}"
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
