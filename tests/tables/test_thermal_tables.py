"""Tables, status and JSON of spins have the thermal means of the Hamiltonian, with errors."""

import csv
import io
import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cli_support import answer, stored

from percolab.analysis.stored_spins import compute_thermodynamics
from percolab.api import sweep
from percolab.tables.flat import LONG_HEADER, long_table, mean_table
from percolab.tables.given import read_table

COUPLINGS = (0.25, 0.44)
NAMES = ("energy", "specific_heat", "order", "susceptibility", "connected_susceptibility",
         "binder", "correlation_length_x", "correlation_length_y")  # fmt: skip


@cache
def torus(model="ising", samples=1000):
    """Return chains on a torus of 3 x 3 and one of 4 x 4; only to be read."""
    point = {"K": COUPLINGS} if model == "ising" else {"beta": COUPLINGS}
    return sweep(
        "square", model=model, L=[3, 4], boundary="periodic", burn_in=20, sweeps=120,
        samples=samples, measure=["correlation"], device="cpu", workers=1, **point,
    )  # fmt: skip


def enumerate_ising(length, coupling):
    """Return the thermal means of an Ising torus, from all states of its spins."""
    spins = np.array(list(product((-1, 1), repeat=length**2)), float).reshape(-1, length, length)
    bonds = sum((spins * np.roll(spins, 1, axis)).sum(axis=(1, 2)) for axis in (1, 2))
    weights = np.exp(coupling * (bonds - bonds.max()))
    weights /= weights.sum()
    sites, total = length**2, spins.sum(axis=(1, 2))
    absolute = weights @ np.abs(total)
    wave = np.exp(2j * np.pi * np.arange(length) / length)
    structure = weights @ np.abs(spins.sum(axis=2) @ wave) ** 2
    xi = np.sqrt(weights @ total**2 / structure - 1) / (2 * np.sin(np.pi / length))
    spread = weights @ bonds**2 - (weights @ bonds) ** 2
    values = (
        -(weights @ bonds) / sites,
        coupling**2 * spread / sites,
        absolute / sites,
        weights @ total**2 / sites,
        (weights @ total**2 - absolute**2) / sites,
        (weights @ total**2) ** 2 / (weights @ total**4),
        xi,
        xi,
    )
    return dict(zip(NAMES, map(float, values), strict=True))


@pytest.mark.slow
def test_a_tidy_table_of_spins_has_the_means_of_all_states():
    told = answer("export", stored(Path("spins.h5"), torus(samples=4000)), "--tidy")
    rows = list(csv.DictReader(io.StringIO(told)))
    assert list(rows[0]) == [*LONG_HEADER, "T", "K"]
    found = {(row["L"], round(float(row["K"]), 9), row["observable"]): row for row in rows}
    for coupling in COUPLINGS:
        exact = enumerate_ising(3, coupling)
        for name, value in exact.items():
            row = found["3", coupling, name]
            mean, error = float(row["mean"]), float(row["error"])
            assert abs(mean - value) <= 4 * error < 0.4 * abs(value), name
            assert float(row["T"]) == pytest.approx(1 / coupling)
    units = {row["observable"]: row["unit"] for row in rows}
    expected = ["J", "k_B", "1", "sites", "sites", "1", "grid points", "grid points"]
    assert [units[name] for name in NAMES] == expected


def test_all_tables_have_the_same_numbers():
    results = torus()
    header, wide = mean_table(results)
    assert header[-2:] == ["T", "K"]
    rows = {(row[header.index("L")], row[header.index("p")]): dict(zip(header, row, strict=True))
            for row in wide}  # fmt: skip
    for thermal in compute_thermodynamics(results):
        for n, p in enumerate(thermal.p.tolist()):
            for name in set(NAMES) & thermal.values.keys():
                row = rows[thermal.L, p]
                assert row[name] == thermal.values[name][n]
                assert row[f"{name}_error"] == thermal.errors[name][n]
    path = stored(Path("spins.h5"), results)
    status = json.loads(answer("status", path, "--json"))["thermal_means"]
    assert len(status) == len(wide)
    for record in status:
        row = rows[record["L"], record["p"]]
        assert record.items() <= row.items()
        assert set(NAMES) <= record.keys()


def test_status_shows_the_means_of_spins_with_errors():
    lines = answer("status", stored(Path("spins.h5"), torus())).splitlines()
    head, *rows = lines[lines.index("") + 1 :]
    assert head.split() == ["L", "T", "E/N", "|M|/N", "C/N", "<M^2>/N", "Q_m", "xi_x", "xi_y"]
    assert [row.split()[:2] for row in rows] == [
        ["3", "4"], ["3", "2.27273"], ["4", "4"], ["4", "2.27273"]
    ]  # fmt: skip
    assert all("(" in cell for row in rows for cell in row.split()[2:])
    plain = answer("status", stored(Path("bonds.h5")))
    assert "" not in plain.splitlines()


def test_status_says_how_few_chains_there_are():
    few = sweep(
        "square", model="ising", L=[4], boundary="periodic", K=[0.4], burn_in=5, sweeps=25,
        samples=80, device="cpu",
    )  # fmt: skip
    last = answer("status", stored(Path("few.h5"), few)).splitlines()[-1]
    assert last.startswith("errors come from only 4 chains: 39 % of the means are off")


def test_a_fit_of_spins_has_the_means_in_its_json():
    results = sweep(
        "square", model="potts:q=3", L=[4, 6, 8], boundary="periodic", burn_in=20, sweeps=60,
        samples=2000, beta=(0.95, 1.0, 1.05), device="cpu", workers=1,
    )  # fmt: skip
    path = stored(Path("potts.h5"), results)
    means = json.loads(answer("fit", path, "--json"))["thermal_means"]
    assert [(item["L"], round(item["beta"], 9)) for item in means] == [
        (L, beta) for L in (4, 6, 8) for beta in (0.95, 1.0, 1.05)
    ]
    for item in means:
        assert item["T"] == pytest.approx(1 / item["beta"])
        assert item["energy_error"] > 0


def test_one_chain_and_infinite_temperature_have_empty_cells():
    results = sweep("square", model="ising", L=4, p=[0.0, 0.5], boundary="periodic", burn_in=5,
                    sweeps=10, samples=5, device="cpu", workers=1)  # fmt: skip
    header, rows = mean_table(results)
    hot, cold = (dict(zip(header, row, strict=True)) for row in rows)
    assert (hot["T"], hot["K"]) == (None, 0.0)
    assert cold["T"] == pytest.approx(2 / np.log(2))
    assert cold["energy_error"] is None
    assert -2 <= cold["energy"] <= 2


def test_a_tidy_table_of_spins_can_be_fitted_as_a_table():
    long = long_table(torus())
    table = read_table({name: [row[n] for row in long[1]] for n, name in enumerate(long[0])},
                       "x=T")  # fmt: skip
    binder = next(series for name, series in table.series.items() if name == "observable=binder")
    assert binder.sizes == [3, 4]
    assert binder.axis == "T"


def test_percolation_has_no_thermal_means():
    results = sweep("square", L=4, p=[0.5], samples=20, device="cpu")
    header, _ = mean_table(results)
    assert not {"T", "K", "energy"} & set(header)
    assert long_table(results)[0] == list(LONG_HEADER)


def test_xarray_has_temperatures_as_coordinates():
    data = torus().to_xarray()
    assert data.K.values[0].tolist() == pytest.approx(COUPLINGS)
    assert (data["T"] * data.K).values.ravel().tolist() == pytest.approx([1.0] * 4)
    assert data.energy.attrs["units"] == "J"
