"""read_sites: the sites of a source or a target."""

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from percolab.errors import InputError
from percolab.lattices.graph_files.text import data_lines, read_text, shown

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
        where = f"sites {shown(path_or_text)}"
        parts: Iterable[tuple[str, str]] = [(where, path_or_text)]
    else:
        where, parts = str(path_or_text), places_and_lines(Path(path_or_text))
    return _unite([_list_sites(line, num_sites, place) for place, line in parts], where)


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
    # A study file turns its text into a path even if there is no file of that name.
    name = given.name if isinstance(given, Path) and not os.path.isfile(given) else text
    lines: Iterable[tuple[str, str]] = [("", name)]
    found = _split_names(name, numbers)
    if not (found and set(found) <= numbers.keys()) and os.path.isfile(text):
        lines = places_and_lines(Path(text))
    return _unite([_sites_from_names(line, numbers, place) for place, line in lines], text)


def _unite(parts: Sequence[np.ndarray], where: str) -> np.ndarray:
    """Return all sites, ascending, each once; InputError if there are none."""
    sites = np.unique(np.concatenate([np.empty(0, np.int32), *parts]))
    if not sites.size:
        raise InputError(f"{where}: names no sites")
    return sites


def _split_names(text: str, numbers: dict[str, int]) -> list[str]:
    """Return the names in a text: the whole text, if it is a name, or its parts between commas."""
    for whole in (text, text.strip(), text.strip().strip('"')):
        if whole in numbers:
            return [whole]
    return [part.strip().strip('"') for part in text.split(",") if part.strip()]


def _sites_from_names(text: str, numbers: dict[str, int], where: str) -> np.ndarray:
    names = _split_names(text, numbers)
    strange = next((name for name in names or [""] if name not in numbers), None)
    if strange is not None:
        # In a long list, finding the nearest name takes too long.
        close = difflib.get_close_matches(strange, numbers, n=1) if len(numbers) < 10**5 else []
        hint = f"; did you mean {close[0]!r}?" if close else ""
        lead = f"{where}: " if where else ""
        raise InputError(f"{lead}no site is named {shown(strange)}{hint}")
    return np.unique(np.array([numbers[name] for name in names], np.int32))


def places_and_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield place (for errors) and text of the lines that are neither blank nor comments."""
    for number, line in data_lines(read_text(path)):
        yield f"{path}: line {number}", line.strip()


def _list_sites(text: str, num_sites: int, where: str) -> np.ndarray:
    words = text.replace(",", " ").split()
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 19 and int(word) < num_sites):
            raise InputError(
                f"{where}: site {shown(word)}, but sites are integers 0 to {num_sites - 1}"
            )
    return np.array([int(word) for word in words], np.int32)
