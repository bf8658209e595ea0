"""The pilot finds where a lattice begins to span, from p in (0, 1) alone."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import PLANE, slow
from scipy.special import ndtr

from percolab.errors import InputError
from percolab.kernels.device import Device
from percolab.kinds.pilots.percolation import (
    _REACH,
    POINTS,
    _sample_thresholds,
    covering,
    place_probabilities,
    place_windows,
)
from percolab.lattices.lattice import lattice_from_text, load_lattice
from percolab.measure.columns import list_observables
from percolab.tasks.kind import PilotConditions, make_sampler
from percolab.tasks.study import Study, Task

CPU = Device("cpu")
PILOT = PilotConditions(None, CPU)
#: In one piece if it is large, but 8 by 8 points are rows: the other bonds lead 9 points on.
ROWS = """
name = "rows"
dimension = 2
cell = { shape = [1, 1] }
bonds = [{ offset = [1, 0] }, { offset = [9, 1] }]
"""


def study_of(lattice, *sizes, boundary=("open", "open"), **options):
    return Study(structure=lattice, sizes=sizes, boundary=boundary, **options)


def spanning_probability(study, size, p, name, samples=400):
    """Return R_L at every p from samples that the pilot has not seen."""
    task = replace(study.task(size, p), block_size=samples)
    names = [item.name for item in list_observables(task.boundary)]
    return make_sampler(task, device=CPU).sample([0])[0].sums[:, names.index(name)] / samples


@pytest.mark.parametrize("lattice", [PLANE[0], *(slow(n) for n in PLANE[1:])])
def test_the_p_values_hold_the_whole_transition(lattice):
    """The ends are 1.75 standard deviations of T from its mean, both known from 48 samples alone.

    So an end is off by 0.23 of these standard deviations, and R there is between 0.01 and 0.22 with
    four of them, where 400 samples add 0.02; the mean over seeds, sizes and axes is to be 0.05.
    """
    ends = []
    for seed in (1, 2, 3):
        study = replace(study_of(load_lattice(lattice), 8, 32), seed=seed)
        for size, grid in place_probabilities(study, PILOT).items():
            assert len(grid) >= 5
            assert list(grid) == sorted(grid)
            for axis in ("spanning_x", "spanning_y"):
                low, *inside, high = spanning_probability(study, size, grid, axis)
                ends += [low, 1 - high]
                assert sum(0.1 < value < 0.9 for value in inside) >= 3, inside
                assert sum(0.02 < value < 0.98 for value in (low, *inside, high)) >= 6, inside
    assert max(ends) < 0.22 + 4 * 0.02
    assert np.mean(ends) < 0.1


def grid_of(centres, spreads):
    return covering(centres - _REACH * spreads, centres + _REACH * spreads, POINTS)


def information(grid, centre, spread):
    """Return what counts at the p of a grid tell of a normal transition's place, of all there is.

    The second number is the same for place and width together.
    """
    z = (np.array(grid) - centre) / spread
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    cells = np.diff(np.concatenate([[0], ndtr(z), [1]]))
    slopes = np.diff([[0, *density, 0], [0, *(z * density), 0]])
    fisher = (slopes / np.maximum(cells, 1e-12)) @ slopes.T
    return fisher[0, 0], np.sqrt(np.linalg.det(fisher) / 2)


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.45, 3.0, 6.0, 10.0, 100.0])
@pytest.mark.parametrize("sharper", [1.0, 2.0])
def test_the_p_values_give_equal_information_on_every_axis(distance, sharper):
    """However far the transitions of two axes are apart, in standard deviations of the first."""
    scale = 0.002
    centres = 0.4 + scale * np.array([0.0, distance])
    spreads = scale * np.array([1.0, 1.0 / sharper])
    grid = grid_of(centres, spreads)
    assert len(grid) == POINTS
    message = np.array([information(grid, *axis) for axis in zip(centres, spreads)])
    assert np.all(message > [0.89, 0.74])
    assert np.ptp(message[:, 0]) < 0.04
    np.testing.assert_allclose(grid_of(centres[::-1], spreads[::-1]), grid)


def test_axes_that_agree_get_equal_spacing():
    grid = grid_of(np.array([0.5, 0.5]), np.array([0.02, 0.02]))
    assert grid == tuple(grid_of(np.array([0.5]), np.array([0.02])))
    np.testing.assert_allclose(np.diff(grid), 3.5 * 0.02 / 8, atol=0.001)


def test_the_window_narrows_as_the_lattice_grows():
    grids = place_probabilities(study_of(load_lattice("square"), 8, 32, 64), PILOT)
    widths = [grid[-1] - grid[0] for _, grid in sorted(grids.items())]
    assert widths == sorted(widths, reverse=True)


def test_the_pilot_gives_the_same_p_values_every_time():
    study = study_of(load_lattice("honeycomb"), 6, 12)
    first = place_probabilities(study, PILOT)
    assert place_probabilities(study, PilotConditions("reference", CPU)) == first
    assert place_probabilities(replace(study, sizes=(12, 6)), PILOT) == first


def test_another_seed_is_another_pilot():
    study = study_of(load_lattice("honeycomb"), 12)
    other = replace(study, seed=2)
    assert place_probabilities(study, PILOT) != place_probabilities(other, PILOT)


def test_the_pilot_never_uses_the_published_threshold():
    square = load_lattice("square")
    one, other = (study_of(item, 16) for item in (square, replace(square, thresholds=())))
    assert place_probabilities(one, PILOT) == place_probabilities(other, PILOT)


def test_one_open_axis_is_enough():
    study = study_of(load_lattice("square"), 16, boundary=("open", "periodic"))
    grid = place_probabilities(study, PILOT)[16]
    low, high = spanning_probability(study, 16, (grid[0], grid[-1]), "spanning_x")
    assert low < 0.1
    assert high > 0.9


def test_p_values_stay_inside_0_and_1_on_a_chain_that_spans_at_1_alone():
    chain = lattice_from_text(
        'name = "chain"\ndimension = 1\ncell = { shape = [1] }\nbonds = [{ offset = [1] }]',
        where="chain",
    )
    study = study_of(chain, 64, boundary=("open",))
    grid = place_probabilities(study, PILOT)[64]
    assert grid
    assert all(0 < p < 1 for p in grid)
    assert isinstance(study.task(64, grid), Task)


def test_a_lattice_that_cannot_span_is_reported():
    study = study_of(lattice_from_text(ROWS, where="rows.toml"), 8)
    with pytest.raises(InputError, match="rows does not span at p = 1: give the p values"):
        place_probabilities(study, PILOT)
    # Method threshold takes no p.
    with pytest.raises(InputError, match=r"at p = 1: give p values to method grid \(p\)"):
        place_windows(study, [8], (), PILOT)


@pytest.mark.parametrize("name", ["square", "kagome", "maple-leaf"])
def test_a_single_layer_has_no_transition(name):
    with pytest.raises(InputError, match=f"L = 1: {name} spans at every p, .* give the p values"):
        place_probabilities(study_of(load_lattice(name), 1, 2), PILOT)


@pytest.mark.parametrize("window", [(0.7, 0.9), (0.1, 0.3)], ids=["above", "below"])
def test_a_window_that_misses_the_transition_is_mended(window):
    task = study_of(load_lattice("square"), 16).task(16, (0.5,))
    found = _sample_thresholds(task, window, PILOT)
    np.testing.assert_allclose(found, _sample_thresholds(task, (0.0, 1.0), PILOT), atol=0.02)
