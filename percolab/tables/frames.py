"""Stored results for pandas, xarray, Parquet, netCDF and NumPy.

All but NumPy are imported when needed; they come with ``pip install "percolab[tables]"``.
"""

from __future__ import annotations

import importlib
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.analysis.stored_spins import name_couplings
from percolab.errors import InputError
from percolab.store.output_files import NPZ_TABLE, TABLE_MARK, encode_archive
from percolab.store.results import StoredResults, take_results
from percolab.tables.flat import Table, long_table, size_arrays, size_table, tabulated, task_means
from percolab.tasks.values import take_flag

if TYPE_CHECKING:
    import pandas
    import xarray


def to_pandas(results: StoredResults, *, sizes: bool = False) -> pandas.DataFrame:
    """Return means and standard errors as a tidy table, one row per observable, size and p.

    Columns: lattice, model, boundary, L, sites, seed, p, samples, observable, unit, mean, error;
    for spins also T and K or beta, and the observables include thermal means.  The error is one
    standard error of the mean; for spins, powers of sizes and functions of your own it comes from
    the scatter of blocks.  Method "threshold" has only spanning probabilities, across the
    transition.  sizes: return the cluster numbers instead
    (:func:`percolab.tables.flat.size_table`).  InputError: pandas is not installed, or no sizes
    were counted.

    >>> import percolab
    >>> results = percolab.sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
    >>> frame = percolab.to_pandas(results)  # doctest: +SKIP
    >>> frame.pivot(index=["L", "p"], columns="observable", values="mean")  # doctest: +SKIP
    """
    results = take_results(results)
    pandas = imported("pandas")
    header, rows = size_table(results) if take_flag("sizes", sizes) else long_table(results)
    return pandas.DataFrame(list(rows), columns=header)


def to_xarray(results: StoredResults) -> xarray.Dataset:
    """Return means and standard errors as a dataset with dimensions task and point.

    A task is one size, seed and p grid, with the coordinates L, sites, seed and samples (task,).
    p (task, point) is a coordinate, too: each task has its own p values, and if it has fewer than
    others, its p and means end in NaN.  Every observable NAME has the variables NAME and
    NAME_error, float64 (task, point), with ``long_name`` and ``units``.  Where sizes were counted
    there are also n_s and n_s_error, with a third dimension bin and its coordinates s_low and
    s_high, and the powers of sizes, as ``percolab observables`` names them.  For spins T and K or
    beta are coordinates like p.  InputError: xarray is not installed.

    >>> import percolab
    >>> results = percolab.sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
    >>> data = percolab.to_xarray(results)  # doctest: +SKIP
    >>> data.swap_dims(task="L").largest.sel(L=16)  # doctest: +SKIP
    """
    results = take_results(results)
    module = imported("xarray")
    measured, study = list(task_means(results)), results.study
    tasks = [result for result, _, _ in measured]
    shape = (len(tasks), max((grid.size for _, grid, _ in measured), default=0))
    arrays = size_arrays(tasks, shape[1])
    bins = {name: ("bin", arrays.pop(name)) for name in ("s_low", "s_high") if arrays}
    there = {*arrays, *(name for _, _, means in measured for name in means)}
    extras = (column for column in results.columns() if not column.is_observable)
    columns = [*tabulated(results), *(column for column in extras if column.name in there)]
    places: dict[str, Any] = {"p": np.full(shape, np.nan)}
    for name in [column.name for column in columns if column.name not in arrays]:
        arrays |= {name: np.full(shape, np.nan), f"{name}_error": np.full(shape, np.nan)}
    for n, (result, grid, means) in enumerate(measured):
        for name, values in {"p": grid, **name_couplings(result.task.draw, grid)}.items():
            places.setdefault(name, np.full(shape, np.nan))[n, : grid.size] = values
        for name in means.keys() & arrays.keys():
            arrays[name][n, : grid.size], arrays[f"{name}_error"][n, : grid.size] = means[name]
    variables = {}
    for column in columns:
        for name, words in ((column.name, ""), (f"{column.name}_error", "standard error of the ")):
            long_name = f"{words}mean of {column.name}: {column.meaning}"
            axes = ("task", "point", "bin")[: arrays[name].ndim]
            variables[name] = (axes, arrays[name], {"long_name": long_name, "units": column.unit})
    varying = {"long_name": tasks[0].task.draw.varying, "units": "1"} if tasks else {}
    data: xarray.Dataset = module.Dataset(
        variables,
        coords={
            "L": ("task", [result.task.size for result in tasks]),
            "sites": ("task", [result.task.num_sites for result in tasks]),
            "seed": ("task", [result.task.seed for result in tasks]),
            "samples": ("task", [result.num_samples for result in tasks]),
            "p": (("task", "point"), places.pop("p"), varying),
            **{name: (("task", "point"), array) for name, array in places.items()},
            **bins,
        },
        attrs={
            "lattice": study.structure.name,
            "model": study.model,
            "boundary": ",".join(study.boundary),
            "study": json.dumps(study.description()),
            "source": TABLE_MARK,
        },
    )
    return data


def parquet_bytes(table: Table) -> bytes:
    """Return a Parquet file of a table; InputError: pyarrow is not installed."""
    pyarrow = imported("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    header, rows = table
    columns = list(zip(*rows)) or [()] * len(header)
    arrays = {name: pyarrow.array(list(column)) for name, column in zip(header, columns)}
    buffer = io.BytesIO()
    marked = pyarrow.table(arrays).replace_schema_metadata({"source": TABLE_MARK})
    parquet.write_table(marked, buffer)
    return buffer.getvalue()


def npz_bytes(table: Table) -> bytes:
    """Return a NumPy archive of a table: for each column one array by its name, (rows,).

    Whole numbers are int64, others float64 with NaN for None, texts of fixed length.
    """
    header, rows = table
    columns = list(zip(*rows)) or [()] * len(header)
    arrays = {
        name: np.array(column, np.float64 if None in column else None)
        for name, column in zip(header, columns)
    }
    return encode_archive(arrays, NPZ_TABLE)


def netcdf_bytes(results: StoredResults) -> bytes:
    """Return a netCDF-4 file of :func:`to_xarray`; InputError: xarray or h5netcdf is missing."""
    data, buffer = to_xarray(results), io.BytesIO()
    store = imported("xarray").backends.H5NetCDFStore
    # In memory, as HDF5 aborts the process where a disk is full.
    with imported("h5netcdf").File(buffer, "w") as file:
        data.dump_to_store(store(file))
    return buffer.getvalue()


def imported(name: str) -> Any:
    """Return a package that comes with percolab[tables]; InputError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{name} is not installed; it comes with: pip install 'percolab[tables]'"
        ) from error
