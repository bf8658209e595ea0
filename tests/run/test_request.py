"""A file is extended in place, nothing is made otherwise silently, and what is finished is kept."""

import json
import os
import signal
import tracemalloc
from concurrent.futures import Executor, Future
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, refusal, run, small_results

from percolab.analysis.quantities import list_quantities
from percolab.analysis.statistics import MIN_BLOCKS
from percolab.analysis.stored_data import pool_moments, read_curves
from percolab.api import fit, sweep
from percolab.kernels.device import Device
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.run.measured import WorkerPool, missing_jobs
from percolab.run.plan import plan_study
from percolab.run.request import Observer
from percolab.run.stored import Interrupted, Saver, with_blocks
from percolab.store.interrupts import Terminated, handle_signals
from percolab.store.joined import joined
from percolab.store.merging import merge
from percolab.store.results import ResultsWriter, StoredResults, read_results
from percolab.tasks.blocks import Block
from percolab.tasks.study import StopRule, block_size_for, default_block_size

P = [0.4, 0.5, 0.6]
SQUARE = {"L": [4, 6], "p": P, "samples": 200, "device": "cpu", "workers": 1}


def samples_of(path="r.h5"):
    tasks = read_results(path).tasks.values()
    return {(item.task.size, p): item.num_samples for item in tasks for p in item.task.p}


def content(path="r.h5"):
    tasks = read_results(path).tasks
    return {key: item.column("largest").tobytes() for key, item in tasks.items()}


@pytest.mark.parametrize("default", [10, 13, 32, 64, 100])
@pytest.mark.parametrize("samples", [1, 2, 10, 97, 100, 250, 300, 1000, 10_000, 10_007, 20_000])
def test_blocks_make_up_the_samples_and_are_enough(samples, default):
    size = block_size_for(samples, default)
    assert 1 <= size <= default
    made = -(-samples // size) * size
    assert made - samples <= (1 if samples == 10_007 else 0)
    assert samples // size >= min(MIN_BLOCKS, samples)


def test_ordinary_studies_have_the_default_blocks():
    for samples in (1000, 10_000, 10**6):
        assert block_size_for(samples, default_block_size(2**17)) == 100


@pytest.mark.parametrize("samples", [1, 10, 97, 250])
def test_requested_samples_are_made(samples):
    results = sweep("square", **SQUARE | {"samples": samples})
    assert {item.num_samples for item in results.tasks.values()} == {samples}


def test_one_line_reports_samples_that_are_no_whole_blocks():
    command = ("sweep", "--lattice", "square", "-L", 4, "-p", 0.5, "--device", "cpu",
               "--out", "r.h5")  # fmt: skip
    assert "samples are made" not in run(*command, "--samples", 250).stderr
    message = run(*command, "--samples", 260).stderr.splitlines()
    assert message.count("L = 4: 275 samples are made, not 260: a block has 25") == 1
    assert samples_of() == {(4, 0.5): 275}
    assert "samples are made" not in run(*command, "--samples", 260).stderr


def test_more_sizes_are_added_and_less_adds_nothing():
    sweep("square", **SQUARE, out="r.h5")
    before = content()
    sweep("square", **SQUARE | {"L": [6, 8]}, out="r.h5")
    after = content()
    assert before.items() < after.items()
    assert read_results("r.h5").study.sizes == (4, 6, 8)
    whole = Path("r.h5").read_bytes()
    for less in ({}, {"L": [4]}, {"samples": 20}, {"p": [0.5]}, {"L": None, "samples": None}):
        sweep("square", **SQUARE | less, out="r.h5")
        assert Path("r.h5").read_bytes() == whole
    sweep("square", **SQUARE | {"L": [4, 6, 8]}, out="direct.h5")
    assert_equal_datasets(Path("r.h5"), Path("direct.h5"))


def test_more_p_are_measured_on_the_same_samples_and_joined():
    """The file of two requests is analysed as that of one with all p."""
    measure = {"measure": "sizes,gyration"}
    sweep("square", **SQUARE, **measure, out="r.h5")
    before = content()
    sweep("square", **SQUARE | {"p": [0.45, 0.5, 0.55]}, **measure, out="r.h5")
    assert before.items() < content().items()
    found = read_results("r.h5")
    assert found.study.p == (0.4, 0.45, 0.5, 0.55, 0.6)
    whole = sweep("square", **SQUARE | {"p": [0.4, 0.45, 0.5, 0.55, 0.6]}, **measure)
    assert len(found.tasks) == 4
    parts = joined(found).tasks
    assert parts.keys() == whole.tasks.keys()
    for key, item in whole.tasks.items():
        for number, block in item.blocks.items():
            own = parts[key].blocks[number]
            np.testing.assert_array_equal(own.sums, block.sums)
            np.testing.assert_array_equal(own.squares, block.squares)
            for name in block.extras:
                np.testing.assert_array_equal(own.extras[name], block.extras[name])
    ours, theirs = fit(found), fit(whole)
    assert (ours.threshold, ours.threshold_error) == (theirs.threshold, theirs.threshold_error)


def test_samples_that_only_some_p_have_stay_apart():
    """They are others than the joined ones, so that no sample counts twice."""
    sweep("square", **SQUARE, out="r.h5")
    sweep("square", **SQUARE | {"p": [0.45], "samples": 100}, out="r.h5")
    curves = [curve for curve in read_curves(read_results("r.h5")) if curve.L == 4]
    found = {tuple(curve.p): curve.samples.sum() for curve in curves}
    assert found == {(0.4, 0.5, 0.6): 100, (0.4, 0.45, 0.5, 0.6): 100}


def test_a_file_with_more_p_can_be_merged_and_the_moments_are_joined():
    sweep("square", **SQUARE, out="r.h5")
    sweep("square", **SQUARE | {"p": [0.45, 0.55]}, out="r.h5")
    merged = merge([("r.h5", read_results("r.h5"))])
    assert len(merged.tasks) == 4
    quantity = next(
        item for item in list_quantities(("open", "open")) if item.name == "spanning_any"
    )
    found = pool_moments(merged, [quantity])
    assert [(item.L, item.p.tolist()) for item in found] == [
        (size, [0.4, 0.45, 0.5, 0.55, 0.6]) for size in (4, 6)
    ]


def test_more_p_than_a_pilot_placed():
    placed = {key: value for key, value in SQUARE.items() if key != "p"}
    sweep("square", **placed, out="r.h5")
    before = samples_of()
    sweep("square", **SQUARE, out="r.h5")
    assert samples_of() == before | {(L, p): 200 for L in (4, 6) for p in P}
    whole = Path("r.h5").read_bytes()
    sweep("square", **placed, out="r.h5")
    assert Path("r.h5").read_bytes() == whole


def test_a_plan_predicts_an_extension():
    sweep("square", **SQUARE, out="r.h5")
    study = sweep("square", **SQUARE | {"L": [6, 8], "p": [0.4, 0.45], "samples": 10}).study
    rule = StopRule(dict.fromkeys(study.sizes, 200))
    plan = plan_study(study, rule, writer=ResultsWriter("r.h5"), device=Device("cpu"), workers=1)
    assert [(row.L, row.points, row.samples, row.stored) for row in plan.sizes] == [
        (6, 4, 200, 0),
        (8, 2, 200, 0),
    ]


def test_without_samples_a_file_keeps_the_request_in_its_record():
    sweep("square", **SQUARE, out="r.h5")
    (record,) = json.loads(answer("status", "r.h5", "--json"))["runs"]
    assert record["asked"] == {"samples": dict.fromkeys(read_results("r.h5").tasks, 200)}
    for _ in range(2):
        sweep("square", **SQUARE | {"samples": None}, out="r.h5")
        assert set(samples_of().values()) == {200}
    sweep("square", **SQUARE | {"samples": None, "L": [8]}, out="r.h5")
    assert samples_of()[8, 0.5] == 200


def test_an_interrupted_file_continues_to_its_request(interrupting):
    with pytest.raises(Interrupted):
        sweep("square", **SQUARE, out="r.h5", observer=interrupting)
    assert min(samples_of().values()) < 200
    sweep("square", **SQUARE | {"samples": None}, out="r.h5")
    assert set(samples_of().values()) == {200}


def test_without_samples_a_target_error_is_kept():
    options = {"L": [6, 12], "p": [0.4, 0.45, 0.5, 0.55, 0.6], "device": "cpu", "workers": 1}
    sweep("square", **options, target_error=0.05, out="r.h5")
    before = Path("r.h5").read_bytes()
    sweep("square", **options, out="r.h5")
    assert Path("r.h5").read_bytes() == before


def test_a_message_never_repeats_a_long_list():
    many = ",".join(f"{x:.9f}" for x in np.linspace(0.1, 0.9, 9000))
    tiny = ("sweep", "--lattice", "square", "-L", 4, "--device", "cpu", "--out", "r.h5")
    answer(*tiny, "-p", many, "--samples", 1, "--quiet")
    for wrong in (("-p", many, "--seed", 2), ("-p", f"{many},x"), ("-p", f"{many},2")):
        assert len(refusal(*tiny, *wrong)) < 300
    Path("s.toml").write_text(f"p = [{many}, 'x']")
    assert len(refusal("sweep", "s.toml")) < 300


CHAIN = """
name = "mine"
dimension = 2
cell = { shape = [1, 1] }
bonds = [{ offset = [1, 0] }, { offset = [0, 1] }]
"""
KNOWN = """
[[thresholds]]
model = "bond"
value = 0.5
expression = "1/2"
reference = "H. Kesten, Commun. Math. Phys. 74, 41 (1980)"
"""


@pytest.mark.slow
def test_fit_prints_a_threshold_published_since():
    Path("mine.toml").write_text(CHAIN)
    command = ("sweep", "--lattice", "mine.toml", "-L", "4,6,8", "-p", "0.4:0.6:5", "--samples",
               300, "--device", "cpu", "--out", "r.h5", "--quiet")  # fmt: skip
    answer(*command)
    assert "published" not in answer("fit", "r.h5", "--bootstrap", 0)
    before = content()
    Path("mine.toml").write_text(CHAIN + KNOWN)
    answer(*command)
    assert "published 0.5" in answer("fit", "r.h5", "--bootstrap", 0)
    assert content() == before
    assert read_results("r.h5").study.structure.source == CHAIN + KNOWN


def test_what_is_published_is_no_part_of_a_digest():
    assert (
        lattice_from_text(CHAIN, where="a").digest
        == lattice_from_text(CHAIN.replace("mine", "other") + KNOWN, where="b").digest
        == load_lattice("square").digest
    )


def test_a_study_file_with_a_wrong_target_is_refused():
    Path("study.toml").write_text('out = "nowhere/r.h5"')
    assert "the directory" in refusal("sweep", "study.toml")
    assert [path.name for path in Path().iterdir()] == ["study.toml"]


WANTED = 12


class AtOnce(Executor):
    """Runs a job when it is submitted, so that several are done, or have failed, together."""

    def submit(self, function, /, *arguments, **options):
        future: Future = Future()
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)
        return future


def empty_blocks(numbers):
    return {n: Block(n, np.zeros((5, 8), np.int64), np.zeros((5, 4))) for n in numbers}


class Sampler:
    """Makes empty blocks, and fails at some of them."""

    blocks_per_call, calls_per_job, is_serial = 1, 1, False

    def __init__(self, error=None, fails=()):
        self.error, self.fails, self.asked = error, fails, []

    def sample_groups(self, numbers, stopped, largest):
        self.asked += numbers
        if set(numbers) & set(self.fails):
            raise self.error
        return list(empty_blocks(numbers).values())


def pool_of(samplers):
    """Return two workers, who are done at once."""
    return WorkerPool(samplers, AtOnce(), 2)


class Engine:
    def record(self):
        return {"seconds": 0.0, "blocks": {}}


class Writer:
    def __init__(self):
        self.saved = []

    def save(self, results):
        ((_, item),) = results.tasks.items()
        assert sum(results.runs[-1]["blocks"].values()) == len(item.blocks)
        self.saved.append(set(item.blocks))


class Told(Observer):
    def __init__(self):
        self.blocks = set()

    def advanced(self, results, item, blocks):
        self.blocks |= {block.number for block in blocks}
        assert item.blocks.keys() == self.blocks


def fresh():
    """Return results with one task and no block, and the id of that task."""
    key, item = next(iter(small_results().tasks.items()))
    results = StoredResults(small_results().study)
    results.add_task(item.task)
    return results, key


def run_sampler(sampler, **options):
    """Run jobs two at a time; return the blocks, those of every save, and what was raised."""
    results, key = fresh()
    writer, message, raised = Writer(), Told(), None
    saver = Saver(writer, **options)
    try:
        found = with_blocks(
            results, {key: WANTED}, Engine().record(), pool_of({key: sampler}), saver, message
        )
        assert found.tasks[key].blocks.keys() == message.blocks
        assert len(found.runs) == 1
    except (Interrupted, MemoryError) as error:
        raised = error
    assert (results.tasks[key].blocks, results.runs) == ({}, []), "what was given has changed"
    return message.blocks, writer.saved, raised


def test_all_blocks_are_made_once_and_saved():
    sampler = Sampler()
    blocks, saved, raised = run_sampler(sampler)
    assert sampler.asked == list(range(WANTED))
    assert blocks == saved[-1] == set(range(WANTED))
    assert raised is None


def test_of_many_short_runs_only_what_stops_one_is_saved():
    blocks, saved, raised = run_sampler(Sampler(), every_run=False)
    assert (len(blocks), saved, raised) == (WANTED, [], None)
    blocks, saved, raised = run_sampler(Sampler(MemoryError(), fails=(3,)), every_run=False)
    assert saved == [blocks]


def test_results_that_have_all_blocks_are_returned_as_they_are():
    results, key = fresh()
    results.tasks[key].blocks = empty_blocks(range(WANTED))
    expected = {key: WANTED}
    assert (
        with_blocks(results, expected, Engine().record(), pool_of({}), Saver(None), Observer())
        is results
    )


def test_two_errors_at_once_cost_no_finished_block():
    blocks, saved, raised = run_sampler(Sampler(MemoryError(), fails=(1, 2)))
    assert isinstance(raised, MemoryError)
    assert blocks == saved[-1] == {0, 3}


@pytest.mark.parametrize(
    ("error", "fails", "code"),
    [(KeyboardInterrupt(), (0, 1, 2), 130), (Terminated(), (3,), 143)],
    ids=["ctrl-c pressed twice", "sigterm"],
)
def test_what_interrupts_saves_and_has_its_exit_code(error, fails, code):
    blocks, saved, raised = run_sampler(Sampler(error, fails=fails))
    assert isinstance(raised, Interrupted)
    assert saved == [blocks]
    assert (raised.stored, raised.exit_code) == (True, code)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_python_ignores_stops_the_run_after_the_next_block(number, code, capsys):
    class Deleted:
        def __del__(self):
            os.kill(os.getpid(), number)
            for _ in range(1000):  # the handler raises here, and Python ignores it
                pass

    class Signalled(Sampler):
        def sample_groups(self, numbers, *others):
            if numbers[0] == 3:
                Deleted()
            return super().sample_groups(numbers, *others)

    with handle_signals():
        blocks, saved, raised = run_sampler(Signalled())
    assert isinstance(raised, Interrupted)
    assert raised.exit_code == code
    assert {3} < blocks == saved[-1] < set(range(WANTED))
    assert capsys.readouterr().err == ""


def test_without_a_file_a_stop_says_that_nothing_is_saved():
    results, key = fresh()
    pool = pool_of({key: Sampler(KeyboardInterrupt(), fails=(3,))})
    with pytest.raises(Interrupted, match="interrupted, finished blocks not saved"):
        with_blocks(results, {key: WANTED}, Engine().record(), pool, Saver(None), Told())


def jobs_of(count, *, existing=(), per_call=1, calls=1, most_groups=None, **options):
    """Return the jobs of one task for this many blocks, of which some are there."""
    results, key = fresh()
    results.tasks[key].blocks = empty_blocks(existing)
    if most_groups:
        object.__setattr__(results.tasks[key].task, "most_groups", most_groups)
    sampler = Sampler()
    sampler.blocks_per_call, sampler.calls_per_job = per_call, calls
    return missing_jobs(results, {key: count}, {key: sampler}, **options)


@pytest.mark.parametrize("step", [1, 3, 100])
def test_only_missing_blocks_are_given_out_each_once(step):
    jobs = list(jobs_of(8, existing=(0, 4, 5), per_call=step))
    assert [number for job in jobs for number in job.numbers] == [1, 2, 3, 6, 7]
    assert max(len(job.numbers) for job in jobs) <= step


def test_many_short_runs_of_missing_blocks_take_no_time():
    start = process_time()
    (job,) = jobs_of(40_000, existing=range(0, 40_000, 2), per_call=20_000)
    assert job.numbers == tuple(range(1, 40_000, 2))
    # Tenths of a second; where each run looked at those before it were some ten.
    assert process_time() - start < 3


@pytest.mark.parametrize(("per_call", "at_once"), [(149, 4), (10**6, 4), (1, 3), (149, 1)])
def test_every_device_has_as_many_jobs_about_as_large(per_call, at_once):
    sizes = [len(job.numbers) for job in jobs_of(1000, per_call=per_call, at_once=at_once)]
    assert sum(sizes) == 1000
    assert max(sizes) <= per_call
    assert max(sizes) - min(sizes) <= len(sizes)
    assert len(sizes) % at_once == 0 or per_call == 1


@pytest.mark.parametrize(("blocks", "largest"), [(500, 5), (2560, 20), (25600, 40)])
def test_jobs_hold_several_calls_where_a_task_has_many(blocks, largest):
    jobs = list(jobs_of(blocks, per_call=5, calls=8, at_once=4))
    assert max(len(job.numbers) for job in jobs) == largest
    assert [number for job in jobs for number in job.numbers] == list(range(blocks))


def test_jobs_say_how_many_blocks_may_be_added_up():
    assert [job.largest for job in jobs_of(20, per_call=5, most_groups=4)] == [2, 4, 4, 8]


def test_jobs_are_made_when_workers_are_free():
    fresh()
    tracemalloc.start()
    jobs = jobs_of(10**7, existing=(0, 2))
    first = [tuple(next(jobs).numbers) for _ in range(3)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert first == [(1,), (3,), (4,)]
    assert peak < 10**5


def test_all_sizes_advance_evenly():
    results = small_results()
    expected = dict.fromkeys(results.tasks, 6 + 10)
    samplers = {key: Sampler() for key in results.tasks}
    order = [job.task_id for job in missing_jobs(results, expected, samplers)]
    for first in range(0, len(order), len(results.tasks)):
        assert set(order[first : first + len(results.tasks)]) == set(results.tasks)
