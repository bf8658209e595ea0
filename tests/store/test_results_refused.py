"""Files that are no results, damaged, tampered with, too large or leading elsewhere are refused."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tracemalloc
import zlib
from math import prod
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import (
    answer,
    put_text,
    refusal,
    run,
    sealed_again,
    small_results,
    stored,
    text_of,
    texts_of,
)
from helpers import script

from percolab import InputError, load_lattice, sweep
from percolab.analysis.trees import fit_trees
from percolab.configurations import random_configuration, read_labels, write_labels
from percolab.configurations.invasion_files import read_invasion
from percolab.kinds.workplace import Stopped
from percolab.run.parts_sampler import PartsSampler, alone
from percolab.store import tree
from percolab.store.checkpoints import Checkpoint, Checkpoints, read_checkpoint
from percolab.store.interrupts import default_signals, handle_signals
from percolab.store.reading import read_format
from percolab.store.results import encode, read_results
from percolab.store.tree import Allowance
from percolab.tasks.study import Task


def changed(path, change):
    with h5py.File(path, "r+") as opened:
        change(opened)
    return path


def first_task(opened):
    return next(iter(opened["tasks"].values()))


def text_of_runs(opened):
    return texts_of(opened, "runs")[0]


def refused(path):
    """Return the one line with which a file is refused; it must name the file."""
    with pytest.raises(InputError) as error:
        read_results(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# What is not such a file


@pytest.mark.parametrize("part", [0, 1, 8, 100, 0.3, 0.6, 0.9, 0.999, -1])
def test_a_truncated_file_is_refused(file, part):
    content = file.read_bytes()
    end = part if isinstance(part, int) else int(part * len(content))
    file.write_bytes(content[:end])
    assert "is not a readable HDF5 file" in refused(file)


def test_a_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as opened:
        opened["data"] = np.arange(10)
    assert "no results file of a sweep" in refused(path)


@pytest.mark.parametrize(
    ("command", "form", "version", "today"),
    [("status", "percolab results", n, "s 5 and 6") for n in (1, 2, 3, 4, 7)]
    + [("show", "percolab labels", 1, " 2")],
)
def test_another_schema_version_is_refused_in_one_line(tmp_path, command, form, version, today):
    path = tmp_path / "other.h5"
    with h5py.File(path, "w") as opened:
        # A text of variable length, which is not read.
        opened.attrs["format"] = form
        opened.attrs["schema_version"] = version
    expected = f"{path}: has schema version {version}; this percolab reads version{today}"
    assert refusal(command, path) == expected


def test_a_copy_without_the_checksums_of_hdf5_is_refused(file, tmp_path):
    copy = tmp_path / "copy.h5"
    with h5py.File(file) as opened, h5py.File(copy, "w") as target:
        target.attrs.update(opened.attrs)
    assert "was copied by another program without the checksums of HDF5" in refused(copy)


TAMPERED = {
    "seed": lambda o: first_task(o).attrs.modify("seed", 99),
    "size": lambda o: first_task(o).attrs.modify("L", 5),
    "block size": lambda o: first_task(o).attrs.modify("block_size", 20),
    "p": lambda o: first_task(o)["p"].__setitem__(0, 0.31),
    "lattice": lambda o: put_text(o, "lattice", text_of(o, "lattice").replace("[0, 1]", "[1, 1]")),
    "size in study": lambda o: put_text(o, "study", text_of(o, "study").replace("16", "17")),
    "seed in study": lambda o: put_text(o, "study", text_of(o, "study").replace(": 5", ": 6")),
    "runs": lambda o: put_text(o, "runs", [text_of_runs(o).replace("cpu", "gpu")]),
    "meaning": lambda o: put_text(first_task(o)["sums"], "meaning", "something else"),
    "observables": lambda o: put_text(first_task(o), "observable_names", ["a", "b"]),
    "task gone": lambda o: o["tasks"].__delitem__(next(iter(o["tasks"]))),
    "all tasks gone": lambda o: o.__delitem__("tasks"),
    "checksum gone": lambda o: o.attrs.__delitem__("checksum"),
    "checksum of a task gone": lambda o: first_task(o).attrs.__delitem__("checksum"),
    "text of variable length": lambda o: o.attrs.__setitem__("study", "{}"),
    "sums": lambda o: first_task(o)["sums"].__setitem__((0, 0, 0), 7),
    "squares": lambda o: first_task(o)["squares"].__setitem__((0, 0, 0), 7.0),
    "block_count": lambda o: first_task(o)["block_count"].__setitem__(5, 2),
    "block numbers": lambda o: first_task(o)["block"].__setitem__(5, 11),
    "no study": lambda o: o.attrs.__delitem__("study"),
    "study": lambda o: o.attrs.modify("study", "{}"),
    "study no JSON": lambda o: o.attrs.modify("study", "__import__('os').abort()"),
    "lattice no TOML": lambda o: o.attrs.modify("lattice", "= 1"),
    "no sums": lambda o: first_task(o).__delitem__("sums"),
    "sums as group": lambda o: (
        first_task(o).__delitem__("sums"),
        first_task(o).create_group("sums"),
    ),
    "other name": lambda o: o["tasks"].move(next(iter(o["tasks"])), "0" * 16),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_file_that_was_tampered_with_is_refused(file, change):
    refused(changed(file, change))


def replaced(opened, name, link):
    """Put a link in the place of a member of the first task; what was there is kept elsewhere."""
    group = first_task(opened)
    opened.move(f"{group.name}/{name}", "kept")
    group[name] = link


def outsourced(opened, **elsewhere):
    """Put a dataset with its data in another file in the place of the sums."""
    group = first_task(opened)
    like = group["sums"][...]
    del group["sums"]
    if elsewhere:
        group.create_dataset("sums", like.shape, like.dtype, **elsewhere)
    else:
        layout = h5py.VirtualLayout(like.shape, like.dtype)
        layout[...] = h5py.VirtualSource("other.h5", "sums", like.shape)
        group.create_virtual_dataset("sums", layout)


LEADING_AWAY = {
    "external task": (
        lambda o: o["tasks"].__setitem__("f" * 16, h5py.ExternalLink("other.h5", "/")),
        "tasks/ffffffffffffffff is an external link",
    ),
    "soft task": (
        lambda o: o["tasks"].__setitem__("f" * 16, h5py.SoftLink("/")),
        "tasks/ffffffffffffffff is a soft link",
    ),
    "dangling task": (
        lambda o: o["tasks"].__setitem__("f" * 16, h5py.SoftLink("/nowhere")),
        "tasks/ffffffffffffffff is a soft link",
    ),
    "external tasks": (
        lambda o: (
            o.move("tasks", "kept"),
            o.__setitem__("tasks", h5py.ExternalLink("other.h5", "/tasks")),
        ),
        "/tasks is an external link",
    ),
    "soft tasks": (
        lambda o: (o.move("tasks", "kept"), o.__setitem__("tasks", h5py.SoftLink("/kept"))),
        "/tasks is a soft link",
    ),
    "external sums": (
        lambda o: replaced(o, "sums", h5py.ExternalLink("other.h5", "/sums")),
        "/sums is an external link",
    ),
    "soft p": (lambda o: replaced(o, "p", h5py.SoftLink("/kept")), "/p is a soft link"),
    "data elsewhere": (
        lambda o: outsourced(o, external=[("other.bin", 0, h5py.h5f.UNLIMITED)]),
        "/sums takes its data from another file",
    ),
    "virtual data": (outsourced, "/sums takes its data from another file"),
}


@pytest.mark.parametrize(("change", "message"), LEADING_AWAY.values(), ids=LEADING_AWAY)
def test_what_leads_out_of_a_file_is_refused_and_not_followed(file, change, message):
    stored(file.with_name("other.h5"))
    assert message in refused(changed(file, change))


@pytest.mark.parametrize(
    ("name", "kind", "length", "chunk"), [("sums", "i8", 10**9, 1), ("p", "f8", 10**12, 10**6)]
)
def test_datasets_larger_than_their_file_can_hold_are_refused_unread(
    name, kind, length, chunk, file
):
    with h5py.File(file, "r+") as opened:
        group = first_task(opened)
        rest = group[name].shape[1:]
        del group[name]
        options = {"chunks": (chunk, *rest), "compression": "gzip"}
        group.create_dataset(name, (length, *rest), kind, **options)
    assert "claims more data than its file can hold" in refused(file)


def test_sigterm_ends_the_process_while_a_file_is_read():
    with handle_signals():
        before = signal.getsignal(signal.SIGTERM)
        with default_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is before is not signal.SIG_DFL


def made_invasion(path):
    answer("invade", "--lattice", "square", "-L", 8, "--out", path)


@pytest.fixture
def invasion():
    made_invasion("steps.h5")
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
        (add_bins, r"study.h5-\w+-4-0.checkpoint: is damaged: its rows do not fit its task"),
        (cut_rows, r"study.h5-\w+-4.checkpoint: is damaged: its rows do not fit its task"),
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


@pytest.mark.parametrize("stored_format", [np.zeros(0), np.zeros(3), 5, h5py.Empty("f8")], ids=str)
def test_a_format_that_is_no_text_is_none(stored_format):
    with h5py.File("a.h5", "w") as file:
        file.attrs["format"] = stored_format
    assert read_format(Path("a.h5")) is None


#: Zeros that a dataset claims: 240 MB.
CLAIMED = 30_000_000


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


def made_labels(path):
    one = random_configuration(load_lattice("square"), 8, 0.5, seed=3)
    write_labels(path, one.label(), one)


def made_checkpoint(path):
    beside = Checkpoints(Path("a.h5"))
    beside.save(Checkpoint("0" * 16, 3, (), None))
    shutil.move(beside.find_checkpoint("0" * 16, 3), path)


@pytest.mark.parametrize(
    ("make", "read", "place", "shape"),
    [
        (stored, read_results, "zeros", (CLAIMED // 100, 100)),
        (stored, read_results, "TASK/sums", (CLAIMED // 100, 5, 20)),
        (stored, read_results, "TASK/thresholds", (CLAIMED // 100, 10, 10)),
        (stored, read_results, "TASK/other", (6, 5, CLAIMED // 30)),
        (stored, read_results, "TASK/p", (CLAIMED,)),
        (stored, read_results, "tasks/zeros", (CLAIMED // 100, 100)),
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
    with pytest.raises(InputError, match="the numbers of names and sites differ"):
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
        None,
    ],
    ids=lambda made: "-".join(made or ["labels"]),
)
def test_what_a_file_needs_is_read_whatever_its_size(made, monkeypatch):
    path = Path("file.h5")
    if made is None:
        made_labels(path)
    else:
        sweep("square", L=[4, 6], seed=2, device="cpu", workers=1, **made).save(path)

    def read():
        if made is None:
            return read_labels(str(path)).clusters.labels.tolist()
        return encode(read_results(path))

    expected = read()
    monkeypatch.setattr(tree, "Allowance", Impatient)
    assert read() == expected


ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "scripts" / "fuzz_files.py"
fuzz = script("fuzz_files")


def test_equal_seeds_damage_alike():
    content = (ROOT / "configs" / "quick.toml").read_bytes()
    one, other = (fuzz.damaged(content, random.Random(4), is_text=True) for _ in range(2))
    assert one == other != content


def test_damaged_and_edited_results_are_refused_or_equal(tmp_path):
    content, path = encode(small_results()), tmp_path / "mutant.h5"
    messages = []
    for number in range(100):
        rng = random.Random(number)
        mutant = (
            fuzz.edited(content, rng, sealed=False)
            if number % 2
            else fuzz.damaged(content, rng, is_text=False)
        )
        path.write_bytes(mutant)
        try:
            assert encode(read_results(path)) == content, number
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 80
    assert not any("\n" in line for line in messages)


@pytest.mark.slow
def test_sealing_anew_lets_a_changed_number_pass_for_a_true_one(tmp_path):
    """So that the checks behind the checksums are reached by mutants at all."""
    content, messages = encode(small_results()), set()
    for number in range(20):
        path = tmp_path / "mutant.h5"
        path.write_bytes(fuzz.edited(content, random.Random(number), sealed=True))
        try:
            read_results(path)
        except InputError as error:
            messages.add("checksum" in str(error))
    assert False in messages


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lattices"])
def test_the_program_counts_and_writes_a_record(family, tmp_path):
    command = [sys.executable, PROGRAM, "--mutants", "30", "--family", family, "--out", tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    record = json.loads((tmp_path / "fuzz.json").read_text())
    assert record["mutants"] == 30
    assert record["counts"]["clean"] > 10
    assert record["counts"]["hang"] == record["counts"]["traceback"] == 0
