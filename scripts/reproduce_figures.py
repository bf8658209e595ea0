"""Reproduce Figs 5 to 10 of Komura (arXiv:1603.08357) into one folder.

Figs 5 and 6: spanning probability of the honeycomb and triangular lattices, and their thresholds.
Fig 7: time per sample against N at 0.5, 1 and 1.5 p_c, bonds and labels, of the four-step labeler
and, on a GPU, of the tiled one.
Figs 8 and 9: clusters of a Bethe lattice, z = 3, at 1.5 p_c, its sites numbered from the centre
outwards and at random.
Fig 10: as Fig 7, of the four-step labeler on both Bethe lattices.

With a CUDA device at the paper's sizes: N = 2^18 ... 2^24, and 393214 ... 12582910 in Fig 10.
Without one: N = 2^12 ... 2^18, and 6142 ... 196606.  The folder gets for each figure the results
of Figs 5 and 6 (HDF5), PNG, PDF and SVG, and every number drawn (JSON).  summary.json has an entry
a figure: what it found, the command, the machine and the versions.  A run of some figures leaves
the entries of the others as they are.

--redraw draws the figures of a folder anew from what is stored there, without sampling or timing:
the samples of Figs 5 and 6, the times of summary.json, the seeds of Figs 8 and 9.  Without --out it
is results/komura2016-h200, and what else is stored of a GPU is drawn anew too: bench.png and the
figures of Weigel, Guo and Fink.  The age of the numbers stays what summary.json says.

A run of all figures also draws those of Weigel 2011 and Komura's comparison of two algorithms, and
Figs 5 and 6 of Guo et al. 2011, if a GPU has measured them (scripts/weigel_figures.py,
scripts/guo_figures.py): see scripts/weigel_drawing.py and scripts/guo_drawing.py.  It draws Figs 4
to 7 and Tables 1 and 2 of Fink et al. 1997 too, which need no GPU (scripts/fink_figures.py,
scripts/fink_drawing.py).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click
import fink_drawing
import fink_figures
import guo_drawing
import guo_figures
import weigel_drawing
from weigel_figures import RECORD

from percolab.analysis.stored_fits import fit_results
from percolab.api import open_results
from percolab.benchmark import StageTime, places_of, plot_time_per_site, time_stages
from percolab.benchmark.peers import PeerTime
from percolab.cli.progress import ProgressWatcher
from percolab.configurations import random_configuration
from percolab.figures import save_figure
from percolab.figures.bethe import plot_bethe
from percolab.figures.kinds import StudyFigures
from percolab.figures.kinds.curves import spanning_figure_of
from percolab.figures.timing import Timing, plot_timing
from percolab.kernels.device import Device
from percolab.lattices.bethe import NUMBERINGS, BetheLattice
from percolab.lattices.lattice import load_lattice
from percolab.run.engine import device_label
from percolab.run.runner import run_study
from percolab.store.output_files import replace_file
from percolab.store.provenance import package_versions, processor_name
from percolab.store.results import Results, ResultsWriter
from percolab.tasks.study_file import read_request

ROOT = Path(__file__).resolve().parent.parent
#: What is stored of a GPU: the figures of this script, and the times of `percolab bench`.
STORED, BENCH = ROOT / "results" / "komura2016-h200", ROOT / "results" / "h200"
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


def spanning(number: str, device: Device, folder: Path) -> dict:
    """Run the sweep of Fig 5 or 6, draw it, and return its threshold."""
    scale = "" if device.kind == "cuda" else "-small"
    name = f"komura2016-fig{number}{scale}"
    request = read_request(ROOT / "configs" / f"{name}.toml", {"out": str(folder / f"{name}.h5")})
    with ResultsWriter(request.out) as writer:
        results = run_study(
            request.study, request.rule, writer=writer, device=device, watcher=ProgressWatcher()
        )
    fit, figure, numbers = spanning_drawn(results, device.kind)
    save(figure, numbers, folder / name)
    known = results.study.structure.threshold()
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


def spanning_drawn(results: Results, kind: str) -> tuple[Any, Any, dict]:
    """Return the fit of Fig 5 or 6, the figure and its numbers; kind: of the device it is from."""
    fit = fit_results(results)
    return fit, *spanning_figure_of(StudyFigures(results, lambda: fit), sizes=SIZES[kind])


def timing(device: Device, folder: Path) -> dict:
    """Time the four-step labeler, and on a GPU the tiled one, as in Fig 7; return the times."""
    records: list[StageTime] = []
    labelers = ("four_step", "tiled") if device.kind == "cuda" else ("four_step",)
    for name in LATTICES.values():
        lattice = load_lattice(name)
        places = places_of(lattice, RATIOS, None)
        for size, labeler in product(SIZES[device.kind], labelers):
            records += time_stages(
                lattice, size, places, device=device, labeler=labeler, stages=("labels",)
            )
    save(*timing_drawn("7", records, device_label(device)), folder / "komura2016-fig7")
    return {"timings": [record.to_dict() for record in records]}


def bethe_clusters(number: str, numbering: str, device: Device, folder: Path) -> dict:
    """Draw the clusters of Fig 8 or 9, and return how many and how large they are."""
    record, figure, numbers = bethe_drawn(numbering, str(device))
    save(figure, numbers, folder / f"komura2016-fig{number}")
    return record


def bethe_drawn(numbering: str, device: str) -> tuple[dict, Any, dict]:
    """Return what is said of the clusters of Fig 8 or 9, the figure and its numbers."""
    lattice = BetheLattice(3, numbering)
    (place,) = places_of(lattice, (RATIOS[-1],), None)
    chosen = random_configuration(lattice, DRAWN_SHELLS, place.p)
    clusters = chosen.label("four_step", device)
    title = rf"Bethe lattice, $z = 3$, {numbering} numbering, $p = {place.ratio:g}\,p_c$"
    figure, numbers = plot_bethe(clusters, lattice, DRAWN_SHELLS, title=title)
    return {**chosen.record, **clusters.summary()}, figure, numbers


def bethe_timing(device: Device, folder: Path) -> dict:
    """Time the four-step labeler on both Bethe lattices as in Fig 10; return the times."""
    lattices = [BetheLattice(3, numbering) for numbering in NUMBERINGS]
    records: list[StageTime] = []
    for shells, lattice in product(TIMED_SHELLS[device.kind], lattices):
        places = places_of(lattice, RATIOS, None)
        records += time_stages(
            lattice,
            shells,
            places,
            device=device,
            labeler="four_step",
            stages=("labels",),
            runs=BETHE_RUNS[device.kind],
        )
    save(*timing_drawn("10", records, device_label(device)), folder / "komura2016-fig10")
    return {"timings": [record.to_dict() for record in records]}


def timing_drawn(number: str, records: Sequence[StageTime], device_name: str) -> tuple[Any, dict]:
    """Return Fig 7 or 10, the time per sample of lattices, and its numbers."""
    names, title = {name: name for name in LATTICES.values()}, "bonds and labels"
    if number == "10":
        lattices = [BetheLattice(3, numbering) for numbering in NUMBERINGS]
        names = {lattice.name: lattice.numbering for lattice in lattices}
        title = "Bethe lattice, $z = 3$: bonds and labels"
    drawn = [
        Timing(
            lattice=names[record.lattice],
            labeler=record.labeler,
            ratio=record.ratio,
            num_sites=record.num_sites,
            milliseconds=1e3 * record.seconds_per_sample,
            batch=record.samples_per_run,
        )
        for record in records
    ]
    return plot_timing(drawn, title=f"{title}, {device_name}")


def stored_times(kind: Any, entries: Sequence[dict[str, Any]]) -> list[Any]:
    """Return stored times as records of this kind; what is worked out of them is left out."""
    names = [field.name for field in fields(kind)]
    return [kind(**{name: entry[name] for name in names}) for entry in entries]


def redrawn(number: str, entry: dict[str, Any], folder: Path) -> Any:
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
    return name, *timing_drawn(
        number, stored_times(StageTime, entry["timings"]), entry["device_name"]
    )


def bench_drawn(record: dict[str, Any]) -> Any:
    """Return the figure of what `percolab bench --json` wrote."""
    parts = ((StageTime, record["records"]), (PeerTime, record["peers"]))
    times = [time for kind, entries in parts for time in stored_times(kind, entries)]
    return plot_time_per_site(times, title=record["machine"]["device_name"])


def redraw(folder: Path, figures: Sequence[str]) -> list[str]:
    """Draw the stored figures of a folder anew; return a line for each.

    The line says whether the numbers drawn are those that were stored beside the figure.
    """
    entries = earlier_summary(folder / "summary.json")["figures"]
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
        said = f"other {', '.join(sorted(changed))} than were stored" if changed else "same numbers"
        lines.append(f"Fig {number}: drawn anew, {said}")
    return lines


def save(figure, numbers: dict, stem: Path) -> None:
    """Write a figure as PNG, PDF and SVG and its numbers as JSON."""
    for suffix in (".png", ".pdf", ".svg"):
        save_figure(figure, stem.with_suffix(suffix))
    stem.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


#: By its number what makes a figure, in a folder on a device, and returns what it found.
MAKERS: dict[str, Callable[[Device, Path], dict]] = {
    **{number: partial(spanning, number) for number in LATTICES},
    "7": timing,
    "8": partial(bethe_clusters, "8", "standard"),
    "9": partial(bethe_clusters, "9", "random"),
    "10": bethe_timing,
}


def earlier_summary(path: Path) -> dict[str, Any]:
    """Return what an earlier run wrote, to be kept beside this one's; click's error if it did not.

    All that is in it stays, also what an older version of this script called otherwise.
    """
    if not path.exists():
        return {"figures": {}}
    try:
        summary = {"figures": {}} | json.loads(path.read_bytes())
        if not summary["figures"].keys() <= MAKERS.keys():
            raise ValueError("figures that this script does not make")
    except (ValueError, TypeError, AttributeError) as error:
        raise click.ClickException(f"{path}: is no summary; choose another --out") from error
    return summary


def check_figures(_context: click.Context, _option: click.Parameter, text: str) -> list[str]:
    """Return the numbers of the figures asked for, in order."""
    asked = [part.strip() for part in text.split(",")]
    for number in asked:
        if number not in MAKERS:
            raise click.BadParameter(f"{number!r} is none of {', '.join(MAKERS)}")
    return [number for number in MAKERS if number in asked]


def described(number: str, entry: dict[str, Any]) -> str:
    """Return what is said of a figure when it is made."""
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


@click.command(help=__doc__)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--out", type=click.Path(path_type=Path), help="[default: results/figures-DEVICE]")
@click.option("--redraw", "again", is_flag=True, help="Draw anew what is stored.")
@click.option("--figures", default=",".join(MAKERS), show_default=True, callback=check_figures)
def main(device: str, out: Path | None, figures: list[str], again: bool) -> None:
    """Make the figures."""
    if again:
        click.echo("\n".join(redraw(out or STORED, figures)))
        if out is None and len(figures) == len(MAKERS):
            record = json.loads((BENCH / "bench.json").read_bytes())
            save_figure(bench_drawn(record), BENCH / "bench.png")
            draw_papers()
        return
    target = Device.parse(device).resolve()
    folder = out or ROOT / "results" / f"figures-{target.kind}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "summary.json"
    summary = earlier_summary(path) if len(figures) < len(MAKERS) else {"figures": {}}
    made_by = {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "device": str(target),
        "device_name": device_label(target),
        "processor": processor_name(),
        "versions": package_versions(),
    }
    for number in figures:
        begin = time.perf_counter()
        found = MAKERS[number](target, folder)
        seconds = round(time.perf_counter() - begin, 1)
        entries = summary["figures"] | {number: made_by | {"seconds": seconds} | found}
        summary["figures"] = {key: entries[key] for key in sorted(entries, key=int)}
        replace_file(path, (json.dumps(summary, indent=1) + "\n").encode())
        click.echo(f"{described(number, found)} ({seconds} s)")
    click.echo(f"figures in {folder}, on {made_by['device_name']}")
    if len(figures) == len(MAKERS):
        draw_papers()


def draw_papers() -> None:
    """Draw the figures of Weigel, Guo and Fink from what was measured, and say what was found."""
    click.echo("\n".join(weigel_drawing.draw_all(ROOT / RECORD, weigel_drawing.FOLDER)))
    click.echo("\n".join(guo_drawing.draw_all(ROOT / guo_figures.RECORD, guo_drawing.FOLDER)))
    click.echo("\n".join(fink_drawing.draw_all(ROOT / fink_figures.RECORD, fink_drawing.FOLDER)))


if __name__ == "__main__":
    main()
