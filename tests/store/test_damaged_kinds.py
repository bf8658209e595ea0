"""Damaged invasions, trees and checkpoints are refused in one line, whatever command reads them."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import answer, put_text, refusal, run, sealed_again, stored

from percolab.analysis.trees import fit_trees
from percolab.api import sweep
from percolab.errors import InputError
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import load_lattice
from percolab.run.parts_sampler import PartsSampler, alone
from percolab.store.checkpoints import Checkpoints, read_checkpoint
from percolab.store.reading import read_format
from percolab.store.results import read_results
from percolab.tasks.study import Task


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def invasion():
    answer("invade", "--lattice", "square", "-L", 8, "--out", "steps.h5")
    return Path("steps.h5")


def flipped(path, at):
    """Flip a bit of a file of HDF5, of which the library's own checksums tell."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("at", range(60, 900, 40))
def test_an_invasion_with_a_flipped_bit_is_refused_by_plot(invasion, at):
    flipped(invasion, at)
    done = run("plot", invasion)
    assert done.exit_code == 2, done.output
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["sites", "record", "format"])
def test_an_invasion_without_a_part_is_refused(invasion, name):
    with h5py.File(invasion, "r+") as file:
        del (file if name == "sites" else file.attrs)[name]
    assert "steps.h5: " in refusal("plot", sealed_again(invasion))


@pytest.mark.parametrize(
    ("key", "value"),
    [("L", "8"), ("L", None), ("lattice", 5), ("boundary", [1, 2]), ("sample", -1), ("stop", None)],
)
def test_an_invasion_with_another_record_is_refused(invasion, key, value):
    with h5py.File(invasion, "r+") as file:
        record = json.loads(file.attrs["record"]) | {key: value}
        put_text(file, "record", json.dumps(record))
    assert key in refusal("plot", sealed_again(invasion)).replace("stop = None", "stop")


@pytest.mark.parametrize("command", ["tree", "invade", "label"])
def test_nothing_is_written_onto_a_damaged_file(invasion, command):
    np.save("w.npy", np.random.default_rng(1).random((2, 4, 4)))
    for at in range(60, 400, 40):
        flipped(invasion, at)
    before = invasion.read_bytes()
    given = {"tree": ("--weights", "w.npy"), "invade": ("-L", 4), "label": ("-L", 4, "-p", 0.5)}
    message = refusal(command, "--lattice", "square", *given[command], "--out", invasion)
    assert "steps.h5: holds something else than" in message
    assert invasion.read_bytes() == before


@pytest.mark.parametrize("name", ["tree_weight", "tree_bonds", "tree_path_y"])
def test_trees_without_an_observable_are_refused_in_one_line(name):
    results = sweep("square", L=[4], method="tree", samples=20, device="cpu", workers=1)
    (item,) = results.tasks.values()
    kept = [column for column in item.columns if column.name != name]
    results.tasks[item.task.id] = item.of_columns(kept)
    results.save("tree.h5")
    with pytest.raises(InputError, match=f"observable '{name}' is not in this file"):
        fit_trees(read_results("tree.h5"))
    for command in (("fit",), ("plot", "--kind", "tree")):
        assert name in refusal(*command, "tree.h5")


def test_trees_without_a_path_are_left_out_of_its_exponent():
    """As a forger may leave them: sums of zero, with the squares of others."""
    results = sweep("square", L=[4, 6, 8], method="tree", samples=20, device="cpu", workers=1)
    results.save("tree.h5")
    with h5py.File("tree.h5", "r+") as file:
        next(iter(file["tasks"].values()))["sums"][...] = 0
    assert fit_trees(read_results(sealed_again(Path("tree.h5")))).exponents.keys() == {"x", "y"}


def cut_bonds(file):
    for name in ("high_clusters", "high_codes"):
        values = file["front"][name][1:]
        del file["front"][name]
        file["front"][name] = values


def add_bins(file):
    del file["front"]["bins"]
    file["front"]["bins"] = np.zeros(3, np.int64)


def cut_rows(file):
    values = file["rows"][:, 1:]
    del file["rows"]
    file["rows"] = values


def continued(sampler, checkpoint):
    """Return the block that goes on from a checkpoint, as where a study begins."""
    sampler.check_fits(checkpoint)
    return sampler.sample([checkpoint.number])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_bonds, r"slabs do not fit together: .* open bonds below a face"),
        (add_bins, r"study.h5-\w+-4-0.checkpoint: is damaged, as its rows are none of its task"),
        (cut_rows, r"study.h5-\w+-4.checkpoint: is damaged, as its rows are none of its task"),
    ],
)
def test_a_sealed_checkpoint_that_does_not_fit_is_refused_in_one_line(damage, message):
    """As a forger would leave it, its seal made anew."""
    task = Task(load_lattice("square"), 12, ("open", "periodic"), (0.5,), seed=7, block_size=2)
    sampler = PartsSampler(task, alone((3, 3, 3, 3), task.size))
    Path("study.h5").touch()
    sampler.checkpoints = Checkpoints(Path("study.h5"))
    calls = iter([False] * 5 + [True])
    with pytest.raises(Stopped):
        sampler.sample([4], calls.__next__)
    rank = None if damage is cut_rows else 0
    path = sampler.checkpoints.find_checkpoint(task.id, 4, rank)
    with h5py.File(path, "r+") as file:
        damage(file)
    sealed_again(path)
    checkpoint = read_checkpoint(path)
    assert len(checkpoint.rows) == 1 if rank is None else checkpoint.interface.layers == 6
    with pytest.raises(InputError, match=message):
        continued(sampler, checkpoint)


def test_an_error_in_a_text_of_several_lines_is_one_line():
    path = stored(Path("results.h5"))
    with h5py.File(path, "r+") as file:
        for task in file["tasks"].values():
            put_text(task, "model", "bond\n\nor not")
    with pytest.raises(InputError) as refused:
        read_results(sealed_again(path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("stored_format", [np.zeros(0), np.zeros(3), 5, h5py.Empty("f8")], ids=str)
def test_a_format_that_is_no_text_is_none(stored_format):
    with h5py.File("a.h5", "w") as file:
        file.attrs["format"] = stored_format
    assert read_format(Path("a.h5")) is None
