"""What samples of version 2 are, for good: cases, how they are measured, and where they are kept.

    python tests/golden.py

writes tests/data/golden anew, which is right only with a new sample version.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from click.testing import CliRunner

import percolab
from percolab.cli import main as command_line
from percolab.lattices.lattice import lattice_names

FOLDER = Path(__file__).parent / "data" / "golden"
ROOT = Path(__file__).parents[1]
SMALL = {1: 40, 2: 12, 3: 6, 4: 4, 5: 4}
#: Edges of a graph with a hub, two triangles and parallel ways.
EDGES = "0,1\n0,2\n0,3\n0,4\n0,5\n1,2\n3,4\n5,6\n6,7\n7,0\n2,6\n"


def _case(lattice, **options):
    return {"lattice": lattice, "samples": 3, "block_size": 1, "seed": 2026, **options}


def _cases():
    cases = {}
    for name in lattice_names():
        size = SMALL[percolab.load_lattice(name).dimension]
        common = {"L": [size], "p": [0.2, 0.45, 0.7]}
        cases[f"{name} open"] = _case(name, **common)
        cases[f"{name} periodic"] = _case(name, boundary="periodic", measure=["sizes"], **common)
    square = {"L": [9, 33], "p": [0.3, 0.5, 0.62, 1.0]}
    cases["square philox"] = _case("square", rng="philox", **square)
    cases["square another seed"] = _case("square", **square | {"seed": 7})
    cases["square mixed"] = _case("square", boundary=["periodic", "open"], **square)
    cases["square site"] = _case("square", model="site", **square)
    cases["kagome site-bond"] = _case("kagome", model="site-bond", L=[12], p=[0.5, 0.8])
    cases["cubic fixed sites"] = _case("cubic", model="site-bond:site=0.8", L=[6], p=[0.3, 0.6])
    cases["square everything"] = _case(
        "square", boundary="periodic", measure=["sizes", "gyration"], L=[16], p=[0.4, 0.55]
    )
    cases["cubic everything"] = _case("cubic", measure=["sizes", "gyration"], L=[5], p=[0.2, 0.3])
    for name, size in (("square", 20), ("honeycomb", 16), ("cubic", 6), ("diamond", 6)):
        cases[f"{name} thresholds"] = _case(name, L=[size], method="threshold")
    cases["triangular site thresholds"] = _case(
        "triangular", L=[12], method="threshold", model="site"
    )
    cases["Bethe"] = _case("bethe:3", L=[5], p=[0.4, 0.6])
    cases["Bethe random"] = _case("bethe:4:random", L=[4], p=[0.3, 0.5])
    cases["graph"] = _case(None, graph=EDGES, p=[0.3, 0.6])
    cases["graph between terminals"] = _case(
        None, graph=EDGES, source=[1], target=[7], p=[0.3, 0.6], model="site-bond"
    )
    return cases


CASES = _cases()
LABELS = {
    f"{lattice} {boundary} {model}": (lattice, size, p, boundary, model)
    for lattice, size, p in (("honeycomb", 12, 0.66), ("cubic", 6, 0.27), ("ruby", 12, 0.4))
    for boundary in ("open", "periodic")
    for model in ("bond", "site")
}


def measured(case):
    """Return the tasks' ids, names of observables, and arrays of a case: {id: {name: array}}."""
    with tempfile.TemporaryDirectory() as folder:
        options, path = dict(case), Path(folder) / "golden.h5"
        if "graph" in options:
            edges = Path(folder) / "edges.csv"
            edges.write_text(options["graph"], encoding="utf-8")
            options["graph"] = str(edges)
        percolab.sweep(**options, device="cpu", workers=1, out=path)
        found = {}
        with h5py.File(path, "r") as file:
            for key, group in file["tasks"].items():
                arrays = {name: group[name][...] for name in group}
                if "sums" in arrays:
                    names = [_text(name) for name in group.attrs["observable_names"]]
                    sums = arrays.pop("sums")
                    arrays.pop("products")
                    arrays |= {name: sums[:, :, n] for n, name in enumerate(names)}
                found[key] = arrays
    return found


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def labels_of(lattice, size, p, boundary, model):
    """Return the labels of one configuration."""
    kinds = (boundary,) * percolab.load_lattice(lattice).dimension
    return percolab.label(lattice, size, p, sample=5, seed=11, boundary=kinds, model=model)


#: Kept results files, whose tables and fits stay as they are.
KEPT = (
    "results/cubic-h200/slopes.h5",
    "results/torus/square-scaling.h5",
    "results/torus/square.h5",
    "results/thresholds-h200/honeycomb.h5",
    "results/thresholds-h200/hypercubic-5d.h5",
    "results/komura2016-h200/komura2016-fig6.h5",
)
FITTED = KEPT[1:]


def table_of(name):
    """Return the SHA-256 of what ``percolab export`` prints of a kept file."""
    done = CliRunner().invoke(command_line, ["export", str(ROOT / name)])
    assert done.exit_code == 0, done.output
    return hashlib.sha256(done.stdout.encode()).hexdigest()


def fit_of(name):
    """Return the numbers of ``percolab fit --json`` of a kept file, of single fits but the best."""
    done = CliRunner().invoke(command_line, ["fit", str(ROOT / name), "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    for key in ("members", "free_members", "scaling"):
        del record[key]
    return dict(_numbers(record))


def _numbers(record, path=""):
    if isinstance(record, dict):
        for key, value in record.items():
            yield from _numbers(value, f"{path}/{key}")
    elif isinstance(record, list):
        for n, value in enumerate(record):
            yield from _numbers(value, f"{path}/{n}")
    elif isinstance(record, int | float) and not isinstance(record, bool):
        yield path, record


def _write_fits():
    """Write the fits anew; samples, ids and tables stay."""
    path = FOLDER / "kept.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["fits"] = {name: fit_of(name) for name in FITTED}
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _write():
    FOLDER.mkdir(exist_ok=True)
    kept = {"tables": {name: table_of(name) for name in KEPT}}
    kept["fits"] = {name: fit_of(name) for name in FITTED}
    (FOLDER / "kept.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    arrays = {
        f"{name}|{key}|{column}": array
        for name, case in CASES.items()
        for key, columns in measured(case).items()
        for column, array in columns.items()
    }
    np.savez_compressed(FOLDER / "samples.npz", **arrays)
    np.savez_compressed(
        FOLDER / "labels.npz", **{name: labels_of(*case) for name, case in LABELS.items()}
    )
    ids = sorted({key.split("|")[1] for key in arrays})
    print(json.dumps({"arrays": len(arrays), "tasks": len(ids)}))


if __name__ == "__main__":
    _write_fits() if sys.argv[1:] == ["fits"] else _write()
