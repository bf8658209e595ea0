"""Make the records of results/h200 again, each by its command: two at a time, one per GPU.

    python scripts/record_h200.py --commit abc1234 --budget 1000 --out results/h200

A record is what its commands print, under a head that says by which machine, versions, commit and
command, and when; or a JSON file that a command writes, with the same head in "record".  A command
has one GPU to itself (CUDA_VISIBLE_DEVICES), or all that are given, where it needs several.  What
fails leaves FILE.failed, with what it printed, and the older record as it was; the others go on.

Records that take long are made by --long or --only; their heads say how old they are.  --list
prints the table of results/h200/README.md.  --small tries every command at tiny sizes, on --device
cpu too, where the commands that need a GPU are left out: a rehearsal, into a folder of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import glob
from pathlib import Path

import click

from percolab.papers.measured_record import commit
from percolab.store.output_files import replace_file
from percolab.store.provenance import package_versions, processor_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "results" / "h200"
#: A record is ended after LIMIT times its expected seconds, but not before LEAST_LIMIT seconds.
LEAST_LIMIT, LIMIT = 60, 4
#: Number of commands of a record in the table; the head of the record has all.
SHOWN = 2
#: The value of ``gpus`` for a record that uses all GPUs.
ALL = 0


@dataclass(frozen=True)
class Record:
    """A file and the commands that make it.

    commands: {device}, {commit}, {out}, the file to write, and {folder}, a scratch folder, are
              filled in
    seconds:  expected time on an H200, including the compilation of kernels
    gpus:     number needed; ALL: all available ones
    is_alone: whether nothing else may run at the same time, since it uses all cores of the host
    small:    options that make every command a rehearsal; None: there is no rehearsal
    is_long:  whether it is made only if requested
    keeps:    the folder next to the record for results files of the scratch folder; "" for none
    """

    file: str
    what: str
    commands: tuple[str, ...]
    seconds: float
    gpus: int = 1
    is_alone: bool = False
    small: str | None = ""
    is_long: bool = False
    keeps: str = ""

    @property
    def runs_on_cpu(self) -> bool:
        """Whether no command needs a GPU."""
        return self.gpus == 1 and not any(map(needs_gpu, self.commands))

    @property
    def limit(self) -> float:
        """Seconds after which the record's commands are ended."""
        return max(LIMIT * self.seconds, LEAST_LIMIT)

    def row(self) -> str:
        """Return the record as a line of the README's table."""
        device = {1: "cuda", 2: "cuda:0,1", ALL: "cuda:0,1,2,3"}[self.gpus]
        filled = {"device": device, "out": self.file, "commit": "COMMIT", "folder": "FOLDER"}
        filled["gpus"] = "4"
        commands = "<br>".join(f"`{command.format(**filled)}`" for command in self.commands[:SHOWN])
        if len(self.commands) > SHOWN:
            commands += f"<br>and {len(self.commands) - SHOWN} more"
        needed = f"{self.seconds:g} s" + (f" of {self.gpus or 4} GPUs" if self.gpus != 1 else "")
        note = ", --long" if self.is_long else ""
        return f"| {self.file} | {self.what} | {commands} | {needed}{note} |"


_TABLE = "python results/h200/large_lattices.py"


def needs_gpu(command: str) -> bool:
    """Return whether a command cannot run on a CPU."""
    is_measured = not command.startswith(("percolab merge", "percolab fit", _TABLE))
    return is_measured and "{device}" not in command


_KAUFMAN = "python results/h200/kaufman.py --device {device} --out {folder}/lines.txt --error 1e-5"
_STAGE = "percolab bench --stage"
_BENCH = "percolab bench --device {device} --runs 5 --no-peers --model"
_CUBIC = (
    "percolab sweep --lattice cubic --model ising --boundary periodic --device {device} --quiet"
)
_LARGE = "percolab sweep --samples 1 --slabs auto --device {device} --quiet --lattice"
_PYTEST = "pytest -m gpu -q -q -rsf --durations 4 -p no:benchmark -p no:cacheprovider"
#: A test that reads the free memory of the GPU, which other tests at the same time change.
_ALONE = "tests/parts/test_gpu_join.py::test_memory_of_slabs_on_a_gpu_is_stated_and_planned"

#: Records in the order in which they begin: first those on several GPUs, last the least important.
RECORDS = (
    Record(
        "split.txt",
        "one sample over two GPUs and over one",
        (f"{_STAGE} split --device {{device}}",),
        120,
        gpus=2,
        small="--sites 4096 --samples 2 --runs 1",
    ),
    Record(
        "study.txt",
        "one study of a minute over two GPUs and over one",
        (
            f"{_STAGE} study --device {{device}} --lattice square --boundary periodic -L 4096 "
            "--points 5 --samples 230000",
        ),
        120,
        gpus=2,
        small="-L 16 --samples 60 --runs 1",
    ),
    Record(
        "test-gpus.txt",
        "several GPUs against one and the CPU, bit for bit; memory that is stated",
        (f"{_PYTEST} tests/run/test_gpus.py tests/kernels/test_device.py {_ALONE}",),
        130,
        gpus=2,
        small="--collect-only",
    ),
    Record(
        "test-gpu.txt",
        "everything on CUDA against the CPU, bit for bit: words, labels, rows, grids, thresholds, "
        "what wraps, tallies, radii, captured calls, spins, trees, slabs and joins",
        (
            f"{_PYTEST} -n 20 --dist worksteal --ignore tests/run/test_dask.py "
            f"--deselect {_ALONE} tests",
        ),
        210,
        is_alone=True,
        small="--collect-only",
    ),
    Record(
        "bench.json",
        "bonds, labels, rows, grids of 21 p: lattice x L x labeler at p_c; bench.png is drawn from "
        "it by `make redraw`",
        (
            "percolab bench --device cuda --lattice honeycomb --lattice square "
            "--lattice triangular --labeler tiled --labeler four_step "
            "--labeler label_equivalence --ratio 1 --runs 3 --no-peers --json {out}",
        ),
        70,
        small="-L 16 --runs 1",
    ),
    Record(
        "validate.txt",
        "generators, every labeler, exact values, thresholds, tori: 750 checks",
        ("percolab validate --device {device}",),
        120,
        small=None,
    ),
    Record(
        "spins.txt",
        "whole sweeps of spins at T_c, with their rows on the host",
        (
            f"{_BENCH} ising -L 4096 --chains 16 "
            "--lattice square --lattice honeycomb --lattice triangular",
            f"{_BENCH} ising -L 4096,512,64 --chains 1",
            f"{_BENCH} ising --lattice cubic -L 256 --chains 16",
            f"{_BENCH} potts:q=3 -L 4096 --chains 16",
            f"{_BENCH} ising -L 64 --chains 1000 "
            "--lattice square --lattice honeycomb --lattice triangular",
            f"{_BENCH} ising --lattice cubic -L 16 --chains 1000",
            f"{_BENCH} potts:q=3 -L 64 --chains 1000",
            f"{_BENCH} ising --update wolff -L 64 --chains 1000",
            f"{_BENCH} ising -L 16,32 --chains 4000",
        ),
        55,
        small="-L 16 --chains 2 --runs 1",
    ),
    Record(
        "grid.txt",
        "rows at 1, 9 and 21 values of p; at 1 and 7 on cubic lattices and tori",
        (
            f"{_STAGE} grid --device {{device}} --runs 5",
            f"{_STAGE} grid --device {{device}} --runs 3 --lattice square --boundary periodic",
            f"{_STAGE} grid --device {{device}} --runs 3 --lattice cubic --points 1,7 "
            "-L 16,64,128,256",
            f"{_STAGE} grid --device {{device}} --runs 3 --lattice cubic --boundary periodic "
            "--points 1,7 -L 16,64,128,256",
        ),
        35,
        small="-L 8 --sites 1000 --runs 1",
    ),
    Record(
        "slabs.txt",
        "interfaces of slabs and their joins, whole and kernel by kernel, compared with one piece",
        (f"{_STAGE} slabs --device {{device}} --runs 6",),
        130,
        small="--sites 4096 --runs 1",
    ),
    Record(
        "trees.txt",
        "minimum spanning trees by `boruvka`: whole calls, readings and kernels",
        (f"{_STAGE} trees --device {{device}}",),
        35,
        small="-L 16 --sites 512 --runs 1",
    ),
    Record(
        "guo.json",
        "minimum spanning trees of random graphs, V = 128 ... 16384, as Guo et al. find them, "
        "beside one core; drawn into results/guo-h200",
        ("python -m percolab.papers.guo2011.figures --seconds 70 --commit {commit} --out {out}",),
        35,
        small="-V 16",
    ),
    Record(
        "tiled-kernels.txt",
        "every kernel of the tiled labeler, open lattices and a cubic torus",
        (
            f"{_STAGE} kernels --device cuda -L 4096",
            f"{_STAGE} kernels --device cuda --lattice cubic --boundary periodic -L 128",
        ),
        15,
        small="-L 32 --sites 4096 --runs 1",
    ),
    Record(
        "sweeps.txt",
        "one sample of 2^30 sites; whole sweeps of 9 p and of thresholds: wall time, GPU time",
        (
            "percolab bench --device cuda --no-peers --stage labels --stage measure -L 32768 "
            "--ratio 1 --runs 3",
            f"{_STAGE} threshold --device cuda -L 32768 --samples 1 --runs 3",
            f"{_STAGE} study --device cuda",
        ),
        60,
        small=None,
    ),
    Record(
        "four-step-kernels.txt",
        "every kernel of the four steps, L = 4096",
        (f"{_STAGE} kernels --device cuda -L 4096 --labeler four_step --runs 5",),
        20,
        small="-L 32 --sites 4096 --runs 1",
    ),
    Record(
        "sites.txt",
        "site percolation: rows at 1, 9 and 21 values of p",
        (f"{_STAGE} grid --device {{device}} --runs 3 --model site -L 64,1024,4096",),
        20,
        small="-L 8 --sites 1000 --runs 1",
    ),
    Record(
        "peers.json",
        "labels and rows of the square lattice, L = 1024 and 4096, beside scipy and cupyx",
        (
            "percolab bench --device {device} --lattice square -L 1024,4096 --ratio 1 "
            "--stage labels --stage measure --runs 5 --json {out}",
        ),
        15,
        small="-L 16 --runs 1",
    ),
    Record(
        "graph.txt",
        "the four steps on honeycomb, L = 4096, computed and as a stored neighbour list",
        (f"{_STAGE} graph --device {{device}}",),
        15,
        small="-L 16 --runs 1",
    ),
    Record(
        "calls.txt",
        "whole calls by the host's clock, launched",
        (
            f"{_STAGE} grid --device cuda --lattice honeycomb -L 4096 --samples 1 --points 1",
            f"{_STAGE} grid --device cuda --lattice honeycomb -L 64 --samples 1024 --points 1",
            f"{_STAGE} grid --device cuda --lattice honeycomb -L 4096 --samples 16 --points 1,9",
            f"{_STAGE} grid --device cuda --lattice honeycomb -L 256 --samples 256 --points 9",
            f"{_STAGE} grid --device cuda --lattice honeycomb -L 64 --samples 4096 --points 21",
            f"{_STAGE} grid --device cuda --lattice cubic -L 128 --samples 64 --points 1",
        ),
        5,
        small=None,
    ),
    Record(
        "radii.txt",
        "radii of gyration: read off tiles, and site by site",
        ("python results/h200/radii.py",),
        50,
        small=None,
    ),
    Record(
        "small-lattices.txt",
        "lattices of up to 4096 points: whole calls and kernels",
        ("python results/h200/small_lattices.py",),
        60,
        small=None,
    ),
    Record(
        "wrapping-alone.txt",
        "sums of blocks of small tori, with clusters and of what wraps alone",
        ("python results/h200/wrapping_alone.py",),
        50,
        small=None,
    ),
    Record(
        "study-rates.txt",
        "whole studies of lattices of 256 to 65 536 points, and how long the GPU computes",
        ("python results/h200/study_rates.py",),
        60,
        small=None,
    ),
    Record(
        "targets.txt",
        "what the engine was asked to do: time before, target, time now",
        ("python results/h200/targets.py",),
        400,
        small=None,
        is_long=True,
    ),
    Record(
        "device-arrays.txt",
        "labels of images that are on the GPU, beside those of CuPy",
        ("python results/h200/device_arrays.py",),
        15,
        small=None,
    ),
    Record(
        "sanitizer.txt",
        "memory errors and races in shared memory, every labeler",
        (
            "compute-sanitizer --tool memcheck python scripts/small_cuda_run.py",
            "compute-sanitizer --tool racecheck python scripts/small_cuda_run.py",
        ),
        200,
        small=None,
        is_long=True,
    ),
    Record(
        "weigel.json",
        "updates of Potts models by every labeler, whole and part by part; drawn into "
        "results/weigel-h200",
        (
            "python -m percolab.papers.weigel2011.figures --seconds 240 --commit {commit} "
            "--out {out}",
        ),
        170,
        small=None,
        is_long=True,
    ),
    Record(
        "spin-transitions.txt",
        "critical couplings of spins on lattices of two dimensions, each from one command",
        (
            "python results/h200/spin_transitions.py --device {device} --out {folder}/lines.txt "
            "square triangular honeycomb square-q3 square-q4",
        ),
        210,
        small="--samples 40",
        is_long=True,
    ),
    Record(
        "large.txt",
        "one sample of 1e11 to 1.6e13 sites through one GPU, slab by slab, and large/, their files",
        (
            f"{_LARGE} square -L 316228 -p 0.5 --boundary periodic "
            "--out {folder}/torus-xorwow.h5",
            f"{_LARGE} square -L 316228 -p 0.5 --boundary periodic --rng philox "
            "--out {folder}/torus-philox.h5",
            f"{_LARGE} square -L 316228 -p 0.5 --out {{folder}}/square-1e11.h5",
            f"{_LARGE} square -L 1000000 -p 0.5 --out {{folder}}/square-1e12.h5",
            f"{_LARGE} square -L 4014080 -p 0.5 --out {{folder}}/square-record.h5",
            f"{_LARGE} cubic -L 4642 -p 0.24881185 --out {{folder}}/cubic-1e11.h5",
            f"{_LARGE} cubic -L 10000 -p 0.24881185 --out {{folder}}/cubic-1e12.h5",
            f"{_LARGE} cubic -L 20256 -p 0.24881185 --out {{folder}}/cubic-record.h5",
            f"{_TABLE} {{folder}}/*.h5",
        ),
        520,
        small=None,
        is_long=True,
        keeps="large",
    ),
    Record(
        "cubic-ising.txt",
        "K_c of the cubic Ising model",
        (
            *(
                f"{_CUBIC} -L 256 --samples 265000 -K 0.22164767,0.22165670,0.22166573 "
                f"--seed {seed} --out {{folder}}/L256-{seed}.h5"
                for seed in (1, 2, 3)
            ),
            f"{_CUBIC} -L 16 --samples 10000000 --sweeps 5000 "
            "-K 0.22092001,0.22165670,0.22239339 --out {folder}/L16.h5",
            f"{_CUBIC} -L 24 --samples 20000000 --sweeps 8000 "
            "-K 0.22126961,0.22165670,0.22204379 --out {folder}/L24.h5",
            f"{_CUBIC} -L 48 --samples 18000000 --sweeps 20000 "
            "-K 0.22152785,0.22165670,0.22178555 --out {folder}/L48.h5",
            f"{_CUBIC} -L 64 --samples 3000000 --sweeps 20000 "
            "-K 0.22157508,0.22165670,0.22173832 --out {folder}/L64.h5",
            "percolab merge {folder}/L*.h5 --out {folder}/all.h5",
            "percolab fit {folder}/all.h5",
        ),
        1500,
        small=None,
        is_long=True,
    ),
    Record(
        "kaufman.txt",
        "energy of Ising tori to 1e-5, by `sw` and `wolff`, both generators, beside Kaufman's",
        (
            f"{_KAUFMAN} --seconds 135",
            f"{_KAUFMAN} --seconds 120 --updates wolff --every 8",
        ),
        3000,
        small=None,
        is_long=True,
    ),
)

_SPLIT = "percolab sweep --samples 1 --split lattice --device {device} --quiet --lattice"
_MPI = (
    "mpiexec --allow-run-as-root --oversubscribe -n {gpus} python results/h100-x4/transport.py "
    "--device {device}"
)
#: Records for a host with more than two GPUs, in results/h100-x4.
SCALING = (
    Record(
        "split-2-square.txt",
        "one sample of the square lattice over two of the GPUs and over one",
        (f"{_STAGE} split --device {{device}} --lattice square",),
        60,
        gpus=2,
        small="--sites 4096 --samples 2 --runs 1",
    ),
    Record(
        "split-2-cubic.txt",
        "one sample of the cubic lattice over two of the GPUs and over one",
        (f"{_STAGE} split --device {{device}} --lattice cubic",),
        60,
        gpus=2,
        small="--sites 4096 --samples 2 --runs 1",
    ),
    Record(
        "split.txt",
        "one sample over all GPUs and over one; 1e11 sites, and 2^33 a GPU",
        (
            f"{_STAGE} split --device {{device}}",
            f"{_STAGE} split --device {{device}} --boundary open --sites 8589934592",
        ),
        150,
        gpus=ALL,
        small="--sites 4096 --samples 2 --runs 1",
    ),
    Record(
        "transport.txt",
        "how interfaces travel: from GPU to GPU, and through the host by MPI",
        (_MPI, f"{_MPI} --through host"),
        60,
        gpus=ALL,
        small="--sites 4096 --rows 3",
    ),
    Record(
        "studies.txt",
        "studies of many samples on one GPU and on all",
        ("python results/h100-x4/studies.py --gpus {gpus}",),
        150,
        gpus=ALL,
        small="--seconds 0.001",
    ),
    Record(
        "test-gpus.txt",
        "several GPUs against one and the CPU, bit for bit",
        (f"{_PYTEST} tests/run/test_gpus.py tests/kernels/test_device.py",),
        130,
        gpus=ALL,
        small="--collect-only",
    ),
    Record(
        "large.txt",
        "one sample of 1.6e13 sites and more over all GPUs, and large/, their files",
        (
            f"{_SPLIT} square -L 4014080 -p 0.5 --out {{folder}}/square-1.6e13.h5",
            f"{_SPLIT} cubic -L 20256 -p 0.24881185 --out {{folder}}/cubic-8.3e12.h5",
            f"{_SPLIT} square -L 8388608 -p 0.5 --out {{folder}}/square-7.0e13.h5",
            f"{_TABLE} {{folder}}/*.h5",
        ),
        270,
        gpus=ALL,
        small=None,
        keeps="large",
    ),
)


class Failed(Exception):
    """The failure of a command; printed: its output."""

    def __init__(self, problem: str, printed: str) -> None:
        super().__init__(problem)
        self.printed = printed


@dataclass(frozen=True)
class Place:
    """Where and with what records are made.

    gpus:   numbers of the GPUs, or () for the CPU
    folder: the folder of the records
    known:  the commit
    end:    the end of the budget, by time.monotonic()
    small:  whether it is a rehearsal
    """

    gpus: tuple[str, ...]
    folder: Path
    known: str
    end: float
    small: bool


def make(record: Record, gpus: Sequence[str], place: Place) -> float:
    """Make a record on these GPUs and write it; return its seconds.  Failed: a command failed."""
    begin = time.monotonic()
    path, facts = place.folder / record.file, head(gpus, place.known)
    failed = path.with_name(f"{path.name}.failed")
    failed.unlink(missing_ok=True)
    printed: list[str] = []
    is_json = path.suffix == ".json"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / path.name
        try:
            for command in record.commands:
                filled, shown = arguments(command, record, gpus, place, out)
                facts.setdefault("commands", []).append(shown)
                left = min(begin + record.limit, place.end) - time.monotonic()
                printed.append(f"# $ {shown}\n{run(filled, gpus, left)}")
        except Failed as error:
            replace_file(failed, "".join([*printed, error.printed, f"{error}\n"]).encode())
            raise
        seconds = time.monotonic() - begin
        facts["seconds"] = round(seconds, 1)
        if is_json:
            document = {"record": facts} | json.loads(out.read_bytes())
            # Replace the name of the scratch folder, which is meaningless to readers.
            text = json.dumps(document, indent=1).replace(str(out), path.name) + "\n"
        else:
            text = "".join([*head_lines(facts), *printed])
        for kept in Path(folder).glob("*.h5") if record.keeps else ():
            (path.parent / record.keeps).mkdir(exist_ok=True)
            replace_file(path.parent / record.keeps / kept.name, kept.read_bytes())
        replace_file(path, text.encode())
    return seconds


def arguments(
    command: str, record: Record, gpus: Sequence[str], place: Place, out: Path
) -> tuple[list[str], str]:
    """Return a command's arguments, and the command as shown in the record."""
    device = "cpu"
    if gpus:
        # The GPUs that are visible to a command are numbered from 0 on.
        device = f"cuda:{','.join(str(n) for n in range(len(gpus)))}" if gpus[1:] else "cuda"
    options = f" {record.small}" if place.small and record.small else ""
    known = {"device": device, "commit": place.known, "gpus": len(gpus) or 1}
    shown = (command + options).format(**known, out=out.name, folder="FOLDER")
    filled = (command + options).format(**known, out=out, folder=out.parent)
    words = []
    for word in shlex.split(filled):
        words += sorted(glob(word)) if "*" in word else [word]
    python = [sys.executable]
    started = {
        "percolab": [*python, "-m", "percolab"],
        "pytest": [*python, "-m", "pytest"],
        "python": python,
    }
    if words[0] in ("compute-sanitizer", "mpiexec"):
        words = [sys.executable if word == "python" else word for word in words]
    return [*started.get(words[0], words[:1]), *words[1:]], shown


def run(command: Sequence[str], gpus: Sequence[str], seconds: float) -> str:
    """Return the output of a command; Failed: it fails, or exceeds its time limit."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part)
    visible = {"PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    visible["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | visible,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        problem = ""
        try:
            printed, _ = process.communicate(timeout=max(seconds, 0))
        except subprocess.TimeoutExpired:
            # End the whole process group, with all processes that it has started.
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            problem = "took longer than it may"
        if process.returncode and not problem:
            problem = f"exit code {process.returncode}"
        if problem:
            errors.seek(0)
            raise Failed(problem, f"$ {shlex.join(command)}\n{printed}\n{errors.read()[-4000:]}\n")
    return printed


def head(gpus: Sequence[str], known: str) -> dict[str, object]:
    """Return the origin of a record: machine, versions, commit and time."""
    return {
        "commit": known,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(gpus),
        "versions": package_versions(),
    }


def machine(gpus: Sequence[str]) -> str:
    """Return the names of the GPUs, their driver and the processor."""
    host = f"{processor_name()}, {os.cpu_count()} cores"
    if not gpus:
        return host
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            [*query, f"--id={gpus[0]}"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return f"{len(gpus)} GPUs; {host}"
    name, _, driver = done.stdout.strip().partition(", ")
    return f"{len(gpus)} x {name}, driver {driver}; {host}"


def head_lines(facts: dict[str, object]) -> list[str]:
    """Return a head as the first lines of a text."""
    versions = facts["versions"]
    assert isinstance(versions, dict)
    return [
        f"# commit {facts['commit']}, {facts['started']}, {facts['seconds']} s\n",
        f"# {facts['machine']}\n",
        f"# {', '.join(f'{name} {own}' for name, own in versions.items())}\n",
    ]


def make_all(records: Sequence[Record], place: Place) -> dict[str, str]:
    """Make records as GPUs become free; return the outcome of each, by its file."""

    def may_begin(record: Record) -> bool:
        others = [other for other, _ in at_work.values()]
        if any(one.is_alone for one in (record, *others)) and others:
            return False
        return bool(free) and (not place.gpus or count(record) <= len(free))

    def count(record: Record) -> int:
        return record.gpus or len(place.gpus)

    free = list(place.gpus or [""])
    left, found = list(records), {}
    at_work: dict[Future[float], tuple[Record, list[str]]] = {}
    with ThreadPoolExecutor(len(free)) as pool:
        while left or at_work:
            while left and may_begin(left[0]):
                record = left.pop(0)
                if time.monotonic() + record.seconds * (not place.small) > place.end:
                    found[record.file] = "not begun: the budget does not last"
                    click.echo(f"{record.file}: {found[record.file]}")
                    continue
                own = [free.pop(0) for _ in range(count(record) if place.gpus else 1)]
                given = own if place.gpus else []
                at_work[pool.submit(make, record, given, place)] = record, own
            if not at_work:
                continue
            done, _ = wait(at_work, return_when=FIRST_COMPLETED)
            for future in done:
                record, own = at_work.pop(future)
                free = sorted(free + own)
                try:
                    found[record.file] = f"{future.result():.1f} s"
                except Exception as error:  # the others are still measured
                    found[record.file] = f"FAILED: {error}"
                click.echo(f"{record.file}: {found[record.file]} (expected {record.seconds:g} s)")
    return found


def chosen(records: Sequence[Record], only: Sequence[str], long: bool) -> list[Record]:
    """Return the requested records; BadParameter: an unknown name."""
    for name in only:
        if name not in [record.file for record in records]:
            names = ", ".join(record.file for record in records)
            raise click.BadParameter(f"no record {name!r}; there are {names}")
    if only:
        return [record for record in records if record.file in only]
    return [record for record in records if long or not record.is_long]


def gpus_of(device: str) -> tuple[str, ...]:
    """Return the numbers of "cuda:0,1", or () for "cpu"; BadParameter otherwise."""
    if device == "cpu":
        return ()
    numbers = device.removeprefix("cuda:").split(",")
    if not device.startswith("cuda:") or not all(map(str.isdecimal, numbers)):
        raise click.BadParameter(f"--device {device}: must be cpu, cuda:n or cuda:n,m")
    return tuple(numbers)


@click.command(help=__doc__)
@click.option("--device", default="cuda:0,1", show_default=True, help="cpu, cuda:n or cuda:n,m.")
@click.option("--out", default=FOLDER, type=click.Path(path_type=Path), show_default=True)
@click.option("--only", multiple=True, metavar="FILE", help="Repeat for several.")
@click.option("--long", is_flag=True, help="Also those that take long.")
@click.option("--scaling", is_flag=True, help="Those of a host with more than two GPUs instead.")
@click.option("--budget", default=1e9, help="Seconds: what does not fit is not begun.")
@click.option("--commit", "known", envvar="PERCOLAB_COMMIT", help="Where git does not know it.")
@click.option("--small", is_flag=True, help="A rehearsal at tiny sizes.")
@click.option("--list", "listed", is_flag=True, help="Print the table of records, and do nothing.")
def main(
    device: str,
    out: Path,
    only: tuple[str, ...],
    long: bool,
    scaling: bool,
    budget: float,
    known: str | None,
    small: bool,
    listed: bool,
) -> None:
    """Make the records, say how long each took, and fail if one did."""
    every = SCALING if scaling else RECORDS
    if listed:
        click.echo("\n".join(record.row() for record in every))
        return
    gpus, records = gpus_of(device), chosen(every, only, long)
    facts = known or commit()
    if facts is None:
        raise click.UsageError("git does not know the commit here: give --commit")
    if small and out.resolve() == FOLDER:
        raise click.UsageError("--small needs a folder of its own: give --out")
    if small:
        records = [record for record in records if record.small is not None]
    missing = [r for r in records if (not gpus and not r.runs_on_cpu) or r.gpus > max(len(gpus), 1)]
    for record in missing:
        click.echo(f"{record.file}: left out, it needs {record.gpus} GPU(s)")
    out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    place = Place(gpus, out, facts, begin + budget, small)
    found = make_all([record for record in records if record not in missing], place)
    bad = [file for file, became in found.items() if not became.endswith(" s")]
    click.echo(f"{len(found) - len(bad)} records in {time.monotonic() - begin:.0f} s; {out}")
    if bad:
        raise click.ClickException("; ".join(f"{file}: {found[file]}" for file in bad))


if __name__ == "__main__":
    main()
