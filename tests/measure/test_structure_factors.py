"""Structure factors of spins, and the correlation length that follows from them."""

import numpy as np
import pytest

from percolab import sweep
from percolab.analysis.stored_spins import compute_correlation_lengths
from percolab.lattices.topology import pack_bits
from percolab.measure.spins import MOST_AXES, structure_factors
from percolab.store.task_result import TaskResult


def test_structure_factors_are_sums_of_waves():
    rng, shape, states = np.random.default_rng(1), (7, 5, 3), 5
    spins = rng.integers(0, states, (2, 105))
    planes = np.stack([pack_bits((spins >> bit) & 1 == 1) for bit in range(3)], axis=1)
    found = structure_factors(planes, states, shape, (True, False, True))
    assert found.shape == (2, MOST_AXES)
    index = np.arange(105)
    for axis, at in ((0, index % 7), (2, index // 35)):
        wave = np.exp(2j * np.pi * at / shape[axis])
        for chain in range(2):
            expected = sum(abs(wave[spins[chain] == s].sum()) ** 2 for s in range(states))
            assert found[chain, axis] == pytest.approx(expected, rel=1e-4)
    assert not found[:, [1, 3, 4]].any()


@pytest.mark.slow
def test_the_correlation_length_of_a_critical_torus_is_salas_and_sokals():
    results = sweep(
        "square", model="ising", L=[16], boundary="periodic", K=[0.440686793509772], burn_in=40,
        sweeps=200, samples=12_800, measure="correlation", device="cpu",
    )  # fmt: skip
    (item,) = results.tasks.values()
    values, errors = compute_correlation_lengths(item)
    assert values.shape == errors.shape == (2, 1)
    # xi / L of the infinite torus, J. Salas and A. D. Sokal, J. Stat. Phys. 98, 551 (2000).  Both
    # axes are of the same chains, so that each is judged alone.
    z = (values / 16 - 0.9050488) / (errors / 16)
    assert (np.abs(z) <= 4).all()
    assert (errors / 16 < 0.02).all()


def test_correlation_lengths_of_few_samples_are_not_too_large():
    results = sweep(
        "square", model="ising", L=[4], boundary="periodic", K=[0.35], burn_in=10, sweeps=14,
        samples=1600 * 4, measure="correlation", device="cpu", seed=3,
    )  # fmt: skip
    (item,) = results.tasks.values()
    known = compute_correlation_lengths(item)[0][0, 0]
    found = []
    for first in range(0, 1600, 4):
        blocks = {number: item.blocks[number] for number in range(first, first + 4)}
        found.append(compute_correlation_lengths(TaskResult(item.task, blocks))[0][0, 0])
    # Without the jackknife's correction they are on average by a tenth, six errors.
    assert abs(np.mean(found) - known) <= 4 * np.std(found) / 20


def test_a_single_chain_has_a_correlation_length_without_an_error():
    results = sweep(
        "square", model="ising", L=[4], boundary="periodic", K=[0.35], burn_in=10, sweeps=60,
        samples=50, measure="correlation", device="cpu",
    )  # fmt: skip
    values, errors = compute_correlation_lengths(*results.tasks.values())
    assert np.isfinite(values).all()
    assert np.isnan(errors).all()
