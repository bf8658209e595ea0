"""The registry of models: what is drawn at random, one file each, imported when it is used."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from percolab.errors import InputError, nearest
from percolab.kernels.registry import load


@dataclass(frozen=True)
class ModelEntry:
    """A model's name in users' texts, and the place of its class.

    name:     the beginning of its text; "name:" for texts that continue, if they have another class
    examples: for the help of --model
    place:    place of the class, as :func:`percolab.kernels.registry.load` takes it
    """

    name: str
    examples: str
    place: str


MODELS = {
    entry.name: entry
    for entry in (
        ModelEntry("bond", "bond", "bonds.models.bond:Bond"),
        ModelEntry("site", "site", "bonds.models.site:Site"),
        ModelEntry(
            "site-bond",
            "site-bond; site-bond:site=0.9 or site-bond:bond=0.7 fixes one of the two "
            "probabilities",
            "bonds.models.site_bond:SiteBond",
        ),
        ModelEntry(
            "bond:",
            "bond:y=0.3 fixes that of bonds along y",
            "bonds.models.bond_classes:BondClasses",
        ),
        ModelEntry(
            "bond-weight",
            "bond-weight or bond-rate: p w or 1 - (1 - p)^w for a graph's bond of weight w",
            "bonds.models.bond_weights:BondWeight",
        ),
        ModelEntry("bond-rate", "", "bonds.models.bond_weights:BondRate"),
        ModelEntry("ising", "ising", "bonds.models.ising:Ising"),
        ModelEntry("potts", "or potts:q=3 for spins", "bonds.models.potts:Potts"),
        ModelEntry(
            "random-cluster",
            "random-cluster:q=2.5 for clusters at any real q >= 1",
            "bonds.models.random_cluster:RandomCluster",
        ),
    )
}


@lru_cache(maxsize=64)
def parse_model(text: str) -> Any:
    """Return the model that a text names; InputError in one line if it names none."""
    name, colon, rest = text.partition(":")
    entry = MODELS.get(f"{name}:") if colon else None
    entry = entry or MODELS.get(name)
    if entry is None:
        known = [name for name in MODELS if not name.endswith(":")]
        raise InputError(f"unknown model {name!r}; {nearest(name, known)}")
    return load(entry.place).read(text, rest if colon else None)
