"""Observables of other packages: names that they declare as entry points.

Names and versions come from the packages' metadata.  A package's code is loaded when one of its
names is used, and never otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from percolab.errors import InputError

#: What packages declare functions of the labels of a sample under.
_GROUP = "percolab.observables"


@dataclass(frozen=True)
class Plugin:
    """One name that a package declares.

    package: whose it is, with the version: "percolab-holes 0.3".
    """

    name: str
    package: str
    entry: EntryPoint

    @property
    def origin(self) -> str:
        """How messages begin."""
        return f"observable {self.name} of package {self.package}"

    def load(self) -> Any:
        """Load the package's code and return what the name stands for; InputError if it fails."""
        try:
            found = self.entry.load()
        except Exception as error:  # another package's code raises anything
            raise InputError(f"{self.origin}: {one_line(error)}") from error
        if not callable(found):
            raise InputError(f"{self.origin}: {self.entry.value} is no function")
        return found


def one_line(error: Exception) -> str:
    """Return what an error says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def list_plugins() -> list[Plugin]:
    """Return all that installed packages declare, by name; nothing is loaded."""
    found = [
        Plugin(item.name, f"{item.dist.name} {item.dist.version}", item)
        for item in entry_points(group=_GROUP)
        if item.dist is not None
    ]
    return sorted(found, key=lambda item: (item.name, item.package))


def find_plugin(name: str) -> Plugin:
    """Return what a package declares by a name; nothing is loaded.

    InputError: no package has it, or several have.
    """
    there = list_plugins()
    found = [item for item in there if item.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        packages = " and ".join(item.package for item in found)
        raise InputError(f"observable {name}: both {packages} have one; uninstall one of them")
    listed = [f"{item.name} (of {item.package})" for item in there]
    known = f"known: {', '.join(listed)}" if listed else "no package that is installed has any"
    raise InputError(f"unknown observable {name!r}; {known}")
