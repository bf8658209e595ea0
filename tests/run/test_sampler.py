"""A block's sums depend on its task alone, never on who measured them, how, or beside what."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from helpers import JUDGED_LABELERS

from percolab.configurations.label import label
from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kinds.memory import check_memory, estimate_memory
from percolab.kinds.workplace import Stopped
from percolab.lattices.lattice import Lattice, load_lattice
from percolab.measure.rows import CLUSTERS, LARGEST, ROW_WIDTH, SECOND_LARGEST, SUM_SQUARES
from percolab.tasks.kind import make_sampler
from percolab.tasks.study import Task

CPU = Device("cpu")
TASK = Task(
    structure=load_lattice("honeycomb"),
    size=10,
    boundary=("open", "open"),
    p=(0.0, 0.3, 0.65, 0.7, 1.0),
    seed=3,
    block_size=8,
)
SAMPLER = make_sampler(TASK, device=CPU)


def assert_equal_blocks(one, other):
    assert [block.number for block in one] == [block.number for block in other]
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first.sums, second.sums)
        np.testing.assert_array_equal(first.squares, second.squares)


@pytest.mark.parametrize("boundary", [("open", "open"), ("periodic", "open")], ids=str)
@pytest.mark.parametrize("labeler", JUDGED_LABELERS)
def test_sums_do_not_depend_on_the_labeler(labeler, boundary):
    task = replace(TASK, boundary=boundary)
    reference = make_sampler(task, labeler="reference", device=CPU).sample([0, 5])
    assert_equal_blocks(make_sampler(task, labeler=labeler, device=CPU).sample([0, 5]), reference)


@pytest.mark.parametrize("groups", [[[0], [1], [2]], [[2, 0], [1]], [[1], [0, 2]]], ids=str)
def test_sums_do_not_depend_on_how_blocks_are_grouped(groups):
    found = [block for numbers in groups for block in SAMPLER.sample(numbers)]
    found.sort(key=lambda block: block.number)
    assert_equal_blocks(found, SAMPLER.sample([0, 1, 2]))


@pytest.mark.parametrize(
    "grid", [(0.65,), (0.1, 0.65), (0.65, 0.650001), (0.0, 0.65, 1.0)], ids=str
)
def test_sums_at_a_p_are_equal_in_every_grid(grid):
    here = make_sampler(replace(TASK, p=grid), device=CPU).sample([0])[0].sums[grid.index(0.65)]
    there = SAMPLER.sample([0])[0].sums[TASK.p.index(0.65)]
    np.testing.assert_array_equal(here, there)


def test_larger_blocks_hold_the_same_samples():
    large = make_sampler(replace(TASK, block_size=24), device=CPU).sample([1])[0]
    small = SAMPLER.sample([3, 4, 5])
    np.testing.assert_array_equal(sum(block.sums for block in small), large.sums)


def test_sums_are_those_of_the_labels():
    expected = np.zeros((len(TASK.p), 4), np.int64)
    for row, p in zip(expected, TASK.p, strict=True):
        for sample in range(TASK.block_size):
            labels = label("honeycomb", TASK.size, p, sample=sample, seed=TASK.seed)
            sizes = np.sort(np.unique(labels, return_counts=True)[1])[::-1]
            row[CLUSTERS] += sizes.size
            row[LARGEST] += sizes[0]
            row[SECOND_LARGEST] += sizes[1] if sizes.size > 1 else 0
            row[SUM_SQUARES] += np.sum(sizes**2)
    np.testing.assert_array_equal(SAMPLER.sample([0])[0].sums[:, :4], expected)


def test_every_block_holds_other_samples():
    blocks = SAMPLER.sample(range(10))
    assert len({block.sums.tobytes() for block in blocks}) == 10


def test_a_stopped_sampler_returns_no_partial_block():
    with pytest.raises(Stopped):
        SAMPLER.sample([0], stopped=lambda: True)


def test_a_size_too_large_for_memory_is_refused_before_anything_is_allocated(monkeypatch):
    memory = psutil.virtual_memory()._replace(available=10**9)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(Lattice, "topology", None)
    large = replace(TASK, size=20_000)
    with pytest.raises(InputError, match=r"L = 20000 needs .* GB of memory; 1.0 GB are free"):
        check_memory(large, None, CPU, 1)
    check_memory(TASK, None, CPU, 1)
    with pytest.raises(InputError, match=r"in addition to \d+\.\d GB for all else"):
        check_memory(TASK, None, CPU, 1, in_use=10**18)


def test_more_workers_and_sites_need_more_memory():
    need = [estimate_memory(replace(TASK, size=s), None, "cpu").host for s in (100, 200, 400)]
    assert need == sorted(need)
    assert need[2] > 3 * need[1]
    assert estimate_memory(TASK, None, "cpu", 64).host > estimate_memory(TASK, None, "cpu").host


@pytest.mark.parametrize("text", ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "auto:0"])
def test_an_unknown_device_is_refused(text):
    with pytest.raises(InputError, match="auto, cpu, cuda or cuda:n"):
        Device.parse(text)


class OneAtATime:
    """Stands for a GPU's labeler, and notes how many of its kind were at work at once."""

    at_work, most = 0, 0

    def grid_rows(self, generator, seed, samples, grid):
        OneAtATime.at_work += 1
        OneAtATime.most = max(OneAtATime.most, OneAtATime.at_work)
        time.sleep(0.02)
        OneAtATime.at_work -= 1
        return np.zeros((len(samples), grid.size, ROW_WIDTH), np.int64)


def test_one_thread_at_a_time_drives_a_gpu_whatever_the_task(monkeypatch):
    fake = SimpleNamespace(select_device=lambda number: None)
    monkeypatch.setattr("percolab.kernels.device.load_cuda", lambda: fake)
    samplers = [
        make_sampler(replace(TASK, size=size), device=Device("cuda")) for size in (8, 10, 12)
    ]
    for sampler in samplers:
        sampler._sums_on_device = False
        sampler._place._shared.measuring = OneAtATime()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda sampler: sampler.sample([0, 1]), samplers * 3))
    assert OneAtATime.most == 1
