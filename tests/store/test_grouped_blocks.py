"""Files with many blocks: groups of neighbours, the same however a study was made, and small.

Limits are lowered, so that a few blocks are many.
"""

from copy import deepcopy
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from cli_support import stored, tree_of, without_runs

import percolab
from percolab.analysis.roots import fit_roots
from percolab.analysis.statistics import standard_error
from percolab.analysis.stored_fits import fit_results
from percolab.figures.study_view import StudyView
from percolab.kernels.device import Device
from percolab.kinds import workplace
from percolab.run.request import Observer
from percolab.run.runner import run_study
from percolab.run.stored import Interrupted
from percolab.store.joined import joined
from percolab.store.merging import merge
from percolab.store.results import ResultsWriter, StoredResults, encode, read_results
from percolab.store.task_result import TaskResult
from percolab.store.tree import encode_tree
from percolab.tasks import kind
from percolab.tasks.blocks import make_summed_blocks, same_block
from percolab.tasks.groups import group_neighbours
from percolab.tasks.part import JobPart
from percolab.tasks.study import StopRule, Study

STUDY = {"L": [4, 8], "p": [0.4, 0.5, 0.6], "seed": 5, "block_size": 3, "device": "cpu"}


@pytest.fixture(autouse=True)
def _few_groups(monkeypatch):
    monkeypatch.setattr(kind, "_MOST_GROUPS", 8)


def sample(samples=300, **changes):
    return percolab.sweep("square", samples=samples, **{**STUDY, **changes})


def counts(results):
    return [item.counts.tolist() for item in results.tasks.values()]


def ungrouped(results):
    """Return the same blocks, each alone."""
    single = deepcopy(results)
    for item in single.tasks.values():
        task = replace(item.task)
        object.__setattr__(task, "most_groups", None)
        item.blocks.clear()
        sampler = kind.make_sampler(item.task, device=Device("cpu"))
        item.task = task
        item.add(sampler.sample(range(100)))
    return single


def test_a_long_study_is_stored_in_groups_whose_sums_are_those_of_its_blocks():
    results = sample()
    assert counts(results) == [[16] * 6 + [4]] * 2
    single = ungrouped(results)
    assert counts(single) == [[1] * 100] * 2
    for key, item in results.tasks.items():
        other = single.tasks[key]
        assert item.num_samples == other.num_samples == 300
        assert item.samples.tolist() == [48] * 6 + [12]
        np.testing.assert_array_equal(item.sums().sum(axis=0), other.sums().sum(axis=0))
        for n, number in enumerate(item.numbers):
            own = slice(number, number + item.counts[n])
            np.testing.assert_array_equal(item.sums()[n], other.sums()[own].sum(axis=0))


def test_one_go_continued_and_merged_from_parts_are_equal(tmp_path):
    whole = sample()
    continued = None
    for samples in (3, 30, 150, 300):
        path = tmp_path / "continued.h5"
        continued = percolab.sweep("square", samples=samples, out=path, **STUDY)
    parts = [sample(part=f"{k}/3") for k in (3, 1, 2)]
    merged = merge((str(n), part) for n, part in enumerate(parts))
    for other in (continued, read_results(path), merged):
        assert without_runs(other) == without_runs(whole)


def test_kills_change_nothing(tmp_path, monkeypatch):
    # A call for each few blocks, or there would be too few calls to be killed between.
    monkeypatch.setattr(workplace, "_LABELINGS_PER_CPU_CALL", 500)
    study = Study.from_description(sample(3).study.description(), sample(3).study.structure)
    rule = StopRule(dict.fromkeys(study.sizes, 300))

    class Killer(Observer):
        def __init__(self):
            self.left = 25

        def advanced(self, results, item, blocks):
            self.left -= len(blocks)
            if self.left < 0:
                raise KeyboardInterrupt

    path, kills = tmp_path / "k.h5", 0
    while True:
        with ResultsWriter(path) as writer:
            try:
                results = run_study(
                    study, rule, writer=writer, device=Device("cpu"), workers=2, observer=Killer()
                )
                break
            except Interrupted:
                kills += 1
    assert kills > 3
    assert without_runs(results) == without_runs(sample())


@pytest.mark.parametrize("part", [JobPart(1, 1), JobPart(2, 3)], ids=str)
def test_missing_blocks_are_those_in_no_group(part):
    item = next(iter(sample().tasks.values()))
    for first in (0, 48, 64, 96):
        del item.blocks[first]
    for end in (0, 1, 20, 48, 70, 100, 130):
        found = item.missing_runs(part.runs(end))
        expected = [n for n in range(end) if part.has(n) and not item.has_block(n)]
        assert list(chain.from_iterable(found)) == expected
        assert expected or end < 2


def test_files_of_different_levels_merge_to_the_larger_one():
    whole = sample()
    (key, *_) = whole.tasks
    item = whole.tasks[key]
    some = StoredResults(whole.study, {key: TaskResult(item.task, columns=item.columns)})
    single = ungrouped(whole).tasks[key]
    some.tasks[key].unite({n: single.blocks[n] for n in range(32)})
    rest = StoredResults(whole.study, {key: TaskResult(item.task, columns=item.columns)})
    rest.tasks[key].unite({n: single.blocks[n] for n in range(32, 100)})
    assert [set(counts(one)[0]) for one in (some, rest)] == [{4}, {4, 16}]
    merged = merge([("some", some), ("rest", rest)])
    assert encode(merged) == encode(merge([("rest", rest), ("some", some)]))
    assert counts(merged)[0] == item.counts.tolist()
    np.testing.assert_array_equal(merged.tasks[key].sums(), item.sums())
    np.testing.assert_array_equal(merged.tasks[key].squares("largest"), item.squares("largest"))


def test_samples_that_are_there_already_are_refused():
    with pytest.raises(percolab.InputError, match="both hold samples 240 to 287 of L = 4"):
        merge([("one", sample()), ("two", blocks_from(sample(), 80))])


def blocks_from(results, first):
    results = deepcopy(results)
    for item in results.tasks.values():
        item.blocks = {n: block for n, block in item.blocks.items() if n >= first}
    return results


def test_blocks_of_single_thresholds_and_of_chains_stay_alone():
    spins = {"model": "ising", "p": [0.5], "boundary": "periodic", "burn_in": 4}
    for changes in ({"method": "threshold", "p": None}, spins):
        results = sample(90, L=[4], **changes)
        assert counts(results) == [[1] * 30]
        (item,) = results.tasks.values()
        assert item.task.most_groups is None


# Analysis


def test_means_and_errors_are_those_of_single_blocks():
    results = sample(750, block_size=1, measure=["sizes"])
    assert {len(own) for own in counts(results)} == {10}
    # With as many samples in every group as here errors would agree to about a third.
    rows, wide = (percolab.to_pandas(one) for one in (results, sample(750, measure=["sizes"])))
    assert list(rows["mean"]) == pytest.approx(list(wide["mean"]), rel=1e-12)
    errors = rows["error"] / wide["error"]
    assert errors[rows["observable"] == "largest"].to_numpy() == pytest.approx(1.0, rel=1e-9)
    scattered = errors[rows["observable"] == "sum_cubes"].to_numpy()
    assert ((scattered > 0.3) & (scattered < 3)).all()


@pytest.mark.parametrize("groups", [1, 5])
def test_weights_make_errors_of_unequal_groups_right(groups):
    rng, pulls = np.random.default_rng(1), []
    samples = np.array([64] * 20 + [2**n for n in range(groups)])
    for _ in range(2000):
        values = rng.standard_normal(samples.size) / np.sqrt(samples)
        mean = np.average(values, weights=samples)
        pulls.append(mean / standard_error(values, samples))
    # Student's t has a variance of about 20 / 18.
    assert np.var(pulls) == pytest.approx(20 / 18, abs=4 * 1.2 * (2 / 2000) ** 0.5)


def test_fits_of_grouped_and_single_blocks_agree():
    results = sample(3000, L=[4, 8, 16], p=[0.3, 0.4, 0.5, 0.6, 0.7], block_size=30)
    assert max(own[0] for own in counts(results)) == 16
    grouped, single = fit_results(results), fit_results(ungrouped(results))
    assert grouped.threshold == pytest.approx(single.threshold, abs=1e-6)


def threshold_like():
    """Return a study of one p with many blocks, and two more p of a few of the same samples."""
    torus = {"boundary": "periodic", "block_size": 10}
    whole = sample(3000, p=[0.5], **torus)
    for p, samples in ((0.45, 1600), (0.55, 1600)):
        more = sample(samples, p=[p], **torus)
        whole.tasks |= more.tasks
    return whole


def test_joined_tasks_never_have_a_sample_twice_and_lose_little():
    results = threshold_like()
    tasks = [item for item in joined(results).tasks.values() if item.task.size == 8]
    seen = set()
    for item in tasks:
        for number, count in zip(item.numbers, item.counts, strict=True):
            own = {*range(number, number + count)}
            assert not own & seen
            seen |= own
    at = {p: sum(item.num_samples for item in tasks if p in item.task.p) for p in (0.45, 0.5)}
    assert 3000 - 640 <= at[0.5] <= 3000
    assert at[0.45] >= 1280
    assert any(item.task.p == (0.45, 0.5, 0.55) for item in tasks)


def test_roots_of_groups_are_those_of_single_blocks(monkeypatch):
    monkeypatch.setattr(kind, "_MOST_GROUPS", 128)
    grouped = fit_roots(threshold_like())
    monkeypatch.setattr(kind, "_MOST_GROUPS", 4096)
    single = fit_roots(threshold_like())
    for one, other in zip(grouped.roots, single.roots, strict=True):
        assert abs(one.value.value - other.value.value) < 0.3 * other.value.error
        assert one.value.error == pytest.approx(other.value.error, rel=0.1)


def test_a_table_has_one_row_for_every_p(tmp_path):
    results = threshold_like()
    rows = percolab.to_pandas(results)
    rows = rows[rows["observable"] == "clusters"]
    assert list(zip(rows["L"], rows["p"], rows["samples"], strict=True)) == [
        (size, p, samples)
        for size in (4, 8)
        for p, samples in ((0.45, 1600), (0.5, 3000), (0.55, 1600))
    ]
    # A report lists the same samples.
    existing = [(item.task.p, item.num_samples) for item in StudyView(results, None).measured()]
    assert existing == 2 * [((0.45,), 1600), ((0.5,), 3000), ((0.55,), 1600)]


# Files


def test_a_file_of_version_5_is_read_and_continued_in_groups(tmp_path):
    single = ungrouped(sample())
    path, whole = tmp_path / "old.h5", sample()
    stored(path, single)
    root = tree_of(path)
    root.attributes["schema_version"] = np.array(5)
    for group in root.groups["tasks"].groups.values():
        squares = group.datasets.pop("squares")
        group.datasets.pop("block_count")
        names, own = group.texts("observable_names"), group.attributes.pop("squared_names")
        width, pairs = len(names), np.triu_indices(len(names))
        products = np.full((*squares.values.shape[:2], width * (width + 1) // 2), 7.0)
        for n, name in enumerate(own):
            place = names.index(name)
            at = [k for k, pair in enumerate(zip(*pairs)) if pair == (place, place)]
            products[:, :, at[0]] = squares.values[:, :, n]
        squares.values, group.datasets["products"] = products, squares
    path.write_bytes(encode_tree(root))
    assert without_runs(read_results(path)) == without_runs(whole)
    continued = percolab.sweep("square", samples=600, out=path, **STUDY)
    assert without_runs(continued) == without_runs(sample(600))


@pytest.mark.parametrize(
    ("dataset", "change", "reason"),
    [
        ("block_count", lambda x: np.where(x == 4, 3, x), "are not aligned powers of two"),
        ("block_count", lambda x: x * 2, "are not aligned powers of two"),
        ("block_count", lambda x: np.where(x == 4, 0, x), "is empty or too large"),
        ("block_count", lambda x: np.where(x == 4, 2**62, x), "is empty or too large"),
        ("block_count", lambda x: x[:-1], "do not fit together"),
        ("block", lambda x: np.where(x == 96, 92, x), "a block is in two groups"),
        ("block_count", lambda x: np.ones_like(x), "sums holds more than its samples can have"),
    ],
)
def test_groups_that_cannot_be_are_refused(tmp_path, dataset, change, reason):
    path = stored(tmp_path / "g.h5", sample())
    root = tree_of(path)
    for group in root.groups["tasks"].groups.values():
        group.datasets[dataset].values = change(group.datasets[dataset].values)
    path.write_bytes(encode_tree(root))
    with pytest.raises(percolab.InputError, match=reason):
        read_results(path)


@pytest.mark.slow
def test_a_target_error_is_reached_by_the_same_rounds_at_once_and_in_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(kind, "_MOST_GROUPS", 16)
    grid = {"L": [4, 8, 16], "p": [0.3, 0.4, 0.5, 0.6, 0.7], "block_size": 3, "seed": 6}
    whole = percolab.sweep("square", target_error=0.012, device="cpu", **grid)
    # The first rounds, of some hundred blocks, are parts of groups by now.
    assert max(max(own) for own in counts(whole)) >= 128
    path = tmp_path / "steps.h5"
    for error in (0.03, 0.02, 0.015, 0.012):
        found = percolab.sweep("square", target_error=error, out=path, device="cpu", **grid)
    assert without_runs(found) == without_runs(whole)
    again = percolab.sweep("square", target_error=0.02, out=path, device="cpu", **grid)
    assert without_runs(again) == without_runs(whole)
    assert len(again.runs) == len(found.runs)


@pytest.mark.parametrize("first", [0, 3, 8])
@pytest.mark.parametrize("largest", [1, 4, 64])
def test_blocks_of_a_call_are_grouped_as_one_by_one(first, largest):
    """Of a call that begins anywhere, and with blocks missing in between."""
    rng = np.random.default_rng(first)
    numbers = [n for n in range(first, first + 45) if n not in (first + 9, first + 30)]
    sums = rng.integers(-(2**40), 2**40, (len(numbers), 2, 3))
    squares, means = rng.random((len(numbers), 2, 1)), rng.random((len(numbers), 2, 4))
    one_by_one = {b.number: b for b in make_summed_blocks(numbers, sums, squares, {"m": means})}
    group_neighbours(one_by_one, numbers, largest)
    found = make_summed_blocks(numbers, sums, squares, {"m": means}, largest)
    assert [block.number for block in found] == sorted(one_by_one)
    assert all(same_block(block, one_by_one[block.number]) for block in found)
    assert max(block.count for block in found) >= min(largest, 8)


def test_blocks_of_a_call_whose_sum_does_not_fit_are_left_alone():
    sums = np.full((4, 1, 1), 2**62)
    found = make_summed_blocks(range(4), sums, np.zeros((4, 1, 1)), None, 4)
    assert [block.count for block in found] == [1] * 4
