"""A task's id changes exactly when its numbers do, and a study refuses what cannot be sampled."""

from dataclasses import replace

import pytest

from percolab import InputError, load_lattice
from percolab.lattices.topology import MAX_POINTS
from percolab.tasks.study import Study, Task, default_block_size

OPEN = ("open", "open")
SQUARE = load_lattice("square")
TASK = Task(structure=SQUARE, size=8, boundary=OPEN, p=(0.4, 0.5), seed=1)
STUDY = Study(structure=SQUARE, sizes=(8, 16), boundary=OPEN, p=(0.4, 0.5))

#: What changes the samples themselves, and with them both the stream seed and the id.
OTHER_SAMPLES = {
    "lattice": {"structure": load_lattice("triangular")},
    "size": {"size": 9},
    "boundary of x": {"boundary": ("periodic", "open")},
    "boundary of y": {"boundary": ("open", "periodic")},
    "seed": {"seed": 2},
    "generator": {"rng": "philox"},
    "purpose": {"purpose": "pilot"},
}
#: What changes only which sums are stored of the same samples.
OTHER_SUMS = {
    "another p": {"p": (0.4, 0.5000000000000001)},
    "a p more": {"p": (0.4, 0.5, 0.6)},
    "block size": {"block_size": 7},
}
#: What is written about a lattice without changing it.
SAME = {
    "name": {"name": "quadratic"},
    "title": {"title": "chequered"},
    "thresholds": {"thresholds": ()},
    "drawing": {"vectors": ()},
    "source": {"source": ""},
}


def test_a_block_labels_every_site_of_its_samples_at_every_p():
    assert replace(TASK, block_size=7).sites_per_block == 7 * 2 * 64
    assert replace(TASK, p=(), method="threshold", block_size=7).sites_per_block == 7 * 64


def test_no_two_tasks_share_an_id():
    changes = [{}, *OTHER_SAMPLES.values(), *OTHER_SUMS.values()]
    assert len({replace(TASK, **change).id for change in changes}) == len(changes)


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_the_id_does_not_change_with_what_is_said_about_a_lattice(change):
    assert replace(TASK, structure=replace(SQUARE, **change)).id == TASK.id


@pytest.mark.parametrize("change", OTHER_SUMS.values(), ids=OTHER_SUMS)
def test_the_samples_do_not_depend_on_the_p_grid_or_the_blocks(change):
    assert replace(TASK, **change).stream_seed == TASK.stream_seed


@pytest.mark.parametrize("change", OTHER_SAMPLES.values(), ids=OTHER_SAMPLES)
def test_other_sizes_lattices_boundaries_seeds_and_generators_have_other_samples(change):
    assert replace(TASK, **change).stream_seed != TASK.stream_seed


def test_every_size_of_a_study_has_samples_of_its_own():
    seeds = {STUDY.task(size, (0.5,)).stream_seed for size in range(1, 200)}
    assert len(seeds) == 199


def test_the_order_in_which_sizes_are_given_does_not_matter():
    turned = replace(STUDY, sizes=(16, 8))
    assert turned == STUDY
    assert turned.sizes == (8, 16)
    assert turned.description() == STUDY.description()


@pytest.mark.parametrize(
    "change",
    [
        {"structure": load_lattice("honeycomb")},
        {"sizes": (8, 32)},
        {"boundary": ("periodic", "open")},
        {"p": (0.4, 0.6)},
        {"p": None},
        {"seed": 2},
        {"rng": "philox"},
        {"block_size": 7},
    ],
)
def test_the_description_tells_studies_apart(change):
    assert replace(STUDY, **change).description() != STUDY.description()


@pytest.mark.parametrize("num_points", [1, 64, 10**4, 2**22, 2**28, 2**30, MAX_POINTS])
def test_the_sums_of_a_default_block_fit_in_int64(num_points):
    size = default_block_size(num_points)
    assert 1 <= size <= 100
    assert size * num_points**2 < 2**63


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "L = 0"),
        ({"size": -3}, "L = -3"),
        ({"size": 2**16}, "L = 65536"),
        ({"p": ()}, "p: the list is empty"),
        ({"p": (float("nan"),)}, "p = nan"),
        ({"p": (float("inf"),)}, "p = inf"),
        ({"p": (-0.1,)}, "p = -0.1"),
        ({"p": (0.5, 1.1)}, "p = 1.1"),
        ({"p": (0.5, 0.5)}, "ascend"),
        ({"p": (0.6, 0.5)}, "ascend"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": 2**63}, "2^63 - 1"),
        ({"rng": "xorwov"}, "did you mean 'xorwow'"),
        ({"boundary": ("open",)}, "2 axes"),
        ({"boundary": ("open", "opne")}, "did you mean 'open'"),
        ({"sizes": ()}, "L: the list is empty"),
        ({"sizes": (8, 8)}, "twice"),
        ({"sizes": (8, 0)}, "L = 0"),
    ],
)
def test_a_task_or_study_that_cannot_be_sampled_is_refused(change, message):
    with pytest.raises(InputError) as error:
        replace(STUDY if "sizes" in change else TASK, **change)
    assert message in str(error.value)


def test_a_periodic_honeycomb_needs_whole_cells():
    honeycomb = load_lattice("honeycomb")
    Task(structure=honeycomb, size=8, boundary=("periodic", "open"), p=(0.5,), seed=1)
    with pytest.raises(InputError, match="must be a multiple of 2"):
        Task(structure=honeycomb, size=7, boundary=("periodic", "open"), p=(0.5,), seed=1)
