"""A threshold to an error: honest, continued from its file, and never sampled twice."""

import json
import signal
import time
from dataclasses import replace

import networkx
import numpy as np
import pytest
from cli_support import answer, blocks_in, refusal, running, wait_for_blocks
from helpers import slow

import percolab
from percolab import InputError, load_lattice
from percolab.analysis.roots import fit_roots
from percolab.analysis.wrapping_fit import Division, asks_for_wrapping, find_crossings, fit_wrapping
from percolab.run.request import Observer
from percolab.run.scaling_search import _fewest_sizes, first_sizes, search_sizes
from percolab.run.search_steps import Goal, Search
from percolab.run.threshold import request_threshold
from percolab.store.results import read_results
from percolab.tasks.values import take_seconds

COMMAND = ("threshold", "square", "--device", "cpu", "--quiet")


def blocks_of(path):
    """Return the numbers of the blocks of every task, with their sums."""
    return {
        key: {number: block.sums.tolist() for number, block in item.blocks.items()}
        for key, item in read_results(path).tasks.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), [("kagome", "bond"), slow("triangular", "site")])
def test_errors_hold(name, model, monkeypatch):
    exact = load_lattice(name).threshold(model).value
    # A pilot for each would take most of the time; p is off by several errors here.
    monkeypatch.setattr("percolab.run.threshold.find_p", lambda *_: round(exact + 0.004, 4))
    pulls = []
    for seed in range(12):
        found = percolab.threshold(name, model=model, error=3e-3, seed=seed, device="cpu")
        assert found.error <= 3e-3
        pulls.append((found.p_c - exact) / found.error)
    # A mean of 12 has an error of 0.29, their root mean square one of 0.20.
    assert abs(np.mean(pulls)) < 4 / 12**0.5
    assert abs(np.sqrt(np.mean(np.square(pulls))) - 1) < 4 / 24**0.5


def test_one_p_of_every_size_is_enough_where_all_openings_have_it():
    found = percolab.threshold("square", error=4e-3, device="cpu").results
    assert sorted(item.task.size for item in found.tasks.values()) == [8, 12]
    assert all(item.task.measure == ("openings", "wrapping") for item in found.tasks.values())
    mixed = percolab.threshold("square", model="bond:x=0.4", L=[8], error=4e-3, device="cpu")
    assert len(mixed.results.tasks) == 3, "two more p give the slope"
    assert abs(mixed.p_c - 0.6) < 4 * mixed.error


@pytest.mark.parametrize(("model", "q"), [("ising", 2), slow("potts:q=3", 3)])
def test_the_transition_of_spins_is_found(model, q, tmp_path):
    path, exact = tmp_path / "spins.h5", np.sqrt(q) / (1 + np.sqrt(q))
    found = percolab.threshold("square", model=model, error=2e-3, device="cpu", out=path)
    assert found.error <= 2e-3
    assert abs(found.p_c - exact) < 4 * found.error
    record = found.to_dict()
    coupling = np.log1p(np.sqrt(q)) / (2 if model == "ising" else 1)
    assert abs(record["coupling"] - coupling) < 4 * record["coupling_error"]
    assert abs(record["temperature"] - 1 / coupling) < 4 * record["temperature_error"]
    assert json.loads(answer("fit", path, "--json")) == json.loads(json.dumps(record))
    assert len(found.plot().axes) == 2
    before = blocks_of(path)
    again = percolab.threshold(
        "square", model=model, error=1.2e-3, device="cpu", out=path, L=[8, 12]
    )
    assert again.error <= 1.2e-3
    for key, blocks in before.items():
        assert blocks.items() <= blocks_of(path)[key].items()


def test_a_search_that_takes_long_says_so_once(monkeypatch):
    # Of a search of a second that takes "long": its forecast is of the sites that are left.
    monkeypatch.setattr("percolab.run.threshold._LONG", 1e-9)
    monkeypatch.setattr("percolab.run.threshold._RATES", {False: 5.0, True: 5.0})
    notes = []

    class Notes(Observer):
        def noted(self, line):
            notes.append(line)

    found = percolab.threshold("square", L=[8], error=4e-3, device="cpu", observer=Notes())
    (line,) = notes
    hours = float(line.removeprefix("this takes about ").split(" hours")[0])
    # It knows the scatter of roots roughly, and the least number of samples not at all.
    needed = (0.6 / 10 / 4e-3) ** 2 * 64 / 5 / 3600
    assert needed / 4 < hours < 4 * needed
    assert found.error <= 4e-3


def test_a_p_that_is_too_far_from_the_root_is_replaced(monkeypatch):
    monkeypatch.setattr("percolab.run.threshold.find_p", lambda *_: 0.52)
    found = percolab.threshold("square", L=[8], error=3e-4, device="cpu")
    assert found.error <= 3e-4
    assert abs(found.p_c - 0.5) < 4 * found.error
    first, second = sorted(found.results.tasks.values(), key=lambda item: -item.task.p[0])
    assert first.task.p == (0.52,)
    assert abs(second.task.p[0] - 0.5) < 0.005
    assert second.num_samples > 2 * first.num_samples


def test_the_answer_has_its_error_in_two_parts():
    found = percolab.threshold("square", error=2e-3, device="cpu")
    assert found.error == pytest.approx(np.hypot(found.statistical_error, found.systematic_error))
    assert 0 < found.systematic_error < found.error <= 2e-3
    assert abs(found.p_c - 0.5) < 4 * found.error
    assert [root.size for root in found.roots] == list(found.results.study.sizes) == [8, 12]
    assert found.to_dict()["p_c"]["value"] == found.p_c
    assert found.results.fit().threshold == found.fit.threshold
    assert "p_c" in found.results.summary()
    for shown in (repr(found), found._repr_html_()):
        assert str(found.fit.threshold) in shown
        assert "published" in shown
    assert "\n" not in repr(found)
    assert len(found.plot().axes) == 2


def test_the_same_settings_give_the_same_samples():
    one, other = (percolab.threshold("square", error=3e-3, device="cpu") for _ in range(2))
    assert one.to_dict() == other.to_dict()
    assert percolab.threshold("square", error=3e-3, seed=2, device="cpu").p_c != one.p_c


@pytest.mark.parametrize(
    ("model", "error", "sizes"), [("bond", 4e-4, {8, 12}), ("site", 2e-4, {8, 12, 16})]
)
def test_a_smaller_error_keeps_all_blocks_and_adds(model, error, sizes, tmp_path):
    path = tmp_path / "threshold.h5"
    given = {"model": model, "device": "cpu", "out": path}
    first = percolab.threshold("square", error=4e-3, **given)
    before = blocks_of(path)
    second = percolab.threshold("square", error=error, **given)
    after = blocks_of(path)
    assert second.error <= error < first.error < 4e-3
    assert {root.size for root in second.roots} == sizes
    for key, blocks in before.items():
        assert blocks.items() <= after[key].items()
    assert sum(map(len, after.values())) > sum(map(len, before.values()))


def test_stored_samples_are_not_made_again(tmp_path):
    path = tmp_path / "threshold.h5"
    first = percolab.threshold("square", error=4e-3, device="cpu", out=path)
    data = path.read_bytes()
    for error in (4e-3, 0.05):
        again = percolab.threshold("square", error=error, device="cpu", out=path, L=[8, 12])
        assert path.read_bytes() == data
        assert again.to_dict() == first.to_dict()


def test_a_larger_error_with_other_sizes_samples_nothing(tmp_path):
    path = tmp_path / "threshold.h5"
    given = {"model": "site", "device": "cpu", "out": path}
    percolab.threshold("square", error=3e-4, **given)
    data = path.read_bytes()
    again = percolab.threshold("square", error=4e-3, **given)
    assert path.read_bytes() == data
    assert [root.size for root in again.roots] == [12, 16]


@pytest.mark.slow
def test_an_interrupted_search_is_continued_to_an_answer(tmp_path):
    path = tmp_path / "threshold.h5"
    arguments = (*COMMAND, "--error", 2e-3, "--out", path)
    with running(*arguments, "--workers", "1") as process:
        wait_for_blocks(path, process, 2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Run the same command again" in errors
    before = blocks_of(path)
    assert before
    answer(*arguments)
    for key, blocks in before.items():
        assert blocks.items() <= blocks_of(path)[key].items()
    fit = fit_roots(read_results(path))
    assert fit.threshold.error <= 2e-3
    assert abs(fit.threshold.value - 0.5) < 4 * fit.threshold.error


@pytest.mark.slow
def test_a_time_is_kept_and_the_next_one_adds(tmp_path):
    path = tmp_path / "threshold.h5"
    percolab.threshold("square", error=0.01, device="cpu")  # kernels are loaded
    start = time.monotonic()
    percolab.threshold("square", time="0.4s", device="cpu", out=path)
    # The pilot is not counted, and other programs may run as well.
    assert 0.2 < time.monotonic() - start < 100
    before = blocks_in(path)
    percolab.threshold("square", time=0.4, device="cpu", out=path)
    assert blocks_in(path) > before


@pytest.mark.parametrize("name", ["square", "cubic"])
def test_nothing_is_begun_after_the_time_even_if_its_work_was_forecast_wrongly(name, monkeypatch):
    forecast = Search._work_in_time

    def far_too_much(search, done):
        return None if forecast(search, done) is None else done + 2e10

    monkeypatch.setattr(Search, "_work_in_time", far_too_much)
    start = time.monotonic()
    found = percolab.threshold(name, time=1.5, device="cpu")
    # What was forecast takes minutes.
    assert 1.4 < time.monotonic() - start < 45
    assert found.error > 0


def test_sizes_may_be_given():
    found = percolab.threshold("honeycomb", L=[8], error=4e-3, device="cpu")
    assert [root.size for root in found.roots] == [8]
    assert found.fit.threshold.quality.dof == 0


def test_a_smaller_error_takes_larger_tori():
    def sizes(name, model, error):
        return request_threshold(name, Goal(error), model=model).study.sizes

    assert sizes("square", "bond", 1e-3) == (8, 12)
    assert sizes("square", "bond", 1e-7) > sizes("square", "bond", 1e-6) > (8, 12)
    assert sizes("square", "site", 1e-5) > sizes("square", "bond", 1e-5)
    assert sizes("square-nnn", "bond", 1e-4) > sizes("square", "bond", 1e-4)
    # Whole cells alone.
    for size in sizes("snub-square", "bond", 1e-4):
        lattice = load_lattice("snub-square")
        assert all(p % c == 0 for p, c in zip(lattice.shape(size), lattice.cell, strict=True))
    with pytest.raises(InputError, match="tori of more than 512 points"):
        sizes("square-nnn", "bond", 1e-8)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("60s", 60), ("1.5m", 90), ("2 min", 120), ("2h", 7200), ("3", 3), (0.5, 0.5), ("1e2 s", 100)],
)
def test_a_time_is_seconds_or_a_text(given, seconds):
    assert take_seconds("time", given) == seconds


@pytest.mark.parametrize("given", ["abc", "", "s", "3d", "5 hm", "1:30", [3], True, None])
def test_what_is_no_time_is_refused(given):
    with pytest.raises(InputError, match="time = "):
        take_seconds("time", given)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"error": "small"}, "error = 'small'"),
        ({"time": "-3s"}, "time = -3"),
        ({"time": "inf"}, "time = inf"),
        ({"model": "ising", "lattice": "cubic", "L": [4]}, "ising: .* in the plane"),
        ({"model": "nothing"}, "model"),
        ({"L": 0}, "L"),
        ({"L": [8, 8.5]}, "only integers"),
        ({"lattice": 5}, "which only lattices have"),
        ({"lattice": percolab.Graph.of_bonds(2, [(0, 1)])}, "a finite graph has no p_c"),
        pytest.param({"lattice": networkx.path_graph(3)}, "a finite graph has no", id="networkx"),
        ({"lattice": None, "graph": [(0, 1)]}, "the graph: a finite graph has no p_c, a limit"),
        ({"lattice": "cubic", "error": 1e-3, "L": [8, 12]}, "at least 3 sizes"),
        ({"lattice": "cubic", "error": 1e-3, "model": "ising"}, "percolab sweep"),
        ({"lattice": "bcc", "universal": "known"}, "tori that are cubes"),
        ({"universal": "known"}, "in three dimensions"),
        ({"lattice": None, "graph": "g.csv"}, "percolab sweep --graph g.csv --order random"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(options, reason):
    with pytest.raises(InputError, match=reason) as refusal:
        percolab.threshold(**{"lattice": "square", "device": "cpu"} | options)
    assert "\n" not in str(refusal.value)


ERROR = 2.5e-3


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
def test_sizes_too_small_for_the_error_end_with_what_they_give(tmp_path):
    """However many samples there are, the priors of corrections leave p_c less precise."""
    sizes, path = (4, 6, 8), tmp_path / "small.h5"
    found = percolab.threshold("cubic", error=ERROR, L=sizes, device="cpu", out=path)
    command = "threshold", "cubic", "-L", "4,6,8", "--device", "cpu", "--out", path, "--error"
    assert "is not reached: these sizes give a larger one" in answer(*command, ERROR)
    assert "is not reached" not in answer(*command, 3 * ERROR)
    assert ERROR < found.error < 3 * ERROR
    assert tuple(found.results.study.sizes) == sizes
    assert sum(item.num_samples for item in found.results.tasks.values()) < 1e6


def test_p_with_few_blocks_of_several_sizes_are_left_out_with_one_note(found):
    tasks = dict(found.results.tasks)
    for size in (8, 12):
        key = next(key for key, item in tasks.items() if item.task.size == size)
        few = dict(sorted(tasks[key].blocks.items())[:3])
        tasks[key] = replace(tasks[key], blocks=few)
    notes = fit_wrapping(replace(found.results, tasks=tasks)).notes
    few = [note for note in notes if "too few" in note]
    assert few == ["L = 8, 12: p with too few blocks for their covariance: left out"]


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
def test_a_smaller_error_in_space_keeps_all_blocks_and_adds(found, path):
    before = blocks_of(path)
    assert percolab.threshold("cubic", error=2 * ERROR, device="cpu", out=path).p_c == found.p_c
    assert blocks_of(path) == before
    second = percolab.threshold("cubic", error=0.9 * found.error, device="cpu", out=path)
    after = blocks_of(path)
    assert second.error <= 0.9 * found.error
    assert abs(second.p_c - 0.24881185) < 4 * second.error
    assert all(blocks.items() <= after[key].items() for key, blocks in before.items())
    assert sum(map(len, after.values())) > sum(map(len, before.values()))
    stored = percolab.open_results(path)
    assert asks_for_wrapping(stored)
    assert stored.fit().threshold == second.p_c
    assert "wrapping_axis" in stored.summary()
    assert len(find_crossings(stored)) == 3 * (len(second.results.study.sizes) - 1)


def test_crossings_do_not_depend_on_where_most_samples_are():
    crossings = []
    for first, samples in ((11, (8000, 3000, 3000)), (14, (3000, 3000, 8000))):
        parts = [
            percolab.sweep(
                "cubic", L=[6, 9, 13], p=p, samples=many, seed=seed, boundary="periodic",
                measure="wrapping", block_size=50, device="cpu",
            )
            for seed, (p, many) in enumerate(zip((0.2488, 0.242, 0.256), samples), first)
        ]  # fmt: skip
        crossings.append(find_crossings(percolab.merge(parts)))
    assert len(crossings[0]) == 6
    for near, far in zip(*crossings, strict=True):
        assert abs(near.p - far.p) < 4 * np.hypot(near.error, far.error)


def test_a_pilot_that_is_beside_p_c_by_chance_comes_back():
    # All p of one of its rounds are on one side of p_c.
    found = percolab.threshold("cubic", error=2e-3, universal="known", seed=6025, device="cpu")
    assert abs(found.p_c - 0.24881185) < 4 * found.error


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
    refused = refusal("fit", path, "--universal", "known", "--window", "0.2,0.8")
    assert "--universal: it is for --quantities" in refused


def test_a_time_is_kept():
    found = percolab.threshold("cubic", time=0.5, device="cpu", L=[4, 6, 8])
    assert abs(found.p_c - 0.24881185) < 4 * found.error


@pytest.mark.parametrize(
    ("costs", "chosen"), [((112, 100), 1), ((109, 100), 0), ((300, 109, 100), 1)]
)
def test_another_size_is_taken_if_it_saves_a_tenth_of_the_work(costs, chosen):
    plans = [Division({}, cost, 0.0) for cost in costs]
    assert _fewest_sizes(plans, lambda plan: plan.cost) is plans[chosen]


def test_sizes_that_do_not_fit_in_memory_are_refused_without_advice_of_slabs(free_memory):
    free_memory(1000)
    with pytest.raises(InputError, match=r"L = 8 needs .* GB of memory; 0.0 GB are free$"):
        percolab.threshold("cubic", L=[8, 12, 16], error=ERROR, device="cpu")
    with pytest.raises(InputError, match="slabs auto measures it in slabs"):
        percolab.sweep("cubic", L=[8, 12, 16], p=[0.25], device="cpu")


def test_a_search_takes_no_size_that_does_not_fit_in_memory(monkeypatch):
    from percolab.run import scaling_search

    def small_alone(task, *given, **more):
        if task.size > 12:
            raise InputError("too large")

    options = {"error": 1e-3, "device": "cpu", "model": "site"}
    assert max(percolab.threshold("cubic", **options).results.study.sizes) == 32
    monkeypatch.setattr(scaling_search, "check_memory", small_alone)
    assert max(percolab.threshold("cubic", **options).results.study.sizes) == 24


@pytest.mark.parametrize("name", ["cubic", "diamond", "fcc", "hypercubic-4d", "hypercubic-5d"])
def test_sizes_are_whole_cells_and_grow(name):
    lattice = load_lattice(name)
    sizes = list(search_sizes(lattice))
    assert sizes == sorted(set(sizes))
    assert 3 <= len(first_sizes(lattice)) < len(sizes)
    assert sizes[: len(first_sizes(lattice))] == list(first_sizes(lattice))
    if name == "cubic":
        # Smaller ones shift p_c where values at it are known.
        assert first_sizes(lattice, universal=True) == (16, 24, 32)
    for size in sizes[:5]:
        shape = lattice.shape(size)
        assert all(points % cell == 0 for points, cell in zip(shape, lattice.cell, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), [("cubic", "bond"), ("fcc", "site")])
def test_errors_hold_on_real_samples(name, model):
    known = load_lattice(name).threshold(model)
    pulls = []
    for seed in range(1, 9):
        found = percolab.threshold(name, model=model, error=2e-3, seed=seed, device="cpu")
        pulls.append((found.p_c - known.value) / found.error)
    # A mean of 8 has an error of 0.35, their root mean square one of 0.25.
    assert abs(np.mean(pulls)) < 4 / 8**0.5
    assert np.sqrt(np.mean(np.square(pulls))) < 1 + 4 / 16**0.5
