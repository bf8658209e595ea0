"""Floors: a file imports only from floors above it in the table, and never in a circle."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "percolab"

#: Modules and packages by floor; within a floor imports may go any way but in a circle.
FLOORS = [
    [
        "toml_input",
        "interrupts",
        "math_text",
        "topology",
        "lattice",
        "lattice_checks",
        "lattice_grid",
        "graph",
        "graph_files",
        "graph_structure",
        "bethe",
        "structure",
        "geometry",
    ],
    ["kernels", "device", "model"],
    ["labelers"],
    ["observables", "extra_quantities", "statistics"],
    ["study", "sampler", "pilot", "cluster_pilot", "warm_up"],
    [
        "storage",
        "stored_tasks",
        "sample_versions",
        "joined",
        "merging",
        "hdf5_guard",
        "hdf5_reading",
        "hdf5_tree",
        "output_files",
        "executors",
        "scheduler",
        "provenance",
    ],
    [
        "analysis",
        "theory",
        "size_counts",
        "size_tables",
        "spanning",
        "moments",
        "tables",
        "frames",
        "html_page",
        "figure_data",
        "plots",
        "lattice_figure",
    ],
    [
        "allocation",
        "rounds",
        "continuing",
        "runner",
        "plan",
        "plan_file",
        "plan_pilot",
        "config",
        "study_view",
        "figures_sizes",
        "report",
        "html_report",
        "api",
        "benchmark",
        "__init__",
    ],
    ["configurations", "cluster_colours", "cluster_legend", "cluster_figure", "bethe_figure"],
    ["validation"],
    ["cli", "__main__"],
]
HEAVY = {"numpy", "scipy", "numba", "h5py", "matplotlib"}
FLOOR = {name: number for number, names in enumerate(FLOORS) for name in names}


def module_name(path):
    """Return a file's dotted name inside the package: "kernels.xorwow", "__init__"."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def named_modules(tree):
    """Yield every dotted name that a file imports, lazily or not, from inside the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written out in full"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of(name):
    """Return the modules of the package that a module imports."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    found = set()
    for dotted in named_modules(tree):
        if dotted == "percolab":
            found.add("__init__")
        elif dotted.startswith("percolab."):
            found.add(dotted.removeprefix("percolab."))
    # ``from percolab.x import y`` names percolab.x.y, which is a module only sometimes.
    return {item for item in found if item in MODULES} - {name}


def floor_of(name):
    return FLOOR[name.partition(".")[0]]


@pytest.mark.parametrize("name", MODULES)
def test_module_has_a_floor_and_imports_from_none_below(name):
    assert name.partition(".")[0] in FLOOR, f"give {name} a floor in this file"
    below = {item for item in imports_of(name) if floor_of(item) > floor_of(name)}
    assert not below, f"{name} imports from a floor below its own: {below}"


def test_imports_form_no_circle():
    graph = {name: imports_of(name) for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' <- '.join(error.args[1])}")


def test_only_the_cuda_modules_import_cuda_when_loaded():
    for name, path in MODULES.items():
        loaded = {
            dotted
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for dotted in named_modules(node)
        }
        assert "numba.cuda" not in loaded, f"{name}: CUDA comes from percolab.device"


WRITE_LOADED = "atexit.register(lambda: print('loaded:', *HEAVY & set(sys.modules)))"


@pytest.mark.parametrize("use", ["import percolab", "import percolab.__main__"])
def test_heavy_packages_are_loaded_when_used(use):
    code = f"import atexit, sys\nHEAVY = {HEAVY}\n{WRITE_LOADED}\n{use}"
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert ("Commands:" in done.stdout) == ("__main__" in use)
