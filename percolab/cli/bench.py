"""percolab bench: time what percolab computes on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.groups import Command
from percolab.cli.options import Number, Numbers, WholeNumber, check_target, output_file, refuse
from percolab.cli.terminal import echo
from percolab.errors import InputError

if TYPE_CHECKING:
    from percolab.benchmark.records import Setting, TimeRecord
    from percolab.bonds.model import Model

#: Stages that are timed without --stage, and all others.
STAGES = ("bonds", "labels", "measure", "sweep")
FURTHER_STAGES = ("grid", "threshold", "graph", "kernels", "slabs", "split", "study", "trees")
#: Options of the further stages alone.
_FURTHER_OPTIONS = ("boundary", "points", "sites", "samples", "layers")
#: Stages of a model of open bonds other than "bond".
_STAGES_OF_MODELS = {"grid", "threshold", "kernels"}
_COUNTS = Numbers(WholeNumber(min=1, max=10**9))


@click.command(cls=Command)
@click.option(
    "--lattice",
    "lattices",
    multiple=True,
    help="Repeat for several.  [default: honeycomb; each further stage has its own]",
)
@click.option(
    "-L", "--size", "sizes", help="Linear sizes.  [default: 64,256,1024; on CUDA also 4096]"
)
@click.option(
    "--ratio",
    "ratios",
    type=Numbers(Number(0, 1e9)),
    help="p in units of p_c.  [default: 0.5,1,1.5]",
)
@click.option("-p", "probabilities", help="p values in place of --ratio.")
@click.option(
    "--labeler", "labelers", multiple=True, help="Repeat for several.  [default: fastest]"
)
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice((*STAGES, *FURTHER_STAGES)),
    help=f"Repeat for several; sweep times measure too.  [default: {', '.join(STAGES)}]",
)
@click.option("--model", help="site; or ising or potts:q=3, to time whole sweeps of spins.")
@click.option("--update", help="For spins: sw, wolff or few:8,flip=0.5.  [default: sw]")
@click.option("--chains", type=WholeNumber(min=1), help="Chains swept together.  [default: 1]")
@click.option("--boundary", type=click.Choice(("open", "periodic")), help="Boundary of all axes.")
@click.option("--points", type=_COUNTS, help="Numbers of p in a grid.  [default: 1,9,21]")
@click.option("--sites", type=Number(1, 1e15), help="Sites of all samples per call, or per slab.")
@click.option("--samples", type=WholeNumber(min=1), help="Samples per call, study or split.")
@click.option("--layers", type=_COUNTS, help="Layers per slab.")
@click.option(
    "--device",
    default="auto",
    show_default=True,
    help="auto, cpu, cuda or cuda:n; split, study: cuda:0,1.",
)
@click.option("--runs", type=WholeNumber(min=1), default=11, show_default=True)
@click.option("--peers/--no-peers", default=True, show_default=True, help="Time scipy and cupyx.")
@click.option("--quick", is_flag=True, help="Time two sizes at p_c, unless others are given.")
@click.option("--json", "json_file", type=click.Path(), help="Write all records here; - is stdout.")
@click.option("--plot", "plot_file", type=click.Path(), help="Figure: .png, .pdf or .svg.")
def command(**given: Any) -> None:
    """Time the stages of a sample: bonds, labels, measure (a row), sweep (rows at 21 p).

    Every stage includes drawing the bonds.  On CUDA batches are timed by device events, on the
    CPU one thread.  Times are medians over runs, "ms" is per sample.  "B/site" is the least that a
    stage has to move, "of copy" its speed relative to a plain copy on this machine, and "ratio" its
    time divided by that of "to": scipy's connected_components, or the same rows at one p.

    --stage selects further stages, timed by the host's clock: grid (rows at several p), threshold
    (T of samples), graph (a lattice as a stored graph), kernels (every CUDA kernel of a row and of
    labels), slabs (of a large lattice, and their joins), split (one sample over several
    processors, --device cuda:0,1 or cpu), study (whole studies), trees (minimum spanning trees).

    With --model ising or potts:q=3, whole sweeps on periodic lattices are timed, including the rows
    on the host at the end; --ratio is then the coupling in units of the critical one.
    """
    from percolab.benchmark import benchmark as times
    from percolab.benchmark.figure import plot_time_per_site
    from percolab.benchmark.timer import copy_bandwidth, make_timer
    from percolab.figures import save_figure
    from percolab.store.output_files import TIMES, write_output

    options = SimpleNamespace(**given)
    # Before anything is timed, a file that cannot be written is refused.
    if options.json_file not in (None, "-"):
        output_file(options.json_file, "", TIMES)
    if options.plot_file is not None:
        check_target(options.plot_file)
    setting, jobs = _make_jobs(options)
    timer = make_timer(setting.device)
    machine, bandwidth = timer.machine(), copy_bandwidth(timer, options.runs)
    records: list[TimeRecord] = []
    quiet = options.json_file == "-"
    if not quiet:
        echo(f"{_preamble(machine, bandwidth)}\n{times.HEADER}")
    for record in (record for job in jobs for record in job(setting)):
        records.append(record)
        if not quiet:
            echo(times.format_row(record, bandwidth))
    words = ["percolab", *sys.argv[1:]]
    keys: dict[str, Any] = {"machine": machine, "copy_bandwidth": bandwidth}
    document = times.make_document(records, command=words, **keys)
    text = json.dumps(document, indent=1, allow_nan=False)
    if quiet:
        echo(text)
    elif options.json_file is not None:
        write_output(options.json_file, f"{text}\n".encode(), TIMES)
    if options.plot_file is not None:
        figure = plot_time_per_site(records, title=machine["device_name"])
        save_figure(figure, options.plot_file)


def _make_jobs(
    options: SimpleNamespace,
) -> tuple[Setting, list[Callable[[Setting], Iterator[TimeRecord]]]]:
    """Return the setting, and what times with it; nothing can be refused any more then."""
    from percolab.benchmark import benchmark as times
    from percolab.bonds.model import Model

    model = Model.parse(options.model or "bond")
    if model.has_spins:
        given = {"stage": options.stages or None, "plot": options.plot_file}
        given |= {key: getattr(options, key) for key in _FURTHER_OPTIONS}
        refuse(given, "not of spins, whose whole sweeps are timed")
        setting = _make_setting(options, model, several=False)
        times.check_samples(setting, "square", "periodic")
        return setting, [times.time_sweeps]
    for key in ("update", "chains"):
        if getattr(options, key) is not None:
            raise InputError(f"--{key}: only for spins (--model ising)")
    further = tuple(stage for stage in FURTHER_STAGES if stage in options.stages)
    is_timed = bool(further) and set(options.stages) <= _STAGES_OF_MODELS and not model.chains
    if str(model) != "bond" and not is_timed:
        raise InputError(
            f"--model {options.model}: bench times bond, ising or potts:q=3, and other models "
            f"only with --stage {' or '.join(sorted(_STAGES_OF_MODELS))}"
        )
    for key in _FURTHER_OPTIONS if not further else ():
        if getattr(options, key) is not None:
            raise InputError(f"--{key}: only with --stage {', '.join(FURTHER_STAGES)}")
    setting = _make_setting(options, model, several={"split", "study"} & set(further) != set())
    for stage in further:
        times.check_stage(stage, setting)
    jobs = [times.FURTHER_STAGES[stage] for stage in further]
    stages = tuple(stage for stage in STAGES if stage in (options.stages or STAGES))
    if stages:
        times.check_samples(setting, "honeycomb", "open")
        jobs.insert(0, partial(times.time_samples, stages=stages))
    elif options.plot_file is not None:
        raise InputError(f"--plot: draws only {', '.join(STAGES)}; add one with --stage")
    return setting, jobs


def _make_setting(options: SimpleNamespace, model: Model, *, several: bool) -> Setting:
    """Return what the stages read; several: whether one uses several devices."""
    from percolab.benchmark.records import Setting
    from percolab.kernels.device import Device
    from percolab.lattices.lattice import load_lattice
    from percolab.spins.update import Update
    from percolab.tasks.values import parse_lengths, parse_probabilities

    if several:
        devices = Device.parse_all(options.device).resolve_all()
    else:
        devices = (Device.parse(options.device).resolve(),)
    kept = ("ratios", "boundary", "points", "samples", "layers", "runs", "peers", "quick")
    sizes, p = options.sizes, options.probabilities
    return Setting(
        devices=devices,
        lattices=tuple(map(load_lattice, options.lattices)),
        sizes=None if sizes is None else parse_lengths(sizes),
        probabilities=None if p is None else parse_probabilities(p),
        model=model,
        labelers=options.labelers or (None,),
        sites=None if options.sites is None else int(options.sites),
        update=Update.parse(options.update or "sw"),
        chains=options.chains or 1,
        **{name: getattr(options, name) for name in kept},
    )


def _preamble(machine: dict[str, Any], bandwidth: float) -> str:
    driver = f", driver {machine['driver']}" if machine.get("driver") else ""
    return (
        f"{machine['device_name']}{driver}; a copy moves {bandwidth / 1e9:.4g} GB/s\n"
        "times are of a sample, or of a chain's sweep, all its p together; medians"
    )
