"""Time one sample on one processor and on two (--split lattice), and one study on one and on two.

    python scripts/bench_split.py --device cuda:0,1

A sample of about --sites sites: all on one GPU; on two, half each ("strong"); and, on the open
lattice, twice as many sites on two ("weak").  Printed are the seconds of the rows after the first,
which also makes tables and loads kernels; what each rank measured, and of the one message, which
the second rank sends, its megabytes, the milliseconds from its header to its end, and those of
joining.  Efficiency is by the least seconds.

The study, a square torus at five p, is made with two numbers of samples: what both take goes out
of their difference.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import click

from percolab.api import sweep
from percolab.kernels.device import Device
from percolab.lattices.lattice import load_lattice
from percolab.parts import ranks
from percolab.run.engine import device_label

#: Values of p of the study, half of them below the threshold of the square lattice.
FIVE = [0.495, 0.4975, 0.5, 0.5025, 0.505]

Rows = list[tuple[float, list[ranks.Step]]]


def watch_rows() -> Rows:
    """Have every row that rank 0 asks for add its seconds and steps to a list; return the list."""
    found: Rows = []
    measure = ranks.Leader.row

    def watched(self: ranks.Leader, *arguments: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        measured = measure(self, *arguments, **options)
        assert measured is not None
        found.append((time.perf_counter() - begin, measured[1]))
        return measured

    ranks.Leader.row = watched  # type: ignore[method-assign]
    return found


def devices_of(device: str) -> tuple[str, str]:
    """Return the names of one processor and of two."""
    if device == "cpu":
        return "cpu", "cpu"
    first, second = map(int, device.removeprefix("cuda:").split(","))
    return f"cuda:{first}", f"cuda:{first},{second}"


def line(rows: Rows, case: str, size: int, sites: int) -> str:
    """Return what is told of the rows of a case."""
    later = rows[1:]
    seconds, steps = min(later, key=lambda row: row[0])
    measured = "/".join(f"{1e3 * step.work:.0f}" for step in steps if step.stage == -1)
    message = ""
    for step in (step for step in steps if step.stage == 0 and step.bytes):
        message = (
            f", message {step.bytes / 1e6:.2f} MB in {1e3 * step.transport:.2f} ms, "
            f"join {1e3 * step.work:.2f} ms"
        )
    return (
        f"  {case:<7} L = {size:<7} {seconds:.4f} to {max(row[0] for row in later):.4f} s, "
        f"{1e12 * seconds / sites:.3f} ps a site, ranks {measured} ms{message}"
    )


def scale(name: str, device: str, sites: float, samples: int, found: Rows) -> None:
    """Print the rows of one lattice, and how well two do beside one."""
    lattice = load_lattice(name)
    known = lattice.threshold("bond")
    assert known is not None
    size, larger = (round((n * sites) ** (1 / lattice.dimension)) for n in (1, 2))
    one, two = devices_of(device)
    for boundary in ("open", "periodic"):
        click.echo(f"{name}, {boundary}")
        rates = {}
        cases = {"one": (size, 1), "strong": (size, 2), "weak": (larger, 2)}
        for case, (length, count) in cases.items():
            if case == "weak" and boundary == "periodic":
                continue
            found.clear()
            sweep(
                lattice,
                L=[length],
                p=[known.value],
                samples=samples,
                block_size=1,
                seed=7,
                boundary=boundary,
                device=one if count == 1 else two,
                executor="processes",
                workers=count,
                split="lattice",
            )
            points = length**lattice.dimension
            click.echo(line(found, case, length, points))
            rates[case] = points / min(row[0] for row in found[1:])
        told = (f"{case} {rates[case] / rates['one'] / 2:.3f}" for case in rates if case != "one")
        click.echo(f"  efficiency of two: {', '.join(told)}")


def time_study(device: str, size: int, samples: int) -> None:
    """Print the seconds of a study on one and on two."""
    one, two = devices_of(device)
    seconds: dict[tuple[str, int], float] = {}
    few = max(samples // 30, 10)
    # Kernels that are not in the cache yet are compiled before anything is timed.
    sweep("square", L=[size], p=FIVE, samples=10, boundary="periodic", device=one)
    click.echo(f"study of a square torus, L = {size}, five p")
    with tempfile.TemporaryDirectory() as folder:
        for name, own, workers in (("one", one, 1), ("two", two, 2)):
            for count in (few, samples):
                path = Path(folder) / f"{name}-{count}.h5"
                more = {"executor": "processes", "workers": workers} if device == "cpu" else {}
                begin = time.perf_counter()
                sweep(
                    "square",
                    L=[size],
                    p=FIVE,
                    samples=count,
                    boundary="periodic",
                    device=own,
                    out=path,
                    **more,
                )
                seconds[name, count] = time.perf_counter() - begin
                click.echo(f"  {name}, {count} samples: {seconds[name, count]:.2f} s")
    whole = seconds["one", samples] / seconds["two", samples]
    alone, both = (seconds[name, samples] - seconds[name, few] for name in ("one", "two"))
    click.echo(f"  one is {whole:.2f} times two; {alone / both:.2f} without what few samples take")


@click.command(help=__doc__)
@click.option("--device", default="cuda:0,1", show_default=True, help="cuda:n,m, or cpu.")
@click.option("--lattice", "names", multiple=True, default=("square", "cubic"), show_default=True)
@click.option("--sites", default=1e11, show_default=True)
@click.option(
    "--samples", default=4, show_default=True, help="Rows of each case, from 2 on; 0: none."
)
@click.option("-L", "size", default=4096, show_default=True, help="Of the study.")
@click.option("--study", default=230_000, show_default=True, help="Its samples; 0: none.")
def main(
    device: str, names: tuple[str, ...], sites: float, samples: int, size: int, study: int
) -> None:
    """Time and print."""
    first = Device.parse(devices_of(device)[0]).resolve()
    click.echo(f"{device_label(first)}, one and two of them")
    if study:
        time_study(device, size, study)
    found = watch_rows()
    for name in names if samples else ():
        scale(name, device, sites, samples, found)


if __name__ == "__main__":
    main()
