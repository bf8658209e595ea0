"""Damage files of every kind that percolab reads, and count the outcomes.

    python scripts/fuzz_files.py --mutants 10008 --seed 1 --out results/reliability

Every mutant is read in a worker process with limits of time and memory; a worker that hangs or
dies is replaced.  The outcomes are:

    clean      refused in one line
    equal      read with the same content as the original
    reads      read with different content, from a kind of file that cannot detect changes
    different  read with different content, from a kind of file that should detect changes
    hang       not read within the limit of time
    traceback  any other error, or the end of the process
"""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "percolab" / "lattices" / "library"
OUTCOMES = ("clean", "equal", "reads", "different", "hang", "traceback")
#: Commands are tried on one in this many mutants of results.
_EVERY = 50
#: Number of mutants that a worker gets at a time.
_BATCH = 100

# Originals: family -> (files, kind of reader, whether a change must be detected)


def originals(folder: Path) -> dict[str, tuple[list[Path], str, bool]]:
    """Make a file of every kind in a folder, and return all by family."""
    return {
        "results, schema 5": (_results(folder), "results", True),
        "results, schema 5, edited": (_results(folder), "results", True),
        "results, schema 5, edited and sealed anew": (_results(folder), "results", False),
        "labels, HDF5": ([folder / "labels.h5"], "labels", True),
        "labels, NPY": ([folder / "labels.npy"], "labels", False),
        "configurations": (_configurations(folder), "sites", False),
        "configurations, HDF5": (_foreign_hdf5(folder), "sites", False),
        "lattices, TOML": (sorted(LIBRARY.glob("*.toml")), "lattice", False),
        "studies, TOML": (sorted((ROOT / "configs").glob("*.toml")), "study", False),
        "graphs": (_graphs(folder), "graph", False),
        "invasions, HDF5": (_invasions(folder), "invasion", True),
        "invasions, HDF5, edited": (_invasions(folder), "invasion", True),
        "invasions, HDF5, edited and sealed anew": (_invasions(folder), "invasion", False),
        "trees, results": (_tree_results(folder), "tree", True),
        "trees, results, edited": (_tree_results(folder), "tree", True),
        "trees, results, edited and sealed anew": (_tree_results(folder), "tree", False),
        "trees, one of given weights": (_trees(folder), "weights", False),
        "weights": (_weights(folder), "weights", False),
        "checkpoints": (_checkpoints(folder), "checkpoint", True),
        "checkpoints, edited": (_checkpoints(folder), "checkpoint", True),
        "checkpoints, edited and sealed anew": (_checkpoints(folder), "checkpoint", False),
        "images": (_images(folder), "image", False),
    }


def _results(folder: Path) -> list[Path]:
    """Write small results of every kind, once, and return their names."""
    from percolab.api import sweep
    from percolab.configurations import random_configuration, write_labels
    from percolab.lattices.graph import load_graph
    from percolab.lattices.lattice import load_lattice
    from percolab.store.results import encode

    names = [folder / f"{kind}.h5" for kind in ("grid", "threshold", "graph", "measure")]
    if names[0].exists():
        return names
    keys = {"samples": 30, "block_size": 10, "seed": 7, "device": "cpu", "workers": 1}
    graph = load_graph(_graphs(folder)[0], source="0", target="6")
    made = [
        sweep("square", L=[4, 6, 8], p=[0.4, 0.5, 0.6], **keys),
        sweep("triangular", L=[4, 6], method="threshold", **keys),
        sweep(graph=graph, p=[0.4, 0.5, 0.6], **keys),
        sweep("honeycomb", L=[4], boundary="periodic", p=[0.6], measure="sizes", **keys),
    ]
    for name, results in zip(names, made, strict=True):
        name.write_bytes(encode(results))
    one = random_configuration(load_lattice("square"), 8, 0.5, seed=3)
    for suffix in (".h5", ".npy"):
        write_labels(folder / f"labels{suffix}", one.label(), one)
    return names


def _configurations(folder: Path) -> list[Path]:
    from PIL import Image

    sites = np.random.default_rng(3).random((12, 9)) < 0.6
    np.save(folder / "sites.npy", sites)
    Image.fromarray(sites).save(folder / "sites.png")
    return [folder / f"sites.{suffix}" for suffix in ("npy", "png")]


def _foreign_hdf5(folder: Path) -> list[Path]:
    """Write images as other programs do: mostly without checksums, with variable-length text."""
    sites = (np.random.default_rng(3).random((12, 9)) < 0.6).astype("u1")
    layouts: dict[str, tuple[Any, dict[str, Any]]] = {
        "plain": ("earliest", {}),
        "packed": ("earliest", {"chunks": (2, 2), "compression": "gzip", "shuffle": True}),
        "growing": ("earliest", {"chunks": (3, 3), "maxshape": (None, None)}),
        "v108": (("v108", "v108"), {"chunks": (2, 2), "compression": "gzip"}),
        "v110": (("v110", "v110"), {"chunks": (2, 2)}),
        "latest": ("latest", {"chunks": (2, 2), "compression": "gzip"}),
    }
    for name, (version, layout) in layouts.items():
        with h5py.File(folder / f"foreign-{name}.h5", "w", libver=version) as file:
            file.create_dataset("run/sites", data=sites, **layout)
            file.attrs["note"] = "a text of variable length"
            file["run"].attrs["list"] = ["some", "more", "of", "them"]
            file["texts"] = np.array(["x" * n for n in range(9)], object)
            for n in range(20):
                file[f"run/other{n}"] = np.arange(n)
    return [folder / f"foreign-{name}.h5" for name in layouts]


def _graphs(folder: Path) -> list[Path]:
    import networkx
    import scipy.sparse

    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4), (4, 5), (5, 6), (6, 4)]
    graph = networkx.Graph(pairs)
    (folder / "graph.csv").write_text("".join(f"{a},{b}\n" for a, b in pairs))
    lines = "".join(f"{a + 1} {b + 1}\n" for b, a in pairs if a > b)
    lines += "".join(f"{a + 1} {b + 1}\n" for a, b in pairs if a > b)
    header = f"%%MatrixMarket matrix coordinate pattern symmetric\n7 7 {len(pairs)}\n"
    (folder / "graph.mtx").write_text(header + lines)
    scipy.sparse.save_npz(folder / "graph.npz", scipy.sparse.csr_matrix(_adjacency(pairs)))
    networkx.write_graphml(graph, folder / "graph.graphml")
    networkx.write_gml(graph, folder / "graph.gml")
    return [folder / f"graph.{suffix}" for suffix in ("csv", "mtx", "npz", "graphml", "gml")]


def _invasions(folder: Path) -> list[Path]:
    """Write invasions of a lattice, by bonds and by sites, as percolab invade --out does."""
    names = [folder / f"invasion-{model}.h5" for model in ("bond", "site")]
    for name, model in zip(names, ("bond", "site"), strict=True):
        if not name.exists():
            _command("invade", "--lattice", "square", "-L", 12, "--model", model, "--out", name)
    return names


def _tree_results(folder: Path) -> list[Path]:
    from percolab.api import sweep

    keys = {"samples": 30, "block_size": 10, "seed": 7, "device": "cpu", "workers": 1}
    names = [folder / "tree-square.h5", folder / "tree-kagome.h5"]
    if not names[0].exists():
        sweep("square", L=[4, 6, 8], method="tree", **keys).save(names[0])
        sweep("kagome", L=[4, 6], boundary="periodic", method="tree", **keys).save(names[1])
    return names


def _trees(folder: Path) -> list[Path]:
    """Write one tree in every format that percolab reads again, as weights, bonds or a graph."""
    _weights(folder)
    given = ["tree", "--graph", folder / "weighted.csv", "--weights", "file", "--out"]
    of_lattice = ["tree", "--lattice", "square", "--weights", folder / "weights.npy", "--out"]
    names = [folder / f"spanning.{suffix}" for suffix in ("csv", "npz", "npy", "h5")]
    for name in names:
        if not name.exists():
            _command(*(of_lattice if name.suffix in (".npy", ".h5") else given), name)
    return names


def _weights(folder: Path) -> list[Path]:
    """Write weights in every format: with a graph, or of the bonds of a lattice."""
    import networkx
    import scipy.io
    import scipy.sparse

    rows = [(0, 1, 0.5), (1, 2, -3.25), (2, 3, 7.0), (3, 0, 2.5), (0, 2, 1e-3), (3, 4, 12.0)]
    graph = networkx.Graph()
    graph.add_weighted_edges_from(rows)
    text = "".join(f"{a},{b},{weight}\n" for a, b, weight in rows)
    (folder / "weighted.csv").write_text(f"source,target,weight\n{text}")
    one, other, weights = zip(*rows, strict=True)
    matrix = scipy.sparse.coo_matrix((weights, (one, other)), (5, 5))
    scipy.io.mmwrite(folder / "weighted.mtx", matrix)
    scipy.sparse.save_npz(folder / "weighted.npz", scipy.sparse.csr_matrix(matrix))
    networkx.write_graphml(graph, folder / "weighted.graphml")
    networkx.write_gml(graph, folder / "weighted.gml")
    array = np.random.default_rng(3).random((2, 6, 6))
    np.save(folder / "weights.npy", array)
    with h5py.File(folder / "weights.h5", "w") as file:
        file["weights"] = array
    graphs = [folder / f"weighted.{suffix}" for suffix in ("csv", "mtx", "npz", "graphml", "gml")]
    return [*graphs, folder / "weights.npy", folder / "weights.h5"]


def _sampler(path: Path) -> Any:
    """Return a sampler that measures a block in slabs, with checkpoints next to a results file."""
    from percolab.lattices.lattice import load_lattice
    from percolab.run.parts_sampler import PartsSampler, alone
    from percolab.store.checkpoints import Checkpoints
    from percolab.tasks.study import Task

    task = Task(
        load_lattice("square"), 12, ("open", "periodic"), (0.4, 0.5), seed=7, block_size=2,
        measure=("sizes",),
    )  # fmt: skip
    sampler = PartsSampler(task, alone((3, 3, 3, 3), task.size))
    path.touch()
    sampler.checkpoints = Checkpoints(path)
    return sampler


def _checkpoints(folder: Path) -> list[Path]:
    """Write the checkpoints of a rank in the first row of a block, and of a block of two rows."""
    from percolab.kinds.workplace import Stopped

    names = [folder / "one.checkpoint", folder / "three.checkpoint"]
    for name, slabs, rank in zip(names, (1, 9), (0, None), strict=True):
        sampler = _sampler(folder / "study.h5")
        calls = iter([False] * slabs + [True])
        try:
            sampler.sample([4], calls.__next__)
        except Stopped:
            sampler.checkpoints.find_checkpoint(sampler.task.id, 4, rank).replace(name)
    return names


def _images(folder: Path) -> list[Path]:
    """Write images of every mode that percolab reads, and of some that it refuses."""
    from PIL import Image

    grey = (255 * np.random.default_rng(3).random((12, 9))).astype(np.uint8)
    image = Image.fromarray(grey)
    colours = Image.fromarray(np.stack([grey, grey[::-1], grey[:, ::-1]], axis=2))
    names = [folder / f"image-{n}.{suffix}" for n in range(4) for suffix in ("png", "tif")]
    kinds = (image, image.convert("1"), colours, colours.quantize(16))
    for name, kind in zip(names, [kind for kind in kinds for _ in range(2)], strict=True):
        kind.save(name)
    for n, packing in enumerate(("tiff_lzw", "tiff_adobe_deflate", "packbits")):
        names.append(folder / f"packed-{n}.tif")
        image.save(names[-1], compression=packing)
    names.append(folder / "stack.tif")
    image.save(names[-1], save_all=True, append_images=[image, image])
    names.append(folder / "deep.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(names[-1])
    return names


def _command(*words: object) -> None:
    """Run a command that must succeed."""
    from click.testing import CliRunner

    from percolab.cli import main

    result = CliRunner().invoke(main, [str(word) for word in words])
    if result.exit_code:
        raise click.ClickException(f"{words}: {result.output}")


def _adjacency(pairs: list[tuple[int, int]]) -> np.ndarray:
    matrix = np.zeros((7, 7), np.int8)
    for a, b in pairs:
        matrix[a, b] = matrix[b, a] = 1
    return matrix


# How a file is damaged

_TOKENS = (
    b"-1", b"0", b"1e400", b"nan", b"-inf", b"9" * 30, b"1e-320", b"true", b"''", b'"', b"[", b"]",
    b"{}", b"=", b"\x00", b"\xff\xfe", b"\xc3\x28", b"\r", b"\n\n", b"#", b"../x", b"0x7f", b",",
)  # fmt: skip


def damaged(content: bytes, rng: random.Random, *, is_text: bool) -> bytes:
    """Return bytes with one to three changes: bits, bytes, ranges, and words of text."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kinds = [_flip, _flip, _set, _zero, _cut, _double, _copy, _end]
        if is_text:
            kinds += [_word, _word, _word, _insert, _insert]
        rng.choice(kinds)(data, rng)
    return bytes(data)


def _range(data: bytearray, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(max(len(data), 1))
    return start, min(start + rng.choice((1, 2, 4, 8, 16, 64, 512)), len(data))


def _flip(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _zero(data: bytearray, rng: random.Random) -> None:
    start, end = _range(data, rng)
    data[start:end] = bytes([rng.choice((0, 0xFF))]) * (end - start)


def _cut(data: bytearray, rng: random.Random) -> None:
    start, end = _range(data, rng)
    del data[start:end]


def _double(data: bytearray, rng: random.Random) -> None:
    start, end = _range(data, rng)
    data[start:start] = data[start:end]


def _copy(data: bytearray, rng: random.Random) -> None:
    start, end = _range(data, rng)
    other = rng.randrange(max(len(data), 1))
    data[other : other + end - start] = data[start:end]


def _end(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(max(len(data), 1)) :]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(_TOKENS)


def _word(data: bytearray, rng: random.Random) -> None:
    words = list(re.finditer(rb"[\w.+-]+", bytes(data)))
    if words:
        word = rng.choice(words)
        data[word.start() : word.end()] = rng.choice(_TOKENS)


def edited(content: bytes, rng: random.Random, *, sealed: bool) -> bytes:
    """Return an HDF5 file in which a member was changed, deleted, added or given another type."""
    buffer = io.BytesIO(content)
    with h5py.File(buffer, "r+") as file:
        groups: list[h5py.Group] = [file]
        file.visititems(
            lambda _, item: groups.append(item) if isinstance(item, h5py.Group) else None
        )
        group = rng.choice(groups)
        names = [*group.attrs] if rng.random() < 0.6 else []
        members = [name for name in group if isinstance(group[name], h5py.Dataset)]
        if names:
            _edit_attribute(group, rng.choice(names), rng)
        elif members:
            _edit_dataset(group, rng.choice(members), rng)
        elif len(group):
            del group[rng.choice(list(group))]
        if sealed:
            _seal_again(file)
    return buffer.getvalue()


def _seal_again(file: h5py.File) -> None:
    from percolab.store.tree import Node, read_tree, seal

    try:
        root = read_tree(file)
    except (ValueError, OSError, RuntimeError, KeyError):
        return
    seal(root)

    def write(group: h5py.Group, node: Node) -> None:
        checksum = str(node.attributes["checksum"]).encode()
        group.attrs.create("checksum", np.array(checksum), dtype=h5py.string_dtype("utf-8", 64))
        for name, below in node.groups.items():
            write(group[name], below)

    write(file, root)


def _edit_attribute(group: h5py.Group, name: str, rng: random.Random) -> None:
    old = group.attrs[name]
    if isinstance(old, bytes | str) and rng.random() < 0.6:
        text = old if isinstance(old, bytes) else old.encode()
        new = damaged(text, rng, is_text=True).rstrip(b"\0") or b" "
        group.attrs.create(name, np.array(new), dtype=h5py.string_dtype("utf-8", len(new)))
        return
    values = (
        0, -1, 2**62, 1.5, float("nan"), "text", np.bytes_(b"\xff\xfe"), [], [1, 2, 3], ["a", "b"],
        np.array([[1.0]]), h5py.Empty("f8"), True, 1j, np.uint8(7), 5,
    )  # fmt: skip
    if rng.random() < 0.2:
        del group.attrs[name]
    else:
        group.attrs[name] = rng.choice(values)


def _edit_dataset(group: h5py.Group, name: str, rng: random.Random) -> None:
    old = group[name][...]
    del group[name]
    changes: list[Callable[[], object]] = [
        lambda: old.astype("f4"),
        lambda: old.astype("S8"),
        lambda: old.astype("i4"),
        lambda: old.astype("f8") * np.nan,
        lambda: old.astype("c16"),
        lambda: old[:-1],
        lambda: old[..., :0],
        lambda: old.ravel(),
        lambda: np.zeros_like(old),
        lambda: -(old.astype("i8")),
        lambda: old.astype(old.dtype.newbyteorder()),
        lambda: _bits_flipped(old, rng.randrange(64)),
        lambda: np.roll(old, 1),
        lambda: "text",
        lambda: np.float64(3),
    ]
    if rng.random() < 0.9:
        group[name] = rng.choice(changes)()


def _bits_flipped(old: np.ndarray, bit: int) -> np.ndarray:
    """Return an array with one bit of every number flipped; 8-byte numbers become integers."""
    if old.dtype.itemsize == 8:
        return old.view("u8") ^ np.uint64(1 << bit)
    return (np.atleast_1d(old).copy().view("u1") ^ np.uint8(1 << bit % 8)).view(old.dtype)


# How a file is read


def content_of(kind: str, path: Path) -> str:
    """Read a file as percolab does, and return a hash of its content."""
    return hashlib.sha256(_READERS[kind](path)).hexdigest()


def _read_results(path: Path) -> bytes:
    from percolab.store.results import read_results

    found = read_results(path)
    lattice = found.study.structure
    text = getattr(lattice, "source", None) or lattice.record()
    content = [json.dumps([found.study.description(), text, found.runs], sort_keys=True).encode()]
    for key in sorted(found.tasks):
        content.append(f"{key} {found.tasks[key].task.num_points}".encode())
        for number, block in sorted(found.tasks[key].blocks.items()):
            content.append(str(number).encode())
            for _, values in sorted(vars(block).items()):
                arrays = values.values() if isinstance(values, dict) else [values]
                content += [np.asarray(array).tobytes() for array in arrays]
    return b"\n".join(content)


def _read_labels(path: Path) -> bytes:
    from percolab.configurations import read_labels

    found = read_labels(str(path))
    return found.clusters.labels.tobytes() + json.dumps(found.record).encode()


def _read_sites(path: Path) -> bytes:
    from percolab.configurations import site_configuration

    found = site_configuration(f"{path}:/run/sites" if path.suffix == ".h5" else str(path))
    return found.sites.tobytes()


def _read_lattice(path: Path) -> bytes:
    from percolab.lattices.lattice import load_lattice

    lattice = load_lattice(str(path))
    boundary = ("open",) * lattice.dimension
    lattice.check_size(2, boundary)
    lattice.topology(lattice.shape(2), boundary)
    return repr(lattice).encode()


def _read_study(path: Path) -> bytes:
    from percolab.tasks.study_file import read_request

    return json.dumps(read_request(path, {}).study.description()).encode()


def _read_graph(path: Path) -> bytes:
    from percolab.lattices.graph import load_graph

    return load_graph(path).digest.encode()


def _read_invasion(path: Path) -> bytes:
    from percolab.cli.invade import stored_invasion

    _, found, record = stored_invasion(str(path))
    return found.sites.tobytes() + json.dumps(record).encode()


def _read_tree(path: Path) -> bytes:
    from percolab.analysis.text import tree_table
    from percolab.analysis.trees import fit_trees
    from percolab.store.results import read_results

    content = _read_results(path)
    return content + tree_table(fit_trees(read_results(path))).encode()


def _read_weights(path: Path) -> bytes:
    """Read weights by finding their tree; read the words of a tree by labeling them."""
    from percolab.configurations.configuration import given_configuration
    from percolab.configurations.tree import tree
    from percolab.configurations.tree_files import check_tree_file
    from percolab.lattices.lattice import load_lattice

    square = load_lattice("square")
    if path.suffix not in (".npy", ".h5"):
        found = tree(path)
        return found.bonds.tobytes() + found.weights.tobytes()
    if path.read_bytes().find(b"percolab") < 0:
        name = f"{path}:/weights" if path.suffix == ".h5" else str(path)
        found = tree(square, weights=name)
        return found.bonds.tobytes() + found.weights.tobytes()
    try:
        check_tree_file(path, of_graph=False)
        outcome = b"is replaced"
    except ValueError as error:
        outcome = f"{type(error).__name__}".encode()
    name = f"{path}:/words" if path.suffix == ".h5" else str(path)
    return outcome + given_configuration(square, 6, None, name).opened.tobytes()


def _read_checkpoint(path: Path) -> bytes:
    """Continue from a checkpoint, and return the measured block."""
    from percolab.store.checkpoints import read_checkpoint

    found = read_checkpoint(path)
    sampler = _sampler(path.with_name("study.h5"))
    rank = None
    if found is not None:
        # The same check as at the start of a study.
        sampler.check_fits(found)
        rank = None if found.rank_row is None else 0
    place = sampler.checkpoints.find_checkpoint(sampler.task.id, 4, rank)
    place.write_bytes(path.read_bytes())
    try:
        (block,) = sampler.sample([4])
    finally:
        place.unlink(missing_ok=True)
    return block.sums.tobytes() + block.squares.tobytes()


def _read_image(path: Path) -> bytes:
    from percolab.configurations import site_configuration

    return site_configuration(str(path), threshold="otsu").sites.tobytes()


_READERS: dict[str, Callable[[Path], bytes]] = {
    "invasion": _read_invasion,
    "tree": _read_tree,
    "weights": _read_weights,
    "checkpoint": _read_checkpoint,
    "image": _read_image,
    "results": _read_results,
    "labels": _read_labels,
    "sites": _read_sites,
    "lattice": _read_lattice,
    "study": _read_study,
    "graph": _read_graph,
}


#: Kinds of files on which commands are tried.
_FOR_COMMANDS = ("results", "tree", "invasion")


def try_commands(path: Path) -> None:
    """Run the commands that read results on a file; AssertionError unless errors are one line."""
    from click.testing import CliRunner

    from percolab.cli import main

    target = str(path.with_name("out"))
    for command in (
        ["status", path],
        ["export", path],
        ["fit", path, "--bootstrap", "0"],
        ["plot", path, "--bootstrap", "0", "--out", f"{target}.png"],
        ["tree", "--lattice", "square", "--weights", path.with_name("weights.npy"), "--out", path],
        ["merge", path, "--out", f"{target}.h5"],
    ):
        result = CliRunner().invoke(main, list(map(str, command)))
        for suffix in ("h5", "png"):
            Path(f"{target}.{suffix}").unlink(missing_ok=True)
        assert result.exit_code in (0, 2), f"{command}: {result.exception!r}"
        if result.exit_code:
            assert len(result.stderr.splitlines()) == 1, f"{command}: {result.stderr}"


# Workers

#: Kind of reader, name of the file, whether commands are tried.
Job = tuple[str, str, bool]


def work(connection, memory: int) -> None:
    """Read files by name until there are no more, and report the outcome of each."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for jobs in iter(connection.recv, None):
        for kind, name, commands in jobs:
            connection.send(_tried_here(kind, Path(name), commands))


def _tried_here(kind: str, path: Path, commands: bool) -> tuple[str, str]:
    from percolab.errors import InputError

    quiet = io.StringIO()
    try:
        with redirect_stdout(quiet), redirect_stderr(quiet):
            if commands:
                try_commands(path)
            return "read", content_of(kind, path)
    except InputError as error:
        text = str(error)
        return ("clean", text) if "\n" not in text else ("traceback", f"lines: {text}")
    except MemoryError:
        return "clean", "not enough memory"
    except BaseException as error:
        return "traceback", f"{type(error).__name__}: {error}"


class Worker:
    """A process that reads files, and is replaced when it hangs or dies."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._seconds, self._memory = seconds, memory
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(target=work, args=(other, self._memory), daemon=True)
        self._process.start()
        other.close()

    def read(self, jobs: list[Job]) -> list[tuple[str, str]]:
        """Return the outcome of every job: ("read", hash), or an outcome and its message.

        All jobs are sent together, since switching processes takes time on a busy machine.
        """
        found: list[tuple[str, str]] = []
        while len(found) < len(jobs):
            self._pipe.send(jobs[len(found) :])
            try:
                while len(found) < len(jobs):
                    _, _, commands = jobs[len(found)]
                    patience = self._seconds * (10 if commands else 1)
                    if not self._pipe.poll(patience):
                        found.append(("hang", f"{patience} s"))
                        break
                    found.append(self._pipe.recv())
                else:
                    return found
            except (EOFError, OSError):
                found.append(("traceback", "the process ended"))
            self._process.kill()
            self._process.join()
            self._start()
        return found

    def end(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join()

    def warm_up(self, kind: str, path: Path) -> str:
        """Read an intact file without a time limit, and return the hash of its content."""
        self._pipe.send([(kind, str(path), False)])
        outcome, found = self._pipe.recv()
        if outcome != "read":
            raise click.ClickException(f"{path}: {found}")
        return found


def judged(outcome: str, text: str, known: str, *, noticed: bool) -> str:
    """Return the outcome of a mutant from the result of its job and the original's hash."""
    if outcome != "read":
        return outcome
    if text == known:
        return "equal"
    return "different" if noticed else "reads"


def mutants(
    family: str, files: list[Path], count: int, seed: int
) -> Iterator[tuple[int, Path, bytes]]:
    """Yield number, original and content of the mutants of a family; equal seeds, equal mutants."""
    for number in range(count):
        rng = random.Random(f"{seed} {family} {number}")
        path = rng.choice(files)
        content = path.read_bytes()
        if "edited" in family:
            yield number, path, edited(content, rng, sealed="sealed" in family)
        else:
            is_text = path.suffix in (".csv", ".mtx", ".graphml", ".gml", ".toml")
            yield number, path, damaged(content, rng, is_text=is_text)


@click.command()
@click.option("--mutants", "total", default=10_008, show_default=True, help="Over all families.")
@click.option("--seed", default=1, show_default=True)
@click.option("--seconds", default=10.0, show_default=True, help="For a mutant to be read in.")
@click.option("--memory", default=4.0, show_default=True, help="GiB of a worker.")
@click.option("--family", "only", multiple=True, help="One, or all that begin so before a comma.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for fuzz.json and the bad.")
def main(
    total: int, seed: int, seconds: float, memory: float, only: tuple[str, ...], out: Path | None
) -> None:
    """Damage files, have them read, and count the outcomes; exit code 1 for any that is bad."""
    begin = time.time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        families = originals(folder)
        if only:
            families = {
                key: item for key, item in families.items() if {key, key.split(",")[0]} & {*only}
            }
        counts: dict[str, dict[str, int]] = {}
        each = total // len(families)
        for family, item in families.items():
            counts[family] = _tried(family, *item, each, seed, seconds, memory, folder, out)
            summed = {key: sum(count[key] for count in counts.values()) for key in OUTCOMES}
            if out is not None:
                _write_record(out, counts, seed, seconds, memory, time.time() - begin)
    click.echo(f"{'all':42}{_line(summed)}")
    sys.exit(int(any(summed[key] for key in ("different", "hang", "traceback"))))


def _tried(
    family: str, files: list[Path], kind: str, noticed: bool, count: int, seed: int,
    seconds: float, memory: float, folder: Path, out: Path | None,
) -> dict[str, int]:  # fmt: skip
    worker = Worker(seconds, int(memory * 2**30))
    known = {path: worker.warm_up(kind, path) for path in files}
    found: Counter[str] = Counter()
    for batch in batched(mutants(family, files, count, seed), _BATCH):
        jobs: list[Job] = []
        for number, path, content in batch:
            mutant = folder / f"mutant-{number % _BATCH}{path.suffix}"
            mutant.write_bytes(content)
            jobs.append((kind, str(mutant), kind in _FOR_COMMANDS and number % _EVERY == 0))
        for (number, path, content), (outcome, text) in zip(batch, worker.read(jobs), strict=True):
            outcome = judged(outcome, text, known[path], noticed=noticed)
            found[outcome] += 1
            if outcome in ("different", "hang", "traceback"):
                click.echo(f"{outcome}: {family} {number}, of {path.name}: {text[:300]}")
                _keep(out, f"{outcome}-{family}-{number}", path.suffix, content)
    worker.end()
    counts = {key: found[key] for key in OUTCOMES}
    click.echo(f"{family:42}{_line(counts)}")
    return counts


def batched(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of ``size`` items; the last may be shorter."""
    while batch := list(islice(items, size)):
        yield batch


def _keep(out: Path | None, name: str, suffix: str, content: bytes) -> None:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / (re.sub(r"\W+", "-", name) + suffix)).write_bytes(content)


def _line(counts: dict[str, int]) -> str:
    return "".join(f"{key} {counts[key]:<6}" for key in OUTCOMES)


def _write_record(
    out: Path, counts: dict, seed: int, seconds: float, memory: float, wall: float
) -> None:
    """Write counts of families to the record in a folder, and keep those of other families."""
    from percolab.store.provenance import package_versions

    path = out / "fuzz.json"
    families = json.loads(path.read_text(encoding="utf-8"))["families"] if path.exists() else {}
    run = {
        "command": shlex.join(["python", "scripts/fuzz_files.py", *sys.argv[1:]]),
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "versions": package_versions() | {"hdf5": h5py.version.hdf5_version},
        "seed": seed,
        "limits": {"seconds": seconds, "GiB": memory},
        "seconds": round(wall),
    }
    families |= {name: {"counts": count, "run": run} for name, count in counts.items()}
    summed = {key: sum(item["counts"][key] for item in families.values()) for key in OUTCOMES}
    record = {"mutants": sum(summed.values()), "counts": summed, "families": families}
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.stdout.strip() or "not in a git repository"


if __name__ == "__main__":
    main()
