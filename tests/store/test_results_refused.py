"""Files that are no results, damaged, tampered with or leading elsewhere are refused."""

import signal

import h5py
import numpy as np
import pytest
from cli_support import (
    put_text,
    refusal,
    sealed_again,
    small_results,
    stored,
    text_of,
    texts_of,
)

from percolab.api import sweep
from percolab.errors import InputError
from percolab.store.interrupts import default_signals, handle_signals
from percolab.store.results import encode, read_results


def changed(path, change):
    """Apply a change to an open HDF5 file and return its path."""
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


def test_a_later_schema_version_is_refused(file):
    changed(file, lambda opened: opened.attrs.modify("schema_version", 7))
    assert "has schema version 7; this percolab reads versions 5 and 6" in refused(file)


@pytest.mark.parametrize(
    ("command", "form", "version", "today"),
    [("status", "percolab results", n, "s 5 and 6") for n in (1, 2, 3, 4)]
    + [("show", "percolab labels", 1, " 2")],
)
def test_an_earlier_schema_version_is_refused_in_one_line(tmp_path, command, form, version, today):
    path = tmp_path / "old.h5"
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


@pytest.mark.parametrize("place", ["study", "task"])
def test_samples_of_version_1_are_refused_in_one_line(file, place):
    with h5py.File(file, "r+") as opened:
        if place == "study":
            del opened["tasks"]
            put_text(opened, "runs", ["{}"])
            study = text_of(opened, "study").replace('"sample_version": 2, ', "")
            put_text(opened, "study", study)
        else:
            first_task(opened).attrs.modify("sample_version", 1)
    expected = "has samples of version 1; this percolab reads version 2"
    assert f"{file}: {expected}" in refusal("status", sealed_again(file))


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
def test_what_leads_out_of_a_file_is_refused_and_not_followed(file, change, message, monkeypatch):
    stored(file.with_name("other.h5"))
    monkeypatch.chdir(file.parent)
    assert message in refused(changed(file, change))


def test_datasets_of_unequal_shape_are_refused_whatever_their_checksum(file):
    def shorten(opened):
        group = first_task(opened)
        sums = group["sums"][:, :, :-1]
        del group["sums"]
        group["sums"] = sums

    assert "do not fit together" in refused(sealed_again(changed(file, shorten)))


def test_repeated_block_numbers_are_refused_whatever_their_checksum(file):
    def repeat(opened):
        first_task(opened)["block"][1] = 0

    assert "do not ascend" in refused(sealed_again(changed(file, repeat)))


def test_a_damaged_byte_is_refused_or_harmless(file):
    content, expected = file.read_bytes(), encode(small_results())
    rng = np.random.default_rng(2)
    refusals = 0
    for position in rng.integers(len(content), size=75):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        try:
            found = read_results(file)
        except InputError:
            refusals += 1
            continue
        for item in found.tasks.values():
            same = small_results().tasks[item.task.id]
            assert item.blocks.keys() == same.blocks.keys()
            for number, block in same.blocks.items():
                np.testing.assert_array_equal(item.blocks[number].sums, block.sums)
    assert refusals > 0
    assert expected == content


def small_file(tmp_path):
    path = tmp_path / "small.h5"
    options = {"L": [4, 6], "p": [0.4, 0.6], "block_size": 10, "samples": 20, "device": "cpu"}
    path.write_bytes(encode(sweep("square", seed=5, **options)))
    return path


@pytest.mark.parametrize(
    ("name", "kind", "length", "chunk"), [("sums", "i8", 10**9, 1), ("p", "f8", 10**12, 10**6)]
)
def test_datasets_larger_than_their_file_can_hold_are_refused_unread(
    name, kind, length, chunk, tmp_path
):
    path = small_file(tmp_path)
    with h5py.File(path, "r+") as file:
        group = first_task(file)
        rest = group[name].shape[1:]
        del group[name]
        options = {"chunks": (chunk, *rest), "compression": "gzip"}
        group.create_dataset(name, (length, *rest), kind, **options)
    with pytest.raises(InputError, match="claims more data than its file can hold"):
        read_results(path)


@pytest.mark.parametrize("record", ["1", '{"blocks": 3}'])
def test_a_malformed_run_record_is_refused(tmp_path, record):
    path = small_file(tmp_path)
    with h5py.File(path, "r+") as file:
        put_text(file, "runs", [record])
    with pytest.raises(InputError, match="a run's record is no table"):
        read_results(sealed_again(path))


def test_sigterm_ends_the_process_while_a_file_is_read():
    with handle_signals():
        before = signal.getsignal(signal.SIGTERM)
        with default_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is before is not signal.SIG_DFL
