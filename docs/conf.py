"""The documentation site (``make docs``): what Sphinx is told.

Nothing is fetched while it is built, and its pages load nothing from elsewhere: mathematics becomes
MathML, which browsers draw themselves.  Notebooks are shown as they are stored (``make notebooks``
executes them).
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib.metadata import version as version_of
from inspect import signature
from itertools import chain
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

from percolab.cli import COMMANDS, main

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"

project = "percolab"
author = "The percolab developers"
project_copyright = author
release = version = version_of("percolab")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "examples"]
smartquotes = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js = {}

autosummary_generate = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_title = f"percolab {release}"
html_static_path = ["_static"]
html_css_files = ["percolab.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}


def _mathml(latex: str, display: str) -> str:
    r"""Return MathML; latex2mathml knows no \bigl\langle, and no spaces beside functions."""
    mathml = convert(re.sub(r"\\big[lr](?=\\[lr]angle)", "", latex), display=display)
    function, space = r"(<mi>(?:ln|exp|sinh?|cosh?)</mi>)", '<mspace width="0.17em"/>'
    mathml = re.sub(rf"(</m(?:i|n|frac|sqrt|row|sup|sub)>){function}", rf"\1{space}\2", mathml)
    return re.sub(rf"{function}(<m(?:i|n|frac|sqrt|row|sup|sub)>)", rf"\1{space}\2", mathml)


def _visit_inline(translator, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _visit_block(translator, node: nodes.math_block) -> None:
    mathml = _mathml(node.astext().strip(), "block")
    translator.body.append(f'<div class="math">{mathml}</div>')
    raise nodes.SkipNode


def write_records(app: Sphinx) -> None:
    """Make a page of the README of every folder of results but the notebook."""
    folder = DOCS / "records"
    folder.mkdir(exist_ok=True)
    for readme in sorted(RESULTS.glob("*/README.md")):
        if readme.parent.name == "notebook":
            continue
        source = f"../../results/{readme.parent.name}/README.md"
        text = f"```{{include}} {source}\n:relative-images:\n```\n"
        page = folder / f"{readme.parent.name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def link_records(app: Sphinx, docname: str, content: list[str]) -> None:
    """Lead links to folders of results, which are right in the repository, to their pages."""
    content[0] = re.sub(
        r"\]\((?:\.\./)+results/([\w-]+)(?:/README\.md)?\)", r"](/records/\1.md)", content[0]
    )


def link_included(app: Sphinx, relative: Path, parent: str, content: list[str]) -> None:
    """The same in files from outside the folder of the site, and their links into it."""
    content[0] = re.sub(r"\]\((?:\.\./)*docs/([\w.-]+\.md)", r"](/\1", content[0])
    content[0] = re.sub(r"\]\(\.\./([\w-]+)(?:/README\.md)?\)", r"](/records/\1.md)", content[0])
    link_records(app, parent, content)


def link_pages(app: Sphinx, context: object, lines: list[str]) -> None:
    """Make links of the names of pages in docstrings; the star of slices/*.png is no emphasis."""
    lines[:] = [re.sub(r"docs/([\w-]+)\.md", r":doc:`\1`", line) for line in lines]
    lines[:] = [line.replace("/*.", r"/\*.") for line in lines]


def hide_constructor(app: Sphinx, what: str, name: str, obj: object, options, signature, returns):
    """Leave out how a class is made: percolab's functions make its objects."""
    return ("", None) if what == "class" else None


def _items(line: str, names: set[str]) -> list[str]:
    """Return the parts of a line of a docstring, each from the next ``name: `` on."""
    found = re.finditer(r"(?<=\.)  (?=(\w+(?:, \w+)*): )", line)
    cuts = [item.end() for item in found if names & set(item[1].split(", "))]
    return [line[a:b].rstrip() for a, b in zip([0, *cuts], [*cuts, len(line)])]


def mark_up(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]):
    """Make lists of the lines ``name: what it is`` of docstrings, and links of names of pages."""
    names = set(getattr(obj, "__annotations__", ()))
    if what == "class":
        names |= {
            name
            for name, value in vars(obj).items()
            if isinstance(value, (property, cached_property))
        }
    if what in ("function", "method"):
        names |= set(signature(obj).parameters)
    marked, in_item = [], False
    link_pages(app, None, lines)
    for line in chain.from_iterable(_items(line, names) for line in lines):
        line = re.sub(r"(?<=[ (])\*(?=\w+\))", r"\\*", line)
        found = re.match(r"(\w+(?:, \w+)*):\s+(\S.*)", line)
        if found and names & set(found[1].split(", ")):
            if not in_item and marked and marked[-1]:
                marked.append("")
            in_item = True
            marked.append(f"* **{found[1]}**: {found[2]}")
        else:
            in_item = in_item and bool(line.strip())
            marked.append(f"  {line.strip()}" if in_item else line)
    lines[:] = marked


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer of mathematics, the pages of records, and links in docstrings."""
    for name in COMMANDS:  # each is called "command" in its file
        main.get_command(None, name).name = name
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.connect("autodoc-process-docstring", mark_up)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("sphinx-click-process-description", link_pages)
    app.connect("builder-inited", write_records)
    app.connect("source-read", link_records)
    app.connect("include-read", link_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
