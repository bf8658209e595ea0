"""A page that needs no other file: its parts, its template, and its mathematics.

The template escapes all text, since a name in a results file may contain anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from percolab.figures.colours import LARGEST, MUTED, SINGLE, SPANNING

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

#: Symbols in the plain text of captions and tables, and their LaTeX.
_SYMBOLS = {
    "k_B T_c / J": "k_B T_c / J",
    "<sum s^2 - s_1^2>/N": r"\langle \sum s^2 - s_1^2 \rangle / N",
    "(<s_1^2> - <s_1>^2)/<s_1>": (
        r"(\langle s_1^2 \rangle - \langle s_1 \rangle^2)/\langle s_1 \rangle"
    ),
    "(<sum s^2> - <s_1^2>)/N": r"(\langle \sum s^2 \rangle - \langle s_1^2 \rangle)/N",
    "<s_1^2>/N": r"\langle s_1^2 \rangle / N",
    "<s_1>/N": r"\langle s_1 \rangle / N",
    "<s_2>/N": r"\langle s_2 \rangle / N",
    "<n_c>/N": r"\langle n_c \rangle / N",
    "<s_1>": r"\langle s_1 \rangle",
    "<s_2>": r"\langle s_2 \rangle",
    "s^tau n_s": r"s^{\tau} n_s",
    "tau = A L^z": r"\tau = A L^z",
    "sum s^2": r"\sum s^2",
    "L^d_f": r"L^{d_f}",
    "P_inf": r"P_\infty",
    "beta/nu": r"\beta/\nu",
    "gamma/nu": r"\gamma/\nu",
    "chi2/dof": r"\chi^2/\mathrm{dof}",
    "1/nu": r"1/\nu",
    "chi^2": r"\chi^2",
    "chi2": r"\chi^2",
    "chi": r"\chi",
    "tau": r"\tau",
    "p*": "p^*",
    "xi": r"\xi",
    "2 s": "2s",
}
for _name in ("1/d_f", "p_c", "R_s", "n_s", "n_c", "d_f", "T_c", *"psLNRST"):
    _SYMBOLS[_name] = _name


@dataclass(frozen=True)
class PageBlock:
    """A part of a section.

    kind: heading, answer, paragraph, preformatted or table.  text: of all but a table.  header,
    rows: of a table; without a header the first column is the header.
    """

    kind: str
    text: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True)
class PageFigure:
    """A figure of a page: its kind, name and meaning, the origin of its errors, a description."""

    kind: str
    name: str
    meaning: str
    errors: str
    alt: str
    svg: Markup


@dataclass(frozen=True)
class Section:
    """A section of a page, listed in its contents: figures first, then blocks."""

    name: str
    title: str
    blocks: Sequence[PageBlock] = ()
    figures: Sequence[PageFigure] = ()


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> PageBlock:
    """Return a table; without a header the first column is the header."""
    return PageBlock("table", header=tuple(header), rows=[tuple(row) for row in rows])


#: Blocks of text: an answer is the result of a page in one line, preformatted text keeps its lines.
heading, answer, paragraph, preformatted = (
    partial(PageBlock, kind) for kind in ("heading", "answer", "paragraph", "preformatted")
)


def page(title: str, answers: Sequence[PageBlock], sections: Sequence[Section]) -> str:
    """Return a page: the answers above, then its contents and its sections."""
    template = _environment().get_template("report.html.jinja")
    return template.render(title=title, answer=answers, sections=sections)


def slider_page(title: str, sample: Mapping[str, Any]) -> str:
    """Return the page of one sample with a slider for p.

    sample: data for pages/clusters.js and the script of the template, as JSON.
    """
    from markupsafe import Markup

    core = files("percolab.figures").joinpath("pages/clusters.js").read_text(encoding="utf-8")
    colours = {"largest": LARGEST, "crossing": SPANNING, "others": MUTED, "single": SINGLE}
    template = _environment().get_template("clusters.html.jinja")
    return template.render(title=title, sample=sample, core=Markup(core), colours=colours)


def formula(latex: str) -> Markup:
    """Return mathematics as MathML, which browsers draw without a script."""
    from markupsafe import Markup

    return Markup(_mathml(latex))


def mathematics(text: Any) -> Markup:
    """Return text, escaped unless it is markup, in which known symbols are mathematics."""
    from markupsafe import Markup

    if hasattr(text, "__html__"):
        return Markup(text.__html__())
    pattern = _pattern()
    return Markup(pattern.sub(lambda match: _mathml(_escaped()[match[0]]), escape(str(text))))


@cache
def _escaped() -> dict[str, str]:
    return {escape(symbol): latex for symbol, latex in _SYMBOLS.items()}


@cache
def _pattern() -> re.Pattern[str]:
    longest = sorted(_escaped(), key=len, reverse=True)
    # Not within words, names like s_1 or files, and not the s after an apostrophe.
    return re.compile(
        rf"(?<![\w^;'./-])(?:{'|'.join(map(re.escape, longest))})(?![\w^'./-]\w|\w|')"
    )


@cache
def _mathml(latex: str) -> str:
    from latex2mathml.converter import convert

    return str(convert(latex))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("percolab.figures", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    made.filters["maths"] = mathematics
    return made
