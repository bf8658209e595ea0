"""Reproduce Figs 5, 6 and 7 of Komura (arXiv:1603.08357) into one folder.

Figs 5 and 6: spanning probability of the honeycomb and triangular lattices, and their thresholds.
Fig 7: time per sample against N at 0.5, 1 and 1.5 p_c, bonds and labels, of the four-step labeler
and, on a GPU, of the tiled one.

With a CUDA device at the paper's sizes, N = 2^18 ... 2^24; without one at N = 2^12 ... 2^18.  The
folder gets for each figure the results (HDF5), PNG, PDF and SVG, every number drawn (JSON), and a
summary.json with the thresholds, the machine and the versions.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import product
from pathlib import Path

import click

from percolab.benchmark import StageTime, places_of, time_stages
from percolab.cli.progress import ProgressWatcher
from percolab.config import read_request
from percolab.lattice import load_lattice
from percolab.plots import save_figure
from percolab.plots_timing import Timing, plot_timing
from percolab.provenance import package_versions, processor_name
from percolab.report import spanning_figure
from percolab.runner import device_label, run_study
from percolab.sampler import Device
from percolab.spanning import fit_results
from percolab.storage import ResultsWriter

ROOT = Path(__file__).resolve().parent.parent
FIGURES = {"5": "honeycomb", "6": "triangular"}
RATIOS = (0.5, 1.0, 1.5)
# Sizes drawn: of the sweep in Figs 5 and 6, and timed in Fig 7.
SIZES = {"cuda": (512, 1024, 2048, 4096), "cpu": (64, 128, 256, 512)}


def spanning(number: str, device: Device, folder: Path) -> dict:
    """Run the sweep of Fig 5 or 6, draw it, and return its threshold."""
    scale = "" if device.kind == "cuda" else "-small"
    name = f"komura2016-fig{number}{scale}"
    request = read_request(ROOT / "configs" / f"{name}.toml", {"out": str(folder / f"{name}.h5")})
    with ResultsWriter(request.out) as writer:
        results = run_study(
            request.study, request.rule, writer=writer, device=device, watcher=ProgressWatcher()
        )
    # Corrections beyond the one that is fitted show at small L at these errors.
    fit = fit_results(results, min_size="auto")
    figure, numbers = spanning_figure(results, fitted=lambda: fit, sizes=SIZES[device.kind])
    save(figure, numbers, folder / name)
    known = results.study.lattice.threshold()
    return {
        "lattice": results.study.lattice.name,
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
        "seconds": sum(run["seconds"] for run in results.runs),
    }


def timing(device: Device, folder: Path) -> list[dict]:
    """Time the four-step labeler, and on a GPU the tiled one, as in Fig 7 and draw them."""
    records: list[StageTime] = []
    labelers = ("four_step", "tiled") if device.kind == "cuda" else ("four_step",)
    for name in FIGURES.values():
        lattice = load_lattice(name)
        places = places_of(lattice, RATIOS, None)
        for size, labeler in product(SIZES[device.kind], labelers):
            records += time_stages(
                lattice, size, places, device=device, labeler=labeler, stages=("labels",)
            )
    drawn = [
        Timing(r.lattice, r.labeler, r.ratio, r.num_sites, 1e3 * r.seconds_per_sample)
        for r in records
    ]
    figure, numbers = plot_timing(drawn, title=f"bonds and labels, {device_label(device)}")
    save(figure, numbers, folder / "komura2016-fig7")
    return [record.to_dict() for record in records]


def save(figure, numbers: dict, stem: Path) -> None:
    """Write a figure as PNG, PDF and SVG and its numbers as JSON."""
    for suffix in (".png", ".pdf", ".svg"):
        save_figure(figure, stem.with_suffix(suffix))
    stem.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


@click.command(help=__doc__)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--out", type=click.Path(path_type=Path), help="[default: results/figures-DEVICE]")
def main(device: str, out: Path | None) -> None:
    """Make all three figures."""
    begin = time.perf_counter()
    target = Device.parse(device).resolve()
    folder = out or ROOT / "results" / f"figures-{target.kind}"
    folder.mkdir(parents=True, exist_ok=True)
    summary: dict = {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "device": str(target),
        "device_name": device_label(target),
        "processor": processor_name(),
        "versions": package_versions(),
        "thresholds": [spanning(number, target, folder) for number in FIGURES],
        "timings": timing(target, folder),
    }
    summary["seconds"] = round(time.perf_counter() - begin, 1)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    for entry in summary["thresholds"]:
        click.echo(
            f"{entry['lattice']:<11} p_c = {entry['threshold']:.7f} +- {entry['error']:.1e}, "
            f"{entry['deviation_in_sigma']:+.1f} sigma from {entry['published']:.10f}, "
            f"chi2/dof {entry['chi_square']:.1f}/{entry['dof']} from L >= "
            f"{entry['smallest_size_fitted']}"
        )
    click.echo(f"figures in {folder}, {summary['seconds']} s on {summary['device_name']}")


if __name__ == "__main__":
    main()
