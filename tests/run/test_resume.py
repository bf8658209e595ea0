"""However often a sweep is stopped, it ends with the datasets of an undisturbed one."""

import signal
from contextlib import contextmanager
from math import ceil

import pytest
from cli_support import (
    answer,
    assert_equal_datasets,
    blocks_in,
    refusal,
    run,
    running,
    start,
    stored,
    wait_for_blocks,
)
from helpers import slow
from process_support import wait_for

from percolab import InputError, load_lattice, sweep
from percolab.analysis.stored_fits import fit_results
from percolab.kinds.grid import GridSampler
from percolab.run.stored import Interrupted
from percolab.run.targets import first_targets, next_targets
from percolab.store.results import ResultsWriter, read_results
from percolab.tasks.study import StopRule, Study

SIZES = [8, 12]
STUDY = ("sweep", "--lattice", "square", "-L", "8,12", "-p", "0.4:0.6:5", "--device", "cpu")
SAMPLES, BLOCKS = 1000, 20
#: The size of the sample that is made before all others, so that kernels are compiled.
FIRST_CALL = 4
ALONE = ("--workers", "1")


pytestmark = pytest.mark.usefixtures("one_block_calls")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "results.h5"
    answer(*STUDY, "--samples", SAMPLES, "--out", path, "--quiet")
    assert blocks_in(path) == BLOCKS
    return path


def finish(path):
    """Run the study to its end; nothing but the file and its lock may be left."""
    answer(*STUDY, "--samples", SAMPLES, "--out", path, "--quiet")
    assert {item.name for item in path.parent.iterdir()} == {path.name, f".{path.name}.lock"}


def kill_at(function, call, *, after=False):
    """Return code that kills the process at the n-th call of os.function, or right after it."""
    return f"""
import signal
real, calls = os.{function}, 0
def substitute(*arguments):
    global calls
    calls += 1
    if calls == {call} and not {after}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*arguments)
    if calls == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
os.{function} = substitute
"""


@pytest.mark.parametrize(
    ("moment", "readable"),
    [
        (kill_at("fsync", 1), False),
        slow(kill_at("replace", 1), False),
        slow(kill_at("replace", 1, after=True), True),
        slow(kill_at("fsync", 3), True),
        slow(kill_at("replace", 4), True),
        slow(kill_at("replace", 5, after=True), True),
    ],
    ids=["first write", "first rename", "first file", "third write", "fourth rename", "fifth file"],
)
def test_a_kill_while_saving_leaves_a_whole_file_or_none(tmp_path, undisturbed, moment, readable):
    path = tmp_path / "results.h5"
    # One worker has two blocks under way: no save adds more, so the fifth leaves some to do.
    process = start(*STUDY, *ALONE, "--samples", SAMPLES, "--out", path, before=moment)
    assert process.wait(120) == -signal.SIGKILL, process.communicate()
    process.communicate()
    assert path.exists() == readable
    if readable:
        assert blocks_in(path) < BLOCKS
    finish(path)
    assert_equal_datasets(path, undisturbed)


@pytest.mark.parametrize("number", [slow(signal.SIGINT), signal.SIGTERM])
def test_a_run_refuses_a_second_writer_and_stores_what_is_finished_at_ctrl_c_and_sigterm(
    tmp_path, undisturbed, number
):
    path = tmp_path / "results.h5"
    with running(*STUDY, *ALONE, "--samples", SAMPLES, "--out", path) as process:
        wait_for_blocks(path, process)
        message = refusal(*STUDY, "--samples", SAMPLES, "--out", path)
        assert message == f"{path}: another process is writing this file; wait for it to end"
        assert "blocks" in answer("status", path)
        assert process.poll() is None
        process.send_signal(number)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number
    assert output == ""
    assert errors.splitlines()[-1] == (
        f"interrupted; finished blocks are in {path}. Run the same command again to go on."
    )
    assert "Traceback" not in errors
    assert 1 <= blocks_in(path) < BLOCKS
    finish(path)
    assert_equal_datasets(path, undisturbed)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_ctrl_c_in_the_last_save_claims_no_block_that_is_not_stored(
    tmp_path, undisturbed, monkeypatch, times
):
    """Pressed once, the save is made again; pressed again, it is left, and the user is informed."""
    path = stored(tmp_path / "results.h5", read_results(undisturbed))
    pressed, real = [], ResultsWriter.save

    def save(self, results):
        if len(pressed) < times:
            pressed.append(1)
            raise KeyboardInterrupt
        real(self, results)

    monkeypatch.setattr(ResultsWriter, "save", save)
    result = run(*STUDY, *ALONE, "--samples", SAMPLES + 100, "--out", path, "--quiet")
    assert result.exit_code == 130
    message = result.stderr.splitlines()[-1]
    if times == 1:
        assert blocks_in(path) == BLOCKS + len(SIZES)
        assert message.startswith(f"interrupted; finished blocks are in {path}. ")
    else:
        assert blocks_in(path) == BLOCKS
        lost = f"blocks finished since the last save of {path} are lost"
        assert message.startswith(f"interrupted; {lost}. ")


def test_sigterm_anywhere_else_ends_with_its_own_exit_code(tmp_path):
    is_running = tmp_path / "running"
    wait = (
        "import pathlib, percolab.run.runner\n"
        "def endless(*a, **k):\n"
        f"    pathlib.Path({str(is_running)!r}).touch()\n"
        "    while True: time.sleep(0.01)\n"
        "percolab.run.runner.run_study = endless"
    )
    process = start(*STUDY, "--out", tmp_path / "results.h5", before=wait)
    wait_for(is_running.exists, process)
    is_running.unlink()
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 143
    assert (output, errors.strip()) == ("", "interrupted")
    assert not list(tmp_path.iterdir())


@contextmanager
def failing_after(calls, error):
    """Let sampling raise an error after so many calls; yield the numbers of the blocks of each."""
    made, real = [], GridSampler.sample_groups

    def sample_groups(self, numbers, stopped, largest):
        if self.task.size == FIRST_CALL:
            return real(self, numbers, stopped, largest)
        if len(made) >= calls:
            raise error
        made.append(tuple(numbers))
        return real(self, numbers, stopped, largest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GridSampler, "sample_groups", sample_groups)
        yield made


@pytest.mark.parametrize("samples", [SAMPLES, slow(10**15)])
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt, 130, "interrupted; finished blocks are in "),
        (MemoryError, 2, "percolab: error: not enough memory\n"),
    ],
)
def test_what_ends_sampling_keeps_every_finished_block(tmp_path, error, code, message, samples):
    """Blocks made since the last save are stored, too, even if Ctrl-C is pressed twice."""
    path = tmp_path / "results.h5"
    with failing_after(4, error) as made:
        result = run(*STUDY, *ALONE, "--samples", samples, "--out", path, "--quiet")
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert len(made) == 4
    assert sum(map(len, made)) == blocks_in(path)


@pytest.mark.slow
def test_the_pilot_runs_once(tmp_path, monkeypatch):
    path = tmp_path / "results.h5"
    study = ("sweep", "--lattice", "square", "-L", "4,6", "--device", "cpu", "--out", path)
    answer(*study, "--samples", 100, "--quiet")
    monkeypatch.setattr("percolab.kinds.pilots.percolation._sample_thresholds", None)
    answer(*study, "--samples", 200, "--quiet")
    assert all(item.num_samples == 200 for item in read_results(path).tasks.values())


def test_a_target_error_is_checked_on_whole_rounds_after_any_interruptions(tmp_path):
    """Blocks of a round that was cut short would reach the target; the whole round before not."""
    grid = {"L": [6, 12, 24], "p": [0.4, 0.45, 0.5, 0.55, 0.6], "device": "cpu", "workers": 1}
    rounds = [first_targets(Study(load_lattice("square"), (6, 12, 24), ("open",) * 2),
                            StopRule(target_error=0.1))]  # fmt: skip
    errors = []
    for _ in range(2):
        existing = sweep("square", **grid, samples=list(rounds[-1].values()))
        errors.append(fit_results(existing).threshold_error)
        rounds.append(next_targets(existing, StopRule(target_error=0.01), rounds[-1]))
    # The second round reaches the target, and so would some blocks of it.
    target = errors[1] * 1.001
    assert errors[0] > target
    first, second = (sum(ceil(n / 100) for n in targets.values()) for targets in rounds[:2])
    assert second > first + 1
    path, direct = tmp_path / "results.h5", tmp_path / "direct.h5"
    sweep("square", **grid, target_error=target, out=direct)
    with failing_after(second - 1, KeyboardInterrupt), pytest.raises(Interrupted):
        sweep("square", **grid, target_error=target, out=path)
    existing = read_results(path)
    assert first < blocks_in(path) == second - 1
    assert sum(item.num_samples for item in existing.tasks.values()) == 100 * (second - 1)
    sweep("square", **grid, target_error=target, out=path)
    assert_equal_datasets(path, direct)
    assert blocks_in(direct) == second
    # One entry a round: docs/hdf5-format.md says so.
    assert [len(read_results(file).runs) for file in (direct, path)] == [2, 3]


def test_short_rounds_of_a_target_error_do_not_each_save(tmp_path, monkeypatch):
    path, saves, real = tmp_path / "results.h5", [], ResultsWriter.save
    monkeypatch.setattr(
        ResultsWriter, "save", lambda self, results: (saves.append(1), real(self, results))
    )
    monkeypatch.setattr("percolab.run.stored._SAVE_EVERY", 1e9)
    results = sweep("square", L=[6, 12, 24], target_error=0.01, device="cpu", workers=1, out=path)
    assert len(results.runs) > 3
    # One when the p are placed, and one at the end.
    assert len(saves) == 2
    assert blocks_in(path) == sum(len(item.blocks) for item in results.tasks.values())


def test_samples_limit_a_target_error(tmp_path):
    path = tmp_path / "results.h5"
    target = ("--target-error", "1e-9", "--samples", 300)
    answer(*STUDY, *target, "--out", path, "--quiet")
    assert all(item.num_samples == 300 for item in read_results(path).tasks.values())


def test_a_merged_file_continues_where_its_own_seed_stopped(tmp_path, undisturbed):
    other, both = tmp_path / "other.h5", tmp_path / "both.h5"
    answer(*STUDY, "--samples", 100, "--seed", 2, "--out", other, "--quiet")
    answer("merge", undisturbed, other, "--out", both)
    answer(*STUDY, "--samples", SAMPLES + 100, "--out", both, "--quiet")
    by_seed = {}
    for item in read_results(both).tasks.values():
        by_seed.setdefault(item.task.seed, set()).add(item.num_samples)
    assert by_seed == {1: {SAMPLES + 100}, 2: {100}}


def test_a_save_that_fails_at_the_end_of_a_run_is_reported(tmp_path, undisturbed, monkeypatch):
    path = stored(tmp_path / "results.h5", read_results(undisturbed))
    before = path.read_bytes()

    def fail(self, results):
        raise InputError(f"{self.path}: cannot be written: No space left on device")

    monkeypatch.setattr(ResultsWriter, "save", fail)
    message = refusal(*STUDY, "--samples", SAMPLES + 100, "--out", path, "--quiet")
    assert message == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == before
