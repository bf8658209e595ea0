"""Reproduce the figures of the papers on which percolab is based.

Figs 5 to 10 of Komura (arXiv:1603.08357) are made into one folder (percolab/papers/komura2016):
for each figure the results of Figs 5 and 6 (HDF5), PNG, PDF and SVG, and every number drawn (JSON).
summary.json has an entry a figure: what it found, the command, the machine and the versions.  A run
of some figures leaves the entries of the others as they are.

--redraw draws the figures of a folder anew from what is stored there, without sampling or timing:
the samples of Figs 5 and 6, the times of summary.json, the seeds of Figs 8 and 9.  Without --out it
is results/komura2016-h200, and what else is stored of a GPU is drawn anew too: bench.png and the
figures of Weigel, Guo and Fink.  The age of the numbers stays what summary.json says.

A run of all figures also draws those of Weigel 2011 and Komura's comparison of two algorithms, and
Figs 5 and 6 of Guo et al. 2011, if a GPU has measured them (percolab/papers/weigel2011 and
guo2011).  It draws Figs 4 to 7 and Tables 1 and 2 of Fink et al. 1997 too, which need no GPU
(percolab/papers/fink1997).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from percolab.benchmark.figure import plot_time_per_site
from percolab.figures import save_figure
from percolab.kernels.device import Device
from percolab.papers.fink1997 import drawing as fink
from percolab.papers.guo2011 import drawing as guo
from percolab.papers.komura2016.figures import (
    MAKERS,
    described,
    read_summary,
    redraw,
    stored_times,
)
from percolab.papers.weigel2011 import drawing as weigel
from percolab.run.engine import device_label
from percolab.store.output_files import replace_file
from percolab.store.provenance import package_versions, processor_name

ROOT = Path(__file__).resolve().parent.parent
#: What is stored of a GPU: Komura's figures, and the times of `percolab bench`.
STORED, BENCH = ROOT / "results" / "komura2016-h200", ROOT / "results" / "h200"


def bench_drawn(record: dict[str, Any]) -> Any:
    """Return the figure of a record that `percolab bench --json` wrote."""
    times = stored_times([*record["records"], *record.get("peers", ())])
    return plot_time_per_site(times, title=record["machine"]["device_name"])


def earlier_summary(path: Path) -> dict[str, Any]:
    """Return the summary of an earlier run; click's error if the file is not one."""
    try:
        return read_summary(path)
    except ValueError as error:
        raise click.ClickException(f"{error}; choose another --out") from error


def check_figures(_context: click.Context, _option: click.Parameter, text: str) -> list[str]:
    """Return the numbers of the requested figures, in order."""
    requested = [part.strip() for part in text.split(",")]
    for number in requested:
        if number not in MAKERS:
            raise click.BadParameter(f"{number!r} is none of {', '.join(MAKERS)}")
    return [number for number in MAKERS if number in requested]


@click.command(help=__doc__)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--out", type=click.Path(path_type=Path), help="[default: results/figures-DEVICE]")
@click.option("--redraw", "again", is_flag=True, help="Draw anew what is stored.")
@click.option("--figures", default=",".join(MAKERS), show_default=True, callback=check_figures)
def main(device: str, out: Path | None, figures: list[str], again: bool) -> None:
    """Make the figures."""
    if again:
        folder = out or STORED
        earlier_summary(folder / "summary.json")
        click.echo("\n".join(redraw(folder, figures)))
        if out is None and len(figures) == len(MAKERS):
            record = json.loads((BENCH / "bench.json").read_bytes())
            (BENCH / "bench.png").unlink(missing_ok=True)
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
    """Draw the figures of Weigel, Guo and Fink from stored measurements, and print the results."""
    for paper in (weigel, guo, fink):
        click.echo("\n".join(paper.draw_all(ROOT / paper.RECORD, ROOT / paper.FOLDER)))


if __name__ == "__main__":
    main()
