"""read_sites: the sites of a source or a target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.stream import read_lines, shown

_LIST = set("0123456789,+-. \t\n")


def names_file(text: str) -> bool:
    """Return whether a text names a file of sites, rather than being a list of them.

    >>> names_file("0,5,17"), names_file("./5")
    (False, True)
    """
    return not set(text) <= _LIST


def read_sites(path_or_text: str | Path, num_sites: int) -> np.ndarray:
    """Return the sites that a text such as "0,5,17" or a file names, int32, ascending, each once.

    A file has one site a line, or several with commas or blanks between them; # and % begin
    comments.  A string of nothing but numbers and commas is a list, any other one names a file.
    InputError: no sites, no integer, or a site outside 0 to num_sites - 1.

    >>> read_sites("17, 0,5", 20)
    array([ 0,  5, 17], dtype=int32)
    """
    if isinstance(path_or_text, str) and not names_file(path_or_text):
        where = f"sites {shown(path_or_text.encode())}"
        found = [_sites_of(path_or_text.encode(), num_sites, where)]
    else:
        path = Path(path_or_text)
        where, found = str(path), list(_sites_in(path, num_sites))
    sites = np.unique(np.concatenate([np.empty(0, np.int32), *found]))
    if not sites.size:
        raise InputError(f"{where}: names no sites")
    return sites


def _sites_in(path: Path, num_sites: int) -> Iterator[np.ndarray]:
    for part in read_lines(path):
        for number, line in enumerate(part.text.split(b"\n"), part.line):
            if line and not line.lstrip().startswith((b"#", b"%")):
                yield _sites_of(line, num_sites, f"{path}: line {number}")


def _sites_of(text: bytes, num_sites: int, where: str) -> np.ndarray:
    words = text.replace(b",", b" ").split()
    for word in words:
        if not word.isdigit() or len(word) > 18 or int(word) >= num_sites:
            raise InputError(
                f"{where}: site {shown(word)}, but sites are integers 0 to {num_sites - 1}"
            )
    return np.array([int(word) for word in words], np.int32)
