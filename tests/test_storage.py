"""A results file gives back what was put in, and anything else is refused in one line."""

import ast
import errno
import json
import os
import re
from copy import deepcopy
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import assert_equal_datasets, datasets, refusal, small_results, stored

from percolab import storage
from percolab.api import sweep
from percolab.merging import merge
from percolab.observables import observables_of
from percolab.sampler import Device, Sampler
from percolab.storage import ResultsWriter, encode, read_results
from percolab.toml_input import InputError

ROOT = Path(__file__).parent.parent
EVIDENCE = sorted((ROOT / "results").rglob("*.h5"))
GOLDEN = Path(__file__).parent / "data" / "golden_v1.h5"
#: By size and block, p by p: clusters, largest, second largest, squares, spanning_x.
GOLDEN_SUMS = {
    (4, 0): [[96, 47, 22, 446, 1], [43, 110, 23, 1406, 8], [18, 149, 10, 2250, 10]],
    (4, 1): [[76, 56, 30, 570, 2], [29, 125, 20, 1810, 8], [15, 149, 10, 2316, 10]],
    (6, 0): [[168, 92, 45, 1600, 1], [60, 262, 43, 7728, 7], [22, 342, 11, 11782, 10]],
    (6, 1): [[183, 95, 55, 1726, 1], [80, 227, 44, 6190, 7], [23, 344, 8, 11926, 10]],
}


@pytest.fixture
def file(tmp_path):
    return stored(tmp_path / "results.h5")


def changed(path, change):
    """Apply a change to an open HDF5 file and return its path."""
    with h5py.File(path, "r+") as opened:
        change(opened)
    return path


def first_task(opened):
    return next(iter(opened["tasks"].values()))


def refused(path):
    """Return the one line with which a file is refused; it must name the file."""
    with pytest.raises(InputError) as error:
        read_results(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# What goes in comes out


def test_results_come_back_equal(file):
    before, after = small_results(), read_results(file)
    assert after.study == before.study
    assert after.runs == before.runs
    assert after.tasks.keys() == before.tasks.keys()
    for key, item in before.tasks.items():
        assert after.tasks[key].task == item.task
        assert after.tasks[key].blocks.keys() == item.blocks.keys()
        for number, block in item.blocks.items():
            np.testing.assert_array_equal(after.tasks[key].blocks[number].sums, block.sums)
            np.testing.assert_array_equal(after.tasks[key].blocks[number].products, block.products)


def test_equal_results_give_equal_bytes(file):
    assert encode(read_results(file)) == encode(small_results()) == file.read_bytes()


def test_a_study_left_to_a_pilot_comes_back(tmp_path):
    results = sweep("square", L=[4], samples=10, block_size=10, device="cpu")
    again = read_results(stored(tmp_path / "pilot.h5", results))
    assert again.study == results.study
    assert again.study.p is None


def test_results_without_blocks_come_back(tmp_path):
    results = deepcopy(small_results())
    for item in results.tasks.values():
        item.blocks.clear()
    again = read_results(stored(tmp_path / "empty.h5", results))
    assert again.tasks.keys() == results.tasks.keys()
    assert all(item.num_samples == 0 for item in again.tasks.values())


def test_provenance_larger_than_an_hdf5_header_comes_back(tmp_path):
    results = deepcopy(small_results())
    results.runs = [dict(results.runs[0], seconds=float(n)) for n in range(500)]
    assert sum(len(json.dumps(run)) for run in results.runs) > 2 * 2**16
    assert read_results(stored(tmp_path / "many.h5", results)).runs == results.runs


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "link.h5"
    link.symlink_to(file)
    stored(link)
    assert link.is_symlink()
    assert file.read_bytes() == link.read_bytes()


# The golden file was made by `percolab sweep golden.toml --device cpu --workers 1` with
# lattice = "triangular", L = [4, 6], p = [0.2, 0.35, 0.5], boundary = ["open", "periodic"],
# samples = 20, block_size = 10, seed = 11.


def test_a_file_of_schema_1_reads_to_the_same_numbers():
    golden = read_results(GOLDEN)
    found = {
        (item.task.size, number): block.sums.tolist()
        for item in golden.tasks.values()
        for number, block in item.blocks.items()
    }
    assert found == GOLDEN_SUMS
    assert golden.study.description() == {
        "lattice": "triangular",
        "lattice_digest": golden.study.lattice.digest,
        "L": [4, 6],
        "boundary": ["open", "periodic"],
        "method": "grid",
        "p": [0.2, 0.35, 0.5],
        "seed": 11,
        "rng": "xorwow",
        "model": "bond",
        "block_size": 10,
    }


def test_sampling_the_golden_file_again_gives_the_same_sums():
    golden = read_results(GOLDEN)
    study = golden.study
    again = sweep(
        "triangular",
        L=study.sizes,
        p=study.p,
        boundary=study.boundary,
        samples=20,
        block_size=10,
        seed=11,
        device="cpu",
    )
    # Wrapping was not measured then.
    assert "wrapping_y" not in [item.name for item in golden.of_size(4)[0].observables]
    for key, item in golden.tasks.items():
        for observable in item.observables:
            found = again.tasks[key].column(observable.name)
            np.testing.assert_array_equal(found, item.column(observable.name), observable.name)


def test_a_file_from_before_wrapping_is_not_continued(tmp_path):
    old = tmp_path / "old.h5"
    old.write_bytes(GOLDEN.read_bytes())
    asked = {"L": [4, 6], "p": [0.2, 0.35, 0.5], "boundary": ["open", "periodic"], "seed": 11}
    with pytest.raises(InputError, match="was written before wrapping was measured"):
        sweep("triangular", samples=40, block_size=10, device="cpu", out=old, **asked)
    assert old.read_bytes() == GOLDEN.read_bytes()


@pytest.mark.parametrize("labeler", ["reference", "four_step"])
def test_every_labeler_measures_the_golden_sums(labeler):
    for item in read_results(GOLDEN).tasks.values():
        sampler = Sampler(item.task, labeler=labeler, device=Device("cpu"))
        for block in sampler.sample(sorted(item.blocks)):
            known = GOLDEN_SUMS[item.task.size, block.number]
            assert block.sums[:, : len(known[0])].tolist() == known


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name)
def test_the_results_kept_as_evidence_can_still_be_read(path):
    assert all(item.blocks for item in read_results(path).tasks.values())


# The file describes itself


@pytest.mark.parametrize("kind", ["golden", "grid", "threshold"])
def test_everything_in_a_file_is_documented(kind, file, tmp_path):
    path = {"golden": GOLDEN, "grid": file}.get(kind)
    if kind == "threshold":
        single = sweep("square", L=[4], samples=20, method="threshold", device="cpu")
        path = stored(tmp_path / "t.h5", single)
    text = (ROOT / "docs" / "hdf5-format.md").read_text(encoding="utf-8")
    with h5py.File(path, "r") as opened:
        names = set(opened) | set(opened.attrs)
        for key in [*json.loads(opened.attrs["study"]), *json.loads(opened.attrs["runs"][0])]:
            names.add(key)
        for group in opened["tasks"].values():
            names |= set(group) | set(group.attrs)
            for dataset in group.values():
                names |= set(dataset.attrs)
    documented = set(re.findall(r"`(\w+)`", text))
    assert names
    assert names <= documented, names - documented


def test_every_dataset_and_observable_says_its_meaning_and_unit(file):
    with h5py.File(file, "r") as opened:
        for group in opened["tasks"].values():
            observables = observables_of(tuple(group.attrs["boundary"]))
            assert list(group.attrs["observable_names"]) == [item.name for item in observables]
            for kind in ("meaning", "unit", "symbol"):
                stated = list(group.attrs[f"observable_{kind}s"])
                assert stated == [getattr(item, kind) for item in observables]
            for dataset in group.values():
                assert dataset.attrs["meaning"]
                assert dataset.attrs["unit"]


def test_datasets_have_the_documented_types_and_shapes(file):
    blocks, points, width = 6, 5, 8
    for name, data in datasets(file).items():
        expected = {
            "p": (np.float64, (points,)),
            "block": (np.int64, (blocks,)),
            "sums": (np.int64, (blocks, points, width)),
            "products": (np.float64, (blocks, points, width * (width + 1) // 2)),
        }[name.rpartition("/")[2]]
        assert (data.dtype, data.shape) == expected, name


def test_means_follow_from_the_file_alone(file):
    with h5py.File(file, "r") as opened:
        group = opened["tasks"][next(iter(small_results().tasks))]
        index = list(group.attrs["observable_names"]).index("largest")
        samples = group["block"].size * group.attrs["block_size"]
        mean = group["sums"][:, -1, index].sum() / samples
    item = next(iter(small_results().tasks.values()))
    assert mean == item.column("largest")[:, -1].sum() / item.num_samples


# What is not such a file


@pytest.mark.parametrize("part", [0, 1, 8, 100, 0.3, 0.6, 0.9, 0.999, -1])
def test_a_truncated_file_is_refused(file, part):
    content = file.read_bytes()
    end = part if isinstance(part, int) else int(part * len(content))
    file.write_bytes(content[:end])
    assert "is not a readable HDF5 file" in refused(file)


def test_a_file_that_is_not_hdf5_is_refused(tmp_path):
    path = tmp_path / "noise.h5"
    path.write_bytes(np.random.default_rng(1).bytes(5000))
    assert "is not a readable HDF5 file" in refused(path)


def test_a_missing_file_and_a_directory_are_refused(tmp_path):
    assert "no such file" in refused(tmp_path / "nowhere.h5")
    assert "is a directory" in refused(tmp_path)


def test_a_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "foreign.h5"
    with h5py.File(path, "w") as opened:
        opened["data"] = np.arange(10)
    assert "not one of percolab's" in refused(path)


def test_another_schema_version_is_refused(file):
    changed(file, lambda opened: opened.attrs.modify("schema_version", 5))
    assert "has schema version 5; this percolab reads versions 1, 2, 3, 4" in refused(file)


TAMPERED = {
    "seed": lambda o: first_task(o).attrs.modify("seed", 99),
    "size": lambda o: first_task(o).attrs.modify("L", 5),
    "block size": lambda o: first_task(o).attrs.modify("block_size", 20),
    "p": lambda o: first_task(o)["p"].__setitem__(0, 0.31),
    "lattice": lambda o: o.attrs.modify("lattice", o.attrs["lattice"].replace("[0, 1]", "[1, 1]")),
    "sums": lambda o: first_task(o)["sums"].__setitem__((0, 0, 0), 7),
    "products": lambda o: first_task(o)["products"].__setitem__((0, 0, 0), 7.0),
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


@pytest.mark.parametrize(("change", "told"), LEADING_AWAY.values(), ids=LEADING_AWAY)
def test_what_leads_out_of_a_file_is_refused_and_not_followed(file, change, told, monkeypatch):
    stored(file.with_name("other.h5"))
    monkeypatch.chdir(file.parent)
    assert told in refused(changed(file, change))


def test_a_link_is_refused_by_the_command_line_in_one_line(file):
    changed(file, LEADING_AWAY["external tasks"][0])
    assert "is an external link" in refusal("status", file)


def test_datasets_of_unequal_shape_are_refused_without_a_checksum(file):
    def shorten(opened):
        group = first_task(opened)
        sums = group["sums"][:, :, :-1]
        del group["sums"], group.attrs["checksum"]
        group["sums"] = sums

    assert "do not fit together" in refused(changed(file, shorten))


def test_repeated_block_numbers_are_refused_without_a_checksum(file):
    def repeat(opened):
        del first_task(opened).attrs["checksum"]
        first_task(opened)["block"][1] = 0

    assert "do not ascend" in refused(changed(file, repeat))


def test_a_damaged_byte_is_refused_or_harmless(file):
    content, expected = file.read_bytes(), encode(small_results())
    rng = np.random.default_rng(2)
    refusals = 0
    for position in rng.integers(len(content), size=150):
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


def test_nothing_is_evaluated_unpickled_or_executed():
    forbidden = {"eval", "exec", "compile", "pickle", "marshal", "shelve", "dill", "joblib"}
    for path in sorted((ROOT / "percolab").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: set[str | None] = set()
            if isinstance(node, ast.Name):
                names = {node.id}
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            elif isinstance(node, ast.keyword):
                refused = isinstance(node.value, ast.Constant) and node.value.value is False
                names = {"pickle"} if node.arg == "allow_pickle" and not refused else set()
            assert not names & forbidden, f"{path.name}:{node.lineno}"


# Writing


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(file, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before, others = file.read_bytes(), set(file.parent.iterdir())
    results = deepcopy(small_results())
    results.runs *= 2
    with ResultsWriter(file) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(storage.os, step, fail)
            with pytest.raises(InputError, match=r"results.h5: cannot be written: No space left"):
                writer.save(results)
        assert file.read_bytes() == before
        assert set(file.parent.iterdir()) == others


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(file, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    before, others = file.read_bytes(), set(file.parent.iterdir())
    monkeypatch.setattr(storage.os, "fsync", interrupt)
    with ResultsWriter(file) as writer, pytest.raises(KeyboardInterrupt):
        writer.save(small_results())
    assert file.read_bytes() == before
    assert set(file.parent.iterdir()) == others


def test_what_a_killed_writer_left_is_not_followed_and_goes(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    (tmp_path / ".results.h5.tmp").symlink_to(elsewhere)
    stored(tmp_path / "results.h5")
    assert elsewhere.read_text() == "precious"
    assert not (tmp_path / ".results.h5.tmp").is_symlink()


def test_a_writer_that_stored_nothing_leaves_nothing(tmp_path):
    with ResultsWriter(tmp_path / "results.h5") as writer:
        assert writer.load() is None
    assert list(tmp_path.iterdir()) == []


def test_a_second_writer_is_refused_by_any_name_of_the_file(file, tmp_path):
    link = tmp_path / "link.h5"
    link.symlink_to(file)
    with ResultsWriter(file):
        for name in (file, link):
            with (
                pytest.raises(InputError, match="another process is writing this file"),
                ResultsWriter(name),
            ):
                pass
    with ResultsWriter(link):
        pass


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "is a directory"),
        ("nowhere/results.h5", "nowhere does not exist"),
        ("file/results.h5", "file does not exist"),
        ("pipe", "is not a regular file"),
    ],
)
def test_a_target_that_cannot_hold_a_file_is_refused(tmp_path, name, told):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=told):
        ResultsWriter(tmp_path / name)


@pytest.mark.parametrize("denied", ["results.h5", ""], ids=["file", "directory"])
def test_a_target_without_write_permission_is_refused(file, monkeypatch, denied):
    # os.access is replaced because root may write everywhere.
    locked = file.parent / denied
    monkeypatch.setattr(storage.os, "access", lambda path, _: Path(path) != locked)
    with pytest.raises(InputError, match="is not writable"):
        ResultsWriter(file)


# Merging


def part(seed=5, samples=20, **changes):
    options = {"L": [4, 6], "p": [0.4, 0.6], "block_size": 10, "device": "cpu"}
    return sweep("square", **{**options, "seed": seed, "samples": samples, **changes})


def blocks_only(results, *numbers):
    """Return a copy that holds only the blocks with these numbers."""
    results = deepcopy(results)
    for item in results.tasks.values():
        item.blocks = {n: item.blocks[n] for n in numbers}
    return results


def test_blocks_of_one_task_unite(tmp_path):
    whole = part(samples=40)
    merged = merge([("a", blocks_only(whole, 3, 0)), ("b", blocks_only(whole, 1, 2))])
    assert_equal_datasets(stored(tmp_path / "m.h5", merged), stored(tmp_path / "w.h5", whole))
    assert merged.runs == 2 * whole.runs


def test_other_seeds_sizes_and_grids_stand_beside_each_other():
    parts = [
        part(),
        part(seed=6),
        part(L=[8]),
        part(L=[7], p=[0.5]),
    ]
    merged = merge([(str(n), one) for n, one in enumerate(parts)])
    assert len(merged.tasks) == sum(len(one.tasks) for one in parts)
    for one in parts:
        for key, item in one.tasks.items():
            assert merged.tasks[key].blocks.keys() == item.blocks.keys()


def test_other_boundaries_are_refused():
    parts = [("a", part()), ("b", part(boundary=["periodic", "open"], p=[0.5]))]
    with pytest.raises(InputError, match="b: has boundary periodic, open, not open, open"):
        merge(parts)


def test_merging_changes_no_part():
    one, two = blocks_only(part(), 0), blocks_only(part(), 1)
    merge([("a", one), ("b", two)])
    assert all(list(item.blocks) == [0] for item in one.tasks.values())
    assert all(list(item.blocks) == [1] for item in two.tasks.values())


@pytest.mark.parametrize(
    "second",
    [
        {},
        {"samples": 40},
        {"p": [0.45]},
        {"p": [0.4, 0.5, 0.6]},
        {"block_size": 7},
        {"L": [6]},
    ],
    ids=str,
)
def test_the_same_samples_twice_are_refused(second):
    with pytest.raises(InputError) as error:
        merge([("a.h5", part()), ("b.h5", part(**second))])
    message = str(error.value)
    assert message.startswith("b.h5 and a.h5 both hold samples 0 to ")
    assert "seed 5; independent runs need different seeds" in message


def test_the_refusal_names_the_samples_that_come_twice():
    one, two = blocks_only(part(samples=40), 0, 2), blocks_only(part(samples=40), 1, 2)
    with pytest.raises(InputError, match=r"samples 20 to 29 of L = 4"):
        merge([("a", one), ("b", two)])


def test_neighbouring_blocks_of_other_sizes_do_not_overlap():
    one = blocks_only(part(), 0, 1)
    two = blocks_only(part(block_size=20, samples=60), 1, 2)
    assert len(merge([("a", one), ("b", two)]).tasks) == 4


def test_another_lattice_is_refused():
    other = sweep("triangular", L=[4], p=[0.4], samples=10, device="cpu")
    with pytest.raises(InputError, match=r"b\.h5: holds lattice triangular, not square"):
        merge([("a.h5", part()), ("b.h5", other)])


def test_merging_nothing_is_refused():
    with pytest.raises(InputError, match="at least one file"):
        merge([])


def test_datasets_larger_than_their_file_can_hold_are_refused_unread(tmp_path):
    path = tmp_path / "claims.h5"
    path.write_bytes(encode(part()))
    with h5py.File(path, "r+") as file:
        (group, *_) = file["tasks"].values()
        shape = (10**9, *group["sums"].shape[1:])
        del group["sums"]
        group.create_dataset("sums", shape, "i8", chunks=(1, *shape[1:]), compression="gzip")
    with pytest.raises(InputError, match="claims more data than its file can hold"):
        read_results(path)


def test_a_grid_larger_than_its_file_can_hold_is_refused_unread(tmp_path):
    path = tmp_path / "claims.h5"
    path.write_bytes(encode(part()))
    with h5py.File(path, "r+") as file:
        (group, *_) = file["tasks"].values()
        del group["p"]
        group.create_dataset("p", 10**12, "f8", chunks=(10**6,), compression="gzip")
    with pytest.raises(InputError, match="claims more data than its file can hold"):
        read_results(path)


@pytest.mark.parametrize("record", ["1", '{"blocks": 3}'])
def test_a_malformed_run_record_is_refused(tmp_path, record):
    path = tmp_path / "runs.h5"
    path.write_bytes(encode(part()))
    with h5py.File(path, "r+") as file:
        file.attrs["runs"] = [record]
    with pytest.raises(InputError, match="a run's record is no table"):
        read_results(path)
