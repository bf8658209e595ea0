"""Files are read by the names stored in them, whatever columns there are today."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from cli_support import (
    SMALL,
    answer,
    assert_equal_datasets,
    refusal,
    run,
    small_results,
    stored,
    tree_of,
)
from helpers import slow

from percolab import InputError, open_results, sweep
from percolab.measure import columns, tallies
from percolab.measure.columns import TALLY, Column, RowInteger, SumColumn
from percolab.measure.sums import FIELDS
from percolab.store.tree import Node, encode_tree

#: A column in the midst of the row's, and one that is a rule on its flags.
TAKEN = ("second_largest", "spanning_any")
LISTS = ("names", "symbols", "meanings", "units", "sources")


def changed(source: Path, target: Path, change) -> Path:
    """Write a file again, by the store's own writer, with every task's group changed."""
    root = tree_of(source)
    for group in root.groups["tasks"].groups.values():
        change(group)
    target.write_bytes(encode_tree(root))
    return target


def rearrange(group: Node, places: list[int]) -> None:
    """Leave the columns at these places, in this order, in the group of a task."""
    names, squared = group.texts("observable_names"), group.texts("squared_names")
    for key in LISTS:
        texts = group.texts(f"observable_{key}")
        group.attributes[f"observable_{key}"] = [texts[n] for n in places]
    sums, squares = group.datasets["sums"], group.datasets["squares"]
    sums.values = sums.values[:, :, places]
    left = [names[n] for n in places if names[n] in squared]
    group.attributes["squared_names"] = left
    squares.values = squares.values[:, :, [squared.index(name) for name in left]]


def take_out(*names: str):
    """Return what takes columns out of the group of a task."""

    def change(group: Node) -> None:
        stored_names = group.texts("observable_names")
        rearrange(group, [n for n, name in enumerate(stored_names) if name not in names])

    return change


def put_in(name: str, at: int):
    """Return what puts a column of a later version into the group of a task: twice the clusters."""

    def change(group: Node) -> None:
        places = list(range(len(group.texts("observable_names"))))
        names, before = group.texts("observable_names"), group.texts("squared_names")
        rearrange(group, [*places[:at], 0, *places[at:]])
        squared, own = group.texts("squared_names"), sum(n in before for n in names[:at])
        squared[own] = name
        group.attributes["squared_names"] = squared
        for key in LISTS:
            texts = group.texts(f"observable_{key}")
            texts[at] = name if key == "names" else f"{key} of {name}"
            group.attributes[f"observable_{key}"] = texts
        factors = np.ones(len(places) + 1, np.int64)
        factors[at] = 2
        group.datasets["sums"].values = group.datasets["sums"].values * factors
        factors = np.where(np.arange(len(squared)) == own, 4.0, 1.0)
        group.datasets["squares"].values = group.datasets["squares"].values * factors

    return change


@pytest.fixture(name="full")
def _full(tmp_path) -> Path:
    return stored(tmp_path / "full.h5")


@pytest.fixture(name="less", params=[TAKEN[0], slow(TAKEN[1])])
def _less(full, request) -> Path:
    changed(full, Path("less.h5"), take_out(request.param))
    Path("taken").write_text(request.param)
    return Path("less.h5")


@pytest.fixture(name="more")
def _more(full) -> Path:
    return changed(full, Path("more.h5"), put_in("perimeter", 3))


def taken() -> str:
    """Return the name of the column that less.h5 lacks."""
    return Path("taken").read_text()


def table(path: Path, *options: str) -> list[dict[str, str]]:
    """Return what ``percolab export`` writes, line by line; every line as long as the header."""
    header, *lines = csv.reader(io.StringIO(answer("export", path, *options)))
    assert all(len(line) == len(header) for line in lines)
    return [dict(zip(header, line)) for line in lines]


def without(lines: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    """Return lines of a table without the mean and the error of a column."""
    gone = {name, f"{name}_error"}
    return [{key: text for key, text in line.items() if key not in gone} for line in lines]


def names_in(path: Path) -> list[list[str]]:
    groups = tree_of(path).groups["tasks"].groups
    return [group.texts("observable_names") for group in groups.values()]


def assert_same_content(one: Path, other: Path) -> None:
    assert names_in(one) == names_in(other)
    assert_equal_datasets(one, other)


def assert_written_again(path: Path) -> None:
    """Fail unless a file that is read and written has the same checksum of everything in it."""
    again = stored(Path(f"again-{path.name}"), open_results(path))
    assert tree_of(again).text("checksum") == tree_of(path).text("checksum")


# Reading


def test_a_file_that_lacks_a_column_of_today_reads(less, full):
    for item in open_results(less).tasks.values():
        own = open_results(full).tasks[item.task.id]
        names = [column.name for column in own.observables if column.name != taken()]
        assert [column.name for column in item.observables] == names
        for name in names:
            np.testing.assert_array_equal(item.column(name), own.column(name))
        with pytest.raises(InputError, match=f"observable '{taken()}' is not in this file; there"):
            item.column(taken())


def test_a_file_with_a_column_of_a_later_version_reads(more, full):
    for item in open_results(more).tasks.values():
        own = open_results(full).tasks[item.task.id]
        np.testing.assert_array_equal(item.column("perimeter"), 2 * own.column("clusters"))
        for column in own.observables:
            np.testing.assert_array_equal(item.column(column.name), own.column(column.name))
        found = item.observables[3]
        assert (found.name, found.meaning) == ("perimeter", "meanings of perimeter")


def test_columns_in_another_order_are_read_by_name(full):
    def reverse(group: Node) -> None:
        rearrange(group, list(range(len(group.texts("observable_names"))))[::-1])

    other = changed(full, Path("other.h5"), reverse)
    assert table(other) == table(full)
    options = "--bootstrap", 20, "--json"
    assert answer("fit", other, *options) == answer("fit", full, *options)


def test_a_column_named_twice_is_refused(full):
    def twice(group: Node) -> None:
        names = group.texts("observable_names")
        group.attributes["observable_names"] = [names[0], *names[:-1]]

    twice_in = changed(full, Path("twice.h5"), twice)
    assert "clusters is there twice" in refusal("fit", twice_in)


# Fits, tables, figures


def test_fits_are_those_of_the_columns_that_are_there(less, more, full):
    expected = json.loads(answer("fit", full, "--json", "--bootstrap", 20))
    for path in (less, more):
        found = json.loads(answer("fit", path, "--json", "--bootstrap", 20))
        assert found["threshold"] == expected["threshold"]
        assert found["threshold_error"] == expected["threshold_error"]


def test_quantities_are_fitted_by_the_names_of_their_columns():
    # So many p so close to p_c that no fit of them depends on the last digits of a sum.
    near = np.linspace(0.44, 0.56, 9).round(3).tolist()
    options = SMALL | {"p": near, "samples": 500, "block_size": 10}
    full = stored(Path("full.h5"), sweep("square", device="cpu", workers=1, **options))
    fit = ("--quantities", "spanning_y,Q_1", "--json")
    expected = answer("fit", full, *fit)
    for change in (take_out("second_largest"), put_in("perimeter", 1)):
        assert answer("fit", changed(full, Path("other.h5"), change), *fit) == expected
    message = refusal("fit", changed(full, Path("other.h5"), take_out("largest")), *fit)
    assert "quantity 'Q_1' is not in this file" in message


def test_tables_have_the_columns_that_are_there(less, more, full):
    assert table(less) == without(table(full), taken())
    assert without(table(more), "perimeter") == table(full)
    for line in table(more):
        assert float(line["perimeter"]) == 2 * float(line["clusters"])
        assert float(line["perimeter_error"]) == pytest.approx(2 * float(line["clusters_error"]))
    tidy = table(full, "--tidy")
    assert table(less, "--tidy") == [line for line in tidy if line["observable"] != taken()]
    known = [line for line in table(more, "--tidy") if line["observable"] != "perimeter"]
    assert known == tidy
    assert len(table(more, "--tidy")) > len(tidy)


@pytest.mark.parametrize("path", [slow("less.h5"), "more.h5"])
def test_status_and_figures_take_such_files(less, more, path):
    assert "18 blocks" in answer("status", path)
    answer("plot", path, "--bootstrap", 0, "--out", "figure.svg")


def test_files_are_written_again_as_they_were(less, more):
    for path in (less, more):
        assert_written_again(path)


# Merging


def other_seed(name: str) -> Path:
    return stored(Path(name), sweep("square", device="cpu", workers=1, **SMALL | {"seed": 6}))


@pytest.mark.slow
def test_a_column_of_one_file_alone_is_left_out_of_a_merge_with_a_note(less, full):
    other = other_seed("other.h5")
    for n, parts in enumerate([(less, other), (other, less)]):
        done = run("merge", *parts, "--out", f"m{n}.h5")
        assert done.exit_code == 0
        assert done.stderr.splitlines() == [
            f"left out, since not all of the files have it: {taken()}"
        ]
        assert done.stdout == f"2 files, 6 tasks, 360 samples in m{n}.h5\n"
        answer("merge", *[full if part == less else part for part in parts], "--out", f"f{n}.h5")
        expected = changed(Path(f"f{n}.h5"), Path(f"e{n}.h5"), take_out(taken()))
        assert_same_content(Path(f"m{n}.h5"), expected)


def test_a_column_of_a_later_version_is_left_out_of_a_merge_with_a_note(more):
    done = run("merge", more, other_seed("other.h5"), "--out", "m.h5")
    assert done.stderr.splitlines() == ["left out, since not all of the files have it: perimeter"]
    answer("merge", "full.h5", "other.h5", "--out", "e.h5")
    assert_same_content(Path("m.h5"), Path("e.h5"))


def test_blocks_of_one_task_are_merged_by_name(less, full):
    halves = []
    for n, path in enumerate((less, full)):
        results = open_results(path)
        results.runs.clear()
        for item in results.tasks.values():
            item.blocks = {number: item.blocks[number] for number in range(3 * n, 3 * n + 3)}
        halves.append(stored(Path(f"half{n}.h5"), results))
    assert run("merge", *halves, "--out", "m.h5").exit_code == 0
    assert_same_content(Path("m.h5"), less)


@pytest.mark.slow
def test_files_with_the_same_columns_merge_without_a_word(less, more):
    for n, (path, change) in enumerate([(less, take_out(taken())), (more, put_in("perimeter", 3))]):
        other = changed(other_seed("other.h5"), Path("like.h5"), change)
        done = run("merge", path, other, "--out", f"m{n}.h5")
        assert done.exit_code == 0
        assert done.stderr == ""
        assert names_in(Path(f"m{n}.h5")) == names_in(path) * 2


# Continuing


SWEEP = ("sweep", "--lattice", "square", "--seed", 5, "--device", "cpu")
GRID = ("-p", "0.3,0.4,0.5,0.6,0.7")


@pytest.mark.parametrize(
    "options",
    [
        ("-L", "4,8,16", *GRID, "--samples", 80),
        slow(("-L", "4,8,16", "-p", "0.45", "--samples", 60)),
        slow(("-L", "4,6,8,16", *GRID, "--samples", 60)),
    ],
    ids=["samples", "p", "size"],
)
def test_a_continued_file_keeps_its_columns_and_says_so(less, full, options):
    done = run(*SWEEP, *options, "--out", less)
    assert done.exit_code == 0, done.output
    lines = [line for line in done.stderr.splitlines() if taken() in line]
    assert lines == [f"less.h5 lacks {taken()}, and so does what is added to it"]
    assert run(*SWEEP, *options, "--out", full).exit_code == 0
    assert_same_content(less, changed(full, Path("expected.h5"), take_out(taken())))


def test_a_run_that_adds_nothing_prints_nothing(less):
    before = less.read_bytes()
    done = run(*SWEEP, "-L", "4,8,16", *GRID, "--samples", 60, "--out", less)
    assert done.exit_code == 0
    assert taken() not in done.stderr
    assert less.read_bytes() == before


def test_a_file_with_a_column_of_a_later_version_is_not_continued(more):
    before = more.read_bytes()
    message = refusal(*SWEEP, "-L", "4,8,16", *GRID, "--samples", 80, "--out", more)
    assert (
        message
        == "more.h5: has perimeter, which this version does not measure; choose another --out"
    )
    assert more.read_bytes() == before


# Sums kept beside the observables


def everything() -> Path:
    """Write a small study with sizes and radii."""
    options = {"L": (4, 8), "p": (0.4, 0.6), "samples": 40, "block_size": 10, "seed": 3}
    found = sweep("square", device="cpu", workers=1, measure=["sizes", "gyration"], **options)
    return stored(Path("everything.h5"), found)


def lose(group: Node) -> None:
    del group.datasets["powers"]


def gain(group: Node) -> None:
    """Put sums of a later version into the group of a task."""
    group.datasets["surfaces"] = type(group.datasets["powers"])(
        3 * group.datasets["powers"].values[:, :, :1],
        {"meaning": "surfaces [block, p, column]", "unit": "bond"},
    )


def test_sums_that_a_file_lacks_are_left_out_of_its_tables():
    path = everything()
    less = changed(path, Path("less.h5"), lose)
    powers = {"sum_cubes", "sum_fourths", "largest_cubes", "largest_fourths"}
    tidy = table(path, "--tidy")
    assert {line["observable"] for line in tidy} >= powers
    assert table(less, "--tidy") == [line for line in tidy if line["observable"] not in powers]
    assert table(less, "--sizes") == table(path, "--sizes")
    merged = run("merge", less, changed(path, Path("seed.h5"), lambda _: None), "--out", "m.h5")
    assert merged.exit_code == 2, "the same samples twice"
    assert_written_again(less)


def test_sums_of_a_later_version_are_kept():
    path = everything()
    more = changed(path, Path("more.h5"), gain)
    assert_written_again(more)
    tidy = table(more, "--tidy")
    assert [line for line in tidy if line["observable"] != "surfaces"] == table(path, "--tidy")
    found = [line for line in tidy if line["observable"] == "surfaces"]
    cubes = [line for line in tidy if line["observable"] == "sum_cubes"]
    means = [3 * float(line["mean"]) for line in cubes]
    assert [float(line["mean"]) for line in found] == pytest.approx(means, rel=1e-12)


def test_sums_of_another_shape_are_refused():

    def gain_wrongly(group: Node) -> None:
        gain(group)
        group.datasets["surfaces"].values = group.datasets["surfaces"].values[:, 1:]

    more = changed(everything(), Path("more.h5"), gain_wrongly)
    assert "surfaces" in refusal("fit", more)


def test_merged_tables_of_a_file_without_the_column_and_a_new_one_agree(less):
    """What was merged before names were read may have tasks with other columns each."""
    results, other = open_results(less), open_results(other_seed("other.h5"))
    results.tasks |= other.tasks
    mixed = stored(Path("mixed.h5"), results)
    lines = table(mixed)
    assert sum(line[taken()] == "" for line in lines) == len(lines) // 2
    assert {line["seed"] for line in lines if line[taken()]} == {"6"}
    assert len(small_results().tasks) == 3


def test_a_table_of_a_file_without_wrapping_names_no_wrapping():
    """Its header once had wrapping_y, which no line had a number for; the tidy table failed."""
    mixed = sweep("square", boundary=["open", "periodic"], device="cpu", workers=1, **SMALL)
    full = stored(Path("mixed.h5"), mixed)
    names = {name for names in names_in(full) for name in names}
    path = changed(full, Path("less.h5"), take_out(*(n for n in names if n.startswith("wrapping"))))
    assert {name.partition("_")[0] for name in table(path)[0]} >= {"clusters", "spanning"}
    assert not [name for name in table(path)[0] if name.startswith("wrapping")]
    observables = {line["observable"] for line in table(path, "--tidy")}
    assert observables == {*FIELDS, "spanning_x"}


# Adding a column


def declare(monkeypatch, *more: Column) -> None:
    monkeypatch.setattr(columns, "_SIZES", (*columns._SIZES, *more))


@pytest.mark.slow
def test_an_observable_is_measured_stored_and_listed_by_its_declaration_alone(full, monkeypatch):
    declare(
        monkeypatch,
        Column("copy", "c", "sites of the largest cluster again", "site", RowInteger("largest")),
    )
    assert "sites of the largest cluster again" in answer("observables")
    new = stored(Path("new.h5"), sweep("square", device="cpu", workers=1, **SMALL))
    for item in open_results(new).tasks.values():
        np.testing.assert_array_equal(item.column("copy"), item.column("largest"))
    assert all(line["copy"] == line["largest"] for line in table(new))
    answer("report", new, "--out", "new.html")
    assert "sites of the largest cluster again" in Path("new.html").read_text()
    # What is there from before has the columns that it had.
    assert table(full) == without(table(new), "copy")
    assert_written_again(full)
    merged = run("merge", full, other_seed("other.h5"), "--out", "m.h5")
    assert merged.stderr.splitlines() == ["left out, since not all of the files have it: copy"]
    done = run(*SWEEP, "-L", "4,8,16", *GRID, "--samples", 80, "--out", full)
    assert "full.h5 lacks copy, and so does what is added to it\n" in done.stderr
    assert not any("copy" in names for names in names_in(full))


def test_tables_of_thresholds_do_not_change_with_a_new_column(tmp_path, monkeypatch):
    found = sweep("square", L=[4], samples=20, method="threshold", device="cpu", workers=1)
    path = stored(tmp_path / "thresholds.h5", found)
    before = answer("export", path)
    declare(monkeypatch, Column("copy", "c", "the largest again", "site", RowInteger("largest")))
    assert answer("export", path) == before


def test_sums_of_tallies_are_stored_by_their_declaration_and_arithmetic(monkeypatch):
    before = everything().rename("before.h5")
    sums = tallies.sum_tallies

    def with_doubled(rows):
        found = sums(rows)
        return found | {"doubled": 2 * found["powers"][:, :, :1]} if found else found

    monkeypatch.setattr("percolab.tasks.blocks.sum_tallies", with_doubled)
    how = SumColumn(TALLY, np.float64)
    more = Column("doubled", "2 sum s^3", "twice the sum of s^3", "site^3", how, "sizes")
    monkeypatch.setattr(columns, "EXTRA_COLUMNS", (*columns.EXTRA_COLUMNS, more))
    lines = table(everything(), "--tidy")
    means = {
        name: [float(line["mean"]) for line in lines if line["observable"] == name]
        for name in ("doubled", "sum_cubes")
    }
    assert means["doubled"] == pytest.approx([2 * mean for mean in means["sum_cubes"]])
    assert len(means["doubled"]) == 4
    # A file from before it is read without it.
    found = {line["observable"] for line in table(before, "--tidy")}
    assert "sum_cubes" in found
    assert "doubled" not in found
