"""Exported tables hold the stored means, whatever the form and the library that reads them."""

import csv
import io
import re
import shutil
import subprocess
import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from cli_support import SMALL, answer, refusal, small_results, stored
from helpers import slow

import percolab
from percolab import InputError, load_lattice, sweep
from percolab.store.results import StoredResults
from percolab.tables.flat import LONG_HEADER, long_table, mean_table
from percolab.tasks.study import Task

MISSING = "{} is not installed; it comes with: pip install 'percolab[tables]'"


@cache
def thresholds():
    return sweep("kagome", L=[4, 8], samples=100, method="threshold", device="cpu")


def uneven():
    """Return two sizes with different numbers of p."""
    both = StoredResults(small_results().study)
    for p, size in (((0.4, 0.5), 4), ((0.3, 0.5, 0.6), 8)):
        part = sweep("square", L=[size], p=p, samples=20, device="cpu")
        both.tasks |= part.tasks
    return both


@pytest.mark.parametrize("method", [{"p": [0.4, 0.6]}, {"method": "threshold"}], ids=str)
def test_one_sample_has_no_error(method):
    results = sweep("square", L=4, samples=1, device="cpu", **method)
    at = LONG_HEADER.index("error")
    errors = [row[at] for row in long_table(results)[1]]
    assert errors == [None] * len(errors) != []


def test_the_tidy_table_has_every_number_of_the_wide_one():
    header, wide = mean_table(small_results())
    rows = [dict(zip(header, row, strict=True)) for row in wide]
    found = {(row["L"], row["p"]): row for row in rows}
    told = answer("export", stored(Path("results.h5")), "--tidy")
    tidy = list(csv.DictReader(io.StringIO(told)))
    assert tuple(tidy[0]) == LONG_HEADER
    lead = LONG_HEADER[: LONG_HEADER.index("observable")]
    assert tuple(header[: len(lead)]) == lead
    assert len(tidy) == len(rows) * (len(header) - len(lead)) // 2
    for row in tidy:
        other = found[int(row["L"]), float(row["p"])]
        assert [row[name] for name in lead] == [str(other[name]) for name in lead]
        name = row["observable"]
        assert float(row["mean"]) == other[name]
        assert float(row["error"]) == other[f"{name}_error"]
        assert (row["model"], row["boundary"], row["seed"]) == ("bond", "open,open", "5")
        assert int(row["samples"]) == SMALL["samples"]
    assert {row["unit"] for row in tidy if row["observable"] == "sum_squares"} == {"site^2"}


def test_thresholds_are_tidy_as_spanning_probabilities_alone():
    _, rows = long_table(thresholds(), [0.5])
    assert [(row[3], row[8]) for row in rows] == [
        (size, f"spanning_{axis}") for size in (4, 8) for axis in ("x", "y", "any", "all")
    ]


@pytest.mark.parametrize(("name", "size"), [("kagome", 8), ("kagome", 7), ("square", 5)])
def test_sites_are_counted_without_the_vacant_points_of_the_grid(name, size):
    lattice = load_lattice(name)
    task = Task(lattice, size, ("open",) * 2, (0.5,), seed=1)
    assert task.num_sites == lattice.topology(task.shape).num_sites
    assert task.num_sites < task.num_points or name == "square"


def test_pandas_gets_the_tidy_table():
    frame = percolab.to_pandas(small_results())
    header, rows = long_table(small_results())
    assert list(frame.columns) == header
    assert frame.to_numpy().tolist() == list(rows)
    assert frame["mean"].dtype == np.float64
    assert frame["L"].dtype == np.int64


def test_xarray_gets_every_observable_over_tasks_and_points():
    results = uneven()
    data = percolab.to_xarray(results)
    assert dict(data.sizes) == {"task": 2, "point": 3}
    assert data.L.values.tolist() == [4, 8]
    np.testing.assert_array_equal(data.p, [[0.4, 0.5, np.nan], [0.3, 0.5, 0.6]])
    header, rows = mean_table(results)
    at = header.index("largest_error")
    found = data.largest_error.values.ravel()
    np.testing.assert_array_equal(found[~np.isnan(found)], [row[at] for row in rows])
    assert data.sum_squares.units == "site^2"
    assert data.attrs["boundary"] == "open,open"
    assert np.isnan(percolab.to_xarray(thresholds()).clusters).all()


@pytest.mark.parametrize("options", [(), ("--tidy",)], ids=str)
def test_parquet_holds_the_table_of_the_csv_file(options):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = stored(Path("results.h5"))
    told = answer("export", path, *options, "--out", "t.parquet")
    rows = parquet.read_table("t.parquet").to_pylist()
    assert told == f"{len(rows)} rows in t.parquet\n"
    plain = list(csv.DictReader(io.StringIO(answer("export", path, *options))))
    assert [{key: str(value) for key, value in row.items()} for row in rows] == plain


@pytest.mark.parametrize("target", ["t.csv", "t.parquet"])
def test_thresholds_of_samples_go_to_a_file(target):
    path = stored(Path("t.h5"), thresholds())
    shown = answer("export", path, "--thresholds")
    count = len(shown.splitlines()) - 1
    assert answer("export", path, "--thresholds", "--out", target) == f"{count} rows in {target}\n"
    assert count > 1
    if target == "t.csv":
        assert Path(target).read_text() == shown


def test_parquet_has_nothing_where_t_gives_nothing():
    parquet = pytest.importorskip("pyarrow.parquet")
    path = stored(Path("t.h5"), thresholds())
    answer("export", path, "-p", "0.4:0.6:3", "--out", "t.parquet")
    table = parquet.read_table("t.parquet")
    assert table["clusters"].null_count == table.num_rows == 6
    assert table["spanning_x"].null_count == 0


@pytest.mark.parametrize("options", [(), ("--tidy",), ("--thresholds",)], ids=str)
def test_numpy_gets_an_array_a_column_of_the_csv_file(options):
    path = stored(Path("t.h5"), thresholds() if options == ("--thresholds",) else small_results())
    rows = list(csv.DictReader(io.StringIO(answer("export", path, *options))))
    assert answer("export", path, *options, "--format", "npz") == f"{len(rows)} rows in t.npz\n"
    with np.load("t.npz") as table:
        assert table.files == list(rows[0])
        for name in table.files:
            assert [str(value) for value in table[name].tolist()] == [row[name] for row in rows]


def test_numpy_gets_nan_where_t_gives_nothing():
    path = stored(Path("t.h5"), thresholds())
    answer("export", path, "-p", "0.4:0.6:3", "--out", "own.npz")
    with np.load("own.npz") as table:
        assert np.isnan(table["clusters"]).all()
        assert table["p"].tolist() == [0.4, 0.5, 0.6] * 2
        assert table["L"].dtype == np.int64


@pytest.mark.parametrize("made", [small_results, slow(thresholds)])
def test_netcdf_holds_the_dataset_of_xarray(made):
    xarray = pytest.importorskip("xarray")
    results = made()
    path = stored(Path("t.h5"), results)
    assert answer("export", path, "--format", "netcdf") == "all means in t.nc\n"
    with xarray.open_dataset("t.nc", engine="h5netcdf") as data:
        assert data.identical(percolab.to_xarray(results))
    assert answer("export", path, "--out", "t.nc") == "all means in t.nc\n"


@pytest.mark.slow
def test_netcdf_on_a_full_disk_is_refused_in_one_line():
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    code = f"{limit}; from percolab.cli import main; main()"
    command = [sys.executable, "-c", code, "export", stored(Path("t.h5")), "--out", "t.nc"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr == "percolab: error: t.nc: cannot be written: File too large\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("--format npz --out t.csv", "t.csv: cannot write npz as '.csv'; use .npz"),
        ("--format csv --out t.npz", "t.npz: cannot write csv as '.npz'; use .csv, .txt"),
        ("--format netcdf --out t", "t: cannot write netcdf as 'no suffix'; use .nc"),
        *(
            (f"{given} --format netcdf", f"{given.split()[0]}: a netCDF file has all means at once")
            for given in ("--tidy", "--thresholds", "--sizes", "-p 0.5")
        ),
        *(
            (f"{one} {other}", f"{one} and {other}: each writes a different table; give only one")
            for one, other in combinations(("--tidy", "--thresholds", "--sizes"), 2)
        ),
        ("--sizes -p 0.5", "leave -p out"),
        ("--thresholds -p 0.5", "-p and --thresholds: T of a sample does not depend on p"),
        ("--out d.parquet", "d.parquet: is a directory"),
    ],
)
def test_tables_that_cannot_be_are_refused(given, told):
    Path("d.parquet").mkdir()
    assert told in refusal("export", stored(Path("t.h5"), thresholds()), *given.split())


@pytest.mark.parametrize("name", ["own.nc", "own.npz"])
def test_no_export_replaces_results_or_other_archives(name):
    """Results files begin as netCDF files do."""
    stored(Path("own.h5")).rename("own.nc")
    np.savez("own.npz", other=np.zeros(3))
    before = Path(name).read_bytes()
    form = "netcdf" if name.endswith("nc") else "npz"
    wrong = "is the input itself" if form == "netcdf" else "holds something else than "
    assert refusal("export", "own.nc", "--out", name).startswith(f"{name}: {wrong}")
    assert answer("export", "own.nc", "--format", form).endswith(f" in own-2.{name[4:]}\n")
    assert Path(name).read_bytes() == before


def test_what_is_not_installed_is_told_in_one_line(monkeypatch):
    for name in ("pandas", "xarray", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    path = stored(Path("results.h5"))
    told = refusal("export", path, "--out", "t.parquet")
    assert told == MISSING.format("pyarrow")
    assert not Path("t.parquet").exists()
    assert refusal("export", path, "--format", "netcdf") == MISSING.format("xarray")
    for name, function in (("pandas", percolab.to_pandas), ("xarray", percolab.to_xarray)):
        with pytest.raises(InputError) as error:
            function(small_results())
        assert str(error.value) == MISSING.format(name)


def test_errors_of_spins_are_the_scatter_of_chains():
    results = sweep(
        "square", model="ising", L=[8], boundary="periodic", K=[0.44], burn_in=20, sweeps=220,
        samples=4000, device="cpu",
    )  # fmt: skip
    header, (row,) = mean_table(results)
    told = dict(zip(header, row, strict=True))
    (item,) = results.tasks.values()
    means = item.column("satisfied")[:, 0] / item.task.block_size
    assert told["satisfied"] == pytest.approx(means.mean())
    assert told["satisfied_error"] == pytest.approx(means.std(ddof=1) / len(means) ** 0.5)
    # Sweeps are correlated: independent samples would have half of this error.
    variance = item.squares("satisfied")[:, 0].sum() / 4000 - told["satisfied"] ** 2
    assert told["satisfied_error"] > 1.5 * (variance / 4000) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heading", "program", "before"),
    [
        ("R", "Rscript", ['png("drawn.png")']),
        ("gnuplot", "gnuplot", ["set terminal pngcairo", 'set output "drawn.png"']),
    ],
)
def test_the_recipes_of_the_documentation_draw(heading, program, before):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    page = Path(__file__).parents[2] / "docs" / "export.md"
    code = re.search(rf"\n{heading}\b[^\n]*:\n\n```text\n(.*?)```", page.read_text(), re.DOTALL)[1]
    stored(Path("results.h5"))
    answer("export", "results.h5", "--tidy", "--out", "tidy.csv")
    answer("export", "results.h5", "--out", "results.csv")
    Path("recipe").write_text("\n".join([*before, code]))
    done = subprocess.run([program, "recipe"], capture_output=True, text=True)
    # gnuplot warns and goes on where a column is not there; R says where it draws.
    assert (done.returncode, re.findall("(?i)warning|error", done.stderr)) == (0, [])
    assert Path("drawn.png").stat().st_size > 2000
