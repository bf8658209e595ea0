"""The calibration of fits, results/calibration: its counts are those of sweeps, and it can fail."""

from pathlib import Path
from time import time

import numpy as np
import pytest

import percolab
from percolab.kernels.device import Device
from percolab.validation.enumeration import spin_means

FOLDER = Path(__file__).parents[1] / "results" / "calibration"


@pytest.fixture
def modules(monkeypatch):
    """The modules of the calibration, with small pieces."""
    monkeypatch.syspath_prepend(str(FOLDER))
    counting = pytest.importorskip("counting")
    for name, value in {"PIECE": 2, "FINE": 8, "STEP": 4, "_ROUND": 8}.items():
        monkeypatch.setattr(counting.sampling, name, value)
    return counting.sampling, counting


@pytest.mark.parametrize("kind", ["open", "periodic"])
def test_counts_are_those_of_a_sweep_however_often_they_were_stopped(modules, tmp_path, kind):
    sampling, _ = modules
    system = sampling.System("square", "bond", (kind, kind), (4, 6))
    path, device = tmp_path / "counts.npz", Device("cpu")
    for samples in (6, 20):
        found = sampling.extend(system, samples, path, device, share=1.0, deadline=time() + 60)
    assert found.ends.tolist() == [2, 4, 6, 8, 12, 16, 20]
    column = "spanning_y" if kind == "open" else "wrapping_y"
    for n, size in enumerate(system.sizes):
        p = found.p[n].tolist()
        results = percolab.sweep(
            "square", L=[size], p=p, boundary=kind, samples=20, seed=system.seed,
            block_size=4, device="cpu",
        )  # fmt: skip
        (item,) = results.tasks.values()
        assert np.array_equal(item.column(column), found.studies(4, 5)[:, n])


@pytest.mark.slow
def test_each_lattice_is_sampled_open_and_on_a_torus_with_what_has_a_threshold(modules):
    names = {system.name for system in modules[0].systems()}
    for lattice in map(percolab.load_lattice, percolab.lattices.lattice.lattice_names()):
        for known in lattice.thresholds:
            start = f"{lattice.name}-{known.model}"
            assert {f"{start}-open", f"{start}-periodic"} <= names


@pytest.mark.parametrize(
    ("offset", "width", "failing"),
    [(0.0, 1.0, ""), (0.5, 1.0, "mean"), (0.0, 1.5, "width"), (0.0, 0.5, "width")],
)
def test_a_verdict_tells_biased_values_and_wrong_errors(modules, offset, width, failing):
    counting = modules[1]
    values = offset + width * np.random.default_rng(1).standard_normal(1000)
    pulls = counting.Pulls(0.0, 0.0, values.tolist(), [1.0] * 1000, [1.0] * 1000)
    found = counting.StudySet("one", "", 4000, {"p_c": pulls})
    lines = [line for line in counting.verdict([found], ["p_c"]) if "DOES NOT HOLD" in line]
    assert bool(lines) == bool(failing)
    assert all(failing in line or "within two errors" in line for line in lines)


def test_a_value_that_is_known_no_better_than_it_is_fitted_judges_nothing(modules):
    counting = modules[1]
    pulls = counting.Pulls(0.0, 0.5, [0.0, 1.0], [1.0, 1.0], [1.0, 1.0])
    assert not pulls.is_judged
    found = counting.StudySet("one", "", 4000, {"p_c": pulls})
    assert not any("p_c" in line for line in counting.verdict([found], ["p_c"]))


def test_studies_without_an_answer_fail(modules):
    counting = modules[1]
    pulls = counting.Pulls(0.0, 0.0, [0.0] * 10, [1.0] * 9 + [np.nan], [1.0] * 10)
    found = counting.StudySet("one", "", 4000, {"p_c": pulls}, problems=1)
    assert counting.verdict([found], [])[0].startswith("* DOES NOT HOLD: 1 of 10 studies")


def test_exact_means_of_spins_are_those_of_all_their_states(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spins = pytest.importorskip("spins")
    lattice = percolab.load_lattice("square")
    bonds = lattice.topology((3, 3), ("periodic", "periodic")).bonds()[:, 1:].tolist()
    for q in (2, 3):
        found, known = spins.exact_means(3, q, 0.9), spin_means(9, bonds, q=q, p=-np.expm1(-0.9))
        square = known["magnetization_square"]
        variance = known["satisfied_squared"] - known["satisfied"] ** 2
        assert found["energy"] == pytest.approx(-known["satisfied"] / 9)
        assert found["specific_heat"] == pytest.approx(0.9**2 * variance / 9)
        assert found["order"] == pytest.approx((q * known["largest_state"] / 9 - 1) / (q - 1))
        assert found["binder"] == pytest.approx(square**2 / known["magnetization_square_squared"])


def test_exact_correlation_lengths_are_those_of_all_states(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    spins = pytest.importorskip("spins")
    states = np.array(np.meshgrid(*[[0, 1]] * 9, indexing="ij")).reshape(9, -1).T
    square = states.reshape(-1, 3, 3)
    equal = sum((square == np.roll(square, 1, axis)).sum(axis=(1, 2)) for axis in (1, 2))
    weights = np.exp(0.9 * equal)
    waves = [square.sum(axis=2) @ np.exp(2j * np.pi * n * np.arange(3) / 3) for n in (0, 1)]
    zero, wave = (weights @ np.abs(each - 4.5 * (n == 0)) ** 2 for n, each in enumerate(waves))
    known = (zero / wave - 1) ** 0.5 / (2 * np.sin(np.pi / 3))
    assert spins.exact_means(3, 2, 0.9)["correlation_length_x"] == pytest.approx(known)
