"""Where a command writes: looked at before anything is computed, so that no answer is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection
from pathlib import Path

from percolab.toml_input import InputError


def check_target(target: Path, suffixes: Collection[str], what: str) -> None:
    """Raise InputError where a file cannot be written.

    suffixes: those that are allowed, with their dots, in any case.  what: "a figure", "a page" ...
    """
    if target.is_dir():
        raise InputError(f"{target}: is a directory; give the name of a file")
    suffix = target.suffix.lower()
    if suffix not in suffixes:
        raise InputError(
            f"{target}: cannot write {what} as {suffix or 'no suffix'!r}; use {', '.join(suffixes)}"
        )
    problem = _problem(target)
    if problem:
        raise InputError(f"{target}: cannot be written: {os.strerror(problem)}")
    _check_foreign(target, what)


def _problem(target: Path) -> int:
    """Return the error that writing beside a target and replacing it would end in, or 0."""
    folder = target.parent
    if not folder.exists():
        return errno.ENOENT
    if not folder.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


def _check_foreign(target: Path, what: str) -> None:
    from h5py import is_hdf5

    if target.is_file() and is_hdf5(target):
        raise InputError(f"{target}: is an HDF5 file, which {what} must not replace")
