"""Rooms: a file imports only from its own room and from rooms above it, and never in a circle."""

import ast
import gc
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from math import inf
from pathlib import Path

import pytest

import percolab

PACKAGE = Path(__file__).parents[1] / "percolab"
#: Rooms of which every module is loaded where numba-cuda is not installed.
WITHOUT_CUDA = (
    "analysis",
    "benchmark",
    "cli",
    "configurations",
    "figures",
    "kinds",
    "run",
    "tables",
)
#: Where loading numba.cuda is an error: small sweeps, with the runner and all commands imported,
#: what of papers/ that loads, and the modules that are named.
WITHOUT_NUMBA_CUDA = """
import importlib, sys
from percolab.kernels import device

def missing():
    raise ModuleNotFoundError("numba_cuda")

device.load_cuda = missing
import percolab.cli, percolab.run.runner
from percolab import sweep
for module in percolab.cli.COMMANDS:
    __import__(f"percolab.cli.{module}")
sweep("square", L=[4, 6], p=[0.4, 0.6], samples=4, device="cpu")
sweep("square", L=[4, 6], samples=4, method="tree", device="cpu")
print([name for name in sys.modules if name.startswith("percolab.papers")])
for name in sys.argv[1:]:
    importlib.import_module(f"percolab.{name}")
"""
HEAVY = {"numpy", "scipy", "numba", "h5py", "matplotlib"}
#: The modules outside of the rooms, which may import anything.
DOORS = {"__init__", "__main__"}


def module_name(path):
    """Return a file's dotted name inside the package: "bonds.xorwow", "__init__"."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def modules():
    paths = sorted(PACKAGE.rglob("*.py"))
    gc.disable()
    try:
        return {module_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    finally:
        gc.enable()


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
    own = (dotted for dotted in named_modules(modules()[name]) if dotted.startswith("percolab"))
    found = {dotted.partition(".")[2] or "__init__" for dotted in own}
    # ``from percolab.x import y`` names percolab.x.y, which is a module only sometimes.
    return found & modules().keys() - {name}


@cache
def imports():
    return {name: imports_of(name) for name in modules()}


def room_of(name):
    return name.partition(".")[0]


def test_every_file_is_in_a_room_that_is_on_the_list():
    rooms = {room_of(name) for name in modules()} - DOORS
    assert rooms == set(percolab.ROOMS)


def test_nothing_is_evaluated_unpickled_or_executed():
    forbidden = {"eval", "exec", "compile", "pickle", "marshal", "shelve", "dill", "joblib"}
    for name, tree in modules().items():
        for node in ast.walk(tree):
            names: set[str | None] = set()
            if isinstance(node, ast.Name):
                names = {node.id}
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            elif isinstance(node, ast.keyword):
                refused = isinstance(node.value, ast.Constant) and node.value.value is False
                names = {"pickle"} if node.arg == "allow_pickle" and not refused else set()
            assert not names & forbidden, f"{name}:{node.lineno}"


def test_rooms_import_only_from_rooms_above_them():
    rank = {room: number for number, room in enumerate(percolab.ROOMS)}
    below = [
        f"{name} <- {item}"
        for name, imported in imports().items()
        for item in imported
        if room_of(name) not in DOORS and rank.get(room_of(item), inf) > rank[room_of(name)]
    ]
    assert below == [], "imports from below"


def test_imports_form_no_circle():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' <- '.join(error.args[1])}")


def count_arguments(function):
    """Return how many arguments a function names, but for the object or class that it is of."""
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_jitted(function):
    """Tell whether Numba compiles a function by one of its decorators, or by :func:`sums_in`'s."""
    words = [ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list]
    return any(word in ("njit", "inner", "compiled", "cuda.jit") for word in words)


#: Functions for users whose arguments, by name, are all that a command line has as options.
MANY_OPTIONS = {"flow", "invade", "label", "show", "tree"}


def test_only_kernels_and_functions_for_users_have_more_than_eight_arguments():
    many = {
        f"{name}.{node.name}"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and count_arguments(node) > 8
        if not is_jitted(node)
    }
    assert many == {f"configurations.{name}.{name}" for name in MANY_OPTIONS}


def loaded_by(tree):
    """Return what a file imports when it is loaded itself."""
    imports = (node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    return {dotted for node in imports for dotted in named_modules(node)}


def test_only_the_cuda_modules_import_cuda_when_loaded():
    for name, tree in modules().items():
        assert "numba.cuda" not in loaded_by(tree), f"{name}: see percolab.kernels.device"


#: What takes tenths of a second to import, so that functions do that.
SLOW_PARTS = {f"scipy.{part}" for part in ("fft", "linalg", "optimize", "sparse", "stats")}


def test_without_numba_cuda_all_is_loaded_and_a_plain_sweep_imports_nothing_of_papers(tmp_path):
    names = [name for name in modules() if name.split(".")[0] in WITHOUT_CUDA]
    names.remove("configurations.device_arrays")
    assert len(names) > 150
    command = [sys.executable, "-c", WITHOUT_NUMBA_CUDA, "api", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_slow_parts_of_scipy_and_fits_of_commands_are_imported_by_functions():
    for name, tree in modules().items():
        loaded = loaded_by(tree)
        assert not loaded & SLOW_PARTS, f"{name}: import {loaded & SLOW_PARTS} in a function"
        if room_of(name) == "cli":
            fits = {dotted for dotted in loaded if dotted.startswith("percolab.analysis")}
            assert not fits, f"{name}: import {fits} in a function"


WRITE_LOADED = "atexit.register(lambda: print('loaded:', *HEAVY & set(sys.modules)))"


@pytest.mark.parametrize("use", ["import percolab", "from percolab.__main__ import run; run()"])
def test_heavy_packages_are_loaded_when_used(use):
    code = f"import atexit, sys\nHEAVY = {HEAVY}\n{WRITE_LOADED}\n{use}"
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert ("Commands:" in done.stdout) == ("__main__" in use)


#: Who may ask which kind a study is: the registry, one table in each room that needs one, and the
#: plan, which foresees how long samples of two kinds take.
ASKS_KINDS = {
    "tasks.kind_registry",
    "analysis.study_kinds",
    "figures.study_kinds",
    "cli.answers",
    "api",
    "run.plan",
}
#: What tells kinds apart, and whose question it is where it is asked of a model.
KIND_WORDS, MODELS = {"has_spins", "has_trees"}, {"model", "draw", "parse"}
KIND_CLASSES = {"Block", "ThresholdBlock", "ChainEnd", "GridSampler", "ChainSampler"}


def last_name(node):
    """Return the last name of an expression: draw of task.draw, parse of Model.parse(...)."""
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "attr", getattr(node, "id", ""))


def is_question_of_kind(node):
    """Return whether a node of a syntax tree asks which kind a study, task or block is of."""
    if isinstance(node, ast.Attribute) and node.attr in KIND_WORDS:
        return last_name(node.value) not in MODELS
    if isinstance(node, ast.Attribute) and node.attr == "name":
        return last_name(node.value) == "kind" and isinstance(node.value, ast.Attribute)
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        is_text = any(isinstance(each, ast.Constant) for side in sides for each in ast.walk(side))
        return is_text and any(last_name(each) == "method" for each in sides)
    is_check = isinstance(node, ast.Call) and last_name(node) == "isinstance"
    return is_check and any(last_name(each) in KIND_CLASSES for each in ast.walk(node.args[1]))


def test_only_tables_by_kind_ask_which_kind_a_study_is():
    """What differs between kinds is asked of the kind (percolab/tasks/kind.py)."""
    asking = {
        name
        for name, tree in modules().items()
        if room_of(name) not in ("kinds", "bonds") and any(map(is_question_of_kind, ast.walk(tree)))
    }
    assert asking <= ASKS_KINDS


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("task.has_spins", True),
        ("self.study.has_trees", True),
        ('item.task.method == "threshold"', True),
        ('study.method in ("grid", "tree")', True),
        ("TABLE[study.kind.name]", True),
        ("isinstance(block, ThresholdBlock)", True),
        ("task.draw.has_spins", False),
        ("Model.parse(text).has_spins", False),
        ("kind.name", False),
        ("task.method == own", False),
    ],
)
def test_a_question_of_the_kind_is_recognized(code, is_one):
    assert any(map(is_question_of_kind, ast.walk(ast.parse(code)))) == is_one
