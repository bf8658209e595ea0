"""A results file gives back what was put in, blocks add, and anything else is refused."""

import errno
import io
import json
import os
import re
import signal
from copy import deepcopy
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_support import datasets, small_results, stored, texts_of, without_blocks, without_runs
from helpers import assert_same_blocks

from percolab import Graph, InputError, sweep
from percolab.measure.columns import list_observables
from percolab.store.interrupts import handle_signals
from percolab.store.joined import joined
from percolab.store.merging import merge
from percolab.store.results import ResultsWriter, encode, read_results
from percolab.store.tree import Data, Node, encode_tree

ROOT = Path(__file__).parents[2]
EVIDENCE = sorted((ROOT / "results").rglob("*.h5"))
# What goes in comes out


def test_results_come_back_equal(file):
    before, after = small_results(), read_results(file)
    assert after.study == before.study
    assert after.runs == before.runs
    assert_same_blocks(after, before)
    assert all(item.task == before.tasks[key].task for key, item in after.tasks.items())


def test_equal_results_give_equal_bytes(file):
    assert encode(read_results(file)) == encode(small_results()) == file.read_bytes()


def test_a_study_left_to_a_pilot_comes_back(tmp_path):
    results = sweep("square", L=[4], samples=10, block_size=10, device="cpu")
    again = read_results(stored(tmp_path / "pilot.h5", results))
    assert again.study == results.study
    assert again.study.p is None


def test_results_without_blocks_come_back(tmp_path):
    results = without_blocks()
    again = read_results(stored(tmp_path / "empty.h5", results))
    assert again.tasks.keys() == results.tasks.keys()
    assert all(item.num_samples == 0 for item in again.tasks.values())


def test_provenance_larger_than_an_hdf5_header_comes_back(tmp_path):
    results = deepcopy(small_results())
    results.runs += [dict(results.runs[0], seconds=float(n), blocks={}) for n in range(500)]
    assert sum(len(json.dumps(run)) for run in results.runs) > 2 * 2**16
    assert read_results(stored(tmp_path / "many.h5", results)).runs == results.runs


def test_a_link_stays_a_link(file, tmp_path):
    link = tmp_path / "link.h5"
    link.symlink_to(file)
    stored(link)
    assert link.is_symlink()
    assert file.read_bytes() == link.read_bytes()


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name)
def test_the_results_kept_as_evidence_can_still_be_read(path):
    assert all(item.blocks for item in read_results(path).tasks.values())


# The file describes itself


@pytest.mark.parametrize("kind", ["grid", "threshold"])
def test_everything_in_a_file_is_documented(kind, file, tmp_path):
    path = file
    if kind == "threshold":
        single = sweep("square", L=[4], samples=20, method="threshold", device="cpu")
        path = stored(tmp_path / "t.h5", single)
    text = (ROOT / "docs" / "hdf5-format.md").read_text(encoding="utf-8")
    with h5py.File(path, "r") as opened:
        names = set(opened) | set(opened.attrs)
        study, run = opened.attrs["study"], opened.attrs["runs"][0]
        names |= {*json.loads(study), *json.loads(run)}
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
            observables = list_observables(tuple(texts_of(group, "boundary")))
            assert texts_of(group, "observable_names") == [item.name for item in observables]
            for kind in ("meaning", "unit", "symbol"):
                stated = texts_of(group, f"observable_{kind}s")
                assert stated == [getattr(item, kind) for item in observables]
            for dataset in group.values():
                assert dataset.attrs["meaning"]
                assert dataset.attrs["unit"]


def test_datasets_have_the_documented_types_and_shapes(file):
    observables = list_observables(("open", "open"))
    blocks, points, width = 6, 5, len(observables)
    squared = sum(not item.is_probability for item in observables)
    for name, data in datasets(file).items():
        expected = {
            "p": (np.float64, (points,)),
            "block": (np.int64, (blocks,)),
            "sums": (np.int64, (blocks, points, width)),
            "block_count": (np.int64, (blocks,)),
            "squares": (np.float64, (blocks, points, squared)),
        }[name.rpartition("/")[2]]
        assert (data.dtype, data.shape) == expected, name


def test_means_follow_from_the_file_alone(file):
    with h5py.File(file, "r") as opened:
        group = opened["tasks"][next(iter(small_results().tasks))]
        index = texts_of(group, "observable_names").index("largest")
        samples = group["block"].size * group.attrs["block_size"]
        mean = group["sums"][:, -1, index].sum() / samples
    item = next(iter(small_results().tasks.values()))
    assert mean == item.column("largest")[:, -1].sum() / item.num_samples


# Writing


def test_nothing_in_a_file_has_variable_length(file):
    kinds = []

    def look(item):
        kinds.extend(item.attrs.get_id(name).dtype for name in item.attrs)

    with h5py.File(file) as opened:
        look(opened)
        opened.visititems(lambda _, item: look(item))
    assert len(kinds) > 60
    assert not any(kind.hasobject for kind in kinds)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.uint32, np.uint8])
@pytest.mark.parametrize("shape", [(3, 5), (700, 7, 66)])
def test_hdf5_unpacks_what_threads_have_packed(kind, shape):
    """One chunk, and many, whose last ones reach beyond the numbers."""
    values = np.random.default_rng(1).integers(0, 250, shape).astype(kind)
    with h5py.File(io.BytesIO(encode_tree(Node(datasets={"sums": Data(values)})))) as opened:
        found = opened["sums"]
        assert (found.compression, found.compression_opts, found.shuffle) == ("gzip", 4, True)
        assert found.dtype == kind
        np.testing.assert_array_equal(found[:], values)
        assert found.id.get_num_chunks() == len(list(found.iter_chunks()))
        is_cut = any(n % chunk for n, chunk in zip(shape, found.chunks, strict=True))
        assert is_cut == (len(shape) == 3)


def test_a_save_keeps_the_mode_of_a_file(file):
    file.chmod(0o600)
    stored(file)
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_without_write_permission_is_refused_to_root_too(file):
    file.chmod(0o444)
    with pytest.raises(InputError, match=r"results.h5: is not writable"):
        ResultsWriter(file)


def test_a_hard_link_does_not_get_around_the_lock(file):
    link = file.with_name("link.h5")
    with ResultsWriter(file):
        os.link(file, link)
        with pytest.raises(InputError, match=r"link.h5: has a second name \(a hard link\)"):
            ResultsWriter(link)


@pytest.mark.parametrize("was_there", [True, False])
def test_a_file_of_another_program_is_kept(file, was_there):
    if not was_there:
        file.unlink()
    with ResultsWriter(file) as writer:
        (file.parent / "thesis").write_text("years of work")
        (file.parent / "thesis").replace(file)
        for _ in range(2):
            message = r"written this file, which is not replaced; the results are in .*-rescued.h5"
            with pytest.raises(InputError, match=message):
                writer.save(small_results())
    assert file.read_text() == "years of work"
    assert not file.with_name("results-rescued-2.h5").exists(), "one run, one file"
    assert read_results(file.with_name("results-rescued.h5")).tasks.keys() == (
        small_results().tasks.keys()
    )


def test_results_that_no_reader_would_take_are_not_written(file):
    before, results = file.read_bytes(), deepcopy(small_results())
    results.runs *= 2
    with (
        ResultsWriter(file) as writer,
        pytest.raises(ValueError, match="its runs made 12 blocks, but the file has 6"),
    ):
        writer.save(results)
    assert file.read_bytes() == before


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        ("fsync", FULL, r"results.h5: cannot be written: No space left"),
        ("replace", FULL, r"results.h5: cannot be written: No space left"),
        ("fsync", KeyboardInterrupt(), "^$"),
    ],
)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    file, monkeypatch, step, error, message
):
    def fail(*_):
        raise error

    before, others = file.read_bytes(), set(file.parent.iterdir())
    results = deepcopy(small_results())
    results.runs[0]["seconds"] += 1.0
    with ResultsWriter(file) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises((InputError, KeyboardInterrupt), match=message):
                writer.save(results)
        assert file.read_bytes() == before
        assert set(file.parent.iterdir()) == others


def test_the_temporary_file_of_a_killed_writer_is_removed_and_not_followed(tmp_path):
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
    ("name", "message"),
    [
        ("", "is a directory"),
        ("nowhere/results.h5", "nowhere does not exist"),
        ("file/results.h5", "file does not exist"),
        ("pipe", "is not a regular file"),
    ],
)
def test_a_target_that_cannot_hold_a_file_is_refused(tmp_path, name, message):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=message):
        ResultsWriter(tmp_path / name)


@pytest.mark.parametrize("denied", ["results.h5", ""], ids=["file", "directory"])
def test_a_target_without_write_permission_is_refused(file, monkeypatch, denied):
    # os.access is replaced because root may write everywhere.
    locked = file.parent / denied
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != locked)
    with pytest.raises(InputError, match="is not writable"):
        ResultsWriter(file)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_save_is_raised_after_it_and_the_next_save_replaces_the_file(
    tmp_path, monkeypatch, number
):
    results, replaced, replace = small_results(), [], os.replace

    def interrupted(*paths):
        replace(*paths)
        replaced.append(paths)
        os.kill(os.getpid(), number)

    with handle_signals(), ResultsWriter(tmp_path / "r.h5") as writer:
        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.save(results)
        monkeypatch.undo()
        assert len(replaced) == 1
        writer.save(results)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".r.h5.lock", "r.h5"]


def part(seed=5, samples=20, **changes):
    options = {"L": [4, 6], "p": [0.4, 0.6], "block_size": 10, "device": "cpu"}
    return sweep("square", **{**options, "seed": seed, "samples": samples, **changes})


def blocks_only(results, *numbers):
    """Return a copy with the blocks of these numbers alone, as a run that made no others."""
    results = deepcopy(results)
    for item in results.tasks.values():
        item.blocks = {n: item.blocks[n] for n in numbers}
    results.runs[0]["blocks"] = dict.fromkeys(results.tasks, len(numbers))
    return results


def test_merged_blocks_are_the_bytes_of_an_undivided_run(tmp_path):
    whole = part(samples=40)
    parts = [blocks_only(whole, 3, 0), blocks_only(whole, 1, 2)]
    merged = merge(zip(("a", "b"), parts))
    assert merged.runs == parts[0].runs + parts[1].runs
    assert read_results(stored(tmp_path / "m.h5", merged)).runs == merged.runs
    assert without_runs(merged) == without_runs(whole)


def test_other_seeds_sizes_and_grids_share_a_file():
    parts = [part(), part(seed=6), part(L=[8]), part(L=[7], p=[0.5])]
    merged = merge([(str(n), one) for n, one in enumerate(parts)])
    assert len(merged.tasks) == sum(len(one.tasks) for one in parts)
    for one in parts:
        for key, item in one.tasks.items():
            assert merged.tasks[key].blocks.keys() == item.blocks.keys()


def graph_study(bonds):
    return sweep(graph=Graph.of_bonds(3, bonds), p=[0.5], samples=10, device="cpu")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: (part(), part(boundary=["periodic", "open"], p=[0.5])),
            "b: has boundary periodic, open, not open, open",
        ),
        (
            lambda: [blocks_only(part(samples=40), *numbers) for numbers in ((0, 2), (1, 2))],
            r"samples 20 to 29 of L = 4",
        ),
        (
            lambda: [graph_study(bonds) for bonds in ([(0, 1)], [(0, 1), (1, 2)])],
            r"b: its graph differs in content from that of the others \([0-9a-f]{16}, ",
        ),
    ],
    ids=["boundary", "samples", "graphs of one name"],
)
def test_what_does_not_go_together_is_not_merged(make, message):
    with pytest.raises(InputError, match=message):
        merge(zip(("a", "b"), make(), strict=True))


def test_merging_changes_no_part():
    one, two = blocks_only(part(), 0), blocks_only(part(), 1)
    merge([("a", one), ("b", two)])
    assert all(list(item.blocks) == [0] for item in one.tasks.values())
    assert all(list(item.blocks) == [1] for item in two.tasks.values())


def test_the_same_samples_at_other_p_are_one_task_of_all_p():
    merged = merge([("a.h5", part()), ("b.h5", part(p=[0.45]))])
    assert joined(merged).tasks.keys() == part(p=[0.4, 0.45, 0.6]).tasks.keys()


@pytest.mark.parametrize(
    "second",
    [
        {},
        {"samples": 40},
        {"p": [0.4, 0.5, 0.6]},
        {"p": [0.45], "block_size": 20},
        {"block_size": 7},
        {"L": [6]},
    ],
)
def test_the_same_samples_twice_are_refused(second):
    with pytest.raises(InputError) as error:
        merge([("a.h5", part()), ("b.h5", part(**second))])
    message = str(error.value)
    assert message.startswith("b.h5 and a.h5 both hold samples 0 to ")
    assert "seed 5; independent runs need different seeds" in message


def test_neighbouring_blocks_of_other_sizes_do_not_overlap():
    one = blocks_only(part(), 0, 1)
    two = blocks_only(part(block_size=20, samples=60), 1, 2)
    assert len(merge([("a", one), ("b", two)]).tasks) == 4
