"""Chains of spins, many or one long one: blocks depend on seed, p and number; files keep them."""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cli_support import (
    answer,
    assert_equal_datasets,
    changed,
    refusal,
    refusal_after,
    replace_dataset,
    stored,
    without_runs,
)
from helpers import slow
from spin_support import SPIN_SWEEP

from percolab import InputError, load_lattice, sweep
from percolab.analysis.spin_fit import few_chains, short_blocks, start_differences
from percolab.bonds.words import GENERATORS
from percolab.kernels.device import Device
from percolab.kinds.chains import KIND
from percolab.measure.columns import MEASURES
from percolab.measure.spins import LAGS, SERIES
from percolab.run.stored import Interrupted
from percolab.spins.chain_cpu import CpuChain
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
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


@pytest.mark.parametrize(
    ("update", "burn_in"), [("sw", "auto"), ("wolff", 0), ("few:3,flip=0.25", 10)]
)
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
)
def test_a_file_of_other_chains_is_not_continued(options, message):
    answer(*COMMAND)
    before = read_results("results.h5").study
    assert refusal(*changed(COMMAND, *options)).startswith(
        f"results.h5: holds another study ({message});"
    )
    assert read_results("results.h5").study == before


def test_a_file_is_continued_without_its_sweeps_and_keeps_them():
    answer(*COMMAND)
    shorter = [word for word in COMMAND if word not in ("--sweeps", "25")]
    answer(*changed(shorter, "--samples", "90"))
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


BURN_IN, SWEEPS, BLOCKS = 10, 15, 6
LONG = SWEEP | {
    "samples": SWEEPS * BLOCKS,
    "chains": 1,
    "measure": ["sizes", "series", "correlation"],
}


def long_task(**changes):
    return task_of(**{"measure": ("series",), "chains": 1} | changes)


@cache
def undivided(update="sw"):
    """Return results that were made in one go; only to be read."""
    return sweep("square", update=update, **LONG)


def series_of(blocks):
    """Return every sweep of blocks, (m, series, sweeps in all)."""
    parts = [block.extras["series"].reshape(2, len(SERIES), -1) for block in blocks]
    return np.concatenate(parts, axis=2)


@pytest.mark.parametrize("update", ["sw", "wolff", "few:3,flip=0.25"])
def test_its_blocks_are_the_parts_of_one_chain(update):
    """Judged by an ordinary task, whose block 0 is a chain of as many sweeps."""
    sampler = make_sampler(long_task(update=update), device=CPU)
    blocks = sampler.sample(range(BLOCKS))
    whole = long_task(update=update, chains=0, block_size=SWEEPS * BLOCKS)
    (one,) = make_sampler(whole, device=CPU).sample([0])
    np.testing.assert_array_equal(series_of(blocks), series_of([one]))
    np.testing.assert_array_equal(sum(block.sums for block in blocks), one.sums)
    (first,) = make_sampler(long_task(update=update, chains=0), device=CPU).sample([0])
    for name in ("series", "lagged"):
        np.testing.assert_array_equal(blocks[0].extras[name], first.extras[name])


@pytest.mark.slow
def test_more_p_are_further_chains(tmp_path):
    path = tmp_path / "grown.h5"
    sweep("square", **(LONG | {"out": path, "p": [0.6], "samples": SWEEPS * 2}))
    sweep("square", out=path, **LONG)
    whole = {item.task.size: item for item in undivided().tasks.values()}
    for item in read_results(path).tasks.values():
        places = [whole[item.task.size].task.p.index(p) for p in item.task.p]
        np.testing.assert_array_equal(item.sums(), whole[item.task.size].sums()[:, places])
        np.testing.assert_array_equal(item.end.planes, whole[item.task.size].end.planes[places])


def test_the_file_keeps_the_spins_and_sweeps_after_the_last_block(tmp_path):
    kept = read_results(stored(tmp_path / "kept.h5", undivided()))
    assert kept.study == undivided().study
    for item in kept.tasks.values():
        task = item.task
        topology = task.structure.topology(task.shape, task.boundary)
        rule = Update.parse(task.update).rule(3)
        chains = new_chains("raster", "cpu", topology, rule)
        assert item.end.sweeps == BURN_IN + BLOCKS * SWEEPS
        for n, p in enumerate(task.p):
            chains.begin(GENERATORS[task.rng], [task.chain(0, p)], [False])
            chains.advance(item.end.sweeps)
            np.testing.assert_array_equal(item.end.planes[n], chains.copy_planes()[0])


@pytest.mark.parametrize("update", ["sw", "wolff"])
@pytest.mark.parametrize("chains", [0, 1])
def test_every_so_many_sweeps_are_those_of_the_chain_in_which_all_are_measured(update, chains):
    given = {"update": update, "chains": chains, "measure": ("series", "correlation")}
    blocks = make_sampler(long_task(every=4, **given), device=CPU).sample([0, 1])
    whole = make_sampler(long_task(block_size=4 * SWEEPS, **given), device=CPU).sample([0, 1])
    for block, one in zip(blocks, whole, strict=True):
        np.testing.assert_array_equal(series_of([block]), series_of([one])[..., ::4])
        assert (block.extras["structure_factor"] < one.extras["structure_factor"])[:, :2].all()
    if chains:
        assert blocks[1].end.sweeps == BURN_IN + 2 * 4 * SWEEPS == whole[1].end.sweeps
        np.testing.assert_array_equal(blocks[1].end.planes, whole[1].end.planes)
    assert long_task(every=4, **given).id != long_task(**given).id
    assert long_task(every=4, **given).stream_seed == long_task(**given).stream_seed


@pytest.mark.slow
def test_a_file_with_unmeasured_sweeps_continues(tmp_path):
    given = LONG | {"every": 4, "sweeps": BURN_IN + 4 * SWEEPS + 3}
    path, whole = tmp_path / "grown.h5", sweep("square", **given)
    assert {item.task.block_size for item in whole.tasks.values()} == {SWEEPS}
    sweep("square", out=path, **(given | {"samples": SWEEPS}))
    with pytest.raises(InputError, match=r"\(every is 4 there, 1 here\)"):
        sweep("square", out=path, **(given | {"every": 1}))
    with pytest.raises(InputError, match=r"\(sweeps is 70 there, 74 here\)"):
        sweep("square", out=path, **(given | {"sweeps": BURN_IN + 4 * SWEEPS + 4}))
    sweep("square", out=path, **given)
    assert without_runs(read_results(path)) == without_runs(whole)
    assert "every 4 updates measured" in answer("status", str(path))


SHORT = {"burn_in": 10, "sweeps": 25, "L": [4]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": 0} | SHORT, "every = 0, but it must be an integer from 1 to 10^9"),
        ({"every": 20} | SHORT, "sweeps = 25: after a burn-in of 10 too few are left to measure"),
        ({"every": 2, "model": "bond"}, "every: bond percolation has no spins"),
        ({"chains": 4}, "chains = 4, but it can only be 1 (one long chain)"),
        ({"chains": -1}, "chains = -1, but it can only be 1"),
        ({"chains": 1, "model": "bond"}, "chains: bond percolation has no spins"),
    ],
)
def test_other_numbers_and_percolation_are_refused(settings, message):
    with pytest.raises(InputError) as found:
        make_request("square", **({"model": "ising"} | settings))
    assert str(found.value).startswith(message)


def test_blocks_out_of_their_order_are_not_made():
    sampler = make_sampler(long_task(), device=CPU)
    with pytest.raises(ValueError, match="block 1 of one chain is not the one that comes next"):
        sampler.sample([1])


def test_ids_of_tasks_without_it_are_what_they_were():
    # Hashes of the version before there was such a setting.
    known = {"potts:q=3": "585845455ff00963", "ising": "8911e8b573a17d88"}
    for model, key in known.items():
        assert long_task(chains=0, model=model).id == key
        assert long_task(model=model).id != key
        assert long_task(model=model).stream_seed == long_task(chains=0, model=model).stream_seed


def test_the_command_line_and_a_study_file_take_it(tmp_path):
    words = ("sweep", "--lattice", "square", "--boundary", "periodic", "-L", "6", "-p", "0.5",
             "--model", "ising", "--burn-in", "10", "--sweeps", "25", "--samples", "45",
             "--device", "cpu")  # fmt: skip
    assert "chains = 3, but it can only be 1" in refusal(*words, "--chains", "3")
    answer(*words, "--chains", "1")
    assert "one long chain" in answer("status", "results.h5")
    assert refusal(*words) == (
        "results.h5: holds another study (chains is 1 there, 0 here); choose another --out"
    )
    (tmp_path / "study.toml").write_text(
        'lattice = "square"\nboundary = "periodic"\nL = [6]\np = [0.5]\nmodel = "ising"\n'
        "burn_in = 10\nsweeps = 25\nsamples = 45\nchains = 1\n"
    )
    answer("sweep", str(tmp_path / "study.toml"), "--out", "file.h5", "--device", "cpu")
    assert_equal_datasets("file.h5", "results.h5")


def shorter(count):
    """Return the undivided results up to so many blocks, as their run would have left them."""
    return sweep("square", **(LONG | {"samples": SWEEPS * count}))


@pytest.mark.slow
@pytest.mark.parametrize("order", [(2, 5), slow((5, 2)), slow((2, 2)), (3, 6, 4)])
def test_merging_takes_the_longest_part_of_a_chain(tmp_path, order):
    merged = merge([(str(n), shorter(count)) for n, count in enumerate(order)])
    whole = shorter(max(order))
    assert without_runs(merged) == without_runs(whole)
    # A file that says more was made than there is could not be written, nor read.
    path = stored(tmp_path / "merged.h5", merged)
    sweep("square", out=path, **LONG)
    assert without_runs(read_results(path)) == without_runs(undivided())


def test_merging_refuses_what_is_no_part_of_the_same_chain():
    def merging(change):
        other = deepcopy(undivided())
        change(next(iter(other.tasks.values())))
        with pytest.raises(InputError) as found:
            merge([("a", undivided()), ("b", other)])
        return str(found.value)

    def lose(item):
        del item.blocks[2]

    def falsify(item):
        item.blocks[3].sums[0, 0] += 1

    size = next(iter(undivided().tasks.values())).task.size
    assert merging(lose) == (
        f"b: block 2 of the chain of L = {size} is missing; without it later blocks "
        "cannot be joined"
    )
    assert merging(falsify) == (
        f"b and a differ in block 3 of the same chain of L = {size}, seed 5: one of them is wrong"
    )
    many = sweep("square", **(LONG | {"chains": 0, "seed": 6, "samples": SWEEPS}))
    with pytest.raises(InputError, match="b: has chains 0, not 1 like the others"):
        merge([("a", undivided()), ("b", many)])
    other = sweep("square", **(LONG | {"sweeps": BURN_IN + 20, "samples": 40}))
    with pytest.raises(InputError, match="a both hold chains 0 to 0 of L = 6, seed 5"):
        merge([("a", undivided()), ("b", other)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g.attrs.modify("sweeps", g.attrs["sweeps"] - 1), "does not fit blocks 0 to 5"),
        (
            lambda g: replace_dataset(g, "spins", lambda x: x[...] | 0xFFFFFFFF),
            "not one of 3 states",
        ),
        (lambda g: g["block"].__setitem__(slice(1, 6), range(2, 7)), "does not fit blocks 0 to 5"),
        (lambda g: g.__delitem__("spins"), "dataset spins is missing"),
        (lambda g: replace_dataset(g, "spins", lambda x: x[...] ^ 1), "not match its checksum"),
    ],
    ids=["sweeps", "states", "blocks", "none", "a changed spin"],
)
def test_a_damaged_end_is_refused(tmp_path, change, message):
    path = stored(tmp_path / "damaged.h5", undivided())
    assert message in refusal_after(path, change, sealed="checksum" not in message)


def test_pilots_are_of_chains_of_their_own():
    """The burn-in is that of a study of many chains."""
    found = []
    for chains in (0, 1):
        given = {"L": [4], "burn_in": "auto", "sweeps": 400, "samples": 1, "chains": chains}
        (item,) = sweep("square", **(LONG | given)).tasks.values()
        found.append(item.task.burn_in)
    assert found[0] == found[1] >= 20


def test_blocks_are_no_shorter_than_the_burn_in():
    study = make_request("square", model="ising", L=[9], p=[0.5], chains=1).study
    for samples, burn_in, expected in ((64_000, 300, 1000), (64_000, 2000, 2000), (100, 0, 20)):
        task = study.with_burn_in(study.tasks[9], burn_in)
        task = study.kind.choose_blocks(study, task, samples)
        assert task.block_size == expected
        assert task.chains == 1


def test_few_chains_are_reported_with_what_their_errors_miss():
    for chains, words in (
        (1, "gives no errors"), (2, "2 chains: 50 % of the means"), (4, "4 chains: 39 %")
    ):  # fmt: skip
        given = {"chains": 0, "sweeps": 20, "burn_in": 5, "samples": 15 * chains, "L": [4]}
        note = few_chains(list(sweep("square", **(LONG | given)).tasks.values()))
        assert note is not None
        assert words in note
        assert note.endswith("(--sweeps)")
    given |= {"samples": 15 * 10}
    (enough,) = sweep("square", **(LONG | given)).tasks.values()
    assert few_chains([enough, replace(enough, blocks={})]) is None
    given |= {"chains": 1, "samples": 15 * 4}
    note = few_chains(list(sweep("square", **(LONG | given)).tasks.values()))
    assert note is not None
    assert "4 blocks: 39 % of the means" in note


def test_short_blocks_are_reported_and_a_single_start_is_not_compared():
    items = list(undivided().tasks.values())
    message = short_blocks(items)
    assert message is not None
    assert "they have 15 measured sweeps," in message
    assert message.endswith("so errors are too small")
    assert short_blocks(list(sweep("square", **(LONG | {"chains": 0})).tasks.values())) is None
    cold = sweep("square", **(LONG | {"burn_in": 0, "sweeps": 3, "samples": 12, "p": [0.01]}))
    assert start_differences(list(cold.tasks.values())) == []
    long = {"p": [0.1], "sweeps": BURN_IN + 400, "samples": 4000, "measure": ()}
    assert short_blocks(list(sweep("square", **(LONG | long)).tasks.values())) is None
