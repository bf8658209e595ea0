"""Numbers on the command line: powers of ten, ranges of sizes, and the short form of --quiet."""

import pytest
from cli_support import answer, refusal

import percolab
from percolab.tasks.values import parse_sizes


@pytest.mark.parametrize(
    ("text", "samples"), [("1e2", 100), ("2.5E2", 250), ("1e+2", 100), ("100", 100)]
)
def test_numbers_of_samples_may_be_powers_of_ten(tmp_path, monkeypatch, text, samples):
    monkeypatch.chdir(tmp_path)
    sweep = "sweep", "--lattice", "square", "-L", "4", "-p", "0.5", "--device", "cpu", "-q"
    answer(*sweep, "--samples", text)
    (item,) = percolab.open_results("results.h5").tasks.values()
    assert item.num_samples == samples


@pytest.mark.parametrize("text", ["1e-2", "1.5e0", "1e999", "e4", "1e", "0x10", "1e4.5", "-1e4"])
def test_what_is_no_whole_number_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    line = refusal("sweep", "--lattice", "square", "-L", "4", f"--samples={text}")
    assert "samples" in line
    assert text in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("64:256:3", (64, 128, 256)), ("1:4:9", (1, 2, 3, 4)), (" 8 : 27 : 2 ", (8, 27))],
)
def test_sizes_are_ranges_in_equal_ratios(text, sizes):
    assert parse_sizes(text) == sizes
    study = percolab.sweep("square", L="4:16:3", p=0.5, samples=10, device="cpu").study
    assert study.sizes == (4, 8, 16)


def test_a_study_file_may_have_a_range_of_sizes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text('lattice = "square"\nL = "4:16:3"\np = 0.5\nsamples = 10\n')
    answer("sweep", "own.toml", "--device", "cpu", "--out", "r.h5", "-q")
    assert percolab.open_results("r.h5").study.sizes == (4, 8, 16)


@pytest.mark.parametrize(
    "text", ["8:4:2", "4:8", "4:8:1", "0:8:2", "4:8:2:2", "4:x:2", ":", "4:8:99999"]
)
def test_other_ranges_of_sizes_are_refused(text):
    with pytest.raises(percolab.InputError, match="L = "):
        parse_sizes(text)


def test_samples_in_python_may_be_whole_floats():
    results = percolab.sweep("square", L=[4, 6], p=0.5, samples=[2e1, 30], device="cpu")
    assert [item.num_samples for item in results.tasks.values()] == [20, 30]
    for wrong in (20.5, float("nan"), float("inf"), True, "1e4"):
        with pytest.raises(percolab.InputError, match="samples"):
            percolab.sweep("square", L=4, p=0.5, samples=wrong, device="cpu")
