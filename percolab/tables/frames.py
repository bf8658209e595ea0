"""Stored results for pandas, xarray, Parquet, netCDF and NumPy.

All but NumPy are imported when needed; they come with ``pip install "percolab[tables]"``.
"""

from __future__ import annotations

import importlib
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from percolab.errors import InputError
from percolab.measure.columns import Column
from percolab.store.joined import joined_if_whole
from percolab.store.output_files import NPZ_TABLE, TABLE_MARK, marked_archive
from percolab.store.results import StoredResults, check_results
from percolab.store.task_result import TaskResult
from percolab.tables.flat import Pair, Table, long_table, tabulated, task_means
from percolab.tables.sizes import single_arrays, size_arrays, size_table

if TYPE_CHECKING:
    import pandas
    import xarray


def to_pandas(results: StoredResults, *, sizes: bool = False) -> pandas.DataFrame:
    """Return means and standard errors as a tidy table, one row an observable, size and p.

    Columns: lattice, model, boundary, L, sites, seed, p, samples, observable, unit, mean, error.
    The error is one standard error of the mean of independent samples.  Of method "threshold"
    there are the spanning probabilities alone, over the transition.  sizes: the cluster numbers
    instead (:func:`percolab.tables.sizes.size_table`).  InputError: pandas is not installed, or no
    sizes were counted.

    >>> import percolab
    >>> results = percolab.sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
    >>> frame = percolab.to_pandas(results)  # doctest: +SKIP
    >>> frame.pivot(index=["L", "p"], columns="observable", values="mean")  # doctest: +SKIP
    """
    check_results(results)
    pandas = imported("pandas")
    header, rows = size_table(results) if sizes else long_table(results)
    return pandas.DataFrame(list(rows), columns=header)


def to_xarray(results: StoredResults) -> xarray.Dataset:
    """Return means and standard errors as a dataset with dimensions task and point.

    A task is one size, seed and p grid, with the coordinates L, sites, seed and samples (task,).
    p (task, point) is a coordinate too: sizes have p values of their own, and where a task has
    fewer, p and the means end in NaN.  For every observable NAME there are NAME and NAME_error,
    float64 (task, point), with ``long_name`` and ``units``.  Where sizes were counted there are
    n_s and n_s_error too, with a third dimension bin and its coordinates s_low and s_high, and the
    powers of sizes, as ``percolab observables`` names them.  InputError: xarray is not installed.

    >>> import percolab
    >>> results = percolab.sweep("square", L=[8, 16], p=[0.4, 0.6], samples=100, device="cpu")
    >>> data = percolab.to_xarray(results)  # doctest: +SKIP
    >>> data.swap_dims(task="L").largest.sel(L=16)  # doctest: +SKIP
    """
    check_results(results)
    module = imported("xarray")
    points: dict[str, list[tuple[float, dict[str, Pair]]]] = {}
    for result, p, means in task_means(results):
        points.setdefault(result.task.id, []).append((p, means))
    stored = joined_if_whole(results).tasks
    tasks = [stored[key] for key in points]
    study = results.study
    observables = tabulated(results)
    shape = (len(tasks), max(map(len, points.values()), default=0))
    grid, numbers = np.full(shape, np.nan), np.full((*shape, len(observables), 2), np.nan)
    for n, found in enumerate(points.values()):
        grid[n, : len(found)] = [p for p, _ in found]
        pairs = [[means.get(item.name, (None, None)) for item in observables] for _, means in found]
        numbers[n, : len(found)] = np.array(pairs, float)
    variables = {}
    for k, item in enumerate(observables):
        for which, (name, words) in enumerate(
            ((item.name, "mean of"), (f"{item.name}_error", "standard error of the mean of"))
        ):
            meaning = {"long_name": f"{words} {item.name}: {item.meaning}", "units": item.unit}
            variables[name] = (("task", "point"), numbers[:, :, k, which], meaning)
    variables |= _extras(results.columns(), tasks, shape)
    arrays = size_arrays(tasks, shape[1])
    bins = {name: ("bin", arrays[name]) for name in ("s_low", "s_high") if arrays}
    varying = {"long_name": tasks[0].task.draw.varying, "units": "1"} if tasks else {}
    data: xarray.Dataset = module.Dataset(
        variables,
        coords={
            "L": ("task", [item.task.size for item in tasks]),
            "sites": ("task", [item.task.num_sites for item in tasks]),
            "seed": ("task", [item.task.seed for item in tasks]),
            "samples": ("task", [item.num_samples for item in tasks]),
            "p": (("task", "point"), grid, varying),
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


def _extras(
    columns: Sequence[Column], tasks: list[TaskResult], shape: tuple[int, int]
) -> dict[str, tuple[Any, ...]]:
    """Return the variables of what was measured in addition to the observables."""
    found: dict[str, tuple[Any, ...]] = {}
    arrays = size_arrays(tasks, shape[1])
    for item in columns:
        if item.is_observable:
            continue
        if item.name in arrays:
            numbers = arrays["n_s"], arrays["n_s_error"]
        else:
            numbers = single_arrays(tasks, item.name, shape[1])
        if not any(np.isfinite(array).any() for array in numbers):
            continue
        for words, suffix, array in zip(("mean of", "standard error of"), ("", "_error"), numbers):
            meaning = {"long_name": f"{words} {item.name}: {item.meaning}", "units": item.unit}
            found[item.name + suffix] = (("task", "point", "bin")[: array.ndim], array, meaning)
    return found


def parquet_bytes(table: Table) -> bytes:
    """Return a Parquet file of a table of flat; InputError: pyarrow is not installed."""
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
    """Return a NumPy archive of a table of flat: an array a column, by its name, (rows,) each.

    Whole numbers are int64, others float64 with NaN for None, texts of fixed length.
    """
    header, rows = table
    columns = list(zip(*rows)) or [()] * len(header)
    buffer = io.BytesIO()
    arrays = {name: _array(column) for name, column in zip(header, columns)}
    np.savez(buffer, allow_pickle=False, **arrays)
    return marked_archive(buffer.getvalue(), NPZ_TABLE)


def _array(column: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Return the values of a column; None becomes NaN."""
    if None in column:
        return np.array(column, np.float64)
    return np.array(column)


def netcdf_bytes(results: StoredResults) -> bytes:
    """Return a netCDF-4 file of :func:`to_xarray`; InputError: xarray or h5netcdf is missing."""
    data = to_xarray(results)
    imported("h5netcdf")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.nc"
        data.to_netcdf(path, engine="h5netcdf")
        return path.read_bytes()


def imported(name: str) -> Any:
    """Return a package that comes with percolab[tables]; InputError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"{name} is not installed; it comes with: pip install 'percolab[tables]'"
        ) from error
