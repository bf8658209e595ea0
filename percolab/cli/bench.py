"""percolab bench: time the stages of a sample on this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.options import WholeNumber, output_file
from percolab.cli.terminal import echo

if TYPE_CHECKING:
    from percolab.kernels.device import Device

_HEADER = (
    f"{'lattice':<11}{'L':>6} {'p':>8} {'program':<11}{'stage':<8}{'samples':>8}{'ns/site':>11}"
    f"{'ps/site':>11}{'B/site':>9}{'of copy':>9}{'to scipy':>9}{'to one p':>9}"
)
_SPIN_HEADER = (
    f"{'lattice':<11}{'L':>6} {'p':>8} {'model':<12}{'update':<8}{'labeler':<22}{'chains':>7}"
    f"{'us/sweep':>12}{'ps/spin':>11}"
)
#: Sizes without -L.
_SIZES = {"cpu": "64,256,1024", "cuda": "64,256,1024,4096"}
_QUICK_SIZES = {"cpu": "64,256", "cuda": "256,2048"}


@click.command()
@click.option(
    "--lattice", "lattices", multiple=True, help="Repeat for several.  [default: honeycomb]"
)
@click.option(
    "-L", "--size", "sizes", help=f"Linear sizes.  [default: {_SIZES['cpu']}; on CUDA also 4096]"
)
@click.option("--ratio", "ratios", help="p in units of p_c.  [default: 0.5,1,1.5]")
@click.option("-p", "probabilities", help="p values in place of --ratio.")
@click.option(
    "--labeler", "labelers", multiple=True, help="Repeat for several.  [default: fastest]"
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice(("bonds", "labels", "measure", "sweep")),
    help="Repeat for several; sweep times measure too.  [default: all]",
)
@click.option("--model", help="Of spins, whose whole sweeps are timed: ising, potts:q=3.")
@click.option("--update", help="Of spins: sw, wolff or few:8,flip=0.5.  [default: sw]")
@click.option("--chains", type=WholeNumber(min=1), help="Of spins, swept together.  [default: 1]")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--runs", type=WholeNumber(min=1), default=11, show_default=True)
@click.option("--peers/--no-peers", default=True, show_default=True, help="Time scipy and cupyx.")
@click.option("--quick", is_flag=True, help="Two sizes, p_c alone, unless given.")
@click.option("--json", "json_file", type=click.Path(), help="Write all records here; - is stdout.")
@click.option("--plot", "plot_file", type=click.Path(), help="Figure: .png, .pdf or .svg.")
def command(device: str, json_file: str | None, plot_file: str | None, **given: Any) -> None:
    """Time the stages of a sample: bonds, labels, measure (a row), sweep (rows at 21 p).

    Every stage starts from nothing.  CUDA: batches, device events; CPU: one thread.  Medians over
    runs.  B/site is what the stage has to move at least, "of copy" how its speed compares with a
    plain copy on this machine, "to scipy" how many times longer connected_components takes.

    With --model ising or potts:q=3 whole sweeps are timed, on periodic lattices, with the rows on
    the host at the end; --ratio is then that of the coupling to the critical one.
    """
    from percolab.benchmark import copy_bandwidth, document_of, plot_time_per_site, timer_of
    from percolab.errors import InputError
    from percolab.figures import save_figure
    from percolab.kernels.device import Device

    for name, path in (("--json", json_file), ("--plot", plot_file)):
        _check_target(name, path)
    target = Device.parse(device).resolve()
    spins = {key: given.pop(key) for key in ("model", "update", "chains")}
    if spins["model"] is not None:
        _time_spins(target, json_file, plot_file, **spins, **given)
        return
    for key, value in spins.items():
        if value is not None:
            raise InputError(f"--{key}: of spins alone (--model ising)")
    plan = _plan(target.kind, **given)
    timer = timer_of(target)
    machine, bandwidth = timer.machine(), copy_bandwidth(timer, plan.runs)
    records: list[Any] = []
    quiet = json_file == "-"
    if not quiet:
        echo(_preamble(machine, bandwidth))
    for record in plan.records(timer):
        records.append(record)
        if not quiet:
            echo(_line(record, records, bandwidth))
    document = document_of(
        records,
        command=["percolab", *sys.argv[1:]],
        machine=machine,
        copy_bandwidth=bandwidth,
    )
    _write_document(json_file, document)
    if plot_file is not None:
        save_figure(plot_time_per_site(records, title=machine["device_name"]), plot_file)


def _time_spins(
    device: Device,
    json_file: str | None,
    plot_file: str | None,
    *,
    model: str,
    update: str | None,
    chains: int | None,
    lattices: tuple[str, ...],
    sizes: str | None,
    ratios: str | None,
    probabilities: str | None,
    labelers: tuple[str, ...],
    stages: tuple[str, ...],
    runs: int,
    quick: bool,
    **_: Any,
) -> None:
    """Time sweeps of spins and write what was found."""
    from percolab.benchmark import timer_of
    from percolab.benchmark.spin_times import spin_places, time_sweeps
    from percolab.bonds.model import Model
    from percolab.errors import InputError
    from percolab.lattices.lattice import load_lattice
    from percolab.spins.update import Update
    from percolab.store.provenance import package_versions
    from percolab.tasks.values import parse_probabilities, parse_sizes

    drawn, rule = Model.parse(model), Update.parse(update or "sw")
    if not drawn.has_spins:
        raise InputError(f"--model {model}: bench times bonds, or spins (ising, potts:q=3)")
    for name, value in (("--stage", stages), ("--plot", plot_file)):
        if value:
            raise InputError(f"{name}: not of spins, whose whole sweeps are timed; leave it out")
    values = None if probabilities is None else parse_probabilities(probabilities)
    timer = timer_of(device)
    machine = timer.machine()
    quiet = json_file == "-"
    if not quiet:
        driver = f", driver {machine['driver']}" if machine.get("driver") else ""
        echo(f"{machine['device_name']}{driver}\n{_SPIN_HEADER}")
    records = []
    for name in lattices or ("square",):
        lattice = load_lattice(name)
        places = spin_places(lattice, drawn, _ratios(ratios or "1"), values)
        for size in parse_sizes(sizes or (_QUICK_SIZES if quick else _SIZES)[device.kind]):
            for record in time_sweeps(
                timer,
                lattice,
                size,
                places,
                model=drawn,
                update=rule,
                chains=chains or 1,
                labelers=labelers or (None,),
                runs=runs,
            ):
                records.append(record.to_dict())
                if not quiet:
                    echo(
                        f"{record.lattice:<11}{record.L:>6} {record.p:>8.5f} {record.model:<12}"
                        f"{record.update:<8}{record.labeler:<22}{record.chains:>7}"
                        f"{1e6 * record.seconds_per_sweep:>12.1f}"
                        f"{1e3 * record.nanoseconds_per_spin:>11.2f}"
                    )
    document = {
        "command": ["percolab", *sys.argv[1:]],
        "machine": machine,
        "versions": package_versions(),
        "records": records,
    }
    _write_document(json_file, document)


def _write_document(file: str | None, document: dict[str, Any]) -> None:
    """Write what was measured as JSON: to a file, to stdout as "-", or nowhere."""
    from percolab.store.output_files import TIMES, write_output

    text = json.dumps(document, indent=1, allow_nan=False)
    if file == "-":
        echo(text)
    elif file is not None:
        write_output(file, f"{text}\n".encode(), TIMES)


def _check_target(option: str, file: str | None) -> None:
    """Refuse, before anything is timed, a file that could not be written."""
    from percolab.errors import InputError
    from percolab.figures import FORMATS
    from percolab.store.output_files import TIMES

    if file is None or (option, file) == ("--json", "-"):
        return
    path = Path(file)
    if option == "--plot" and path.suffix.lower() not in FORMATS:
        raise InputError(f"{option} {file}: must end in {', '.join(FORMATS)}")
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"{option} {file}: is a folder, or in one that does not exist")
    output_file(path, "", TIMES if option == "--json" else None)


def _plan(
    kind: str,
    *,
    lattices: tuple[str, ...],
    sizes: str | None,
    ratios: str | None,
    probabilities: str | None,
    labelers: tuple[str, ...],
    stages: tuple[str, ...],
    runs: int,
    peers: bool,
    quick: bool,
) -> Any:
    """Return the plan that the options ask for; InputError if it cannot be followed."""
    from percolab.benchmark import STAGES, Benchmark, places_of
    from percolab.lattices.lattice import load_lattice
    from percolab.tasks.values import parse_probabilities, parse_sizes

    asked = set(stages or STAGES)
    if "sweep" in asked:
        asked.add("measure")
    multiples = _ratios(ratios or ("1" if quick else "0.5,1,1.5"))
    values = None if probabilities is None else parse_probabilities(probabilities)
    chosen = [load_lattice(name) for name in lattices or ("honeycomb",)]
    plan = Benchmark(
        lattices=tuple((lattice, places_of(lattice, multiples, values)) for lattice in chosen),
        sizes=parse_sizes(sizes or (_QUICK_SIZES if quick else _SIZES)[kind]),
        labelers=labelers or (None,),
        stages=tuple(stage for stage in STAGES if stage in asked),
        runs=runs,
        peers=peers,
    )
    plan.check(kind)
    return plan


def _ratios(text: str) -> list[float]:
    from percolab.errors import InputError

    try:
        ratios = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"--ratio {text}: must be numbers, as in 0.5,1,1.5") from error
    if not all(0 <= ratio < float("inf") for ratio in ratios):
        raise InputError(f"--ratio {text}: must be finite and not negative")
    return ratios


def _preamble(machine: dict[str, Any], bandwidth: float) -> str:
    driver = f", driver {machine['driver']}" if machine.get("driver") else ""
    return (
        f"{machine['device_name']}{driver}; a copy moves {bandwidth / 1e9:.4g} GB/s\n"
        "time per site of a sample (sweep: all its p together), median; B/site: least bytes moved\n"
        f"{_HEADER}"
    )


def _line(record: Any, records: list[Any], bandwidth: float) -> str:
    from percolab.benchmark import StageTime, compared

    time = record.nanoseconds_per_site
    start = f"{record.lattice:<11}{record.L:>6} {record.p:>8.5f} "
    picoseconds = 1e3 * time
    times = f"{time:>11.4g}{picoseconds:>11.{0 if picoseconds >= 1e3 else 3}f}"
    if not isinstance(record, StageTime):
        return f"{start}{record.peer:<11}{record.part:<8}{1:>8}{times}"
    beside = compared(record, records, bandwidth)
    share, scipy, one_p = beside.values()
    return (
        f"{start}{record.labeler:<11}{record.stage:<8}{record.samples_per_run:>8}{times}"
        f"{record.bytes_moved_per_sample / record.num_sites:>9.3g}"
        f"{_number(share, '.2%'):>9}{_number(scipy, '.3g'):>9}{_number(one_p, '.2f'):>9}"
    ).rstrip()


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
