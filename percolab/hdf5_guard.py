"""What an HDF5 file must not do: lead to other places, or claim more data than it holds.

HDF5 follows links to other files, takes the data of a dataset from other files, and promises data
of any size.  A file from somewhere else is looked at here before anything in it is followed.
"""

from __future__ import annotations

import h5py

# Deflate packs 1032 to 1 at best: a file that claims more would fill the memory with nothing.
_MOST_PACKED = 1032


def check_links(group: h5py.Group) -> None:
    """Raise ValueError if a member of a group is a link to elsewhere; none of them is followed."""
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            kind = "an external" if isinstance(link, h5py.ExternalLink) else "a soft"
            where = f"{group.name.rstrip('/')}/{name}"
            raise ValueError(f"{where} is {kind} link, and links are not followed")


def check_datasets(group: h5py.Group) -> None:
    """Raise ValueError unless a group's datasets can all be read from its own file.

    Links are refused, and data in other files, and more data than the file can hold.
    """
    check_links(group)
    datasets = [item for item in group.values() if isinstance(item, h5py.Dataset)]
    for dataset in datasets:
        check_dataset(dataset)
    _check_size(group, sum(item.nbytes for item in datasets))


def check_dataset(dataset: h5py.Dataset) -> None:
    """Raise ValueError if a dataset lies in another file, or is larger than its file can hold."""
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{dataset.name} takes its data from another file")
    _check_size(dataset, dataset.nbytes)


def _check_size(item: h5py.Group | h5py.Dataset, claimed: int) -> None:
    if claimed > _MOST_PACKED * item.file.id.get_filesize():
        raise ValueError(f"{item.name} claims more data than its file can hold")
