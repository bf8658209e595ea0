"""One long chain (``chains`` 1): its blocks are one chain's, wherever it was stopped."""

from copy import deepcopy
from functools import cache

import h5py
import numpy as np
import pytest
from cli_support import (
    answer,
    assert_equal_datasets,
    refusal,
    sealed_again,
    stored,
    without_runs,
)
from helpers import slow

from percolab.analysis.spin_fit import short_blocks, start_differences
from percolab.api import sweep
from percolab.bonds.words import GENERATORS
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.measure.spins import SERIES
from percolab.spins.chains import new_chains
from percolab.spins.update import Update
from percolab.store.merging import merge
from percolab.store.results import read_results
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task
from percolab.tasks.study_file import make_request

CPU = Device("cpu")
BURN_IN, SWEEPS, BLOCKS = 10, 15, 6
SWEEP = {
    "L": [6, 9],
    "p": [0.5, 0.6],
    "model": "potts:q=3",
    "boundary": "periodic",
    "burn_in": BURN_IN,
    "sweeps": BURN_IN + SWEEPS,
    "samples": SWEEPS * BLOCKS,
    "chains": 1,
    "measure": ["sizes", "series", "correlation"],
    "seed": 5,
    "device": "cpu",
    "workers": 1,
}

pytestmark = pytest.mark.usefixtures("own_directory", "without_gpu")


def task_of(**changes):
    given = {
        "structure": load_lattice("square"), "size": 9, "boundary": ("periodic",) * 2,
        "p": (0.5, 0.6), "model": "potts:q=3", "burn_in": BURN_IN, "block_size": SWEEPS, "seed": 5,
        "measure": ("series",), "chains": 1,
    }  # fmt: skip
    return Task(**(given | changes))


@cache
def undivided(update="sw"):
    """Return results that were made in one go; only to be read."""
    return sweep("square", update=update, **SWEEP)


def series_of(blocks):
    """Return every sweep of blocks, (m, series, sweeps in all)."""
    parts = [block.extras["series"].reshape(2, len(SERIES), -1) for block in blocks]
    return np.concatenate(parts, axis=2)


@pytest.mark.parametrize("update", ["sw", "wolff", "few:3,flip=0.25"])
def test_its_blocks_are_the_parts_of_one_chain(update):
    """Judged by an ordinary task, whose block 0 is a chain of as many sweeps."""
    sampler = make_sampler(task_of(update=update), device=CPU)
    blocks = sampler.sample(range(BLOCKS))
    whole = task_of(update=update, chains=0, block_size=SWEEPS * BLOCKS)
    (one,) = make_sampler(whole, device=CPU).sample([0])
    np.testing.assert_array_equal(series_of(blocks), series_of([one]))
    np.testing.assert_array_equal(sum(block.sums for block in blocks), one.sums)
    (first,) = make_sampler(task_of(update=update, chains=0), device=CPU).sample([0])
    for name in ("series", "lagged"):
        np.testing.assert_array_equal(blocks[0].extras[name], first.extras[name])


@pytest.mark.parametrize("update", [slow("sw"), "wolff"])
@pytest.mark.parametrize("cut", [3, *(slow(n) for n in range(1, BLOCKS) if n != 3)])
def test_a_stopped_chain_continues_at_every_block_as_if_undisturbed(tmp_path, cut, update):
    path = tmp_path / "twice.h5"
    given = {"out": path, "update": update}
    sweep("square", **(SWEEP | given | {"samples": SWEEPS * cut}))
    assert {len(item.blocks) for item in read_results(path).tasks.values()} == {cut}
    # The rest with another labeler, and by threads that take turns.
    sweep("square", **(SWEEP | given | {"labeler": "four_step", "workers": 3}))
    assert without_runs(read_results(path)) == without_runs(undivided(update))


@pytest.mark.slow
def test_more_p_are_further_chains(tmp_path):
    path = tmp_path / "grown.h5"
    sweep("square", **(SWEEP | {"out": path, "p": [0.6], "samples": SWEEPS * 2}))
    sweep("square", out=path, **SWEEP)
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
    blocks = make_sampler(task_of(every=4, **given), device=CPU).sample([0, 1])
    whole = make_sampler(task_of(block_size=4 * SWEEPS, **given), device=CPU).sample([0, 1])
    for block, one in zip(blocks, whole, strict=True):
        np.testing.assert_array_equal(series_of([block]), series_of([one])[..., ::4])
        assert (block.extras["structure_factor"] < one.extras["structure_factor"])[:, :2].all()
    if chains:
        assert blocks[1].end.sweeps == BURN_IN + 2 * 4 * SWEEPS == whole[1].end.sweeps
        np.testing.assert_array_equal(blocks[1].end.planes, whole[1].end.planes)
    assert task_of(every=4, **given).id != task_of(**given).id
    assert task_of(every=4, **given).stream_seed == task_of(**given).stream_seed


@pytest.mark.slow
def test_a_file_with_unmeasured_sweeps_continues(tmp_path):
    given = SWEEP | {"every": 4, "sweeps": BURN_IN + 4 * SWEEPS + 3}
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
        ({"every": 20} | SHORT, "sweeps = 25, of which 10 are the burn-in, are too few to measure"),
        ({"every": 2, "model": "bond"}, "every: bond percolation has no spins"),
        ({"chains": 4}, "chains = 4, but it can only be 1, one long chain"),
        ({"chains": -1}, "chains = -1, but it can only be 1"),
        ({"chains": 1, "model": "bond"}, "chains: bond percolation has no spins"),
    ],
    ids=str,
)
def test_other_numbers_and_percolation_are_refused(settings, message):
    with pytest.raises(InputError) as found:
        make_request("square", **({"model": "ising"} | settings))
    assert str(found.value).startswith(message)


def test_blocks_out_of_their_order_are_not_made():
    sampler = make_sampler(task_of(), device=CPU)
    with pytest.raises(ValueError, match="block 1 of one chain is not the one that comes next"):
        sampler.sample([1])


def test_ids_of_tasks_without_it_are_what_they_were():
    # Hashes of the version before there was such a setting.
    known = {"potts:q=3": "585845455ff00963", "ising": "8911e8b573a17d88"}
    for model, key in known.items():
        assert task_of(chains=0, model=model).id == key
        assert task_of(model=model).id != key
        assert task_of(model=model).stream_seed == task_of(chains=0, model=model).stream_seed


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
    return sweep("square", **(SWEEP | {"samples": SWEEPS * count}))


@pytest.mark.slow
@pytest.mark.parametrize("order", [(2, 5), slow((5, 2)), slow((2, 2)), (3, 6, 4)])
def test_merging_takes_the_longest_part_of_a_chain(tmp_path, order):
    merged = merge([(str(n), shorter(count)) for n, count in enumerate(order)])
    whole = shorter(max(order))
    assert without_runs(merged) == without_runs(whole)
    # A file that says more was made than there is could not be written, nor read.
    path = stored(tmp_path / "merged.h5", merged)
    sweep("square", out=path, **SWEEP)
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
        f"b: block 2 of the chain of L = {size} is missing, and what comes after it cannot be "
        "joined"
    )
    assert merging(falsify) == (
        f"b and a differ in block 3 of the same chain of L = {size}, seed 5: one of them is wrong"
    )
    many = sweep("square", **(SWEEP | {"chains": 0, "seed": 6, "samples": SWEEPS}))
    with pytest.raises(InputError, match="b: has chains 0, not 1 like the others"):
        merge([("a", undivided()), ("b", many)])
    other = sweep("square", **(SWEEP | {"sweeps": BURN_IN + 20, "samples": 40}))
    with pytest.raises(InputError, match="a both hold chains 0 to 0 of L = 6, seed 5"):
        merge([("a", undivided()), ("b", other)])


def change_bit(group):
    group["spins"][0, 0, 0] ^= 1


def change_sweeps(group):
    group.attrs["sweeps"] = group.attrs["sweeps"] - 1


def change_state(group):
    group["spins"][:] = 0xFFFFFFFF


def change_block(group):
    group["block"][1:] += 1


def remove_spins(group):
    del group["spins"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (change_bit, "does not match its checksum"),
        (change_sweeps, "the end of its chain is not that of blocks 0 to 5"),
        (change_state, "a spin is none of 3 states"),
        (change_block, "the end of its chain is not that of blocks 0 to 5"),
        (remove_spins, "dataset spins is missing"),
    ],
)
def test_a_damaged_end_is_refused(tmp_path, damage, message):
    path = stored(tmp_path / "damaged.h5", undivided())
    with h5py.File(path, "r+") as file:
        damage(next(iter(file["tasks"].values())))
    if damage is not change_bit:
        sealed_again(path)
    with pytest.raises(InputError, match=message):
        read_results(path)


def test_pilots_are_of_chains_of_their_own():
    """The burn-in is that of a study of many chains."""
    found = []
    for chains in (0, 1):
        given = {"L": [4], "burn_in": "auto", "sweeps": 400, "samples": 1, "chains": chains}
        (item,) = sweep("square", **(SWEEP | given)).tasks.values()
        found.append(item.task.burn_in)
    assert found[0] == found[1] >= 20


def test_blocks_are_no_shorter_than_the_burn_in():
    study = make_request("square", model="ising", L=[9], p=[0.5], chains=1).study
    for samples, burn_in, expected in ((64_000, 300, 1000), (64_000, 2000, 2000), (100, 0, 20)):
        task = study.with_burn_in(study.task(9), burn_in)
        task = study.kind.choose_blocks(study, task, samples)
        assert task.block_size == expected
        assert task.chains == 1


def test_short_blocks_are_reported_and_a_single_start_is_not_compared():
    items = list(undivided().tasks.values())
    message = short_blocks(items)
    assert message is not None
    assert "they are 15 measured sweeps," in message
    assert message.endswith("so that errors are too small")
    assert short_blocks(list(sweep("square", **(SWEEP | {"chains": 0})).tasks.values())) is None
    cold = sweep("square", **(SWEEP | {"burn_in": 0, "sweeps": 3, "samples": 12, "p": [0.01]}))
    assert start_differences(list(cold.tasks.values())) == []
    long = {"p": [0.1], "sweeps": BURN_IN + 400, "samples": 4000, "measure": ()}
    assert short_blocks(list(sweep("square", **(SWEEP | long)).tasks.values())) is None
