"""README and docs: links lead somewhere, commands exist, code runs, the site can be built."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import pytest
from helpers import script
from PIL import Image

import percolab
from percolab.bonds.models import MODELS
from percolab.cli import COMMANDS, main
from percolab.figures.kinds import KINDS
from percolab.measure.columns import MEASURES, list_observables

docs_blocks = script("docs_blocks")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = docs_blocks.pages()
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
#: Blocks of commands or Python that no test runs.  A block more needs a reason, and a number here.
NOT_RUN = {"GPU": 5, "cluster": 9, "minutes": 6, "installs": 8, "packages": 4}
#: Languages that blocks may name; those in braces are directives of Sphinx.
LANGUAGES = {"bash", "python", "text", "toml"}

needs_sphinx = pytest.mark.skipif(
    find_spec("sphinx") is None or find_spec("myst_nb") is None,
    reason="pip install 'percolab[docs]'",
)


def all_blocks():
    return [block for page in PAGES for block in docs_blocks.blocks_of(page)]


def slug(heading):
    """Return the anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*$]", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def without_code(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors_of(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.M)}


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("results/*/README.md"))]:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            if re.match(r"https?:|mailto:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in anchors_of(file)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_page_is_in_one_list_of_contents():
    listed = Counter()
    for block in all_blocks():
        if block.language == "{toctree}":
            lines = [line for line in block.text.splitlines() if line and line[0] != ":"]
            listed.update(re.sub(r".*<(.+)>", r"\1", line) for line in lines)
    there = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    there |= {f"notebooks/{path.stem}" for path in NOTEBOOKS}
    assert listed == Counter([*there, "records/*"])


def test_every_block_names_its_language_and_python_and_toml_are_no_nonsense():
    for block in all_blocks():
        if block.language.startswith("{"):
            continue
        assert block.language in LANGUAGES, block.name
        if block.language == "python":
            ast.parse(block.text, block.name)
        if block.language == "toml":
            tomllib.loads(block.text)


def test_python_of_the_pages_uses_names_that_there_are():
    code = "\n".join(block.text for block in all_blocks() if block.language == "python")
    functions = set(re.findall(r"\bpercolab\.([a-z_]\w*)\(", code))
    assert functions >= {"sweep", "label"}
    assert functions <= set(percolab.__all__)
    methods = set(re.findall(r"\bresults\.([a-z_]\w*)\(", code))
    assert methods >= {"fit", "plot"}
    assert methods <= set(dir(percolab.Results))


def test_every_command_of_the_pages_has_options_that_there_are():
    parsed = Counter()
    # Click keeps the names of --help that the first context of a command has.
    group = click.Context(main, **main.context_settings)
    for block in all_blocks():
        is_script = block.text.startswith("#!/bin/bash")
        if (block.language != "bash" and not is_script) or block.kind == "fails":
            continue
        for name, *arguments in filter(None, docs_blocks.commands_of(block)):
            if name.startswith("-"):
                continue
            assert name in COMMANDS, f"{block.name}: percolab {name}"
            command = main.get_command(None, name)
            try:
                command.make_context(name, arguments, parent=group)
            except click.exceptions.Exit:
                pass  # --help
            except click.UsageError as error:
                raise AssertionError(f"{block.name}: {error.format_message()}") from error
            parsed[name] += 1
    assert set(parsed) == set(COMMANDS)
    assert sum(parsed.values()) > 150


def test_blocks_that_are_not_run_have_reasons_and_are_few():
    left_out = [block for block in all_blocks() if block.kind == "not run"]
    assert {block.language for block in left_out} <= set(docs_blocks.RUN)
    assert set(NOT_RUN) <= set(docs_blocks.REASONS)
    assert Counter(block.value for block in left_out) == NOT_RUN


def test_every_figure_is_made_by_a_block_of_its_page_and_is_small():
    shown = set()
    for page in PAGES:
        code = "\n".join(block.text for block in docs_blocks.blocks_of(page))
        for name in docs_blocks.pictures_of(page):
            stem = name.removesuffix(".png")
            # plot writes NAME.png for NAME.h5.
            assert name in code or f"plot {stem}.h5" in code, f"{page.name}: {name}"
            shown.add(docs_blocks.folder_of(page) / name)
    kept = {path: path.stat().st_size for folder in docs_blocks.SCALES for path in folder.iterdir()}
    assert shown == set(kept)
    assert max(kept.values()) < 200_000


def test_all_that_is_public_is_in_the_reference():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. auto(?:function|class|exception):: (\S+)$", text, flags=re.M)
    assert set(percolab.__all__) <= set(documented)


def test_the_page_of_terms_has_every_observable():
    text = (DOCS / "terms.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    plane = [("open", "open"), ("periodic", "periodic")]
    found = {c.name for kinds in plane for c in list_observables(kinds, chains="spins")}
    found |= {c.name for c in list_observables(("terminals",))}
    assert found >= {"clusters", "spanning_any", "wrapping_diagonal", "satisfied", "spanning"}
    assert found - named == set()
    assert set(MEASURES) - named == set()


def test_the_pages_of_models_and_spins_have_every_model():
    text = "".join(
        (DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("models", "spins")
    )
    assert {name.rstrip(":") for name in MODELS} <= {*re.findall(r"`([\w-]+)", text)}


def test_the_page_of_questions_counts_its_answers():
    text = (DOCS / "questions.md").read_text(encoding="utf-8")
    # A number and a question, the thread, the answer.
    parts = re.split(r"\*\*(\d+)\.", text)
    assert sorted(map(int, parts[1::2])) == list(range(1, 41))
    answers = Counter(
        re.search(r"\b(yes|partly|no)\b", part, re.I)[0].lower() for part in parts[2::2]
    )
    stated = re.search(r"answers \*\*(\d+)\*\*, \*\*(\d+)\*\* partly, and \*\*(\d+)\*\* not", text)
    assert [answers[word] for word in ("yes", "partly", "no")] == [int(n) for n in stated.groups()]


def test_readme_has_the_ten_commands_and_its_picture():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert docs_blocks.pictures_of(ROOT / "README.md") == ["honeycomb.png"]
    assert len(text.splitlines()) < 100
    for name in ("make sweep", "make test", "pip install", "CITATION.cff", "percolab validate"):
        assert name in text


PAGE = """
```bash
echo one; echo two
```

<!-- output -->
```text
one
...{last}
```

<!-- file: data.txt -->
```text
{number}
```

```python
from pathlib import Path
number = int(Path("data.txt").read_text())
```

<!-- setup
test {number} -lt 5
-->

<!-- not run: minutes -->
```bash
sleep 1000
```

```python
assert number == 3
```

<!-- fails -->
```bash
test {number} = 4
```
"""


@pytest.mark.parametrize(
    ("last", "number", "problem"),
    [
        ("two", 3, None),
        ("three", 3, "page.md:7: the block before printed"),
        ("two", 4, "page.md:31: AssertionError"),
        ("two", 7, "page.md:22: exit code 1"),
        ("two", "x", "page.md:17: ValueError"),
    ],
)
def test_a_block_that_does_not_hold_is_named(tmp_path, last, number, problem):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(last=last, number=number))
    folder = tmp_path / "run"
    folder.mkdir()
    if problem is None:
        docs_blocks.run_page(page, folder)
        return
    with pytest.raises(docs_blocks.BlockError, match=re.escape(problem)):
        docs_blocks.run_page(page, folder)


def test_a_command_that_should_fail_and_does_not_is_named(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- fails -->\n```bash\ntrue\n```\n")
    with pytest.raises(docs_blocks.BlockError, match=r"page.md:2: exit code 0"):
        docs_blocks.run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
# The gallery takes two minutes: `make docs-figures` runs it.
@pytest.mark.parametrize(
    "page", [page.relative_to(ROOT).as_posix() for page in PAGES if page.name != "gallery.md"]
)
def test_blocks_of_a_page_run(page):
    command = [sys.executable, str(ROOT / "scripts" / "docs_blocks.py"), "run", str(ROOT / page)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_warnings_and_paths(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    assert outputs
    assert [out for out in outputs if out.get("name") == "stderr"] == []
    texts = [json.dumps(out.get("text", "")) for out in outputs]
    assert [text for text in texts if "site-packages" in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_are_stored_with_their_outputs(path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    kept = nbformat.read(path, as_version=4)
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    assert path.stat().st_size < 300_000
    docs_blocks.execute_notebook(path)


@pytest.mark.slow
@needs_sphinx
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = r'<(?:script|img|iframe)[^>]* src="(https?:[^"]+)|<link[^>]* href="(https?:[^"]+)'
        assert re.findall(loaded, text) == [], page.name
        not_understood = r"<m[ion][^>]*>[^<]*\\[^<]*<"
        assert re.findall(not_understood, text) == [], page.name


def test_every_kind_of_figure_has_a_picture_in_the_gallery():
    page = DOCS / "gallery.md"
    found = [
        words for block in docs_blocks.blocks_of(page) for words in docs_blocks.commands_of(block)
    ]
    assert sorted(w[w.index("--kind") + 1] for w in found if "--kind" in w) == sorted(KINDS)
    shown = docs_blocks.pictures_of(page)
    assert {*shown} >= {f"{name}.png" for name in ("show", "show-bethe", "invasion", "lattice")}


def test_a_picture_is_made_small_and_keeps_its_colours(tmp_path):
    image = Image.new("RGB", (2160, 900), "white")
    others = np.random.default_rng(1).integers(0, 256, (100, 100, 3), dtype=np.uint8)
    image.paste(Image.fromarray(others), (2000, 0))
    drawn = {48: (233, 103, 0), 300: (226, 226, 226), 600: (255, 255, 255)}
    for column, colour in drawn.items():
        image.paste(colour, (2 * column, 0, 2 * column + 300, 900))
    image.save(tmp_path / "large.png")
    scale = docs_blocks.SCALES[docs_blocks.GALLERY]
    docs_blocks.keep_small(tmp_path / "large.png", tmp_path / "small.png", *scale)
    with Image.open(tmp_path / "small.png") as small:
        assert small.size == (1000, 417)
        for column, colour in drawn.items():
            found = small.convert("RGB").getpixel((column, 200))
            assert found == pytest.approx(colour, abs=4), column
