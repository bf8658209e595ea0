"""One lattice over ranks has the row of the whole lattice, however many there are."""

from itertools import product

import numpy as np
import pytest
from test_slabs import (
    MODELS,
    NAMES,
    boundaries_of,
    ps_of,
    row_of_the_whole,
    shape_of,
    structure,
)

from percolab.bonds.model import BOND
from percolab.bonds.words import GENERATORS, threshold_of
from percolab.domains.parts import Whole
from percolab.domains.ranks import (
    Job,
    Leader,
    arrays_of,
    follow,
    front_of_arrays,
    layers_of_ranks,
    most_message,
)
from percolab.domains.raster import Draw
from percolab.domains.transport import run_local


def by_ranks(job, draws):
    """Return the rows of samples, and the steps of the ranks, by threads of this process."""

    def work(transport):
        if transport.rank:
            return follow(transport)
        leader = Leader(transport)
        found = [leader.row(job, draw) for draw in draws]
        leader.end()
        return found

    return run_local(len(job.layers), work)[0]


def assert_rows_equal(name, boundary, model, generator, p, ranks, *, rng, sizes=None):
    whole = Whole(structure(name), shape_of(name, boundary, sizes), boundary, model)
    least = max(whole.reach, 1)
    ranks = min(ranks, whole.num_layers // least)
    while True:
        slabs = int(rng.integers(1, whole.num_layers + 1))
        try:
            layers = layers_of_ranks(whole, ranks, slabs)
            break
        except InputError:
            ranks = max(ranks - 1, 1)
    tally = bool(rng.integers(2))
    draws = [Draw(generator, 5, int(rng.integers(1000)), threshold_of(p)) for _ in range(2)]
    for draw, (row, _) in zip(draws, by_ranks(Job(whole, layers, tally), draws)):
        expected = row_of_the_whole(whole, draw, tally=tally)
        case = f"{name} {whole.shape} {boundary} {model} {draw} p = {p}, layers {layers}"
        np.testing.assert_array_equal(row.numbers, expected, err_msg=case)
        assert row.sum_squares == expected[3], case


@pytest.mark.parametrize("name", ["square", "kagome", "cubic", "far_reaching"])
def test_rows_of_ranks_are_those_of_the_whole_lattice(name):
    rng = np.random.default_rng(len(name))
    boundaries = boundaries_of(name)
    for n, p in enumerate((*ps_of(name), ps_of(name)[2]) * 2):
        boundary, model = boundaries[-n % len(boundaries)], MODELS[(n + n // 5) % 5]
        generator = list(GENERATORS.values())[n // 2 % 2]
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rows_of_ranks_with_all_boundaries_and_models(name):
    rng = np.random.default_rng(2)
    cases = product(boundaries_of(name), MODELS, GENERATORS.values(), ps_of(name))
    for n, (boundary, model, generator, p) in enumerate(cases):
        assert_rows_equal(name, boundary, model, generator, p, n % 8 + 1, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", range(1, 9))
@pytest.mark.parametrize("name", ["square", "cubic"])
def test_wrapping_rows_about_the_threshold(name, ranks):
    rng = np.random.default_rng(3)
    sizes = {2: (9, 16), 3: (4, 4, 9)}[structure(name).dimension]
    for _ in range(30):
        p = ps_of(name)[2] * rng.uniform(0.9, 1.2)
        boundary = boundaries_of(name)[-1]
        assert_rows_equal(name, boundary, BOND, 0, p, ranks, rng=rng, sizes=sizes)
