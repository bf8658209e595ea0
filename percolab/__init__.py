"""percolab: percolation thresholds with honest error bars, on any lattice, on CPU and GPU.

The names below are loaded when first used, so that ``import percolab`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from percolab.api import estimates, fit, label, open_results, plot, sweep
    from percolab.frames import to_pandas, to_xarray
    from percolab.graph import graph_topology
    from percolab.graph_structure import Graph, load_graph
    from percolab.lattice import Lattice, load_lattice
    from percolab.toml_input import InputError

__all__ = [
    "Graph",
    "InputError",
    "Lattice",
    "estimates",
    "fit",
    "graph_topology",
    "label",
    "load_graph",
    "load_lattice",
    "open_results",
    "plot",
    "sweep",
    "to_pandas",
    "to_xarray",
]

_HOMES = {
    "Graph": "graph_structure",
    "InputError": "toml_input",
    "Lattice": "lattice",
    "graph_topology": "graph",
    "load_graph": "graph_structure",
    "load_lattice": "lattice",
    "to_pandas": "frames",
    "to_xarray": "frames",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'percolab' has no attribute {name!r}")
    home = _HOMES.get(name, "api")
    return getattr(importlib.import_module(f"percolab.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
