"""percolab status: what a results file holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.answers import Answers, find_answers
from percolab.cli.label_answer import answer_labels
from percolab.cli.options import as_json, counted, described, echo_json, results_file
from percolab.cli.terminal import echo
from percolab.lattices.lattice import AXIS_NAMES
from percolab.lattices.shown import Table

if TYPE_CHECKING:
    from percolab.store.results import StoredResults
    from percolab.store.task_result import TaskResult
    from percolab.tasks.study import Study


@click.command()
@results_file
@as_json
def command(results: str, as_json: bool) -> None:
    """Show the study, the samples of every size, and the runs that made them.

    Of spins energy, order parameter, specific heat, susceptibility, Binder's ratio and correlation
    lengths follow, at every size and temperature, with errors.

    Of labels (percolab label) show the clusters that span or wrap, and an image's phases.
    """
    from percolab.store.reading import is_labels
    from percolab.store.results import read_results

    if is_labels(results):
        from percolab.configurations import read_labels

        found = read_labels(results)
        shape, phases = found.clusters.labels.shape, found.measure_phases()
        shape = found.clusters.topology.shape[::-1] or shape
        answer_labels(results, shape, found.record, found.clusters, phases, as_json=as_json)
        return
    stored = read_results(results)
    record = status_record(stored)
    tasks = record["tasks"]
    if as_json:
        echo_json(record)
        return
    for line in [
        *_describe_study(stored.study),
        *_describe_tasks(tasks, find_answers(stored.study)),
        *_describe_runs(stored.runs),
        *_describe_means(record.get("thermal_means", [])),
    ]:
        echo(line)


def status_record(stored: StoredResults) -> dict[str, Any]:
    """Return the study, what there is of every size, and the runs, as plain JSON values."""
    from percolab.analysis.stored_spins import thermal_records

    items = sorted(stored.tasks.values(), key=lambda item: (item.task.size, item.task.seed))
    tasks = [_record(item) for item in items]
    record = {"study": stored.study.description(), "tasks": tasks, "runs": stored.runs}
    thermal = thermal_records(stored)
    return record | ({"thermal_means": thermal} if thermal else {})


def _record(item: TaskResult) -> dict[str, Any]:
    """Return a task as JSON values."""
    task = item.task
    return {
        "task": task.id,
        "L": task.size,
        "sites": task.num_points,
        "method": task.method,
        "measure": list(task.measure),
        "p": list(task.p),
        "seed": task.seed,
        "block_size": task.block_size,
        "blocks": item.num_blocks,
        "samples": item.num_samples,
    }


def _describe_study(study: Study) -> Iterator[str]:
    yield ", ".join([described(study), _describe_model(study), *_boundary(study)])
    from percolab.lattices.removal import describe_removal

    usual = "placed by a pilot" if study.p is None else "given"
    placed = find_answers(study).p or usual
    yield f"seed {study.seed}, {study.rng}, p {placed}{describe_removal(study.order)}"


def _describe_tasks(tasks: list[dict[str, Any]], answers: Answers) -> Iterator[str]:
    for measure in sorted({", ".join(task["measure"]) for task in tasks} - {""}):
        sizes = sorted({task["L"] for task in tasks if ", ".join(task["measure"]) == measure})
        yield f"measured and stored as well: {measure} (L = {', '.join(map(str, sizes))})"
    # A merged file holds several seeds; the study's is that of its first part.
    rows = []
    for task in tasks:
        grid = answers.grid or _describe_p(task["p"])
        numbers = (task[key] for key in ("L", "seed", "samples", "blocks"))
        rows.append((*numbers, grid, task["task"]))
    yield from Table(("L", "seed", "samples", "blocks", "p", "task"), rows).lines()


def _describe_p(p: list[float]) -> str:
    return f"{p[0]:.10g}" if len(p) == 1 else f"{len(p)}: {p[0]:g} ... {p[-1]:g}"


def _describe_runs(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in runs:
        blocks = counted(sum(run["blocks"].values()), "block")
        yield (
            f"run {run['started']}: {blocks} in {run['seconds']:.1f} s, {run['labeler']} on "
            f"{run['device']} ({run['device_name']}), "
            f"percolab {run['versions'].get('percolab', '?')}"
        )


def _describe_means(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the thermal means of spins, with improved ones where they are known."""
    from percolab.analysis.value import format_with_error

    if not records:
        return
    names = [name for name in _MEANS if any(name in record for record in records)]
    lengths = {name for record in records for name in record if name in _LENGTHS}
    names += [name for name in _LENGTHS if name in lengths]
    rows = []
    for record in records:
        pairs = [(record.get(name), record.get(f"{name}_error")) for name in names]
        texts = ["-" if mean is None else format_with_error(mean, error or 0.0)
                 for mean, error in pairs]  # fmt: skip
        rows.append((record["L"], _short(record["T"]), *texts))
    heads = [_MEANS.get(name) or _LENGTHS[name] for name in names]
    yield ""
    yield from Table(("L", "T", *heads), rows).lines()


def _short(value: float | None) -> str:
    return "inf" if value is None else f"{value:.6g}"


#: Headings of the thermal means that are shown.
_MEANS = {
    "energy": "E/N",
    "order": "|M|/N",
    "specific_heat": "C/N",
    "improved_susceptibility": "<M^2>/N",
    "binder": "Q_m",
}
_LENGTHS = {f"correlation_length_{axis}": f"xi_{axis}" for axis in AXIS_NAMES}


def _describe_model(study: Study) -> str:
    """Return the model in words, and of spins how they are updated."""
    if "update" not in study.kind.settings:
        return f"{study.model} percolation"
    one = ", one long chain" if study.is_serial else ""
    every = f", every {study.every} updates measured" if study.every > 1 else ""
    return f"{study.model} model, update {study.update}{every}{one}"


def _boundary(study: Study) -> list[str]:
    """Return the boundary of a lattice in words; nothing else has one that is chosen."""
    return [f"boundary {', '.join(study.boundary)}"] if study.structure.is_scalable else []
