"""read_sites: the sites of a source or a target."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
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
        parts = [_list_sites(path_or_text.encode(), num_sites, where)]
    else:
        path = Path(path_or_text)
        where = str(path)
        parts = [_list_sites(line, num_sites, place) for line, place in data_lines(path)]
    return _unite(parts, where)


def sites_named(given: str | Path, names: Sequence[str]) -> np.ndarray:
    """Return the sites that have these names, int32, ascending, each once.

    given: a name; several after commas; or else a file with one name a line (or several after
    commas), where # and % begin comments.  names: of all sites, by their numbers.
    InputError: no sites, or a name that no site has, with the nearest one.

    >>> sites_named("Arya, Jon", ["Jon", "Sansa", "Arya"])
    array([0, 2], dtype=int32)
    """
    numbers = {name: number for number, name in enumerate(names)}
    text = str(given)
    # A study file's text that is no file was taken for a path all the same.
    name = given.name if isinstance(given, Path) and not given.is_file() else text
    if _named(name, numbers) or not Path(text).is_file():
        return _sites_from_names(name, numbers, "")
    lines = ((line.decode("utf-8", "replace"), place) for line, place in data_lines(Path(text)))
    return _unite([_sites_from_names(line, numbers, place) for line, place in lines], text)


def _unite(parts: Sequence[np.ndarray], where: str) -> np.ndarray:
    """Return all sites, ascending, each once; InputError if there are none."""
    sites = np.unique(np.concatenate([np.empty(0, np.int32), *parts]))
    if not sites.size:
        raise InputError(f"{where}: names no sites")
    return sites


def _named(text: str, numbers: dict[str, int]) -> list[str]:
    """Return the names in a text, which is one or has them after commas; [] if it has others."""
    for whole in (text, text.strip(), text.strip().strip('"')):
        if whole in numbers:
            return [whole]
    parts = [part.strip().strip('"') for part in text.split(",") if part.strip()]
    return parts if all(part in numbers for part in parts) else []


def _sites_from_names(text: str, numbers: dict[str, int], where: str) -> np.ndarray:
    named = _named(text, numbers)
    if not named:
        parts = [part.strip().strip('"') for part in text.split(",") if part.strip()]
        strange = next((part for part in parts if part not in numbers), "")
        # In a long list the nearest takes too long to find.
        close = difflib.get_close_matches(strange, numbers, n=1) if len(numbers) < 10**5 else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        lead = f"{where}: " if where else ""
        raise InputError(f"{lead}no site is named {shown(strange.encode())}{hint}")
    return np.unique(np.array([numbers[name] for name in named], np.int32))


def data_lines(path: Path) -> Iterator[tuple[bytes, str]]:
    """Yield the lines of a file that are neither blank nor comments, and their places."""
    for part in read_lines(path):
        for number, line in enumerate(part.text.split(b"\n"), part.line):
            if line.strip() and not line.lstrip().startswith((b"#", b"%")):
                yield line, f"{path}: line {number}"


def _list_sites(text: bytes, num_sites: int, where: str) -> np.ndarray:
    words = text.replace(b",", b" ").split()
    for word in words:
        if not word.isdigit() or len(word) > 18 or int(word) >= num_sites:
            raise InputError(
                f"{where}: site {shown(word)}, but sites are integers 0 to {num_sites - 1}"
            )
    return np.array([int(word) for word in words], np.int32)
