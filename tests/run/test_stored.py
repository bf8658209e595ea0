"""Whatever stops a run, the blocks that are finished by then are kept and saved."""

import os
import signal
import tracemalloc
from concurrent.futures import Executor, Future

import numpy as np
import pytest
from cli_support import small_results

from percolab.run.measured import WorkerPool, missing_jobs
from percolab.run.request import Observer
from percolab.run.stored import Interrupted, Saver, with_blocks
from percolab.store.interrupts import Terminated, handle_signals
from percolab.store.results import StoredResults
from percolab.tasks.blocks import Block

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
    """Return blocks of zeros by their numbers."""
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
    """Has no device."""

    def record(self):
        return {"seconds": 0.0, "blocks": {}}


class Writer:
    """Notes the blocks of every save."""

    def __init__(self):
        self.saved = []

    def save(self, results):
        ((_, item),) = results.tasks.items()
        assert sum(results.runs[-1]["blocks"].values()) == len(item.blocks)
        self.saved.append(set(item.blocks))


class Told(Observer):
    """Notes the blocks that are reported."""

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


def run(sampler, **options):
    """Run jobs two at a time; return the blocks, those of every save, and what was raised."""
    results, key = fresh()
    writer, message, raised = Writer(), Told(), None
    saver = Saver(writer, **options)
    try:
        found = with_blocks(
            results, {key: WANTED}, {}, pool_of({key: sampler}), Engine(), saver, message
        )
        assert found.tasks[key].blocks.keys() == message.blocks
        assert len(found.runs) == 1
    except (Interrupted, MemoryError) as error:
        raised = error
    assert (results.tasks[key].blocks, results.runs) == ({}, []), "what was given has changed"
    return message.blocks, writer.saved, raised


def test_all_blocks_are_made_once_and_saved():
    sampler = Sampler()
    blocks, saved, raised = run(sampler)
    assert sampler.asked == list(range(WANTED))
    assert blocks == saved[-1] == set(range(WANTED))
    assert raised is None


def test_of_many_short_runs_only_what_stops_one_is_saved():
    blocks, saved, raised = run(Sampler(), every_run=False)
    assert (len(blocks), saved, raised) == (WANTED, [], None)
    blocks, saved, raised = run(Sampler(MemoryError(), fails=(3,)), every_run=False)
    assert saved == [blocks]


def test_results_that_have_all_blocks_are_returned_as_they_are():
    results, key = fresh()
    results.tasks[key].blocks = empty_blocks(range(WANTED))
    expected = {key: WANTED}
    assert (
        with_blocks(results, expected, {}, pool_of({}), Engine(), Saver(None), Observer())
        is results
    )


def test_two_errors_at_once_cost_no_finished_block():
    blocks, saved, raised = run(Sampler(MemoryError(), fails=(1, 2)))
    assert isinstance(raised, MemoryError)
    assert blocks == saved[-1] == {0, 3}


@pytest.mark.parametrize(
    ("error", "fails", "code"),
    [(KeyboardInterrupt(), (0, 1, 2), 130), (Terminated(), (3,), 143)],
    ids=["ctrl-c pressed twice", "sigterm"],
)
def test_what_interrupts_saves_and_has_its_exit_code(error, fails, code):
    blocks, saved, raised = run(Sampler(error, fails=fails))
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
        blocks, saved, raised = run(Signalled())
    assert isinstance(raised, Interrupted)
    assert raised.exit_code == code
    assert {3} < blocks == saved[-1] < set(range(WANTED))
    assert capsys.readouterr().err == ""


def test_without_a_file_a_stop_says_that_nothing_is_saved():
    results, key = fresh()
    pool = pool_of({key: Sampler(KeyboardInterrupt(), fails=(3,))})
    with pytest.raises(Interrupted, match="interrupted, finished blocks not saved"):
        with_blocks(results, {key: WANTED}, {}, pool, Engine(), Saver(None), Told())


@pytest.mark.parametrize("step", [1, 3, 100])
def test_only_missing_blocks_are_given_out_each_once(step):
    results, key = fresh()
    results.tasks[key].blocks = empty_blocks((0, 4, 5))
    sampler = Sampler()
    sampler.blocks_per_call = step
    jobs = list(missing_jobs(results, {key: 8}, {key: sampler}))
    assert [number for job in jobs for number in job.numbers] == [1, 2, 3, 6, 7]
    assert max(len(job.numbers) for job in jobs) <= step


@pytest.mark.parametrize(("per_call", "at_once"), [(149, 4), (10**6, 4), (1, 3), (149, 1)])
def test_every_device_has_as_many_jobs_about_as_large(per_call, at_once):
    results, key = fresh()
    sampler = Sampler()
    sampler.blocks_per_call = per_call
    jobs = list(missing_jobs(results, {key: 1000}, {key: sampler}, at_once=at_once))
    sizes = [len(job.numbers) for job in jobs]
    assert sum(sizes) == 1000
    assert max(sizes) <= per_call
    assert max(sizes) - min(sizes) <= len(sizes)
    assert len(sizes) % at_once == 0 or per_call == 1


@pytest.mark.parametrize(("blocks", "largest"), [(500, 5), (2560, 20), (25600, 40)])
def test_jobs_hold_several_calls_where_a_task_has_many(blocks, largest):
    results, key = fresh()
    sampler = Sampler()
    sampler.blocks_per_call, sampler.calls_per_job = 5, 8
    jobs = list(missing_jobs(results, {key: blocks}, {key: sampler}, at_once=4))
    assert max(len(job.numbers) for job in jobs) == largest
    assert [number for job in jobs for number in job.numbers] == list(range(blocks))


def test_jobs_say_how_many_blocks_may_be_added_up():
    results, key = fresh()
    object.__setattr__(results.tasks[key].task, "most_groups", 4)
    sampler = Sampler()
    sampler.blocks_per_call = 5
    jobs = missing_jobs(results, {key: 20}, {key: sampler})
    assert [job.largest for job in jobs] == [1, 2, 4, 4]


def test_jobs_are_made_when_workers_are_free():
    results, key = fresh()
    results.tasks[key].blocks = empty_blocks((0, 2))
    tracemalloc.start()
    jobs = missing_jobs(results, {key: 10**7}, {key: Sampler()})
    first = [next(jobs).numbers for _ in range(3)]
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
