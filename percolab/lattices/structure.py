"""Structure: what a study samples: a lattice, a Bethe lattice, one graph or an ensemble of graphs.

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

#: What tasks are made of: a family of topologies, one for each size L.  All have a name, a title, a
#: digest (16 hexadecimal digits, a hash of what decides a sample), a dimension (axes along which a
#: sample can span), the boundaries that an axis can have (the default first), how many bond classes
#: their topologies have, and whether their sizes approach one infinite structure (is_scalable).
Structure = Lattice | BetheLattice | Graph | Ensemble


def load_structure(name: str | Path) -> Lattice | BetheLattice:
    """Return a lattice by its name or .toml file, or "bethe", "bethe:z", "bethe:z:random".

    InputError: no such lattice, or the name of an ensemble, which is not one but many graphs.

    >>> load_structure("bethe:4").threshold().value == 1 / 3
    True
    """
    name = str(name)
    if names_ensemble(name):
        raise InputError(f"{name}: {MANY}")
    return bethe_lattice(name) if name.partition(":")[0] == "bethe" else load_lattice(name)


def take_structure(given: Any, caller: str) -> Structure:
    """Return a structure, or that of a name or a .toml file; InputError for what is neither."""
    structure: Structure = load_structure(given) if isinstance(given, str | Path) else given
    if isinstance(structure, Ensemble) or not isinstance(structure, Structure):
        raise InputError(f"{caller}: {type(given).__name__} given, which is no lattice")
    return structure


def structure_from_record(record: dict[str, Any]) -> Structure:
    """Return the structure of a stored record; ValueError, KeyError or TypeError if it is none.

    A graph comes without its bonds, with which it was sampled: they are in the graph's own file.
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
