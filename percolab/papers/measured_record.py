"""What the programs of papers share: a record, what it was made by, and how figures replace it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from percolab.figures import save_figure
from percolab.store.output_files import replace_file
from percolab.store.provenance import package_versions, processor_name

Found = dict[str, Any]


class Record:
    """Measurements by the part that they belong to, in a file that is written after each."""

    def __init__(self, path: Path | None, made_by: Found, seconds: float) -> None:
        self.path, self.made_by, self.parts = path, made_by, {}
        self._deadline = time.perf_counter() + seconds
        self.num_failed = 0
        if path is not None and path.exists():
            self.parts = json.loads(path.read_bytes())["parts"]

    def begin(self, part: str) -> None:
        """Begin a part, in place of an older one."""
        self.part, self._started = part, time.perf_counter()
        empty: Found = {"records": [], "skipped": [], "failed": []}
        self.parts[part] = self.made_by | {"seconds": 0.0} | empty

    def add(self, what: Found, work: Callable[[], Found]) -> None:
        """Measure something, unless there is no time left, and write it down."""
        own = self.parts[self.part]
        if self.is_late:
            own["skipped"].append(what)
        else:
            try:
                own["records"].append(what | work())
            except Exception as error:  # the other measurements are still made
                own["failed"].append(what | {"error": f"{type(error).__name__}: {error}"})
                self.num_failed += 1
        own["seconds"] = round(time.perf_counter() - self._started, 2)
        self.write()

    def write(self) -> None:
        """Write the file, complete or not at all."""
        if self.path is not None:
            text = json.dumps({"parts": self.parts}, indent=1) + "\n"
            replace_file(self.path, text.encode())

    @property
    def is_late(self) -> bool:
        """Whether no time is left."""
        return time.perf_counter() > self._deadline

    def end(self) -> None:
        """Say that measurements failed, if any did: click.ClickException."""
        if self.num_failed:
            failed = f"{self.num_failed} measurements failed; the record says why"
            raise click.ClickException(failed)


def draw_over(figure: Any, stem: Path) -> None:
    """Write a figure as PNG, PDF and SVG in place of the record's older ones.

    Records are in git, some with PNG files made smaller, which do not name percolab any more.
    """
    for suffix in (".png", ".pdf", ".svg"):
        path = stem.with_suffix(suffix)
        path.unlink(missing_ok=True)
        save_figure(figure, path)


def made_by(known: str | None, device: str | None = None) -> Found:
    """Return when, by what command, commit, machine and versions a record is made.

    known: the commit, where git does not know it.  device: the name of the GPU.
    """
    # Where files are is nobody's business.
    words = [Path(each).name if Path(each).is_absolute() else each for each in sys.argv]
    module = getattr(sys.modules["__main__"], "__spec__", None)
    program = Path(words[0]).name if module is None else f"-m {module.name}"
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join([program, *words[1:]]),
        "commit": known or commit(),
        **({} if device is None else {"device_name": device}),
        "processor": processor_name(),
        "versions": package_versions(),
    }


def commit() -> str | None:
    """Return the commit of the working tree, None where there is no git."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def by_commas(_context: click.Context, _option: click.Parameter, value: str) -> list[int]:
    """Return the integers of an option, given by commas."""
    return [int(part) for part in value.split(",")]


def make_drawing_command(
    text: str | None, draw_all: Callable[[Path, Path], list[str]], record: Path, folder: Path
) -> click.Command:
    """Return the command that draws a paper's figures from a record and prints what they show.

    text: its help.  draw_all: is given the record and the folder.  record, folder: the usual ones.
    """

    @click.command(help=text)
    @click.option("--record", type=click.Path(path_type=Path), default=record)
    @click.option("-o", "--out", type=click.Path(path_type=Path), default=folder)
    def main(record: Path, out: Path) -> None:
        click.echo("\n".join(draw_all(record, out)))

    return main
