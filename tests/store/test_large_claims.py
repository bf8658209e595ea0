"""A small file that claims much data is refused before that is read; what a study needs is read."""

import shutil
import tracemalloc
import zlib
from math import prod
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import small_results, stored

from percolab.api import sweep
from percolab.configurations import random_configuration, read_labels, write_labels
from percolab.configurations.invasion_files import read_invasion
from percolab.errors import InputError
from percolab.lattices.lattice import load_lattice
from percolab.store import tree
from percolab.store.checkpoints import Checkpoint, Checkpoints, read_checkpoint
from percolab.store.results import encode, read_results
from percolab.store.tree import Allowance

#: Zeros that a dataset claims: 240 MB.
CLAIMED = 30_000_000


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def put_zeros(path, place, shape, dtype="i8"):
    """Put packed zeros into a file, in place of what is there."""
    with h5py.File(path, "r+") as file:
        group, _, name = place.rpartition("/")
        first = next(iter(file["tasks"].values())) if group == "TASK" else None
        group = first or file[group or "/"]
        if name in group:
            del group[name]
        row = prod(shape[1:]) * np.dtype(dtype).itemsize
        chunk = (max(1, 2**23 // row), *shape[1:])
        zeros = group.create_dataset(name, shape, dtype, chunks=chunk, compression="gzip")
        packed = zlib.compress(bytes(prod(chunk) * zeros.dtype.itemsize))
        for start in range(0, shape[0], chunk[0]):
            zeros.id.write_direct_chunk((start, *(0 for _ in shape[1:])), packed)
        for key in ("meaning", "unit"):
            zeros.attrs[key] = np.bytes_("x")


def made_results(path):
    stored(path)


def made_labels(path):
    one = random_configuration(load_lattice("square"), 8, 0.5, seed=3)
    write_labels(path, one.label(), one)


def made_invasion(path):
    from cli_support import answer

    answer("invade", "--lattice", "square", "-L", 8, "--out", path)


def made_checkpoint(path):
    beside = Checkpoints(Path("a.h5"))
    beside.save(Checkpoint("0" * 16, 3, (), None))
    shutil.move(beside.find_checkpoint("0" * 16, 3), path)


@pytest.mark.parametrize(
    ("make", "read", "place", "shape"),
    [
        (made_results, read_results, "zeros", (CLAIMED // 100, 100)),
        (made_results, read_results, "TASK/sums", (CLAIMED // 100, 5, 20)),
        (made_results, read_results, "TASK/thresholds", (CLAIMED // 100, 10, 10)),
        (made_results, read_results, "TASK/other", (6, 5, CLAIMED // 30)),
        (made_results, read_results, "TASK/p", (CLAIMED,)),
        (made_results, read_results, "tasks/zeros", (CLAIMED // 100, 100)),
        (made_labels, lambda path: read_labels(str(path)), "zeros", (CLAIMED // 100, 100)),
        (made_labels, lambda path: read_labels(str(path)), "sizes", (CLAIMED,)),
        (made_invasion, read_invasion, "sites", (CLAIMED // 2, 2)),
        (made_checkpoint, read_checkpoint, "zeros", (CLAIMED // 2, 2)),
    ],
)  # fmt: skip
def test_what_a_file_does_not_need_is_refused_before_it_is_read(make, read, place, shape):
    path = Path("claims.h5")
    make(path)
    put_zeros(path, place, shape)
    assert path.stat().st_size < 1e6
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as refused:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()
    assert "checksum" not in str(refused.value)


def test_names_are_as_many_as_sites():
    path = Path("graph.h5")
    edges = Path("named.csv")
    edges.write_text("a,b\nb,c\n")
    sweep(graph=edges, p=[0.5], samples=10, device="cpu", workers=1).save(path)
    put_zeros(path, "site_names", (8 * CLAIMED // 200,), "S200")
    with pytest.raises(InputError, match="there are other names than sites"):
        read_results(path)


class Impatient(Allowance):
    """Reads nothing of several axes before its shape is looked at."""

    def __init__(self, file):
        super().__init__(file)
        self.at_once = 0


@pytest.mark.parametrize(
    "made",
    [
        {"method": "threshold", "samples": 8},
        {"p": (0.4, 0.6), "measure": "sizes,gyration", "samples": 8},
        {"model": "ising", "beta": (0.4,), "chains": 1, "burn_in": 2, "sweeps": 4, "samples": 40},
    ],
    ids="-".join,
)
def test_what_a_study_needs_is_read_whatever_its_size(made, monkeypatch):
    path = Path("results.h5")
    sweep("square", L=[4, 6], seed=2, device="cpu", workers=1, **made).save(path)
    expected = encode(read_results(path))
    monkeypatch.setattr(tree, "Allowance", Impatient)
    assert encode(read_results(path)) == expected


def test_labels_are_read_whatever_their_size(monkeypatch):
    path = Path("labels.h5")
    made_labels(path)
    expected = read_labels(str(path)).clusters.labels
    monkeypatch.setattr(tree, "Allowance", Impatient)
    assert (read_labels(str(path)).clusters.labels == expected).all()


def test_small_results_have_no_large_dataset():
    """So that the tests above are of large ones by what they put there."""
    assert len(encode(small_results())) < 1e6
