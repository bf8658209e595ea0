"""Collect and run the code of README and docs, and draw the figures of the pages.

    python scripts/docs_blocks.py run README.md docs/first-hour.md   # every block, in order
    python scripts/docs_blocks.py figures                            # docs/figures, drawn again
    python scripts/docs_blocks.py figures docs/gallery.md            # docs/gallery
    python scripts/docs_blocks.py notebooks                          # executed, in place

The blocks of a page run one after the other in a new directory, which has only the files of
docs/examples and the folder configs.  A block of Python sees the names of earlier ones.  Properties
of a block are in a comment before it, which readers of the page do not see:

    <!-- not run: GPU -->     why it is not run; one of :data:`REASONS`
    <!-- fails -->            its last command must fail
    <!-- output -->           a text that the block before must print; "..." stands for anything
    <!-- file: lieb.toml -->  the block is the content of this file
    <!-- append: lieb.toml --> and this block is added to it
    <!-- setup                commands that make what a block needs and a user has
    percolab sweep ...
    -->

A figure ``figures/NAME.png`` of a page is made by the block of the same page that writes NAME.png;
so is every picture ``gallery/NAME.png`` of the gallery.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIGURES, GALLERY = DOCS / "figures", DOCS / "gallery"
#: Scale at which drawn pictures are stored, and their largest width and height in pixels; the
#: gallery has many, so 1000 pixels of 2160.
SCALES = {FIGURES: (1, 1200), GALLERY: (1000 / 2160, 1400)}
#: Reasons why a block is not run.
REASONS = {
    "GPU": "it needs a GPU",
    "cluster": "it needs a batch system, MPI or Dask",
    "minutes": "it takes minutes",
    "installs": "it installs something",
    "packages": "it needs packages that are no part of percolab",
    "sketch": "it shows a form, with ... for what is left out",
}
#: Languages of blocks that are run; only tests read the others.
RUN = ("bash", "python")

_COMMENT = re.compile(
    r"<!--\s*((?P<kind>not run|fails|output|file|append)(?:: (?P<value>.+?))?)\s*-->$"
)


@dataclass(frozen=True)
class Block:
    """One block of a page, with the kind and value in the comment before it."""

    page: Path
    line: int
    language: str
    text: str
    kind: str | None = None
    value: str | None = None

    @property
    def name(self) -> str:
        """Return the page and line of the block."""
        return f"{self.page.name}:{self.line}"


def pages() -> list[Path]:
    """Return README and all pages of the documentation that are Markdown."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page and the setups in its comments, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    marker = None
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        if fence := re.match(r"(`{3,}|:{3,})\s*([^`]*)$", line):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == fence[1])
            yield Block(
                page,
                at + 1,
                fence[2].strip() or _language(lines[at + 1]),
                "\n".join(lines[at + 1 : end]),
                **(marker.groupdict() if marker else {}),
            )
            at, marker = end, None
        elif line == "<!-- setup":
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == "-->")
            yield Block(page, at + 1, "bash", "\n".join(lines[at + 1 : end]))
            at = end
        elif line:
            marker = _COMMENT.match(line)
        at += 1


def _language(first: str) -> str:
    """Return the language of an unnamed block: bash if it begins with a command, else text."""
    return "bash" if re.match(r"(percolab|python|make|pip) ", first) else "text"


def folder_of(page: Path) -> Path:
    """Return the folder of the figures that a page makes."""
    return GALLERY if page.stem == "gallery" else FIGURES


def pictures_of(page: Path) -> list[str]:
    """Return the names of the figures that a page shows and makes, as ``figures/NAME.png``."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"!\[[^\]]*\]\((?:docs/)?{folder_of(page).name}/([\w.-]+)\)", text)


def commands_of(block: Block) -> Iterator[list[str]]:
    """Yield the words after every ``percolab`` of a block of shell commands."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        words.commenters = "#"
        try:
            found = list(words)
        except ValueError:
            continue  # part of a text in quotes that goes on in the next line
        while "percolab" in found:
            found = found[found.index("percolab") + 1 :]
            end = next((i for i, word in enumerate(found) if set(word) <= set("|&;<>()")), None)
            # The 2 of 2> cannot be distinguished from an argument 2, which no page has.
            yield found[:end]


class BlockError(Exception):
    """An error for a block that does not behave as the page says."""


def run_page(page: Path, folder: Path, *, verbose: bool = False) -> None:
    """Run the blocks of a page in a folder; BlockError for the first block that fails."""
    for path in (DOCS / "examples").iterdir():
        shutil.copy(path, folder)
    (folder / "configs").symlink_to(ROOT / "configs")
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        if block.kind == "output" and not _agree(block.text, printed):
            raise BlockError(f"{block.name}: the block before printed\n{printed}")
        if block.kind in ("file", "append"):
            with (folder / str(block.value)).open("a" if block.kind == "append" else "w") as file:
                file.write(block.text + "\n")
        if block.language not in RUN or block.kind == "not run":
            continue
        start = time.perf_counter()
        printed = _run(block, folder, names)
        if verbose:
            print(f"{block.name:30} {time.perf_counter() - start:6.1f} s", flush=True)
    for name in pictures_of(page):
        if not (folder / name).exists():
            raise BlockError(f"{page.name}: no block of it writes {name}")


def _run(block: Block, folder: Path, names: dict[str, Any]) -> str:
    """Run one block; return its output."""
    if block.language == "python":
        before = Path.cwd()
        os.chdir(folder)
        try:
            exec(compile(block.text, block.name, "exec"), names)
        except Exception as error:
            raise BlockError(f"{block.name}: {type(error).__name__}: {error}") from error
        finally:
            os.chdir(before)
        return ""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.text],
        cwd=folder,
        env=os.environ | {"PATH": path, "MPLBACKEND": "Agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if (block.kind == "fails") != (done.returncode != 0):
        raise BlockError(f"{block.name}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def _agree(expected: str, printed: str) -> bool:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected + "\n", printed, flags)


def draw_figures(chosen: list[Path]) -> None:
    """Run the pages that show figures, and store the figures."""
    for page in chosen:
        names = pictures_of(page)
        if names and page != ROOT / "README.md":  # its figure is that of a page of the site
            with tempfile.TemporaryDirectory() as folder:
                run_page(page, Path(folder), verbose=True)
                for name in names:
                    kept = folder_of(page)
                    keep_small(Path(folder) / name, kept / name, *SCALES[kept])


def keep_small(drawn: Path, kept: Path, scale: float, most: int) -> None:
    """Copy a figure for a page: scaled, at most ``most`` pixels wide and high, in 96 colours."""
    from PIL import Image

    with Image.open(drawn) as image:
        scale = min(scale, most / max(image.size))
        dots = round(scale * image.width), round(scale * image.height)
        small = image.convert("RGB").resize(dots, Image.Resampling.LANCZOS)
    # This keeps the colours of thin lines, even with few pixels, and keeps grey grey.
    small.quantize(96, Image.Quantize.MAXCOVERAGE, kmeans=3).save(kept, optimize=True)


def execute_notebook(path: Path) -> Any:
    """Execute a notebook and return it with its outputs; raise an exception if a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # of the kernel
    with tempfile.TemporaryDirectory() as folder:
        for example in (DOCS / "examples").iterdir():
            shutil.copy(example, folder)
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    return notebook


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "figures", "notebooks"))
    parser.add_argument("page", nargs="*", type=Path, help="[default: all]")
    arguments = parser.parse_args()
    if arguments.what == "notebooks":
        import nbformat

        for path in arguments.page or sorted((DOCS / "notebooks").glob("*.ipynb")):
            start = time.perf_counter()
            nbformat.write(execute_notebook(path), path)
            print(f"{path.name}: {time.perf_counter() - start:.0f} s")
        return
    chosen = [path.resolve() for path in arguments.page] or pages()
    if arguments.what == "figures":
        draw_figures(chosen)
        return
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run_page(page, Path(folder), verbose=True)
            except BlockError as error:
                sys.exit(str(error))


if __name__ == "__main__":
    main()
