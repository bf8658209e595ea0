"""Figs 5 to 10 of Komura (arXiv:1603.08357): made, and drawn again from what is stored.

Figs 5 and 6: spanning probability of the honeycomb and triangular lattices, and their thresholds.
Fig 7: time per sample against N at 0.5, 1 and 1.5 p_c, bonds and labels, of the four-step labeler
and, on a GPU, of the tiled one.
Figs 8 and 9: clusters of a Bethe lattice, z = 3, at 1.5 p_c, its sites numbered from the centre
outwards and at random.
Fig 10: as Fig 7, of the four-step labeler on both Bethe lattices.

With a CUDA device at the paper's sizes: N = 2^18 ... 2^24, and 393214 ... 12582910 in Fig 10.
Without one: N = 2^12 ... 2^18, and 6142 ... 196606.  ``scripts/reproduce_figures.py`` runs it.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from percolab.analysis.stored_fits import fit_results
from percolab.api import open_results
from percolab.benchmark.records import Setting, TimeRecord, compute_p
from percolab.benchmark.stages import time_lattice
from percolab.cli.progress import ProgressBar
from percolab.configurations import random_configuration
from percolab.figures.kinds import StudyFigures
from percolab.figures.kinds.curves import draw_spanning
from percolab.figures.networks import plot_bethe
from percolab.kernels.device import Device
from percolab.lattices.bethe import NUMBERINGS, BetheLattice
from percolab.lattices.lattice import load_lattice
from percolab.papers.komura2016.timing import Timing, plot_timing
from percolab.papers.measured_record import draw_over
from percolab.run.engine import device_label
from percolab.run.runner import run_study
from percolab.store.results import ResultsWriter, StoredResults
from percolab.tasks.study_file import read_request
from percolab.tasks.study_library import find_study

Found = dict[str, Any]

LATTICES = {"5": "honeycomb", "6": "triangular"}
RATIOS = (0.5, 1.0, 1.5)
# Sizes drawn: of the sweep in Figs 5 and 6, and timed in Fig 7.
SIZES = {"cuda": (512, 1024, 2048, 4096), "cpu": (64, 128, 256, 512)}
# Shells of the Bethe lattices, N = 3 * 2^k - 2: drawn in Figs 8 and 9, where numbers can be read in
# print, and timed in Fig 10.
DRAWN_SHELLS = 5
TIMED_SHELLS = {"cuda": range(17, 23), "cpu": range(11, 17)}
# A run of 2^30 sites with random numbers is long on a GPU, so there are fewer than the usual 11.
BETHE_RUNS = {"cuda": 5, "cpu": 11}


def spanning(number: str, device: Device, folder: Path) -> Found:
    """Run the sweep of Fig 5 or 6, draw it, and return its threshold."""
    scale = "" if device.kind == "cuda" else "-small"
    name = f"komura2016-fig{number}{scale}"
    request = read_request(find_study(name), {"out": str(folder / f"{name}.h5")})
    with ResultsWriter(request.out) as writer:
        results = run_study(
            request.study, request.rule, writer=writer, device=device, observer=ProgressBar()
        )
    fit, figure, numbers = spanning_drawn(results, device.kind)
    save(figure, numbers, folder / name)
    known: Any = results.study.structure.threshold()
    return {
        "lattice": results.study.structure.name,
        "threshold": fit.threshold,
        "error": fit.threshold_error,
        "published": known.value,
        "deviation_in_sigma": (fit.threshold - known.value) / fit.threshold_error,
        "chi_square": fit.chi_square.value,
        "dof": fit.chi_square.dof,
        "p_value": fit.chi_square.p_value,
        "smallest_size_fitted": min(fit.sizes),
        "nu": fit.nu,
        "nu_error": fit.nu_error,
        "seconds_of_sampling": sum(run["seconds"] for run in results.runs),
    }


def spanning_drawn(results: StoredResults, kind: str) -> tuple[Any, Any, Found]:
    """Return the fit of Fig 5 or 6, the figure and its numbers; kind: of the device it is from."""
    fit = fit_results(results)
    view = StudyFigures(results, lambda: fit)
    figure, numbers = draw_spanning(view, sizes=SIZES[kind])
    return fit, figure, view.complete(numbers)


def timing(device: Device, folder: Path) -> Found:
    """Time the four-step labeler, and on a GPU the tiled one, as in Fig 7; return the times."""
    labelers = ("four_step", "tiled") if device.kind == "cuda" else ("four_step",)
    cases = product(map(load_lattice, LATTICES.values()), SIZES[device.kind], labelers)
    return _time_labels("7", device, folder, cases)


def _time_labels(
    number: str, device: Device, folder: Path, cases: Iterable[tuple[Any, int, str]], runs: int = 11
) -> Found:
    """Time labels of (lattice, size, labeler) at three p, draw a figure and return the times."""
    records: list[TimeRecord] = []
    for lattice, size, labeler in cases:
        setting = Setting((device,), ratios=RATIOS, labelers=(labeler,), runs=runs)
        records += time_lattice(setting, lattice, size, ("labels",))
    save(*timing_drawn(number, records, device_label(device)), folder / f"komura2016-fig{number}")
    return {"timings": [record.to_dict() for record in records]}


def bethe_clusters(number: str, numbering: str, device: Device, folder: Path) -> Found:
    """Draw the clusters of Fig 8 or 9, and return how many and how large they are."""
    record, figure, numbers = bethe_drawn(numbering, str(device))
    save(figure, numbers, folder / f"komura2016-fig{number}")
    return record


def bethe_drawn(numbering: str, device: str) -> tuple[Found, Any, Found]:
    """Return a sentence on the clusters of Fig 8 or 9, the figure and its numbers."""
    lattice = BetheLattice(3, numbering)
    chosen = random_configuration(lattice, DRAWN_SHELLS, compute_p(lattice, RATIOS[-1]))
    clusters = chosen.label("four_step", device)
    title = rf"Bethe lattice, $z = 3$, {numbering} numbering, $p = {RATIOS[-1]:g}\,p_c$"
    figure, numbers = plot_bethe(clusters, lattice, DRAWN_SHELLS, title=title)
    return {**chosen.record, **clusters.summary()}, figure, numbers


def bethe_timing(device: Device, folder: Path) -> Found:
    """Time the four-step labeler on both Bethe lattices as in Fig 10; return the times."""
    shells = TIMED_SHELLS[device.kind]
    cases = [
        (BetheLattice(3, numbering), number, "four_step")
        for number, numbering in product(shells, NUMBERINGS)
    ]
    return _time_labels("10", device, folder, cases, BETHE_RUNS[device.kind])


def timing_drawn(number: str, records: Sequence[TimeRecord], device_name: str) -> tuple[Any, Found]:
    """Return Fig 7 or 10, the time per sample of lattices, and its numbers."""
    names, title = {name: name for name in LATTICES.values()}, "bonds and labels"
    if number == "10":
        lattices = [BetheLattice(3, numbering) for numbering in NUMBERINGS]
        names = {lattice.name: lattice.numbering for lattice in lattices}
        title = "Bethe lattice, $z = 3$: bonds and labels"
    drawn = [
        Timing(
            lattice=names[record.lattice],
            labeler=record.program,
            ratio=record.ratio or 0.0,
            num_sites=record.num_sites,
            milliseconds=1e3 * record.seconds_per_sample,
            batch=record.samples,
        )
        for record in records
    ]
    return plot_timing(drawn, title=f"{title}, {device_name}")


def stored_times(entries: Sequence[dict[str, Any]]) -> list[TimeRecord]:
    """Return stored times as records; what is worked out of them is left out.

    Until November 2026 records had L, labeler (of other programs peer and part), samples_per_run.
    """
    renamed = {"labeler": "program", "samples_per_run": "samples", "peer": "program"}
    names, records = {field.name for field in fields(TimeRecord)}, []
    for entry in entries:
        given = {"shape": (entry.get("L"),), "device": "cpu", "stage": entry.get("part"), **entry}
        given = {renamed.get(key, key): value for key, value in given.items() if key != "part"}
        records.append(TimeRecord(**{key: given[key] for key in given.keys() & names}))
    return records


def redrawn(number: str, entry: Found, folder: Path) -> Any:
    """Return the name of a stored figure, the figure drawn anew, and its numbers.

    entry: that of the summary.
    """
    name = f"komura2016-fig{number}"
    if number in LATTICES:
        kind = entry["device"].partition(":")[0]
        name += "" if kind == "cuda" else "-small"
        results = open_results(folder / f"{name}.h5")
        return name, *spanning_drawn(results, kind)[1:]
    if number in ("8", "9"):
        return name, *bethe_drawn(NUMBERINGS[("8", "9").index(number)], "cpu")[1:]
    return name, *timing_drawn(number, stored_times(entry["timings"]), entry["device_name"])


def redraw(folder: Path, figures: Sequence[str]) -> list[str]:
    """Draw the stored figures of a folder anew; return a line for each.

    The line says whether the numbers drawn are those that were stored with the figure.
    """
    entries = read_summary(folder / "summary.json")["figures"]
    lines = []
    for number in figures:
        if number not in entries:
            lines.append(f"Fig {number}: nothing is stored in {folder}")
            continue
        name, figure, numbers = redrawn(number, entries[number], folder)
        before = json.loads((folder / f"{name}.json").read_bytes())
        now = json.loads(json.dumps(numbers))
        changed = [key for key in {*before, *now} if before.get(key) != now.get(key)]
        save(figure, numbers, folder / name)
        change = (
            f"other {', '.join(sorted(changed))} than were stored" if changed else "same numbers"
        )
        lines.append(f"Fig {number}: drawn anew, {change}")
    return lines


def save(figure: Any, numbers: Found, stem: Path) -> None:
    """Write a figure as PNG, PDF and SVG and its numbers as JSON."""
    draw_over(figure, stem)
    stem.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


#: By its number what makes a figure, in a folder on a device, and returns what it found.
MAKERS: dict[str, Callable[[Device, Path], Found]] = {
    **{number: partial(spanning, number) for number in LATTICES},
    "7": timing,
    "8": partial(bethe_clusters, "8", "standard"),
    "9": partial(bethe_clusters, "9", "random"),
    "10": bethe_timing,
}


def read_summary(path: Path) -> Found:
    """Return the summary that an earlier run wrote, {"figures": {}} if none did.

    All that is in it stays, also what an older version called otherwise.  ValueError: it is none.
    """
    if not path.exists():
        return {"figures": {}}
    try:
        summary: Found = {"figures": {}} | json.loads(path.read_bytes())
        unknown = summary["figures"].keys() - MAKERS.keys()
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: is no summary") from error
    if unknown:
        raise ValueError(f"{path}: is no summary")
    return summary


def described(number: str, entry: Found) -> str:
    """Return the lines of a figure when it is made."""
    start = f"Fig {number}: "
    if "threshold" in entry:
        return (
            f"{start}{entry['lattice']}, p_c = {entry['threshold']:.7f} +- {entry['error']:.1e}, "
            f"{entry['deviation_in_sigma']:+.1f} sigma from {entry['published']:.10f}, "
            f"chi2/dof {entry['chi_square']:.1f}/{entry['dof']} from L >= "
            f"{entry['smallest_size_fitted']}"
        )
    if "clusters" in entry:
        return f"{start}{entry['lattice']}, {entry['clusters']} clusters of {entry['sites']} sites"
    largest = max(entry["timings"], key=lambda time: (time["num_sites"], time["ratio"]))
    return (
        f"{start}{len(entry['timings'])} times, {1e3 * largest['seconds_per_sample']:.4g} ms at "
        f"N = {largest['num_sites']}, {largest['ratio']:g} p_c, {largest['lattice']}"
    )
