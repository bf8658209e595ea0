"""What the tests of stored results and of the command line share."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import h5py
import numpy as np
from click.testing import CliRunner, Result
from PIL import Image

from percolab.api import sweep
from percolab.cli import main
from percolab.store.results import ResultsWriter, StoredResults, encode, read_results
from percolab.store.tree import Node, read_tree, seal

SMALL = {
    "L": (4, 8, 16),
    "p": (0.3, 0.4, 0.5, 0.6, 0.7),
    "samples": 60,
    "block_size": 10,
    "seed": 5,
}
#: A sweep that ends at once.
TINY = ("sweep", "--lattice", "square", "-L", "4,6", "-p", "0.5", "--samples", "10")
#: A sample to label.
SAMPLE = ("--lattice", "honeycomb", "-L", 16, "-p", 0.65, "--seed", 4, "--sample", 2)


def png(path: Path, pixels: np.ndarray, mode: str = "L", **options: object) -> Path:
    """Write an image of whole numbers from 0 to 255 and return its path."""
    Image.fromarray(pixels).convert(mode).save(path, **options)
    return path


def smallest_sites(labels: np.ndarray) -> np.ndarray:
    """Return labels, 0 for no site, with every cluster named by its smallest site and -1."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    found = np.where(labels.ravel() == 0, -1, first[inverse.ravel()])
    return found.astype(np.int32).reshape(labels.shape)


@cache
def small_results() -> StoredResults:
    """Square lattice, three sizes, 6 blocks each; for reading only."""
    return sweep("square", device="cpu", workers=1, **SMALL)


def stored(path: Path, results: StoredResults | None = None) -> Path:
    """Write results to a file and return its path."""
    with ResultsWriter(path) as writer:
        writer.save(results or small_results())
    return path


def without_runs(results: StoredResults) -> bytes:
    """Return the file of results without the records of who made them and when."""
    return encode(replace(results, runs=[]))


def without_blocks() -> StoredResults:
    """Return the small results before anything was sampled."""
    results = deepcopy(small_results())
    results.runs.clear()
    for item in results.tasks.values():
        item.blocks.clear()
    return results


def text_of(item: h5py.File | h5py.Group, name: str) -> str:
    return item.attrs[name].decode()


def texts_of(item: h5py.File | h5py.Group, name: str) -> list[str]:
    return [text.decode() for text in item.attrs[name].tolist()]


def put_text(item: h5py.File | h5py.Group, name: str, text: str | list[str]) -> None:
    """Write an attribute, a text or a list of texts, as bytes of fixed length."""
    texts = np.array([text] if isinstance(text, str) else text).astype("S")
    kind = h5py.string_dtype("utf-8", texts.dtype.itemsize)
    item.attrs.create(name, texts[0] if isinstance(text, str) else texts, dtype=kind)


def tree_of(path: Path) -> Node:
    with h5py.File(path, "r") as file:
        return read_tree(file)


def sealed_again(path: Path) -> Path:
    """Give a file that was changed the checksums of what it holds now, and return its path."""

    def write(group: h5py.Group, node: Node) -> None:
        put_text(group, "checksum", node.text("checksum"))
        for name, below in node.groups.items():
            write(group[name], below)

    with h5py.File(path, "r+") as file:
        root = read_tree(file)
        seal(root)
        write(file, root)
    return path


def replace_dataset(group: h5py.Group, name: str, change) -> None:
    """Put changed numbers in the place of a dataset, with its attributes."""
    values, attributes = change(group[name]), dict(group[name].attrs)
    del group[name]
    group[name] = values
    group[name].attrs.update(attributes)


def refusal_after(path: Path, change, *, sealed: bool = True) -> str:
    """Return the line with which a results file is refused after a change of its first task."""
    with h5py.File(path, "r+") as file:
        change(next(iter(file["tasks"].values())))
    return refusal("status", sealed_again(path) if sealed else path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(item) for item in arguments])


def changed(line: Sequence[object], *options: object) -> list[object]:
    """Return a command with options, in place of those that have the same name and a value."""
    left, words = [], iter(line)
    names = {str(word).partition("=")[0] for word in options}
    for word in words:
        if str(word).startswith("-") and word in names:
            next(words)
        else:
            left.append(word)
    return [*left, *options]


def answer(*arguments: object) -> str:
    """Return what a command that must succeed writes to stdout."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refusal(*arguments: object) -> str:
    """Return the one line with which a command refuses its input, having written nothing else."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("percolab: error: ")
    return lines[0].removeprefix("percolab: error: ")


def left_in(folder: Path = Path()) -> list[str]:
    """Return the names of what is in a folder, the current one unless given."""
    return sorted(path.name for path in Path(folder).iterdir())


def datasets(path: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with h5py.File(path, "r") as file:
        file.visititems(
            lambda name, item: (
                found.update({name: item[...]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def assert_equal_datasets(one: Path, other: Path) -> None:
    """Fail unless two files hold the same datasets, name by name and bit by bit."""
    first, second = datasets(one), datasets(other)
    assert first.keys() == second.keys()
    assert first
    for name, data in first.items():
        assert data.dtype == second[name].dtype, name
        np.testing.assert_array_equal(data, second[name], err_msg=name)


# Makes a job of every block and saves after it, so that a short run has many moments at which it
# can be killed.
_PROGRAM = """
import os, sys, time
import percolab.run.stored as stored
import percolab.kinds.workplace as workplace
stored._SAVE_EVERY = stored._SAVE_SHARE = 0.0
workplace._LABELINGS_PER_CPU_CALL = 1
take = stored.Saver.take
def paced(*arguments):
    take(*arguments)
    time.sleep({pause})
stored.Saver.take = paced
{before}
from percolab.cli import main
main()
"""


def start(
    *arguments: object, before: str = "", pause: float = 0.0, session: bool = False
) -> subprocess.Popen[str]:
    """Start the command line as a process of its own, with Python code to run first.

    pause: seconds to wait after every job, which leaves time to interfere.  session: whether it
    and what it starts are a group of processes that can be sent signals together.
    """
    program = _PROGRAM.format(before=before, pause=pause)
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
        start_new_session=session,
    )


def wait_for_blocks(path: Path, process: subprocess.Popen[str], count: int = 1) -> None:
    for _ in range(12000):
        if path.exists() and blocks_in(path) >= count:
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    raise AssertionError(f"{path} did not get {count} blocks")


def blocks_in(path: Path) -> int:
    return sum(len(item.blocks) for item in read_results(path).tasks.values())


@contextmanager
def running(*arguments: object, before: str = "", session: bool = False):
    """Run the command line, unhurried, in a process that is killed if it has not ended."""
    process = start(*arguments, before=before, pause=0.5, session=session)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


#: The kinds of figures that tests know; more may be declared.
NINE = (
    "curves", "drift", "collapse", "clusters", "sizes", "gyration", "wrapping", "maxima",
    "thresholds",
)  # fmt: skip


def nine_of(kinds):
    """Return those of the kinds that tests know, in the order given."""
    return [kind for kind in kinds if kind in NINE]
