"""percolab info: versions and devices, for a bug report or a methods section."""

from typing import Any

import click

from percolab.cli.groups import Command
from percolab.cli.options import as_json, echo_json
from percolab.cli.terminal import echo


@click.command(cls=Command)
@as_json
def command(as_json: bool) -> None:
    """Show the versions in use, the labelers, and the devices percolab can run on."""
    from percolab.kernels.device import Device, cuda_problem
    from percolab.labelers import LABELERS
    from percolab.run.executors import default_workers
    from percolab.spins.update import UPDATES
    from percolab.store.provenance import package_versions, processor_name

    updates = dict.fromkeys(("ising", "potts"), ", ".join(UPDATES))
    record: dict[str, Any] = {
        "versions": package_versions(),
        "processor": processor_name(),
        "cpu_workers": default_workers(Device("cpu")),
        "cuda": cuda_problem() or _devices(),
        "updates": updates | {"random-cluster": "Chayes and Machta, any real q >= 1 (cpu)"},
        "labelers": {name: sorted(entry.classes) for name, entry in LABELERS.items()},
    }
    if as_json:
        echo_json(record)
        return
    for name, number in record["versions"].items():
        echo(f"{name:<11} {number}")
    echo(f"cpu         {record['processor']}, {record['cpu_workers']} workers")
    cuda = record["cuda"]
    for line in [cuda] if isinstance(cuda, str) else cuda:
        echo(f"cuda        {line}")
    for model, update in record["updates"].items():
        echo(f"update      {model}: {update}")
    papers = [name for name, entry in LABELERS.items() if entry.paper]
    for name in sorted(LABELERS, key=papers.__contains__):
        heading = "of a paper" if name in papers else "labeler"
        kinds = ", ".join(record["labelers"][name])
        echo(f"{heading:<11} {name}: {LABELERS[name].summary} ({kinds})")


def _devices() -> list[str]:
    from percolab.kernels.device import device_name, free_memory, open_device

    lines = []
    for number in range(len(open_device("cuda").gpus)):
        cuda = open_device(f"cuda:{number}")
        lines.append(f"{number}: {device_name(cuda)}, {free_memory(cuda) / 1e9:.0f} GB free")
    return lines
