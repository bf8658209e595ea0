"""percolab validate: every check holds here, and fails on an installation that is broken."""

import json
import math
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cli_support import answer, refusal, run
from helpers import record_program

from percolab.analysis.theory.torus import wrapping_probabilities
from percolab.bonds.words import p_to_threshold
from percolab.coupled.raster import RasterCoupling
from percolab.kernels.device import Device
from percolab.kinds.grid import GridSampler
from percolab.labelers.four_step import FourStep
from percolab.labelers.raster import RunsOfOneSample
from percolab.lattices.topology import pack_bits, unpack_bits
from percolab.measure.columns import list_observables
from percolab.measure.rows import CLUSTERS, LARGEST
from percolab.run.stored import Interrupted
from percolab.spins.chain_cpu import CpuChain
from percolab.validation import (
    LIMIT,
    Check,
    Conditions,
    Outcome,
    critical,
    generator,
    lane_counts,
    list_checks,
    parity,
    run_check,
    spins,
    sweeps,
)
from percolab.validation.check import compare_means

DOCS = Path(__file__).parents[2] / "docs" / "validation.md"


class Short(Conditions):
    """Conditions with a tenth of the samples."""

    def count(self, quick, full):
        return max(quick // 10, 2)


SHORT = Short(Device("cpu"), seed=3)
CHECKS = {f"{check.group}: {check.name}": check for check in list_checks(SHORT)}
#: The checks that run here, by group; ``percolab validate`` runs them all.
GROUPS = {
    "generator": "known outputs; open bonds by definition; uniformity",
    "labelers": "small honeycomb; spanning thresholds",
    "enumerations": "all of square torus 2 x 2; all of Bethe lattice, 2 shells; "
    "samples of square 3 x 3; thresholds",
    "dual clusters": "planar lattices",
    "clusters per site": "square, L = 16; triangular, L = 16; honeycomb, L = 16",
    "spanning": "self-dual rectangles; self-matching rhombi; Bethe lattices",
    "wrapping": "triangular",
    "sweeps": "interrupted and continued; XORWOW and Philox",
    "spins": "Kaufman, sw; Kaufman, wolff; all states of kagome; all states of graph; identities; "
    "parity",
}
SOME = [f"{group}: {name}" for group, names in GROUPS.items() for name in names.split("; ")]


def found(name, conditions=SHORT):
    return list(run_check(CHECKS[name], conditions))


def failing(name):
    return [outcome.name for outcome in found(name) if not outcome.holds]


@cache
def sound(name):
    return found(name)


@pytest.mark.parametrize("name", SOME)
def test_check_holds_on_a_sound_installation(name):
    assert sound(name)
    assert [outcome for outcome in sound(name) if not outcome.holds] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHECKS if name.startswith("spins")])
def test_check_of_spins_holds_with_all_its_samples(name):
    outcomes = found(name, Conditions(Device("cpu"), seed=3))
    assert [outcome.name for outcome in outcomes if not outcome.holds] == []


def test_names_of_checks_and_outcomes_are_given_once():
    assert len(CHECKS) == len(list_checks(SHORT))
    names = [outcome.name for name in SOME for outcome in sound(name)]
    assert len(set(names)) == len(names)


def test_cardy_and_a_threshold_hold(monkeypatch):
    monkeypatch.setitem(sweeps._THRESHOLD_SAMPLES, "bond", 500)
    assert failing("spanning: Cardy's formula") == []
    (outcome,) = found("thresholds: honeycomb bonds", Short(Device("cpu"), seed=4))
    assert outcome.holds
    assert outcome.sigma < 0.01


# On an installation that is broken in one place, the check that looks there fails.


def test_a_wrong_label_fails(monkeypatch):
    label = FourStep.label

    def wrong(self):
        labels = label(self)
        labels[-1:] = labels[-1:] // 2
        return labels

    monkeypatch.setattr(FourStep, "label", wrong)
    (first,) = (item for item in found("labelers: small honeycomb") if not item.holds)
    assert first.name == "four_step on honeycomb: unlike reference"
    assert "first on 1 x 37, open, open, bond" in first.note


def test_a_wrong_row_fails(monkeypatch):
    rows = RunsOfOneSample.rows

    def wrong(self):
        found = rows(self)
        found[:, CLUSTERS] -= found[:, LARGEST] == 3
        return found

    monkeypatch.setattr(RunsOfOneSample, "rows", wrong)
    names = failing("enumerations: all of square torus 2 x 2")
    assert names == ["raster, square torus 2 x 2: sums unlike the exact"]


def test_a_wrong_threshold_fails(monkeypatch):
    scan = RasterCoupling.scan_windows
    monkeypatch.setattr(RasterCoupling, "scan_windows", lambda *given: scan(*given) + np.uint64(1))
    assert failing("labelers: spanning thresholds") == [
        "raster: spanning thresholds unlike reference's"
    ]


def test_a_wrong_output_fails(monkeypatch):
    monkeypatch.setattr(generator, "PHILOX", (((0,) * 4, (0,) * 2, (0, 0, 0, 0)),))
    monkeypatch.setattr(generator, "SPLITMIX64", (1, 2, 3))
    assert [outcome.value for outcome in found("generator: known outputs")] == [0, 3, 4]


def test_a_bond_that_is_open_too_often_fails(monkeypatch):
    monkeypatch.setattr(generator, "p_to_threshold", lambda p: p_to_threshold(1.02 * p))
    names = failing("generator: uniformity")
    assert len(names) == 24, "every test of all six p and generators"


def test_samples_and_words_that_repeat_fail(monkeypatch):
    fill = generator.fill_open_bonds

    def repeated(rng, seed, sample, *given):
        fill(rng, seed, np.uint64(0), *given)
        given[-1][1::2] = given[-1][0::2]

    monkeypatch.setattr(generator, "fill_open_bonds", repeated)
    names = failing("generator: uniformity")
    for what in ("words", "samples"):
        assert sum(f"two {what}" in name for name in names) == 6


@pytest.mark.parametrize(
    "name", [name for name in SOME if name.startswith(("clusters", "spanning", "enumerations: s"))]
)
def test_samples_at_another_p_fail(monkeypatch, name):
    monkeypatch.setattr(
        "percolab.validation.check.p_to_threshold", lambda p: p_to_threshold(p + 0.05)
    )
    assert failing(name)


@pytest.mark.parametrize("rng", ["xorwow", "philox"])
def test_the_bonds_of_a_word_are_independent(rng):
    few = SimpleNamespace(count=lambda quick, full: 2**17, stream_seed=SHORT.stream_seed)
    outcomes = [item for item in generator._lanes(few) if item.name.endswith(rng)]
    assert len(outcomes) == 4 * len(generator.P_OF_LANES)
    assert all(item.holds for item in outcomes), outcomes


@pytest.mark.slow
def test_words_of_sample_version_1_are_refused():
    """Bonds 0 and 2 of them had a correlation of 2e-3: 6 sigma in this number of words."""
    p = generator.P_OF_LANES[0]

    version_1 = record_program("randomness/randomness_version_1.py")

    def fill(sample, words):
        version_1.fill_of_version_1(7, sample, p_to_threshold(p), words)

    pairs, largest, *_ = generator.lane_outcomes(fill, 2**23, p, "version 1")
    assert not pairs.holds or not largest.holds
    assert largest.value > LIMIT


def test_the_counts_of_pairs_and_triples_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**32, 64, dtype=np.uint64).astype(np.uint32)
    is_open = unpack_bits(words, 2048).reshape(64, 32).astype(int)
    one, two = np.zeros(32, np.int64), np.zeros((32, 32), np.int64)
    three = np.zeros((32, 32, 32), np.int64)
    lane_counts.count_lanes(pack_bits(is_open.astype(bool).T), one, two, three)
    np.testing.assert_array_equal(one, is_open.sum(axis=0))
    np.testing.assert_array_equal(two, np.triu(is_open.T @ is_open, 1))
    assert three[3, 17, 31] == np.sum(is_open[:, 3] * is_open[:, 17] * is_open[:, 31])
    assert three.sum() == sum(math.comb(count, 3) for count in is_open.sum(axis=1))


def test_generators_that_differ_fail(monkeypatch):
    sampled = sweeps.sampled_rows

    def biased(conditions, topology, p, samples, *, rng, **given):
        p += 0.05 * (rng == "philox")
        return sampled(conditions, topology, p, samples, rng=rng, **given)

    monkeypatch.setattr(sweeps, "sampled_rows", biased)
    *each, joint = failing("sweeps: XORWOW and Philox")
    assert len(each) == len(list_observables(("open", "open")))
    assert joint == "together: XORWOW and Philox"


def test_a_continued_run_that_differs_fails(monkeypatch, one_block_calls):
    sample, calls = GridSampler.sample_groups, []

    def wrong(self, numbers, stopped, largest):
        calls.append(numbers)
        blocks = sample(self, numbers, stopped, largest)
        if len(calls) > 120:
            blocks = [replace(block, sums=np.roll(block.sums, 1, axis=0)) for block in blocks]
        return blocks

    monkeypatch.setattr(GridSampler, "sample_groups", wrong)
    assert failing("sweeps: interrupted and continued") == ["files unlike those of a run in one go"]


@pytest.mark.slow
def test_spins_at_another_p_fail(monkeypatch):
    monkeypatch.setattr("percolab.tasks.study.p_to_threshold", lambda p: p_to_threshold(p + 0.03))
    for name in ("Kaufman, sw", "Kaufman, wolff", "all states of square", "identities"):
        assert failing(f"spins: {name}"), name


@pytest.mark.slow
def test_sweeps_that_are_made_twice_fail(monkeypatch):
    advance = CpuChain.advance

    def stuck(self, sweeps):
        parts = []
        for n in range(sweeps):
            # Odd sweeps are taken back, so that the next draw the same numbers.
            planes, counts, sweep = self.spins.planes.copy(), self.spins.counts.copy(), self.sweep
            parts.append(advance(self, 1))
            if n % 2:
                self.spins.planes[:], self.spins.counts[:], self.sweep = planes, counts, sweep
        return tuple(np.concatenate(found, axis=1) for found in zip(*parts))

    monkeypatch.setattr(CpuChain, "advance", stuck)
    wrong = [x.name for x in found("spins: identities", Conditions(Device("cpu"))) if not x.holds]
    assert any(name.startswith("M^2 of two sweeps") for name in wrong)


def test_a_chain_of_a_labeler_that_differs_fails(monkeypatch):
    join = FourStep.join

    def wrong(self, *given):
        forest = join(self, *given)
        labels = forest.labels()
        labels[..., -1] = 0
        return SimpleNamespace(rows=forest.rows, labels=lambda: labels)

    monkeypatch.setattr(FourStep, "join", wrong)
    assert {name.partition(" on ")[0] for name in failing("spins: parity")} == {"four_step"}


def test_wrapping_is_checked_as_soon_as_it_is_measured(monkeypatch):
    exact_values = wrapping_probabilities(1j)
    rng = np.random.default_rng(5)
    chances = {"wrapping_x": exact_values.x, "wrapping_all": exact_values.either, "other": 0.5}

    def drawn(boundary):
        return [
            SimpleNamespace(name=name, of_rows=lambda rows, p=p: rng.random(len(rows)) < p)
            for name, p in chances.items()
        ]

    monkeypatch.setattr(critical, "list_observables", drawn)
    outcomes = found("wrapping: square")
    assert [outcome.holds for outcome in outcomes] == [True, False, False]


def test_a_check_that_breaks_down_is_a_row_that_fails():
    def breaks(conditions):
        yield Outcome("one", 1, 1)
        raise RuntimeError("no such\nkernel")

    one, broken = run_check(Check("group", "two", breaks), SHORT)
    assert one.holds
    assert (broken.name, broken.note) == ("two", "RuntimeError: no such kernel")
    assert not broken.holds


def test_ctrl_c_is_not_taken_for_a_failure():
    def stopped(conditions):
        raise Interrupted(stored=True, exit_code=130)
        yield

    with pytest.raises(Interrupted):
        list(run_check(Check("group", "name", stopped), SHORT))


def test_an_outcome_holds_if_equal_or_within_four_sigma():
    holds = [(0, 0, None), (1.4, 1.0, 0.1), (0.6, 1.0, 0.1)]
    fails = [(1, 0, None), (1.41, 1.0, 0.1), (0.59, 1.0, 0.1), (1.0, 1.0, 0.0)]
    fails += [(math.nan, 1.0, 0.1), (math.nan, 0.0, None), (1.0, 1.0, math.inf)]
    assert all(Outcome("name", *numbers).holds for numbers in holds)
    assert not any(Outcome("name", *numbers).holds for numbers in fails)


def test_streams_hang_on_seed_and_name():
    settings = [Conditions(Device("cpu"), seed=seed) for seed in (1, 2)]
    names = [("a",), ("b",), ("a", 1), ("a", "1", "")]
    seeds = {conditions.stream_seed(*name) for conditions in settings for name in names}
    assert len(seeds) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert settings[0].stream_seed("a") == Conditions(Device("cpu")).stream_seed("a")


def test_full_looks_at_all_lattices_with_more_samples():
    full = Conditions(Device("cpu"), full=True)
    assert full.count(quick=1, full=2) == 2
    names = {check.name for check in list_checks(full)}
    assert {"small square-nnn", "large hypercubic-5d"} <= names
    assert len(names) > len({check.name for check in list_checks(SHORT)})


def test_every_labeler_but_the_reference_is_compared():
    small = parity.checks(("square",))[0]
    assert [outcome.name for outcome in run_check(small, SHORT)] == [
        f"{name} on square: unlike reference"
        for name in ("raster", "four_step", "label_equivalence")
    ]


# The command line.


def of(*outcomes):
    return lambda conditions: (Check("group", "name", lambda conditions: iter(outcomes)),)


HOLDS = (Outcome("equal", 0, 0), Outcome("near", 0.51, 0.5, 0.01, "a note"))
FAR = Outcome("far", 0.6, 0.5, 0.01, "a note")


def test_command_trusts_an_installation_on_which_all_holds(monkeypatch):
    monkeypatch.setattr("percolab.validation.list_checks", of(*HOLDS))
    result = run("validate", "--device", "cpu")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["group", "value", "expected", "sigma", "z"]
    assert lines[1].split() == ["equal", "0", "0", "exact", "holds"]
    assert lines[2].split() == ["near", "0.510", "0.500", "1.0e-02", "+1.0", "holds"]
    assert lines[-1].startswith("TRUSTED: all 2 checks hold (on cpu, seed 1, ")
    assert "1 of 2 values have an error." in lines[-2]
    assert "1 are independent: 0 of these are beyond 2 sigma, where chance puts 0.0" in lines[-2]


def test_values_of_the_same_samples_count_once():
    """Three values, one the sum of the others: |z| of 1.5 and 2.1 far off, together as is usual."""
    rng, z = np.random.default_rng(1), []
    for _ in range(400):
        values = rng.standard_normal((300, 2)) @ [[1.0, 0.95], [0.0, 0.3]]
        values = np.column_stack([values, values.sum(axis=1)])
        means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / 300**0.5
        *each, joint = compare_means("all", {str(n): (values[:, n], 0.0) for n in range(3)})
        assert [row.correlated for row in (*each, joint)] == [True, True, True, False]
        assert [row.z for row in each] == pytest.approx(means / errors, rel=0.03)
        z.append(joint.z)
    # Normal deviates: mean and scatter, whose errors are 0.05 and 0.035.
    assert abs(np.mean(z)) < 4 * 0.05
    assert abs(np.std(z) - 1) < 4 * 0.035


def test_a_deviation_against_the_correlation_is_seen_in_all_values_together():
    rng = np.random.default_rng(2)
    values = rng.standard_normal((300, 2)) @ [[1.0, 0.999], [0.0, 0.04]] + [0.05, -0.05]
    *each, joint = compare_means("both", {str(n): (values[:, n], 0.0) for n in range(2)})
    assert all(row.holds for row in each)
    assert not joint.holds


def test_the_end_counts_what_is_independent(monkeypatch):
    rows = (*(Outcome(f"near {n}", 2.5, 0, 1.0, correlated=True) for n in range(9)), HOLDS[1])
    monkeypatch.setattr("percolab.validation.list_checks", of(*rows))
    record = json.loads(run("validate", "--device", "cpu", "--json").stdout)
    assert (record["values_with_error"], record["independent_values"]) == (10, 1)
    assert record["beyond_2_sigma"] == 0


@pytest.mark.slow
def test_chains_of_checks_have_forgotten_their_start(monkeypatch):
    """With burn-ins of 20 and 60 sweeps these are off by 5 and 9 sigma."""
    monkeypatch.setattr(spins, "_UPDATES", ("sw",))
    monkeypatch.setattr(spins, "_TINY_P", {10: 0.6})
    monkeypatch.setattr(spins, "_CASES", spins._CASES[-1:])
    monkeypatch.setattr(Conditions, "count", lambda self, quick, full: 20 * quick)
    conditions = Conditions(Device("cpu"), seed=3)
    outcomes = [*spins._enumerated("triangular", conditions)]
    outcomes += islice(spins._identities(conditions), 4)
    assert [(row.name, row.z) for row in outcomes if not row.holds] == []


@pytest.mark.parametrize(("outcome", "mendable"), [(FAR, True), (Outcome("unequal", 3, 0), False)])
def test_command_fails_with_the_verdict_where_one_check_fails(monkeypatch, outcome, mendable):
    monkeypatch.setattr("percolab.validation.list_checks", of(*HOLDS, outcome))
    result = run("validate", "--device", "cpu", "--seed", 7)
    assert result.exit_code == 1
    assert "FAILS" in next(line for line in result.stdout.splitlines() if outcome.name in line)
    assert "NOT TRUSTED: 1 of 3 checks fail (on cpu, seed 7" in result.stdout
    assert ("another --seed" in result.stdout) is mendable


def test_command_writes_json(monkeypatch):
    broken = Outcome("broken", math.nan, 0.0, note="RuntimeError: x")
    monkeypatch.setattr("percolab.validation.list_checks", of(*HOLDS, broken))
    result = run("validate", "--device", "cpu", "--json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["trusted"] is False
    assert (record["device"], record["seed"], record["limit"]) == ("cpu", 1, 4.0)
    assert [row["holds"] for row in record["checks"]] == [True, True, False]
    assert record["checks"][1]["z"] == pytest.approx(1)
    assert record["checks"][2]["value"] is None
    monkeypatch.setattr("percolab.validation.list_checks", of(*HOLDS))
    assert json.loads(answer("validate", "--device", "cpu", "--json"))["trusted"] is True


def test_command_hands_settings_over(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "percolab.validation.list_checks", lambda conditions: seen.append(conditions) or ()
    )
    answer("validate", "--device", "cpu", "--full", "--seed", 9)
    assert seen == [Conditions(Device("cpu"), seed=9, full=True)]


def test_documentation_names_every_group():
    text = DOCS.read_text(encoding="utf-8")
    for group in {check.group for check in CHECKS.values()}:
        assert f"| {group} |" in text, group


# percolab observables


def names_of(*arguments):
    found = json.loads(answer("observables", "--json", *arguments))
    return [item["name"] for item in found if not {"measure", "model", "method"} & item.keys()]


@pytest.mark.parametrize(
    "text", ["open,open", "periodic,periodic", "open,periodic,open", "terminals"]
)
def test_observables_are_those_of_the_registry(text):
    registered = list_observables(tuple(text.split(",")))
    assert names_of("--boundary", text) == [item.name for item in registered]
    lines = answer("observables", "--boundary", text).partition("\n\n")[0].splitlines()
    for line, item in zip(lines[1:], registered, strict=True):
        assert line.startswith(item.name)
        assert item.meaning in line
        assert item.symbol in line


def test_one_word_is_the_boundary_of_both_axes():
    assert names_of("--boundary", "open") == names_of("--boundary", "open,open")


def test_observables_of_both_usual_boundaries_are_listed_by_default():
    names = names_of()
    assert len(set(names)) == len(names)
    for boundary in (("open", "open"), ("periodic", "periodic")):
        assert {item.name for item in list_observables(boundary)} <= set(names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("opne", "unknown 'opne'; did you mean 'open'"),
        ("open,terminals", "terminals is for a graph, which has no axes"),
        (",".join(["open"] * 9), "at most 8 axes"),
    ],
)
def test_observables_refuse_a_boundary_that_is_none(text, message):
    assert message in refusal("observables", "--boundary", text)
