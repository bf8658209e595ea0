"""percolab fit and plot of tables, as a user of the command line gets them."""

import json

import numpy as np
import pytest
from cli_support import answer, refusal
from scipy.stats import binom

import percolab
from percolab.analysis.value import format_with_error


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Return a table of two decoders, of which one has too few sizes."""
    rng = np.random.default_rng(2)
    lines = ["d,p,errors,shots,decoder"]
    for d in (5, 9, 17, 33):
        for p in np.linspace(0.4, 0.6, 9):
            lines.append(f"{d},{p:.4g},{rng.binomial(9999, binom.sf(d // 2, d, p))},9999,majority")
    lines += ["3,0.4,5,10,lone", "3,0.6,6,10,lone"]
    path = tmp_path_factory.mktemp("tables") / "codes.csv"
    path.write_text("\n".join(lines))
    return path


def test_every_series_is_fitted_or_says_why_not(codes):
    record = json.loads(answer("fit", codes, "--json", "--degree", 3, "--collapse"))
    lone, fit = record["fits"]
    assert lone == {"name": "decoder=lone", "problem": "need at least two sizes with two p each"}
    assert fit["name"] == "decoder=majority"
    assert abs(fit["threshold"] - 0.5) <= 4 * fit["threshold_error"]
    assert abs(fit["collapse"]["threshold"] - 0.5) <= 4 * fit["collapse"]["threshold_error"]
    assert fit["sizes"] == [5, 9, 17, 33]
    assert len(fit["priors"]) == 3
    text = answer("fit", codes, "--series", "decoder=majority", "--degree", 3)
    for line in ("p_c ", "1/nu ", "check: drift of the crossings", "1/nu = 1 +- 1; p_c has none",
                 "L1  L2  crossing p  errors/shots there"):  # fmt: skip
        assert line in text


def test_commands_that_take_no_table_say_which_do(codes):
    for command in ("status", "report", "export"):
        assert refusal(command, codes).endswith("; percolab fit and plot read tables")


def test_the_collapse_is_drawn_with_the_answer_of_the_fit(codes):
    table = percolab.open_table(codes)
    fit = table.fit(series="decoder=majority", degree=3)
    figure = table.plot(kind="collapse", series="decoder=majority", degree=3)
    drawn = figure.numbers["collapse"]
    assert (drawn["threshold"], drawn["y_t"]) == (fit.threshold, fit.y_t)
    title = figure.axes[1].get_title()
    for value, error in ((fit.threshold, fit.threshold_error), (fit.y_t, fit.y_t_error)):
        assert format_with_error(value, error) in title
    tuned = fit.collapse(bootstrap=0)
    assert tuned.quality < drawn["quality"]


@pytest.mark.slow
def test_a_table_is_drawn(codes, tmp_path):
    for kind in ("curves", "crossings", "collapse"):
        out = tmp_path / f"{kind}.png"
        options = ("--series", "decoder=majority", "--degree", 3)
        text = answer("plot", codes, *options, "--kind", kind, "--out", out, "--json")
        numbers = json.loads(text[text.index("{") :])
        assert numbers["kind"] == kind
        assert out.stat().st_size > 5000
    assert len(numbers["collapse"]["x"]) > 20


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--window", "0.2,0.8"), "--window: the fit of a table does not take it"),
        (("--exponents",), "--exponents: the fit of a table does not take it"),
        (("--quantities", "all"), "--quantities: the fit of a table does not take it"),
        (("--series", "decoder=minority"), "did you mean 'decoder=majority'"),
        (("--columns", "x=q"), "--columns x=q"),
        (("--series", "decoder=majority", "--kappa"), "means that are all above 0"),
        (("--min-size", 33), "at least two sizes of L >= 33"),
    ],
)
def test_options_that_a_table_has_no_use_for_are_refused(codes, options, problem):
    assert problem in refusal("fit", codes, *options)


def test_a_figure_is_of_one_series(codes):
    assert "give a --series, one of: decoder=lone; decoder=majority" in refusal("plot", codes)
    assert "tables have curves, crossings, collapse" in refusal(
        "plot", codes, "--series", "decoder=majority", "--kind", "drift", "--degree", 3
    )


@pytest.mark.parametrize("command", ["fit", "plot"])
def test_results_take_no_options_of_tables(command):
    assert "--columns: for tables alone" in refusal(command, "a.h5", "--columns", "x=p")
