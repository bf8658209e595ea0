"""Do the errors of power laws hold?  Pulls on real samples: value less exact over the stated error.

    python results/calibration/power_laws.py --systems square,cubic-torus --studies 20

Studies differ by their seed.  Of each there are the exponents at the p_c that it fits itself, d_f
of radii, p_c from the drift of the crossings, and p_c and 1/nu from single T.  Trees are counted by
their D, which is compared with 1.216(1) in the plane (S. Sweeney and A. Middleton, Phys. Rev. E 88,
032129 (2013)).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from percolab.analysis import AnalysisError
from percolab.analysis.power_law import Value
from percolab.analysis.radii import fit_radius
from percolab.analysis.stored_data import gyration_sums_of
from percolab.analysis.stored_fits import exponents_of, fit_results, has_open_axis, samples_of
from percolab.analysis.theory.known_exponents import Known, known_exponents
from percolab.analysis.trees import fit_trees
from percolab.api import sweep
from percolab.store.results import Results

#: Lattice, model, boundary and sizes by name.
SYSTEMS: dict[str, tuple[str, str, str, tuple[int, ...]]] = {
    "square": ("square", "bond", "open", (8, 16, 32, 64)),
    "square-torus": ("square", "bond", "periodic", (8, 16, 32, 64)),
    "triangular-sites": ("triangular", "site", "open", (8, 16, 32, 64)),
    "cubic": ("cubic", "bond", "open", (8, 12, 16, 24, 32)),
    "cubic-torus": ("cubic", "bond", "periodic", (8, 12, 16, 24, 32)),
}
PATHS = {2: Known(1.216, 0.001, "", "Sweeney and Middleton 2013")}


class Pull(NamedTuple):
    """A pull, the stated error, and whether the fit was rejected."""

    pull: float
    error: float
    rejected: bool

    @classmethod
    def of(cls, found: Value, known: Known) -> Pull:
        """Return the pull of a value from a known one."""
        away = (found.value - known.value) / float(np.hypot(found.error, known.error))
        return cls(away, found.error, found.rejected)


def pulls_of_clusters(results: Results) -> dict[str, Pull]:
    """Return the pulls of a study of method grid that counted sizes and radii."""
    fit = fit_results(results)
    found = {
        f"{item.name}, {item.source}": Pull.of(item.result, item.known)
        for item in exponents_of(results, fit).exponents
        if item.known is not None
    }
    dimension, is_open = results.study.structure.dimension, has_open_axis(results)
    sums = gyration_sums_of(results)
    try:
        radius = fit_radius(sums, threshold=fit.threshold, dimension=dimension, is_open=is_open)
        if radius.known is not None:
            found["d_f, radii"] = Pull.of(radius.result, radius.known)
    except AnalysisError:
        pass
    exact, drift = _threshold_of(results), fit.by_size.drift
    if exact is not None and drift is not None:
        found["p_c, drift of crossings"] = Pull.of(drift.result, exact)
    return found


def pulls_of_samples(results: Results) -> dict[str, Pull]:
    """Return the pulls of p_c and 1/nu of a study of method threshold."""
    single = samples_of(results, bootstrap=0)
    known = {"p_c": _threshold_of(results)}
    known["1/nu"] = known_exponents(results.study.structure.dimension).get("1/nu")
    pairs = [(item, known[item.name]) for item in (single.extrapolations if single else ())]
    return {
        f"{item.name}, {item.estimator} of T": Pull.of(item.result, exact)
        for item, exact in pairs
        if exact is not None
    }


def pulls_of_trees(results: Results) -> dict[str, Pull]:
    """Return the pulls of D of a study of method tree."""
    known = PATHS.get(results.study.structure.dimension)
    found = fit_trees(results).exponents if known is not None else {}
    return {f"D, path_{x}": Pull.of(law.exponent, known) for x, law in found.items() if known}


def _threshold_of(results: Results) -> Known | None:
    found = results.study.structure.threshold(results.study.model)
    return None if found is None else Known(found.value, found.error, "", found.reference)


def pulls(system: str, seed: int, *, samples: int, device: str) -> dict[str, Pull]:
    """Sample one study of a system and return all its pulls."""
    lattice, model, boundary, sizes = SYSTEMS[system]
    shared: dict[str, Any] = {
        "L": list(sizes), "model": model, "boundary": boundary, "samples": samples, "seed": seed,
        "device": device,
    }  # fmt: skip
    found = pulls_of_clusters(sweep(lattice, measure="sizes,gyration", **shared))
    found |= pulls_of_samples(sweep(lattice, method="threshold", **shared))
    if model == "bond" and boundary == "open":
        found |= pulls_of_trees(sweep(lattice, method="tree", **shared))
    return found


def table(system: str, studies: Iterable[dict[str, Pull]]) -> list[str]:
    """Return lines: number of studies, mean and width of pulls, how many are within two errors."""
    rows: dict[str, list[Pull]] = {}
    for study in studies:
        for name, pull in study.items():
            rows.setdefault(name, []).append(pull)
    lines = []
    for name, own in rows.items():
        z, errors, rejected = (np.array(column) for column in zip(*own, strict=True))
        width = z.std(ddof=1) if z.size > 1 else np.nan
        cells = (
            system, name, str(z.size), f"{z.mean():+.2f}", f"{width:.2f}",
            f"{np.mean(np.abs(z) < 2):.0%}", f"{np.median(errors):.1e}", f"{rejected.sum():.0f}",
        )  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Sample, fit, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    print("| system | number | studies | mean | width | within two | error | rejected |")
    print("|---|---|---|---|---|---|---|---|")
    for system in given.systems.split(","):
        options = {"samples": given.samples, "device": given.device}
        seeds = range(1, given.studies + 1)
        for line in table(system, (pulls(system, seed, **options) for seed in seeds)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
