"""percolab bench: time the kernels on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import click

from percolab.cli.options import as_json, echo_json

_COLUMNS = (
    "lattice",
    "L",
    "p",
    "labeler",
    "batch",
    "bonds",
    "+labels",
    "+row",
    "ns/site",
    "B/site",
)


@click.command()
@click.option(
    "--lattice", "lattices", multiple=True, help="Repeat for several.  [default: honeycomb]"
)
@click.option("-L", "--size", "sizes", default="512,1024,2048,4096", show_default=True)
@click.option(
    "--ratio", "ratios", default="0.5,1,1.5", show_default=True, help="p in units of p_c."
)
@click.option("-p", "probabilities", help="p values in place of --ratio.")
@click.option(
    "--labeler", "labelers", multiple=True, help="Repeat for several.  [default: fastest]"
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--repeats", type=click.IntRange(min=1), default=11, show_default=True)
@click.option("--out", type=click.Path(), help="Also write the records as JSON here.")
@as_json
def command(
    lattices, sizes, ratios, probabilities, labelers, device, repeats, out, as_json
) -> None:
    """Time bonds, labels and rows: milliseconds a sample, and nanoseconds a site with the row.

    CUDA: batches, device events.  CPU: one thread.  Medians over repeats.
    """
    from percolab.benchmark import measure, probability_of
    from percolab.config import parse_probabilities, parse_sizes
    from percolab.lattice import load_lattice
    from percolab.provenance import package_versions, processor_name
    from percolab.runner import device_label
    from percolab.sampler import Device
    from percolab.toml_input import InputError

    target = Device.parse(device).resolve()
    records = []
    if not as_json:
        click.echo("ms a sample; B/site: device memory a sample takes, and what its arrays need")
        click.echo("{:<11}{:>6} {:>8} {:<10}{:>6} {:>9}{:>9}{:>9} {:>8} {:>12}".format(*_COLUMNS))
    for name in lattices or ("honeycomb",):
        lattice = load_lattice(name)
        if probabilities is not None:
            places: list[tuple[float, float | None]]
            places = [(p, None) for p in parse_probabilities(probabilities)]
        else:
            places = [(probability_of(lattice, r), r) for r in _ratios(ratios)]
        for labeler in labelers or (None,):
            for size in parse_sizes(sizes):
                for p, ratio in places:
                    record = measure(
                        lattice,
                        size,
                        p=p,
                        ratio=ratio,
                        labeler=labeler,
                        device=target,
                        repeats=repeats,
                    )
                    records.append(record)
                    if not as_json:
                        click.echo(_line(record))
    document = {
        "device": str(target),
        "device_name": device_label(target),
        "processor": processor_name(),
        "versions": package_versions(),
        "records": [record.to_dict() for record in records],
    }
    if as_json:
        echo_json(document)
    if out is not None:
        try:
            Path(out).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{out}: cannot be written: {error.strerror}") from error


def _ratios(text: str) -> list[float]:
    from percolab.toml_input import InputError

    try:
        ratios = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--ratio {text}: must be numbers, as in 0.5,1,1.5") from error
    if not all(0 <= ratio < float("inf") for ratio in ratios):
        raise InputError(f"--ratio {text}: must be finite and not negative")
    return ratios


def _line(record) -> str:
    sites = record.num_sites
    return (
        f"{record.lattice:<11}{record.L:>6} {record.p:>8.5f} {record.labeler:<10}{record.batch:>6} "
        f"{record.bonds:>9.4f}{record.bonds_and_labels:>9.4f}{record.bonds_and_row:>9.4f} "
        f"{1e6 * record.bonds_and_row / sites:>8.4f} "
        f"{record.bytes_taken / sites:>6.2f}/{record.bytes_needed / sites:.2f}"
    )
