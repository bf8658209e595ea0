"""percolab: percolation thresholds with honest error bars, on any lattice, on CPU and GPU.

The names below are loaded when first used, so that ``import percolab`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from percolab.analysis.maxima import SizeEstimates
    from percolab.analysis.roots import RootFit
    from percolab.analysis.spin_fit import SpinFit
    from percolab.analysis.table_fit import TableFit
    from percolab.analysis.threshold import ThresholdFit
    from percolab.api import (
        DataTable,
        Results,
        Threshold,
        estimates,
        fit,
        merge,
        open_results,
        open_table,
        plot,
        sweep,
        threshold,
    )
    from percolab.configurations.directed import DirectedComponents, components
    from percolab.configurations.exact import exact
    from percolab.configurations.fields import gaussian_field
    from percolab.configurations.flow import flow
    from percolab.configurations.invade import invade
    from percolab.configurations.label import label
    from percolab.configurations.label_slabs import label_in_slabs
    from percolab.configurations.removals import remove_each
    from percolab.configurations.show import show
    from percolab.configurations.tree import tree
    from percolab.errors import AnalysisError, InputError
    from percolab.flows.flow import Flow
    from percolab.lattices.ensemble import Ensemble
    from percolab.lattices.graph import Graph, graph_topology, load_graph
    from percolab.lattices.lattice import Lattice, load_lattice
    from percolab.tables.frames import to_pandas, to_xarray
    from percolab.trees.given import SpanningTree
    from percolab.trees.invasion import Invasion
    from percolab.trees.levels import Levels

__all__ = [
    "AnalysisError",
    "DataTable",
    "DirectedComponents",
    "Ensemble",
    "Flow",
    "Graph",
    "InputError",
    "Invasion",
    "Lattice",
    "Levels",
    "Results",
    "RootFit",
    "SizeEstimates",
    "SpanningTree",
    "SpinFit",
    "TableFit",
    "Threshold",
    "ThresholdFit",
    "components",
    "estimates",
    "exact",
    "fit",
    "flow",
    "gaussian_field",
    "graph_topology",
    "invade",
    "label",
    "label_in_slabs",
    "load_graph",
    "load_lattice",
    "merge",
    "open_results",
    "open_table",
    "plot",
    "remove_each",
    "show",
    "sweep",
    "threshold",
    "to_pandas",
    "to_xarray",
    "tree",
]

#: The rooms, in order: a file imports only from its own and from those above it.
ROOMS = (
    "errors",
    "lattices",
    "kernels",
    "bonds",
    "measure",
    "labelers",
    "flows",
    "coupled",
    "parts",
    "spins",
    "trees",
    "tasks",
    "store",
    "analysis",
    "kinds",
    "run",
    "tables",
    "figures",
    "validation",
    "benchmark",
    "configurations",
    "cli",
    "api",
    "papers",
)

_HOMES = {
    "AnalysisError": "errors",
    "DirectedComponents": "configurations.directed",
    "Flow": "flows.flow",
    "Invasion": "trees.invasion",
    "RootFit": "analysis.roots",
    "SizeEstimates": "analysis.maxima",
    "SpanningTree": "trees.given",
    "SpinFit": "analysis.spin_fit",
    "TableFit": "analysis.table_fit",
    "ThresholdFit": "analysis.threshold",
    "components": "configurations.directed",
    "exact": "configurations.exact",
    "flow": "configurations.flow",
    "gaussian_field": "configurations.fields",
    "invade": "configurations.invade",
    "label": "configurations.label",
    "label_in_slabs": "configurations.label_slabs",
    "Ensemble": "lattices.ensemble",
    "Graph": "lattices.graph",
    "InputError": "errors",
    "Lattice": "lattices.lattice",
    "Levels": "trees.levels",
    "graph_topology": "lattices.graph",
    "load_graph": "lattices.graph",
    "load_lattice": "lattices.lattice",
    "remove_each": "configurations.removals",
    "show": "configurations.show",
    "to_pandas": "tables.frames",
    "to_xarray": "tables.frames",
    "tree": "configurations.tree",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from percolab.store.provenance import own_version

        return own_version()
    if name not in __all__:
        raise AttributeError(f"module 'percolab' has no attribute {name!r}")
    home = _HOMES.get(name, "api")
    return getattr(importlib.import_module(f"percolab.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
