"""Bond thresholds of built-in lattices from simulation, in one table with the cited values.

Every lattice's study is a file in configs/thresholds; its pilot places p, and the cited value is
read when the estimate is made.  The folder gets for each lattice its results (HDF5), and
thresholds.md and thresholds.json, written anew after every lattice.  Running it again continues:
what is in the folder is fitted or topped up, not sampled again.

On a GPU several processes share the work: each compiles the kernels of its lattices, and they take
turns with the device, so that one samples while others compile or fit.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, hypot
from pathlib import Path
from typing import Any

import click
import numpy as np

from percolab.analysis import ThresholdFit, format_with_error
from percolab.analysis.stored_fits import fit_results
from percolab.bonds.words import p_to_threshold
from percolab.kernels.device import Device
from percolab.labelers import fitting_labeler
from percolab.lattices.lattice import Lattice, lattice_names, load_lattice
from percolab.run.engine import device_label
from percolab.run.request import Watcher
from percolab.run.runner import run_study
from percolab.store.output_files import replace_file
from percolab.store.provenance import package_versions, processor_name
from percolab.store.results import ResultsWriter, StoredResults
from percolab.store.task_result import TaskResult
from percolab.tasks.blocks import AnyBlock
from percolab.tasks.kind import make_sampler
from percolab.tasks.stop_rule import StopRule
from percolab.tasks.study import Study
from percolab.tasks.study_file import SweepRequest, read_request

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs" / "thresholds"
#: The error of p_c that is asked for, by dimension.
WANTED = {2: 2e-5, 3: 5e-6}
#: Lattices whose bond thresholds add up to one, being each other's dual.
DUAL_PAIRS = (("square", "square"), ("triangular", "honeycomb"))
# The part of a GPU's memory with which kernels are compiled, whoever has the device meanwhile.
_SMALL_SHARE = 0.005
# Cited errors below this are not written: the digits would fill the table.
_FINEST_ERROR = 1e-9

_turn: Any = None


@dataclass(frozen=True)
class Work:
    """What is asked of every lattice: where, on what, and how much of its study."""

    folder: Path
    configs: Path
    device: Device
    scale: float
    most_points: int
    seconds: float


class OutOfTime(Exception):
    """A lattice has had its seconds; what is finished is stored."""


class Deadline(Watcher):
    """Ends a study some seconds after it began; its sizes advance evenly, so it can be fitted."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def advanced(self, results: StoredResults, item: TaskResult, blocks: list[AnyBlock]) -> None:
        """Raise OutOfTime when the time is up."""
        if time.monotonic() > self._end:
            raise OutOfTime


def request_of(name: str, work: Work) -> SweepRequest:
    """Return the study of a lattice, and of its sizes and samples as much as is asked for.

    InputError: there is no such file, or it is wrong.
    """
    path = work.configs / f"{name}.toml"
    request = read_request(path, {"out": str(work.folder / f"{name}.h5")})
    study, samples = request.study, request.rule.samples or {}
    sizes = [size for size in study.sizes if study.task(size).num_points <= work.most_points]
    study = replace(study, sizes=tuple(sizes))
    return SweepRequest(
        study, StopRule({size: ceil(work.scale * samples[size]) for size in sizes}), request.out
    )


def compile_kernels(study: Study, device: Device) -> None:
    """Have all kernels of a study compiled by sampling next to nothing in little memory.

    The second size is large enough for more than one tile; the first may not be.
    """
    labeler, _ = fitting_labeler(None, device.kind, load_lattice(study.structure.name))
    task = study.task(study.sizes[:2][-1], (0.5, 0.5 + 1e-6))
    sampler = make_sampler(
        replace(task, block_size=2), labeler=labeler, device=device, share=_SMALL_SHARE
    )
    sampler.sample([0])
    sampler.rows(np.arange(2, dtype=np.uint64), np.full(2, p_to_threshold(0.5), np.uint64))


def sample(request: SweepRequest, device: Device, seconds: float) -> StoredResults:
    """Return the results of a study, from its file or sampled, until its end or for some time."""
    with ResultsWriter(request.out) as writer:
        try:
            return run_study(
                request.study,
                request.rule,
                writer=writer,
                device=device,
                watcher=Deadline(seconds),
            )
        except OutOfTime:
            stored = writer.load()
            assert stored is not None
            return stored


def begin_worker(turn: Any, kernels: str) -> None:
    """Prepare a process: its own kernel cache, and memory given back as soon as it is free."""
    global _turn
    _turn = turn
    # Two processes that save kernels of one file at a time may take each other's for their own.
    os.environ["NUMBA_CACHE_DIR"] = kernels
    os.environ["NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT"] = "0"


def measure(name: str, work: Work) -> dict[str, Any]:
    """Return the row of a lattice: sample when it is this process's turn, then fit."""
    request = request_of(name, work)
    if work.device.kind == "cuda":
        compile_kernels(request.study, work.device)
    with _turn:
        begin = time.perf_counter()
        results = sample(request, work.device, work.seconds)
        taken = time.perf_counter() - begin
    fit = fit_results(results)
    made_by = {"device": device_label(work.device), "seconds_of_turn": round(taken, 1)}
    return row_of(load_lattice(name), results, fit) | made_by


def row_of(lattice: Lattice, results: StoredResults, fit: ThresholdFit) -> dict[str, Any]:
    """Return what the table says of a lattice, as plain JSON values."""
    cited = lattice.threshold()
    assert cited is not None
    difference = fit.threshold - cited.value
    samples = {item.task.size: item.num_samples for item in results.tasks.values()}
    return {
        "lattice": lattice.name,
        "dimension": lattice.dimension,
        "coordination_number": lattice.coordination_number,
        "threshold": fit.threshold,
        "error": fit.threshold_error,
        "statistical_error": fit.statistical_error,
        "systematic_error": fit.systematic_error,
        "problem": fit.problem,
        "error_wanted": WANTED.get(lattice.dimension),
        "cited": cited.value,
        "cited_error": cited.error,
        "cited_expression": cited.expression,
        "reference": cited.reference,
        "cite": cited.cite,
        "difference": difference,
        "difference_in_sigma": difference / hypot(fit.threshold_error, cited.error),
        "boundary": list(results.study.boundary),
        "samples": {str(size): samples[size] for size in sorted(samples)},
        "smallest_size_fitted": min(fit.sizes),
        "chi_square": fit.chi_square.value,
        "dof": fit.chi_square.dof,
        "p_value": fit.chi_square.p_value,
        "nu": fit.nu,
        "nu_error": fit.nu_error,
        "notes": list(fit.notes),
        "seconds": round(sum(run["seconds"] for run in results.runs), 1),
    }


def dual_sums(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return p_c + p_c of the dual for the pairs that are there, and how far from 1 it is."""
    found = []
    for pair in DUAL_PAIRS:
        if all(name in rows for name in pair):
            total = sum(rows[name]["threshold"] for name in pair)
            errors = [rows[name]["error"] for name in pair]
            # A lattice that is its own dual comes twice, with the same error.
            error = 2 * errors[0] if pair[0] == pair[1] else hypot(*errors)
            found.append(
                {"lattices": list(pair), "sum": total, "error": error, "z": (total - 1) / error}
            )
    return found


def table_of(rows: dict[str, dict[str, Any]]) -> str:
    """Return the rows as a Markdown table, by dimension, with the sums of duals below it."""
    lines = [
        "| lattice | d | z | p_c (bond) | error | cited | source | difference | L | samples | "
        "L_min | chi2/dof | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows.values(), key=lambda row: (row["dimension"], row["lattice"])):
        sizes = [int(size) for size in row["samples"]]
        cells = [
            row["lattice"],
            row["dimension"],
            f"{row['coordination_number']:g}",
            format_with_error(row["threshold"], row["error"]),
            f"{row['error']:.1e}" + ("" if row["error"] <= (row["error_wanted"] or 1) else " (!)"),
            cited_text(row),
            row["cite"],
            f"{row['difference_in_sigma']:+.1f} sigma",
            f"{min(sizes)}-{max(sizes)}",
            f"{sum(row['samples'].values()):,}".replace(",", " "),
            row["smallest_size_fitted"],
            f"{row['chi_square']:.1f}/{row['dof']}",
            f"{row['seconds']:.1f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += [
        "",
        "difference: estimate less cited value, in combined errors.  (!): above the error wanted, "
        + ", ".join(f"{error:g} in d = {d}" for d, error in WANTED.items())
        + ".  Cited values without an error are exact or known beyond these digits.",
    ]
    for item in dual_sums(rows):
        total = format_with_error(item["sum"], item["error"])
        lines += ["", f"{' + '.join(item['lattices'])} = {total}, {item['z']:+.1f} sigma from 1"]
    return "\n".join(lines) + "\n"


def cited_text(row: dict[str, Any]) -> str:
    """Return the cited value as the table has it."""
    value, error = row["cited"], row["cited_error"]
    text = format_with_error(value, error) if error >= _FINEST_ERROR else f"{value:.9f}"
    return f"{row['cited_expression']} = {text}" if row["cited_expression"] else text


def earlier_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows that an earlier run wrote; click's error if the file is something else."""
    if not path.exists():
        return {}
    try:
        return {row["lattice"]: row for row in json.loads(path.read_bytes())["lattices"]}
    except (ValueError, TypeError, KeyError) as error:
        raise click.ClickException(f"{path}: is no table; choose another --out") from error


def write_tables(folder: Path, rows: dict[str, dict[str, Any]], made_by: dict[str, Any]) -> None:
    """Put the table and its numbers in place of what the folder has."""
    found = made_by | {"lattices": list(rows.values()), "dual_sums": dual_sums(rows)}
    replace_file(folder / "thresholds.json", (json.dumps(found, indent=1) + "\n").encode())
    replace_file(folder / "thresholds.md", table_of(rows).encode())


def shares_of(names: list[str], processes: int) -> list[list[str]]:
    """Deal the lattices out: those that use the same kernels, having as many classes, to one."""
    groups: dict[tuple[bool, int], list[str]] = {}
    for name in sorted(names, key=lambda name: (load_lattice(name).dimension, name)):
        lattice = load_lattice(name)
        key = fitting_labeler(None, "cuda", lattice)[0] == "tiled", lattice.num_classes
        groups.setdefault(key, []).append(name)
    dealt = list(groups.values())
    shares = [dealt[n::processes] for n in range(min(processes, len(dealt)))]
    return [list(chain.from_iterable(share)) for share in shares]


@contextmanager
def submitted(names: list[str], processes: int, work: Work) -> Iterator[dict[Future, str]]:
    """Have all lattices measured; yield who stands for which row to come."""
    context = multiprocessing.get_context("spawn")
    turn = context.Lock()
    with ExitStack() as stack:
        futures: dict[Future, str] = {}
        for share in shares_of(names, processes):
            kernels = stack.enter_context(tempfile.TemporaryDirectory(prefix="percolab-kernels-"))
            executor = ProcessPoolExecutor(
                1, mp_context=context, initializer=begin_worker, initargs=(turn, kernels)
            )
            stack.enter_context(executor)
            futures |= {executor.submit(measure, name, work): name for name in share}
        yield futures


def check_lattices(
    _context: click.Context, _option: click.Parameter, names: tuple[str, ...]
) -> list[str]:
    """Return the lattices that the command names, or all that have a study."""
    for name in names:
        if name not in lattice_names():
            raise click.BadParameter(f"{name!r} is none of {', '.join(lattice_names())}")
    studied = [name for name in lattice_names() if (CONFIGS / f"{name}.toml").exists()]
    return list(dict.fromkeys(names)) or studied


@click.command(help=__doc__)
@click.option("--lattice", "names", multiple=True, callback=check_lattices, help="[default: all]")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:n.")
@click.option("--out", type=click.Path(path_type=Path), help="[default: results/thresholds-DEVICE]")
@click.option("--processes", default=6, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="This part of the samples.")
@click.option("--most-points", default=2**31, help="Leave out sizes with more grid points.")
@click.option("--seconds-per-lattice", default=1e9, help="Stop sampling a lattice then.")
@click.option("--configs", default=CONFIGS, type=click.Path(path_type=Path), show_default=True)
def main(
    names: list[str],
    device: str,
    out: Path | None,
    processes: int,
    scale: float,
    most_points: int,
    seconds_per_lattice: float,
    configs: Path,
) -> None:
    """Make the table."""
    begin = time.perf_counter()
    target = Device.parse(device).resolve()
    folder = out or ROOT / "results" / f"thresholds-{target.kind}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = earlier_rows(folder / "thresholds.json")
    work = Work(folder, configs, target, scale, most_points, seconds_per_lattice)
    made_by = {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "processor": processor_name(),
        "versions": package_versions(),
    }
    failed = 0
    with submitted(names, processes, work) as futures:
        for future in as_completed(futures):
            name, past = futures[future], time.perf_counter() - begin
            error = future.exception()
            if error is not None:
                failed += 1
                click.echo(f"{past:6.1f} s  {name}: {type(error).__name__}: {error}", err=True)
                continue
            row = rows[name] = future.result()
            write_tables(folder, rows, made_by | {"seconds": round(past, 1)})
            click.echo(
                f"{past:6.1f} s  {name:<18} {format_with_error(row['threshold'], row['error']):<16}"
                f" {row['difference_in_sigma']:+.1f} sigma, chi2/dof {row['chi_square']:.1f}/"
                f"{row['dof']} from L >= {row['smallest_size_fitted']}, {row['seconds']} s sampled"
            )
    click.echo(f"{len(rows)} lattices in {folder / 'thresholds.md'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
