"""Tables of other people's data: which columns are found, what splits them, what is refused."""

import json
import os

import numpy as np
import pytest

from percolab import InputError, open_table
from percolab.tables.given import read_table, take_roles

SINTER = "     shots,    errors,  discards, seconds,decoder,strong_id,json_metadata,custom_counts"


def sinter_line(shots, errors, decoder, discards=0, **metadata):
    text = json.dumps(metadata, separators=(",", ":")).replace('"', '""')
    return f'{shots:>10},{errors:>10},{discards:>10},{1.25:>8},{decoder},0f3a,"{text}",'


def sinter_file(path, lines):
    path.write_text("\n".join([SINTER, *lines]) + "\n")
    return path


def written(path, text):
    path.write_text(text)
    return path


def columns_of(series):
    return [series.L.tolist(), series.x.tolist(), series.values.tolist()]


def test_a_file_of_sinter_is_read_as_it_is(tmp_path):
    lines = [
        sinter_line(1000, errors, decoder, discards=10, d=d, p=p, rounds=3 * d, basis=basis)
        for d in (5, 3)
        for p in (0.01, 0.02)
        for basis in ("X", "Z")
        for decoder, errors in (("pymatching", 30), ("fusion", 33))
    ]
    table = read_table(sinter_file(tmp_path / "stats.csv", lines))
    # The rounds follow from d: they make no series of their own.
    assert sorted(table.series) == [
        f"decoder={decoder}, basis={basis}"
        for decoder in ("fusion", "pymatching") for basis in "XZ"
    ]  # fmt: skip
    one = table.choose("decoder=fusion, basis=X")
    assert columns_of(one) == [[3, 3, 5, 5], [0.01, 0.02] * 2, [33 / 990] * 4]
    assert one.trials.tolist() == [990] * 4
    assert (one.axis, one.quantity) == ("p", "errors/shots")
    assert table.notes == ("columns not used: rounds",)


def test_rows_of_sinter_that_continue_others_add_up(tmp_path):
    lines = [sinter_line(100, 7, "a", d=3, p=0.1), sinter_line(50, 2, "a", d=3, p=0.1),
             sinter_line(10, 1, "a", d=5, p=0.1)]  # fmt: skip
    table = read_table(sinter_file(tmp_path / "stats.csv", lines))
    series = table.choose()
    assert columns_of(series) == [[3, 5], [0.1, 0.1], [9 / 150, 0.1]]
    assert series.trials.tolist() == [150, 10]
    note = "1 row of the table: d and p are those of another row, taken as more samples of the same"
    assert table.notes == (note,)


def test_metadata_that_are_numbers_split_unless_they_follow_from_size_or_x(tmp_path):
    lines = [sinter_line(100, 7, "a", d=d, p=p, eta=eta, noise=p / 2)
             for d in (3, 5) for p in (0.1, 0.2) for eta in (1, 10)]  # fmt: skip
    table = read_table(sinter_file(tmp_path / "stats.csv", lines))
    assert list(table.series) == ["eta=1", "eta=10"]
    joined = read_table(tmp_path / "stats.csv", "series=none")
    assert list(joined.series) == [""]
    assert joined.choose().trials.tolist() == [200] * 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "L,T,mean,error\n8,2.5,0.5,0.01\n16,2.6,0.4,0.02\n"),
        ("a.csv", "# made by hand\nT;mean;error;L\n\n2.5;0.5;0.01;8\n% more\n2.6;0.4;0.02;16\n"),
        ("a.tsv", "distance\ttemperature\ty\tstderr\n8\t2.5\t.5\t1e-2\n16\t2.6\t.4\t2e-2\n"),
        ("a.dat", "  size  x   value  sigma\n 16  2.6 0.4  0.02\n 8  2.5 0.5  0.01\n"),
        # As numpy.savetxt writes a header.
        ("a.txt", "# L T mean err\n8.0 2.5 0.5 0.01\n16.0 2.6 0.4 0.02\n"),
        ("a.csv", "L;T [K];R;R_err\n8;2,5;,5;1E-2\n16;2,6;0,4;0,02\n"),
        ("a.tsv", "L\tT\tR\tR_err\n8\t2,5\t,5\t1E-2\n16\t2,6\t0,4\t0,02\n"),
        ("a.csv", "L (nm),T [K],mean [-],error [-]\n8,2.5,0.5,0.01\n16,2.6,0.4,0.02\n"),
        ("a.csv", "\ufeffL,T,mean,error\r\n8,2.5,0.5,0.01\r\n16,2.6,0.4,0.02\r\n"),
    ],
    ids=[
        "comma",
        "semicolon",
        "tab",
        "blanks",
        "savetxt",
        "decimal comma",
        "tabs and commas",
        "units",
        "windows",
    ],
)
def test_separators_comments_and_words_for_columns(tmp_path, name, text):
    series = read_table(written(tmp_path / name, text)).choose()
    assert columns_of(series) == [[8, 16], [2.5, 2.6], [0.5, 0.4]]
    assert series.errors.tolist() == [0.01, 0.02]
    assert series.trials is None


@pytest.mark.parametrize("row", ["8;0.5;1,000;2000", "8;1;1,000;2000\n8;0.5;10;2000"])
def test_a_thousand_with_a_comma_is_not_taken_for_one(tmp_path, row):
    with pytest.raises(InputError, match="some numbers have a decimal comma, others a decimal poi"):
        read_table(written(tmp_path / "a.csv", f"L;p;k;n\n{row}\n"))


def test_a_unit_is_no_part_of_a_name(tmp_path):
    rows = {"L (nm)": [8], "T [K]": [2.3], "Binder [1]": [0.8], "Binder_err [1]": [0.02]}
    series = read_table(rows).choose()
    assert (series.quantity, series.axis, series.errors.tolist()) == ("Binder", "T", [0.02])
    assert series.units == ("K", "")
    rows = {"L": [8], "K [J^-1]": [0.4], "y (m/1)": [0.3], "y_err": [0.1]}
    assert read_table(rows).choose().units == ("J^-1", "m/1")
    rows = {"L": [8], "p": [0.1], "rate (%)": [30], "rate (%)_error": [2], "rate": [0.3]}
    assert read_table(rows).choose().errors.tolist() == [2]


def test_percent_are_hundredths(tmp_path):
    rows = "8,9.5%,10 %,2,20\n8,10%,15%,3,20\n"
    series = read_table(written(tmp_path / "a.csv", f"L,p,rate,k,n\n{rows}")).choose()
    assert columns_of(series) == [[8, 8], [0.095, 0.1], [0.1, 0.15]]


def test_columns_are_named_where_words_do_not_say_it(tmp_path):
    text = "n_sites,lam,fails,tries,note\n4,0.1,3,30,old\n9,0.2,4,40,new\n"
    path = written(tmp_path / "a.csv", text)
    columns = "size=n_sites, x=lam, count=fails, total=tries, series=none"
    series = read_table(path, columns).choose()
    assert columns_of(series) == [[4, 9], [0.1, 0.2], [0.1, 0.1]]
    assert read_table(path, take_roles(columns)).choose().trials.tolist() == [30, 40]
    split = "size=n_sites,x=lam,count=fails,total=tries"
    assert list(read_table(path, split).series) == ["note=new", "note=old"]
    both = read_table(path, f"{split},series=tries+note")
    assert list(both.series) == ["tries=30, note=old", "tries=40, note=new"]


def test_a_column_that_follows_from_another_one_splits_nothing_more():
    rows = {"L": [8] * 4, "p": [0.1, 0.2] * 2, "mean": [1.0] * 4, "error": [0.1] * 4,
            "observable": ["a", "a", "b", "b"], "unit": ["J", "J", "1", "1"]}  # fmt: skip
    assert list(read_table(rows).series) == ["observable=a", "observable=b"]
    assert list(read_table(rows, "series=unit").series) == ["unit=1", "unit=J"]


def test_an_index_without_a_name_is_no_column_to_tell(tmp_path):
    path = written(tmp_path / "a.csv", ",L,p,k,n\n0,8,0.1,3,30\n1,8,0.2,4,40\n")
    assert read_table(path).notes == ()


def test_a_case_tells_counts_from_couplings():
    rows = {"L": [8, 8], "K": [0.4, 0.5], "k": [3, 4], "n": [10, 10]}
    series = read_table(rows).choose()
    assert series.axis == "K"
    assert series.values.tolist() == [0.3, 0.4]


def test_means_are_taken_where_both_are_there_and_they_are_named():
    rows = {"L": [8], "p": [0.4], "k": [3], "n": [10], "m4": [0.7], "error": [0.1]}
    assert read_table(rows).choose().quantity == "k/n"
    assert read_table(rows, "mean=m4").choose().values.tolist() == [0.7]


def test_words_of_names_may_have_blanks_between_them():
    rows = {"distance": [3], "Physical error rate": [0.1], "num shots": [10], "Num errors": [2]}
    series = read_table(rows).choose()
    assert (series.axis, series.quantity) == ("Physical error rate", "Num errors/num shots")


def test_a_mean_has_its_error_in_the_column_of_its_name_and_error():
    rows = {"L": [8], "T": [2.3], "Binder": [0.8], "Binder_err": [0.02], "note": [1.0]}
    series = read_table(rows, "series=none").choose()
    assert (series.quantity, series.axis) == ("Binder", "T")
    assert (series.values.tolist(), series.errors.tolist()) == ([0.8], [0.02])
    rows |= {"chi": [70.0], "chi_error": [3.0]}
    assert read_table(rows, "mean=chi,series=none").choose().errors.tolist() == [3.0]
    reason = "Binder, chi have errors; choose one, as in columns mean=Binder,error=Binder_err"
    with pytest.raises(InputError, match=reason):
        read_table(rows)
    with pytest.raises(InputError, match="no column for error"):
        read_table(rows, "mean=note")
    counts = rows | {"k": [3], "n": [10], "y": [5.0]}
    assert read_table(counts, "series=none").choose().quantity == "k/n"


def test_a_data_frame_is_read_as_its_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {"L": np.repeat([8, 16], 3), "p": np.tile([0.1, 0.2, 0.3], 2) + rng.random(6) / 7,
         "mean": rng.random(6), "error": rng.random(6), "kind": list("ababab")}
    )  # fmt: skip
    frame.to_csv(tmp_path / "a.csv", index=False)
    one, other = read_table(frame), read_table(tmp_path / "a.csv")
    assert list(one.series) == list(other.series) == ["kind=a", "kind=b"]
    for name, series in one.series.items():
        for field in ("L", "x", "values", "errors"):
            np.testing.assert_array_equal(
                getattr(series, field), getattr(other.series[name], field)
            )


def test_rows_without_numbers_or_errors_are_left_out_and_counted(tmp_path):
    text = "L,p,mean,error\n8,0.1,,0.1\n8,0.2,1.0,0\n8,0.3,0.5,0.1\n8,0.4,nan,0.1\n"
    table = read_table(written(tmp_path / "a.csv", text))
    assert table.choose().x.tolist() == [0.3]
    assert table.notes == (
        "2 rows with missing numbers left out",
        "1 row with an error of 0 left out",
    )


REFUSED = [
    ("L,p,k,n\n8,0.1,3\n", "line 2: 3 columns, but the header has 4"),
    ("L,p,k,n\n8,0.1,11,10\n", "line 2: k = 11 of 10, but counts are integers from 0 to the total"),
    ("L,p,k,n\n8,0.1,1.5,10\n", "k = 1.5 of 10"),
    ("L,p,k,n\n\n8.5,0.1,1,10\n", "line 3: L = 8.5, but sizes are integers of at least 1"),
    ("L,p,k,n\n8,about,1,10\n", "p = 'about' is not a number"),
    ("L,p,k,n\n8,inf,1,10\n", "p = 'inf' is not a number"),
    ("L,p,mean,error\n8,0.1,1e99,1\n", "mean = 1e99, but numbers are 0, or from 1e-50 to 1e50"),
    ("L,p,mean,error\n8,0.1,1,-1\n", "error = -1, but errors are not negative"),
    ("8,0.1,1,10\n", "line 1 has numbers alone"),
    ("", "is empty"),
    ("L,p,k,n\n", "has no rows"),
    ("L,L,k,n\n8,1,1,10\n", "two columns are called 'L'"),
    ("L,p,mean\n8,1,1\n", "no column for error"),
    ("a,b\n8,1\n", "no column for size, x, mean, error"),
    ("d,p,trials,fails\n3,0.1,9,1\n", "no column for count; "),
    (SINTER + '\n10,1,0,1,a,b,"[1]",\n', "line 2: json_metadata is no JSON object"),
    (SINTER + '\n10,1,0,1,a,b,"{""d"":",\n', "line 2: json_metadata is no JSON object"),
    (SINTER + "\n10,1,0,1,a,b," + "[" * 100_000 + ",\n", "json_metadata is no JSON object"),
]


@pytest.mark.parametrize(("text", "problem"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_a_table_that_cannot_be_used_is_refused_in_one_line(tmp_path, text, problem):
    with pytest.raises(InputError) as caught:
        read_table(written(tmp_path / "a.csv", text))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("size", "give them as size=d"),
        ("length=L", "'length'; known: count, error, mean, series, size, total, x"),
        ("x=q", "x=q: the table has only L, p, k, n"),
        ("series=q", "series=q: the table has only L, p, k, n"),
        ("size=L,x=L", "'L' is named twice"),
        ("x=p,x=k", "'x' is named twice"),
        (["L", "p", "k", "n"], "they are a text size=d,x=p or a mapping"),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns, problem):
    with pytest.raises(InputError, match=problem):
        open_table({"L": [8], "p": [0.1], "k": [1], "n": [10]}, columns)


def test_a_table_that_is_no_text_or_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is not a regular file"):
        open_table(tmp_path / "pipe.csv")
    (tmp_path / "b.csv").write_bytes(b"L,p\xff\n")
    with pytest.raises(InputError, match="cannot be read as text"):
        open_table(tmp_path / "b.csv")


def test_a_table_is_fitted_and_drawn_in_python(tmp_path):
    p = np.tile(np.linspace(0.42, 0.58, 7), 3)
    L = np.repeat([8, 16, 32], 7)
    rows = {"L": L, "p": p, "mean": 0.5 + 0.05 * (p - 0.5) * L, "error": np.full(21, 0.01)}
    table = open_table(rows)
    fit = table.fit(degree=3)
    assert abs(fit.threshold - 0.5) < fit.threshold_error
    figure = table.plot(tmp_path / "a.png", kind="crossings", degree=3)
    assert [item["p"] for item in figure.numbers["crossings"]] == pytest.approx([0.5, 0.5])
    assert (tmp_path / "a.png").stat().st_size > 5000
    for options, problem in (
        ({"degree": 9}, "degree = 9"),
        ({"window": (0.1, 0.9)}, "no such option"),
        ({"nu": "known"}, "no such option"),
        ({"series": "a"}, "it has one unnamed series"),
    ):
        with pytest.raises(InputError, match=problem):
            table.fit(**options)
    with pytest.raises(InputError, match="curves, crossings, collapse"):
        table.plot(kind="drift", degree=3)
    figure = open_table(rows | {"mean": rows["mean"] * L**-0.125}).plot(
        kind="collapse", kappa=True, degree=3
    )
    figure.canvas.draw()
    panel = figure.axes[1]
    title, box = panel.title.get_window_extent(), panel.get_window_extent()
    assert box.x0 <= title.x0 < title.x1 <= box.x1
