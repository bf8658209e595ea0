"""Bonds and sites of one lattice share what wraps at p_c: one fit, and what it refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest
from cli_support import answer, refusal

import percolab
from percolab.analysis.shared_fit import combine
from percolab.analysis.theory.known_exponents import Known
from percolab.analysis.value import ChiSquare
from percolab.analysis.wrapping_fit import WrappingEstimate

R = np.array([0.46, 0.258, 0.08])
P_C = (0.2488, 0.3116, 0.39)
PUBLISHED = {"bond": 0.24881185, "site": 0.31160768}


def covariances(rng, count):
    """Return covariances of p_c and R whose correlations are like those of real samples."""
    found = []
    for scale in 1e-4 * rng.uniform(1, 3, count):
        common = np.array([1, 0.9, 0.9, 0.8]) + 0.1 * rng.standard_normal(4)
        units = np.array([1, 60, 50, 30]) * scale
        found.append((np.outer(common, common) + 0.1 * np.eye(4)) * np.outer(units, units))
    return found


def conditioned(means, whole):
    """Return means and covariance of all numbers, given that the R of all files are equal."""
    mean, covariance = np.concatenate(means), np.zeros((4 * len(means),) * 2)
    for n, own in enumerate(whole):
        covariance[4 * n : 4 * n + 4, 4 * n : 4 * n + 4] = own
    differ = np.zeros((3 * (len(means) - 1), mean.size))
    for n in range(1, len(means)):
        rows = differ[3 * n - 3 : 3 * n]
        rows[:, 1:4], rows[:, 4 * n + 1 : 4 * n + 4] = np.eye(3), -np.eye(3)
    gain = covariance @ differ.T @ np.linalg.inv(differ @ covariance @ differ.T)
    chi = differ @ mean @ np.linalg.solve(differ @ covariance @ differ.T, differ @ mean)
    return mean - gain @ differ @ mean, covariance - gain @ differ @ covariance, chi


@pytest.mark.parametrize("count", [2, 3])
def test_one_r_for_all_is_the_gaussian_on_condition_that_they_are_equal(count):
    rng = np.random.default_rng(count)
    whole = covariances(rng, count)
    means = [rng.multivariate_normal([P_C[n], *R], own) for n, own in enumerate(whole)]
    values, agreement = combine([(m, v, v / 2) for m, v in zip(means, whole, strict=True)])
    mean, covariance, chi = conditioned(means, whole)
    at = [*range(0, 4 * count, 4), 1, 2, 3]
    assert [value.value for value in values] == pytest.approx(mean[at], rel=1e-9)
    errors = np.sqrt(np.diag(covariance))[at]
    assert [value.error for value in values] == pytest.approx(errors, rel=1e-6)
    # Where half of every variance is that of samples, half of every result's is.
    parts = [value.statistical_error * 2**0.5 for value in values]
    assert parts == pytest.approx(errors, rel=1e-6)
    assert (agreement.value, agreement.dof) == (pytest.approx(chi, rel=1e-6), 3 * (count - 1))


@pytest.mark.parametrize("known", [False, True])
def test_errors_hold_and_agreement_is_chi_squared(known):
    rng = np.random.default_rng(7)
    whole, critical, trials = covariances(rng, 2), (), 2000
    pulls, chis = [], []
    for _ in range(trials):
        if known:
            critical = [Known(x + 1e-3 * rng.standard_normal(), 1e-3, "", "") for x in R]
        means = [rng.multivariate_normal([P_C[n], *R], own) for n, own in enumerate(whole)]
        estimates = [(m, v, v) for m, v in zip(means, whole, strict=True)]
        values, agreement = combine(estimates, critical)
        true = [*P_C[:2], *R]
        pulls.append([(v.value - x) / v.error for v, x in zip(values, true, strict=True)])
        chis.append(agreement.value)
        assert agreement.dof == (6 if known else 3)
    assert np.abs(np.mean(pulls, axis=0)).max() < 4 / trials**0.5
    assert np.abs(np.mean(np.square(pulls), axis=0) - 1).max() < 4 * (2 / trials) ** 0.5
    dof = agreement.dof
    assert abs(np.mean(chis) - dof) < 4 * (2 * dof / trials) ** 0.5


def test_published_values_count_once_however_many_files_there_are():
    whole = covariances(np.random.default_rng(3), 3)
    estimates = [(np.array([p, *R]), own, own) for p, own in zip(P_C, whole, strict=True)]
    critical = [Known(x, 1e-5, "", "") for x in R]
    for count in (1, 2, 3):
        values, _ = combine(estimates[:count], critical)
        assert [value.error for value in values[count:]] == pytest.approx([1e-5] * 3, rel=0.01)
        assert max(value.statistical_error for value in values[count:]) < 1e-6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def searched(folder):
    """Return searches of cubic bonds, two of them, of sites, and of one model elsewhere."""
    found = {}
    for name, lattice, model, seed in (
        ("bonds", "cubic", "bond", 1),
        ("again", "cubic", "bond", 2),
        ("sites", "cubic", "site", 3),
        ("bcc", "bcc", "bond", 4),
        ("stacked", "stacked-triangular", "bond", 5),
        ("plane", "square", "bond", 6),
        ("fixed", "cubic", "bond:z=0.3", 7),
    ):
        options = {"model": model, "seed": seed, "error": 2.5e-3, "device": "cpu"}
        found[name] = percolab.threshold(lattice, out=folder / f"{name}.h5", **options)
    return found


def files(folder, *names):
    return [folder / f"{name}.h5" for name in names]


def test_bonds_and_sites_are_more_precise_together(searched, folder):
    pair = files(folder, "bonds", "sites")
    record = json.loads(answer("fit", *pair, "--json"))
    assert record["problem"] is None
    assert record["agreement"]["dof"] == 3
    for file, name in zip(record["files"], ("bonds", "sites"), strict=True):
        own = searched[name]
        assert (file["lattice"], file["model"]) == ("cubic", own.results.study.model)
        assert file["alone"]["value"] == own.p_c
        assert file["p_c"]["error"] < 0.9 * own.error
        assert 0 < abs(file["prior_shift"]) < file["p_c"]["error"]
        assert abs(file["p_c"]["value"] - PUBLISHED[file["model"]]) < 4 * file["p_c"]["error"]
    for name, value in (("any", 0.45998), ("axis", 0.25780), ("all", 0.08041)):
        found = record["at_p_c"][f"wrapping_{name}"]
        assert abs(found["value"] - value) < 4 * found["error"]
    shared = percolab.fit([searched["bonds"].results, pair[1]])
    assert [file.p_c.value for file in shared.files] == [
        file["p_c"]["value"] for file in record["files"]
    ]
    assert repr(shared).startswith("<SharedFit p_c of part 1 0.2")
    text = answer("fit", *pair)
    assert "agreement of the files: chi2/dof" in text
    assert f"{pair[1]}: published 0.31160768(15)" in text


def test_published_values_are_used_on_request_or_as_a_search_had_them(searched, folder):
    pair = files(folder, "bonds", "sites")
    free, known = (percolab.fit(pair, universal=way) for way in ("free", "known"))
    assert known.agreement.dof == 6
    for own, other, name in zip(known.files, free.files, ("bonds", "sites"), strict=True):
        assert own.p_c.error < other.p_c.error
        # Nearly all of R comes from them, so that other files hardly matter.
        alone = percolab.fit(searched[name].results, universal="known").p_c
        assert abs(own.p_c.value - alone.value) < 0.5 * alone.error
        assert own.p_c.error == pytest.approx(alone.error, rel=0.15)
    assert known.at_p_c["wrapping_any"].error == pytest.approx(8e-5, rel=0.01)
    options = {"error": 2.5e-3, "device": "cpu", "universal": "known", "model": "site", "seed": 8}
    made = percolab.threshold("cubic", **options)
    assert percolab.fit([pair[0], made.results]).agreement.dof == 6
    assert percolab.fit([pair[0], made.results], universal="free").agreement.dof == 3


def test_files_of_one_model_are_merged_first(searched, folder):
    assert "put their samples together first (percolab merge)" in refusal(
        "fit", *files(folder, "bonds", "again")
    )
    merged = folder / "merged.h5"
    answer("merge", *files(folder, "bonds", "again"), "--out", merged)
    one = percolab.open_results(merged).fit()
    assert one.threshold_error < searched["bonds"].error
    shared = percolab.fit([merged, folder / "sites.h5"])
    assert shared.files[0].alone.value == one.threshold
    assert shared.files[0].p_c.error < one.threshold_error


def test_probabilities_that_contradict_each_other_give_no_p_c(searched, folder, monkeypatch):
    joint = WrappingEstimate.joint

    def moved(self):
        mean, *others = joint(self)
        return mean + np.array([0, 0.3, 0, 0]) * (mean[0] > 0.28), *others

    monkeypatch.setattr(WrappingEstimate, "joint", moved)
    pair = files(folder, "bonds", "sites")
    problem = "no p_c: the wrapping probabilities of the files contradict each other (chi2/dof"
    text = answer("fit", *pair)
    assert text.splitlines()[2].startswith(problem)
    assert "sigma" not in text.split("published")[-1]
    shared = percolab.fit(pair)
    assert shared.problem.startswith(problem)
    assert all(file.p_c.rejected for file in shared.files)


def test_a_fit_that_is_rejected_alone_gives_no_p_c(searched, folder, monkeypatch):
    threshold = WrappingEstimate.threshold.fget
    bad = ChiSquare.of(200.0, 20)
    monkeypatch.setattr(
        WrappingEstimate, "threshold", property(lambda own: replace(threshold(own), chi_square=bad))
    )
    pair = files(folder, "bonds", "sites")
    lines = answer("fit", *pair).splitlines()
    assert lines[2].startswith(f"{pair[0]}: no p_c: the best fit is rejected")
    alone = f"{searched['bonds'].p_c:.4g}?"
    (row,) = [line for line in lines if line.startswith(f"{pair[0]}  ")]
    assert alone in row
    assert "(" not in row


def test_the_sampled_p_are_all_of_a_file():
    # Those above 0.3174 are too far from p_c for the fit.
    options = {"model": "site", "error": 2.5e-3, "seed": 1, "device": "cpu"}
    found = percolab.threshold("cubic", **options)
    every = [p for each in found.results.measured for p in each.task.p]
    estimate = WrappingEstimate.of(found.results)
    assert estimate.notes
    assert estimate.sampled == (min(every), max(every))


def test_the_smallest_sizes_may_be_left_out_as_a_rejected_fit_advises(searched, folder):
    pair = files(folder, "bonds", "sites")
    record = json.loads(answer("fit", *pair, "--min-size", 12, "--json"))
    fit = percolab.fit([searched["bonds"], pair[1]], min_size=12)
    for own, other in zip(record["files"], fit.files, strict=True):
        assert own["sizes"] == [L for L in searched["bonds"].results.study.sizes if L >= 12]
        assert own["p_c"]["value"] == other.p_c.value
        alone = percolab.fit(pair[own["model"] == "site"], min_size=12)
        assert own["alone"]["value"] == pytest.approx(alone.p_c.value, abs=1e-12)


def test_a_search_and_the_name_of_its_file_are_results(searched, folder):
    found, (file,) = searched["bonds"], files(folder, "bonds")
    values = [percolab.fit(given).p_c.value for given in (found, found.results, file, str(file))]
    assert values == [found.p_c] * 4
    assert percolab.merge([found]).status() == found.results.status()
    assert (
        percolab.plot(found, kind="crossings").numbers["p_c"]
        == percolab.plot(file, kind="crossings").numbers["p_c"]
    )


@pytest.mark.parametrize(
    ("names", "options", "reason"),
    [
        (("bonds", "bcc"), (), "tori of different shapes"),
        (("bonds", "plane"), (), "must be of percolab threshold in three dimensions"),
        (("sites", "stacked"), (), "stacked-triangular, bond, are not equivalent by symmetry"),
        (("sites", "fixed"), (), "cubic, bond:z=0.3, are not equivalent by symmetry"),
        (("bonds", "bonds"), (), "of one lattice and model"),
        (("bonds", "sites"), ("--degree", 3), "the fit of several files does not take it"),
        (("bonds", "sites"), ("--quantities", "all"), "the fit of several files does not take it"),
        (("bonds", "none"), (), "no such file"),
    ],
    ids=["shape", "plane", "symmetry", "fixed", "twice", "degree", "quantities", "missing"],
)
def test_what_shares_nothing_is_refused_in_one_line(searched, folder, names, options, reason):
    assert reason in refusal("fit", *files(folder, *names), *options)


def test_a_table_among_several_files_is_refused_in_one_line(tmp_path):
    tables = [tmp_path / name for name in ("a.csv", "b.csv")]
    for table in tables:
        table.write_text("L,p,k,n\n8,0.5,10,20\n", encoding="utf-8")
    assert "a.csv: is a table; fit it without other files" in refusal("fit", *tables)


def test_a_list_in_python_takes_few_options(searched, folder):
    pair = files(folder, "bonds", "sites")
    for given, options, reason in (
        (pair[:1], {}, "two files or more"),
        (pair, {"omega": 1.0}, "only universal, min_size"),
        (pair, {"observable": "wrapping_x"}, "only universal"),
        (pair, {"min_size": 0}, "min_size = 0"),
        (pair, {"universal": "perhaps"}, "'known' or 'free'"),
    ):
        with pytest.raises(percolab.InputError, match=reason):
            percolab.fit(given, **options)
