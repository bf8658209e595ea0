"""A block of a chain of spins depends on seed, p and number alone; files keep it bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, assert_equal_datasets, refusal, stored
from helpers import slow
from spin_support import SPIN_SWEEP

from percolab.api import sweep
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kinds.chains import KIND
from percolab.lattices.lattice import load_lattice
from percolab.measure.columns import MEASURES
from percolab.measure.spins import LAGS, SERIES
from percolab.run.stored import Interrupted
from percolab.spins.chain_cpu import CpuChain
from percolab.store.merging import merge
from percolab.store.results import read_results
from percolab.tasks.blocks import squared_names
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.tasks.study_file import make_request

CPU = Device("cpu")
TORUS = ("periodic", "periodic")
SWEEP = SPIN_SWEEP | {"model": "potts:q=3"}
EVERY = ("sizes", "series")

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


def task_of(p=(0.5, 0.6), **changes):
    given = {
        "structure": load_lattice("square"), "size": 9, "boundary": TORUS, "p": p,
        "model": "potts:q=3", "burn_in": 10, "block_size": 15, "seed": 5, "measure": EVERY,
    }  # fmt: skip
    return Task(**(given | changes))


def assert_same_block(one, other, points=None):
    """Assert that two blocks are equal, or at these points of the second."""
    points = list(range(len(one.sums))) if points is None else points
    assert one.number == other.number
    np.testing.assert_array_equal(one.sums, other.sums[points])
    np.testing.assert_array_equal(one.squares, other.squares[points])
    assert one.extras.keys() == other.extras.keys()
    for name, found in one.extras.items():
        np.testing.assert_array_equal(found, other.extras[name][points], err_msg=name)


def blocks_of(task, numbers, **given):
    return make_sampler(task, device=CPU, **given).sample(numbers)


def test_blocks_depend_neither_on_the_order_nor_on_other_requests():
    whole = blocks_of(task_of(), [0, 1, 2, 3])
    for block in blocks_of(task_of(), [3, 1]):
        assert_same_block(block, whole[block.number])
    sampler = make_sampler(task_of(), device=CPU)
    for number in (2, 0):
        assert_same_block(sampler.sample([number])[0], whole[number])
    for n, p in enumerate((0.5, 0.6)):
        for block in blocks_of(task_of((p,)), [0, 3]):
            assert_same_block(block, whole[block.number], [n])
    (block,) = blocks_of(task_of((0.4, 0.5, 0.55, 0.6)), [1])
    assert_same_block(whole[1], block, [1, 3])


@pytest.mark.parametrize("labeler", [None, slow("reference"), "four_step", "label_equivalence"])
def test_blocks_are_those_of_every_labeler_also_in_pieces(labeler, monkeypatch):
    whole = blocks_of(task_of(), [0, 1])
    if labeler is None:
        monkeypatch.setattr("percolab.kinds.workplace.SITES_PER_CALL", 4 * 81)
    for one, other in zip(whole, blocks_of(task_of(), [0, 1], labeler=labeler), strict=True):
        assert_same_block(one, other)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 6},
        {"size": 10},
        {"p": (0.5000000001, 0.6)},
        {"update": "wolff"},
        {"model": "potts:q=4"},
        {"rng": "philox"},
        {"purpose": "pilot"},
    ],
    ids=str,
)
def test_any_other_setting_gives_other_chains(changes):
    (one,), (other,) = blocks_of(task_of(), [1]), blocks_of(task_of(**changes), [1])
    assert not np.array_equal(one.extras["series"][0], other.extras["series"][0])
    assert task_of().id != task_of(**changes).id


def test_a_longer_burn_in_is_the_same_chain_from_later_on():
    (early,), (late,) = blocks_of(task_of(), [1]), blocks_of(task_of(burn_in=13), [1])
    one, other = (block.extras["series"].reshape(2, len(SERIES), 15) for block in (early, late))
    np.testing.assert_array_equal(one[..., 3:], other[..., :-3])
    assert task_of().id != task_of(burn_in=13).id


def test_even_chains_start_ordered_and_odd_ones_at_random():
    task = task_of((0.0,), burn_in=0, block_size=1)
    # No bond is open, and the spins of the first sweep are those of the start.
    names = [column.name for column in task.observables]
    found = [block.sums[0, names.index("satisfied")] for block in blocks_of(task, range(40))]
    assert found[::2] == [162] * 20
    assert abs(np.mean(found[1::2]) / 162 - 1 / 3) < 4 * (2 / 9 / (20 * 162)) ** 0.5


def test_sums_of_a_block_are_those_of_its_sweeps():
    task = task_of(block_size=90)
    (block,) = blocks_of(task, [1])
    series = block.extras["series"].reshape(2, len(SERIES), 90).astype(float)
    names = [column.name for column in task.observables]
    lagged = block.extras["lagged"].reshape(2, len(SERIES), 2, LAGS + 1)
    own = [names.index(name) for name in ("satisfied", "state_squares", "sum_squares")]
    np.testing.assert_array_equal(block.sums[:, own], series.sum(axis=2))
    squared = squared_names(task.observables)
    places = [squared.index(name) for name in ("satisfied", "state_squares", "sum_squares")]
    np.testing.assert_allclose(block.squares[:, places], (series**2).sum(axis=2), rtol=1e-12)
    for lag in (0, 1, 7, LAGS):
        early, late = series[..., : 90 - lag], series[..., lag:]
        np.testing.assert_allclose(lagged[:, :, 0, lag], (early * late).sum(axis=2), rtol=1e-12)
        np.testing.assert_allclose(lagged[:, :, 1, lag], (early + late).sum(axis=2), rtol=1e-12)


def test_chains_shorter_than_the_lags_have_zeros():
    (block,) = blocks_of(task_of(block_size=5), [0])
    lagged = block.extras["lagged"].reshape(2, len(SERIES), 2, LAGS + 1)
    assert (lagged[..., :5] > 0).all()
    assert not lagged[..., 5:].any()


def run_to(path, **changes):
    return sweep("square", out=path, **(SWEEP | changes))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The file of a run in one go, by one worker."""
    path = tmp_path_factory.mktemp("undisturbed") / "results.h5"
    run_to(path, measure=EVERY)
    return path


def test_a_run_stopped_in_the_middle_of_a_chain_ends_the_same(undisturbed, monkeypatch, tmp_path):
    advance, calls = CpuChain.advance, []

    def stopping(self, sweeps):
        calls.append(sweeps)
        if len(calls) == 60:
            raise KeyboardInterrupt
        return advance(self, sweeps)

    monkeypatch.setattr("percolab.kinds.workplace.SITES_PER_CALL", 4 * 81)
    monkeypatch.setattr(CpuChain, "advance", stopping)
    path = tmp_path / "twice.h5"
    with pytest.raises(Interrupted):
        run_to(path, measure=EVERY)
    run_to(path, measure=EVERY)
    assert_equal_datasets(path, undisturbed)


def test_more_p_and_sizes_add_the_blocks_of_a_run_that_had_them_at_once(tmp_path, undisturbed):
    path = tmp_path / "grown.h5"
    run_to(path, measure=EVERY, L=[9], p=[0.6])
    run_to(path, measure=EVERY)
    whole = {item.task.size: item for item in read_results(undisturbed).tasks.values()}
    for item in read_results(path).tasks.values():
        places = [whole[item.task.size].task.p.index(p) for p in item.task.p]
        assert len(item.blocks) == 8
        for number, block in item.blocks.items():
            assert_same_block(block, whole[item.task.size].blocks[number], places)


@pytest.mark.parametrize("update", ["sw", "wolff", "few:3,flip=0.25"])
@pytest.mark.parametrize("burn_in", [0, 10, "auto"])
def test_a_file_keeps_chains_and_what_they_were_made_with(tmp_path, update, burn_in):
    # Measured sweeps come before the longest burn-in that the pilot may find.
    settings = {"update": update, "burn_in": burn_in, "sweeps": 1200, "samples": 1200 * 2}
    made = sweep("square", **(SWEEP | settings | {"L": [4], "measure": EVERY}))
    kept = read_results(stored(tmp_path / "kept.h5", made))
    assert kept.study == made.study
    ((key, item),) = made.tasks.items()
    other = kept.tasks[key]
    assert (other.task.update, other.task.burn_in) == (update, item.task.burn_in)
    assert other.task.burn_in + other.task.block_size == 1200
    assert other.task.burn_in == burn_in or (burn_in == "auto" and other.task.burn_in >= 20)
    assert [column.name for column in other.columns] == [column.name for column in item.columns]
    for number, block in item.blocks.items():
        assert_same_block(block, other.blocks[number])


@pytest.mark.parametrize("word", sorted({*MEASURES} - {*KIND.refused_measures, "openings"}))
def test_additional_measurements_change_no_other_number(word):
    plain, more = (
        make_sampler(task_of(measure=measure), device=CPU).sample([1])[0]
        for measure in ((), (word,))
    )
    np.testing.assert_array_equal(plain.sums, more.sums)
    np.testing.assert_array_equal(plain.extras["lagged"], more.extras["lagged"])


COMMAND = ("sweep", "--lattice", "square", "--boundary", "periodic", "-L", "6", "-p", "0.5,0.6",
           "--model", "potts:q=3", "--burn-in", "10", "--sweeps", "25", "--samples", "60",
           "--seed", "5", "--device", "cpu")  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--update", "wolff"), "update is sw there, wolff here"),
        (("--burn-in", "12"), "burn_in is 10 there, 12 here"),
        (("--burn-in", "auto"), "burn_in is 10 there, auto here"),
        (("--sweeps", "30"), "sweeps is 25 there, 30 here"),
        (("--model", "potts:q=4"), "model is potts:q=3 there, potts:q=4 here"),
        (("--measure", "series"), "measure is [] there, ['series'] here"),
        (("--rng", "philox"), "rng is xorwow there, philox here"),
    ],
    ids=str,
)
def test_a_file_of_other_chains_is_not_continued(options, message):
    answer(*COMMAND)
    before = read_results("results.h5").study
    assert refusal(*COMMAND, *options).startswith(f"results.h5: holds another study ({message});")
    assert read_results("results.h5").study == before


def test_a_file_is_continued_without_its_sweeps_and_keeps_them():
    answer(*COMMAND)
    shorter = [word for word in COMMAND if word not in ("--sweeps", "25")]
    answer(*shorter, "--samples", "90")
    results = read_results("results.h5")
    assert results.study.sweeps == 25
    (item,) = results.tasks.values()
    assert (item.task.block_size, len(item.blocks)) == (15, 6)


def parts(**changes):
    settings = SWEEP | {"L": [6], "samples": 30}
    return sweep("square", **settings), sweep("square", **(settings | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"update": "wolff"}, "b: has update wolff, not sw like the others"),
        ({"burn_in": 12}, "b: has burn_in 12, not 10 like the others"),
        ({"burn_in": "auto", "sweeps": 300}, "b: has burn_in auto, not 10 like the others"),
        ({"model": "potts:q=2"}, "b: has model potts:q=2, not potts:q=3 like the others"),
    ],
    ids=str,
)
def test_files_of_other_chains_are_not_merged(changes, message):
    one, other = parts(seed=6, **changes)
    with pytest.raises(InputError) as found:
        merge([("a", one), ("b", other)])
    assert str(found.value) == message


def test_chains_of_another_length_are_still_the_same_chains():
    """Chain 1 of one file is chain 1 of the other, though their sweeps have other numbers."""
    one, other = parts(sweeps=100, samples=180)
    for results, number in ((one, 1), (other, 1)):
        for item in results.tasks.values():
            item.blocks = {number: item.blocks[number]}
    with pytest.raises(InputError, match="a both hold chains 1 to 1 of L = 6, seed 5"):
        merge([("a", one), ("b", other)])


def test_the_same_temperature_is_the_same_task_however_it_is_given():
    ways = [{"K": 0.44}, {"beta": 0.44}, {"T": 1 / 0.44}, {"beta": 0.88, "model": "potts:q=2"}]
    found = [make_request("square", **({"model": "ising"} | way)).study.p for way in ways]
    assert len(set(found)) == 1
    assert found[0][0] == pytest.approx(1 - np.exp(-0.88), abs=1e-13)
    assert replace(task_of(), p=found[0]).p == found[0]


def test_a_file_has_series_as_integers(tmp_path):
    results = sweep("square", **(SWEEP | {"L": [6], "measure": "series"}))
    (item,) = read_results(stored(tmp_path / "one.h5", results)).tasks.values()
    assert item.extra("series").dtype == np.int64
    assert item.extra("series").shape == (8, 2, 3 * 15)
