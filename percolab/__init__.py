"""percolab: percolation thresholds with honest error bars, on any lattice, on CPU and GPU.

The names below are loaded when first used, so that ``import percolab`` costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

# isort: skip_file
if TYPE_CHECKING:
    from percolab.analysis.maxima import SizeEstimates as SizeEstimates
    from percolab.analysis.roots import RootFit as RootFit
    from percolab.analysis.shared_fit import SharedFit as SharedFit
    from percolab.analysis.spin_fit import SpinFit as SpinFit
    from percolab.analysis.table_fit import TableFit as TableFit
    from percolab.analysis.threshold import ThresholdFit as ThresholdFit
    from percolab.api import (
        DataTable as DataTable,
        Results as Results,
        Threshold as Threshold,
        estimates as estimates,
        fit as fit,
        merge as merge,
        open_results as open_results,
        open_table as open_table,
        plot as plot,
        sweep as sweep,
        threshold as threshold,
    )
    from percolab.configurations.directed import (
        DirectedComponents as DirectedComponents,
        components as components,
    )
    from percolab.configurations.exact import exact as exact
    from percolab.configurations.fields import gaussian_field as gaussian_field
    from percolab.configurations.flow import flow as flow
    from percolab.configurations.invade import invade as invade
    from percolab.configurations.label import label as label
    from percolab.configurations.label_slabs import label_in_slabs as label_in_slabs
    from percolab.configurations.removals import remove_each as remove_each
    from percolab.configurations.show import show as show
    from percolab.configurations.tree import tree as tree
    from percolab.errors import AnalysisError as AnalysisError, InputError as InputError
    from percolab.flows.flow import Flow as Flow
    from percolab.lattices.ensemble import Ensemble as Ensemble
    from percolab.lattices.graph import (
        Graph as Graph,
        graph_topology as graph_topology,
        load_graph as load_graph,
    )
    from percolab.lattices.lattice import Lattice as Lattice, load_lattice as load_lattice
    from percolab.tables.frames import to_pandas as to_pandas, to_xarray as to_xarray
    from percolab.trees.given import SpanningTree as SpanningTree
    from percolab.trees.invasion import Invasion as Invasion
    from percolab.trees.levels import Levels as Levels

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

#: The public names, by the file below percolab that each is loaded from.
_NAMES = {
    "analysis.maxima": ("SizeEstimates",),
    "analysis.roots": ("RootFit",),
    "analysis.shared_fit": ("SharedFit",),
    "analysis.spin_fit": ("SpinFit",),
    "analysis.table_fit": ("TableFit",),
    "analysis.threshold": ("ThresholdFit",),
    "api": ("DataTable", "Results", "Threshold", "estimates", "fit", "merge", "open_results",
            "open_table", "plot", "sweep", "threshold"),
    "configurations.directed": ("DirectedComponents", "components"),
    "configurations.exact": ("exact",),
    "configurations.fields": ("gaussian_field",),
    "configurations.flow": ("flow",),
    "configurations.invade": ("invade",),
    "configurations.label": ("label",),
    "configurations.label_slabs": ("label_in_slabs",),
    "configurations.removals": ("remove_each",),
    "configurations.show": ("show",),
    "configurations.tree": ("tree",),
    "errors": ("AnalysisError", "InputError"),
    "flows.flow": ("Flow",),
    "lattices.ensemble": ("Ensemble",),
    "lattices.graph": ("Graph", "graph_topology", "load_graph"),
    "lattices.lattice": ("Lattice", "load_lattice"),
    "tables.frames": ("to_pandas", "to_xarray"),
    "trees.given": ("SpanningTree",),
    "trees.invasion": ("Invasion",),
    "trees.levels": ("Levels",),
}  # fmt: skip
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from percolab.store.provenance import own_version

        return own_version()
    if name not in _HOMES:
        raise AttributeError(f"module 'percolab' has no attribute {name!r}")
    return getattr(importlib.import_module(f"percolab.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
