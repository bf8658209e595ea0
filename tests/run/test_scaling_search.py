"""A threshold in three dimensions: next to p_c, to the error, continued, never sampled twice."""

import numpy as np
import pytest
from cli_support import answer, refusal

import percolab
from percolab.analysis.wrapping_fit import asks_for_wrapping, find_crossings
from percolab.errors import InputError
from percolab.lattices.lattice import load_lattice
from percolab.run.scaling_search import first_sizes, search_sizes
from percolab.store.results import read_results

ERROR = 2.5e-3


def blocks_of(path):
    """Return the numbers of the blocks of every task."""
    return {key: set(item.blocks) for key, item in read_results(path).tasks.items()}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("scaling") / "threshold.h5"


@pytest.fixture(scope="module")
def found(path):
    return percolab.threshold("cubic", error=ERROR, device="cpu", out=path)


def test_the_error_is_reached_and_holds(found):
    assert 0 < found.error <= ERROR
    assert found.error == pytest.approx(np.hypot(found.statistical_error, found.systematic_error))
    assert abs(found.p_c - 0.24881185) < 4 * found.error
    assert found.problem is None
    assert "p_c 0.2" in repr(found)
    assert found.roots == ()
    assert [item.name for item in found.fit.quantities] == [
        "wrapping_any",
        "wrapping_axis",
        "wrapping_all",
    ]


@pytest.mark.slow
def test_sizes_too_small_for_the_error_end_with_what_they_give():
    """However many samples there are, the priors of corrections leave p_c less precise."""
    sizes = (4, 6, 8)
    found = percolab.threshold("cubic", error=ERROR, L=sizes, device="cpu")
    assert ERROR < found.error < 3 * ERROR
    assert tuple(found.results.study.sizes) == sizes
    assert sum(item.num_samples for item in found.results.tasks.values()) < 1e6


def test_most_samples_of_a_size_are_at_one_p_next_to_p_c(found):
    for size in found.results.study.sizes:
        items = [i for i in found.results.tasks.values() if i.task.size == size and i.blocks]
        assert all(len(item.task.p) == 1 for item in items)
        below, centre, above = sorted(items, key=lambda item: item.task.p)[:3]
        assert centre.num_samples >= 4 * below.num_samples == 4 * above.num_samples
        # P(any axis) changes by about 0.12 from one to the next.
        for side, sign in ((below, -1), (above, 1)):
            moved = [i.column("wrapping_any").sum() / i.num_samples for i in (side, centre)]
            assert 0.02 < sign * (moved[0] - moved[1]) < 0.25


@pytest.mark.slow
def test_a_smaller_error_keeps_all_blocks_and_adds(found, path):
    before = blocks_of(path)
    assert percolab.threshold("cubic", error=2 * ERROR, device="cpu", out=path).p_c == found.p_c
    assert blocks_of(path) == before
    second = percolab.threshold("cubic", error=0.9 * found.error, device="cpu", out=path)
    after = blocks_of(path)
    assert second.error <= 0.9 * found.error
    assert abs(second.p_c - 0.24881185) < 4 * second.error
    assert all(blocks <= after[key] for key, blocks in before.items())
    assert sum(map(len, after.values())) > sum(map(len, before.values()))
    stored = percolab.open_results(path)
    assert asks_for_wrapping(stored)
    assert stored.fit().threshold == second.p_c
    assert "wrapping_axis" in stored.summary()
    assert len(find_crossings(stored)) == 3 * (len(second.results.study.sizes) - 1)


@pytest.mark.slow
def test_known_values_at_p_c_make_the_same_samples_more_precise(found, path, tmp_path):
    own = tmp_path / "universal.h5"
    known = percolab.threshold("cubic", error=ERROR, universal="known", device="cpu", out=own)
    assert known.error < 0.7 * found.error
    assert abs(known.p_c - 0.24881185) < 4 * known.error
    # The file says how it was made, and what reads it has the same p_c.
    stored = percolab.open_results(own)
    assert stored.fit().threshold == known.p_c
    assert "values at p_c are priors: Wang et al. 2013" in stored.summary()
    free = stored.fit(universal="free")
    assert free.threshold_error > known.error
    # A file that was made without them can be fitted with them.
    assert percolab.open_results(path).fit(universal="known").threshold_error < found.error
    assert answer("fit", path, "--universal", "known") != answer("fit", path)
    refused = refusal("fit", path, "--universal", "known", "--degree", 3)
    assert "--universal: it is for --quantities" in refused
    with pytest.raises(InputError, match="tori that are cubes"):
        percolab.threshold("bcc", error=ERROR, universal="known", device="cpu")
    with pytest.raises(InputError, match="in three dimensions"):
        percolab.threshold("square", error=ERROR, universal="known", device="cpu")


def test_a_time_is_kept():
    found = percolab.threshold("cubic", time=0.5, device="cpu", L=[4, 6, 8])
    assert abs(found.p_c - 0.24881185) < 4 * found.error


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"L": [8, 12]}, "at least 3 sizes"), ({"model": "ising"}, "percolab sweep")],
)
def test_what_cannot_be_fitted_is_refused(options, reason):
    with pytest.raises(InputError, match=reason):
        percolab.threshold("cubic", error=1e-3, device="cpu", **options)


@pytest.mark.parametrize("name", ["cubic", "diamond", "fcc", "hypercubic-4d", "hypercubic-5d"])
def test_sizes_are_whole_cells_and_grow(name):
    lattice = load_lattice(name)
    sizes = list(search_sizes(lattice))
    assert sizes == sorted(set(sizes))
    assert 3 <= len(first_sizes(lattice)) < len(sizes)
    assert sizes[: len(first_sizes(lattice))] == list(first_sizes(lattice))
    for size in sizes[:5]:
        shape = lattice.shape(size)
        assert all(points % cell == 0 for points, cell in zip(shape, lattice.cell, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cubic", "fcc"])
@pytest.mark.parametrize("model", ["bond", "site"])
def test_errors_hold_on_real_samples(name, model):
    known = load_lattice(name).threshold(model)
    pulls = []
    for seed in range(1, 9):
        found = percolab.threshold(name, model=model, error=2e-3, seed=seed, device="cpu")
        pulls.append((found.p_c - known.value) / found.error)
    # A mean of 8 has an error of 0.35, their root mean square one of 0.25.
    assert abs(np.mean(pulls)) < 4 / 8**0.5
    assert np.sqrt(np.mean(np.square(pulls))) < 1 + 4 / 16**0.5
