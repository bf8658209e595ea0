"""percolab sweep: sample a study, store it, and print its threshold."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from percolab.cli.options import MEASURE_HELP, MODEL_HELP, WholeNumber, described, estimates_text
from percolab.cli.plan_report import echo_plan
from percolab.cli.progress import ProgressWatcher
from percolab.errors import InputError
from percolab.labelers import LABELERS
from percolab.run.runner import run_study
from percolab.run.sampler import Device
from percolab.run.scheduler import Interrupted
from percolab.store.results import ResultsWriter
from percolab.tasks.study_file import make_request, parse_probabilities, parse_sizes, read_request


@click.command()
@click.argument("study", required=False, type=click.Path(), metavar="[STUDY.toml]")
@click.option(
    "--lattice",
    help="Name (percolab lattices), .toml file, or bethe:z.  [default: honeycomb]",
)
@click.option("--graph", type=click.Path(), help="Edge list, .mtx, .npz, .graphml or .gml file.")
@click.option("--source", help="Sites of the graph, 0,5,17, or a file with one a line.")
@click.option("--target", help="Sites to be connected with the source.")
@click.option("--multi", is_flag=True, help="Keep parallel edges of the graph.")
@click.option(
    "-L",
    "--size",
    "sizes",
    help="Linear sizes, as in 64,128,256; shells of a Bethe lattice.  [default: 32,64,128,256]",
)
@click.option(
    "-p", "probabilities", help="p values: 0.5,0.6 or from:to:count.  [default: found by a pilot]"
)
@click.option("--model", help=MODEL_HELP)
@click.option("--method", help="grid of p, or threshold: T of every sample.  [default: grid]")
@click.option("--measure", multiple=True, help=MEASURE_HELP)
@click.option("--boundary", help="open, periodic, or one per axis: open,periodic.  [default: open]")
@click.option("--samples", type=WholeNumber(min=1), help="Samples a size.  [default: 10000]")
@click.option("--target-error", type=float, help="Stop when the error of p_c is this small.")
@click.option("--seed", type=WholeNumber(min=0, max=2**63 - 1), help="Seed.  [default: 1]")
@click.option("--rng", help="xorwow or philox.  [default: xorwow]")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--labeler", help=f"{', '.join(LABELERS)}.  [default: the device's fastest]")
@click.option("--workers", type=WholeNumber(min=1), help="CPU threads.  [default: all cores]")
@click.option("--out", type=click.Path(), help="Results file.  [default: results.h5]")
@click.option("--plan", is_flag=True, help="Predict time, memory, file and error; sample nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --plan: write JSON to stdout.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def command(
    study: str | None,
    device: str,
    labeler: str | None,
    workers: int | None,
    quiet: bool,
    plan: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Sample spanning clusters at several p and L, and estimate the threshold p_c.

    Sizes and p are chosen by a pilot unless given, by options or in a STUDY.toml.  Calling the same
    sweep again continues it: it adds what is missing, or nothing.

    With --method threshold the p at which every sample begins to span is found exactly, and R_L(p)
    follows at all p; with a grid every observable is measured at its p.

    By --model site a bond is open if its two sites are occupied, and p is the probability of a
    site; by site-bond it must be open itself, too. Clusters are those of occupied sites.

    --plan predicts from a pilot of a few seconds what the same sweep without it will take, and the
    error of p_c it will give; the results file is read, not written.

    A --graph has one size.  Its threshold is where its second largest cluster and the mean size of
    the others are largest; with --source and --target, also where they are connected.
    """  # fmt: skip
    overrides = _settings(given)
    if study is not None and Path(study).suffix != ".toml":
        raise InputError(f"{study}: a study file ends in .toml; a lattice goes with --lattice")
    request = read_request(Path(study), overrides) if study else make_request(**overrides)
    options: dict[str, Any] = {
        "device": Device.parse(device),
        "labeler": labeler,
        "workers": workers,
        "watcher": ProgressWatcher(silent=quiet or plan),
        "left_open": request.left_open,
    }
    if as_json and not plan:
        raise InputError(
            "--json goes with --plan; percolab fit --json writes the numbers of a file"
        )
    if plan:
        echo_plan(request, options, as_json=as_json)
        return
    with ResultsWriter(request.out) as writer:
        try:
            results = run_study(request.study, request.rule, writer=writer, **options)
        except Interrupted as error:
            held = f"finished blocks are in {request.out}"
            if not error.stored:
                held = f"{request.out} lacks the blocks since its last save"
            click.echo(f"interrupted; {held}. Run the same command again to go on.", err=True)
            sys.exit(error.exit_code)
    _print_threshold(results, request.out)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    settings = {
        key: given[key]
        for key in (
            "lattice",
            "graph",
            "source",
            "target",
            "boundary",
            "samples",
            "target_error",
            "seed",
            "rng",
            "method",
            "model",
            "out",
        )
        if given[key] is not None
    }
    # Each word adds something, so that of several --measure none may replace the others.
    if given["measure"]:
        settings["measure"] = ",".join(given["measure"])
    if given["multi"]:
        settings["multi"] = True
    if given["sizes"] is not None:
        settings["L"] = parse_sizes(given["sizes"])
    if given["probabilities"] is not None:
        settings["p"] = parse_probabilities(given["probabilities"])
    return settings


def _print_threshold(results: Any, out: Path) -> None:
    from percolab.analysis import AnalysisError, format_with_error
    from percolab.analysis.stored_data import default_observable
    from percolab.analysis.stored_fits import fit_results

    if not results.study.lattice.is_scalable:
        click.echo(f"{described(results.study)}; results in {out}")
        click.echo(estimates_text(results))
        return
    sizes = ", ".join(str(size) for size in sorted(results.study.sizes))
    click.echo(f"{results.study.lattice.title}: L = {sizes}; results in {out}")
    try:
        fit = fit_results(results)
    except (AnalysisError, InputError) as error:
        click.echo(f"no threshold: {error}")
        return
    quality = fit.chi_square
    tested = f"chi2/dof {quality.value:.1f}/{quality.dof}" if quality.dof else "no chi2: 0 dof"
    click.echo(
        f"p_c = {format_with_error(fit.threshold, fit.threshold_error)}"
        f"  (sigma {fit.threshold_error:.1e}, {tested}, "
        f"from {default_observable(results)})"
    )
    for note in fit.notes:
        click.echo(f"note: {note}")
