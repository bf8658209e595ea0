"""What samples of version 2 are, for good: cases, how they are measured, and where they are kept.

    python tests/golden.py

writes tests/data/golden anew, which is right only with a new sample version.

    python tests/golden.py kinds
    python tests/golden.py fits

write kinds.npz, or the fits of kept.json, alone.

    python tests/golden.py new

adds cases to samples.npz that are not there yet, as those of a new lattice; all others stay.
"""

import hashlib
import json
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
from click.testing import CliRunner

import percolab
from percolab.cli import main as command_line
from percolab.kernels.device import Device
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import lattice_names
from percolab.parts.slab_partition import SlabDivision
from percolab.run.parts_sampler import PartsSampler, alone
from percolab.run.rank_group import RankGroup
from percolab.store.checkpoints import Checkpoints
from percolab.tasks.study import Task

FOLDER = Path(__file__).parent / "data" / "golden"
ROOT = Path(__file__).parents[1]
SMALL = {1: 40, 2: 12, 3: 6, 4: 4, 5: 4}
#: Edges of a graph with a hub, two triangles and parallel ways.
EDGES = "0,1\n0,2\n0,3\n0,4\n0,5\n1,2\n3,4\n5,6\n6,7\n7,0\n2,6\n"


def _case(lattice, **options):
    return {"lattice": lattice, "samples": 3, "block_size": 1, "seed": 2026, **options}


def _study(lattice, **options):
    return {"lattice": lattice, "seed": 2026, "block_size": 20, **options}


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


def corner(labels):
    """Return the sites of the first site's cluster, with a sign and a fraction."""
    return -0.5 * np.count_nonzero(labels == labels.flat[0])


def last_label(labels):
    """Return the largest label."""
    return int(labels.max())


def _kinds():
    """Return cases of all that is not a grid of p or thresholds of whole lattices."""
    cases = {}
    spins = {"samples": 40, "block_size": 20, "burn_in": 10}
    every = {"measure": ["sizes", "series", "correlation"], "boundary": "periodic"}
    for update in ("sw", "wolff", "few:4,flip=0.5"):
        options = spins | every | {"update": update, "L": [8], "p": [0.4, 0.6]}
        cases[f"square ising {update}"] = _case("square", model="ising", **options)
        options = spins | {"update": update, "L": [4], "p": [0.3]}
        cases[f"cubic potts {update}"] = _case("cubic", model="potts:q=3", **options)
    options = spins | {"L": [8], "p": [0.5], "measure": ["sizes"]}
    cases["kagome ising"] = _case("kagome", model="ising", **options)
    options = spins | {"L": [6], "p": [0.5], "update": "wolff", "every": 3, "rng": "philox"}
    cases["triangular potts every"] = _case("triangular", model="potts:q=4", **options)
    for update in ("sw", "wolff"):
        options = spins | every | {"samples": 60, "chains": 1, "update": update, "L": [8]}
        cases[f"square ising one chain {update}"] = _case(
            "square", model="ising", p=[0.55], **options
        )
    options = spins | {"L": [8], "p": [0.6], "chains": 1}
    cases["honeycomb potts one chain"] = _case("honeycomb", model="potts:q=3", **options)
    for name, size in (("square", 12), ("kagome", 8), ("cubic", 4)):
        for boundary in ("open", "periodic"):
            cases[f"{name} {boundary} trees"] = _case(
                name, method="tree", L=[size], boundary=boundary, samples=4, block_size=2
            )
        cases[f"{name} microcanonical"] = _case(
            name, method="microcanonical", L=[size], boundary="periodic", samples=4, block_size=2
        )
    cases["triangular site microcanonical"] = _case(
        "triangular", method="microcanonical", L=[9], model="site", rng="philox"
    )
    cases["graph microcanonical"] = _case(None, method="microcanonical", graph=EDGES)
    cases["square philox trees"] = _case("square", method="tree", L=[9], rng="philox")
    cases["Bethe trees"] = _case("bethe:3", method="tree", L=[5])
    cases["graph trees"] = _case(None, method="tree", graph=EDGES)
    functions = {"corner": corner, "last_label": last_label}
    cases["kagome functions"] = _case("kagome", L=[8], p=[0.4, 0.6], observables=functions)
    cases["graph functions"] = _case(None, graph=EDGES, p=[0.3, 0.6], observables=functions)
    parts = {
        "slabs": {"slabs": 3},
        "ranks": {"split": "lattice", "executor": "threads", "workers": 3, "slabs": 6},
        "boxes": {
            "split": "lattice",
            "executor": "threads",
            "workers": 4,
            "blocks": "2x2",
            "merge": "quad:bubbles,runs",
        },
    }
    for name, options in parts.items():
        of_square = {"L": [12], "p": [0.45, 0.55], "measure": ["sizes"]} | options
        cases[f"square {name}"] = _case("square", boundary=["open", "periodic"], **of_square)
        cases[f"square wide {name}"] = _case("square", wide=True, **of_square)
        cases[f"kagome site {name}"] = _case(
            "kagome", L=[8], p=[0.6], boundary="periodic", model="site", **options
        )
        if name != "boxes":
            cases[f"cubic {name}"] = _case("cubic", L=[6], p=[0.25], boundary="periodic", **options)
    return cases


KINDS = _kinds()
#: Invasions: what is invaded, and how.
INVASIONS = {
    "square": (("square", 12), {"seed": 3}),
    "square trapping": (("square", 12), {"seed": 3, "trapping": True}),
    "square site": (("square", 12), {"seed": 4, "model": "site"}),
    "kagome from the centre": (("kagome", 12), {"source": "centre", "stop": 40, "rng": "philox"}),
    "cubic all": (("cubic", 4), {"boundary": "periodic", "source": 5, "stop": "all"}),
    "Bethe": (("bethe:3", 4), {"sample": 2}),
    "given weights": (("square", 3), {"weights": (np.arange(18).reshape(2, 9) * 7 % 18)}),
}


def sampled(case, folder):
    """Sample a case into golden.h5 of a folder, and return that path."""
    with ExitStack() as stack:
        options, path = {"workers": 1} | case, folder / "golden.h5"
        if options.pop("wide", False):
            for target, value in (
                ("percolab.tasks.study.Task.is_wide", property(lambda task: True)),
                ("percolab.run.parts_sampler.LOW_BITS", 5),
            ):
                stack.enter_context(mock.patch(target, value))
        if "graph" in options:
            edges = folder / "edges.csv"
            edges.write_text(options["graph"], encoding="utf-8")
            options["graph"] = str(edges)
        percolab.sweep(**options, device="cpu", out=path)
        return path


def measured(case):
    """Return the tasks' ids, names of observables, and arrays of a case: {id: {name: array}}."""
    with tempfile.TemporaryDirectory() as folder:
        path = sampled(case, Path(folder))
        found = {}
        with h5py.File(path, "r") as file:
            for key, group in file["tasks"].items():
                arrays = {name: group[name][...] for name in group}
                if "sums" in arrays:
                    names = [_text(name) for name in group.attrs["observable_names"]]
                    sums = arrays.pop("sums")
                    arrays.pop("squares")
                    arrays.pop("block_count")
                    arrays |= {name: sums[:, :, n] for n, name in enumerate(names)}
                found[key] = arrays
    return found


def _text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def labels_of(lattice, size, p, boundary, model):
    """Return the labels of one configuration."""
    kinds = (boundary,) * percolab.load_lattice(lattice).dimension
    return percolab.label(lattice, size, p, sample=5, seed=11, boundary=kinds, model=model)


def invaded(case):
    """Return the arrays of an invasion."""
    arguments, options = INVASIONS[case]
    found = percolab.invade(*arguments, **options)
    names = ("sites", "origins", "bonds", "weights", "fronts", "keys", "tried", "accepted")
    arrays = {name: getattr(found, name) for name in names}
    step = -1 if found.breakthrough is None else found.breakthrough
    return arrays | {"numbers": np.array([found.num_sources, step, found.num_sites, found.touched])}


#: Blocks that are stopped on their way, by what measures them: one process, or ranks together.
CHECKPOINTS = ("slabs", "ranks")


def checkpointed(name):
    """Return the rows of the checkpoint of such a block and its rank's interface, by block."""
    task = Task(
        percolab.load_lattice("square"), 12, ("open", "periodic"), p=(0.5,), seed=7,
        measure=("sizes",), block_size=2,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        for constant in ("_CHECKPOINT_EVERY", "_CHECKPOINT_SHARE"):
            stack.enter_context(mock.patch(f"percolab.run.saving.{constant}", 0.0))
        path, done = Path(folder) / "golden.h5", []
        path.touch()
        if name == "ranks":
            ranks = RankGroup("threads", (Device("cpu"),), SlabDivision({12: ((4, 4, 4),)}))
            stack.enter_context(ranks.opened())
        else:
            ranks = alone((4, 4, 4), 12)
        sampler = PartsSampler(task, ranks, done.append)
        sampler.checkpoints = Checkpoints(path)
        with suppress(Stopped):
            sampler.sample([3], lambda: sum(done) >= 144 + 96)
        (block, key), (rank, _) = sampler.checkpoints.list_files()
        arrays = _datasets(block) | _datasets(rank)
        del arrays["rank_row"]
        return {"-".join(map(str, key)): arrays}


def _datasets(path):
    arrays = {}
    with h5py.File(path, "r") as file:

        def take(name, item):
            if isinstance(item, h5py.Dataset):
                arrays[name.replace("/", ".")] = item[...]

        file.visititems(take)
    return arrays


#: Kept results files, whose tables and fits stay as they are.
KEPT = (
    "results/cubic-h200/slopes.h5",
    "results/torus/square-scaling.h5",
    "results/torus/square.h5",
    "results/komura2016-h200/komura2016-fig6.h5",
)
FITTED = KEPT[1:]
#: Studies that are sampled to be fitted, with the options of ``percolab fit``.
STUDIES = {
    "spins": (
        _study(
            "square",
            model="ising",
            L=[4, 8, 16],
            p="0.54:0.62:5",
            samples=4000,
            block_size=200,
            burn_in=50,
        ),
        (),
    ),
    "trees": (_study("square", method="tree", L=[8, 16, 32], samples=200), ()),
    "thresholds": (_study("square", method="threshold", L=[8, 16, 32], samples=1000), ()),
    "exponents": (
        _study("square", L=[8, 16, 32], p="0.46:0.54:5", samples=1000, measure=["sizes"]),
        ("--exponents", "--bootstrap", "50"),
    ),
    "quantities": (
        _study("square", L=[8, 16, 32], p="0.46:0.54:5", samples=1000, boundary="periodic"),
        ("--quantities", "all"),
    ),
    "graph": (_study(None, graph=EDGES, p="0.1:0.9:9", samples=1000), ("--bootstrap", "50")),
}


def table_of(name):
    """Return the SHA-256 of what ``percolab export`` prints of a kept file."""
    done = CliRunner().invoke(command_line, ["export", str(ROOT / name)])
    assert done.exit_code == 0, done.output
    return hashlib.sha256(done.stdout.encode()).hexdigest()


def fit_of(name):
    """Return the numbers of ``percolab fit --json`` of a kept file, of single fits but the best."""
    return _fitted(ROOT / name)


def fit_of_study(name):
    """Return the same of a study of ``STUDIES``."""
    case, options = STUDIES[name]
    with tempfile.TemporaryDirectory() as folder:
        sampled(case, Path(folder))
        return _fitted(Path(folder) / "golden.h5", *options)


_SINGLE_FITS = ("members", "free_members", "scaling")


def _fitted(path, *options):
    done = CliRunner().invoke(command_line, ["fit", str(path), "--json", *options])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    if isinstance(record, dict):
        record = {key: value for key, value in record.items() if key not in _SINGLE_FITS}
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
    _write_kept(kept["tables"])


def _write_kept(tables):
    kept = {"tables": tables, "fits": {name: fit_of(name) for name in FITTED}}
    kept["studies"] = {
        name: {key: float(f"{value:.9g}") for key, value in fit_of_study(name).items()}
        for name in STUDIES
    }
    (FOLDER / "kept.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _arrays(cases):
    return {
        f"{name}|{key}|{column}": array
        for name, case in cases.items()
        for key, columns in measured(case).items()
        for column, array in columns.items()
    }


def _write_kinds():
    """Write the samples of all kinds, invasions and checkpoints."""
    arrays = _arrays(KINDS)
    for name in INVASIONS:
        arrays |= {f"invasion {name}||{key}": array for key, array in invaded(name).items()}
    for name in CHECKPOINTS:
        for file, found in checkpointed(name).items():
            arrays |= {f"checkpoint {name}|{file}|{key}": array for key, array in found.items()}
    np.savez_compressed(FOLDER / "kinds.npz", **arrays)


def _add_samples():
    """Write the samples of new cases to those that are stored."""
    with np.load(FOLDER / "samples.npz", allow_pickle=False) as file:
        arrays = dict(file)
    stored = {key.partition("|")[0] for key in arrays}
    new = {name: case for name, case in CASES.items() if name not in stored}
    np.savez_compressed(FOLDER / "samples.npz", **arrays | _arrays(new))
    print(json.dumps({"new": list(new)}))


def _write():
    FOLDER.mkdir(exist_ok=True)
    _write_kept({name: table_of(name) for name in KEPT})
    _write_kinds()
    arrays = _arrays(CASES)
    np.savez_compressed(FOLDER / "samples.npz", **arrays)
    np.savez_compressed(
        FOLDER / "labels.npz", **{name: labels_of(*case) for name, case in LABELS.items()}
    )
    ids = sorted({key.split("|")[1] for key in arrays})
    print(json.dumps({"arrays": len(arrays), "tasks": len(ids)}))


if __name__ == "__main__":
    commands = {"fits": _write_fits, "kinds": _write_kinds, "new": _add_samples}
    commands.get("".join(sys.argv[1:]), _write)()
