"""Classes that are looked up by name and kind of device, and imported only then."""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from percolab.errors import InputError, nearest


class Entry(Protocol):
    """The entry of a registry for a name: the place of its class for each kind of device."""

    @property
    def classes(self) -> Mapping[str, str]:
        """Places in the form of :func:`load`, by "cpu" and "cuda"."""

    @property
    def paper(self) -> str:
        """The folder of ``percolab/papers`` that its classes are in, or ""."""


def load(place: str) -> Any:
    """Import and return the object at a place in percolab, "room.module:attribute"."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(f"percolab.{module}"), attribute)


def list_names(entries: Mapping[str, Entry]) -> str:
    """Return all names, those of papers last: "a, b; to compare with papers: c"."""
    usual = ", ".join(name for name, entry in entries.items() if not entry.paper)
    papers = ", ".join(name for name, entry in entries.items() if entry.paper)
    return f"{usual}; to compare with papers: {papers}" if papers else usual


def load_class(what: str, entries: Mapping[str, Entry], name: str, kind: str) -> Any:
    """Return the class of a name on a kind of device, "cpu" or "cuda".

    what: noun for the entries.  InputError: unknown, or not available on that kind of device.
    """
    if not isinstance(name, str) or name not in entries:
        raise InputError(f"unknown {what} {name!r}; {nearest(name, entries)}")
    classes = entries[name].classes
    if kind not in classes:
        able = ", ".join(each for each, entry in entries.items() if kind in entry.classes)
        raise InputError(f"{what} {name!r} does not run on {kind}; these do: {able}")
    return load(classes[kind])
