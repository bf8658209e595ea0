"""What stops a sampler, what memory it needs, and how samples are divided for a target error."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from cli_support import answer
from synthetic_support import synthetic_study

from percolab import InputError, Lattice, load_lattice, sweep
from percolab.analysis.scaling import ScalingFunction
from percolab.analysis.stored_fits import fit_results
from percolab.analysis.threshold import Information, compute_information, fit_threshold
from percolab.kernels.device import Device
from percolab.kinds.memory import check_memory, estimate_memory
from percolab.kinds.workplace import Stopped
from percolab.measure.rows import ROW_WIDTH
from percolab.run.targets import EQUAL_SHARE, Choice, allocate, why_unmet
from percolab.store.results import read_results
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


def test_a_stopped_sampler_returns_no_partial_block():
    with pytest.raises(Stopped):
        make_sampler(TASK, device=CPU).sample([0], stopped=lambda: True)


def test_what_wraps_is_measured_alone_where_nothing_else_is_read():
    for measure in ((), ("openings",), ("wrapping",), ("openings", "wrapping")):
        task = Task(
            load_lattice("square"), 4, boundary=("periodic",) * 2, p=(0.5,), measure=measure
        )
        coupling = make_sampler(task, device=Device("cpu")).coupling
        assert coupling.wraps_alone == ("wrapping" in measure)


def test_a_size_too_large_is_refused_before_anything_is_allocated(free_memory, monkeypatch):
    free_memory(10**9)
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


NOTHING = np.zeros((2, 2))


def line_choice(x, *, cost=1.0, block=1, samples=1, limit=float("inf")):
    """Return a size that measures p_c + slope * x with unit error."""
    row = np.array([1.0, x])
    return Choice(np.outer(row, row), cost, block, samples, limit)


def test_an_extrapolation_to_zero_is_divided_as_elfving_says():
    """Intercept of a line from x = 1 and x = 3, costs c: n ~ weight / sqrt(c), weights 3 : 1."""
    costs = np.array([1.0, 16.0])
    choices = [line_choice(1.0, cost=costs[0]), line_choice(3.0, cost=costs[1])]
    got = np.array(allocate(choices, NOTHING, 1e5))
    weights = np.array([1.5, 0.5])
    best = 1e5 * weights / np.sqrt(costs) / (weights * np.sqrt(costs)).sum()
    assert got == pytest.approx(best, rel=0.05)
    assert costs @ got == pytest.approx(1e5, rel=0.03)


def test_no_other_division_of_the_same_cost_is_better():
    """Among all divisions of a cost over three sizes, on a grid of them, beyond the equal share."""
    costs = np.array([1.0, 4.0, 16.0])
    x = np.array([1.0, 0.6, 0.35])
    choices = [line_choice(at, cost=cost) for at, cost in zip(x, costs)]
    cost = 1e5
    got = np.array(allocate(choices, NOTHING, cost))

    def variance(samples):
        total = sum(c.information * n for c, n in zip(choices, samples))
        return np.linalg.inv(total)[0, 0]

    floor = EQUAL_SHARE / 3
    shares = [
        (a, b, 1 - a - b)
        for a in np.linspace(floor, 1, 60)
        for b in np.linspace(floor, 1, 60)
        if 1 - a - b >= floor
    ]
    best = min(variance(cost * np.array(share) / costs) for share in shares)
    assert variance(got) <= 1.01 * best
    equal = variance(cost / 3 / costs)
    assert variance(got) < 0.9 * equal


def test_a_size_without_information_gets_only_its_equal_share():
    useless = Choice(np.zeros((2, 2)), 1.0, 1, 1)
    choices = [line_choice(1.0), line_choice(3.0), useless]
    got = allocate(choices, NOTHING, 30_000)
    # The cost is handed out in fifty pieces.
    assert got[2] == pytest.approx(EQUAL_SHARE * 30_000 / 3, abs=30_000 / 50)


def test_blocks_are_whole_limits_hold_and_nothing_is_taken_back():
    choices = [
        line_choice(1.0, block=10, samples=70),
        line_choice(3.0, block=100, samples=40_000, limit=40_050),
    ]
    got = allocate(choices, NOTHING, 60_000)
    assert got[0] % 10 == 0
    assert got[0] >= 19_950
    assert 40_000 <= got[1] <= 40_050
    assert allocate(choices, NOTHING, 0.0) != [70, 40_000]
    full = [line_choice(1.0, samples=5, limit=5), line_choice(3.0, samples=9, limit=9)]
    assert allocate(full, NOTHING, 1e9) == [5, 9]


def test_stored_blocks_are_not_measured_again():
    """A merged file that knows the point at x = 3 leaves the samples to x = 1."""
    choices = [line_choice(1.0), line_choice(3.0)]
    row = np.array([1.0, 3.0])
    alone = allocate(choices, NOTHING, 10_000)
    beside = allocate(choices, 1e5 * np.outer(row, row), 10_000)
    assert beside[0] > 1.1 * alone[0]


LABELS = ("L16", "L32", "L64", "L128")
FUNCTION = ScalingFunction(0.5, 0.75, (0.1, 1.0, 0.02, -0.01), corrections=(0.3, 0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def curves():
    drawn = synthetic_study(
        FUNCTION, (16, 32, 64, 128), reach=1.75, samples=30, rng=np.random.default_rng(4)
    )
    return [replace(curve, label=f"L{curve.L}") for curve in drawn]


def test_information_gives_the_error_of_the_best_fit(curves):
    information = compute_information(curves)
    samples = {curve.label: curve.total_samples for curve in curves}
    best = fit_threshold(curves).members[0]
    assert information.error(samples) == pytest.approx(best.threshold_error, rel=1e-6)
    assert information.error(samples) == pytest.approx(np.hypot(*information.parts(samples)))


def test_priors_matter_less_the_more_samples_there_are(curves):
    information = compute_information(curves)
    parts = np.array([information.parts(dict.fromkeys(LABELS, n)) for n in (10**2, 10**4, 10**6)])
    assert (np.diff(parts, axis=0) < 0).all()
    share = parts[:, 1] / np.hypot(*parts.T)
    assert (np.diff(share) < 0).all()
    assert share[0] > 0.5
    assert information.parts({}) == (float("inf"), float("inf"))


def test_one_size_alone_gives_no_p_c(curves):
    information = compute_information(curves)
    alone = {curves[0].label: 1000}
    assert information.error(alone) > 10 * information.error(dict.fromkeys(LABELS, 1000))
    assert isinstance(information, Information)
    assert not information.of("another task").any()


def test_the_information_of_a_scaling_fit_beats_equal_samples_and_equal_cost(curves):
    information = compute_information(curves)
    sizes = np.array([curve.L for curve in curves], float)
    cost = 1000 * (sizes**2).sum()
    choices = [Choice(information.of(curve.label), curve.L**2, 1, 100) for curve in curves]
    got = allocate(choices, information.total({}), cost)
    spent = (sizes**2) @ got

    def error(samples):
        return information.error(dict(zip([c.label for c in curves], samples)))

    assert spent <= 1.03 * cost
    assert error(got) < 0.85 * error(np.full(4, spent / (sizes**2).sum()))
    assert error(got) < 0.85 * error(spent / 4 / sizes**2)


@pytest.mark.slow
def test_a_target_error_is_that_of_the_whole_error():
    results = sweep("square", L=[8, 16, 32, 64], target_error=2e-3, seed=3, device="cpu", workers=1)
    fit = fit_results(results)
    assert fit.threshold_error <= 2e-3
    assert fit.systematic_error > 0
    # It took more than the first round, at whose end the error was larger.
    assert results.of_size(64)[0].num_samples > 300
    assert why_unmet(results, 2e-3) is None


@pytest.mark.slow
def test_an_unreachable_target_is_reported_with_the_sizes_that_reach_it(tmp_path):
    out = tmp_path / "results.h5"
    printed = answer("sweep", "--lattice", "square", "-L", "8,16", "--target-error", "1e-3",
                     "--seed", 3, "--device", "cpu", "--workers", 1, "--quiet",
                     "--out", out)  # fmt: skip
    assert "p_c = 0." in printed
    unmet = next(
        line
        for line in printed.splitlines()
        if line.startswith("more samples of these sizes do not")
    )
    assert "bring the error to 0.001, as its systematic part stays above that; " in unmet
    size = int(unmet.rpartition("up to L = ")[2])
    assert size in (32, 64, 128, 256)
    assert unmet == why_unmet(read_results(out), 1e-3)
    # It stopped long before what a thousand rounds would have taken.
    assert read_results(out).of_size(16)[0].num_samples < 10**5


def test_the_systematic_error_remains_when_samples_have_made_the_statistical_one_half_the_target():
    information = Information({"one": np.diag([4.0, 1.0])}, np.diag([9.0, 16.0]), unit=0.1)
    statistical, _ = information.parts({"one": 10})
    # Half of a fifth of it takes a hundred times the samples.
    later = information.parts({"one": 10 * 100})[1]
    found = information.remaining_systematic({"one": 10}, statistical / 5)
    assert found == pytest.approx(later, rel=1e-12)
    assert information.remaining_systematic({"one": 10}, 9.0) == information.parts({"one": 10})[1]
