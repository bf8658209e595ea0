"""Nothing is replaced but what percolab wrote: inputs and the files of others stay as they are."""

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, left_in, refusal, run, small_results, stored
from helpers import slow

from percolab.errors import InputError
from percolab.store.checkpoints import Checkpoint, Checkpoints
from percolab.store.output_files import free_name, write_rescued
from percolab.store.results import ResultsWriter, read_results

ROADS = "source,target,weight\n0,1,-2\n1,2,5\n2,0,4\n"
SAMPLE = ("--lattice", "square", "-L", 4, "-p", 0.5)


@pytest.fixture
def results():
    return stored(Path("results.h5"))


def content():
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.suffix != ".lock"}


# What others wrote


def write_png(name):
    from PIL import Image

    Image.new("L", (4, 4)).save(name)


def write_hdf5(name):
    with h5py.File(name, "w") as file:
        file["data"] = 1


FOREIGN = {
    ".csv": lambda name: Path(name).write_text(ROADS),
    ".png": write_png,
    ".svg": lambda name: Path(name).write_text("<svg xmlns='a'><title>percolab</title></svg>"),
    ".pdf": lambda name: Path(name).write_text("%PDF-1.4 percolab"),
    ".html": lambda name: Path(name).write_text("<!DOCTYPE html> default-src 'none'"),
    ".npz": lambda name: np.savez(name, record="percolab: a tree", lattice=np.zeros(3)),
    ".npy": lambda name: np.save(name, np.zeros(4, np.int32 if "labels" in name else np.uint32)),
    ".h5": write_hdf5,
    ".json": lambda name: Path(name).write_text('{"command": ["make"], "years": "of work"}'),
}
WRITERS = {
    "label": (("label", *SAMPLE, "--out"), (".h5", ".npy")),
    "show": (("show", *SAMPLE, "--out"), (".png", ".svg", ".pdf")),
    "plot": (("plot", "results.h5", "--kind", "clusters", "--out"), (".png",)),
    "report": (("report", "results.h5", "--bootstrap", 0, "--out"), (".html",)),
    "export": (("export", "results.h5", "--out"), (".csv", ".npz")),
    "invade": (("invade", *SAMPLE[:4], "--out"), (".csv", ".npz", ".h5")),
    "invade --plot": (("invade", *SAMPLE[:4], "--plot"), (".png",)),
    "lattices": (("lattices", "square", "--plot"), (".png",)),
    "tree": (("tree", "--graph", "graph.csv", "--weights", "file", "--out"), (".csv", ".npz")),
    "tree of a lattice": (
        ("tree", "--lattice", "square", "--weights", "w.npy", "--out"),
        (".npy", ".h5"),
    ),
    "sweep": (("sweep", *SAMPLE, "--samples", 10, "--out"), (".h5",)),
    "merge": (("merge", "results.h5", "--out"), (".h5",)),
    "bench": (("bench", "--quick", "--json"), (".json",)),
}
CASES = [(name, suffix) for name, (_, suffixes) in WRITERS.items() for suffix in suffixes]


@pytest.mark.parametrize(("name", "suffix"), CASES)
def test_what_another_program_wrote_is_never_replaced(results, name, suffix):
    command = WRITERS[name][0]
    Path("graph.csv").write_text(ROADS)
    np.save("w.npy", np.random.default_rng(1).random((2, 4, 4)))
    own = f"{command[0]}-labels{suffix}"
    FOREIGN[suffix](own)
    before = content()
    message = refusal(*command, own)
    assert own in message
    assert content() == before


#: Figures that are written as others are.
REPEATED = {("show", ".svg"), ("show", ".pdf"), ("plot", ".png"), ("invade --plot", ".png")}


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        slow(*case) if case in REPEATED else case
        for case in CASES
        if case[0] not in ("merge", "bench", "sweep", "report")
    ],
)
def test_what_percolab_wrote_is_written_again(results, name, suffix):
    """But for a tree as CSV, which is a table of bonds as anyone writes it."""
    command = WRITERS[name][0]
    Path("graph.csv").write_text(ROADS)
    np.save("w.npy", np.random.default_rng(1).random((2, 4, 4)))
    own = f"own{suffix}"
    answer(*command, own)
    before = content()
    if (name, suffix) == ("tree", ".csv"):
        assert "own.csv: exists already" in refusal(*command, own)
    else:
        answer(*command, own)
    assert content() == before


# Inputs


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_tree_does_not_replace_its_graph(suffix, link):
    Path("roads.csv").write_text(ROADS)
    if suffix == ".npz":
        answer("tree", "--graph", "roads.csv", "--weights", "file", "--out", "roads.npz")
    name = f"roads{suffix}"
    if link is not None:
        name = f"link{suffix}"
        link(f"roads{suffix}", name)
    before = content()
    tree = ("tree", "--graph", f"roads{suffix}", "--weights", "file", "--out", name)
    assert refusal(*tree) == f"{name}: is the input itself; give another name"
    assert content() == before


@pytest.mark.parametrize(
    ("made", "command"),
    [
        (("label", *SAMPLE), ("label", "a.h5:/labels", "--threshold", 0)),
        (
            ("tree", "--graph", "g.csv", "--weights", "file"),
            ("tree", "--graph", "g.csv", "--weights", "a.h5:/weights"),
        ),
        (
            ("invade", *SAMPLE[:4], "--stop", 16),
            ("invade", "--graph", "g.csv", "--source", 0, "--weights", "a.h5:/weights"),
        ),
    ],
    ids=lambda item: item[0],
)
def test_own_files_that_are_read_are_not_replaced(made, command):
    Path("g.csv").write_text("source,target,weight\n0,1,-2\n1,2,5\n")
    answer(*made, "--out", "a.h5")
    before = content()
    assert refusal(*command, "--out", "a.h5") == "a.h5: is the input itself; give another name"
    assert content() == before


# New names


@pytest.mark.parametrize(
    ("command", "taken", "new"),
    [
        (("show", *SAMPLE), "clusters.png", "clusters-2.png"),
        (("label", *SAMPLE), "labels.h5", "labels-2.h5"),
        (("plot", "results.h5", "--kind", "curves"), "results-curves.png", "results-curves-2.png"),
        (("export", "results.h5", "--format", "npz"), "results.npz", "results-2.npz"),
        (("lattices", "square", "--plot"), "square.png", "square-2.png"),
    ],
)  # fmt: skip
def test_without_a_name_a_new_one_is_chosen_and_printed(results, command, taken, new):
    FOREIGN[Path(taken).suffix](taken)
    before = Path(taken).read_bytes()
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert f" in {new}\n" in done.output
    assert Path(taken).read_bytes() == before
    assert run(*command).exit_code == 0
    assert Path(new).with_stem(Path(taken).stem + "-3").exists() is False, "its own is replaced"


def test_a_new_name_is_looked_for_in_a_folder_that_there_is():
    with pytest.raises(InputError, match="the directory nowhere does not exist"):
        free_name("nowhere/a.png")


# Results that cannot go to their place


def test_rescued_results_never_replace_a_file(results):
    with ResultsWriter(results) as writer:
        for name in ("thesis", "results-rescued.h5"):
            Path(name).write_text("years of work")
        Path("thesis").replace(results)
        with pytest.raises(InputError, match=r"the results are in .*results-rescued-2\.h5$"):
            writer.save(small_results())
    assert Path("results-rescued.h5").read_text() == "years of work"
    assert read_results("results-rescued-2.h5").tasks.keys() == small_results().tasks.keys()


def make_read_only(path):
    path.chmod(0o444)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_read_only, "results.h5: is not writable"),
        (lambda path: os.link(path, "backup.h5"), "results.h5: has a second name"),
    ],
)
def test_a_file_that_is_protected_during_a_run_stays(results, change, message):
    before = results.read_bytes()
    with ResultsWriter(results) as writer:
        change(results)
        inode = results.stat().st_ino
        with pytest.raises(InputError, match=message):
            writer.save(small_results())
    assert (results.read_bytes(), results.stat().st_ino) == (before, inode)
    assert read_results("results-rescued.h5").tasks.keys() == small_results().tasks.keys()


def test_one_process_alone_gets_a_temporary_name(monkeypatch):
    """Also where another process makes the file after it was looked for."""
    real = os.open

    def too_late(path, flags, *rest):
        if Path(path).name == "a-rescued.h5" and not Path(path).exists():
            Path(path).write_text("of another process")
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", too_late)
    assert write_rescued(Path("a.h5"), b"results").name == "a-rescued-2.h5"
    assert Path("a-rescued.h5").read_text() == "of another process"
    assert Path("a-rescued-2.h5").read_bytes() == b"results"


def test_files_of_one_stem_have_checkpoints_of_their_own():
    one, other = Checkpoints(Path("a.h5")), Checkpoints(Path("a.hdf5"))
    checkpoint = Checkpoint("0" * 16, 3, (), None)
    one.save(checkpoint)
    assert other.load("0" * 16, 3) is None
    assert other.list_files() == []
    other.remove("0" * 16, [3])
    assert left_in() == ["a.h5-0000000000000000-3.checkpoint"]
    assert one.load("0" * 16, 3).key == checkpoint.key


def test_marks_do_not_keep_others_from_reading():
    answer("label", *SAMPLE, "--out", "a.npy")
    answer("invade", *SAMPLE[:4], "--out", "a.npz")
    assert np.load("a.npy").shape == (4, 4) == np.load("a.npy", mmap_mode="r").shape
    with np.load("a.npz") as file:
        assert json.loads(str(file["record"]))["kind"] == "invasion"
