"""Do the stated errors hold?  Pulls, (value - known value) / error, of many real studies.

python pulls.py sample --device cuda     counts of systems with a known threshold
python pulls.py spins --device cuda      moments of spins with a known coupling
python pulls.py laws                     exponents and trees: small studies, sampled and fitted
python pulls.py count                    fits all stored studies: tables, and what holds
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import sampling

if TYPE_CHECKING:
    from counting import StudySet

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"

_data = click.option("--data", default=DATA, type=click.Path(path_type=Path), help="Folder.")
_device = click.option("--device", default="auto", show_default=True)
_processes = click.option("--processes", default=1, show_default=True)


@click.group(help=__doc__)
def main() -> None:
    """Sample, fit, count."""


@main.command()
@_device
@_processes
@_data
@click.option("--budget", default=900.0, show_default=True, help="Seconds.")
@click.option("--only", default="", help="Systems by parts of their names: a,b.")
@click.option("--scale", default=1.0, show_default=True, help="Factor on the samples.")
def sample(device: str, processes: int, data: Path, budget: float, only: str, scale: float) -> None:
    """Sample systems in order until the plan is done or the time is over; goes on where it was."""
    jobs = [(system, samples) for system, samples in sampling.plan(scale) if _named(system, only)]
    deadline = time.time() + budget
    sampling.sample_all(jobs, sampling.Asked(data, device, deadline, processes))


def _named(system: sampling.System, only: str) -> bool:
    """Return whether a system has one of some parts in its name."""
    return any(part in system.name for part in only.split(","))


@main.command()
@_device
@_data
@click.option("--budget", default=300.0, show_default=True, help="Seconds.")
@click.option("--studies", default=sampling.SPIN_STUDIES, show_default=True)
def spins(device: str, data: Path, budget: float, studies: int) -> None:
    """Sample spins whose files are not there, as long as there is time."""
    sampling.sample_all_spins(data, device, budget, studies)


@main.command()
@_processes
@_data
@click.option("--studies", default=40, show_default=True)
@click.option("--only", default="", help="Systems by a part of their name.")
@click.option("--budget", default=1800.0, show_default=True, help="Seconds.")
def laws(processes: int, data: Path, studies: int, only: str, budget: float) -> None:
    """Sample small studies of cluster sizes and trees on the CPU, and fit them at once."""
    import counting

    path, end = data / "laws.jsonl", time.time() + budget
    data.mkdir(parents=True, exist_ok=True)
    done = {(line["name"], line["number"]) for line in counting.read_laws(path)}
    asked = [(name, number) for number in range(studies) for name in counting.LAWS if only in name]
    jobs = [job for job in asked if job not in done]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for line in pool.imap_unordered(partial(_law, end), jobs):
            if line:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")


def _law(end: float, job: tuple[str, int]) -> dict[str, object]:
    """Return the line of a study; {} when the time is over."""
    import counting

    from percolab.errors import AnalysisError

    if time.time() > end:
        return {}
    name, number = job
    try:
        return {"name": name, "number": number, "values": counting.law_values(name, number)}
    except AnalysisError as error:
        return {"name": name, "number": number, "failed": str(error)}


@main.command()
@_processes
@_data
@click.option("--only", default="", help="Systems by a part of their name.")
@click.option("--most", default=200, show_default=True, help="Studies of a set.")
@click.option("--broken", type=click.Choice(["field", "priors"]), help="Break the fit on purpose.")
@click.option("--out", type=click.Path(path_type=Path), help="File of the tables, Markdown.")
def count(
    processes: int, data: Path, only: str, most: int, broken: str | None, out: Path | None
) -> None:
    """Fit every study; print the tables, and what of what is asked holds."""
    import counting

    begin = time.perf_counter()
    systems = [item for item in sampling.systems() if _named(item, only)]
    work = partial(_sets, data=data, broken=broken, most=most)
    sets: list[StudySet] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap(work, systems):
            sets += found
    new = [item for item in sets if not item.aside]
    lines = ["## What is asked", ""]
    lines += counting.verdict(new, ["p_c", "1/nu"])
    for samples, _ in counting.STUDIES:
        own = [item for item in new if item.samples == samples]
        lines += ["", f"With {samples:.0e} samples of each size:", ""]
        lines += counting.verdict(own, ["p_c", "1/nu"])
    for aside in sorted({item.aside for item in sets} - {""}):
        lines += ["", f"Aside: {aside}", ""]
        own = [item for item in sets if item.aside == aside]
        lines += counting.verdict(own, ["p_c", "1/nu"])
    lines += ["", "## All sets", "", *counting.table(sets, ["p_c", "1/nu"])]
    if not only and not broken:
        lines += _beside(data, most)
    lines += [
        "",
        f"{sum(item.studies for item in sets)} fits of p_c, {time.perf_counter() - begin:.0f} s.",
    ]
    text = "\n".join(lines) + "\n"
    click.echo(text, nl=False)
    if out is not None:
        out.write_text(text, encoding="utf-8")


def _sets(system: sampling.System, *, data: Path, broken: str | None, most: int) -> list[StudySet]:
    """Return the fitted studies of one system."""
    import counting

    return list(counting.threshold_sets([system], data, broken=broken, most=most))


def _beside(data: Path, most: int) -> Iterator[str]:
    """Yield the tables of spins and of power laws, and how long a fit takes."""
    import counting

    yield from ("", "## Spins", "")
    found = list(counting.spin_sets(data, most))
    yield from counting.verdict(found, ["p_c", "1/nu"])
    yield from ("", *counting.table(found, ["p_c", "1/nu"]))
    yield from ("", "## Power laws", "")
    found = list(counting.law_sets(data / "laws.jsonl"))
    yield from counting.verdict(found, sorted({name for item in found for name in item.quantities}))
    yield from ("", *counting.law_table(found))
    system = next(item for item in sampling.systems() if item.name == "square-bond-open")
    if (data / f"{system.name}.npz").exists():
        seconds = counting.seconds_of_fit(system, data)
        yield from ("", f"A default fit takes {1e3 * seconds:.0f} ms (least of seven).")


if __name__ == "__main__":
    main()
