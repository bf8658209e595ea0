"""Structure: the object that a study samples, a lattice, Bethe lattice, graph or ensemble of them.

It is stored with the results: a lattice as its TOML text, the others as a record that
:func:`structure_from_record` reads.
"""

from pathlib import Path
from typing import Any

from percolab.errors import InputError
from percolab.lattices.bethe import BetheLattice, bethe_lattice
from percolab.lattices.ensemble import MANY, Ensemble, names_ensemble
from percolab.lattices.graph import Graph
from percolab.lattices.lattice import Lattice, load_lattice

#: Structures that tasks sample: families of topologies, one for each size L.  All have a name, a
#: title, a digest (16 hexadecimal digits, a hash of what determines a sample), a dimension (axes
#: along which a sample can span), boundaries that an axis can have (the default first), a number of
#: bond classes, and is_scalable (whether their sizes approach one infinite structure).
Structure = Lattice | BetheLattice | Graph | Ensemble


def load_structure(name: str | Path) -> Lattice | BetheLattice:
    """Return a lattice by its name or .toml file, or "bethe", "bethe:z", "bethe:z:random".

    InputError: no such lattice, or the name of an ensemble, which is many graphs and not one.

    >>> load_structure("bethe:4").threshold().value == 1 / 3
    True
    """
    name = str(name)
    if names_ensemble(name):
        raise InputError(f"{name}: {MANY}")
    return bethe_lattice(name) if name.partition(":")[0] == "bethe" else load_lattice(name)


def take_structure(given: Any, caller: str) -> Structure:
    """Return the structure given, itself or by name or .toml file; InputError for anything else."""
    structure: Structure = load_structure(given) if isinstance(given, str | Path) else given
    if isinstance(structure, Ensemble) or not isinstance(structure, Structure):
        raise InputError(f"{caller}: {type(given).__name__} given, which is no lattice")
    return structure


def structure_from_record(record: dict[str, Any]) -> Structure:
    """Return the structure of a stored record; ValueError, KeyError or TypeError if it is none.

    A graph comes without its bonds, which are only in the graph's own file.
    """
    kinds: dict[str, Any] = {
        "graph": Graph,
        "bethe": BetheLattice,
        "ensemble": Ensemble.from_record,
    }
    content = dict(record)
    kind = content.pop("kind")
    if kind not in kinds:
        raise ValueError(f"its structure is a {kind!r}; known: {', '.join(kinds)}")
    structure: Structure = kinds[kind](**content)
    return structure
