"""percolab status: what a results file contains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from percolab.cli.answers import Answers, find_answers
from percolab.cli.groups import Command
from percolab.cli.options import as_json, counted, described, results_file, write_answer
from percolab.cli.sample_options import describe_directions
from percolab.lattices.lattice import AXIS_NAMES
from percolab.lattices.removal import describe_removal
from percolab.lattices.shown import Table
from percolab.measure.columns import WRAPPING

if TYPE_CHECKING:
    from percolab.configurations import LabeledClusters
    from percolab.configurations.phases import Phase
    from percolab.measure.clusters import Clusters
    from percolab.store.results import StoredResults
    from percolab.tasks.study import Study

#: Clusters that span or wrap and are named one by one.
_MOST_NAMED = 4
Tortuosities = Mapping[str, float]
_NONE: Tortuosities = MappingProxyType({})


@click.command(cls=Command)
@results_file
@as_json
def command(results: str, as_json: bool) -> None:
    """Show the study, the samples of every size, and the runs that made them.

    For spins, also show energy, order parameter, specific heat, susceptibility, Binder's ratio and
    correlation lengths with errors, at every size and temperature.

    For labels (percolab label), show the clusters that span or wrap, and an image's phases.
    """
    from percolab.analysis.spin_fit import few_chains
    from percolab.analysis.stored_spins import list_spin_tasks
    from percolab.store.output_files import is_labels
    from percolab.store.results import read_results

    if is_labels(results):
        from percolab.configurations import read_labels

        answer_labels(results, read_labels(results), as_json=as_json)
        return
    stored = read_results(results)
    record = status_record(stored)
    lines = [
        *_describe_study(stored.study, sorted({task["seed"] for task in record["tasks"]})),
        *_describe_tasks(record["tasks"], find_answers(stored.study)),
        *_describe_runs(stored.runs),
        *_describe_means(record.get("thermal_means", [])),
        *filter(None, [few_chains(list_spin_tasks(stored))]),
    ]
    write_answer(record, "\n".join(lines), as_json=as_json)


def status_record(stored: StoredResults) -> dict[str, Any]:
    from percolab.analysis.stored_spins import thermal_records

    tasks = []
    for each in sorted(stored.tasks.values(), key=lambda each: (each.task.size, each.task.seed)):
        task = each.task
        record = {"task": task.id, "L": task.size, "sites": task.num_points, "method": task.method}
        record |= {"measure": list(task.measure), "p": list(task.p), "seed": task.seed}
        counts = {"blocks": each.num_blocks, "samples": each.num_samples}
        tasks.append(record | {"block_size": task.block_size} | counts)
    record = {"study": stored.study.description(), "tasks": tasks, "runs": stored.runs}
    thermal = thermal_records(stored)
    return record | ({"thermal_means": thermal} if thermal else {})


def _describe_study(study: Study, seeds: list[int]) -> Iterator[str]:
    """Yield what a file's tasks share; a merged one has those of several seeds."""
    # Nothing but a lattice has a boundary that is chosen.
    boundary = [f"boundary {', '.join(study.boundary)}"] if study.structure.is_scalable else []
    ends = [f"{name} {text}" for name, text in study.ends.items()]
    yield ", ".join([described(study), _describe_model(study), *boundary, *ends])
    usual = "placed by a pilot" if study.p is None else "given"
    placed = find_answers(study).p or usual
    seed = f"seeds {', '.join(map(str, seeds))}" if len(seeds) > 1 else f"seed {study.seed}"
    yield f"{seed}, {study.rng}, p {placed}{describe_removal(study.order)}"
    if study.functions:
        yield f"observables of your own: {', '.join(map(str, study.functions))}"


def _describe_tasks(tasks: list[dict[str, Any]], answers: Answers) -> Iterator[str]:
    for measure in sorted({", ".join(task["measure"]) for task in tasks} - {""}):
        sizes = sorted({task["L"] for task in tasks if ", ".join(task["measure"]) == measure})
        how = "alone" if WRAPPING in measure.split(", ") else "and stored as well"
        yield f"measured {how}: {measure} (L = {', '.join(map(str, sizes))})"
    rows, names = [], ("L", "seed", "samples", "blocks")
    for task in tasks:
        p, grid = task["p"], answers.grid
        if not grid:
            grid = f"{p[0]:.10g}" if len(p) == 1 else f"{len(p)}: {p[0]:g} ... {p[-1]:g}"
        rows.append((*(task[name] for name in names), grid, task["task"]))
    yield from Table((*names, "p", "task"), rows).lines()


def _describe_runs(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in runs:
        blocks = counted(sum(run["blocks"].values()), "block")
        where = f"{run['labeler']} on {run['device']} ({run['device_name']})"
        where += f", percolab {run['versions'].get('percolab', '?')}"
        yield f"run {run['started']}: {blocks} in {run['seconds']:.1f} s, {where}"


def _describe_means(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of the thermal means of spins, with improved ones where they are known."""
    from percolab.analysis.value import format_with_error

    if not records:
        return
    names = [name for name in _MEANS if any(name in record for record in records)]
    rows = []
    for record in records:
        pairs = [(record.get(name), record.get(f"{name}_error")) for name in names]
        texts = ["-" if mean is None else format_with_error(mean, error or 0.0)
                 for mean, error in pairs]  # fmt: skip
        temperature = "inf" if record["T"] is None else f"{record['T']:.6g}"
        rows.append((record["L"], temperature, *texts))
    yield ""
    yield from Table(("L", "T", *(_MEANS[name] for name in names)), rows).lines()


#: Headings of the thermal means that are shown.
_MEANS = {
    "energy": "E/N",
    "order": "|M|/N",
    "specific_heat": "C/N",
    "improved_susceptibility": "<M^2>/N",
    "binder": "Q_m",
    **{f"correlation_length_{axis}": f"xi_{axis}" for axis in AXIS_NAMES},
}


def _describe_model(study: Study) -> str:
    if "burn_in" not in study.kind.settings:
        return f"{study.model} percolation"
    update = study.update if "update" in study.kind.settings else "of Chayes and Machta"
    one = ", one long chain" if study.is_serial else ""
    every = f", every {study.every} updates measured" if study.every > 1 else ""
    return f"{study.model} model, update {update}{every}{one}"


# Labels: clusters that span or wrap, and a table of phases


def answer_labels(
    file: str, labels: LabeledClusters, tortuosities: Tortuosities = _NONE, *, as_json: bool
) -> None:
    """Write what a file of labels holds, as text or JSON; tortuosities: of an image, by axis."""
    facts = file, labels, tortuosities
    write_answer(labels_record(*facts), "\n".join(describe_labels(*facts)), as_json=as_json)


def labels_record(
    file: str, labels: LabeledClusters, tortuosities: Tortuosities = _NONE
) -> dict[str, Any]:
    from percolab.analysis.json_values import plain

    clusters, phases, names = labels.clusters, labels.measured_phases, labels.names
    answer: dict[str, Any] = {"labels": file, "shape": list(labels.shape), **labels.record}
    answer |= clusters.summary()
    answer["crossing_clusters"] = _name_crossing(clusters, names)
    if names is not None:
        answer["largest_names"] = _largest_names(clusters, names)
    if phases:
        answer["phases"] = [phase.to_dict() for phase in phases]
    return answer | ({"tortuosity": plain(tortuosities)} if tortuosities else {})


def describe_labels(
    file: str, labels: LabeledClusters, tortuosities: Tortuosities = _NONE
) -> Iterator[str]:
    clusters, phases, names = labels.clusters, labels.measured_phases, labels.names
    summary, crossing = clusters.summary(), _name_crossing(clusters, names)
    sites = counted(summary["sites"], "site")
    yield f"{counted(summary['clusters'], 'cluster')} of {sites} in {file}"
    if not phases:
        yield f"largest {summary['largest']}, second largest {summary['second_largest']}"
        if summary["open_axes"]:
            yield f"spanning along {', '.join(summary['spanning']) or 'no axis'}"
        if summary.get("periodic_axes"):
            yield f"wrapping around {', '.join(summary['wrapping']) or 'no axis'}"
    if names is not None and summary["largest"]:
        first = ", ".join(map(_quoted, _largest_names(clusters, names)))
        hidden = summary["largest"] - _MOST_NAMED
        yield f"largest cluster: {first}{f' and {hidden} more' if hidden > 0 else ''}"
    for cluster in crossing[:_MOST_NAMED]:
        sites = counted(cluster["sites"], "site")
        which = f"of {cluster['name']}, {sites}," if names else f"{cluster['label']} of {sites}"
        yield f"cluster {which} {describe_directions(cluster)}"
    hidden = len(crossing) - _MOST_NAMED
    if hidden > 0:
        yield f"and {counted(hidden, 'more cluster')} that span or wrap (--json names all)"
    for axis, value in tortuosities.items():
        result = f"{value:.6g}" if math.isfinite(value) else "infinite, nothing spans along it"
        yield f"tortuosity along {axis}: {result}"
    yield from phase_lines(phases)


def phase_lines(phases: Sequence[Phase]) -> Iterator[str]:
    from percolab.configurations.phases import phase_table

    if phases:
        yield f"\n{phase_table(phases).to_text()}"


def _quoted(name: str) -> str:
    """Return a name, in quotes if it would look like several in a list."""
    return f'"{name}"' if "," in name else name


def _name_crossing(clusters: Clusters, names: Sequence[str] | None) -> list[dict[str, Any]]:
    crossing = clusters.crossing()
    if names is None:
        return crossing
    return [cluster | {"name": names[cluster["label"]]} for cluster in crossing]


def _largest_names(clusters: Clusters, names: Sequence[str]) -> list[str]:
    label = clusters.roots[clusters.by_size[0]] if clusters.roots.size else -2
    return [names[site] for site in (clusters.labels == label).nonzero()[0][:_MOST_NAMED]]
