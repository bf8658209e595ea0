"""A results file gives back what was put in, and anything else is refused in one line."""

import errno
import json
import os
import re
from copy import deepcopy
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import datasets, small_results, stored

from percolab import storage
from percolab.api import sweep
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
