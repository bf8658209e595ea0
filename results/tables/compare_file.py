"""The same samples fitted as a file of percolab and as a table of counts.

    python results/tables/compare_file.py

Square bonds open: one study whose p share their samples, and one whose every p has samples of its
own, so that the rows of its table are independent, as the fit of a table takes them to be.
"""

from __future__ import annotations

import percolab
from percolab.analysis.stored_data import read_curves


def table_of(results: list[percolab.Results]) -> percolab.DataTable:
    """Return the spanning counts of studies as a table."""
    rows: dict[str, list[float]] = {"L": [], "p": [], "k": [], "n": []}
    for each in results:
        for curve in read_curves(each):
            count = curve.p.size
            rows["L"] += [curve.L] * count
            rows["p"] += curve.p.tolist()
            rows["k"] += curve.spanning.sum(axis=0).tolist()
            rows["n"] += [curve.total_samples] * count
    return percolab.open_table(rows)


def main() -> None:
    """Print p_c and 1/nu of the file and of both tables."""
    p = [0.44, 0.46, 0.48, 0.49, 0.5, 0.51, 0.52, 0.54, 0.56]
    options = {"L": [8, 16, 32, 64], "device": "cpu", "workers": 1, "samples": 10_000}
    shared = percolab.sweep("square", p=p, seed=1, **options)
    own = [percolab.sweep("square", p=[each], seed=2 + n, **options) for n, each in enumerate(p)]
    fits = {
        "file, 1/nu free": shared.fit(nu="free"),
        "table of the same counts": table_of([shared]).fit(),
        "table of independent counts": table_of(own).fit(),
    }
    for name, fit in fits.items():
        print(f"{name:28} p_c = {fit.p_c}  1/nu = {fit.exponent}  {fit.chi_square}")


if __name__ == "__main__":
    main()
